"""The offline reader in a browser: its pages, its requests, and scripts that never run."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from support.browser import axe, browser, chromium
from support.serve_site import (
    ATTACKS,
    HOST,
    hostile,
    make,
    make_database,
    served,
)

pytestmark = [pytest.mark.browser, pytest.mark.filterwarnings("ignore")]

DESKTOP, PHONE = {"width": 1280, "height": 900}, {"width": 390, "height": 844}
PAGES = ("/", "/questions", "/questions?tag=bread&sort=score", "/questions/tagged/bread+sourdough",
         "/questions?unanswered=1", "/tags", "/search?q=sourdough",
         "/search?q=flour+score:1+is:question", "/search", "/questions/1", "/questions/900",
         "/questions/901", "/questions/3?sort=newest", "/users", "/users/11", "/users/14", "/about",
         "/nothing")  # fmt: skip


@dataclass
class Seen:
    """A page, and its requests, errors and dialogs."""

    page: Any
    asked: list[str] = field(default_factory=list)
    said: list[str] = field(default_factory=list)


@pytest.fixture(scope="module")
def launched() -> Iterator[Any]:
    with browser() as chromium_browser:
        yield chromium_browser


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    chromium()
    with served(make(tmp_path_factory.mktemp("browser"))) as url:
        yield url


@contextmanager
def seen(launched: Any, **context: Any) -> Iterator[Seen]:
    """Open a page that records every request, error and dialog."""
    opened = launched.new_context(**({"viewport": DESKTOP} | context))
    page = Seen(opened.new_page())
    page.page.on("request", lambda request: page.asked.append(request.url))
    page.page.on("console", lambda message: page.said.append(message.text))
    page.page.on("pageerror", lambda error: page.said.append(str(error)))
    page.page.on("dialog", lambda dialog: page.said.append(dialog.message))
    try:
        yield page
    finally:
        opened.close()


def test_a_walk_through_the_reader(launched: Any, address: str) -> None:
    with seen(launched) as it:
        page = it.page
        page.goto(address)
        assert page.locator("h1").inner_text() == HOST
        assert page.locator(".bars").count() == 2
        page.keyboard.press("/")
        page.keyboard.type("hot stone")
        page.keyboard.press("Enter")
        page.wait_for_url("**/search?q=hot+stone")
        assert page.locator("mark").all_inner_texts() == ["hot", "stone", "stones"]
        page.locator("body").press("j")
        page.keyboard.press("Enter")
        page.wait_for_url("**/questions/1")
        assert "Why does my sourdough" in page.locator("h1").inner_text()
        first = page.locator(".post").nth(1)
        assert "accepted" in first.inner_text()
        assert page.locator(".comments li").count() == 1
        page.get_by_role("link", name="sourdough", exact=True).click()
        page.wait_for_url("**/questions?tag=sourdough")
        page.goto(f"{address}/questions/tagged/sourdough+bread")
        assert page.locator("h1 .tag").all_inner_texts() == ["sourdough", "bread"]
        page.locator("h3 a").first.click()
        page.goto(f"{address}/questions/900")
        page.get_by_role("link", name="its answer").click()
        assert page.url == f"{address}/questions/1#answer-5"
        page.wait_for_load_state()  # The script that handles the keys.
        page.keyboard.press("g")
        page.keyboard.press("h")
        page.wait_for_url(f"{address}/")
        assert it.said == []
        assert all(url.startswith(address) for url in it.asked)


def test_the_keys_go_from_post_to_post(launched: Any, address: str) -> None:
    with seen(launched) as it:
        it.page.goto(f"{address}/questions/1")
        for expected in ("", "answer-5", "answer-4", "answer-4"):
            it.page.keyboard.press("j")
            assert it.page.evaluate("document.activeElement.id") == expected
        it.page.keyboard.press("k")
        assert it.page.evaluate("document.activeElement.id") == "answer-5"


def test_the_first_key_reaches_the_content(launched: Any, address: str) -> None:
    with seen(launched) as it:
        it.page.goto(address)
        it.page.keyboard.press("Tab")
        assert it.page.evaluate("document.activeElement.textContent") == "To the content"
        it.page.keyboard.press("Enter")
        assert it.page.evaluate("document.activeElement.id") == "main"


@pytest.mark.parametrize(
    ("width", "scheme"),
    [(320, "light"), (390, "dark"), (768, "light"), (1100, "dark"), (1280, "light")],
)
def test_every_page_is_accessible_on_any_screen(
    launched: Any, address: str, width: int, scheme: str
) -> None:
    """Nothing is wider than the screen, and targets are at least 24 pixels high, except in text."""
    viewport = {"width": width, "height": 844}
    with seen(launched, color_scheme=scheme, viewport=viewport, bypass_csp=True) as it:
        for path in PAGES:
            it.page.goto(f"{address}{path}")
            assert violations(it.page) == [], path
            assert it.page.evaluate("document.documentElement.scrollWidth") <= width, path
            broken = it.page.evaluate(
                "[...document.querySelectorAll('.top nav a')]"
                ".filter((e) => e.getBoundingClientRect().right > innerWidth)"
                ".concat([...document.querySelectorAll('.day')]"
                ".filter((e) => new Set([...e.getClientRects()].map((rect) => rect.y)).size !== 1))"
                ".map((e) => e.outerHTML)"
            )
            assert broken == [], path
            small = it.page.evaluate(
                "[...document.querySelectorAll('nav a, .tags a, .tag, button, input, .row h3 a,"
                " .find, summary')]"
                ".filter((e) => e.offsetParent && e.type !== 'hidden')"
                ".filter((e) => e.getBoundingClientRect().height < 24).map((e) => e.outerHTML)"
            )
            assert small == [], path


def violations(page: Any) -> list[Any]:
    """Return the violations that axe reports on a page."""
    page.evaluate(axe())
    results = page.evaluate("axe.run(document, {resultTypes: ['violations']})")
    assert results["passes"]
    return [(v["id"], [node["html"] for node in v["nodes"]][:3]) for v in results["violations"]]


def test_dark_by_the_system_or_by_the_button(launched: Any, address: str) -> None:
    colour = "getComputedStyle(document.body).backgroundColor"
    with seen(launched) as it:
        it.page.goto(address)
        light = it.page.evaluate(colour)
        it.page.emulate_media(color_scheme="dark")
        dark = it.page.evaluate(colour)
        assert light != dark
        it.page.locator("#theme").click()
        assert it.page.evaluate(colour) == light
        it.page.goto(f"{address}/tags")
        assert it.page.evaluate(colour) == light
        it.page.emulate_media(color_scheme="light")
        it.page.locator("#theme").click()
        assert it.page.evaluate(colour) == dark
        it.page.goto(f"{address}/questions/900")
        keyword = "getComputedStyle(document.querySelector('pre .k')).color"
        chosen = it.page.evaluate(keyword)
        assert chosen != it.page.evaluate("getComputedStyle(document.querySelector('pre')).color")
        it.page.evaluate("delete document.documentElement.dataset.theme")
        assert it.page.evaluate(keyword) != chosen
        it.page.emulate_media(color_scheme="dark")
        assert it.page.evaluate(keyword) == chosen


def test_print_has_the_posts_alone(launched: Any, address: str) -> None:
    with seen(launched) as it:
        it.page.goto(f"{address}/questions/1")
        it.page.emulate_media(media="print")
        assert not it.page.locator("header.top").is_visible()
        assert it.page.locator(".post").count() == 3
        assert it.page.locator(".post").first.is_visible()
        assert not it.page.locator(".links").first.is_visible()
        it.page.emulate_media(media="print", color_scheme="dark")
        it.page.evaluate("document.documentElement.dataset.theme = 'dark'")
        page = "getComputedStyle(document.body).backgroundColor"
        assert it.page.evaluate(page) == "rgb(255, 255, 255)"


def test_images_are_asked_for_only_on_demand(launched: Any, address: str) -> None:
    with seen(launched) as it:
        it.page.route("https://**", lambda route: route.abort())
        it.page.goto(f"{address}/questions/900")
        assert not [url for url in it.asked if not url.startswith(address)]
        it.page.get_by_role("link", name="load images").click()
        with it.page.expect_request("https://i.stack.imgur.com/loaf.png"):
            it.page.locator(".body img").scroll_into_view_if_needed()


def test_links_are_at_the_side_of_wide_pages(launched: Any, address: str) -> None:
    with seen(launched) as it:
        it.page.goto(f"{address}/questions/1")
        parts = it.page.locator("article > div")
        posts, side = (part.bounding_box() for part in parts.all())
        assert side["x"] > posts["x"] + posts["width"]
        assert side["y"] < posts["y"] + 100
        it.page.emulate_media(media="print")
        assert parts.first.bounding_box()["width"] > posts["width"]
        it.page.emulate_media(media="screen")
        for width in (PHONE["width"], 1024):
            it.page.set_viewport_size({"width": width, "height": 800})
            posts, side = (part.bounding_box() for part in parts.all())
            assert side["x"] == posts["x"]
            assert side["y"] >= posts["y"] + posts["height"]
        assert it.page.locator(".side h2").all_inner_texts() == ["Linked questions"]


def test_pages_are_complete_without_scripts(launched: Any, address: str) -> None:
    with seen(launched, java_script_enabled=False) as it:
        it.page.goto(f"{address}/search?q=hot+stone")
        it.page.locator("h3 a").first.click()
        assert "Why does my sourdough" in it.page.locator("h1").inner_text()


def test_nothing_hostile_runs(launched: Any, tmp_path: Path) -> None:
    make_database(hostile(), tmp_path / "hostile.db", site=HOST)
    with served(tmp_path / "hostile.db") as address, seen(launched) as it:
        it.page.add_init_script(
            "window.ran = []; window.alert = (x) => ran.push(x);"
            "new MutationObserver(() => document.title === 'ran' && ran.push('title'))"
            ".observe(document, {childList: true, subtree: true, characterData: true});"
        )
        it.page.route("https://**", lambda route: route.abort())
        questions = [f"/questions/{number}" for number in range(1, len(ATTACKS) + 1)]
        questions += [f"/users/{number}" for number in range(1, len(ATTACKS) + 1)]
        lists = ["/", "/questions", "/questions?page=2", "/tags", "/search?q=hostile",
                 "/users", "/users/1", "/about"]  # fmt: skip
        for path in (*questions, *lists):
            it.page.goto(f"{address}{path}", wait_until="load")
            it.page.evaluate(
                "for (const link of document.querySelectorAll('main a'))"
                " for (const name of ['mouseover', 'focus']) link.dispatchEvent(new Event(name))"
            )
            state = it.page.evaluate(
                "[ran, document.title === 'ran', location.pathname, frames.length,"
                " getComputedStyle(document.body).display,"
                " document.querySelectorAll('main script, main style, main iframe, main svg *, "
                "main [style], main object, main embed, main input, main base').length]"
                if path != "/"
                else "[ran, document.title === 'ran', location.pathname, frames.length,"
                " getComputedStyle(document.body).display, 0]"
            )
            # The form fields of the page itself.
            inputs = {"/tags": 1, "/search": 1, "/users": 2}.get(path.split("?")[0], 0)
            assert state == [[], False, path.split("?")[0], 0, "block", inputs], path
            hrefs = it.page.evaluate("[...document.links].map((link) => link.protocol)")
            assert set(hrefs) <= {"http:", "https:", "mailto:"}
        assert it.said == []
        outside = [url for url in it.asked if not url.startswith(address)]
        assert outside == []


def test_formulas_are_drawn(launched: Any, address: str) -> None:
    with seen(launched) as it:
        it.page.goto(f"{address}/questions/901")
        assert it.page.locator("h1 math").count() == 2
        assert it.page.locator(".body math").count() == 7  # \\ce is shown as typed.
        assert it.page.locator(".comments math").count() == 2
        assert "$HOME/$USER" in it.page.locator(".body code").inner_text()
        # A fraction is higher than a line, and the cells of a matrix are in two rows and columns.
        tall, line = it.page.evaluate(
            "['.formula.block mfrac', '.body p > .formula:not(.block)'].map("
            "(name) => document.querySelector(name).getBoundingClientRect().height)"
        )
        assert tall > line
        cells = it.page.evaluate(
            "[...document.querySelectorAll('mrow > mtable mtd')].map((cell) => "
            "{ const box = cell.getBoundingClientRect(); return [box.left, box.top]; })"
        )
        assert cells[0][0] == cells[2][0] < cells[1][0] == cells[3][0]
        assert cells[0][1] == cells[1][1] < cells[2][1] == cells[3][1]
        assert it.said == []


def test_tags_are_filtered_while_typing(launched: Any, address: str) -> None:
    with seen(launched) as it:
        it.page.goto(f"{address}/tags")
        it.page.locator("#like").press_sequentially("SOUR")
        assert it.page.locator(".all-tags li:visible").all_inner_texts() == ["sourdough 1"]


def test_the_header_of_a_phone_is_low_and_breaks_no_word(launched: Any, address: str) -> None:
    with seen(launched, viewport=PHONE) as it:
        it.page.goto(address)
        assert it.page.evaluate("document.querySelector('header.top').offsetHeight") <= 100
        heading = "document.querySelector('h1').getClientRects().length"
        assert it.page.evaluate(heading) == 1
        assert it.page.locator(".tiles").evaluate("(e) => e.offsetHeight") < 844 / 3


def test_the_test_would_notice(launched: Any, tmp_path: Path) -> None:
    """The same attacks run on a page without protection."""
    attacked = tmp_path / "raw.html"
    attacked.write_text("".join(f"<div>{attack}</div>" for attack in ATTACKS[:3]), "utf-8")
    with seen(launched) as it:
        it.page.goto(attacked.as_uri())
        it.page.wait_for_function("document.title == 'ran'")
        assert json.dumps(it.asked)
