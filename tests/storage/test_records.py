"""Records come back from JSON as they were; what does not fit their types is refused, with the path to it."""

from __future__ import annotations

import enum
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clickmix.storage.documents import strict_json
from clickmix.storage.records import MismatchError, Range, decode, encode


class Colour(enum.StrEnum):
    """Two texts."""

    RED = "dark red"
    BLUE = "blue"


@dataclass(frozen=True)
class Inner:
    """A record in a record."""

    share: Annotated[float, Range(0, 1)]
    count: Annotated[int, Range(1)]

    def check_fields(self) -> None:
        """An example of two fields that must agree."""
        if self.share > self.count / 10:
            raise MismatchError("too large for the count", at="share")


@dataclass(frozen=True)
class Outer:
    """A field of every type."""

    name: str
    flag: bool
    size: Literal["small", "large"]
    colour: Colour
    parts: tuple[Inner, ...]
    scores: Mapping[int, float]
    limit: float | None
    rows: tuple[tuple[int, ...], ...]


GOOD = Outer("é", True, "small", Colour.RED, (Inner(0.1, 1), Inner(0.5, 7)), {2: 1.5, 10: -0.25}, None, ((1, 2), ()))


def test_a_record_comes_back_through_json() -> None:
    assert decode(Outer, json.loads(json.dumps(encode(GOOD)))) == GOOD


finite = st.floats(allow_nan=False, allow_infinity=False)
whole = st.integers(-(2**63) + 1, 2**63 - 1)


@given(
    st.builds(
        Outer,
        name=st.text(),
        flag=st.booleans(),
        size=st.sampled_from(["small", "large"]),
        colour=st.sampled_from(Colour),
        parts=st.lists(st.builds(Inner, share=st.floats(0, 1), count=st.integers(10, 2**63 - 1))).map(tuple),
        scores=st.dictionaries(st.integers(0, 10**18 - 1), finite),
        limit=st.none() | finite,
        rows=st.lists(st.lists(whole).map(tuple)).map(tuple),
    )
)
def test_any_record_comes_back_through_json(record: Outer) -> None:
    assert decode(Outer, strict_json(json.dumps(encode(record)))) == record


def test_the_payload_has_the_fields_as_keys() -> None:
    assert encode(GOOD) == {
        "name": "é",
        "flag": True,
        "size": "small",
        "colour": "dark red",
        "parts": [{"share": 0.1, "count": 1}, {"share": 0.5, "count": 7}],
        "scores": {"2": 1.5, "10": -0.25},
        "limit": None,
        "rows": [[1, 2], []],
    }


FIELDS = "colour, flag, limit, name, parts, rows, scores, size"
WRONG: list[tuple[dict[str, Any], str]] = [
    ({"name": 1}, "name: found 1, expected text"),
    ({"name": None}, "name: found None, expected text"),
    ({"flag": 1}, "flag: found 1, expected true or false"),
    ({"size": "medium"}, "size: found 'medium', expected one of small, large"),
    ({"size": ["small"]}, "size: found ['small'], expected one of small, large"),
    ({"colour": "RED"}, "colour: found 'RED', expected one of dark red, blue"),
    ({"parts": {}}, "parts: found {}, expected a list"),
    ({"parts": [[]]}, "parts[0]: found [], expected an object"),
    ({"parts": [{"share": 0.1}]}, "parts[0]: missing field 'count', expected count, share"),
    ({"parts": [{"share": 0.1, "count": 1.0}]}, "parts[0].count: found 1.0, expected a whole number from 1"),
    ({"parts": [{"share": 0.1, "count": True}]}, "parts[0].count: found True, expected a whole number from 1"),
    ({"parts": [{"share": 0.1, "count": 0}]}, "parts[0].count: found 0, expected a whole number from 1"),
    (
        {"parts": [{"share": 0.1, "count": 2**63}]},
        "parts[0].count: found 9223372036854775808, expected a whole number from 1",
    ),
    ({"parts": [{"share": 1.5, "count": 9}]}, "parts[0].share: found 1.5, expected a number from 0 to 1"),
    ({"parts": [{"share": "x", "count": 9}]}, "parts[0].share: found 'x', expected a number from 0 to 1"),
    ({"parts": [{"share": 0.1, "count": 9}, {"share": 0.9, "count": 1}]}, "parts[1].share: too large for the count"),
    ({"scores": []}, "scores: found [], expected an object"),
    ({"scores": {"02": 1}}, "scores: found the key '02', expected whole numbers"),
    ({"scores": {"2": None}}, "scores[2]: found None, expected a number"),
    ({"limit": math.nan}, "limit: found nan, expected a number"),
    ({"limit": math.inf}, "limit: found inf, expected a finite number"),
    ({"limit": 10**30}, "limit: found 1000000000000000000000000000000, expected a number"),
    ({"rows": [[1], [1, "x"]]}, "rows[1][1]: found 'x', expected a whole number"),
    ({"more": 1}, f"unknown field 'more', expected {FIELDS}"),
]


@pytest.mark.parametrize(("change", "message"), WRONG)
def test_what_does_not_fit_is_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(MismatchError) as caught:
        decode(Outer, encode(GOOD) | change)
    assert str(caught.value) == message


@dataclass(frozen=True)
class Odd:
    """A record with a field that JSON does not have."""

    value: complex


def test_a_type_that_no_record_can_have() -> None:
    with pytest.raises(TypeError, match=r"^<class 'complex'> cannot be a field of a record$"):
        decode(Odd, {"value": 1})
