"""Types that every stage shares."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:  # late: an engine can read a log before numpy is loaded
    import numpy as np

Floats: TypeAlias = "np.ndarray[Any, Any]"
Ints: TypeAlias = "np.ndarray[Any, Any]"
Columns: TypeAlias = "dict[str, np.ndarray[Any, Any]]"
# Called with the share of the work done so far, from 0 to 1.
Progress: TypeAlias = Callable[[float], None]
