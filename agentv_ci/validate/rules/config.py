"""What config documents make of rules."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping

from agentv_ci.contracts.config import ConfigDocument
from agentv_ci.contracts.diagnostics import FIXED_RULES, RULES, Diagnostic, RuleSetting
from agentv_ci.text import did_you_mean
from agentv_ci.validate.findings import Finder


def check(document: ConfigDocument, find: Finder) -> Iterator[Diagnostic]:
    """AV317 for rules that do not exist or cannot be changed."""
    for rule in document.rules or {}:
        if rule not in RULES:
            named = next((id_ for id_, known in RULES.items() if known.name == rule), None)
            close = f" (did you mean '{named}'?)" if named else did_you_mean(rule, RULES)
            hint = None if close else "docs/rules.md lists them all"
            yield find.at("AV317", f"unknown rule '{rule}'{close}", ("rules", rule), key=True, hint=hint)
        elif rule in FIXED_RULES:
            message = f"rule {rule} ({RULES[rule].name}) cannot be changed: without it nothing can go on"
            yield find.at("AV317", message, ("rules", rule), key=True)


def apply(settings: Mapping[str, RuleSetting], diagnostics: Iterable[Diagnostic]) -> Iterator[Diagnostic]:
    """Yield the diagnostics with the severities of a config document, but for those that are off."""
    for each in diagnostics:
        severity = each.severity if each.rule in FIXED_RULES else settings.get(each.rule, each.severity)
        if severity == each.severity:
            yield each
        elif severity != "off":
            yield dataclasses.replace(each, severity=severity)
