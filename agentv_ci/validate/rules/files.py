"""Files that documents refer to."""

from __future__ import annotations

from collections.abc import Iterator

from agentv_ci.contracts.diagnostics import Diagnostic
from agentv_ci.contracts.evals import ContentBlock, EvalDocument, ExpectedMessage, InputMessage
from agentv_ci.contracts.evaluators import AuthoredEvaluator, CodeEvaluator, LlmJudgeEvaluator, SchemaEvaluator
from agentv_ci.contracts.source import Pointer, Source
from agentv_ci.validate.findings import Finder
from agentv_ci.validate.rules.evaluators import evaluator_lists


def check(document: EvalDocument, find: Finder) -> Iterator[Diagnostic]:
    """AV302, AV303, AV105 and AV318 for every file an eval document names."""
    for pointer, reference in _references(document):
        yield from _check(find, pointer, reference)


def _references(document: EvalDocument) -> Iterator[tuple[Pointer, str]]:
    for index, case in enumerate(document.evalcases):
        for key in ("input_messages", "expected_messages"):
            messages: tuple[InputMessage | ExpectedMessage, ...] = getattr(case, key)
            for number, message in enumerate(messages):
                content = message.content if isinstance(message.content, tuple) else ()
                for part, block in enumerate(content):
                    if isinstance(block, ContentBlock) and block.type == "file":
                        yield ("evalcases", index, key, number, "content", part, "value"), block.value
    for pointer, evaluators in evaluator_lists(document):
        for index, evaluator in enumerate(evaluators):
            yield from _of_evaluator((*pointer, index), evaluator)


def _of_evaluator(pointer: Pointer, evaluator: AuthoredEvaluator) -> Iterator[tuple[Pointer, str]]:
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
        case _:
            pass


def _check(find: Finder, pointer: Pointer, reference: str) -> Iterator[Diagnostic]:
    source = find.source
    path = source.resolve(reference)
    if not reference:
        yield find.at("AV302", "the path is empty", pointer)
    elif _leaves(source, reference):
        yield find.at("AV318", f"file '{reference}' lies outside the repository {source.root}: {path}", pointer)
    elif not path.is_file():
        kind = "a folder, not a file" if path.is_dir() else "not found"
        yield find.at("AV302", f"file '{reference}' is {kind}: {path}", pointer)
    else:
        try:
            text = path.read_bytes().decode("utf-8")
        except (OSError, UnicodeDecodeError) as error:
            reason = "is not UTF-8" if isinstance(error, UnicodeDecodeError) else f"cannot be read: {error.strerror}"
            yield find.at("AV105", f"file '{reference}' {reason}: {path}", pointer)
        else:
            if not text.strip():
                yield find.at("AV303", f"file '{reference}' is empty: {path}", pointer)


def _leaves(source: Source, reference: str) -> bool:
    path = source.resolve(reference).resolve()
    # A file outside of any repository may still refer to what lies beside it.
    homes = (source.root.resolve(), source.path.parent.resolve())
    return not any(path.is_relative_to(home) for home in homes)
