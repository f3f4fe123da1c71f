"""Check that runs with the same seed have the same output."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Any

from agentv_ci.base.json_access import MAX_DEPTH
from agentv_ci.base.text import listed
from agentv_ci.contracts.base import JsonObject, Name
from agentv_ci.validators.builtin import AtLeastZero, BuiltInSettings
from agentv_ci.validators.runs import (
    Run,
    excerpt,
    findings,
    found_at,
    is_seed,
    is_success,
    issue,
    known_label,
    name_of,
    numbered_runs,
    settings_in,
    successful,
)

Numbered = tuple[int, Run]
Found = tuple[object, ...]
"""A tuple with the value at a path, or an empty one."""


class Settings(BuiltInSettings):
    """How outputs are compared."""

    tolerance: AtLeastZero = 0.0
    fields: list[Name] | None = None


def validate(report: dict[str, Any], context: dict[str, Any] | None = None) -> dict[str, Any]:
    """Compare the outputs of successful runs of the same runner, seed and case with the first one.

    1 equals 1.0, true does not equal 1, and NaN equals NaN; values that JSON cannot hold and values
    nested too deeply equal only themselves. Runs whose seed is not an integer are not compared.

    Settings: `tolerance`, the largest difference of equal numbers (0.0); `fields`, dot paths into
    the output. A field that is missing in both outputs is equal. By default the common top-level
    keys are compared, or the whole outputs when there are none. Settings of an invalid form are
    ignored.

    In the summary, `groups` counts the groups of runs with a seed, and `inconsistencies` the fields
    that differ.
    """
    tolerance = Settings.lenient(context).tolerance
    fields = _fields(settings_in(context).get("fields"))
    runs = numbered_runs(report)
    groups = _groups(runs)
    issues = [*_not_compared(runs)]
    pairs = inconsistencies = 0
    for named, group in groups.items():
        successes = successful(group)
        if len(successes) > 1:
            mismatches = [*_mismatches(successes, fields, tolerance)]
            issues += mismatches or [_sameness(len(successes), *named)]
            pairs += len(successes) - 1
            inconsistencies += len(mismatches)
    return findings(
        issues,
        {
            "groups": len(groups),
            "checked_pairs": pairs,
            "inconsistencies": inconsistencies,
            "tolerance": tolerance,
            "fields": None if fields is None else [*fields],
        },
    )


def _fields(setting: object) -> tuple[str, ...] | None:
    if not isinstance(setting, list):
        return None
    return tuple(path for path in setting if isinstance(path, str)) or None


Named = tuple[str | None, int, str | None]
"""Runner, seed and case of a group; None: its runs have none, which is not the one called
`unknown`.
"""


def _groups(runs: Sequence[Numbered]) -> dict[Named, list[Numbered]]:
    """Return runs with a seed by runner, seed and case."""
    groups: dict[Named, list[Numbered]] = {}
    for index, run in runs:
        seed = run.get("seed")
        if is_seed(seed):
            named = (known_label(run.get("runner_key")), int(seed), known_label(run.get("case_id")))
            groups.setdefault(named, []).append((index, run))
    return groups


def _not_compared(runs: Sequence[Numbered]) -> Iterator[JsonObject]:
    for index, run in runs:
        if not is_seed(run.get("seed")):
            message = f"{name_of(index, run)} is not compared: its seed is missing"
            yield issue("missing_seed", "warning", message, "runs", index, "seed")
        elif not is_success(run):
            message = (
                f"{name_of(index, run)} is not compared: its status is {excerpt(run.get('status'))}"
            )
            yield issue("non_success_skipped", "info", message, "runs", index, "status")


def _sameness(runs: int, runner: str | None, seed: int, case: str | None) -> JsonObject:
    named = {"runner": runner, "seed": seed, "case": case}
    which = listed(f"{what} {excerpt(name)}" for what, name in named.items() if name is not None)
    return issue("determinism_ok", "info", f"{runs} runs have the same output: {which}")


def _mismatches(
    group: Sequence[Numbered], fields: Sequence[str] | None, tolerance: float
) -> Iterator[JsonObject]:
    (baseline, first), *others = group
    for index, run in others:
        for steps, here, there in _compared(first.get("output"), run.get("output"), fields):
            if _is_same(here, there, tolerance):
                continue
            message = f"{name_of(index, run)} differs from run {baseline}"
            if steps:
                message = f"{message} at '{'.'.join(steps)}'"
            message = f"{message}: {_excerpt(there)}, not {_excerpt(here)}"
            yield issue("determinism_mismatch", "error", message, "runs", index, "output", *steps)


def _compared(
    one: object, other: object, fields: Sequence[str] | None
) -> list[tuple[tuple[str, ...], Found, Found]]:
    """Return the places where two outputs are compared, with the value of each."""
    if fields is not None:
        return [
            (tuple(path.split(".")), found_at(one, path), found_at(other, path)) for path in fields
        ]
    if isinstance(one, dict) and isinstance(other, dict):
        common = [key for key in one if isinstance(key, str) and key in other]
        if common:
            return [((key,), (one[key],), (other[key],)) for key in common]
    return [((), (one,), (other,))]


def _is_same(one: object, other: object, tolerance: float, levels: int = MAX_DEPTH) -> bool:
    if one is other:
        return True
    if levels < 0:
        return False
    match one, other:
        case (bool(), _) | (_, bool()):
            return False
        case int() | float(), int() | float():
            return one == other or _is_near(one, other, tolerance)
        case str(), str():
            return one == other
        case dict(), dict():
            return one.keys() == other.keys() and all(
                _is_same(value, other[key], tolerance, levels - 1) for key, value in one.items()
            )
        case list() | tuple(), list() | tuple():
            return len(one) == len(other) and all(
                _is_same(*pair, tolerance, levels - 1) for pair in zip(one, other, strict=True)
            )
        case _:
            return False


def _is_near(one: float, other: float, tolerance: float) -> bool:
    """Whether two numbers that differ are within the tolerance."""
    if not (_is_finite(one) and _is_finite(other)):
        return one != one and other != other  # noqa: PLR0124  # both are NaN
    return tolerance > 0 and abs(_exact(one) - _exact(other)) <= _exact(tolerance)


def _is_finite(number: float) -> bool:
    return isinstance(number, int) or math.isfinite(number)


def _exact(number: float) -> Fraction:
    """Return the decimal value of a float's shortest form, so that 0.3 − 0.2 is exactly 0.1."""
    return Fraction(number) if isinstance(number, int) else Fraction(repr(float(number)))


def _excerpt(value: Found) -> str:
    return excerpt(value[0]) if value else "nothing"
