"""The rules of the sites are right, and no other module repeats them."""

from __future__ import annotations

import pytest

from so2docs import domain
from so2docs.extensions import site_facts


@pytest.mark.parametrize(
    ("date", "version"),
    [
        ("2008-08-01T00:00:00.000", "2.5"),
        ("2011-04-07T23:59:59.999", "2.5"),
        ("2011-04-08T00:00:00.000", "3.0"),
        ("2018-05-01T23:59:59.999", "3.0"),
        ("2018-05-02T00:00:00.000", "4.0"),
    ],
)
def test_the_licence_of_a_date(date: str, version: str) -> None:
    assert site_facts.license_at(date) == f"CC BY-SA {version}"
    assert site_facts.license_url(f"CC BY-SA {version}") == (
        f"https://creativecommons.org/licenses/by-sa/{version}/"
    )


@pytest.mark.parametrize("date", [None, "", "soon", 2018, {"$date": "2018-05-02T00:00:00.000Z"}])
def test_no_licence_without_a_date(date: object) -> None:
    assert site_facts.license_at(date) is None


@pytest.mark.parametrize("name", ["", "MIT", "CC BY-SA 9", "CC BY-SA ", "4.0", "CC BY-SA 4.0/../x"])
def test_other_licences_have_no_address(name: str) -> None:
    assert site_facts.license_url(name) is None


@pytest.mark.parametrize(
    ("names", "host"),
    [
        (["beer.stackexchange.com"], "alcohol.stackexchange.com"),
        (["programmers.stackexchange.com"], "softwareengineering.stackexchange.com"),
        (
            ["meta.cogsci.stackexchange.com", "cogsci.meta.stackexchange.com"],
            "psychology.meta.stackexchange.com",
        ),
        (["meta.ru.stackoverflow.com"], "ru.meta.stackoverflow.com"),
        (["meta.tea.stackexchange.com"], "tea.meta.stackexchange.com"),
        ([], "meta.stackexchange.com"),
        ([], "stackoverflow.com"),
        ([], "health.example"),
    ],
)
def test_former_hosts_of_a_site(names: list[str], host: str) -> None:
    for name in (*names, host):
        assert domain.site_host(name) == host


@pytest.mark.parametrize(
    ("host", "language"),
    [
        ("pt.stackoverflow.com", "pt"),
        ("ja.meta.stackoverflow.com", "ja"),
        ("rus.stackexchange.com", "ru"),
        ("spanish.stackexchange.com", "en"),
        ("", "en"),
    ],
)
def test_languages_of_sites(host: str, language: str) -> None:
    assert site_facts.site_language(host) == language
