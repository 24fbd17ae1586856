"""Locks: only one process at a time may add to a file, or replace it."""

from __future__ import annotations

import contextlib
import io
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from clickmix.errors import InputError
from clickmix.storage.atomic import check_writable


@dataclass(frozen=True)
class GrowingFile:
    """A file that grows line by line: the complete lines it had, and how to add one."""

    found: tuple[str, ...]
    append: Callable[[str], None]


@contextlib.contextmanager
def appending(path: str | Path) -> Iterator[GrowingFile]:
    """Add lines to a file, and make it if it is missing. A line is on the disk when `append` returns.

    If the process is killed, complete lines stay; an incomplete one is cut off the next time the file is opened. Only
    one process at a time may have the file open.
    """
    path = Path(path)
    check_writable(path)
    with path.open("a+b", buffering=0) as file:
        lock(file, path, otherwise="or choose another folder")
        file.seek(0)
        whole, newline, _ = file.read().rpartition(b"\n")
        file.truncate(len(whole) + len(newline))

        def append(line: str) -> None:
            data = line.encode() + b"\n"
            while data:  # a signal or a full disk may cut a write short
                data = data[file.write(data) or 0 :]
            os.fsync(file.fileno())

        yield GrowingFile(tuple(whole.decode(errors="replace").split("\n")) if newline else (), append)


@contextlib.contextmanager
def holding(path: str | Path) -> Iterator[None]:
    """Lock a file from before it is read until it is replaced; refuse another process that wants it."""
    path = Path(path)
    if os.name == "nt":  # Windows cannot replace an open file, so two processes at once go unnoticed
        yield
        return
    with path.open("r+b", buffering=0) as file:
        lock(file, path, otherwise="and run this again")
        if not os.path.samestat(os.fstat(file.fileno()), path.stat()):  # replaced before we locked the old one
            raise _busy(path, "and run this again")
        yield


@contextlib.contextmanager
def making(path: str | Path) -> Iterator[None]:
    """Be the only process that makes a file that does not exist yet; refuse another process that wants to.

    This locks a hidden file next to it, and removes that at the end. A killed process leaves it, unlocked.
    """
    path = Path(path)
    if os.name == "nt":
        yield
        return
    beside = path.parent / f".{path.name}.lock"
    with beside.open("a+b", buffering=0) as file:
        lock(file, path, otherwise="and run this again")
        # If another process was faster and is done, the hidden file is gone or new, and the file exists.
        mine = beside.exists() and os.path.samestat(os.fstat(file.fileno()), beside.stat())
        try:
            if path.exists() or not mine:
                raise _busy(path, "and run this again")
            yield
        finally:
            if mine:
                beside.unlink(missing_ok=True)


def lock(file: io.FileIO, path: Path, *, otherwise: str) -> None:
    """Refuse a file that another process has locked; the system unlocks it when that process ends."""
    try:
        import fcntl
    except ImportError:  # Windows: two processes at once go unnoticed
        return
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise _busy(path, otherwise) from None


def _busy(path: Path, otherwise: str) -> InputError:
    return InputError(f"{path}: another clickmix is adding to it. Wait for it, {otherwise}.")
