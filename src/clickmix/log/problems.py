"""What can be wrong with the query, document, position or list of a row.   layout -> bad_rows"""

from __future__ import annotations

from clickmix.engines.sql import name
from clickmix.log.layout import Part
from clickmix.log.refused import Problem
from clickmix.log.scan import id_columns, whole


def key_problems(part: Part) -> list[Problem]:
    """Problems of the line, the ids, the position, and of the list if lists are kept apart."""
    ids, position = id_columns(part), part.column("position")
    at = whole(part.source, position)
    problems = [
        *part.source.line_problems(ids),
        *(Problem(column, f"{name(column)} IS NULL", f"{role} is missing") for role, column in ids.items()),
        Problem(position, f"coalesce({at}, 0) < 1", "position is not a whole number from 1 on"),
    ]
    if part.roles.lists:
        role = part.layout.list_role
        missing = f"nullif(CAST({name(part.column(role))} AS VARCHAR), '') IS NULL"
        problems.append(Problem(part.column(role), missing, f"{role} is missing"))
    return problems
