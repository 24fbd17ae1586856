"""Types that every stage shares."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:  # loaded when the first result is fetched: engines can read before
    import numpy as np

Floats: TypeAlias = "np.ndarray[Any, Any]"
Ints: TypeAlias = "np.ndarray[Any, Any]"
Columns: TypeAlias = "dict[str, np.ndarray[Any, Any]]"
# Called with the share of the work that is done, from 0 to 1.
Progress: TypeAlias = Callable[[float], None]
