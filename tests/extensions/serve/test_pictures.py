"""Pictures of posts from folders and ZIP archives, and those that are not there."""

from __future__ import annotations

from pathlib import Path

from support.command import run
from support.packed import zipped
from support.serve_site import asked, make

import so2docs

PNG, GIF = b"\x89PNG\r\n\x1a\n....", b"GIF89a...."


def test_pictures_from_disk(tmp_path: Path) -> None:
    folder = tmp_path / "pictures" / "i.stack.imgur.com"
    folder.mkdir(parents=True)
    (folder / "loaf.png").write_bytes(PNG)
    (folder / "script.png").write_bytes(b"<svg onload='x'/>")
    (folder / "notes.txt").write_bytes(PNG)
    zipped(tmp_path / "more.zip", {"2020/crumb.gif": GIF})
    sources = ("//i.sstatic.net/crumb.gif", "https://i.stack.imgur.com/gone.png?s=1&amp;g=1",
               "https://i.stack.imgur.com/notes.png", "https://other.example/loaf.png")  # fmt: skip
    body = "".join(f'<p><img src="{source}" alt="A crumb"></p>' for source in sources)
    so2docs.to_sqlite([{"Id": 1, "Body": body, "Answers": []}], tmp_path / "q.db")
    images = (tmp_path / "pictures", tmp_path / "more.zip")
    with asked(make(tmp_path), tmp_path / "q.db", images=images) as client:
        page = client.get("/bread.stackexchange.com/questions/900").text
        assert '<img src="/pictures/loaf" alt="A flat loaf" loading="lazy">' in page
        site = [path for path in client.get("/index.json").json() if "bread" not in path["path"]]
        page = client.get(f"{site[0]['path']}questions/1").text
        assert page.count("<img") == 1
        assert '<img src="/pictures/crumb" alt="A crumb" loading="lazy">' in page
        for source in ("https://i.stack.imgur.com/gone.png?s=1&amp;g=1", *sources[2:]):
            assert f'<span class="image">A crumb <span class="where">{source}</span></span>' in page
        for key, kind, content in (("loaf", "image/png", PNG), ("crumb", "image/gif", GIF)):
            answer = client.get(f"/pictures/{key}")
            assert (answer.headers["content-type"], answer.content) == (kind, content)
            assert answer.headers["x-content-type-options"] == "nosniff"
        for key in ("gone", "script", "notes", "..%2Fmore", "%2e%2e"):
            assert client.get(f"/pictures/{key}").status_code == 404


def test_other_files_are_rejected_by_name(tmp_path: Path) -> None:
    (tmp_path / "x.png").write_bytes(PNG)
    done = run("serve", make(tmp_path), "--images", tmp_path / "x.png", code=2)
    assert "x.png: is neither a folder nor a ZIP archive" in done.stderr
