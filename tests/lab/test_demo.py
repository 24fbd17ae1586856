"""The demo: from a log it makes to labels, rankers and a report; what is not installed is told, and the rest done."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import clickmix as cm
from clickmix import cli
from clickmix.evaluate import Measure, rank, score
from clickmix.judging.checks import checked
from clickmix.lab import demo
from clickmix.lab.collections import synthetic_collection
from oracles_report import text

# The demo is run once, so its tests stay together.
pytestmark = pytest.mark.xdist_group("demo")

FILES = {"clicks.parquet", "labels.parquet", "model.json", "truth.parquet"}


def run(folder: Path) -> tuple[demo.Demo, list[str]]:
    said: list[str] = []
    return demo.run_demo(folder, say=said.append), said


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("demo")


@pytest.fixture(scope="module")
def done(folder: Path) -> demo.Demo:
    """The demo, somewhat smaller."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in {"QUERIES": 500, "CLICKS": 60_000, "TREES": 60}.items():
            patch.setattr(demo, name, value)
        return run(folder)[0]


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """The demo, so small that its rankers learn nothing."""
    for name, value in {"QUERIES": 60, "CLICKS": 8_000, "TREES": 2}.items():
        monkeypatch.setattr(demo, name, value)


def test_labels_and_the_ranker_trained_on_them_beat_click_through_rates(done: demo.Demo) -> None:
    rates, labels = done.known
    assert labels.error < rates.error / 2
    assert labels.precision > 2 * rates.precision
    assert done.rankers is not None
    assert done.rankers.rankers == (
        "the old engine",
        "trained on click-through rates",
        "trained on clickmix labels",
        "trained on true relevance",
    )
    on_labels = done.rankers.cells[2][0]
    assert on_labels.test is not None
    assert on_labels.test.difference > 0
    assert on_labels.test.p < 0.001


def test_labels_are_compared_with_the_truth_of_the_same_documents(done: demo.Demo, folder: Path) -> None:
    labels = done.known[1].labels
    rows = labels.counts.engine.rows(f"SELECT * FROM read_parquet('{folder / 'truth.parquet'}')")
    truth = {(query, doc): relevance for query, doc, relevance in rows}
    pairs = zip(labels.query_id.tolist(), labels.doc_id.tolist(), strict=True)
    assert done.known[1].relevant.tolist() == [truth[pair] for pair in pairs]
    assert done.known[1].error == pytest.approx(np.sqrt(np.mean((labels.relevance - done.known[1].relevant) ** 2)))


def test_the_files_are_what_the_commands_write(done: demo.Demo, folder: Path) -> None:
    assert {path.name for path in folder.iterdir()} == {*FILES, "report.html"}
    counts = cm.count(folder / "clicks.parquet")
    again = checked(cm.MixtureCorrection().fit(counts), counts)
    assert cm.MixtureFit.read(folder / "model.json") == again == done.fit


@pytest.mark.usefixtures("small")
def test_the_command_ends_with_the_report_and_it_tells_the_comparison(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    output = CliRunner().invoke(cli.app, ["demo"], catch_exceptions=False).stdout
    assert output.endswith("\nReport: demo/report.html (open it in a browser)\n")
    shown = text(Path("demo/report.html").read_text(encoding="utf-8"))
    assert "Does it work?" in shown
    assert "And does it help a ranker?" in shown
    ranker = next(line for line in output.splitlines() if line.startswith("trained on clickmix labels"))
    assert " ".join(ranker.split()) in shown


@pytest.mark.usefixtures("small")
def test_the_same_demo_gives_the_same_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
        monkeypatch.chdir(tmp_path / name)
        run(Path("demo"))
    first, second = (
        {p.name: p.read_bytes() for p in (tmp_path / name / "demo").iterdir()} for name in ("first", "second")
    )
    assert first == second


@pytest.mark.usefixtures("small")
def test_without_lightgbm_the_demo_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "lightgbm", None)
    done, said = run(tmp_path)
    assert said[-1] == (
        "No rankers: LambdaMART is LightGBM's, which is not installed. pip install 'clickmix[lightgbm]'"
    )
    assert done.rankers is None
    assert "And does it help a ranker?" not in text((tmp_path / "report.html").read_text(encoding="utf-8"))


def test_the_old_engine_is_better_than_chance_and_worse_than_it_could_be() -> None:
    collection = synthetic_collection(queries=100, rng=np.random.default_rng(0))
    test, engine = collection.test, demo.old_engine(collection.train)
    scores = (engine(test.features), np.zeros(test.documents))
    means = [
        score(rank(s, test.grade, test.query_id[test.query]), measure=Measure.parse("ndcg@10")).mean for s in scores
    ]
    assert means[1] + 0.05 < means[0] < 0.6
