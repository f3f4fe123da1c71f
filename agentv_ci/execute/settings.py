"""Targets with the environment's values in place of references."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from pydantic import TypeAdapter, ValidationError

from agentv_ci.contracts.base import JsonValue
from agentv_ci.contracts.targets import (
    CLI_PLACEHOLDERS,
    AzureOpenAITarget,
    CliTarget,
    HttpTarget,
    OpenAITarget,
    Target,
    placeholders,
)
from agentv_ci.errors import UsageError

FRAMING_HEADERS = frozenset({"content-length", "transfer-encoding", "connection"})
"""Headers that say where a request ends; the client's own."""

REFERENCE = re.compile(r"\s*\$\{\{\s*([A-Za-z_][A-Za-z0-9_]*)\s*\}\}\s*")


def resolve_targets(targets: Mapping[str, Target], environ: Mapping[str, str]) -> dict[str, Target]:
    """Return the targets ready for use.

    Raises UsageError that names every missing variable of every target, or the fields whose value is unfit; no
    value of a variable is ever printed.
    """
    problems: list[str] = []
    resolved: dict[str, Target] = {}
    for key, target in targets.items():
        missing: dict[str, list[str]] = {}
        data = _substitute(target, environ, missing)
        sources = _add_variables(target, data, environ, missing)
        if missing:
            names = ", ".join(f"{name} ({', '.join(fields)})" for name, fields in missing.items())
            problems.append(f"target '{target.name}' needs environment variables that are not set: {names}")
            continue
        try:
            resolved[key] = TypeAdapter[Target](Target).validate_python(data, strict=False)
            problems += [f"target '{target.name}': {sentence}" for sentence in _unusable(resolved[key])]
        except ValidationError as error:
            problems += [f"target '{target.name}': {sentence}" for sentence in _unfit(error, sources)]
    if problems:
        raise UsageError("\n".join(problems), hint="set them in the environment or in a .env file")
    return resolved


def _substitute(target: Target, environ: Mapping[str, str], missing: dict[str, list[str]]) -> dict[str, JsonValue]:
    """Replace references; an optional plain setting whose variable is not set is left out."""
    fields = type(target).model_fields
    data: dict[str, JsonValue] = {}
    for name, value in target.model_dump(mode="json", exclude_none=True).items():
        absent: list[str] = []
        found = _value(value, environ, absent)
        if not absent:
            data[name] = found
        elif name in target.essential or fields[name].is_required() or isinstance(value, (dict, list)):
            for variable in absent:
                missing.setdefault(variable, []).append(name)
    return data


def _value(value: JsonValue, environ: Mapping[str, str], absent: list[str]) -> JsonValue:
    if isinstance(value, str) and (match := REFERENCE.fullmatch(value)):
        found = environ.get(match[1], "").strip()
        if not found:
            absent.append(match[1])
        return found
    if isinstance(value, dict):
        return {key: _value(item, environ, absent) for key, item in value.items()}
    if isinstance(value, list):
        return [_value(item, environ, absent) for item in value]
    return value


def _add_variables(
    target: Target, data: dict[str, JsonValue], environ: Mapping[str, str], missing: dict[str, list[str]]
) -> Mapping[str, str]:
    """Read what a target leaves open from the variables of its provider; return field → variable."""
    sources: dict[str, str] = {}
    asked_for = {field for fields in missing.values() for field in fields}
    for field, names in target.variables.items():
        if field in asked_for or not target.reads(field, data):
            continue
        source = next((name for name in names if environ.get(name, "").strip()), None)
        if source is not None:
            data[field] = environ[source].strip()
            sources[field] = source
        elif (value := _fallback(target, field)) is not None:
            data[field] = value
    for field in sorted(target.needs(data) - data.keys() - asked_for):
        missing.setdefault(" or ".join(target.variables[field]), []).append(field)
    return sources


def _fallback(target: Target, field: str) -> str | None:
    if isinstance(target, OpenAITarget) and field == "base_url" and target.provider in target.brands:
        return target.brands[target.provider]
    return target.fallbacks.get(field)


def _unusable(target: Target) -> Iterator[str]:
    """What only the values show: a reference that leads to another one, a command nobody can fill in."""
    for field, value in target.model_dump(mode="json", exclude_none=True).items():
        if _holds_reference(value):
            yield f"the value of {field} is unfit: it is a reference itself"
    if isinstance(target, HttpTarget):
        yield from (f"the value of {field} is unfit: {reason}" for field, reason in _unsendable(target))
    if isinstance(target, CliTarget):
        for name in placeholders(target.command_template):
            if name not in CLI_PLACEHOLDERS:
                yield f"the value of command_template is unfit: unknown placeholder {{{name}}}"


def _holds_reference(value: JsonValue) -> bool:
    match value:
        case str():
            return REFERENCE.fullmatch(value) is not None
        case list():
            return any(map(_holds_reference, value))
        case _:
            # Maps are the author's own: what looks like a reference there is a value.
            return False


def _unsendable(target: HttpTarget) -> Iterator[tuple[str, str]]:
    if target.base_url is not None and not re.match(r"https?://[^/]", target.base_url.strip(), re.IGNORECASE):
        yield "base_url", "it does not begin with http:// or https:// and a host"
    if re.search(r"[?#]", target.base_url or "") and not isinstance(target, AzureOpenAITarget):
        yield "base_url", "it has a query; further keys of the request belong into extra_body or headers"
    for name in target.headers or {}:
        if name.lower() in FRAMING_HEADERS or not re.fullmatch(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+", name):
            yield f"headers.{name}", "it is a header that no target can set"
    values = {"api_key": target.api_key, **{f"headers.{name}": value for name, value in (target.headers or {}).items()}}
    for field, value in values.items():
        if value is not None and not (value.isascii() and value.isprintable()):
            yield field, "it has characters that no header can carry"


def _unfit(error: ValidationError, sources: Mapping[str, str]) -> Iterator[str]:
    """One sentence a field: of a value that may be several things, what the first of them says."""
    said: dict[str, str] = {}
    for each in error.errors(include_url=False, include_context=False, include_input=False):
        field, *behind = each["loc"][1:]
        place = ".".join([str(field), *(str(step) for step in behind if isinstance(step, int))])
        said.setdefault(place, each["msg"])
    for place, sentence in said.items():
        source = f" (read from {sources[place]})" if place in sources else ""
        yield f"the value of {place}{source} is unfit: {sentence}"
