"""A source: files with the same columns, a frame or an engine's table, readable as one SQL table.   sources -> layout

Each kind of source is a class that says how to read it, what its columns hold as they are read, how its rows are
numbered, and what can be wrong with a line before looking at its values.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from clickmix.engines.engine import StoredTable
from clickmix.engines.sql import listed, literal, name
from clickmix.log.csv_lines import check_none_swallowed, count_lines, rejected_lines
from clickmix.log.json_lines import ID_FLAGS, LINE_FLAGS, json_lines
from clickmix.log.refused import BadValue, Refused

if TYPE_CHECKING:
    from clickmix.engines.duckdb import DuckDB

GZIP_START, PARQUET_START = b"\x1f\x8b", b"PAR1"


@dataclass(frozen=True)
class Source:
    """A table with known columns and their SQL types."""

    types: Mapping[str, str]

    # Whether every value is text as it is read, whatever the first rows look like.
    is_text: ClassVar[bool] = False
    # Whether an engine other than DuckDB reads it: plain SQL only, with text cast so that it sorts as in DuckDB.
    foreign: ClassVar[bool] = False
    # Whether integers are stored in a narrow type that a scan can group faster.
    narrow: ClassVar[bool] = False
    # Whether it says how many rows it has without reading them.
    knows_rows: ClassVar[bool] = False
    # Whether the fast reader stops at some bad lines and accepts anything as an id; `line_by_line` finds them all.
    lenient: ClassVar[bool] = False
    files: tuple[str, ...] = ()
    # Where a file that had to be unpacked came from.
    origin: Mapping[str, str] = field(default_factory=dict)
    # Columns that come from folders named column=value, not from the files.
    partitions: tuple[str, ...] = ()

    def __str__(self) -> str:
        first = self.shown(self.files[0])
        return first if len(self.files) == 1 else f"{first} and {len(self.files) - 1} more"

    @property
    def untyped(self) -> bool:
        """Whether the source has no types (CSV), so that integers are text that looks like integers."""
        return False

    @property
    def own_columns(self) -> list[str]:
        """The columns that are in the files themselves."""
        return [column for column in self.types if column not in self.partitions]

    @property
    def parts(self) -> Sequence[str | None]:
        """The files whose rows are numbered separately; None means all files together."""
        return (None,)

    def shown(self, file: str) -> str:
        """A file as the user named it."""
        return self.origin.get(file, file)

    def kind(self, column: str) -> str:
        """What a column holds as it is read: text, integer, real, boolean or other."""
        return "text" if self.is_text else kind_of(self.types[column])

    def table(self) -> str:
        """SQL that reads it."""
        raise NotImplementedError

    def without_broken_lines(self) -> Source:
        """The same source, which leaves out lines that cannot be split into columns instead of failing."""
        return self

    def objects(self) -> str:
        """SQL that reads each row as one JSON object, in the column `json`."""
        return f"(SELECT to_json(r) AS json FROM {self.table()} AS r)"

    def numbered(self, file: str | None, *, used: Sequence[str], ids: Mapping[str, str], key: str) -> tuple[str, ...]:
        """SQL to look for bad rows: the table, the file, and the row's number, or its `key` if it has none."""
        return self.table(), literal(str(self)), "row_number() OVER ()"

    def line_problems(self, ids: Mapping[str, str]) -> list[BadValue]:
        """What can be wrong with a whole line; `ids` are the columns of query_id and doc_id."""
        return []

    def rejected(self, engine: DuckDB, file: str | None, lines: int | None) -> tuple[list[Refused], list[int]]:
        """Lines that the last scan of a file could not split into columns, and their row numbers."""
        return [], []

    def lines(self, file: str | None) -> int | None:
        """How many lines of a file are rows, if some may be broken; raises if too many are."""
        return None

    def notes(self, engine: DuckDB) -> dict[str, str]:
        """The notes that clickmix left in these files, by file."""
        return {}

    def rename(self, renamed: Mapping[str, str], types: Mapping[str, str]) -> Source:
        """The same source with other column names; called only for files with notes."""
        return self

    def line_by_line(self, engine: DuckDB, view: str, *, used: Sequence[str], ids: Mapping[str, str]) -> Source:
        """The same source read line by line, as a view of that name: slower, but finds all bad rows."""
        return self


@dataclass(frozen=True)
class Registered(Source):
    """A frame, a view or a table in DuckDB, by its name in SQL."""

    registered: str = ""
    shown_as: str = "the frame"

    def __str__(self) -> str:
        return self.shown_as

    def table(self) -> str:
        return name(self.registered)


@dataclass(frozen=True, kw_only=True)
class EngineTable(Source):
    """A table of another engine."""

    foreign: ClassVar[bool] = True
    of: StoredTable

    def __str__(self) -> str:
        return self.of.shown

    @property
    def untyped(self) -> bool:
        """Whether the engine reads it from CSV."""
        return self.of.untyped

    def table(self) -> str:
        """Its name."""
        return self.of.name

    def numbered(self, file: str | None, *, used: Sequence[str], ids: Mapping[str, str], key: str) -> tuple[str, ...]:
        """Rows of a table have no number: the key names them."""
        return self.of.name, literal(str(self)), key

    def line_problems(self, ids: Mapping[str, str]) -> list[BadValue]:
        """Lines that the engine could not split into columns."""
        broken = self.of.broken
        return (
            [BadValue(broken, f"{name(broken)} IS NOT NULL", "the line cannot be split into columns")] if broken else []
        )


@dataclass(frozen=True)
class Parquet(Source):
    """Parquet files with the same columns."""

    narrow: ClassVar[bool] = True
    knows_rows: ClassVar[bool] = True
    # Columns with other names than in the files: name in the file -> name here.
    renamed: Mapping[str, str] = field(default_factory=dict)

    def table(self) -> str:
        return self._read("")

    def numbered(self, file: str | None, *, used: Sequence[str], ids: Mapping[str, str], key: str) -> tuple[str, ...]:
        """Parquet knows the file and the number of each row."""
        table = self._read(", filename = 'file read', file_row_number = true")
        return table, '"file read"', "file_row_number + 1"

    def notes(self, engine: DuckDB) -> dict[str, str]:
        return dict(engine.notes(file_list(self.files)))

    def rename(self, renamed: Mapping[str, str], types: Mapping[str, str]) -> Source:
        """The same files with other column names."""
        return replace(self, renamed=renamed, types=types)

    def _read(self, options: str) -> str:
        files = reader_arguments(self.files, partitioned=bool(self.partitions))
        table = f"read_parquet({files}, binary_as_string = true{options})"
        renamed = listed(f"{name(old)} AS {name(new)}" for old, new in self.renamed.items())
        return f"(SELECT * RENAME ({renamed}) FROM {table})" if renamed else table


@dataclass(frozen=True)
class TextFiles(Source):
    """Files of lines, gzipped or not; every value is read as text."""

    is_text: ClassVar[bool] = True
    gzipped: bool = False

    @property
    def parts(self) -> Sequence[str | None]:
        """Lines are numbered file by file."""
        return self.files

    def arguments(self, file: str | None = None) -> str:
        """The files (or one of them) as the first arguments of a SQL reader."""
        files = [file] if file else self.files
        return reader_arguments(files, partitioned=bool(self.partitions), gzipped=self.gzipped)

    def _columns(self) -> str:
        return "{" + listed(f"{literal(column)}: 'VARCHAR'" for column in self.own_columns) + "}"


@dataclass(frozen=True)
class Csv(TextFiles):
    """CSV files with the same header."""

    delimiter: str = ","
    # Whether lines that cannot be split into columns are left out.
    leaves_out: bool = False

    @property
    def untyped(self) -> bool:
        """CSV has no types."""
        return True

    def table(self) -> str:
        return self._read(None, "ignore_errors = true" if self.leaves_out else "")

    def without_broken_lines(self) -> Source:
        """The same files; lines that cannot be split into columns are left out."""
        return replace(self, leaves_out=True)

    def numbered(self, file: str | None, *, used: Sequence[str], ids: Mapping[str, str], key: str) -> tuple[str, ...]:
        """Rows are numbered as they are read."""
        return self._read(file, "store_rejects = true"), literal(file or str(self)), "row_number() OVER ()"

    def rejected(self, engine: DuckDB, file: str | None, lines: int | None) -> tuple[list[Refused], list[int]]:
        if file is None:
            return [], []
        refused = rejected_lines(engine, self.shown(file), self.delimiter)
        if lines is not None:
            good = self._read(file, "ignore_errors = true")
            check_none_swallowed(engine, self.shown(file), lines, good, self.own_columns)
        return refused

    def lines(self, file: str | None) -> int | None:
        if not (file and self.leaves_out):
            return None
        return count_lines(file, self.shown(file), self.own_columns, self.delimiter, gzipped=self.gzipped)

    def _read(self, file: str | None, broken_lines: str) -> str:
        # Leave nothing to guess: a reader that guesses takes the first well-formed line for the header. If lines may be
        # broken, read with one thread: several, which begin where the file was cut, lose good and bad rows there.
        broken = f", {broken_lines}, parallel = false" if broken_lines else ""
        quoting = f"""delim = {literal(self.delimiter)}, quote = '"', escape = '"', allow_quoted_nulls = false"""
        columns = f"columns = {self._columns()}"
        return f"read_csv({self.arguments(file)}, auto_detect = false, header = true, {quoting}, {columns}{broken})"


@dataclass(frozen=True)
class Ndjson(TextFiles):
    """NDJSON files whose first objects have the same keys."""

    lenient: ClassVar[bool] = True

    def table(self) -> str:
        return f"read_json({self.arguments()}, format = 'newline_delimited', columns = {self._columns()})"

    def objects(self) -> str:
        """SQL that reads each line as one JSON object; NULL if it is not one."""
        return f"read_ndjson_objects({self.arguments()}, ignore_errors = true)"

    def numbered(self, file: str | None, *, used: Sequence[str], ids: Mapping[str, str], key: str) -> tuple[str, ...]:
        """Rows are numbered as they are read, line by line."""
        return self._lines(file, used, ids), literal(file or str(self)), "row_number() OVER ()"

    def line_problems(self, ids: Mapping[str, str]) -> list[BadValue]:
        """Lines that are not objects, keys that come twice, ids that are neither text nor integers."""
        return [
            *(BadValue("", name(flag), reason) for flag, reason in LINE_FLAGS.items()),
            *(
                BadValue(column, name(ID_FLAGS.format(role)), f"{role} is neither text nor a whole number")
                for role, column in ids.items()
            ),
        ]

    def line_by_line(self, engine: DuckDB, view: str, *, used: Sequence[str], ids: Mapping[str, str]) -> Source:
        """The same files read line by line, as a view of that name; a bad line has no ids."""
        bad = " OR ".join(problem.bad for problem in self.line_problems(ids))
        replaced = listed(f"CASE WHEN {bad} THEN NULL ELSE {name(id)} END AS {name(id)}" for id in ids.values())
        engine.run(
            f"CREATE OR REPLACE TEMP VIEW {view} AS SELECT * REPLACE ({replaced}) FROM {self._lines(None, used, ids)}"
        )
        return Registered(engine.types(view), registered=view)

    def _lines(self, file: str | None, used: Sequence[str], ids: Mapping[str, str]) -> str:
        return json_lines(self.arguments(file), used=used, keys=self.own_columns, ids=ids)


def begins_as_named(file: Path, *, format: str, gzipped: bool) -> bool:
    """Whether a file begins as its name promises; a JSON document of clickmix may begin as a log does."""
    with file.open("rb") as opened:
        start = opened.read(len(PARQUET_START))
    if gzipped:
        return start.startswith(GZIP_START)
    other = start.startswith((GZIP_START, PARQUET_START)) or file.suffix.lower() == ".json"
    return start == PARQUET_START if format == "parquet" else not other


def file_list(files: Sequence[str]) -> str:
    """A SQL list of exactly these files: their names are not globs."""
    return "[" + listed(literal("".join(f"[{c}]" if c in "*?[" else c for c in file)) for file in files) + "]"


def reader_arguments(files: Sequence[str], *, partitioned: bool = False, gzipped: bool | None = None) -> str:
    """The first arguments of a SQL reader: exactly these files, and whether folders carry columns."""
    folders = "true, hive_types_autocast = false" if partitioned else "false"
    packing = "" if gzipped is None else f", compression = '{'gzip' if gzipped else 'uncompressed'}'"
    return f"{file_list(files)}, hive_partitioning = {folders}{packing}"


def kind_of(type: str) -> str:
    """What a SQL type holds: text, integer, real, boolean, list or other.

    Warehouses write integers as decimals without digits after the point.

    >>> [kind_of(t) for t in ("UINTEGER", "DECIMAL(38,0)", "DECIMAL(18,3)", "ENUM('a', 'b')", "BOOLEAN", "INTEGER[]")]
    ['integer', 'integer', 'real', 'text', 'boolean', 'list']
    """
    base = type.split("(")[0].upper()
    if type.endswith("]"):
        return "list"
    if type.startswith("DECIMAL") and type.endswith(",0)"):
        return "integer"
    if base in ("FLOAT", "DOUBLE", "DECIMAL", "REAL"):
        return "real"
    if base.endswith(("INT", "INTEGER")):
        return "integer"
    if base in ("VARCHAR", "ENUM", "UUID", "JSON"):
        return "text"
    return "boolean" if base == "BOOLEAN" else "other"


def is_wide(type: str) -> bool:
    """Whether an integer type holds more than a BIGINT can."""
    return type in ("UBIGINT", "HUGEINT", "UHUGEINT") or type.startswith("DECIMAL")


def disagree(types: set[str]) -> bool:
    """Whether no common type keeps ids of these types: text and integers, or uint64 and signed integers.

    SQL would use 128 bits for the latter, which numpy and files only have as reals.
    """
    signed = any(not type.startswith("U") for type in types)
    return len({kind_of(type) for type in types}) > 1 or ("UBIGINT" in types and signed)
