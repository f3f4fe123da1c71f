"""Judges: their prompts, and judge sets."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from agentv_ci.base.text import did_you_mean, listed, nearest
from agentv_ci.contracts.diagnostics import Diagnostic
from agentv_ci.contracts.evaluators import CompositeEvaluator, LlmJudgeAggregator
from agentv_ci.contracts.judge_evaluators import (
    AGGREGATOR_VARIABLES,
    PROMPT_VARIABLES,
    JudgeSetDocument,
    LlmJudgeEvaluator,
    prompt_path,
)
from agentv_ci.contracts.source import Pointer
from agentv_ci.validate.findings import Finder
from agentv_ci.validate.rules.file_references import check_reference
from agentv_ci.validate.rules.targets import authored_names, unknown_name
from agentv_ci.validate.walk import Evaluators

# Bounded, so that the time stays linear.
_BRACES = re.compile(
    r"\{\{(?!\{)(?P<inside>(?:(?!\{\{|\}\}).){1,500})\}\}|\{%(?:(?!\{%|%\}).){0,500}%\}", re.DOTALL
)
_NAME = re.compile(r"[A-Za-z_]\w*")
_ONE_BRACE = re.compile(r"(?<!\{)\{\s{0,9}(?:candidate_answer|expected_messages)\s{0,9}\}(?!\})")

SCALE_HINT = (
    "add it, such as `scale: [1, 5]`, and scores are converted; "
    "`scale: [0, 1]` if these numbers are no scale"
)

SHOWS_THE_ANSWER = frozenset({"candidate_answer", "generated_answer", "expected_messages"})


class _Prompt(NamedTuple):
    """A prompt of a judge in a document."""

    pointer: Pointer
    evaluator: str | None
    """The name of the evaluator, if it is of one."""
    file_reference: str | None
    text: str | None
    """The prompt itself, if it is in place."""
    gives_score: bool = True
    """Whether the judge replies with a score, not with checks."""
    scale: tuple[float, ...] | None = None
    combines: bool = False
    """Whether it combines scores; one that does need not show the answer."""


def check(evaluators: Evaluators, find: Finder) -> Iterator[Diagnostic]:
    """AV306, AV307 and AV333 for every prompt, and AV320 for every scale."""
    for pointer, evaluator in evaluators:
        match evaluator:
            case LlmJudgeEvaluator():
                yield from _check_llm_judge(pointer, evaluator, find)
            case CompositeEvaluator(aggregator=LlmJudgeAggregator() as aggregator):
                yield from _check_scale((*pointer, "aggregator"), aggregator.scale, find)
                if aggregator.prompt is not None:
                    place, file = (*pointer, "aggregator", "prompt"), prompt_path(aggregator.prompt)
                    prompt = _Prompt(place, evaluator.name, file, aggregator.prompt)
                    yield from _check_prompt(
                        prompt._replace(scale=aggregator.scale, combines=True), find
                    )
            case _:
                pass


def _check_llm_judge(
    pointer: Pointer, evaluator: LlmJudgeEvaluator, find: Finder
) -> Iterator[Diagnostic]:
    gives_score = evaluator.rubrics is None
    yield from _check_scale(pointer, evaluator.scale, find, has_rubrics=not gives_score)
    if evaluator.prompt_file or evaluator.prompt:
        place = (*pointer, "prompt_path" if evaluator.prompt_path else "prompt")
        prompt = _Prompt(place, evaluator.name, evaluator.prompt_file, evaluator.prompt)
        scored = prompt._replace(gives_score=gives_score, scale=evaluator.scale)
        yield from _check_prompt(scored, find)


def check_judge_set(document: JudgeSetDocument, find: Finder) -> Iterator[Diagnostic]:
    """AV301, AV302, AV304, AV306, AV307, AV320 and AV333 for a judge set."""
    ids = (item.id for item in document.items)
    yield from find.duplicates("item id", ids, ("items",), "id")
    for index, item in enumerate(document.items):
        if item.verdict is None and item.score is None and not find.lost_part(("items", index)):
            message = "either 'verdict' or 'score' is required"
            yield find.at("AV320", message, ("items", index, "id"))
    yield from _check_scale((), document.scale, find)
    if document.prompt_file is not None:
        yield from check_reference(("prompt",), document.prompt_file, find)
    if document.prompt is not None:
        prompt = _Prompt(("prompt",), None, document.prompt_file, document.prompt)
        yield from _check_prompt(prompt._replace(scale=document.scale), find)
    targets = find.context.targets
    if targets is not None and targets.document is not None:
        names = authored_names(targets.source)
        yield from unknown_name(
            find, ("judge_target",), "judge target", document.judge_target, names
        )


def _check_scale(
    pointer: Pointer, scale: tuple[float, ...] | None, find: Finder, *, has_rubrics: bool = False
) -> Iterator[Diagnostic]:
    if scale is None:
        return
    if scale[0] >= scale[1]:
        hint = "the lowest score comes first, and means that nothing is right"
        yield find.at(
            "AV320",
            "'scale' must go from a lower to a higher score",
            (*pointer, "scale"),
            hint=hint,
        )
    if has_rubrics:
        message = "'scale' is not used with 'rubrics', which the judge checks without a score"
        yield find.at("AV320", message, (*pointer, "scale"), key=True)


def _check_prompt(prompt: _Prompt, find: Finder) -> Iterator[Diagnostic]:
    """Check a prompt in place or in a file."""
    title, text = "'prompt'", prompt.text or ""
    if prompt.evaluator is not None:
        title = f"'prompt' of evaluator '{prompt.evaluator}'"
    if prompt.file_reference is not None:
        path, file = find.file(prompt.file_reference)
        if file.state != "text":
            return  # reported by file_references
        title, text = str(path), path.read_text("utf-8")
    pointer, variables = prompt.pointer, list(_variables(text))
    if not prompt.combines:
        yield from _check_shown(pointer, title, text, variables, find)
    known = AGGREGATOR_VARIABLES if prompt.combines else PROMPT_VARIABLES
    yield from _check_variables(pointer, title, variables, known, find)
    if prompt.gives_score and prompt.scale is None:
        from agentv_ci.validate.rules.judge_scales import (
            asked_scale,
        )  # its patterns take long to compile

        if (asked := asked_scale(text)) is not None:
            message = f"{title} asks for another scale than 0 to 1 ('{asked.strip()}')"
            yield find.at("AV333", message, pointer, hint=SCALE_HINT)


class _Variable(NamedTuple):
    """Text in braces: a variable, or syntax of template languages, which is not supported."""

    written: str
    name: str
    """The first name in it."""
    inside: str


def _variables(text: str) -> Iterator[_Variable]:
    for match in _BRACES.finditer(text):
        inside = (match["inside"] or "").strip()
        name = _NAME.search(inside)
        yield _Variable(match[0], name[0] if name is not None else "", inside)


def _check_shown(
    pointer: Pointer, title: str, text: str, variables: Sequence[_Variable], find: Finder
) -> Iterator[Diagnostic]:
    # One that is misspelt, or given to a filter, is a mistake of its own: AV307.
    if any(nearest(variable.name, SHOWS_THE_ANSWER) for variable in variables if variable.name):
        return
    hint = "Without these, there is nothing to evaluate against"
    if _ONE_BRACE.search(text):
        hint = f"{hint}; a variable has two braces on each side"
    yield find.at(
        "AV306",
        f"Custom evaluator template at {title} is missing required fields: "
        "{{ candidate_answer }} or {{ expected_messages }}",
        pointer,
        hint=hint,
    )


def _check_variables(
    pointer: Pointer, title: str, variables: Sequence[_Variable], known: Sequence[str], find: Finder
) -> Iterator[Diagnostic]:
    unknown: dict[str, None] = {}
    suggestions: dict[str, None] = {}
    for variable in variables:
        if variable.inside not in known:
            unknown[variable.written] = None
        if variable.name and variable.name not in known:
            suggestions[did_you_mean(variable.name, known)] = None
    if not unknown:
        return
    close = "".join(suggestions)
    valid = listed(f"{{{{ {name} }}}}" for name in known)
    yield find.at(
        "AV307",
        f"Custom evaluator template at {title} has unknown variables: {listed(unknown)}{close}",
        pointer,
        hint=f"valid variables: {valid}; anything else stays as written",
    )
