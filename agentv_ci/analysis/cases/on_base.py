"""Whether the cases of a change that did not pass are red or flaky on its base branch, too."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import takewhile
from typing import TYPE_CHECKING, Literal

from msgspec import Struct

from agentv_ci.analysis.cases.outcomes import CaseOutcome, keys_of
from agentv_ci.contracts.cases import CaseKey, matching

if TYPE_CHECKING:
    from agentv_ci.contracts.ledger import CaseLine, Ledger  # few runs have one

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
    keys = keys_of(outcomes)
    match = matching(keys, {line.key for _, line in _dated_lines(ledger)})
    wanted = {match(key): key for key in keys}
    seen: dict[CaseKey, list[tuple[str, CaseLine]]] = {}
    for time, line in _dated_lines(ledger):
        if (key := wanted.get(match(line.key))) is not None:
            seen.setdefault(key, []).append((time, line))
    states: dict[CaseKey, OnBase] = {}
    for key, lines in seen.items():
        if (state := _of_lines(lines)) is not None:
            states[key] = state
    return states


def _dated_lines(ledger: Ledger) -> Iterator[tuple[str, CaseLine]]:
    """Yield the line of each case in each run, with the time of the run."""
    for run in ledger.runs:
        for line in run.cases:
            yield run.head.time, line


def _of_lines(lines: Sequence[tuple[str, CaseLine]]) -> OnBase | None:
    """Return the state of a case by its lines, the oldest first.

    None without a verdict since it was changed last.
    """
    digest = lines[-1][1].digest
    known = [(time, line) for time, line in lines if line.graded]
    same = [*takewhile(lambda dated: dated[1].digest == digest, reversed(known))][:RUNS][::-1]
    if not same:
        return None
    # The run before them says whether the state is new.
    before = known[: -len(same)][-1:]
    passes = [line.verdict == "pass" for _, line in (*before, *same)]
    changes = [number for number in range(1, len(passes)) if passes[number] != passes[number - 1]]
    start = max(0, changes[-1] - len(before)) if changes else 0
    recent = [line for _, line in same]
    is_green = passes[-1]
    is_back = sum(number > len(before) for number in changes) > 1
    if is_back or (is_green and any(line.flaky for line in recent[start:])):
        return _counted("flaky", recent, None)
    since = same[start][0][:10] if changes else None
    return _counted("green" if is_green else "red", recent[start:], since)


def _counted(state: State, lines: Sequence[CaseLine], since: str | None) -> OnBase:
    trials = passed = 0
    for line in lines:
        trials += line.graded
        passed += line.passed
    return OnBase(state, trials, passed, since)


def in_results(
    outcomes: Sequence[CaseOutcome], base: Iterable[CaseOutcome]
) -> dict[CaseKey, OnBase]:
    """Return what cases did in one run of the base branch.

    Those without a verdict there are left out.
    """
    known = {outcome.key: outcome for outcome in base if outcome.is_graded}
    keys = keys_of(outcomes)
    match = matching(keys, known)
    states: dict[tuple[str, ...], OnBase] = {}
    for key, outcome in known.items():
        states[match(key)] = _of_outcome(outcome)
    return {key: states[match(key)] for key in keys if match(key) in states}


def _of_outcome(outcome: CaseOutcome) -> OnBase:
    state: State = "green" if outcome.verdict == "pass" else "red"
    if outcome.flaky:
        state = "flaky"
    return OnBase(state, len(outcome.graded), outcome.passed)
