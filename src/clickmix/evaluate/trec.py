"""TREC runs: query ids, document ids and scores in, the lines other evaluation programs read out."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from clickmix.errors import InputError, SettingError
from clickmix.evaluate.rankings import Ids, checked_numbers, distinct_ids, positions
from clickmix.types import Floats, Ints


def trec_run(query_ids: ArrayLike, doc_ids: ArrayLike, scores: ArrayLike, *, tag: str = "clickmix") -> str:
    """One line `query Q0 document rank score tag` per document: queries ascending, best score (rank 1) first.

    Documents with the same score are in the order trec_eval gives them: their ids, as text, from last to first.

    >>> print(trec_run([7, 7], ["a", "b"], [0.5, 2.0]), end="")
    7 Q0 b 1 2.0 clickmix
    7 Q0 a 2 0.5 clickmix
    """
    (queries, query), (documents, document) = distinct_ids(query_ids, "query_ids"), distinct_ids(doc_ids, "doc_ids")
    s = checked_numbers(scores, "scores")
    if not len(query) == len(document) == len(s):
        raise InputError(
            f"{len(query)} query ids, {len(document)} document ids, {len(s)} scores: expected one of each per document."
        )
    query_text, document_text = _text(queries, "query_ids"), _text(documents, "doc_ids")
    _check_once(query, document, query_text, document_text)
    if not _is_one_word(tag):
        raise SettingError(f"tag: {tag!r} found, expected text without blanks: they separate the columns of a run.")
    return _lines(query, document, s, query_text, document_text, tag)


def _lines(query: Ints, document: Ints, s: Floats, queries: list[str], documents: list[str], tag: str) -> str:
    place = np.argsort(np.argsort(np.array(documents, dtype=np.str_)))  # of each document id among all, as text
    order = np.lexsort((-place[document], -s, query))
    query, document, s = query[order], document[order], s[order]
    rows = zip(query.tolist(), document.tolist(), positions(query).tolist(), s.tolist(), strict=True)
    return "".join(f"{queries[q]} Q0 {documents[d]} {p} {score!r} {tag}\n" for q, d, p, score in rows)


def _text(ids: Ids, what: str) -> list[str]:
    text = [str(each) for each in ids.tolist()]
    for each in text:
        if not _is_one_word(each):
            raise InputError(
                f"{what}: {each!r} cannot stand in a run, whose columns are separated by blanks. Rename it."
            )
    return text


def _is_one_word(text: str) -> bool:
    return text.split() == [text]


def _check_once(query: Ints, document: Ints, queries: list[str], documents: list[str]) -> None:
    order = np.lexsort((document, query))
    twice = (np.diff(query[order]) == 0) & (np.diff(document[order]) == 0)
    if twice.any():
        row = order[int(np.argmax(twice))]
        raise InputError(
            f"Document {documents[document[row]]!r} stands twice in query {queries[query[row]]!r}. "
            "Give each document of a query one score."
        )
