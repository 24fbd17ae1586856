"""Counts: impressions and clicks per query, document, position and context.   log -> counts -> groups"""

MOST_CONTEXTS = 1_000  # that a log may have by default; the command's help says so before any engine is loaded
