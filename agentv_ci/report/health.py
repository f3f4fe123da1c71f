"""The health of an eval set for people and for GitHub."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from itertools import groupby
from operator import attrgetter

from agentv_ci.base.text import counted
from agentv_ci.base.workflow_commands import annotation_command
from agentv_ci.contracts.action import Annotation
from agentv_ci.contracts.command_output import HealthFinding, HealthReport
from agentv_ci.report.lines import Line, Style, correlation_line


def health_lines(report: HealthReport) -> Iterator[Line]:
    """Yield the findings by kind, and what they were found in."""
    for kind, findings in groupby(report.findings, key=attrgetter("kind")):
        yield from _of_kind(kind, list(findings))
    for damage in report.damaged:
        yield Line(f"not used: {damage}", "warn")
    days = ""
    if report.first and report.last:
        days = f", {report.first[:10]} to {report.last[:10]}"
    few = ""
    if report.unjudged:
        few = f", {report.unjudged} with too few runs to judge"
    yield Line(f"ledger: {report.source}")
    yield Line(f"{counted(report.runs, 'run')}{days}; {counted(report.cases, 'case')}{few}")
    if (correlation := report.trial_correlation) is not None:
        yield correlation_line(correlation)
    chance = f"a drift is chance in at most {report.false_alarms:.0%} of reports"
    found = counted(len(report.findings), "finding")
    yield Line(f"health: {found}; {chance}", "plain" if report.findings else "good")


def _of_kind(kind: str, findings: Sequence[HealthFinding]) -> Iterator[Line]:
    yield Line(f"{kind.replace('-', ' ')} ({len(findings)})", "title")
    for finding in findings:
        style: Style = "warn" if finding.severity == "warning" else "plain"
        yield Line(f"  {name_of(finding)}: {finding.message}", style)
    # Findings of a kind may differ in what to do.
    for action in dict.fromkeys(finding.action for finding in findings):
        yield Line(f"    {action}", "faint")


def name_of(finding: HealthFinding) -> str:
    """Return what a finding is about."""
    if finding.id is None:
        return f"target {finding.target}"
    return f"{finding.suite}: {finding.id} [{finding.target}]"


def health_text(report: HealthReport) -> str:
    """Return a report as JSON, in which no text is a command to GitHub's runner."""
    return json.dumps(report.model_dump(by_alias=True), indent=2).replace("##[", "##\\u005b") + "\n"


def health_annotations(report: HealthReport) -> str:
    """Return commands to GitHub's runner, the most urgent first."""
    return "".join(f"{annotation_command(_annotation(finding))}\n" for finding in report.findings)


def _annotation(finding: HealthFinding) -> Annotation:
    return Annotation(
        level="warning" if finding.severity == "warning" else "notice",
        title=f"{finding.kind.replace('-', ' ')}: {finding.id or finding.target}",
        message=f"{name_of(finding)} {finding.message}\n{finding.action}",
        path=finding.suite,
    )
