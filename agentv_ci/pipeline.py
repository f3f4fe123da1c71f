"""The stages in order; every command is a stretch of this file.

files → load → validate → compile → plan → execute ⇄ evaluate → results → report
"""

from __future__ import annotations

import json
import signal
import sys
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from agentv_ci.contracts.base import JsonValue
from agentv_ci.contracts.diagnostics import Diagnostic
from agentv_ci.contracts.documents import Checked, CheckedFile, Surroundings
from agentv_ci.contracts.evals import EvalDocument
from agentv_ci.contracts.source import Kind, Source
from agentv_ci.contracts.targets import TargetsDocument
from agentv_ci.errors import InvalidInput, NothingToRun, UsageError
from agentv_ci.load import load
from agentv_ci.load.discover import Found, discover, find_configs, find_dotenv, find_root, find_targets, targets_in
from agentv_ci.load.files import looker
from agentv_ci.load.parse import parse_yaml
from agentv_ci.outside import read_json
from agentv_ci.schemas import schema_id
from agentv_ci.suggestions import did_you_mean, listed
from agentv_ci.validate import validate

if TYPE_CHECKING:
    from agentv_ci.compile.compilation import Compilation
    from agentv_ci.compile.document import PlanDocument
    from agentv_ci.compile.overrides import Overrides
    from agentv_ci.contracts.estimate import Estimate
    from agentv_ci.contracts.exchange import Ask, Grade, Log, Request, Response, World
    from agentv_ci.contracts.plan import Plan, PlanCase
    from agentv_ci.contracts.plan_diff import PlanDiff
    from agentv_ci.contracts.report import RunReport
    from agentv_ci.contracts.results import ResultRow
    from agentv_ci.execute.engine import Progress, RunSettings
    from agentv_ci.execute.materials import Materials
    from agentv_ci.report.outcomes import CaseOutcome
    from agentv_ci.report.reporters import ResultsFormat


# --- validate ---------------------------------------------------------------------------------------------------


WORTH_A_PROCESS = 50
"""Files from which on a second process saves more time than it takes."""
CHUNKS_A_PROCESS = 4
"""Small enough that no process idles long while another one is at work, large enough to send little."""


@dataclass(frozen=True, slots=True)
class Checks:
    """What `validate` says of all files."""

    files: tuple[CheckedFile, ...]
    skipped: int
    """YAML files that are none of ours."""


def check_paths(patterns: Sequence[str], *, targets: str | None, cwd: Path, jobs: int = 1) -> Checks:
    """Check every document that `patterns` mean, in up to `jobs` processes.

    Only what is to be said of a file is kept. Raises UsageError for a path that does not exist.
    """
    found = discover(patterns, cwd)
    processes = min(jobs, len(found) // WORTH_A_PROCESS + 1)
    checked = _check_in_processes(found, targets, cwd, processes) if processes > 1 else _check(found, targets, cwd)
    files = {each.path: each for each in checked if each is not None}
    skipped = len(found) - len(files)
    for each in tuple(files.values()):
        for other in each.beside:
            files.setdefault(other.path, other)
    return Checks(tuple(files.values()), skipped)


def _check(found: Sequence[Found], targets: str | None, cwd: Path) -> list[CheckedFile | None]:
    documents = Documents(cwd, targets)
    return [documents.check_file(each.path, named=each.named) for each in found]


def _check_in_processes(
    found: Sequence[Found], targets: str | None, cwd: Path, processes: int
) -> list[CheckedFile | None]:
    from concurrent.futures import ProcessPoolExecutor
    from multiprocessing import get_context

    for contract in (EvalDocument, TargetsDocument):
        # What is built now is shared by all forked processes; else each would build it again.
        contract.model_rebuild()
    size = -(-len(found) // (processes * CHUNKS_A_PROCESS))
    chunks = [found[start : start + size] for start in range(0, len(found), size)]
    pool = ProcessPoolExecutor(processes, get_context(start_method()), initializer=_leave_interrupts_to_the_parent)
    try:
        parts = pool.map(_check, chunks, [targets] * len(chunks), [cwd] * len(chunks))
        return [each for part in parts for each in part]
    finally:
        pool.shutdown(cancel_futures=True)


def start_method() -> str:
    """Return how processes begin: a forked one has everything imported already, but forking is not safe everywhere."""
    return "fork" if sys.platform == "linux" else "spawn"


def _leave_interrupts_to_the_parent() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)


class Documents:
    """Loads and checks documents, each once, with the others they belong to."""

    def __init__(self, cwd: Path, targets: str | None, target_override: str | None = None) -> None:
        self._cwd = cwd
        self._targets = _named_targets(targets, cwd) if targets is not None else None
        self._target_override = None if target_override == "default" else target_override
        self._look = looker()
        self._alone = Surroundings(read_yaml, self._look)
        self._checked: dict[tuple[Path, bool], Checked] = {}
        self._around: dict[Path, Surroundings] = {}
        self._roots: dict[Path, Path] = {}

    def check(self, path: Path, *, named: bool) -> Checked:
        """Return a document with everything that is wrong with it; those that others are read with are remembered."""
        return self._checked.get((path, named)) or self._validated(
            load(path, self.root(path), named=named), named=named
        )

    def _validated(self, source: Source, *, named: bool) -> Checked:
        if source.kind == "eval":
            return validate(source, self.surroundings(source.path))
        around = self._configured(source.path) if source.kind == "targets" else self._alone
        checked = self._checked[source.path, named] = validate(source, around)
        return checked

    def check_file(self, path: Path, *, named: bool) -> CheckedFile | None:
        """Return what is to be said of a file; None for a YAML file that is none of ours."""
        checked = self.check(path, named=named)
        kind = checked.source.kind
        if kind is None and not checked.diagnostics:
            return None
        around = self.surroundings(path) if kind == "eval" else None
        return CheckedFile(
            path,
            checked.source.root,
            kind,
            checked.diagnostics,
            without_targets=around is not None and around.targets is None,
            beside=tuple(map(_unread, _unreadable(around))) if around is not None else (),
        )

    def root(self, path: Path) -> Path:
        """Return the repository a file belongs to."""
        folder = path.parent
        if folder not in self._roots:
            self._roots[folder] = find_root(path, self._cwd)
        return self._roots[folder]

    def surroundings(self, path: Path) -> Surroundings:
        """Return what an eval file is read with; for all files of a folder it is the same."""
        folder = path.parent
        if folder not in self._around:
            root = self.root(path)
            targets = self._targets or find_targets(path, root, self._cwd)
            self._around[folder] = Surroundings(
                read_yaml=read_yaml,
                look=self._look,
                targets=self._targets_at(targets) if targets else None,
                configs=self._configs(path),
                target_override=self._target_override,
                plugin_validators=plugin_validators,
            )
        return self._around[folder]

    def _configured(self, path: Path) -> Surroundings:
        """Return what a document is read with that needs no other one but the config."""
        return Surroundings(read_yaml, self._look, configs=self._configs(path))

    def _configs(self, path: Path) -> tuple[Checked, ...]:
        found = (self._beside(config, "config", named=True) for config in find_configs(path, self.root(path)))
        return tuple(config for config in found if config is not None)

    def _targets_at(self, path: Path) -> Checked | None:
        named = path == self._targets
        checked = self._beside(path, "targets", named=named)
        if named and (checked is None or not checked.source.readable):
            source = load(path, self.root(path), named=True)
            reason = source.diagnostics[0].message if source.diagnostics else f"its kind is '{source.kind}'"
            raise UsageError(f"'{path}' is no targets document: {reason}")
        return checked

    def _beside(self, path: Path, kind: Kind, *, named: bool) -> Checked | None:
        """Return a document that others are read with; None when it is only called like one of that kind."""
        checked = self._checked.get((path, named))
        if checked is None:
            source = load(path, self.root(path), named=named)
            # What is of another kind has surroundings of its own, perhaps these very ones.
            checked = self._validated(source, named=named) if source.kind == kind else None
        return checked if checked is not None and checked.source.kind == kind else None


def _unreadable(around: Surroundings) -> list[Checked]:
    others = (*around.configs, *((around.targets,) if around.targets else ()))
    return [each for each in others if not each.source.readable]


def _unread(checked: Checked) -> CheckedFile:
    source = checked.source
    return CheckedFile(source.path, source.root, source.kind, checked.diagnostics, without_targets=False)


def read_yaml(text: str) -> JsonValue:
    """Return the data of a YAML or JSON text; raises ValueError."""
    try:
        # Not all JSON is YAML to every parser, and JSON is read much faster.
        return read_json(text, strict=True)
    except ValueError:
        parsed = parse_yaml(text)
    if parsed.problems:
        raise ValueError(parsed.problems[0].message)
    return parsed.data


@cache
def plugin_validators() -> frozenset[str]:
    """Return the run validators that other packages bring."""
    from importlib.metadata import entry_points

    return frozenset(each.name for each in entry_points(group="agentv_ci.validators"))


def _named_targets(name: str, cwd: Path) -> Path:
    path = cwd / name
    try:
        found = targets_in(path) if path.is_dir() else path if path.exists() else None
    except (OSError, ValueError):  # longer than the system allows, or with a NUL
        found = None
    if found is None:
        raise UsageError(f"--targets: no targets file at '{name}'")
    return found


# --- compile ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Selection:
    """Which cases, and what answers them."""

    patterns: Sequence[str]
    targets: str | None = None
    target: str | None = None
    eval_ids: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a plan comes from."""

    root: Path
    """The repository its paths are relative to."""
    warnings: tuple[Diagnostic, ...]
    sources: tuple[Path, ...]
    """The files it was made from, which nothing may overwrite."""
    dotenv_files: tuple[Path, ...]

    def refuse_to_overwrite(self, outputs: Sequence[Path]) -> None:
        """Raise UsageError when an output is an input, or two outputs are one file."""
        inputs = {path.resolve() for path in self.sources}
        seen: set[Path] = set()
        for path in outputs:
            if path.resolve() in inputs:
                raise UsageError(f"'{path}' is an input of this run and would be overwritten")
            if path.resolve() in seen:
                raise UsageError(f"two outputs would be written to '{path}'")
            seen.add(path.resolve())


@dataclass(frozen=True, slots=True)
class Compiled:
    """A plan in memory."""

    plan: Plan
    origin: Origin


@dataclass(frozen=True, slots=True)
class Written:
    """A plan's text, whose cases were not kept."""

    document: PlanDocument
    cases: int
    origin: Origin


def compile_paths(selection: Selection, *, cwd: Path) -> Compiled:
    """Compile eval files, or read one plan.

    Raises InvalidInput with all diagnostics, UsageError, or NothingToRun when nothing is selected.
    """
    found = discover(selection.patterns, cwd)
    if _is_plan(found):
        return _read_plan(found[0].path, selection, cwd)
    reading = _Reading(found, selection, cwd)
    compilation = reading.compilation()
    plan = compilation.plan()
    return Compiled(plan, reading.origin(compilation.sources, cases=len(plan.cases)))


def write_plan(selection: Selection, *, cwd: Path, scratch: BinaryIO, watch: Callable[[int], None]) -> Written:
    """Compile eval files into a plan's text, or read one plan.

    The text lies in `scratch` until it is copied; `watch` is told how many cases there are by now. Raises what
    `compile_paths` raises, and OSError.
    """
    from agentv_ci.compile.document import PlanWriter

    found = discover(selection.patterns, cwd)
    if _is_plan(found):
        return write_compiled(_read_plan(found[0].path, selection, cwd), scratch)
    writer = PlanWriter(schema_id("plan-v1"), scratch)
    reading = _Reading(found, selection, cwd)
    compilation = reading.compilation()
    number = writer.add(compilation.cases(), watch)
    origin = reading.origin(compilation.sources, cases=number)
    return Written(writer.end(compilation.head()), number, origin)


def write_compiled(compiled: Compiled, scratch: BinaryIO) -> Written:
    """Return the text of a plan in memory; it lies in `scratch` until it is copied. Raises OSError."""
    from agentv_ci.compile.document import PlanWriter

    writer = PlanWriter(schema_id("plan-v1"), scratch)
    number = writer.add(compiled.plan.cases, lambda _: None)
    return Written(writer.end(compiled.plan), number, compiled.origin)


def _is_plan(found: Sequence[Found]) -> bool:
    plans = [each for each in found if each.path.suffix == ".json"]
    if plans and len(found) > 1:
        raise UsageError(f"'{plans[0].path}': one plan at a time, and alone: it has its eval files and targets already")
    return bool(plans)


class _Reading:
    """The documents of a selection, checked one after the other while those before them are compiled."""

    def __init__(self, found: Sequence[Found], selection: Selection, cwd: Path) -> None:
        self._found = sorted(found, key=lambda each: each.path)
        self._selection = selection
        self._cwd = cwd
        self._documents = Documents(cwd, selection.targets, selection.target)
        self._roots: dict[Path, None] = {}
        self._read: list[Path] = []
        self._dotenv: dict[Path, None] = {}
        self._beside: dict[Diagnostic, None] = {}
        self._own: dict[Diagnostic, None] = {}

    def compilation(self) -> Compilation:
        """Return what compiles the documents as they come."""
        from agentv_ci.compile import compile  # noqa: A004  # the stage's name

        return compile(self._valid(), read_text=_read_text, eval_ids=self._selection.eval_ids)

    def origin(self, sources: Iterable[Path], *, cases: int) -> Origin:
        """Return where the plan comes from, after its last case; raises what can only be said then."""
        if not cases:
            raise NothingToRun(f"no case matches --eval-id {listed(self._selection.eval_ids)}")
        if len(self._roots) > 1:
            raise UsageError(f"one run takes files of one repository, not of {listed(self._roots)}")
        (root,) = self._roots
        return Origin(root, self._diagnostics(), (*self._read, *sources), tuple(self._dotenv))

    def _valid(self) -> Iterator[tuple[Checked, Surroundings]]:
        """Yield valid eval documents until one is not; the rest is still checked, and said at the end."""
        untargeted: UsageError | None = None
        evals = failed = 0
        for each in self._found:
            checked = self._documents.check(each.path, named=each.named)
            if checked.source.kind == "eval":
                evals += 1
                around = self._documents.surroundings(each.path)
                self._take(checked, around)
                failed += not all(other.valid for other in (checked, *_besides(around)))
                untargeted = untargeted or _missing_target(checked, around)
                if not failed and untargeted is None:
                    yield checked, around
            elif checked.source.kind is None:
                self._own.update(dict.fromkeys(checked.diagnostics))
                failed += not checked.valid
        if failed:
            raise InvalidInput(self._diagnostics())
        if not evals:
            raise NothingToRun(f"no eval document in {listed(self._selection.patterns)}")
        if untargeted is not None:
            raise untargeted

    def _take(self, checked: Checked, around: Surroundings) -> None:
        source = checked.source
        if not _is_unicode(source.path.relative_to(source.root)):
            raise UsageError(f"{source.path!a}: a path that is not UTF-8 cannot stand in a plan; rename it")
        self._own.update(dict.fromkeys(checked.diagnostics))
        self._roots[source.root] = None
        self._read.append(source.path)
        for other in _besides(around):
            self._beside.update(dict.fromkeys(other.diagnostics))
            self._read.append(other.source.path)
        if dotenv := find_dotenv(source.path, source.root, self._cwd):
            self._dotenv[dotenv] = None

    def _diagnostics(self) -> tuple[Diagnostic, ...]:
        return tuple(self._beside | self._own)


def _is_unicode(path: Path) -> bool:
    try:
        str(path).encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _besides(around: Surroundings) -> tuple[Checked, ...]:
    return (*((around.targets,) if around.targets else ()), *around.configs)


def _missing_target(checked: Checked, surroundings: Surroundings) -> UsageError | None:
    if surroundings.targets is None:
        return UsageError(
            f"no targets.yaml for {checked.source.path}: looked in its folder, above it and in the working directory",
            hint="write a targets.yaml, or name one with --targets",
        )
    names = [target.name for target in surroundings.target_list]
    wanted = surroundings.target_override
    if wanted is None or wanted in names:
        return None
    close = did_you_mean(wanted, names)
    return UsageError(f"unknown target '{wanted}'{close}; {surroundings.targets.source.path} defines {listed(names)}")


def _read_text(path: Path) -> str:
    return path.read_bytes().decode("utf-8")


def _read_plan(path: Path, selection: Selection, cwd: Path) -> Compiled:
    from agentv_ci.compile.selection import is_selected, narrowed

    if selection.target not in (None, "default") or selection.targets is not None:
        raise UsageError("a plan has its targets already: --target and --targets choose them when it is compiled")
    plan = read_plan(path)
    if selection.eval_ids:
        plan = narrowed(plan, lambda case: is_selected(case.id, selection.eval_ids))
    if not plan.cases:
        raise NothingToRun("the plan selects no case")
    dotenv = find_dotenv(cwd / "plan", cwd, cwd)
    root = find_root(cwd / "plan", cwd)
    referred = (root / file.path for file in plan.files.values())
    return Compiled(plan, Origin(root, (), (path, *referred), (dotenv,) if dotenv else ()))


def only_changed(compiled: Compiled, old: Path) -> Compiled:
    """Return what a run of those cases needs that an older plan does not have; it may be none.

    Raises what `read_plan` raises.
    """
    from agentv_ci.compile.selection import narrowed

    known = {case.digest for case in read_plan(old).cases}
    plan = narrowed(compiled.plan, lambda case: case.digest not in known)
    return Compiled(plan, replace(compiled.origin, sources=(*compiled.origin.sources, old)))


def diff_plans(compiled: Compiled, old: Path, eval_ids: Sequence[str]) -> PlanDiff:
    """Return what became of an older plan's cases, of those that are selected; raises what `read_plan` raises."""
    from agentv_ci.compile.diff import diff
    from agentv_ci.compile.selection import is_selected

    known = read_plan(old)
    selected = tuple(case for case in known.cases if is_selected(case.id, eval_ids))
    return diff(known.model_copy(update={"cases": selected}), compiled.plan)


def estimate_run(compiled: Compiled, *, workers: int | None) -> Estimate:
    """Return what a run will ask and cost, with `workers` cases at once (None: as the targets say).

    Raises UsageError for a run that no figure is large enough for.
    """
    from agentv_ci.compile.estimate import estimate

    try:
        return estimate(compiled.plan, workers=workers)
    except OverflowError as error:
        raise UsageError("what this run would ask and cost is beyond all figures") from error


def read_plan(path: Path) -> Plan:
    """Return the plan in a file, when it is one that the published schema accepts and nobody has changed since.

    Raises UsageError, or InvalidInput with what the schema refuses.
    """
    from agentv_ci.compile.digest import case_digest, document_digest
    from agentv_ci.compile.document import prices_by_suite
    from agentv_ci.load.plan import load_plan

    plan, data = load_plan(path)
    prices = prices_by_suite(plan)
    forged = [case.id for case in plan.cases if case_digest(case, plan.targets, prices[case.suite]) != case.digest]
    if forged or document_digest(data) != plan.digest:
        which = f"{'case' if len(forged) == 1 else 'cases'} {listed(forged)}" if forged else "the plan"
        hint = "compile it again; a plan is not edited by hand"
        raise UsageError(f"'{path}': {which} changed after it was compiled: the digest does not fit", hint=hint)
    return plan


MAX_LOG_LINE = 4_000


# --- eval -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RunFiles:
    """Where a run leaves what it found."""

    results: Path
    form: ResultsFormat
    junit: Path | None = None

    @property
    def report(self) -> Path:
        """The run report lies beside the results."""
        return self.results.with_suffix(".report.json")


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a run came to."""

    report: RunReport
    cases: tuple[CaseOutcome, ...]


async def run_plan(
    compiled: Compiled,
    overrides: Overrides,
    settings: RunSettings,
    files: RunFiles,
    *,
    world: World,
    log: Log,
    watch: Callable[[Progress], None],
) -> Outcome:
    """Run a plan, write its results and its reports.

    `watch` is given the progress once, before the first case, and may look at it at any time. Raises UsageError for
    missing environment variables, TargetUnavailable before the first case, OSError when no result can be written.
    """
    from agentv_ci.compile.overrides import override
    from agentv_ci.contracts.plan import targets_of
    from agentv_ci.execute import execute
    from agentv_ci.execute.engine import Means, Progress
    from agentv_ci.execute.journal import Journal
    from agentv_ci.execute.materials import Materials
    from agentv_ci.execute.settings import resolve_targets
    from agentv_ci.execute.unsupported import refuse_unsupported
    from agentv_ci.outside import printable, shortened
    from agentv_ci.redaction import Redactor, secrets_of
    from agentv_ci.report.reporters import encode

    compiled.origin.refuse_to_overwrite([files.results, files.report, *([files.junit] if files.junit else [])])
    if files.results.exists() and not files.results.is_file():
        raise UsageError(f"results go into a file, and '{files.results}' is none")
    refuse_unsupported(compiled.plan)
    plan = override(compiled.plan, overrides)
    asked = {key: plan.targets[key] for key in sorted({key for case in plan.cases for key in targets_of(case)})}
    targets = dict(asked) if settings.dry_run else resolve_targets(asked, world.environ)
    progress = Progress(total=sum(case.trials for case in plan.cases))
    redactor = Redactor(secrets_of(plan.targets, targets, world.environ))

    def clean_log(line: str) -> None:
        log(shortened(printable(redactor.text(line)), MAX_LOG_LINE))

    with (
        Materials(plan.files, settings.root) as materials,
        Journal(files.results, lambda row: encode(row, files.form)) as journal,
    ):
        watch(progress)
        grade = _grader(plan, settings.root, materials, world, clean_log)
        means = Means(grade, journal, materials, world, clean_log, progress, redactor)
        await execute(plan, targets, settings, means)
    return _conclude(plan, files, dry_run=settings.dry_run, write_error=journal.write_error)


def _grader(
    plan: Plan, root: Path, materials: Materials, world: World, log: Log
) -> Callable[[PlanCase, Request, Response, Ask], Awaitable[Grade]]:
    from agentv_ci.evaluate import evaluate
    from agentv_ci.evaluate.evaluators import Tools
    from agentv_ci.evaluate.submission import Submission

    async def grade(case: PlanCase, request: Request, response: Response, ask: Ask) -> Grade:
        tools = Tools(
            ask=ask,
            locate=materials.locate,
            locate_together=materials.locate_together,
            read_yaml=read_yaml,
            environ=world.environ,
            root=root,
            log=log,
        )
        folder = (root / case.suite).parent
        return await evaluate(case, Submission(case, request, response, plan.files, folder), tools)

    return grade


def _conclude(plan: Plan, files: RunFiles, *, dry_run: bool, write_error: str | None) -> Outcome:
    from agentv_ci.report import report
    from agentv_ci.report.reporters import read

    def rows() -> Iterator[ResultRow]:
        return read(files.results, files.form)

    run_report, outcomes = report(plan, rows(), dry_run=dry_run, write_error=write_error)
    text = json.dumps(run_report.model_dump(by_alias=True), indent=2) + "\n"
    files.report.write_text(text, encoding="utf-8")
    if files.junit is not None:
        from agentv_ci.report.reporters import junit

        files.junit.parent.mkdir(parents=True, exist_ok=True)
        files.junit.write_bytes(junit.render(rows()))
    return Outcome(run_report, outcomes)
