"""Read a compiled plan."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from itertools import chain, islice
from pathlib import Path
from sys import intern
from typing import BinaryIO

from msgspec import Struct
from pydantic import ValidationError

from agentv_ci.base.json_access import objects_at, read_json
from agentv_ci.base.left_files import open_named, read_named
from agentv_ci.base.mappings import duplicates, without
from agentv_ci.base.model_errors import refusals
from agentv_ci.contracts.base import JsonObject
from agentv_ci.contracts.cases import CaseKey
from agentv_ci.contracts.diagnostics import Diagnostic
from agentv_ci.contracts.plan import Plan, PlanCase, files_of, named_targets, suites_by_path
from agentv_ci.contracts.plan_evaluators import (
    PlanCompositeEvaluator,
    PlanEvaluator,
    PlanScript,
    PlanWeightedAverage,
    flat,
)
from agentv_ci.contracts.plan_parts import AttachmentPart, PlanFile
from agentv_ci.contracts.source import NOWHERE, Mark, Pointer, diagnostic_at, locate, spell
from agentv_ci.errors import InvalidInput, UsageError
from agentv_ci.jsonschema.schemas import schema_id
from agentv_ci.load.events import Unparsable
from agentv_ci.load.parse import parse_yaml

PLAN_ID = re.compile(r".*/plan-v(\d+)\.schema\.json")
KNOWN_MAJOR = "1"
BEFORE_CASES, AFTER_CASES = b'  "cases": [\n', b"\n  ]\n}\n"
BEGIN, NEXT_END, LAST_END = b"    {\n", b"    },\n", b"    }\n"
"""The lines around the cases of a plan, and around each of them, as `compile` writes them."""
EMPTY = '  "cases": []\n}'

NUL_IN_PATH = "the path contains a NUL byte"


class StoredPlan(Struct, frozen=True):
    """The plan in a file."""

    plan: Plan
    """Without its cases."""
    rest: JsonObject
    """The data of all but its cases."""
    cases: Iterable[tuple[PlanCase, JsonObject]]
    """The cases with their data, to be read once; raises what `load_plan` raises."""


def load_plan(path: Path) -> StoredPlan:
    """Read a plan.

    Its cases are read one by one if the file is laid out as `compile` writes it, else all at once.

    Raises UsageError for a file that cannot be read or has an unknown major version, InvalidInput
    for one that does not match the published schema or has dangling references.
    """
    return _streamed(path) or _whole(path)


def _streamed(path: Path) -> StoredPlan | None:
    """Return a plan whose cases are read from the file when they are needed.

    None if it must be read as a whole.
    """
    try:
        with open_named(path) as file:
            head = _text_before_cases(file)
            if head is None:
                return None
            data = read_json(head + EMPTY, strict=True)
            if not isinstance(data, dict) or data.get("$schema") != schema_id("plan-v1"):
                return None
            plan = Plan.model_validate(data, by_alias=True, by_name=False)
            start = file.tell()
    except (OSError, ValueError):
        return None
    if any(_dangling(plan)):
        return None
    return StoredPlan(plan, _rest(data), _cases(path, plan, start))


def _text_before_cases(file: BinaryIO) -> str | None:
    """Return the text up to the first case, where the file then stands.

    None if there are no such lines.
    """
    if not _ends_after_cases(file):
        return None
    lines: list[bytes] = []
    for line in file:
        if line == BEFORE_CASES:
            return b"".join(lines).decode("utf-8")
        lines.append(line)
    return None


def _ends_after_cases(file: BinaryIO) -> bool:
    file.seek(-min(len(AFTER_CASES), file.seek(0, os.SEEK_END)), os.SEEK_END)
    ends_so = file.read() == AFTER_CASES
    file.seek(0)
    return ends_so


def _cases(path: Path, plan: Plan, start: int) -> Iterator[tuple[PlanCase, JsonObject]]:
    """Yield the cases of a plan.

    From one on that cannot be read alone, or is refused, read the plan as a whole.
    """
    suites, seen = suites_by_path(plan).keys(), set[CaseKey]()
    number = 0
    try:
        with open_named(path) as file:
            file.seek(start)
            for text in _texts_of_cases(file):
                data = read_json(text, strict=True)
                case = PlanCase.model_validate(data, by_alias=True, by_name=False)
                if not isinstance(data, dict) or any(_dangling_case(case, plan, suites, seen)):
                    break
                number += 1
                yield case, data
            else:
                return
    except (OSError, ValueError):
        pass
    yield from islice(_whole(path).cases, number, None)


def _texts_of_cases(file: BinaryIO) -> Iterator[str]:
    """Yield the text of each case.

    Raises ValueError if lines do not begin and end them as `compile` writes it.
    """
    lines: list[bytes] = []
    ended = b""
    for line in file:
        if not lines and (ended == LAST_END or line != BEGIN):
            break
        lines.append(line)
        if line in (NEXT_END, LAST_END):
            yield b"".join(lines).removesuffix(b",\n").decode("utf-8")
            lines.clear()
            ended = line
    if ended != LAST_END or line + file.read() != AFTER_CASES.removeprefix(b"\n"):
        raise ValueError


def _whole(path: Path) -> StoredPlan:
    try:
        text = read_named(path).decode("utf-8")
        data = read_json(text, strict=True)
    except OSError as error:
        raise UsageError(f"cannot read '{path}': {error.strerror}") from error
    except ValueError as error:
        hint = "create a plan with 'agentv-ci compile'"
        raise UsageError(f"'{path}' is not valid JSON: {error}", hint=hint) from error
    if not isinstance(data, dict):
        raise UsageError(f"'{path}' is not a plan: expected a mapping")
    _check_version(path, data)
    plan = _understood(data)
    if not isinstance(plan, Plan):
        raise InvalidInput(_diagnostics(path, text, plan))
    dangling = list(_dangling(plan))
    if dangling:
        raise InvalidInput(_diagnostics(path, text, dangling))
    empty = plan.model_copy(update={"cases": ()})
    return StoredPlan(empty, _rest(data), zip(plan.cases, objects_at(data, "cases"), strict=True))


def _rest(data: JsonObject) -> JsonObject:
    return without(data, ("$schema", "digest", "cases"))


def _understood(data: JsonObject) -> Plan | list[tuple[Pointer, str]]:
    """Return the plan, or its errors: the model decides, the schema explains."""
    try:
        return Plan.model_validate(data, by_alias=True, by_name=False)
    except ValidationError as error:
        from agentv_ci.jsonschema.violations import violations  # most plans are valid

        explained = [
            (violation.pointer, violation.message or "a field is missing")
            for violation in violations("plan-v1", data)
        ]
        return explained or [(refusal.place, refusal.message) for refusal in refusals(error)]


def _check_version(path: Path, data: JsonObject) -> None:
    declared = data.get("$schema")
    if declared == schema_id("plan-v1"):
        return
    match = PLAN_ID.fullmatch(declared) if isinstance(declared, str) else None
    if match and match[1] != KNOWN_MAJOR:
        raise UsageError(
            f"'{path}' is a version {match[1]} plan; this agentv-ci supports version {KNOWN_MAJOR}",
            hint="compile it again, or install the version that wrote it",
        )
    raise UsageError(f"'{path}' is not a plan: its $schema is not {schema_id('plan-v1')}")


def _dangling(plan: Plan) -> Iterator[tuple[Pointer, str]]:
    """Yield what a schema cannot check: names that do not resolve, and texts with wrong digests."""
    for sha256, text in plan.files.items():
        if _digest(text) != sha256:
            yield ("files", sha256), f"the content of '{text.path}' does not match its digest"
        if "\0" in text.path:
            yield ("files", sha256, "path"), NUL_IN_PATH
    suites = suites_by_path(plan).keys()
    if len(suites) < len(plan.suites):
        yield ("suites",), "duplicate suite"
    seen: set[CaseKey] = set()
    for index, case in enumerate(plan.cases):
        for pointer, what in _dangling_case(case, plan, suites, seen):
            yield ("cases", index, *pointer), what


def _dangling_case(
    case: PlanCase, plan: Plan, suites: AbstractSet[str], seen: set[CaseKey]
) -> Iterator[tuple[Pointer, str]]:
    """Yield the same of one case; `seen` has the earlier ones."""
    # Every case has texts of its own for the same names.
    answers = case.arm or case.target
    if (key := (intern(case.suite), case.id, intern(answers))) in seen:
        what = "arm" if case.arm is not None else "target"
        yield ("id",), f"duplicate case '{case.id}' in '{case.suite}' for {what} '{answers}'"
    seen.add(key)
    if case.suite not in suites:
        yield ("suite",), f"'{case.suite}' is not in 'suites'"
    for what in _dangling_in(case, plan):
        yield (), f"case '{case.id}': {what}"


def _digest(file: PlanFile) -> str | None:
    """Return the digest of a file's content; None if it is not Base64."""
    try:
        return hashlib.sha256(file.content).hexdigest()
    except ValueError:
        return None


def _dangling_in(case: PlanCase, plan: Plan) -> Iterator[str]:
    for key in dict.fromkeys(named_targets(case)):
        if key not in plan.targets:
            yield f"'{key}' is not in 'targets'"
    for file in files_of(case):
        if file.sha256 not in plan.files:
            yield f"file '{file.path}' is not in 'files'"
        if "\0" in file.path:
            yield NUL_IN_PATH
    messages = (*case.input_messages, *case.expected_messages)
    for part in chain.from_iterable(message.content for message in messages):
        if isinstance(part, AttachmentPart) and not _has_one_source(part):
            yield (
                f"a part of type '{part.type}' must have either 'url' "
                "or 'path', 'sha256' and 'mediaType'"
            )
    for name in _twice(case.evaluators):
        yield f"duplicate evaluator '{name}'"
    for evaluator in flat(case.evaluators):
        yield from _inconsistent(evaluator)


def _has_one_source(part: AttachmentPart) -> bool:
    """Whether an attachment has either a URL or a whole file."""
    is_file = None not in (part.path, part.sha256, part.media_type)
    return is_file is (part.url is None)


def _inconsistent(evaluator: PlanEvaluator) -> Iterator[str]:
    """Yield what a schema cannot check of an evaluator."""
    part = evaluator.aggregator if isinstance(evaluator, PlanCompositeEvaluator) else evaluator
    if isinstance(part, PlanScript) and (part.argv is None) == (part.command is None):
        yield f"evaluator '{evaluator.name}' must have either 'argv' or 'command'"
    if isinstance(part, PlanWeightedAverage) and isinstance(evaluator, PlanCompositeEvaluator):
        members = {member.name for member in evaluator.evaluators}
        for name in sorted(members ^ part.weights.keys()):
            yield f"'{name}' must be both a member and a weight of evaluator '{evaluator.name}'"


def _twice(evaluators: Sequence[PlanEvaluator]) -> Iterator[str]:
    """Yield names that occur twice in a list of evaluators, or in one inside it."""
    yield from duplicates(evaluator.name for evaluator in evaluators)
    for evaluator in evaluators:
        if isinstance(evaluator, PlanCompositeEvaluator):
            yield from _twice(evaluator.evaluators)


def _diagnostics(path: Path, text: str, refused: list[tuple[Pointer, str]]) -> list[Diagnostic]:
    mark = _mark(text)
    return [
        diagnostic_at(locate(mark, pointer), "AV204", message, path, pointer=spell(pointer) or None)
        for pointer, message in refused
    ]


def _mark(text: str) -> Mark:
    """Return the positions of a JSON text's parts; they are lost where JSON is not YAML."""
    try:
        parsed = parse_yaml(text)
    except Unparsable:
        return NOWHERE
    return parsed.find_mark() if not parsed.problems else NOWHERE
