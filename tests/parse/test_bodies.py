"""The text of a body is complete for any HTML."""

from itertools import product
from pathlib import Path

import pytest

import so2docs
from so2docs.extensions.show.page import as_text
from so2docs.options.choices import Core
from so2docs.parse.bodies import converter
from so2docs.parse.core import built


def texts_of(body: str) -> tuple[str, str]:
    to_text = converter("text")
    assert to_text is not None
    return to_text(body), as_text(body)


@pytest.mark.parametrize("depth", [100, 300, 2_050, 20_000])
def test_text_in_nested_tags_is_kept(depth: int) -> None:
    for tag, closing in product(("b", "div", "blockquote"), ("", "</{}>")):
        inside = f"<{tag}>" * depth + "inside " + closing.format(tag) * depth
        for text in texts_of(f"before {inside}after"):
            words = [word.strip("*") for word in text.split() if word != ">"]
            assert words == ["before", "inside", "after"]


def test_text_after_the_end_of_a_page_is_kept() -> None:
    for body in (
        "a</body></html>b c",
        "<html><body>a</body>b</html> c",
        "a</HTML >b<body class='x'> c",
        "a</body\n>b</body>c",
    ):
        assert ["".join(text.split()) for text in texts_of(body)] == ["abc", "abc"]


@pytest.mark.parametrize("core", sorted({"python", built()}))
def test_formulas_by_the_site_or_the_text(core: Core) -> None:
    hosts = {"math": "$a_*<b$", "electronics": r"$a_\*\<b$", "beer": "$a_*<b$", "": "$a_*<b$"}
    for name, expected in hosts.items():
        convert = converter("markdown", core, f"{name}.stackexchange.com" if name else None)
        assert convert is not None
        assert convert("<p>$a_*&lt;b$</p>") == expected


def test_signs_of_variables_are_not_formulas() -> None:
    convert = converter("markdown", host="stackoverflow.com")
    assert convert is not None
    assert convert("<p>$HOME_* and $PATH*</p>") == r"$HOME_\* and $PATH\*"


@pytest.mark.parametrize(
    ("folder", "options"),
    [
        ("math.stackexchange.com", {}),
        ("dump", {"site": "math.stackexchange.com"}),
        ("dump", {"site": "math.stackexchange.com", "site_field": "Site"}),
    ],
)
def test_the_site_decides_about_formulas(
    folder: str, options: dict[str, str], tmp_path: Path
) -> None:
    posts = tmp_path / folder / "Posts.xml"
    posts.parent.mkdir()
    posts.write_text('<posts>\n  <row Id="1" PostTypeId="1" Body="$a*$" />\n</posts>')
    (question,) = so2docs.documents(posts, body="markdown", **options)
    assert question["Body"] == "$a*$"
