"""Markdown for a whole job.

It has the run or why there was none, diagnostics, and changes since a plan.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from msgspec import Struct

from agentv_ci.base.text import counted, listed, shortened
from agentv_ci.contracts.action import ActionRun, PastRun
from agentv_ci.contracts.command_output import DiagnosticsDocument, NamedCase, PlanDiff
from agentv_ci.report.inert_markdown import SIGNS, code, diagnostic_item, fence, folded, item
from agentv_ci.report.renderers import markdown
from agentv_ci.report.view import GATE, Links, RunView, more_text

MAX_LINES = 50
MAX_REASONS = 5
MAX_TEXT = 300
MAX_REASON = 2_000


class Job(Struct, frozen=True):
    """What a job has to report."""

    run: ActionRun
    reported: RunView | None
    """The finished run, if there was one."""
    diagnostics: DiagnosticsDocument | None
    changes: PlanDiff | None
    """Changes since an older plan, if one was given."""
    links: Links
    relative: Callable[[str], str]
    """Return the path of a document relative to its repository."""


def text(job: Job, limit: int, last: PastRun | None = None) -> str:
    """Return at most `limit` characters (tens of thousands are needed).

    The least important parts are left out.

    `last` is the run to compare the figures with, if there is no baseline.
    """
    share = limit // 2 if job.reported is not None else limit - MAX_REASON - MAX_TEXT - 200
    rest = _fitted(job, share)
    left = limit - _size(rest)
    if job.reported is None:
        main = _no_run(job.run)
    else:
        main = markdown.text(job.reported, left, last).rstrip("\n")
    # If a run had no case, the changes explain why.
    is_empty = job.reported is not None and job.reported.report.counts.cases == 0
    return "\n\n".join([*rest, main] if is_empty else [main, *rest]) + "\n"


def _fitted(job: Job, limit: int) -> list[str]:
    """Return diagnostics and changes, with as many lines as fit."""
    rest: list[str] = []
    for most in (MAX_LINES, MAX_LINES // 3, MAX_LINES // 10, 0):
        rest = [*_diagnostics(job, most), *_changes(job.changes, most)]
        if _size(rest) <= limit:
            break
    return rest


def _size(parts: Sequence[str]) -> int:
    """Return how many characters parts take, each with an empty line."""
    return sum(map(len, parts)) + 2 * len(parts)


def _no_run(run: ActionRun) -> str:
    title = f"Evaluations: {GATE[run.verdict]}"
    if run.validate_only and run.verdict in ("pass", "invalid"):
        title = "Documents: invalid"
        if run.verdict == "pass":
            title = "Documents: valid"
    parts = [f"## {SIGNS[run.verdict]} {title}"]
    if run.reason:
        parts.append(fence(shortened(run.reason, MAX_REASON), "text"))
    if run.hint:
        hint = shortened(run.hint, MAX_TEXT)
        parts.append(fence(hint, "yaml") if "\n" in hint else code(hint))
    return "\n\n".join(parts)


def _diagnostics(job: Job, most: int) -> Iterator[str]:
    if job.diagnostics is None:
        return
    diagnostics = job.diagnostics.errors_first
    summary = job.diagnostics.summary
    counts = f"{counted(summary.errors, 'error')}, {counted(summary.warnings, 'warning')}"
    if job.run.validate_only:
        yield f"**{counted(summary.files, 'file')} checked: {counts}**"
    if not diagnostics:
        return
    items = [
        diagnostic_item(diagnostic, job.relative(diagnostic.path), job.links)
        for diagnostic in diagnostics[:most]
    ]
    lines = _cut(items, len(diagnostics))
    if summary.errors or job.run.validate_only:
        yield lines
    else:
        yield folded(f"Documents: {counts}", lines)


def _cut(lines: Sequence[str], number: int) -> str:
    """Return the lines of a list, and a last one that counts the others."""
    return "\n".join([*lines, *map(item, more_text(number, len(lines)))])


def _changes(changes: PlanDiff | None, most: int) -> Iterator[str]:
    if changes is None:
        return
    changed, added, removed = changes.changed, changes.added, changes.removed
    lines = [f"- changed {_named(case)}{_why(case.reasons)}" for case in changed]
    for what, cases in (("added", added), ("removed", removed)):
        lines += [f"- {what} {_named(case)}" for case in cases]
    counts = f"{counted(len(changed), 'case')} changed, {len(added)} added, {len(removed)} removed"
    text = _cut(lines[:most], len(lines))
    if text:
        yield folded(f"Since the older plan: {counts}", text)
    else:
        yield "No case has changed since the older plan."


def _named(case: NamedCase) -> str:
    target = ""
    if case.target is not None:
        target = f" for {_short(case.target)}"
    return f"{_short(case.id)}{target} in {_short(case.row or case.suite)}"


def _why(reasons: tuple[str, ...]) -> str:
    more = []
    if len(reasons) > MAX_REASONS:
        more = [f"{len(reasons) - MAX_REASONS} more"]
    return f": {listed([*map(_short, reasons[:MAX_REASONS]), *more])}"


def _short(text: str) -> str:
    return code(shortened(text, MAX_TEXT))
