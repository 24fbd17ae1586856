"""One model of clicks for every log: grades, places that share strength, queries and documents that differ.

rows -> Cells -> Model -> Labels
"""

from clickmix.lab.hierarchical.cells import Cells, Places, join_places
from clickmix.lab.hierarchical.choose import choose
from clickmix.lab.hierarchical.fit import fit
from clickmix.lab.hierarchical.held import Halved
from clickmix.lab.hierarchical.label import Labels, label, predict
from clickmix.lab.hierarchical.problem import Effects, Model

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
