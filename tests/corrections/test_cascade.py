"""Groups by what stands above: the walk against a slow one, the ladder, labels against known truth, files, commands."""

from __future__ import annotations

import functools
import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner, Result

import clickmix as cm
import clickmix.engines.duckdb
from cascades import cascade
from clickmix import cli
from clickmix.corrections.mixture_based.cascade_patterns import (
    SCORE_ONE,
    Step,
    expected_clicks,
    form_step,
    pattern_score,
)
from clickmix.corrections.mixture_based.cascade_walk import rule_from, walk, walked_positions
from clickmix.engines.duckdb import DuckDB
from clickmix.lab.users import preset, write_sessions
from logs import Table, write
from oracles_cascade import cells_slowly
from session_logs import session_log


def digit(document: int, position: int) -> int:
    """A label that a walk might find: it changes on the way down."""
    return (document * 7 + position) % 5


def walked(table: Table, folder: Path, *, smallest: int, monkeypatch: pytest.MonkeyPatch) -> tuple[Any, list[Step]]:
    monkeypatch.setattr("clickmix.corrections.mixture_based.cascade_walk.SMALLEST_PATTERN", smallest)
    counts = cm.count(write(folder / "log.parquet", table), lists=True)
    labels = "SELECT DISTINCT query_id, doc_id, ((doc_id * 7 + {}) % 5) / 4.0 AS relevance FROM {}"
    grouped, steps = walk(
        counts,
        walked_positions(counts),
        rule=rule_from,
        relevance=lambda recent, position: labels.format(position, recent.table),
    )
    return grouped.engine.rows(grouped.query()), steps


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("smallest", [1, 3, 8, 1000])
def test_the_walk_is_that_of_a_slow_version(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, smallest: int, seed: int
) -> None:
    table = session_log(seed=seed)
    rows, steps = walked(table, tmp_path, smallest=smallest, monkeypatch=monkeypatch)
    assert [step.position for step in steps] == ([1] if smallest == 1000 else [1, 2, 3, 4, 5])
    assert rows == cells_slowly(table, digit, {step.position: step.group for step in steps})


@pytest.mark.parametrize("smallest", [2, 3, 5])
def test_frequent_patterns_are_those_with_enough_documents(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, smallest: int
) -> None:
    table = session_log(sessions=400)
    _, steps = walked(table, tmp_path, smallest=smallest, monkeypatch=monkeypatch)
    cells = cells_slowly(table, digit, dict.fromkeys((step.position for step in steps), str))
    documents = Counter((position, pattern) for _, _, position, pattern, _, _ in cells)
    enough = {key for key, count in documents.items() if count >= smallest}
    found = {(step.position, pattern) for step in steps for pattern in step.frequent}
    rare = Counter[int]()
    for (position, pattern), count in documents.items():
        rare[position] += count if (position, pattern) not in found else 0
    assert (1, "") in found
    assert len(found) >= 2
    # What was frequent and is not a group was needed to make a group of the rare ones.
    assert all(rare[position] < smallest + documents[position, pattern] for position, pattern in enough - found)
    assert found <= enough


def test_a_document_twice_in_a_list_and_two_at_one_position(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [("q", d, p, c, s) for s in range(4) for d, p, c in [(1, 1, 1), (2, 1, 0), (1, 2, 0), (3, 3, s % 2)]]
    names = ("query_id", "doc_id", "position", "clicked", "session_id")
    table = dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))
    found, steps = walked(table, tmp_path, smallest=1, monkeypatch=monkeypatch)
    assert found == cells_slowly(table, digit, {step.position: step.group for step in steps})
    # Digits at position 1: document 1 has 8 % 5 = 3, document 2 has 15 % 5 = 0; at 2, document 1 has 9 % 5 = 4.
    assert [(d, p, above) for _, d, p, above, _, _ in found] == [(1, 1, ""), (1, 2, "3"), (2, 1, ""), (3, 3, "34")]


def test_digits_that_people_stop_at_lower_the_score() -> None:
    # 100 impressions after 0 with 20 clicks, 100 after 4 with 10: 15 clicks of 100 are the mean.
    moments, clicks = np.array([[200.0, 400.0], [400.0, 1600.0]]), np.array([30.0, 40.0])
    score = expected_clicks(moments, clicks)
    assert (pattern_score(score, "0"), pattern_score(score, "4")) == (round(SCORE_ONE * 20 / 15), 6665)
    assert expected_clicks(moments, np.zeros(2)) == (SCORE_ONE, 0)
    assert expected_clicks(np.array([[9.0, 0.0], [0.0, 0.0]]), np.array([3.0, 0.0])) == (SCORE_ONE, 0)


@settings(max_examples=60, deadline=None)
@given(
    sizes=st.dictionaries(st.text("01234", min_size=3, max_size=3), st.integers(1, 60), min_size=1, max_size=40),
    score=st.tuples(*[st.integers(-3000, 3000)] * 4),
)
def test_the_ladder(sizes: dict[str, int], score: tuple[int, ...]) -> None:
    scores = Counter[int]()
    for pattern, documents in sizes.items():
        scores[pattern_score(score, pattern)] += documents
    values = sorted(scores)
    step = form_step(
        4,
        {pattern: n for pattern, n in sizes.items() if n >= 20},
        score=score,
        scores=(np.array(values), np.array([scores[value] for value in values])),
        smallest=20,
    )
    groups = Counter[str]()
    for pattern, documents in sizes.items():
        groups[step.group(pattern)] += documents
    assert len(groups) == 1 or min(groups.values()) >= 20
    assert all(n >= 80 for group, n in groups.items() if group.startswith("rare") and step.bounds)
    assert set(step.frequent) <= {pattern for pattern, n in sizes.items() if n >= 20}
    expected = {f"rare {i + 1}" for i in range(len(step.bounds) + 1)} if any("rare" in g for g in groups) else set()
    assert {group for group in groups if group.startswith("rare")} == expected


@pytest.fixture(scope="module")
def dcm() -> Any:
    """DCM clicks on 1,500 lists, 424 clicks each, as in the paper; and the fit that matches."""
    log = cascade("dcm", queries=1500, clicks=636_000, seed=5)
    counts = log.counts()
    return log, counts, cm.MixtureCorrection("binomial", examination="dcm").fit(counts)


def test_dcm_labels_are_far_better_than_by_position(dcm: Any) -> None:
    log, counts, fit = dcm
    by_position = log.rmse(cm.debias(counts, mixture="binomial"))
    assert log.rmse(fit.label(counts)) < by_position / 2


def test_ubm_labels_are_better_than_by_position() -> None:
    log = cascade("ubm", queries=1500, clicks=636_000, seed=5)
    counts = log.counts()
    labels = cm.debias(counts, mixture="binomial", examination="ubm")
    assert log.rmse(labels) < log.rmse(cm.debias(counts, mixture="binomial"))


def test_lists_that_change_between_sessions() -> None:
    log = cascade("dcm", queries=400, clicks=120_000, seed=5, lists=3)
    counts = log.counts()
    fit = cm.MixtureCorrection("binomial", examination="dcm").fit(counts)
    assert fit.jointly
    assert log.rmse(fit.label(counts)) < log.rmse(cm.debias(counts, mixture="binomial")) / 2


def test_what_stands_above_lowers_the_rates(dcm: Any) -> None:
    """At position 2 DCM goes on after a click with .2978: rates after a relevant document are (1-.98*.7)/(1-.65*.7)."""
    _, _, fit = dcm
    rates = {g.places[0].place.context[0]: g.mixture.rates for g in fit.groups if g.places[0].place.position == 2}
    assert set(rates) == {"0", "4"}
    going_on = 0.2978
    expected = (1 - 0.98 * (1 - going_on)) / (1 - 0.65 * (1 - going_on))
    for low, high in zip(rates["4"], rates["0"], strict=True):
        assert low / high == pytest.approx(expected, rel=0.1)


def test_a_saved_model_labels_any_log_with_lists_as_the_fit_does(dcm: Any, tmp_path: Path) -> None:
    _, counts, fit = dcm
    fit.write(tmp_path / "model.json")
    again = cm.MixtureFit.read(tmp_path / "model.json")
    assert again == fit
    assert again.label(counts).relevance.tolist() == fit.label(counts).relevance.tolist()


def test_a_label_is_explained_by_its_cells(dcm: Any) -> None:
    _, counts, fit = dcm
    labels = fit.label(counts)
    explained = fit.evidence(counts, labels.query_id[7], labels.doc_id[7])
    assert explained.relevance == pytest.approx(labels.relevance[7], abs=1e-9)
    assert explained.cells[0].place.startswith("position 8, above ")


@pytest.mark.parametrize("threads", [1, 4])
def test_threads_and_memory_change_nothing(dcm: Any, monkeypatch: pytest.MonkeyPatch, threads: int) -> None:
    log, counts, fit = dcm
    monkeypatch.setattr(clickmix.engines.duckdb, "DuckDB", functools.partial(DuckDB, threads=threads, memory="300MB"))
    again = log.counts()
    refit = cm.MixtureCorrection("binomial", examination="dcm").fit(again)
    assert refit == fit
    assert refit.label(again).relevance.tolist() == fit.label(counts).relevance.tolist()


def test_positions_the_model_has_not_seen_are_read_as_its_last(dcm: Any) -> None:
    _, _, fit = dcm
    rows = {"query_id": [1] * 12, "doc_id": list(range(12)), "position": list(range(1, 13)), "clicked": [1, 0] * 6}
    counts = cm.count(cm_frame(rows | {"session_id": [1] * 12}), lists=True)
    labels = fit.label(counts)
    assert len(labels) == 12
    assert labels.relevance[10] > labels.relevance[11]


def cm_frame(table: Table) -> Any:
    import pyarrow as pa

    return pa.table(table)


@pytest.mark.parametrize("examination", ["dcm", "ubm"])
def test_counts_without_lists_are_refused(examination: str) -> None:
    counts = cm.Counts.from_arrays(["q"], ["d"], [1], [2], [1])
    with pytest.raises(cm.InputError) as caught:
        cm.debias(counts, examination=examination)
    assert str(caught.value) == (
        f"examination '{examination}': these counts have no result lists, so they do not show what was above a "
        "document. Count the log with clickmix counts --lists (in Python count(log, lists=True))."
    )


def test_an_unknown_examination_is_refused() -> None:
    with pytest.raises(cm.SettingError) as caught:
        cm.MixtureCorrection(examination="cascade")  # type: ignore[arg-type]
    assert str(caught.value) == "examination 'cascade': expected one of pbm, dcm, ubm."


def run(*words: str) -> Result:
    return CliRunner().invoke(cli.app, words, catch_exceptions=False)


@pytest.fixture(scope="module")
def sessions(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A log of DCM sessions, as a file."""
    folder = tmp_path_factory.mktemp("sessions")
    rng = np.random.default_rng(0)
    relevance = (rng.random((300, 5)) < 0.2).astype(float)
    drawn = preset("dcm", positions=5).simulate(relevance, sessions=12_000, rng=rng)
    query_id, doc_id = np.arange(300) // 2, np.arange(1500).reshape(300, 5)
    write_sessions([drawn], folder / "log.parquet", query_id=query_id, doc_id=doc_id)
    return folder


def test_on_the_command_line(sessions: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    log = str(sessions / "log.parquet")
    counted = run("counts", log, "--lists", "-o", "lists.csv")
    assert counted.stdout.endswith("Wrote 1,500 cells (query, list, document, position) to lists.csv.\n")
    run("debias", log, "-o", "debias.csv", "--model", "model.json", "--examination", "dcm")
    run("fit", "lists.csv", "-o", "fit.json", "--examination", "dcm")
    run("label", "lists.csv", "--model", "fit.json", "-o", "label.csv")
    assert Path("label.csv").read_bytes() == Path("debias.csv").read_bytes()
    assert Path("fit.json").read_bytes() == Path("model.json").read_bytes()
    assert "position 3, above 0" in run("inspect", "model.json").stdout


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"steps": []}, "steps: these do not fit the examination"),
        ({"examination": "pbm"}, "steps: these do not fit the examination"),
        ({"examination": "cascade"}, "examination: found 'cascade', expected one of pbm, dcm, ubm"),
    ],
)
def test_a_model_that_cannot_be_is_refused(dcm: Any, tmp_path: Path, change: dict[str, Any], complaint: str) -> None:
    from clickmix.storage.documents import write_document

    _, _, fit = dcm
    document = json.loads(fit.to_json())
    write_document(
        tmp_path / "m.json", kind=document["kind"], version=document["version"], payload=document["payload"] | change
    )
    with pytest.raises(cm.FormatError) as caught:
        cm.MixtureFit.read(tmp_path / "m.json")
    assert str(caught.value) == (
        f"{tmp_path / 'm.json'}: not a model this clickmix can use: {complaint}. Make the model again."
    )


@pytest.mark.parametrize(("queries", "clicks", "seed"), [(1500, 1500, 2), (2500, 1200, 3), (2500, 2500, 4)])
def test_clicks_that_say_nothing_leave_labels_unsure_at_every_position(queries: int, clicks: int, seed: int) -> None:
    """Most documents are shown once: a fit of one position could put nearly all of them in either grade."""
    counts = cascade("dcm", queries=queries, clicks=clicks, seed=seed).counts()
    fitted = cm.MixtureCorrection(examination="dcm").fit(counts)
    labels = fitted.label(counts)
    assert (labels.high - labels.low).min() > 0.9
    assert np.ptp(labels.relevance) < 1e-9
    assert {group.mixture.verdict for group in fitted.groups} <= {cm.Verdict.ONE_RATE, cm.Verdict.NO_CLICKS}
