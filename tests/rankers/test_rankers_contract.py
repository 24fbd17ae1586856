"""What every ranker promises: fit, score, save, load, the same bytes; and from clicks to a better ranking."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import clickmix as cm
from clickmix.evaluate import evaluate, paired_t_test
from clickmix.features import make_examples
from clickmix.lab.collections import synthetic_collection
from clickmix.lab.simulate import Simulation, write_simulation
from clickmix.rankers import LambdaMART, check_folder, load_ranker
from clickmix.rankers.dnn import DNN
from clickmix.storage.documents import write_document
from collections_rankers import all_labels, split

RANKERS: dict[str, Any] = {
    "lambdamart": LambdaMART(trees=10, leaves=7),
    "dnn": DNN(layers=(16,), dropout=(0.0,), epochs=40, batch=8),
}
TRAIN, OTHER = split(sizes=[8] * 30), split(sizes=[8] * 10, seed=5)

every_ranker = pytest.mark.parametrize("settings", RANKERS.values(), ids=RANKERS.keys())


def contents(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in folder.iterdir()}


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    """A folder with a LambdaMART."""
    RANKERS["lambdamart"].fit(make_examples(TRAIN, all_labels(TRAIN))).save(tmp_path / "ranker")
    return tmp_path / "ranker"


@every_ranker
def test_it_learns_and_is_the_same_after_a_round_trip(settings: Any, tmp_path: Path) -> None:
    fitted = settings.fit(make_examples(TRAIN, all_labels(TRAIN)))
    scores = fitted.score(OTHER.features)
    fitted.save(tmp_path / "ranker")
    loaded = load_ranker(tmp_path / "ranker")
    query = OTHER.query_id[OTHER.query]
    assert evaluate(scores, OTHER.grade, query).mean > evaluate(np.zeros(len(scores)), OTHER.grade, query).mean
    assert loaded.score(OTHER.features).tolist() == scores.tolist()
    assert getattr(loaded, "settings") == settings  # noqa: B009
    loaded.save(tmp_path / "again")
    assert contents(tmp_path / "again") == contents(tmp_path / "ranker")


@every_ranker
def test_the_same_seed_gives_the_same_bytes(settings: Any, tmp_path: Path) -> None:
    examples = make_examples(TRAIN, all_labels(TRAIN))
    settings.fit(examples, seed=3).save(tmp_path / "first")
    settings.fit(examples, seed=3).save(tmp_path / "second")
    assert contents(tmp_path / "first") == contents(tmp_path / "second")


@every_ranker
def test_a_ranker_may_replace_another(settings: Any, tmp_path: Path) -> None:
    examples = make_examples(TRAIN, all_labels(TRAIN))
    settings.fit(make_examples(OTHER, all_labels(OTHER))).save(tmp_path / "ranker")
    fitted = settings.fit(examples)
    fitted.save(tmp_path / "ranker")
    assert load_ranker(tmp_path / "ranker").score(OTHER.features).tolist() == fitted.score(OTHER.features).tolist()


@every_ranker
def test_order_of_labels_does_not_matter(settings: Any) -> None:
    labels = all_labels(TRAIN)
    order = np.random.default_rng(0).permutation(TRAIN.documents)
    shuffled = tuple(column[order] for column in labels)
    first, second = (settings.fit(make_examples(TRAIN, given)) for given in (labels, shuffled))
    assert first.score(OTHER.features).tolist() == second.score(OTHER.features).tolist()


def test_other_features_than_in_training_are_refused(saved: Path) -> None:
    with pytest.raises(cm.InputError) as caught:
        load_ranker(saved).score(OTHER.features[:, :2])
    assert str(caught.value) == "features: 2 features, but the ranker was trained on 3. Give the same features."


def damage_model(folder: Path) -> None:
    (model,) = folder.glob("model.*.txt")
    model.write_bytes(model.read_bytes().replace(b"leaf_value=", b"leaf_value=9", 1))


def remove_model(folder: Path) -> None:
    (model,) = folder.glob("model.*.txt")
    model.unlink()


def other_kind(folder: Path) -> None:
    write_document(folder / "ranker.json", kind="clickmix model", version=1, payload={})


def unknown_ranker(folder: Path) -> None:
    write_document(folder / "ranker.json", kind="clickmix ranker", version=1, payload={"ranker": "../evil"})


def half_payload(folder: Path) -> None:
    write_document(folder / "ranker.json", kind="clickmix ranker", version=1, payload={"ranker": "lambdamart"})


DAMAGES: list[tuple[Callable[[Path], None], str]] = [
    (
        lambda folder: (folder / "ranker.json").unlink(),
        "{0}: no ranker.json there: no ranker, or its writing did not finish. Train it again.",
    ),
    (remove_model, "{0}/{1}: no such file, though ranker.json is there. Train the ranker again."),
    (damage_model, "{0}/{1}: damaged: the checksum does not fit. Train the ranker again."),
    (other_kind, "{0}/ranker.json: found a 'clickmix model', expected a 'clickmix ranker'."),
    (unknown_ranker, "{0}/ranker.json: no ranker is called '../evil'. The rankers are lambdamart, dnn."),
    (half_payload, "{0}/ranker.json: damaged: expected features, ranker, settings, sha256, training."),
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
    new = RANKERS["lambdamart"].fit(make_examples(OTHER, all_labels(OTHER)))
    with monkeypatch.context() as broken:
        broken.setattr("clickmix.rankers.folder.write_document", full)
        with pytest.raises(OSError, match="disk full"):
            new.save(saved)
    assert load_ranker(saved).score(OTHER.features).tolist() == old.tolist()
    new.save(saved)
    assert load_ranker(saved).score(OTHER.features).tolist() == new.score(OTHER.features).tolist()
    assert len(list(saved.iterdir())) == 2  # nothing of the old one is left


def test_what_a_killed_save_left_is_no_hindrance(saved: Path) -> None:
    (saved / "ranker.json").rename(saved / ".ranker.json.0123456789ab.tmp")
    check_folder(saved)
    RANKERS["lambdamart"].fit(make_examples(OTHER, all_labels(OTHER))).save(saved)
    assert load_ranker(saved).features == 3


@pytest.mark.parametrize("name", ["model.txt", "notes.txt", "weights.npy"])
def test_a_folder_with_something_else_is_left_alone(tmp_path: Path, name: str) -> None:
    (tmp_path / name).touch()
    message = f"{tmp_path}: this folder holds something else. Give a new folder, or one of a ranker."
    with pytest.raises(cm.InputError, match=f"^{re.escape(message)}$"):
        check_folder(tmp_path)


@every_ranker
@pytest.mark.parametrize("point", ["write_atomically", "write_document"])
def test_a_full_disk_leaves_no_new_folder(
    settings: Any, point: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fitted = settings.fit(make_examples(OTHER, all_labels(OTHER)))
    module = "folder" if isinstance(settings, LambdaMART) else "dnn_files"
    monkeypatch.setattr(f"clickmix.rankers.{module}.{point}", full)
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
    write_simulation(collection, folder, Simulation(clicks=170_000, eta=1.0, seed=3))
    return collection, folder / "log.parquet"


def test_debiased_labels_teach_more_than_click_through_rates(simulated: tuple[Any, Path]) -> None:
    settings, (collection, log) = RANKERS["lambdamart"], simulated
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
