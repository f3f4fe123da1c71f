"""Reading a plan that was compiled before, perhaps somewhere else."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from pydantic import ValidationError

from agentv_ci.canonical import digest_of
from agentv_ci.contracts.base import JsonObject
from agentv_ci.contracts.diagnostics import Diagnostic
from agentv_ci.contracts.plan import (
    Plan,
    PlanCase,
    PlanCompositeEvaluator,
    PlanEvaluator,
    PlanScript,
    PlanWeightedAverage,
    files_of,
    flat,
    named_targets,
)
from agentv_ci.contracts.source import NOWHERE, Mark, Pointer, diagnostic_at, locate, spell
from agentv_ci.errors import InvalidInput, UsageError
from agentv_ci.json_access import read_json
from agentv_ci.jsonschema.schemas import schema_id
from agentv_ci.load.events import Unparsable
from agentv_ci.load.parse import parse_yaml
from agentv_ci.model_errors import refusals

PLAN_ID = re.compile(r".*/plan-v(\d+)\.schema\.json")
KNOWN_MAJOR = "1"
NO_PATH = "a path that no system allows"


def load_plan(path: Path) -> tuple[Plan, JsonObject]:
    """Return the plan in a JSON file, and the data it was read from.

    Raises UsageError when the file cannot be read or is of an unknown major version, InvalidInput when the
    published schema refuses it or a part refers to another one that is not there.
    """
    try:
        text = path.read_bytes().decode("utf-8")
        data = read_json(text, strict=True)
    except OSError as error:
        raise UsageError(f"cannot read '{path}': {error.strerror}") from error
    except ValueError as error:
        hint = "a plan is what `agentv-ci compile` writes"
        raise UsageError(f"'{path}' is not JSON: {error}", hint=hint) from error
    if not isinstance(data, dict):
        raise UsageError(f"'{path}' is not a plan: a plan is a mapping")
    _check_version(path, data)
    plan = _understood(data)
    if not isinstance(plan, Plan):
        raise InvalidInput(_diagnostics(path, text, plan))
    dangling = list(_dangling(plan))
    if dangling:
        raise InvalidInput(_diagnostics(path, text, dangling))
    return plan, data


def _understood(data: JsonObject) -> Plan | list[tuple[Pointer, str]]:
    """Return the plan, or what is wrong with it: the model decides, as fast as it can, and the schema explains."""
    try:
        return Plan.model_validate(data, by_alias=True, by_name=False)
    except ValidationError as error:
        from agentv_ci.jsonschema.violations import violations  # most plans are valid

        explained = [(each.pointer, each.message or "a field is missing") for each in violations("plan-v1", data)]
        return explained or [(each.place, each.message) for each in refusals(error)]


def _check_version(path: Path, data: JsonObject) -> None:
    declared = data.get("$schema")
    if declared == schema_id("plan-v1"):
        return
    match = PLAN_ID.fullmatch(declared) if isinstance(declared, str) else None
    if match and match[1] != KNOWN_MAJOR:
        raise UsageError(
            f"'{path}' is a plan of version {match[1]}; this agentv-ci reads version {KNOWN_MAJOR}",
            hint="compile it again with this version, or install the version that wrote it",
        )
    raise UsageError(f"'{path}' is not a plan: its $schema is not {schema_id('plan-v1')}")


def _dangling(plan: Plan) -> Iterator[tuple[Pointer, str]]:
    """What a schema cannot say: every name leads somewhere, every text is the one its digest is of."""
    for sha256, text in plan.files.items():
        if digest_of(text.text) != sha256:
            yield ("files", sha256), f"the text of '{text.path}' has another digest"
        if "\0" in text.path:
            yield ("files", sha256, "path"), NO_PATH
    suites = {suite.path for suite in plan.suites}
    if len(suites) < len(plan.suites):
        yield ("suites",), "a suite is there twice"
    seen: set[tuple[str, str]] = set()
    for index, case in enumerate(plan.cases):
        if (case.suite, case.id) in seen:
            yield ("cases", index, "id"), f"case '{case.id}' is twice in '{case.suite}'"
        seen.add((case.suite, case.id))
        if case.suite not in suites:
            yield ("cases", index, "suite"), f"'{case.suite}' is none of 'suites'"
        yield from ((("cases", index), f"case '{case.id}': {what}") for what in _dangling_in(case, plan))


def _dangling_in(case: PlanCase, plan: Plan) -> Iterator[str]:
    for key in dict.fromkeys(named_targets(case)):
        if key not in plan.targets:
            yield f"'{key}' is none of 'targets'"
    for file in files_of(case):
        if file.sha256 not in plan.files:
            yield f"file '{file.path}' is none of 'files'"
        if "\0" in file.path:
            yield NO_PATH
    for name in _twice(case.evaluators):
        yield f"evaluator '{name}' is twice in its list"
    for each in flat(case.evaluators):
        yield from _unfit(each)


def _unfit(evaluator: PlanEvaluator) -> Iterator[str]:
    """What of an evaluator cannot be run, and no schema says."""
    part = evaluator.aggregator if isinstance(evaluator, PlanCompositeEvaluator) else evaluator
    if isinstance(part, PlanScript) and (part.argv is None) == (part.command is None):
        yield f"evaluator '{evaluator.name}' has either 'argv' or 'command'"
    if isinstance(part, PlanWeightedAverage) and isinstance(evaluator, PlanCompositeEvaluator):
        missing = {each.name for each in evaluator.evaluators} ^ part.weights.keys()
        for name in sorted(missing):
            yield f"'{name}' is not both a member and weighed in evaluator '{evaluator.name}'"


def _twice(evaluators: Sequence[PlanEvaluator]) -> Iterator[str]:
    """Names that a list of evaluators, or one inside it, has more than once."""
    yield from (name for name, number in Counter(each.name for each in evaluators).items() if number > 1)
    for each in evaluators:
        if isinstance(each, PlanCompositeEvaluator):
            yield from _twice(each.evaluators)


def _diagnostics(path: Path, text: str, refused: list[tuple[Pointer, str]]) -> list[Diagnostic]:
    mark = _mark(text)
    return [
        diagnostic_at(locate(mark, pointer), "AV204", message, path, pointer=spell(pointer) or None)
        for pointer, message in refused
    ]


def _mark(text: str) -> Mark:
    """Where every part of a JSON text stands; most JSON is YAML, and where it is not, only the place is lost."""
    try:
        parsed = parse_yaml(text)
    except Unparsable:
        return NOWHERE
    return parsed.find_mark() if not parsed.problems else NOWHERE
