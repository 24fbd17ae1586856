"""A frame of pandas, polars, arrow or DuckDB -> a source."""

from __future__ import annotations

import os
from typing import Any

import duckdb

from clickmix.engines.duckdb import DuckDB
from clickmix.errors import InputError
from clickmix.log.source import Registered, Source


class _Stream:
    """A frame as an Arrow stream, which DuckDB reads without pyarrow; each read starts from the beginning."""

    def __init__(self, frame: Any) -> None:
        self._frame = frame

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._frame.__arrow_c_stream__(requested_schema)


def frame_source(frame: object, engine: DuckDB) -> Source:
    """A frame of pandas, polars, arrow or DuckDB as a source."""
    if isinstance(frame, (list, tuple)) and not frame:
        raise InputError("the list of files is empty. Name at least one file; check the folder or glob it came from.")
    if isinstance(frame, duckdb.DuckDBPyRelation):
        readable: object = _Stream(frame)
    else:
        import narwhals as nw  # here, because files do not need it

        known = known_frame(frame, where="the frame")
        if known is None:
            raise InputError(
                f"{_called(frame)} is not a click log. Pass a path, a list of paths, or a frame of pandas, polars, "
                "arrow or DuckDB."
            )
        native = (known.collect() if isinstance(known, nw.LazyFrame) else known).to_native()
        readable = _Stream(native) if known.implementation.is_polars() else native
    try:
        name = engine.new_name("clickmix_frame")  # a log, its judgments and labels may all be frames
        engine.register(name, readable)
        return Registered(engine.types(name), registered=name)
    except duckdb.Error as error:
        reason = str(error).splitlines()[0].split("Error: ", 1)[-1].rstrip(".")
        raise InputError(
            f"the frame: cannot be read: {reason}. Use columns of numbers or text, or of lists of them; turn arrays of "
            "text into lists."
        ) from None


def known_frame(given: Any, *, where: str) -> Any:
    """The frame as one of narwhals; None if it is not a frame. Raises if columns have the same name, as in pandas."""
    import narwhals as nw
    from narwhals.exceptions import DuplicateError

    try:
        known = nw.from_native(given, pass_through=True)
    except DuplicateError:
        names = list(given.column_names if hasattr(type(given), "column_names") else given.columns)
        twice = next(name for i, name in enumerate(names) if name in names[:i])
        raise InputError(f"{where}: two columns are called {twice!r}. Rename one of them.") from None
    return None if known is given else known


def _called(given: object) -> str:
    """What was given instead of a frame, and for a list the first thing in it that is not a path."""
    kind = f"a {type(given).__name__}"
    if not isinstance(given, (list, tuple)):
        return kind
    return f"{kind} of {next(type(part).__name__ for part in given if not isinstance(part, (str, os.PathLike)))}"
