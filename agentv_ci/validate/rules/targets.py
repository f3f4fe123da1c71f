"""Targets: their own settings, and the names evals call them by."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from agentv_ci.contracts.diagnostics import Diagnostic
from agentv_ci.contracts.documents import Surroundings
from agentv_ci.contracts.evals import EvalDocument
from agentv_ci.contracts.evaluators import LlmJudgeEvaluator
from agentv_ci.contracts.source import Pointer, Source
from agentv_ci.contracts.targets import (
    CLI_PLACEHOLDERS,
    FORMAT_PLACEHOLDER,
    FORMAT_PLACEHOLDERS,
    REFERENCE_PATTERN,
    CliTarget,
    CommandHealthcheck,
    HttpTarget,
    Target,
    TargetsDocument,
    judge_name,
    placeholders,
)
from agentv_ci.suggestions import did_you_mean, listed
from agentv_ci.validate.findings import Finder, value_at
from agentv_ci.validate.rules.cases import duplicates


def check(document: TargetsDocument, find: Finder) -> Iterator[Diagnostic]:
    """AV301, AV304, AV305 and AV313 for the targets themselves."""
    named: list[tuple[Pointer, str]] = [
        (("targets", index, "name"), target.name) for index, target in enumerate(document.targets)
    ]
    yield from duplicates(find, "target name", named)
    names = [target.name for target in document.targets]
    for index, target in enumerate(document.targets):
        pointer: Pointer = ("targets", index)
        if target.judge_target is not None and not re.match(REFERENCE_PATTERN, target.judge_target):
            yield from _unknown(find, (*pointer, "judge_target"), "judge target", target.judge_target, names)
        if isinstance(target, CliTarget):
            yield from _check_templates(pointer, target, find)
        if isinstance(target, HttpTarget) and target.api_key and "${{" not in target.api_key:
            yield find.at(
                "AV313",
                "an api_key does not belong in a file",
                (*pointer, "api_key"),
                hint="put it into an environment variable and write api_key: ${{ NAME }}",
            )


def _check_templates(pointer: Pointer, target: CliTarget, find: Finder) -> Iterator[Diagnostic]:
    templates = [((*pointer, "command_template"), target.command_template)]
    if isinstance(target.healthcheck, CommandHealthcheck):
        templates.append(((*pointer, "healthcheck", "command_template"), target.healthcheck.command_template))
    for place, template in templates:
        yield from _check_placeholders(place, placeholders(template), CLI_PLACEHOLDERS, find)
    for key in ("files_format", "attachments_format"):
        used = dict.fromkeys(match["name"] for match in FORMAT_PLACEHOLDER.finditer(getattr(target, key) or ""))
        yield from _check_placeholders((*pointer, key), used, FORMAT_PLACEHOLDERS, find)


def _check_placeholders(
    pointer: Pointer, used: Iterable[str], known: Sequence[str], find: Finder
) -> Iterator[Diagnostic]:
    for name in used:
        if name not in known:
            exist = listed(f"{{{each}}}" for each in known)
            message = f"unknown placeholder {{{name}}}{did_you_mean(name, known)}; placeholders are {exist}"
            hint = f"for the text itself write {{{{{name}}}}}" if known is CLI_PLACEHOLDERS else None
            yield find.at("AV305", message, pointer, hint=hint)


def check_use(document: EvalDocument, find: Finder, surroundings: Surroundings) -> Iterator[Diagnostic]:
    """AV304 and AV312 for the targets an eval document is answered and judged by."""
    if surroundings.targets is None:
        return
    by_name = {target.name: target for target in surroundings.target_list}
    authored = _authored_names(surroundings.targets.source)
    for index, case in enumerate(document.evalcases):
        name = surroundings.target_override or document.execution_of(case).target or "default"
        target = by_name.get(name)
        if target is None and surroundings.target_override is None and name not in authored:
            yield from _unknown_target(document, index, name, find, list(by_name))
        yield from _check_judges(document, index, target, find, list(by_name))


def _authored_names(targets: Source) -> set[str]:
    """Names of all targets, also of those that are wrong: that is said where they stand."""
    listed = value_at(targets.data, ("targets",))
    items = listed if isinstance(listed, list) else []
    return {str(item.get("name")) for item in items if isinstance(item, dict)}


def _unknown_target(
    document: EvalDocument, index: int, name: str, find: Finder, names: Sequence[str]
) -> Iterator[Diagnostic]:
    case = document.evalcases[index]
    if case.execution and case.execution.target:
        pointer: Pointer = ("evalcases", index, "execution", "target")
    elif document.execution and document.execution.target:
        pointer = ("execution", "target")
    elif document.target:
        pointer = ("target",)
    else:
        message = f"no target is named and none is called 'default'; targets are {listed(names)}"
        yield find.at(
            "AV304", message, ("evalcases",), key=True, hint="write execution: {target: NAME} or give --target"
        )
        return
    yield from _unknown(find, pointer, "target", name, names)


def _unknown(find: Finder, pointer: Pointer, what: str, name: str, names: Sequence[str]) -> Iterator[Diagnostic]:
    if name not in names:
        message = f"unknown {what} '{name}'{did_you_mean(name, names)}; targets are {listed(names)}"
        yield find.at("AV304", message, pointer)


def _check_judges(
    document: EvalDocument, index: int, target: Target | None, find: Finder, names: Sequence[str]
) -> Iterator[Diagnostic]:
    case = document.evalcases[index]
    evaluators = document.execution_of(case).evaluators
    if not evaluators:
        if target is not None and judge_name(None, target) is None and not _lists_evaluators(find, index):
            message = f"no evaluators are given, and target '{target.name}' has no judge for the default one"
            hint = f"add evaluators, or a judge_target to target '{target.name}'"
            yield find.at("AV312", message, ("evalcases", index, "id"), hint=hint)
        return
    pointer = _place_of_evaluators(document, index)
    for number, evaluator in enumerate(evaluators):
        if not isinstance(evaluator, LlmJudgeEvaluator):
            continue
        if evaluator.judge_target is not None:
            place: Pointer = (*pointer, number, "judge_target")
            yield from _unknown(find, place, "judge target", evaluator.judge_target, names)
        elif target is not None and judge_name(None, target) is None:
            message = f"evaluator '{evaluator.name}' has no judge: target '{target.name}' does not judge itself"
            hint = f"add judge_target to the evaluator or to target '{target.name}'"
            yield find.at("AV312", message, (*pointer, number, "name"), hint=hint)


def _lists_evaluators(find: Finder, index: int) -> bool:
    """Whether the author lists evaluators all the same, and what is wrong with them is said already."""
    case = find.authored(("evalcases", index))
    places: tuple[Pointer, ...] = (
        (*case, "evaluators"),
        (*case, "execution", "evaluators"),
        ("execution", "evaluators"),
    )
    return any(value_at(find.source.data, place) for place in places)


def _place_of_evaluators(document: EvalDocument, index: int) -> Pointer:
    case = document.evalcases[index]
    if case.execution and case.execution.evaluators:
        return ("evalcases", index, "execution", "evaluators")
    if case.evaluators:
        return ("evalcases", index, "evaluators")
    return ("execution", "evaluators")
