"""`so2docs tags`: write the tags of a dump with their descriptions."""

from __future__ import annotations

from typing import Any

import click

from so2docs.commands.options import command, output_dir, product_options, quiet
from so2docs.commands.terminal import shows_progress, tell
from so2docs.extensions.options import ReplaceOptions, TagsOptions
from so2docs.extensions.sites.printing import show_each_site


@command(
    """
    so2docs tags sample.stackexchange.com.7z sample-tags.jsonl
    so2docs tags 2024-07/*.7z --output-dir tags
    so2docs tags sample.stackexchange.com.7z - | jq -r '.Name + ": " + .Excerpt'
    """
)
@click.argument("paths", nargs=-1, required=True, type=click.Path(), metavar="DUMP [OUTPUT]")
@output_dir
@product_options(TagsOptions, ReplaceOptions)
@quiet
def tags(*, paths: tuple[str, ...], output_dir: str | None, quiet: bool, **options: Any) -> int:
    """Write the tags of DUMP with their excerpts and wikis to OUTPUT, one tag per line.

    DUMP is the archive of a site, or a folder with Posts.xml and Tags.xml. The name of OUTPUT ends
    in .jsonl, .jsonl.gz or .jsonl.zst; - is standard output. The default is tags.jsonl.gz.

    Each line has the attributes of a row of Tags.xml. Tags with a description also have Excerpt
    (text) and Wiki (HTML); ExcerptPost and WikiPost have the dates, authors and editors of the
    posts that contain these texts. Lines are in the order of the dump.

    With --output-dir, all paths are dumps, and DIR gets a file SITE.jsonl.gz for each dump.

    Exit codes: 0 done, 1 an error, 2 usage error, 3 some of several dumps failed.
    """
    from so2docs.extensions.tables.tags import TagsFile
    from so2docs.extensions.tables.tags import tags as read_tags

    if output_dir is not None:
        return show_each_site(read_tags, paths, output_dir, quiet=quiet, **options)
    if len(paths) > 2:
        raise click.UsageError("for several dumps, give a folder: --output-dir DIR")
    dump, output = (*paths, "tags.jsonl.gz")[:2]
    again = {name: options.pop(name) for name in ("update", "force")}
    documents = read_tags(dump, progress=shows_progress(quiet), **options)
    report = TagsFile(documents, output).build(**again)
    if not quiet:
        tell(report)
    return 0
