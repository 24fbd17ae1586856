"""Cascades: groups by the pattern of relevant documents above, found while walking down.   Counts -> MixtureFit

In the dependent click model people go on after a click or stop, in the user browsing model it matters where they last
clicked. Clicks follow relevance, so in both all documents at one position with the same pattern of relevant documents
above them have one chance of being examined. How that chance depends on the pattern differs, and is left to the clicks.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from clickmix.corrections.fitted import MixtureFit
from clickmix.corrections.walk import check_lists, rule_from, walk, walked_positions
from clickmix.counts import Counts

Fit = Callable[[Counts, int | None], MixtureFit]


def fit_cascade(counts: Counts, fit: Fit, *, examination: str) -> MixtureFit:
    """Walk down, each position fitted with what was found above it; then all groups once more, as any other groups.

    The first position says how many grades there are: nothing stands above, so all there are examined alike.
    """
    check_lists(counts, examination)
    found: list[MixtureFit] = []

    def relevance(recent: Counts, position: int) -> str:
        here = replace(recent, table=f"(SELECT * FROM {recent.table} WHERE position = {position})")
        fitted = fit(here, found[0].grades if found else None)
        found.append(_with_prior_of(found[-1], fitted) if found and fitted.grades != found[0].grades else fitted)
        so_far = replace(found[-1], groups=tuple(group for part in found for group in part.groups), moving=1.0)
        return so_far.label(recent).query

    grouped, steps = walk(counts, walked_positions(counts), rule=rule_from, relevance=relevance)
    fitted = fit(grouped, found[0].grades)
    return replace(fitted, mixture=found[0].mixture, bics=found[0].bics, examination=examination, steps=tuple(steps))


def _with_prior_of(above: MixtureFit, fitted: MixtureFit) -> MixtureFit:
    """A position whose clicks say nothing has found no grades of its own: it takes the prior of the one above."""
    return replace(fitted, groups=tuple(replace(group, prior=above.groups[0].prior) for group in fitted.groups))
