"""Hold a change to the test of its base branch, and say what it does to that test."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import date
from math import inf
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from agentv_ci.app.documents.compile import (
    CompiledPlan,
    Selection,
    compile_paths,
    places_of_targets,
)
from agentv_ci.app.documents.evaluator_lines import EvaluatorLines
from agentv_ci.app.documents.quarantine import QUARANTINE, entries_of
from agentv_ci.base.checkout import tracked_files
from agentv_ci.base.json_access import objects_at, text_at
from agentv_ci.base.text import counted
from agentv_ci.compile.strictness import Lowered, held_to
from agentv_ci.contracts.against_base import (
    MOST_LISTED,
    AgainstBase,
    GateFrom,
    Lowering,
    MissingCases,
)
from agentv_ci.contracts.packed_cases import heads_of
from agentv_ci.contracts.source import locate, normal, relative
from agentv_ci.errors import CannotGoOn, InvalidInput, UsageError
from agentv_ci.github.base_tree import repository_root
from agentv_ci.github.workflow import Workflow
from agentv_ci.load.document import load
from agentv_ci.workspaces.git_refs import commit_of

SHORT = 7
"""Digits of a commit."""
MOST_CASES = 5
"""Cases that are named with a lowering."""
UNREAD = "the base branch was not read"


class Terms(Struct, frozen=True):
    """How a change is held to its base branch."""

    tree: Path | None
    """The files of the base branch; None: they could not be read."""
    problem: str | None
    gate_from: GateFrom
    missing_cases: MissingCases
    pinned: Collection[str]
    """Settings that options replace."""
    stores: Sequence[Path]
    """Files and folders with answers that are used again."""
    recordings: Path | None
    """The folder of a replay."""
    today: date


async def against_base(
    compiled: CompiledPlan,
    selection: Selection,
    terms: Terms,
    workflow: Workflow,
    *,
    cwd: Path,
    variables: Mapping[str, str],
) -> tuple[CompiledPlan, AgainstBase]:
    """Return the plan of a change, held to its base branch, and what the change lowers.

    The plan has the stricter settings of both. If the base branch cannot be compared with, the
    second value says why, and the plan is the change's own.
    """
    about = AgainstBase(
        base=workflow.base_branch or "the base branch",
        gate_from=terms.gate_from,
        missing_cases=terms.missing_cases,
    )
    root = await repository_root(compiled.origin.root, workflow, variables)
    if terms.tree is None or root is None:
        return compiled, about.model_copy(update={"problem": terms.problem or UNREAD})
    about = about.model_copy(
        update={"base": f"{about.base} ({(commit_of(terms.tree, 'HEAD') or '')[:SHORT]})"}
    )
    try:
        base = compile_paths(
            _in_tree(selection, terms.tree, root, cwd), cwd=_moved(cwd, terms.tree, root, cwd)
        )
    except (CannotGoOn, OSError) as error:
        return compiled, about.model_copy(
            update={"problem": _problem(error).replace(f"{terms.tree}/", "")}
        )
    held = held_to(base.plan, compiled.plan, terms.pinned)
    lines = _Lines(compiled)
    found = list(map(lines.lowering, held.lowered))
    found += [
        *await _stored(terms, terms.tree, root, variables),
        *_quarantine(compiled, terms, terms.tree, root),
    ]
    others = [*await _recorded(terms, terms.tree, root, variables), *held.others]
    for path in compiled.origin.dotenv_files:
        others[:0] = [
            f"variables in {name} changed"
            for name in await _changed(path, terms.tree, root, variables)
        ]
    if terms.gate_from == "head":
        found = [
            each.model_copy(update={"is_held": each.is_held and each.kind == "quarantine"})
            for each in found
        ]
    shown = about.model_copy(
        update={
            "missing": held.missing,
            "lowered": tuple(found[:MOST_LISTED]),
            "others": tuple(others[:MOST_LISTED]),
            "more": sum(max(0, len(each) - MOST_LISTED) for each in (found, others)),
        }
    )
    if terms.gate_from == "head":
        return compiled, shown
    return CompiledPlan(held.plan, compiled.origin), shown


def _problem(error: CannotGoOn | OSError) -> str:
    """Return why the documents of the base branch cannot be compiled, in one line."""
    if isinstance(error, InvalidInput):
        errors = (found for found in error.diagnostics if found.severity == "error")
        return f"its documents have errors: {next(errors).message}"
    if isinstance(error, CannotGoOn):
        return error.message
    return str(error)


def _in_tree(selection: Selection, tree: Path, root: Path, cwd: Path) -> Selection:
    """Return the same selection of the files of the base branch."""
    patterns = [str(_moved(cwd / pattern, tree, root, cwd)) for pattern in selection.patterns]
    moved = replace(selection, patterns=patterns)
    if selection.targets is None:
        return moved
    return replace(moved, targets=str(_moved(cwd / selection.targets, tree, root, cwd)))


def _moved(path: Path, tree: Path, root: Path, cwd: Path) -> Path:
    """Return the path of a file of the change in the tree of the base.

    Files elsewhere are not of the change.
    """
    whole = normal(cwd / path)
    if not whole.is_relative_to(root):
        return whole
    return tree / whole.relative_to(root)


class _Lines:
    """Finds where a change lowers something."""

    def __init__(self, compiled: CompiledPlan) -> None:
        self._origin = compiled.origin
        self._suites = {head.suite for head in heads_of(compiled.plan)}
        self._lines = EvaluatorLines(self._origin.root, self._origin.root, most=inf)

    def lowering(self, lowered: Lowered) -> Lowering:
        found, first = lowered.found, next(iter(lowered.cases), None)
        text = found.text
        if found.kind == "case" and first is not None:
            text = f"missing, was in {first.source.path}:{first.source.line}"
        path, line = self._place(lowered)
        ids = dict.fromkeys(case.id for case in lowered.cases)
        return Lowering(
            kind=found.kind,
            text=text,
            cases=tuple(ids)[:MOST_CASES],
            number=len(ids),
            is_held=found.is_held,
            path=path,
            line=line,
        )

    def _place(self, lowered: Lowered) -> tuple[str | None, int | None]:
        found, first = lowered.found, next(iter(lowered.cases), None)
        if found.kind == "case":
            return (found.suite, 1) if found.suite in self._suites else (None, None)
        if found.kind == "target":
            return places_of_targets(self._origin, {found.setting}).get(found.setting, (None, None))
        if first is None:
            suite = found.suite or ""
            names = ("validators",) if found.setting == "validators" else ("gate", found.setting)
            line = self._lines.setting(suite, None, *names) or self._lines.setting(
                suite, None, *names[:1]
            )
            return suite, line or 1
        if found.kind == "evaluator":
            line = self._lines.find(first.suite, first.id, found.setting)
        else:
            line = self._lines.setting(first.suite, first.id, found.setting)
        if line is None:
            return first.source.path, first.source.line
        return first.suite, line


async def _stored(
    terms: Terms, tree: Path, root: Path, variables: Mapping[str, str]
) -> list[Lowering]:
    """Return which of the stored answers that are used again the change has brought along."""
    changed: list[str] = []
    for path in terms.stores:
        changed += await _changed(path, tree, root, variables)
    if not changed:
        return []
    files = counted(len(changed), "file")
    text = f"{files} with stored answers new or changed, which count instead of the agent's"
    return [Lowering(kind="stored", text=text, is_held=False, path=changed[0], line=1)]


async def _recorded(
    terms: Terms, tree: Path, root: Path, variables: Mapping[str, str]
) -> list[str]:
    if terms.recordings is None:
        return []
    changed = await _changed(terms.recordings, tree, root, variables)
    if not changed:
        return []
    return [f"{counted(len(changed), 'recording')} new or changed, such as {changed[0]}"]


async def _changed(path: Path, tree: Path, root: Path, variables: Mapping[str, str]) -> list[str]:
    """Return the files below a path that the change tracks, and adds or edits."""
    if not path.is_relative_to(root):
        return []
    before = await tracked_files(tree, tree / path.relative_to(root), variables)
    after = await tracked_files(root, path, variables)
    return [name for name, content in after.items() if before.get(name) != content]


def _quarantine(compiled: CompiledPlan, terms: Terms, tree: Path, root: Path) -> Iterator[Lowering]:
    """Yield the entries that the change adds to the quarantine; that of the base branch counts."""
    cases = set(map(compiled.plan.key_of, heads_of(compiled.plan)))
    try:
        before, after = (
            entries_of(path, cases, cwd=root, today=terms.today) if path.is_file() else ()
            for path in (tree / QUARANTINE, root / QUARANTINE)
        )
    except UsageError:
        return  # it is invalid, which its diagnostics say
    source = load(root / QUARANTINE, root, named=True) if after else None
    for each in (entry for entry in after if entry not in before):
        assert source is not None
        ids = [text_at(entry, "id") for entry in objects_at(source.data, "quarantine")]
        line = locate(source.mark, ("quarantine", ids.index(each.id))).start[0] + 1
        text = f"quarantine of {each.id} until {each.expires}"
        yield Lowering(
            kind="quarantine",
            text=text,
            is_held=True,
            path=relative(root / QUARANTINE, root),
            line=line,
        )
