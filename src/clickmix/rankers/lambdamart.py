"""LambdaMART on real-valued relevance, with unchanged LightGBM.   examples -> ranker -> scores

LightGBM takes only whole grades. Relevance is rounded to about a thousand levels, and `label_gain` gives the gain of
each level. Grades g / G are exactly levels, so on grades the trees are the same as LightGBM's.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from clickmix.errors import InputError, SettingError, check_whole, optional_module
from clickmix.features.examples import Examples
from clickmix.features.matrix import check_features, columns_with_gaps
from clickmix.features.split import checked_names
from clickmix.rankers.batches import check_same_features
from clickmix.rankers.folder import SavedRanker, read_folder, write_folder
from clickmix.rankers.insight import DependencePoint, Importance, partial_dependence
from clickmix.rankers.lightgbm_text import END, MOST_LEAVES, checked_trees
from clickmix.rankers.ranker import RANKERS
from clickmix.rankers.weighting import TRUNCATION, WEIGHTINGS, Weighting, query_weights
from clickmix.registry import Option
from clickmix.types import Floats, Ints, Progress

NAME = "lambdamart"
MISSING_AS = "nan"  # a missing value stays NaN: each split learns which way it goes
Gain = Literal["exponential", "linear"]
GAINS: tuple[Gain, ...] = get_args(Gain)
STEPS = 1000  # between relevance 0 and 1, or the next lower multiple of the largest grade
CUTOFF = 10  # cut-off of the nDCG that decides when to stop
MOST_THREADS = 256  # more than most machines have: a small one can read a large one's rankers
LARGEST_SEED = 2**31 - 1  # this limit and the next are LightGBM's
LONGEST_LIST = 10_000  # documents of a query
# LightGBM's settings that make no noise, and the same bytes on every run.
REPEATABLE = {"verbosity": -1, "deterministic": True, "force_row_wise": True}


@RANKERS.register(
    NAME,
    help="trees that optimise nDCG (LightGBM)",
    options=(
        Option("weighting", "How much each query counts in training.", choices=WEIGHTINGS),
        Option("threads", "Threads to train and score with; another number can give other trees.", type=int),
    ),
)
@dataclass(frozen=True)
class LambdaMART:
    """Settings of LambdaMART; the defaults are the paper's. `fit` gives a `FittedLambdaMART`.

    gain            the gain of relevance p: 2^(largest_grade p) - 1 (exponential), or largest_grade p (linear)
    weighting       how much a query weighs (see `clickmix.rankers.weighting`)
    patience        with validation labels: stop after that many trees in a row without improvement
    threads         for training and scoring; another number sums in another order and can give other trees

    >>> import numpy as np
    >>> from clickmix.features import make_examples
    >>> ids = [f"q{i // 5}" for i in range(100)], [f"d{i}" for i in range(100)]
    >>> relevance = np.tile([0.0, 0.2, 0.5, 0.7, 1.0], 20)
    >>> fitted = LambdaMART(trees=5, leaves=4).fit(make_examples((*ids, relevance[:, None]), (*ids, relevance)))
    >>> bool(np.all(np.diff(fitted.score(np.array([[0.0], [1.0]], dtype=np.float32))) > 0))
    True
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
            check_whole(name, getattr(self, name), least=least)
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
        """Train on `examples`; `vali` decides when to stop. `progress` gets the share of trees grown."""
        lightgbm = lightgbm_module()
        if type(seed) is not int or not 0 <= seed <= LARGEST_SEED:
            raise SettingError(f"seed={seed!r}: expected a whole number from 0 to {LARGEST_SEED}.")
        _check_sizes(examples)
        gaps = columns_with_gaps(examples.features)
        if vali is not None:
            _check_sizes(vali)
            check_same_features(examples.feature_names, vali, gaps=gaps)
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
            raise InputError(
                f"Nothing was learned from {len(examples.relevance):,} documents of {examples.queries:,} queries: no "
                "tree could be split, and all documents would get the same score. A leaf needs 20 documents, and "
                "features and labels must differ within queries. Use more labelled documents, or other features."
            )
        model = booster.model_to_string(num_iteration=best)
        names = examples.feature_names
        missing = tuple(name for name, gap in zip(names, gaps, strict=True) if gap)
        return FittedLambdaMART(self, len(names), best, ndcg, model, names, missing)

    def restore(self, saved: SavedRanker) -> FittedLambdaMART:
        """The trained ranker of a folder."""
        try:
            settings = LambdaMART(**saved.settings)
            trees, ndcg = int(saved.training["trees"]), tuple(float(value) for value in saved.training["ndcg"])
        except (KeyError, TypeError, ValueError):
            raise saved.damaged() from None
        names, missing, weights = saved.feature_names, saved.missing_as(MISSING_AS), saved.weights()
        checked_trees(weights, features=len(names), trees=trees, where=str(saved.folder))
        return FittedLambdaMART(settings, len(names), trees, ndcg, weights.decode(), names, missing)

    def levels(self, relevance: Floats) -> Ints:
        """Relevance as whole numbers from 0 to the number of steps."""
        return np.asarray(np.rint(relevance * self._steps).astype(np.int64))

    def label_gain(self) -> Floats:
        """The gain of each level: 2^g - 1 or g, where g = largest_grade * relevance."""
        # Multiply first: at whole grades the product is a multiple of the steps, and the division is exact.
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
        """Validation data without weights, which LightGBM would apply to nDCG, and without queries that have no gain.

        LightGBM would count those as ranked perfectly.
        """
        levels = self.levels(vali.relevance)
        _check_worth(levels, of="validation labels")
        some = np.maximum.reduceat(levels, vali.offsets[:-1]) > 0
        # LightGBM leaves tied documents in the order of rows, and files may be sorted by grade. So draw an order.
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
            **REPEATABLE,
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
    """A trained LambdaMART with this number of `trees`; `model` is LightGBM's text.

    `ndcg` is the nDCG@10 of the validation labels after each tree, without weights; empty without validation. `missing`
    are the features with missing values in training: each split has learned which way NaN goes. LightGBM's text numbers
    the features from Column_0; `feature_names` has their names in the same order.

    >>> import numpy as np
    >>> from clickmix.features import make_examples
    >>> ids = [f"q{i // 5}" for i in range(100)], [f"d{i}" for i in range(100)]
    >>> relevance = np.tile([0.0, 0.2, 0.5, 0.7, 1.0], 20)
    >>> fitted = LambdaMART(trees=5, leaves=4).fit(make_examples((*ids, relevance[:, None]), (*ids, relevance)))
    >>> fitted.trees, [each.name for each in fitted.importance()]
    (5, ['feature_1'])
    """

    settings: LambdaMART
    features: int
    trees: int
    ndcg: tuple[float, ...]
    model: str = field(repr=False)
    feature_names: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "feature_names", checked_names(self.feature_names, self.features))

    def score(self, features: NDArray[np.floating]) -> Floats:
        """One score per document (a row of the matrix), higher is better."""
        check_features(features, name="features", width=self.features, gaps=np.isin(self.feature_names, self.missing))
        return np.asarray(self._booster.predict(features, num_threads=self.settings.threads), dtype=np.float64)

    def remarks(self) -> tuple[str, ...]:
        """Which number of trees was best, if there were validation labels."""
        if not self.ndcg:
            return ()
        best = max(self.ndcg)
        return (f"{self.trees} trees rank the validation labels best: nDCG@10 of these labels {best:.4f}.",)

    def importance(self) -> tuple[Importance, ...]:
        """The gain of each feature: how much all its splits improved the objective. The strongest first."""
        gains = self._booster.feature_importance("gain")
        order = np.argsort(-gains, kind="stable")
        total = float(gains.sum())
        return tuple(
            Importance(self.feature_names[i], float(gains[i]), float(gains[i]) / (total or 1.0)) for i in order
        )

    def partial_dependence(self, features: NDArray[np.float32], name: str) -> tuple[DependencePoint, ...]:
        """How the mean score of these documents changes with one feature."""
        return partial_dependence(self.score, features, names=self.feature_names, name=name)

    def save(self, folder: str | Path) -> None:
        """Write a folder with `ranker.json` and the text model, which LightGBM can read."""
        write_folder(
            folder,
            ranker=NAME,
            feature_names=self.feature_names,
            missing=dict.fromkeys(self.missing, MISSING_AS),
            settings=asdict(self.settings),
            training={"trees": self.trees, "ndcg": list(self.ndcg)},
            weights=self.model.encode(),
            weights_name="model.txt",
        )

    @classmethod
    def load(cls, folder: str | Path) -> FittedLambdaMART:
        """The ranker in a folder; refuses one that is damaged, half-written or of another kind."""
        return LambdaMART().restore(read_folder(folder, expected=NAME))

    @property
    def trees_text(self) -> str:
        """The model without the settings of training, which follow the trees.

        Scoring does not need them, and LightGBM crashes if they are damaged; the trees were checked line by line.
        """
        trees, end, _ = self.model.partition(END)
        return trees + end

    @cached_property
    def _booster(self) -> Any:
        return lightgbm_module().Booster(model_str=self.trees_text)


def _check_sizes(examples: Examples) -> None:
    if examples.sizes.max() > LONGEST_LIST:
        query = int(np.argmax(examples.sizes))
        raise InputError(
            f"Query {examples.query_id[query]}: {examples.sizes[query]:,} labelled documents, but LightGBM takes "
            f"at most {LONGEST_LIST:,}. Leave out those shown least."
        )


def _check_worth(levels: Ints, *, of: str) -> None:
    if not levels.any():
        raise InputError(
            f"All {of} are below 1/{2 * STEPS} and are rounded to 0: there is nothing to rank by. "
            "Check the log: it probably has almost no clicks."
        )


def lightgbm_module() -> Any:
    """LightGBM, or an error that says how to install it."""
    return optional_module("lightgbm", use="LambdaMART needs LightGBM", extra="lightgbm")
