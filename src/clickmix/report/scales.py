"""Scales: where numbers are on an axis, and ticks at round numbers."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

ROUND_STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)


@dataclass(frozen=True)
class AxisScale:
    """Numbers from `low` to `high` are drawn from `start` to `end`; numbers beyond are drawn at the border."""

    low: float
    high: float
    start: float
    end: float
    log: bool = False

    def place(self, value: float) -> float:
        """Where a number is drawn.

        >>> AxisScale(0, 10, 100, 200).place(5), AxisScale(1, 100, 0, 2, log=True).place(10)
        (150.0, 1.0)
        """
        low, high = self._on(self.low), self._on(self.high)
        share = (self._on(min(max(value, self.low), self.high)) - low) / (high - low)
        return self.start + share * (self.end - self.start)

    def _on(self, value: float) -> float:
        return math.log10(value) if self.log else value


def ticks(low: float, high: float, *, log: bool = False, whole: bool = False, about: int = 5) -> list[float]:
    """Round numbers from `low` to `high`, about that many.

    >>> ticks(0, 1), ticks(1, 20, whole=True), ticks(0.002, 1, log=True)
    ([0.0, 0.2, 0.4, 0.6, 0.8, 1.0], [1.0, 5.0, 10.0, 15.0, 20.0], [0.01, 0.1, 1.0])
    """
    if log:
        return _powers(low, high)
    step = _round_step((high - low) / about, whole=whole)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    found = [round(i * step, 12) for i in range(first, last + 1)]
    least = math.ceil(low)
    if whole and least <= high and (not found or found[0] - least >= 0.5 * step):
        found.insert(0, float(least))  # lists begin with position 1, which is not a multiple of 5
    return found


def _powers(low: float, high: float) -> list[float]:
    """Powers of ten; on a short axis also twice and five times each."""
    powers = range(math.floor(math.log10(low) + 1e-9), math.ceil(math.log10(high) - 1e-9) + 1)
    factors = (1.0,) if math.log10(high / low) > 2 else (1.0, 2.0, 5.0)
    every = 1 + (len(powers) - 1) // 6
    found = [factor * 10.0**power for power in powers[::every] for factor in factors]
    return [float(f"{value:.6g}") for value in found if low * (1 - 1e-9) <= value <= high * (1 + 1e-9)]


def _round_step(least: float, *, whole: bool) -> float:
    """The smallest round number that is not below `least`."""
    if whole and least <= 1:
        return 1.0
    power = 10.0 ** math.floor(math.log10(least))
    steps = [step for step in ROUND_STEPS if not (whole and step == 2.5 and power < 10)]
    return power * next(step for step in steps if step * power >= least * (1 - 1e-9))


def round_up(value: float) -> float:
    """A round number at or above a value, for the end of an axis.

    >>> round_up(0.23), round_up(7), round_up(0)
    (0.25, 8.0, 1.0)
    """
    if value <= 0:
        return 1.0
    power = 10.0 ** math.floor(math.log10(value))
    return float(f"{next(s * power for s in (1, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10) if s * power >= value * (1 - 1e-9)):g}")


def log_start(counts: Iterable[float]) -> float:
    """Where a logarithmic axis of counts begins: below 1, or a power of ten lower if all counts are large.

    >>> log_start([0, 3, 900]), log_start([2500, 0, 100000])
    (0.5, 100.0)
    """
    lowest = min((count for count in counts if count > 0), default=1.0)
    return 0.5 if lowest < 50 else 10.0 ** (math.floor(math.log10(lowest)) - 1)


def tick_text(value: float, *, percent: bool = False) -> str:
    """A number beside an axis, where there is little room.

    >>> tick_text(1000), tick_text(10000), tick_text(2.5e6), tick_text(0.5, percent=True)
    ('1,000', '10k', '2.5M', '50%')
    """
    if percent or abs(value) < 10_000:
        return shown(value, percent=percent)
    return f"{value / 1e6:g}M" if abs(value) >= 1e6 else f"{value / 1e3:g}k"


def shown(value: float, *, percent: bool = False) -> str:
    """A number as an axis shows it.

    >>> shown(0.025, percent=True), shown(12000.0), shown(0.5)
    ('2.5%', '12,000', '0.5')
    """
    if percent:
        return f"{float(f'{100 * value:.4g}'):g}%"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{float(f'{value:.4g}'):g}"
