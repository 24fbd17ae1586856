"""Learning-to-rank collections for simulated users to browse: readers, a synthetic one, the production ranker."""

from clickmix.datasets.cache import read_cached
from clickmix.datasets.collection import Collection, Split, binarized, graded
from clickmix.datasets.features import read_features, write_features
from clickmix.datasets.letor import read_letor
from clickmix.datasets.load import collection_files, load_collection
from clickmix.datasets.production import ProductionRanker, production_ranker, top_rows
from clickmix.datasets.synthetic import synthetic_collection

__all__ = [
    "Collection",
    "ProductionRanker",
    "Split",
    "binarized",
    "collection_files",
    "graded",
    "load_collection",
    "production_ranker",
    "read_cached",
    "read_features",
    "read_letor",
    "synthetic_collection",
    "top_rows",
    "write_features",
]
