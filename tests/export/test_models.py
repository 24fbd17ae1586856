"""Exported models send every document to the leaf that LightGBM sends it to."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import lightgbm
import numpy as np
import pytest

import engines_ltr as engines
from clickmix.errors import InputError, SettingError
from clickmix.export import trees
from clickmix.export.solr import slack_threshold
from clickmix.export.target import EXPORTS, export
from clickmix.export.trees import LARGEST_FLOAT, above32, floor32, read_trees, trees_of
from commands import failure, run
from rankers_export import WIDTH, documents, edge_rows, leaf_values, save_ranker, thresholds, train_ranker

NAMES = [f"feature_{i + 1}" for i in range(WIDTH)]
SINGLE = 2.0**-24  # the rounding error of single precision


@pytest.fixture(scope="module", params=[False, True], ids=["no gaps", "gaps"])
def ranker(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Any, bool]:
    """A ranker's folder, its booster, and whether it was trained on missing values."""
    folder = tmp_path_factory.mktemp("rankers") / "ranker"
    return folder, train_ranker(folder, gaps=request.param), request.param


def exported(folder: Path, target: str, output: Path) -> Any:
    export(folder, to=target, output=output)
    return json.loads(output.read_text(encoding="utf-8"))


Evaluate = Callable[[Any, Any], Any]
EVALUATORS: dict[str, Evaluate] = {
    "elasticsearch-ltr": lambda model, rows: engines.ltr_plugin(model, NAMES, rows),
    "opensearch-ltr": lambda model, rows: engines.ltr_plugin(model, NAMES, rows),
    "solr": engines.solr,
    "vespa": engines.vespa,
    "elasticsearch": engines.elasticsearch,
}
SINGLES = ("elasticsearch-ltr", "opensearch-ltr", "solr")


def rows_of(booster: Any, *, gaps: bool) -> Any:
    """10,000 random rows, and rows at and next to every threshold; missing values in both."""
    rows = [documents(10_000, seed=7, gaps=True), edge_rows(booster, gaps=gaps), edge_rows(booster, gaps=False)]
    return np.concatenate(rows)


@pytest.mark.parametrize("target", EVALUATORS)
def test_every_row_reaches_the_same_leaf(target: str, ranker: tuple[Path, Any, bool], tmp_path: Path) -> None:
    folder, booster, gaps = ranker
    model = exported(folder, target, tmp_path / "model.json")
    rows = rows_of(booster, gaps=gaps)
    if target == "solr":  # all that Solr cannot tell from 0
        rows = rows[~((rows != 0) & (rows > -2e-13) & (rows <= np.float32(1e-35))).any(axis=1)]
    expected = leaf_values(booster, rows)
    found = EVALUATORS[target](model, rows)
    assert len(rows) > 10_500
    np.testing.assert_array_equal(found, expected.astype(found.dtype))


@pytest.mark.parametrize("target", EVALUATORS)
def test_scores_and_order_agree_within_rounding(target: str, ranker: tuple[Path, Any, bool], tmp_path: Path) -> None:
    folder, booster, _ = ranker
    rows = documents(10_000, seed=8, gaps=True)
    leaves = EVALUATORS[target](exported(folder, target, tmp_path / "model.json"), rows)
    scores = engines.summed32(leaves).astype(float) if target in SINGLES else leaves.sum(axis=1)
    true = booster.predict(rows)
    unit = SINGLE if target in SINGLES else 2.0**-53
    # Each leaf is rounded once, and each of n sums once.
    bound = 1.01 * unit * (leaves.shape[1] + 1) * np.abs(leaf_values(booster, rows)).sum(axis=1)
    assert (np.abs(scores - true) <= bound).all()
    order = np.argsort(true, kind="stable")
    gap = np.diff(true[order]) > bound[order][1:] + bound[order][:-1]
    assert gap.sum() > 1000
    assert (np.diff(scores[order])[gap] > 0).all()


@pytest.mark.parametrize("target", ["vespa", "elasticsearch"])
def test_engines_in_double_precision_agree_at_the_very_threshold(
    target: str, ranker: tuple[Path, Any, bool], tmp_path: Path
) -> None:
    folder, booster, _ = ranker
    splits = [(feature, t) for feature, t in thresholds(booster) if t < 1e300]  # LightGBM writes infinity like that
    rows = np.repeat(documents(len(splits), seed=4, gaps=False).astype(np.float64), 3, axis=0)
    for i, (feature, t) in enumerate(splits):
        rows[3 * i : 3 * i + 3, feature] = [math.nextafter(t, -math.inf), t, math.nextafter(t, math.inf)]
    found = EVALUATORS[target](exported(folder, target, tmp_path / "model.json"), rows)
    np.testing.assert_array_equal(found, leaf_values(booster, rows))


def test_thresholds_written_as_they_are_would_be_wrong(ranker: tuple[Path, Any, bool], tmp_path: Path) -> None:
    """The rows can tell: with LightGBM's thresholds as they are, some go elsewhere."""
    folder, booster, _ = ranker
    model = exported(folder, "elasticsearch-ltr", tmp_path / "model.json")
    as_they_are = {float(above32(floor32(t))): min(t, 1e38) for _, t in thresholds(booster)}

    def spoil(node: dict[str, Any]) -> None:
        if "split" in node:
            node["split_condition"] = as_they_are[node["split_condition"]]
            for child in node["children"]:
                spoil(child)

    for root in model:
        spoil(root)
    rows = edge_rows(booster, gaps=False)
    found = engines.ltr_plugin(model, NAMES, rows)
    assert (found != leaf_values(booster, rows).astype(np.float32)).any()


def test_lightgbm_reads_its_text_under_the_names_of_the_features(
    ranker: tuple[Path, Any, bool], tmp_path: Path
) -> None:
    folder, booster, _ = ranker
    export(folder, to="lightgbm", output=tmp_path / "model.txt")
    read = lightgbm.Booster(model_file=tmp_path / "model.txt")
    rows = rows_of(booster, gaps=True)
    assert read.feature_name() == NAMES
    np.testing.assert_array_equal(read.predict(rows), booster.predict(rows))


def test_treelite_gives_the_scores_of_the_exported_text(ranker: tuple[Path, Any, bool], tmp_path: Path) -> None:
    treelite = pytest.importorskip("treelite", reason="treelite is not installed")
    folder, booster, _ = ranker
    export(folder, to="lightgbm", output=tmp_path / "model.txt")
    model = treelite.frontend.load_lightgbm_model(tmp_path / "model.txt")
    rows = rows_of(booster, gaps=True).astype(np.float64)
    found = np.asarray(treelite.gtil.predict(model, rows)).ravel()
    # Sums of doubles, in whatever order.
    np.testing.assert_allclose(found, booster.predict(rows), rtol=0, atol=2.0**-53 * 30 * 30)


@pytest.mark.parametrize("target", ["elasticsearch-ltr", "opensearch-ltr"])
def test_the_ltr_request_holds_the_model_as_text(target: str, ranker: tuple[Path, Any, bool], tmp_path: Path) -> None:
    folder, _, _ = ranker
    done = export(folder, to=target, output=tmp_path / "model.json", title="shop")
    request = json.loads((tmp_path / "model.request.json").read_text())
    features = json.loads((tmp_path / "model.features.json").read_text())["featureset"]
    assert request["model"]["name"] == "shop"
    assert request["model"]["model"]["type"] == "model/xgboost+json"
    assert json.loads(request["model"]["model"]["definition"]) == json.loads((tmp_path / "model.json").read_text())
    assert [feature["name"] for feature in features["features"]] == NAMES
    assert done.requests == (
        "curl -X PUT localhost:9200/_ltr",
        "curl -X POST localhost:9200/_ltr/_featureset/shop -H 'Content-Type: application/json' "
        f"--data-binary @{tmp_path / 'model.features.json'}",
        "curl -X POST localhost:9200/_ltr/_featureset/shop/_createmodel -H 'Content-Type: application/json' "
        f"--data-binary @{tmp_path / 'model.request.json'}",
    )


def test_elasticsearch_and_solr_and_vespa_get_what_they_need_beside_the_model(
    ranker: tuple[Path, Any, bool], tmp_path: Path
) -> None:
    folder, _, gaps = ranker
    definition = exported(folder, "elasticsearch", tmp_path / "es.json")
    request = json.loads((tmp_path / "es.request.json").read_text())
    assert request["definition"] == definition
    extractors = request["inference_config"]["learning_to_rank"]["feature_extractors"]
    assert [each["query_extractor"]["feature_name"] for each in extractors] == NAMES
    exported(folder, "solr", tmp_path / "solr.json")
    store = json.loads((tmp_path / "solr.features.json").read_text())
    assert [feature["name"] for feature in store] == NAMES
    assert ("defaultValue" in store[0]["params"]) == gaps
    exported(folder, "vespa", tmp_path / "vespa.json")
    profile = (tmp_path / "vespa.profile").read_text()
    assert 'expression: lightgbm("vespa.json")' in profile
    assert "function feature_6() {" in profile


@pytest.mark.parametrize(
    ("target", "no_gaps", "gaps"),
    [
        (
            "elasticsearch-ltr",
            [
                "Missing values, the plugin up to 2024: read as 0, which agrees with the ranker.",
                "Missing values, the plugin since October 2025: read where each split says, which agrees with the "
                "ranker.",
            ],
            [
                "Missing values, the plugin since October 2025: read where each split says, which agrees with the "
                "ranker.",
                "Missing values, the plugin up to 2024: read as 0, which does NOT agree with the ranker: fill gaps in "
                "the engine.",
            ],
        ),
        (
            "opensearch-ltr",
            [
                "Missing values, OpenSearch before 3.2: read as 0, which agrees with the ranker.",
                "Missing values, OpenSearch 3.8 and newer: read where each split says, which agrees with the ranker.",
                "Missing values, OpenSearch 3.2 to 3.7: read as going right at every split, which does NOT agree with "
                "the ranker: fill gaps in the engine.",
            ],
            [
                "Missing values, OpenSearch 3.8 and newer: read where each split says, which agrees with the ranker.",
                "Missing values, OpenSearch before 3.2: read as 0, which does NOT agree with the ranker: fill gaps in "
                "the engine.",
                "Missing values, OpenSearch 3.2 to 3.7: read as going right at every split, which does NOT agree with "
                "the ranker: fill gaps in the engine.",
            ],
        ),
        (
            "solr",
            ["Missing values, every version of Solr: read as 0, which agrees with the ranker."],
            [
                "Missing values, Solr 9.2 and newer: read where each split says, which agrees with the ranker.",
                "Missing values, Solr before 9.2: read as 0 (it refuses this model), which does NOT agree with the "
                "ranker: fill gaps in the engine.",
            ],
        ),
    ],
)
def test_it_says_which_versions_agree_on_missing_values(
    target: str, no_gaps: list[str], gaps: list[str], ranker: tuple[Path, Any, bool], tmp_path: Path
) -> None:
    folder, _, trained_on_gaps = ranker
    notes = export(folder, to=target, output=tmp_path / "model.json").notes
    assert [note for note in notes if note.startswith("Missing")] == (gaps if trained_on_gaps else no_gaps)


@pytest.mark.parametrize(("target", "count"), [("elasticsearch-ltr", 2), ("opensearch-ltr", 3)])
def test_the_versions_that_are_said_to_agree_on_missing_values_do(
    target: str, count: int, ranker: tuple[Path, Any, bool], tmp_path: Path
) -> None:
    """And the others do not: 10,000 rows with missing values, read as each version of the plugin reads them."""
    folder, booster, _ = ranker
    model = exported(folder, target, tmp_path / "model.json")
    rows = documents(10_000, seed=9, gaps=True)
    expected = leaf_values(booster, rows).astype(np.float32)
    made: Any = EXPORTS.make(target)
    readings = made.readings(read_trees(folder, target=target))
    assert len(readings) == count
    for reading in readings:
        found = engines.ltr_plugin(model, NAMES, rows, missing=reading.words)
        assert (found == expected).all() == reading.agrees, reading


def chain(splits: int) -> str:
    """LightGBM's text of one tree in which each split has a leaf and the next split."""
    train = lightgbm.Dataset(np.arange(40.0)[:, None], np.arange(40.0), params={"verbosity": -1, "min_data_in_bin": 1})
    grown = lightgbm.train({"verbosity": -1, "min_data_in_leaf": 1}, train, num_boost_round=1).model_to_string()
    lists: dict[str, list[Any]] = {
        "num_leaves": [splits + 1],
        "split_feature": [0] * splits,
        "split_gain": [1] * splits,
        "threshold": [0.5] * splits,
        "decision_type": [2] * splits,
        "left_child": [*range(1, splits), -splits - 1],
        "right_child": [-leaf for leaf in range(1, splits + 1)],
        **dict.fromkeys(("leaf_value", "leaf_weight", "leaf_count"), [1] * (splits + 1)),
        **dict.fromkeys(("internal_value", "internal_weight", "internal_count"), [1] * splits),
    }
    head, _, rest = grown.partition("\n\n")
    tree, _, rest = rest.partition("\n\n\n")
    for name, values in lists.items():
        tree = re.sub(f"(?m)^{name}=.*", f"{name}={' '.join(map(str, values))}", tree)
    head = re.sub("tree_sizes=.*", f"tree_sizes={len(tree) + 3}", head)
    return f"{head}\n\n{tree}\n\n\n{rest}"


def test_a_branch_that_would_crash_lightgbm_is_refused() -> None:
    (tree,) = trees_of(chain(trees.MOST_SPLITS), ("x",), target="solr").trees
    assert len(tree) == 2 * trees.MOST_SPLITS + 1
    with pytest.raises(InputError, match="a branch of 100,000 splits, more than the 400 that solr can hold"):
        trees_of(chain(100_000), ("x",), target="solr")


@pytest.mark.parametrize("threshold", [0.1, 0.5, 3.0, 1e7, 0.0, -0.25, -1e3, 2.0**-24])
def test_floor32_is_the_largest_number_up_to_the_threshold(threshold: float) -> None:
    found = floor32(threshold)
    assert float(found) <= threshold
    assert float(np.nextafter(found, np.float32(np.inf))) > threshold


def test_floor32_of_a_threshold_above_all_numbers_is_the_largest_number() -> None:
    assert floor32(1e300) == above32(floor32(1e300)) == LARGEST_FLOAT


@pytest.mark.parametrize("threshold", [0.1, 0.5, 3.0, 1e7, 0.002, -0.25, -1e3, 1e300])
def test_solr_meets_a_threshold(threshold: float) -> None:
    written = slack_threshold(threshold)
    assert written is not None
    assert np.float32(written + np.float32(1e-6)) == floor32(threshold)


def test_solr_refuses_thresholds_it_cannot_meet(tmp_path: Path) -> None:
    features = documents(600, seed=1, gaps=False)
    small = (features * np.float32(3e-8)).astype(np.float32)
    grade = (features[:, 1] > 0.5).astype(int)
    data = lightgbm.Dataset(small, grade, group=[20] * 30, params={"verbosity": -1})
    settings = {"objective": "lambdarank", "verbosity": -1, "num_threads": 1}
    booster = lightgbm.train(settings, data, num_boost_round=3)
    save_ranker(booster, tmp_path / "ranker")
    with pytest.raises(
        InputError, match=r"^feature_\d: Solr adds 1e-6 to every threshold, and cannot hit .*\. Multiply"
    ):
        export(tmp_path / "ranker", to="solr", output=tmp_path / "model.json")
    assert [path.name for path in tmp_path.iterdir()] == ["ranker"]


def test_zero_as_missing_is_refused_by_the_name_of_the_feature(tmp_path: Path) -> None:
    train_ranker(tmp_path / "ranker", gaps=False, zero_as_missing=True)
    message = r"feature_\d: 0 means missing, which vespa cannot follow\. Train without zero_as_missing\."
    with pytest.raises(InputError, match=message):
        export(tmp_path / "ranker", to="vespa", output=tmp_path / "model.json")
    assert [path.name for path in tmp_path.iterdir()] == ["ranker"]


def test_splits_by_category_are_refused_by_the_name_of_the_feature(tmp_path: Path) -> None:
    options = {"min_data_per_group": 5, "cat_smooth": 1}
    booster = train_ranker(tmp_path / "ranker", gaps=False, categories=(0,), **options)
    message = r"colour: splits by category cannot be exported to solr\. Train on numbers\."
    with pytest.raises(InputError, match=message):
        trees_of(booster.model_to_string(), ("colour", *NAMES[1:]), target="solr")


@dataclass(frozen=True)
class Named:
    """A ranker whose features have names."""

    trees_text: str
    feature_names: tuple[str, ...]
    features: int = WIDTH


def test_features_go_by_their_own_names(
    ranker: tuple[Path, Any, bool], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = ("bm25_title", "bm25_body", "ctr", "price", "age", "stock")
    monkeypatch.setattr(trees, "load_ranker", lambda folder: Named(ranker[1].model_to_string(), names))
    solr = exported(ranker[0], "solr", tmp_path / "solr.json")
    vespa = exported(ranker[0], "vespa", tmp_path / "vespa.json")
    assert [feature["name"] for feature in solr["features"]] == vespa["feature_names"] == list(names)
    rows = documents(100, seed=1, gaps=True)
    np.testing.assert_array_equal(engines.solr(solr, rows), leaf_values(ranker[1], rows).astype(np.float32))


@pytest.mark.parametrize(
    ("name", "good"),
    [("bm25(title)", True), ("fieldMatch(title).proximity", True), ("bm25 body", False), ("price/100", False)],
)
def test_vespa_refuses_names_that_are_no_rank_feature(
    name: str, good: bool, ranker: tuple[Path, Any, bool], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = (name, *NAMES[1:])
    monkeypatch.setattr(trees, "load_ranker", lambda folder: Named(ranker[1].model_to_string(), names))
    if good:
        assert exported(ranker[0], "vespa", tmp_path / "vespa.json")["feature_names"] == list(names)
        return
    with pytest.raises(InputError, match=re.escape(f"{name!r}: Vespa cannot name a feature like this.")):
        export(ranker[0], to="vespa", output=tmp_path / "vespa.json")
    assert list(tmp_path.iterdir()) == []


def test_lightgbm_refuses_names_it_cannot_hold(
    ranker: tuple[Path, Any, bool], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = ("bm25(title, body)", *NAMES[1:])
    monkeypatch.setattr(
        "clickmix.export.lightgbm.load_ranker", lambda folder: Named(ranker[1].model_to_string(), names)
    )
    with pytest.raises(
        InputError, match=r"'bm25\(title, body\)': LightGBM accepts no blanks and no \" , : \[ \] \{ \} in"
    ):
        export(ranker[0], to="lightgbm", output=tmp_path / "model.txt")


def test_a_ranker_without_trees_is_sent_to_onnx(
    ranker: tuple[Path, Any, bool], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trees, "load_ranker", lambda folder: object())
    message = "ranker: this ranker has no trees, and vespa takes nothing else. Export it --to onnx."
    with pytest.raises(InputError, match=re.escape(message)):
        export(ranker[0], to="vespa", output=tmp_path / "model.json")


def test_a_title_that_the_engine_cannot_hold_is_refused(
    ranker: tuple[Path, Any, bool], tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ["export", str(ranker[0]), "--to", "elasticsearch", "-o", str(tmp_path / "m.json"), "--title", "My Shop"]
    assert failure(capsys, monkeypatch, *words) == (
        "clickmix: title 'My Shop': expected small letters, digits, - and _, as in shop_ranker-1. Pass --title.\n"
    )
    assert list(tmp_path.iterdir()) == []


def test_an_option_of_labels_is_refused_for_a_ranker(ranker: tuple[Path, Any, bool], tmp_path: Path) -> None:
    with pytest.raises(SettingError, match=r"top belongs to the target quepid or .*, not to vespa"):
        export(ranker[0], to="vespa", output=tmp_path / "model.json", top=3)


def test_the_output_may_not_be_inside_the_ranker(ranker: tuple[Path, Any, bool]) -> None:
    with pytest.raises(InputError, match="would replace an input"):
        export(ranker[0], to="vespa", output=ranker[0] / "ranker.json")


def test_the_command_prints_what_it_wrote_and_how_to_upload_it(ranker: tuple[Path, Any, bool], tmp_path: Path) -> None:
    output = tmp_path / "model.json"
    done = run("export", str(ranker[0]), "--to", "vespa", "-o", str(output))
    assert done.exit_code == 0
    assert done.output == (
        f"25 trees of 6 features in {output}.\n"
        f"Each feature is an attribute of the same name: put your own functions into {tmp_path / 'model.profile'}.\n"
        "Missing values (NaN): every version sends them where each split says, which agrees with the ranker.\n"
        "To upload:\n"
        f"  cp {output} APPLICATION/models/\n"
        f"  cp {tmp_path / 'model.profile'} APPLICATION/schemas/SCHEMA/ranker.profile\n"
        "  vespa deploy APPLICATION\n"
    )


def test_the_same_ranker_gives_the_same_bytes(ranker: tuple[Path, Any, bool], tmp_path: Path) -> None:
    export(ranker[0], to="solr", output=tmp_path / "a.json")
    export(ranker[0], to="solr", output=tmp_path / "b.json")
    assert (tmp_path / "a.json").read_bytes() == (tmp_path / "b.json").read_bytes()


def test_every_target_of_rankers_is_tested_here() -> None:
    takers = {member.name for member in EXPORTS if EXPORTS.make(member.name).takes == "ranker"}
    assert takers == {*EVALUATORS, "lightgbm", "onnx"}


ELAND = Path(__file__).parents[1] / "golden" / "eland-9.2"


def test_elands_serializer_writes_the_same_trees(tmp_path: Path) -> None:
    """eland needs pandas before 3, so what it wrote is on file, with the program that made it.

    A split without missing values in training has no side for them in eland; LightGBM and clickmix read 0.
    """
    found = exported(ELAND / "ranker", "elasticsearch", tmp_path / "model.json")["trained_model"]["ensemble"]
    expected = json.loads((ELAND / "definition.json").read_text(encoding="utf-8"))["trained_model"]["ensemble"]
    assert {key: found[key] for key in expected if key != "trained_models"} == {
        key: value for key, value in expected.items() if key != "trained_models"
    }
    (text,) = (ELAND / "ranker").glob("model.*.txt")
    dump = lightgbm.Booster(model_file=str(text)).dump_model()["tree_info"]
    splits = 0

    def compare(ours: list[Any], theirs: list[Any], one: int, other: int, node: dict[str, Any]) -> int:
        mine, eland = ours[one], theirs[other]
        if "leaf_value" in eland:
            assert mine["leaf_value"] == eland["leaf_value"] == node["leaf_value"]
            return 0
        keys = ("decision_type", "split_feature", "threshold")
        assert [mine[key] for key in keys] == [eland[key] for key in keys]
        told = node["missing_type"] == "NaN"
        assert mine["default_left"] == (eland["default_left"] if told else node["threshold"] >= 0)
        return 1 + sum(
            compare(ours, theirs, mine[f"{side}_child"], eland[f"{side}_child"], node[f"{side}_child"])
            for side in ("left", "right")
        )

    for mine, eland, tree in zip(found["trained_models"], expected["trained_models"], dump, strict=True):
        ours, theirs = (member["tree"]["tree_structure"] for member in (mine, eland))
        splits += compare(ours, theirs, 0, 0, tree["tree_structure"])
    assert splits > 40
