"""Markdown tables that show targets side by side."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from agentv_ci.analysis.cases.outcomes import CaseOutcome
from agentv_ci.base.text import counted, dollars, shortened
from agentv_ci.contracts.report import Group, RunReport
from agentv_ci.report import view
from agentv_ci.report.inert_markdown import SIGNS, cell_code, folded, table
from agentv_ci.report.matrix import MatrixCase, matrix_cases
from agentv_ci.report.view import RunView

MAX_CASES = 50
MAX_TARGETS = 10
MAX_NAME = 100


SOMETIMES = ("not_run", "skipped", "quarantined")
"""Figures that have a column if a target has such cases."""


def target_table(run: RunView) -> str:
    """Return the figures of each target."""
    targets = run.report.targets[:MAX_TARGETS]
    others = [name for name in SOMETIMES if any(getattr(target, name) for target in targets)]
    head = ["", "target", "cases", "passed", "failed", "errors"]
    head += [name.replace("_", " ") for name in others]
    head += ["mean", "cost"]
    shows_each = any(target.cost_per_pass_usd is not None for target in targets)
    if shows_each:
        head.append("cost per passed case")
    head.append("time")

    def row(group: Group) -> Sequence[str]:
        counts = [group.cases, group.passed, group.failed, group.errored]
        counts += [getattr(group, name) for name in others]
        costs = [group.total_usd, group.cost_per_pass_usd] if shows_each else [group.total_usd]
        return _target_row(group, counts, costs, run.report)

    text = table(head, map(row, targets), left=2)
    return "\n\n".join([text, *view.more_text(len(run.report.targets), MAX_TARGETS, "target")])


def _target_row(
    group: Group, counts: Sequence[int], costs: Sequence[float | None], report: RunReport
) -> Sequence[str]:
    verdict = report.gate.targets.get(group.name)
    sign = SIGNS[verdict] if verdict is not None else ""
    mean = ""
    if group.mean is not None:
        mean = f"{group.mean:.3f}"
    least = "≥ " if view.lacks_price(report, group) else ""
    amounts = ["" if cost is None else least + dollars(cost) for cost in costs]
    time = ""
    if group.duration_s is not None:
        time = view.duration_text(group.duration_s)
    return [sign, _name(group.name), *map(str, counts), mean, *amounts, time]


def case_table(run: RunView, named: Callable[[CaseOutcome], str]) -> str:
    """Return the verdict of each target for each case, those that tell the targets apart first."""
    cases = matrix_cases(run)
    targets = [target.name for target in run.report.targets[:MAX_TARGETS]]

    def row(case: MatrixCase) -> Sequence[str]:
        return [named(case.first), *(_cell(case.outcomes.get(target)) for target in targets)]

    text = table(["case", *map(_name, targets)], map(row, cases[:MAX_CASES]), left=1 + len(targets))
    differing = sum(case.differs for case in cases)
    title = f"Cases by target: verdicts differ in {differing} of {counted(len(cases), 'case')}"
    return folded(title, "\n\n".join([text, *view.more_text(len(cases), MAX_CASES, "case")]))


def _cell(outcome: CaseOutcome | None) -> str:
    if outcome is None or outcome.not_run:
        return "–"
    if outcome.verdict == "skipped":
        return outcome.verdict
    score = ""
    if outcome.verdict != "error":
        score = f" {outcome.score:.3f}"
    trials = ""
    if len(outcome.trials) > 1:
        trials = f" ({outcome.passed}/{len(outcome.trials)})"
    mark = " 🔒" if outcome.quarantine is not None else ""
    return f"{SIGNS[outcome.verdict]}{score}{trials}{mark}"


def _name(target: str) -> str:
    return cell_code(shortened(target, MAX_NAME))
