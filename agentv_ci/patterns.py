"""Regular expressions of authors, searched for a limited time; the door to the package `regex`."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from regex import Pattern

TIMEOUT_S = 2.0

_TOKEN = re.compile(
    r"""
      \\[pPNLgxu]\{[^}]*\} | \\.                         # escapes, those with braces of their own first
    | \[\^?\]?(?:\\.|\[:\w+:\]|[^\]\\])*\]               # sets of characters
    | \{[0-9]*,?[0-9]*\}                                 # how often
    | (?P<brace>\{)
    | .
    """,
    re.DOTALL | re.VERBOSE,
)


class NoPattern(ValueError):
    """A text that is no regular expression."""


@lru_cache(maxsize=1024)
def compiled(pattern: str, *, ignore_case: bool = False) -> Pattern[str]:
    """Return a pattern in Python's syntax; raises NoPattern."""
    import regex

    try:
        return regex.compile(_without_fuzziness(pattern), regex.IGNORECASE if ignore_case else 0)
    except (regex.error, RecursionError) as error:
        raise NoPattern(str(error)) from error


def occurs(pattern: Pattern[str], text: str) -> bool:
    """Whether a pattern matches somewhere in a text; raises TimeoutError after TIMEOUT_S."""
    return pattern.search(text, timeout=TIMEOUT_S) is not None


def _without_fuzziness(pattern: str) -> str:
    """Return a pattern in which braces mean what they do to Python.

    To `regex`, `{e<=2}` after an item allows errors in it; to everyone else it is text.
    """
    return _TOKEN.sub(lambda token: "\\{" if token["brace"] else token[0], pattern)
