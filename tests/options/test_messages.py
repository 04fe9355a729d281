"""Options that contradict each other or have disallowed values: the error, and nothing is written.

The messages of the command are in `commands/test_advice.py`.
"""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from support.table_sites import SITE

import so2docs

MESSAGES: dict[str, list[tuple[dict[str, Any], str]]] = {
    "q.jsonl.gz": [
        ({"all_tags": True}, "all_tags=True needs tags"),
        ({"tags": ["a b"]}, "'a b'; it must be a tag such as"),
        ({"tags": "<a>"}, "'<a>'; .* a tag"),
        ({"since": "yesterday"}, "since is 'yesterday'; .* a date in UTC, .*such as 2020"),
        ({"until": "2020-01-31T12:00+01:00"}, "a date in UTC, without an offset"),
        (
            {"since": datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=1)))},
            "since is '0001-01-01 00:00:00.01:00'; it must be a date in UTC",
        ),
        ({"since": "2020-02-31"}, "since is '2020-02-31'; .* a date"),
        ({"since": "2020-01-01", "until": "2020-01-01"}, "since=.* must be before until="),
        ({"sample": "0%"}, "sample is '0%'; .* above 0% and at most 100%"),
        ({"sample": "101%"}, "sample is '101%'"),
        ({"sample": "1"}, "sample is '1'; .* such as 1% or"),
        ({"max_body": "0"}, "max_body is '0'; "),
        ({"max_body": "3 apples"}, "max_body is '3 apples'; "),
        ({"sample_size": 0}, "sample_size is 0; it must be 1 or more"),
        ({"sample_size": 5, "sample": "1%"}, "sample and sample_size contradict each other"),
        ({"sample_size": 5, "limit": 5}, "sample_size and limit contradict each other"),
        ({"sample_size": 5, "as_of": "2020"}, "sample_size and as_of contradict each other"),
        ({"limit": 5, "as_of": "2020"}, "limit and as_of contradict each other"),
        ({"fields": "id"}, r"no field 'id'; did you mean Id\?"),
        ({"fields": "Answers.Boddy"}, r"did you mean Answers\.Body\?"),
        ({"fields": " , "}, "fields is empty"),
        ({"fields": "Id", "drop_fields": "Body"}, "fields and drop_fields contradict each other"),
        ({"drop_fields": "Answers", "min_answer_score": 1}, "min_answer_score needs the answers"),
        ({"body": "pdf"}, "body is 'pdf'; .*: html, text, markdown"),
        ({"body": "text", "fields": "Id,Title"}, "body='text' needs Body"),
        ({"limit": 5, "split": "3files"}, "split='3files' contradicts limit"),
        ({"format": "xml"}, "format is 'xml'; .*: jsonl, json, elasticsearch"),
        ({"compression": "bz2"}, "compression is 'bz2'; .*: gzip, zstd, none"),
        ({"compression": "zstd"}, "compression='zstd' contradicts the name"),
        ({"format": "parquet"}, "format='parquet' contradicts the name"),
        ({"compression": "none"}, "compression='none' contradicts the name .*gzip"),
        ({"split": "many"}, "split is 'many'; .* 1GB"),
        ({"split": "0files"}, "must be 1 to 10,000"),
        ({"level": 10}, "level is 10; .* 0 to 9 for gzip"),
        ({"fields": "Id,Comments.Text"}, "fields='Comments.Text' needs nest='comments'"),
        ({"drop_fields": "Answers.Owner.Id"}, "drop_fields='Answers.Owner.Id' needs nest='users'"),
        ({"nest": ["users"], "drop_fields": "Comments.User.Id"}, "needs nest='comments'"),
        ({"nest": ["comments"], "drop_fields": "Comments.User"}, "needs nest='users'"),
        ({"nest": "all", "drop_fields": "Comment.Text"}, r"did you mean Comments\.Text\?"),
        (
            {"nest": "all", "drop_fields": "Votes.Up"},
            r"no field 'Votes\.Up'; did you mean Votes\.UpMod\?",
        ),
        ({"nest": "all", "drop_fields": "Owner.AboutMe"}, r"no field 'Owner\.AboutMe'"),
        ({"nest": "all", "drop_fields": "Answers.Answers"}, r"no field 'Answers\.Answers'"),
    ],
    "q.parquet": [
        ({"format": "json"}, "format='json' contradicts the name"),
        ({"compression": "gzip"}, "leave compression='gzip' out"),
    ],
    "q.jsonl": [
        ({"compression": "gzip"}, "compression='gzip' contradicts the name .*none"),
        ({"split": "month", "drop_fields": "CreationDate"}, "split='month' needs CreationDate"),
        ({"split": "month", "fields": "Id,Answers.Id"}, "split='month' needs CreationDate"),
        ({"split": "a=0.5,b=0.6"}, "the shares add up to 1.1, not to 1 as in train=0.9"),
        ({"split": "train=80,test=20"}, "the shares add up to 100, not to 1"),
        (
            {"split": "a=1,b=0"},
            "but 'b=0' is not a new name in lower case with a share above 0, as in train",
        ),
        ({"split": "a=0.5,a=0.5"}, "but 'a=0.5' is not a new name"),
        ({"split": "A=1"}, "but 'A=1' is not"),
        ({"split": "a=x"}, "but 'a=x' is not"),
        ({"split": "a=0.5, =0.5"}, "but '=0.5' is not"),
        ({"split": "a=nan"}, "but 'a=nan' is not"),
        (
            {"split": "train:80"},
            "it must be a size such as 1GB, a number of files such as 8files, year",
        ),
        (
            {"split": "8"},
            "a size must be at least 100,000 bytes; for a number of files, give 8files$",
        ),
        ({"split": "50kB"}, "a size must be at least 100,000 bytes$"),
        ({"min_score": "5"}, "min_score is '5'; it must be a whole number"),
        ({"site_field": ("Site", "x")}, "site_field is .*; it must be text"),
        ({"jobs": 1.5}, "jobs is 1.5; .* whole number"),
        ({"jobs": True}, "jobs is True; .* whole number"),
        ({"tags": 5}, "tags is 5; it must be text or a list of texts"),
        ({"tags": [5]}, r"tags is \[5\]; it must be text or a list of texts"),
        ({"since": 2020}, "since is 2020; it must be text or a date"),
        ({"answered": "no"}, "answered is 'no'; it must be True or False"),
        ({"tables": 3}, "tables is 3; it must be a dictionary or a list of texts"),
        ({"work_dir": 3}, "work_dir is 3; it must be text or a path"),
        ({"recipe": len}, "recipe is <.*len>; it must be text"),
        ({"recipe": "qa", "settings": 5}, "settings is 5; it must be text or a dictionary or"),
        ({"recipe": "qa", "settings": {"best": 2}}, "best of qa is 2; it must be true or"),
        ({"fields": None, "drop_fields": {"Body": 1}.items()}, "drop_fields is "),
        ({"jobs": 0}, "jobs is 0; it must be 1 or more"),
        ({"answers_by": "x"}, "answers_by is 'x'; it must be one of: id, votes"),
        ({"chunk_bytes": 0}, "chunk_bytes is 0; it must be a size such as 16MB"),
        ({"spill_budget": ""}, "spill_budget is ''; .* 2GB"),
        ({"spill_budget": "-1"}, "spill_budget is '-1'; .* 2GB"),
        ({"spill_budget": "1XB"}, "spill_budget is '1XB'; .* 2GB"),
        ({"core": "rust"}, "core is 'rust'; it must be one of: auto, python, compiled"),
    ],
    "q.json": [
        ({"format": "jsonl"}, "format='jsonl' contradicts the name"),
    ],
    "q.txt": [
        ({}, r"no output format has the extension \.txt; .* \.jsonl \.ndjson \.json \.ravendb"),
    ],
    "q.csv": [
        ({}, "writes no csv files; use so2docs tables"),
        ({"format": "jsonl"}, "writes no csv files; use so2docs tables"),
    ],
    "q.db": [
        ({}, "writes no db files; use so2docs sqlite"),
    ],
    "q.jsonl.xz": [
        ({}, r"the extension \.xz"),
    ],
    "q.tar.gz": [
        ({}, r"the extension \.tar"),
    ],
    "q.parquet.zst": [
        ({}, r"choose a name that ends in \.parquet"),
    ],
    "-": [
        ({"split": "2files"}, "split='2files' does not support standard output"),
        ({"format": "parquet"}, "format='parquet' .* standard output"),
    ],
    "q.jsonl.zst": [
        ({"level": 20}, "level is 20; .* 0 to 19"),
    ],
    "q": [
        ({"split": "month", "recipe": "beir"}, "leave split out"),
    ],
}
"""Options with a part of the message, by name of the output."""


@pytest.mark.parametrize(
    ("output", "options", "message"),
    [(output, *case) for output, cases in MESSAGES.items() for case in cases],
)
def test_options_are_refused_before_anything_is_written(
    output: str, options: dict[str, Any], message: str, tmp_path: Path
) -> None:
    name = output if output == "-" else tmp_path / output
    with pytest.raises(so2docs.OptionError, match=message):
        so2docs.convert(SITE, name, **options)
    assert list(tmp_path.iterdir()) == []
