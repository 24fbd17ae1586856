"""Chains of groups, each held to its neighbours by springs: what all of them together say of each.   -> Solved

Each group has information J_i of its own and a pull r_i; a spring P_i holds group i to the next, per kind of parameter.
What a group and all before it know together, f_i, reaches the next one only through the spring between them:
    f_i = J_i + P K f_(i-1),   e_i = r_i + P K e_(i-1),   K = (f_(i-1) + P_(i-1))^-1
With h_i and g_i the same from the other end,
    inverse_ii = (f_i + h_i - J_i)^-1,   solution_i = inverse_ii (e_i + g_i - r_i),
    variance of x_(i+1) - x_i = (P_i + f_i (f_i + h_(i+1))^-1 h_(i+1))^-1,   log determinant = sum of log |f_i + P_i|.
No difference of large numbers is taken, so directions of which no group knows anything do no harm, and the time grows
with the number of groups, not with its third power.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from clickmix.mixtures.observations import Floats, Ints


@dataclass(frozen=True)
class Solved:
    """Solution (group x kind), blocks of the inverse (group x kind x kind), log determinant.

    `step_variance` is of the differences from group to group: spring x kind x kind.
    """

    solution: Floats
    inverse: Floats
    step_variance: Floats
    log_determinant: float


def solve_chains(chains: Ints, known: Floats, springs: Floats, pull: Floats) -> Solved:
    """Chains side by side that nothing holds together: `chains` (chain x step) are groups, -1 behind a chain's end.

    `known` is each group's own information (group x kind x kind); `springs` (spring x kind) come chain by chain.
    """
    kinds, there = known.shape[1], chains.T >= 0
    # Step x end x chain: the walk goes along the first axis, from both ends. Behind a chain's end stands a one.
    own = np.concatenate([known, np.eye(kinds)[None]])[chains.T]
    pulled = np.concatenate([pull, np.zeros((1, kinds))])[chains.T][..., None]
    firm = np.zeros((len(there) - 1, there.shape[1], kinds))
    firm.swapaxes(0, 1)[there[1:].T] = springs
    spring = firm[..., None] * np.eye(kinds)
    held, said = _from_both_ends(spring), _from_both_ends(np.concatenate([own, pulled], axis=-1))
    for i in range(1, len(said)):
        before, by = said[i - 1], held[i - 1]
        said[i] += by @ np.linalg.solve(before[..., :-1] + by, before)
    (f, e), (h, g) = ((end[..., :-1], end[..., -1:]) for end in (said[:, 0], said[::-1, 1]))
    inverse = np.linalg.inv(f + h - own)
    solution = (inverse @ (e + g - pulled))[..., 0]
    variance = np.linalg.inv(spring + f[:-1] @ np.linalg.inv(f[:-1] + h[1:]) @ h[1:])
    ends = np.concatenate([spring, np.zeros_like(f[:1])])
    order = np.argsort(chains.T[there])
    return Solved(
        solution[there][order],
        inverse[there][order],
        variance.swapaxes(0, 1)[there[1:].T],
        float(np.linalg.slogdet(f + ends)[1].sum()),
    )


def _from_both_ends(steps: Floats) -> Floats:
    return np.stack([steps, steps[::-1]], axis=1)
