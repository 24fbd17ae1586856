"""Numbers: parse many decimal numbers of a text together.   bytes with their starts and ends -> float64

Measured on MSLR's numbers, on one core: `numpy.fromstring` reads 4 million a second and scipy's `mmread` 20 million;
both hold Python's lock, and also read the feature numbers before the colons. The arithmetic below reads 24 million
without the lock, and `letor_lines` passes only the values.
"""

from __future__ import annotations

import re

import numpy as np
from numpy.typing import NDArray

Bytes = NDArray[np.uint8]
Places = NDArray[np.int64]

LONGEST = 15  # characters: their digits are a whole number below 10^15, which float64 holds exactly
NUMBER = re.compile(rb"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?")

_ZERO, _DOT, _MINUS = ord("0"), ord(".") - ord("0") + 256, ord("-") - ord("0") + 256  # the latter two as digits
_POWERS = 10.0 ** np.arange(LONGEST)


def read_numbers(text: Bytes, starts: Places, ends: Places) -> NDArray[np.float64]:
    """The number in each text[start:end], rounded as `float` rounds; NaN if it is not a number.

    >>> text = np.frombuffer(b"12 -0.5 1e3 x", np.uint8)
    >>> read_numbers(text, np.array([0, 3, 8, 12]), np.array([2, 7, 11, 13])).tolist()
    [12.0, -0.5, 1000.0, nan]
    """
    lengths = ends - starts
    numbers = np.empty(len(starts))
    short = np.minimum(lengths, LONGEST + 1).astype(np.uint8)
    for length in np.flatnonzero(np.bincount(short)).tolist():
        at = np.flatnonzero(short == length)
        if length <= LONGEST:
            numbers[at] = _of_one_length(text, starts[at], length)
        else:
            numbers[at] = np.nan
    unread = np.flatnonzero(np.isnan(numbers))
    words = [text[starts[i] : ends[i]].tobytes() for i in unread.tolist()]
    numbers[unread] = [float(word) if NUMBER.fullmatch(word) else np.nan for word in words]
    return numbers


def _of_one_length(text: Bytes, starts: Places, length: int) -> NDArray[np.float64]:
    """Digits with at most one dot, perhaps after a minus sign; NaN for anything else.

    The dot is first read as a digit 0. With k digits after it and A before it, that gives A 10^(k+1) + B instead of
    A 10^k + B, so subtract 9 A 10^k. All of these are whole numbers that float64 holds exactly.
    """
    digit = text[starts] - np.uint8(_ZERO)  # below '0' it wraps around to large numbers
    if length == 1:
        return np.where(digit < 10, digit, np.nan)
    negative, dot = digit == _MINUS, digit == _DOT
    strange = (digit >= 10) & ~negative & ~dot
    with_dot = (digit * (digit < 10)).astype(np.float64)
    dots, k = dot.astype(np.uint8), dot * np.uint8(length - 1)
    for place in range(1, length):
        digit = text[starts + place] - np.uint8(_ZERO)
        dot = digit == _DOT
        plain = digit < 10
        dots += dot
        k += dot * np.uint8(length - 1 - place)
        strange |= ~(plain | dot)
        with_dot *= 10
        with_dot += digit * plain
    strange |= (dots > 1) | (length - dots - negative < 1)
    power = _POWERS[np.where(strange, 0, k)]
    before = np.floor(with_dot / (10 * power)) * dots
    numbers: NDArray[np.float64] = (with_dot - 9 * power * before) / np.where(negative, -power, power)
    numbers[strange] = np.nan
    return numbers
