"""The DNN ranker learns what it should, from the training data alone, the same way every time."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import oracles_rankers_dnn as oracles
from clickmix.errors import InputError
from clickmix.evaluate import evaluate
from clickmix.features import normalisation
from clickmix.features.normalisation import Normalisation
from clickmix.rankers.dnn import DNN, FittedDNN, best_epoch
from clickmix.rankers.losses import LOSSES
from examples_rankers_dnn import Made, made, nonlinear

torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install 'clickmix[dnn]'")

SMALL = DNN(layers=(8, 4), dropout=(0.0, 0.2), epochs=3, batch=8)
TRAIN, VALI, TEST = nonlinear(0), nonlinear(1, queries=60), nonlinear(2, queries=100)


def ndcg(scores: Any, examples: Made) -> float:
    return evaluate(scores, np.floor(4.999 * examples.relevance), examples.query, measure="ndcg@10").mean


def test_network_and_optimiser_are_the_authors() -> None:
    fit = DNN(epochs=1).fit(TRAIN)
    assert [w.shape for w in fit.weights] == [(5, 512), (512,), (512, 256), (256,), (256, 128), (128,), (128, 1), (1,)]
    assert (DNN().dropout, DNN().learning_rate, DNN().largest_gradient) == ((0, 0.1, 0.1), 4e-3, 10)
    assert DNN().loss == "sigmoid"


@pytest.mark.parametrize("loss", LOSSES)
def test_it_learns_what_no_linear_function_ranks(loss: str) -> None:
    fit = DNN(loss=loss, layers=(64, 32), dropout=(0.0, 0.1), learning_rate=0.02, epochs=30, batch=16).fit(TRAIN)
    linear, *_ = np.linalg.lstsq(TRAIN.features, TRAIN.relevance - TRAIN.relevance.mean(), rcond=None)
    assert fit.epochs[-1].loss < fit.epochs[0].loss
    assert ndcg(TEST.features @ linear, TEST) < 0.75
    assert ndcg(fit.score(TEST.features), TEST) > 0.95


def test_without_features_that_tell_the_probability_is_the_mean_label() -> None:
    same = made(np.ones((8, 1)), [0.9, 0.1, 0.4, 0.2, 0.6, 0.5, 0.3, 1.0], [3, 5])
    fit = DNN(layers=(4,), dropout=(0.0,), learning_rate=0.1, epochs=300).fit(same)
    assert 1 / (1 + np.exp(-fit.score(same.features))) == pytest.approx(np.full(8, 0.5), abs=1e-4)


def test_scores_are_those_of_the_network_written_out() -> None:
    fit = SMALL.fit(TRAIN)
    expected = oracles.scores(fit.normalisation.apply(TEST.features), fit.weights)
    assert fit.score(TEST.features) == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize("loss", LOSSES)
def test_the_same_seed_gives_the_same_scores_and_another_does_not(loss: str) -> None:
    first, again, other = (replace(SMALL, loss=loss).fit(TRAIN, seed=seed).score(TEST.features) for seed in (3, 3, 4))
    assert (first == again).all()
    assert (first != other).all()


def test_global_state_of_torch_neither_matters_nor_changes() -> None:
    torch.manual_seed(1)
    state = torch.get_rng_state()
    first = SMALL.fit(TRAIN).score(TEST.features)
    assert (torch.get_rng_state() == state).all()
    assert not torch.are_deterministic_algorithms_enabled()
    torch.manual_seed(2)
    assert (SMALL.fit(TRAIN).score(TEST.features) == first).all()


def test_every_operation_has_a_deterministic_form() -> None:
    torch.use_deterministic_algorithms(True)
    try:
        scores = replace(SMALL, loss="lambda").fit(TRAIN).score(TEST.features)
    finally:
        torch.use_deterministic_algorithms(False)
    assert (scores == replace(SMALL, loss="lambda").fit(TRAIN).score(TEST.features)).all()


def test_training_does_not_change_its_input() -> None:
    before = TRAIN.features.copy(), TRAIN.relevance.copy(), TRAIN.offsets.copy()
    SMALL.fit(TRAIN)
    assert (TRAIN.features == before[0]).all()
    assert (TRAIN.relevance == before[1]).all()
    assert (TRAIN.offsets == before[2]).all()


def test_progress_gets_the_share_of_epochs_and_the_fit_has_their_losses() -> None:
    shares: list[float] = []
    fit = SMALL.fit(TRAIN, vali=VALI, progress=shares.append)
    assert shares == [1 / 3, 2 / 3, 1]
    assert [epoch.number for epoch in fit.epochs] == [1, 2, 3]
    assert all(epoch.vali_loss is not None for epoch in fit.epochs)


def test_missing_values_count_as_the_mean_of_the_others() -> None:
    gaps = TRAIN.features.copy()
    gaps[::3, 1] = np.nan
    fit = SMALL.fit(replace(TRAIN, features=gaps))
    x = gaps[:, 1][~np.isnan(gaps[:, 1])].astype(np.float64)
    z = np.sign(x) * np.log(1 + np.abs(x))
    assert fit.normalisation.mean[1] == pytest.approx(z.mean(), abs=1e-12)
    assert fit.normalisation.deviation[1] == pytest.approx(z.std(), rel=1e-12)
    filled = TEST.features.astype(np.float64)
    filled[:, 1] = np.copysign(np.expm1(abs(z.mean())), z.mean())
    missing = TEST.features.copy()
    missing[:, 1] = np.nan
    assert fit.missing == ("feature_2",)
    assert fit.score(missing) == pytest.approx(fit.score(filled), abs=1e-6)


def test_the_vali_loss_is_that_of_the_weights_without_dropout() -> None:
    fit = replace(SMALL, epochs=1).fit(TRAIN, vali=VALI)
    s = fit.score(VALI.features)
    parts = [oracles.sigmoid_cross_entropy(s[VALI.query == q], VALI.relevance[VALI.query == q]) for q in range(60)]
    assert fit.epochs[0].vali_loss == pytest.approx(sum(t for t, _ in parts) / sum(w for _, w in parts), rel=1e-5)


def test_training_stops_early_and_keeps_the_best_epoch() -> None:
    noise = replace(TRAIN, relevance=np.random.default_rng(0).random(len(TRAIN.relevance)))
    settings = DNN(layers=(32,), dropout=(0.0,), learning_rate=0.05, epochs=40, patience=3)
    fit = settings.fit(noise, vali=VALI)
    best = best_epoch(fit.epochs)
    assert len(fit.epochs) == best + 3 < 40
    # Validation draws no random number: training that ends at the best epoch gives the weights that were kept.
    until = replace(settings, epochs=best).fit(noise)
    assert (fit.score(TEST.features) == until.score(TEST.features)).all()


@pytest.mark.parametrize(
    "examples",
    [
        made([[1, 2], [3, 4], [5, 6]], [0.2, 0.5, 1.0], [1, 1, 1]),
        made([[1, 2], [3, 4], [5, 6]], [0.5, 0.5, 0.5], [3]),
        made([[1, 2], [3, 4], [5, 6]], [0, 0, 0], [2, 1]),
        made([[1, 2], [3, 4], [5, 6]], [0, 1, 0], [0, 2, 0, 1, 0]),
        made([[7, 7]], [1], [1]),
    ],
    ids=["one document each", "all labels equal", "nothing relevant", "queries without documents", "one document"],
)
@pytest.mark.parametrize("loss", LOSSES)
def test_poor_examples_give_finite_scores(loss: str, examples: Made) -> None:
    assert np.isfinite(replace(SMALL, loss=loss).fit(examples).score(examples.features)).all()


@pytest.mark.parametrize("loss", ["softmax", "lambda"])
def test_where_nothing_is_relevant_there_is_no_order_to_learn(loss: str) -> None:
    settings = replace(SMALL, loss=loss)
    nothing = replace(TRAIN, relevance=np.zeros(len(TRAIN.relevance)))
    first, last = (replace(settings, epochs=epochs).fit(nothing) for epochs in (1, 3))
    assert [epoch.loss for epoch in last.epochs] == [0, 0, 0]
    assert (first.score(TEST.features) == last.score(TEST.features)).all()


def test_normalisation_is_that_of_the_training_documents() -> None:
    x = TRAIN.features.astype(np.float64)
    z = np.sign(x) * np.log(1 + np.abs(x))
    fit = SMALL.fit(TRAIN, vali=replace(VALI, features=1000 * VALI.features))
    assert fit.normalisation.mean == pytest.approx(z.mean(axis=0), abs=1e-12)
    assert fit.normalisation.deviation == pytest.approx(z.std(axis=0), rel=1e-12)


def test_a_document_scores_the_same_alone_and_among_others() -> None:
    fit = SMALL.fit(TRAIN)
    alone = [fit.score(TEST.features[[i]])[0] for i in range(20)]
    assert alone == pytest.approx(fit.score(TEST.features)[:20], abs=1e-6)


def test_constant_features_say_nothing_whatever_they_become() -> None:
    constant = np.where(np.arange(5) == 3, np.float32(0.1), TRAIN.features)
    fit = SMALL.fit(replace(TRAIN, features=constant))
    changed = np.where(np.arange(5) == 3, np.float32(1e9), constant)
    assert fit.normalisation.deviation[3] == 0
    assert (fit.score(changed) == fit.score(constant)).all()


def test_features_of_any_size_become_of_like_size() -> None:
    x = np.array([[0, -3e38, 5], [1, 3e38, 5], [0, 2, 5], [0, 0, 5.001]], np.float32)
    normal = Normalisation.fit(x).apply(x)
    assert normal.mean(axis=0) == pytest.approx(np.zeros(3), abs=1e-4)
    assert normal.std(axis=0) == pytest.approx(np.ones(3), rel=1e-4)
    assert Normalisation.fit(np.arange(3, dtype=np.float32)[:, None]).apply(np.array([[1e30]], np.float32)) == 10


def test_normalisation_in_pieces_is_that_of_the_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = Normalisation.fit(TRAIN.features)
    monkeypatch.setattr(normalisation, "ROWS_AT_ONCE", 7)
    pieces = Normalisation.fit(TRAIN.features)
    assert pieces.mean == pytest.approx(whole.mean, abs=1e-12)
    assert pieces.deviation == pytest.approx(whole.deviation, rel=1e-12)
    assert (whole.apply(TEST.features)[:8] == whole.apply(TEST.features[:8])).all()


def test_without_torch_the_message_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    fit = SMALL.fit(TRAIN)
    monkeypatch.setitem(sys.modules, "torch", None)
    message = "The DNN ranker needs PyTorch, which is not installed. Install it with: pip install 'clickmix[dnn]'"
    with pytest.raises(InputError, match=f"^{re.escape(message)}$"):
        SMALL.fit(TRAIN)
    with pytest.raises(InputError, match=f"^{re.escape(message)}$"):
        fit.score(TEST.features)


def test_importing_the_ranker_does_not_load_torch() -> None:
    program = "import sys, clickmix, clickmix.rankers, clickmix.rankers.dnn; print('torch' in sys.modules)"
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


def test_a_fitted_ranker_says_its_settings() -> None:
    fit = SMALL.fit(TRAIN)
    assert isinstance(fit, FittedDNN)
    assert fit.settings == SMALL


def test_the_example_of_the_docs_runs(tmp_path: Path) -> None:
    page = (Path(__file__).parents[2] / "docs" / "dnn.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"```python\n(.*?)```", page, flags=re.DOTALL)
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    program = example + "print(len(scores), np.corrcoef(scores, examples.relevance)[0, 1] > 0.5)\n"
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment, cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert done.stdout == "600 True\n"
    assert sorted(path.name for path in (tmp_path / "ranker").iterdir())[0] == "ranker.json"
