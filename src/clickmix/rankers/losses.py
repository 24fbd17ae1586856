"""Losses of the DNN: scores and labels of queries in; the loss of each query, and its weight in the batch, out.

Scores, relevance and mask are matrices queries × longest list (torch tensors); the mask is False at the padding, which
has no effect. Every loss gives two vectors, `total` and `weight`, one number per query; the loss of a batch is

    sum of total / max(sum of weight, 1)

so a query counts by its relevance: queries without relevant documents cannot drown out the others. If nothing is
relevant, the divisor is 1, not 0. In the formulas s is the score of a document and y its relevance.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

Tensor = Any  # torch is imported only when a DNN is used
Loss = Callable[[Tensor, Tensor, Tensor], tuple[Tensor, Tensor]]

GRADES = 4  # gains are those of the grades 0 to 4: 2^(4 y) - 1
MU = 10.0  # the factor that Wang et al. (2018) put before the second part of a pair's weight


def sigmoid_cross_entropy(scores: Tensor, relevance: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    """total = sum over documents of log(1 + e^s) - y s; weight = sum of y.

    The cross entropy between y and sigmoid(s), -y log sigmoid(s) - (1 - y) log(1 - sigmoid(s)), in log space.
    """
    s, y = scores, relevance
    each = _log_one_plus_exp(s) - y * s
    return (each * mask).sum(1), (y * mask).sum(1)


def softmax_cross_entropy(scores: Tensor, relevance: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    """total = - sum over documents i of y_i log(e^s_i / sum over j of e^s_j); weight = sum of y."""
    s, y = scores, relevance * mask
    log_sum = s.masked_fill(~mask, -math.inf).logsumexp(1, keepdim=True)
    return (y * (log_sum - s)).sum(1), y.sum(1)


def lambda_loss(scores: Tensor, relevance: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    """NDCG-Loss2++ of the LambdaLoss framework (Wang et al., CIKM 2018), each query weighted by its ideal DCG.

    total  = sum over pairs y_i > y_j of (rho_ij + mu delta_ij) (G_i - G_j) log2(1 + e^-(s_i - s_j))
    rho    = |1/D(p_i) - 1/D(p_j)|,  delta = 1/D(|p_i - p_j|) - 1/D(|p_i - p_j| + 1)
    weight = ideal DCG = sum over documents by falling G of G / D(position)

    with G = 2^(4 y) - 1, D(p) = log2(1 + p), mu = 10 and p the position of a document by its present score.
    total / weight is the published loss of one query, whose gains are divided by the ideal DCG.
    """
    s = scores
    G = ((GRADES * relevance).exp2() - 1) * mask
    inverse_D = _inverse_discounts(s)
    p = _places(s, mask)
    rho = (inverse_D[p].unsqueeze(2) - inverse_D[p].unsqueeze(1)).abs()
    distance = (p.unsqueeze(2) - p.unsqueeze(1)).abs()
    falls = inverse_D.new_zeros(len(inverse_D))
    falls[1:] = inverse_D[:-1] - inverse_D[1:]  # falls[d] = 1/D(d) - 1/D(d + 1); a document does not pair with itself
    above = (G.unsqueeze(2) - G.unsqueeze(1)).clamp(min=0) * mask.unsqueeze(1)
    pair_weight = (rho + MU * falls[distance]) * above
    each = _log_one_plus_exp(s.unsqueeze(1) - s.unsqueeze(2)) / math.log(2)
    ideal = G.sort(dim=1, descending=True).values * inverse_D[: G.shape[1]]
    return (pair_weight * each).sum((1, 2)), ideal.sum(1)


LOSSES: dict[str, Loss] = {
    "sigmoid": sigmoid_cross_entropy,
    "softmax": softmax_cross_entropy,
    "lambda": lambda_loss,
}


def _log_one_plus_exp(s: Tensor) -> Tensor:
    """log(1 + e^s); above s = 50 that is s, to the last digit of double precision."""
    import torch

    return torch.nn.functional.softplus(s, threshold=50)


def _inverse_discounts(s: Tensor) -> Tensor:
    """1 / D(p) for p = 1, 2, ... up to one position beyond the longest list; index 0 is p = 1."""
    import torch

    positions = torch.arange(1, s.shape[1] + 2, dtype=s.dtype, device=s.device)
    return 1 / (1 + positions).log2()


def _places(s: Tensor, mask: Tensor) -> Tensor:
    """The place of each document by falling score, from 0; the padding comes last."""
    order = s.detach().masked_fill(~mask, -math.inf).argsort(dim=1, descending=True, stable=True)
    return order.argsort(dim=1)
