"""Coverage-guided fuzzing of the compiled core against the Python core: `make fuzz-core`.

For any bytes, the compiled core must reject the slice or agree with the Python core, while
sanitizers check its memory accesses. The first byte of an input selects a form from `FORMS`, into
which the remaining bytes are inserted, so that many inputs get past the start of a row.
"""

import sys

import atheris
from support.twins import ROWS, is_markdown_taken, is_taken, is_taken_in_columns, is_taken_of

FORMS = [
    b"%s",
    b'<row Id="7" PostTypeId="1" %s/>',
    b'<row Id="7" PostTypeId="2" ParentId="1" Body="%s" />',
    b'<row Id="7" PostTypeId="1" Tags="%s" /> <row Id="8" PostTypeId="1" />',
    b'<row PostTypeId="2" Score="%s" ParentId="20000" Id="9"/>',
    b'<row Id="7" PostTypeId="1" B="1234567890123&#%s;" />',
    b'<row %s PostTypeId="1" /><row Id="3" PostTypeId="5" />',
    b'<row Id="7" PostId="5" VoteTypeId="2" %s /><row Id="8" PostId="5" VoteTypeId="2" />',
    b'<row PostId="5" Id="%s" VoteTypeId="2" LinkTypeId="3" />',
]

taken = left = 0


def check(data: bytes) -> None:
    """Compare the compiled core with the Python core on one input."""
    global taken, left  # noqa: PLW0603
    form = FORMS[data[0] % len(FORMS)] if data else b"%s"
    rows = form % data[1:]
    for table in ROWS:
        is_taken_of(table, rows)
    for table in ("posts", "badges", "tags"):
        is_taken_in_columns(table, rows)
    is_markdown_taken(data[1:].decode(errors="replace"))
    if is_taken(rows):
        taken += 1
    else:
        left += 1
    if (taken + left) % 100_000 == 0:
        print(f"{taken + left:,} inputs, {taken:,} accepted by the compiled core", file=sys.stderr)


if __name__ == "__main__":
    atheris.Setup(sys.argv, check)
    atheris.Fuzz()
