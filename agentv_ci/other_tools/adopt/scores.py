"""Scores of other tools, from 0 to 1: a value with an unknown meaning is an error, not a score."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from agentv_ci.base.json_access import json_or_none
from agentv_ci.base.text import shortened
from agentv_ci.contracts.base import JsonValue
from agentv_ci.contracts.other_tools import AdoptedCheck, HowToRead, Scale
from agentv_ci.contracts.results import PRECISION
from agentv_ci.other_tools.adopt.values import text

SHARE = Scale(0.0, 1.0)
MAX_SHOWN = 40
NOISE = 1e-6
"""By how much rounding, also that of 32 bits, takes a score beyond its scale."""
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

    A score whose values leave 0 to 1 anywhere in the file has another scale, so that none of its
    values is read without one: 1 of 5 stars is not full marks.
    """

    def __init__(
        self, how: HowToRead, values: Iterable[Given], grades: Mapping[str, float] | None = None
    ) -> None:
        self._how = how
        self._grades = {**WORDS, **(grades or {}), **how.grades}
        self._beyond: dict[str, float] = {}
        """Name → a value that is not between 0 and 1, without a scale."""
        self._names = set[str]()
        for given in values:
            self._names.add(given.name)
            number = self._number(given)
            if number is not None and self._scale(given.name) is None and not _is_share(number):
                self._beyond.setdefault(given.name, number)

    @property
    def names(self) -> frozenset[str]:
        """The names of all scores so far."""
        return frozenset(self._names)

    def checks(self, values: Iterable[Given], kind: str) -> Iterator[AdoptedCheck]:
        """Yield the checks that values are the scores of, without ignored ones.

        Raises UnknownScore.
        """
        read = list(values)
        self._names.update(given.name for given in read)
        for given in read:
            if given.name not in self._how.ignored:
                score = self.score(given)
                yield AdoptedCheck(
                    given.name, kind, score, self.passes(given.value, score), given.reasoning
                )

    def passes(self, value: JsonValue, score: float) -> bool:
        """Return whether a value with this score passes.

        A verdict passes as it says, whatever the threshold.
        """
        if self._is_verdict(value):
            return score == 1
        return round(score, PRECISION) >= round(self._how.threshold, PRECISION)

    def score(self, given: Given) -> float:
        """Return a score; raises UnknownScore."""
        name, value = given.name, given.value
        self._names.add(name)
        scale, written = self._scale(name), shortened(text(value) or "null", MAX_SHOWN)
        if (grade := self._grade(value)) is not None:
            if (
                scale is not None
                and scale.worst > scale.best
                and written.strip() not in self._how.grades
            ):
                raise UnknownScore(
                    f"score '{name}' is {written}, but its scale is {scale}; {_worth(written)}"
                )
            return grade
        number = self._number(given)
        if number is None:
            grade_it = ""
            if not isinstance(value, list):
                grade_it = f"{_worth(written)}, or "
            raise UnknownScore(
                f"score '{name}' is {written}: {grade_it}leave the score out with --ignore '{name}'"
            )
        if scale is None and name in self._beyond:
            if number == self._beyond[name]:
                other = ""
            else:
                other = f", and {_shown(self._beyond[name])} elsewhere"
            raise UnknownScore(
                f"score '{name}' is {_shown(number)}{other}, which is not from 0 to 1; "
                f"{_advice(name)}"
            )
        worst, best = scale or SHARE
        share = round((number - worst) / (best - worst), PRECISION)
        if not _is_share(share):
            limits = f"its scale {scale}" if scale is not None else "0 to 1"
            raise UnknownScore(
                f"score '{name}' is {_shown(number)}, outside of {limits}; {_advice(name)}"
            )
        return min(max(share, 0.0), 1.0)

    def _is_verdict(self, value: JsonValue) -> bool:
        """Return whether a value is a verdict, unless the user says what score it stands for."""
        written = text(value).strip() if isinstance(value, (str, bool)) else ""
        return written.lower() in WORDS and written not in self._how.grades

    def _grade(self, value: JsonValue) -> float | None:
        if value is None or isinstance(value, bool):
            return self._how.grades.get(
                text(value) or "null", None if value is None else float(value)
            )
        if not isinstance(value, str):
            return None
        written = value.strip()
        known = self._grades.get(written)
        if known is not None:
            return known
        return WORDS.get(written.lower())

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
        if math.isfinite(number):
            return number
        return None

    def _scale(self, name: str) -> Scale | None:
        return self._how.scales.get(name) or self._how.scales.get("")


def _is_share(number: float) -> bool:
    return -NOISE <= number <= 1 + NOISE


def _shown(number: float) -> str:
    return repr(number).removesuffix(".0")


def _worth(written: str) -> str:
    return f"say what it is worth with --map '{written}=SCORE'"


def _advice(name: str) -> str:
    return (
        f"state its scale with --scale '{name}=WORST:BEST', or leave it out with --ignore '{name}'"
    )


def all_passed(checks: Sequence[AdoptedCheck], error: str | None) -> bool | None:
    """Return whether all checks of an answer passed; None if an error left it without a verdict."""
    if error:
        return None
    return all(check.passed for check in checks)


def mean_score(checks: Sequence[AdoptedCheck]) -> float | None:
    """Return the mean score of checks; None without checks."""
    if not checks:
        return None
    return sum(check.score for check in checks) / len(checks)
