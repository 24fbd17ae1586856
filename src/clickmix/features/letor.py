"""LETOR text, dense or sparse, gzipped or not.   path -> Split

Threads parse pieces of whole lines in parallel: numpy releases the lock.
"""

from __future__ import annotations

import gzip
import os
import re
import zlib
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from clickmix.errors import InputError
from clickmix.features.ids import Ids
from clickmix.features.letor_lines import WORD, LetorLines, LineError, read_lines
from clickmix.features.split import Split, offsets_of, refuse_repeated, row_of_scattered_query

PIECE = 4 * 1024 * 1024  # bytes: large compared with the cost of a call of numpy, small compared with the memory
GROWTH = 1.2  # factor by which a full matrix grows
THREADS = min(4, os.cpu_count() or 1)

_MARK = b"\xef\xbb\xbf"  # the byte order mark some programs put before the first line


def read_letor(path: str | Path) -> Split:
    """The documents of a file of lines `grade qid:query feature:value ... # comment`, in its order.

    A document's id comes from a comment `# docid = ID`, or is the first word of the comment if every line has one;
    otherwise it is its number in the file, from 0. Features that are left out are 0; numbers too large for float32
    become its largest.

    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = Path(folder.name, "train.txt")
    >>> _ = path.write_text("2 qid:1 1:0.5 2:3\\n")
    >>> read_letor(path).grade.tolist()
    [2]
    >>> folder.cleanup()
    """
    path = Path(path)
    pieces, features = _gathered(_read_pieces(path))
    if not len(features):
        raise InputError(f"{path}: no documents. Expected lines such as '2 qid:1 1:0.5 2:3'.")
    line = np.concatenate([piece.line for piece in pieces])
    query = np.concatenate([piece.query for piece in pieces])
    grade = np.concatenate([piece.grade for piece in pieces])
    doc_id = _doc_ids(pieces)
    row = row_of_scattered_query(query)
    if row is not None:
        raise InputError(
            f"{path}, line {line[row] + 1}: query {query[row]} already ended above. "
            "Put the lines of each query together."
        )
    if doc_id.dtype.kind == "U":  # numbers are the rows' own, each once
        refuse_repeated(query, doc_id, where=lambda row: f"{path}, line {line[row] + 1}")
    offsets = offsets_of(query)
    return Split(query[offsets[:-1]], offsets, doc_id, grade, features)


def _gathered(pieces: Iterator[LetorLines]) -> tuple[list[LetorLines], NDArray[np.float32]]:
    """The pieces without their features, and the features in one matrix that grows in place, without a second copy."""
    narrow, features, rows = [], np.zeros((0, 0), np.float32), 0
    for piece in pieces:
        count, width = piece.features.shape
        if width > features.shape[1]:
            features = np.pad(features, ((0, 0), (0, width - features.shape[1])))
        if rows + count > len(features):
            features.resize((int((rows + count) * GROWTH), features.shape[1]), refcheck=False)
        features[rows : rows + count, :width] = piece.features
        narrow.append(replace(piece, features=np.zeros((0, width), np.float32)))
        rows += count
    features.resize((rows, features.shape[1]), refcheck=False)
    return narrow, features


def _read_pieces(path: Path) -> Iterator[LetorLines]:
    """The parsed pieces of the file, in order, with line numbers of the file; a few are parsed at a time."""
    waiting: deque[Future[LetorLines]] = deque()
    before = 0
    with ThreadPoolExecutor(THREADS) as threads:
        try:
            for text in _pieces(path):
                waiting.append(threads.submit(read_lines, text))
                if len(waiting) > 2 * THREADS:
                    yield (piece := _numbered(path, waiting.popleft(), before))
                    before += piece.lines
            while waiting:
                yield (piece := _numbered(path, waiting.popleft(), before))
                before += piece.lines
        finally:
            for future in waiting:
                future.cancel()


def _numbered(path: Path, future: Future[LetorLines], before: int) -> LetorLines:
    try:
        piece = future.result()
    except LineError as error:
        raise InputError(f"{path}, line {before + error.line + 1}: {error}") from None
    return replace(piece, line=piece.line + before)


def _pieces(path: Path) -> Iterator[bytes]:
    """The text in pieces of whole lines, each ending with a line break."""
    rest = b""
    for block in _blocks(path):
        end = block.rfind(b"\n") + 1
        if end:
            yield rest + block[:end]
        rest = block[end:] if end else rest + block
    if rest:
        yield rest + b"\n"


def _blocks(path: Path) -> Iterator[bytes]:
    """The bytes of the file, unpacked if it is gzipped, whatever its name."""
    try:
        with path.open("rb") as file:
            packed = file.read(2) == b"\x1f\x8b"
        with gzip.open(path, "rb") if packed else path.open("rb") as text:
            block = text.read(PIECE).removeprefix(_MARK)
            while block:
                yield block
                block = text.read(PIECE)
    except (EOFError, zlib.error, gzip.BadGzipFile):
        raise InputError(f"{path}: the gzipped file is cut short or damaged. Download or compress it again.") from None
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}. Expected a file of LETOR lines.") from None


def _doc_ids(pieces: list[LetorLines]) -> Ids:
    """The docids in comments; otherwise their first words, if every line has one; otherwise numbers from 0."""
    rows = sum(len(piece.line) for piece in pieces)
    if all(piece.doc_id is None for piece in pieces):
        return np.arange(rows)
    found = np.concatenate(
        [np.zeros(len(piece.line), "S1") if piece.doc_id is None else piece.doc_id for piece in pieces]
    )
    is_word = np.char.startswith(found, WORD)
    if is_word.all():
        names = np.char.decode(np.char.lstrip(found, WORD), "utf-8", "backslashreplace")
        whole = all(re.fullmatch("0|-?[1-9][0-9]{0,17}", each) for each in names.tolist())
        return names.astype(np.int64) if whole else names
    names = np.char.decode(np.where(is_word, b"", found), "utf-8", "backslashreplace")
    numbers = np.arange(rows)
    return np.where(names == "", numbers.astype(np.str_), names) if (names != "").any() else numbers
