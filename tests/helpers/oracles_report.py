"""Slow and obvious versions of what a report computes, and pages taken apart."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from html.parser import HTMLParser
from typing import Any
from xml.etree import ElementTree

import numpy as np
from scipy.stats import binom

INLINE = ("a", "code")  # what stands within a sentence
NAMESPACE = "{http://www.w3.org/2000/svg}"


def expected_slowly(
    weights: Sequence[float], rates: Sequence[float], impressions: Sequence[int], edges: Sequence[float]
) -> list[list[float]]:
    """Component x bin, document by document and click by click; what is above the last edge is in the last bin."""
    expected = [[0.0] * (len(edges) - 1) for _ in weights]
    for k, (weight, rate) in enumerate(zip(weights, rates, strict=True)):
        for n in impressions:
            for c in range(n + 1):
                expected[k][bin_of(c / n, edges)] += weight * float(binom.pmf(c, n, rate))
    return expected


def bin_of(value: float, edges: Sequence[float]) -> int:
    """The last bin whose lower edge is not above the value."""
    return max(i for i in range(len(edges) - 1) if edges[i] <= value + 1e-12)


def gains_slowly(cells: Sequence[tuple[Any, ...]], labels: Mapping[tuple[Any, Any], float]) -> dict[Any, float]:
    """By query, how much DCG@10 sorting by label gains over the lists as shown.

    `cells` are (query, document, position, impressions).
    """
    gains = {}
    for query in {cell[0] for cell in cells}:
        mine = [cell for cell in cells if cell[0] == query]
        documents = {document for _, document, _, _ in mine}
        at = [sum(n for _, _, p, n in mine if p == position) for position in {p for _, _, p, _ in mine}]
        of = [sum(n for _, d, _, n in mine if d == document) for document in documents]
        shown = sum(n * labels[query, d] / math.log2(p + 1) for _, d, p, n in mine if p <= 10) / max(*at, *of)
        best = sorted((labels[query, document] for document in documents), reverse=True)[:10]
        gains[query] = sum(label / math.log2(k + 2) for k, label in enumerate(best)) - shown
    return gains


class Tags(HTMLParser):
    """The tags of a page, with the names of their attributes, in order."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, tuple[str, ...]]] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, tuple(name for name, _ in attrs)))
        self.text += "" if tag in INLINE else " "

    def handle_endtag(self, tag: str) -> None:
        self.found.append((f"/{tag}", ()))
        self.text += "" if tag in INLINE else " "

    def handle_data(self, data: str) -> None:
        self.text += data


def tags(html: str) -> list[tuple[str, tuple[str, ...]]]:
    parser = Tags()
    parser.feed(html)
    return parser.found


def text(html: str) -> str:
    """What a reader sees, in one line."""
    parser = Tags()
    parser.feed(re.sub(r"<script.*?</script>", "", html.split("</style>")[1], flags=re.DOTALL))
    return " ".join(parser.text.split())


def svg(source: str) -> ElementTree.Element:
    return ElementTree.fromstring(source)


def elements(source: str, tag: str, kind: str) -> list[ElementTree.Element]:
    """The elements of an SVG with this tag and class."""
    return [e for e in svg(source).iter(f"{NAMESPACE}{tag}") if kind in e.get("class", "").split()]


def colours(style: str) -> list[dict[str, tuple[int, ...]]]:
    """The colours of a style sheet: light, then dark."""
    blocks = re.findall(r":root \{(.*?)\}", style, flags=re.DOTALL)
    return [
        {name: tuple(bytes.fromhex(value)) for name, value in re.findall(r"--(\w+): #(\w{6});", block)}
        for block in blocks
    ]


def linear(colour: Sequence[int]) -> np.ndarray[Any, Any]:
    """sRGB as amounts of light."""
    share = np.array(colour) / 255
    return np.where(share <= 0.04045, share / 12.92, ((share + 0.055) / 1.055) ** 2.4)


def contrast(one: Sequence[int], other: Sequence[int]) -> float:
    """The contrast ratio of WCAG: 1 for equal colours, 21 for black on white."""
    low, high = sorted(float(linear(c) @ [0.2126, 0.7152, 0.0722]) for c in (one, other))
    return (high + 0.05) / (low + 0.05)


# Machado, Oliveira and Fernandes 2009: how amounts of light look to those who lack a kind of cone.
BLINDNESS = {
    "protanopia": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "deuteranopia": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
    "tritanopia": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]],
}


def difference(one: Sequence[int], other: Sequence[int], blindness: str) -> float:
    """CIE 1976 colour difference, as seen with a colour blindness; 2.3 is just noticeable."""
    a, b = (_lab(np.clip(np.array(BLINDNESS[blindness]) @ linear(c), 0, 1)) for c in (one, other))
    return float(np.linalg.norm(a - b))


def _lab(light: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    to_xyz = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
    x, y, z = np.cbrt(to_xyz @ light / [0.9505, 1.0, 1.089])
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])
