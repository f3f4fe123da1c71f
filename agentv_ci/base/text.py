"""Text: made safe, shortened, and put into sentences."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence

ANSI = re.compile(r"\x1b(?:\[[0-9;?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])")
"""Escape sequences of terminals: colors, cursor, titles, links."""

_COMMAND = re.compile(r"^([^\S\n]*)::", re.MULTILINE)

FENCE = re.compile(r"\A\s*```[^\n`]*\n(?P<inside>.*?)\n?```\s*\Z", re.DOTALL)
"""A text that consists of one code block."""


MAX_NAMED = 5
SMALL_USD = 0.001
"""Smaller amounts are shown with two digits."""

OPPOSITES = (("min", "max"), ("sub", "super"), ("insensitive", "sensitive"))


def nearest(word: str, known: Iterable[str]) -> str | None:
    """Return the known word nearest to a misspelled one, never its opposite."""
    import difflib  # most documents have no mistake

    lower = word.lower()
    by_lower: dict[str, str] = {}
    for candidate in known:
        if not _are_opposites(lower, candidate.lower()):
            by_lower[candidate.lower()] = candidate
    for close in difflib.get_close_matches(lower, by_lower, n=1, cutoff=0.7):
        return by_lower[close]
    # In a short word, two swapped letters are most of it.
    for swapped, candidate in by_lower.items():
        if sorted(swapped) == sorted(lower):
            return candidate
    return None


def _are_opposites(one: str, other: str) -> bool:
    for first, second in OPPOSITES:
        if first in one and first not in other and second in other:
            return True
        if first in other and first not in one and second in one:
            return True
    return False


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return ` (did you mean 'x'?)`, or an empty text."""
    close = nearest(word, known)
    return f" (did you mean '{close}'?)" if close else ""


def listed(words: Iterable[object]) -> str:
    """Return words separated by commas."""
    return ", ".join(map(str, words))


def quoted(names: Iterable[object]) -> str:
    """Return names in quotes, separated by commas."""
    return listed(f"'{name}'" for name in names)


def counted(number: int, noun: str, plural: str | None = None) -> str:
    """Return a number with its noun: `1 error`, `2 errors`."""
    if number == 1:
        return f"{number} {noun}"
    return f"{number} {plural or f'{noun}s'}"


def dollars(amount: float) -> str:
    """Return an amount in dollars.

    It has more than four decimal places if it is too small for them.
    """
    if amount == 0:
        return "$0"
    decimals = 4
    if abs(amount) < SMALL_USD:
        decimals = max(decimals, 1 - math.floor(math.log10(abs(amount))))
    return f"${amount:.{decimals}f}"


def unfenced(text: str) -> str:
    """Return the content of a text that is one code block; other texts unchanged."""
    fenced = FENCE.match(text)
    if fenced is None:
        return text
    return fenced["inside"]


def printable(text: str) -> str:
    """Return a text that cannot command a terminal.

    It has no escape sequences, and no control or direction characters. Line breaks and tabs stay.
    """
    if _is_printable(text):
        return text
    plain = ANSI.sub("", text)
    if _is_printable(plain):
        return plain
    return "".join(c if c.isprintable() or c in "\n\t" else "\ufffd" for c in plain)


def _is_printable(text: str) -> bool:
    return text.replace("\n", "").replace("\t", "").isprintable()


def on_one_line(text: str) -> str:
    """Return a printable text with all whitespace reduced to single spaces."""
    return " ".join(printable(text).split())


def without_commands(text: str) -> str:
    """Return a printable text without commands to the runner of GitHub Actions.

    The runner reads `##[` anywhere, and `::` at the start of a line.
    """
    return _COMMAND.sub(r"\1: :", printable(text).replace("##[", "## ["))


def shortened(text: str, limit: int) -> str:
    """Return a text of at most `limit` characters.

    These are its start and more of its end, where errors usually are.
    """
    if len(text) <= limit:
        return text
    head = limit * 2 // 5
    return f"{text[:head]} … {text[len(text) - (limit - head - 3) :]}"


def well_formed_text(text: str) -> str:
    """Return a text with U+FFFD in place of lone surrogates."""
    if text.isascii():
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def last_line(text: str) -> str:
    """Return the last line that is not blank; empty without one."""
    lines = text.rstrip().splitlines()
    return lines[-1].strip() if lines else ""


def first_few(names: Sequence[str]) -> str:
    """Return the first few names, and the number of the others."""
    shown = ", ".join(names[:MAX_NAMED])
    if len(names) <= MAX_NAMED:
        return shown
    return f"{shown} and {len(names) - MAX_NAMED} more"
