"""A new project: what is written, decided before anything is; what is there already stays as it is."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Literal

from agentv_ci.contracts.environment_references import variables_in
from agentv_ci.contracts.source import normal
from agentv_ci.errors import Interrupted, UsageError
from agentv_ci.json_access import objects_at, text_at
from agentv_ci.load.discover import find_root, targets_in
from agentv_ci.load.document import load
from agentv_ci.scaffold.drafts import EXAMPLE, SCHEMAS, STARTERS, WORKFLOWS, Choices, Draft, drafts
from agentv_ci.text import listed

Fate = Literal["written", "kept", "pasted"]
"""Whether a file is new, is left as it is, or is for the user to write to."""

STALE = "not the schema of this version; delete it and run init again to renew it"


@dataclass(frozen=True, slots=True)
class Step:
    """What becomes of one file."""

    fate: Fate
    path: Path
    text: str
    """What is written, or what the user is to paste."""
    note: str = ""
    """What is worth knowing of a file that is left as it is."""


@dataclass(frozen=True, slots=True)
class Start:
    """Everything that a new project begins with."""

    folder: Path
    steps: tuple[Step, ...]
    choices: Choices
    """What it is for: what was wished, or what is there."""

    def of(self, fate: Fate) -> tuple[Step, ...]:
        """Return what a fate befalls."""
        return tuple(step for step in self.steps if step.fate == fate)


def plan_start(folder: Path, choices: Choices) -> Start:
    """Decide what is written into a folder; raises UsageError when something stands in the way."""
    folder = normal(folder)
    try:
        if not folder.is_dir() and (folder.exists() or folder.is_symlink()):
            raise UsageError(f"'{folder}' is not a folder")
        targets = targets_in((folder / EXAMPLE).parent, folder)
        fitting = choices if targets is None else _as_there(targets, choices)
        return Start(folder, tuple(_steps(folder, targets, fitting, wished=choices)), fitting)
    except OSError as error:
        raise UsageError(f"cannot look into '{folder}': {error.strerror}") from error


def write_start(start: Start) -> None:
    """Write what is planned; nothing that is there is overwritten, even what was put there meanwhile.

    Raises UsageError when that fails, and Interrupted; both say what was written.
    """
    written: list[Path] = []
    try:
        start.folder.mkdir(parents=True, exist_ok=True)
        for step in start.of("written"):
            _create(step.path, step.text)
            written.append(step.path)
    except OSError as error:
        name = error.filename or start.folder
        raise UsageError(f"cannot write '{name}': {error.strerror}", hint=_so_far(written)) from error
    except KeyboardInterrupt as error:
        raise Interrupted("interrupted", hint=_so_far(written)) from error


def _steps(folder: Path, targets: Path | None, choices: Choices, *, wished: Choices) -> Iterator[Step]:
    if targets is not None:
        is_other = wished.is_chosen and wished.provider != choices.provider
        note = f"it asks '{choices.target}', not {wished.provider}: add a target to it" if is_other else ""
        yield Step("kept", targets, "", note=note)
    root = find_root(folder / "evals", folder)
    subfolder = folder.relative_to(root).as_posix() if root != folder else None
    for draft in drafts(choices, subfolder=subfolder):
        # GitHub looks for workflows at the root of a repository only, and nothing is written outside the folder.
        is_above = draft.path.startswith(WORKFLOWS) and subfolder is not None
        yield _to_paste(root / draft.path, draft) if is_above else _step(folder, draft)


def _as_there(targets: Path, choices: Choices) -> Choices:
    """Return choices that go with targets that are there: those of the target `default`, else of the first."""
    data = load(targets, targets.parent, named=True).data
    there = {name: each for each in objects_at(data, "targets") if (name := text_at(each, "name"))}
    asked = "default" if "default" in there or not there else next(iter(there))
    provider = text_at(there.get(asked), "provider") or ""
    return Choices(
        provider=provider if provider in STARTERS else "mock",
        workflow=choices.workflow,
        editor=choices.editor,
        target=asked,
        references=tuple(dict.fromkeys(variables_in(json.dumps(data, default=str)))),
    )


def _step(folder: Path, draft: Draft) -> Step:
    path = folder / draft.path
    if not _is_there(folder, draft.path):
        return Step("written", path, draft.text)
    if draft.paste is not None:
        return _to_paste(path, draft)
    is_stale = draft.path.startswith(f"{SCHEMAS}/") and _read(path) != draft.text
    return Step("kept", path, "", note=STALE if is_stale else "")


def _to_paste(path: Path, draft: Draft) -> Step:
    """Leave it to the user to write to a file, unless that was done."""
    is_done = path.is_file() and draft.sign in _read(path)
    return Step("kept", path, "") if is_done else Step("pasted", path, draft.paste or draft.text)


def _read(path: Path) -> str:
    return path.read_text("utf-8", errors="replace")


def _is_there(folder: Path, name: str) -> bool:
    """Whether a file is there; raises UsageError when it cannot be made because of something else."""
    path = folder / name
    if path.is_file():
        return True
    parents = [folder / parent for parent in reversed(PurePosixPath(name).parents[:-1])]
    for each in (*parents, path):
        if each.is_symlink():
            raise UsageError(f"'{each}' is a link that leads elsewhere", hint=_way_out(name))
        if each.exists() and (each == path or not each.is_dir()):
            raise UsageError(f"'{each}' is in the way of '{name}'", hint=_way_out(name))
    return False


def _way_out(name: str) -> str:
    flags = {".github": "--no-workflow", ".vscode": "--no-editor"}
    flag = flags.get(PurePosixPath(name).parts[0])
    return f"move it away, or do without by {flag}" if flag else "move it away, or begin in another folder"


def _create(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("x", encoding="utf-8", newline="\n") as file:
        try:
            file.write(text)
            file.flush()
        except BaseException:
            # Half a file would be taken for one that the user wrote.
            with contextlib.suppress(OSError):
                path.unlink()
            raise


def _so_far(written: Sequence[Path]) -> str:
    return f"written before: {listed(written)}" if written else "nothing was written"
