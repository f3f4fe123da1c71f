"""The Python API: run eval files or documents, and get results with verdicts and reasons.

See docs/python.md.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypedDict, cast

from msgspec import Struct
from msgspec.structs import replace
from typing_extensions import Unpack

from agentv_ci.analysis.cases.outcomes import CaseOutcome
from agentv_ci.app.documents.compile import CompiledPlan, Selection, compile_paths
from agentv_ci.app.run.environment import system_environment
from agentv_ci.app.run.files import RunFiles, RunOutcome
from agentv_ci.app.run.run import run_plan
from agentv_ci.base.mappings import known
from agentv_ci.base.text import did_you_mean
from agentv_ci.compile.overrides import Overrides
from agentv_ci.compile.selection import CaseFilter
from agentv_ci.contracts.base import JsonObject, Verdict
from agentv_ci.contracts.cases import CaseKey
from agentv_ci.contracts.report import GateVerdict, RunReport
from agentv_ci.contracts.results import ResultRow
from agentv_ci.errors import Interrupted, UsageError
from agentv_ci.execute.functions import AnswerFunction, function_target
from agentv_ci.execute.run_services import RunOptions, RunServices
from agentv_ci.load.files import with_dotenv
from agentv_ci.results.files import form_named, read_rows

__all__ = ["CaseResult", "Results", "RunKeywords", "run", "run_async"]

Evals = str | Path | Mapping[str, Any]
"""An eval file, a folder, a glob, a plan, or an eval document."""


class CaseResult(Struct, frozen=True):
    """The result of a case for one target."""

    id: str
    suite: str
    """The eval file, relative to the repository."""
    path: str
    """The file with the case: the eval file, or that of its row."""
    line: int
    """Where the case is in it."""
    target: str
    verdict: Verdict
    score: float | None
    """From 0 to 1; 0 if the verdict is `error`, None if it is `skipped`."""
    reasons: tuple[str, ...]
    """Why it did not pass, or why it is skipped; empty if it passed."""
    flaky: bool
    rows: tuple[ResultRow, ...]
    """Its trials."""


class Results(Struct, frozen=True):
    """The results of a run."""

    verdict: GateVerdict
    reasons: tuple[str, ...]
    """Why the gate is not passed."""
    exit_code: int
    """What `agentv-ci eval` would exit with."""
    cases: tuple[CaseResult, ...]
    report: RunReport
    warnings: tuple[str, ...]
    """Warnings about documents and about the run."""

    @property
    def passed(self) -> bool:
        """Whether the gate is passed."""
        return self.verdict == "pass"


class RunKeywords(TypedDict, total=False):
    """The options of a run, None for absent ones.

    Those not described here mean the same as for `agentv-ci eval`.
    """

    targets: str | Path
    target: str | Sequence[str] | AnswerFunction
    """The name of a target or several, or a function that answers questions."""
    eval_ids: Sequence[str]
    tags: Sequence[str]
    not_tags: Sequence[str]
    filter: str
    workers: int
    repeat: int
    seed: int
    threshold: float
    max_cost_usd: float
    dry_run: bool
    replay: str | Path
    out: str | Path
    """Where to write results, as JSONL or YAML by the suffix; without it nothing is written."""
    env: Mapping[str, str]
    """Replaces the environment."""
    cwd: str | Path
    """What all paths are relative to, also those in documents given as mappings; default: the
    working directory.
    """


def run(*evals: Evals, **options: Unpack[RunKeywords]) -> Results:
    """Run evals and return their results; prints nothing.

    Raises InvalidInput with the diagnostics of invalid documents, UsageError, NothingToRun, and
    TargetUnavailable (`agentv_ci.errors`); KeyboardInterrupt after finished rows are written;
    RuntimeError inside a running event loop.
    """
    return asyncio.run(run_async(*evals, **options))


async def run_async(*evals: Evals, **options: Unpack[RunKeywords]) -> Results:
    """Run evals and return their results, like `run`, in a running event loop.

    Raises CancelledError when cancelled.
    """
    if not evals:
        raise UsageError("no evals are given")
    options = _checked(options)
    target = options.get("target")
    if not callable(target):
        return await _run(_selection(evals, options), options)
    with function_target(target) as asked:
        named: RunKeywords = {**options, "target": asked.name}
        selection = replace(_selection(evals, named), more_targets=(asked,))
        return await _run(selection, named)


async def _run(selection: Selection, options: RunKeywords) -> Results:
    folder = _folder(options)
    return await run_compiled(compile_paths(selection, cwd=folder), options, folder)


async def run_compiled(compiled: CompiledPlan, options: RunKeywords, folder: Path) -> Results:
    """Run a plan and return its results.

    Raises what `run` raises, and CancelledError instead of KeyboardInterrupt.
    """
    run_options = RunOptions(
        root=compiled.origin.root,
        workers=options.get("workers"),
        max_cost_usd=options.get("max_cost_usd"),
        dry_run=options.get("dry_run", False),
        replay=folder / options["replay"] if "replay" in options else None,
        is_filtered=bool(_only(options)) or compiled.origin.left_out > 0,
    )
    overrides = Overrides(options.get("repeat"), options.get("seed"), options.get("threshold"))
    variables = with_dotenv(options.get("env", os.environ), compiled.origin.dotenv_files)
    warnings = [
        f"{warning.path}:{warning.line}:{warning.column}: {warning.message}"
        for warning in compiled.origin.warnings
    ]
    services = RunServices(system_environment(variables), warn=warnings.append)
    with TemporaryDirectory(prefix="agentv-run-") as scratch:
        results = folder / options["out"] if "out" in options else Path(scratch, "results.jsonl")
        files = RunFiles(results, form_named(results))
        try:
            outcome = await run_plan(compiled, overrides, run_options, files, services)
        except Interrupted as error:
            raise asyncio.CancelledError from error
        if outcome.report.stopped == "interrupted":
            # After Ctrl-C, `asyncio.run` makes this a KeyboardInterrupt.
            raise asyncio.CancelledError
        rows = tuple(read_rows(files.results, files.form))
    return _results(outcome, rows, warnings)


def _checked(options: RunKeywords) -> RunKeywords:
    """Return the options that are given.

    Raises TypeError for unknown ones, UsageError for impossible values.
    """
    for name in options.keys() - RunKeywords.__annotations__.keys():
        close = did_you_mean(name, RunKeywords.__annotations__)
        raise TypeError(f"run() got an unexpected option '{name}'{close}")
    given = known(options)
    for name, is_valid, expected in LIMITS:
        if name in given and not is_valid(given[name]):
            raise UsageError(f"{name}: {given[name]!r} is not {expected}")
    return cast("RunKeywords", given)


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1


def _is_number(value: object, most: float) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value <= most


def _are_names(value: object) -> bool:
    if isinstance(value, str) or callable(value):
        return True
    return isinstance(value, Sequence) and all(isinstance(name, str) for name in value)


LIMITS: Sequence[tuple[str, Callable[[object], bool], str]] = (
    ("target", _are_names, "a name, a list of names or a function"),
    ("workers", _is_count, "a whole number of at least 1"),
    ("repeat", _is_count, "a whole number of at least 1"),
    ("threshold", partial(_is_number, most=1.0), "a number from 0 to 1"),
    ("max_cost_usd", partial(_is_number, most=float("inf")), "a number of at least 0"),
)


def _folder(options: RunKeywords) -> Path:
    return Path(options.get("cwd", ".")).absolute()


def _only(options: RunKeywords) -> CaseFilter:
    return CaseFilter(
        _items(options.get("eval_ids", ())),
        _items(options.get("tags", ())),
        _items(options.get("not_tags", ())),
        options.get("filter"),
    )


def _selection(evals: Sequence[Evals], options: RunKeywords) -> Selection:
    paths: list[str] = []
    documents: list[JsonObject] = []
    for given in evals:
        if isinstance(given, Mapping):
            documents.append(_as_json(given))
        else:
            paths.append(str(given))
    return Selection(
        paths,
        targets=str(options["targets"]) if "targets" in options else None,
        target_names=tuple(_items(cast("Sequence[str]", options.get("target", ())))),
        only=_only(options),
        documents=tuple(documents),
    )


def _items(given: Sequence[str]) -> Sequence[str]:
    return [given] if isinstance(given, str) else given


def _as_json(document: Mapping[str, Any]) -> JsonObject:
    def as_dict(value: object) -> dict[Any, Any]:
        if isinstance(value, Mapping):
            return dict(value)
        raise TypeError(f"{value!r} is not JSON")

    try:
        found: JsonObject = json.loads(json.dumps(document, default=as_dict, allow_nan=False))
    except (TypeError, ValueError, RecursionError) as error:
        raise UsageError(f"a document given as a mapping is not JSON: {error}") from error
    return found


def _results(outcome: RunOutcome, rows: Sequence[ResultRow], warnings: Sequence[str]) -> Results:
    trials: dict[CaseKey, list[ResultRow]] = {}
    for row in rows:
        trials.setdefault(row.case_key, []).append(row)
    gate = outcome.report.gate
    return Results(
        verdict=gate.verdict,
        reasons=gate.reasons,
        exit_code=gate.exit_code,
        cases=tuple(_case(case, trials.get(case.key, ())) for case in outcome.cases),
        report=outcome.report,
        warnings=tuple(warnings),
    )


def _case(outcome: CaseOutcome, rows: Sequence[ResultRow]) -> CaseResult:
    return CaseResult(
        id=outcome.case.id,
        suite=outcome.case.suite,
        path=outcome.case.source.path,
        line=outcome.case.source.line,
        target=outcome.target,
        verdict=outcome.verdict,
        score=outcome.score if outcome.verdict != "skipped" else None,
        reasons=tuple(_reasons(outcome)),
        flaky=outcome.flaky,
        rows=tuple(sorted(rows, key=lambda row: row.trial)),
    )


def _reasons(outcome: CaseOutcome) -> Iterator[str]:
    """Yield why a case did not pass, or why it is skipped."""
    if outcome.verdict == "pass":
        return
    for finding in outcome.findings:
        yield f"{finding.title}: {finding.text or finding.verdict}"
    if not outcome.findings and outcome.summary:
        yield outcome.summary
