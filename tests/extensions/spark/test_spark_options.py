"""Every option of the plain command has the same effect on Spark."""

from pathlib import Path
from typing import Any

import pytest
from support.dumps import strays_of
from support.formats_read_back import READERS
from support.formats_read_back import unpacked as of_format
from support.places import SAMPLES
from support.spark_runs import assert_same_as_plain, noisy_dump, reports

import so2docs
from so2docs.extensions import spark as on_spark
from so2docs.extensions.spark import api, sites
from so2docs.options.output_form import output_suffix

FORMS = [("parquet", None), ("jsonl", "zstd")]


@pytest.mark.spark
@pytest.mark.parametrize(("name", "compression"), FORMS)
def test_every_part_file_is_whole(
    session: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    compression: Any,
) -> None:
    dump = noisy_dump(tmp_path / "wide" / "Posts.xml", range(50_000, 800_000, 9_001))
    monkeypatch.setattr(api, "PART_BYTES", 250_000)
    strays = '<row Id="3" PostTypeId="2" ParentId="5" /><row PostTypeId="1" /></posts>'
    dump.write_text(dump.read_text().replace("</posts>", strays))
    report = on_spark.convert(
        session, dump, tmp_path / "out", format=name, compression=compression, level=9
    )
    form = {"format": name, "compression": compression}
    plain = tmp_path / f"plain{output_suffix(form)}"
    so2docs.convert(dump, plain, jobs=1, level=9, **form)
    read = READERS[name][1]
    files = sorted((tmp_path / "out" / "wide").glob("part-*"))
    assert len(files) == reports(report)["wide"].files > 3
    assert [document for file in files for document in read(file)] == read(plain)
    assert reports(report)["wide"].output_bytes == sum(file.stat().st_size for file in files)
    assert {path.name.partition(".")[2] for path in files} == {plain.name.partition(".")[2]}
    side_files = sorted((tmp_path / "out" / "wide").glob(".strays-*"))
    of_plain = strays_of(plain)
    assert b"".join(map(of_format, side_files)) == of_format(of_plain)
    compression_end = of_plain.name.partition(".strays")[2]
    assert [path.name for path in side_files] == [f".strays-00000{compression_end}"]


@pytest.mark.spark
def test_options_are_checked_before_anything_is_read(session: Any, tmp_path: Path) -> None:
    for options, message in (
        ({"level": 12}, "level is 12"),
        ({"format": "parquet", "compression": "gzip"}, "format='parquet' has a compression"),
        ({"fields": "Tilte"}, "did you mean Title"),
    ):
        with pytest.raises(so2docs.OptionError, match=message):
            on_spark.convert(session, "nothing.xml", tmp_path, **options)
    with pytest.raises(TypeError, match="'splitt'"):
        on_spark.convert(session, "nothing.xml", tmp_path, splitt=3)


@pytest.mark.spark
def test_records_of_a_recipe_and_attribution(session: Any, dumps: Path, tmp_path: Path) -> None:
    dump = dumps / "archives" / "eosio.meta.stackexchange.com.7z"
    for options in ({"recipe": "qa"}, {"attribution": True}):
        name = "-".join(options)
        on_spark.convert(session, dump, tmp_path / name, **options)
        folder = tmp_path / name / dump.name.removesuffix(".7z")
        assert_same_as_plain(dump, folder, tmp_path / f"plain-{name}", **options)


def test_lists_are_read_on_the_driver(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "users.txt").write_text("77\n5\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    for name in ("keep_users", "keep_posts", "drop_users", "drop_posts"):
        assert sites.check_options("dump", **{name: "users.txt"})[name].ids.tolist() == [5, 77]


@pytest.mark.parametrize("form", ["elasticsearch", "mongodb", "ravendb"])
def test_colliding_document_ids_of_several_sites(form: Any, tmp_path: Path) -> None:
    session: Any = None
    with pytest.raises(so2docs.OptionError, match=f"format='{form}' of several sites needs"):
        on_spark.convert(
            session, [SAMPLES / "posts.xml", SAMPLES / "votes.xml"], tmp_path, format=form
        )
    assert not list(tmp_path.iterdir())
