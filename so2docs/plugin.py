"""What an extension may use of the core: products, options, commands, errors and progress.

Extensions that plug into the passes (as-of, history, formats, Markdown, remote files) also import
the modules that they plug into. Names are imported on first use, because a command needs few of
them.
"""

from __future__ import annotations

TYPE_CHECKING = False  # Replaces the constant of `typing`, which is slow to import.
if TYPE_CHECKING:
    from typing import Any

    from so2docs.api.convert import check_report, convert_validated, write_report
    from so2docs.commands.options import (
        add_options,
        command,
        given_keywords,
        output_dir,
        quiet,
        table_option,
    )
    from so2docs.commands.terminal import allow_any_encoding, say, tell
    from so2docs.counts import Counts, plural
    from so2docs.dump.source import Source
    from so2docs.dump.storage import unreadable_output
    from so2docs.errors import (
        DumpError,
        OptionError,
        OutputError,
        So2docsError,
        flag,
        require_packages,
        resumable,
        without_secrets,
    )
    from so2docs.escape import for_terminal, on_one_line
    from so2docs.limits import peak_memory
    from so2docs.options.option import option
    from so2docs.options.request import read_options
    from so2docs.options.signatures import spell_out
    from so2docs.options.sites import checked_host, site_from_name, without_date
    from so2docs.options.table import like, options_of
    from so2docs.output.file import Output
    from so2docs.output.new_files import NewFiles
    from so2docs.output.product import ExistingOutputError, Product, read_provenance, read_recipe
    from so2docs.output.provenance import UP_TO_DATE, File, Provenance, make_record
    from so2docs.progress import Shown, log
    from so2docs.reader.reading import (
        describe_foreign,
        is_output,
        parse_document,
        read_lines,
        read_start,
    )
    from so2docs.registry import find_hook
    from so2docs.report import Report
    from so2docs.schema import ANSWERS, DUMP, POSTS

# [[[cog
# import cog
# from reference.public_names import text
# cog.outl(text(cog.inFile))
# ]]]
__all__ = [
    "ANSWERS", "DUMP", "POSTS", "UP_TO_DATE", "Counts", "DumpError", "ExistingOutputError", "File",
    "NewFiles", "OptionError", "Output", "OutputError", "Product", "Provenance", "Report", "Shown",
    "So2docsError", "Source", "add_options", "allow_any_encoding", "check_report", "checked_host",
    "command", "convert_validated", "describe_foreign", "find_hook", "flag", "for_terminal",
    "given_keywords", "is_output", "like", "log", "make_record", "on_one_line", "option",
    "options_of", "output_dir", "parse_document", "peak_memory", "plural", "quiet", "read_lines",
    "read_options", "read_provenance", "read_recipe", "read_start", "require_packages",
    "resumable", "say", "site_from_name", "spell_out", "table_option", "tell", "unreadable_output",
    "without_date", "without_secrets", "write_report",
]  # fmt: skip
_NAMES = {
    "api.convert": ["check_report", "convert_validated", "write_report"],
    "commands.options": ["add_options", "command", "given_keywords", "output_dir", "quiet",
    "table_option"], "commands.terminal": ["allow_any_encoding", "say", "tell"],
    "counts": ["Counts", "plural"], "dump.source": ["Source"],
    "dump.storage": ["unreadable_output"], "errors": ["DumpError", "OptionError", "OutputError",
    "So2docsError", "flag", "require_packages", "resumable", "without_secrets"],
    "escape": ["for_terminal", "on_one_line"], "limits": ["peak_memory"],
    "options.option": ["option"], "options.request": ["read_options"],
    "options.signatures": ["spell_out"], "options.sites": ["checked_host", "site_from_name",
    "without_date"], "options.table": ["like", "options_of"], "output.file": ["Output"],
    "output.new_files": ["NewFiles"], "output.product": ["ExistingOutputError", "Product",
    "read_provenance", "read_recipe"], "output.provenance": ["UP_TO_DATE", "File", "Provenance",
    "make_record"], "progress": ["Shown", "log"], "reader.reading": ["describe_foreign",
    "is_output", "parse_document", "read_lines", "read_start"], "registry": ["find_hook"],
    "report": ["Report"], "schema": ["ANSWERS", "DUMP", "POSTS"],
}  # fmt: skip
# [[[end]]]


def __getattr__(name: str) -> Any:
    """Import a name on first use."""
    from importlib import import_module

    module = next((module for module, names in _NAMES.items() if name in names), None)
    if module is None:
        raise AttributeError(f"module 'so2docs.plugin' has no attribute {name!r}")
    value = getattr(import_module(f"so2docs.{module}"), name)
    globals()[name] = value
    return value
