"""Judgments in words: what they say about a log's clicks, and whether labels use it.   Judged -> sentences"""

from __future__ import annotations

from typing import Any

import numpy as np

from clickmix.corrections.mixture_based.calibration import CLEARLY, FEWEST_QUERIES, Calibration, Gain
from clickmix.corrections.mixture_based.judged import Judged
from clickmix.errors import several
from clickmix.storage.records import encode


def judgment_values(judged: Judged) -> dict[str, Any]:
    """Raw values for `--json`."""
    return {**encode(judged.calibration), "missing": judged.missing}


def judgment_sentences(judged: Judged) -> list[str]:
    """What judgments say about the clicks."""
    unseen = f"Judged documents that are not in the log, and are ignored: {judged.missing:,}."
    return [*_in_words(judged.calibration), *([unseen] if judged.missing else [])]


def judged_sentence(judged: Judged | None, query_id: object, doc_id: object) -> list[str]:
    """What a judge said about a document, if one did."""
    pairs = zip(judged.queries, judged.documents, judged.steps, strict=True) if judged else ()
    said = [step for query, document, step in pairs if (query, document) == (str(query_id), str(doc_id))]
    if judged is None or not said:
        return []
    return [
        f"Judged: {judged.calibration.scale.steps[said[0]]:.2f} on the judges' scale. The label mainly follows this "
        "judgment."
    ]


def _in_words(calibration: Calibration) -> list[str]:
    """What was learned from judgments, and whether it is used."""
    made, scale = calibration, calibration.scale
    judged = f"Judgments: {several(made.documents, 'document')} of {several(made.queries, 'query', 'queries')}"
    means = f"grade {scale.lowest:g} means relevance 0, {scale.highest:g} means 1"
    if made.gained is None or made.related is None:
        return [
            f"{judged}: too few to weigh evidence, which takes {FEWEST_QUERIES} queries. Judged documents follow their "
            f"judgment ({means}); all other labels are the same as without judgments."
        ]
    gain = f"squared errors in held-out judged queries fall by {_of(made.gained)}"
    if made.used == "weights":
        by = made.weights
        return [
            f"{judged} ({means}) weigh the evidence: a click counts {by.click:.2f} times as much as without judgments, "
            f"a skip {by.skip:.2f} times, the prior {by.prior:.2f} times; log impressions add {by.exposure:+.2f}, "
            f"log position {by.position:+.2f}. "
            f"In a query that is clicked half as much as usual a skip counts {by.skip - by.attention / 2:.2f} times.",
            f"Used, because {gain}.",
        ]
    kept = f"Weighing clicks, skips and the prior differently is not used: {gain}; {CLEARLY:g} times the ± is needed."
    if made.used == "meaning":
        low, high = (float(np.dot(made.meaning.shares[end], scale.steps)) for end in (0, -1))
        return [
            f"{judged} ({means}) set the scale of labels, in the same order: what clicks call not relevant is judged "
            f"{low:.2f} on average, what they call relevant {high:.2f}.",
            kept,
        ]
    same = "all other labels are the same as without judgments"
    said = [f"{judged}. Judged documents follow their judgment ({means}); {same}."]
    if not made.related.clear:
        said.append(
            "Clicks say nothing clear about these judgments: with them, squared errors in held-out judged queries fall "
            f"by {_of(made.related)}. Check the ids, or judge more queries."
        )
    return [*said, kept]


def _of(gain: Gain) -> str:
    return f"{gain.value:.3f} ± {gain.error:.3f}"
