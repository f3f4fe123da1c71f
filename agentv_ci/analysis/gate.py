"""Decide whether a run passes.

The printed verdict, the reports and the exit code all come from here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from functools import partial
from itertools import chain, filterfalse
from typing import TYPE_CHECKING, Literal

from agentv_ci.analysis.cases.counts import apart, mean_score
from agentv_ci.analysis.cases.outcomes import CaseOutcome, in_matrix_of
from agentv_ci.analysis.cases.quarantine import gating
from agentv_ci.analysis.cases.spending import Spending
from agentv_ci.analysis.cases.tally import Tally
from agentv_ci.base.mappings import grouped
from agentv_ci.base.text import counted, dollars, first_few, shortened
from agentv_ci.contracts.cases import CaseKey
from agentv_ci.contracts.gate import WhenUndecided
from agentv_ci.contracts.packed_cases import heads_of
from agentv_ci.contracts.plan import Plan, PlanSuite, PlanValidator
from agentv_ci.contracts.report import (
    Ending,
    GateReason,
    GateReasonKind,
    GateResult,
    GateSettings,
    GateVerdict,
    ScenarioReport,
    Validation,
    ValidatorSettings,
)
from agentv_ci.contracts.results import PRECISION
from agentv_ci.errors import BUDGET, FAILED, INFRASTRUCTURE, INTERRUPTED, PASSED, UNDECIDED

if TYPE_CHECKING:
    from agentv_ci.contracts.comparison import Comparison
    from agentv_ci.contracts.experiment_report import ExperimentReport

MAX_ISSUE = 200

VERDICTS: dict[int, GateVerdict] = {
    INTERRUPTED: "interrupted",
    BUDGET: "budget",
    FAILED: "fail",
    INFRASTRUCTURE: "error",
    UNDECIDED: "undecided",
    PASSED: "pass",
}
"""The verdict of each exit code, the worst first."""

_Cause = tuple[int, GateReason]
"""An exit code and its reason."""


OF_PROOFS = {"min_kill_rate", "null_agents", "accept"}
"""Thresholds of proofs, not of runs."""


def gate_settings(plan: Plan) -> tuple[GateSettings, ...]:
    """Return the thresholds of a plan's suites."""
    cases: Counter[str] = Counter()
    seeds: dict[str, set[int]] = {}
    for case in heads_of(plan):
        cases[case.suite] += 1
        seeds.setdefault(case.suite, set()).update(case.seeds[: case.trials])
    return tuple(
        _settings(suite, cases[suite.path], seeds[suite.path])
        for suite in plan.suites
        if suite.path in cases
    )


def _settings(suite: PlanSuite, cases: int, seeds: Iterable[int]) -> GateSettings:
    return GateSettings(
        suite=suite.path,
        cases=cases,
        **suite.gate.model_dump(exclude=OF_PROOFS | {"validators"}),
        validators=tuple(map(_validator, suite.validators)),
        validator_errors=suite.gate.validators,
        seeds=tuple(sorted(seeds)),
    )


def _validator(validator: PlanValidator) -> ValidatorSettings:
    return ValidatorSettings(key=validator.key, context=validator.context)


def decide_gate(
    settings: Sequence[GateSettings],
    outcomes: Sequence[CaseOutcome],
    tally: Tally,
    ending: Ending,
    scenarios: Sequence[ScenarioReport],
    comparison: Comparison | None,
) -> GateResult:
    """Return the gate's decision over all suites.

    Each has its own thresholds, and the worst exit code wins.

    The quality of a shard is reported but not enforced: `report` does that for all shards together.
    """
    causes = [*_ended_badly(settings, outcomes, ending)]
    if ending.dry_run:
        return _result(None if causes else "dry-run", causes, settings, ending)
    causes += _missing_cases(ending)
    idle = _all_idle(outcomes)
    if not causes and (not settings or (idle is not None and ending.shard is not None)):
        cause = _cause(PASSED, "nothing-ran", f"nothing ran: {_why_nothing_ran(idle, ending)}")
        return _result("nothing", [cause], settings, ending)
    if idle is not None:
        causes.append(_cause(FAILED, "nothing-graded", f"no case was graded: all are {idle}"))
    ended = {code for code, _ in causes}
    causes += _costs(settings, tally, ending)
    causes += _judge_suites(settings, outcomes, tally, ending, scenarios)
    if comparison is not None:
        causes += _regressions(comparison, outcomes)
    if ending.experiment is not None:
        causes += _judge_experiment(ending.experiment, settings)
    result = _result(None, causes, settings, ending)
    verdicts: dict[str, GateVerdict] = {}
    for target in _in_matrix(outcomes):
        of_target = {code for code, reason in causes if reason.target == target}
        verdicts[target] = _verdict(ended | of_target)
    result = result.model_copy(update={"targets": verdicts})
    if ending.shard is None:
        return result
    code = _of_shard(result.exit_code, outcomes, ending)
    verdict = result.verdict if code == PASSED else VERDICTS[code]
    return result.model_copy(update={"exit_code": code, "verdict": verdict})


def _why_nothing_ran(idle: str | None, ending: Ending) -> str:
    if idle is not None:
        return f"all cases of the shard are {idle}"
    if ending.shard is None:
        return "no case was left to run"
    return "the shard is empty"


def _missing_cases(ending: Ending) -> Iterator[_Cause]:
    base = ending.against_base
    if base is None or not base.missing or base.missing_cases != "fail":
        return
    missing = (change.cases for change in base.lowered if change.kind == "case")
    named = first_few(list(chain.from_iterable(missing)))
    message = f"{counted(base.missing, 'case')} of {base.base} missing: {named}"
    yield _cause(FAILED, "missing-cases", message)


def _judge_experiment(
    experiment: ExperimentReport, settings: Sequence[GateSettings]
) -> Iterator[_Cause]:
    if experiment.exit_code != PASSED:
        for reason in experiment.reasons:
            yield _cause(experiment.exit_code, "experiment", reason)
    most = min((suite.max_errors for suite in settings), default=0)
    if experiment.unjudged > most:
        pairs = counted(experiment.unjudged, "pair")
        message = f"{pairs} of answers not judged, at most {most} allowed"
        yield _cause(INFRASTRUCTURE, "errors", message)


def _all_idle(outcomes: Sequence[CaseOutcome]) -> str | None:
    """Return what all cases are, if none of them can decide anything."""
    counting = gating(outcomes)
    if not outcomes or not all(map(_is_skipped, counting)):
        return None
    if not counting:
        return "in quarantine"
    if len(counting) < len(outcomes):
        return "skipped or in quarantine"
    return "skipped"


def _result(
    verdict: GateVerdict | None,
    causes: Sequence[_Cause],
    settings: Sequence[GateSettings],
    ending: Ending,
) -> GateResult:
    codes = {code for code, _ in causes}
    reasons = tuple(reason for _, reason in causes)
    return GateResult(
        verdict=verdict or _verdict(codes),
        exit_code=_worst(codes),
        reasons=tuple(map(partial(_sentence, names_suite=len(settings) > 1), reasons)),
        causes=reasons,
        settings=tuple(settings),
        max_cost_usd=ending.max_cost_usd,
    )


def _worst(codes: AbstractSet[int]) -> int:
    return next(filter(codes.__contains__, VERDICTS), PASSED)


def worst_verdict(verdicts: Collection[GateVerdict]) -> GateVerdict:
    """Return the worst of several verdicts."""
    return next(filter(verdicts.__contains__, VERDICTS.values()), "pass")


def _verdict(codes: AbstractSet[int]) -> GateVerdict:
    return VERDICTS[_worst(codes)]


def _cause(code: int, kind: GateReasonKind, message: str, suite: str | None = None) -> _Cause:
    return code, GateReason(kind=kind, suite=suite, message=message)


def _sentence(reason: GateReason, *, names_suite: bool) -> str:
    parts: list[str] = []
    if names_suite and reason.suite is not None:
        parts.append(reason.suite)
    if reason.target is not None:
        parts.append(f"target {reason.target}")
    return ": ".join([*parts, reason.message])


def _of_shard(worst: int, outcomes: Sequence[CaseOutcome], ending: Ending) -> int:
    """Return the exit code of a shard: it is an error only when merging the shards cannot help."""
    if worst in (INTERRUPTED, BUDGET):
        return worst
    counting = gating(outcomes)
    if ending.write_error is not None or ending.unrecorded > 0:
        return INFRASTRUCTURE
    if not counting and outcomes:
        return PASSED
    return INFRASTRUCTURE if all(map(_is_error, counting)) else PASSED


def _is_skipped(outcome: CaseOutcome) -> bool:
    return outcome.verdict == "skipped"


def _is_error(outcome: CaseOutcome) -> bool:
    return outcome.verdict == "error"


def _ended_badly(
    settings: Sequence[GateSettings], outcomes: Sequence[CaseOutcome], ending: Ending
) -> Iterator[_Cause]:
    """Yield what is wrong with how a run ended, regardless of its answers."""
    for reason in ending.incomplete:
        yield _cause(FAILED, "incomplete", reason)
    if ending.write_error is not None:
        message = f"results could not be written: {ending.write_error}"
        yield _cause(INFRASTRUCTURE, "write-error", message)
    if ending.unrecorded:
        requests = f"{counted(ending.unrecorded, 'request')} without a recording"
        yield _cause(INFRASTRUCTURE, "unrecorded", f"{requests}; run with --record to record")
    if ending.stopped is not None and ending.stopped != "decided":
        yield _stopped(ending.stopped, settings, outcomes)


def _stopped(
    stopped: Literal["interrupted", "budget", "fail-fast"],
    settings: Sequence[GateSettings],
    outcomes: Sequence[CaseOutcome],
) -> _Cause:
    left = _left(settings, outcomes)
    match stopped:
        case "interrupted":
            return _cause(INTERRUPTED, "stopped", f"interrupted: {left}")
        case "budget":
            return _cause(BUDGET, "stopped", f"the budget is used up: {left}")
        case "fail-fast":
            code = FAILED if any(map(_has_failed, gating(outcomes))) else INFRASTRUCTURE
            return _cause(code, "stopped", f"stopped at the first failure: {left}")


def _left(settings: Sequence[GateSettings], outcomes: Sequence[CaseOutcome]) -> str:
    """Return how much of a stopped run did not run."""
    cases = max(len(outcomes), sum(suite.cases for suite in settings))
    left_out = cases - sum(outcome.ran > 0 for outcome in outcomes)
    if not left_out:
        return "every case ran, but not every trial"
    return f"{left_out} of {cases} cases not run"


def _has_failed(outcome: CaseOutcome) -> bool:
    return outcome.verdict in ("fail", "borderline") and not outcome.is_open


def _costs(settings: Sequence[GateSettings], tally: Tally, ending: Ending) -> Iterator[_Cause]:
    """Yield what is wrong with the cost of the whole run."""
    most = ending.max_cost_usd
    yield from _over_budget("run", tally.spending.cost_usd, most)
    is_bounded = most is not None or any(suite.max_cost_usd is not None for suite in settings)
    if is_bounded and ending.unpriced_models:
        models = ", ".join(ending.unpriced_models)
        message = f"the cost is unknown: {models} without a price; set it under 'prices'"
        yield _cause(FAILED, "unpriced", message)


def _over_budget(
    what: str, cost: float | None, most: float | None, suite: str | None = None
) -> Iterator[_Cause]:
    if most is not None and cost is not None and cost > most:
        message = f"the {what} cost {dollars(cost)}, at most ${most:g} allowed"
        yield _cause(BUDGET, "cost", message, suite)


def _judge_suites(
    settings: Sequence[GateSettings],
    outcomes: Sequence[CaseOutcome],
    tally: Tally,
    ending: Ending,
    scenarios: Sequence[ScenarioReport],
) -> Iterator[_Cause]:
    spending = tally.spending_by("suite")
    validations = {scenario.scenario_key: scenario for scenario in scenarios}
    by_suite = grouped(outcomes, lambda outcome: outcome.suite)
    for suite in settings:
        own, cost = by_suite.get(suite.suite, []), spending.get(suite.suite, Spending()).cost_usd
        yield from _judge_suite(suite, own, cost, ending, tally.not_started)
        by_target = grouped(own, lambda outcome: outcome.target)
        for target in _in_matrix(own):
            alone = by_target[target]
            part = suite.model_copy(update={"cases": len(alone)})
            for code, reason in _judge_suite(part, alone, None, ending, tally.not_started):
                yield code, reason.model_copy(update={"target": target})
        yield from _validated(suite, validations.get(suite.suite))


def _in_matrix(outcomes: Sequence[CaseOutcome]) -> Sequence[str]:
    """Return the targets of suites in which several targets answer the same case."""
    several = in_matrix_of(outcomes)
    suites = dict(several)
    return [*dict.fromkeys(outcome.target for outcome in outcomes if outcome.suite in suites)]


def undecided_code(when: WhenUndecided | None) -> int:
    """Return the exit code of an undecided comparison."""
    return {"pass": PASSED, "fail": FAILED, None: UNDECIDED}[when]


def _regressions(comparison: Comparison, outcomes: Sequence[CaseOutcome]) -> Iterator[_Cause]:
    against = f"against {comparison.base}"
    reasons = list(comparison.reasons)
    if gating(outcomes) and not comparison.is_part and not comparison.shares_cases:
        reasons.append("no case of this run is in it")
    for reason in reasons:
        yield _cause(FAILED, "regression", f"{against}: {reason}")
    if comparison.shares_cases and not comparison.compared and gating(outcomes):
        nothing = "no case has a verdict on both sides"
        yield _cause(INFRASTRUCTURE, "unmeasured", f"{against}: {nothing}")
    code = undecided_code(comparison.when_undecided)
    if code != PASSED:
        for reason in comparison.undecided:
            yield _cause(code, "undecided", f"{against}: {reason}")
    for reason in comparison.unmeasured:
        message = f"{against}: a limit was not checked: {reason}"
        yield _cause(INFRASTRUCTURE, "unmeasured", message)
    for reason in _withheld(comparison):
        yield _cause(INFRASTRUCTURE, "withheld", f"{against}: no decision: {reason}")


def _withheld(comparison: Comparison) -> Iterator[str]:
    """Yield why a comparison decides nothing, and what decides it.

    Nothing but trials makes up for missing ones.
    """
    statement = comparison.statement
    if statement is None:
        return
    cure = "" if statement.missing_decide else "; --allow-changes decides"
    yield from (f"{reason}{cure}" for reason in statement.withheld)


def _judge_suite(
    suite: GateSettings,
    outcomes: Sequence[CaseOutcome],
    cost: float | None,
    ending: Ending,
    not_started: Mapping[CaseKey, int],
) -> Iterator[_Cause]:
    counting = gating(outcomes)
    errors = _errors(suite, outcomes, ending)
    has_too_many = errors > suite.max_errors
    run = list(filterfalse(_is_skipped, counting))
    is_nothing = ending.stopped is None and all(map(_is_error, run))
    if not is_nothing:
        decided = [outcome for outcome in counting if _is_decided(outcome, ending)]
        yield from _quality(suite, decided, INFRASTRUCTURE if has_too_many else FAILED)
    yield from _over_budget("suite", cost, suite.max_cost_usd, suite.suite)
    if has_too_many:
        yield from _too_many(suite, outcomes, errors, not_started)
    if is_nothing and (run or not outcomes):
        # Without any answer, nothing is known about quality.
        code = INFRASTRUCTURE if has_too_many or ending.unrecorded > 0 else FAILED
        yield _cause(code, "nothing-graded", _nothing(run), suite.suite)


def _too_many(
    suite: GateSettings,
    outcomes: Sequence[CaseOutcome],
    errors: int,
    not_started: Mapping[CaseKey, int],
) -> Iterator[_Cause]:
    """Yield that a suite has too many errors, and that some are of cases that may use no more."""
    what = "trial" if any(outcome.case.trials > 1 for outcome in outcomes) else "case"
    message = f"{counted(errors, f'errored {what}')}, at most {suite.max_errors} allowed"
    yield _cause(INFRASTRUCTURE, "errors", message, suite.suite)
    capped = sum(not_started.get(outcome.key, 0) for outcome in gating(outcomes))
    if capped:
        why = "the case had used its max_cost_usd or max_requests"
        message = f"{counted(capped, 'trial')} not started: {why}"
        yield _cause(BUDGET, "cost", message, suite.suite)


def _errors(suite: GateSettings, outcomes: Sequence[CaseOutcome], ending: Ending) -> int:
    """Return how many trials of a suite have an error that is not due to the end of the run."""
    counting = gating(outcomes)
    errors = sum(outcome.errors for outcome in counting)
    if ending.stopped is None:
        # Of cases without any row, merged results know only the number.
        return errors + max(0, suite.cases - len(outcomes))
    # Cases that did not run because the run was stopped are not errors; the stop has its own
    # reason.
    return errors - sum(outcome.missing for outcome in counting)


def _nothing(run: Sequence[CaseOutcome]) -> str:
    """Return why no case of a suite has a verdict; the trials of some may all have crashed."""
    cases, crashed = len(run), sum(outcome.is_graded for outcome in run)
    if not crashed:
        return "no case was graded"
    if crashed < cases:
        return f"{crashed} of {counted(cases, 'case')} crashed, and no other was graded"
    return "the only case crashed" if cases == 1 else f"all {cases} cases crashed"


def _is_decided(outcome: CaseOutcome, ending: Ending) -> bool:
    """Whether the outcome of a case counts for quality.

    It does not when the run was stopped before the case was settled, or when a replay without all
    recordings has errors in it.
    """
    is_undecided = ending.stopped is not None and outcome.is_open
    is_unrecorded = ending.unrecorded > 0 and outcome.errors > 0
    return not is_undecided and not is_unrecorded


def _validated(suite: GateSettings, scenario: ScenarioReport | None) -> Iterator[_Cause]:
    """Yield errors that validators found; a validator that could not run fails nothing."""
    if scenario is None or suite.validator_errors == "warn":
        return
    for message in validator_errors(scenario):
        yield _cause(FAILED, "validator", message, suite.suite)


def validator_errors(scenario: ScenarioReport) -> Iterator[str]:
    """Yield what each validator found that is an error."""
    for validation in scenario.aggregates.validations:
        if isinstance(validation, Validation) and validation.errors:
            others = validation.count("error") - 1
            more = f" (and {others} more)" if others else ""
            issue = shortened(validation.errors[0], MAX_ISSUE)
            yield f"validator {validation.validator}: {issue}{more}"


def _quality(
    suite: GateSettings, outcomes: Sequence[CaseOutcome], of_crashes: int
) -> Iterator[_Cause]:
    """Yield which thresholds are not reached; a case of which all trials crashed has failed.

    `of_crashes` is the exit code where only such cases are the reason.
    """
    graded = [outcome for outcome in outcomes if outcome.is_graded]
    if not graded:
        return
    answered = [outcome for outcome in graded if outcome.has_verdict]
    rate, least = _pass_rate(graded), suite.min_pass_rate
    if _is_below(rate, least):
        fails_anyway = bool(answered) and _is_below(_pass_rate(answered), least)
        message = "pass rate {} is below {}".format(*apart(rate, least, ".{}%", least=1))
        yield _cause(FAILED if fails_anyway else of_crashes, "pass-rate", message, suite.suite)
    yield from _low_mean(suite, graded, answered, of_crashes)


def _low_mean(
    suite: GateSettings,
    graded: Sequence[CaseOutcome],
    answered: Sequence[CaseOutcome],
    of_crashes: int,
) -> Iterator[_Cause]:
    mean, least = mean_score(graded), suite.min_mean_score
    if least is not None and mean is not None and _is_below(mean, least):
        mean_of_answers = mean_score(answered)
        fails_anyway = mean_of_answers is not None and _is_below(mean_of_answers, least)
        message = "mean score {} is below {}".format(*apart(mean, least, ".{}f", least=3))
        yield _cause(FAILED if fails_anyway else of_crashes, "mean-score", message, suite.suite)


def _pass_rate(outcomes: Sequence[CaseOutcome]) -> float:
    return sum(outcome.verdict == "pass" for outcome in outcomes) / len(outcomes)


def _is_below(value: float, threshold: float) -> bool:
    return round(value, PRECISION) < round(threshold, PRECISION)
