"""Settings of evaluators."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path

from agentv_ci.contracts.diagnostics import Diagnostic
from agentv_ci.contracts.documents import Surroundings
from agentv_ci.contracts.evals import EvalDocument
from agentv_ci.contracts.evaluators import (
    AuthoredEvaluator,
    CodeEvaluator,
    ContainsEvaluator,
    LlmJudgeEvaluator,
    RegexEvaluator,
    SchemaEvaluator,
    ToolTrajectoryEvaluator,
)
from agentv_ci.contracts.source import Pointer
from agentv_ci.schemas import invalid_schema
from agentv_ci.validate.findings import Finder

SCHEMA_SUFFIXES = (".json", ".yaml", ".yml")


def evaluator_lists(document: EvalDocument) -> Iterator[tuple[Pointer, tuple[AuthoredEvaluator, ...]]]:
    """Every list of evaluators in a document, with its place."""
    if document.execution and document.execution.evaluators:
        yield ("execution", "evaluators"), document.execution.evaluators
    for index, case in enumerate(document.evalcases):
        if case.evaluators:
            yield ("evalcases", index, "evaluators"), case.evaluators
        if case.execution and case.execution.evaluators:
            yield ("evalcases", index, "execution", "evaluators"), case.execution.evaluators


def check(document: EvalDocument, find: Finder, surroundings: Surroundings) -> Iterator[Diagnostic]:
    """AV309, AV310 and AV320 for every evaluator."""
    for pointer, evaluators in evaluator_lists(document):
        for index, evaluator in enumerate(evaluators):
            yield from _check((*pointer, index), evaluator, find, surroundings)


def _check(
    pointer: Pointer, evaluator: AuthoredEvaluator, find: Finder, surroundings: Surroundings
) -> Iterator[Diagnostic]:
    match evaluator:
        case CodeEvaluator():
            yield from _check_command(pointer, evaluator, find)
        case RegexEvaluator():
            yield from _check_pattern(pointer, evaluator, find)
        case SchemaEvaluator():
            yield from _check_schema(pointer, evaluator, find, surroundings)
        case ToolTrajectoryEvaluator():
            yield from _check_trajectory(pointer, evaluator, find)
        case LlmJudgeEvaluator():
            if evaluator.prompt is not None and evaluator.prompt_path is not None:
                yield find.at("AV320", "give 'prompt' or 'prompt_path', not both", (*pointer, "prompt_path"), key=True)
        case ContainsEvaluator():
            pass


def _check_command(pointer: Pointer, evaluator: CodeEvaluator, find: Finder) -> Iterator[Diagnostic]:
    if isinstance(evaluator.script, str) and evaluator.script_path is not None:
        try:
            shlex.split(evaluator.script)
        except ValueError as error:
            yield find.at("AV204", f"'script' cannot be split into words: {error}", (*pointer, "script"))
    if evaluator.program is not None and not Path(evaluator.program).exists():
        yield find.at("AV302", f"program '{evaluator.program}' is not found", (*pointer, "script"))


def _check_pattern(pointer: Pointer, evaluator: RegexEvaluator, find: Finder) -> Iterator[Diagnostic]:
    import regex

    try:
        regex.compile(evaluator.value)
    except (regex.error, RecursionError) as error:
        yield find.at("AV310", f"not a regular expression: {error}", (*pointer, "value"))


def _check_trajectory(pointer: Pointer, evaluator: ToolTrajectoryEvaluator, find: Finder) -> Iterator[Diagnostic]:
    needed = "minimums" if evaluator.mode == "any_order" else "expected"
    if not getattr(evaluator, needed):
        message = f"mode '{evaluator.mode}' needs '{needed}'"
        yield find.at("AV320", message, (*pointer, "mode"))


def _check_schema(
    pointer: Pointer, evaluator: SchemaEvaluator, find: Finder, surroundings: Surroundings
) -> Iterator[Diagnostic]:
    if (evaluator.schema_file is None) == (evaluator.schema_inline is None):
        some = "both are" if evaluator.schema_file is not None else "neither is"
        yield find.at("AV320", f"give either 'schema_file' or 'schema_inline'; {some} given", (*pointer, "type"))
    if evaluator.schema_inline is not None and (reason := invalid_schema(evaluator.schema_inline)):
        yield find.at("AV309", f"not a JSON Schema: {reason}", (*pointer, "schema_inline"))
    if evaluator.schema_file is not None:
        yield from _check_schema_file((*pointer, "schema_file"), evaluator.schema_file, find, surroundings)


def _check_schema_file(
    pointer: Pointer, reference: str, find: Finder, surroundings: Surroundings
) -> Iterator[Diagnostic]:
    path = find.source.resolve(reference)
    if path.suffix not in SCHEMA_SUFFIXES:
        message = f"a schema file ends in {', '.join(SCHEMA_SUFFIXES)}, not '{path.suffix or path.name}'"
        yield find.at("AV309", message, pointer)
        return
    try:
        schema = surroundings.read_yaml(path.read_bytes().decode("utf-8"))
    except UnicodeDecodeError:
        return  # reported as AV105 where files are checked
    except OSError:
        return  # reported as AV302 where files are checked
    except ValueError as error:
        yield find.at("AV309", f"cannot be read: {error}", pointer)
        return
    if reason := invalid_schema(schema):
        yield find.at("AV309", f"not a JSON Schema: {reason}", pointer)
