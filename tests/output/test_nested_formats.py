"""Comments, links, votes and users in formats with more types than JSON."""

import json
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from shutil import copytree, ignore_patterns
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow.dataset import dataset
from support.dumps import answer, question, row, unpacked, write_dump
from support.formats_read_back import mongodb, parquet
from support.golden import compare
from support.oracle_tables import FILES, nest
from support.table_sites import SITE

import so2docs

SETS = [("comments",), ("links", "users"), tuple(FILES)]


def written(path: Path, source: Path, names: Sequence[str], **options: Any) -> Path:
    so2docs.convert(source, path, nest=names, **options)
    return path


@pytest.mark.parametrize("names", SETS, ids="+".join)
def test_parquet_equals_the_documents(names: tuple[str, ...], tmp_path: Path) -> None:
    files = []
    for chunk_bytes in (None, 700):
        output = tmp_path / f"{chunk_bytes}.parquet"
        written(output, SITE, names, jobs=1, chunk_bytes=chunk_bytes)
        files.append(output.read_bytes())
    assert parquet(output) == nest(SITE, names).documents
    assert files[0] == files[1]


def test_parquet_has_the_same_columns_without_a_table(tmp_path: Path) -> None:
    dumps, paths = tmp_path / "dumps", []
    for missing in ("", *FILES.values()):
        source = copytree(SITE, dumps / f"no {missing}", ignore=ignore_patterns(missing))
        paths.append(tmp_path / f"{missing}.parquet")
        written(paths[-1], source, ["all"], if_present=True, jobs=1)
    [schema] = {str(pq.read_schema(path).remove_metadata()) for path in paths}
    assert "Comments" in schema
    for path, missing in zip(paths, (None, *FILES), strict=True):
        names = [name for name in FILES if name != missing]
        assert parquet(path) == nest(SITE, names).documents
        files = f"read_parquet({[str(path), str(paths[0])]}, union_by_name = false)"
        [[rows, comments]] = duckdb.sql(f"SELECT count(*), count(Comments) FROM {files}").fetchall()
        assert comments == (rows // 2 if missing == "comments" else rows)
    assert dataset(paths[::-1]).to_table().num_rows == rows // 2 * len(paths)


def test_fields_of_a_table_that_a_site_lacks(tmp_path: Path) -> None:
    output = tmp_path / "q.parquet"
    source = write_dump(tmp_path / "Posts.xml", question(1))
    options: dict[str, Any] = {"if_present": True, "fields": ["Id", "Comments.Text"]}
    written(output, source, ["comments"], **options)
    assert pq.read_table(output).to_pylist() == [{"Id": 1, "Comments": None, "Other": None}]
    with pytest.raises(so2docs.OptionError, match="needs nest='users'"):
        written(output, source, ["comments"], **options | {"fields": "Owner"})


def describe(fields: Iterable[pa.Field], above: str = "") -> Iterator[str]:
    """Yield path, type and whether it is never null of each column and its members."""
    for field in fields:
        kind, path = field.type, f"{above}{field.name}"
        is_list = pa.types.is_list(kind)
        members = [kind.value_field] if is_list else kind if pa.types.is_struct(kind) else []
        name = "list" if is_list else "struct" if members else kind
        yield f"{path} {name}{'' if field.nullable else ' not null'}\n"
        yield from describe(members, f"{path}.")


def test_parquet_types(tmp_path: Path) -> None:
    path = written(tmp_path / "all.parquet", SITE, ["all"], jobs=1)
    compare("".join(describe(pq.read_schema(path))), "parquet/columns.txt")


def test_parquet_values(tmp_path: Path) -> None:
    rows = pq.read_table(written(tmp_path / "all.parquet", SITE, ["all"], jobs=1)).to_pylist()
    first = rows[0]
    assert first["Comments"][0]["CreationDate"] == datetime(2024, 3, 1, 8, 5, tzinfo=UTC)
    assert (first["Votes"]["UpMod"], first["Votes"]["DownMod"]) == (2, 0)
    assert json.loads(first["Votes"]["Other"]) == {"99": 1}
    assert first["Owner"]["DisplayName"] == "Ada"
    assert first["Answers"][0]["Owner"] is None
    assert rows[1]["Comments"] == []
    assert [bounty["Amount"] for bounty in first["Bounties"]] == [100, 50]
    assert first["Answers"][0]["Bounties"] == []


def test_parquet_keeps_misfits(tmp_path: Path) -> None:
    """Values of another type, invalid dates and unknown attributes, at any depth."""
    odd = {"Score": "many", "CreationDate": "yesterday", "Mood": "good"}
    tables = {
        "Posts": [question(1, OwnerUserId=7), answer(2, 1)],
        "Comments": [row(Id=1, PostId=2, **odd, UserId=7), row(Id=2, PostId=2, Score="1e3")],
        "PostLinks": [row(Id=1, PostId=1, LinkTypeId="x", Answers="no")],
        "Votes": [row(PostId=2, VoteTypeId=37)],
        "Users": [row(Id=7, Reputation="high", CreationDate="2020-01-01")],
    }
    for name, rows_of_table in tables.items():
        write_dump(tmp_path / f"{name}.xml", *rows_of_table)
    output = written(tmp_path / "all.parquet", tmp_path, ["all"], jobs=1)
    rows = parquet(output)
    documents = nest(tmp_path, FILES).documents
    documents[0]["Answers"][0]["Votes"] = {"37": 1}
    for user in (documents[0]["Owner"], documents[0]["Answers"][0]["Comments"][0]["User"]):
        user["CreationDate"] = "2020-01-01T00:00:00.000"
    assert rows == documents


@pytest.mark.parametrize("names", SETS, ids="+".join)
def test_mongodb_has_dates_everywhere(names: tuple[str, ...], tmp_path: Path) -> None:
    output = written(tmp_path / "q.jsonl", SITE, names, jobs=1, format="mongodb")
    assert mongodb(output) == nest(SITE, names).documents
    once = output.read_bytes()
    written(output, SITE, names, jobs=1, chunk_bytes=700, format="mongodb", force=True)
    assert output.read_bytes() == once
    date = b'"CreationDate":{"$date":"2022-05-05T05:05:05.050Z"}'
    assert (date in once) == ("users" in names)


def test_texts_of_comments_stay_as_they_were_typed(tmp_path: Path) -> None:
    """Comments are not HTML: readers saw an `<i>` literally."""
    output = written(tmp_path / "q.jsonl", SITE, ["comments"], jobs=1, body="text")
    first = json.loads(unpacked(output).splitlines()[0])
    assert first["Body"].startswith("My kettle says")
    assert "<i>since when</i>" in first["Comments"][0]["Text"]
    assert first["Comments"] == nest(SITE, ["comments"]).documents[0]["Comments"]


def test_parquet_in_duckdb(dumps: Path, tmp_path: Path) -> None:
    """A DuckDB query computes the score of every post from its votes."""
    source = dumps / "archives" / "eosio.meta.stackexchange.com.7z"
    output = written(tmp_path / "all.parquet", source, ["all"], jobs=1)
    columns = (
        "post.Score, post.Votes.UpMod - post.Votes.DownMod, len(post.Comments), "
        "post.CommentCount, post.Owner.Id, post.OwnerUserId"
    )
    sql = f"""
        select {columns} from '{output}' as post
        union all select {columns} from (select unnest(Answers) as post from '{output}')
    """
    rows = duckdb.sql(sql).fetchall()
    assert len(rows) == 53
    for score, votes, comments, comment_count, owner, owner_id in rows:
        assert (votes, comments, owner) == (score, comment_count, owner_id)
