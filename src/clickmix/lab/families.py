"""The families of the lab, without what their members need: the command knows them before it loads anything."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clickmix.registry import Family

if TYPE_CHECKING:
    from clickmix.lab.users.user import User

USERS: Family[User] = Family("user", "clickmix.lab.users", first="pbm")
