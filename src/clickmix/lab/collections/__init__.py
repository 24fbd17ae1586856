"""Learning-to-rank collections for simulated users: readers, a synthetic one, the production ranker."""

from clickmix.lab.collections.load import collection_files, load_collection
from clickmix.lab.collections.production import production_ranker, top_rows
from clickmix.lab.collections.synthetic import synthetic_collection

__all__ = [
    "collection_files",
    "load_collection",
    "production_ranker",
    "synthetic_collection",
    "top_rows",
]
