"""Settings of evaluators."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path

from agentv_ci.base.json_access import read_answer
from agentv_ci.base.json_values import reference_problem
from agentv_ci.base.patterns import InvalidPattern, compiled
from agentv_ci.base.text import did_you_mean, listed
from agentv_ci.contracts.answer_evaluators import (
    PACKAGE_HINT,
    ComparedField,
    FieldAccuracyEvaluator,
    RegexEvaluator,
    SchemaEvaluator,
    SimilarityEvaluator,
    TextEvaluator,
)
from agentv_ci.contracts.attachments import LFS_POINTER
from agentv_ci.contracts.base import JsonValue
from agentv_ci.contracts.diagnostics import Diagnostic
from agentv_ci.contracts.evals import EvalCase, EvalDocument
from agentv_ci.contracts.evaluators import (
    AuthoredEvaluator,
    CodeAggregator,
    CodeEvaluator,
    CompositeEvaluator,
    PluginEvaluator,
    WeightedAverage,
)
from agentv_ci.contracts.judge_evaluators import (
    LlmJudgeEvaluator,
    RubricEvaluator,
    RubricItem,
    rubric_items,
)
from agentv_ci.contracts.source import Pointer
from agentv_ci.contracts.trace_evaluators import TokenUsageEvaluator, ToolTrajectoryEvaluator
from agentv_ci.jsonschema.files import SCHEMA_SUFFIXES, is_schema_name, read_schema
from agentv_ci.validate.findings import Finder
from agentv_ci.validate.rules import plugins
from agentv_ci.validate.walk import Evaluators, evaluator_lists, evaluators_of, own_list

REQUIRE = (
    "add an evaluator that requires what a good answer says; "
    "`agentv-ci prove` shows what passes without it"
)
COMPARING = (FieldAccuracyEvaluator, SimilarityEvaluator)
_QUOTED = re.compile(r"""'[^']*'|"(?:\\.|[^"\\])*"|\\.""", re.DOTALL)


def check(document: EvalDocument, evaluators: Evaluators, find: Finder) -> Iterator[Diagnostic]:
    """AV301, AV319 and AV346 for lists of evaluators, and the other rules here for each of them."""
    for pointer, together in evaluator_lists(document):
        yield from _check_names(pointer, together, find)
    for index, case in enumerate(document.evalcases):
        if not case.rubrics and (together := document.evaluators_of(case)):
            yield from _check_case(document, index, together, find)
    for pointer, evaluator in evaluators:
        yield from _check(pointer, evaluator, find)
    # Most documents compare no answer with the expected one.
    compares = any(isinstance(each, COMPARING) for _, each in evaluators)
    for index, case in enumerate(document.evalcases if compares else ()):
        for pointer, evaluator in evaluators_of(document, index):
            expected = ("evalcases", index, "expected_messages")
            yield from _check_expected_answer(pointer, evaluator, case, expected, find)


def _check_names(
    pointer: Pointer, evaluators: Sequence[AuthoredEvaluator], find: Finder
) -> Iterator[Diagnostic]:
    names = [evaluator.name for evaluator in evaluators]
    if len(set(names)) < len(names):
        yield from find.duplicates("evaluator name", names, pointer, "name")


def _check_case(
    document: EvalDocument, index: int, evaluators: Sequence[AuthoredEvaluator], find: Finder
) -> Iterator[Diagnostic]:
    """AV319 and AV346 for all evaluators of a case, those of the file included."""
    if not any(evaluator.weight for evaluator in evaluators):
        lists = own_list(document, index), (("execution", "evaluators"), ())
        place = next(pointer for pointer, _ in lists if pointer)
        yield from _check_weights(place, evaluators, find)
    if all(map(_only_forbids, evaluators)) and not find.dropped:
        message = "nothing is required of an answer: all evaluators are negated, or limits"
        pointer, _ = own_list(document, index)
        yield find.at(
            "AV346", message, pointer or ("evalcases", index, "id"), key=True, hint=REQUIRE
        )


def _only_forbids(evaluator: AuthoredEvaluator) -> bool:
    if isinstance(evaluator, CompositeEvaluator) and not evaluator.negate:
        return all(map(_only_forbids, evaluator.evaluators))
    return evaluator.negate or evaluator.is_limit


def _check(
    pointer: Pointer, evaluator: AuthoredEvaluator, find: Finder
) -> Iterator[Diagnostic]:  # a branch per kind
    match evaluator:
        case RegexEvaluator():
            yield from _check_pattern((*pointer, "value"), evaluator.value, find)
        case TextEvaluator():
            pass  # the most frequent ones are checked by the schema
        case CodeEvaluator():
            yield from _check_command((*pointer, "script"), evaluator, find)
        case SchemaEvaluator():
            yield from _check_schema(pointer, evaluator, find)
        case ToolTrajectoryEvaluator():
            yield from _check_trajectory(pointer, evaluator, find)
        case LlmJudgeEvaluator() | RubricEvaluator():
            yield from _check_rubric_judge(pointer, evaluator, find)
        case CompositeEvaluator():
            yield from _check_composite(pointer, evaluator, find)
        case _:
            yield from _check_others(pointer, evaluator, find)


def _check_others(
    pointer: Pointer, evaluator: AuthoredEvaluator, find: Finder
) -> Iterator[Diagnostic]:
    match evaluator:
        case FieldAccuracyEvaluator():
            yield from _check_fields(pointer, evaluator, find)
        case TokenUsageEvaluator():
            yield from _check_limits(pointer, evaluator, find)
        case PluginEvaluator():
            yield from plugins.check_evaluator(pointer, evaluator, find)
        case SimilarityEvaluator(package=str(package)) if find_spec(package) is None:
            message = f"the metric '{evaluator.metric}' needs the package '{package}'"
            yield find.at("AV330", message, (*pointer, "metric"), hint=PACKAGE_HINT)
        case _:
            pass  # checked by the schema


def _check_rubric_judge(
    pointer: Pointer, evaluator: LlmJudgeEvaluator | RubricEvaluator, find: Finder
) -> Iterator[Diagnostic]:
    if isinstance(evaluator, LlmJudgeEvaluator) and evaluator.prompt and evaluator.prompt_path:
        message = "'prompt' and 'prompt_path' cannot be combined"
        yield find.at("AV320", message, (*pointer, "prompt_path"), key=True)
    yield from check_rubrics((*pointer, "rubrics"), evaluator.rubrics or (), find)


def _check_command(
    pointer: Pointer, command: CodeEvaluator | CodeAggregator, find: Finder
) -> Iterator[Diagnostic]:
    if isinstance(command.script, str) and command.script_path is not None:
        try:
            shlex.split(command.script)
        except ValueError as error:
            yield find.at("AV325", f"'script' cannot be split into arguments: {error}", pointer)
        else:
            if signs := sorted(_shell_signs(command.script)):
                message = (
                    "'script' starts with a path and runs without a shell; "
                    f"{listed(signs)} would be an argument"
                )
                hint = "write sh -c '…' for a shell, or a list of arguments"
                yield find.at("AV325", message, pointer, hint=hint)
    if command.program is not None and not find.context.path_exists(command.program):
        yield find.at("AV302", f"program '{command.program}' does not exist", pointer)


def _shell_signs(command: str) -> set[str]:
    """Return the operators of a shell in a command."""
    return set(re.findall(r"[|&;<>]+", _QUOTED.sub("", command)))


def _check_limits(
    pointer: Pointer, evaluator: TokenUsageEvaluator, find: Finder
) -> Iterator[Diagnostic]:
    limits = ("max_total", "max_input", "max_output", "min_output")
    if all(getattr(evaluator, limit) is None for limit in limits) and not find.lost_part(pointer):
        message = (
            f"evaluator '{evaluator.name}' has no limit; set at least one of {', '.join(limits)}"
        )
        yield find.at("AV320", message, (*pointer, "type"))
    least, most = evaluator.min_output, evaluator.max_output
    if least is not None and most is not None and least > most:
        message = f"'min_output' {least} is greater than 'max_output' {most}"
        yield find.at("AV320", message, (*pointer, "min_output"))


def _check_pattern(pointer: Pointer, pattern: str, find: Finder) -> Iterator[Diagnostic]:
    try:
        compiled(pattern)
    except InvalidPattern as error:
        yield find.at("AV310", f"not a regular expression: {error}", pointer)


def _check_trajectory(
    pointer: Pointer, evaluator: ToolTrajectoryEvaluator, find: Finder
) -> Iterator[Diagnostic]:
    is_any_order = evaluator.mode == "any_order" and not find.is_missing((*pointer, "mode"))
    if evaluator.args_match is not None and is_any_order:
        message = "'args_match' is not used in mode 'any_order', which only counts calls"
        yield find.at("AV320", message, (*pointer, "args_match"), key=True)
    needed, other = (
        ("minimums", "expected") if evaluator.mode == "any_order" else ("expected", "minimums")
    )
    if getattr(evaluator, needed) or find.is_missing((*pointer, "mode")):
        return
    if getattr(evaluator, other):
        message = f"mode '{evaluator.mode}' needs '{needed}', not '{other}'"
        yield find.at("AV320", message, (*pointer, other), key=True)
    elif not find.lost_part(pointer, deep=True):
        yield find.at("AV320", f"mode '{evaluator.mode}' needs '{needed}'", (*pointer, "mode"))


def _check_composite(
    pointer: Pointer, evaluator: CompositeEvaluator, find: Finder
) -> Iterator[Diagnostic]:
    yield from _check_names((*pointer, "evaluators"), evaluator.evaluators, find)
    yield from _check_weights((*pointer, "evaluators"), evaluator.evaluators, find)
    match evaluator.aggregator:
        case WeightedAverage(weights=weights) if weights:
            yield from _check_members(pointer, evaluator, weights, find)
        case CodeAggregator() as aggregator:
            yield from _check_command((*pointer, "aggregator", "script"), aggregator, find)
        case _:
            pass


def _check_members(
    pointer: Pointer, evaluator: CompositeEvaluator, weights: Mapping[str, float], find: Finder
) -> Iterator[Diagnostic]:
    if find.lost_part(pointer, deep=True) or find.is_missing((*pointer, "evaluators")):
        return
    place = (*pointer, "aggregator", "weights")
    members = [member.name for member in evaluator.evaluators]
    for name in sorted(weights.keys() - set(members)):
        close = did_you_mean(name, members)
        message = f"unknown member '{name}' in 'weights'{close}; available: {listed(members)}"
        yield find.at("AV324", message, (*place, name), key=True)
    if not any(weights.get(member.name, member.weight) for member in evaluator.evaluators):
        yield _no_weight(place, find)


def _check_fields(
    pointer: Pointer, evaluator: FieldAccuracyEvaluator, find: Finder
) -> Iterator[Diagnostic]:
    place = (*pointer, "fields")
    yield from _check_weights(place, evaluator.fields, find)
    for index, field in enumerate(evaluator.fields):
        if find.lost_part((*place, index)):
            continue
        if field.match == "numeric_tolerance" and field.tolerance is None:
            yield find.at(
                "AV320", "match 'numeric_tolerance' needs 'tolerance'", (*place, index, "match")
            )
        elif field.match != "numeric_tolerance" and field.tolerance is not None:
            message = (
                f"'tolerance' is not used by match '{field.match}', only by 'numeric_tolerance'"
            )
            yield find.at("AV320", message, (*place, index, "tolerance"), key=True)


def check_rubrics(
    pointer: Pointer, rubrics: Sequence[str | RubricItem], find: Finder
) -> Iterator[Diagnostic]:
    """AV301 and AV319 for a list of rubrics."""
    items = rubric_items(tuple(rubrics))
    ids = (item.id or "" for item in items)
    yield from find.duplicates("rubric id", ids, pointer, "id")
    yield from _check_weights(pointer, items, find)


def _check_weights(
    pointer: Pointer, parts: Sequence[AuthoredEvaluator | ComparedField | RubricItem], find: Finder
) -> Iterator[Diagnostic]:
    if parts and not any(part.weight for part in parts):
        yield _no_weight(pointer, find)


def _no_weight(pointer: Pointer, find: Finder) -> Diagnostic:
    return find.at("AV319", "all weights are 0, so the score is always 0", pointer, key=True)


def _check_expected_answer(
    pointer: Pointer, evaluator: AuthoredEvaluator, case: EvalCase, expected: Pointer, find: Finder
) -> Iterator[Diagnostic]:
    if not isinstance(evaluator, COMPARING) or find.lost_part(pointer):
        return
    if isinstance(evaluator, FieldAccuracyEvaluator) and evaluator.reference is not None:
        yield from _check_paths(pointer, evaluator, evaluator.reference, "'reference'", find)
        return
    if (
        evaluator.reference is not None
        or find.lost_part(expected[:-1])
        or find.lost_part(expected, deep=True)
    ):
        return
    answer = _expected_answer(case)
    hint = (
        f"add 'reference' to evaluator '{evaluator.name}', or an expected message of the assistant"
    )
    if answer is None:
        message = (
            f"evaluator '{evaluator.name}' compares with the expected answer, which is missing"
        )
        yield find.at("AV320", message, expected, key=True, hint=hint)
    elif isinstance(evaluator, FieldAccuracyEvaluator) and not isinstance(answer, list):
        try:
            reference = read_answer(answer) if isinstance(answer, str) else answer
        except ValueError:
            message = (
                f"evaluator '{evaluator.name}' compares with the expected answer, which is not JSON"
            )
            yield find.at("AV320", message, expected, key=True, hint=hint)
            return
        yield from _check_paths(
            pointer, evaluator, reference, f"the expected answer of case '{case.id}'", find
        )


def _check_paths(
    pointer: Pointer,
    evaluator: FieldAccuracyEvaluator,
    reference: JsonValue,
    where: str,
    find: Finder,
) -> Iterator[Diagnostic]:
    for number, field in enumerate(evaluator.fields):
        if reason := reference_problem(field, reference):
            yield find.at("AV320", f"{reason} in {where}", (*pointer, "fields", number, "path"))


def _expected_answer(case: EvalCase) -> JsonValue:
    """Return the content of the last expected assistant message that has any.

    A list if it may refer to files.
    """
    for message in reversed(case.expectations):
        if message.role != "assistant":
            continue
        if isinstance(message.content, dict):
            return message.content
        if isinstance(message.content, tuple) and message.content:
            return [block if isinstance(block, str) else block.value for block in message.content]
        if isinstance(message.content, str):
            return message.content.strip() or None
    return None


def _check_schema(
    pointer: Pointer, evaluator: SchemaEvaluator, find: Finder
) -> Iterator[Diagnostic]:
    """AV309 and AV320 for the JSON Schema of an evaluator."""
    file, inline = evaluator.schema_file, evaluator.schema_inline
    if file is None and inline is None and not find.lost_part(pointer):
        message = "either 'schema_file' or 'schema_inline' is required"
        yield find.at("AV320", message, (*pointer, "type"))
    if file is not None and inline is not None:
        message = "'schema_file' and 'schema_inline' cannot be combined"
        yield find.at("AV320", message, (*pointer, "schema_inline"), key=True)
    if inline is not None:
        yield from _check_one_schema((*pointer, "schema_inline"), inline, find.source.path, find)
    if file is not None:
        yield from _check_schema_file((*pointer, "schema_file"), file, find)


def _check_schema_file(pointer: Pointer, reference: str, find: Finder) -> Iterator[Diagnostic]:
    path, file = find.file(reference)
    if file.state not in ("text", "blank"):
        return  # reported by file_references
    if not is_schema_name(path):
        message = (
            f"a schema file must end in {listed(SCHEMA_SUFFIXES)}, not '{path.suffix or path.name}'"
        )
        yield find.at("AV309", message, pointer)
        return
    if file.state == "blank":
        yield find.at("AV309", f"the schema file is empty: {path}", pointer)
        return
    try:
        schema = read_schema(path, path.read_text("utf-8"), find.context.read_yaml)
    except ValueError as error:
        yield find.at("AV309", f"cannot read '{path.name}': {error}", pointer)
        return
    yield from _check_one_schema(pointer, schema, path, find)


def _check_one_schema(
    pointer: Pointer, schema: JsonValue, path: Path, find: Finder
) -> Iterator[Diagnostic]:
    # Slow to import, and few documents contain a schema.
    from agentv_ci.jsonschema.refs import bad_ref
    from agentv_ci.jsonschema.violations import invalid_schema

    def read(other: Path) -> JsonValue:
        state = find.inspect(other).state
        if state == "LFS pointer":
            raise ValueError(f"it is {LFS_POINTER}")
        if state != "text":
            raise FileNotFoundError(other)
        contents = read_schema(other, other.read_text("utf-8"), find.context.read_yaml)
        if reason := invalid_schema(contents, schema):
            raise ValueError(f"not a JSON Schema: {reason}")
        return contents

    if reason := invalid_schema(schema):
        yield find.at("AV309", f"not a JSON Schema: {reason}", pointer)
    elif reason := bad_ref(schema, path, read):
        hint = "use '#…' inside the schema, or a path relative to it; nothing is downloaded"
        yield find.at("AV309", reason, pointer, hint=hint)
