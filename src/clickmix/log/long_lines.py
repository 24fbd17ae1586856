"""Lines of CSV that the reader would lose -> a copy of the file in which they are cut.   paths -> sources

A line longer than DuckDB's buffer of 32 MB disappears, and the row after it too. A file whose end was filled with zeros
when the power failed has such a line. In the copy the line is still too long to be a row, so the reader reports it.
"""

from __future__ import annotations

import gzip
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from clickmix.log.paths import is_gzipped
from clickmix.storage.packed import BLOCK, LONG_LINE, write_blocks

KEPT = 4 << 20  # bytes of a line: twice as many as the reader takes
LOOK = 1 << 16
LINE_ENDS = re.compile(rb"[\r\n]")


def has_long_line(file: Path) -> bool:
    """Whether an unpacked file has a line of 2 * LONG_LINE bytes or more; some shorter ones are found too.

    Such a line fills a block of LONG_LINE bytes. Usually the first bytes of each block show that it does not.
    """
    with file.open("rb") as data:
        for start in range(0, file.stat().st_size - LONG_LINE + 1, LONG_LINE):
            data.seek(start)
            if not any(LINE_ENDS.search(data.read(LOOK)) for _ in range(LONG_LINE // LOOK)):
                return True
    return False


def write_cut(file: Path, target: Path) -> None:
    """Write a file's lines to a new file, unpacked, none of them longer than about KEPT bytes."""
    with gzip.open(file) if is_gzipped(file) else file.open("rb") as data:
        write_blocks(_cut(iter(lambda: data.read(BLOCK), b"")), target)


def _cut(blocks: Iterable[bytes]) -> Iterator[bytes]:
    """The same lines; of a long one the first bytes, and a quotation mark if the rest would have closed one."""
    kept, quotes = 0, 0  # of the line that the block before ended in: bytes written, quotation marks left out
    for block in blocks:
        first = LINE_ENDS.search(block)
        end = first.start() if first else len(block)
        room = min(end, max(0, KEPT - kept))
        yield block[:room]
        kept, quotes = kept + room, quotes + block.count(b'"', room, end)
        if first:
            yield b'"' * (quotes % 2) + block[end:]
            kept, quotes = len(block) - 1 - max(block.rfind(b"\n"), block.rfind(b"\r")), 0
    yield b'"' * (quotes % 2)
