"""What the published schema says: the model decides fast, the schema explains completely."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from pydantic import ValidationError

from agentv_ci.contracts.base import JsonValue
from agentv_ci.contracts.diagnostics import Diagnostic
from agentv_ci.contracts.documents import Document
from agentv_ci.contracts.source import Kind, Pointer, Source
from agentv_ci.jsonschema.schemas import SchemaName, Violation, violations
from agentv_ci.model_errors import refusals
from agentv_ci.validate.findings import Finder, value_at
from agentv_ci.validate.repair import Repair
from agentv_ci.validate.walk import contracts_of
from agentv_ci.validate.wording import diagnostics

SCHEMAS: Mapping[Kind, SchemaName] = {
    "eval": "eval-v2",
    "targets": "targets-v2",
    "config": "config-v2",
    "judge-set": "judge-set-v1",
}


TOO_MANY = 10_000
"""Refusals from which on the rest of a document is not worth the time."""


@dataclass(frozen=True, slots=True)
class Structure:
    """The understood part of a document, what is wrong with the rest, and how to speak of either."""

    document: Document | None
    diagnostics: tuple[Diagnostic, ...]
    find: Finder


def check_structure(source: Source, kind: Kind) -> Structure:
    """Read a source as a document of its kind.

    Wrong parts are reported and left out, missing ones stood in for, again and again, until the rest is a document; so
    one pass can also report what is wrong with the right parts.
    """
    finder = Finder(source)
    document = _model(kind, source.data)
    if not isinstance(document, ValidationError):
        return Structure(document, (), finder)
    refused = _refused(kind, document, source.data)
    found = tuple(diagnostics(finder, refused))
    repair = Repair(contract_of(kind))
    data = source.data
    while 0 < len(refused) < TOO_MANY and repair.take(refused, finder, data):
        data, finder = repair.apply(source)
        document = _model(kind, data)
        if not isinstance(document, ValidationError):
            return Structure(document, found, finder)
        refused = _refused(kind, document, data)
    return Structure(None, found, finder)


def _refused(kind: Kind, error: ValidationError, data: JsonValue) -> list[Violation]:
    return violations(SCHEMAS[kind], data) or list(_only_the_model_sees(error, data))


def contract_of(kind: Kind) -> type[Document]:
    """Return what documents of a kind must fulfil; the contracts load when they are needed."""
    match kind:
        case "eval":
            from agentv_ci.contracts.evals import EvalDocument

            return EvalDocument
        case "targets":
            from agentv_ci.contracts.targets import TargetsDocument

            return TargetsDocument
        case "config":
            from agentv_ci.contracts.config import ConfigDocument

            return ConfigDocument
        case "judge-set":
            from agentv_ci.contracts.judge_set import JudgeSetDocument

            return JudgeSetDocument


def _model(kind: Kind, data: JsonValue) -> Document | ValidationError:
    contract = contract_of(kind)
    # Builds those that refer to themselves; as a part of another one, pydantic would build them a second time.
    contracts_of(contract)
    try:
        return contract.model_validate(data)
    except ValidationError as error:
        return error


def _only_the_model_sees(error: ValidationError, data: JsonValue) -> Iterator[Violation]:
    """What JSON Schema has no word for, such as infinite numbers."""
    found: dict[Pointer, str] = {}
    for each in refusals(error):
        pointer: Pointer = ()
        for step in each.place:
            # The model names the branch of a union as if it were a key.
            if value_at(data, (*pointer, step)) is not None:
                pointer = (*pointer, step)
        found.setdefault(pointer, each.message)
    for pointer, message in found.items():
        # A list that lost its only item to an error is then called too short, which is no mistake of its own.
        if not any(other[: len(pointer)] == pointer for other in found if other != pointer):
            yield Violation("value", pointer, (), value_at(data, pointer), message)
