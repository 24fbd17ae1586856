"""Rankers: labels and features in, scores out.

`make_examples(features, labels)` joins them by query and document. Settings (`LambdaMART`, `DNN`) have
`fit(examples, *, vali=None, seed=0, progress=None)`, which returns a trained ranker. A ranker has `score(features)`,
one number per row of a matrix, and `save(folder)`; `load_ranker(folder)` reads it again.
"""

from clickmix.rankers.folder import check_folder
from clickmix.rankers.insight import DependencePoint, Importance
from clickmix.rankers.lambdamart import FittedLambdaMART, LambdaMART
from clickmix.rankers.ranker import RANKERS, Ranker, RankerSettings, load_ranker

__all__ = [
    "RANKERS",
    "DependencePoint",
    "FittedLambdaMART",
    "Importance",
    "LambdaMART",
    "Ranker",
    "RankerSettings",
    "check_folder",
    "load_ranker",
]
