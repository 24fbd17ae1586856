"""Losses of the DNN: the formulas written out, padding that changes nothing, steps as torch's own optimiser's."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import oracles_rankers_dnn as oracles
from clickmix.features.normalisation import Normalisation
from clickmix.rankers import network
from clickmix.rankers.batches import Batch, prepare
from clickmix.rankers.losses import LOSSES
from clickmix.rankers.network import Network, initial_weights, padded
from examples_rankers_dnn import nonlinear

torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install 'clickmix[dnn]'")

SIZES = np.array([1, 2, 5, 9, 30])
FIRST = np.concatenate([[0], np.cumsum(SIZES)])


def drawn(seed: int, relevance: str) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    scores = rng.normal(0, 3, SIZES.sum())
    labels = {"any": rng.random(SIZES.sum()), "grades": rng.integers(0, 5, SIZES.sum()) / 4}
    return scores, labels[relevance]


def mask_of(sizes: Any) -> Any:
    return torch.from_numpy(np.arange(max(sizes)) < np.asarray(sizes)[:, None])


def losses(name: str, scores: Any, relevance: Any, sizes: Any) -> tuple[Any, Any]:
    mask = mask_of(sizes)
    s, y = (padded(torch.from_numpy(part), mask) for part in (scores, relevance))
    total, weight = LOSSES[name](s, y, mask)
    return total.numpy(), weight.numpy()


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("relevance", ["any", "grades"])
@pytest.mark.parametrize("name", LOSSES)
def test_a_loss_is_its_formula_written_out(name: str, relevance: str, seed: int) -> None:
    s, y = drawn(seed, relevance)
    expected = [oracles.LOSSES[name](s[a:b], y[a:b]) for a, b in pairwise(FIRST)]
    total, weight = losses(name, s, y, SIZES)
    assert total == pytest.approx([t for t, _ in expected], rel=1e-12, abs=1e-12)
    assert weight == pytest.approx([w for _, w in expected], rel=1e-12)


@pytest.mark.parametrize("query", range(len(SIZES)))
@pytest.mark.parametrize("name", LOSSES)
def test_padding_changes_neither_loss_nor_gradient(name: str, query: int) -> None:
    s, y = (torch.from_numpy(part) for part in drawn(7, "any"))
    documents = slice(FIRST[query], FIRST[query + 1])
    together, alone = s.clone().requires_grad_(), s[documents].clone().requires_grad_()
    mask = mask_of(SIZES)
    totals, _ = LOSSES[name](padded(together, mask), padded(y, mask), mask)
    total, _ = LOSSES[name](alone[None], y[documents][None], mask_of(SIZES[[query]]))
    totals.sum().backward()
    total.sum().backward()
    assert totals[query].item() == pytest.approx(total.item(), rel=1e-12, abs=1e-12)
    assert together.grad[documents].numpy() == pytest.approx(alone.grad.numpy(), rel=1e-10, abs=1e-12)


@pytest.mark.parametrize("name", LOSSES)
def test_the_order_of_documents_does_not_matter(name: str) -> None:
    s, y = drawn(8, "any")
    shuffled = np.random.default_rng(0).permutation(30)
    last = losses(name, s[-30:], y[-30:], [30])
    again = losses(name, s[-30:][shuffled], y[-30:][shuffled], [30])
    assert again[0] == pytest.approx(last[0], rel=1e-12)
    assert again[1] == pytest.approx(last[1], rel=1e-12)


@pytest.mark.parametrize("name", LOSSES)
def test_extreme_scores_give_finite_losses_and_gradients(name: str) -> None:
    scores = torch.tensor([[1e4, -1e4, 0.0, 1e4]], requires_grad=True)
    total, _ = LOSSES[name](scores, torch.tensor([[0.0, 1.0, 0.5, 0.2]]), mask_of([4]))
    total.sum().backward()
    assert np.isfinite(total.detach().numpy()).all()
    assert np.isfinite(scores.grad.numpy()).all()


@pytest.mark.parametrize(("name", "expected"), [("sigmoid", 2 * np.log(2)), ("softmax", 0.0), ("lambda", 0.0)])
def test_nothing_relevant_weighs_nothing(name: str, expected: float) -> None:
    total, weight = losses(name, np.zeros(2), np.zeros(2), [2])
    assert total == pytest.approx(expected)
    assert weight == 0


def batch_of_examples() -> Batch:
    examples = nonlinear(5, queries=30)
    prepared = prepare(examples, normalisation=Normalisation.fit(examples.features))
    (batch,) = prepared.batches(queries=30)
    return batch


def built() -> Network:
    return Network.build(initial_weights(5, (8, 4), rng=np.random.default_rng(0)), seed=0)


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("largest_gradient", [0.05, 1e6])
def test_steps_are_those_of_torch(name: str, largest_gradient: float) -> None:
    batch, ours = batch_of_examples(), built()
    weights = [torch.tensor(w, requires_grad=True) for w in ours.numpy()]
    optimiser = torch.optim.Adagrad(weights, lr=0.05)
    mask = mask_of(batch.sizes)
    for _ in range(3):
        ours.learn(batch, loss=LOSSES[name], dropout=(), learning_rate=0.05, largest_gradient=largest_gradient)
        layers = list(zip(weights[::2], weights[1::2], strict=True))
        h = torch.from_numpy(batch.features)
        for W, b in layers[:-1]:
            h = torch.nn.ELU()(h @ W + b)
        s = (h @ layers[-1][0] + layers[-1][1])[:, 0]
        total, weight = LOSSES[name](padded(s, mask), padded(torch.from_numpy(batch.relevance), mask), mask)
        optimiser.zero_grad()
        (total.sum() / weight.sum()).backward()
        torch.nn.utils.clip_grad_norm_(weights, largest_gradient)
        optimiser.step()
    # The sums of squares show how long the gradients were; a step alone does not, being the same for g and 2 g.
    sums = [float(optimiser.state[w]["sum"].sum()) for w in weights]
    assert [float(s.sum()) for s in ours.squares] == pytest.approx(sums, rel=1e-3, abs=1e-9)
    # The last bias moves all scores alike: only the sigmoid's loss sees it, for the others its gradient is rounding.
    seen = slice(None) if name == "sigmoid" else slice(-1)
    expected = np.concatenate([w.detach().numpy().ravel() for w in weights])
    assert np.concatenate([w.ravel() for w in ours.numpy()])[seen] == pytest.approx(expected[seen], abs=1e-4)


@pytest.mark.parametrize("name", LOSSES)
def test_a_loss_in_pieces_is_that_of_the_whole(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    settings: dict[str, Any] = {"dropout": (), "learning_rate": 0.05, "largest_gradient": 10.0}
    batch, whole, pieces = batch_of_examples(), built(), built()
    expected = whole.learn(batch, loss=LOSSES[name], **settings)
    monkeypatch.setattr(network, "PAIRS_AT_ONCE", 700)
    assert len(list(network.slices_of_queries(batch.sizes))) > 3
    found = pieces.learn(batch, loss=LOSSES[name], **settings)
    assert [float(x) for x in found] == pytest.approx([float(x) for x in expected], rel=1e-5)
    # The first step of Adagrad is the learning rate times the gradient's sign, so a gradient near 0 may differ more.
    assert np.median(np.abs(pieces.numpy()[0] - whole.numpy()[0])) < 1e-6


@pytest.mark.parametrize("sizes", [[1], [3, 3, 3], [1, 5, 9, 100], [2000, 5000]])
def test_slices_are_all_queries_once(sizes: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(network, "PAIRS_AT_ONCE", 20)
    pieces = [range(len(sizes))[queries] for queries in network.slices_of_queries(np.array(sizes))]
    assert sorted(query for piece in pieces for query in piece) == list(range(len(sizes)))
    assert all(len(piece) == 1 or len(piece) * max(sizes[query] for query in piece) ** 2 <= 20 for piece in pieces)


def test_dropout_drops_its_share_and_keeps_the_mean() -> None:
    # One layer of n units, each giving 1: the score is how many were kept, n (1 - p) on average, scaled back to n.
    n, p, documents = 400, 0.1, 500
    weights = (np.zeros((1, n)), np.ones(n), np.ones((n, 1)), np.zeros(1))
    net = Network.build(tuple(w.astype(np.float32) for w in weights), seed=1)
    scores = net.forward(torch.zeros(documents, 1), dropout=(p,)).detach().numpy()
    kept = scores * (1 - p) / n
    deviation = np.sqrt(p * (1 - p) / n)
    assert abs(kept.mean() - (1 - p)) < 5 * deviation / np.sqrt(documents)
    assert abs(kept.std() / deviation - 1) < 5 / np.sqrt(2 * documents)
    assert net.scores(np.zeros((1, 1), np.float32)) == n


def test_batches_are_every_query_once_in_an_order_that_is_drawn() -> None:
    examples = nonlinear(6, queries=50)
    examples.features[:, 0] = examples.query
    prepared = prepare(examples, normalisation=Normalisation(np.zeros(5), np.ones(5)))
    batches = list(prepared.batches(queries=16, rng=np.random.default_rng(0)))
    seen = [np.split(batch.features[:, 0], np.cumsum(batch.sizes)[:-1]) for batch in batches]
    assert all(len(set(query.tolist())) == 1 for batch in seen for query in batch)
    order = [float(query[0]) for batch in seen for query in batch]
    natural = [float(query.features[0, 0]) for query in prepared.batches(queries=1)]
    assert sorted(order) == sorted(natural)
    assert order != natural
    assert [len(batch.sizes) for batch in batches] == [16, 16, 16, 2]
    expected = sorted(zip(prepared.features.tolist(), prepared.relevance.tolist(), strict=True))
    found = [pair for b in batches for pair in zip(b.features.tolist(), b.relevance.tolist(), strict=True)]
    assert sorted(found) == expected
