"""MkDocs hook for the site, which is made from the README and `docs/`.

The README becomes the first page. Links to files that are not on the site become plain text.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

_LINK = re.compile(r"\[([^\]]+)\]\((?!https?:)([^)\s#]+)(#[^)\s]*)?\)")
_COG = re.compile(r"<!-- \[\[\[.*?-->\n|<!-- \]\]\] -->\n", re.DOTALL)


def on_files(files: Files, *, config: Any) -> Files:
    """Add the README to the files of the site as the first page, `index.md`."""
    readme = Path(config.config_file_path).with_name("README.md").read_text(encoding="utf-8")
    text = readme.replace("](docs/", "](")
    files.append(File.generated(config, "index.md", content=text))
    return files


def on_page_markdown(markdown: str, *, page: Any, config: Any, files: Files) -> str:
    """Adapt links to the site; links to files that are not on it become plain text."""
    folder = Path(page.file.src_uri).parent

    def followed(link: re.Match[str]) -> str:
        text, target, anchor = link[1], link[2], link[3] or ""
        if re.fullmatch(r"(?:\.\./)+README\.md", target):
            up = "../" * (len(folder.parts))
            return f"[{text}]({up}index.md{anchor})"
        path = str(folder / target)
        if files.get_file_from_path(path) is None and not path.startswith("tutorials/../"):
            return text
        return link[0]

    return _LINK.sub(followed, _COG.sub("", markdown))
