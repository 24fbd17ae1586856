"""Corrections: Counts -> Labels. Each has `fit(counts)`, which returns a fit with `label(counts)`."""
