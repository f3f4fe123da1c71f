"""`type: diff`: which files of the workspace have changed, and how much."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Mapping

from agentv_ci.base.text import counted
from agentv_ci.contracts.exchange import Score
from agentv_ci.contracts.plan_evaluators import PlanDiffEvaluator
from agentv_ci.contracts.results import Change
from agentv_ci.evaluate.scoring import share_met
from agentv_ci.evaluate.submission import EvaluatorServices, Submission, without_work
from agentv_ci.workspaces.bases import UnusableWorkspace, changes_by
from agentv_ci.workspaces.diffs import diff_of
from agentv_ci.workspaces.globs import matches
from agentv_ci.workspaces.places import Work
from agentv_ci.workspaces.trees import content_of

Finding = tuple[bool, str]


async def diff(
    settings: PlanDiffEvaluator, submission: Submission, services: EvaluatorServices
) -> Score:
    """Return the share of the rules that the changes keep."""
    work = submission.work
    if not isinstance(work, Work):
        return without_work(work)
    findings = [*_paths(settings, [change.path for change in work.changes])]
    try:
        if settings.max_lines is not None:
            lines = await asyncio.to_thread(_lines, work)
            findings.append((lines <= settings.max_lines, f"{counted(lines, 'line')} changed"))
        if settings.golden is not None:
            patch = submission.files[settings.golden.sha256].content
            findings += await _compared(patch, work, services.environ)
    except (OSError, UnusableWorkspace) as error:
        return Score(error=str(error))
    if not findings:
        findings = [(bool(work.changes), f"{counted(len(work.changes), 'file')} changed")]
    return share_met(findings)


def _lines(work: Work) -> int:
    return sum(file.lines for file in diff_of(work.changes, work.base))


def _paths(settings: PlanDiffEvaluator, changed: list[str]) -> Iterator[Finding]:
    if settings.may_change is not None:
        others = [path for path in changed if not matches(path, settings.may_change)]
        for path in others:
            yield False, f"{path} may not change"
        if not others:
            yield True, "nothing else has changed"
    for glob in settings.must_change or ():
        has_changed = any(matches(path, [glob]) for path in changed)
        yield has_changed, f"{glob} has {'' if has_changed else 'not '}changed"
    for glob in settings.must_not_change or ():
        hit = [path for path in changed if matches(path, [glob])]
        yield not hit, f"{', '.join(hit)} has changed" if hit else f"{glob} has not changed"
    if settings.max_files is not None:
        yield len(changed) <= settings.max_files, f"{counted(len(changed), 'file')} changed"


async def _compared(patch: bytes, work: Work, environ: Mapping[str, str]) -> list[Finding]:
    """Compare with what a patch makes of the base, file by file; white space does not count."""
    wanted = _by_path(await changes_by(patch, work.base, environ))
    found = _by_path(work.changes)
    paths = sorted({*wanted, *found})
    return [_finding(path, found.get(path), wanted.get(path)) for path in paths]


def _by_path(changes: Iterable[Change]) -> dict[str, Change]:
    return {change.path: change for change in changes}


def _finding(path: str, one: Change | None, other: Change | None) -> Finding:
    if one is None:
        return False, f"{path} has not changed"
    if other is None:
        return False, f"{path} is not in the golden patch"
    is_equal = one.link == other.link and _words(content_of(one)) == _words(content_of(other))
    return is_equal, f"{path} is {'' if is_equal else 'not '}as in the golden patch"


def _words(content: bytes | None) -> list[bytes] | None:
    if content is None:
        return None
    return content.split()
