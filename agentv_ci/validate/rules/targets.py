"""Targets: their own settings, and the names evals call them by."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from agentv_ci.contracts.api_targets import HttpTarget
from agentv_ci.contracts.base import JsonValue
from agentv_ci.contracts.cli_template import (
    CLI_PLACEHOLDERS,
    FORMAT_PLACEHOLDER,
    FORMAT_PLACEHOLDERS,
    placeholders,
    quoted_placeholders,
)
from agentv_ci.contracts.diagnostics import Diagnostic
from agentv_ci.contracts.environment_references import OPENING, variable_of
from agentv_ci.contracts.source import Pointer, Source
from agentv_ci.contracts.targets import CliTarget, CommandHealthcheck, TargetsDocument
from agentv_ci.json_access import text_at, value_at
from agentv_ci.text import did_you_mean, listed
from agentv_ci.validate.findings import Finder


def check(document: TargetsDocument, find: Finder) -> Iterator[Diagnostic]:
    """AV301, AV304, AV305, AV313 and AV322 for the targets themselves."""
    named = ((("targets", index, "name"), target.name) for index, target in enumerate(document.targets))
    yield from find.duplicates("target name", named)
    names = authored_names(find.source)
    for index, target in enumerate(document.targets):
        pointer: Pointer = ("targets", index)
        judge = target.judge_target
        if judge is not None and variable_of(judge) is None:
            yield from unknown_name(find, (*pointer, "judge_target"), "judge target", judge, names)
        if isinstance(target, CliTarget):
            yield from _check_templates(pointer, target, find)
        if isinstance(target, HttpTarget) and target.api_key and OPENING not in target.api_key:
            yield find.at(
                "AV313", "an api_key does not belong in a file", (*pointer, "api_key"), hint=_key_hint(target.api_key)
            )


def _key_hint(api_key: str) -> str:
    """Say how a variable is written, to those who tried."""
    if tried := re.fullmatch(r"\$\{?(\w+)\}?|\{\{\s*(\w+)\s*\}\}", api_key):
        return f"a reference to the environment is written ${{{{ {tried[1] or tried[2]} }}}}"
    return "put it into an environment variable and write api_key: ${{ NAME }}"


def _check_templates(pointer: Pointer, target: CliTarget, find: Finder) -> Iterator[Diagnostic]:
    templates = [((*pointer, "command_template"), target.command_template)]
    if isinstance(target.healthcheck, CommandHealthcheck):
        templates.append(((*pointer, "healthcheck", "command_template"), target.healthcheck.command_template))
    for place, template in templates:
        yield from _check_placeholders(place, placeholders(template), CLI_PLACEHOLDERS, find, template)
        for name in quoted_placeholders(template):
            yield find.at(
                "AV322",
                f"{{{name}}} stands inside quotes or behind a backslash, where what is put in would be read as part of "
                "the command",
                place,
                hint="it is quoted already; write it alone",
            )
    for key in ("files_format", "attachments_format"):
        used = dict.fromkeys(match["name"] for match in FORMAT_PLACEHOLDER.finditer(getattr(target, key) or ""))
        yield from _check_placeholders((*pointer, key), used, FORMAT_PLACEHOLDERS, find)


def _check_placeholders(
    pointer: Pointer, used: Iterable[str], known: Sequence[str], find: Finder, template: str = ""
) -> Iterator[Diagnostic]:
    for name in used:
        if name not in known:
            exist = listed(f"{{{each}}}" for each in known)
            message = f"unknown placeholder {{{name}}}{did_you_mean(name, known)}; placeholders are {exist}"
            hint = _literal_hint(name, template) if known is CLI_PLACEHOLDERS else None
            yield find.at("AV305", message, pointer, hint=hint)


def _literal_hint(name: str, template: str) -> str:
    if f"${{{name}}}" in template:
        return f"for a variable of the shell write ${name}"
    return f"for the text itself write {{{{{name}}}}}"


def authored_names(targets: Source) -> list[str] | None:
    """Return the names of all targets, also of wrong ones; None if one has no name, which may be any that is meant."""
    items = value_at(targets.data, "targets")
    names = [text_at(item, "name") for item in (items if isinstance(items, list) else [])]
    return sorted({name for name in names if name}) if all(names) else None


def unknown_name(
    find: Finder, pointer: Pointer, what: str, name: str, names: Sequence[str] | None
) -> Iterator[Diagnostic]:
    """AV304 for a name that is none of `names`."""
    if names is not None and name not in names:
        message = f"unknown {what} '{name}'{did_you_mean(name, names)}; targets are {listed(names)}"
        yield find.at("AV304", message, pointer)


def check_environment_references(find: Finder) -> Iterator[Diagnostic]:
    """AV315 for `${{` that is not a whole `${{ NAME }}` value."""
    for pointer, text in _texts(find.source.data, ()):
        if OPENING not in text or variable_of(text) is not None:
            continue
        if whole := re.fullmatch(r"\s*\$\{\{\s*([^{}]*?)\s*\}\}\s*", text):
            message = f"'{whole[1]}' is no name of a variable; write ${{{{ NAME }}}}"
            yield find.at(
                "AV315",
                message,
                pointer,
                hint="NAME is a variable of the environment; 'env.' and 'secrets.' are GitHub's",
            )
        else:
            hint = "put the whole value into one environment variable and refer to that"
            yield find.at("AV315", "a reference must be the whole value, written ${{ NAME }}", pointer, hint=hint)


def _texts(value: JsonValue, pointer: Pointer) -> Iterator[tuple[Pointer, str]]:
    if isinstance(value, str):
        yield pointer, value
    elif isinstance(value, dict):
        for key, item in value.items():
            if not key.startswith("x-"):
                yield from _texts(item, (*pointer, key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _texts(item, (*pointer, index))
