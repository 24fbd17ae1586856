"""A gamma position-based model with a query factor: what real logs are compared with beside published click models.

    clicks of document d of query q at place k ~ Poisson(n e_k a_d f_q),   a_d ~ Gamma(α, α),   f_q ~ Gamma(β, β)
a is integrated in closed form, f on a grid; e, α and β are those of the highest likelihood, found by EM and a search.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import minimize
from scipy.sparse import csr_array
from scipy.special import gammaln

from clickmix.corrections.click_rates import PlacedCells, position_rates

LOG_FACTORS = np.linspace(-5, 3, 41)  # logs of f
FACTORS = np.exp(LOG_FACTORS)
ROUNDS, SEARCH_EVERY, MOST_TRIED = 30, 10, 40

Floats = np.ndarray[Any, np.dtype[np.float64]]


@dataclass(frozen=True)
class GammaPositionModel:
    """Rates of places, and how alike documents and queries are."""

    rates: Floats
    documents_alike: float
    queries_alike: float

    @classmethod
    def fit(cls, seen: PlacedCells) -> GammaPositionModel:
        """EM for the rates of places, with a search for both shapes now and then."""
        model = cls(position_rates(seen), 1.0, 3.0)
        for number in range(ROUNDS):
            if number % SEARCH_EVERY == 0:
                model = model._with_shapes(seen)
            expected = seen.by_place(seen.impressions * model._factors(seen)[seen.document])
            clicks = np.maximum(seen.by_place(seen.clicks), 0.5)
            model = cls(clicks / np.maximum(expected, 1e-12), model.documents_alike, model.queries_alike)
        return model

    def click_rates(self, seen: PlacedCells, asked: PlacedCells) -> Floats:
        """The probability of a click in each asked cell, from all that was seen of its document and its query."""
        return np.asarray(self.rates[asked.place] * self._factors(seen)[asked.document])

    def _with_shapes(self, seen: PlacedCells) -> GammaPositionModel:
        def loss(logs: Floats) -> float:
            return -float(self._of_queries(seen, *np.exp(np.clip(logs, -4, 7)))[1].sum())

        found = minimize(
            loss,
            np.log([self.documents_alike, self.queries_alike]),
            method="Nelder-Mead",
            options={"maxiter": MOST_TRIED},
        )
        return GammaPositionModel(self.rates, *np.exp(np.clip(found.x, -4, 7)).tolist())

    def _of_queries(self, seen: PlacedCells, alpha: float, beta: float) -> tuple[Floats, Floats]:
        """Query x factor: its probability given all clicks of the query; and the query's log-likelihood."""
        clicks, exposed = seen.by_document(seen.clicks), seen.by_document(seen.impressions * self.rates[seen.place])
        logs = gammaln(alpha + clicks) - gammaln(alpha) + alpha * np.log(alpha)
        own = clicks[:, None] * LOG_FACTORS - (alpha + clicks)[:, None] * np.log(alpha + exposed[:, None] * FACTORS)
        queries = int(seen.query.max()) + 1
        documents = np.arange(seen.documents)
        of_query = csr_array((np.ones(seen.documents), (seen.query, documents)), shape=(queries, seen.documents))
        total = of_query @ (own + logs[:, None])
        total += beta * np.log(beta) - gammaln(beta) + beta * LOG_FACTORS - beta * FACTORS  # f's density in log f
        total += np.log(LOG_FACTORS[1] - LOG_FACTORS[0])
        highest = total.max(axis=1, keepdims=True)
        weight = np.exp(total - highest)
        sums = weight.sum(axis=1, keepdims=True)
        return weight / sums, (highest + np.log(sums)).ravel()

    def _factors(self, seen: PlacedCells) -> Floats:
        """E[a f] of each document given all that was seen."""
        alpha = self.documents_alike
        weight = self._of_queries(seen, alpha, self.queries_alike)[0]
        clicks, exposed = seen.by_document(seen.clicks), seen.by_document(seen.impressions * self.rates[seen.place])
        factors = np.zeros(seen.documents)
        for node, factor in enumerate(FACTORS):
            factors += weight[seen.query, node] * factor * (alpha + clicks) / (alpha + exposed * factor)
        return factors
