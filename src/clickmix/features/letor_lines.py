"""Lines of LETOR text, parsed together.   bytes -> LetorLines

A line is `grade qid:query feature:value feature:value ... # comment`, with features in rising order; others are 0.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from clickmix.features.letor_numbers import NUMBER, Bytes, Places, read_numbers

LARGEST_GRADE = 127
LARGEST_QUERY = 2**53 - 1  # up to here float64 holds every whole number
LARGEST_FEATURE = 100_000  # more is a mistake, and a dense matrix would fill the memory

_DOC_ID = re.compile(rb"\s*(?:docid\s*=\s*(\S+)|(\S+))")
WORD = b"\n"  # marks the first word of a comment without a docid; no line contains it
_FLOAT32 = float(np.finfo(np.float32).max)


class LineError(Exception):
    """What is wrong with a line, counted from 0 within the text."""

    def __init__(self, line: int, message: str) -> None:
        super().__init__(message)
        self.line = line


@dataclass(frozen=True, eq=False)
class LetorLines:
    """One row per document; `line` is its line, from 0.

    `doc_id` is the ID of `# docid = ID`; otherwise WORD and the first word of the comment; b"" if there is none.
    """

    line: NDArray[np.int64]
    query: NDArray[np.int64]
    grade: NDArray[np.int8]
    doc_id: NDArray[np.bytes_] | None
    features: NDArray[np.float32]
    lines: int


def read_lines(text: bytes) -> LetorLines:
    """The documents of `text`, which ends with a line break; blank lines and comments are skipped.

    If the fast parser refuses the text, a slow one goes through it line by line to say what is wrong.
    """
    body, doc_id = _without_comments(text) if b"#" in text else (text, None)
    lines = _read_fast(body, doc_id)
    if lines is None:
        for number, line in enumerate(body.split(b"\n")):
            _check_line(number, line)
        raise LineError(0, "cannot be read as 'grade qid:query feature:value ...'.")
    return lines


def _without_comments(text: bytes) -> tuple[bytes, list[bytes]]:
    """The same lines up to their '#', and the document id or the first word after it, if any."""
    parts = [line.partition(b"#") for line in text.split(b"\n")]
    found = [_DOC_ID.match(comment) for _, _, comment in parts]
    return b"\n".join(line for line, _, _ in parts), [match[1] or WORD + match[2] if match else b"" for match in found]


def _read_fast(text: bytes, doc_id: list[bytes] | None) -> LetorLines | None:
    """Parse all lines together, by arithmetic on bytes; None if anything is wrong."""
    characters = np.frombuffer(text, np.uint8)
    starts, ends = _words(characters)
    breaks = np.flatnonzero(characters == ord("\n"))
    if not len(starts):
        none = np.zeros(0, np.int64)
        nothing = LetorLines(none, none, none.astype(np.int8), None, np.zeros((0, 0), np.float32), len(breaks))
        return None if text.strip(b" \t\r\n") else nothing
    first = np.searchsorted(starts, np.concatenate(([0], breaks + 1)))
    line, words = np.flatnonzero(np.diff(first)), np.diff(first)
    first, pairs = first[line], words[line] // 2
    is_key = characters[ends] == ord(":")
    if not _is_laid_out(characters, starts, ends, first=first, is_key=is_key):
        return None
    key, value = np.flatnonzero(is_key), np.flatnonzero(~is_key)
    numbers = read_numbers(characters, starts[value], ends[value])
    keys = _keys(characters, starts[key], ends[key], pairs)
    begin = np.cumsum(pairs + 1) - (pairs + 1)
    grade, query = numbers[begin], numbers[begin + 1]
    features = _features(numbers, keys, pairs)
    if features is None or not (_are_whole(grade, LARGEST_GRADE) and _are_whole(query, LARGEST_QUERY)):
        return None
    ids = None if doc_id is None else np.array(doc_id, np.bytes_)[line]
    return LetorLines(line, query.astype(np.int64), grade.astype(np.int8), ids, features, len(breaks))


def _words(characters: Bytes) -> tuple[Places, Places]:
    """Where each run without blanks and colons starts and ends."""
    ends = np.flatnonzero((characters <= ord(" ")) | (characters == ord(":")))
    starts = np.empty_like(ends)
    starts[:1] = 0
    starts[1:] = ends[:-1] + 1
    full = ends > starts
    return starts[full], ends[full]


def _is_laid_out(characters: Bytes, starts: Places, ends: Places, *, first: Places, is_key: NDArray[np.bool_]) -> bool:
    """Whether each line is one word, then pairs joined by one colon, of which the first begins with qid.

    `first` is the first word of each line. Keys and values alternate, except that a new line begins with a value after
    a value; so each line has an odd number of words, and its second is a key.
    """
    new_line = np.zeros(len(starts) + 1, bool)
    new_line[first] = new_line[-1] = True
    alone = new_line[1:] & new_line[:-1]
    in_turn = (is_key[1:] != is_key[:-1]) != new_line[1:-1]
    joined = ends[:-1] + 1 == starts[1:]
    if alone.any() or is_key[0] or is_key[-1] or not (in_turn & (joined | ~is_key[:-1])).all():
        return False
    if np.count_nonzero(characters == ord(":")) != np.count_nonzero(is_key):
        return False
    blanks = sum(np.count_nonzero(characters == blank) for blank in b"\t\r\n")
    qid = starts[first + 1]
    return (
        np.count_nonzero(characters < ord(" ")) == blanks
        and bool((ends[first + 1] - qid == 3).all())
        and all((characters[qid + i] == letter).all() for i, letter in enumerate(b"qid"))
    )


def _keys(characters: Bytes, starts: Places, ends: Places, pairs: Places) -> NDArray[np.float64]:
    """The feature number before each colon, and 0 for qid.

    Most files name the same features on every line: comparing their characters is cheaper than reading them.
    """
    first = pairs[0]
    if (pairs == first).all():
        keys = read_numbers(characters, starts[1:first], ends[1:first])
        if _repeats(characters, starts.reshape(-1, first), ends.reshape(-1, first)):
            return np.tile(np.concatenate(([0.0], keys)), len(pairs))
    keys = read_numbers(characters, starts, ends)
    keys[np.cumsum(pairs) - pairs] = 0
    return keys


def _repeats(characters: Bytes, starts: Places, ends: Places) -> bool:
    """Whether each column has the same word on all lines."""
    lengths = ends[0] - starts[0]
    if not ((ends - starts) == lengths).all():
        return False
    long = [starts[:, lengths > place] + place for place in range(lengths.max())]
    return all((characters[word] == characters[word[0]]).all() for word in long)


def _features(numbers: NDArray[np.float64], keys: NDArray[np.float64], pairs: Places) -> NDArray[np.float32] | None:
    """The matrix of features; None if a number is not finite, or the features of a line do not rise from 1."""
    if not np.isfinite(numbers).all():
        return None
    row = np.repeat(np.arange(len(pairs)), pairs)
    new_row = np.concatenate(([True], row[1:] != row[:-1]))
    rising = np.concatenate(([True], keys[1:] > keys[:-1]))
    if not (_are_whole(keys, LARGEST_FEATURE) and ((keys == 0) == new_row).all() and (new_row | rising).all()):
        return None
    width = int(keys.max())
    if (pairs == width + 1).all():
        return _clipped(numbers.reshape(len(pairs), width + 2)[:, 2:])
    features = np.zeros((len(pairs), width + 1), np.float32)
    is_grade = np.zeros(len(numbers), bool)
    is_grade[np.cumsum(pairs + 1) - (pairs + 1)] = True
    features[row, keys.astype(np.int64)] = _clipped(numbers[~is_grade])
    return features[:, 1:]


def _are_whole(numbers: NDArray[np.float64], high: float) -> bool:
    return bool(((numbers >= 0) & (numbers <= high) & (numbers == np.floor(numbers))).all())


def _clipped(numbers: NDArray[np.float64]) -> NDArray[np.float32]:
    """The numbers as float32; those out of range (Istella writes 1.797e308 for 'none') become its largest."""
    return np.clip(numbers, -_FLOAT32, _FLOAT32).astype(np.float32)


def _check_line(number: int, line: bytes) -> None:
    """Say what is wrong with this line, if anything is."""
    if re.search(rb"[\x00-\x08\x0b\x0c\x0e-\x1f]", line):
        raise LineError(number, "a control character. Is this a text file?")
    words = line.split()
    if not words:
        return
    shown = [word[:40].decode("ascii", "backslashreplace") for word in words]
    if not _is_whole(words[0], LARGEST_GRADE):
        raise LineError(number, f"expected a grade (a whole number from 0 to {LARGEST_GRADE}), found {shown[0]!r}.")
    if len(words) < 2 or not words[1].startswith(b"qid:"):
        found = f"found {shown[1]!r}" if len(words) > 1 else "the line ends"
        raise LineError(number, f"expected qid:QUERY after the grade, {found}.")
    if not _is_whole(words[1][4:], LARGEST_QUERY):
        raise LineError(number, f"expected qid: with a whole number from 0 to 2^53 - 1, found {shown[1]!r}.")
    last = 0
    for word, text in zip(words[2:], shown[2:], strict=True):
        feature, colon, value = word.partition(b":")
        if not colon or not _is_whole(feature, LARGEST_FEATURE) or float(feature) < 1:
            raise LineError(
                number, f"expected FEATURE:VALUE with a feature from 1 to {LARGEST_FEATURE}, found {text!r}."
            )
        if float(feature) <= last:
            raise LineError(number, f"features out of order: {int(float(feature))} comes after {last}.")
        if not NUMBER.fullmatch(value) or not np.isfinite(float(value)):
            raise LineError(number, f"the value of feature {int(float(feature))} is not a finite number: {text!r}.")
        last = int(float(feature))


def _is_whole(text: bytes, high: int) -> bool:
    return bool(NUMBER.fullmatch(text)) and 0 <= float(text) <= high and float(text).is_integer()
