"""The closed list of what a user can do wrong.

Every message says what, where, what was found, and what to do next.
"""

from collections import deque

# What was put in its place, by files and engines: after a failure the command says so. The last ones: a process of
# somebody who writes for weeks must not remember everything.
written: deque[str] = deque(maxlen=20)
NOTHING_WRITTEN = "Nothing was written."


def what_was_written() -> str:
    """What stands although the command failed."""
    return f"Written before that: {', '.join(dict.fromkeys(written))}." if written else NOTHING_WRITTEN


class ClickmixError(Exception):
    """Anything a user can put right; the command prints it without a stack trace and exits with 2."""


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
