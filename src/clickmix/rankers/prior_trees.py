"""Trees that learn from features how relevant documents are before any click.   features, probabilities -> LearnedTrees

They maximise the likelihood of the clicks under the mixture: one run of boosting, whose gradient is the mean relevance
before clicks minus the mean after. Trees see one document at a time; a ranker learns more by comparing the documents of
a query. So the scores of rankers, trained on labels made without features, are one more feature. There are five folds
of queries. The trees of fold k learn from the other four: each ranker learns from two of them and scores the other two;
documents of fold k get the mean of both rankers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from clickmix.corrections.mixture_based.featured import FOLDS, FoldTrees, JoinedDocuments, LearnedTrees
from clickmix.errors import InputError
from clickmix.features import Split, make_examples, open_features
from clickmix.features.ids import Ids, checked_ids, codes, id_kind
from clickmix.features.matrix import check_features
from clickmix.mixtures.hierarchical.tilt import gained, slope
from clickmix.rankers.lambdamart import REPEATABLE, LambdaMART, lightgbm_module
from clickmix.rankers.lightgbm_text import END, OWN_OBJECTIVE, RANKS, checked_trees
from clickmix.types import Floats, Ints

Matrix = NDArray[np.float32]

RANKER = LambdaMART(trees=100, leaves=15, rate=0.1)
MOST_TREES, PATIENCE = 500, 20
LEAST_CURVE = 1e-6
PARAMETERS = {
    "num_leaves": 8,
    "learning_rate": 0.1,
    "min_data_in_leaf": 50,
    "min_sum_hessian_in_leaf": 1.0,
    "lambda_l2": 5.0,
    "feature_fraction": 0.5,
    "seed": 0,
    **REPEATABLE,
    "metric": "none",
    "num_threads": 1,
}


@dataclass(frozen=True, eq=False)
class FeatureTable:
    """Documents with features, found by id; `where` names them in messages."""

    split: Split
    where: str

    @classmethod
    def open(cls, features: Any) -> FeatureTable:
        """Open features in any layout that `open_features` reads."""
        lightgbm_module()  # raise before the log is read
        split = open_features(features)
        check_features(split.features, name="the features", gaps=True)
        return cls(split, str(features) if isinstance(features, str) or hasattr(features, "suffix") else "the features")

    @property
    def names(self) -> tuple[str, ...]:
        return self.split.feature_names

    def join(self, query_id: Any, doc_id: Any) -> JoinedDocuments:
        logged = [checked_ids("the log", name, ids) for name, ids in (("query_id", query_id), ("doc_id", doc_id))]
        known = [self.split.query_id[self.split.query], self.split.doc_id]
        (query, own_query), (doc, own_doc) = (codes(*both) for both in zip(logged, known, strict=True))
        every = np.concatenate([query, own_query]), np.concatenate([doc, own_doc])
        pair, first, number = np.unique(
            every[0] * (every[1].max() + 1) + every[1], return_index=True, return_inverse=True
        )
        row = np.full(len(pair), -1)
        row[number[len(query) :]] = np.arange(len(own_query))
        if not (row[number[: len(query)]] >= 0).any():
            raise self._not_found(logged)
        query_ids, doc_ids = (_together(a, b)[first] for a, b in zip(logged, known, strict=True))
        return JoinedDocuments(
            query_ids, doc_ids, np.unique(every[0][first], return_inverse=True)[1], row, number[: len(query)]
        )

    def _not_found(self, logged: list[Ids]) -> InputError:
        query, doc = self.split.query_id[0], self.split.doc_id[0]
        kinds = [" and ".join(map(id_kind, ids)) for ids in (logged, (self.split.query_id, self.split.doc_id))]
        return InputError(
            f"{self.where}: no document of the log has features. The log has query {logged[0][0]!r}, document "
            f"{logged[1][0]!r} ({kinds[0]}), the features have query {query!r}, document {doc!r} ({kinds[1]}). "
            "Ids must be the same, and of the same type."
        )

    def learn(self, row: Ints, query: Ints, fold: Ints, before: Floats, after: Floats) -> LearnedTrees:
        """Grow trees for every fold; all folds keep the number that makes held-out clicks likeliest."""
        features = np.asarray(self.split.features[row])
        label = np.linspace(0, 1, len(after)) @ after
        growing = []
        for k in range(FOLDS):
            rankers, said = _ranked(features, query, fold, label, k)
            growing.append(_Growing(np.column_stack([features, said]), fold != k, before, after, rankers))
        sums = np.zeros(len(row))
        best, number, kept = 0.0, 0, sums.copy()
        for trees in range(1, MOST_TREES + 1):
            for k, each in enumerate(growing):
                sums[fold == k] = each.grow()
            value = float(gained(before, after, sums).sum())
            if value > best:
                best, number, kept = value, trees, sums.copy()
            if trees == number + PATIENCE:
                break
        return LearnedTrees(tuple(each.trees(number) for each in growing), kept)

    def sums(self, folds: tuple[FoldTrees, ...], names: tuple[str, ...], row: Ints, fold: Ints) -> Floats:
        """The sums of trees for some rows, each by its fold's trees."""
        split = open_features(self.split, names=names)
        found = np.zeros(len(row))
        for k, trees in enumerate(folds):
            own = fold == k
            features = np.asarray(split.features[row[own]])
            if len(features):
                said = [
                    _booster(text, features.shape[1], RANKS).predict(features, num_threads=1) for text in trees.rankers
                ]
                wide = np.column_stack([features, np.mean(said, axis=0) if said else np.zeros(len(features))])
                found[own] = _booster(trees.prior, wide.shape[1], OWN_OBJECTIVE).predict(wide, num_threads=1)
        return found


def _together(first: Ids, second: Ids) -> Any:
    """Ids of both, as text if their kinds differ."""
    same = first.dtype.kind == second.dtype.kind
    return np.concatenate([first, second] if same else [first.astype(np.str_), second.astype(np.str_)])


def _ranked(features: Matrix, query: Ints, fold: Ints, label: Floats, k: int) -> tuple[tuple[str, ...], Floats]:
    """Two rankers for fold k, and a score for each document, by the rankers that were not trained on it."""
    halves = [np.isin(fold, [(k + i) % FOLDS for i in part]) for part in ((1, 2), (3, 4))]
    texts, said = [], np.zeros(len(label))
    for half, other in zip(halves, halves[::-1], strict=True):
        rows = np.flatnonzero(half)
        try:
            examples = make_examples((query[rows], rows, features[rows]), (query[rows], rows, label[rows]))
            fitted = RANKER.fit(examples)
        except InputError:  # no two documents of a query differ, or no tree could be split
            return (), np.zeros(len(label))
        texts.append(fitted.trees_text)
        said[other] += fitted.score(features[other])
        said[fold == k] += fitted.score(features[fold == k]) / 2
    return tuple(texts), said


class _Growing:
    """Trees that learn from some documents, and their sums for the others."""

    def __init__(self, features: Any, learning: Any, before: Floats, after: Floats, rankers: tuple[str, ...]) -> None:
        lightgbm = lightgbm_module()
        self._before, self._after, self._rankers = before[:, learning], after[:, learning], rankers
        data = lightgbm.Dataset(features[learning], np.zeros(int(learning.sum())), free_raw_data=True)
        self._booster = lightgbm.Booster(PARAMETERS, data)
        self._held = np.zeros(int((~learning).sum()))
        self._booster.add_valid(data.create_valid(features[~learning], self._held), "held")

    def grow(self) -> Floats:
        """Grow one more tree; return the sums for the documents that are held out."""
        self._booster.update(fobj=self._downhill)
        self._booster.eval_valid(feval=self._look)
        return self._held

    def _downhill(self, sums: Floats, data: Any) -> tuple[Floats, Floats]:
        rising, falling = slope(self._before, self._after, sums)
        return -rising, falling + LEAST_CURVE

    def _look(self, sums: Floats, data: Any) -> tuple[str, float, bool]:
        self._held = np.asarray(sums)
        return "held", 0.0, True

    def trees(self, number: int) -> FoldTrees:
        """The rankers and the first `number` trees."""
        text, end, _ = self._booster.model_to_string(num_iteration=max(number, 1)).partition(END)
        return FoldTrees(self._rankers, text + end)


def _booster(text: str, features: int, objective: str) -> Any:
    trees = text.count("\nTree=")
    checked = checked_trees(
        text.encode(), features=features, trees=trees, where="the model's trees for features", objective=objective
    )
    return lightgbm_module().Booster(model_str=checked)
