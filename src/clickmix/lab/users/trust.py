"""Trust: how likely an examined result is to be clicked, by position and by whether it is relevant."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral

import numpy as np
import numpy.typing as npt

from clickmix.errors import SettingError
from clickmix.types import Floats


@dataclass(frozen=True, eq=False)
class Trust:
    """P(click | examined, relevant, k) and P(click | examined, not relevant, k), one entry per position k.

    People trust the ranking: near the top they also click on results that are not relevant.

    >>> Trust(relevant=[1.0, 1.0], irrelevant=[0.5, 0.1]).irrelevant.tolist()
    [0.5, 0.1]
    """

    relevant: Floats
    irrelevant: Floats

    def __init__(self, relevant: npt.ArrayLike, irrelevant: npt.ArrayLike) -> None:
        object.__setattr__(self, "relevant", probabilities(relevant, name="trust in relevant results"))
        object.__setattr__(self, "irrelevant", probabilities(irrelevant, name="trust in irrelevant results"))
        if self.relevant.shape != self.irrelevant.shape:
            raise SettingError(
                f"Trust is given for {len(self.relevant)} positions when relevant, but for "
                f"{len(self.irrelevant)} when not. Give both for the same positions."
            )

    @classmethod
    def paper(cls, positions: int) -> Trust:
        """The paper's trust: 1 - (min(k, 20) + 1)/100 when relevant, .65/min(k, 10) when not."""
        k = np.arange(1, positions_checked(positions) + 1)
        return cls(1 - (np.minimum(k, 20) + 1) / 100, 0.65 / np.minimum(k, 10))

    @classmethod
    def perfect(cls, positions: int) -> Trust:
        """An examined result is clicked if and only if it is relevant: relevance is attraction."""
        return cls(np.ones(positions_checked(positions)), np.zeros(positions))

    @property
    def positions(self) -> int:
        """The number of positions."""
        return len(self.relevant)

    def attraction(self, relevance: Floats) -> Floats:
        """P(click | examined) = e0_k + (e1_k - e0_k) * relevance, for relevance (lists, positions)."""
        K = relevance.shape[1]
        e1, e0 = self.relevant[:K], self.irrelevant[:K]
        return np.asarray(e0 + (e1 - e0) * relevance)


def probabilities(values: npt.ArrayLike, *, name: str) -> Floats:
    """A read-only array of probabilities, one per position; `name` names them in messages."""
    row = np.array(values, dtype=np.float64)
    if row.ndim != 1:
        raise SettingError(f"The {name} must be one number per position, found an array of shape {row.shape}.")
    bad = ~((row >= 0) & (row <= 1))
    if bad.any():
        k = int(bad.argmax())
        raise SettingError(f"The {name} at position {k + 1} is {row[k]:g}, expected a probability from 0 to 1.")
    row.setflags(write=False)
    return row


def positions_checked(positions: int) -> int:
    """`positions`, if lists can be that long."""
    if not (isinstance(positions, Integral) and positions >= 1):
        raise SettingError(f"Lists of {positions} positions: expected a whole number from 1.")
    return positions
