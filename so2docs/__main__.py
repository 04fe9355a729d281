"""Entry point of `so2docs` and `python -m so2docs`, with signals handled from the start.

Slow imports come after the signal handlers are set.
"""

import sys

from so2docs.commands import signals


def main(arguments: list[str] | None = None) -> None:
    """Run the command line and exit: 0 done, 1 failed, 2 usage error, 130 or 143 interrupted."""
    try:
        try:
            signals.end_at_once()
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
    from so2docs.errors import ALL_IS_DONE

    if str(end) == ALL_IS_DONE:
        return 0
    say(f"{how}; {end}" if str(end) else how)
    return code


if __name__ == "__main__":
    main()
