"""Regular expressions of authors, with a time limit; a door to the package `regex`."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from regex import Pattern

TIMEOUT_S = 2.0

_PARTS = r"""
      \\[pPNLgxu]\{[^}]*\} | \\.       # escapes, those with braces of their own first
    | (?P<set>\[\^?\]?(?:\\.|[^\]\\])*\])
    | \{[0-9]*,?[0-9]*\}                # quantifiers
    | \(\?\#[^)]*\)                    # remarks
    | (?P<brace>\{)
"""
_TOKEN = re.compile(f"{_PARTS} | .", re.DOTALL | re.VERBOSE)
_VERBOSE_TOKEN = re.compile(rf"{_PARTS} | (?P<remark>\#(?:\\.|[^\n])*) | .", re.DOTALL | re.VERBOSE)
_IS_VERBOSE = re.compile(r"\(\?[aiLmsu]*x")
_IN_A_SET = re.compile(r"\\.|(?<!^)\[", re.DOTALL)


class InvalidPattern(ValueError):
    """A text that is not a regular expression."""


@lru_cache(maxsize=1024)
def compiled(pattern: str, *, ignore_case: bool = False) -> Pattern[str]:
    """Return a pattern in Python's syntax; raises InvalidPattern."""
    import regex

    flags = regex.IGNORECASE if ignore_case else 0
    try:
        return regex.compile(_as_python_reads_it(pattern), flags)
    except (regex.error, RecursionError) as error:
        raise InvalidPattern(str(error)) from error


def occurs(pattern: Pattern[str], text: str) -> bool:
    """Whether a pattern matches somewhere in a text; raises TimeoutError after TIMEOUT_S."""
    return pattern.search(text, timeout=TIMEOUT_S) is not None


def _as_python_reads_it(pattern: str) -> str:
    """Return a pattern whose braces and sets `regex` reads like Python.

    In `regex`, `{e<=2}` allows errors in the item before it, and `[:alpha:]` in a set is a class;
    in Python both are literal.
    """
    token = _VERBOSE_TOKEN if _IS_VERBOSE.match(pattern) else _TOKEN
    return token.sub(_translated, pattern)


def _translated(token: re.Match[str]) -> str:
    if token["brace"]:
        return "\\{"
    if token["set"]:
        return _IN_A_SET.sub(_literal, token[0])
    if token.groupdict().get("remark"):
        return ""
    return token[0]


def _literal(inner: re.Match[str]) -> str:
    return "\\[" if inner[0] == "[" else inner[0]
