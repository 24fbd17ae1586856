"""Labels in any layout -> three parallel columns: query, document, relevance.   labels -> examples"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import duckdb
import numpy as np
from numpy.typing import ArrayLike, NDArray

from clickmix.corrections.correction import Labels
from clickmix.engines.duckdb import DuckDB
from clickmix.engines.sql import listed
from clickmix.errors import InputError
from clickmix.features.files import one_source
from clickmix.features.ids import Ids, checked_ids, id_sql
from clickmix.log.files import are_paths, unreadable
from clickmix.log.frames import frame_source, known_frame
from clickmix.log.source import Source

NAMES = ("query_id", "doc_id", "relevance")
EXPECTED = "Expected query_id, doc_id and relevance, as `clickmix debias` writes them."


@dataclass(frozen=True, eq=False)
class LabelColumns:
    """One label per row; `where` names them in messages."""

    where: str
    query_id: Ids
    doc_id: Ids
    relevance: NDArray[np.float64]


def read_labels(labels: Any) -> LabelColumns:
    """The columns of a labels file, of `Labels`, of a frame, or of arrays: a mapping, or (query, document, relevance).

    Every relevance must be from 0 to 1. In text formats, ids are whole numbers if all are written as whole numbers.
    """
    if isinstance(labels, Labels):
        return _checked("the labels", labels.query_id, labels.doc_id, labels.relevance)
    if isinstance(labels, Mapping):
        _check_names("the labels", list(labels))
        return _checked("the labels", *(labels[column] for column in NAMES))
    if are_paths(labels) or not isinstance(labels, tuple):
        return _from_tables(labels)
    if len(labels) != len(NAMES):
        raise InputError(f"the labels: {len(labels)} arrays found. {EXPECTED}")
    return _checked("the labels", *labels)


def _from_tables(labels: Any) -> LabelColumns:
    with closing(DuckDB()) as engine:
        try:
            source = _source(labels, engine)
            _check_names(str(source), list(source.types))
            table = source.table()
            ids = [id_sql(source, column, engine) for column in NAMES[:2]]
            # concat hides the column: the CSV reader would run a bare cast itself, and fail where TRY_CAST gives NULL.
            text = "concat(relevance, '')" if source.is_text else "relevance"
            with engine.in_order():
                columns = engine.fetch(f"SELECT {listed(ids)}, TRY_CAST({text} AS DOUBLE) AS relevance FROM {table}")
                shown = None
                if np.ma.getmaskarray(columns["relevance"]).any():
                    quoted = "coalesce(chr(39) || CAST(relevance AS VARCHAR) || chr(39), 'nothing')"
                    shown = engine.fetch(f"SELECT {quoted} AS shown FROM {table}")["shown"]
        except duckdb.Error as error:
            raise unreadable(str(labels) if are_paths(labels) else "the labels", error) from None
    return _checked(str(source), *(columns[column] for column in NAMES), shown=shown)


def _source(labels: Any, engine: DuckDB) -> Source:
    if not are_paths(labels):
        if not isinstance(labels, duckdb.DuckDBPyRelation) and known_frame(labels, where="the labels") is None:
            raise InputError(
                f"the labels: a {type(labels).__name__} found. Pass a labels file, Labels, a frame, or arrays "
                "(query_id, doc_id, relevance)."
            )
        return frame_source(labels, engine)
    return one_source(labels, engine, expected=EXPECTED, file="labels file")


def _check_names(where: str, found: list[str]) -> None:
    missing = [column for column in NAMES if column not in found]
    if missing:
        raise InputError(f"{where}: no column {missing[0]!r}. Found {', '.join(found)}. {EXPECTED}")


def _checked(
    where: str, query_id: ArrayLike, doc_id: ArrayLike, relevance: ArrayLike, *, shown: NDArray[Any] | None = None
) -> LabelColumns:
    """The columns, checked; `shown` are the values as text, if some could not be read as numbers."""
    query, document = checked_ids(where, "query_id", query_id), checked_ids(where, "doc_id", doc_id)
    values = _relevance(where, relevance)
    if not len(query) == len(document) == len(values):
        raise InputError(
            f"{where}: {len(query)} query ids, {len(document)} document ids, {len(values)} relevances: "
            "expected one of each per label."
        )
    wrong = ~((values >= 0) & (values <= 1))
    if wrong.any():
        row = int(np.argmax(wrong))
        found = f"{values[row]:g}" if shown is None else shown[row]
        raise InputError(
            f"{where}, row {row + 1} (query {query[row]}, document {document[row]}): relevance {found} found, "
            "expected a number from 0 to 1."
        )
    return LabelColumns(where, query, document, values)


def _relevance(where: str, given: ArrayLike) -> NDArray[np.float64]:
    column: Any = np.ma.asarray(given)
    if column.ndim != 1 or column.dtype.kind not in "biuf":
        raise InputError(f"{where}: relevance has type {column.dtype}. Expected one number from 0 to 1 per label.")
    return np.asarray(np.ma.filled(column.astype(np.float64), np.nan))
