"""A labels file -> judgments of the pairs that are sure enough, in a table of DuckDB; targets write it as lines.

SQL selects, grades and writes, and nothing is read into Python, so that labels of any size can be exported.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal

import duckdb

from clickmix.engines.duckdb import DuckDB
from clickmix.engines.sql import listed, literal, name
from clickmix.errors import InputError, SettingError, several
from clickmix.export.grades import SCALE, Gain, check_scale, cuts, grade_sql
from clickmix.export.target import Exported, Takes
from clickmix.features.files import one_source
from clickmix.log.files import unreadable
from clickmix.log.source import Source, kind_of
from clickmix.registry import Option
from clickmix.storage.atomic import replacing, write_failure

Rating = Literal["grade", "probability", "expected-gain"]
# SQL for the text of a rating. No interval of a probability needs more than three decimals. With the rating
# r = log2(1 + p), the gain 2^r - 1 of a tool is p; it has enough digits for that.
RATINGS: Mapping[Rating, str] = {
    "grade": "CAST(grade AS VARCHAR)",
    "probability": "format('{:.3f}', relevance)",
    "expected-gain": "format('{:.6f}', log2(1 + relevance))",
}
LABEL_OPTIONS = (
    Option("scale", f"Labels: the largest grade; default: {SCALE}.", int),
    Option("rating", "Labels: what a rating is; default: grade.", choices=tuple(RATINGS)),
    Option("min_impressions", "Labels: leave out documents that were shown less often.", int),
    Option("max_width", "Labels: leave out labels with a wider interval.", float),
    Option("top", "Labels: keep only this many of the best documents of each query.", int),
)
# A regular expression of DuckDB for an id without any of the blanks that end a word in Python or C.
NO_BLANK = "[^\\s\\p{Z}\\x0b\\x1c-\\x1f\\x85]+"
ROWS = "\0rows"  # no title contains this
NEEDED = ("query_id", "doc_id", "relevance")
NUMBERS = ("relevance", "impressions", "clicks", "low", "high")
EXPECTED = "Expected labels as `clickmix debias` writes them."


@dataclass(frozen=True)
class Limit:
    """What a target cannot hold: SQL that is true for such a pair, and words for it after "N judgments have ..."."""

    sql: str
    words: str


@dataclass(frozen=True)
class Judgments:
    """A table of DuckDB, one row per judgment, and how many labels were left out for which reason.

    Its columns: number (of the query, from 1), place (of the row, from 1), query_id, query (its text), doc_id,
    relevance, impressions, clicks, low, high, grade, rating (the text to write). Columns that labels lack are NULL.
    """

    engine: DuckDB
    table: str
    pairs: int
    queries: int
    left_out: tuple[str, ...]

    def write(self, lines: str, path: Path) -> None:
        """Write the column `line` of a query, one line each, ended by a line feed."""
        with replacing(path) as temporary:
            # No quotes and no escapes, so that lines are written unchanged.
            options = "FORMAT csv, HEADER false, QUOTE '', ESCAPE '', DELIMITER '\x01'"
            try:
                with self.engine.in_order():
                    self.engine.run(f"COPY (SELECT line FROM ({lines})) TO {literal(str(temporary))} ({options})")
            except duckdb.IOException as error:
                raise write_failure(path, str(error)) from None


@dataclass(frozen=True, kw_only=True)
class JudgmentTarget:
    """A tool that takes judgments; subclasses say what it can hold and write the lines."""

    scale: int = SCALE
    rating: Rating = "grade"
    min_impressions: int | None = None
    max_width: float | None = None
    top: int | None = None

    takes: ClassVar[Takes] = "labels"
    limits: ClassVar[str] = ""
    ratings: ClassVar[tuple[Rating, ...]] = ("grade",)
    largest_scale: ClassVar[int | None] = None
    gain: ClassVar[Gain] = "exponential"
    refused: ClassVar[tuple[Limit, ...]] = ()
    doubtful: ClassVar[tuple[Limit, ...]] = ()

    def __post_init__(self) -> None:
        check_scale(self.scale)
        if self.rating not in RATINGS:
            raise SettingError(f"--as {self.rating}: expected one of {', '.join(RATINGS)}.")
        if self.rating not in self.ratings:
            raise SettingError(f"--as {self.rating}: {self.limits} Leave --as out.")
        if self.largest_scale is not None and self.scale > self.largest_scale:
            raise SettingError(f"scale {self.scale}: expected at most {self.largest_scale}. {self.limits}")
        for option, value in (("min_impressions", self.min_impressions), ("top", self.top)):
            if value is not None and value < 1:
                raise SettingError(f"{option} {value}: expected a whole number from 1.")
        if self.max_width is not None and not 0 <= self.max_width <= 1:
            raise SettingError(f"max_width {self.max_width}: expected a number from 0 to 1.")

    def write(self, source: Path, output: Path) -> Exported:
        """Write the labels in `source` to `output`, or raise and write nothing."""
        with _opened(source) as labels:
            judgments = self._judgments(labels)
            for limit, found in self._found(judgments, self.refused):
                raise InputError(f"{_shown(limit, *found)} Leave them out of the labels. Nothing was written.")
            notes = [_shown(limit, *found) for limit, found in self._found(judgments, self.doubtful)]
            done = self.put(judgments, output, source.name.split(".")[0])
        pairs, queries = several(judgments.pairs, "judgment"), several(judgments.queries, "query", "queries")
        what = f"{pairs} of {queries} in {output}: {self._scale_words()}."
        left_out = [f"Left out: {'; '.join(judgments.left_out)}."] if judgments.left_out else []
        return Exported(done.files, (what, *left_out, *notes, *done.notes), done.requests)

    def put(self, judgments: Judgments, output: Path, called: str) -> Exported:
        """Write the judgments; `called` is the name of the labels, without its suffix."""
        raise NotImplementedError

    def _scale_words(self) -> str:
        if self.rating == "probability":
            return "the probability of relevance p"
        if self.rating == "expected-gain":
            return "log2(1 + p), whose gain is p"
        places = [f"{cut:.3f}" for cut in cuts(self.scale, self.gain)]
        return f"grades 0 to {self.scale}, cut at {', '.join(places)}"

    def _judgments(self, labels: _Labels) -> Judgments:
        """Select, in this order: shown often enough, sure enough, the top of each query; then grade and number."""
        engine, table, left_out = labels.engine, labels.table, []
        often, sure = f"impressions >= {self.min_impressions}", f"high - low <= {self.max_width!r}"
        for given, column, condition, words in (
            (self.min_impressions, "impressions", often, "shown fewer than {} times"),
            (self.max_width, "low", sure, "with an interval wider than {}"),
        ):
            if given is None:
                continue
            labels.need(column)
            ((dropped,),) = engine.rows(f"SELECT count(*) FROM {table} WHERE ({condition}) IS NOT TRUE")
            table = _instead(engine, table, f"SELECT * FROM {table} WHERE {condition}")
            if dropped:
                left_out.append(f"{dropped:,} {words.format(f'{given:,}')}")
        ((pairs,),) = engine.rows(f"SELECT count(*) FROM {table}")
        if self.top is not None:
            best = "row_number() OVER (PARTITION BY query_id ORDER BY relevance DESC, doc_id)"
            table = _instead(engine, table, f"SELECT * FROM {table} QUALIFY {best} <= {self.top}")
            ((kept,),) = engine.rows(f"SELECT count(*) FROM {table}")
            if kept < pairs:
                left_out.append(f"{pairs - kept:,} below the top {self.top:,} of their query")
            pairs = kept
        if not pairs:
            reason = f": {'; '.join(left_out)}" if left_out else ""
            raise InputError(f"{labels.source}: nothing to export{reason}. Nothing was written.")
        graded = f"SELECT *, {grade_sql(self.scale, self.gain)} AS grade FROM {table}"
        table = _instead(
            engine,
            table,
            "SELECT dense_rank() OVER (ORDER BY query_id) AS number, "
            "row_number() OVER (ORDER BY query_id, doc_id) AS place, "
            "* REPLACE (CAST(query_id AS VARCHAR) AS query_id, CAST(doc_id AS VARCHAR) AS doc_id), "
            f"{RATINGS[self.rating]} AS rating FROM ({graded})",
        )
        ((queries,),) = engine.rows(f"SELECT max(number) FROM {table}")
        return Judgments(engine, table, pairs, queries, tuple(left_out))

    def _found(self, judgments: Judgments, limits: tuple[Limit, ...]) -> Iterator[tuple[Limit, tuple[int, str, str]]]:
        for limit in limits:
            example = "arg_min(query, place), arg_min(doc_id, place)"
            query = f"SELECT count(*), {example} FROM {judgments.table} WHERE {limit.sql}"
            ((pairs, text, doc_id),) = judgments.engine.rows(query)
            if pairs:
                yield limit, (pairs, text, doc_id)


@dataclass(frozen=True)
class _Labels:
    """Labels as a table, with their source."""

    engine: DuckDB
    source: Source
    table: str

    def need(self, column: str) -> None:
        """Raise if these labels do not have a column that an option needs."""
        if column not in self.source.types:
            option, way_out = {
                "impressions": ("min-impressions", ""),
                "low": ("max-width", ", or use labels of a correction with intervals, such as mixture"),
            }[column]
            raise InputError(
                f"{self.source}: no column {column!r}, which --{option} needs. Leave the option out{way_out}."
            )


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[_Labels]:
    """The labels of a file, checked: ids and a relevance from 0 to 1 in every row, no pair twice."""
    engine = DuckDB()
    try:
        source = one_source(path, engine, expected=EXPECTED, file="labels file")
        table = engine.keep(_read(source))
        _check_rows(engine, source, table)
        yield _Labels(engine, source, table)
    except duckdb.Error as error:
        raise unreadable(str(path), error) from None
    finally:
        engine.close()


def _read(source: Source) -> str:
    """SQL for the labels with all columns, NULL if a file does not have them or a value is not a number."""
    missing = [column for column in NEEDED if column not in source.types]
    if missing:
        raise InputError(f"{source}: no column {missing[0]!r}. Found {', '.join(source.types)}. {EXPECTED}")
    columns = [
        f"{name(column)} AS {column}"
        if kind_of(source.types[column]) == "integer"
        else f"CAST({column} AS VARCHAR) AS {column}"
        for column in ("query_id", "doc_id")
    ]
    text = "query" if "query" in source.types else "query_id"
    columns.append(f"CAST({text} AS VARCHAR) AS query")
    for column in NUMBERS:
        # concat hides the column: the CSV reader would run a bare cast itself, and fail where TRY_CAST gives NULL.
        found = f"concat({column}, '')" if source.is_text else column
        columns.append(f"TRY_CAST({found if column in source.types else 'NULL'} AS DOUBLE) AS {column}")
    return f"SELECT {listed(columns)} FROM {source.table()}"


def _check_rows(engine: DuckDB, source: Source, table: str) -> None:
    wrong: list[tuple[str, str]] = [
        ("query_id IS NULL OR doc_id IS NULL OR query IS NULL", "has no query_id, doc_id or query"),
        ("(relevance BETWEEN 0 AND 1) IS NOT TRUE", "has no relevance from 0 to 1"),
    ]
    for condition, words in wrong:
        rows: list[tuple[Any, ...]] = engine.rows(f"SELECT query_id, doc_id FROM {table} WHERE {condition} LIMIT 1")
        if rows:
            query, document = rows[0]
            raise InputError(f"{source}: the label of query {query}, document {document} {words}. {EXPECTED}")
    twice = engine.rows(f"SELECT query_id, doc_id FROM {table} GROUP BY ALL HAVING count(*) > 1 ORDER BY ALL LIMIT 1")
    if twice:
        query, document = twice[0]
        raise InputError(f"{source}: two labels of query {query}, document {document}. Keep one of them.")
    texts = engine.rows(
        f"SELECT query FROM (SELECT DISTINCT query_id, query FROM {table}) GROUP BY query HAVING count(*) > 1 "
        f"UNION ALL SELECT min(query) FROM {table} GROUP BY query_id HAVING count(DISTINCT query) > 1 LIMIT 1"
    )
    if texts:
        raise InputError(
            f"{source}: query text {texts[0][0]!r} and its query_id do not match one to one. "
            "Give each query_id its own text, or leave the column query out."
        )


def _instead(engine: DuckDB, table: str, query: str) -> str:
    """Keep a result and forget the table that it was made from."""
    made = engine.keep(query)
    engine.forget(table)
    return made


def _shown(limit: Limit, pairs: int, query: str, doc_id: str) -> str:
    have = "has" if pairs == 1 else "have"
    return f"{several(pairs, 'judgment')} {have} {limit.words} For instance query {query!r}, document {doc_id!r}."


def enclosed(document: Mapping[str, Any], rows: str) -> str:
    """SQL for the lines of a JSON document, with a line for each of `rows` (place, value) instead of ROWS.

    A value is anything that DuckDB writes as JSON: a struct, a list, a map.
    """
    opening, closing = json.dumps(document, ensure_ascii=False).split(json.dumps(ROWS))
    comma = "CASE WHEN lead(place) OVER (ORDER BY place) IS NULL THEN '' ELSE ',' END"
    return (
        f"SELECT line FROM (SELECT 0 AS part, 0 AS place, {literal(opening)} AS line "
        f"UNION ALL SELECT 1, place, CAST(to_json(value) AS VARCHAR) || {comma} FROM ({rows}) "
        f"UNION ALL SELECT 2, 0, {literal(closing)}) ORDER BY part, place"
    )
