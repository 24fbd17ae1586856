"""Patterns: what is above a document, as one digit per position, and which patterns share a group.

    patterns of a log -> the rule of one position
A digit is the relevance of the document shown there in quarters, 0 to 4, or 0 if nothing was shown. `040` means that
the document at position 2 is relevant and those at 1 and 3 are not. The rules, separately at each position:

1. A pattern with enough documents (`smallest`) is a group.
2. Rarer patterns are sorted by predicted click rate, from a linear regression on their digits over all lists, and cut
   into groups of at least `BLOCK` times as many documents (or one group, if there are fewer in all), so that patterns
   with a similar effect on people are together.
3. If the rare ones are too few for a group, the least frequent patterns of 1 join them, perhaps the whole position.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from clickmix.types import Floats, Ints

LEVELS = 4  # the highest digit
SCORE_ONE = 10_000  # the score of a pattern whose predicted click rate is the mean of its position
HIGHEST_SCORE = 1_000_000
BLOCK = 4  # a group of rare patterns needs this many times as many documents, because they are not quite alike


@dataclass(frozen=True)
class Step:
    """The rule of one position: which patterns are their own groups, and how the others are grouped.

    A pattern's score is `score[0]` + the sum of digit times `score[i]`, in whole numbers; `bounds` are the highest
    scores of all groups of rare patterns except the last.
    """

    position: int
    frequent: tuple[str, ...]
    score: tuple[int, ...]
    bounds: tuple[int, ...]

    def group(self, pattern: str) -> str:
        """The name of a pattern's group: itself, or "rare" and a number, from the lowest expected click rate up.

        >>> step = Step(3, ("00",), (10_000, -900, -100), (8_000,))
        >>> step.group("00"), step.group("40"), step.group("04")
        ('00', 'rare 1', 'rare 2')
        """
        if pattern in self.frequent:
            return pattern
        return f"rare {1 + bisect_left(self.bounds, pattern_score(self.score, pattern))}"

    def group_sql(self) -> str:
        """SQL for the group of a column `pattern`."""
        rare = "1" + "".join(
            f" + (CASE WHEN {score_sql(self.score)} > {bound} THEN 1 ELSE 0 END)" for bound in self.bounds
        )
        if not self.frequent:
            return f"concat('rare ', {rare})"
        listed = ", ".join(f"'{pattern}'" for pattern in self.frequent)
        return f"CASE WHEN pattern IN ({listed}) THEN pattern ELSE concat('rare ', {rare}) END"


def pattern_score(score: Sequence[int], pattern: str) -> int:
    """The score of a pattern, kept within bounds, so that the number of different scores is bounded, too."""
    total = score[0] + sum(int(digit) * w for digit, w in zip(pattern, score[1:], strict=True))
    return min(max(total, 0), HIGHEST_SCORE)


def score_sql(score: Sequence[int]) -> str:
    """SQL for the score of a column `pattern`."""
    digits = "".join(f" + {w} * CAST(substr(pattern, {i}, 1) AS BIGINT)" for i, w in enumerate(score[1:], 1) if w)
    return f"least(greatest({score[0]}{digits}, 0), {HIGHEST_SCORE})"


def expected_clicks(moments: Floats, clicks: Floats) -> tuple[int, ...]:
    """Weights of the score: a regression of clicks on a constant and the digits, with one row per impression.

    `moments` are the sums of n x x' with x = (1, digits), `clicks` those of c x. Weights are scaled so that the mean
    rate of the position is `SCORE_ONE`. A digit that is always 0 has no weight.
    """
    if clicks[0] == 0:
        return (SCORE_ONE, *(0 for _ in clicks[1:]))
    rate = clicks[0] / moments[0, 0]
    weights = np.linalg.lstsq(moments / moments[0, 0], clicks / moments[0, 0], rcond=1e-9)[0]
    return tuple(int(w) for w in np.rint(np.clip(weights / rate * SCORE_ONE, -HIGHEST_SCORE, HIGHEST_SCORE)))


def form_step(
    position: int, patterns: Mapping[str, int], *, score: Sequence[int], scores: tuple[Ints, Ints], smallest: int
) -> Step:
    """The rule of a position from its frequent `patterns` (documents of each) and all its `scores`.

    `scores` are the distinct scores in order, and how many documents have each, frequent patterns included.
    """
    values, documents = scores[0], scores[1].astype(np.int64)
    frequent = dict(sorted(patterns.items(), key=lambda item: (-item[1], item[0])))
    rare = int(documents.sum()) - sum(frequent.values())
    while frequent and 0 < rare < smallest:
        rare += frequent.popitem()[1]
    for pattern, count in frequent.items():
        documents[np.searchsorted(values, pattern_score(score, pattern))] -= count
    return Step(position, tuple(frequent), tuple(score), _bounds(values, documents, BLOCK * smallest))


def _bounds(values: Ints, documents: Ints, smallest: int) -> tuple[int, ...]:
    """The highest score of each block of `smallest` documents or more, except the last, which takes the rest."""
    bounds, waiting = [], 0
    for value, count in zip(values.tolist(), documents.tolist(), strict=True):
        waiting += count
        if waiting >= smallest:
            bounds.append(int(value))
            waiting = 0
    return tuple(bounds[:-1])
