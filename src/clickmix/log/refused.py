"""Refused rows: what can be wrong with a row, and the rows that were refused, with examples.   source -> counts"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from clickmix.errors import InputError, several

EXAMPLES_PER_REASON = 3
LONGEST_EXAMPLE = 200
# Yes and no, true and false, 1 and 0 as spreadsheets write them in other languages.
FOREIGN_FLAGS = frozenset(
    {
        *("yes", "no", "y", "n", "t", "f", "x", "ja", "nein", "oui", "non", "si", "sí", "sim", "não", "nee", "nej"),
        *("tak", "nie", "ano", "áno", "ne", "igen", "nem", "da", "nu", "joo", "kyllä", "ei", "jah", "evet", "hayir"),
        *("да", "нет", "так", "ні", "はい", "いいえ", "是", "否"),
        *("예", "아니요", "نعم", "لا", "כן", "לא", "1,0", "0,0"),
        *("wahr", "falsch", "vrai", "faux", "vero", "falso", "verdadero", "verdadeiro", "waar", "onwaar", "sann"),
        *("falskt", "sand", "falsk", "tosi", "epätosi", "igaz", "hamis", "prawda", "fałsz", "pravda", "nepravda"),
        *("истина", "ложь", "doğru", "真", "假", "참", "거짓"),
    }
)


@dataclass(frozen=True)
class BadValue:
    """What can be wrong with one value of a row: SQL that is true for a bad row. No `column`: the whole row.

    Rows whose problem is `decided` are not refused; `reason` says what is odd about them and what happens to them.
    """

    column: str
    bad: str
    reason: str
    decided: bool = False


@dataclass(frozen=True)
class Example:
    """A refused row: its file, its number or key, and the value found there. No `column`: the whole line."""

    where: str
    row: int | str
    column: str
    text: str | None

    def __str__(self) -> str:
        row = f"row {self.row}" if isinstance(self.row, int) else self.row
        place = f"{self.where}, {row}" + (f", column {self.column!r}" if self.column else "")
        if self.text is None:
            return f"{place}: nothing" if self.column else place
        return f"{place}: {self.text[:LONGEST_EXAMPLE]!r}"


@dataclass(frozen=True)
class Refused:
    """The rows refused for one reason: how many, and the first few. Rows that are `decided` were counted instead."""

    reason: str
    rows: int
    examples: tuple[Example, ...]
    decided: bool = False


@dataclass(frozen=True)
class Note:
    """Something odd in a log that was decided, and how often it came up.

    `noun` is what was counted. `what` says what is odd about it, without a verb that would have to agree with a number.

    >>> str(Note("click", "without an impression: counted as shown", 1))
    '1 click without an impression: counted as shown.'
    """

    noun: str
    what: str
    times: int
    plural: str = ""

    def __str__(self) -> str:
        return f"{several(self.times, self.noun, self.plural)} {self.what}."


def refusal(refused: Sequence[Refused]) -> InputError:
    """The error for refused rows: the first of them, and how many there are."""
    first, rows = refused[0], sum(r.rows for r in refused)
    others = f" In all, {rows:,} rows are bad." if rows > 1 else ""
    meant = hint(first)  # then all such rows are bad, and skipping them would drop a part that is not random
    instead = "" if meant else ", or skip bad rows with --bad-rows skip (in Python bad_rows='skip')"
    return InputError(f"{first.examples[0]}: {first.reason}.{others}{meant} Fix the log{instead}.")


def nothing_left(where: str, refused: Sequence[Refused], notes: Sequence[Note]) -> InputError:
    """The error for a log without an impression that can be counted."""
    odd = "".join(f" {note}" for note in notes)
    if not refused:
        return InputError(f"{where}: the log is empty.{odd} Expected one row per impression.")
    most = max(refused, key=lambda each: each.rows)
    reasons = ", ".join(f"{r.reason} ({r.rows:,})" for r in sorted(refused, key=lambda r: -r.rows))
    return InputError(
        f"{where}: no impression is left without the bad rows: {reasons}. For instance {most.examples[0]}.{hint(most)}"
        f"{odd} Fix the log."
    )


def hint(refused: Refused) -> str:
    """What such values may mean throughout the log, after a blank; empty if a row may be bad by chance."""
    return next(filter(None, (_hint(refused.reason, example) for example in refused.examples)), "")


def _hint(reason: str, example: Example) -> str:
    text = (example.text or "").strip()
    if reason.startswith(("position", "clicked_positions")) and re.match(r"[\[{]?0(\.0+)?\b(?!\.)", text):
        return " If positions count from 0, add 1 to all of them."
    if reason.startswith("doc_ids") and (field := re.match(r'\[\{"([^"]+)"', text)):
        path = f"{example.column}[].{field[1]}"
        return f" If its elements are objects, name the field of the document: --columns 'doc_ids={path}'."
    if reason.startswith("clicked") and text.lower() in FOREIGN_FLAGS:
        return f" {text!r} may mean yes or no: write 1 for a click and 0 for none, or true and false."
    return ""


def merged(found: Iterable[Refused]) -> list[Refused]:
    """One entry per reason."""
    by_reason: dict[str, Refused] = {}
    for refused in found:
        known = by_reason.setdefault(refused.reason, replace(refused, rows=0, examples=()))
        examples = (*known.examples, *refused.examples)[:EXAMPLES_PER_REASON]
        by_reason[refused.reason] = replace(known, rows=known.rows + refused.rows, examples=examples)
    return list(by_reason.values())
