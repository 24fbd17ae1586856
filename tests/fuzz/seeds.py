"""Seeds: one small good file of every kind that clickmix reads, in the folder `in`."""

from __future__ import annotations

import contextlib
import csv
import dataclasses
import gzip
import io
import json
import re
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from clickmix import Counts, MixtureCorrection
from clickmix.corrections.mixture_based.calibration import Calibration, Meaning, Scale, Weights
from clickmix.corrections.mixture_based.featured import Featured
from clickmix.corrections.mixture_based.judged import Judged
from clickmix.features import make_examples
from clickmix.rankers import LambdaMART
from clickmix.rankers.dnn import DNN
from clickmix.rankers.prior_trees import FeatureTable
from logs import Table, counted, csv_text, small_log, write
from oracle import run_command
from session_logs import session_log

GOLDEN = Path(__file__).parents[1] / "golden" / "rankers-0.1"
FEATURES = 3  # as many as the golden rankers have

LISTS: Table = {
    "query_id": ["q1", "q1", "q2", "q3", "q3"],
    "doc_ids": [["a", "b", "c"], ["b", "a", "c"], ["d", None, "e"], ["f"], ["f", "g"]],
    "clicked": [[1, 0, 1], [0, 0, 0], [0, 0, 1], [1], [0, 1]],
    "device": ["m", "d", "m", "m", "d"],
}
# The other ways to say what was clicked, and documents inside objects.
CLICKED_IDS: Table = {
    "query_id": LISTS["query_id"],
    "doc_ids": LISTS["doc_ids"],
    "clicked_ids": [["a", "c"], [], ["e", "z"], None, ["g"]],
}
CLICKED_PLACES: Table = {
    "query_id": LISTS["query_id"],
    "doc_ids": LISTS["doc_ids"],
    "positions": [[1, 2, 3], [1, 2, 5], [4, 5, 6], [1], [2, 1]],
    "clicked_positions": [[1, 3], [], [6], [1], [1]],
}
NESTED: Table = {
    "term": LISTS["query_id"],
    "search": [
        {"results": [{"doc": {"sku": doc}, "hit": hit} for doc, hit in zip(docs, hits, strict=True)]}
        for docs, hits in zip(LISTS["doc_ids"], LISTS["clicked"], strict=True)
    ],
}
HISTOGRAM: Table = {
    "position": [1, 1, 1, 2, 2, 2],
    "impressions": [5, 5, 20, 7, 7, 30],
    "clicks": [2, 0, 15, 1, 0, 2],
    "documents": [3, 4, 2, 5, 6, 2],
    "moving": [0, 2, 0, 1, 0, 0],
    "again": [0, 0, 1, 3, 0, 0],
}
YANDEX = (
    "7\t0\tQ\t5\t1\t20\t21\t22\n7\t3\tC\t21\n7\t4\tC\t21\n8\t0\tQ\t5\t1\t22\t20\t21\n7\t9\tQ\t5\t2\t21\t20\t23\n"
    "7\t9\tC\t21\n9\t0\tQ\t6\t1\t30\t31\t32\n9\t1\tC\t30\n"
)


def make_seeds(folder: Path) -> None:
    """Write all seeds to `folder`/in; the working folder must be `folder`."""
    seeds = folder / "in"
    seeds.mkdir()
    _logs(seeds)
    _features(seeds)
    for name in ("dnn", "lambdamart"):
        shutil.copytree(GOLDEN / name, seeds / name)
    (seeds / "parameters.json").write_text(json.dumps({"alpha": [0.9, 0.5, 0.3, 0.2, 0.1], "beta": [0.1, 0, 0, 0, 0]}))
    (seeds / "theta.json").write_text(json.dumps({"theta": [1.0, 0.5, 0.3, 0.2, 0.1]}))
    for words in (
        "counts in/rows.parquet -o in/counts.parquet",
        "counts in/rows.parquet -o in/lists-counts.parquet --lists",
        "debias in/rows.csv -o in/labels.parquet --model in/model.json",
        "debias in/rows.csv -o in/labels.csv --correction none",
        "debias in/rows.csv -o in/labels.ndjson",
        "fit in/rows.csv -o in/device-model.json --context device",
        "fit in/rows.csv -o in/gaussian-model.json --mixture gaussian",
        "counts in/rows.parquet -o in/clicked-counts.parquet --lists-by-clicks",
        "fit in/rows.parquet -o in/cascade-model.json --examination dcm",
    ):
        ended = run_command(words.split())
        assert ended.code == 0, (words, ended)
    _models_of_a_whole_log(seeds)
    examples = make_examples(seeds / "features.csv", seeds / "feature-labels.csv")
    LambdaMART(trees=2).fit(examples).save(seeds / "ranker")
    DNN(layers=(3,), dropout=(0.0,), epochs=1).fit(examples).save(seeds / "net")


def _logs(seeds: Path) -> None:
    rows = {key: values[:60] for key, values in session_log(sessions=20).items()}
    rows["device"] = [("m", "d")[session % 2] for session in rows["session_id"]]
    for name in ("rows.csv", "rows.tsv", "rows.csv.gz", "rows.ndjson", "rows.ndjson.gz", "rows.parquet"):
        write(seeds / name, rows)
    other = small_log(rows=30, seed=5)
    write(seeds / "other.csv", other)
    for name in ("counted.csv", "counted.ndjson", "counted.parquet"):
        write(seeds / name, counted(other))
    for name in ("lists.ndjson", "lists.parquet"):
        write(seeds / name, LISTS)
    for name, table in (("ids", CLICKED_IDS), ("places", CLICKED_PLACES), ("nested", NESTED)):
        write(seeds / f"lists-{name}.ndjson", table)
        write(seeds / f"lists-{name}.parquet", table)
    in_text = {key: [json.dumps(v) if isinstance(v, list) else v for v in values] for key, values in LISTS.items()}
    write(seeds / "lists.csv", in_text)
    for name, events in (("ubi", [*_ubi_queries(), *_ubi_events()]), ("ga4", _ga4_events())):
        (seeds / f"{name}.ndjson").write_text("".join(json.dumps(event) + "\n" for event in events))
    pq.write_table(pa.Table.from_pylist(_ubi_queries()), seeds / "ubi-queries.parquet")
    pq.write_table(pa.Table.from_pylist(_ubi_events()), seeds / "ubi-events.parquet")
    pq.write_table(pa.Table.from_pylist(_ga4_events()), seeds / "ga4.parquet")
    (seeds / "yandex.tsv").write_text(YANDEX)
    (seeds / "yandex.tsv.gz").write_bytes(gzip.compress(YANDEX.encode(), mtime=0))
    for name in ("histogram.csv", "histogram.parquet"):
        write(seeds / name, HISTOGRAM)
    actions = ({"index": {"_index": "ubi"}} if i % 2 == 0 else event for event in _ubi_events() for i in range(2))
    queries = (json.dumps(query) + "\n" for query in _ubi_queries())
    (seeds / "ubi-bulk.ndjson").write_text("".join([*queries, *(json.dumps(line) + "\n" for line in actions)]))
    keys = sorted(set(zip(rows["query_id"], rows["doc_id"], strict=True)))
    judged = {"query_id": [q for q, _ in keys], "doc_id": [d for _, d in keys], "grade": [d % 3 for _, d in keys]}
    for name in ("judgments.csv", "judgments.ndjson", "judgments.parquet"):
        write(seeds / name, judged)
    told = {"feature_1": [d % 2 for _, d in keys], "feature_2": [d / 7 for _, d in keys]}
    write(seeds / "log-features.csv", {**{key: judged[key] for key in ("query_id", "doc_id")}, **told})


def _models_of_a_whole_log(seeds: Path) -> None:
    """A model of a log that is large enough for one: documents differ in appeal, or queries in all that they can."""
    position, relevant = np.arange(300) % 5 + 1, np.arange(300) % 3 == 0
    clicks = (np.where(relevant, 0.8, 0.2) / np.sqrt(position) * 100).astype(int) + np.arange(300) % 7
    log = Counts.from_arrays(np.arange(300) // 5, np.arange(300), position, np.full(300, 100), clicks)
    fit = MixtureCorrection("binomial").fit(log)
    assert fit.model
    appeal = {"attention": None, "shares": False, "appeal": True, "numbers": (3.0, 0.5)}
    all_effects = {"attention": "examination", "shares": True, "appeal": True, "numbers": (-1.0, 0.5, -1.0, 3.0, 0.5)}
    for name, effects in (("appeal", appeal), ("queries", all_effects)):
        model: Any = dataclasses.replace(fit.model, **effects)
        dataclasses.replace(fit, model=model).write(seeds / f"{name}-model.json")
    rows, after = np.arange(300), np.stack([np.where(relevant, 0.1, 0.8), np.where(relevant, 0.9, 0.2)])
    table = FeatureTable.open((rows // 5, rows, np.stack([relevant, position], axis=1)))
    folds = table.learn(rows, rows // 5, rows // 5 % 5, np.full((2, 300), 0.5), after).folds
    featured = Featured(fit.model, table.names, folds, 1.0, 0.0, 0.1, 0.01, 300, 60, 0, 0)
    both = dataclasses.replace(fit, featured=featured)
    both.write(seeds / "featured-model.json")
    scale = Scale(0.0, 1.0, (0.0, 1.0))
    meaning, weights = Meaning(((0.8, 0.2), (0.1, 0.9))), Weights(0.5, 1.0, 0.7, 0.1, 0.1, 0.2, (0.3,))
    calibration = Calibration(scale, meaning, weights, "weights", 60, 300)
    judged = Judged(calibration, ("0", "1"), ("1", "2"), (1, 0), 0)
    dataclasses.replace(both, judged=judged).write(seeds / "judged-featured-model.json")


def _ubi_events() -> list[dict[str, Any]]:
    shown = [("1", "a", 1), ("1", "b", 2), ("2", "a", 0), ("2", "c", 1), ("3", "h", 1)]
    made = [("impression", *row) for row in shown] + [("click", "1", "b", 2), ("click", "3", "h", 1)]
    return [
        {
            "action_name": action,
            "query_id": id,
            "timestamp": "2026-11-01T10:00:00Z",
            "event_attributes": {"object": {"object_id": doc}, "position": {"ordinal": ordinal}},
        }
        for action, id, doc, ordinal in made
    ]


def _ubi_queries() -> list[dict[str, Any]]:
    found = [("1", "shoes", ["a", "x", "b"]), ("2", "shoes", ["a", "c"]), ("3", "hats", ["h", "i"])]
    return [
        {"query_id": id, "user_query": text, "timestamp": "2026-11-01T10:00:00Z", "query_response_hit_ids": hits}
        for id, text, hits in found
    ]


def _ga4_events() -> list[dict[str, Any]]:
    made: list[tuple[str, list[tuple[str, int]], str | None]] = [
        ("view_search_results", [], "shoes"),
        ("view_item_list", [("a", 0), ("b", 1)], None),
        ("select_item", [("b", 1)], None),
        ("view_item_list", [("a", 0), ("c", 1)], "hats"),
        ("select_item", [("a", 0)], None),
    ]
    return [
        {
            "event_name": name,
            "event_timestamp": time,
            "user_pseudo_id": "u",
            "event_params": [
                {"key": "ga_session_id", "value": {"int_value": 1, "string_value": None}},
                *([{"key": "search_term", "value": {"int_value": None, "string_value": term}}] if term else []),
            ],
            "items": [{"item_id": id, "item_list_id": "s", "item_list_index": str(at)} for id, at in items],
        }
        for time, (name, items, term) in enumerate(made, start=1)
    ]


def _features(seeds: Path) -> None:
    """Features of 12 queries with 5 documents, as tables and as LETOR text, and labels that fit them."""
    keys = [(query, document) for query in range(1, 13) for document in range(5)]
    columns: Table = {"query_id": [q for q, _ in keys], "doc_id": [d for _, d in keys]}
    for i in range(FEATURES):
        columns[f"feature_{i + 1}"] = [round((q * 7 + d * (i + 3)) % 11 / 10, 3) for q, d in keys]
    columns["grade"] = [(q + d) % 3 for q, d in keys]
    for name in ("features.csv", "features.ndjson", "features.parquet"):
        write(seeds / name, columns)
    rows = zip(*columns.values(), strict=True)
    letor = [
        f"{grade} qid:{q} " + " ".join(f"{i}:{value}" for i, value in enumerate(values, start=1)) + f" # {d}"
        for q, d, *values, grade in rows
    ]
    (seeds / "letor.txt").write_text("\n".join(letor) + "\n")
    (seeds / "letor.txt.gz").write_bytes(gzip.compress((seeds / "letor.txt").read_bytes(), mtime=0))
    labels = {key: columns[key] for key in ("query_id", "doc_id")} | {"relevance": [g / 2 for g in columns["grade"]]}
    (seeds / "feature-labels.csv").write_text(csv_text(labels))
    collection = seeds / "collection"
    collection.mkdir()
    more = [
        line.replace(f"qid:{q} ", f"qid:{q + 100 * again} ")
        for again in range(2)
        for line in letor
        for q in [int(line.split("qid:")[1].split()[0])]
    ]
    for name in ("train", "vali", "test"):
        (collection / f"{name}.txt").write_text("\n".join(more) + "\n")


def vocabulary(data: bytes, name: str) -> set[str] | None:
    """All texts and numbers that a file holds, as text; None if no other reader than clickmix's can say."""
    if name.endswith(".gz"):
        data = gzip.decompress(data)
    if ".parquet" in name:
        try:
            return _scalars(pq.read_table(io.BytesIO(data)).to_pylist())
        except Exception:  # whatever pyarrow thinks of a damaged file
            return None
    text = data.decode(errors="replace")
    words = {*re.split(r"[,;|\s]", text), *text.replace("\r", "\n").split("\n"), text}
    for line in text.splitlines():
        with contextlib.suppress(ValueError, RecursionError):
            words |= _scalars(json.loads(line))
    for delimiter in ",\t;| ":
        with contextlib.suppress(csv.Error):
            for row in csv.reader(io.StringIO(text, newline=""), delimiter=delimiter):
                words.update(row)
    return words


def _scalars(value: Any) -> set[str]:
    if isinstance(value, dict):  # a query can be one, as it is written without blanks
        return set().union({json.dumps(value, separators=(",", ":"))}, *map(_scalars, value.values()))
    if isinstance(value, list):
        return set().union(*map(_scalars, value)) if value else set()
    if isinstance(value, bytes):
        return {value.decode(errors="replace")}
    if isinstance(value, float) and value.is_integer():
        return {str(value), str(int(value)), str(value).replace("e+", "e")}
    return {str(value)}
