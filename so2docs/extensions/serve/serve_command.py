"""`so2docs serve`: read a database in the browser, without the network."""

from __future__ import annotations

import click

from so2docs.plugin import command, log, quiet, require_packages, table_option

_NEEDED = ("starlette", "uvicorn", "jinja2", "math-core", "nh3", "pygments", "snowballstemmer")


@command(
    """
    so2docs serve sample.stackexchange.com.db
    so2docs serve sample.stackexchange.com.7z --port 8080
    so2docs serve beer.db cooking.db
    so2docs serve databases/
    """
)
@click.argument("paths", nargs=-1, required=True, metavar="DATABASE|DUMP...")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=8765,
    show_default=True,
    help="Port to listen on; 0 selects any free port.",
)
@click.option(
    "--bind",
    "host",
    default="127.0.0.1",
    show_default=True,
    metavar="ADDRESS",
    help="Address to listen on; 0.0.0.0 gives access to anyone who can reach this machine.",
)
@table_option("site", "The site for links to the original posts, if a database is made.")
@click.option("--open/--no-open", "opens", default=False, help="Open the browser.")
@quiet
def serve(
    *,
    paths: tuple[str, ...],
    port: int,
    host: str,
    opens: bool,
    quiet: bool,
    site: str | None,
) -> None:
    """Read a site in the browser: lists, tags, search, questions with their answers.

    The pages work offline: they load nothing from the network. `so2docs sqlite` makes a DATABASE,
    also of a part of a site. For a DUMP, this command makes one in the cache folder of the user
    (~/.cache/so2docs); a message says where, and the same command uses it again. From a folder,
    all databases are served; unusable files are skipped with a warning. Only this machine can
    connect, unless --bind is given.
    """
    require_packages("serve", *_NEEDED, extra="serve")
    from so2docs.extensions.serve.app import application, bind, is_loopback, make_server
    from so2docs.extensions.serve.opening import open_stores

    stores = open_stores(list(paths), progress=not quiet, site=site)
    app = application(stores, local=is_loopback(host))
    with bind(host, port) as bound:
        host_in_url = f"[{host}]" if ":" in host else host
        address = f"http://{host_in_url}:{bound.getsockname()[1]}/"
        if not is_loopback(host):
            log.info(f"anyone who can reach {host} can read these pages")
        log.info(f"serving {address} (Ctrl-C to stop)")
        if opens:
            click.launch(address)
        try:
            make_server(app).run(sockets=[bound])
        except BaseException as end:
            if isinstance(end, Exception):
                raise
            raise type(end)("no longer serving") from None
