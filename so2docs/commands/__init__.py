"""The commands. Each turns its options into a single library call."""

from textwrap import dedent, indent

DEBUG = "so2docs.debug"
"""Key in the context's `meta`: whether errors are shown with a traceback."""

EXAMPLES = """
so2docs convert Posts.xml questions.jsonl.gz
so2docs show questions.jsonl.gz 1
so2docs convert *.7z --output-dir out --site-field Site
zcat questions.jsonl.gz | head -1
"""


def examples(lines: str) -> str:
    """Format examples as the epilog of a command's help."""
    return f"\b\nExample:\n{indent(dedent(lines).strip(), '  ')}\n"
