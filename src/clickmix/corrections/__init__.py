"""Corrections: Counts -> Labels. Each has `fit(counts)`, and what that returns has `label(counts)`."""
