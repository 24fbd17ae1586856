"""How a report writes ids, places and shares."""

from __future__ import annotations

LONGEST_ID = 80  # letters


def cut(value: object) -> str:
    """An id, at most so long.

    >>> cut("x" * 100)[-3:]
    'xx…'
    """
    text = str(value)
    return text if len(text) <= LONGEST_ID else text[:LONGEST_ID] + "…"


def percent(share: float) -> str:
    """A share in percent, to two digits or whole.

    >>> percent(0.98123), percent(0.0123), percent(0), percent(1)
    ('98%', '1.2%', '0%', '100%')
    """
    return f"{100 * share:.0f}%" if share >= 0.1 or share == 0 else f"{100 * share:.2g}%"
