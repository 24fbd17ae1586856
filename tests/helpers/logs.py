"""Small click logs in every format, and the slow and obvious way to count them."""

from __future__ import annotations

import csv
import gzip
import io
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import clickmix as cm

Table = dict[str, list[Any]]
FILE_NAMES = [
    "log.parquet",
    "log.pq",
    "log.parquet.gz",
    "log.csv",
    "log.csv.gz",
    "log.CSV.GZ",
    "log.tsv",
    "log.tsv.gz",
    "log.ndjson",
    "log.jsonl",
    "log.json",
    "log.ndjson.gz",
]


def small_log(*, rows: int = 400, seed: int = 0) -> Table:
    """Impressions of 30 documents of 6 queries at 4 positions, with a device."""
    rng = np.random.default_rng(seed)
    query, document = rng.integers(6, size=rows), rng.integers(30, size=rows)
    position = 1 + (document + rng.integers(2, size=rows)) % 4
    clicked = rng.random(rows) < np.where(document % 3 == 0, 0.7, 0.1) / position
    return {
        "query_id": [f"query {q}" for q in query],
        "doc_id": [int(d) for d in document],
        "position": [int(p) for p in position],
        "clicked": [int(c) for c in clicked],
        "device": [("mobile", "desktop")[q % 2] for q in query.tolist()],
    }


def part(table: Table, start: int, stop: int | None = None) -> Table:
    """Some rows of a table."""
    return {key: values[start:stop] for key, values in table.items()}


def write(path: Path, table: Mapping[str, Any]) -> Path:
    """Write a table in the format that the file's name tells."""
    path.parent.mkdir(parents=True, exist_ok=True)
    name = path.name.lower().removesuffix(".gz")
    if name.endswith((".parquet", ".pq")):
        buffer = io.BytesIO()
        pq.write_table(pa.table(dict(table)), buffer)
        data = buffer.getvalue()
    elif name.endswith((".csv", ".tsv")):
        data = csv_text(table, delimiter="\t" if name.endswith("tsv") else ",").encode()
    else:
        rows = zip(*table.values(), strict=True)
        data = "".join(json.dumps(dict(zip(table, row, strict=True))) + "\n" for row in rows).encode()
    path.write_bytes(gzip.compress(data) if path.name.lower().endswith(".gz") else data)
    return path


def write_lying(path: Path, table: Mapping[str, Any], column: str, row: int, value: int) -> Path:
    """Write a Parquet file whose statistics do not know one of its values, as bit rot or a faulty writer leaves it."""
    honest = pa.table(dict(table))
    type = honest.schema.field(column).type
    stored = pa.int64() if type.bit_width == 64 else pa.int32()  # Parquet has no shorter integers
    page = honest[column].cast(stored).to_numpy().tobytes()
    pq.write_table(honest, path, use_dictionary=False, compression="none")
    data = bytearray(path.read_bytes())
    assert data.count(page) == 1, "the page of the column cannot be told from others"
    at = data.index(page) + row * stored.bit_width // 8
    data[at : at + stored.bit_width // 8] = value.to_bytes(stored.bit_width // 8, "little", signed=True)
    path.write_bytes(data)
    assert pq.ParquetFile(path).read()[column].to_pylist()[row] == value
    return path


def write_lying_about_missing(path: Path, table: Mapping[str, Any], column: str) -> Path:
    """Write a Parquet file in which all values of a column are missing, and whose statistics say that none is."""
    honest = pa.table(dict(table))
    rows = honest.num_rows
    assert rows < 64, "the run of definition levels has a longer header"
    present, missing = (b"\x02\x00\x00\x00" + bytes([rows << 1, level]) for level in (1, 0))
    at = honest.schema.get_field_index(column)
    pq.write_table(honest, path, use_dictionary=False, compression="none")
    parts = path.read_bytes().split(present)
    assert len(parts) == honest.num_columns + 1, "the pages of the columns cannot be told apart"
    path.write_bytes(present.join(parts[: at + 1]) + missing + present.join(parts[at + 1 :]))
    assert pq.ParquetFile(path).read()[column].null_count == rows
    return path


def csv_text(table: Mapping[str, Sequence[Any]], *, delimiter: str = ",") -> str:
    """A table as CSV."""
    text = io.StringIO()
    writer = csv.writer(text, delimiter=delimiter, lineterminator="\n")
    writer.writerow(table)
    writer.writerows(zip(*table.values(), strict=True))
    return text.getvalue()


def count_slowly(table: Table, context: Sequence[str] = ()) -> list[tuple[Any, ...]]:
    """The cells of a raw log: one pass with a dictionary."""
    impressions, clicks = Counter[Any](), Counter[Any]()
    columns = [table[key] for key in ("query_id", "doc_id", "position", *context, "clicked")]
    for *key, clicked in zip(*columns, strict=True):
        cell = tuple("" if value is None else value for value in key)
        impressions[cell] += 1
        clicks[cell] += int(clicked)
    return sorted((*cell, impressions[cell], clicks[cell]) for cell in impressions)


def cells(counts: cm.Counts) -> list[tuple[Any, ...]]:
    """The cells of counts, in order."""
    return counts.engine.rows(counts.query())


def counted(table: Table) -> Table:
    """A raw log as a pre-aggregated one."""
    names = ("query_id", "doc_id", "position", "impressions", "clicks")
    return dict(zip(names, map(list, zip(*count_slowly(table), strict=True)), strict=True))
