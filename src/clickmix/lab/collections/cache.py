"""The cache: a split as .npy files that open instantly.   LETOR file -> memory-mapped Split

One folder per source file and its state (size and time of change). Its manifest is written last: a folder without a
manifest, or with a file that does not match it, is incomplete, is never trusted and is made again.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from clickmix.errors import ClickmixError, InputError
from clickmix.features.letor import read_letor
from clickmix.features.split import Split
from clickmix.storage.atomic import replacing
from clickmix.storage.documents import read_document, write_document

KIND = "clickmix collection cache"
VERSION = 1
ARRAYS = ("query_id", "offsets", "doc_id", "grade", "features")


def read_cached(path: str | Path, *, cache: str | Path | None = None) -> Split:
    """`read_letor(path)`, from the cache; made if it is missing.

    The cache is the folder `cache`, or `.clickmix` next to the file, or if that cannot be written, the user's cache
    folder. If none can be written, the file is read without a cache.
    """
    path = Path(path)
    if not path.is_file():
        raise InputError(f"{path}: no such file. Expected a file of LETOR lines.")
    folder = _cache_folder(path, cache)
    if folder is None:
        return read_letor(path)
    target = folder / f"{path.name}.{_state(path)}"
    split = _open(target)
    if split is None:
        split = read_letor(path)
        with contextlib.suppress(OSError):  # a full disk must not stop reading
            _write(target, split)
            _remove_older(target, path.name)
        split = _open(target) or split
    return split


def _state(path: Path) -> str:
    """A name for the present state of a file: its path, size and time of change."""
    now = path.stat()
    text = f"{path.resolve()} {now.st_size} {now.st_mtime_ns}"
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _cache_folder(path: Path, cache: str | Path | None) -> Path | None:
    """The first possible folder that exists, or can be made, and can be written."""
    if cache is not None:
        try:
            Path(cache).mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(f"{cache}: cannot be the cache folder: {error.strerror}. Name a folder.") from None
        return Path(cache)
    user = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "clickmix"
    for folder in (path.parent / ".clickmix", user):
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError:
            continue
        if os.access(folder, os.W_OK):
            return folder
    return None


def _write(target: Path, split: Split) -> None:
    """Write all arrays, then the manifest; leave nothing behind on an error."""
    try:
        target.mkdir(exist_ok=True)
        (target / "manifest.json").unlink(missing_ok=True)
        for name in ARRAYS:
            _write_array(target / f"{name}.npy", getattr(split, name))
        sizes = {name: (target / f"{name}.npy").stat().st_size for name in ARRAYS}
        write_document(target / "manifest.json", kind=KIND, version=VERSION, payload={"sizes": sizes})
    except BaseException:
        shutil.rmtree(target, ignore_errors=True)
        raise


def _write_array(path: Path, array: NDArray[np.generic]) -> None:
    with replacing(path) as temporary:
        mapped = np.lib.format.open_memmap(temporary, mode="w+", dtype=array.dtype, shape=array.shape)
        mapped[...] = array
        mapped.flush()


def _open(target: Path) -> Split | None:
    """The split in this folder, or None if it is missing, half-written, damaged or of another version."""
    try:
        sizes = read_document(target / "manifest.json", kind=KIND, version=VERSION)["sizes"]
        files = {name: target / f"{name}.npy" for name in ARRAYS}
        if any(file.stat().st_size != sizes[name] for name, file in files.items()):
            return None
        return Split(**{name: np.load(file, mmap_mode="r", allow_pickle=False) for name, file in files.items()})
    except (ClickmixError, OSError, ValueError, KeyError, TypeError):
        return None


def _remove_older(target: Path, name: str) -> None:
    """Remove the folders of earlier states of the same file."""
    for other in target.parent.glob(f"{name}.{'[0-9a-f]' * 16}"):
        if other != target:
            shutil.rmtree(other, ignore_errors=True)
