"""Templates of promptfoo: which are only variables, and the others filled in. A door to jinja2."""

from __future__ import annotations

import re

from agentv_ci.contracts.base import JsonObject, JsonValue

_EXPRESSION = re.compile(r"\{\{-?\s*(.*?)\s*-?\}\}", re.DOTALL)
_VARIABLE = re.compile(r"[A-Za-z_][\w.-]*")


def variables_of(text: str) -> set[str]:
    """Return the variables that stand alone in a template."""
    return {match for match in _EXPRESSION.findall(text) if _VARIABLE.fullmatch(match)}


def is_simple(text: str) -> bool:
    """Whether a template has only variables, and no statements or expressions."""
    return (
        "{%" not in text and "{#" not in text and all(_VARIABLE.fullmatch(each) for each in _EXPRESSION.findall(text))
    )


def filled(row: JsonObject) -> JsonObject:
    """Return a row whose texts have no variables: values may name other values of their row."""
    return {key: rendered(value, row) if "{{" in str(value) else value for key, value in row.items()}


def rendered(value: JsonValue, row: JsonObject) -> JsonValue:
    """Return a text, or messages, with its template filled in; one that jinja2 cannot read stays as it is."""
    if isinstance(value, list):
        return [rendered(each, row) for each in value]
    if isinstance(value, dict):
        return {key: rendered(each, row) for key, each in value.items()}
    if not isinstance(value, str):
        return value
    from jinja2 import TemplateError
    from jinja2.sandbox import SandboxedEnvironment

    try:
        return SandboxedEnvironment(autoescape=False).from_string(value).render(row)  # no markup
    except (TemplateError, TypeError, ValueError):
        return value
