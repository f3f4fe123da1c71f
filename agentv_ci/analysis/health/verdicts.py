"""What the verdicts of a case say over many runs: broken, saturated, dead, flaky."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import takewhile
from statistics import variance

from agentv_ci.analysis.health.histories import (
    MIN_RUNS,
    CaseHistory,
    CaseRun,
    pass_rate,
    trials_of,
)
from agentv_ci.analysis.health.shifts import Shift
from agentv_ci.analysis.statistics.inference import rate_interval
from agentv_ci.base.text import counted
from agentv_ci.contracts.command_output import HealthFinding, HealthKind
from agentv_ci.contracts.proof import CaseProof

STEADY = 0.05
"""Share of trials that may disagree with the others in a case that is not flaky."""
CONFIDENCE = 0.9
"""Of the two-sided interval of that share, whose lower bound has to be above it: 95% on that side.
"""


BROKEN_RUNS = 3
"""Newest runs in a row that make a case broken."""

INFORMATION = frozenset({"saturated", "redundant", "slow", "expensive", "model-changed"})
"""Findings that are no defects."""

Proofs = Mapping[tuple[str, str], CaseProof]
"""Suite and id of cases that are proven."""


def finding(
    history: CaseHistory, kind: HealthKind, message: str, action: str, **more: object
) -> HealthFinding:
    """Return a finding about a case."""
    suite, case_id, target = history.key
    data: dict[str, object] = {
        "kind": kind,
        "severity": "info" if kind in INFORMATION else "warning",
        "message": message,
        "action": action,
        "suite": suite,
        "id": case_id,
        "target": target,
        "runs": len(history.runs),
    }
    return HealthFinding.model_validate({**data, **more})


def begin_of(run: CaseRun) -> dict[str, str | None]:
    """Return the fields of a finding that say when it began."""
    return {"since": run.run.time, "commit": run.run.commit, "run_url": run.run.run_url}


def broken(history: CaseHistory) -> HealthFinding | None:
    """Return that a case is broken in each of its newest runs.

    At least half of its trials crash, or none is graded.
    """
    runs = history.answered
    newest = [*takewhile(_is_broken, reversed(runs))][::-1]
    before = runs[: len(runs) - len(newest)]
    crashed = _crashed(newest)
    if len(newest) < BROKEN_RUNS or not (before or crashed):
        return None
    message = _broken_text(newest, crashed, is_all=not before)
    if before:
        message += f"; {_before_text(before)}"
    began = begin_of(newest[0]) if before else {}
    return finding(history, "broken", message, "see the errors of its newest run", **began)


def _is_broken(run: CaseRun) -> bool:
    return 2 * run.case.crashed >= run.case.trials or run.case.graded == 0


def _crashed(runs: Iterable[CaseRun]) -> int:
    return sum(run.case.crashed for run in runs)


def _broken_text(runs: Sequence[CaseRun], crashed: int, *, is_all: bool) -> str:
    where = f"all {len(runs)} runs" if is_all else f"the last {len(runs)} runs"
    if not crashed:
        return f"has no verdict in {where}"
    trials = sum(run.case.trials for run in runs)
    if crashed >= trials:
        return f"crashed in {where}"
    return f"crashed in {where} ({crashed} of {trials} trials)"


def _before_text(runs: Sequence[CaseRun]) -> str:
    passed, graded = trials_of(runs)
    if passed == graded:
        return f"passed in the {len(runs)} before"
    return f"{passed} of {counted(graded, 'trial')} passed in the {len(runs)} before"


def saturated(history: CaseHistory, proofs: Proofs | None) -> HealthFinding | None:
    """Return that a case always passes.

    By a proof, also whether agents that do nothing pass it, too.
    """
    runs = history.graded
    if len(runs) < MIN_RUNS or any(map(_has_misses, runs)):
        return None
    unknown = sum(not run.case.graded for run in history.runs)
    others = f" ({unknown} others have no verdict)" if unknown else ""
    message = f"passes all {len(runs)} runs since it was changed last{others}"
    more, action = _proven(history, proofs)
    return finding(history, "saturated", f"{message}{more}", action)


def _proven(history: CaseHistory, proofs: Proofs | None) -> tuple[str, str]:
    """Return what a proof says of a case that always passes, and what to do."""
    command = "run `agentv-ci prove`, and name its file with --proof"
    if proofs is None:
        return "", f"see whether agents that do nothing pass it, too: {command}"
    proof = proofs.get(history.key[:2])
    if proof is not None and proof.passing:
        agent = proof.passing[0].agent
        more = f"; null agent '{agent}', which does nothing, passes it, too"
        return more, "add an evaluator that fails what `agentv-ci prove` lists"
    if proof is not None and all(agent.outcome == "caught" for agent in proof.null_agents):
        more = "; agents that do nothing fail it"
        return more, "keep it as a guard against regressions, or make it harder"
    return "", f"the proof says nothing of it: {command}"


def dead(history: CaseHistory) -> HealthFinding | None:
    """Return that a case never passes."""
    runs = history.answered
    if len(runs) < MIN_RUNS or any(map(_has_passes, runs)):
        return None
    scores = [run.case.score for run in runs if run.case.score is not None]
    if not scores:
        message = f"has no verdict in {len(runs)} runs"
        return finding(history, "dead", message, "see the errors of its newest run")
    if len(scores) < MIN_RUNS:
        return None
    mean = sum(scores) / len(scores)
    passes_none = f"passes none of {len(scores)} runs since it was changed last"
    action = (
        "see with `agentv-ci prove` whether its reference answer passes; "
        "else skip it until an agent can do it"
    )
    return finding(history, "dead", f"{passes_none} (mean score {mean:.2f})", action)


def flaky(
    runs: Sequence[CaseRun], history: CaseHistory, onset: Shift | None
) -> HealthFinding | None:
    """Return that a case passes and misses in turn.

    `onset` is the last change of its pass rate, in these runs.
    """
    before, recent = runs[:0], runs
    if onset is not None:
        before, recent = runs[: onset.start], runs[onset.start :]
    if len(runs) < MIN_RUNS or not is_unsteady(recent):
        return None
    began = recent[0] if before else _first_exception(recent)
    message = f"{_passed_text(recent)}; {_since(began, before)}"
    action = (
        "compare an answer that passes with one that does not; "
        "quarantine it, and ask for a majority of trials"
    )
    rates = {"before": _share(before) if before else None, "after": _share(recent)}
    return finding(history, "flaky", message, action, **begin_of(began), **rates)


def _passed_text(runs: Sequence[CaseRun]) -> str:
    _, graded = trials_of(runs)
    crashed = _crashed(runs)
    crashes = f", {crashed} crashed" if crashed else ""
    return f"{_share(runs):.0%} of {counted(graded, 'trial')} passed{crashes}"


def _since(began: CaseRun, before: Sequence[CaseRun]) -> str:
    day = began.run.time[:10]
    if not before:
        return f"the first exception was on {day}"
    return f"since {day}, {_share(before):.0%} before"


def is_unsteady(runs: Sequence[CaseRun]) -> bool:
    """Whether more than a few trials disagree with the others, beyond chance."""
    passed, graded = trials_of(runs)
    if not graded:
        return False
    share = min(passed, graded - passed) / graded
    independent = _independent_trials(runs, share)
    low, _ = rate_interval(share * independent, independent, CONFIDENCE)
    return low > STEADY


def _independent_trials(runs: Sequence[CaseRun], share: float) -> float:
    """Return how many independent trials say as much of a share as these.

    Those of one run may be alike, so it is between one for each run and all (L. Kish (1965), Survey
    Sampling, chapter 5: the effective size of clusters).
    """
    _, graded = trials_of(runs)
    if len(runs) < 2:
        return graded
    spread = variance(map(pass_rate, runs)) / len(runs)
    if not spread:
        return graded
    return max(len(runs), min(graded, share * (1 - share) / spread))


def passes_mostly(runs: Iterable[CaseRun]) -> bool:
    """Whether at least half of the trials pass."""
    passed, graded = trials_of(runs)
    return 2 * passed >= graded


def _first_exception(runs: Sequence[CaseRun]) -> CaseRun:
    """Return the first run in which a trial is not like most of all."""
    exceptions = filter(_has_misses if passes_mostly(runs) else _has_passes, runs)
    return next(exceptions)


def _has_misses(run: CaseRun) -> bool:
    return run.case.passed < run.case.graded


def _has_passes(run: CaseRun) -> bool:
    return bool(run.case.passed)


def _share(runs: Iterable[CaseRun]) -> float:
    """Return the share of graded trials that passed."""
    passed, graded = trials_of(runs)
    return passed / graded
