"""`so2docs mcp`: questions and answers for language models."""

from __future__ import annotations

import sys

import click

from so2docs.plugin import So2docsError, command, quiet, require_packages, table_option
from so2docs.standard_streams import is_closed


@command(
    """
    so2docs mcp sample.stackexchange.com.db
    so2docs mcp beer.db cooking.db
    """
)
@click.argument("paths", nargs=-1, required=True, metavar="DATABASE|DUMP...")
@table_option("site", "The site for links to the original posts, if a database is made.")
@quiet
def mcp(*, paths: tuple[str, ...], site: str | None, quiet: bool) -> None:
    """Let a language model search and read a site, over the Model Context Protocol.

    For a DUMP, this command first makes a database, as `so2docs serve` does. A program
    such as an editor or an assistant starts this command and communicates with it over standard
    input and output. The tools are search, get_question and get_answers, which return Markdown of
    limited length with source, licence and authors. Nothing is loaded from the network.
    """
    require_packages("mcp", "mcp", "snowballstemmer", extra="mcp")
    if is_closed(sys.stdin) or is_closed(sys.stdout):
        raise So2docsError(
            "standard input or output is closed; let a program for this protocol start the command"
        )
    from so2docs.extensions.serve.agents import make_mcp_server
    from so2docs.extensions.serve.opening import open_stores

    stores = open_stores(list(paths), progress=not quiet, site=site)
    try:
        make_mcp_server(stores).run()
    finally:
        for store in stores.values():
            store.close()
