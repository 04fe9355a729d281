"""The table of all options, which `make docs` writes to docs/options.md."""

from __future__ import annotations

from reference.keywords import CLASSES

from so2docs.commands.options import spellings
from so2docs.errors import naming_flags
from so2docs.options.option import Option, spell_options
from so2docs.options.table import GROUPS

PAGE = "options.md"


def every_option() -> dict[str, Option]:
    """Return all options by keyword: of conversions first, then those that only others have."""
    options: dict[str, Option] = {}
    for _, declared, _ in CLASSES.values():
        options = declared | options
    return options


def tables() -> str:
    """Return a table for each group of options, with a heading."""
    options = every_option().values()
    lines = []
    for group in GROUPS:
        entries = [entry for entry in options if entry.group == group]
        lines += [f"## {group}", "", "| option | meaning |", "|---|---|"]
        lines += [_row(entry) for entry in sorted(entries, key=lambda entry: entry.spellings[0])]
        lines.append("")
    return "\n".join(lines)


def links(names: list[str]) -> str:
    """Return a list of links to options, by keyword."""
    options = every_option()
    entries = (options[name] for name in names)
    return ", ".join(f"[`{_flag(entry)}`]({PAGE}#{entry.name})" for entry in entries)


def keyword_links(names: list[str]) -> str:
    """Return a list of links to options under their names as keywords."""
    return ", ".join(f"[`{name}`]({PAGE}#{name})" for name in names)


def _flag(entry: Option) -> str:
    return entry.spellings[0]


def _row(entry: Option) -> str:
    flag = f"{_flag(entry)} {entry.metavar or ''}".rstrip()
    keyword = entry.name.replace("_", "-")
    name = f"`{flag}`" if flag.startswith(f"--{keyword}") else f"`{flag}`, `{entry.name}=`"
    with naming_flags(spellings()):
        text = " ".join(filter(None, [entry.summary, spell_options(entry.more)]))
    default = entry.usually or (entry.default if entry.default not in (None, False, ()) else "")
    text += f" Default: {default}." if default else ""
    cells = (cell.replace("|", r"\|") for cell in (f'<a id="{entry.name}"></a>{name}', text))
    return f"| {' | '.join(cells)} |"
