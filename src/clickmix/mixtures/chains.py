"""Chains of groups, each held to its neighbours by springs: what all of them together say of each.   -> Solved

Group i knows J_i of its parameters x_i and pulls with r_i; a spring P_i holds S_i x_i to S_(i+1) x_(i+1), per kind of
parameter. What a group and all before it know together, f_i, reaches the next one only through the spring between them:
    K = (f_i + S_i P_i S_i)^-1,   B = S_i P_i S_(i+1),
    f_(i+1) = J_(i+1) + S_(i+1) P_i S_(i+1) - B K B,   e_(i+1) = r_(i+1) + B K e_i
With h_i and g_i the same from the other end, and C = S f_i^-1 S + S h_(i+1)^-1 S what both sides leave open of a step,
    inverse_ii = (f_i + h_i - J_i)^-1,   solution_i = inverse_ii (e_i + g_i - r_i),
    variance of a step = P^-1 - P^-1 (C + P^-1)^-1 P^-1,   log determinant = sum of log |f_i + S_i P_i S_i|.
Where nothing is known C is huge, of whatever sign rounding gives it, and the variance is the spring's own.
The time grows with the number of groups, not with its third power.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from clickmix.types import Floats, Ints


@dataclass(frozen=True)
class Solved:
    """Solution (group x kind), blocks of the inverse (group x kind x kind), log determinant.

    `step_variance` (spring x kind) is of the differences of S x that springs hold together.
    """

    solution: Floats
    inverse: Floats
    step_variance: Floats
    log_determinant: float


def solve_chains(chains: Ints, known: Floats, pull: Floats, springs: Floats, scale: Floats) -> Solved:
    """Chains side by side that nothing holds together: `chains` (chain x step) are groups, -1 behind a chain's end.

    `known` is J (group x kind x kind), `pull` r and `scale` the diagonal of S (group x kind); `springs` P (spring x
    kind) come chain by chain.
    """
    kinds, there = known.shape[1], chains.T >= 0
    eye = np.eye(kinds)
    # Step x end x chain: the walk goes along the first axis, from both ends. Behind a chain's end stands a one.
    own = np.concatenate([known, eye[None]])[chains.T]
    pulled, s = (np.concatenate([part, np.zeros((1, kinds))])[chains.T] for part in (pull, scale))
    p = np.zeros((len(there) - 1, there.shape[1], kinds))
    p.swapaxes(0, 1)[there[1:].T] = springs
    start, end, link = (_from_both_ends(part) for part in (p * s[:-1] ** 2, p * s[1:] ** 2, p * s[:-1] * s[1:]))
    # Seen from the other end, a spring starts where it ended.
    start[:, 1], end[:, 1] = end[:, 1], start[:, 1].copy()
    start, end, link = start[..., None] * eye, end[..., None] * eye, link[..., None]
    f, e = _from_both_ends(own), _from_both_ends(pulled[..., None])
    for i in range(len(link)):
        by = link[i] * np.linalg.inv(f[i] + start[i])
        f[i + 1] += end[i] - by * link[i].swapaxes(-1, -2)
        e[i + 1] += by @ e[i]
    (f, h), (e, g) = ((both[:, 0], both[::-1, 1]) for both in (f, e))
    inverse = np.linalg.inv(f + h - own)
    solution = (inverse @ (e + g - pulled[..., None]))[..., 0]
    last = np.concatenate([start[:, 0], np.zeros_like(f[:1])])
    order = np.argsort(chains.T[there])
    return Solved(
        solution[there][order],
        inverse[there][order],
        _step_variance(f[:-1], h[1:], s, p).swapaxes(0, 1)[there[1:].T],
        float(np.linalg.slogdet(f + last)[1].sum()),
    )


def _step_variance(f: Floats, h: Floats, s: Floats, p: Floats) -> Floats:
    """From 0 to what the spring alone would leave open; behind a chain's end, where no spring is, anything."""
    alone = 1 / np.where(p > 0, p, 1.0)
    before, after = (
        np.linalg.inv(side) * by[..., :, None] * by[..., None, :] for side, by in ((f, s[:-1]), (h, s[1:]))
    )
    left = np.linalg.inv(before + after + alone[..., None] * np.eye(p.shape[-1]))
    return np.clip(alone - alone**2 * np.diagonal(left, axis1=-2, axis2=-1), 0, alone)


def _from_both_ends(steps: Floats) -> Floats:
    return np.stack([steps, steps[::-1]], axis=1)
