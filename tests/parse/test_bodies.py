"""The text of a body is complete for any HTML."""

from pathlib import Path

import pytest

import so2docs
from so2docs.options.choices import Core
from so2docs.parse.bodies import converter
from so2docs.parse.core import built
from so2docs.reader.page import as_text


@pytest.mark.parametrize("depth", [100, 300, 2_050, 20_000])
@pytest.mark.parametrize("tag", ["b", "div", "blockquote"])
@pytest.mark.parametrize("is_closed", [True, False])
def test_text_in_nested_tags_is_kept(tag: str, depth: int, is_closed: bool) -> None:
    closing = f"</{tag}>" * depth if is_closed else ""
    body = "before " + f"<{tag}>" * depth + "inside " + closing + "after"
    to_text = converter("text")
    assert to_text is not None
    for text in (to_text(body), as_text(body)):
        assert [word.strip("*") for word in text.split() if word != ">"] == [
            "before",
            "inside",
            "after",
        ]


@pytest.mark.parametrize(
    "body",
    [
        "a</body></html>b c",
        "<html><body>a</body>b</html> c",
        "a</HTML >b<body class='x'> c",
        "a</body\n>b</body>c",
    ],
)
def test_text_after_the_end_of_a_page_is_kept(body: str) -> None:
    to_text = converter("text")
    assert to_text is not None
    assert "".join(to_text(body).split()) == "".join(as_text(body).split()) == "abc"


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("math.stackexchange.com", "$a_*<b$"),
        ("electronics.stackexchange.com", r"$a_\*\<b$"),
        ("beer.stackexchange.com", "$a_*<b$"),
        (None, "$a_*<b$"),
    ],
)
@pytest.mark.parametrize("core", sorted({"python", built()}))
def test_formulas_by_the_site_or_the_text(core: Core, host: str | None, expected: str) -> None:
    convert = converter("markdown", core, host)
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
