"""Files that documents refer to."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from agentv_ci.contracts.diagnostics import Diagnostic
from agentv_ci.contracts.documents import DocumentContext, ReferencedFile
from agentv_ci.contracts.evals import ContentBlock, EvalDocument, ExpectedMessage, InputMessage
from agentv_ci.contracts.evaluators import (
    AuthoredEvaluator,
    CodeAggregator,
    CodeEvaluator,
    CompositeEvaluator,
    LlmJudgeAggregator,
    LlmJudgeEvaluator,
    SchemaEvaluator,
    prompt_path,
)
from agentv_ci.contracts.source import Pointer
from agentv_ci.validate.findings import Finder
from agentv_ci.validate.looking import look_at
from agentv_ci.validate.rules.evaluators import EvaluatorList
from agentv_ci.validate.rules.messages import MARKER_HINT

Reference = tuple[Pointer, str]


def check(
    document: EvalDocument, lists: Iterable[EvaluatorList], find: Finder, context: DocumentContext
) -> Iterator[Diagnostic]:
    """AV105, AV302, AV303, AV308 and AV318 for every file an eval document names."""
    looked: dict[str, _Looked] = {}
    for is_message, references in ((True, _of_messages(document)), (False, _of_evaluators(lists))):
        for pointer, reference in references:
            if reference not in looked:
                looked[reference] = _look(reference, find, context)
            seen = looked[reference]
            # An empty schema is an error of its own.
            if seen.problem is not None and not (pointer[-1] == "schema_file" and seen.problem[0] == "AV303"):
                yield find.at(*seen.problem, pointer)
            if is_message and seen.has_role_marker:
                message = f"file '{reference}' holds a role marker: {find.source.resolve(reference)}"
                yield find.at("AV308", message, pointer, hint=MARKER_HINT)


@dataclass(frozen=True, slots=True)
class _Looked:
    """What is to be said of a reference, wherever it stands."""

    problem: tuple[str, str] | None
    """A rule and its message."""
    has_role_marker: bool


def check_reference(pointer: Pointer, reference: str, find: Finder, context: DocumentContext) -> Iterator[Diagnostic]:
    """AV105, AV302, AV303 and AV318 for one file that a document names."""
    problem = _look(reference, find, context).problem
    if problem is not None:
        yield find.at(*problem, pointer)


def _look(reference: str, find: Finder, context: DocumentContext) -> _Looked:
    path, seen = look_at(reference, find, context)
    return _Looked(_problem(reference, path, seen, find.source.root), seen.has_role_marker)


def _problem(reference: str, path: Path, seen: ReferencedFile, root: Path) -> tuple[str, str] | None:
    if not reference:
        return "AV302", "the path is empty"
    if "://" in reference:
        return "AV302", f"'{reference}' is an address; only files of the repository are read"
    match seen.state:
        case "text":
            return None
        case "blank":
            return "AV303", f"file '{reference}' is empty: {path}"
        case "outside":
            return "AV318", f"file '{reference}' lies outside the repository {root}: {path}"
        case "missing":
            return "AV302", f"file '{reference}' is not found: {path}"
        case "folder":
            return "AV302", f"file '{reference}' is a folder, not a file: {path}"
        case "not UTF-8":
            return "AV105", f"file '{reference}' is not UTF-8: {path}"
        case "unreadable":
            return "AV105", f"file '{reference}' cannot be read: {seen.reason}: {path}"


def _of_messages(document: EvalDocument) -> Iterator[Reference]:
    for index, case in enumerate(document.evalcases):
        yield from _in_messages(("evalcases", index, "input_messages"), case.input_messages)
        yield from _in_messages(("evalcases", index, "expected_messages"), case.expected_messages)


def _in_messages(pointer: Pointer, messages: Iterable[InputMessage | ExpectedMessage]) -> Iterator[Reference]:
    for number, message in enumerate(messages):
        if isinstance(message.content, tuple):
            for part, block in enumerate(message.content):
                if isinstance(block, ContentBlock) and block.type == "file":
                    yield (*pointer, number, "content", part, "value"), block.value


def _of_evaluators(lists: Iterable[EvaluatorList]) -> Iterator[Reference]:
    for pointer, evaluators in lists:
        for index, evaluator in enumerate(evaluators):
            yield from _of_evaluator((*pointer, index), evaluator)


def _of_evaluator(pointer: Pointer, evaluator: AuthoredEvaluator) -> Iterator[Reference]:
    match evaluator:
        case LlmJudgeEvaluator() if evaluator.prompt_file is not None:
            yield (*pointer, "prompt_path" if evaluator.prompt_path else "prompt"), evaluator.prompt_file
        case SchemaEvaluator() if evaluator.schema_file is not None:
            yield (*pointer, "schema_file"), evaluator.schema_file
        case CodeEvaluator():
            if evaluator.script_path is not None:
                yield (*pointer, "script"), evaluator.script_path
            for number, name in enumerate(evaluator.files):
                yield (*pointer, "files", number), name
        case CompositeEvaluator(aggregator=CodeAggregator() as aggregator) if aggregator.script_path is not None:
            yield (*pointer, "aggregator", "script"), aggregator.script_path
        case CompositeEvaluator(aggregator=LlmJudgeAggregator(prompt=prompt)) if path := prompt_path(prompt):
            yield (*pointer, "aggregator", "prompt"), path
        case _:
            pass
