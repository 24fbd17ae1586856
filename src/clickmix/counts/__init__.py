"""Counts: impressions and clicks per query, document, position and context.   log -> counts -> groups"""

from clickmix.counts.counts import Counts, count

__all__ = ["Counts", "count"]
