"""Licences and languages of Stack Exchange sites, which are not in the dumps. Pure functions."""

from __future__ import annotations

import re

LICENSES = {"CC BY-SA 4.0": "2018-05-02", "CC BY-SA 3.0": "2011-04-08", "CC BY-SA 2.5": ""}
"""All licences, the latest first, each with the first day (UTC) on which content was licensed under
it (empty for the oldest): https://stackoverflow.com/help/licensing."""

_DAY = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)


def license_at(date: object) -> str | None:
    """Return the licence, such as `CC BY-SA 4.0`, of content created on a date; None if unknown."""
    if not isinstance(date, str) or not _DAY.match(date):
        return None
    return next(name for name, start in LICENSES.items() if date >= start)


def license_url(name: str) -> str | None:
    """Return the URL of a licence named as in `ContentLicense`; None if dumps do not use it."""
    version = name.removeprefix("CC BY-SA ")
    return f"https://creativecommons.org/licenses/by-sa/{version}/" if name in LICENSES else None


_LANGUAGES = {"es.stackoverflow", "ja.stackoverflow", "pt.stackoverflow", "ru.stackoverflow",
              "rus.stackexchange"}  # fmt: skip
"""Sites in languages other than English. Sites about a language, such as `spanish`, mix that
language with English, and count as English."""


def site_language(host: str) -> str:
    """Return the language of a site and of its meta site, as a BCP 47 tag."""
    name = host.removesuffix(".com").replace(".meta.", ".")
    return name[:2] if name in _LANGUAGES else "en"
