"""Build the run report from the rows of a run."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Literal

from agentv_ci.analysis.cases.counts import (
    cost_per_pass,
    count,
    describe,
    figures_by_tag,
    group,
    repeated,
)
from agentv_ci.analysis.cases.outcomes import CaseOutcome
from agentv_ci.analysis.cases.quarantine import in_quarantine
from agentv_ci.analysis.cases.spending import Spending
from agentv_ci.analysis.cases.tally import Tally
from agentv_ci.analysis.gate import decide_gate, gate_settings
from agentv_ci.base.mappings import grouped
from agentv_ci.contracts.packed_cases import heads_of
from agentv_ci.contracts.plan import Plan
from agentv_ci.contracts.report import (
    Ending,
    GateSettings,
    Group,
    GuidelineText,
    RunReport,
    ScenarioReport,
)
from agentv_ci.contracts.results import ResultRow
from agentv_ci.jsonschema.schemas import schema_id

if TYPE_CHECKING:
    from agentv_ci.analysis.comparison.comparison import BaselineComparison
    from agentv_ci.contracts.comparison import Comparison


def report(
    plan: Plan,
    rows: Iterable[ResultRow],
    ending: Ending,
    *,
    scenarios: Sequence[ScenarioReport] = (),
    against: BaselineComparison | None = None,
) -> tuple[RunReport, tuple[CaseOutcome, ...]]:
    """Return the run report of a plan, and the outcome of every case in the plan's order.

    Those of an experiment are in the order of its files. The rows are read once, and their order
    does not matter. `scenarios` has the results of validators.
    """
    tally = Tally.of(plan, compares=against is not None)
    for row in rows:
        tally.add(row)
    outcomes = in_quarantine(
        tally.outcomes(leaves_cases=ending.leaves_cases, is_decided=ending.stopped == "decided"),
        ending.quarantine,
    )
    if ending.experiment is not None:
        outcomes = _in_order(outcomes, [arm.name for arm in ending.experiment.arms])
    settings, comparison = gate_settings(plan), None
    if against is not None and not ending.dry_run:
        from agentv_ci.analysis.comparison.comparison import compare  # few runs are compared

        comparison = compare(against, outcomes, settings)
    run_report = run_report_of(
        tally,
        outcomes,
        settings,
        ending,
        plan_digest=plan.digest,
        scenarios=scenarios,
        comparison=comparison,
        guidelines=_guidelines(plan),
    )
    return run_report, outcomes


def _in_order(outcomes: Iterable[CaseOutcome], arms: Sequence[str]) -> tuple[CaseOutcome, ...]:
    """Return the outcomes of an experiment, which runs in random order, in that of its files."""
    ranks = {name: rank for rank, name in enumerate(arms)}

    def place(outcome: CaseOutcome) -> tuple[str, int, str, int]:
        case = outcome.case
        return case.suite, case.source.line, case.id, ranks.get(outcome.target, 0)

    return tuple(sorted(outcomes, key=place))


def run_report_of(
    tally: Tally,
    outcomes: Sequence[CaseOutcome],
    settings: Sequence[GateSettings],
    ending: Ending,
    *,
    plan_digest: str | None,
    scenarios: Sequence[ScenarioReport],
    comparison: Comparison | None,
    guidelines: Sequence[GuidelineText] = (),
) -> RunReport:
    """Return the run report of a tally, including the gate; `outcomes` are those of the tally."""
    spent = tally.spending
    counts = count(
        outcomes,
        rows=tally.rows,
        cached=tally.cached,
        cases=sum(suite.cases for suite in settings),
        leaves_cases=ending.leaves_cases,
    )
    return RunReport(
        schema_=schema_id("report-v1"),
        plan_digest=plan_digest,
        shard=ending.shard,
        stopped=ending.stopped,
        incomplete=ending.incomplete,
        unrecorded=ending.unrecorded,
        replayed=ending.replayed,
        again=ending.again,
        filtered=ending.filtered,
        rescored=ending.rescored,
        dry_run=ending.dry_run,
        counts=counts,
        statistics=describe(outcomes),
        gate=decide_gate(settings, outcomes, tally, ending, scenarios, comparison),
        suites=_groups("suite", tally, outcomes),
        targets=_groups("target", tally, outcomes),
        tags=figures_by_tag(outcomes),
        evaluators=tally.evaluators.figures(),
        repeated=tuple(repeated(outcome) for outcome in outcomes if outcome.ran > 1),
        quarantine=ending.quarantine,
        comparison=comparison,
        against_base=ending.against_base,
        experiment=ending.experiment,
        scenario_reports=tuple(scenarios),
        usage=spent.all_usage,
        cost_usd=spent.cost_usd,
        cost_per_pass_usd=cost_per_pass(spent.cost_usd, counts.passed),
        unpriced_models=ending.unpriced_models,
        cut_answers=dict(sorted(tally.cut.items())) or None,
        broken_contracts=tally.evaluators.broken_contracts,
        compared_masked=tally.evaluators.compared_masked,
        concurrency=ending.concurrency,
        guidelines=tuple(guidelines),
        origin=ending.origin,
        write_error=ending.write_error,
        duration_s=ending.duration_s,
    )


def _guidelines(plan: Plan) -> list[GuidelineText]:
    texts: dict[str, str] = {}
    for case in heads_of(plan):
        for guideline in case.guidelines:
            texts[guideline.path] = plan.files[guideline.sha256].text
    return [GuidelineText(path=path, text=texts[path]) for path in sorted(texts)]


def _groups(
    what: Literal["suite", "target"], tally: Tally, outcomes: Iterable[CaseOutcome]
) -> tuple[Group, ...]:
    by_name = grouped(
        outcomes, lambda outcome: outcome.suite if what == "suite" else outcome.target
    )
    spending = tally.spending_by(what)
    # Targets are shown side by side in the order of the author.
    names = sorted(by_name) if what == "suite" else by_name
    return tuple(group(name, by_name[name], spending.get(name, Spending())) for name in names)
