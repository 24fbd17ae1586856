"""A ranker's folder: `ranker.json`, which names the kind, and the weights beside it.   ranker -> folder -> ranker

The weights have their checksum in their name and are written first; `ranker.json`, which names them, is written last.
If writing is interrupted, the folder holds the old ranker, or none and is refused. Version 1, which clickmix 0.1 wrote,
has no names of features, and differs between LambdaMART and the DNN.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from clickmix.errors import FormatError, InputError
from clickmix.features.split import checked_names, default_names
from clickmix.storage.atomic import write_atomically
from clickmix.storage.documents import LARGEST_DOCUMENT, read_document, strict_json, write_document

DOCUMENT, DOCUMENT_KIND, VERSION = "ranker.json", "clickmix ranker", 2
_WEIGHTS = re.compile(r"[a-z]+\.[0-9a-f]{16}\.[a-z]+")
# Files that a killed save leaves behind: weights, and temporary files.
_LEFT_BEHIND = re.compile(rf"{_WEIGHTS.pattern}|\.({_WEIGHTS.pattern}|ranker\.json)\..*\.tmp")
_FIELDS = {"ranker": str, "features": list, "missing": dict, "settings": dict, "training": dict}
_FIELDS |= {"weights": str, "sha256": str}


@dataclass(frozen=True)
class SavedRanker:
    """The contents of a folder: the kind of ranker, its features, its settings, how training went, where weights are.

    `missing` says how the ranker treats missing values, for each feature that had some in training.
    """

    folder: Path
    ranker: str
    feature_names: tuple[str, ...]
    missing: dict[str, str]
    settings: dict[str, Any]
    training: dict[str, Any]
    path: Path
    sha256: str

    def weights(self, *, largest: int | None = None) -> bytes:
        """The weights; refuses a file of more than `largest` bytes before reading it."""
        if not self.path.is_file():
            raise FormatError(f"{self.path}: no such file, but {DOCUMENT} names it. Train the ranker again.")
        size = self.path.stat().st_size
        if largest is not None and size > largest:
            raise FormatError(f"{self.path}: {size} bytes, expected at most {largest}. Train the ranker again.")
        weights = self.path.read_bytes()
        if hashlib.sha256(weights).hexdigest() != self.sha256:
            raise FormatError(f"{self.path}: damaged: the checksum does not match. Train the ranker again.")
        return weights

    def damaged(self) -> FormatError:
        """The error for fields that the ranker cannot use."""
        return _damaged(self.folder)

    def missing_as(self, treatment: str) -> tuple[str, ...]:
        """The features that had missing values in training; raises unless all were treated in this way."""
        if set(self.missing.values()) - {treatment}:
            raise self.damaged()
        return tuple(name for name in self.feature_names if name in self.missing)


def check_folder(folder: str | Path) -> None:
    """Raise before an hour of work if a ranker cannot be saved there.

    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> check_folder(f"{folder.name}/ranker")  # does not raise: a ranker can be saved there
    >>> folder.cleanup()
    """
    folder = Path(folder)
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder}: this is a file. Name a folder for the ranker.")
    if folder.is_dir():
        foreign = (file for file in folder.iterdir() if not _LEFT_BEHIND.fullmatch(file.name))
        if not (folder / DOCUMENT).exists() and any(foreign):
            raise InputError(f"{folder}: this folder holds something else. Choose a new folder, or a ranker's folder.")
    elif not folder.parent.is_dir():
        raise InputError(f"{folder}: the folder {folder.parent} does not exist. Create it, or choose another path.")
    place = folder if folder.is_dir() else folder.parent
    if not os.access(place, os.W_OK):
        raise InputError(f"{folder}: no permission to write to the folder {place}. Choose another path.")


def write_folder(
    folder: str | Path,
    *,
    ranker: str,
    feature_names: tuple[str, ...],
    missing: dict[str, str],
    settings: dict[str, Any],
    training: dict[str, Any],
    weights: bytes,
    weights_name: str,
) -> None:
    """Write a ranker's folder, or replace the ranker in it; the same ranker gives the same bytes.

    The weights go to `weights_name` (two words, as in model.txt), with part of their checksum between the words.
    """
    folder = Path(folder)
    sha256 = hashlib.sha256(weights).hexdigest()
    path = _weights_path(folder, weights_name, sha256)
    payload = {
        "ranker": ranker,
        "features": list(feature_names),
        "missing": missing,
        "settings": settings,
        "training": training,
        "weights": weights_name,
        "sha256": sha256,
    }
    with _filling(folder, path):
        write_atomically(path, weights)
        write_document(folder / DOCUMENT, kind=DOCUMENT_KIND, version=VERSION, payload=payload)
    for other in folder.iterdir():
        if _WEIGHTS.fullmatch(other.name) and other != path:
            with contextlib.suppress(OSError):  # no longer needed, and harmless
                other.unlink()


@contextlib.contextmanager
def _filling(folder: Path, weights: Path) -> Iterator[None]:
    """Create the folder to save a ranker in, if it is missing; after a failure it is as it was, or gone again."""
    check_folder(folder)
    created, kept = not folder.exists(), weights.exists()
    try:
        folder.mkdir(exist_ok=True)
        yield
    except BaseException:
        if created:
            shutil.rmtree(folder, ignore_errors=True)
        elif not kept:
            weights.unlink(missing_ok=True)
        raise


def read_folder(folder: str | Path, *, expected: str | None = None) -> SavedRanker:
    """Read a ranker's folder, of the `expected` kind if one is given, or raise an error that says why not."""
    folder = Path(folder)
    if not folder.is_dir():
        raise InputError(f"{folder}: no such folder. Expected one that `clickmix train` wrote.")
    path = folder / DOCUMENT
    if not path.exists():
        raise FormatError(
            f"{folder}: no {DOCUMENT} in it: not a ranker, or a save that did not finish. Train it again."
        )
    version = _version(path)
    payload = read_document(path, kind=DOCUMENT_KIND, version=version)
    kind = payload.get("ranker")
    if expected is not None and kind != expected:
        raise FormatError(f"{path}: found a ranker {kind!r}, expected {expected!r}.")
    try:
        return _saved(folder, payload if version == VERSION else _from_version_1(payload))
    except (AttributeError, InputError, KeyError, TypeError, ValueError):
        raise _damaged(folder) from None


def _saved(folder: Path, payload: dict[str, Any]) -> SavedRanker:
    """The checked fields of a payload; raises ValueError or the like if they are wrong."""
    if set(payload) != set(_FIELDS) or not all(isinstance(payload[name], type) for name, type in _FIELDS.items()):
        raise ValueError
    names, missing = payload["features"], payload["missing"]
    if not names or not all(isinstance(text, str) for text in (*names, *missing.values())) or set(missing) - set(names):
        raise ValueError
    if not re.fullmatch(r"[a-z]+\.[a-z]+", payload["weights"]) or not re.fullmatch("[0-9a-f]{64}", payload["sha256"]):
        raise ValueError
    return SavedRanker(
        folder,
        payload["ranker"],
        checked_names(names, len(names)),
        missing,
        payload["settings"],
        payload["training"],
        _weights_path(folder, payload["weights"], payload["sha256"]),
        payload["sha256"],
    )


def _from_version_1(payload: dict[str, Any]) -> dict[str, Any]:
    """A payload of version 1 in the current layout."""
    width = payload["features"]
    if type(width) is not int or width < 1:
        raise ValueError
    today = {**payload, "features": list(default_names(width)), "missing": {}}
    if "weights" not in payload:  # LambdaMART's
        return today | {"weights": "model.txt"}
    training = {"normalisation": today.pop("normalisation"), "epochs": today.pop("epochs")}
    return today | {"training": training, "sha256": payload["weights"], "weights": "weights.npy"}


def _version(path: Path) -> int:
    """1 if a document says so, otherwise the present version; `read_document` refuses all others."""
    if path.is_file() and path.stat().st_size <= LARGEST_DOCUMENT:
        with contextlib.suppress(ValueError, RecursionError):
            document = strict_json(path.read_bytes().decode())
            if isinstance(document, dict) and document.get("version") == 1:
                return 1
    return VERSION


def _weights_path(folder: Path, name: str, sha256: str) -> Path:
    stem, suffix = name.split(".")
    return folder / f"{stem}.{sha256[:16]}.{suffix}"


def _damaged(folder: Path) -> FormatError:
    return FormatError(f"{folder / DOCUMENT}: damaged, or written by another clickmix. Train the ranker again.")
