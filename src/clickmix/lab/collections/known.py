"""Published collections: their sizes, and how a loaded one differs from them.   sizes -> notes"""

from __future__ import annotations

import re
from dataclasses import dataclass

from clickmix.features.split import Split

Sizes = dict[str, tuple[int, int]]  # queries and documents of train, vali, test


@dataclass(frozen=True)
class Known:
    """A published collection. A sparse one leaves out zeros, so it may never name its last features."""

    name: str
    pattern: str  # of its path, in lower case
    features: int
    queries: int
    documents: int
    parts: Sizes  # of fold 1, or of a collection without folds, if they are published
    sparse: bool = False


KNOWN = (
    Known("MSLR-WEB30K", r"web-?30k", 136, 31_531, 3_771_125,
          {"train": (18_919, 2_270_296), "vali": (6_306, 747_218), "test": (6_306, 753_611)}),
    Known("MSLR-WEB10K", r"web-?10k", 136, 10_000, 1_200_192,
          {"train": (6_000, 723_412), "vali": (2_000, 235_259), "test": (2_000, 241_521)}),
    Known("Yahoo! set 1", r"/set1$", 700, 29_921, 709_877,
          {"train": (19_944, 473_134), "vali": (2_994, 71_083), "test": (6_983, 165_660)}, sparse=True),
    Known("Yahoo! set 2", r"/set2$", 700, 6_330, 172_870,
          {"train": (1_266, 34_815), "vali": (1_266, 34_881), "test": (3_798, 103_174)}, sparse=True),
    Known("Istella-S", r"istella-?s|istella.*/sample", 220, 33_018, 3_408_630,
          {"train": (19_245, 2_043_304), "vali": (7_211, 684_076), "test": (6_562, 681_250)}),
    Known("Istella", r"istella", 220, 33_018, 10_454_629,
          {"train": (23_219, 7_325_625), "test": (9_799, 3_129_004)}),
    Known("MQ2007", r"mq2007", 46, 1_692, 69_623, {}),
    Known("MQ2008", r"mq2008", 46, 784, 15_211, {}),
)  # fmt: skip


def recognise(path: str, splits: dict[str, Split]) -> Known | None:
    """The published collection that `path` names, or that has exactly this size."""
    named = [known for known in KNOWN if re.search(known.pattern, path.lower())]
    sized = [known for known in KNOWN if (known.queries, known.documents) == _totals(splits)]
    return next(iter([*named, *sized]), None)


def differences(known: Known, splits: dict[str, Split], *, fold: int | None) -> tuple[str, ...]:
    """One sentence for each size that differs from the published one."""
    notes = []
    width = max(split.features.shape[1] for split in splits.values())
    if width > known.features or (width < known.features and not known.sparse):
        notes.append(f"{known.name}: {known.features} features as published; found {width}.")
    published = known.parts if fold in (None, 1) else {}
    found: Sizes = {name: (split.queries, split.documents) for name, split in splits.items()}
    notes += [
        _difference(f"{known.name}, {name}", published[name], size)
        for name, size in found.items()
        if published.get(name, size) != size
    ]
    if _totals(splits) != (known.queries, known.documents):
        notes.append(_difference(f"{known.name}, all", (known.queries, known.documents), _totals(splits)))
    return tuple(notes)


def _totals(splits: dict[str, Split]) -> tuple[int, int]:
    return sum(split.queries for split in splits.values()), sum(split.documents for split in splits.values())


def _difference(what: str, published: tuple[int, int], found: tuple[int, int]) -> str:
    return (
        f"{what}: {published[0]:,} queries and {published[1]:,} documents as published; "
        f"found {found[0]:,} and {found[1]:,}. Is a file incomplete?"
    )
