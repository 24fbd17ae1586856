"""Cascade clicks with known truth for the tests and benchmarks: the paper's DCM and UBM users on lists of ten."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

import clickmix as cm
from clickmix.lab.users import User, preset
from simulation import PRIORS

POSITIONS = 10
GRADES = np.array([0.52, 0.32, 0.12, 0.02, 0.02])  # shares of grades 0 to 4, before position
Floats = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Cascade:
    """Lists x positions: `document` and `relevance`; impressions by list, clicks by list and position."""

    user: User
    query: Floats
    document: Floats
    relevance: Floats
    impressions: Floats
    clicks: Floats

    def counts(self) -> cm.Counts:
        """As counts by list."""
        lists, positions = self.document.shape
        each = np.repeat(np.arange(lists), positions)
        frame = {
            "query_id": self.query[each],
            "list": each.astype(str),
            "doc_id": self.document.ravel(),
            "position": np.tile(np.arange(1, positions + 1), lists),
            "impressions": self.impressions[each],
            "clicks": self.clicks.ravel(),
        }
        return cm.count(pa.table(frame), lists=True)

    def rmse(self, labels: cm.Labels) -> float:
        """Error over the documents that were shown; ids are whole numbers."""
        truth = dict(zip(self.document.ravel().tolist(), self.relevance.ravel().tolist(), strict=True))
        expected = np.array([truth[document] for document in labels.doc_id.tolist()])
        return float(np.sqrt(np.mean((labels.relevance - expected) ** 2)))


def shares(kind: str) -> Floats:
    """Positions x grades: how often each grade stands at each position."""
    priors = PRIORS[:POSITIONS, None]
    if kind == "binarized":
        return np.hstack([1 - priors, priors])
    weights = GRADES * np.exp(6 * np.arange(5) * (priors - 0.03))
    return np.asarray(weights / weights.sum(axis=1, keepdims=True))


def cascade(name: str, *, queries: int, clicks: int, seed: int, kind: str = "binarized", lists: int = 1) -> Cascade:
    """The clicks of the paper's user of this name; with several `lists` a query, its documents are shown shuffled."""
    rng = np.random.default_rng(seed)
    chances = shares(kind).cumsum(axis=1)
    grade = (rng.random((queries, POSITIONS, 1)) > chances[:, :-1]).sum(axis=2)
    places = np.arange(POSITIONS) + np.zeros((queries, lists, 1))
    order = np.argsort(places if lists == 1 else places + rng.normal(0, 1.5, (queries, lists, POSITIONS)), axis=2)
    query = np.repeat(np.arange(queries), lists)
    document = query[:, None] * POSITIONS + order.reshape(-1, POSITIONS)
    relevance = grade.ravel()[document] / (chances.shape[1] - 1)
    user = preset(name)
    counts = user.simulate(relevance, clicks=clicks, rng=rng).counts()
    seen = counts.impressions > 0
    return Cascade(user, query[seen], document[seen], relevance[seen], counts.impressions[seen], counts.clicks[seen])


def simulated_sessions(name: str, *, seed: int, sessions: int = 4_000, lists: int = 60) -> pa.Table:
    """Sessions of the paper's user as a frame, lists of ten."""
    rng = np.random.default_rng(seed)
    relevance = (rng.random((lists, 10)) < PRIORS[:10]).astype(float)
    drawn = preset(name, positions=10).simulate(relevance, sessions=sessions, rng=rng)
    return pa.table(
        {
            "session_id": np.repeat(np.arange(sessions), 10),
            "query_id": np.repeat(drawn.seen, 10),
            "doc_id": drawn.documents.ravel(),
            "position": np.tile(np.arange(1, 11), sessions),
            "clicked": drawn.clicks.ravel().astype(np.int64),
        }
    )
