"""Entry point of `so2docs` and `python -m so2docs`, which handles signals from the start.

Signal handlers are set before the slow imports.
"""

import sys

from so2docs.commands import signals


def main(arguments: list[str] | None = None) -> None:
    """Run the command-line interface, and exit with its exit code.

    Exit codes: 0 success, 1 failure, 2 usage error, 3 some sites failed, 130 after SIGINT,
    143 after SIGTERM.
    """
    try:
        try:
            signals.end_at_once()
            from so2docs.standard_streams import prepare_standard_streams

            prepare_standard_streams()
            from so2docs.cli import run

            code = run(arguments)
        finally:
            signals.ignore()
    except KeyboardInterrupt as end:
        code = _interrupted("interrupted", signals.EXIT_INTERRUPTED, end)
    except signals.Terminated as end:
        code = _interrupted("terminated", signals.EXIT_TERMINATED, end)
    sys.exit(code)


def _interrupted(how: str, code: int, end: BaseException) -> int:
    from so2docs.commands.terminal import say

    if getattr(end, "is_done", False):
        return 0
    say(f"{how}; {end}" if str(end) else how)
    return code


if __name__ == "__main__":
    main()
