"""Clipping: how an estimate that can be below 0 or above 1 becomes relevance.   estimate -> relevance"""

from __future__ import annotations

from typing import Literal, get_args

from clickmix.errors import SettingError
from clickmix.registry import Option

Clip = Literal["one", "twenty"]
CLIPS: tuple[Clip, ...] = get_args(Clip)
LARGEST: dict[Clip, int] = {"one": 1, "twenty": 20}
CLIP = Option(
    "clip", "How estimates become relevance: clipped to 1, or clipped to 20 and divided by 20.", choices=CLIPS
)


def checked_clip(clip: Clip) -> Clip:
    """`clip`, if it is one of the choices.

    one      relevance = min(max(estimate, 0), 1): a probability
    twenty   relevance = min(max(estimate, 0), 20) / 20: the labels of the paper's authors, scaled to 0 to 1. It is not
             a probability. Estimates above 1 stay distinct; a document that is surely relevant gets .05.
    """
    if clip not in CLIPS:
        raise SettingError(f"clip {clip!r}: expected one of {', '.join(CLIPS)}.")
    return clip


def relevance_sql(clip: Clip) -> str:
    """The SQL of relevance from a column `estimate`.

    >>> relevance_sql("twenty")
    'least(greatest(estimate, 0.0), 20.0) / 20.0'
    """
    largest = float(LARGEST[clip])
    clipped = f"least(greatest(estimate, 0.0), {largest})"
    return clipped if clip == "one" else f"{clipped} / {largest}"


def clip_title(name: str, clip: Clip) -> str:
    """A correction's name as tables show it.

    >>> clip_title("affine", "twenty")
    'affine, clipped to 20'
    """
    return f"{name}, clipped to {LARGEST[clip]}"
