"""Words for people: what they probably meant, lists, and how many there are."""

from __future__ import annotations

from collections.abc import Iterable


def nearest(word: str, known: Iterable[str]) -> str | None:
    """Return the known word that was probably meant."""
    import difflib  # most documents have no mistake

    by_lower = {each.lower(): each for each in known}
    close = difflib.get_close_matches(word.lower(), by_lower, n=1, cutoff=0.7)
    return by_lower[close[0]] if close else None


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return ` (did you mean 'x'?)`, or nothing."""
    close = nearest(word, known)
    return f" (did you mean '{close}'?)" if close else ""


def listed(words: Iterable[object]) -> str:
    """Write a list of words for a sentence."""
    return ", ".join(str(word) for word in words)


def counted(number: int, noun: str) -> str:
    """Write how many there are of something: `1 error`, `2 errors`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
