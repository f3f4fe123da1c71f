"""Files that documents refer to."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from agentv_ci.contracts.answer_evaluators import SchemaEvaluator
from agentv_ci.contracts.attachments import LFS_POINTER
from agentv_ci.contracts.diagnostics import Diagnostic
from agentv_ci.contracts.documents import FileState, ReferencedFile
from agentv_ci.contracts.evals import ContentBlock, EvalDocument, ExpectedMessage, InputMessage
from agentv_ci.contracts.evaluators import (
    CodeAggregator,
    CodeEvaluator,
    CompositeEvaluator,
    LlmJudgeAggregator,
)
from agentv_ci.contracts.judge_evaluators import LlmJudgeEvaluator, prompt_path
from agentv_ci.contracts.source import Pointer
from agentv_ci.validate.findings import Finder
from agentv_ci.validate.rules.cases import MARKER_HINT
from agentv_ci.validate.walk import Evaluators

FileReference = tuple[Pointer, str]

PROBLEMS: Mapping[FileState, tuple[str, str]] = {
    "blank": ("AV303", "is empty"),
    "outside": ("AV318", "is outside the repository {root}"),
    "missing": ("AV302", "does not exist"),
    "folder": ("AV302", "is a folder"),
    "not UTF-8": ("AV105", "is not UTF-8"),
    "unreadable": ("AV105", "cannot be read: {reason}"),
    "LFS pointer": ("AV105", f"is {LFS_POINTER}"),
}


class Inspected(NamedTuple):
    """What is known of a referenced file."""

    problem: tuple[str, str] | None
    """A rule and its message."""
    has_role_marker: bool


def check(document: EvalDocument, evaluators: Evaluators, find: Finder) -> Iterator[Diagnostic]:
    """AV105, AV302, AV303, AV308 and AV318 for every file reference of an eval document."""
    if written := prompt_path(document.system_prompt):
        yield from check_reference(("system_prompt",), written, find)
    inspected: dict[str, Inspected] = {}
    written_in = ((True, _of_messages(document)), (False, _of_evaluators(evaluators)))
    for is_message, references in written_in:
        for pointer, file_reference in references:
            if file_reference not in inspected:
                path, file = find.file(file_reference)
                problem = file_problem(file_reference, path, file, find)
                inspected[file_reference] = Inspected(problem, file.has_role_marker)
            problem, has_role_marker = inspected[file_reference]
            # An empty schema is AV309.
            if problem is not None and not (pointer[-1] == "schema_file" and problem[0] == "AV303"):
                yield find.at(*problem, pointer)
            if is_message and has_role_marker:
                path = find.source.resolve(file_reference)
                message = f"file '{file_reference}' contains a role marker: {path}"
                yield find.at("AV308", message, pointer, hint=MARKER_HINT)


def check_reference(pointer: Pointer, file_reference: str, find: Finder) -> Iterator[Diagnostic]:
    """AV105, AV302, AV303 and AV318 for one file reference."""
    if (problem := file_problem(file_reference, *find.file(file_reference), find)) is not None:
        yield find.at(*problem, pointer)


def file_problem(
    file_reference: str, path: Path, file: ReferencedFile, find: Finder
) -> tuple[str, str] | None:
    """Return a rule and its message."""
    if not file_reference:
        return "AV302", "the path is empty"
    if "://" in file_reference:
        return "AV302", f"'{file_reference}' is a URL; only files in the repository can be used"
    if file.state == "text":
        return None
    rule, sentence = PROBLEMS[file.state]
    reason = sentence.format(root=find.source.root, reason=file.reason)
    return rule, f"file '{file_reference}' {reason}: {path}"


def _of_messages(document: EvalDocument) -> Iterator[FileReference]:
    for index, case in enumerate(document.evalcases):
        yield from _in_messages(("evalcases", index, "input_messages"), case.inputs)
        yield from _in_messages(("evalcases", index, "expected_messages"), case.expectations)


def _in_messages(
    pointer: Pointer, messages: Iterable[InputMessage | ExpectedMessage]
) -> Iterator[FileReference]:
    for number, message in enumerate(messages):
        if isinstance(message.content, tuple):
            for part, block in enumerate(message.content):
                if isinstance(block, ContentBlock) and block.type == "file":
                    yield (*pointer, number, "content", part, "value"), block.value


def _of_evaluators(evaluators: Evaluators) -> Iterator[FileReference]:
    for pointer, evaluator in evaluators:
        match evaluator:
            case LlmJudgeEvaluator() if evaluator.prompt_file is not None:
                yield (
                    (*pointer, "prompt_path" if evaluator.prompt_path else "prompt"),
                    evaluator.prompt_file,
                )
            case SchemaEvaluator() if evaluator.schema_file is not None:
                yield (*pointer, "schema_file"), evaluator.schema_file
            case CodeEvaluator():
                if evaluator.script_path is not None:
                    yield (*pointer, "script"), evaluator.script_path
                for number, name in enumerate(evaluator.files):
                    yield (*pointer, "files", number), name
            case CompositeEvaluator(aggregator=CodeAggregator() as aggregator) if (
                aggregator.script_path is not None
            ):
                yield (*pointer, "aggregator", "script"), aggregator.script_path
            case CompositeEvaluator(aggregator=LlmJudgeAggregator(prompt=prompt)) if (
                path := prompt_path(prompt)
            ):
                yield (*pointer, "aggregator", "prompt"), path
            case _:
                pass
