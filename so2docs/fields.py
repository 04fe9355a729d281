"""Which attributes of questions and answers a document has."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass

from so2docs.attributes import ANSWER_ATTRIBUTES, QUESTION_ATTRIBUTES
from so2docs.errors import OptionError

_ANSWERS = "Answers"
_INSIDE = "Answers."
_QUESTION = frozenset({*QUESTION_ATTRIBUTES, *ANSWER_ATTRIBUTES})
_ALLOWED = (
    *QUESTION_ATTRIBUTES,
    _ANSWERS,
    *(f"{_INSIDE}{name}" for name in ANSWER_ATTRIBUTES),
)


@dataclass(frozen=True, slots=True)
class Fields:
    """A choice of fields: those to keep, or those to leave out, or all.

    Attributes:
        kept: Names such as `Title`, `Answers` (all of them) or `Answers.Body`; None for all.
        left_out: Names in the same form.
    """

    kept: tuple[str, ...] | None = None
    left_out: tuple[str, ...] = ()

    @property
    def is_all(self) -> bool:
        """Whether every attribute stays."""
        return self.kept is None and not self.left_out

    @property
    def has_answers(self) -> bool:
        """Whether documents have answers at all."""
        if self.kept is not None:
            return any(name.startswith(_ANSWERS) for name in self.kept)
        return _ANSWERS not in self.left_out

    def has_question(self, name: str) -> bool:
        """Whether questions have this attribute."""
        return name not in self.left_out if self.kept is None else name in self.kept

    def has_answer(self, name: str) -> bool:
        """Whether answers have this attribute."""
        if self.kept is None:
            return f"{_INSIDE}{name}" not in self.left_out
        return _ANSWERS in self.kept or f"{_INSIDE}{name}" in self.kept


def fields_of(kept: str | Sequence[str] | None, left_out: str | Sequence[str] | None) -> Fields:
    """The choice that `--fields` and `--without` ask for.

    Raises:
        OptionError: A name is unknown, or both were given.
    """
    if kept is not None and left_out:
        raise OptionError("--fields and --without contradict each other; give one of them")
    if kept is None:
        return Fields(None, _names("--without", left_out or ()))
    names = _names("--fields", kept)
    if not names:
        raise OptionError("--fields is empty; name at least one, such as Id,Title,Answers.Body")
    return Fields(names)


def _names(option: str, given: str | Sequence[str]) -> tuple[str, ...]:
    parts = given.split(",") if isinstance(given, str) else given
    names = tuple(dict.fromkeys(name.strip() for name in parts if name.strip()))
    for name in names:
        if name not in _ALLOWED and name.removeprefix(_INSIDE) not in _QUESTION:
            by_lower = {allowed.lower(): allowed for allowed in _ALLOWED}
            similar = difflib.get_close_matches(name.lower(), by_lower, 1, 0.7)
            hint = f"; did you mean {by_lower[similar[0]]}?" if similar else "."
            raise OptionError(
                f"{option}: there is no field {name!r}{hint} Allowed are "
                f"{', '.join(QUESTION_ATTRIBUTES)}, {_ANSWERS}, and Answers. before the name of "
                "an attribute of answers, as in Answers.Body"
            )
    return names
