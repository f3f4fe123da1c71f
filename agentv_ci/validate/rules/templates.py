"""Prompts that authors write for judges."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from agentv_ci.contracts.diagnostics import Diagnostic
from agentv_ci.contracts.documents import DocumentContext
from agentv_ci.contracts.evaluators import (
    AGGREGATOR_VARIABLES,
    PROMPT_VARIABLES,
    AuthoredEvaluator,
    CompositeEvaluator,
    LlmJudgeAggregator,
    LlmJudgeEvaluator,
    prompt_path,
)
from agentv_ci.contracts.source import Pointer
from agentv_ci.text import did_you_mean, listed, nearest
from agentv_ci.validate.findings import Finder
from agentv_ci.validate.looking import look_at
from agentv_ci.validate.rules.evaluators import EvaluatorList

# Bounded, so that no prompt takes long. `{{` before anything but a name is text, such as JSON.
_BRACES = re.compile(r"\{\{(?P<inside>[^{}]{1,200})\}\}|\{%[^%\n]{0,200}%\}")
_NAME = re.compile(r"(?P<name>[A-Za-z_]\w*)(?P<more>.*)")
_ONE_BRACE = re.compile(r"(?<!\{)\{\s{0,9}(?:candidate_answer|expected_messages)\s{0,9}\}(?!\})")

SHOWS_THE_ANSWER = frozenset({"candidate_answer", "generated_answer", "expected_messages"})


def check(lists: Iterable[EvaluatorList], find: Finder, context: DocumentContext) -> Iterator[Diagnostic]:
    """AV306 and AV307 for every prompt."""
    for pointer, evaluators in lists:
        for index, evaluator in enumerate(evaluators):
            yield from _check((*pointer, index), evaluator, find, context)


def _check(
    pointer: Pointer, evaluator: AuthoredEvaluator, find: Finder, context: DocumentContext
) -> Iterator[Diagnostic]:
    match evaluator:
        case LlmJudgeEvaluator() if evaluator.prompt_file or evaluator.prompt:
            place = (*pointer, "prompt_path" if evaluator.prompt_path else "prompt")
            written = f"'prompt' of evaluator '{evaluator.name}'"
            yield from check_judge_prompt(place, written, evaluator.prompt_file, evaluator.prompt, find, context)
        case CompositeEvaluator(aggregator=LlmJudgeAggregator(prompt=str() as prompt)):
            place = (*pointer, "aggregator", "prompt")
            written = f"'prompt' of evaluator '{evaluator.name}'"
            source, text = _text(written, prompt_path(prompt), prompt, find, context)
            if text is not None:
                yield from _check_variables(place, source, text, AGGREGATOR_VARIABLES, find)
        case _:
            pass


def check_judge_prompt(
    pointer: Pointer, written: str, reference: str | None, prompt: str | None, find: Finder, context: DocumentContext
) -> Iterator[Diagnostic]:
    """AV306 and AV307 for a judge's prompt; `written`: how to call one that stands in place."""
    source, text = _text(written, reference, prompt, find, context)
    if text is not None:
        yield from _check_shown(pointer, source, text, find)
        yield from _check_variables(pointer, source, text, PROMPT_VARIABLES, find)


def _text(
    written: str, reference: str | None, prompt: str | None, find: Finder, context: DocumentContext
) -> tuple[str, str | None]:
    """Return how to call a prompt and what it says; None for a file that is said to be wrong elsewhere."""
    if reference is None:
        return written, prompt
    path, seen = look_at(reference, find, context)
    return str(path), path.read_text("utf-8") if seen.state == "text" else None


@dataclass(frozen=True, slots=True)
class _Variable:
    """Something between braces that looks like a template's."""

    written: str
    name: str = ""
    more: str = ""
    """What other template languages know behind a name: filters, attributes."""


def _variables(text: str) -> Iterator[_Variable]:
    for match in _BRACES.finditer(text):
        if match["inside"] is None:
            yield _Variable(match[0])
        elif named := _NAME.fullmatch(match["inside"].strip()):
            yield _Variable(match[0], named["name"], named["more"])


def _check_shown(pointer: Pointer, source: str, text: str, find: Finder) -> Iterator[Diagnostic]:
    # One that is misspelt, or given to a filter, is a mistake of its own: AV307.
    names = [variable.name for variable in _variables(text) if variable.name]
    if not any(nearest(name, SHOWS_THE_ANSWER) for name in names):
        braces = "; a variable has two braces on each side" if _ONE_BRACE.search(text) else ""
        yield find.at(
            "AV306",
            f"Custom evaluator template at {source} is missing required fields: "
            "{{ candidate_answer }} or {{ expected_messages }}",
            pointer,
            hint=f"Without these, there is nothing to evaluate against{braces}",
        )


def _check_variables(
    pointer: Pointer, source: str, text: str, known: Sequence[str], find: Finder
) -> Iterator[Diagnostic]:
    variables = list(_variables(text))
    unknown = dict.fromkeys(each.written for each in variables if each.more or each.name not in known)
    if not unknown:
        return
    names = [each.name for each in variables if each.name]
    close = "".join(dict.fromkeys(did_you_mean(name, known) for name in names if name not in known))
    yield find.at(
        "AV307",
        f"Custom evaluator template at {source} has unknown variables: {listed(unknown)}{close}",
        pointer,
        hint=f"valid variables: {listed(f'{{{{ {name} }}}}' for name in known)}; anything else stays as written",
    )
