"""LambdaMART on real-valued relevance, with LightGBM as it is.   examples -> ranker -> scores

LightGBM takes whole grades only. Relevance is rounded to the nearest of about a thousand levels, and `label_gain` says
what each level is worth; grades g / G fall on levels exactly, so that on grades the trees are LightGBM's own.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from clickmix.errors import FormatError, InputError, SettingError
from clickmix.features.examples import Examples
from clickmix.features.matrix import check_features
from clickmix.rankers.folder import SavedRanker, read_folder, write_folder
from clickmix.rankers.lightgbm_text import END, MOST_LEAVES, checked_trees
from clickmix.rankers.weighting import TRUNCATION, WEIGHTINGS, Weighting, query_weights
from clickmix.types import Floats, Ints, Progress

Gain = Literal["exponential", "linear"]
GAINS: tuple[Gain, ...] = get_args(Gain)
STEPS = 1000  # between relevance 0 and 1, or the next lower multiple of the largest grade
CUTOFF = 10  # of the nDCG that decides when to stop
MOST_THREADS = 256  # a machine with few cores may repeat what a large one did, and read its rankers
LARGEST_SEED = 2**31 - 1  # LightGBM's, as the one below
LONGEST_LIST = 10_000  # LightGBM's bound on the documents of a query


@dataclass(frozen=True)
class LambdaMART:
    """Settings of LambdaMART; the defaults are the paper's. `fit` gives a `FittedLambdaMART`.

    gain            what relevance p is worth: 2^(largest_grade p) - 1 (exponential), or largest_grade p (linear)
    weighting       how much a query weighs (see `clickmix.rankers.weighting`)
    patience        with validation labels: stop when so many trees in a row did not help
    threads         of training and scoring; another number adds in another order and may give other trees
    """

    trees: int = 300
    leaves: int = 31
    rate: float = 0.05
    gain: Gain = "exponential"
    largest_grade: int = 4
    weighting: Weighting = "saturating"
    patience: int = 50
    threads: int = 1

    def __post_init__(self) -> None:
        for name, least in (("trees", 1), ("leaves", 2), ("largest_grade", 1), ("patience", 1), ("threads", 1)):
            value = getattr(self, name)
            if type(value) is not int or value < least:
                raise SettingError(f"{name}={value!r}: expected a whole number from {least}.")
        for name, most in (("leaves", MOST_LEAVES), ("largest_grade", STEPS), ("threads", MOST_THREADS)):
            if getattr(self, name) > most:
                raise SettingError(f"{name}={getattr(self, name)}: expected at most {most}.")
        if not isinstance(self.rate, (int, float)) or not 0 < self.rate <= 1:
            raise SettingError(f"rate={self.rate!r}: expected a number above 0, up to 1.")
        if self.gain not in GAINS:
            raise SettingError(f"gain={self.gain!r}: expected one of {', '.join(GAINS)}.")
        if self.weighting not in WEIGHTINGS:
            raise SettingError(f"weighting={self.weighting!r}: expected one of {', '.join(WEIGHTINGS)}.")

    def fit(
        self, examples: Examples, *, vali: Examples | None = None, seed: int = 0, progress: Progress | None = None
    ) -> FittedLambdaMART:
        """Train on `examples`; with `vali` stop when its labels say so. `progress` is told the share of trees grown."""
        lightgbm = lightgbm_module()
        if type(seed) is not int or not 0 <= seed <= LARGEST_SEED:
            raise SettingError(f"seed={seed!r}: expected a whole number from 0 to {LARGEST_SEED}.")
        _check_sizes(examples)
        if vali is not None:
            _check_sizes(vali)
            check_features(vali.features, name="vali", width=examples.features.shape[1])
        data = self._dataset(examples)
        trace: dict[str, dict[str, list[float]]] = {}
        booster = lightgbm.train(
            self._parameters(seed=seed),
            data,
            num_boost_round=self.trees,
            valid_sets=[self._stopping_set(vali, reference=data)] if vali else None,
            callbacks=self._callbacks(lightgbm, trace, stopping=vali is not None, progress=progress),
        )
        ndcg = tuple(next(iter(trace["valid_0"].values()))) if trace else ()
        best = booster.best_iteration if vali else booster.num_trees()
        if not booster.feature_importance("split", iteration=best).any():
            raise _nothing_learned(examples)
        model = booster.model_to_string(num_iteration=best)
        return FittedLambdaMART(self, examples.features.shape[1], best, ndcg, model)

    def levels(self, relevance: Floats) -> Ints:
        """Relevance as whole numbers from 0 to the number of steps."""
        return np.asarray(np.rint(relevance * self._steps).astype(np.int64))

    def label_gain(self) -> Floats:
        """What each level is worth: 2^g - 1 or g, where g = largest_grade * relevance."""
        # The product first: at whole grades it is a multiple of the steps, and the division is exact.
        grade = self.largest_grade * np.arange(self._steps + 1) / self._steps
        return grade if self.gain == "linear" else np.exp2(grade) - 1

    @property
    def _steps(self) -> int:
        return STEPS - STEPS % self.largest_grade

    def _dataset(self, examples: Examples) -> Any:
        levels, gain = self.levels(examples.relevance), self.label_gain()
        _check_worth(levels, of="labels")
        weights = None
        if self.weighting != "none":
            weights = query_weights(examples, gain[levels], weighting=self.weighting, highest=gain[-1])[examples.query]
        return lightgbm_module().Dataset(examples.features, levels, group=examples.sizes, weight=weights)

    def _stopping_set(self, vali: Examples, *, reference: Any) -> Any:
        """Without weights, which LightGBM would give to nDCG, and queries that it would count as ranked perfectly."""
        levels = self.levels(vali.relevance)
        _check_worth(levels, of="validation labels")
        some = np.maximum.reduceat(levels, vali.offsets[:-1]) > 0
        # LightGBM leaves tied documents in the order of their rows, and files may be sorted by grade: hence one drawn.
        drawn = np.lexsort((np.random.default_rng(0).permutation(len(levels)), vali.query))
        rows = drawn[some[vali.query]]
        return lightgbm_module().Dataset(vali.features[rows], levels[rows], group=vali.sizes[some], reference=reference)

    def _parameters(self, *, seed: int) -> dict[str, Any]:
        return {
            "objective": "lambdarank",
            "num_leaves": self.leaves,
            "learning_rate": self.rate,
            "label_gain": self.label_gain().tolist(),
            "lambdarank_truncation_level": TRUNCATION,
            "metric": "ndcg",
            "eval_at": [CUTOFF],
            "seed": seed,
            "verbosity": -1,
            # The same bytes on every run: one way of counting.
            "deterministic": True,
            "force_row_wise": True,
            "num_threads": self.threads,
        }

    def _callbacks(
        self, lightgbm: Any, trace: dict[str, Any], *, stopping: bool, progress: Progress | None
    ) -> list[Any]:
        callbacks = []
        if stopping:
            callbacks += [lightgbm.early_stopping(self.patience, verbose=False), lightgbm.record_evaluation(trace)]
        if progress is not None:
            callbacks.append(lambda round: progress((round.iteration + 1) / self.trees))
        return callbacks


@dataclass(frozen=True, eq=False)
class FittedLambdaMART:
    """A trained LambdaMART: `trees` is how many it has, `model` LightGBM's own text of them.

    `ndcg` is the nDCG@10 of the validation labels after each tree, without weights; empty without validation.
    """

    settings: LambdaMART
    features: int
    trees: int
    ndcg: tuple[float, ...]
    model: str = field(repr=False)

    def score(self, features: NDArray[np.floating]) -> Floats:
        """One score per document (a row of the matrix), higher is better."""
        check_features(features, name="features", width=self.features)
        return np.asarray(self._booster.predict(features, num_threads=self.settings.threads), dtype=np.float64)

    def save(self, folder: str | Path) -> None:
        """Write a folder: `ranker.json`, and LightGBM's text model beside it, which LightGBM reads as it is."""
        training = {"trees": self.trees, "ndcg": list(self.ndcg)}
        saved = SavedRanker("lambdamart", self.features, asdict(self.settings), training, self.model.encode())
        write_folder(folder, saved)

    @classmethod
    def load(cls, folder: str | Path) -> FittedLambdaMART:
        """The ranker in a folder; one that is damaged, half-written or of another kind is refused."""
        saved = read_folder(folder, expected="lambdamart")
        try:
            settings = LambdaMART(**saved.settings)
            trees, ndcg = int(saved.training["trees"]), tuple(float(value) for value in saved.training["ndcg"])
        except (KeyError, TypeError, ValueError):
            raise FormatError(f"{folder}: settings or training of another clickmix. Train it again.") from None
        checked_trees(saved.weights, features=saved.features, trees=trees, where=str(folder))
        return cls(settings, saved.features, trees, ndcg, saved.weights.decode())

    @cached_property
    def _booster(self) -> Any:
        """LightGBM's, without the settings of training, which follow the trees and which scoring does not need."""
        trees, end, _ = self.model.partition(END)
        return lightgbm_module().Booster(model_str=trees + end)


def _check_sizes(examples: Examples) -> None:
    if examples.sizes.max() > LONGEST_LIST:
        query = int(np.argmax(examples.sizes))
        raise InputError(
            f"Query {examples.query_id[query]}: {examples.sizes[query]:,} labelled documents, and LightGBM takes "
            f"at most {LONGEST_LIST:,}. Leave the least shown ones out."
        )


def _check_worth(levels: Ints, *, of: str) -> None:
    if not levels.any():
        raise InputError(
            f"All {of} are so near to 0 (below 1/{2 * STEPS}) that they are taken for 0: nothing to rank by. "
            "Look at the log; most likely it has almost no clicks."
        )


def _nothing_learned(examples: Examples) -> InputError:
    return InputError(
        f"Nothing was learned from {len(examples.relevance):,} documents of {examples.queries:,} queries: no tree "
        "could be split, and all documents would get the same score. A leaf needs 20 documents, and features and "
        "labels must differ within queries. Give more labelled documents, or other features."
    )


def lightgbm_module() -> Any:
    """LightGBM, or what to do when it is not installed."""
    try:
        import lightgbm
    except ImportError:
        raise InputError(
            "LambdaMART is LightGBM's, which is not installed. Install it with: pip install 'clickmix[lightgbm]'"
        ) from None
    return lightgbm
