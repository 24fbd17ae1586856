"""What a command that ended well must have written: numbers that add up, ids that were in the input."""

from __future__ import annotations

import csv
import json
import math
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from oracle import Ended
from seeds import vocabulary


def judge_results(words: Sequence[str], ended: Ended, data: bytes, file: str) -> str:
    """What is wrong with the outputs of a command that ended with 0, or nothing."""
    if words[0] in ("debias", "label"):
        output = words[list(words).index("-o") + 1]
        return _judge_table(ended, read_table(Path(output)), keys=("query_id", "doc_id"), words=words) or _judge_rows(
            ended, data, file
        )
    if words[0] == "counts":
        output = words[list(words).index("--merge" if "--merge" in words else "-o") + 1]
        table = read_table(Path(output))
        keys = [key for key in table if key not in ("impressions", "clicks")]
        return _judge_table(ended, table, keys=keys, words=words) or _judge_rows(ended, data, file)
    if words[0] == "fit":
        from clickmix.corrections.mixture_based.fit import MixtureFit

        MixtureFit.read(words[list(words).index("-o") + 1])  # raises, unless the model is whole
    if words[0] == "score":
        table = read_table(Path(words[list(words).index("-o") + 1]))
        if any(map(math.isnan, map(float, table["score"]))):
            return "results: a score is not a number"
    return ""


def _judge_table(ended: Ended, table: dict[str, list[Any]], *, keys: Sequence[str], words: Sequence[str]) -> str:
    impressions, clicks = (list(map(int, table[name])) for name in ("impressions", "clicks"))
    total = re.search(
        r"(?:Read|Including earlier counts:) ([\d,]+) impressions? and ([\d,]+) clicks?\.\n(?!Incl)", ended.out
    )
    said = tuple(int(number.replace(",", "")) for number in total.groups()) if total else None
    if said != (sum(impressions), sum(clicks)):
        return f"results: said {said}, wrote {(sum(impressions), sum(clicks))}"
    fewest = 0 if "--features" in words else 1  # documents that have only features are labelled, too
    if not all(0 <= c <= i and i >= fewest for i, c in zip(impressions, clicks, strict=True)):
        return "results: clicks above impressions, or no impressions"
    rows = list(zip(*(map(str, table[key]) for key in keys), strict=True))
    if len(set(rows)) != len(rows):
        return "results: a key comes twice"
    if "relevance" in table and not all(math.isfinite(value) for value in map(float, table["relevance"])):
        return "results: a label is not finite"
    if "position" in table and min(map(int, table["position"])) < 1:
        return "results: a position below 1"
    known: set[str] = set()
    for word in words:
        if word.startswith("in/") and Path(word).is_file() and not word.endswith(("model.json", "labels.parquet")):
            found = vocabulary(Path(word).read_bytes(), word)
            if found is None:
                return ""
            known |= found
    strange = [id for key in ("query_id", "doc_id") for id in map(str, table[key]) if not _is_known(id, known)]
    return f"results: ids that were not in the input: {strange[:3]!r}" if strange else ""


def _is_known(id: str, known: set[str]) -> bool:
    """Whether an id is a word of the input; the Yandex layout joins two words."""
    return id in known or any(id in word for word in known) or all(part in known for part in id.split("_"))


def _judge_rows(ended: Ended, data: bytes, file: str) -> str:
    """In a log of one impression per row, rows read = impressions + rows skipped."""
    rows = _data_rows(data, Path(file).name)
    if rows is None or "Including" in ended.out:
        return ""
    read = re.search(r"Read ([\d,]+) impressions?", ended.out)
    skipped = sum(int(n.replace(",", "")) for n in re.findall(r"Skipped bad rows \(([\d,]+)\)", ended.out))
    kept = int(read[1].replace(",", "")) if read else 0
    return "" if kept + skipped == rows else f"results: {rows} rows, but {kept} kept and {skipped} skipped"


def _data_rows(data: bytes, name: str) -> int | None:
    """The number of rows of a log in rows; None if it is no such log, or if it can be seen in different ways."""
    if not name.startswith("rows") or name.endswith(".gz"):
        return None
    if name.endswith(".parquet"):
        import io

        try:
            table = pq.read_table(io.BytesIO(data))
        except Exception:  # whatever pyarrow thinks of a damaged file
            return None
        return None if {"impressions", "IMPRESSIONS"} & set(table.column_names) else table.num_rows
    if b"\r" in data or b"\0" in data or (b'"' in data.replace(b'""', b"") and name.endswith("sv")):
        return None
    lines = [line for line in data.split(b"\n") if line.strip(b" \t" if name.endswith("json") else b"")]
    if b"impressions" in (lines[0] if lines else b"").lower() or b'"impressions"' in data.lower():
        return None
    return len(lines) - 1 if name.endswith("sv") else len(lines)


def read_table(path: Path) -> dict[str, list[Any]]:
    """A small file that clickmix wrote, by columns, read without clickmix."""
    if path.suffix == ".parquet":
        table = pq.read_table(path)
        return {name: table[name].to_pylist() for name in table.column_names}
    if path.suffix == ".csv":
        with path.open(newline="") as file:
            reader = csv.DictReader(file)
            found = list(reader)
            return {name: [row[name] for row in found] for name in reader.fieldnames or ()}
    found = [json.loads(line) for line in path.read_text().split("\n") if line]
    return {name: [row[name] for row in found] for name in found[0]}
