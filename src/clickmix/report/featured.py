"""Features in words: what they say about a log's documents, and whether labels use it.   Featured -> sentences"""

from __future__ import annotations

from typing import Any

from clickmix.corrections.mixture_based.featured import CLEARLY, FEWEST_QUERIES, Featured
from clickmix.errors import several


def feature_values(featured: Featured) -> dict[str, Any]:
    """Raw values for `--json`."""
    return {
        "used": featured.helps,
        "features": len(featured.names),
        "documents": featured.documents,
        "queries": featured.queries,
        "gained": featured.gained,
        "gained_error": featured.gained_error,
        "without_features": featured.without,
        "never_shown": featured.unshown,
    }


def feature_sentences(featured: Featured) -> list[str]:
    """What features say, and which documents have none or were never shown."""
    learned = f"{several(len(featured.names), 'feature')} of {several(featured.documents, 'document')}"
    if featured.queries < FEWEST_QUERIES:
        return [
            f"Features are not used: they cover only {several(featured.queries, 'query', 'queries')} of the log, "
            f"and {FEWEST_QUERIES} are needed to see whether they help."
        ]
    gain = f"held-out clicks gain {featured.gained:.5f} ± {featured.gained_error:.5f} in log-likelihood per document"
    if not featured.helps:
        return [
            f"Features are not used: with {learned}, {gain}, and {CLEARLY:g} standard errors are needed. "
            "Labels are the same as without features; documents that were never shown have none."
        ]
    without = f"{several(featured.without, 'document')} of the log had no features, and got the mean score."
    unshown = (
        f"{several(featured.unshown, 'document')} with features were never shown: their labels rest on features "
        "alone, and their intervals are wide."
    )
    return [
        f"Features give each document its own prior, learned from {learned}, always in other queries; {gain}.",
        *([without] if featured.without else []),
        *([unshown] if featured.unshown else []),
    ]
