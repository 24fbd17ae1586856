"""The production ranker: LambdaMART on the grades of a few queries.   Split -> top lists that users see"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from clickmix.errors import SettingError
from clickmix.features.split import Split
from clickmix.rankers.lambdamart import REPEATABLE, lightgbm_module

TREES = 300
QUERIES = 20  # queries whose grades it learns from

PARAMETERS = {
    "objective": "lambdarank",
    "num_leaves": 31,
    "learning_rate": 0.05,
    **REPEATABLE,
    "num_threads": 1,  # twenty queries need only one
}


@dataclass(frozen=True)
class ProductionRanker:
    """A ranker better than random, with room for improvement; `query_ids` are the queries whose grades it saw."""

    query_ids: tuple[int | str, ...]
    booster: Any

    def score(self, split: Split) -> NDArray[np.float64]:
        """One score per document, higher is better."""
        scores: NDArray[np.float64] = self.booster.predict(split.features)
        return scores

    def top(self, split: Split, *, length: int) -> NDArray[np.int64]:
        """The best `length` documents of each query, as `top_rows` gives them."""
        return top_rows(split, self.score(split), length=length)


def production_ranker(train: Split, *, rng: np.random.Generator, queries: int = QUERIES) -> ProductionRanker:
    """LambdaMART on `queries` random queries of `train`, with the paper's 300 trees, 31 leaves and rate 0.05."""
    if not 1 <= queries <= train.queries:
        raise SettingError(f"queries={queries}: expected 1 to {train.queries}, the queries of the training split.")
    lightgbm = lightgbm_module()
    chosen = np.sort(rng.choice(train.queries, size=queries, replace=False))
    rows = np.flatnonzero(np.isin(train.query, chosen))
    data = lightgbm.Dataset(train.features[rows], train.grade[rows], group=train.sizes[chosen])
    parameters = {**PARAMETERS, "seed": int(rng.integers(2**31))}
    booster = lightgbm.train(parameters, data, num_boost_round=TREES)
    return ProductionRanker(tuple(train.query_id[chosen].tolist()), booster)


def top_rows(split: Split, scores: NDArray[np.floating], *, length: int) -> NDArray[np.int64]:
    """Rows of `split` by query and position, best score first; -1 if a query has fewer documents.

    Equal scores come in a fixed random order, not in that of the file, which may be sorted by grade.
    """
    if length < 1:
        raise SettingError(f"length={length}: a list has at least 1 document.")
    drawn = np.random.default_rng(0).permutation(split.documents)
    order = np.lexsort((drawn, -scores, split.query))
    place = np.arange(split.documents) - split.offsets[:-1][split.query]
    shown = place < length
    rows = np.full((split.queries, length), -1, np.int64)
    rows[split.query[shown], place[shown]] = order[shown]
    return rows
