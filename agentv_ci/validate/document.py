"""A Source becomes a document and everything that is wrong with it."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping

from agentv_ci.contracts.config import ConfigDocument
from agentv_ci.contracts.diagnostics import FIXED_RULES, Diagnostic, RuleSetting
from agentv_ci.contracts.documents import CheckedDocument, DocumentContext
from agentv_ci.contracts.evals import EvalDocument
from agentv_ci.contracts.judge_set import JudgeSetDocument
from agentv_ci.contracts.source import Source
from agentv_ci.contracts.targets import TargetsDocument
from agentv_ci.validate.findings import Finder
from agentv_ci.validate.rules import (
    cases,
    config,
    evaluators,
    expectations,
    files,
    judge_sets,
    messages,
    references,
    spelling,
    target_use,
    targets,
    templates,
)
from agentv_ci.validate.structure import Structure, check_structure, contract_of


def validate(source: Source, context: DocumentContext) -> CheckedDocument:
    """Check one source completely; the diagnostics come in the order of the file, each once."""
    if not source.readable or source.kind is None:
        return CheckedDocument(source, None, source.diagnostics)
    structure = check_structure(source, source.kind)
    found = [*source.diagnostics, *structure.diagnostics]
    found += spelling.check(contract_of(source.kind), Finder(source))
    if source.kind == "targets":
        found += references.check(Finder(source))
    found += (each for each in _rules(structure, context) if not structure.find.is_stand_in(each))
    if not found:
        return CheckedDocument(source, structure.document, ())
    document = structure.document
    own = document.rules if isinstance(document, ConfigDocument) else None
    weighed = _weighed(_once(found), context.rule_settings if own is None else own)
    ordered = sorted(weighed, key=lambda each: (each.line, each.column, each.rule))
    return CheckedDocument(source, document, tuple(ordered))


def _once(found: Iterable[Diagnostic]) -> Iterator[Diagnostic]:
    """Leave out what was said before: what stands behind an alias is one mistake, however often it is referred to."""
    said: set[tuple[object, ...]] = set()
    unreadable: set[tuple[int, int]] = set()
    for each in found:
        place = (each.line, each.column)
        key = (each.rule, each.message, *place)
        if key not in said and place not in unreadable:
            yield each
        said.add(key)
        if each.rule == "AV204" and each.pointer is None:
            unreadable.add(place)  # a number that nobody can read; what it is taken for is no mistake of its own


def _weighed(found: Iterable[Diagnostic], severities: Mapping[str, RuleSetting]) -> Iterator[Diagnostic]:
    """Give diagnostics the severity that the config document wants."""
    for each in found:
        severity = severities.get(each.rule, each.severity) if each.rule not in FIXED_RULES else each.severity
        if severity != "off":
            yield each if severity == each.severity else dataclasses.replace(each, severity=severity)


def _rules(structure: Structure, context: DocumentContext) -> Iterator[Diagnostic]:
    find, document = structure.find, structure.document
    match document:
        case EvalDocument():
            lists = list(evaluators.evaluator_lists(document))
            yield from cases.check(document, find, context)
            yield from messages.check(document, find)
            yield from files.check(document, lists, find, context)
            yield from evaluators.check(lists, find, context)
            yield from templates.check(lists, find, context)
            yield from target_use.check(document, find, context)
            yield from expectations.check(document, find)
        case TargetsDocument():
            yield from targets.check(document, find)
        case ConfigDocument():
            yield from config.check(document, find)
        case JudgeSetDocument():
            yield from judge_sets.check(document, find, context)
        case None:
            pass
