"""Find the language of a code block from its class, or from the tags of its question.

A class such as `lang-py` is chosen by the author or the site. Without a class, the site uses the
tags for highlighting, if all tags that have a language agree on it
(https://meta.stackexchange.com/q/184108, "syntax highlighting").
"""

from __future__ import annotations

from collections.abc import Iterable

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
