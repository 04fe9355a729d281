"""`so2docs schema`: print the JSON Schema of documents or records."""

from __future__ import annotations

import json
from typing import Any, get_args

import click

from so2docs.commands.options import command, given_keywords, table_option
from so2docs.extensions.cards.document_schema import build_schema
from so2docs.options.choices import Core, SqlSystem
from so2docs.options.request import build_options, validate_keywords
from so2docs.options.table import OutputForm
from so2docs.schema import DUMP

_CORE: Core = "python"


@command(
    """
    so2docs schema --nest comments > question.schema.json
    so2docs schema --recipe preferences
    so2docs schema --tables --sql postgres | psql --dbname NAME
    """
)
@table_option("nest", "Nest these tables.")
@table_option("recipe", "Describe the records of this recipe instead of documents.")
@table_option("settings", "Set a setting of the recipe, as in convert.")
@table_option("attribution", "Include URLs, licences and authors.")
@table_option("fields", "Keep these fields, as in convert.")
@table_option("drop_fields", "Leave these fields out, as in convert.")
@table_option("as_of", "Describe documents of a date.")
@table_option("site_field", "Include a field for the site.")
@click.option(
    "--format",
    "-f",
    "form",
    type=click.Choice(["jsonl", "json", "mongodb"]),
    default="jsonl",
    show_default=True,
    help="Format of the output: for MongoDB, documents have an _id, and dates are objects.",
)
@click.option("--tables", "of_tables", is_flag=True, help="Describe flat tables; needs --sql.")
@click.option(
    "--sql",
    type=click.Choice(get_args(SqlSystem)),
    help="Print the tables as SQL: definitions, keys and indexes, with foreign keys as comments.",
)
def schema(
    site_field: str | None, form: str, of_tables: bool, sql: SqlSystem | None, **options: Any
) -> None:
    """Print the JSON Schema (2020-12) for documents or records converted with these options.

    The schema describes each line of JSON lines, each member of a JSON array, and every second line
    of bulk lines for Elasticsearch. Its $id ends with the version of the schema.
    """
    if of_tables != (sql is not None):
        raise click.UsageError("give both --tables and --sql, or neither")
    if sql is not None:
        from so2docs.extensions.tables.sql import DIALECTS, definitions

        click.echo(definitions(DUMP.values(), DIALECTS[sql]), nl=False)
        return
    keywords = validate_keywords(given_keywords(options), "documents")
    site = None if site_field is None else (site_field, "")
    document_schema = build_schema(build_options(keywords, OutputForm(form), site, core=_CORE))
    if site_field is not None:
        document_schema["properties"][site_field] = {"type": "string"}
    click.echo(json.dumps(document_schema, indent=2, ensure_ascii=False))
