"""The weights of a network as bytes: an array of little-endian float32 in numpy's .npy format.   Weights <-> bytes"""

from __future__ import annotations

import io
import math

import numpy as np

from clickmix.errors import FormatError
from clickmix.rankers.folder import SavedRanker
from clickmix.rankers.network import Weights

LONGEST_HEADER = 1024  # bytes of a .npy file before its numbers


def weights_bytes(weights: Weights) -> bytes:
    """All weights, one after the other."""
    file = io.BytesIO()
    np.save(file, np.concatenate([w.ravel() for w in weights]).astype("<f4"), allow_pickle=False)
    return file.getvalue()


def read_weights(saved: SavedRanker, shapes: list[tuple[int, ...]]) -> Weights:
    """The weights of these shapes; reads no more bytes than they need, and no pickles."""
    counts = [math.prod(shape) for shape in shapes]
    data = saved.weights(largest=4 * sum(counts) + LONGEST_HEADER)
    file = io.BytesIO(data)
    wrong = FormatError(
        f"{saved.path}: expected a row of {sum(counts)} finite numbers of single precision. Train the ranker again."
    )
    try:
        if np.lib.format.read_magic(file) != (1, 0):
            raise wrong
        if np.lib.format.read_array_header_1_0(file) != ((sum(counts),), False, np.dtype("<f4")):
            raise wrong
        flat = np.frombuffer(data, "<f4", sum(counts), offset=file.tell()).astype(np.float32)
    except Exception:  # numpy's parser of headers can raise anything
        raise wrong from None
    if not np.isfinite(flat).all():
        raise wrong
    parts = np.split(flat, np.cumsum(counts)[:-1])
    return tuple(part.reshape(shape) for part, shape in zip(parts, shapes, strict=True))
