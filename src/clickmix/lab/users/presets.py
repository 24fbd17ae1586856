"""Presets: the paper's users by name.   name -> user"""

from __future__ import annotations

import numpy as np

from clickmix.errors import SettingError
from clickmix.lab.users.dcm import DependentClick
from clickmix.lab.users.pbm import PositionBased
from clickmix.lab.users.trust import Trust
from clickmix.lab.users.ubm import UserBrowsing
from clickmix.lab.users.user import User
from clickmix.types import Floats

# Learned by the paper's authors from the Yandex relevance prediction log, for lists of ten.
GOING_ON = (0.2978, 0.4449, 0.4540, 0.4548, 0.4352, 0.4129, 0.3888, 0.3442, 0.2560)
EXAMINATION = (  # a row for each position: after no click, then after a last click at position 1, 2, ...
    (0.9680,),
    (0.3495, 0.5321),
    (0.1770, 0.1915, 0.6651),
    (0.1023, 0.0913, 0.2719, 0.6290),
    (0.0652, 0.0514, 0.1507, 0.2849, 0.6204),
    (0.0424, 0.0299, 0.0862, 0.1584, 0.2787, 0.5749),
    (0.0293, 0.0185, 0.0536, 0.0941, 0.1635, 0.2640, 0.5426),
    (0.0218, 0.0127, 0.0361, 0.0628, 0.1059, 0.1643, 0.2710, 0.5404),
    (0.0171, 0.0093, 0.0257, 0.0437, 0.0734, 0.1171, 0.1784, 0.2877, 0.5724),
    (0.0154, 0.0083, 0.0214, 0.0352, 0.0568, 0.0878, 0.1310, 0.2098, 0.3267, 0.6514),
)
POSITIONS = {"pbm-eta1": 20, "pbm-eta2": 20, "dcm": 10, "ubm": 10}  # the paper's lists


def preset(name: str, *, positions: int | None = None) -> User:
    """The paper's user of this name: pbm-eta1, pbm-eta2, dcm or ubm.

    Lists are as long as the paper's (20 results for pbm, 10 for dcm and ubm) or have so many `positions`: dcm and ubm
    at most 10, pbm any number.

    >>> preset("pbm-eta1").click_probabilities([[1.0, 0.0]]).round(4).tolist()
    [[0.98, 0.1625]]
    """
    if name not in POSITIONS:
        raise SettingError(f"There is no user named {name!r}. Choose one of {', '.join(POSITIONS)}.")
    known = POSITIONS[name]
    positions = known if positions is None else positions
    trust = Trust.paper(positions)
    if name.startswith("pbm-eta"):
        return PositionBased.with_eta(float(name.removeprefix("pbm-eta")), positions=positions, trust=trust)
    if positions > known:
        raise SettingError(
            f"The user {name} is known down to position {known}, found lists of {positions}. Cut the lists to "
            f"{known} results, or fit a user to longer ones."
        )
    if name == "dcm":
        return DependentClick(going_on=np.array(GOING_ON[: positions - 1]), trust=trust)
    return UserBrowsing(examination=_square(EXAMINATION[:positions]), trust=trust)


def _square(rows: tuple[tuple[float, ...], ...]) -> Floats:
    """The rows of a triangle, NaN right of it."""
    square = np.full((len(rows), len(rows)), np.nan)
    square[np.tril_indices(len(rows))] = np.concatenate(rows)
    return square
