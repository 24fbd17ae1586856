"""One model of clicks for every log: grades, places that share strength, queries and documents that differ.

rows -> Cells -> Model -> EntryLabels
"""

from clickmix.mixtures.hierarchical.cells import Cells, Places, join_places
from clickmix.mixtures.hierarchical.choose import choose
from clickmix.mixtures.hierarchical.fit import fit
from clickmix.mixtures.hierarchical.label import EntryLabels, label, predict
from clickmix.mixtures.hierarchical.problem import Effects, Model
from clickmix.mixtures.hierarchical.queries import Halved

__all__ = [
    "Cells",
    "Effects",
    "EntryLabels",
    "Halved",
    "Model",
    "Places",
    "choose",
    "fit",
    "join_places",
    "label",
    "predict",
]
