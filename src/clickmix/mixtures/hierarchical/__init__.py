"""One model of clicks for every log: grades, places that share strength, queries and documents that differ.

rows -> Cells -> Model -> Labels
"""

from clickmix.mixtures.hierarchical.cells import Cells, Places, join_places
from clickmix.mixtures.hierarchical.choose import choose
from clickmix.mixtures.hierarchical.fit import fit
from clickmix.mixtures.hierarchical.held import Halved
from clickmix.mixtures.hierarchical.label import Labels, label, predict
from clickmix.mixtures.hierarchical.problem import Effects, Model

__all__ = [
    "Cells",
    "Effects",
    "Halved",
    "Labels",
    "Model",
    "Places",
    "choose",
    "fit",
    "join_places",
    "label",
    "predict",
]
