"""Every document and record from published dumps conforms to its JSON Schema."""

from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
from support.manifests import schema_of
from support.places import SAMPLES

import so2docs
from so2docs.extensions.json_schema import DIALECT, name_schema
from so2docs.options.request import build_options, read_keywords
from so2docs.options.table import OF_CONVERT

HOST = "beer.stackexchange.com"
WAYS: list[dict[str, Any]] = [
    {},
    {"attribution": True, "site": HOST},
    {"fields": "Id,Title,Tags,Answers.Body"},
    {"drop_fields": "Answers,Body"},
    {"body": "text", "accepted": True},
    *(
        {"recipe": name, "site": HOST}
        for name in ("preferences", "pairs", "qa", "thread", "chunks")
    ),
    {"recipe": "hub"},
    {"recipe": "pairs", "settings": {"form": "conversational"}, "site": HOST},
]


def validator(options: dict[str, Any]) -> Any:
    built = build_options(read_keywords(options, OF_CONVERT), core="python")
    recipe = built.transform.schema
    json_schema = schema_of(**options) if recipe is None else name_schema("x", "A record", recipe)
    jsonschema_rs.meta.validate(json_schema)
    assert json_schema["$schema"] == DIALECT
    return jsonschema_rs.validator_for(json_schema)


@pytest.mark.long
@pytest.mark.parametrize("way", WAYS, ids=str)
def test_every_document(way: dict[str, Any], unpacked_dumps: Path) -> None:
    """Each way has every third dump, and each dump a third of the ways."""
    valid = validator(way)
    for folder in sorted(unpacked_dumps.iterdir())[WAYS.index(way) % 3 :: 3]:
        count = 0
        for document in so2docs.documents(folder / "Posts.xml", **way):
            valid.validate(document)
            count += 1
        assert count or way.get("recipe")


@pytest.mark.long
@pytest.mark.parametrize(
    "way", [{}, {"attribution": True, "site": HOST}, {"drop_fields": "Comments.Text"}]
)
def test_every_document_with_tables(way: dict[str, Any], unpacked_dumps: Path) -> None:
    for folder in sorted(unpacked_dumps.iterdir()):
        files = {"comments": "Comments", "links": "PostLinks", "votes": "Votes", "users": "Users"}
        nest = [name for name, file in files.items() if (folder / f"{file}.xml").exists()]
        if "comments" not in nest:
            continue
        valid = validator({**way, "nest": nest})
        for document in so2docs.documents(folder, nest=nest, **way):
            valid.validate(document)


@pytest.mark.parametrize("sample", sorted(SAMPLES.glob("*.xml")), ids=lambda path: path.stem)
def test_samples(sample: Path) -> None:
    valid = validator({})
    for document in so2docs.documents(sample, errors="skip"):
        valid.validate(document)


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"Id": "five"}, "integer"),
        ({"Tags": "a"}, "array"),
        ({"Answers": [{"Id": 2, "PostTypeId": 2}]}, "ParentId"),
        ({"Owner": {}}, "string"),
        ({"Title": None}, "string"),
    ],
)
def test_the_schema_rejects_other_json(change: dict[str, Any], problem: str) -> None:
    document = {"Id": 1, "PostTypeId": 1, "Title": "How?", "Answers": []}
    valid = validator({})
    valid.validate(document)
    with pytest.raises(jsonschema_rs.ValidationError, match=problem):
        valid.validate(document | change)
