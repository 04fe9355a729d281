"""Programs to compare so2docs with; `contestants.py NAME DUMP OUT` runs one.

`iterparse` and `compress` are lower bounds: `iterparse` only reads every row with lxml, and
`compress` only compresses the documents with ISA-L. `rows_to_json` is the lower bound for the
compiled core. The other programs are alternatives to so2docs.
"""

from __future__ import annotations

import gzip
import importlib.util
import json
import sys
import time
from collections.abc import Callable
from html import unescape
from pathlib import Path
from typing import Any

_FIELDS = {
    "type": r'toUInt8OrZero(extract(line, \' PostTypeId="([0-9]+)"\'))',
    "post": r'toInt64OrZero(extract(line, \' Id="([0-9]+)"\'))',
    "parent": r'toInt64OrZero(extract(line, \' ParentId="([0-9]+)"\'))',
    "score": r'toInt64OrZero(extract(line, \' Score="(-?[0-9]+)"\'))',
    "title": r'decodeXMLComponent(extract(line, \' Title="([^"]*)"\'))',
    "body": r'decodeXMLComponent(extract(line, \' Body="([^"]*)"\'))',
}


def iterparse(dump: str, out: str) -> None:
    """Parse every row with lxml's iterparse, and discard it."""
    from lxml import etree

    for _, row in etree.iterparse(dump, tag="row", huge_tree=True, resolve_entities=False):
        row.clear()
        while row.getprevious() is not None:
            del row.getparent()[0]


def compress(documents: str, out: str) -> None:
    """Compress documents with ISA-L level 2, a mebibyte at a time; print the CPU seconds."""
    from isal import igzip, isal_zlib

    seconds = 0.0
    opened: Any = igzip  # isal has no types.
    with opened.open(documents) as file:
        while piece := file.read(1 << 20):
            started = time.process_time()
            packer = isal_zlib.compressobj(2, isal_zlib.DEFLATED, -15)
            packer.compress(piece)
            packer.flush()
            seconds += time.process_time() - started
    print(seconds)


def rows_to_json(dump: str, out: str) -> None:
    """Read rows, convert them to JSON with the compiled core, and copy the JSON once.

    The CPU seconds are printed.
    """
    from so2docs.dump.dump import open_dump, slices
    from so2docs.parse import core, posts, rows
    from so2docs.parse.posts import RecordBuffer

    opened = open_dump(dump)
    started = time.process_time()
    for _, data in slices(opened, opened.start, opened.end):
        found = RecordBuffer()
        if core.add_fast(data, found) is None:  # The slice has a row that is not canonical.
            for part in rows.parse(data):
                posts.add(found, part.rows if isinstance(part, rows.Rows) else [])
        b"".join(bucket.json for bucket in found.buckets.values())
    print(time.process_time() - started)


def in_memory(dump: str, out: str) -> None:
    """Convert as a simple script does: keep all posts in memory, then write a line per question."""
    from lxml import etree

    questions: dict[str, dict[str, object]] = {}
    answers: dict[str, list[dict[str, str]]] = {}
    for _, row in etree.iterparse(dump, tag="row", huge_tree=True):
        post = dict(row.items())
        if post.get("PostTypeId") == "1":
            questions[post["Id"]] = dict(post)
        elif "ParentId" in post:
            answers.setdefault(post["ParentId"], []).append(post)
        row.clear()
        while row.getprevious() is not None:
            del row.getparent()[0]
    with gzip.open(out, "wt", encoding="utf-8", compresslevel=6) as file:
        for key, question in questions.items():
            question["Answers"] = answers.get(key, [])
            file.write(json.dumps(question, ensure_ascii=False) + "\n")


def clickhouse(dump: str, out: str) -> None:
    """Convert with one SQL statement in chDB, keeping only a few columns.

    These are Id, Title and Body of the questions, and Id, Score and Body of the answers.
    """
    import chdb

    database: Any = chdb
    columns = ", ".join(f"{sql.replace(chr(92), '')} AS {name}" for name, sql in _FIELDS.items())
    answer = "CAST(tuple(post, score, body), 'Tuple(Id Int64, Score Int64, Body String)')"
    database.query(
        f"INSERT INTO FUNCTION file('{out}', 'JSONEachRow') "
        "SELECT if(type = 1, post, parent) AS Id, anyIf(title, type = 1) AS Title, "
        f"anyIf(body, type = 1) AS Body, groupArrayIf({answer}, type = 2) AS Answers "
        f"FROM (SELECT {columns} FROM file('{dump}', 'LineAsString', 'line String') "
        "WHERE type IN (1, 2)) GROUP BY Id HAVING Title != '' "
        "SETTINGS output_format_json_quote_64bit_integers=0"
    )


def duckdb(dump: str, out: str) -> None:
    """Convert with one SQL statement in DuckDB, with the same columns as `clickhouse`.

    Only six entities are unescaped.
    """
    import duckdb as database

    def unescaped(name: str) -> str:
        sql = f'regexp_extract(line, \' {name}="([^"]*)"\', 1)'
        for entity in ("&lt;", "&gt;", "&quot;", "&#xA;", "&#xD;", "&amp;"):
            sql = f"replace({sql}, '{entity}', {_literal(unescape(entity))})"
        return sql

    database.execute(
        "COPY (SELECT CASE WHEN type = '1' THEN post ELSE parent END AS Id, "
        "any_value(title) FILTER (type = '1') AS Title, "
        "any_value(body) FILTER (type = '1') AS Body, "
        "list({'Id': post, 'Score': score, 'Body': body}) FILTER (type = '2') AS Answers FROM ("
        "SELECT regexp_extract(line, ' PostTypeId=\"([0-9]+)\"', 1) AS type, "
        "TRY_CAST(regexp_extract(line, ' Id=\"([0-9]+)\"', 1) AS BIGINT) AS post, "
        "TRY_CAST(regexp_extract(line, ' ParentId=\"([0-9]+)\"', 1) AS BIGINT) AS parent, "
        "TRY_CAST(regexp_extract(line, ' Score=\"(-?[0-9]+)\"', 1) AS BIGINT) AS score, "
        f"{unescaped('Title')} AS title, {unescaped('Body')} AS body "
        f"FROM read_csv('{dump}', columns={{'line': 'VARCHAR'}}, delim=chr(1), quote='', "
        "escape='', header=false, max_line_size=100000000, strict_mode=false)) "
        "WHERE type IN ('1', '2') GROUP BY ALL HAVING Title IS NOT NULL) "
        f"TO '{out}' (FORMAT json, COMPRESSION gzip)"
    )


def _literal(text: str) -> str:
    return f"chr({ord(text)})" if text in "\r\n" else "'" + text.replace("'", "''") + "'"


NEEDS = {"clickhouse": "chdb", "duckdb": "duckdb"}
CONTESTANTS: dict[str, Callable[[str, str], None]] = {
    "iterparse": iterparse,
    "compress": compress,
    "rows_to_json": rows_to_json,
    "in_memory": in_memory,
    "clickhouse": clickhouse,
    "duckdb": duckdb,
}


def is_installed(name: str) -> bool:
    """Whether the package that a contestant needs, if any, is installed."""
    return name not in NEEDS or importlib.util.find_spec(NEEDS[name]) is not None


if __name__ == "__main__":
    Path(sys.argv[3]).unlink(missing_ok=True)
    CONTESTANTS[sys.argv[1]](sys.argv[2], sys.argv[3])
