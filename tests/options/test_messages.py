"""Options that contradict each other or have disallowed values: the error, and nothing is written.

Each entry is a call of `convert` with its options, and a part of the message. The messages of the
command are in `commands/test_advice.py`.
"""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from support.table_sites import SITE

import so2docs

MESSAGES: list[tuple[str, dict[str, Any], str]] = [
    ("q.jsonl.gz", {"all_tags": True}, "all_tags=True needs tags"),
    ("q.jsonl.gz", {"tags": ["a b"]}, "'a b'; it must be a tag such as"),
    ("q.jsonl.gz", {"tags": "<a>"}, "'<a>'; .* a tag"),
    (
        "q.jsonl.gz",
        {"since": "yesterday"},
        "since is 'yesterday'; .* a date in UTC, .*such as 2020",
    ),
    ("q.jsonl.gz", {"until": "2020-01-31T12:00+01:00"}, "a date in UTC, without an offset"),
    (
        "q.jsonl.gz",
        {"since": datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=1)))},
        "since is '0001-01-01 00:00:00.01:00'; it must be a date in UTC",
    ),
    ("q.jsonl.gz", {"since": "2020-02-31"}, "since is '2020-02-31'; .* a date"),
    (
        "q.jsonl.gz",
        {"since": "2020-01-01", "until": "2020-01-01"},
        "since=.* must be before until=",
    ),
    ("q.jsonl.gz", {"sample": "0%"}, "sample is '0%'; .* above 0% and at most 100%"),
    ("q.jsonl.gz", {"sample": "101%"}, "sample is '101%'"),
    ("q.jsonl.gz", {"sample": "1"}, "sample is '1'; .* such as 1% or"),
    ("q.jsonl.gz", {"max_body": "0"}, "max_body is '0'; "),
    ("q.jsonl.gz", {"max_body": "3 apples"}, "max_body is '3 apples'; "),
    ("q.jsonl.gz", {"sample_size": 0}, "sample_size is 0; it must be 1 or more"),
    (
        "q.jsonl.gz",
        {"sample_size": 5, "sample": "1%"},
        "sample and sample_size contradict each other",
    ),
    ("q.jsonl.gz", {"sample_size": 5, "limit": 5}, "sample_size and limit contradict each other"),
    (
        "q.jsonl.gz",
        {"sample_size": 5, "as_of": "2020"},
        "sample_size and as_of contradict each other",
    ),
    ("q.jsonl.gz", {"limit": 5, "as_of": "2020"}, "limit and as_of contradict each other"),
    ("q.jsonl.gz", {"fields": "id"}, r"no field 'id'; did you mean Id\?"),
    ("q.jsonl.gz", {"fields": "Answers.Boddy"}, r"did you mean Answers\.Body\?"),
    ("q.jsonl.gz", {"fields": " , "}, "fields is empty"),
    (
        "q.jsonl.gz",
        {"fields": "Id", "drop_fields": "Body"},
        "fields and drop_fields contradict each other",
    ),
    (
        "q.jsonl.gz",
        {"drop_fields": "Answers", "min_answer_score": 1},
        "min_answer_score needs the answers",
    ),
    ("q.jsonl.gz", {"body": "pdf"}, "body is 'pdf'; .*: html, text, markdown"),
    ("q.jsonl.gz", {"body": "text", "fields": "Id,Title"}, "body='text' needs Body"),
    ("q.jsonl.gz", {"limit": 5, "split": "3files"}, "split='3files' contradicts limit"),
    ("q.jsonl.gz", {"format": "xml"}, "format is 'xml'; .*: jsonl, json, elasticsearch"),
    ("q.jsonl.gz", {"compression": "bz2"}, "compression is 'bz2'; .*: gzip, zstd, none"),
    ("q.jsonl.gz", {"compression": "zstd"}, "compression='zstd' contradicts the name"),
    ("q.jsonl.gz", {"format": "parquet"}, "format='parquet' contradicts the name"),
    ("q.parquet", {"format": "json"}, "format='json' contradicts the name"),
    ("q.parquet", {"compression": "gzip"}, "leave compression='gzip' out"),
    ("q.jsonl", {"compression": "gzip"}, "compression='gzip' contradicts the name .*none"),
    ("q.jsonl.gz", {"compression": "none"}, "compression='none' contradicts the name .*gzip"),
    ("q.json", {"format": "jsonl"}, "format='jsonl' contradicts the name"),
    (
        "q.txt",
        {},
        r"no output format has the extension \.txt; .* \.jsonl \.ndjson \.json \.ravendb",
    ),
    ("q.csv", {}, "writes no csv files; use so2docs tables"),
    ("q.csv", {"format": "jsonl"}, "writes no csv files; use so2docs tables"),
    ("q.db", {}, "writes no db files; use so2docs sqlite"),
    ("q.jsonl.xz", {}, r"the extension \.xz"),
    ("q.tar.gz", {}, r"the extension \.tar"),
    ("q.parquet.zst", {}, r"choose a name that ends in \.parquet"),
    ("q.jsonl.gz", {"split": "many"}, "split is 'many'; .* 1GB"),
    ("q.jsonl.gz", {"split": "0files"}, "must be 1 to 10,000"),
    ("-", {"split": "2files"}, "split='2files' does not support standard output"),
    ("-", {"format": "parquet"}, "format='parquet' .* standard output"),
    ("q.jsonl.gz", {"level": 10}, "level is 10; .* 0 to 9 for gzip"),
    ("q.jsonl.zst", {"level": 20}, "level is 20; .* 0 to 19"),
    (
        "q.jsonl",
        {"split": "month", "drop_fields": "CreationDate"},
        "split='month' needs CreationDate",
    ),
    ("q.jsonl", {"split": "month", "fields": "Id,Answers.Id"}, "split='month' needs CreationDate"),
    ("q", {"split": "month", "recipe": "beir"}, "leave split out"),
    ("q.jsonl", {"split": "a=0.5,b=0.6"}, "the shares add up to 1.1, not to 1 as in train=0.9"),
    ("q.jsonl", {"split": "train=80,test=20"}, "the shares add up to 100, not to 1"),
    (
        "q.jsonl",
        {"split": "a=1,b=0"},
        "but 'b=0' is not a new name in lower case with a share above 0, as in train",
    ),
    ("q.jsonl", {"split": "a=0.5,a=0.5"}, "but 'a=0.5' is not a new name"),
    ("q.jsonl", {"split": "A=1"}, "but 'A=1' is not"),
    ("q.jsonl", {"split": "a=x"}, "but 'a=x' is not"),
    ("q.jsonl", {"split": "a=0.5, =0.5"}, "but '=0.5' is not"),
    ("q.jsonl", {"split": "a=nan"}, "but 'a=nan' is not"),
    (
        "q.jsonl",
        {"split": "train:80"},
        "it must be a size such as 1GB, a number of files such as 8files, year",
    ),
    (
        "q.jsonl",
        {"split": "8"},
        "a size must be at least 100,000 bytes; for a number of files, give 8files$",
    ),
    ("q.jsonl", {"split": "50kB"}, "a size must be at least 100,000 bytes$"),
    ("q.jsonl", {"min_score": "5"}, "min_score is '5'; it must be a whole number"),
    ("q.jsonl", {"jobs": 1.5}, "jobs is 1.5; .* whole number"),
    ("q.jsonl", {"jobs": True}, "jobs is True; .* whole number"),
    ("q.jsonl", {"tags": 5}, "tags is 5; it must be text or a list of texts"),
    ("q.jsonl", {"tags": [5]}, r"tags is \[5\]; it must be text or a list of texts"),
    ("q.jsonl", {"since": 2020}, "since is 2020; it must be text or a date"),
    ("q.jsonl", {"answered": "no"}, "answered is 'no'; it must be True or False"),
    ("q.jsonl", {"tables": 3}, "tables is 3; it must be a dictionary or a list of texts"),
    ("q.jsonl", {"work_dir": 3}, "work_dir is 3; it must be text or a path"),
    ("q.jsonl", {"recipe": len}, "recipe is <.*len>; it must be text"),
    (
        "q.jsonl",
        {"recipe": "qa", "settings": 5},
        "settings is 5; it must be text or a dictionary or",
    ),
    ("q.jsonl", {"recipe": "qa", "settings": {"best": 2}}, "best of qa is 2; it must be true or"),
    ("q.jsonl", {"fields": None, "drop_fields": {"Body": 1}.items()}, "drop_fields is "),
    ("q.jsonl", {"jobs": 0}, "jobs is 0; it must be 1 or more"),
    ("q.jsonl", {"answers_by": "x"}, "answers_by is 'x'; it must be one of: id, votes"),
    ("q.jsonl", {"chunk_bytes": 0}, "chunk_bytes is 0; it must be a size such as 16MB"),
    ("q.jsonl", {"spill_budget": ""}, "spill_budget is ''; .* 2GB"),
    ("q.jsonl", {"spill_budget": "-1"}, "spill_budget is '-1'; .* 2GB"),
    ("q.jsonl", {"spill_budget": "1XB"}, "spill_budget is '1XB'; .* 2GB"),
    ("q.jsonl.gz", {"fields": "Id,Comments.Text"}, "fields='Comments.Text' needs nest='comments'"),
    (
        "q.jsonl.gz",
        {"drop_fields": "Answers.Owner.Id"},
        "drop_fields='Answers.Owner.Id' needs nest='users'",
    ),
    ("q.jsonl.gz", {"nest": ["users"], "drop_fields": "Comments.User.Id"}, "needs nest='comments'"),
    ("q.jsonl.gz", {"nest": ["comments"], "drop_fields": "Comments.User"}, "needs nest='users'"),
    (
        "q.jsonl.gz",
        {"nest": "all", "drop_fields": "Comment.Text"},
        r"did you mean Comments\.Text\?",
    ),
    (
        "q.jsonl.gz",
        {"nest": "all", "drop_fields": "Votes.Up"},
        r"no field 'Votes\.Up'; did you mean Votes\.UpMod\?",
    ),
    ("q.jsonl.gz", {"nest": "all", "drop_fields": "Owner.AboutMe"}, r"no field 'Owner\.AboutMe'"),
    (
        "q.jsonl.gz",
        {"nest": "all", "drop_fields": "Answers.Answers"},
        r"no field 'Answers\.Answers'",
    ),
]


@pytest.mark.parametrize(("output", "options", "message"), MESSAGES)
def test_options_are_refused_before_anything_is_written(
    output: str, options: dict[str, Any], message: str, tmp_path: Path
) -> None:
    name = output if output == "-" else tmp_path / output
    with pytest.raises(so2docs.OptionError, match=message):
        so2docs.convert(SITE, name, **options)
    assert list(tmp_path.iterdir()) == []
