"""Files of the DNN ranker: what a trained network consists of -> a folder -> the same again.

    ranker.json          a "clickmix ranker", version 1: settings, normalisation, epochs, the checksum of the weights
    weights.<16>.npy     all weights in one row, little-endian float32; named after the checksum's first 16 letters

The weights are written first, under a name of their own, and ranker.json last, so that a folder holds the old ranker or
the new one whole. A folder without ranker.json, or whose weights do not fit it, was half-written or damaged.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import math
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from clickmix.errors import FormatError, InputError
from clickmix.features.normalisation import Normalisation
from clickmix.rankers.folder import filling
from clickmix.rankers.network import Weights, shapes
from clickmix.storage.atomic import write_atomically
from clickmix.storage.documents import read_document, write_document

KIND = "clickmix ranker"
VERSION = 1
RANKER = "dnn"
NORMALISATION = "log1p of the magnitude, standardised, cut at 10 deviations"
LONGEST_HEADER = 1024  # bytes of a .npy file before its numbers


@dataclass(frozen=True)
class Contents:
    """All that is kept of a trained network; settings and epochs as JSON has them."""

    settings: dict[str, Any]
    normalisation: Normalisation
    weights: Weights
    epochs: list[dict[str, Any]]


def write_contents(folder: str | Path, contents: Contents) -> None:
    """Write a folder, or replace the ranker in it."""
    folder = Path(folder)
    data = _npy(contents.weights)
    checksum = hashlib.sha256(data).hexdigest()
    weights = _weights_path(folder, checksum)
    with filling(folder, weights):
        write_atomically(weights, data)
        write_document(folder / "ranker.json", kind=KIND, version=VERSION, payload=_payload(contents, checksum))
    for other in folder.glob(f"weights.{'[0-9a-f]' * 16}.npy"):
        if other != weights:
            with contextlib.suppress(OSError):  # of no use any more, and of no harm
                other.unlink()


def read_contents(folder: str | Path) -> Contents:
    """What a folder holds; `settings` and `epochs` are yet to be checked by whom they belong to."""
    folder = Path(folder)
    if not folder.is_dir():
        raise InputError(f"{folder}: no such folder. Expected one that a ranker was saved to.")
    path = folder / "ranker.json"
    if not path.exists():
        raise FormatError(f"{folder}: no ranker.json in it: not a ranker, or one half-written. Train it again.")
    payload = read_document(path, kind=KIND, version=VERSION)
    if payload.get("ranker") != RANKER:
        raise FormatError(f"{path}: found a ranker {payload.get('ranker')!r}, expected {RANKER!r}.")
    try:
        normalisation = _normalisation(payload)
        layers = [_whole(size) for size in payload["settings"]["layers"]]
        wanted = shapes(len(normalisation.mean), layers)
        weights = _weights_path(folder, _checksum(payload["weights"]))
        settings, epochs = dict(payload["settings"]), [dict(epoch) for epoch in payload["epochs"]]
    except (KeyError, TypeError, ValueError, AttributeError):
        raise damaged(path) from None
    return Contents(settings, normalisation, _read_weights(weights, payload["weights"], wanted), epochs)


def damaged(path: Path) -> FormatError:
    """The complaint about a ranker.json with fields missing, in excess or of the wrong kind."""
    return FormatError(f"{path}: damaged, or not written by this clickmix: its fields do not fit. Train it again.")


def _payload(contents: Contents, checksum: str) -> dict[str, Any]:
    return {
        "ranker": RANKER,
        "features": len(contents.normalisation.mean),
        "settings": contents.settings,
        "normalisation": {
            "kind": NORMALISATION,
            "mean": contents.normalisation.mean.tolist(),
            "deviation": contents.normalisation.deviation.tolist(),
        },
        "epochs": contents.epochs,
        "weights": checksum,
    }


def _normalisation(payload: dict[str, Any]) -> Normalisation:
    fields = payload["normalisation"]
    mean, deviation = (np.array([_number(x) for x in fields[name]]) for name in ("mean", "deviation"))
    features = _whole(payload["features"])
    if fields["kind"] != NORMALISATION or not len(mean) == len(deviation) == features or (deviation < 0).any():
        raise ValueError
    return Normalisation(mean, deviation)


def _npy(weights: Weights) -> bytes:
    file = io.BytesIO()
    np.save(file, np.concatenate([w.ravel() for w in weights]).astype("<f4"), allow_pickle=False)
    return file.getvalue()


def _weights_path(folder: Path, checksum: str) -> Path:
    return folder / f"weights.{checksum[:16]}.npy"


def _read_weights(path: Path, checksum: str, wanted: list[tuple[int, ...]]) -> Weights:
    """The weights of these shapes; never more is read than they need."""
    counts = [math.prod(shape) for shape in wanted]
    if not path.is_file():
        raise FormatError(f"{path}: no such file, though ranker.json names it. Train the ranker again.")
    if not 0 <= path.stat().st_size - 4 * sum(counts) <= LONGEST_HEADER:
        raise FormatError(f"{path}: {path.stat().st_size} bytes do not fit {sum(counts)} weights. Train it again.")
    data = path.read_bytes()
    if hashlib.sha256(data).hexdigest() != checksum:
        raise FormatError(f"{path}: damaged: the checksum does not fit the contents. Train the ranker again.")
    flat = _numbers(data, sum(counts))
    if flat is None or not np.isfinite(flat).all():
        raise FormatError(f"{path}: not a row of {sum(counts)} finite numbers of single precision. Train it again.")
    parts = np.split(flat, np.cumsum(counts)[:-1])
    return tuple(part.reshape(shape) for part, shape in zip(parts, wanted, strict=True))


def _numbers(data: bytes, count: int) -> NDArray[np.float32] | None:
    """The numbers of a .npy file, or None where its header does not promise exactly these."""
    file = io.BytesIO(data)
    try:
        if np.lib.format.read_magic(file) != (1, 0):
            return None
        header = np.lib.format.read_array_header_1_0(file)
        if header != ((count,), False, np.dtype("<f4")):
            return None
        return np.frombuffer(data, "<f4", count, offset=file.tell()).astype(np.float32)
    except ValueError:
        return None


def _whole(value: Any) -> int:
    if type(value) is not int or value < 1:
        raise ValueError
    return value


def _number(value: Any) -> float:
    if type(value) not in (int, float):
        raise TypeError
    return float(value)


def _checksum(value: Any) -> str:
    if not re.fullmatch("[0-9a-f]{64}", value):
        raise ValueError
    return str(value)
