"""Users from a text: a name of `USERS`, then options with their values.   pbm-eta2 -> user"""

from __future__ import annotations

import re
from typing import Any

from clickmix.errors import SettingError
from clickmix.lab.families import USERS
from clickmix.lab.users.user import User


def preset(text: str, *, positions: int | None = None) -> User:
    """The user of this name and options, for lists of its usual length or with that many `positions`.

    >>> preset("pbm-eta1").click_probabilities([[1.0, 0.0]]).round(4).tolist()
    [[0.98, 0.1625]]
    """
    name, options = _parsed(text)
    return USERS.make(name, **options, top=positions)


def preset_title(text: str) -> str:
    """The title of a column: the options if there are any, or the name.

    >>> preset_title("pbm-eta2"), preset_title("dcm")
    ('eta 2', 'DCM')
    """
    name, options = _parsed(text)
    return ", ".join(f"{option} {value:g}" for option, value in options.items()) or name.upper()


def _parsed(text: str) -> tuple[str, dict[str, Any]]:
    name, *words = text.split("-")
    types = {option.name: option.type for option in USERS[name].options}
    options = {}
    for word in words:
        found = re.fullmatch(r"([a-z_]+)([0-9.]+)", word)
        if found is None or found[1] not in types:
            raise SettingError(f"user {text!r}, {word!r}: expected an option of {name} with a number, such as eta1.")
        options[found[1]] = types[found[1]](found[2])
    return name, options
