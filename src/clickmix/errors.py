"""The closed list of what a user can do wrong.

Every message says what, where, what was found, and what to do next.
"""

import re
from collections import deque
from functools import partial
from urllib.parse import unquote

# What was put in its place, by files and engines: after a failure the command says so. The last ones: a process of
# somebody who writes for weeks must not remember everything.
written: deque[str] = deque(maxlen=20)
NOTHING_WRITTEN = "Nothing was written."


def what_was_written() -> str:
    """What stands although the command failed."""
    return f"Written before that: {', '.join(dict.fromkeys(written))}." if written else NOTHING_WRITTEN


HIDDEN = "***"
# An address: //user:password@, also where a slash is missing. A password may hold anything, so it ends at the last @.
_IN_ADDRESS = re.compile(
    r"(?P<before>(?://|(?:postgres|sql)[\w+.-]*:/?)[^\s/:@?#]*:)(?P<secret>\S*|(?:(?!://)[^'\"\n])*?)(?=@)", re.I
)
# A setting: password=..., quoted or not, up to a blank or the next setting of an address.
_IN_SETTING = re.compile(
    r"(?P<before>(?:password|passwd|pwd|secret|token|api_?key)\w*\s*=\s*)"
    r"(?P<secret>(?P<quote>\\*['\"]).*?(?P=quote)|(?:\\+.|[^\s&\\]|&(?!\w+=))*[^\s&'\".,;:)])",
    re.I,
)
_SECRETS = (_IN_ADDRESS, _IN_SETTING)
_QUOTED = re.compile(r"(?P<quote>['\"])(?P<text>.+?)(?P=quote)")


def hide_secrets(text: str, *, address: str = "") -> str:
    """A text without what looks like a password, in an address or a setting; nor quotes of the `address`'s password.

    >>> hide_secrets("postgresql://ann:open sesame@host/clicks and host=h password=x user=ann")
    'postgresql://ann:***@host/clicks and host=h password=*** user=ann'
    """
    for known in {address, unquote(address)}:
        text = _QUOTED.sub(partial(_unless_secret, known), text)
    for pattern in _SECRETS:
        text = pattern.sub(rf"\g<before>{HIDDEN}", text)
    return text


def _unless_secret(address: str, quoted: re.Match[str]) -> str:
    """A quoted text as it is, or hidden where it is a part of the address that touches a secret in it."""
    secrets = [match.span("secret") for pattern in _SECRETS for match in pattern.finditer(address)]
    parts = [match.span() for match in re.finditer(re.escape(quoted["text"]), address)]
    touches = any(start < end_of_part and part < end for start, end in secrets for part, end_of_part in parts)
    return f"{quoted['quote']}{HIDDEN}{quoted['quote']}" if touches else quoted[0]


class ClickmixError(Exception):
    """Anything a user can put right; the command prints it without a stack trace and exits with 2."""

    def __init__(self, message: str = "") -> None:
        super().__init__(hide_secrets(message))


class InputError(ClickmixError):
    """A log, a collection or a features file that cannot be read as what it should be."""


class FormatError(ClickmixError):
    """A file written by clickmix that is damaged, of another kind or of another version."""


class SettingError(ClickmixError, ValueError):
    """An argument outside what it may be."""


class EngineError(ClickmixError):
    """An engine that cannot be reached, refuses, or went away in the middle of the work."""


def printable(text: str) -> str:
    r"""A text of a log as it can be shown: control characters escaped, so that it cannot paint the user's screen.

    >>> print(printable("a\x1b[31mb"))
    a\x1b[31mb
    """
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)
