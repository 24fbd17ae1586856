"""The families of the lab, without the imports of their members: the command's help loads them early."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clickmix.registry import Family

if TYPE_CHECKING:
    from clickmix.lab.users.user import User

USERS: Family[User] = Family("user", "clickmix.lab.users", first="pbm")
