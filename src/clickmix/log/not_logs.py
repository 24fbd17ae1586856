"""Files of clickmix that are not logs, and which command takes them.   paths, sources -> advice

`clickmix inspect` says what a file is; an error about a log that has the wrong columns says the same.
"""

from __future__ import annotations

import shlex
from collections.abc import Collection
from pathlib import Path
from typing import Literal

from clickmix.storage.documents import PARAMETERS_KIND, THETA_KIND, document_kind

Table = Literal["labels", "histogram", "scores", "judgments"]
WHAT: dict[Table, str] = {
    "labels": "labels, not a log. Pass the log they come from; clickmix export and clickmix train take labels",
    "histogram": "a histogram, not a log. Fit it: clickmix fit {} -o model.json",
    "scores": "scores of documents, as clickmix score writes them, not a log. Pass the log",
    "judgments": "judgments, not a log. Pass them beside one: clickmix compare LOG --judgments {}",
}


def table_kind(columns: Collection[str]) -> Table | None:
    """Which table of clickmix, other than a log or counts, has these columns."""
    names = {column.lower() for column in columns}
    if {"documents", "position"} <= names and "query_id" not in names:
        return "histogram"
    if names & {"position", "clicked", "doc_ids"} or not {"query_id", "doc_id"} <= names:
        return None
    if "relevance" in names:
        return "labels"
    if {"score", "rank"} <= names:
        return "scores"
    return "judgments" if names == {"query_id", "doc_id", "grade"} else None


def advice_on_table(file: str, columns: Collection[str]) -> str:
    """What a table is instead of a log, and what takes it; empty if it may be a log."""
    kind = table_kind(columns)
    return f"This looks like {WHAT[kind].format(shlex.quote(file))}." if kind else ""


def advice_on_document(file: Path) -> str:
    """What a JSON file is instead of a log, and what takes it; empty if it is none of clickmix's."""
    kind, path = document_kind(file), shlex.quote(str(file))
    if kind == "clickmix model":
        return f"a {kind}, not a log. Label a log with it: clickmix label LOG --model {path} -o labels.parquet."
    if kind == "clickmix ranker":
        folder = shlex.quote(str(file.parent))
        return f"a {kind}, not a log. Order documents with it: clickmix score --ranker {folder} --features FEATURES."
    if kind in (PARAMETERS_KIND, THETA_KIND):
        return f"{kind}, not a log. {using_parameters(file, kind)}"
    return f"a {kind}, not a log." if kind else ""


def using_parameters(file: Path, kind: str) -> str:
    """How to label a log with a file of bias parameters."""
    correction = "ips" if kind == THETA_KIND else "affine"
    return (
        f"Label a log with them: clickmix debias LOG --correction {correction} --parameters {shlex.quote(str(file))} "
        "-o labels.parquet."
    )
