"""What every ranker promises: fit, score, save, load, the same bytes; and from clicks to a better ranking."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import clickmix as cm
from clickmix.evaluate import evaluate, paired_t_test
from clickmix.features import Examples, make_examples, write_features
from clickmix.lab.collections import synthetic_collection
from clickmix.lab.simulate import Simulation, write_simulation
from clickmix.rankers import RANKERS, LambdaMART, Ranker, check_folder, load_ranker
from clickmix.rankers.folder import SavedRanker, write_folder
from clickmix.registry import Option
from clickmix.storage.documents import write_document
from collections_rankers import all_labels, split
from commands import ENVIRONMENT, run

TRAIN, OTHER = split(sizes=[8] * 30), split(sizes=[8] * 10, seed=5)
SMALL = LambdaMART(trees=10, leaves=7)
GOLDEN = Path(__file__).parents[1] / "golden" / "rankers-0.1"


def contract_names() -> tuple[str, ...]:
    """The rankers that the contract holds for: every member of the family."""
    return RANKERS.names()


every_ranker = pytest.mark.parametrize("name", contract_names())
_trained: dict[tuple[str, int], Ranker] = {}


def trained(name: str, *, seed: int = 0) -> Ranker:
    """A ranker with its usual settings, trained once."""
    if (name, seed) not in _trained:
        _trained[name, seed] = RANKERS.make(name).fit(make_examples(TRAIN, all_labels(TRAIN)), seed=seed)
    return _trained[name, seed]


def contents(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in folder.iterdir()}


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    """A folder with a LambdaMART."""
    SMALL.fit(make_examples(TRAIN, all_labels(TRAIN))).save(tmp_path / "ranker")
    return tmp_path / "ranker"


@every_ranker
def test_it_learns_and_is_the_same_after_a_round_trip(name: str, tmp_path: Path) -> None:
    fitted = trained(name)
    scores = fitted.score(OTHER.features)
    fitted.save(tmp_path / "ranker")
    loaded = load_ranker(tmp_path / "ranker")
    query = OTHER.query_id[OTHER.query]
    assert evaluate(scores, OTHER.grade, query).mean > evaluate(np.zeros(len(scores)), OTHER.grade, query).mean
    assert loaded.score(OTHER.features).tolist() == scores.tolist()
    assert (loaded.features, loaded.feature_names) == (3, ("feature_1", "feature_2", "feature_3"))
    loaded.save(tmp_path / "again")
    assert contents(tmp_path / "again") == contents(tmp_path / "ranker")


@every_ranker
def test_the_same_seed_gives_the_same_bytes(name: str, tmp_path: Path) -> None:
    examples = make_examples(TRAIN, all_labels(TRAIN))
    trained(name, seed=3).save(tmp_path / "first")
    RANKERS.make(name).fit(examples, seed=3).save(tmp_path / "second")
    assert contents(tmp_path / "first") == contents(tmp_path / "second")


@every_ranker
def test_a_ranker_may_replace_another(name: str, saved: Path) -> None:
    trained(name).save(saved)
    assert load_ranker(saved).score(OTHER.features).tolist() == trained(name).score(OTHER.features).tolist()
    assert len(list(saved.iterdir())) == 2


@every_ranker
def test_order_of_labels_does_not_matter(name: str) -> None:
    order = np.random.default_rng(0).permutation(TRAIN.documents)
    shuffled = tuple(column[order] for column in all_labels(TRAIN))
    second = RANKERS.make(name).fit(make_examples(TRAIN, shuffled))
    assert trained(name).score(OTHER.features).tolist() == second.score(OTHER.features).tolist()


@every_ranker
def test_progress_rises_to_the_whole(name: str) -> None:
    shares: list[float] = []
    RANKERS.make(name).fit(make_examples(TRAIN, all_labels(TRAIN)), progress=shares.append)
    assert shares == sorted(shares)
    assert shares[-1] == 1


@every_ranker
def test_names_of_features_and_their_gaps_are_kept(name: str, tmp_path: Path) -> None:
    features = TRAIN.features.copy()
    features[::4, 1] = np.nan
    named = replace(TRAIN, features=features, feature_names=("bm25 title", "ctr", 'a "quoted", name'))
    fitted = RANKERS.make(name).fit(make_examples(named, all_labels(TRAIN)))
    fitted.save(tmp_path / "ranker")
    loaded = load_ranker(tmp_path / "ranker")
    assert loaded.feature_names == ("bm25 title", "ctr", 'a "quoted", name')
    assert loaded.missing == ("ctr",)
    assert loaded.score(features).tolist() == fitted.score(features).tolist()
    assert np.isfinite(fitted.score(features)).all()


@every_ranker
def test_a_gap_where_training_had_none_is_refused(name: str) -> None:
    features = OTHER.features.copy()
    features[6, 2] = np.nan
    with pytest.raises(cm.InputError) as caught:
        trained(name).score(features)
    assert str(caught.value) == (
        "features, row 7, column 3: the value is missing, but this feature was never missing in training (rows and "
        "columns count from 1). Fill the gap, or train with gaps in this feature."
    )


@every_ranker
def test_curves_are_the_mean_scores_with_one_value_everywhere(name: str) -> None:
    rows = OTHER.features[:50]
    curve = trained(name).partial_dependence(rows, "feature_2")
    assert [point.value for point in curve] == sorted({point.value for point in curve})
    changed = rows.copy()
    changed[:, 1] = curve[3].value
    assert curve[3].score == float(np.mean(trained(name).score(changed)))
    assert curve[0].value == rows[:, 1].min()
    assert curve[-1].value == rows[:, 1].max()


@pytest.mark.parametrize("name", ["lambdamart", "dnn"])
def test_a_folder_that_release_0_1_wrote_is_read(name: str, tmp_path: Path) -> None:
    expected = json.loads((GOLDEN / "scores.json").read_text())
    loaded = load_ranker(GOLDEN / name)
    assert loaded.score(np.array(expected["features"], np.float32)) == pytest.approx(expected[name], abs=1e-6)
    assert (loaded.feature_names, loaded.missing) == (("feature_1", "feature_2", "feature_3"), ())
    loaded.save(tmp_path / "new")
    (weights,) = (file for file in (GOLDEN / name).iterdir() if file.name != "ranker.json")
    assert (tmp_path / "new" / weights.name).read_bytes() == weights.read_bytes()


@dataclass(frozen=True)
class Toy:
    """Scores documents by one feature."""

    column: int = 0

    def fit(self, examples: Examples, *, vali: Any = None, seed: int = 0, progress: Any = None) -> FittedToy:
        if progress:
            progress(1.0)
        return FittedToy(self, examples.feature_names)

    def restore(self, saved: SavedRanker) -> FittedToy:
        return FittedToy(Toy(**saved.settings), saved.feature_names)


@dataclass(frozen=True)
class FittedToy:
    settings: Toy
    feature_names: tuple[str, ...]
    missing: tuple[str, ...] = ()

    @property
    def features(self) -> int:
        return len(self.feature_names)

    def score(self, features: Any) -> Any:
        return np.asarray(features[:, self.settings.column], np.float64)

    def remarks(self) -> tuple[str, ...]:
        return ("Nothing to learn.",)

    def importance(self) -> tuple[()]:
        return ()

    def partial_dependence(self, features: Any, name: str) -> tuple[()]:
        return ()

    def save(self, folder: str | Path) -> None:
        write_folder(
            folder,
            ranker="toy",
            feature_names=self.feature_names,
            missing={},
            settings={"column": self.settings.column},
            training={},
            weights=b"",
            weights_name="toy.txt",
        )


@pytest.fixture
def toy() -> Iterator[None]:
    """A ranker from outside the package."""
    RANKERS.register("toy", help="one feature", options=(Option("column", "Which feature, from 0.", type=int),))(Toy)
    yield
    RANKERS.remove("toy")


@pytest.mark.usefixtures("toy")
def test_a_ranker_from_outside_is_in_the_command_the_contract_and_in_use(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write_features(TRAIN, "train.parquet")
    query, document, relevance = all_labels(TRAIN)
    rows = zip(query.tolist(), document.tolist(), relevance.tolist(), strict=True)
    Path("labels.csv").write_text("query_id,doc_id,relevance\n" + "".join(f"{q},{d},{r}\n" for q, d, r in rows))
    shown = " ".join(run("train", "--help").stdout.split())
    assert "<lambdamart|dnn|toy>" in shown
    assert "toy: one feature." in shown
    assert "--column <int> Which feature, from 0." in shown
    assert "toy" in contract_names()
    words = "train --features train.parquet --labels labels.csv -o ranker --ranker toy --column 2"
    assert run(*words.split()).stdout.splitlines()[1:] == ["Nothing to learn.", "Wrote the ranker (toy) to ranker."]
    assert load_ranker("ranker").score(OTHER.features).tolist() == OTHER.features[:, 2].tolist()
    (tmp_path / "round").mkdir()
    test_it_learns_and_is_the_same_after_a_round_trip("toy", tmp_path / "round")
    _trained.pop(("toy", 0))


def test_listing_the_rankers_loads_neither_torch_nor_lightgbm() -> None:
    program = (
        "import sys; from clickmix.rankers import RANKERS; "
        "print(RANKERS.names(), {'torch', 'lightgbm'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", program], env=ENVIRONMENT, capture_output=True, text=True, check=True)
    assert done.stdout == "('lambdamart', 'dnn') set()\n"


def test_a_ranker_that_was_removed_is_gone() -> None:
    assert "toy" not in contract_names()
    with pytest.raises(cm.SettingError, match=re.escape("ranker 'toy': expected one of lambdamart, dnn.")):
        RANKERS.make("toy")


def test_other_features_than_in_training_are_refused(saved: Path) -> None:
    with pytest.raises(cm.InputError) as caught:
        load_ranker(saved).score(OTHER.features[:, :2])
    assert str(caught.value) == "features: 2 features, but the ranker was trained on 3. Use the same features."


def damage_model(folder: Path) -> None:
    (model,) = folder.glob("model.*.txt")
    model.write_bytes(model.read_bytes().replace(b"leaf_value=", b"leaf_value=9", 1))


def remove_model(folder: Path) -> None:
    (model,) = folder.glob("model.*.txt")
    model.unlink()


def other_kind(folder: Path) -> None:
    write_document(folder / "ranker.json", kind="clickmix model", version=1, payload={})


def unknown_ranker(folder: Path) -> None:
    payload = json.loads((folder / "ranker.json").read_text())["payload"]
    write_document(folder / "ranker.json", kind="clickmix ranker", version=2, payload=payload | {"ranker": "../evil"})


def half_payload(folder: Path) -> None:
    write_document(folder / "ranker.json", kind="clickmix ranker", version=1, payload={"ranker": "lambdamart"})


def another_version(folder: Path) -> None:
    write_document(folder / "ranker.json", kind="clickmix ranker", version=3, payload={})


DAMAGES: list[tuple[Callable[[Path], None], str]] = [
    (
        lambda folder: (folder / "ranker.json").unlink(),
        "{0}: no ranker.json in it: not a ranker, or a save that did not finish. Train it again.",
    ),
    (remove_model, "{0}/{1}: no such file, but ranker.json names it. Train the ranker again."),
    (damage_model, "{0}/{1}: damaged: the checksum does not match. Train the ranker again."),
    (other_kind, "{0}/ranker.json: found a 'clickmix model', expected a 'clickmix ranker'."),
    (unknown_ranker, "{0}/ranker.json: found a ranker '../evil', expected one of lambdamart, dnn."),
    (half_payload, "{0}/ranker.json: damaged, or written by another clickmix. Train the ranker again."),
    (
        another_version,
        "{0}/ranker.json: format version 3; this clickmix reads 2. "
        "Make the file again with this clickmix, or use the one that wrote it.",
    ),
]


@pytest.mark.parametrize(("damage", "expected"), DAMAGES)
def test_a_folder_that_is_not_whole_is_refused(saved: Path, damage: Callable[[Path], None], expected: str) -> None:
    (model,) = saved.glob("model.*.txt")
    damage(saved)
    with pytest.raises(cm.FormatError) as caught:
        load_ranker(saved)
    assert str(caught.value) == expected.format(saved, model.name)


def full(*given: object, **named: object) -> None:
    raise OSError("disk full")


def test_cut_off_while_it_is_replaced_a_folder_holds_the_old_ranker(
    saved: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = load_ranker(saved).score(OTHER.features)
    new = SMALL.fit(make_examples(OTHER, all_labels(OTHER)))
    with monkeypatch.context() as broken:
        broken.setattr("clickmix.rankers.folder.write_document", full)
        with pytest.raises(OSError, match="disk full"):
            new.save(saved)
    assert load_ranker(saved).score(OTHER.features).tolist() == old.tolist()
    new.save(saved)
    assert load_ranker(saved).score(OTHER.features).tolist() == new.score(OTHER.features).tolist()
    assert len(list(saved.iterdir())) == 2  # nothing of the old one is left


def test_leftovers_of_a_killed_save_are_ignored(saved: Path) -> None:
    (saved / "ranker.json").rename(saved / ".ranker.json.0123456789ab.tmp")
    check_folder(saved)
    SMALL.fit(make_examples(OTHER, all_labels(OTHER))).save(saved)
    assert load_ranker(saved).features == 3


@pytest.mark.parametrize("name", ["model.txt", "notes.txt", "weights.npy"])
def test_a_folder_with_something_else_is_left_alone(tmp_path: Path, name: str) -> None:
    (tmp_path / name).touch()
    message = f"{tmp_path}: this folder holds something else. Choose a new folder, or a ranker's folder."
    with pytest.raises(cm.InputError, match=f"^{re.escape(message)}$"):
        check_folder(tmp_path)


@every_ranker
@pytest.mark.parametrize("point", ["write_atomically", "write_document"])
def test_a_full_disk_leaves_no_new_folder(
    name: str, point: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fitted = trained(name)
    monkeypatch.setattr(f"clickmix.rankers.folder.{point}", full)
    with pytest.raises(OSError, match="disk full"):
        fitted.save(tmp_path / "ranker")
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(cm.InputError) as caught:
        load_ranker(tmp_path / "no")
    assert str(caught.value) == f"{tmp_path / 'no'}: no such folder. Expected one that `clickmix train` wrote."


@pytest.fixture(scope="module")
def simulated(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Path]:
    """A small synthetic collection and people's clicks on it."""
    folder = tmp_path_factory.mktemp("simulated")
    collection = synthetic_collection(queries=400, rng=np.random.default_rng(3))
    write_simulation(collection, folder, Simulation(clicks=170_000, seed=3))
    return collection, folder / "log.parquet"


def test_debiased_labels_teach_more_than_click_through_rates(simulated: tuple[Any, Path]) -> None:
    settings, (collection, log) = SMALL, simulated
    test = collection.test
    debiased, raw = (
        evaluate(
            settings.fit(make_examples(collection.train, cm.debias(log, correction=correction))).score(test.features),
            test.grade,
            test.query_id[test.query],
        )
        for correction in ("mixture", "none")
    )
    compared = paired_t_test(debiased, raw)
    assert debiased.mean > raw.mean
    assert compared.p < 0.01
