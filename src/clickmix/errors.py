"""Errors: the closed list of what a user can do wrong.

Every message says what is wrong, where, what was found, and what to do next. Code that reacts to an error looks at its
type and attributes, never at the words of its message.
"""

from __future__ import annotations

import importlib
import re
from functools import partial
from typing import Any
from urllib.parse import unquote

NOTHING_WRITTEN = "Nothing was written."
HIDDEN = "***"
# An address: //user:password@, even with a slash missing. A password can contain anything, so it ends at the last @.
_IN_ADDRESS = re.compile(
    r"(?P<before>(?://|\w:/|(?:postgres|sql)[\w+.-]*(?::/?|/))[^\s/:@?#]*:)(?P<secret>\S*|(?:(?!://)[^'\"\n])*?)(?=@)",
    re.I,
)
# What is left of an address without its beginning: user:password@host:port or user:password@host/database.
_WITHOUT_BEGINNING = re.compile(r"(?P<before>(?<![\w/@:])[\w.+-]+:)(?P<secret>[^\s:@/]+)(?=@[\w.-]+(?::\d|/\w))")
# A setting: password=..., quoted or not, up to a blank or to the next setting of an address, which may be a signed one.
_IN_SETTING = re.compile(
    r"(?P<before>(?:(?:password|passwd|pwd|secret|token|signature|credential|(?:api|access|account)_?key)\w*|[?&;]sig)"
    r"\s*=\s*)"
    r"(?P<secret>(?P<quote>\\*['\"]).*?(?P=quote)|(?:\\+.|[^\s&\\]|&(?![\w-]+=))*[^\s&'\".,;:)])",
    re.I,
)
_SECRETS = (_IN_ADDRESS, _WITHOUT_BEGINNING, _IN_SETTING)
_QUOTED = re.compile(r"(?P<quote>['\"])(?P<text>.+?)(?P=quote)")


def hide_secrets(text: str, *, address: str = "") -> str:
    """A text with *** for every password in an address or a setting, and for quoted parts of the password of `address`.

    >>> hide_secrets("postgresql://ann:open sesame@host/clicks and host=h password=x user=ann")
    'postgresql://ann:***@host/clicks and host=h password=*** user=ann'
    """
    for known in {address, unquote(address)}:
        text = _QUOTED.sub(partial(_unless_secret, known), text)
    for pattern in _SECRETS:
        text = pattern.sub(rf"\g<before>{HIDDEN}", text)
    return text


def _unless_secret(address: str, quoted: re.Match[str]) -> str:
    """A quoted text, hidden if it occurs in the address and overlaps a secret there."""
    secrets = [match.span("secret") for pattern in _SECRETS for match in pattern.finditer(address)]
    parts = [match.span() for match in re.finditer(re.escape(quoted["text"]), address)]
    touches = any(start < end_of_part and part < end for start, end in secrets for part, end_of_part in parts)
    return f"{quoted['quote']}{HIDDEN}{quoted['quote']}" if touches else quoted[0]


class ClickmixError(Exception):
    """Anything a user can fix; the command prints it without a stack trace and exits with 2.

    `nothing_written` adds a note to the message. A command that already wrote something uses `message`, without that
    note, and says what it wrote.

    >>> try:
    ...     raise ClickmixError("clicks.csv: the file is empty.")
    ... except ClickmixError as error:
    ...     print(error)
    clicks.csv: the file is empty.
    """

    def __init__(self, message: str = "", *, nothing_written: bool = False) -> None:
        self.message = hide_secrets(message)
        self.nothing_written = nothing_written
        super().__init__(f"{self.message} {NOTHING_WRITTEN}" if nothing_written else self.message)


class InputError(ClickmixError):
    """A log, a collection or a features file that cannot be read as what it should be.

    >>> import clickmix as cm
    >>> cm.debias("nowhere.csv")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    clickmix.errors.InputError: nowhere.csv: no such file. Check the path; ...
    """


class MissingColumnError(InputError):
    """A column that a log should have: its name, its `role`, the `problem` with it; the message adds some advice."""

    def __init__(self, problem: str = "", advice: str = "", *, role: str = "", column: str = "") -> None:
        super().__init__(f"{problem} {advice}".rstrip())
        self.problem = hide_secrets(problem)
        self.role = role
        self.column = column


class FormatError(ClickmixError):
    """A file written by clickmix that is damaged, of another kind or of another version.

    >>> import clickmix as cm
    >>> cm.MixtureFit.read("damaged.json")  # doctest: +SKIP
    """


class SettingError(ClickmixError, ValueError):
    """An argument with a value that it cannot have.

    >>> import clickmix as cm
    >>> cm.MixtureCorrection(prior="steep")
    Traceback (most recent call last):
    clickmix.errors.SettingError: prior 'steep': expected one of position, flat.
    """


class EngineError(ClickmixError):
    """An engine that cannot be reached, refuses, or fails while it works.

    >>> import clickmix as cm
    >>> cm.debias("clicks", engine="postgresql://nowhere/shop")  # doctest: +SKIP
    """


def check_whole(name: str, value: object, *, least: int) -> None:
    """Refuse a setting that is not a whole number, or is too small."""
    if type(value) is not int or value < least:
        raise SettingError(f"{name}={value!r}: expected a whole number from {least}.")


def optional_module(name: str, *, use: str, extra: str) -> Any:
    """A module that not every installation has, or an error that says how to install it."""
    try:
        return importlib.import_module(name)
    except ImportError:
        raise InputError(f"{use}, which is not installed. Install it with: pip install 'clickmix[{extra}]'") from None


def printable(text: str) -> str:
    r"""A text with its control characters escaped, so that a log cannot paint the user's screen.

    >>> print(printable("a\x1b[31mb"))
    a\x1b[31mb
    """
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def several(count: int, noun: str, plural: str = "") -> str:
    """Write a count with its noun.

    >>> several(1, "query", "queries"), several(2, "label")
    ('1 query', '2 labels')
    """
    return f"{count:,} {noun if count == 1 else plural or noun + 's'}"
