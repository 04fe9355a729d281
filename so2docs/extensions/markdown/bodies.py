"""Convert bodies to Markdown, with the compiled core if possible."""

from __future__ import annotations

from collections.abc import Callable

from so2docs.extensions.formulas import formula_sign, sign_in
from so2docs.options.choices import Core
from so2docs.parse.core import compiled


def make_converter(core: Core, host: str | None) -> Callable[[str], str]:
    """Make the function that converts the HTML of a body of a site to Markdown."""
    markdown = to_markdown
    if core != "compiled":
        from so2docs.extensions.markdown.conversion import to_markdown as markdown
    if (sign := formula_sign(host or "")) is not None:
        return lambda body: markdown(body, sign)
    return lambda body: markdown(body, sign_in(body))


def to_markdown(body: str, sign: str = "") -> str:
    """Convert a body with the compiled core, which leaves bodies with tables to the reference."""
    markdown = compiled.to_markdown(body, sign)
    if markdown is not None:
        return markdown
    # Imported here, because plain conversions do not need it, and the import takes a worker 25 ms.
    from so2docs.extensions.markdown.conversion import to_markdown as reference_to_markdown

    return reference_to_markdown(body, sign)
