"""Records of the spill from which the state of a date is made, beside those of posts and rows."""

from __future__ import annotations

from so2docs.parse.keys import ANSWER, QUESTION, REJECTED_ANSWER, REJECTED_QUESTION
from so2docs.schema import CONTENT

REVISION, LATER, LATER_VOTE = 12, 13, 14
"""Kinds of records: history rows before the date, and keys of history rows after it. The rank of
both is the type of the event. If later questions are restored as on another date, votes between the
dates have the third kind."""

REJECTED = {QUESTION: REJECTED_QUESTION, ANSWER: REJECTED_ANSWER}
"""Kind of a post that is left out, by its kind."""

RESTORING = CONTENT | {10, 11, 12, 13, 16, 36}
"""Types of events before a date from which a post is restored: texts, closings, deletions, and
migrations, which matter if later questions are restored as on another date."""

MERGE = 38
"""Type of the event by which answers come from one question to another."""

REVEALING = CONTENT | {13, 36, MERGE}
"""Types of events after a date that show that a post was different, deleted, not yet here, or an
answer to another question."""

LINKED, MOVED = 1, 2
"""Ranks of the keys at the end of a chunk of history: posts whose addresses occur in texts before
the date, and answers that came to their question after it."""
