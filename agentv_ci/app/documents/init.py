"""New projects: decides what to write before writing anything; existing files are kept."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath
from typing import Literal

from msgspec import Struct

from agentv_ci.base.json_access import objects_at, text_at
from agentv_ci.base.text import listed
from agentv_ci.contracts.base import JsonObject
from agentv_ci.contracts.environment_references import variables_in
from agentv_ci.contracts.source import normal
from agentv_ci.errors import Interrupted, UsageError
from agentv_ci.load.discover import find_root, targets_in
from agentv_ci.load.document import load
from agentv_ci.scaffold.drafts import EXAMPLE, SCHEMAS, STARTERS, WORKFLOWS, Choices, Draft, drafts

Fate = Literal["written", "kept", "pasted"]
"""Whether a file is new, is kept, or has to be edited by the user."""

STALE = "schema of another version; to update it, delete it and run init again"


class Step(Struct, frozen=True):
    """One file of a project and its fate."""

    fate: Fate
    path: Path
    text: str
    """The text to write or to paste."""
    note: str = ""
    """A remark on a file that is kept."""


class Start(Struct, frozen=True):
    """All files of a new project."""

    folder: Path
    steps: tuple[Step, ...]
    choices: Choices
    """The user's choices, or those that fit an existing targets file."""

    def of(self, fate: Fate) -> tuple[Step, ...]:
        """Return the steps with a fate."""
        return tuple(step for step in self.steps if step.fate == fate)


def plan_start(folder: Path, choices: Choices) -> Start:
    """Decide what to write into a folder; raises UsageError if something is in the way."""
    folder = normal(folder)
    try:
        if not folder.is_dir() and (folder.exists() or folder.is_symlink()):
            raise UsageError(f"'{folder}' is not a directory")
        targets = targets_in((folder / EXAMPLE).parent, folder)
        fitting = choices if targets is None else _as_there(targets, choices)
        return Start(folder, tuple(_steps(folder, targets, fitting, wished=choices)), fitting)
    except OSError as error:
        raise UsageError(f"cannot read '{folder}': {error.strerror}") from error


def write_start(start: Start) -> None:
    """Write the planned files without overwriting any, even one created meanwhile.

    Raises UsageError when that fails, and Interrupted; their hints name the files written so far.
    """
    written: list[Path] = []
    try:
        start.folder.mkdir(parents=True, exist_ok=True)
        for step in start.of("written"):
            _create(step.path, step.text)
            written.append(step.path)
    except OSError as error:
        name = error.filename or start.folder
        raise UsageError(
            f"cannot write '{name}': {error.strerror}", hint=_so_far(written)
        ) from error
    except KeyboardInterrupt as error:
        raise Interrupted("interrupted", hint=_so_far(written)) from error


def _steps(
    folder: Path, targets: Path | None, choices: Choices, *, wished: Choices
) -> Iterator[Step]:
    if targets is not None:
        note = ""
        if wished.is_chosen and wished.provider != choices.provider:
            own = f"its target '{choices.target}'"
            note = f"{own} does not use {wished.provider}; add or change a target"
        yield Step("kept", targets, "", note=note)
    root = find_root(folder / "evals", folder)
    subfolder = folder.relative_to(root).as_posix() if root != folder else None
    for draft in drafts(choices, subfolder=subfolder):
        # GitHub reads workflows only at the root of a repository, and nothing is written outside of
        # the folder.
        if draft.path.startswith(WORKFLOWS) and subfolder is not None:
            yield _to_paste(root / draft.path, draft)
        else:
            yield _step(folder, draft)


def _as_there(targets: Path, choices: Choices) -> Choices:
    """Return choices that match existing targets: the target `default`, else the first."""
    data = load(targets, targets.parent, named=True).data
    there: dict[str, JsonObject] = {}
    for target in objects_at(data, "targets"):
        if name := text_at(target, "name"):
            there[name] = target
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
    """Leave a file to the user, unless it already has the text."""
    if path.is_file() and draft.sign in _read(path):
        return Step("kept", path, "")
    return Step("pasted", path, draft.paste or draft.text)


def _read(path: Path) -> str:
    return path.read_text("utf-8", errors="replace")


def _is_there(folder: Path, name: str) -> bool:
    """Whether a file exists; raises UsageError if something else prevents its creation."""
    path = folder / name
    if path.is_file():
        return True
    parents = list(map(folder.joinpath, reversed(PurePosixPath(name).parents[:-1])))
    for part in (*parents, path):
        if part.is_symlink():
            raise UsageError(f"'{part}' is a symbolic link", hint=_way_out(name))
        if part.exists() and (part == path or not part.is_dir()):
            raise UsageError(f"'{part}' is in the way of '{name}'", hint=_way_out(name))
    return False


def _way_out(name: str) -> str:
    flags = {".github": "--no-workflow", ".vscode": "--no-editor"}
    flag = flags.get(PurePosixPath(name).parts[0])
    way = f"use {flag}" if flag else "choose another folder"
    return f"move it, or {way}"


def _create(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("x", encoding="utf-8", newline="\n") as file:
        try:
            file.write(text)
            file.flush()
        except BaseException:
            # A partial file would look like the user's own.
            with contextlib.suppress(OSError):
                path.unlink()
            raise


def _so_far(written: Sequence[Path]) -> str:
    if not written:
        return "nothing written"
    return f"written so far: {listed(written)}"
