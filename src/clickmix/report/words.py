"""How people read values: counts, shares, rates, ids, file names and commands as short texts."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from decimal import ROUND_HALF_UP, Decimal

from clickmix.errors import hide_secrets

LONGEST_ID = 80  # letters
LONGEST_COMMAND = 400
LEAST_PERCENT = 1e-4  # smaller ones are only said to be smaller
MOST_COUNTED = 1_000_000  # infinite counts are above it


def cut(value: object) -> str:
    """Shorten an id to at most 80 letters.

    >>> cut("x" * 100)[-3:]
    'xx…'
    """
    text = str(value)
    return text if len(text) <= LONGEST_ID else text[:LONGEST_ID] + "…"


def percent(share: float) -> str:
    """Write a share in percent: two digits, or whole from 10 % on.

    >>> percent(0.98123), percent(0.0123), percent(0.02), percent(0), percent(1), percent(0.9999), percent(6.5e-103)
    ('98%', '1.2%', '2%', '0%', '100%', '>99%', '<0.0001%')
    """
    if share in (0, 1):
        return f"{share:.0%}"
    if 0.995 <= share < 1:
        return ">99%"
    if 0 < 100 * share < LEAST_PERCENT:
        return f"<{LEAST_PERCENT:.4f}%"
    exact = Decimal(100 * share)
    step = Decimal(1).scaleb(min(0, exact.adjusted() - 1)) if abs(share) < 0.0995 else Decimal(1)
    text = f"{exact.quantize(step, ROUND_HALF_UP):f}"  # as the script of a page rounds
    return (text.rstrip("0").rstrip(".") if "." in text else text) + "%"


def count_text(count: float) -> str:
    """Write a count with separators; an infinite one is above a million.

    >>> count_text(12345), count_text(math.inf)
    ('12,345', '>1,000,000')
    """
    return f">{MOST_COUNTED:,}" if count == math.inf else f"{count:,.0f}"


def number_text(value: float) -> str:
    """Write a number with three decimals, fewer from 10 on, and never with an exponent.

    >>> number_text(0.2), number_text(17.399), number_text(1234.5), number_text(6.5e-103), number_text(0)
    ('0.200', '17.4', '1,234', '<0.001', '0')
    """
    if 0 < abs(value) < 0.001:
        return "<0.001" if value > 0 else ">-0.001"
    decimals = 0 if abs(value) >= 100 or value == 0 else 1 if abs(value) >= 10 else 3
    return f"{value:,.{decimals}f}"


def label_text(value: float) -> str:
    """Write a label or a gain with two decimals.

    >>> label_text(0.5)
    '0.50'
    """
    return f"{value:.2f}"


def tenths_text(value: float) -> str:
    """Write a mean position or an expected number with one decimal.

    >>> tenths_text(1234.56)
    '1,234.6'
    """
    return f"{value:,.1f}"


def file_name(path: str) -> str:
    """Keep the last part of a path or an address: a report must not show a server's folders, hosts or passwords.

    >>> file_name("/srv/logs/clicks.parquet"), file_name("postgresql://me:secret@host/shop"), file_name("clicks")
    ('clicks.parquet', 'shop', 'clicks')
    """
    return re.split(r"[/\\]", hide_secrets(path).rstrip("/\\"))[-1]


def command_text(words: Sequence[str]) -> str:
    """Write a command in one line, with file names only, at most 400 letters: a shell's * can name thousands of files.

    >>> command_text(["clickmix", "debias", "/srv/my log.csv", "--engine=postgresql://u:p@host/shop"])
    "clickmix debias 'my log.csv' --engine=shop"
    """
    shown = []
    for word in words:
        key, equals, value = word.partition("=") if word.startswith("--") else ("", "", word)
        text = cut(key + equals + file_name(value))
        shown.append(f"'{text}'" if re.search(r"\s", text) or not text else text)
    command = " ".join(shown)
    return command if len(command) <= LONGEST_COMMAND else command[:LONGEST_COMMAND] + "…"


# How a value of each kind is written. None is a dash, whatever its kind.
WRITERS: dict[str, Callable[..., str]] = {
    "text": cut,
    "sentence": str,
    "outcome": str,
    "count": count_text,
    "share": percent,
    "rate": percent,
    "label": label_text,
    "interval": str,
    "tenths": tenths_text,
    "number": number_text,
    "perplexity": "{:.4f}".format,
}
