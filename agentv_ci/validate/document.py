"""Check a Source: return its document and its diagnostics."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import filterfalse

from msgspec.structs import replace

from agentv_ci.base.text import did_you_mean
from agentv_ci.contracts.config import ConfigDocument
from agentv_ci.contracts.diagnostics import FIXED_RULES, RULES, Diagnostic, RuleSetting
from agentv_ci.contracts.documents import CheckedDocument, Document, DocumentContext
from agentv_ci.contracts.evals import EvalDocument
from agentv_ci.contracts.experiment import ExperimentDocument
from agentv_ci.contracts.judge_evaluators import JudgeSetDocument
from agentv_ci.contracts.quarantine import QuarantineDocument
from agentv_ci.contracts.source import Source
from agentv_ci.contracts.targets import TargetsDocument
from agentv_ci.jsonschema.schemas import MOST_EXPLAINED
from agentv_ci.validate import data_cases
from agentv_ci.validate.findings import Finder
from agentv_ci.validate.rules import (
    attachments,
    cases,
    evaluators,
    file_references,
    judges,
    target_use,
    targets,
    texts,
    workspaces,
)
from agentv_ci.validate.structure import check_spellings, check_structure, contract_for
from agentv_ci.validate.walk import all_evaluators


def validate(source: Source, context: DocumentContext) -> CheckedDocument:
    """Check one source; the diagnostics are unique and in the order of the file."""
    if not source.readable or source.kind is None:
        return CheckedDocument(source, None, source.diagnostics)
    authored = Finder(source, context)
    document, refused, find = check_structure(authored, source.kind)
    contract = contract_for(source.kind)
    found = [*source.diagnostics, *refused]
    if len(refused) < MOST_EXPLAINED:
        found += [*check_spellings(contract, authored), *texts.check(authored)]
        found += filterfalse(find.is_stand_in, _rules(document, find))
    if not found:
        return CheckedDocument(source, document, ())
    path = str(source.path)
    own = document.rules if isinstance(document, ConfigDocument) else None
    applied = _with_severities((context.config.rules or {}) if own is None else own, _once(found))
    # Rows of data are in other files.
    ordered = sorted(
        applied, key=lambda each: (each.path != path, each.path, each.line, each.column, each.rule)
    )
    return CheckedDocument(source, document, tuple(ordered))


def _rules(document: Document | None, find: Finder) -> Iterator[Diagnostic]:
    match document:
        case EvalDocument():
            if any(case.is_template for case in document.evalcases):
                yield from data_cases.check(document, find, _eval_rules)
            else:
                yield from _eval_rules(document, find)
        case TargetsDocument():
            yield from targets.check(document, find)
        case ConfigDocument():
            yield from _check_rule_settings(document, find)
        case JudgeSetDocument():
            yield from judges.check_judge_set(document, find)
        case QuarantineDocument():
            from agentv_ci.validate.rules import quarantine

            yield from quarantine.check(document, find)
        case ExperimentDocument():
            from agentv_ci.validate.rules import experiments

            yield from experiments.check(document, find)
        case None:
            pass


def _eval_rules(document: EvalDocument, find: Finder) -> Iterator[Diagnostic]:
    every = all_evaluators(document)
    attached = attachments.with_attachments(document, find.source)
    yield from cases.check(document, find)
    yield from file_references.check(document, every, find)
    yield from attachments.check(document, attached, find)
    yield from evaluators.check(document, every, find)
    yield from judges.check(every, find)
    yield from workspaces.check(document, every, find)
    yield from target_use.check(document, every, attached, find)


def _once(found: Iterable[Diagnostic]) -> Iterator[Diagnostic]:
    """Drop duplicates: a mistake behind an alias is reported once."""
    seen: set[tuple[object, ...]] = set()
    unreadable: set[tuple[int, int]] = set()
    for diagnostic in found:
        place = (diagnostic.line, diagnostic.column)
        key = (diagnostic.rule, diagnostic.message, *place)
        if key not in seen and place not in unreadable:
            yield diagnostic
        seen.add(key)
        if diagnostic.rule == "AV204" and diagnostic.pointer is None:
            unreadable.add(place)  # a number that cannot be read causes no further diagnostics


def _check_rule_settings(document: ConfigDocument, find: Finder) -> Iterator[Diagnostic]:
    """AV317 for rules that do not exist or cannot be changed."""
    for rule in document.rules or {}:
        if rule not in RULES:
            named = next((id_ for id_, known in RULES.items() if known.name == rule), None)
            close = f" (did you mean '{named}'?)" if named else did_you_mean(rule, RULES)
            hint = None if close else "see docs/rules.md"
            yield find.at(
                "AV317", f"unknown rule '{rule}'{close}", ("rules", rule), key=True, hint=hint
            )
        elif rule in FIXED_RULES:
            message = f"rule {rule} ({RULES[rule].name}) cannot be changed"
            yield find.at("AV317", message, ("rules", rule), key=True)


def _with_severities(
    settings: Mapping[str, RuleSetting], diagnostics: Iterable[Diagnostic]
) -> Iterator[Diagnostic]:
    """Apply the severities of a config document, and drop diagnostics that are off."""
    for diagnostic in diagnostics:
        if diagnostic.rule in FIXED_RULES:
            yield diagnostic
            continue
        severity = settings.get(diagnostic.rule, diagnostic.severity)
        if severity == diagnostic.severity:
            yield diagnostic
        elif severity != "off":
            yield replace(diagnostic, severity=severity)
