"""Whether the cases of a change that did not pass are red or flaky on its base branch, too."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

from msgspec import Struct

from agentv_ci.analysis.outcomes import CaseOutcome
from agentv_ci.contracts.case_key import CaseKey, matching
from agentv_ci.contracts.ledger import CaseLine, Ledger

RUNS = 10
"""The newest runs of a case that count."""


class OnBase(Struct, frozen=True):
    """What a case does on the base branch."""

    state: Literal["red", "flaky", "green"]
    """`red`: it stopped passing; `flaky`: it passes now and then."""
    runs: int
    passed: int
    """Runs in which it passed."""
    since: str | None = None
    """The day since when it is red; None: in all runs that are known."""


class BaseBranch(Struct, frozen=True):
    """The base branch of a change, and what the cases of the change do there."""

    name: str
    cases: Mapping[CaseKey, OnBase]


def in_history(outcomes: Sequence[CaseOutcome], ledger: Ledger) -> dict[CaseKey, OnBase]:
    """Return what cases did in the newest runs of a ledger; those that it does not have are left out."""
    keys = [each.key for each in outcomes]
    match = matching(keys, {line.key for run in ledger.runs for line in run.cases})
    wanted = {match(key): key for key in keys}
    seen: dict[CaseKey, list[tuple[str, CaseLine]]] = {}
    for run in ledger.runs:
        for line in run.cases:
            if (key := wanted.get(match(line.key))) is not None:
                seen.setdefault(key, []).append((run.head.time, line))
    return {key: _of_lines(lines[-RUNS:]) for key, lines in seen.items()}


def _of_lines(lines: Sequence[tuple[str, CaseLine]]) -> OnBase:
    """Return the state of a case by its newest runs, the oldest first."""
    passes = [line.verdict == "pass" for _, line in lines]
    passed = sum(passes)
    if passed == len(passes):
        is_flaky = any(line.flaky for _, line in lines)
        return OnBase("flaky" if is_flaky else "green", len(passes), passed)
    # Red since a day, if it did not pass again after it.
    if all(passes[:passed]):
        return OnBase("red", len(passes), passed, lines[passed][0][:10] if passed else None)
    return OnBase("flaky", len(passes), passed)


def in_results(outcomes: Sequence[CaseOutcome], base: Iterable[CaseOutcome]) -> dict[CaseKey, OnBase]:
    """Return what cases did in one run of the base branch; those without a verdict there are left out."""
    known = [each for each in base if each.is_graded]
    match = matching([each.key for each in outcomes], [each.key for each in known])
    states = {match(each.key): _of_outcome(each) for each in known}
    return {each.key: states[match(each.key)] for each in outcomes if match(each.key) in states}


def _of_outcome(outcome: CaseOutcome) -> OnBase:
    passed = outcome.verdict == "pass"
    return OnBase("flaky" if outcome.flaky else "green" if passed else "red", 1, int(passed))
