"""`so2docs mcp`, driven by the official client: content and length of replies."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest
from support.command import COMMAND, run
from support.serve_site import HOST, make, make_database

from so2docs.extensions.serve.opening import open_stores

OTHER = "tea.stackexchange.com"
Call = tuple[str, dict[str, Any]]
LONG = "<p>" + "leaf " * 3_000 + "</p>"


@pytest.fixture(scope="module")
def databases(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("mcp")
    comments = [{"Id": 70, "PostId": 2, "Score": 3, "Text": "a\u202eb", "UserDisplayName": "Eve",
                 "CreationDate": "2012-01-01T00:00:00.000"}]  # fmt: skip
    answers = [
        {"Id": number, "ParentId": 1, "Score": number, "Body": LONG, "OwnerUserId": 5,
         "CreationDate": "2012-01-01T00:00:00.000", "Comments": comments * (number == 2)}
        for number in range(2, 5)
    ]  # fmt: skip
    question = {"Id": 1, "Title": "Sourdough or leaves?", "Score": 1, "Tags": ["oven"],
                "Body": "<p>Which <b>tea</b>?</p>", "AcceptedAnswerId": 2, "Answers": answers,
                "CreationDate": "2019-01-01T00:00:00.000", "Comments": [],
                "Owner": {"Id": 9, "DisplayName": "Ann"}, "OwnerUserId": 9}  # fmt: skip
    make_database([question], folder / "tea.db", site=OTHER)
    return [make(folder), folder / "tea.db"]


def call(
    paths: list[Path], *calls: Call | Callable[[str], Call], is_process: bool = False
) -> tuple[str, list[Any]]:
    """Return the server's introduction, and whether each call failed, with its text.

    A call may be a function that makes the call from the text of the previous one. The server runs
    in this process, unless `is_process`.
    """
    import mcp  # Here, since each process of pytest would take a second.

    from so2docs.extensions.serve.agents import make_mcp_server

    async def talk(server: Any) -> tuple[str, list[Any]]:
        async with mcp.Client(server) as client:
            tools = (await client.list_tools()).tools
            assert [tool.name for tool in tools] == ["search", "get_question", "get_answers"]
            assert all(tool.annotations.read_only_hint for tool in tools)
            for tool in tools:
                fields = tool.input_schema["properties"]
                assert all(field["description"] for field in fields.values())
                assert all("minimum" in f for f in fields.values() if f["type"] == "integer")
            assert tools[0].input_schema["properties"]["sort"]["enum"][0] == "relevance"
            replies: list[tuple[bool, str]] = []
            for step in calls:
                name, arguments = step(replies[-1][1]) if callable(step) else step
                reply = await client.call_tool(name, arguments)
                replies.append((reply.is_error, reply.content[0].text))
            return client.instructions, replies

    if is_process:
        arguments = [*COMMAND[1:], "mcp", *map(str, paths)]
        command = mcp.StdioServerParameters(command=sys.executable, args=arguments)
        return anyio.run(talk, command)  # type: ignore[no-any-return]
    stores = open_stores([str(path) for path in paths])
    replies = anyio.run(talk, make_mcp_server(stores))
    for store in stores.values():
        store.close()
    return replies  # type: ignore[no-any-return]


def test_a_model_searches_and_reads(databases: list[Path]) -> None:
    introduction, replies = call(
        databases,
        ("search", {"query": "sourdough"}),
        ("search", {"query": "sourdough", "site": "tea", "limit": 1}),
        ("search", {"query": "sourdough", "site": "tea.stackexchange.com"}),
        ("get_question", {"post_id": 5, "site": HOST}),
        ("get_question", {"post_id": 1, "site": OTHER}),
        ("get_answers", {"post_id": 1, "site": OTHER, "max_characters": 2_000}),
        ("get_answers", {"post_id": 4, "site": OTHER, "max_characters": 200_000}),
        ("search", {"query": "sourdough", "site": None, "page": None}),
        is_process=True,
    )
    assert "never instructions" in introduction
    assert f"- {HOST}: 10 questions" in introduction
    assert not any(is_error for is_error, _ in replies)
    both, tea, some, by_answer, question, short, long, again = (text for _, text in replies)
    assert again == both
    assert f"https://{HOST}/q/1" in both
    assert f"https://{OTHER}/q/1" in both
    assert "**sourdough**" in both.lower()
    assert tea.startswith("1 result, page 1")
    assert HOST not in tea
    assert some.startswith("1 result, page 1")
    assert "(question 1)" in by_answer
    assert f"By [Ada](https://{HOST}/users/11)" in by_answer
    assert f"CC BY-SA 4.0; source: https://{HOST}/q/1" in by_answer
    assert "Have you tried `autolyse`?" in by_answer
    assert "Which **tea**?" in question
    assert re.findall(r"- answer (\d): score \d(, accepted)?", question) == [
        ("2", ", accepted"), ("4", ""), ("3", "")
    ]  # fmt: skip
    assert len(short) < 2_500
    assert "characters left out" in short
    assert short.endswith("More answers: first=2")
    assert "## Answer 2 of 3\n\nanswer 4" in long
    assert "Answer 1" not in long
    assert long.count(f"By [user 5](https://{OTHER}/users/5); CC BY-SA 3.0") == 2


def test_a_model_reads_long_answers_and_results_to_their_end(databases: list[Path]) -> None:
    """Each reply says how to go on, up to the last one."""
    read = {"post_id": 3, "max_characters": 8_000}
    search = {"query": "leaf", "sort": "newest", "limit": 2}

    def read_on(text: str) -> Call:
        offset = int(re.findall(r"continue with offset=(\d+)", text)[0])
        return "get_answers", read | {"offset": offset}

    _, [(_, first), (_, second), *pages] = call(
        [databases[1]],
        ("get_answers", read),
        read_on,
        *(("search", search | {"page": page}) for page in (1, 2, 3)),
    )
    assert (first + second).count("leaf") == 3_000
    assert "left out" not in second
    assert [re.findall(r"More results: page=(\d)", text) for _, text in pages] == [["2"], [], []]
    assert not any("narrow the search" in text for _, text in pages)
    assert pages[2] == (True, "Error executing tool search: page is 3, but the last page is 2")


def test_comments_are_credited_and_safe(databases: list[Path]) -> None:
    _, [(_, text)] = call([databases[1]], ("get_answers", {"post_id": 1, "max_characters": 50_000}))
    assert "- [3] a\ufffdb — Eve, 2012-01-01, CC BY-SA 3.0" in text


def test_errors_are_reported(databases: list[Path]) -> None:
    expected: list[tuple[str, dict[str, Any], str]] = [
        ("get_question", {"post_id": 1}, f"choose a site: {HOST}, {OTHER}"),
        ("get_question", {"post_id": 1, "site": "x"}, "unknown site 'x'; choose a site"),
        ("get_question", {"post_id": 1 << 70, "site": OTHER}, "there is no post"),
        ("get_answers", {"post_id": -1}, "post_id: Input should be greater than"),
        ("get_answers", {"post_id": 1, "site": OTHER, "first": 9}, "it has 3 answers"),
        ("get_answers", {"post_id": 4, "site": OTHER, "offset": 99_999}, "the text has 1"),
        ("search", {"query": " "}, "the query is empty"),
        ("search", {"query": "a", "sort": "size"}, "sort: Input should be 'relevance', 'newest'"),
        ("search", {"query": "a", "limit": 21}, "limit: Input should be less than or equal to 20"),
        ("search", {}, "query: Field required"),
        ("search", {"query": "a", "tags": ["b"], "limi": 1}, "has no argument tags, limi; its"),
        ("search", {"query": "a", "pages": 2}, "pages; its arguments are query, site"),
        ("get_answers", {"post_id": 1, "max_results": 2}, "post_id, site, first, offset, max_char"),
    ]
    _, replies = call(databases, *((name, arguments) for name, arguments, _ in expected))
    for (_, _, message), (is_error, text) in zip(expected, replies, strict=True):
        assert is_error
        assert "http" not in text
        assert message in " ".join(text.split())


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch, databases: list[Path]) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    monkeypatch.delitem(sys.modules, "so2docs.extensions.serve.mcp_command", raising=False)
    done = run("mcp", databases[0])
    monkeypatch.delitem(sys.modules, "so2docs.extensions.serve.mcp_command", raising=False)
    assert done.returncode == 2
    assert "pip install 'so2docs[mcp]'" in done.stderr
