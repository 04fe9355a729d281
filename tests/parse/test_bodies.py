"""The text of a body is complete for any HTML."""

import pytest

from so2docs.parse.bodies import converter
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
        assert [word for word in text.split() if word != ">"] == ["before", "inside", "after"]


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
