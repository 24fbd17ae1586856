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
