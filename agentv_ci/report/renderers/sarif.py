"""SARIF: a result per case that did not pass, on its line.

A gate that is not passed is a result, too, if no case is an error: a run that did not pass never
has a green file.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from agentv_ci.analysis.cases.outcomes import CaseOutcome
from agentv_ci.analysis.cases.trial_outcomes import TrialOutcome
from agentv_ci.base.text import counted, printable
from agentv_ci.contracts.base import JsonObject
from agentv_ci.contracts.cases import CaseKey
from agentv_ci.contracts.quarantine import Quarantine
from agentv_ci.contracts.report import RunReport
from agentv_ci.errors import FAILED, PASSED
from agentv_ci.report.quarantine import sentence
from agentv_ci.report.sarif import fingerprint, location, log, message, rule, without_links
from agentv_ci.report.view import DRY_RUN, RunView, trials_text

MAX_RESULTS = 5_000
"""The most that GitHub keeps of a run; worst first."""

GATE = "gate-not-passed"
RULES: Mapping[str, tuple[str, str]] = {
    "case-failed": ("error", "a case that failed"),
    "case-errored": (
        "error",
        "a case without a verdict, because its target or an evaluator failed",
    ),
    "case-borderline": ("warning", "a case just below its threshold"),
    "trial-errored": ("warning", "a trial without a verdict; the other trials decide the case"),
    GATE: ("error", "a run that does not pass its gate"),
}
"""Rule → level and description, worst first."""
RULE_OF = {"fail": "case-failed", "error": "case-errored", "borderline": "case-borderline"}
ORDER = tuple(RULES)


def render(run: RunView) -> Iterable[bytes]:
    """Return a log with one run; a dry run has no results."""
    report = run.report
    cases: list[CaseOutcome] = []
    lost: list[tuple[CaseOutcome, TrialOutcome]] = []
    if not report.dry_run:
        excused = (outcome for outcome in run.quarantined if outcome.verdict in RULE_OF)
        cases = [*run.red, *excused]
        lost = run.lost_trials
    cases.sort(key=lambda outcome: ORDER.index(RULE_OF[outcome.verdict]))
    known = _fingerprints(run.outcomes)
    results = [
        _result(outcome, known[outcome.key], run.again(outcome)) for outcome in cases[:MAX_RESULTS]
    ]
    results += [_lost(case, trial, known[case.key]) for case, trial in lost[:MAX_RESULTS]]
    if report.gate.exit_code != PASSED and not any(map(_is_red, results)):
        results.append(_gate(report, run.outcomes))
    rules = [rule(rule_id, rule_id, says, level) for rule_id, (level, says) in RULES.items()]
    yield log(rules, results, invocations=[_invocation(report, len(cases) - MAX_RESULTS)]).encode()


def _fingerprints(outcomes: Iterable[CaseOutcome]) -> dict[CaseKey, JsonObject]:
    """Return what identifies each case.

    `outcomes` are in the plan's order, so that those of identical cases do not depend on scores.
    """
    seen: Counter[str] = Counter()
    return {case.key: fingerprint((case.case.digest, case.target), seen) for case in outcomes}


def _is_red(result: JsonObject) -> bool:
    return result["level"] == "error" and "suppressions" not in result


def _result(outcome: CaseOutcome, known: JsonObject, again: str) -> JsonObject:
    case = outcome.case
    place = _location(outcome)
    place["logicalLocations"] = [
        {"name": case.id, "kind": "member", "fullyQualifiedName": f"{case.suite}:{case.id}"}
    ]
    return {
        **_of_rule(RULE_OF[outcome.verdict]),
        "message": _message(outcome, again),
        "locations": [place],
        "partialFingerprints": known,
        "properties": {
            "verdict": outcome.verdict,
            "score": outcome.score,
            "target": outcome.target,
            "digest": case.digest,
            "trials": len(outcome.trials),
            "passed": outcome.passed,
            "flaky": outcome.flaky,
        },
        **_suppressions(outcome.quarantine),
    }


def _suppressions(quarantine: Quarantine | None) -> JsonObject:
    """Return why a result does not count (section 3.35)."""
    if quarantine is None:
        return {}
    justification = printable(sentence(quarantine))
    return {
        "suppressions": [{"kind": "external", "status": "accepted", "justification": justification}]
    }


def _of_rule(rule_id: str) -> JsonObject:
    return {"ruleId": rule_id, "ruleIndex": ORDER.index(rule_id), "level": RULES[rule_id][0]}


def _lost(outcome: CaseOutcome, trial: TrialOutcome, known: JsonObject) -> JsonObject:
    """Return a result for a trial without a verdict."""
    what = "crashed" if trial.is_crash else "has no verdict"
    name = (
        f"{printable(outcome.case.id)} ({printable(outcome.target)}): "
        f"trial {trial.number} of {outcome.case.trials}"
    )
    return {
        **_of_rule("trial-errored"),
        "message": message(f"{name} {what}\n{printable(trial.summary)}"),
        "locations": [_location(outcome)],
        "partialFingerprints": {name: f"{value}/{trial.number}" for name, value in known.items()},
    }


def _location(outcome: CaseOutcome) -> JsonObject:
    source = outcome.case.source
    return location(source.path, {"startLine": max(source.line, 1)})


def _message(outcome: CaseOutcome, again: str) -> JsonObject:
    if outcome.verdict == "error":
        score = "no verdict"
    else:
        score = f"{outcome.verdict}, score {outcome.score:.3f}"
    facts = ", ".join(filter(None, [score, trials_text(outcome)]))
    text = f"{printable(outcome.case.id)} ({printable(outcome.target)}): {facts}"
    if outcome.summary:
        text += f"\n{printable(outcome.summary)}"
    # The command must stay as it is, to be typed; an id can make it, or its end, a link.
    before, _, after = again.partition("](")
    if again and not (")" in after and "[" in f"{text}{before}"):
        return {"text": f"{without_links(text)}\nRun it again: {again}"}
    return {"text": without_links(text)}


def _gate(report: RunReport, outcomes: Sequence[CaseOutcome]) -> JsonObject:
    """Return a result for the gate, at the top of the first eval file."""
    suites = [
        *(setting.suite for setting in report.gate.settings),
        *(outcome.case.suite for outcome in outcomes),
    ]
    result: JsonObject = {
        **_of_rule(GATE),
        "message": message(printable("\n".join(report.gate.reasons)) or report.gate.verdict),
        "partialFingerprints": fingerprint((GATE, *suites[:1]), Counter()),
    }
    if suites:
        return {**result, "locations": [location(suites[0], {"startLine": 1})]}
    return result


def _invocation(report: RunReport, left_out: int) -> JsonObject:
    notes = [_note("note", f"dry run: {DRY_RUN}")] if report.dry_run else []
    if left_out > 0:
        notes += [_note("note", f"{counted(left_out, 'more case')} did not pass")]
    level = "note" if report.gate.exit_code == PASSED else "error"
    notes += [_note(level, printable(reason)) for reason in report.gate.reasons]
    return {
        "executionSuccessful": report.gate.exit_code in (PASSED, FAILED),
        "exitCode": report.gate.exit_code,
        "exitCodeDescription": report.gate.verdict,
        "toolExecutionNotifications": [*notes],
    }


def _note(level: str, text: str) -> JsonObject:
    return {"level": level, "message": message(text)}
