"""Documents of a log and their features, found by query and document.   features, ids -> Documents"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from clickmix.errors import InputError, SettingError
from clickmix.features import open_features
from clickmix.features.ids import checked_ids, codes
from clickmix.features.matrix import check_features
from clickmix.features.split import offsets_of
from clickmix.types import Ints

Probability = Literal["sigmoid", "soft-min-max"]


@dataclass(frozen=True, eq=False)
class DocumentFeatures:
    """The features of a log's documents; query i has the rows offsets[i] to offsets[i + 1]."""

    features: NDArray[np.float32]
    offsets: Ints


def check_probability(probability: Probability) -> None:
    """Refuse what is not one of the choices."""
    if probability not in get_args(Probability):
        raise SettingError(f"probability {probability!r}: expected one of {', '.join(get_args(Probability))}.")


def find_features(features: Any, query_id: NDArray[Any], doc_id: NDArray[Any]) -> DocumentFeatures:
    """The features of these documents, in the same order; raises if one has none, or if all are equal."""
    split = open_features(features)
    query, doc = checked_ids("the log", "query_id", query_id), checked_ids("the log", "doc_id", doc_id)
    queries = codes(split.query_id[split.query], query)
    docs = codes(split.doc_id, doc)
    width = int(docs[1].max(initial=docs[0].max(initial=0))) + 1
    known, wanted = queries[0] * width + docs[0], queries[1] * width + docs[1]
    order = np.argsort(known, kind="stable")
    place = np.minimum(np.searchsorted(known[order], wanted), len(known) - 1)
    rows = order[place]
    missing = known[rows] != wanted
    if missing.any():
        raise _no_features(query, doc, missing)
    matrix = np.asarray(split.features[rows])
    check_features(matrix, name="the features of the log's documents")
    if (matrix == matrix[0]).all():
        raise InputError(
            f"The features of all {len(matrix):,} documents of the log are equal, so they say nothing. Give features "
            "that differ between documents."
        )
    return DocumentFeatures(matrix, offsets_of(query))


def _no_features(query: NDArray[Any], doc: NDArray[Any], missing: NDArray[np.bool_]) -> InputError:
    first = int(missing.argmax())
    kinds = " and ".join("a whole number" if ids.dtype.kind in "iu" else "text" for ids in (query, doc))
    return InputError(
        f"No features for query {query[first]}, document {doc[first]} of the log ({missing.sum():,} of {len(doc):,} "
        f"documents have none; the ids are {kinds}). Pass features of every document of the log; ids must be of the "
        "same type."
    )
