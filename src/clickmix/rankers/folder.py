"""A ranker's folder: `ranker.json`, which names the kind, and the weights beside it.   ranker -> folder -> ranker

The weights carry their checksum in their name and are written first, `ranker.json`, which names them, last: whenever
the writing is cut off, the folder holds the old ranker, or none and is refused.
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
from typing import Any, Literal, get_args

from clickmix.errors import FormatError, InputError
from clickmix.storage.atomic import write_atomically
from clickmix.storage.documents import read_document, write_document

Kind = Literal["lambdamart", "dnn"]
KINDS: tuple[Kind, ...] = get_args(Kind)
DOCUMENT, DOCUMENT_KIND, VERSION = "ranker.json", "clickmix ranker", 1
# What a save that was killed leaves behind: weights of either kind, and files that were being written.
_LEFT_BEHIND = re.compile(r"(model|weights)\.[0-9a-f]{16}\.(txt|npy)|\.((model|weights)\..*|ranker\.json)\..*\.tmp")
_FIELDS = {"ranker", "features", "settings", "training", "sha256"}


@dataclass(frozen=True)
class SavedRanker:
    """What a folder holds: the kind, the number of features, the settings, how training went, and the weights."""

    ranker: Kind
    features: int
    settings: dict[str, Any]
    training: dict[str, Any]
    weights: bytes


def check_folder(folder: str | Path) -> None:
    """Complain now, not after an hour of work, when a ranker cannot be saved there."""
    folder = Path(folder)
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder}: this is a file. Give the name of a folder for the ranker.")
    if folder.is_dir():
        foreign = (file for file in folder.iterdir() if not _LEFT_BEHIND.fullmatch(file.name))
        if not (folder / DOCUMENT).exists() and any(foreign):
            raise InputError(f"{folder}: this folder holds something else. Give a new folder, or one of a ranker.")
    elif not folder.parent.is_dir():
        raise InputError(f"{folder}: the folder {folder.parent} does not exist. Make it first, or choose another path.")
    place = folder if folder.is_dir() else folder.parent
    if not os.access(place, os.W_OK):
        raise InputError(f"{folder}: the folder {place} cannot be written. Choose another path.")


def write_folder(folder: str | Path, saved: SavedRanker) -> None:
    """Write a ranker's folder; the same ranker gives the same bytes."""
    folder = Path(folder)
    sha256 = hashlib.sha256(saved.weights).hexdigest()
    weights = folder / _weights_name(sha256)
    payload = {
        "ranker": saved.ranker,
        "features": saved.features,
        "settings": saved.settings,
        "training": saved.training,
        "sha256": sha256,
    }
    with filling(folder, weights):
        write_atomically(weights, saved.weights)
        write_document(folder / DOCUMENT, kind=DOCUMENT_KIND, version=VERSION, payload=payload)
    for other in folder.glob(_weights_name("?" * 64)):
        if other != weights:
            with contextlib.suppress(OSError):  # of no use any more, and of no harm
                other.unlink()


@contextlib.contextmanager
def filling(folder: Path, weights: Path) -> Iterator[None]:
    """A folder to save a ranker in, made where it is missing; after a failure it is as it was, or gone again."""
    check_folder(folder)
    made, kept = not folder.exists(), weights.exists()
    try:
        folder.mkdir(exist_ok=True)
        yield
    except BaseException:
        if made:
            shutil.rmtree(folder, ignore_errors=True)
        elif not kept:
            weights.unlink(missing_ok=True)
        raise


def ranker_kind(folder: str | Path) -> Kind:
    """Which kind of ranker a folder holds."""
    return _kind(_document(Path(folder)), Path(folder))


def read_folder(folder: str | Path, *, expected: Kind) -> SavedRanker:
    """Read a ranker's folder, whole and of the `expected` kind, or say why not."""
    folder = Path(folder)
    payload = _document(folder)
    kind = _kind(payload, folder)
    if kind != expected:
        raise FormatError(f"{folder}: found a {kind} ranker, expected a {expected} ranker.")
    _check_payload(payload, folder / DOCUMENT)
    weights = _weights(folder / _weights_name(payload["sha256"]))
    if hashlib.sha256(weights).hexdigest() != payload["sha256"]:
        name = _weights_name(payload["sha256"])
        raise FormatError(f"{folder / name}: damaged: the checksum does not fit. Train the ranker again.")
    return SavedRanker(kind, payload["features"], payload["settings"], payload["training"], weights)


def _weights_name(sha256: str) -> str:
    return f"model.{sha256[:16]}.txt"


def _document(folder: Path) -> dict[str, Any]:
    if not folder.is_dir():
        raise InputError(f"{folder}: no such folder. Expected one that `clickmix train` wrote.")
    if not (folder / DOCUMENT).exists():
        raise FormatError(f"{folder}: no {DOCUMENT} there: no ranker, or its writing did not finish. Train it again.")
    return read_document(folder / DOCUMENT, kind=DOCUMENT_KIND, version=VERSION)


def _kind(payload: dict[str, Any], folder: Path) -> Kind:
    found = payload.get("ranker")
    for kind in KINDS:
        if kind == found:
            return kind
    raise FormatError(f"{folder / DOCUMENT}: no ranker is called {found!r}. The rankers are {', '.join(KINDS)}.")


def _check_payload(payload: dict[str, Any], path: Path) -> None:
    if set(payload) != _FIELDS:
        raise FormatError(f"{path}: damaged: expected {', '.join(sorted(_FIELDS))}.")
    width = payload["features"]
    if type(width) is not int or width < 1:
        raise FormatError(f"{path}: damaged: {width!r} features found, expected a whole number from 1.")
    if not isinstance(payload["sha256"], str) or not re.fullmatch("[0-9a-f]{64}", payload["sha256"]):
        raise FormatError(f"{path}: damaged: {payload['sha256']!r} is no checksum.")
    if not isinstance(payload["settings"], dict) or not isinstance(payload["training"], dict):
        raise FormatError(f"{path}: damaged: settings and training must be objects.")


def _weights(path: Path) -> bytes:
    if not path.is_file():
        raise FormatError(f"{path}: no such file, though {DOCUMENT} is there. Train the ranker again.")
    return path.read_bytes()
