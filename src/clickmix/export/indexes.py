"""The index of judged documents, for targets that must name it."""

from __future__ import annotations

from clickmix.errors import SettingError
from clickmix.registry import Option

INDEX = Option("index", "Labels: the index of the documents, for rank-eval and rre.")


def needed_index(index: str | None, target: str) -> str:
    """The index, which must be given."""
    if not index:
        raise SettingError(
            f"{target} names the index of every document. Set it with --index, for instance --index products."
        )
    return index
