"""Atomic files and folders: a write that fails leaves the old one as it was.

A command records what it writes, so that after a failure it can say what is there.
"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import shutil
from collections.abc import Iterator, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path

from clickmix.errors import NOTHING_WRITTEN, InputError

MOST_NAMES = 20  # names listed in a message


@dataclass(frozen=True)
class Written:
    """The files, folders and tables that were written, in order, each once."""

    targets: dict[str, None] = field(default_factory=dict)

    def __str__(self) -> str:
        last = list(self.targets)[-MOST_NAMES:]
        return f"Written before that: {', '.join(last)}." if last else NOTHING_WRITTEN


_recording: ContextVar[Written | None] = ContextVar("recording", default=None)


@contextlib.contextmanager
def recording() -> Iterator[Written]:
    """Record what this thread writes until the block ends. A nested block keeps its own record."""
    written = Written()
    outer = _recording.set(written)
    try:
        yield written
    finally:
        _recording.reset(outer)


def record(target: object) -> None:
    """Record that a file, folder or table was written, if a record is being kept."""
    written = _recording.get()
    if written is not None:
        written.targets[str(target)] = None


RANDOM_BYTES = 6  # random bytes in the name of a temporary file
LONGEST_NAME = 255  # bytes, on every common file system


@contextlib.contextmanager
def replacing(path: str | Path) -> Iterator[Path]:
    """Give a temporary path beside `path` to write to. It becomes `path` when the block ends, or is removed on error.

    A process killed before the rename leaves the old file as it was, and a dot-file `.NAME.*.tmp` beside it.
    """
    path = Path(path)
    check_writable(path)
    target = _target(path)
    # The temporary suffix must come last: DuckDB chooses the compression by it.
    temporary = target.parent / f".{target.name}.{secrets.token_hex(RANDOM_BYTES)}.tmp"
    try:
        yield temporary
        _sync(temporary)
        os.replace(temporary, target)
    except BaseException as error:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
        if isinstance(error, OSError) and error.filename in (None, str(temporary)):
            error.filename = str(path)  # the name the user knows; a full disk gives none
        raise
    record(path)
    # The new file is in place. Some file systems cannot sync a folder.
    with contextlib.suppress(OSError):
        _sync(target.parent)


def write_atomically(path: str | Path, data: bytes) -> None:
    """Replace `path` with `data`, or leave it as it was."""
    with replacing(path) as temporary:
        temporary.write_bytes(data)


def check_writable(path: str | Path) -> None:
    """Refuse a path that cannot be written, before an hour of work."""
    path = Path(path)
    folder = _target(path).parent
    if _target(path).is_symlink():
        raise InputError(f"{path}: this link leads back to itself. Remove it, or choose another path.")
    if not folder.is_dir():
        raise InputError(f"{path}: the folder {folder} does not exist. Create it first, or choose another path.")
    longest = LONGEST_NAME - len("...tmp") - 2 * RANDOM_BYTES
    if len(os.fsencode(_target(path).name)) > longest:
        raise InputError(f"{path}: the name is too long. Choose one of at most {longest} bytes.")
    if path.is_dir():
        raise InputError(f"{path}: this is a folder. Name a file to write.")
    if path.exists() and not path.is_file():
        raise InputError(f"{path}: not an ordinary file, and it would be replaced. Name a file to write.")
    if not os.access(folder, os.W_OK):
        raise InputError(f"{path}: the folder {folder} cannot be written to. Choose another path.")


def write_failure(path: str | Path, message: str) -> OSError:
    """Why an engine could not write `path`, as an OSError.

    Engines pass on the system's error only as text, so a full disk is recognised by the system's words for it.
    """
    if os.strerror(errno.ENOSPC) in message:
        return OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
    return OSError(errno.EIO, message.splitlines()[0], str(path))


def real_path(path: str | Path) -> Path:
    """Where a path leads, through all links; a circular link leads to itself, for which `Path.resolve` would raise.

    >>> real_path("/dev/../dev/null")
    PosixPath('/dev/null')
    """
    return Path(os.path.realpath(path))


def _target(path: Path) -> Path:
    """The file to replace: for a symbolic link, the file it leads to."""
    return real_path(path) if path.is_symlink() else path


def _sync(path: Path) -> None:
    """Write `path` (a file, or a folder's entries) to the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def make_folder(folder: Path) -> None:
    """Make a folder if it is missing, and record it."""
    made = not folder.exists()
    folder.mkdir(parents=True, exist_ok=True)
    if made:
        record(folder)


@contextlib.contextmanager
def replacing_together(folder: Path, *, last: str) -> Iterator[Path]:
    """Give a temporary folder inside `folder`. Its files replace those of `folder` together, or not at all.

    The old `last` is removed first and the new one is written last. A process killed in between leaves a folder without
    `last`, so old and new files are never mixed unnoticed. One killed earlier leaves the old files and the temporary
    folder. If a file cannot be moved, the old ones come back.
    """
    temporary = folder / f".{secrets.token_hex(6)}.tmp"
    try:
        temporary.mkdir()
        with recording():  # nothing in there counts as written until it is in place
            yield temporary
        names = sorted((file.name for file in temporary.iterdir()), key=lambda name: (name == last, name))
        with _put_back(folder, names, temporary / "old"):
            (folder / last).unlink(missing_ok=True)
            for name in names:
                os.replace(temporary / name, folder / name)
        for name in names:
            record(folder / name)
    except OSError as error:
        if isinstance(error.filename, str):  # the user knows the folder, not the temporary one
            error.filename = error.filename.replace(str(temporary), str(folder))
        raise
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


@contextlib.contextmanager
def _put_back(folder: Path, names: Sequence[str], aside: Path) -> Iterator[None]:
    """Link old files into the folder `aside`; on an error put each back, in this order."""
    aside.mkdir()
    for name in names:
        if (folder / name).exists():
            _second_name(folder / name, aside / name)
    try:
        yield
    except BaseException:
        for name in names:
            (folder / name).unlink(missing_ok=True)
            if (aside / name).exists():
                _second_name(aside / name, folder / name)
        raise


def _second_name(file: Path, name: Path) -> None:
    try:
        os.link(file, name)
    except OSError:  # not every file system has links
        shutil.copyfile(file, name)


@contextlib.contextmanager
def new_folder(folder: Path) -> Iterator[Path]:
    """Give a temporary folder beside `folder`. It becomes `folder` when the block ends, or is removed on an error.

    Old files must not mix with new ones, so `folder` may exist only if it is empty.
    """
    if folder.is_dir():
        if any(folder.iterdir()):
            raise InputError(f"{folder}: this folder is not empty. Choose a new folder, or empty this one.")
    elif folder.exists():
        raise InputError(f"{folder}: this is a file. Name a folder to write.")
    temporary = folder.parent / f".{folder.name}.{secrets.token_hex(6)}.tmp"
    check_writable(temporary)
    try:
        temporary.mkdir()
        with recording():  # nothing in there counts as written until the folder has its name
            yield temporary
        os.replace(temporary, folder)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise
    record(folder)
