"""Code blocks, each with its language, the preceding text and the origin of its post.

    so2docs convert DUMP blocks.parquet --recipe blocks:BLOCKS

A code block is a `<pre>` element in a body, so the recipe reads the HTML of the bodies. As in the
site's highlighting, its language comes from a class such as `lang-py`, which the author or the site
chose, or from the tags of the question, if all tags that have a language agree on it
(https://meta.stackexchange.com/q/184108, "syntax highlighting").
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Annotated, TypedDict

from post_metadata import PostId, identify

from so2docs import Recipe
from so2docs.domain import rank, score
from so2docs.escape import strip_tags
from so2docs.extensions.recipes import posts
from so2docs.extensions.recipes.recipe import Document, Record

_PRE = re.compile(r"<pre\b([^<>]*)>(.*?)(?:</pre>|\Z)", re.DOTALL | re.IGNORECASE)
_CODE = re.compile(r"\s*<code\b([^<>]*)>", re.IGNORECASE)
_LANGUAGE = re.compile(r"""class\s*=\s*["'](?:[^"']*\s)?lang(?:uage)?-([^\s"']+)""", re.IGNORECASE)
_LINE_BREAK = re.compile(r"<br\b[^<>]*>", re.IGNORECASE)
_BLOCK = re.compile(
    r"</?(?:p|li|ul|ol|h[1-6]|blockquote|hr|div|table|thead|tbody|tr|td|th|dl|dt|dd)\b[^<>]*>",
    re.IGNORECASE,
)

_ALIASES = {
    "bash": "bsh sh shell zsh console",
    "batch": "bat cmd dos",
    "c": "h",
    "c#": "cs csharp",
    "c++": "cpp cc cxx hpp",
    "clojure": "clj",
    "css": "",
    "diff": "patch",
    "dockerfile": "docker",
    "elixir": "ex exs",
    "erlang": "erl",
    "f#": "fs fsharp",
    "go": "golang",
    "groovy": "",
    "haskell": "hs",
    "html": "htm xhtml",
    "ini": "",
    "java": "",
    "javascript": "js jsx node mjs",
    "json": "",
    "julia": "jl",
    "kotlin": "kt kts",
    "latex": "tex",
    "lisp": "cl el lsp",
    "lua": "",
    "makefile": "make mk",
    "markdown": "md",
    "matlab": "",
    "mathematica": "mma wl",
    "objective-c": "objc m mm objectivec",
    "ocaml": "ml",
    "pascal": "delphi",
    "perl": "pl pm",
    "php": "",
    "powershell": "ps1 ps",
    "prolog": "",
    "python": "py py3 python3 gyp",
    "r": "s",
    "ruby": "rb",
    "rust": "rs",
    "scala": "",
    "scheme": "scm",
    "solidity": "sol",
    "sql": "plsql tsql mysql pgsql postgres",
    "swift": "",
    "typescript": "ts tsx",
    "vb.net": "vb vbnet vbs vba",
    "vhdl": "vhd",
    "xml": "xsl xslt svg plist",
    "yaml": "yml",
}
NAMES = {alias: name for name, text in _ALIASES.items() for alias in (name, *text.split())}
"""Names of languages, by name or abbreviation in classes."""

_TAGS = {
    "bash": "sh shell zsh",
    "c#": ".net asp.net linq wpf unity3d",
    "c++": "c++11 c++14 c++17 c++20 stl qt boost",
    "html": "html5",
    "css": "css3 sass",
    "java": "java-8 spring spring-boot hibernate",
    "javascript": "jquery node.js reactjs angularjs vue.js ecmascript-6",
    "latex": "tex-core",
    "objective-c": "cocoa",
    "php": "laravel wordpress",
    "python": "python-2.7 python-3.x python-2.x django flask numpy pandas",
    "r": "ggplot2 dplyr rstudio",
    "ruby": "ruby-on-rails",
    "scala": "akka",
    "sql": "mysql postgresql sql-server sqlite oracle t-sql tsql plsql mariadb",
    "vb.net": "vba vbscript excel-vba",
}
BY_TAG = {name: name for name in _ALIASES} | {
    tag: name for name, text in _TAGS.items() for tag in text.split()
}
"""Names of languages, by tag."""


def name_language(abbreviation: str) -> str:
    """Return the name of a language abbreviated in a class; unknown abbreviations are unchanged."""
    return NAMES.get(abbreviation.lower(), abbreviation)


def language_of_tags(tags: Iterable[str]) -> str:
    """Return the language of the tags; empty if no tag has a language, or if languages differ."""
    languages = {BY_TAG[tag] for tag in tags if tag in BY_TAG}
    return languages.pop() if len(languages) == 1 else ""


def blocks(question: Document) -> Iterator[Record]:
    """Make a record for each code block of the question, then of its answers, sorted by votes."""
    base = posts.site_url(question)
    for post in (question, *rank(question)):
        body = posts.text(post)
        if "<pre" not in body.lower():
            continue
        by_tags = language_of_tags(question.get("Tags", ()))
        metadata = {
            **identify(post, question),
            "score": score(post),
            "accepted": posts.is_accepted(post, question),
            **posts.origin(post, base),
        }
        for number, (before, said, code) in enumerate(_code_blocks(body)):
            language = by_tags if said is None else name_language(said)
            language_from = "author" if said is not None else "tags" if by_tags else ""
            yield {
                "id": f"{metadata['site']}-{post['Id']}-{number}",
                "text_before": before,
                "language": language,
                "language_from": language_from,
                "code": code,
                "metadata": metadata,
            }


def _code_blocks(body: str) -> Iterator[tuple[str, str | None, str]]:
    """Yield the text before each code block, the language in its class, and the code.

    The language is None without a class, and empty for `lang-none`.
    """
    end = 0
    for block in _PRE.finditer(body):
        before, end = body[end : block.start()], block.end()
        inside = block[2]
        inner = _CODE.match(inside)
        language = _LANGUAGE.search(block[1]) or (inner and _LANGUAGE.search(inner[1]))
        code = strip_tags(_LINE_BREAK.sub("\n", inside))
        code = code.replace("\r\n", "\n").removeprefix("\n").removesuffix("\n")
        if code.strip():
            name = language[1] if language else None
            yield _last_text(before), "" if name == "none" else name, code


def _last_text(html: str) -> str:
    """Return the text of the last non-empty paragraph, heading or list item; empty without one."""
    for part in reversed(_BLOCK.split(html)):
        text = strip_tags(_LINE_BREAK.sub(" ", part))
        if words := text.split():
            return " ".join(words)
    return ""


class _Post(PostId):
    score: Annotated[int, "votes for the post minus votes against it"]
    accepted: Annotated[bool, "whether the asker accepted the answer"]


class BlockMetadata(_Post, posts.Origin):
    """Metadata of a post."""


class Block(TypedDict):
    """A record."""

    id: Annotated[str, "id, unique across sites"]
    text_before: Annotated[str, "paragraph, heading or list item before the code"]
    language: Annotated[str, "language of the code; empty if unknown"]
    language_from: Annotated[str, "source of the language: `author` or `tags`; empty if unknown"]
    code: Annotated[str, "text of the code block"]
    metadata: Annotated[BlockMetadata, "source and attribution of the record"]


BLOCKS = Recipe(
    "blocks",
    blocks,
    Block,
    optional_tables=("users",),
    fields=(*posts.FIELDS, "CreationDate"),
    attributed="posts",
    summary="a block of code, with its language and the text before it",
    tasks=("text-generation",),
)
