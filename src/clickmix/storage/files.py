"""Writing files: the only module that does. A file is either as it was, or whole and new."""

from __future__ import annotations

import contextlib
import errno
import gzip
import hashlib
import io
import json
import math
import os
import secrets
import threading
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from clickmix.errors import EngineError, FormatError, InputError, written

ROOM = 6  # bytes of chance in the name of a temporary file
LONGEST_NAME = 255  # bytes, of every common file system
LARGEST_DOCUMENT = 256 * 1024 * 1024
BLOCK = 1 << 20
LONG_LINE = 8 * BLOCK  # bytes: longer ones may not fit in a reader's buffer


@contextlib.contextmanager
def replacing(path: str | Path) -> Iterator[Path]:
    """A temporary path beside `path`: write there; on leaving, it becomes `path`, or on an error it is gone.

    A process killed before the rename leaves the old file whole and one dot-file `.NAME.*.tmp` beside it.
    """
    path = Path(path)
    check_writable(path)
    target = _target(path)
    # Several dots may matter to whoever writes there: DuckDB chooses compression by the last suffix.
    temporary = target.parent / f".{target.name}.{secrets.token_hex(ROOM)}.tmp"
    try:
        yield temporary
        _sync(temporary)
        os.replace(temporary, target)
    except BaseException as error:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
        if isinstance(error, OSError) and error.filename in (None, str(temporary)):
            error.filename = str(path)  # the user knows this one; a full disk names none
        raise
    written.append(str(path))
    # The new file is whole and in its place; some file systems cannot sync a folder.
    with contextlib.suppress(OSError):
        _sync(target.parent)


def _target(path: Path) -> Path:
    """Where a file is written: a symbolic link stays one, and the file it leads to is replaced."""
    return Path(os.path.realpath(path)) if path.is_symlink() else path


def check_writable(path: str | Path) -> None:
    """Complain now, not after an hour of work, when `path` cannot be written."""
    path = Path(path)
    folder = _target(path).parent
    if not folder.is_dir():
        raise InputError(f"{path}: the folder {folder} does not exist. Make it first, or choose another path.")
    longest = LONGEST_NAME - len("...tmp") - 2 * ROOM
    if len(os.fsencode(_target(path).name)) > longest:
        raise InputError(f"{path}: the name is too long. Choose one of at most {longest} bytes.")
    if path.is_dir():
        raise InputError(f"{path}: this is a folder. Give the name of a file to write.")
    if path.exists() and not path.is_file():
        raise InputError(f"{path}: this is no ordinary file and would be replaced. Give the name of a file to write.")
    if not os.access(folder, os.W_OK):
        raise InputError(f"{path}: the folder {folder} cannot be written. Choose another path.")


def write_atomically(path: str | Path, data: bytes) -> None:
    """Replace `path` with `data`, or leave it as it was."""
    with replacing(path) as temporary:
        temporary.write_bytes(data)


def write_failure(path: str | Path, message: str) -> OSError:
    """What kept an engine from writing `path`: a full disk as Python tells it, all else in the engine's words."""
    if os.strerror(errno.ENOSPC) in message:
        return OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
    return OSError(errno.EIO, message.splitlines()[0], str(path))


def unpack(packed: Path, target: Path) -> None:
    """Write what a gzipped file holds to a new file."""
    with _unpacking(packed) as source:
        write_blocks(iter(lambda: source.read(BLOCK), b""), target)


def write_blocks(blocks: Iterable[bytes], target: Path) -> None:
    """Write a new file among the temporary ones."""
    try:
        with target.open("xb") as out:
            out.writelines(blocks)
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise  # something is wrong with what is read
        raise temporary_is_full(target.parent) from None


def check_packed(files: Sequence[Path]) -> list[Path]:
    """Complain about a gzipped file that is damaged or cut off: readers may not look at the checksum at its end.

    All of it has to be unpacked for that; files beside each other, as they will be read. Says which have a long line.
    """
    stop = threading.Event()
    pool = ThreadPoolExecutor(max_workers=os.cpu_count())
    try:
        found = pool.map(lambda file: _check_packed(file, stop), files)
        return [file for file, has_long_line in zip(files, found, strict=True) if has_long_line]
    finally:  # an error, or Ctrl-C: the others need not go on
        stop.set()
        pool.shutdown(cancel_futures=True)


def _check_packed(packed: Path, stop: threading.Event) -> bool:
    """Whether there is a line of LONG_LINE bytes or more, as far as whole blocks tell."""
    lengths = [0]  # of blocks in a row without a line's end
    with _unpacking(packed) as source:
        while (block := source.read(BLOCK)) and not stop.is_set():
            lengths.append(0 if b"\n" in block or b"\r" in block else lengths[-1] + len(block))
    return max(lengths) >= LONG_LINE


@contextlib.contextmanager
def _unpacking(packed: Path) -> Iterator[gzip.GzipFile]:
    try:
        with gzip.open(packed) as source:
            yield source
    except (OSError, EOFError, zlib.error) as error:
        if isinstance(error, OSError) and error.errno == errno.ENOSPC:
            raise  # nothing is wrong with what is read
        raise InputError(
            f"{packed}: cannot be unpacked: {error}. The file may be damaged or cut off; copy it again."
        ) from None


def temporary_is_full(folder: Path) -> EngineError:
    """What to do when there is no room for a folder of ours among the temporary files."""
    return EngineError(
        f"{folder.parent}: the temporary folder is full. Free some of it, or choose another one with the environment "
        "variable TMPDIR. Nothing was written."
    )


@dataclass(frozen=True)
class Lines:
    """A file that grows line by line: the whole lines it had, and how to add one."""

    found: tuple[str, ...]
    append: Callable[[str], None]


@contextlib.contextmanager
def appending(path: str | Path) -> Iterator[Lines]:
    """Add lines to a file, made where it is missing; each is on the disk when `append` returns.

    Whatever kills the process, whole lines stay; the beginning of one that was being written is cut off when the file
    is opened the next time. One process at a time may have it open.
    """
    path = Path(path)
    check_writable(path)
    with path.open("a+b", buffering=0) as file:
        _lock(file, path, otherwise="or choose another folder")
        file.seek(0)
        whole, newline, _ = file.read().rpartition(b"\n")
        file.truncate(len(whole) + len(newline))

        def append(line: str) -> None:
            data = line.encode() + b"\n"
            while data:  # a write may be cut short, by a signal or a full disk
                data = data[file.write(data) or 0 :]
            os.fsync(file.fileno())

        yield Lines(tuple(whole.decode(errors="replace").split("\n")) if newline else (), append)


@contextlib.contextmanager
def holding(path: str | Path) -> Iterator[None]:
    """Have a file to ourselves, from before it is read until it is replaced; another run that wants it is refused."""
    path = Path(path)
    if os.name == "nt":  # an open file cannot be replaced there: two at once are not noticed
        yield
        return
    with path.open("r+b", buffering=0) as file:
        _lock(file, path, otherwise="and run this again")
        if not os.path.samestat(os.fstat(file.fileno()), path.stat()):  # replaced before we had it: the lock is void
            raise _busy(path, "and run this again")
        yield


def _lock(file: io.FileIO, path: Path, *, otherwise: str) -> None:
    """Refuse a file that another process has open for adding; the system lets go of it when that process ends."""
    try:
        import fcntl
    except ImportError:  # Windows: two at once are not noticed
        return
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise _busy(path, otherwise) from None


def _busy(path: Path, otherwise: str) -> InputError:
    return InputError(f"{path}: another clickmix is adding to it. Wait for it, {otherwise}.")


def write_document(path: str | Path, *, kind: str, version: int, payload: dict[str, Any]) -> None:
    """Write a JSON document that names its kind and version and carries a checksum of its payload."""
    write_atomically(path, document_text(kind=kind, version=version, payload=payload).encode())


def document_text(*, kind: str, version: int, payload: dict[str, Any]) -> str:
    """The text of such a document: sorted keys, no NaN, the same payload always gives the same text.

    >>> print(document_text(kind="x", version=1, payload={"b": 1, "a": 0.5}))  # doctest: +ELLIPSIS
    {
     "checksum": "...",
     "kind": "x",
     "payload": {
      "a": 0.5,
      "b": 1
     },
     "version": 1
    }
    <BLANKLINE>
    """
    document = {"kind": kind, "version": version, "payload": payload, "checksum": _checksum(payload)}
    return json.dumps(document, sort_keys=True, allow_nan=False, indent=1, ensure_ascii=False) + "\n"


def read_document(path: str | Path, *, kind: str, version: int) -> dict[str, Any]:
    """The payload of a document of this kind and version; a damaged or foreign file is refused."""
    path = Path(path)
    if not path.exists():
        raise InputError(f"{path}: no such file. Expected a {kind}.")
    if not path.is_file():
        raise InputError(f"{path}: not a file. Expected a {kind}.")
    if path.stat().st_size > LARGEST_DOCUMENT:
        raise FormatError(f"{path}: larger than {LARGEST_DOCUMENT // 1024**2} MiB, so not a {kind}.")
    try:
        text = path.read_bytes().decode()
    except UnicodeDecodeError:
        raise FormatError(f"{path}: damaged, or not a {kind}: not UTF-8 text.") from None
    return parse_document(text, kind=kind, version=version, where=str(path))


def strict_json(text: str) -> Any:
    """JSON in which every number is finite and no key stands twice; a ValueError or RecursionError otherwise."""
    return json.loads(text, parse_constant=_finite, parse_float=_finite, object_pairs_hook=_unique_keys)


def parse_document(text: str, *, kind: str, version: int, where: str) -> dict[str, Any]:
    """The payload of a document given as text; `where` names it in messages."""
    try:
        document = strict_json(text)
    except (ValueError, RecursionError):
        raise FormatError(f"{where}: damaged, or not a {kind}: not a JSON document.") from None
    if not isinstance(document, dict) or set(document) != {"kind", "version", "payload", "checksum"}:
        raise FormatError(f"{where}: damaged, or not a {kind}: expected kind, version, payload and checksum.")
    if document["kind"] != kind:
        raise FormatError(f"{where}: found a {document['kind']!r}, expected a {kind!r}.")
    if type(document["version"]) is not int or document["version"] != version:
        raise FormatError(
            f"{where}: format version {document['version']!r}, this clickmix reads version {version}. "
            "Make the file again with this clickmix, or use the one that wrote it."
        )
    payload = document["payload"]
    if not isinstance(payload, dict) or document["checksum"] != _checksum(payload):
        raise FormatError(f"{where}: damaged: the checksum does not fit the contents. Make the file again.")
    return payload


def _checksum(payload: dict[str, Any]) -> str:
    canonical = json.dumps(payload, sort_keys=True, allow_nan=False, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(canonical.encode()).hexdigest()


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):  # NaN and Infinity are no JSON, 1e999 is no number
        raise ValueError(text)
    return value


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len({key for key, _ in pairs}) != len(pairs):
        raise ValueError("a key stands twice")
    return dict(pairs)


def _sync(path: Path) -> None:
    """Have the system put `path` (a file, or a folder's entries) on the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
