"""The first step of the GitHub Action: writes the results folder of one run.

The step that publishes reads it.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Collection, Iterable, Mapping, Sequence
from hashlib import sha256
from pathlib import Path

from pydantic import BaseModel

from agentv_ci.analysis import gate
from agentv_ci.app.documents.compile import CompiledPlan, plan_document
from agentv_ci.app.run.files import report_path
from agentv_ci.base.atomic import replacing
from agentv_ci.base.json_access import well_formed
from agentv_ci.contracts import action
from agentv_ci.contracts.action import ActionRun, ActionVerdict
from agentv_ci.contracts.command_output import PlanDiff
from agentv_ci.contracts.diagnostics import Diagnostic, FileDiagnostics
from agentv_ci.errors import BUG, INVALID, NOTHING, UsageError
from agentv_ci.report.diagnostics import document

FILES = (
    action.RESULTS,
    report_path(Path(action.RESULTS)).name,
    action.JUNIT,
    action.HTML,
    action.PLAN,
    action.PLAN_DIFF,
    action.PROOF,
    action.DIAGNOSTICS,
    action.RUN,
    action.COMMENT,
)
"""The files in the folder after both steps."""


OWN_FOLDER = "use a separate results-dir for every run"


def prepare(folder: Path, inputs: Collection[Path], use: str | None) -> None:
    """Create the folder, or remove an earlier run's files from it, and record that this run began.

    `inputs` are the resolved paths of inputs. Raises OSError, and UsageError if a file of the
    folder is an input or not from an earlier run.
    """
    refuse_links(folder)
    folder.mkdir(parents=True, exist_ok=True)
    paths = list(map(folder.joinpath, FILES))
    left = [path for path in paths if path.is_symlink() or path.exists()]
    if left and folder / action.RUN not in left:
        raise UsageError(
            f"refusing to overwrite '{left[0]}': it is not from an earlier run", hint=OWN_FOLDER
        )
    for path in left:
        if path.resolve() in inputs:
            raise UsageError(f"refusing to overwrite '{path}': it is an input", hint=OWN_FOLDER)
    for path in left:
        path.unlink()
    begun = action_run(BUG, root=folder, reason="the run was killed, perhaps for lack of memory")
    write_run(folder, begun.model_copy(update={"use": use}), ())


def refuse_links(folder: Path) -> None:
    """Raise UsageError if a folder, or one that it is in, is a link.

    What a checkout contains may point anywhere. Only folders below the working directory are
    checked, since the others are the runner's.
    """
    cwd = Path.cwd()
    for path in (folder, *folder.parents):
        if path.is_relative_to(cwd) and path != cwd and path.is_symlink():
            raise UsageError(f"'{path}' is a symbolic link; expected a directory")


def this_use(environ: Mapping[str, str]) -> str | None:
    """Return an id of this use of the action, None outside of it.

    Each use installs the tool into a folder of its own, whose name cannot be guessed.
    """
    command = environ.get("AGENTV_CI")
    if not command:
        return None
    return sha256(command.encode("utf-8", "surrogateescape")).hexdigest()


def action_run(
    exit_code: int,
    *,
    root: Path,
    validate_only: bool = False,
    reason: str | None = None,
    hint: str | None = None,
) -> ActionRun:
    """Return the record of a run from its exit code."""
    verdict = _verdict(exit_code)
    if validate_only and verdict == "fail":
        verdict = "invalid"
    return ActionRun(
        exit_code=exit_code,
        verdict=verdict,
        reason=reason,
        hint=hint,
        validate_only=validate_only,
        root=str(root),
    )


def _verdict(exit_code: int) -> ActionVerdict:
    """Return the verdict of an exit code: that of the gate, or an error."""
    if exit_code == INVALID:
        return "invalid"
    if exit_code == NOTHING:
        return "nothing"
    match gate.VERDICTS.get(exit_code):
        case None | "interrupted" | "dry-run":
            return "error"
        case verdict:
            return verdict


def write_plan(folder: Path, compiled: CompiledPlan, changes: PlanDiff | None) -> None:
    """Write a plan and its diff to an older one; raises OSError."""
    with replacing(folder / action.PLAN) as file, tempfile.TemporaryFile() as scratch:
        plan_document(compiled.plan, scratch).copy_to(file)
    if changes is not None:
        _write(folder / action.PLAN_DIFF, changes)


def write_run(folder: Path, run: ActionRun, files: Sequence[FileDiagnostics]) -> None:
    """Write the record of a run and its diagnostics; raises OSError."""
    if files:
        _write(folder / action.DIAGNOSTICS, document(files, 0, strict=False))
    _write(folder / action.RUN, run)


def by_file(diagnostics: Iterable[Diagnostic], root: Path) -> list[FileDiagnostics]:
    """Return diagnostics grouped by file."""
    by_path: dict[str, list[Diagnostic]] = {}
    for each in diagnostics:
        by_path.setdefault(str(each.path), []).append(each)
    return [
        FileDiagnostics(Path(path), root, None, tuple(own), without_targets=False)
        for path, own in by_path.items()
    ]


def _write(path: Path, document: BaseModel) -> None:
    with replacing(path) as file:
        # File names and arguments need not be valid UTF-8.
        data = well_formed(document.model_dump(mode="json", by_alias=True))
        file.write((json.dumps(data, indent=2) + "\n").encode())
