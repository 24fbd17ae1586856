"""The hierarchical model: likelihood against enumeration, slopes against differences, invariances; the correction."""

from __future__ import annotations

import dataclasses
import importlib
import json
import re
from pathlib import Path
from statistics import median
from typing import Any

import duckdb
import numpy as np
import pytest
from scipy.special import betaln, expit

import clickmix as cm
from cell_places import cell_places
from clickmix.counts.counts import Counts
from clickmix.mixtures.hierarchical import Cells, Effects, Places, choose, fit, label, predict
from clickmix.mixtures.hierarchical.climb import climb, expected, first_models
from clickmix.mixtures.hierarchical.fit import first, with_effects, with_grades
from clickmix.mixtures.hierarchical.nodes import Nodes
from clickmix.mixtures.hierarchical.problem import Model, Problem, rates
from moving_logs import moving_counts

ROOT = Path(__file__).parents[2]
EFFECTS = [
    Effects(),
    Effects("examination"),
    Effects("odds"),
    Effects(shares=True),
    Effects(appeal=True),
    Effects("examination", shares=True, appeal=True),
]
RATES = np.array([[0.4, 0.1, 0.05, 0.03], [0.95, 0.5, 0.3, 0.2]])


def log_of(seed: int, *, queries: int = 40, contexts: int = 1, shown: int = 30) -> dict[str, np.ndarray]:
    """A log of four positions, documents at one or two of them."""
    rng = np.random.default_rng(seed)
    query = np.repeat(np.arange(queries), 4)
    relevant = rng.random(4 * queries) < np.tile([0.4, 0.3, 0.2, 0.2], queries)
    document = np.repeat(np.arange(4 * queries), contexts)
    position = np.tile(np.arange(4), queries).repeat(contexts)
    context = np.tile(np.arange(contexts), 4 * queries)
    factor = np.exp(0.4 * rng.normal(size=queries))[query][document] * np.linspace(1, 0.6, contexts)[context]
    n = rng.integers(1, shown, len(document))
    c = rng.binomial(n, np.minimum(RATES[relevant[document].astype(int), position] * factor, 0.97))
    return {"query": query, "document": document, "position": position + 1, "context": context, "n": n, "c": c}


def cells_of(log: dict[str, np.ndarray]) -> tuple[Cells, np.ndarray]:
    places, place = cell_places(log["position"], log["context"])
    queries = int(log["query"].max()) + 1
    return Cells.of_documents(places, log["query"], log["document"], place, log["n"], log["c"], queries=queries)


def started(cells: Cells, effects: Effects, grades: int = 2) -> Model:
    """A model somewhere on the way."""
    begin = first(cells) if cells.places.context.any() else first_models(cells)[0]
    start = with_effects(with_grades(begin, grades), effects)
    rng = np.random.default_rng(0)
    return Model(**{**vars(start), "x": start.x + 0.05 * np.abs(rng.normal(size=len(start.x)))})


def problem_of(cells: Cells, model: Model) -> Problem:
    spread = np.full(cells.queries, model.attention)
    around = Nodes.around(cells, np.zeros(cells.queries), spread, shares=model.shares)
    alike = not (model.effects.attention or model.effects.shares)
    return Problem(
        cells, model.knots, Nodes.one(cells) if alike else around, grades=model.grades, effects=model.effects
    )


@pytest.mark.parametrize("effects", EFFECTS, ids=str)
@pytest.mark.parametrize("grades", [2, 3])
def test_slope_is_the_difference_quotient(effects: Effects, grades: int) -> None:
    cells, _ = cells_of(log_of(1, contexts=2))
    model = started(cells, effects, grades)
    problem, vector = problem_of(cells, model), np.concatenate([model.x, model.numbers])
    some = np.random.default_rng(3).permutation(len(vector))[:12]
    looked = np.concatenate([some, np.arange(len(model.x), len(vector))])  # the effects' numbers always
    steps = 1e-6 * np.eye(len(vector))[looked]
    changes = [(problem.expect(vector + s).value - problem.expect(vector - s).value) / 2e-6 for s in steps]
    np.testing.assert_allclose(problem.expect(vector).slope[looked], changes, rtol=1e-4, atol=1e-3)


def test_slope_of_the_walk_is_the_difference_quotient() -> None:
    cells, _ = cells_of(log_of(1, contexts=2))
    model = started(cells, Effects())
    slope = model.walk.density(model.x)[1]
    steps = 1e-6 * np.eye(len(model.x))
    changes = [(model.walk.density(model.x + s)[0] - model.walk.density(model.x - s)[0]) / 2e-6 for s in steps]
    np.testing.assert_allclose(slope, changes, rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("effects", EFFECTS, ids=str)
def test_likelihood_is_that_of_enumeration(effects: Effects) -> None:
    log = log_of(2, queries=3, shown=12)
    places = Places(np.array([1.0, 2.0, 3.0, 4.0]), np.zeros(4, dtype=np.int64))
    cells, _ = Cells.of_documents(
        places, log["query"], log["document"], log["position"] - 1, log["n"], log["c"], queries=3
    )
    model = started(cells, effects)
    model = Model(
        **{
            **vars(model),
            "numbers": np.array(
                [{"log s": -0.5, "log t": -0.3}.get(n, v) for n, v in zip(effects.numbers, model.numbers, strict=True)]
            ),
        }
    )
    assert problem_of(cells, model).expect(np.concatenate([model.x, model.numbers])).value == pytest.approx(
        enumerated(log, cells, model), abs=0.05 if effects.attention or effects.shares else 1e-9
    )


def enumerated(log: dict[str, np.ndarray], cells: Cells, model: Model) -> float:
    """The log-likelihood by a fine grid over u and v and a sum over grades, document by document."""
    numbers = dict(zip(model.effects.numbers, model.numbers.tolist(), strict=True))
    u = np.linspace(-5, 5, 401) * model.attention if model.effects.attention else np.zeros(1)
    v = np.linspace(-5, 5, 101) * model.shares if model.effects.shares else np.zeros(1)
    weight_u = np.exp(-(np.linspace(-5, 5, len(u)) ** 2) / 2) if len(u) > 1 else np.ones(1)
    weight_v = np.exp(-(np.linspace(-5, 5, len(v)) ** 2) / 2) if len(v) > 1 else np.ones(1)
    r = rates(model.x[:8], numbers, u, grades=2, link=model.effects.attention)[0]
    r = np.broadcast_to(r, (2, 4, len(u)))
    problem = problem_of(cells, Model(**{**vars(model), "effects": Effects(), "numbers": np.zeros(0)}))
    total = 0.0
    for q in range(cells.queries):
        value = np.zeros((len(u), len(v)))
        for entry in np.flatnonzero(cells.query == q):
            pattern = cells.entry[entry]
            at = cells.pattern == pattern
            k, n, c = cells.place[at], cells.impressions[at][:, None], cells.clicks[at][:, None]
            logs = []
            for g in range(2):
                p = r[g, k]
                if model.effects.appeal:
                    m = np.exp(numbers["d"] - numbers["k"] * np.log(p))
                    logs.append((betaln(p * m + c, (1 - p) * m + n - c) - betaln(p * m, (1 - p) * m)).sum(axis=0))
                else:
                    logs.append((c * np.log(p) + (n - c) * np.log1p(-p)).sum(axis=0))
            eta = float(problem.hats[[pattern]].toarray()[0] @ model.x[8 : 8 + problem.priors])
            prior = expit(eta + v)
            both = np.exp(logs[0])[:, None] * (1 - prior) + np.exp(logs[1])[:, None] * prior
            value += cells.documents[entry] * np.log(both)
        weights = weight_u[:, None] * weight_v
        total += float(np.log((np.exp(value - value.max()) * weights).sum() / weights.sum()) + value.max())
    return total


@pytest.mark.parametrize("effects", EFFECTS, ids=str)
def test_a_climb_never_falls(effects: Effects) -> None:
    cells, _ = cells_of(log_of(3))
    model = started(cells, effects)
    values = climb(cells, model, rounds=1)[0].trace
    assert len(values) > 2
    assert (np.diff(values) > 0).all()


def test_labels_do_not_depend_on_the_order_of_rows_or_on_numbers() -> None:
    log = log_of(4)
    cells, entry = cells_of(log)
    rng = np.random.default_rng(0)
    rows, queries = rng.permutation(len(log["n"])), rng.permutation(40)
    moved = {key: value[rows] for key, value in log.items() if key != "query"} | {"query": queries[log["query"]]}
    again, moved_entry = cells_of(moved)
    effects = Effects("examination")
    first = label(fit(cells, effects=effects)[0], cells).relevance[entry]
    second = label(fit(again, effects=effects)[0], again).relevance[moved_entry]
    np.testing.assert_allclose(first, second, atol=2e-3)


@pytest.mark.parametrize("effects", EFFECTS, ids=str)
def test_twice_the_queries_have_twice_the_log_likelihood(effects: Effects) -> None:
    log = log_of(5)
    twice = {key: np.concatenate([value, value]) for key, value in log.items()}
    twice["document"] = np.concatenate([log["document"], log["document"] + 160])
    twice["query"] = np.concatenate([log["query"], log["query"] + 40])
    once, both = cells_of(log)[0], cells_of(twice)[0]
    assert both.patterns == once.patterns
    model = started(once, effects)
    vector = np.concatenate([model.x, model.numbers])
    value = problem_of(once, model).expect(vector).value
    knots = Problem(both, model.knots, problem_of(both, model).nodes, grades=2, effects=effects)
    assert knots.expect(vector).value == pytest.approx(2 * value, rel=1e-12)


def test_appeal_that_is_alike_everywhere_is_binomial() -> None:
    cells, _ = cells_of(log_of(6))
    plain, appeal = started(cells, Effects()), started(cells, Effects(appeal=True))
    alike = np.concatenate([appeal.x, [14.0, 0.0]])
    value = problem_of(cells, appeal).expect(alike).value
    assert value == pytest.approx(problem_of(cells, plain).expect(plain.x).value, abs=0.05)


def test_a_click_more_never_lowers_a_label() -> None:
    log = log_of(7)
    cells, entry = cells_of(log)
    model = fit(cells)[0]
    more = log | {"c": np.minimum(log["c"] + 1, log["n"])}
    clicked, clicked_entry = cells_of(more)
    assert (label(model, clicked).relevance[clicked_entry] >= label(model, cells).relevance[entry] - 1e-12).all()


def test_intervals_hold_the_label() -> None:
    cells, _ = cells_of(log_of(8))
    found = label(fit(cells, grades=3)[0], cells)
    assert (found.low <= found.relevance).all()
    assert (found.relevance <= found.high).all()


def test_a_document_without_impressions_is_predicted_from_its_prior() -> None:
    log = log_of(9)
    log["n"][0], log["c"][0] = 0, 0
    places, place = cell_places(log["position"], log["context"])
    cells, entry = Cells.of_documents(places, log["query"], log["document"], place, log["n"], log["c"], queries=40)
    model = fit(cells)[0]
    p = predict(model, cells, entry[:1], place[:1], np.zeros(1), np.zeros(1))
    low, high = model.rates[:, place[0]]
    assert low < p[0] < high


@pytest.mark.parametrize("appeal", [False, True])
def test_own_clicks_of_a_cell_count_for_its_next_click_where_documents_differ_in_appeal(appeal: bool) -> None:
    cells, entry = cells_of(log_of(9))
    model = with_effects(fit(cells)[0], Effects(appeal=appeal))
    zero, twenty = np.zeros(len(entry)), np.full(len(entry), 20.0)
    place = np.arange(len(entry)) % len(cells.places)
    before = predict(model, cells, entry, place, zero, zero)
    clicked, skipped = (predict(model, cells, entry, place, twenty, clicks) for clicks in (twenty, zero))
    assert ((clicked > before) == appeal).all()
    assert ((skipped < before) == appeal).all()


DEGENERATE = {
    "no clicks": log_of(1) | {"c": np.zeros(160, dtype=np.int64)},
    "all clicked": log_of(1) | {"c": log_of(1)["n"]},
    "one document": {key: value[:1] for key, value in log_of(1, queries=1).items()},
    "one place": log_of(1) | {"position": np.ones(160, dtype=np.int64)},
    "one impression each": log_of(1) | {"n": np.ones(160, dtype=np.int64), "c": np.arange(160) % 2},
}


@pytest.mark.parametrize("name", DEGENERATE)
def test_a_degenerate_log_has_labels_between_0_and_1_and_a_state_that_says_why(name: str) -> None:
    cells, entry = cells_of(DEGENERATE[name])
    model = choose(cells, rng=np.random.default_rng(0))
    relevance = label(model, cells).relevance[entry]
    assert np.isfinite(relevance).all()
    assert ((relevance >= 0) & (relevance <= 1)).all()
    states = {"no clicks": "no clicks", "all clicked": "every impression clicked"}
    one_rate = "one rate explains the clicks"
    assert model.state == states.get(name, "fitted" if name == "one place" else one_rate)


def test_the_fit_finds_the_truth_of_a_clean_log() -> None:
    cells, _ = cells_of(log_of(10, queries=2000, shown=200))
    model = fit(cells, effects=Effects("examination"))[0]
    assert model.converged
    # A deviation s seen in Q queries has a standard error of s / sqrt(2 Q).
    assert model.attention == pytest.approx(0.4, abs=5 * 0.4 / np.sqrt(2 * 2000))
    assert expected(model, cells)[1].value < 0


@pytest.mark.parametrize("device", [False, True])
def test_debias_labels_a_log_whose_documents_move(device: bool) -> None:
    counts = moving_counts(device=device)
    found = cm.debias(counts, mixture="auto")
    assert list(found.columns) == ["query_id", "doc_id", "relevance", "impressions", "clicks", "low", "high"]
    assert len(found) == 60 * 8
    assert (found.impressions.sum(), found.clicks.sum()) == counts.totals()
    assert (found.columns["low"] <= found.relevance).all()
    assert (found.relevance <= found.columns["high"]).all()
    known = moving_posterior()
    # As many documents may fall on the other side of a half as are doubtful to somebody who knows every rate.
    doubtful = np.minimum(known, 1 - known).sum() + 5 * np.sqrt((known * (1 - known)).sum())
    assert ((found.relevance > 0.5) != (known > 0.5)).sum() < doubtful


def moving_posterior() -> np.ndarray[Any, Any]:
    """P(relevant) of the documents of `moving_counts`, by the rates that it draws clicks with."""
    cells = moving_counts().cells()
    c, n, k = cells["clicks"], cells["impressions"], cells["position"]
    evidence = c * np.log(0.6 / 0.1) + (n - c) * (np.log1p(-0.6 / k) - np.log1p(-0.1 / k))
    log_odds = np.bincount(cells["query_id"] * 8 + cells["doc_id"], evidence)
    return np.asarray(expit(log_odds + np.log(0.3 / 0.7)))


@pytest.mark.parametrize("name", DEGENERATE)
def test_debias_labels_a_degenerate_log(name: str) -> None:
    log = DEGENERATE[name]
    counts = Counts.from_arrays(log["query"][log["document"]], log["document"], log["position"], log["n"], log["c"])
    found = cm.debias(counts, mixture="auto")
    assert len(found) == len(log["query"])
    assert ((found.relevance >= 0) & (found.relevance <= 1)).all()


def test_labels_are_near_the_limit_where_attention_differs_and_better_than_those_of_the_mixture(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    world = importlib.import_module("worlds").make("attention-0.6", seed=2, impressions=300_000)
    counts = world.counts()
    mixture, found = (cm.debias(counts, mixture=name).relevance for name in ("binomial", "auto"))
    # Squared errors beyond those of the limit, per query: binomial less auto, more than five standard errors.
    better = np.bincount(world.query, (mixture - world.truth) ** 2 - (found - world.truth) ** 2)
    assert better.mean() > 5 * better.std() / np.sqrt(len(better))
    beyond = np.bincount(world.query, (found - world.truth) ** 2 - (world.limit - world.truth) ** 2)
    assert beyond.mean() < better.mean() / 5


def test_the_same_seed_gives_the_same_bytes(tmp_path: Path) -> None:
    for name in ("a", "b"):
        cm.debias(moving_counts(), mixture="auto").write(tmp_path / f"{name}.parquet")
    assert (tmp_path / "a.parquet").read_bytes() == (tmp_path / "b.parquet").read_bytes()


def test_a_place_that_the_fit_has_not_seen_is_read_as_the_nearest() -> None:
    fit = cm.MixtureCorrection().fit(moving_counts(device=True))
    seen = Counts.from_arrays(["q", "q"], ["a", "b"], [1, 6], [20, 20], [9, 1], device=["desk", "desk"])
    deep = Counts.from_arrays(["q", "q"], ["a", "b"], [1, 9], [20, 20], [9, 1], device=["desk", "desk"])
    assert fit.label(deep).relevance.tolist() == fit.label(seen).relevance.tolist()


def test_labels_go_to_documents_whose_ids_no_float_can_tell_apart() -> None:
    table: Any = duckdb.sql(
        "SELECT CAST(1e30 AS HUGEINT) AS query_id, CAST(1e30 AS HUGEINT) + d AS doc_id, 1 + d % 4 AS position, "
        "40 AS impressions, CASE WHEN d < 60 THEN 30 ELSE 1 END AS clicks FROM range(200) AS documents(d)"
    )
    found = cm.debias(table, mixture="auto").select("doc_id, relevance").fetchall()
    assert [int(document) - int(found[0][0]) for document, _ in found] == list(range(200))
    relevance = np.array([relevance for _, relevance in found])
    assert relevance[:60].min() > relevance[60:].max()


def test_a_log_that_says_nothing_is_fitted_group_by_group() -> None:
    counts = Counts.from_arrays(np.arange(40), np.arange(40), [1] * 40, [5] * 40, [0] * 40)
    fit = cm.MixtureCorrection().fit(counts)
    assert fit.model is None
    assert {group.mixture.verdict for group in fit.groups} == {cm.Verdict.NO_CLICKS}


def test_a_model_in_which_queries_differ_is_no_sql_statement() -> None:
    fit = cm.MixtureCorrection().fit(moving_counts())
    assert fit.model is not None
    alike = dataclasses.replace(
        fit, model=dataclasses.replace(fit.model, attention=None, shares=False, appeal=True, numbers=(3.0, 0.3))
    )
    assert "ln(" in alike.statement("counts")
    differ = dataclasses.replace(
        fit, model=dataclasses.replace(fit.model, attention="odds", shares=False, appeal=False, numbers=(-1.0,))
    )
    with pytest.raises(cm.SettingError, match=r"^in this model queries differ in attention"):
        differ.statement("counts")


def test_counts_of_another_context_are_refused() -> None:
    fit = cm.MixtureCorrection().fit(moving_counts())
    message = (
        "the model's context is no context columns, the counts have device. "
        "Count the log with the model's context columns."
    )
    with pytest.raises(cm.SettingError, match=f"^{re.escape(message)}$"):
        fit.label(moving_counts(device=True))


def test_a_cell_of_very_many_impressions_is_fitted() -> None:
    """More than numpy deals out."""
    n, c = [10**9, 10**9 + 7, 10**9, 2 * 10**9] * 10, [3 * 10**8, 10**8, 3 * 10**8, 2 * 10**8] * 10
    counts = Counts.from_arrays(np.arange(40) // 4, np.arange(40), [1] * 40, n, c)
    assert cm.debias(counts).relevance[:4] == pytest.approx([1, 0, 1, 0], abs=1e-6)


def test_the_tables_of_the_docs_are_the_result_of_the_benchmark() -> None:
    result = json.loads((ROOT / "benchmarks" / "results" / "worlds.json").read_text())
    page = (ROOT / "docs" / "worlds.md").read_text(encoding="utf-8")
    assert f"    {result['command']}\n" in page
    for size, words in (("1200000", "1.2 million"), ("200000", "200,000")):
        expected = set()
        for name, logs in result["figures"][size].items():
            columns = {column: [log[column] for log in logs.values()] for column in ("limit", "auto", "binomial")}
            limit, auto, binomial = map(median, columns.values())
            numbers = (limit, auto, max(columns["auto"]), binomial)
            expected.add(f"| {' | '.join([name, *(f'{number:.3f}' for number in numbers)])} |")
        section = page.split(f"## {words} impressions")[1].split("\n## ")[0].splitlines()
        assert {line for line in section if re.match(r"\| [a-z]\S* \| 0\.", line)} == expected


def most_over_limit(name: str) -> float:
    """What labels of a world may cost: the more differs, the more."""
    if name.startswith(("robots", "dcm", "ubm")):
        return np.inf  # not part of the model
    if "0.6" in name or ("attention" in name and name.startswith(("shares", "moving"))):
        return 1.05
    if name.startswith(("attention", "odds", "shares", "appeal")):
        return 1.03
    return 1.02 if name.startswith(("moving", "contexts")) else 1.01


def test_examination_is_found_where_its_first_climb_stops_too_low(monkeypatch: pytest.MonkeyPatch) -> None:
    """From there, odds seem to predict clicks better, and labels have 1.29 times the error of the limit."""
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    world = importlib.import_module("worlds").make("attention-0.6", seed=31, impressions=1_200_000)
    fitted = cm.MixtureCorrection().fit(world.counts())
    assert fitted.model is not None
    assert fitted.model.attention == "examination"
    assert world.error(fitted.label(world.counts()).relevance) < 1.02 * world.error(world.limit)


@pytest.mark.parametrize(("name", "grades", "appeal"), [("attention-0.3-graded", 5, False), ("appeal-0.1", 2, True)])
def test_appeal_is_chosen_only_where_it_clearly_predicts_clicks_better(
    monkeypatch: pytest.MonkeyPatch, name: str, grades: int, appeal: bool
) -> None:
    """Clicks hardly tell five grades from appeal in the first world, and labels with appeal are far off there."""
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    world = importlib.import_module("worlds").make(name, seed=109, impressions=200_000)
    fitted = cm.MixtureCorrection().fit(world.counts())
    assert fitted.model is not None
    assert (fitted.model.grades, fitted.model.appeal) == (grades, appeal)
    assert world.error(fitted.label(world.counts()).relevance) < 1.1 * world.error(world.limit)


def test_labels_in_the_worlds_of_the_benchmark_were_near_the_limit() -> None:
    figures = json.loads((ROOT / "benchmarks" / "results" / "worlds.json").read_text())["figures"]
    for size, worlds in figures.items():
        for name, logs in worlds.items():
            auto = median(log["auto"] for log in logs.values())
            assert auto <= (most_over_limit(name) if size == "1200000" else 1.10), name
            assert median(log["auto"] / log["binomial"] for log in logs.values()) <= 1.01, name  # of the same log


def test_a_label_is_never_a_hair_above_1(monkeypatch: pytest.MonkeyPatch) -> None:
    """Weights of nodes are rounded: where all of them say relevant, their sum can be 1 + 2e-16."""
    cells = cells_of(log_of(0))[0]
    one = np.array([[0.0] * len(cells.entry), [np.nextafter(1.0, 2.0)] * len(cells.entry)])
    module = importlib.import_module("clickmix.mixtures.hierarchical.label")
    monkeypatch.setattr(module, "looks", lambda *_: [(1.0, one)])
    assert label(fit(cells)[0], cells).relevance.max() == 1.0
