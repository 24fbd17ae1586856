"""Counts: impressions and clicks per query, document, position and context.   log -> counts -> groups

The command's help states these defaults and choices before any engine is loaded.
"""

MOST_CONTEXTS = 1_000  # that a log may have by default
BAD_ROWS = ("fail", "skip")
