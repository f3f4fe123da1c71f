"""Whether a run passed, decided in one place: the printed verdict, the report and the exit code all come from here."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Literal

from agentv_ci.analysis.outcomes import CaseOutcome, Tally
from agentv_ci.analysis.statistics import apart, describe
from agentv_ci.contracts.compared import Comparison
from agentv_ci.contracts.plan import Plan
from agentv_ci.contracts.report import (
    Ending,
    GateResult,
    GateSettings,
    ScenarioReport,
    Validation,
    ValidatorSettings,
)
from agentv_ci.contracts.results import PRECISION
from agentv_ci.errors import BUDGET, FAILED, INFRASTRUCTURE, INTERRUPTED, PASSED
from agentv_ci.text import counted, shortened

MAX_ISSUE = 200

WORST_FIRST = (INTERRUPTED, BUDGET, FAILED, INFRASTRUCTURE, PASSED)

Verdict = Literal["pass", "fail", "error", "budget", "interrupted", "nothing", "dry-run"]
VERDICTS: dict[int, Verdict] = {
    PASSED: "pass",
    FAILED: "fail",
    INFRASTRUCTURE: "error",
    BUDGET: "budget",
    INTERRUPTED: "interrupted",
}
Finding = tuple[int, str]
"""An exit code and why."""


def settings_of(plan: Plan) -> tuple[GateSettings, ...]:
    """Return the thresholds of a plan's suites."""
    cases = Counter(case.suite for case in plan.cases)
    seeds: dict[str, set[int]] = {}
    for case in plan.cases:
        seeds.setdefault(case.suite, set()).update(case.seeds[: case.trials])
    return tuple(
        GateSettings(
            suite=suite.path,
            cases=cases[suite.path],
            min_pass_rate=suite.gate.min_pass_rate,
            min_mean_score=suite.gate.min_mean_score,
            max_errors=suite.gate.max_errors,
            max_cost_usd=suite.gate.max_cost_usd,
            validators=tuple(ValidatorSettings(key=each.key, context=each.context) for each in suite.validators),
            validator_errors=suite.gate.validators,
            seeds=tuple(sorted(seeds[suite.path])),
        )
        for suite in plan.suites
        if suite.path in cases
    )


def judge_run(
    settings: Sequence[GateSettings],
    outcomes: Sequence[CaseOutcome],
    tally: Tally,
    ending: Ending,
    scenarios: Sequence[ScenarioReport],
    comparison: Comparison | None,
) -> GateResult:
    """Return the gate's word over all suites; each has its own thresholds, and the worst exit code wins.

    The quality of a shard is judged and told, but not enforced: `report` does that over the whole.
    """
    found = [*_ended_badly(settings, outcomes, ending)]
    if ending.dry_run:
        return _result(None if found else "dry-run", found, settings, ending)
    if not settings and not found:
        nothing = "no case was left to run" if ending.shard is None else "the shard is empty"
        return _result("nothing", [(PASSED, f"nothing ran: {nothing}")], (), ending)
    found += _costs(settings, tally, ending)
    found += _judge_suites(settings, outcomes, tally, ending, scenarios)
    if comparison is not None:
        found += [(FAILED, f"against {comparison.base}: {reason}") for reason in _regressions(comparison, outcomes)]
    result = _result(None, found, settings, ending)
    if ending.shard is None:
        return result
    code = _of_shard(result.exit_code, outcomes, ending)
    verdict = result.verdict if code == PASSED else VERDICTS[code]
    return result.model_copy(update={"exit_code": code, "verdict": verdict})


def _result(
    verdict: Verdict | None, found: Sequence[Finding], settings: Sequence[GateSettings], ending: Ending
) -> GateResult:
    codes = {code for code, _ in found} | {PASSED}
    worst = next(code for code in WORST_FIRST if code in codes)
    return GateResult(
        verdict=verdict or VERDICTS[worst],
        exit_code=worst,
        reasons=tuple(reason for _, reason in found),
        settings=tuple(settings),
        max_cost_usd=ending.max_cost_usd,
    )


def _of_shard(worst: int, outcomes: Sequence[CaseOutcome], ending: Ending) -> int:
    """Only what the whole cannot mend ends a shard with an error."""
    if worst in (INTERRUPTED, BUDGET):
        return worst
    nothing_graded = all(outcome.verdict == "error" for outcome in outcomes)
    is_lost = ending.write_error is not None or ending.unrecorded > 0
    return INFRASTRUCTURE if nothing_graded or is_lost else PASSED


def _ended_badly(
    settings: Sequence[GateSettings], outcomes: Sequence[CaseOutcome], ending: Ending
) -> Iterator[Finding]:
    """What is wrong with how a run ended, whatever its answers are worth."""
    yield from ((FAILED, reason) for reason in ending.incomplete)
    if ending.write_error is not None:
        yield INFRASTRUCTURE, f"results could not be written: {ending.write_error}"
    if ending.unrecorded:
        questions = "1 question has" if ending.unrecorded == 1 else f"{ending.unrecorded} questions have"
        yield INFRASTRUCTURE, f"{questions} no recording; make it with --record"
    cases = max(len(outcomes), sum(each.cases for each in settings))
    never_ran = cases - sum(bool(outcome.trials) for outcome in outcomes)
    left = f"{never_ran} of {cases} cases never ran" if never_ran else "every case ran, not every trial"
    match ending.stopped:
        case "interrupted":
            yield INTERRUPTED, f"interrupted: {left}"
        case "budget":
            yield BUDGET, f"the budget is used up: {left}"
        case "fail-fast":
            has_failed = any(each.verdict in ("fail", "borderline") and not each.is_open for each in outcomes)
            yield FAILED if has_failed else INFRASTRUCTURE, f"stopped at the first failure: {left}"
        case None:
            pass


def _costs(settings: Sequence[GateSettings], tally: Tally, ending: Ending) -> Iterator[Finding]:
    """What is wrong with the cost of the run as a whole."""
    cost = tally.spending.cost_usd
    if ending.max_cost_usd is not None and cost is not None and cost > ending.max_cost_usd:
        yield BUDGET, f"the run cost ${cost:.4f}, at most ${ending.max_cost_usd:g} is allowed"
    is_bounded = ending.max_cost_usd is not None or any(each.max_cost_usd is not None for each in settings)
    if is_bounded and ending.unpriced_models:
        yield FAILED, f"the cost is not known: none for {', '.join(ending.unpriced_models)}; set prices under `prices`"


def _judge_suites(
    settings: Sequence[GateSettings],
    outcomes: Sequence[CaseOutcome],
    tally: Tally,
    ending: Ending,
    scenarios: Sequence[ScenarioReport],
) -> Iterator[Finding]:
    costs = {suite: spent.cost_usd for suite, spent in tally.spending_by("suite").items()}
    validations = {each.scenario_key: each for each in scenarios}
    by_suite: dict[str, list[CaseOutcome]] = {}
    for outcome in outcomes:
        by_suite.setdefault(outcome.case.suite, []).append(outcome)
    for suite in settings:
        about = f"{suite.suite}: " if len(settings) > 1 else ""
        judged = _judge_suite(suite, by_suite.get(suite.suite, []), costs.get(suite.suite), ending)
        for code, reason in (*judged, *_validated(suite, validations.get(suite.suite))):
            yield code, about + reason


def _regressions(comparison: Comparison, outcomes: Sequence[CaseOutcome]) -> Iterator[str]:
    yield from comparison.reasons
    if outcomes and not comparison.is_part and not comparison.shares_cases:
        yield "it has no case of this run"


def _judge_suite(
    suite: GateSettings, outcomes: Sequence[CaseOutcome], cost: float | None, ending: Ending
) -> Iterator[Finding]:
    quality = _quality(suite, [each for each in outcomes if _is_told(each, ending)])
    yield from ((FAILED, reason) for reason in quality)
    if suite.max_cost_usd is not None and cost is not None and cost > suite.max_cost_usd:
        yield BUDGET, f"the suite cost ${cost:.4f}, at most ${suite.max_cost_usd:g} is allowed"
    # Of merged results only the number of cases is known that have no row at all.
    errors = sum(outcome.errors for outcome in outcomes) + max(0, suite.cases - len(outcomes))
    if ending.stopped is not None:
        # What never ran because the run was stopped is no error; that it was stopped is said elsewhere.
        errors -= sum(outcome.missing for outcome in outcomes) + max(0, suite.cases - len(outcomes))
    if errors > suite.max_errors:
        yield INFRASTRUCTURE, f"{counted(errors, 'error')}, at most {suite.max_errors} are allowed"
    if ending.stopped is None and all(outcome.verdict == "error" for outcome in outcomes):
        # Without a single grade there is no answer about quality, only about what broke.
        broke = errors > suite.max_errors or ending.unrecorded > 0
        yield INFRASTRUCTURE if broke else FAILED, "no case was graded"


def _is_told(outcome: CaseOutcome, ending: Ending) -> bool:
    """Whether a run has come to an end about a case.

    What it has not decided when it was stopped says nothing about quality; nor does a case with errors in a replay that
    lacks recordings.
    """
    is_undecided = ending.stopped is not None and outcome.is_open
    is_unrecorded = ending.unrecorded > 0 and outcome.errors > 0
    return not is_undecided and not is_unrecorded


def _validated(suite: GateSettings, scenario: ScenarioReport | None) -> Iterator[Finding]:
    """What validators find wrong; one that could not say anything is told, and fails nothing."""
    if scenario is None or suite.validator_errors == "warn":
        return
    for each in scenario.aggregates.validations:
        if isinstance(each, Validation) and each.errors:
            others = each.count("error") - 1
            more = f" (and {others} more)" if others else ""
            yield FAILED, f"validator {each.validator}: {shortened(each.errors[0], MAX_ISSUE)}{more}"


def _quality(suite: GateSettings, outcomes: Sequence[CaseOutcome]) -> list[str]:
    graded = [outcome for outcome in outcomes if outcome.verdict != "error"]
    if not graded:
        return []
    reasons = []
    rate = sum(outcome.verdict == "pass" for outcome in graded) / len(graded)
    if round(rate, PRECISION) < round(suite.min_pass_rate, PRECISION):
        reasons.append("pass rate {} is below {}".format(*apart(rate, suite.min_pass_rate, ".{}%", least=1)))
    mean = describe(graded).mean
    if suite.min_mean_score is not None and mean is not None and mean < round(suite.min_mean_score, PRECISION):
        reasons.append("mean score {} is below {}".format(*apart(mean, suite.min_mean_score, ".{}f", least=3)))
    return reasons
