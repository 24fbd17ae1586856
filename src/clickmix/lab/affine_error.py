r"""How far affine labels are from the truth, with true and with wrong parameters.   parameters -> expected error

People click a document of relevance r at the rate p = alpha r + beta; its label with the estimated parameters alpha',
beta' is (c/n - beta') / alpha'. With many impressions c/n becomes p, and the error becomes

    |(alpha r + beta - beta') / alpha' - r| = |r (alpha' - alpha) + beta' - beta| / alpha'

The paper's equation 5 is its mean over r = 1 with chance gamma and r = 0 otherwise: relevance fixed per document, many
impressions. For graded users r is grade / largest grade, each with its chance. With n impressions the exact error is a
sum over the binomial, and never 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral

import numpy as np
from numpy.typing import ArrayLike

from clickmix.corrections.parameters import LEAST_ALPHA, BiasParameters
from clickmix.errors import SettingError
from clickmix.types import Floats

LARGEST_SUM = 50_000_000  # terms: 400 MB


def affine_error(
    true: BiasParameters,
    estimated: BiasParameters,
    *,
    relevance: ArrayLike = (0.0, 1.0),
    chances: ArrayLike,
    impressions: int | None = None,
) -> Floats:
    """Expected |label - relevance| of affine labels at every position, before clipping.

    A document has `relevance[i]` with chance `chances[i]`: (0, 1) with (1 - gamma, gamma) is the paper's equation 5,
    (0, .25, .5, .75, 1) is a graded user. Without `impressions` it is the limit of many.

    >>> true, estimated = BiasParameters([0.3], [0.1]), BiasParameters([0.4], [0.1])
    >>> affine_error(true, estimated, chances=(0.8, 0.2)).round(3).tolist()
    [0.05]
    """
    r, w = _checked(relevance, chances)
    if true.positions != estimated.positions:
        raise SettingError(
            f"True parameters for {true.positions} positions, estimated ones for {estimated.positions}. "
            "Give both for the same positions."
        )
    if impressions is None:
        return _limit(true, estimated, r) @ w
    whole = isinstance(impressions, Integral) and impressions >= 1
    if not whole or true.positions * len(r) * (impressions + 1) > LARGEST_SUM:
        raise SettingError(f"impressions={impressions}: expected a whole number from 1, and small enough to sum over.")
    return _exact(true, estimated, r, impressions) @ w


def _limit(true: BiasParameters, estimated: BiasParameters, r: Floats) -> Floats:
    """|r (alpha' - alpha) + beta' - beta| / alpha', positions x relevances."""
    off = np.multiply.outer(estimated.alpha - true.alpha, r) + (estimated.beta - true.beta)[:, None]
    return np.asarray(np.abs(off) / estimated.alpha[:, None])


def _exact(true: BiasParameters, estimated: BiasParameters, r: Floats, n: int) -> Floats:
    """sum over c of C(n, c) p^c (1 - p)^(n - c) |(c/n - beta') / alpha' - r|, positions x relevances."""
    from scipy.stats import binom  # here, because it takes a second to load

    c = np.arange(n + 1)
    p = np.minimum(np.multiply.outer(true.alpha, r) + true.beta[:, None], 1.0)
    label = (c / n - estimated.beta[:, None]) / estimated.alpha[:, None]
    error = np.abs(label[:, None, :] - r[None, :, None])
    total: Floats = (binom.pmf(c, n, p[:, :, None]) * error).sum(axis=2)
    return total


@dataclass(frozen=True, eq=False)
class WrongParameters:
    """Expected error if alpha is off by alpha_off[i] (a row) and beta by beta_off[j] (a column), relative to the truth.

    NaN for impossible parameters: alpha + beta above 1.
    """

    alpha_off: Floats
    beta_off: Floats
    error: Floats

    def __str__(self) -> str:
        """A table: alpha's error in rows, beta's in columns; - for impossible parameters."""
        head = ["alpha \\ beta", *(f"{off:+.0%}" for off in self.beta_off)]
        cells = [["-" if np.isnan(error) else f"{error:.3f}" for error in row] for row in self.error]
        rows = [head, *([f"{off:+.0%}", *row] for off, row in zip(self.alpha_off, cells, strict=True))]
        return "\n".join(" ".join(cell.rjust(len(head[0]) if j == 0 else 6) for j, cell in enumerate(r)) for r in rows)


def wrong_parameters(
    true: BiasParameters,
    *,
    position: int,
    relevance: ArrayLike = (0.0, 1.0),
    chances: ArrayLike,
    off: ArrayLike = (-0.5, -0.2, -0.1, 0.0, 0.1, 0.2, 0.5),
    impressions: int | None = None,
) -> WrongParameters:
    """How much wrong parameters hurt at one position: the error for every pair of relative errors `off`.

    >>> view = wrong_parameters(BiasParameters([0.3], [0.1]), position=1, chances=(0.8, 0.2), off=(0.0, 0.5))
    >>> view.error.round(3).tolist()
    [[0.0, 0.167], [0.067, 0.178]]
    """
    if not 1 <= position <= true.positions:
        raise SettingError(f"position={position}: the parameters are for positions 1 to {true.positions}.")
    off = np.asarray(off, dtype=np.float64)
    alpha, beta = true.alpha[position - 1], true.beta[position - 1]
    i, j = (index.ravel() for index in np.meshgrid(np.arange(len(off)), np.arange(len(off)), indexing="ij"))
    a, b = alpha * (1 + off[i]), beta * (1 + off[j])
    can_be = (a >= LEAST_ALPHA) & (b >= 0) & (a + b <= 1)
    error = np.full(len(a), np.nan)
    repeated = BiasParameters(np.full(int(can_be.sum()), alpha), np.full(int(can_be.sum()), beta))
    error[can_be] = affine_error(
        repeated, BiasParameters(a[can_be], b[can_be]), relevance=relevance, chances=chances, impressions=impressions
    )
    return WrongParameters(off, off, error.reshape(len(off), len(off)))


def _checked(relevance: ArrayLike, chances: ArrayLike) -> tuple[Floats, Floats]:
    r, w = np.asarray(relevance, dtype=np.float64), np.asarray(chances, dtype=np.float64)
    if r.ndim != 1 or r.shape != w.shape:
        raise SettingError(f"relevance of shape {r.shape}, chances of shape {w.shape}: expected one chance for each.")
    if not ((r >= 0) & (r <= 1)).all() or not (w >= 0).all() or not abs(w.sum() - 1) < 1e-9:
        raise SettingError("Expected relevance from 0 to 1, and chances from 0 that add up to 1.")
    return r, w
