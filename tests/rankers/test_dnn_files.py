"""A saved DNN ranker comes back the same; a folder is as it was, or whole and new; one that lies is refused."""

from __future__ import annotations

import errno
import hashlib
import io
import json
import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from clickmix.errors import FormatError, InputError
from clickmix.features.split import default_names
from clickmix.rankers.dnn import DNN, FittedDNN
from clickmix.storage.documents import write_document
from examples_rankers_dnn import nonlinear

pytest.importorskip("torch", reason="PyTorch is not installed: pip install 'clickmix[dnn]'")

TRAIN, VALI, TEST = nonlinear(0, queries=20), nonlinear(1, queries=10), nonlinear(2, queries=10)
SMALL = DNN(loss="lambda", layers=(8, 4), dropout=(0.0, 0.2), epochs=2)
FIRST, SECOND = SMALL.fit(TRAIN, vali=VALI), SMALL.fit(TRAIN, seed=1)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    FIRST.save(tmp_path / "ranker")
    return tmp_path / "ranker"


def files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def weights_file(folder: Path) -> Path:
    (path,) = folder.glob("weights.*.npy")
    return path


@pytest.mark.parametrize("fit", [FIRST, SECOND], ids=["with validation", "without"])
def test_a_saved_ranker_comes_back_the_same(tmp_path: Path, fit: FittedDNN) -> None:
    fit.save(tmp_path / "ranker")
    back = FittedDNN.load(tmp_path / "ranker")
    assert (back.score(TEST.features) == fit.score(TEST.features)).all()
    assert (back.settings, back.epochs) == (fit.settings, fit.epochs)
    assert (back.normalisation.mean == fit.normalisation.mean).all()
    assert (back.normalisation.deviation == fit.normalisation.deviation).all()


def test_what_is_in_the_folder(folder: Path) -> None:
    document = json.loads((folder / "ranker.json").read_text())
    assert (document["kind"], document["version"]) == ("clickmix ranker", 2)
    assert (document["payload"]["ranker"], document["payload"]["features"]) == ("dnn", list(default_names(5)))
    assert document["payload"]["settings"]["layers"] == [8, 4]
    weights = np.load(weights_file(folder), allow_pickle=False)
    assert (weights.dtype, weights.shape) == (np.float32, (5 * 8 + 8 + 8 * 4 + 4 + 4 * 1 + 1,))
    assert sorted(files(folder)) == ["ranker.json", weights_file(folder).name]


def test_saving_again_gives_the_same_bytes_and_replaces_another_ranker(folder: Path, tmp_path: Path) -> None:
    SECOND.save(tmp_path / "other")
    assert files(tmp_path / "other") != files(folder)
    SECOND.save(folder)
    assert files(tmp_path / "other") == files(folder)


@pytest.mark.parametrize("point", range(1, 9))
def test_a_failing_call_leaves_the_old_ranker_or_the_new(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, point: int
) -> None:
    old = files(folder)
    made, completed = failing(monkeypatch, point), True
    try:
        SECOND.save(folder)
    except OSError:
        completed = False
    monkeypatch.undo()
    expected = SECOND if completed else FIRST
    assert (FittedDNN.load(folder).score(TEST.features) == expected.score(TEST.features)).all()
    assert completed or files(folder) == old
    # Sync and rename the weights, sync their folder (may fail), then the same for ranker.json.
    assert completed == (point in (3, 6) or point > len(made))


def test_a_failing_call_leaves_no_new_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    failing(monkeypatch, 5)
    with pytest.raises(OSError, match="failed"):
        FIRST.save(tmp_path / "ranker")
    assert list(tmp_path.iterdir()) == []


def failing(monkeypatch: pytest.MonkeyPatch, point: int) -> list[str]:
    """Let the system refuse the `point`-th sync or rename; tells which were made."""
    made: list[str] = []

    def counted(name: str, original: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any) -> Any:
            made.append(name)
            if len(made) == point:
                raise OSError(errno.EIO, f"{name} failed", "somewhere")
            return original(*arguments)

        return call

    for name in ("fsync", "replace"):
        monkeypatch.setattr(f"os.{name}", counted(name, getattr(os, name)))
    return made


def test_half_written_is_refused(folder: Path) -> None:
    (folder / "ranker.json").unlink()
    message = f"{folder}: no ranker.json in it: not a ranker, or a save that did not finish. Train it again."
    with pytest.raises(FormatError, match=f"^{re.escape(message)}$"):
        FittedDNN.load(folder)


def test_without_its_weights_it_is_refused(folder: Path) -> None:
    weights = weights_file(folder)
    weights.unlink()
    message = f"{weights}: no such file, but ranker.json names it. Train the ranker again."
    with pytest.raises(FormatError, match=f"^{re.escape(message)}$"):
        FittedDNN.load(folder)


@pytest.mark.parametrize("size", [0, 1, 127, 128, 300])
def test_weights_cut_off_are_refused(folder: Path, size: int) -> None:
    weights = weights_file(folder)
    weights.write_bytes(weights.read_bytes()[:size])
    with pytest.raises(FormatError, match=re.escape(f"{weights}: ")):
        FittedDNN.load(folder)


def test_weights_of_another_length_are_refused_before_they_are_read(folder: Path) -> None:
    weights = weights_file(folder)
    with weights.open("r+b") as file:
        file.truncate(1 << 40)
    message = f"{weights}: {1 << 40} bytes, expected at most {4 * 89 + 1024}. Train the ranker again."
    with pytest.raises(FormatError, match=f"^{re.escape(message)}$"):
        FittedDNN.load(folder)


@pytest.mark.parametrize("bit", range(0, 484 * 8, 37))
def test_a_flipped_bit_of_the_weights_is_noticed(folder: Path, bit: int) -> None:
    weights = weights_file(folder)
    data = bytearray(weights.read_bytes())
    data[bit // 8] ^= 1 << bit % 8
    weights.write_bytes(data)
    message = f"{weights}: damaged: the checksum does not match. Train the ranker again."
    with pytest.raises(FormatError, match=f"^{re.escape(message)}$"):
        FittedDNN.load(folder)


def rewrite(folder: Path, change: Callable[[dict[str, Any]], object]) -> None:
    """Change the payload of ranker.json, with a checksum that fits."""
    payload = json.loads((folder / "ranker.json").read_text())["payload"]
    change(payload)
    write_document(folder / "ranker.json", kind="clickmix ranker", version=2, payload=payload)


@pytest.mark.parametrize(
    "change",
    [
        lambda payload: payload.pop("settings"),
        lambda payload: payload.pop("weights"),
        lambda payload: payload["settings"].update(colour="red"),
        lambda payload: payload["settings"].update(loss="hinge"),
        lambda payload: payload["settings"].update(layers=[8, -4]),
        lambda payload: payload["settings"].update(layers="84"),
        lambda payload: payload.update(features=5),
        lambda payload: payload.update(features=[]),
        lambda payload: payload["features"].pop(),
        lambda payload: payload.update(features=["a"] * 5),
        lambda payload: payload.update(features=["a", "b", "c", "d", "query_id"]),
        lambda payload: payload.update(missing={"no such feature": "mean"}),
        lambda payload: payload.update(missing={"feature_1": "zero"}),
        lambda payload: payload.update(missing={"feature_1": 3}),
        lambda payload: payload.update(colour="red"),
        lambda payload: payload.update(weights="../../../etc/passwd"),
        lambda payload: payload.update(weights=7),
        lambda payload: payload.update(sha256="../../../etc/passwd"),
        lambda payload: payload["training"]["normalisation"].update(kind="none"),
        lambda payload: payload["training"]["normalisation"]["mean"].pop(),
        lambda payload: payload["training"]["normalisation"].update(deviation=[1, 1, 1, 1, -1]),
        lambda payload: payload["training"]["normalisation"].update(mean=["a"] * 5),
        lambda payload: payload["training"].update(epochs=[{"number": 1}]),
        lambda payload: payload["training"].update(epochs=3),
    ],
)
def test_fields_that_do_not_fit_are_refused(folder: Path, change: Callable[[dict[str, Any]], object]) -> None:
    rewrite(folder, change)
    message = f"{folder / 'ranker.json'}: damaged, or written by another clickmix. Train the ranker again."
    with pytest.raises(FormatError, match=f"^{re.escape(message)}$"):
        FittedDNN.load(folder)


def test_another_kind_of_ranker_is_refused(folder: Path) -> None:
    rewrite(folder, lambda payload: payload.update(ranker="lambdamart"))
    message = f"{folder / 'ranker.json'}: found a ranker 'lambdamart', expected 'dnn'."
    with pytest.raises(FormatError, match=f"^{re.escape(message)}$"):
        FittedDNN.load(folder)


def npy(array: Any, *, allow_pickle: bool = False) -> bytes:
    file = io.BytesIO()
    np.save(file, array, allow_pickle=allow_pickle)
    return file.getvalue()


@pytest.mark.parametrize(
    "data",
    [
        npy(np.zeros((89, 1), np.float32)),
        npy(np.full(89, np.nan, np.float32)),
        npy(np.zeros(89, np.int32)),
        npy(np.zeros(89, ">f4")),
        npy(np.array([{}] * 89), allow_pickle=True).ljust(500),
        npy(np.zeros(89, np.float32)).replace(b"(89,)", b"(99,)"),
        bytes(484),
    ],
    ids=["a matrix", "NaN", "integers", "another byte order", "pickled objects", "a header that lies", "no header"],
)
def test_weights_of_another_kind_are_refused(folder: Path, data: bytes) -> None:
    checksum = hashlib.sha256(data).hexdigest()
    path = folder / f"weights.{checksum[:16]}.npy"
    path.write_bytes(data)
    rewrite(folder, lambda payload: payload.update(sha256=checksum))
    message = f"{path}: expected a row of 89 finite numbers of single precision. Train the ranker again."
    with pytest.raises(FormatError, match=f"^{re.escape(message)}$"):
        FittedDNN.load(folder)


def test_loading_from_nowhere(tmp_path: Path) -> None:
    message = f"{tmp_path / 'x'}: no such folder. Expected one that `clickmix train` wrote."
    with pytest.raises(InputError, match=f"^{re.escape(message)}$"):
        FittedDNN.load(tmp_path / "x")


def test_saving_where_a_file_is_or_no_folder(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    message = f"{tmp_path / 'file'}: this is a file. Name a folder for the ranker."
    with pytest.raises(InputError, match=f"^{re.escape(message)}$"):
        FIRST.save(tmp_path / "file")
    message = f"{tmp_path / 'a' / 'b'}: the folder {tmp_path / 'a'} does not exist. Create it, or choose another path."
    with pytest.raises(InputError, match=f"^{re.escape(message)}$"):
        FIRST.save(tmp_path / "a" / "b")


def test_a_folder_with_something_else_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    message = f"{tmp_path}: this folder holds something else. Choose a new folder, or a ranker's folder."
    with pytest.raises(InputError, match=f"^{re.escape(message)}$"):
        FIRST.save(tmp_path)
    assert files(tmp_path) == {"notes.txt": b"mine"}


def test_leftovers_of_a_killed_save_are_ignored(folder: Path) -> None:
    (folder / "ranker.json").unlink()
    SECOND.save(folder)
    assert (FittedDNN.load(folder).score(TEST.features) == SECOND.score(TEST.features)).all()
    assert len(files(folder)) == 2


def test_a_folder_that_was_moved_still_loads(folder: Path, tmp_path: Path) -> None:
    shutil.move(folder, tmp_path / "elsewhere")
    assert (FittedDNN.load(tmp_path / "elsewhere").score(TEST.features) == FIRST.score(TEST.features)).all()
