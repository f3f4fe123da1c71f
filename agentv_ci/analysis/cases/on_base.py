"""Whether the cases of a change that did not pass are red or flaky on its base branch, too."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import takewhile
from typing import Literal

from msgspec import Struct

from agentv_ci.analysis.cases.outcomes import CaseOutcome
from agentv_ci.contracts.cases import CaseKey, matching
from agentv_ci.contracts.ledger import CaseLine, Ledger

RUNS = 10
"""The newest runs of a case that count, of those with a verdict since the case was changed last."""


State = Literal["red", "flaky", "green"]


class OnBase(Struct, frozen=True):
    """What a case does on the base branch."""

    state: State
    """`red`: it stopped passing; `green`: it passes, at least since a day; `flaky`: it passes now
    and then.
    """
    trials: int
    passed: int
    """Trials that passed; of a green case since that day."""
    since: str | None = None
    """The day since when it is red or green; None: in all runs that are known."""


class BaseBranch(Struct, frozen=True):
    """The base branch of a change, and what the cases of the change do there."""

    name: str
    cases: Mapping[CaseKey, OnBase]


def in_history(outcomes: Sequence[CaseOutcome], ledger: Ledger) -> dict[CaseKey, OnBase]:
    """Return what cases did in the newest runs of a ledger.

    Those without a verdict there are left out.
    """
    keys = [each.key for each in outcomes]
    match = matching(keys, {line.key for run in ledger.runs for line in run.cases})
    wanted = {match(key): key for key in keys}
    seen: dict[CaseKey, list[tuple[str, CaseLine]]] = {}
    for run in ledger.runs:
        for line in run.cases:
            if (key := wanted.get(match(line.key))) is not None:
                seen.setdefault(key, []).append((run.head.time, line))
    states = {key: _of_lines(lines) for key, lines in seen.items()}
    return {key: state for key, state in states.items() if state is not None}


def _of_lines(lines: Sequence[tuple[str, CaseLine]]) -> OnBase | None:
    """Return the state of a case by its lines, the oldest first.

    None without a verdict since it was changed last.
    """
    digest = lines[-1][1].digest
    known = [each for each in lines if each[1].graded]
    same = [*takewhile(lambda each: each[1].digest == digest, reversed(known))][:RUNS][::-1]
    if not same:
        return None
    # The run before them says whether the state is new.
    before = known[: -len(same)][-1:]
    passes = [line.verdict == "pass" for _, line in (*before, *same)]
    changes = [number for number in range(1, len(passes)) if passes[number] != passes[number - 1]]
    start = max(0, changes[-1] - len(before)) if changes else 0
    newest = [line for _, line in same[start:]]
    is_green = passes[-1]
    if sum(number > len(before) for number in changes) > 1 or (
        is_green and any(line.flaky for line in newest)
    ):
        return _counted("flaky", [line for _, line in same], None)
    return _counted(
        "green" if is_green else "red", newest, same[start][0][:10] if changes else None
    )


def _counted(state: State, lines: Sequence[CaseLine], since: str | None) -> OnBase:
    return OnBase(
        state, sum(line.graded for line in lines), sum(line.passed for line in lines), since
    )


def in_results(
    outcomes: Sequence[CaseOutcome], base: Iterable[CaseOutcome]
) -> dict[CaseKey, OnBase]:
    """Return what cases did in one run of the base branch.

    Those without a verdict there are left out.
    """
    known = [each for each in base if each.is_graded]
    match = matching([each.key for each in outcomes], [each.key for each in known])
    states = {match(each.key): _of_outcome(each) for each in known}
    return {each.key: states[match(each.key)] for each in outcomes if match(each.key) in states}


def _of_outcome(outcome: CaseOutcome) -> OnBase:
    state: State = "green" if outcome.verdict == "pass" else "red"
    if outcome.flaky:
        state = "flaky"
    return OnBase(state, len(outcome.graded), outcome.passed)
