"""Judges: their prompts, and judge sets."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from agentv_ci.contracts.diagnostics import Diagnostic
from agentv_ci.contracts.documents import JudgeSetDocument
from agentv_ci.contracts.evaluators import (
    AGGREGATOR_VARIABLES,
    PROMPT_VARIABLES,
    CompositeEvaluator,
    LlmJudgeAggregator,
    LlmJudgeEvaluator,
    prompt_path,
)
from agentv_ci.contracts.source import Pointer
from agentv_ci.text import did_you_mean, listed, nearest
from agentv_ci.validate.findings import Finder
from agentv_ci.validate.rules.file_references import check_reference
from agentv_ci.validate.rules.targets import authored_names, unknown_name
from agentv_ci.validate.walk import Evaluators

# Bounded, so that the time stays linear.
_BRACES = re.compile(r"\{\{(?!\{)(?P<inside>(?:(?!\{\{|\}\}).){1,500})\}\}|\{%(?:(?!\{%|%\}).){0,500}%\}", re.DOTALL)
_NAME = re.compile(r"[A-Za-z_]\w*")
_ONE_BRACE = re.compile(r"(?<!\{)\{\s{0,9}(?:candidate_answer|expected_messages)\s{0,9}\}(?!\})")

SHOWS_THE_ANSWER = frozenset({"candidate_answer", "generated_answer", "expected_messages"})


def check(evaluators: Evaluators, find: Finder) -> Iterator[Diagnostic]:
    """AV306 and AV307 for every prompt."""
    for pointer, evaluator in evaluators:
        match evaluator:
            case LlmJudgeEvaluator() if evaluator.prompt_file or evaluator.prompt:
                place = (*pointer, "prompt_path" if evaluator.prompt_path else "prompt")
                yield from _check_prompt(place, evaluator.name, evaluator.prompt_file, evaluator.prompt, find)
            case CompositeEvaluator(aggregator=LlmJudgeAggregator(prompt=str() as prompt)):
                place = (*pointer, "aggregator", "prompt")
                yield from _check_prompt(place, evaluator.name, prompt_path(prompt), prompt, find, combines=True)
            case _:
                pass


def check_judge_set(document: JudgeSetDocument, find: Finder) -> Iterator[Diagnostic]:
    """AV301, AV302, AV304, AV306, AV307 and AV320 for a judge set."""
    yield from find.duplicates(
        "item id", ((("items", index, "id"), each.id) for index, each in enumerate(document.items))
    )
    for index, item in enumerate(document.items):
        if item.verdict is None and item.score is None and not find.lost_part(("items", index)):
            yield find.at("AV320", "either 'verdict' or 'score' is required", ("items", index, "id"))
    if document.prompt_file is not None:
        yield from check_reference(("prompt",), document.prompt_file, find)
    if document.prompt is not None:
        yield from _check_prompt(("prompt",), None, document.prompt_file, document.prompt, find)
    targets = find.context.targets
    if targets is not None and targets.document is not None:
        names = authored_names(targets.source)
        yield from unknown_name(find, ("judge_target",), "judge target", document.judge_target, names)


def _check_prompt(
    pointer: Pointer,
    evaluator: str | None,
    file_reference: str | None,
    prompt: str | None,
    find: Finder,
    *,
    combines: bool = False,
) -> Iterator[Diagnostic]:
    """Check a prompt in place or in a file; one that `combines` scores need not show the answer."""
    title, text = (f"'prompt' of evaluator '{evaluator}'" if evaluator is not None else "'prompt'"), prompt or ""
    if file_reference is not None:
        path, file = find.file(file_reference)
        if file.state != "text":
            return  # reported by file_references
        title, text = str(path), path.read_text("utf-8")
    variables = list(_variables(text))
    if not combines:
        yield from _check_shown(pointer, title, text, variables, find)
    yield from _check_variables(pointer, title, variables, AGGREGATOR_VARIABLES if combines else PROMPT_VARIABLES, find)


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
        yield _Variable(match[0], name[0] if name else "", inside)


def _check_shown(
    pointer: Pointer, title: str, text: str, variables: Sequence[_Variable], find: Finder
) -> Iterator[Diagnostic]:
    # One that is misspelt, or given to a filter, is a mistake of its own: AV307.
    if not any(nearest(each.name, SHOWS_THE_ANSWER) for each in variables if each.name):
        braces = "; a variable has two braces on each side" if _ONE_BRACE.search(text) else ""
        yield find.at(
            "AV306",
            f"Custom evaluator template at {title} is missing required fields: "
            "{{ candidate_answer }} or {{ expected_messages }}",
            pointer,
            hint=f"Without these, there is nothing to evaluate against{braces}",
        )


def _check_variables(
    pointer: Pointer, title: str, variables: Sequence[_Variable], known: Sequence[str], find: Finder
) -> Iterator[Diagnostic]:
    unknown = dict.fromkeys(each.written for each in variables if each.inside not in known)
    if not unknown:
        return
    names = [each.name for each in variables if each.name]
    close = "".join(dict.fromkeys(did_you_mean(name, known) for name in names if name not in known))
    yield find.at(
        "AV307",
        f"Custom evaluator template at {title} has unknown variables: {listed(unknown)}{close}",
        pointer,
        hint=f"valid variables: {listed(f'{{{{ {name} }}}}' for name in known)}; anything else stays as written",
    )
