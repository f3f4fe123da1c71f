"""Documents → compile → plan."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from itertools import chain, count, filterfalse
from pathlib import Path
from typing import BinaryIO

from msgspec import Struct, field
from msgspec.structs import replace
from pydantic_core import to_json

from agentv_ci.app.documents.documents import Documents, no_targets
from agentv_ci.base.case_rows import ids_of_rows
from agentv_ci.base.json_access import objects_at, text_at
from agentv_ci.base.text import did_you_mean, listed
from agentv_ci.compile.compilation import Compilation
from agentv_ci.compile.digest import StreamedDigest, digests_of
from agentv_ci.compile.document import PlanDocument, PlanWriter
from agentv_ci.compile.overrides import narrowed
from agentv_ci.compile.selection import EVERY_CASE, CaseFilter, facts_of, matches_id
from agentv_ci.contracts.base import JsonObject
from agentv_ci.contracts.cases import matches
from agentv_ci.contracts.diagnostics import Diagnostic
from agentv_ci.contracts.documents import CaseFacts, CheckedDocument, DocumentContext
from agentv_ci.contracts.evals import EvalDocument
from agentv_ci.contracts.packed_cases import heads_of, packed
from agentv_ci.contracts.plan import Plan, PlanCase
from agentv_ci.contracts.source import Source, locate, relative
from agentv_ci.contracts.targets import Target
from agentv_ci.errors import InvalidInput, NothingToRun, UsageError
from agentv_ci.jsonschema.schemas import schema_id
from agentv_ci.load.discover import (
    NO_EVALS_HINT,
    YAML_SUFFIXES,
    DiscoveredFile,
    discover,
    find_dotenv,
    find_root,
)
from agentv_ci.load.document import in_memory, load
from agentv_ci.load.plan import load_plan


class Selection(Struct, frozen=True):
    """Which cases to compile, and for which targets."""

    patterns: Sequence[str]
    targets: str | None = None
    target_names: Sequence[str] = ()
    """Targets that answer every case instead of its own.

    `default` alone means the documents' own; beside others, the target of that name.
    """
    only: CaseFilter = EVERY_CASE
    more_targets: tuple[Target, ...] = ()
    """Targets in addition to those of the document."""
    documents: tuple[JsonObject, ...] = ()
    """Eval documents in memory, as if they were files of the working directory."""
    replaced: Mapping[Path, Path] = field(default_factory=dict)
    """Files that are read in the place of others which documents refer to."""

    @property
    def overriding(self) -> tuple[str, ...]:
        """The targets of all cases, each once, or none."""
        names = tuple(dict.fromkeys(self.target_names))
        return () if names == ("default",) else names

    def sources(self, cwd: Path) -> tuple[Source, ...]:
        """Return the documents in memory as sources, named like no file."""
        names = (cwd / f"document-{number}.yaml" for number in count(1))
        free = filterfalse(os.path.lexists, names)
        root = find_root(cwd / "document", cwd)
        return tuple(in_memory(document, next(free), root) for document in self.documents)


class Origin(Struct, frozen=True):
    """The documents that a plan was compiled from."""

    root: Path
    """The repository its paths are relative to."""
    warnings: tuple[Diagnostic, ...]
    sources: tuple[Path, ...]
    """All files that were read; none of them may be overwritten."""
    dotenv_files: tuple[Path, ...]
    left_out: int = 0
    """Number of selected cases that do not run because others of their files have `only`."""
    unused: tuple[str, ...] = ()
    """Paths and globs in which there is no eval document."""


class CompiledPlan(Struct, frozen=True):
    """A plan in memory."""

    plan: Plan
    origin: Origin


def places_of_targets(origin: Origin, names: Collection[str]) -> dict[str, tuple[str, int]]:
    """Return where the targets files of a plan define targets: a path and a line.

    Paths are relative to the repository.
    """
    places: dict[str, tuple[str, int]] = {}
    for path in origin.sources:
        if path.suffix not in YAML_SUFFIXES or len(places) == len(names):
            continue
        source = load(path, origin.root, named=True)
        if source.kind != "targets":
            continue
        for index, target in enumerate(objects_at(source.data, "targets")):
            name = text_at(target, "name")
            if name is not None and name in names and name not in places:
                line = locate(source.mark, ("targets", index)).start[0] + 1
                places[name] = relative(path, origin.root), line
    return places


def is_experiment(path: Path) -> bool:
    """Whether a path is that of an experiment, whose arms are compiled one by one."""
    # Large eval files are parsed only once.
    if path.suffix not in YAML_SUFFIXES or not path.is_file() or b"arms" not in path.read_bytes():
        return False
    return load(path, path.parent, named=True).kind == "experiment"


def compile_paths(selection: Selection, *, cwd: Path) -> CompiledPlan:
    """Compile eval files, or read one plan.

    Raises InvalidInput with all diagnostics, UsageError, or NothingToRun when nothing is selected.
    """
    files = discover(selection.patterns, cwd)
    if _is_plan(files, selection):
        return _read_plan(files[0].path, selection, cwd)
    reading = _Reading(files, selection, cwd)
    plan = reading.compilation.plan()
    origin = reading.origin(cases=len(plan.cases))
    return CompiledPlan(_preferring_ids(plan, selection.only), origin)


def write_plan(
    selection: Selection, *, cwd: Path, scratch: BinaryIO, watch: Callable[[int], None]
) -> tuple[PlanDocument, Origin]:
    """Compile eval files into the text of a plan, or read one plan.

    Cases are not kept in memory. The text is in `scratch` until it is copied. `watch` is called
    with the number of cases so far. Raises what `compile_paths` raises, and OSError.
    """
    files = discover(selection.patterns, cwd)
    if _is_plan(files, selection) or selection.only.has_globs:
        compiled = compile_paths(selection, cwd=cwd)
        return plan_document(compiled.plan, scratch), compiled.origin
    writer = PlanWriter(schema_id("plan-v1"), scratch)
    reading = _Reading(files, selection, cwd)
    writer.add(reading.compilation.cases(), watch)
    origin = reading.origin(cases=writer.cases)
    return writer.end(reading.compilation.head()), origin


def plan_document(plan: Plan, scratch: BinaryIO) -> PlanDocument:
    """Return the text of a plan in memory; it is in `scratch` until it is copied.

    Raises OSError.
    """
    writer = PlanWriter(schema_id("plan-v1"), scratch)
    writer.add(plan.cases, lambda _: None)
    return writer.end(plan)


def _is_plan(files: Sequence[DiscoveredFile], selection: Selection) -> bool:
    named = [file.path for file in files if file.path.suffix == ".json" and file.named]
    if named and len(files) + len(selection.documents) > 1:
        raise UsageError(
            f"'{named[0]}' is a plan, which cannot be combined with other paths or documents"
        )
    return len(files) == 1 and files[0].path.suffix == ".json"


class _Reading:
    """The documents of a selection, each checked just before it is compiled."""

    def __init__(self, files: Sequence[DiscoveredFile], selection: Selection, cwd: Path) -> None:
        self._files = sorted(files, key=lambda file: file.path)
        self._selection = selection
        self._cwd = cwd
        self._ids: set[str] = set()
        self._tags: set[str] = set()
        self._templates: set[str] = set()
        given = selection.sources(cwd)
        self._files += [DiscoveredFile(source.path, named=True) for source in given]
        self._documents = Documents(
            cwd,
            selection.targets,
            selection.overriding,
            selection.more_targets,
            given=given,
            is_selected=self._selects,
        )
        self._used: set[str] = set()
        """Paths and globs that match an eval document."""
        self._roots: dict[Path, None] = {}
        self._folders: set[Path] = set()
        self._read: list[Path] = []
        self._dotenv: dict[Path, None] = {}
        self._beside: dict[Diagnostic, None] = {}
        self._own: dict[Diagnostic, None] = {}
        self.compilation = Compilation(self._valid(), read_bytes=self._read_bytes)

    def _read_bytes(self, path: Path) -> bytes:
        return self._selection.replaced.get(path, path).read_bytes()

    def _selects(self, case: CaseFacts) -> bool:
        if self._selection.only.eval_ids:
            self._ids.add(case.id)  # those of rows are known only now
        self._tags.update(case.tags)
        return self._selection.only.selects(case)

    def origin(self, *, cases: int) -> Origin:
        """Return the origin of the plan, after its last case; raises NothingToRun or UsageError."""
        only = self._selection.only
        _require_matches(only, self._ids, self._templates)
        left_out = self.compilation.left_out
        if not cases:
            hint = _tags_meant(only, self._tags)
            if left_out:
                hint = "'only' on another case of the file leaves it out"
            raise NothingToRun(f"no case matches {only}", hint)
        _require_tags(only, self._tags)
        if len(self._roots) > 1:
            raise UsageError(f"eval files must be in one repository, not in {listed(self._roots)}")
        (root,) = self._roots
        read = (*self._read, *self.compilation.sources)
        unused = tuple(path for path in self._selection.patterns if path not in self._used)
        return Origin(root, self._diagnostics(), read, tuple(self._dotenv), left_out, unused)

    def _valid(self) -> Iterator[tuple[CheckedDocument, DocumentContext]]:
        """Yield eval documents up to the first invalid one.

        Then check the rest and raise all errors.
        """
        untargeted: UsageError | None = None
        evals = failed = 0
        for file in self._files:
            checked = self._documents.check(file.path, named=file.named)
            if checked.source.kind == "eval":
                evals += 1
                self._used |= file.patterns
                context = self._documents.context(file.path)
                self._take(checked, context)
                failed += not all(other.valid for other in (checked, *context.others))
                untargeted = untargeted or _missing_target(checked, context)
                if not failed and untargeted is None:
                    yield checked, context
            elif checked.source.kind is None:
                self._own.update(dict.fromkeys(checked.diagnostics))
                failed += not checked.valid
        if failed:
            raise InvalidInput(self._diagnostics())
        if not evals:
            raise NothingToRun(
                f"no eval document in {listed(self._selection.patterns)}", NO_EVALS_HINT
            )
        if untargeted is not None:
            raise untargeted

    def _take(self, checked: CheckedDocument, context: DocumentContext) -> None:
        source = checked.source
        self._own.update(dict.fromkeys(checked.diagnostics))
        if isinstance(document := checked.document, EvalDocument):
            for case in document.evalcases:
                if self._selection.only.eval_ids:
                    ids = self._templates if case.is_template else self._ids
                    ids.add(case.id)
                if case.cases_from:
                    self._read.append(source.resolve(case.cases_from.file))
        self._roots[source.root] = None
        self._read.append(source.path)
        if (folder := source.path.parent) not in self._folders:
            self._folders.add(folder)
            self._take_around(source, context)

    def _take_around(self, source: Source, context: DocumentContext) -> None:
        """Take what all documents of a folder share."""
        for other in context.others:
            self._beside.update(dict.fromkeys(other.diagnostics))
            self._read.append(other.source.path)
        if dotenv := find_dotenv(source.path, source.root, self._cwd):
            self._dotenv[dotenv] = None

    def _diagnostics(self) -> tuple[Diagnostic, ...]:
        return tuple(self._beside | self._own)


def _tags_meant(only: CaseFilter, known: Collection[str]) -> str | None:
    """Return which tags those that no case has may mean."""
    meant: list[str] = []
    for tag in only.tags:
        close = did_you_mean(tag, sorted(known))
        if close and tag not in known:
            meant.append(f"'{tag}'{close}")
    return f"no case has the tag {listed(meant)}" if meant else None


def _require_tags(only: CaseFilter, known: Collection[str]) -> None:
    """Raise NothingToRun with the options `--tag` that select no case."""
    unmatched = [tag for tag in only.tags if not any(matches(name, tag) for name in known)]
    if unmatched:
        named = listed(f"'{tag}'{did_you_mean(tag, sorted(known))}" for tag in unmatched)
        raise NothingToRun(f"no case has the tag {named}")


def _require_matches(
    only: CaseFilter, known: Collection[str], templates: Collection[str] = ()
) -> None:
    """Raise NothingToRun with the options `--eval-id` that select no case.

    The error says what they may mean.
    """

    def is_known(pattern: str) -> bool:
        return any(matches_id(case_id, [pattern]) for case_id in known)

    unmatched = list(filterfalse(is_known, only.eval_ids))
    if not unmatched:
        return
    named = listed(f"{pattern}{did_you_mean(pattern, sorted(known))}" for pattern in unmatched)
    hint = None
    if template := next(filter(templates.__contains__, unmatched), None):
        hint = f"'{template}' makes a case of each row: --eval-id '{ids_of_rows(template)}'"
    raise NothingToRun(f"no case matches --eval-id {named}", hint)


def _preferring_ids(plan: Plan, only: CaseFilter) -> Plan:
    """Return a plan of selected cases in which an id selects its case rather than as a glob."""
    if not only.has_globs:
        return plan
    exact = only.preferring({case.id for case in plan.cases})
    return narrowed(plan, lambda case: exact.selects(facts_of(case)))


def _missing_target(checked: CheckedDocument, context: DocumentContext) -> UsageError | None:
    if context.targets is None:
        return no_targets(checked.source.path)
    names = [target.name for target in context.target_list]
    unknown = [name for name in context.target_names if name not in names]
    if not unknown:
        return None
    named = listed(f"'{name}'{did_you_mean(name, names)}" for name in unknown)
    what = "target" if len(unknown) == 1 else "targets"
    return UsageError(
        f"unknown {what} {named}; {context.targets.source.path} defines {listed(names)}"
    )


def _read_plan(path: Path, selection: Selection, cwd: Path) -> CompiledPlan:
    if selection.overriding or selection.targets is not None:
        raise UsageError(
            "--target and --targets cannot be combined with a plan; set them when compiling it"
        )
    plan = read_plan(path)
    if selection.only:
        _require_matches(selection.only, {case.id for case in plan.cases})
        tags = set(chain.from_iterable(case.tags or () for case in heads_of(plan)))
        plan = narrowed(plan, lambda case: selection.only.selects(facts_of(case)))
        if plan.cases:
            _require_tags(selection.only, tags)
        plan = _preferring_ids(plan, selection.only)
    if not plan.cases:
        raise NothingToRun(f"no case of the plan is selected: {selection.only}")
    dotenv = find_dotenv(cwd / "plan", cwd, cwd)
    root = find_root(cwd / "plan", cwd)
    referred = (root / file.path for file in plan.files.values())
    return CompiledPlan(plan, Origin(root, (), (path, *referred), (dotenv,) if dotenv else ()))


def only_changed(compiled: CompiledPlan, old: Path) -> CompiledPlan:
    """Return the plan with only the cases that are not in an older plan.

    Raises what `read_plan` raises.
    """
    known = {case.digest for case in heads_of(read_plan(old))}
    plan = narrowed(compiled.plan, lambda case: case.digest not in known)
    return CompiledPlan(plan, replace(compiled.origin, sources=(*compiled.origin.sources, old)))


def read_plan(path: Path) -> Plan:
    """Return the plan in a file, checked against the published schema and its digests.

    Raises UsageError, or InvalidInput with what the schema rejects.
    """
    stored = load_plan(path)
    plan, digest, forged = stored.plan, StreamedDigest(stored.plan.schema_), list[str]()
    digests = digests_of(plan)

    def checked() -> Iterator[PlanCase]:
        for case, data in stored.cases:
            digest.add(to_json(data))
            if digests.of(case) != case.digest:
                forged.append(case.id)
            yield case

    cases = packed(checked())
    if forged or digest.end(stored.rest) != plan.digest:
        which = "the plan"
        if forged:
            which = f"{'case' if len(forged) == 1 else 'cases'} {listed(forged)}"
        hint = "compile the plan again instead of editing it"
        raise UsageError(f"'{path}': digest mismatch: {which} changed after compilation", hint=hint)
    return plan.model_copy(update={"cases": cases})
