"""Experiment → arms → one plan."""

from __future__ import annotations

import shutil
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain, starmap
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from agentv_ci.analysis.experiment.experiment import Judgement
from agentv_ci.analysis.experiment.plan import experiment_plan
from agentv_ci.app.documents.commit_trees import CommitTrees
from agentv_ci.app.documents.compile import CompiledPlan, Origin, Selection, compile_paths
from agentv_ci.app.documents.documents import Documents, no_targets, require_valid
from agentv_ci.app.documents.validate import Checks
from agentv_ci.compile.arms import ArmChanges, changed, equal_arms, in_workspaces, interleaved
from agentv_ci.compile.commit_arms import at_commit
from agentv_ci.compile.overrides import Overrides, override
from agentv_ci.compile.references import Files
from agentv_ci.contracts.cases import in_matrix
from agentv_ci.contracts.diagnostics import Diagnostic
from agentv_ci.contracts.documents import CheckedDocument
from agentv_ci.contracts.experiment import Arm, ExperimentDocument
from agentv_ci.contracts.plan import Plan
from agentv_ci.contracts.plan_evaluators import flat
from agentv_ci.contracts.source import Source, relative
from agentv_ci.errors import InvalidInput, NothingToRun, UsageError
from agentv_ci.validate.findings import Finder
from agentv_ci.validate.rules import experiments


class CompiledExperiment(Struct, frozen=True):
    """An experiment, and the plan with the cases of all its arms."""

    document: ExperimentDocument
    name: str
    """Its file, relative to the repository."""
    compiled: CompiledPlan

    def judgement(self, plan: Plan, *, regardless: bool) -> Judgement:
        """Return what judges the rows of this plan.

        `regardless`: even if more than the arms differs.
        """
        return Judgement(experiment_plan(self.document, self.name, plan), regardless)


def compile_experiment(
    path: str, selection: Selection, *, cwd: Path, trees: CommitTrees
) -> CompiledExperiment:
    """Compile an experiment.

    `selection` has the targets file and the filters, `trees` the commits of arms.

    Raises InvalidInput with all diagnostics of a document, UsageError, or NothingToRun when no case
    is selected.
    """
    checked, finder = _checked(cwd / path, selection, cwd)
    document, source = checked.document, checked.source
    assert isinstance(document, ExperimentDocument), "it is valid"
    evals = tuple(str(source.resolve(path)) for path in document.evals)
    compiler = _ArmCompiler(finder, replace(selection, patterns=evals), cwd, trees)
    arms = list(starmap(compiler.compile, enumerate(document.arms)))
    plan = interleaved([arm.plan for arm in arms], document, finder.context)
    plan = override(plan, Overrides(repeat=document.repeat))
    found = [
        *experiments.check_metrics(document, _evaluators(arms), finder),
        *_equal(document, plan, finder),
    ]
    if found:
        raise InvalidInput(found)
    compiled = CompiledPlan(plan, _origin(source, checked.diagnostics, arms))
    return CompiledExperiment(document, relative(source.path, source.root), compiled)


def with_experiments(checks: Checks, targets: str | None, *, cwd: Path) -> Checks:
    """Return checks with what only compiling the arms of valid experiments shows.

    Arms at commits are left out, since that would check the commits out.
    """
    files = [
        replace(file, diagnostics=(*file.diagnostics, *_of_arms(file.path, targets, cwd)))
        if file.kind == "experiment" and file.is_valid(strict=False)
        else file
        for file in checks.files
    ]
    return replace(checks, files=tuple(files))


def _of_arms(path: Path, targets: str | None, cwd: Path) -> Sequence[Diagnostic]:
    """Return the errors of compiled arms that their document does not show."""
    document = Documents(cwd, targets).check(path, named=True).document
    assert isinstance(document, ExperimentDocument), "it is valid"
    if any(arm.ref is not None for arm in document.arms):
        return ()
    try:
        with CommitTrees({}) as trees:
            compile_experiment(str(path), Selection((), targets), cwd=cwd, trees=trees)
    except InvalidInput as error:
        return [found for found in error.diagnostics if found.path == str(path)]
    except (UsageError, NothingToRun):
        # That is not a mistake of the document, and `experiment` says it.
        return ()
    return ()


def _checked(path: Path, selection: Selection, cwd: Path) -> tuple[CheckedDocument, Finder]:
    documents = Documents(cwd, selection.targets)
    checked = documents.check(path, named=True)
    if checked.source.kind not in ("experiment", None):
        raise UsageError(
            f"'{path}' is not an experiment but a document of kind '{checked.source.kind}'",
            hint="its first line is $schema: agentv-experiment-v1",
        )
    context = documents.context_of(checked.source)
    require_valid((checked, *context.others))
    if context.targets is None:
        raise no_targets(path)
    return checked, Finder(checked.source, context)


class _ArmCompiler:
    """Compiles the arms of one experiment."""

    def __init__(self, finder: Finder, selection: Selection, cwd: Path, trees: CommitTrees) -> None:
        self._finder = finder
        self._source = finder.source
        self._selection = selection
        self._cwd = cwd
        self._trees = trees

    def compile(self, index: int, arm: Arm) -> CompiledPlan:
        """Return the cases of an arm; raises InvalidInput if a setting of it changes nothing."""
        names = (arm.target,) if arm.target is not None else ()
        replaced = self._replaced(arm, self._source)
        selection = replace(self._selection, target_names=names, replaced=replaced)
        compiled = compile_paths(selection, cwd=self._cwd)
        if arm.ref is not None:
            compiled = replace(compiled, plan=self._at_commit(arm, compiled.plan, selection))
        _require_one_target(arm, compiled.plan)
        changes = self._changes(arm)
        keys = dict.fromkeys(case.target for case in compiled.plan.cases)
        targets = [compiled.plan.targets[key] for key in keys]
        unused = self._unused(arm, compiled, changes) if arm.ref is None else []
        if found := [*experiments.check_settings(index, arm, targets, unused, self._finder)]:
            raise InvalidInput(found)
        return replace(compiled, plan=changed(compiled.plan, changes))

    def _changes(self, arm: Arm) -> ArmChanges:
        """Read what an arm changes."""
        files, source = Files(Path.read_bytes), self._source
        system_prompt = arm.system_prompt
        if arm.system_prompt_file is not None:
            system_prompt = files.read(source.resolve(arm.system_prompt_file))
        guidelines = [files.add(source, path) for path in arm.guidelines or ()]
        replaced = {
            relative(source.resolve(path), source.root): files.add(source, content)
            for path, content in (arm.files or {}).items()
        }
        return ArmChanges(
            arm.name,
            system_prompt=system_prompt,
            guidelines=guidelines,
            replaced=replaced,
            env=arm.env or {},
            files=files.compiled,
        )

    def _unused(self, arm: Arm, compiled: CompiledPlan, changes: ArmChanges) -> list[str]:
        """Return the files that an arm replaces although no case has them."""
        sources, inside = {*compiled.origin.sources}, {*in_workspaces(compiled.plan, changes)}
        resolve, root = self._source.resolve, self._source.root
        return [
            path
            for path in arm.files or {}
            if resolve(path) not in sources and relative(resolve(path), root) not in inside
        ]

    def _replaced(self, arm: Arm, at: Source) -> Mapping[Path, Path]:
        """Return the files that an arm replaces in a tree, and those in their place.

        The latter are today's.
        """
        return {
            at.resolve(path): self._source.resolve(content)
            for path, content in (arm.files or {}).items()
        }

    def _at_commit(self, arm: Arm, today: Plan, selection: Selection) -> Plan:
        """Compile today's eval files among the files of a commit."""
        assert arm.ref is not None, "asked by the caller"
        root = self._source.root
        tree = self._trees.at(root, arm.ref)
        suites = [suite.path for suite in today.suites]
        # Cases may be rows of other files.
        for file in {*suites, *(case.source.path for case in today.cases)}:
            (tree / file).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(root / file, tree / file)
        there = replace(self._source, path=tree / relative(self._source.path, root), root=tree)
        given = selection.targets
        if given is not None and (self._cwd / given).is_relative_to(root):
            given = str(tree / relative(self._cwd / given, root))
        patterns = [str(tree / suite) for suite in suites]
        chosen = replace(
            selection, patterns=patterns, targets=given, replaced=self._replaced(arm, there)
        )
        then = compile_paths(chosen, cwd=tree)
        return at_commit(today, then.plan, relative(tree, root), arm.ref)


def _require_one_target(arm: Arm, plan: Plan) -> None:
    """Raise UsageError if several targets answer the same case of an arm."""
    several = sorted(in_matrix(map(plan.key_of, plan.cases)))
    if several:
        message = f"arm '{arm.name}': several targets answer case '{several[0][1]}'"
        raise UsageError(message, hint="set 'target' of the arm to one of them")


def _evaluators(arms: Iterable[CompiledPlan]) -> Collection[str]:
    cases = chain.from_iterable(arm.plan.cases for arm in arms)
    evaluators = chain.from_iterable(flat(case.evaluators) for case in cases)
    return {evaluator.name for evaluator in evaluators}


def _equal(document: ExperimentDocument, plan: Plan, find: Finder) -> Iterator[Diagnostic]:
    """AV383 for arms whose settings change nothing in the cases."""
    places = {arm.name: index for index, arm in enumerate(document.arms)}
    for pair in equal_arms(plan):
        first, second = sorted(pair, key=lambda name: places[name])
        hint = "no case uses what the arm changes; see the paths in `compile`"
        yield find.at(
            "AV383", experiments.equal_arms(first, second), ("arms", places[second]), hint=hint
        )


def _origin(source: Source, own: Sequence[Diagnostic], arms: Sequence[CompiledPlan]) -> Origin:
    """Return the origin of all arms, with each warning and file once."""
    warnings = dict.fromkeys(own)
    sources: dict[Path, None] = {}
    dotenv_files: dict[Path, None] = {}
    for arm in arms:
        warnings |= dict.fromkeys(arm.origin.warnings)
        sources |= dict.fromkeys(arm.origin.sources)
        dotenv_files |= dict.fromkeys(arm.origin.dotenv_files)
    return replace(
        arms[0].origin,
        warnings=tuple(warnings),
        sources=(source.path, *sources),
        dotenv_files=tuple(dotenv_files),
    )
