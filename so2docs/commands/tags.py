"""`so2docs tags`: the tags of a dump with their descriptions."""

from __future__ import annotations

import click

from so2docs.commands.options import command, quiet, table_option
from so2docs.commands.terminal import shows_progress, tell


@command(
    """
    so2docs tags beer.stackexchange.com.7z beer-tags.jsonl
    so2docs tags beer.stackexchange.com.7z - | jq -r '.Name + ": " + .Excerpt'
    """
)
@click.argument("dump", type=click.Path(), metavar="DUMP")
@click.argument("output", type=click.Path(), metavar="[OUTPUT]", default="tags.jsonl.gz")
@table_option("force", "Overwrite OUTPUT.")
@table_option("jobs")
@table_option("work_dir", "Folder for temporary files.  [default: that of the system]")
@quiet
def tags(
    *, dump: str, output: str, force: bool, jobs: int | None, work_dir: str | None, quiet: bool
) -> None:
    """Write the tags of DUMP with their excerpts and wikis into OUTPUT, a tag a line.

    DUMP is the archive of a site, or a folder with Posts.xml and Tags.xml. The name of OUTPUT ends
    in .jsonl, .jsonl.gz or .jsonl.zst; - is standard output. The default is tags.jsonl.gz.

    A line has the attributes of Tags.xml; Excerpt, a text, and Wiki, HTML, where there are any; and
    ExcerptPost and WikiPost, which say when and by whom these were written and edited. Lines are in
    the order of the dump.
    """
    from so2docs.flat.tags import tags as read_tags
    from so2docs.flat.tags import write_tags

    documents = read_tags(dump, jobs=jobs, work_dir=work_dir, progress=shows_progress(quiet))
    report = write_tags(documents, output, force=force)
    if not quiet:
        tell(report)
