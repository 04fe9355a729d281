"""Two versions of a text -> HTML that marks what changed. Pure; the time is bounded.

Lines are compared first, then the words of lines that changed. A comparison takes at most as many
steps as there are pairs of equal items, times the length of the shorter side. Where that is too
much, all of one side is shown as removed and all of the other as added.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher

from markupsafe import escape

_MOST_STEPS = 5_000_000
"""Of a comparison of lines, and of all comparisons of words in a text: 0.15 s each at worst."""
_CONTEXT = 2
"""Unchanged lines that are shown before and after a change."""
_MOST_SHOWN = 20_000
"""Characters of a change that are shown, and of each line around it a hundredth of that."""
_LEAST_ALIKE = 0.3
"""Share of the words that two versions of some lines have in common, to be shown as one text."""
_WORD = re.compile(r"\w+\s*|[^\w\s]\s*|\s+")
"""A word or sign with the white space after it: pieces of white space would be too many equals."""

Change = tuple[int, int, int, int]
"""Start and end in the old sequence, and in the new one."""


def diff(old: str, new: str) -> str:
    """The changes between two texts, with some lines around each, as HTML."""
    before, after = old.splitlines(), new.splitlines()
    changes = _changes(before, after, _Steps())
    return "".join(_shown(before, after, changes))


class _Steps:
    """The remaining budget of steps for comparisons."""

    def __init__(self) -> None:
        self.left = _MOST_STEPS

    def take(self, old: Sequence[str], new: Sequence[str]) -> bool:
        """Whether these may be compared."""
        counts = Counter(new)
        pairs = sum(counts[item] * count for item, count in Counter(old).items())
        steps = (pairs + len(old)) * min(len(old), len(new))
        if steps > self.left:
            return False
        self.left -= steps
        return True


def _changes(old: Sequence[str], new: Sequence[str], steps: _Steps) -> list[Change]:
    """List the differences, in order."""
    first = _common(old, new)
    last = _common(old[first:][::-1], new[first:][::-1])
    a, b = old[first : len(old) - last], new[first : len(new) - last]
    if not a and not b:
        return []
    if not a or not b or not steps.take(a, b):
        return [(first, first + len(a), first, first + len(b))]
    return [
        (first + i, first + j, first + k, first + m)
        for kind, i, j, k, m in SequenceMatcher(None, a, b, autojunk=False).get_opcodes()
        if kind != "equal"
    ]


def _common(old: Sequence[str], new: Sequence[str]) -> int:
    """How many items are equal at the start."""
    count = 0
    for token, other in zip(old, new, strict=False):
        if token != other:
            break
        count += 1
    return count


def _shown(before: list[str], after: list[str], changes: list[Change]) -> Iterator[str]:
    steps, remaining, at = _Steps(), _MOST_SHOWN, 0
    for number, (i, j, k, m) in enumerate(changes):
        start = max(at, i - _CONTEXT)
        if start > at:
            yield '<div class="gap">…</div>'
        yield from (_line(line) for line in before[start:i])
        if remaining <= 0:
            rest = len(changes) - number
            yield f'<div class="gap">{rest:,} more change{"s" * (rest > 1)}</div>'
            return
        removed, added = "\n".join(before[i:j]), "\n".join(after[k:m])
        marked = _words(removed, added, steps, remaining)
        remaining -= len(removed) + len(added)
        yield f'<div class="changed">{marked}</div>'
        end = changes[number + 1][0] if number + 1 < len(changes) else len(before)
        at = min(j + _CONTEXT, end)
        yield from (_line(line) for line in before[j:at])
    if at < len(before) and changes:
        yield '<div class="gap">…</div>'


def _line(line: str) -> str:
    return f"<div>{_cut(line, _MOST_SHOWN // 100)}</div>"


def _words(old: str, new: str, steps: _Steps, remaining: int) -> str:
    """Mark the changed words of lines, or show old and new lines, `remaining` characters each."""
    if old and new and len(old) + len(new) <= remaining:
        before, after = _WORD.findall(old), _WORD.findall(new)
        changes = _changes(before, after, steps)
        unchanged = len(old) - sum(len("".join(before[i:j])) for i, j, _, _ in changes)
        if unchanged >= _LEAST_ALIKE * min(len(old), len(new)):
            return "".join(_inline(before, after, changes))
    parts = [
        f"<{tag}>{_cut(text, remaining)}</{tag}>"
        for tag, text in (("del", old), ("ins", new))
        if text
    ]
    return "\n".join(parts)


def _inline(before: list[str], after: list[str], changes: list[Change]) -> Iterator[str]:
    at = 0
    for i, j, k, m in changes:
        yield str(escape("".join(before[at:i])))
        if i < j:
            yield f"<del>{escape(''.join(before[i:j]))}</del>"
        if k < m:
            yield f"<ins>{escape(''.join(after[k:m]))}</ins>"
        at = j
    yield str(escape("".join(before[at:])))


def _cut(text: str, most: int) -> str:
    """The start of a text, escaped."""
    return str(escape(text if len(text) <= most else f"{text[:most]} …"))
