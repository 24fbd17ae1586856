"""Features: documents with their features, grouped by query.   files, frames, arrays -> Split -> examples"""

from clickmix.features.examples import Examples, LeftOut, grade_examples, make_examples
from clickmix.features.files import read_features, write_features
from clickmix.features.letor import read_letor
from clickmix.features.split import Collection, Split, binarized, graded
from clickmix.features.tables import open_features

__all__ = [
    "Collection",
    "Examples",
    "LeftOut",
    "Split",
    "binarized",
    "grade_examples",
    "graded",
    "make_examples",
    "open_features",
    "read_features",
    "read_letor",
    "write_features",
]
