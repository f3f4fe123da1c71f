"""Scores of other tools, from 0 to 1: a value with an unknown meaning is an error, not a score."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from agentv_ci.adopt.values import text
from agentv_ci.contracts.adopted import AdoptedCheck, HowToRead, Scale
from agentv_ci.contracts.base import JsonValue
from agentv_ci.json_access import json_or_none
from agentv_ci.text import shortened

SHARE = Scale(0.0, 1.0)
MAX_SHOWN = 40
WORDS: Mapping[str, float] = {
    **dict.fromkeys(("true", "yes", "pass", "passed", "ok", "success", "correct"), 1.0),
    **dict.fromkeys(("false", "no", "fail", "failed", "failure", "incorrect", "wrong"), 0.0),
}
"""Texts that mean the same everywhere."""


class UnknownScore(ValueError):
    """A value that is not a score: its sentence says what to do."""


class Given(NamedTuple):
    """A value in place of a score."""

    name: str
    """Of what it scores."""
    value: JsonValue
    reasoning: str = ""


class Scores:
    """Reads the scores of a file.

    A score whose values leave 0 to 1 anywhere in the file has another scale, so that none of its values is read without
    one: 1 of 5 stars is not full marks.
    """

    def __init__(self, how: HowToRead, values: Iterable[Given], grades: Mapping[str, float] | None = None) -> None:
        self._how = how
        self._grades = {**WORDS, **(grades or {}), **how.grades}
        self._beyond: dict[str, float] = {}
        """Name → a value that is not between 0 and 1, without a scale."""
        for given in values:
            number = self._number(given)
            if number is not None and self._scale(given.name) is None and not 0 <= number <= 1:
                self._beyond.setdefault(given.name, number)

    def checks(self, values: Iterable[Given], kind: str) -> Iterator[AdoptedCheck]:
        """Yield the checks that values are the scores of, without ignored ones; raises UnknownScore."""
        for given in values:
            if given.name not in self._how.ignored:
                score = self.score(given)
                yield AdoptedCheck(given.name, kind, score, score >= self._how.threshold, given.reasoning)

    def score(self, given: Given) -> float:
        """Return a score; raises UnknownScore."""
        name, value = given.name, given.value
        if isinstance(value, bool):
            return float(value)
        if (grade := self._grade(value)) is not None:
            return grade
        number = self._number(given)
        if number is None:
            written = shortened(text(value) or "null", MAX_SHOWN)
            grade_it = f"say what it is worth with --map '{written}=0', or " if not isinstance(value, list) else ""
            raise UnknownScore(f"score '{name}' is {written}: {grade_it}leave the score out with --ignore '{name}'")
        scale = self._scale(name)
        if scale is None and name in self._beyond:
            other = "" if number == self._beyond[name] else f", and {self._beyond[name]:g} elsewhere"
            raise UnknownScore(f"score '{name}' is {number:g}{other}, which is not from 0 to 1; {_advice(name)}")
        worst, best = scale or SHARE
        share = (number - worst) / (best - worst)
        if not 0 <= share <= 1:
            limits = f"its scale {scale}" if scale is not None else "0 to 1"
            raise UnknownScore(f"score '{name}' is {number:g}, outside of {limits}; {_advice(name)}")
        return share

    def _grade(self, value: JsonValue) -> float | None:
        if value is None:
            return self._how.grades.get("null")
        if not isinstance(value, str):
            return None
        written = value.strip()
        known = self._grades.get(written)
        return known if known is not None else WORDS.get(written.lower())

    def _number(self, given: Given) -> float | None:
        """Return a number, also one that is written as a text."""
        value = given.value
        if isinstance(value, str):
            value = json_or_none(value) if self._grade(value) is None else None
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            return None
        try:
            number = float(value)
        except OverflowError:
            return math.copysign(math.inf, value)
        return number if math.isfinite(number) else None

    def _scale(self, name: str) -> Scale | None:
        return self._how.scales.get(name) or self._how.scales.get("")


def _advice(name: str) -> str:
    return f"state its scale with --scale '{name}=WORST:BEST', or leave it out with --ignore '{name}'"
