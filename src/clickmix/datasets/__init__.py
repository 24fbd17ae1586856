"""Learning-to-rank collections for simulated users to browse: readers, a synthetic one, the production ranker."""
