"""Labels of a mixture the slow and obvious way: one query, one document, one grade after the other."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import expit, logit, softmax
from scipy.stats import betabinom, binom, norm

from clickmix.corrections.mixture_based.fit import MixtureFit
from clickmix.counts.counts import Counts
from clickmix.groups.places import Place
from clickmix.mixtures.log_model import LogModel

Array = np.ndarray[Any, Any]
POINTS = 161  # of attention, and of shares
REACH = 6.0  # deviations


def slow_labels(fit: MixtureFit, counts: Counts, *, queries: int | None = None) -> list[float]:
    """In order of query and document; of all queries, or of the first ones."""
    cells = counts.cells()
    first = set(sorted(set(cells["query_id"].tolist()))[:queries])
    pairs = zip(cells["query_id"].tolist(), cells["doc_id"].tolist(), strict=True)
    documents = sorted({pair for pair in pairs if pair[0] in first})
    number = {seen.place: g for g, group in enumerate(fit.groups) for seen in group.places}
    seen: dict[Any, list[list[tuple[int, int, int]]]] = {}
    for query, document in documents:
        rows = np.flatnonzero((cells["query_id"] == query) & (cells["doc_id"] == document))
        places = [Place(int(cells["position"][i]), tuple(str(cells[key][i]) for key in counts.context)) for i in rows]
        counted = [(int(cells["impressions"][i]), int(cells["clicks"][i])) for i in rows]
        of_document = [(number[place], n, c) for place, (n, c) in zip(places, counted, strict=True)]
        seen.setdefault(query, []).append(of_document)
    if fit.model is None:
        return [_by_groups(fit, document) for query in seen.values() for document in query]
    return [label for query in seen.values() for label in _of_query(fit.model, query)]


def _by_groups(fit: MixtureFit, document: list[tuple[int, int, int]]) -> float:
    """Prior plus the evidence of a document's cells, every group by itself."""
    prior, evidence = np.zeros(fit.grades - 1), np.zeros(fit.grades - 1)
    for g, n, c in document:
        shares = np.array(fit.groups[g].prior)
        prior += n * np.log(shares[1:] / shares[0])
        evidence += fit.groups[g].mixture.evidence(grades=fit.grades).log_ratios(n, c)
    shown = sum(n for _, n, _ in document)
    return float(np.linspace(0, 1, fit.grades) @ softmax([0, *(prior / shown + evidence)]))


def _of_query(model: LogModel, documents: list[list[tuple[int, int, int]]]) -> list[float]:
    """All documents of a query, for every attention and share; then the mean over what their clicks say of both."""
    numbers = dict(zip(model.effects.numbers, model.numbers, strict=True))
    u, log_u = _grid(numbers.get("log s"))
    v, log_v = _grid(numbers.get("log t"))
    x = np.linspace(0, 1, model.grades)
    logs = log_u[:, None] + log_v[None, :]
    means = []
    for document in documents:
        joint = np.zeros((len(u), len(v), model.grades))
        for g, grade in enumerate(x):
            joint[:, :, g] = (_prior(model, document)[g] + grade * v)[None, :]
            for place, n, c in document:
                joint[:, :, g] += np.array([_log_density(model, numbers, place, grade, at, n, c) for at in u])[:, None]
        prior = np.array([[np.logaddexp.reduce(_prior(model, document) + x * share) for share in v]])
        means.append(softmax(joint, axis=2) @ x)
        logs = logs + np.logaddexp.reduce(joint, axis=2) - prior
    weights = softmax(logs)
    return [float((weights * mean).sum()) for mean in means]


def _grid(log_deviation: float | None) -> tuple[Array, Array]:
    if log_deviation is None:
        return np.zeros(1), np.zeros(1)
    deviation = np.exp(log_deviation)
    at = np.linspace(-REACH * deviation, REACH * deviation, POINTS)
    return at, norm.logpdf(at, 0, deviation)


def _prior(model: LogModel, document: list[tuple[int, int, int]]) -> Array:
    """Prior logits of all grades: by position, the mean over impressions, and by how often it was shown."""
    shown = sum(n for _, n, _ in document)
    logits = [0.0]
    for row in model.prior:
        where, often = row[: len(model.where)], (0.0, *row[len(model.where) :])
        at = [np.interp(np.log(model.positions[place]), model.where, where) for place, _, _ in document]
        mean = sum(n * value for (_, n, _), value in zip(document, at, strict=True)) / shown
        logits.append(mean + float(np.interp(np.log(shown), model.often, often)))
    return np.array(logits)


def _log_density(
    model: LogModel, numbers: dict[str, float], place: int, grade: float, u: float, n: int, c: int
) -> float:
    low, high = expit(model.low[place]), expit(model.high[place])
    rate = (1 - grade) * low + grade * high
    if model.attention == "odds":
        rate = expit(logit(rate) + u)
    if model.attention == "examination":
        rate = rate * min(np.exp(u), expit(numbers["cap"]) / max(low, high))
    if not model.appeal:
        return float(binom.logpmf(c, n, rate))
    alike = np.exp(min(numbers["d"] - numbers["k"] * np.log(rate), 14.0))
    return float(betabinom.logpmf(c, n, rate * alike, (1 - rate) * alike))
