"""`exhume schema`."""

from __future__ import annotations

import json
import sys
from typing import Annotated

import typer

from exhume.errors import RequestError


def schema_command(
    table: Annotated[
        str | None, typer.Argument(metavar="[TABLE]", help="A table of docs/tables.md, such as offsets or dump.", show_default="all tables")
    ] = None,
) -> None:
    """Print the JSON Schema of the rows of a table, as `--output json` and `jsonl` write them.

    Without a table: one document with the schema of every table, by name.

    Example: exhume schema offsets
    """
    from exhume.topic.table_schemas import DIALECT, SCHEMA_VERSION, json_schema, table_schemas

    known = table_schemas()
    if table is None:
        schemas = {name: json_schema(name, schema) for name, schema in known.items()}
        for schema in schemas.values():
            del schema["$schema"]
        answer: object = {"$schema": DIALECT, "title": "exhume", "schema_version": SCHEMA_VERSION, "$defs": schemas}
    elif table in known:
        answer = json_schema(table, known[table])
    else:
        from difflib import get_close_matches

        near = get_close_matches(table, known, n=3) or list(known)
        raise RequestError(f"no table {table!r}", remedy=f"Choose one of {', '.join(near)}")
    sys.stdout.write(f"{json.dumps(answer, indent=2)}\n")
