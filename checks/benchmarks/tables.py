"""Compare so2docs with alternatives that write generated tables as flat Parquet.

`python checks/benchmarks/tables.py --size 1GB --folder /tmp/tables` runs all programs whose
packages are installed, in turn. Each writes all columns of all tables with their types. CPU time
covers a process and all its children. Ratios are between medians.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import shutil
import statistics
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from make_dump import size as parse_size
from measure import Measured, run

from so2docs.schema import DUMP, Table

ROWS = {"comments": 1_000, "votes": 3_000, "users": 500, "links": 60}
"""Rows of each table per MB of posts; together, the tables are about as large as the posts."""

_BATCH = 50_000


def tables_in(folder: str) -> list[tuple[Table, Path]]:
    """Return the tables in a folder, each with the path of its file."""
    found = [(table, Path(folder) / table.file) for table in DUMP.values()]
    return [(table, path) for table, path in found if path.exists()]


def so2docs(folder: str, out: str, jobs: int | None = None) -> None:
    """Run `so2docs.tables`."""
    from so2docs import tables

    tables(folder, out, jobs=jobs)


def lxml_pyarrow(folder: str, out: str) -> None:
    """Write tables as a simple script does: iterparse, dictionaries, typed columns in batches."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    types = {
        "integer": pa.int64(),
        "text": pa.string(),
        "date": pa.timestamp("ms"),
        "boolean": pa.bool_(),
        "texts": pa.list_(pa.string()),
    }

    def array(values: list[Any], kind: str) -> Any:
        if kind == "integer":
            return pa.array([None if v is None else int(v) for v in values], types[kind])
        if kind == "boolean":
            return pa.array([None if v is None else v == "True" for v in values], types[kind])
        if kind == "texts":
            lists = [None if v is None else v.strip("|").split("|") for v in values]
            return pa.array(lists, types[kind])
        return pa.array(values, pa.string()).cast(types[kind])

    for table, path in tables_in(folder):
        kinds = table.attributes
        schema = pa.schema([(name, types[kind]) for name, kind in kinds.items()])
        out_path = Path(out) / f"{table.stem}.parquet"
        with pq.ParquetWriter(out_path, schema, compression="zstd", compression_level=2) as file:
            for rows in _batches(path):
                columns = [array([r.get(n) for r in rows], kind) for n, kind in kinds.items()]
                file.write_table(pa.Table.from_arrays(columns, schema=schema))


def _batches(path: Path) -> Iterator[list[dict[str, str]]]:
    from lxml import etree

    rows = []
    for _, row in etree.iterparse(str(path), tag="row", huge_tree=True):
        rows.append(dict(row.items()))
        row.clear()
        while row.getprevious() is not None:
            del row.getparent()[0]
        if len(rows) >= _BATCH:
            yield rows
            rows = []
    if rows:
        yield rows


def clickhouse(folder: str, out: str) -> None:
    """Run one SQL statement per table in chDB, as in the ClickHouse documentation."""
    import chdb

    forms = {
        "integer": "toInt64OrNull({})",
        "text": "nullIf(decodeXMLComponent({}), '')",
        "date": "parseDateTime64BestEffortOrNull({}, 3, 'UTC')",
        "boolean": "if({0} = '', NULL, {0} = 'True')",
        "texts": "splitByChar('|', trim(BOTH '|' FROM {}))",
    }
    database: Any = chdb
    for table, path in tables_in(folder):
        columns = [
            forms[kind].format(f'extract(line, \' {name}="([^"]*)"\')') + f' AS "{name}"'
            for name, kind in table.attributes.items()
        ]
        database.query(
            f"INSERT INTO FUNCTION file('{out}/{table.stem}.parquet', 'Parquet') "
            f"SELECT {', '.join(columns)} FROM file('{path}', 'LineAsString', 'line String') "
            "WHERE line LIKE '%<row %' SETTINGS output_format_parquet_compression_method='zstd'"
        )


def duckdb_webbed(folder: str, out: str) -> None:
    """Write tables with DuckDB and its extension `webbed`, which reads XML."""
    import duckdb

    database: Any = duckdb
    database.execute("INSTALL webbed FROM community; LOAD webbed")
    forms = {"integer": "BIGINT", "text": "VARCHAR", "date": "TIMESTAMP", "boolean": "BOOLEAN"}
    for table, path in tables_in(folder):
        kinds = {name: forms.get(kind, "VARCHAR") for name, kind in table.attributes.items()}
        typed = ", ".join(f"'{name}': '{kind}'" for name, kind in kinds.items())
        database.execute(
            f"COPY (SELECT * FROM read_xml('{path}', record_element='row', columns={{{typed}}}, "
            f"maximum_file_size=100000000000)) TO '{out}/{table.stem}.parquet' "
            "(FORMAT parquet, COMPRESSION zstd)"
        )


def xml2arrow(folder: str, out: str) -> None:
    """Write tables with xml2arrow, configured for each table; convert dates and tags afterwards."""
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq
    from xml2arrow import XmlToArrowParser

    types = {"integer": "Int64", "boolean": "Boolean"}
    typed: dict[str, Callable[[Any], Any]] = {
        "date": lambda column: column.cast(pa.timestamp("ms")),
        "texts": lambda column: pc.split_pattern(pc.utf8_trim(column, "|"), "|"),
    }
    for table, path in tables_in(folder):
        kinds = table.attributes
        fields = [
            {
                "name": name,
                "xml_path": f"/{table.root}/row/@{name}",
                "data_type": types.get(kind, "Utf8"),
                "nullable": True,
            }
            for name, kind in kinds.items()
        ]
        rows = {"name": "rows", "xml_path": f"/{table.root}", "levels": [], "fields": fields}
        config = Path(out) / f"{table.stem}.yaml"
        config.write_text(json.dumps({"tables": [rows]}))
        file: Any = None
        for batch in XmlToArrowParser(str(config)).parse_single_table(str(path)):
            columns = [typed.get(kinds[name], lambda same: same)(batch[name]) for name in kinds]
            rows_typed = pa.Table.from_arrays(columns, names=list(kinds))
            if file is None:
                target = Path(out) / f"{table.stem}.parquet"
                settings: Any = {"compression": "zstd", "compression_level": 2}
                file = pq.ParquetWriter(target, rows_typed.schema, **settings)
            file.write_table(rows_typed)
        file.close()


CONTESTANTS: dict[str, Callable[[str, str], None]] = {
    "so2docs": so2docs,
    "lxml_pyarrow": lxml_pyarrow,
    "clickhouse": clickhouse,
    "duckdb_webbed": duckdb_webbed,
    "xml2arrow": xml2arrow,
}


def can_run(name: str) -> bool:
    """Whether the package or extension that a contestant needs is installed or can be installed."""
    if name in ("clickhouse", "xml2arrow"):
        package = {"clickhouse": "chdb"}.get(name, name)
        return importlib.util.find_spec(package) is not None
    if name == "duckdb_webbed":
        code = "import duckdb; duckdb.execute('INSTALL webbed FROM community; LOAD webbed')"
        done = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True)
        return done.returncode == 0
    return True


def make(folder: Path, size: str, megabytes: int) -> None:
    """Generate the tables in a folder, unless it has a `Posts.xml`."""
    if (folder / "Posts.xml").exists():
        return
    folder.mkdir(parents=True, exist_ok=True)
    here = Path(__file__).parent
    posts = [sys.executable, here / "make_dump.py", "--size", size, folder / "Posts.xml"]
    subprocess.run([str(word) for word in posts], check=True, stdout=subprocess.DEVNULL)
    rows = [f"--{name}={count * megabytes}" for name, count in ROWS.items()]
    subprocess.run([sys.executable, str(here / "make_tables.py"), str(folder), *rows], check=True)


def main() -> None:
    """Measure each contestant several times, and print a line of medians for each."""
    parser = argparse.ArgumentParser(description="Measure the writing of flat tables.")
    parser.add_argument("--size", default="500MB", help="size of the posts, half of all tables")
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--times", type=int, default=3)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--contestant", nargs=3, metavar=("NAME", "IN", "OUT"))
    asked = parser.parse_args()
    if asked.contestant:
        name, source, out = asked.contestant
        CONTESTANTS[name](source, out)
        return
    source = asked.folder / "dump"
    make(source, asked.size, max(1, parse_size(asked.size) // 1_000_000))
    names = [name for name in CONTESTANTS if can_run(name)]
    found: dict[str, list[Measured]] = {name: [] for name in names}
    for _ in range(asked.times):
        for name in names:
            out = asked.folder / name
            shutil.rmtree(out, ignore_errors=True)
            out.mkdir()
            words = ["--folder", str(asked.folder), "--contestant", name, str(source), str(out)]
            found[name].append(run([sys.executable, __file__, *words]))
    size = sum(path.stat().st_size for _, path in tables_in(str(source)))
    print(f"{size / 1e6:,.0f} MB of XML")
    figures = {}
    for name, runs in found.items():
        wall, cpu, memory = (
            statistics.median(getattr(one, key) for one in runs)
            for key in ("wall", "cpu", "memory")
        )
        packed = sum(path.stat().st_size for path in (asked.folder / name).glob("*.parquet"))
        figures[name] = {"wall": wall, "cpu": cpu, "memory": memory, "bytes": packed}
        ours = figures["so2docs"]
        print(
            f"{name:<14} {wall:>7.1f} s {cpu:>7.1f} s CPU {memory / 2**20:>6,.0f} MiB "
            f"{packed / 1e6:>7,.0f} MB  {wall / ours['wall']:.2f} x wall, "
            f"{cpu / ours['cpu']:.2f} x CPU"
        )
    for name in CONTESTANTS.keys() - figures.keys():
        print(f"{name:<14} cannot be installed here")
    if asked.json:
        asked.json.write_text(json.dumps(figures))


if __name__ == "__main__":
    main()
