"""NDJSON read line by line, as SQL: values as text, and what is wrong with a line or its ids.   source -> bad_rows"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from clickmix.engines.sql import listed, literal, name

# Columns that are true for a bad line, and why it is bad.
LINE_FLAGS: Mapping[str, str] = {
    "no object": "the line is not a JSON object",
    "key twice": "the line has a key twice",
}
ID_FLAGS = "{} is none"
# Ids that a reader may have made from another value: an object, a list, a truth value or a real number.
ODD_ID = r"^(\{.*\}|\[.*\]|true|false|-?[0-9]+[.eE][-+.eE0-9]*)$"


def json_lines(arguments: str, *, used: Sequence[str], keys: Sequence[str], ids: Mapping[str, str]) -> str:
    """SQL for the `used` columns of some files, with the flags; `keys` are in the objects, not in folder names."""
    inside = [column for column in used if column in keys]
    paths = listed(literal("/" + key.replace("~", "~0").replace("/", "~1")) for key in inside)  # JSON pointers
    values = (
        f'"json texts"[{inside.index(column) + 1}] AS {name(column)}' if column in inside else name(column)
        for column in used
    )
    return (
        f'(SELECT "no object", len("json keys") > list_count("json kinds") AS "key twice", {listed(values)}, '
        f"{listed(_flag(column, role, inside) for role, column in ids.items())} FROM (SELECT *, "
        f"coalesce(json_type(json), '') <> 'OBJECT' AS \"no object\", "
        f'json_extract_string(json, [{paths}]) AS "json texts", json_type(json, [{paths}]) AS "json kinds", '
        f'list_filter(json_keys(json), lambda key: key IN ({listed(map(literal, inside))})) AS "json keys" '
        f"FROM read_ndjson_objects({arguments}, ignore_errors = true)))"
    )


def odd_ids_query(table: str) -> str:
    """SQL for a cell whose ids may not have been ids in NDJSON; only reading the lines again can tell."""
    odd = (f"regexp_matches(CAST({role} AS VARCHAR), '{ODD_ID}', 's')" for role in ("query_id", "doc_id"))
    return f"SELECT 1 FROM {table} WHERE {' OR '.join(odd)} LIMIT 1"


def _flag(column: str, role: str, inside: list[str]) -> str:
    """SQL for whether a value is not an id. DuckDB reads large integers as DOUBLE."""
    flag = name(ID_FLAGS.format(role))
    if column not in inside:
        return f"FALSE AS {flag}"
    i = inside.index(column) + 1
    kind, text = f'"json kinds"[{i}]', f'"json texts"[{i}]'
    real = f"{kind} = 'DOUBLE' AND NOT regexp_matches({text}, '^-?[0-9]+$')"
    return f"coalesce({kind} IN ('OBJECT', 'ARRAY', 'BOOLEAN') OR ({real}), FALSE) AS {flag}"
