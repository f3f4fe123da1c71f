"""Cases: their ids, messages and rubrics, and the validators of the whole run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from agentv_ci.base.text import counted, did_you_mean, listed
from agentv_ci.contracts.diagnostics import Diagnostic
from agentv_ci.contracts.documents import ROLE_MARKER
from agentv_ci.contracts.evals import (
    CaseExecution,
    ContentBlock,
    EvalDocument,
    ExpectedMessage,
    InputMessage,
)
from agentv_ci.contracts.judge_evaluators import RUBRICS_NAME, RubricItem
from agentv_ci.contracts.source import Pointer
from agentv_ci.validate.findings import Finder
from agentv_ci.validate.rules.evaluators import check_rubrics

MARKER_HINT = (
    "agents that get the conversation as one text read it as a turn; "
    "write each turn as a separate message"
)


def check(document: EvalDocument, find: Finder) -> Iterator[Diagnostic]:
    """AV301 and AV320 for ids, targets, evaluators and rubrics; AV308, AV321, AV328 for messages.

    AV311 and AV323 for validators, AV345 for `only`.
    """
    ids = (case.id for case in document.evalcases)
    yield from find.duplicates("case id", ids, ("evalcases",), "id")
    yield from _check_targets((), document, find)
    yield from _check_targets(("execution",), document.execution, find)
    yield from _check_validators(document, find)
    for index in range(len(document.evalcases)):
        yield from _check_case(document, index, find)


def _check_case(document: EvalDocument, index: int, find: Finder) -> Iterator[Diagnostic]:
    case, place = document.evalcases[index], ("evalcases", index)
    if case.only:
        left_out = counted(len(document.left_out), "other case")
        message = f"'only' leaves out {left_out} of the file"
        hint = "remove it when you are done"
        yield find.at("AV345", message, (*place, "only"), key=True, hint=hint)
    if case.rubrics:
        yield from _check_rubrics(document, index, case.rubrics, find)
    if case.execution is not None:
        if case.execution.evaluators and case.evaluators:
            message = "'evaluators' and 'execution.evaluators' cannot be combined"
            yield find.at("AV320", message, (*place, "evaluators"), key=True)
        yield from _check_targets((*place, "execution"), case.execution, find)
    yield from _check_messages((*place, "input_messages"), case.inputs, find)
    for number, expected in enumerate(case.expectations):
        yield from _check_expected((*place, "expected_messages", number), expected, find)


def _check_rubrics(
    document: EvalDocument, index: int, rubrics: Sequence[str | RubricItem], find: Finder
) -> Iterator[Diagnostic]:
    place: Pointer = ("evalcases", index, "rubrics")
    yield from check_rubrics(place, rubrics, find)
    evaluators = document.evaluators_of(document.evalcases[index])
    if any(evaluator.name == RUBRICS_NAME for evaluator in evaluators):
        message = (
            f"an evaluator is named '{RUBRICS_NAME}', the name reserved for the case's own rubrics"
        )
        yield find.at("AV301", message, place, key=True, hint="rename the evaluator")


def _check_targets(
    place: Pointer, owner: EvalDocument | CaseExecution | None, find: Finder
) -> Iterator[Diagnostic]:
    if owner is None or owner.targets is None:
        return
    if owner.target is not None:
        yield find.at(
            "AV320", "'target' and 'targets' cannot be combined", (*place, "targets"), key=True
        )
    yield from find.duplicates("target", owner.targets, (*place, "targets"))


def _check_validators(document: EvalDocument, find: Finder) -> Iterator[Diagnostic]:
    if document.execution is None or not document.execution.validators:
        return
    from agentv_ci.validators.builtin import BUILT_IN, wrong_settings  # few documents have any

    for index, use in enumerate(document.execution.validators):
        pointer: Pointer = ("execution", "validators", index)
        key_pointer: Pointer = (*pointer, "key")
        if isinstance(use, str):
            name, settings, key_pointer = use, {}, pointer
        else:
            name, settings = use.key, use.__pydantic_extra__ or {}
        if name not in BUILT_IN and name not in (plugins := find.context.plugin_validators()):
            known = sorted({*BUILT_IN, *plugins})
            message = (
                f"unknown validator '{name}'{did_you_mean(name, known)}; available: {listed(known)}"
            )
            yield find.at("AV311", message, key_pointer)
        for place, message in wrong_settings(name, settings):
            yield find.at("AV323", message, (*pointer, *place), key=place[0] in settings)


def _check_messages(
    pointer: Pointer, messages: tuple[InputMessage, ...], find: Finder
) -> Iterator[Diagnostic]:
    for number, message in enumerate(messages):
        for place, text in _texts(message.content):
            # A substring search is much faster, and markers are rare.
            if "@[" in text and (marker := ROLE_MARKER.search(text)):
                reason = f"the text contains the role marker '{marker[0]}'"
                yield find.at(
                    "AV308", reason, (*pointer, number, "content", *place), hint=MARKER_HINT
                )
    if messages[-1].role == "assistant":
        yield find.at(
            "AV321",
            "the last input message is from the assistant; there is nothing to answer",
            (*pointer, len(messages) - 1, "role"),
            hint="end with a message of role 'user' or 'tool'; "
            "put a reference answer in 'expected_messages'",
        )


def _texts(content: str | tuple[str | ContentBlock, ...]) -> Iterator[tuple[Pointer, str]]:
    if isinstance(content, str):
        yield (), content
        return
    for part, block in enumerate(content):
        if isinstance(block, str):
            yield (part,), block
        elif block.type == "text":
            yield (part, "value"), block.value


def _check_expected(
    pointer: Pointer, message: ExpectedMessage, find: Finder
) -> Iterator[Diagnostic]:
    if find.is_missing((*pointer, "role")):
        return
    if message.content is None and not (message.role == "assistant" and message.tool_calls):
        if not find.lost_part(pointer, deep=True):
            yield find.at("AV328", "missing field 'content'", (*pointer, "content"))
    elif isinstance(message.content, dict) and message.role != "assistant":
        refusal = f"only an assistant's content may be a mapping, not that of role '{message.role}'"
        yield find.at("AV328", refusal, (*pointer, "content"))
