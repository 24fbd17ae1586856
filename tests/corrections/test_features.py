"""A prior from features: recovery, cross-fitting, fallback, documents never shown, model files, commands, bad input."""

from __future__ import annotations

import dataclasses
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import clickmix as cm
from clickmix.corrections.mixture_based.featured import FOLDS, Featured
from clickmix.corrections.mixture_based.fit import MixtureFit
from clickmix.errors import ClickmixError, FormatError, SettingError
from clickmix.mixtures.hierarchical.cells import Cells
from clickmix.mixtures.hierarchical.climb import expected
from clickmix.mixtures.hierarchical.tilt import before_and_after, gained, slope
from clickmix.rankers.prior_trees import FeatureTable
from clickmix.report.results import fit_results, fit_sentences
from commands import failure, run
from featured_logs import LISTED, QUERIES, TOP, World, world


def featured_of(fit: MixtureFit) -> Featured:
    assert fit.featured is not None
    return fit.featured


@pytest.fixture(scope="module")
def usual() -> World:
    return world()


@pytest.fixture(scope="module")
def fitted(usual: World) -> MixtureFit:
    return cm.MixtureCorrection(mixture="binomial", features=usual.features).fit(usual.counts)


def noise(features: pa.Table) -> pa.Table:
    """Features that say nothing."""
    drawn = np.random.default_rng(5).normal(size=features.num_rows)
    return pa.table({"query_id": features["query_id"], "doc_id": features["doc_id"], "noise": drawn})


class TestLabels:
    def test_features_that_tell_relevance_make_labels_better(self, usual: World, fitted: MixtureFit) -> None:
        without = usual.error(cm.debias(usual.counts, mixture="binomial"))
        # The best a prior can do here leaves about two thirds of the squared error.
        assert usual.error(fitted.label(usual.counts)) < 0.9 * without
        assert fitted.error == pytest.approx(usual.error(fitted.label(usual.counts)), rel=0.15)

    @pytest.mark.parametrize(
        "made",
        [
            pytest.param({"moving": True}, id="moving documents"),
            pytest.param({"context": True}, id="contexts"),
            pytest.param({"grades": 3}, id="grades"),
        ],
    )
    def test_of_every_kind_of_log(self, made: dict[str, Any]) -> None:
        other = world(seed=3, **made)
        options = {"mixture": "graded", "grades": 3} if "grades" in made else {"mixture": "auto"}
        with_features = cm.MixtureCorrection(features=other.features, **options).fit(other.counts)
        without = other.error(cm.MixtureCorrection(**options).fit(other.counts).label(other.counts))
        assert featured_of(with_features).helps
        assert other.error(with_features.label(other.counts)) < 0.95 * without

    def test_intervals_are_narrower_and_hold_the_truth(self, usual: World, fitted: MixtureFit) -> None:
        labels, without = fitted.label(usual.counts), cm.debias(usual.counts, mixture="binomial")
        shown = labels.impressions > 0
        width = (labels.high - labels.low)[shown].mean()
        assert width < (without.high - without.low).mean()
        true = usual.relevance[labels.query_id, labels.doc_id]
        held = ((labels.low <= true) & (true <= labels.high))[shown].mean()
        assert held > 0.93

    def test_documents_never_shown_are_labelled_by_features_alone(self, usual: World, fitted: MixtureFit) -> None:
        labels = fitted.label(usual.counts)
        unshown = labels.impressions == 0
        assert unshown.sum() == QUERIES * (LISTED - TOP) == featured_of(fitted).unshown
        true = usual.relevance[labels.query_id, labels.doc_id][unshown]
        assert labels.relevance[unshown][true == 1].mean() > 2 * labels.relevance[unshown][true == 0].mean()
        wide = labels.high - labels.low
        assert wide[unshown].mean() > wide[~unshown].mean()
        assert ((labels.low <= labels.relevance) & (labels.relevance <= labels.high)).all()

    def test_features_that_say_nothing_are_not_used(self, usual: World) -> None:
        fit = cm.MixtureCorrection(mixture="binomial", features=noise(usual.features)).fit(usual.counts)
        without = cm.debias(usual.counts, mixture="binomial")
        assert not featured_of(fit).helps
        assert (fit.label(usual.counts).relevance == without.relevance).all()
        assert any(sentence.startswith("Features are not used: with 1 feature") for sentence in fit_sentences(fit))

    def test_the_output_says_that_features_are_used(self, fitted: MixtureFit) -> None:
        said = " ".join(fit_sentences(fitted))
        assert "Features give each document its own prior, learned from 3 features of 2,400 documents" in said
        assert "600 documents with features were never shown" in said
        values = fit_results(fitted).json()["features"]
        assert (values["used"], values["never_shown"]) == (True, 600)

    def test_documents_without_features_keep_a_label(self, usual: World) -> None:
        some = usual.features.filter(np.asarray(usual.features["doc_id"]) != 2)
        fit = cm.MixtureCorrection(mixture="binomial", features=some).fit(usual.counts)
        labels = fit.label(usual.counts)
        assert featured_of(fit).without == QUERIES
        assert (labels.doc_id == 2).sum() == QUERIES

    def test_the_same_labels_every_time(self, usual: World, fitted: MixtureFit) -> None:
        again = cm.MixtureCorrection(mixture="binomial", features=usual.features).fit(usual.counts)
        assert again.to_json() == fitted.to_json()

    def test_ids_keep_their_type(self, usual: World) -> None:
        texts = {name: [f"{name[0]}{each}" for each in usual.log[name].to_pylist()] for name in ("query_id", "doc_id")}
        rest = ("position", "impressions", "clicks")
        log = pa.table({**texts, **{name: usual.log[name] for name in rest}})
        renamed = {
            name: [f"{name[0]}{each}" for each in usual.features[name].to_pylist()] for name in ("query_id", "doc_id")
        }
        features = pa.table({**renamed, **{name: usual.features[name] for name in ("size", "sign")}})
        labels = cm.debias(log, mixture="binomial", features=features)
        assert labels["query_id"].type == pa.string()
        assert labels.num_rows == QUERIES * LISTED


class TestScores:
    def test_trees_of_a_fold_have_not_seen_its_clicks(self, usual: World) -> None:
        table = FeatureTable.open(usual.features)
        row = np.arange(usual.features.num_rows)
        query = row // LISTED
        fold = query % FOLDS
        rng = np.random.default_rng(0)
        after = rng.dirichlet([1, 1], len(row)).T
        before = np.full_like(after, 0.5)
        other = after.copy()
        other[:, fold == 0] = rng.dirichlet([1, 1], int((fold == 0).sum())).T
        one, two = (table.learn(row, query, fold, before, each).folds for each in (after, other))
        assert one[0].rankers == two[0].rankers
        shorter, longer = sorted((trees(one[0].prior), trees(two[0].prior)), key=len)
        assert shorter == longer[: len(shorter)]  # how many there are is decided by all folds together
        assert one[1].rankers != two[1].rankers

    def test_the_slope_is_that_of_the_log_likelihood(self) -> None:
        rng = np.random.default_rng(0)
        before, after = rng.dirichlet(np.ones(4), 50).T, rng.dirichlet(np.ones(4), 50).T
        score = rng.normal(size=50)
        step = 1e-5
        numerical = (gained(before, after, score + step) - gained(before, after, score - step)) / (2 * step)
        assert slope(before, after, score)[0] == pytest.approx(numerical, abs=1e-8)

    def test_scores_in_cells_gain_what_tilting_says(self, fitted: MixtureFit) -> None:
        assert fitted.model is not None
        model, rng = fitted.model.model, np.random.default_rng(0)
        documents, place = 200, rng.integers(0, len(model.places), 200)
        n = rng.integers(1, 9, documents)
        rows = (np.arange(documents) // 5, np.arange(documents), place, n, rng.binomial(n, 0.3))
        score = rng.normal(size=documents)
        plain, entry = Cells.of_documents(model.places, *rows, queries=40)
        scored, own = Cells.of_documents(model.places, *rows, queries=40, score=score)
        before, after = before_and_after(model, plain)
        total = expected(model, scored)[1].value - expected(model, plain)[1].value
        assert gained(before[:, entry], after[:, entry], score).sum() == pytest.approx(total, abs=1e-9)
        assert scored.score is not None
        assert (scored.score[scored.entry[own]] == score).all()


def trees(text: str) -> list[str]:
    """The trees of LightGBM's text, one by one."""
    return re.findall(r"leaf_value=.*", text)


class TestModelFile:
    def test_labels_come_back_with_the_features(self, usual: World, fitted: MixtureFit, tmp_path: Path) -> None:
        fitted.write(tmp_path / "model.json")
        read = MixtureFit.read(tmp_path / "model.json").using_features(usual.features)
        assert read.to_json() == fitted.to_json()
        assert (read.label(usual.counts).relevance == fitted.label(usual.counts).relevance).all()

    def test_a_model_needs_the_features_of_the_log(self, usual: World, fitted: MixtureFit, tmp_path: Path) -> None:
        fitted.write(tmp_path / "model.json")
        with pytest.raises(SettingError, match="its file does not have the features of this log's documents"):
            MixtureFit.read(tmp_path / "model.json").label(usual.counts)

    def test_a_model_without_features_takes_none(self, usual: World) -> None:
        plain = cm.MixtureCorrection(mixture="binomial").fit(usual.counts)
        with pytest.raises(SettingError, match="this model was fitted without features"):
            plain.using_features(usual.features)

    def test_other_features_are_refused(self, usual: World, fitted: MixtureFit) -> None:
        other = usual.features.rename_columns(["query_id", "doc_id", "size", "sign", "colour"])
        with pytest.raises(ClickmixError, match="noise"):
            fitted.using_features(other).label(usual.counts)

    def test_crafted_trees_are_refused(self, usual: World, fitted: MixtureFit) -> None:
        featured = featured_of(fitted)
        crafted = dataclasses.replace(
            featured.folds[0], prior=re.sub(r"left_child=\S+", "left_child=9", featured.folds[0].prior, count=1)
        )
        folds = (crafted, *featured.folds[1:])
        bad = dataclasses.replace(fitted, featured=dataclasses.replace(featured, folds=folds))
        with pytest.raises(FormatError, match="the model's trees for features"):
            bad.label(usual.counts)

    def test_is_no_sql_statement(self, fitted: MixtureFit) -> None:
        with pytest.raises(SettingError, match="a model with features cannot be written as one SQL statement"):
            fitted.statement("counts")


class TestBadInput:
    @pytest.mark.parametrize("options", [{"mixture": "gaussian"}, {"sharing": False}, {"examination": "dcm"}])
    def test_only_one_model_of_the_log_learns_from_features(self, options: dict[str, Any]) -> None:
        with pytest.raises(SettingError, match="features: only one model of the whole log can learn from them"):
            cm.MixtureCorrection(features="f.csv", **options)

    def test_features_of_other_documents(self, usual: World) -> None:
        texts = pa.array([f"q{each}" for each in usual.features["query_id"].to_pylist()])
        other = usual.features.set_column(0, "query_id", texts)
        with pytest.raises(ClickmixError, match="no document of the log has features"):
            cm.MixtureCorrection(mixture="binomial", features=other).fit(usual.counts)

    def test_clicks_that_say_nothing_teach_nothing(self, usual: World) -> None:
        zeros = np.zeros(len(usual.log), dtype=np.int64)
        log = usual.log.set_column(usual.log.column_names.index("clicks"), "clicks", pa.array(zeros))
        fit = cm.MixtureCorrection(features=usual.features).fit(cm.count(log))
        assert fit.featured is None
        assert len(fit.label(cm.count(log)).relevance) == QUERIES * TOP

    def test_too_few_queries(self) -> None:
        small = world(queries=40)
        fit = cm.MixtureCorrection(mixture="binomial", features=small.features).fit(small.counts)
        assert not featured_of(fit).helps
        assert any("they cover only 40 queries of the log" in sentence for sentence in fit_sentences(fit))


class TestCommands:
    def test_debias_and_label(
        self, usual: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        monkeypatch.chdir(tmp_path)
        pq.write_table(usual.log.drop_columns(["device"]), "log.parquet")
        pq.write_table(usual.features, "features.parquet")
        words = "log.parquet -o labels.parquet --mixture binomial --features features.parquet --model m.json --json"
        told = json.loads(run("debias", *words.split(), "--report", "report.html").stdout)
        assert told["features"]["used"]
        run("label", "log.parquet", "--model", "m.json", "--features", "features.parquet", "-o", "again.parquet")
        assert Path("again.parquet").read_bytes() == Path("labels.parquet").read_bytes()
        assert "--features FILE" in failure(
            capsys, monkeypatch, "label", "log.parquet", "--model", "m.json", "-o", "x.parquet"
        )
        assert not Path("x.parquet").exists()
