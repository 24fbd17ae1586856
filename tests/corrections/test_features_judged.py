"""Features and judgments together: features learn the prior, then judgments weigh it with the clicks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import clickmix as cm
from clickmix.corrections.mixture_based.calibration import Calibration
from clickmix.corrections.mixture_based.fit import MixtureFit
from clickmix.counts.judgments import read_grades
from clickmix.errors import ClickmixError, FormatError, SettingError
from clickmix.mixtures.hierarchical.cells import Cells
from clickmix.mixtures.hierarchical.parts import parts
from clickmix.report.results import fit_results, fit_sentences
from clickmix.storage.documents import read_versions
from commands import failure, run
from featured_logs import LISTED, QUERIES, TOP, World, world

JUDGED = 80  # queries, the first ones


def judged(relevance: np.ndarray, *, documents: slice = slice(None), queries: int = JUDGED) -> pa.Table:
    """Judgments of some documents of the first queries."""
    query, document = np.indices(relevance.shape)[:, :queries, documents].reshape(2, -1)
    return pa.table({"query_id": query, "doc_id": document, "grade": relevance[query, document]})


def calibration_of(fit: MixtureFit) -> Calibration:
    assert fit.judged is not None
    return fit.judged.calibration


def error(labels: Any, relevance: np.ndarray) -> float:
    """The error of the labels of documents that were shown, in queries that were not judged."""
    others = (labels.impressions > 0) & (labels.query_id >= JUDGED)
    off = labels.relevance - relevance[labels.query_id, labels.doc_id]
    return float(np.sqrt(np.mean(off[others] ** 2)))


@pytest.fixture(scope="module")
def answering() -> World:
    """Half of the relevant documents answer on the page, so that skips mean less than the model believes."""
    return world(queries=2 * QUERIES, answers=0.5)


@pytest.fixture(scope="module")
def both(answering: World) -> MixtureFit:
    options: dict[str, Any] = {"features": answering.features, "judgments": judged(answering.relevance)}
    return cm.MixtureCorrection(mixture="binomial", **options).fit(answering.counts)


class TestLabels:
    def test_both_together_are_better_than_either(self, answering: World, both: MixtureFit) -> None:
        given: dict[str, Any] = {"features": answering.features, "judgments": judged(answering.relevance)}
        either = [
            error(cm.debias(answering.counts, mixture="binomial", **{name: given[name]}), answering.relevance)
            for name in given
        ]
        assert both.featured is not None
        assert both.featured.helps
        assert calibration_of(both).used == "weights"
        assert error(both.label(answering.counts), answering.relevance) < 0.95 * min(either)

    @pytest.mark.parametrize(
        "made",
        [
            pytest.param({"moving": True}, id="moving documents"),
            pytest.param({"context": True}, id="contexts"),
            pytest.param({"grades": 3}, id="grades"),
        ],
    )
    def test_of_every_kind_of_log(self, made: dict[str, Any]) -> None:
        other = world(seed=3, queries=2 * QUERIES, answers=0.5, **made)
        given = judged(other.relevance)
        with_features = cm.MixtureCorrection(features=other.features).fit(other.counts)
        after = with_features.with_judgments(other.counts, read_grades(given))
        assert after.featured == with_features.featured
        assert calibration_of(after).used == "weights"
        labels = after.label(other.counts)
        assert error(labels, other.relevance) < 0.95 * error(with_features.label(other.counts), other.relevance)
        assert ((labels.low <= labels.relevance) & (labels.relevance <= labels.high)).all()

    def test_random_judgments_leave_other_labels_as_features_make_them(self, answering: World) -> None:
        random = np.random.default_rng(1).permutation(answering.relevance.ravel()).reshape(answering.relevance.shape)
        fit = cm.MixtureCorrection(mixture="binomial", features=answering.features).fit(answering.counts)
        after = fit.with_judgments(answering.counts, read_grades(judged(random)))
        assert calibration_of(after).used == "nothing"
        before, labels = fit.label(answering.counts), after.label(answering.counts)
        for column in ("relevance", "low", "high"):
            others = labels.query_id >= JUDGED
            assert (labels.columns[column][others] == before.columns[column][others]).all()

    def test_features_that_do_not_help_leave_the_labels_of_judgments(self, answering: World) -> None:
        noise = np.random.default_rng(5).normal(size=answering.features.num_rows)
        features = answering.features.select(["query_id", "doc_id"]).append_column("noise", pa.array(noise))
        given = judged(answering.relevance)
        labels = cm.debias(answering.counts, mixture="binomial", features=features, judgments=given)
        without = cm.debias(answering.counts, mixture="binomial", judgments=given)
        assert (labels.relevance == without.relevance).all()

    def test_judged_documents_that_were_never_shown_follow_their_judgment(
        self, answering: World, both: MixtureFit
    ) -> None:
        labels = both.label(answering.counts)
        unshown = (labels.impressions == 0) & (labels.query_id < JUDGED)
        true = answering.relevance[labels.query_id, labels.doc_id][unshown]
        assert labels.relevance[unshown][true == 1].mean() > 0.8
        assert labels.relevance[unshown][true == 0].mean() < 0.05
        assert calibration_of(both).documents == JUDGED * TOP  # learned from those that were shown

    def test_documents_that_were_never_shown_are_weighed_at_the_last_place(self, both: MixtureFit) -> None:
        """Not as if they were shown on top."""
        assert both.featured is not None
        model = both.featured.model.model
        last = int(model.places.position.argmax())
        cells, _ = Cells.of_documents(model.places, np.array([0]), np.array([0]), np.array([last]), [0], [0], queries=1)
        assert parts(model, cells).position[0] == pytest.approx(np.log(model.places.position[last]))

    def test_a_judgment_elsewhere_is_missing(self, answering: World) -> None:
        more = pa.table({"query_id": [0], "doc_id": [LISTED], "grade": [1.0]})
        given = pa.concat_tables([judged(answering.relevance), more])
        fit = cm.MixtureCorrection(mixture="binomial", features=answering.features, judgments=given)
        found = fit.fit(answering.counts).judged
        assert found is not None
        assert found.missing == 1

    def test_the_output_speaks_of_both(self, both: MixtureFit) -> None:
        said = " ".join(fit_sentences(both))
        assert f"Judgments: {JUDGED * TOP} documents of {JUDGED} queries" in said
        assert "Features give each document its own prior" in said
        values = fit_results(both).json()
        assert (values["judgments"]["used"], values["features"]["used"]) == ("weights", True)


class TestModelFile:
    def test_round_trip(self, answering: World, both: MixtureFit, tmp_path: Path) -> None:
        both.write(tmp_path / "model.json")
        read = MixtureFit.read(tmp_path / "model.json")
        assert read == both
        assert read.to_json() == both.to_json()
        labels = read.using_features(answering.features).label(answering.counts)
        assert (labels.relevance == both.label(answering.counts).relevance).all()

    def test_older_readers_refuse_it(self, both: MixtureFit, tmp_path: Path) -> None:
        both.write(tmp_path / "model.json")
        with pytest.raises(FormatError, match="format version 6; this clickmix reads 2, 3, 4, 5"):
            read_versions(tmp_path / "model.json", kind="clickmix model", versions=(2, 3, 4, 5))

    def test_it_needs_the_features_of_the_log(self, answering: World, both: MixtureFit, tmp_path: Path) -> None:
        both.write(tmp_path / "model.json")
        with pytest.raises(SettingError, match="its file does not have the features of this log's documents"):
            MixtureFit.read(tmp_path / "model.json").label(answering.counts)

    def test_another_log_gets_the_trees_and_the_calibration(self, both: MixtureFit) -> None:
        """Other queries have no judgment; their features and clicks are weighed as in the log that was judged."""
        other = world(seed=7, answers=0.5)
        renamed = pa.array(1_000_000 + np.asarray(other.log["query_id"]))
        log = other.log.set_column(0, "query_id", renamed)
        features = other.features.set_column(0, "query_id", pa.array(1_000_000 + np.asarray(other.features[0])))
        labels = both.using_features(features).label(cm.count(log))
        off = labels.relevance - other.relevance[labels.query_id - 1_000_000, labels.doc_id]
        plain = cm.debias(cm.count(log), mixture="binomial")
        without = plain.relevance - other.relevance[plain.query_id - 1_000_000, plain.doc_id]
        assert np.mean(off[labels.impressions > 0] ** 2) < 0.9 * np.mean(without**2)


class TestBadInput:
    def test_judgments_of_documents_that_were_never_shown_only(self, answering: World) -> None:
        given = judged(answering.relevance, documents=slice(TOP, None))
        correction = cm.MixtureCorrection(mixture="binomial", features=answering.features, judgments=given)
        with pytest.raises(ClickmixError, match="none of the 160 judged documents is in the log"):
            correction.fit(answering.counts)


class TestCommands:
    def test_debias_fit_and_label(
        self, answering: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        monkeypatch.chdir(tmp_path)
        pq.write_table(answering.log.drop_columns(["device"]), "log.parquet")
        pq.write_table(answering.features, "features.parquet")
        pq.write_table(judged(answering.relevance), "judged.parquet")
        given = ["--mixture", "binomial", "--features", "features.parquet", "--judgments", "judged.parquet", "--json"]
        told = json.loads(run("debias", "log.parquet", "-o", "labels.parquet", *given, "--report", "r.html").stdout)
        assert (told["features"]["used"], told["judgments"]["queries"]) == (True, JUDGED)
        assert run("fit", "log.parquet", "-o", "m.json", *given).exit_code == 0
        assert "Judgments: " in run("inspect", "m.json").stdout
        run("label", "log.parquet", "--model", "m.json", "--features", "features.parquet", "-o", "again.parquet")
        assert Path("again.parquet").read_bytes() == Path("labels.parquet").read_bytes()
        said = failure(capsys, monkeypatch, "label", "log.parquet", "--model", "m.json", "-o", "x.parquet")
        assert "--features FILE" in said
        assert not Path("x.parquet").exists()
