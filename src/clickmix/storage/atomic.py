"""Atomic files: after a write a file is as it was, or whole and new."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
from collections.abc import Iterator
from pathlib import Path

from clickmix.errors import InputError
from clickmix.storage.written import record

RANDOM_BYTES = 6  # in the name of a temporary file
LONGEST_NAME = 255  # bytes, on every common file system


@contextlib.contextmanager
def replacing(path: str | Path) -> Iterator[Path]:
    """Give a temporary path beside `path` to write to. It becomes `path` when the block ends, or goes on an error.

    A process killed before the rename leaves the old file whole, and a dot-file `.NAME.*.tmp` beside it.
    """
    path = Path(path)
    check_writable(path)
    target = _target(path)
    # The suffix must be the last one: DuckDB picks the compression by it.
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
    # The new file is in its place. Some file systems cannot sync a folder.
    with contextlib.suppress(OSError):
        _sync(target.parent)


def write_atomically(path: str | Path, data: bytes) -> None:
    """Replace `path` with `data`, or leave it as it was."""
    with replacing(path) as temporary:
        temporary.write_bytes(data)


def check_writable(path: str | Path) -> None:
    """Refuse a path that cannot be written, now rather than after an hour of work."""
    path = Path(path)
    folder = _target(path).parent
    if not folder.is_dir():
        raise InputError(f"{path}: the folder {folder} does not exist. Make it first, or choose another path.")
    longest = LONGEST_NAME - len("...tmp") - 2 * RANDOM_BYTES
    if len(os.fsencode(_target(path).name)) > longest:
        raise InputError(f"{path}: the name is too long. Choose one of at most {longest} bytes.")
    if path.is_dir():
        raise InputError(f"{path}: this is a folder. Give the name of a file to write.")
    if path.exists() and not path.is_file():
        raise InputError(f"{path}: not an ordinary file, and it would be replaced. Give the name of a file to write.")
    if not os.access(folder, os.W_OK):
        raise InputError(f"{path}: the folder {folder} cannot be written. Choose another path.")


def write_failure(path: str | Path, message: str) -> OSError:
    """What kept an engine from writing `path`, as an OSError.

    Engine pass the system's error on as text only: a full disk is known by the system's own words.
    """
    if os.strerror(errno.ENOSPC) in message:
        return OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
    return OSError(errno.EIO, message.splitlines()[0], str(path))


def _target(path: Path) -> Path:
    """The file to replace: a symbolic link stays, and the file it leads to is replaced."""
    return Path(os.path.realpath(path)) if path.is_symlink() else path


def _sync(path: Path) -> None:
    """Have the system put `path` (a file, or a folder's entries) on the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
