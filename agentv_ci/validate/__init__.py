"""Stage 2: a Source becomes a document and everything that is wrong with it."""

from __future__ import annotations

from collections.abc import Iterator

from agentv_ci.contracts.config import ConfigDocument
from agentv_ci.contracts.diagnostics import Diagnostic
from agentv_ci.contracts.documents import Checked, Surroundings
from agentv_ci.contracts.evals import EvalDocument
from agentv_ci.contracts.source import Source
from agentv_ci.contracts.targets import TargetsDocument
from agentv_ci.validate.rules import cases, evaluators, files, messages, references, spelling, targets
from agentv_ci.validate.structure import Structure, check_structure

__all__ = ["validate"]


def validate(source: Source, surroundings: Surroundings) -> Checked:
    """Check one source completely; the diagnostics come in the order of the file, each once."""
    if not source.readable or source.kind is None:
        return Checked(source, None, source.diagnostics)
    structure = check_structure(source, source.kind)
    found = [*source.diagnostics, *structure.diagnostics, *spelling.check(structure.find)]
    found += _rules(structure, surroundings)
    unique = dict.fromkeys(found)
    ordered = sorted(unique, key=lambda each: (each.line, each.column, each.rule))
    return Checked(source, structure.document, tuple(ordered))


def _rules(structure: Structure, surroundings: Surroundings) -> Iterator[Diagnostic]:
    find, document = structure.find, structure.document
    if find.source.kind == "targets":
        yield from references.check(find)
    match document:
        case EvalDocument():
            yield from cases.check(document, find)
            yield from messages.check(document, find)
            yield from files.check(document, find)
            yield from evaluators.check(document, find, surroundings)
            yield from targets.check_use(document, find, surroundings)
        case TargetsDocument():
            yield from targets.check(document, find)
        case ConfigDocument() | None:
            pass
