"""A statement in DuckDB's SQL -> the same statement in another dialect, by sqlglot."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Any

from clickmix.errors import SettingError

if TYPE_CHECKING:
    from sqlglot import Expression

# The dialects in which `clickmix sql` prints statements.
DIALECTS = ("bigquery", "clickhouse", "databricks", "duckdb", "postgres", "redshift", "snowflake", "spark", "trino")


def translated(statement: str, dialect: str, *, letters: str = "default") -> str:
    """A statement for an engine to run; `letters` is the collation with which PostgreSQL lowers letters.

    >>> translated("SELECT n / 2 FROM (SELECT 1 AS n)", "postgres")
    'SELECT CAST(n AS DOUBLE PRECISION) / 2 FROM (SELECT 1 AS n) AS part_1'
    """
    tree = _parsed(statement).transform(_composed(dialect))
    if dialect == "postgres":
        tree = tree.transform(_checked_cast).transform(_bytewise).transform(_computed_once).transform(_small(letters))
    return str(_named_parts(tree).sql(dialect=dialect))


def printed(statement: str, dialect: str, *, quoted: Collection[str] = ()) -> str:
    """A statement for people to read and run: indented, few names quoted, no VALUES, no semicolon.

    dbt and CREATE TABLE ... AS (...) put a statement in parentheses, where a semicolon is an error. Dialects disagree
    most about VALUES as a table; a UNION of SELECTs means the same everywhere. Table names in `quoted` stay quoted.
    """
    if dialect not in DIALECTS:
        raise SettingError(f"dialect {dialect!r}: expected one of {', '.join(DIALECTS)}.")
    tree = _parsed(statement).transform(_unfolded)
    if dialect == "postgres":
        tree = tree.transform(_computed_once)
    tree = _named_parts(tree.transform(_plain_name(dialect, quoted)))
    return str(tree.sql(dialect=dialect, pretty=True, comments=False)) + "\n"


def _parsed(statement: str) -> Expression:
    try:
        import sqlglot
    except ModuleNotFoundError:
        raise SettingError(
            "clickmix sql, Spark and PostgreSQL need sqlglot, which is not installed. Install it: pip install "
            "'clickmix[sql]'."
        ) from None
    return sqlglot.parse_one(statement, dialect="duckdb")


def _named_parts(tree: Expression) -> Expression:
    """Name every nested query: PostgreSQL before 16 and Redshift require it."""
    from sqlglot import exp

    number = 0
    for part in tree.find_all(exp.Subquery, bfs=False):
        if isinstance(part.parent, (exp.From, exp.Join)) and not part.alias:
            number += 1
            part.set("alias", exp.TableAlias(this=exp.to_identifier(f"part_{number}")))
    return tree


def _checked_cast(node: Any) -> Any:
    """TRY_CAST of a whole number to BIGINT for PostgreSQL: NULL if it is too large."""
    from sqlglot import exp

    if not isinstance(node, exp.TryCast):
        return node
    value = node.this.copy()
    wide = exp.cast(value, "DECIMAL", dialect="duckdb")
    wide.set("to", exp.DataType.build("NUMERIC", dialect="postgres"))
    fits = exp.Between(this=wide, low=exp.Literal.number(-(2**63)), high=exp.Literal.number(2**63 - 1))
    return exp.Case(ifs=[exp.If(this=fits, true=exp.cast(value.copy(), "BIGINT"))])


def _bytewise(node: Any) -> Any:
    """Sort texts in PostgreSQL by their bytes, as other engines do, not by the database's language."""
    from sqlglot import exp

    if type(node) is exp.Cast and node.to.is_type("TEXT", "VARCHAR"):
        return exp.Paren(this=exp.Collate(this=node, expression=exp.to_identifier("C", quoted=True)))
    return node


def _small(letters: str) -> Callable[[Any], Any]:
    """Lower the letters of every alphabet in PostgreSQL: for texts that sort by bytes, it lowers only A to Z."""
    from sqlglot import exp

    def change(node: Any) -> Any:
        if isinstance(node, exp.Lower) and not isinstance(node.this, exp.Collate):
            known = exp.Collate(this=exp.paren(node.this.copy()), expression=exp.to_identifier(letters, quoted=True))
            return exp.Lower(this=known)
        return node

    return change


def _composed(dialect: str) -> Callable[[Any], Any]:
    """Unicode's composed form (NFC): a function of PostgreSQL, and in Spark of a library that comes with it."""
    from sqlglot import exp

    def change(node: Any) -> Any:
        if not isinstance(node, exp.Anonymous) or node.name.lower() != "nfc_normalize":
            return node
        (text,) = node.expressions
        if dialect == "postgres":
            return exp.Normalize(this=text, form=exp.var("NFC"))
        words = map(exp.Literal.string, ("com.ibm.icu.text.Normalizer", "compose"))
        return exp.Anonymous(this="java_method", expressions=[*words, text, exp.false()])

    return change


def _computed_once(node: Any) -> Any:
    """Compute each part of WITH once: PostgreSQL would copy its expressions to every place that uses them."""
    from sqlglot import exp

    if isinstance(node, exp.CTE):
        node.set("materialized", True)
    return node


def _unfolded(node: Any) -> Any:
    """Turn WITH t(a, b) AS (VALUES (1, 2), (3, 4)) into SELECT 1 AS a, 2 AS b UNION ALL SELECT 3, 4."""
    from sqlglot import exp

    if not isinstance(node, exp.CTE) or not node.find(exp.Values):
        return node
    names = [column.name for column in node.args["alias"].columns]
    selects = [
        exp.select(*(exp.alias_(value, name) for value, name in zip(row.expressions, names, strict=True)))
        for row in node.find(exp.Values).expressions
    ]
    united = selects[0] if len(selects) == 1 else exp.union(*selects, distinct=False, copy=False)
    return exp.CTE(this=united, alias=exp.TableAlias(this=node.args["alias"].this))


def _plain_name(dialect: str, quoted: Collection[str]) -> Callable[[Any], Any]:
    """Unquote names that need no quotes: in Snowflake a quoted name means another column."""
    from sqlglot import exp
    from sqlglot.dialects.dialect import Dialect
    from sqlglot.tokens import TokenType

    tokens = Dialect.get_or_raise(dialect).tokenize
    # Redshift's list of reserved words is the longest.
    reserved = Dialect.get_or_raise("redshift").generator_class.RESERVED_KEYWORDS

    def change(node: Any) -> Any:
        if node.name in quoted and isinstance(node.parent, exp.Table):
            return node
        if isinstance(node, exp.Identifier) and re.fullmatch("[a-z_][a-z0-9_]*", node.name):
            word = [token.token_type for token in tokens(node.name)] == [TokenType.VAR]
            node.set("quoted", not word or node.name in reserved)
        return node

    return change
