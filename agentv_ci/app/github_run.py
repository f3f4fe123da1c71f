"""The first step of the GitHub Action: a folder that holds what one run leaves, for the step that publishes."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Collection, Iterable, Mapping, Sequence
from hashlib import sha256
from pathlib import Path

from pydantic import BaseModel

from agentv_ci.app.compile import CompiledPlan, plan_document
from agentv_ci.app.report_files import report_path
from agentv_ci.atomic import replacing
from agentv_ci.contracts import action
from agentv_ci.contracts.action import ActionRun, ActionVerdict
from agentv_ci.contracts.diagnostics import Diagnostic
from agentv_ci.contracts.documents import FileDiagnostics
from agentv_ci.contracts.plan_summaries import PlanDiff
from agentv_ci.errors import BUDGET, BUG, FAILED, INFRASTRUCTURE, PASSED, UsageError
from agentv_ci.json_access import well_formed
from agentv_ci.report.diagnostics import document

FILES = (
    action.RESULTS,
    report_path(Path(action.RESULTS)).name,
    action.JUNIT,
    action.HTML,
    action.PLAN,
    action.PLAN_DIFF,
    action.DIAGNOSTICS,
    action.RUN,
    action.COMMENT,
)
"""What lies in the folder when both steps have ended."""

VERDICTS: Mapping[int, ActionVerdict] = {
    PASSED: "pass",
    FAILED: "fail",
    2: "invalid",
    3: "nothing",
    INFRASTRUCTURE: "error",
    BUDGET: "budget",
}
"""What an exit status says; all others are errors."""
OWN_FOLDER = "results-dir names a folder; give every run one of its own"


def prepare(folder: Path, inputs: Collection[Path], use: str | None) -> None:
    """Make the folder, without what an earlier run has left there, and say that this one has begun.

    `inputs` are the paths, all links followed, of what is needed now. Raises UsageError where that, or something that
    no run has left, lies in the place of a result; OSError.
    """
    if folder.is_symlink():
        raise UsageError(f"'{folder}' is a symbolic link; results go into a folder")
    folder.mkdir(parents=True, exist_ok=True)
    left = [path for name in FILES if (path := folder / name).is_symlink() or path.exists()]
    if left and folder / action.RUN not in left:
        raise UsageError(f"'{left[0]}' would be overwritten, and no earlier run has left it there", hint=OWN_FOLDER)
    for path in left:
        if path.resolve() in inputs:
            raise UsageError(f"'{path}' is an input, and this run would write it anew", hint=OWN_FOLDER)
    for path in left:
        path.unlink()
    begun = action_run(BUG, root=folder, reason="the run was ended before it could say how, such as for lack of memory")
    write_run(folder, begun.model_copy(update={"use": use}), ())


def this_use(environ: Mapping[str, str]) -> str | None:
    """Return what distinguishes this use of the action from all others; None outside of it.

    Each installs the tool into a folder of its own, whose name cannot be guessed.
    """
    command = environ.get("AGENTV_CI")
    return sha256(command.encode("utf-8", "surrogateescape")).hexdigest() if command else None


def action_run(
    exit_code: int, *, root: Path, validate_only: bool = False, reason: str | None = None, hint: str | None = None
) -> ActionRun:
    """Return how a run ended, from its exit status."""
    verdict = VERDICTS.get(exit_code, "error")
    return ActionRun(
        exit_code=exit_code,
        verdict="invalid" if validate_only and verdict == "fail" else verdict,
        reason=reason,
        hint=hint,
        validate_only=validate_only,
        root=str(root),
    )


def write_plan(folder: Path, compiled: CompiledPlan, changes: PlanDiff | None) -> None:
    """Write a plan, and what changed since an older one; raises OSError."""
    with replacing(folder / action.PLAN) as file, tempfile.TemporaryFile() as scratch:
        plan_document(compiled.plan, scratch).copy_to(file)
    if changes is not None:
        _write(folder / action.PLAN_DIFF, changes)


def write_run(folder: Path, run: ActionRun, files: Sequence[FileDiagnostics]) -> None:
    """Write how the run ended, and what is wrong with documents; raises OSError."""
    if files:
        _write(folder / action.DIAGNOSTICS, document(files, 0, strict=False))
    _write(folder / action.RUN, run)


def by_file(diagnostics: Iterable[Diagnostic], root: Path) -> list[FileDiagnostics]:
    """Return diagnostics file by file."""
    by_path: dict[str, list[Diagnostic]] = {}
    for each in diagnostics:
        by_path.setdefault(str(each.path), []).append(each)
    return [FileDiagnostics(Path(path), root, None, tuple(own), without_targets=False) for path, own in by_path.items()]


def _write(path: Path, document: BaseModel) -> None:
    with replacing(path) as file:
        # Names of files, and what was given, need not be text.
        data = well_formed(document.model_dump(mode="json", by_alias=True))
        file.write((json.dumps(data, indent=2) + "\n").encode())
