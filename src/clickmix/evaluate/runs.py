"""Runs: query ids, document ids and scores in; a table of ranks, or lines for other evaluation programs, out."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from clickmix.engines.duckdb import OUTPUT_OPTIONS, DuckDB
from clickmix.errors import InputError, SettingError
from clickmix.evaluate.rankings import Ids, checked_numbers, distinct_ids, positions
from clickmix.storage.atomic import write_atomically
from clickmix.types import Floats, Ints


@dataclass(frozen=True)
class Run:
    """Scored documents: queries ascending, best score (rank 1) first.

    Documents with the same score are in the order of trec_eval: by id as text, from last to first.

    >>> run = make_run(["q", "q"], ["a", "b"], [0.1, 0.9])
    >>> run.doc_id.tolist(), run.rank.tolist()
    (['b', 'a'], [1, 2])
    """

    query_id: Ids
    doc_id: Ids
    score: Floats
    rank: Ints


def make_run(query_ids: ArrayLike, doc_ids: ArrayLike, scores: ArrayLike) -> Run:
    """Rank the documents of each query by their scores; one query id, document id and score per document.

    >>> make_run(["q", "q"], ["a", "b"], [0.1, 0.9]).doc_id.tolist()
    ['b', 'a']
    """
    (queries, query), (documents, document) = distinct_ids(query_ids, "query_ids"), distinct_ids(doc_ids, "doc_ids")
    s = checked_numbers(scores, "scores")
    if not len(query) == len(document) == len(s):
        raise InputError(
            f"{len(query)} query ids, {len(document)} document ids, {len(s)} scores: expected one of each per document."
        )
    same = np.lexsort((document, query))
    twice = (np.diff(query[same]) == 0) & (np.diff(document[same]) == 0)
    if twice.any():
        row = same[int(np.argmax(twice))]
        raise InputError(
            f"Document {str(documents[document[row]])!r} appears twice in query {str(queries[query[row]])!r}. "
            "Give each document of a query one score."
        )
    place = np.argsort(np.argsort(documents.astype(np.str_)))  # of each document id among all, as text
    order = np.lexsort((-place[document], -s, query))
    query, document = query[order], document[order]
    return Run(queries[query], documents[document], s[order], positions(query))


def trec_run(query_ids: ArrayLike, doc_ids: ArrayLike, scores: ArrayLike, *, tag: str = "clickmix") -> str:
    """One line `query Q0 document rank score tag` per document, in the order of a `Run`.

    >>> print(trec_run([7, 7], ["a", "b"], [0.5, 2.0]), end="")
    7 Q0 b 1 2.0 clickmix
    7 Q0 a 2 0.5 clickmix
    """
    run = make_run(query_ids, doc_ids, scores)
    if not _is_one_word(tag):
        raise SettingError(f"tag: {tag!r} found, expected text without blanks: they separate the columns of a run.")
    columns = _words(run.query_id, "query_ids"), _words(run.doc_id, "doc_ids"), run.rank.tolist(), run.score.tolist()
    return "".join(f"{q} Q0 {d} {rank} {score!r} {tag}\n" for q, d, rank, score in zip(*columns, strict=True))


def write_scores(
    query_ids: ArrayLike, doc_ids: ArrayLike, scores: ArrayLike, path: str | Path, *, tag: str = "clickmix"
) -> None:
    """Write query_id, doc_id, score, rank as Parquet, CSV or NDJSON, by the file's name; otherwise as a TREC run.

    A table can hold any id. Blanks separate the columns of a TREC run, so it cannot hold an id with a blank.

    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> write_scores(["q", "q"], ["a", "b"], [0.1, 0.9], f"{folder.name}/scores.csv")
    >>> Path(f"{folder.name}/scores.csv").read_text().splitlines()
    ['query_id,doc_id,score,rank', 'q,b,0.9,1', 'q,a,0.1,2']
    >>> folder.cleanup()
    """
    if not Path(path).name.lower().endswith(tuple(OUTPUT_OPTIONS)):
        write_atomically(path, trec_run(query_ids, doc_ids, scores, tag=tag).encode())
        return
    run = make_run(query_ids, doc_ids, scores)
    with closing(DuckDB()) as engine:
        engine.register("run", {name: getattr(run, name) for name in ("query_id", "doc_id", "score", "rank")})
        engine.write("SELECT * FROM run", path)


def _words(ids: Ids, what: str) -> list[str]:
    text = [str(each) for each in ids.tolist()]
    for each in dict.fromkeys(text):
        if not _is_one_word(each):
            raise InputError(
                f"{what}: {each!r} does not fit into a TREC run, whose columns are separated by blanks. "
                "Write a table instead: choose a name ending in .parquet or .csv."
            )
    return text


def _is_one_word(text: str) -> bool:
    return text.split() == [text]
