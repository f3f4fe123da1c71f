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
    runs = [run for run in history.runs if not run.case.cached]
    newest = [*takewhile(_is_broken, reversed(runs))][::-1]
    before = runs[: len(runs) - len(newest)]
    crashed = sum(run.case.crashed for run in newest)
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
    if not crashed:
        return f"has no verdict in {where}"
    trials = sum(run.case.trials for run in runs)
    if crashed >= trials:
        return f"crashed in {where}"
    return f"crashed in {where} ({crashed} of {trials} trials)"


def _before_text(runs: Sequence[CaseRun]) -> str:
    passed, graded = _trials(runs)
    if passed == graded:
        return f"passed in the {len(runs)} before"
    return f"{passed} of {counted(graded, 'trial')} passed in the {len(runs)} before"


def saturated(history: CaseHistory, proofs: Proofs | None) -> HealthFinding | None:
    """Return that a case always passes.

    By a proof, also whether agents that do nothing pass it, too.
    """
    runs = history.graded
    if len(runs) < MIN_RUNS or any(run.case.passed < run.case.graded for run in runs):
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
    runs = [run for run in history.runs if not run.case.cached]
    if len(runs) < MIN_RUNS or any(run.case.passed for run in runs):
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
    passed, graded = _trials(recent)
    began = recent[0] if before else _first_exception(recent)
    day = began.run.time[:10]
    since, rate_before = f"the first exception was on {day}", None
    if before:
        passed_before, graded_before = _trials(before)
        since, rate_before = f"since {day}, {_rate(before)} before", passed_before / graded_before
    crashed = sum(run.case.crashed for run in recent)
    crashes = f", {crashed} crashed" if crashed else ""
    message = f"{_rate(recent)} of {counted(graded, 'trial')} passed{crashes}; {since}"
    action = (
        "compare an answer that passes with one that does not; "
        "quarantine it, and ask for a majority of trials"
    )
    rates = {"before": rate_before, "after": passed / graded}
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
    """Return how many independent trials say as much of a share as these.

    Those of one run may be alike, so it is between one for each run and all (L. Kish (1965), Survey
    Sampling, chapter 5: the effective size of clusters).
    """
    graded = sum(run.case.graded for run in runs)
    if len(runs) < 2:
        return graded
    spread = variance(run.case.passed / run.case.graded for run in runs) / len(runs)
    if not spread:
        return graded
    return max(len(runs), min(graded, share * (1 - share) / spread))


def passes_mostly(runs: Iterable[CaseRun]) -> bool:
    """Whether at least half of the trials pass."""
    passed, graded = _trials(runs)
    return 2 * passed >= graded


def _first_exception(runs: Sequence[CaseRun]) -> CaseRun:
    """Return the first run in which a trial is not like most of all."""
    if passes_mostly(runs):
        return next(run for run in runs if run.case.passed < run.case.graded)
    return next(run for run in runs if run.case.passed)


def _trials(runs: Iterable[CaseRun]) -> tuple[int, int]:
    """Return how many trials passed, and how many are graded."""
    passed, graded = 0, 0
    for run in runs:
        passed += run.case.passed
        graded += run.case.graded
    return passed, graded


def _rate(runs: Sequence[CaseRun]) -> str:
    passed, graded = _trials(runs)
    return f"{passed / graded:.0%}"
