"""Counts: impressions and clicks per query, document, position and context.   log -> counts -> groups

These defaults and choices are here so that the command's help needs no engine.
"""

MOST_CONTEXTS = 1_000  # default limit
BAD_ROWS = ("fail", "skip")
