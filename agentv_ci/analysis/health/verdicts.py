"""What the verdicts of a case say over many runs: broken, saturated, dead, flaky."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import takewhile
from statistics import variance

from agentv_ci.analysis.health.histories import MIN_RUNS, CaseHistory, CaseRun
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

Proofs = Mapping[tuple[str, str], CaseProof]
"""Suite and id of cases that are proven."""


def finding(
    history: CaseHistory, kind: HealthKind, message: str, action: str, **more: object
) -> HealthFinding:
    """Return a finding about a case."""
    suite, case_id, target = history.key
    about = {"suite": suite, "id": case_id, "target": target, "runs": len(history.runs)}
    severity = (
        "info"
        if kind in ("saturated", "redundant", "slow", "expensive", "model-changed")
        else "warning"
    )
    return HealthFinding.model_validate(
        {"kind": kind, "severity": severity, "message": message, "action": action, **about, **more}
    )


def begin_of(run: CaseRun) -> dict[str, str | None]:
    """Return the fields of a finding that say when it began."""
    return {"since": run.run.time, "commit": run.run.commit, "run_url": run.run.run_url}


def broken(history: CaseHistory) -> HealthFinding | None:
    """Return that at least half of a case's trials crash, or none is graded, in each of its newest runs."""
    runs = [each for each in history.runs if not each.case.cached]
    newest = [*takewhile(_is_broken, reversed(runs))][::-1]
    before = runs[: len(runs) - len(newest)]
    crashed = sum(each.case.crashed for each in newest)
    if len(newest) < BROKEN_RUNS or not (before or crashed):
        return None
    message = _broken_text(newest, crashed, is_all=not before)
    if before:
        message += f"; {_before_text(before)}"
    began = begin_of(newest[0]) if before else {}
    return finding(history, "broken", message, "see the errors of its newest run", **began)


def _is_broken(run: CaseRun) -> bool:
    return 2 * run.case.crashed >= run.case.trials or run.case.graded == 0


def _broken_text(runs: Sequence[CaseRun], crashed: int, *, is_all: bool) -> str:
    where = f"all {len(runs)} runs" if is_all else f"the last {len(runs)} runs"
    trials = sum(each.case.trials for each in runs)
    if not crashed:
        return f"has no verdict in {where}"
    return f"crashed in {where}" + (f" ({crashed} of {trials} trials)" if crashed < trials else "")


def _before_text(runs: Sequence[CaseRun]) -> str:
    passed, graded = _trials(runs)
    if passed == graded:
        return f"passed in the {len(runs)} before"
    return f"{passed} of {counted(graded, 'trial')} passed in the {len(runs)} before"


def saturated(history: CaseHistory, proofs: Proofs | None) -> HealthFinding | None:
    """Return that a case always passes, and by a proof whether agents that do nothing pass it, too."""
    runs = history.graded
    if len(runs) < MIN_RUNS or any(each.case.passed < each.case.graded for each in runs):
        return None
    unknown = sum(not each.case.graded for each in history.runs)
    others = f" ({unknown} others have no verdict)" if unknown else ""
    message = f"passes all {len(runs)} runs since it was changed last{others}"
    proof = proofs.get(history.key[:2]) if proofs is not None else None
    if proof is not None and proof.passing:
        message += f"; null agent '{proof.passing[0].agent}', which does nothing, passes it, too"
        return finding(
            history,
            "saturated",
            message,
            "add an evaluator that fails what `agentv-ci prove` lists",
        )
    if proof is not None and all(each.outcome == "caught" for each in proof.null_agents):
        message += "; agents that do nothing fail it"
        return finding(
            history,
            "saturated",
            message,
            "keep it as a guard against regressions, or make it harder",
        )
    known = (
        "the proof says nothing of it"
        if proofs is not None
        else "see whether agents that do nothing pass it, too"
    )
    return finding(
        history,
        "saturated",
        message,
        f"{known}: run `agentv-ci prove`, and name its file with --proof",
    )


def dead(history: CaseHistory) -> HealthFinding | None:
    """Return that a case never passes."""
    runs = [each for each in history.runs if not each.case.cached]
    if len(runs) < MIN_RUNS or any(each.case.passed for each in runs):
        return None
    scores = [each.case.score for each in runs if each.case.score is not None]
    if not scores:
        return finding(
            history,
            "dead",
            f"has no verdict in {len(runs)} runs",
            "see the errors of its newest run",
        )
    if len(scores) < MIN_RUNS:
        return None
    mean = sum(scores) / len(scores)
    action = "see with `agentv-ci prove` whether its reference answer passes; else skip it until an agent can do it"
    message = f"passes none of {len(scores)} runs since it was changed last (mean score {mean:.2f})"
    return finding(history, "dead", message, action)


def flaky(
    runs: Sequence[CaseRun], history: CaseHistory, onset: Shift | None
) -> HealthFinding | None:
    """Return that a case passes and misses in turn.

    `onset` is the last change of its pass rate, in these runs.
    """
    before, recent = (runs[: onset.start], runs[onset.start :]) if onset is not None else ((), runs)
    if len(runs) < MIN_RUNS or not is_unsteady(recent):
        return None
    passed, graded = _trials(recent)
    began = recent[0] if before else _first_exception(recent)
    day = began.run.time[:10]
    since = (
        f"since {day}, {_rate(before)} before" if before else f"the first exception was on {day}"
    )
    crashed = sum(each.case.crashed for each in recent)
    crashes = f", {crashed} crashed" if crashed else ""
    message = f"{_rate(recent)} of {counted(graded, 'trial')} passed{crashes}; {since}"
    action = "compare an answer that passes with one that does not; quarantine it, and ask for a majority of trials"
    earlier = _trials(before)
    rates = {"before": earlier[0] / earlier[1] if before else None, "after": passed / graded}
    return finding(history, "flaky", message, action, **begin_of(began), **rates)


def is_unsteady(runs: Sequence[CaseRun]) -> bool:
    """Whether more than a few trials disagree with the others, beyond chance."""
    passed, graded = _trials(runs)
    if not graded:
        return False
    share = min(passed, graded - passed) / graded
    independent = _independent_trials(runs, share)
    low, _ = rate_interval(share * independent, independent, CONFIDENCE)
    return low > STEADY


def _independent_trials(runs: Sequence[CaseRun], share: float) -> float:
    """Return how many independent trials say as much of a share as these, of which those of one run may be alike.

    Between one for each run and all (L. Kish (1965), Survey Sampling, chapter 5: the effective size of clusters).
    """
    graded = [each.case.graded for each in runs]
    rates = [each.case.passed / each.case.graded for each in runs]
    spread = variance(rates) / len(rates) if len(rates) > 1 else 0.0
    return (
        max(len(rates), min(sum(graded), share * (1 - share) / spread)) if spread else sum(graded)
    )


def passes_mostly(runs: Iterable[CaseRun]) -> bool:
    """Whether at least half of the trials pass."""
    passed, graded = _trials(runs)
    return 2 * passed >= graded


def _first_exception(runs: Sequence[CaseRun]) -> CaseRun:
    """Return the first run in which a trial is not like most of all."""
    usual = passes_mostly(runs)
    return next(
        run for run in runs if (run.case.passed < run.case.graded if usual else run.case.passed)
    )


def _trials(runs: Iterable[CaseRun]) -> tuple[int, int]:
    """Return how many trials passed, and how many are graded."""
    cases = [each.case for each in runs]
    return sum(each.passed for each in cases), sum(each.graded for each in cases)


def _rate(runs: Sequence[CaseRun]) -> str:
    passed, graded = _trials(runs)
    return f"{passed / graded:.0%}"
