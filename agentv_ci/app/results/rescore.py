"""Results → their stored answers → evaluate → results."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path

from msgspec import Struct, field
from msgspec.structs import replace

from agentv_ci.app.documents.compile import CompiledPlan, Selection, compile_paths
from agentv_ci.app.run.conclude import conclude
from agentv_ci.app.run.files import RunFiles, RunOutcome
from agentv_ci.app.run.trials import run_trials
from agentv_ci.base.text import counted, listed
from agentv_ci.compile.overrides import Overrides, narrowed, override, with_trials
from agentv_ci.contracts.cases import CaseKey
from agentv_ci.contracts.packed_cases import heads_of
from agentv_ci.contracts.plan import Plan, PlanCase, outcomes_of
from agentv_ci.contracts.plan_evaluators import flat
from agentv_ci.contracts.results import ResultRow
from agentv_ci.errors import NothingToRun, UsageError
from agentv_ci.execute.run_services import RunOptions, RunServices, StoredAnswers
from agentv_ci.execute.workspace_records import NOT_KEPT
from agentv_ci.load.discover import find_root
from agentv_ci.results.files import read_rows
from agentv_ci.results.rows import tool_calls_are_known

ONE_RUN = "rescore the results of one run"


class _Contents(Struct):
    """The contents of a results file, without its answers."""

    trials: dict[CaseKey, set[int]] = field(default_factory=dict)
    is_dry_run: bool = False
    without_messages: int = 0
    """Rows whose tool calls were reported but not kept."""
    has_arms: bool = False
    """Whether they are of an experiment."""
    without_changes: int = 0
    """Rows that do not hold what the agent left behind in its workspace."""


class Rescoring(Struct, frozen=True):
    """Stored answers, and the plan to score them with."""

    compiled: CompiledPlan
    answers: StoredAnswers
    """The rows of the plan's cases."""
    left_out: tuple[str, ...]
    """Warnings about what is not scored."""
    is_dry_run: bool
    """Whether the answers are the mock's."""


def prepare_rescoring(results: Path, selection: Selection, *, cwd: Path) -> Rescoring:
    """Read results and compile the paths of `selection`, else the eval files named in the rows.

    They are compiled for the target that answered, unless `selection` names one. Raises UsageError
    for results that cannot be read or contain a trial twice, NothingToRun, and what `compile_paths`
    raises.
    """
    contents = _contents(results)
    if not contents.trials:
        raise NothingToRun(f"'{results}' is empty")
    root = find_root(cwd / "results", cwd)
    patterns = selection.patterns or _suites(contents, root)
    is_plan = any(pattern.endswith(".json") for pattern in patterns)
    if contents.has_arms and not is_plan:
        raise UsageError(
            f"'{results}' has answers of the arms of an experiment",
            hint="compile the experiment with `agentv-ci compile experiment.yaml --out plan.json`, "
            "and name the plan after the results",
        )
    names = selection.target_names
    if not names and not is_plan:
        names = _targets_of_all(contents)
    compiled = compile_paths(replace(selection, patterns=patterns, target_names=names), cwd=cwd)
    return _matched(compiled, contents, results)


def _targets_of_all(contents: _Contents) -> Sequence[str]:
    """Return the targets that answered if each answered every case.

    Not `default`, which only documents can name.
    """
    targets = tuple(dict.fromkeys(target for _, _, target in contents.trials))
    cases = {key[:2] for key in contents.trials}
    if "default" in targets or len(targets) * len(cases) != len(contents.trials):
        return ()
    return targets


def _suites(contents: _Contents, root: Path) -> Sequence[str]:
    suites = list(dict.fromkeys(suite for suite, *_ in contents.trials))
    gone = [suite for suite in suites if not (root / suite).is_file()]
    if gone:
        raise UsageError(
            f"cannot find {listed(gone)} in '{root}'",
            hint="name eval files or a plan after the results",
        )
    return [str(root / suite) for suite in suites]


def _matched(compiled: CompiledPlan, contents: _Contents, results: Path) -> Rescoring:
    """Return the cases whose target answered, with as many trials as there are answers."""
    plan = compiled.plan
    scored = [case for case in plan.cases if plan.key_of(case) in contents.trials]
    left_out = tuple(_left_out(plan, scored, contents))
    if not scored:
        raise NothingToRun(
            f"no row of '{results}' matches a case", hint="; ".join(left_out) or None
        )
    trials: dict[CaseKey, int] = {}
    skipped: dict[CaseKey, int] = {}
    for case in scored:
        key = plan.key_of(case)
        fewest = case.trials if case.stop_when is not None else 1
        trials[key] = max(fewest, *contents.trials[key])
        if case.skip is not None:
            # A skipped case has one row, whatever is stored.
            skipped[key] = min(contents.trials[key])

    def is_scored(row: ResultRow) -> bool:
        return row.case_key in trials and skipped.get(row.case_key, row.trial) == row.trial

    answers = StoredAnswers(
        lambda: filter(is_scored, read_rows(results)),
        sum(1 if key in skipped else len(contents.trials[key]) for key in trials),
    )
    origin = replace(compiled.origin, sources=(*compiled.origin.sources, results))
    part = with_trials(narrowed(plan, lambda case: plan.key_of(case) in trials), trials)
    return Rescoring(CompiledPlan(part, origin), answers, left_out, contents.is_dry_run)


def _left_out(plan: Plan, scored: Sequence[PlanCase], contents: _Contents) -> Iterator[str]:
    """Yield warnings about cases that are not scored, or with fewer trials than set."""
    known = map(plan.key_of, heads_of(plan))
    planned, stored = ({key[:2]: key[1] for key in keys} for keys in (known, contents.trials))
    if unknown := [name for case, name in stored.items() if case not in planned]:
        yield f"skipped, no longer a case: {listed(unknown)}"
    keys = set(map(plan.key_of, scored))
    others = (key for key in contents.trials if key not in keys and key[:2] in planned)
    if answered := dict.fromkeys(name for _, name, _ in others):
        yield f"skipped, answered by another target: {listed(answered)}"
    if missing := [name for case, name in planned.items() if case not in stored]:
        yield f"skipped, no stored answer: {listed(missing)}"
    # A case that stops when it is decided may have fewer; whether they still suffice shows when
    # they are scored.
    whole = [case for case in scored if case.stop_when is None]
    if fewer := [
        case.id for case in whole if len(contents.trials[plan.key_of(case)]) < case.trials
    ]:
        yield f"fewer stored trials than the case requires: {listed(fewer)}"
    evaluators = chain.from_iterable(flat(case.evaluators) for case in scored)
    if contents.without_messages and any(evaluator.reads_trace for evaluator in evaluators):
        rows = counted(contents.without_messages, "row")
        unknown_calls = f"tool calls are unknown in {rows} without messages"
        yield f"{unknown_calls}; run the targets without --no-trace"
    if contents.without_changes and any(map(outcomes_of, scored)):
        rows = counted(contents.without_changes, "row does", "rows do")
        not_held = f"{rows} not hold what the agent left behind"
        yield f"outcomes cannot be scored again: {not_held} ({NOT_KEPT})"


async def rescore(
    rescoring: Rescoring,
    overrides: Overrides,
    options: RunOptions,
    files: RunFiles,
    services: RunServices,
) -> RunOutcome:
    """Score stored answers with the plan's evaluators, and write results and reports like a run.

    Rows without an answer are kept unchanged. Raises what `run_plan` raises.
    """
    files.require_writable(rescoring.compiled.origin.sources)
    plan = override(rescoring.compiled.plan, overrides)
    ending = await run_trials(plan, options, files, services, stored=rescoring.answers)
    return conclude(plan, files, replace(ending, rescored=True))


def _contents(results: Path) -> _Contents:
    contents = _Contents()
    for row in read_rows(results):
        trials = contents.trials.setdefault(row.case_key, set())
        if row.trial in trials:
            raise UsageError(
                f"'{results}' contains trial {row.trial} of case '{row.eval_id}' twice",
                hint=ONE_RUN,
            )
        trials.add(row.trial)
        contents.is_dry_run |= row.dry_run
        contents.has_arms |= row.arm is not None
        contents.without_messages += row.trace_summary is not None and not tool_calls_are_known(row)
        has_answer = row.workspace is not None and row.error_kind in (None, "evaluator")
        contents.without_changes += (
            has_answer and row.workspace is not None and row.workspace.changes is None
        )
    return contents
