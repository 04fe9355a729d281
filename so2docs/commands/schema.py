"""`so2docs schema`: what a conversion writes, as JSON Schema."""

from __future__ import annotations

import json
from typing import Any

import click

from so2docs.contract.document_schema import schema_of
from so2docs.options.choices import Core
from so2docs.options.keywords import DocumentKeywords
from so2docs.options.output_form import OutputForm
from so2docs.options.request import ALL_TABLES, checked, options_of
from so2docs.schema import TABLES

_CORE: Core = "python"


@click.command(
    epilog="""\b
Example:
  so2docs schema --with comments > question.schema.json
  so2docs schema --recipe preferences
"""
)
@click.option(
    "--nest",
    "--with",
    "nest",
    type=click.Choice([*TABLES, ALL_TABLES]),
    multiple=True,
    help="Nest this table; may be given several times.",
)
@click.option(
    "--recipe", metavar="NAME", help="Describe the records of this recipe instead of documents."
)
@click.option("--attribution", is_flag=True, help="Include addresses, licences and authors.")
@click.option("--fields", metavar="NAMES", help="Keep these fields, as convert does.")
@click.option("--without", metavar="NAMES", help="Leave these fields out, as convert does.")
@click.option("--site-field", metavar="NAME", help="Include a field for the site.")
@click.option(
    "--format",
    "-f",
    "form",
    type=click.Choice(["jsonl", "json", "mongodb"]),
    default="jsonl",
    show_default=True,
    help="Format of the output: for MongoDB, documents have an _id, and dates are objects.",
)
def schema(site_field: str | None, form: str, **options: Any) -> None:
    """Print the JSON Schema (2020-12) of what convert writes with these options.

    It describes each line of JSON lines, each member of a JSON array, and, of bulk lines for
    Elasticsearch, each second line. Its $id ends in the version of the contract.
    """
    given = checked(options, DocumentKeywords)
    site = None if site_field is None else (site_field, "")
    found = schema_of(options_of(given, OutputForm(form), site, core=_CORE))
    if site_field is not None:
        found["properties"][site_field] = {"type": "string"}
    click.echo(json.dumps(found, indent=2, ensure_ascii=False))
