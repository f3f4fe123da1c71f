"""Results → their stored answers → evaluate → results: today's evaluators over yesterday's answers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from agentv_ci.app.compile import Compiled, Selection, compile_paths
from agentv_ci.app.concluding import RunFiles, conclude
from agentv_ci.app.report_files import Outcome
from agentv_ci.app.run import run_trials
from agentv_ci.compile.overrides import Overrides, override, with_trials
from agentv_ci.compile.selection import narrowed
from agentv_ci.contracts.evaluators import ToolCallsEvaluator, ToolTrajectoryEvaluator
from agentv_ci.contracts.plan import CaseKey, Plan, PlanCase, PlanCodeEvaluator, case_key, flat
from agentv_ci.errors import NothingToRun, UsageError
from agentv_ci.execute.run import RunOptions, RunServices, StoredAnswers
from agentv_ci.load.discover import find_root
from agentv_ci.results.files import read_rows
from agentv_ci.results.resume import unpriced_answer
from agentv_ci.text import listed


@dataclass(slots=True)
class _Contents:
    """What a results file holds, without its answers."""

    rows: int = 0
    trials: dict[CaseKey, set[int]] = field(default_factory=dict)
    targets: dict[str, None] = field(default_factory=dict)
    target_of: dict[CaseKey, str] = field(default_factory=dict)
    is_dry_run: bool = False
    has_no_messages: int = 0
    """Rows whose tool calls are known to have been reported, and are not there."""


@dataclass(frozen=True, slots=True)
class Rescoring:
    """Stored answers, and the plan that scores them."""

    compiled: Compiled
    results: Path
    left_out: tuple[str, ...]
    """Sentences about what is not scored."""
    is_dry_run: bool
    """Whether the answers are the mock's."""
    _keys: frozenset[CaseKey]
    _number: int

    def stored(self) -> StoredAnswers:
        """Return the rows of the plan's cases."""
        return StoredAnswers(
            lambda: (row for row in read_rows(self.results) if (row.suite, row.eval_id) in self._keys), self._number
        )


def prepare_rescoring(results: Path, selection: Selection, *, cwd: Path) -> Rescoring:
    """Read results and compile what scores them: the paths of `selection`, else the eval files that the rows name.

    Without a target of its own, the documents are compiled for the one that answered. Raises UsageError for results
    that cannot be read or hold a trial twice, NothingToRun, and what `compile_paths` raises.
    """
    contents = _contents(results)
    if not contents.rows:
        raise NothingToRun(f"'{results}' has no rows")
    root = find_root(cwd / "results", cwd)
    patterns = selection.patterns or _suites(contents, root)
    is_plan = any(pattern.endswith(".json") for pattern in patterns)
    target = selection.target
    if target is None and not is_plan and len(contents.targets) == 1:
        (target,) = contents.targets
    compiled = compile_paths(replace(selection, patterns=patterns, target=target), cwd=cwd)
    return _matched(compiled, contents, results)


def _suites(contents: _Contents, root: Path) -> Sequence[str]:
    suites = list(dict.fromkeys(suite for suite, _ in contents.trials))
    gone = [suite for suite in suites if not (root / suite).is_file()]
    if gone:
        raise UsageError(
            f"the rows are of {listed(gone)}, which is not below '{root}'",
            hint="name the eval files, or a plan, after the results",
        )
    return [str(root / suite) for suite in suites]


def _matched(compiled: Compiled, contents: _Contents, results: Path) -> Rescoring:
    plan = compiled.plan
    answered = {
        case_key(case): plan.targets[case.target].name for case in plan.cases if case_key(case) in contents.trials
    }
    others = [key for key, name in answered.items() if contents.target_of[key] != name]
    keys = frozenset(answered.keys() - set(others))
    sentences = []
    if unknown := [case_id for suite, case_id in contents.trials if (suite, case_id) not in answered]:
        sentences.append(f"no case any more, left out: {listed(unknown)}")
    if others:
        sentences.append(f"answered by another target, left out: {listed(case_id for _, case_id in others)}")
    if missing := [case.id for case in plan.cases if case_key(case) not in contents.trials]:
        sentences.append(f"no stored answer, left out: {listed(missing)}")
    kept = [case for case in plan.cases if case_key(case) in keys]
    # Of a case that stops when it is decided, fewer are enough; whether they still are is seen when they are scored.
    fewer = [case.id for case in kept if case.stop_when is None and len(contents.trials[case_key(case)]) < case.trials]
    if fewer:
        sentences.append(f"fewer trials stored than the case wants, judged by those: {listed(fewer)}")
    if contents.has_no_messages and any(map(_reads_calls, kept)):
        rows = "1 row has" if contents.has_no_messages == 1 else f"{contents.has_no_messages} rows have"
        sentences.append(f"{rows} no messages of the answer, so tool calls are not known; run with --include-trace")
    if not keys:
        raise NothingToRun(f"no row of '{results}' is of a case of these documents", hint="; ".join(sentences) or None)
    narrow = narrowed(plan, lambda case: case_key(case) in keys)
    trials = {
        case_key(case): max((*contents.trials[case_key(case)], case.trials if case.stop_when is not None else 1))
        for case in kept
    }
    origin = replace(compiled.origin, sources=(*compiled.origin.sources, results))
    return Rescoring(
        Compiled(with_trials(narrow, trials), origin),
        results,
        tuple(sentences),
        contents.is_dry_run,
        keys,
        sum(len(contents.trials[key]) for key in keys),
    )


def _reads_calls(case: PlanCase) -> bool:
    """Whether an evaluator of a case looks at tool calls."""
    readers = (ToolTrajectoryEvaluator, ToolCallsEvaluator, PlanCodeEvaluator)
    return any(isinstance(each, readers) for each in flat(case.evaluators))


async def rescore(
    rescoring: Rescoring, overrides: Overrides, options: RunOptions, files: RunFiles, services: RunServices
) -> Outcome:
    """Score stored answers with the plan's evaluators, and write results and reports as a run does.

    Rows without an answer stay as they are. Raises what `run_plan` raises.
    """
    files.require_writable(rescoring.compiled.origin.sources)
    plan = override(rescoring.compiled.plan, overrides)
    stored = rescoring.stored()
    ending = await run_trials(plan, options, files, services, stored=stored)
    unpriced = (*ending.unpriced_models, *_unpriced(plan, stored, dry_run=options.dry_run))
    return conclude(plan, files, replace(ending, unpriced_models=tuple(dict.fromkeys(unpriced))))


def _unpriced(plan: Plan, stored: StoredAnswers, *, dry_run: bool) -> Iterator[str]:
    """Yield the models whose answers have no known cost: what they took is part of the run all the same."""
    targets = {case_key(case): plan.targets[case.target] for case in plan.cases}
    for row in stored.read():
        if not dry_run and not row.dry_run and row.error_kind in (None, "evaluator"):
            yield from unpriced_answer(row, targets[row.suite, row.eval_id])


def _contents(results: Path) -> _Contents:
    contents = _Contents()
    for row in read_rows(results):
        key = (row.suite, row.eval_id)
        trials = contents.trials.setdefault(key, set())
        if row.trial in trials:
            raise UsageError(
                f"'{results}' holds trial {row.trial} of case '{row.eval_id}' twice",
                hint="rescore the results of one run, with one target for each case",
            )
        if contents.target_of.setdefault(key, row.target) != row.target:
            raise UsageError(
                f"'{results}' holds answers of two targets to case '{row.eval_id}'",
                hint="rescore the results of one run, with one target for each case",
            )
        trials.add(row.trial)
        contents.rows += 1
        contents.targets[row.target] = None
        contents.is_dry_run |= row.dry_run
        contents.has_no_messages += row.trace_summary is not None and row.output_messages is None
    return contents
