"""Sessions <-> click logs with one row per session and position.

To write them, sessions are kept in a few bytes each: the number of the list, and clicks as bits. The engine writes the
rows in one pass, so memory holds the sessions but never the rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from clickmix.counts.count import count
from clickmix.engines.duckdb import DuckDB
from clickmix.engines.engine import choose_engine, embedded
from clickmix.engines.sql import listed, name
from clickmix.errors import InputError
from clickmix.lab.users.sessions import PAST_THE_END, Booleans, SessionLog, Sessions, sessions_from_columns
from clickmix.log.layout import Part, whole
from clickmix.log.layouts.rows import flags
from clickmix.log.open import open_log
from clickmix.types import Frame, Ints, Paths, Progress

BITS = 62  # clicks per 64-bit integer, without its sign


def write_sessions(
    chunks: Iterable[Sessions],
    path: str | Path,
    *,
    query_id: npt.NDArray[Any],
    doc_id: npt.NDArray[Any],
    progress: Progress | None = None,
) -> int:
    """Write session_id, query_id, doc_id, position, clicked; return the number of rows.

    `query_id` (lists,) and `doc_id` (lists, positions) are the ids of the lists that the sessions saw.

    >>> import tempfile
    >>> log = sessions_from_columns(["q", "q"], ["a", "b"], [1, 2], [0, 1], [7, 7])
    >>> folder, ids = tempfile.TemporaryDirectory(), {"query_id": np.array(["q"]), "doc_id": np.array([["a", "b"]])}
    >>> write_sessions([log.sessions], f"{folder.name}/log.parquet", **ids)
    2
    >>> folder.cleanup()
    """
    engine = DuckDB(threads=1)  # several threads would shuffle blocks of rows from run to run
    engine.run("SET preserve_insertion_order = true")
    sessions = 0
    for chunk in chunks:
        if not sessions:
            _create_tables(engine, chunk.lists, query_id, doc_id)
        columns = {"session_id": np.arange(sessions, sessions + len(chunk)), "seen": chunk.seen, **_bits(chunk.clicks)}
        engine.register("chunk", {key: np.ascontiguousarray(column) for key, column in columns.items()})
        engine.run(f"INSERT INTO sessions SELECT {listed(columns)} FROM chunk")
        sessions += len(chunk)
    rows = engine.write(_rows(doc_id.shape[1]), path, progress=progress)
    engine.close()
    return rows


def read_sessions(log: Paths | Frame, *, columns: Mapping[str, str] | None = None) -> SessionLog:
    """The sessions of a click log with a session_id column (files or a frame), in memory; refuses bad rows.

    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = Path(folder.name, "log.csv")
    >>> _ = path.write_text("session_id,query_id,doc_id,position,clicked\\n1,q,a,1,1\\n")
    >>> read_sessions(path).sessions.clicks.tolist()
    [[True]]
    >>> folder.cleanup()
    """
    engine = embedded(choose_engine(log=log), of="reading sessions")
    count(log, columns=columns, engine=engine)  # refuses bad rows
    opened = open_log(log, engine=engine, columns=columns)
    fetched = [engine.fetch(_impressions(part)) for part in opened.parts]
    names = ("query_id", "doc_id", "position", "clicked", "session_id")
    return sessions_from_columns(*(np.concatenate([part[name] for part in fetched]) for name in names))


def _impressions(part: Part) -> str:
    """The query for all impressions of a part without bad rows."""
    source = part.source
    if not part.layout.row_is_impression:
        raise InputError(
            f"{source}: contains counts, and counts do not show what was clicked together. Use the raw log."
        )
    session = part.column("session_id")
    if session not in source.types:
        found = ", ".join(source.types)
        raise InputError(
            f"{source}: no column {session!r}. Found {found}. Sessions need it; name it with "
            "columns={'session_id': ...}."
        )
    ids = ((part.column(role), role) for role in ("query_id", "doc_id", "session_id"))
    clicked, _ = flags(part)
    return (
        f"SELECT {listed(f'CAST({name(column)} AS VARCHAR) AS {role}' for column, role in ids)}, "
        f"{whole(source, part.column('position'))} AS position, CAST({clicked} AS INTEGER) AS clicked "
        f"FROM {source.table()}"
    )


def _create_tables(engine: DuckDB, lists: Ints, query_id: npt.NDArray[Any], doc_id: npt.NDArray[Any]) -> None:
    lengths = (lists != PAST_THE_END).sum(axis=1)
    row, place = np.nonzero(lists != PAST_THE_END)
    engine.register("shown", {"seen": row, "position": place + 1, "doc_id": doc_id[row, place]})
    engine.register("queries", {"seen": np.arange(len(lists)), "query_id": query_id, "length": lengths})
    # A list is one row with its documents as an array, so that each session joins exactly one row and keeps its order.
    engine.run(
        "CREATE TABLE lists AS SELECT seen, query_id, length, documents FROM queries JOIN "
        "(SELECT seen, array_agg(doc_id ORDER BY position) AS documents FROM shown GROUP BY seen) USING (seen)"
    )
    columns = listed(f"bits_{i} BIGINT" for i in range(_words(lists.shape[1])))
    engine.run(f"CREATE TABLE sessions (session_id BIGINT, seen BIGINT, {columns})")


def _bits(clicks: Booleans) -> dict[str, Ints]:
    """The clicks of each session as integers, position k in bit k - 1, 62 positions per integer."""
    words = {}
    for i in range(_words(clicks.shape[1])):
        part = clicks[:, i * BITS : (i + 1) * BITS]
        words[f"bits_{i}"] = sum(
            (part[:, k].astype(np.int64) << k for k in range(part.shape[1])), np.zeros(len(part), dtype=np.int64)
        )
    return words


def _words(positions: int) -> int:
    return -(-positions // BITS)


def _rows(positions: int) -> str:
    """The query that unfolds sessions into rows, in order."""
    words = "CASE " + " ".join(
        f"WHEN position <= {(i + 1) * BITS} THEN (bits_{i} >> (position - {i * BITS + 1}))"
        for i in range(_words(positions))
    )
    return (
        "SELECT session_id, query_id, doc_id, CAST(position AS INTEGER) AS position, "
        f"CAST(({words} END) & 1 AS TINYINT) AS clicked FROM (SELECT session_id, query_id, "
        "unnest(documents) AS doc_id, unnest(range(1, length + 1)) AS position, "
        f"{listed(f'bits_{i}' for i in range(_words(positions)))} "
        "FROM sessions JOIN lists USING (seen))"
    )
