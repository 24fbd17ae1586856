"""Gzipped files: check them whole, or unpack them into the temporary folder."""

from __future__ import annotations

import contextlib
import errno
import gzip
import os
import threading
import zlib
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from clickmix.errors import EngineError, InputError

BLOCK = 1 << 20
LONG_LINE = 8 * BLOCK  # bytes: longer lines may not fit in a reader's buffer


def unpack(packed: Path, target: Path) -> None:
    """Write the contents of a gzipped file to a new file."""
    with unpacking(packed) as source:
        write_blocks(iter(lambda: source.read(BLOCK), b""), target)


def write_blocks(blocks: Iterable[bytes], target: Path) -> None:
    """Write a new file in the temporary folder."""
    try:
        with target.open("xb") as out:
            out.writelines(blocks)
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise  # the source is at fault
        raise temporary_is_full(target.parent) from None


def check_packed(files: Sequence[Path]) -> list[Path]:
    """Refuse gzipped files that are damaged or cut off; return the files that have a long line.

    Readers may ignore the checksum at the end, so this unpacks every file, several at a time.
    """
    stop = threading.Event()
    pool = ThreadPoolExecutor(max_workers=os.cpu_count())
    try:
        found = pool.map(lambda file: _check_packed(file, stop), files)
        return [file for file, has_long_line in zip(files, found, strict=True) if has_long_line]
    finally:  # after an error, or Ctrl-C, stop the others, too
        stop.set()
        pool.shutdown(cancel_futures=True)


def _check_packed(packed: Path, stop: threading.Event) -> bool:
    """Whether some line has LONG_LINE bytes or more, judging by whole blocks."""
    lengths = [0]  # of consecutive blocks without a line end
    with unpacking(packed) as source:
        while (block := source.read(BLOCK)) and not stop.is_set():
            lengths.append(0 if b"\n" in block or b"\r" in block else lengths[-1] + len(block))
    return max(lengths) >= LONG_LINE


@contextlib.contextmanager
def unpacking(packed: Path) -> Iterator[gzip.GzipFile]:
    """Open a gzipped file; if it cannot be unpacked, raise an error that the user can fix."""
    try:
        with gzip.open(packed) as source:
            yield source
    except (OSError, EOFError, zlib.error) as error:
        if isinstance(error, OSError) and error.errno == errno.ENOSPC:
            raise  # the target is at fault
        reason = str(error).split(" (b'")[0]  # Python shows the first bytes
        raise InputError(
            f"{packed}: cannot be unpacked: {reason}. The file may be damaged or cut off; copy it again."
        ) from None


def temporary_is_full(folder: Path) -> EngineError:
    """The error for a disk without room for `folder`, which is in the temporary folder."""
    return EngineError(
        f"{folder.parent}: the temporary folder is full. Free some space, or choose another one with the environment "
        "variable TMPDIR.",
        nothing_written=True,
    )
