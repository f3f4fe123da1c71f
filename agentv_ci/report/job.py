"""Markdown for a whole job: the run, or why there was none; what is wrong with documents; what changed since a plan."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from agentv_ci.contracts.action import ActionRun, ActionVerdict
from agentv_ci.contracts.diagnostics_document import DiagnosticRecord, DiagnosticsDocument
from agentv_ci.contracts.plan_diff import NamedCase, PlanDiff
from agentv_ci.outside import shortened
from agentv_ci.report.inert_markdown import code, fence, folded, link
from agentv_ci.report.links import Links
from agentv_ci.report.reported import ReportedRun
from agentv_ci.report.reporters import markdown
from agentv_ci.suggestions import counted

MAX_DIAGNOSTICS = 50
MAX_CHANGES = 50
MAX_REASONS = 5
MAX_TEXT = 300
MAX_REASON = 2_000

TITLES: Mapping[ActionVerdict, str] = {
    "pass": "✅ Evaluations: passed",
    "fail": "❌ Evaluations: not passed",
    "error": "⚠️ Evaluations: no verdict",
    "invalid": "❌ Evaluations: invalid",
    "nothing": "➖ Evaluations: nothing ran",
    "budget": "⛔ Evaluations: budget used up",
}
"""Of a job without a run report."""


@dataclass(frozen=True, slots=True)
class Job:
    """What is known of a job."""

    run: ActionRun
    reported: ReportedRun | None
    """The finished run; None: there was none."""
    diagnostics: DiagnosticsDocument | None
    changes: PlanDiff | None
    """Since an older plan, when there is one."""
    links: Links
    relative: Callable[[str], str]
    """Return the path of a document from its repository."""


def text(job: Job, limit: int) -> str:
    """Return it all in at most `limit` characters, which must be tens of thousands: what matters least is left out."""
    rest = [*_diagnostics(job), *_changes(job.changes)]
    left = limit - sum(len(each) + 2 for each in rest)
    while rest and left < limit // 2:
        left += len(rest.pop()) + 2
    main = _no_run(job.run) if job.reported is None else markdown.text(job.reported, left).rstrip("\n")
    return "\n\n".join([main, *rest]) + "\n"


def _no_run(run: ActionRun) -> str:
    title = TITLES[run.verdict]
    if run.validate_only and run.verdict in ("pass", "invalid"):
        title = "✅ Documents: valid" if run.verdict == "pass" else "❌ Documents: invalid"
    parts = [f"## {title}"]
    if run.reason:
        parts.append(fence(shortened(run.reason, MAX_REASON), "text"))
    if run.hint:
        parts.append(code(shortened(run.hint, MAX_TEXT)))
    return "\n\n".join(parts)


def _diagnostics(job: Job) -> Iterator[str]:
    if job.diagnostics is None:
        return
    found = [each for file in job.diagnostics.files for each in file.diagnostics]
    summary = job.diagnostics.summary
    counts = f"{counted(summary.errors, 'error')}, {counted(summary.warnings, 'warning')}"
    if job.run.validate_only:
        yield f"**{counted(summary.files, 'file')} checked: {counts}**"
    if not found:
        return
    found.sort(key=lambda each: each.severity != "error")
    lines = [_diagnostic(each, job) for each in found[:MAX_DIAGNOSTICS]]
    lines += [f"- … and {len(found) - MAX_DIAGNOSTICS} more"] if len(found) > MAX_DIAGNOSTICS else []
    said = "\n".join(lines)
    yield said if summary.errors else folded(f"In the documents: {counts}", said)


def _diagnostic(found: DiagnosticRecord, job: Job) -> str:
    path = job.relative(found.path)
    place = link(code(f"{path}:{found.line}:{found.column}"), job.links.to(path, found.line))
    hint = f"; {code(shortened(found.hint, MAX_TEXT))}" if found.hint else ""
    sign = "❌" if found.severity == "error" else "🟡"
    return f"- {sign} {place} {code(shortened(found.message, MAX_TEXT))} {found.rule}{hint}"


def _changes(changes: PlanDiff | None) -> Iterator[str]:
    if changes is None:
        return
    changed, added, removed = changes.changed, changes.added, changes.removed
    lines = [f"- changed {_named(each)}{_why(each.reasons)}" for each in changed]
    lines += [f"- added {_named(each)}" for each in added]
    lines += [f"- removed {_named(each)}" for each in removed]
    more = [f"- … and {len(lines) - MAX_CHANGES} more"] if len(lines) > MAX_CHANGES else []
    counts = f"{counted(len(changed), 'case')} changed, {len(added)} added, {len(removed)} removed"
    said = "\n".join([*lines[:MAX_CHANGES], *more])
    yield folded(f"Since the older plan: {counts}", said) if said else "No case has changed since the older plan."


def _named(case: NamedCase) -> str:
    return f"{code(shortened(case.id, MAX_TEXT))} in {code(shortened(case.suite, MAX_TEXT))}"


def _why(reasons: tuple[str, ...]) -> str:
    more = [f"{len(reasons) - MAX_REASONS} more"] if len(reasons) > MAX_REASONS else []
    return ": " + ", ".join([*(code(shortened(each, MAX_TEXT)) for each in reasons[:MAX_REASONS]), *more])
