"""Folders of files become collections; known ones are compared with their published sizes."""

from __future__ import annotations

import gzip
import re
from pathlib import Path

import numpy as np
import pytest

from clickmix.errors import InputError
from clickmix.features.files import write_features
from clickmix.features.letor import read_letor
from clickmix.features.split import Split
from clickmix.lab.collections.known import KNOWN, Known, differences, recognise
from clickmix.lab.collections.load import collection_files, load_collection


def fill(folder: Path, names: dict[str, int], *, prefix: str = "", suffix: str = ".txt") -> Path:
    """Files with so many queries of two documents each; the query ids say which file it was."""
    folder.mkdir(parents=True, exist_ok=True)
    for number, (name, queries) in enumerate(names.items(), start=1):
        text = "".join(f"{i % 3} qid:{number}{i // 2} 1:{i}\n" for i in range(2 * queries)).encode()
        (folder / f"{prefix}{name}{suffix}").write_bytes(gzip.compress(text) if suffix.endswith("gz") else text)
    return folder


@pytest.mark.parametrize("suffix", [".txt", ".txt.gz"])
@pytest.mark.parametrize("vali", ["vali", "valid"])
def test_a_folder_with_three_files(tmp_path: Path, vali: str, suffix: str) -> None:
    collection = load_collection(fill(tmp_path / "mine", {"train": 3, vali: 2, "test": 1}, suffix=suffix))
    assert (collection.name, collection.largest_grade, collection.notes) == ("mine", 2, ())
    assert collection.train.query_id.tolist() == [10, 11, 12]
    assert collection.vali.query_id.tolist() == [20, 21]
    assert collection.test.query_id.tolist() == [30]


def test_a_folder_of_folds(tmp_path: Path) -> None:
    for fold in (1, 2, 10):
        fill(tmp_path / f"Fold{fold}", {"train": 3 + fold, "vali": 2, "test": 1})
    assert load_collection(tmp_path).train.queries == 4
    assert load_collection(tmp_path, fold=2).train.queries == 5
    assert load_collection(tmp_path / "Fold10").train.queries == 13
    message = f"{tmp_path}: no Fold3; found Fold1, Fold10, Fold2. Choose one of these with fold."
    with pytest.raises(InputError, match=f"^{re.escape(message)}$"):
        load_collection(tmp_path, fold=3)


def test_yahoos_two_sets_in_one_folder(tmp_path: Path) -> None:
    fill(tmp_path, {"train": 3, "valid": 2, "test": 1}, prefix="set1.")
    fill(tmp_path, {"train": 5, "valid": 2, "test": 1}, prefix="set2.")
    assert load_collection(tmp_path / "set2").train.queries == 5
    assert load_collection(tmp_path / "set2").name == "Yahoo! set 2"
    message = (
        f"{tmp_path}: no train and test files there; found .clickmix, set1.test.txt, set1.train.txt, set1.valid.txt, "
        "set2.test.txt, set2.train.txt, set2.valid.txt. Expected a folder with train, vali and test as .txt, .txt.gz "
        "or .parquet, or Fold1, Fold2, ... with these; for Yahoo! give FOLDER/set1 or FOLDER/set2."
    )
    with pytest.raises(InputError, match=f"^{re.escape(message)}$"):
        load_collection(tmp_path)


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("x/y", "no such folder"),
        ("nosuch", "no such folder"),
        ("notes.txt", "this is a file"),
        ("empty", "no train and test files there; found nothing"),
        ("set1", "no train and test files there; found set1.train.txt"),
    ],
)
def test_where_there_is_no_collection_it_is_told_what_there_is(tmp_path: Path, name: str, found: str) -> None:
    fill(tmp_path, {"train": 1}, prefix="set1.")
    (tmp_path / "notes.txt").touch()
    (tmp_path / "empty").mkdir()
    message = f"{tmp_path / name}: {found}. Expected a folder with train, vali and test"
    with pytest.raises(InputError, match=f"^{re.escape(message)}"):
        load_collection(tmp_path / name)


def test_the_files_of_a_collection(tmp_path: Path) -> None:
    folder = fill(tmp_path / "Fold1", {"train": 1, "valid": 1, "test": 1})
    assert collection_files(tmp_path) == (folder / "train.txt", folder / "valid.txt", folder / "test.txt")


def test_a_folder_of_features_files(tmp_path: Path) -> None:
    text = fill(tmp_path / "text", {"train": 3, "vali": 2, "test": 1})
    written = tmp_path / "written"
    written.mkdir()
    write_features(read_letor(text / "train.txt"), written / "train.parquet")
    write_features(read_letor(text / "vali.txt"), written / "vali.parquet")
    write_features(read_letor(text / "test.txt"), written / "test.parquet")
    collection = load_collection(written)
    assert collection.vali.query_id.tolist() == [20, 21]
    assert collection.train.features.tolist() == [[0], [1], [2], [3], [4], [5]]


def test_without_a_vali_file_some_training_queries_are_held_out(tmp_path: Path) -> None:
    collection = load_collection(fill(tmp_path, {"train": 23, "test": 1}))
    assert (collection.train.queries, collection.vali.query_id.tolist()) == (21, [121, 122])
    assert collection.notes == ("There is no vali file, so the last 2 training queries are vali.",)


def test_the_splits_get_the_same_features(tmp_path: Path) -> None:
    fill(tmp_path, {"train": 1, "vali": 1, "test": 1})
    (tmp_path / "vali.txt").write_text("1 qid:5 3:2\n")
    collection = load_collection(tmp_path)
    assert collection.train.features.tolist() == [[0, 0, 0], [1, 0, 0]]
    assert collection.vali.features.tolist() == [[0, 0, 2]]


def split_of(queries: int, documents: int, features: int) -> Split:
    """A split of this size that takes no memory."""
    offsets = np.concatenate((np.arange(queries), [documents]))
    matrix = np.broadcast_to(np.float32(0), (documents, features))
    return Split(np.arange(queries), offsets, np.arange(documents), np.zeros(documents, np.int8), matrix)


def published(known: Known) -> dict[str, Split]:
    sizes = known.parts or {"train": (known.queries - 2, known.documents - 9), "vali": (1, 4), "test": (1, 5)}
    return {name: split_of(*size, known.features) for name, size in sizes.items()}


@pytest.mark.parametrize("known", KNOWN, ids=lambda known: known.name)
def test_a_collection_of_published_size_is_recognised_and_has_no_differences(known: Known) -> None:
    assert recognise("/data/anything", published(known)) == known
    assert differences(known, published(known), fold=1) == ()


@pytest.mark.parametrize("known", [known for known in KNOWN if known.parts], ids=lambda known: known.name)
def test_the_published_parts_add_up(known: Known) -> None:
    totals = np.sum(list(known.parts.values()), axis=0)
    assert totals.tolist() == [known.queries, known.documents]


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("/data/MSLR-WEB30K", "MSLR-WEB30K"),
        ("/data/mslr-web10k/Fold1", "MSLR-WEB10K"),
        ("/data/ltrc_yahoo/set1", "Yahoo! set 1"),
        ("/data/ltrc_yahoo/set2", "Yahoo! set 2"),
        ("/data/istella-s-letor", "Istella-S"),
        ("/data/istella/sample", "Istella-S"),
        ("/data/istella/full", "Istella"),
        ("/data/MQ2007", "MQ2007"),
        ("/data/mq2008", "MQ2008"),
        ("/data/mine", None),
    ],
)
def test_a_collection_is_recognised_by_its_path(path: str, name: str | None) -> None:
    known = recognise(path, {"train": split_of(3, 9, 2)})
    assert (known.name if known else None) == name


def test_every_difference_is_named() -> None:
    known = KNOWN[0]
    splits = published(known) | {"test": split_of(6_305, 753_600, 137)}
    assert differences(known, splits, fold=1) == (
        "MSLR-WEB30K: 136 features as published; found 137.",
        "MSLR-WEB30K, test: 6,306 queries and 753,611 documents as published; found 6,305 and 753,600. "
        "Is a file incomplete?",
        "MSLR-WEB30K, all: 31,531 queries and 3,771,125 documents as published; found 31,530 and 3,771,114. "
        "Is a file incomplete?",
    )


def test_the_other_folds_are_compared_as_a_whole() -> None:
    known = KNOWN[0]
    whole = published(known)
    other_fold = {"train": whole["train"], "vali": whole["test"], "test": whole["vali"]}
    assert differences(known, other_fold, fold=2) == ()
    assert len(differences(known, other_fold, fold=1)) == 2


@pytest.mark.parametrize(("name", "notes"), [("Yahoo! set 1", 0), ("Istella", 1)])
def test_only_a_sparse_collection_may_show_fewer_features(name: str, notes: int) -> None:
    (known,) = [known for known in KNOWN if known.name == name]
    splits = {part: split_of(*size, known.features - 1) for part, size in known.parts.items()}
    assert len(differences(known, splits, fold=None)) == notes


def test_notes_reach_the_collection(tmp_path: Path) -> None:
    collection = load_collection(fill(tmp_path / "MQ2007" / "Fold1", {"train": 3, "vali": 2, "test": 1}).parent)
    assert collection.name == "MQ2007"
    assert collection.notes == (
        "MQ2007: 46 features as published; found 1.",
        "MQ2007, all: 1,692 queries and 69,623 documents as published; found 6 and 12. Is a file incomplete?",
    )
