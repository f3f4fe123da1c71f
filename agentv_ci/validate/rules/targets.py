"""Targets: their settings and names."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from agentv_ci.base.json_access import text_at, value_at
from agentv_ci.base.source_files import find_files
from agentv_ci.base.text import did_you_mean, listed
from agentv_ci.contracts.agent_targets import AgentTarget
from agentv_ci.contracts.api_targets import HttpTarget
from agentv_ci.contracts.cli_target import (
    CLI_PLACEHOLDERS,
    FORMAT_PLACEHOLDER,
    FORMAT_PLACEHOLDERS,
    CliTarget,
    CommandHealthcheck,
    quoted_placeholders,
    unknown_placeholders,
)
from agentv_ci.contracts.diagnostics import Diagnostic
from agentv_ci.contracts.environment_references import OPENING, variable_of
from agentv_ci.contracts.judge_evaluators import prompt_path
from agentv_ci.contracts.source import Pointer, Source
from agentv_ci.contracts.targets import PluginTarget, Target, TargetsDocument
from agentv_ci.validate.findings import Finder
from agentv_ci.validate.rules import plugins, target_settings, workspaces
from agentv_ci.validate.rules.file_references import PROBLEMS, check_reference


def check(document: TargetsDocument, find: Finder) -> Iterator[Diagnostic]:
    """The rules for targets.

    AV105, AV301, AV302, AV304, AV305, AV313, AV315, AV318, AV322, AV329, AV330, AV351 and AV362.
    """
    own = (target.name for target in document.targets)
    yield from find.duplicates("target name", own, ("targets",), "name")
    names = authored_names(find.source)
    for index, target in enumerate(document.targets):
        judge = target.judge_target
        if judge is not None and variable_of(judge) is None:
            place = ("targets", index, "judge_target")
            yield from unknown_name(find, place, "judge target", judge, names)
        yield from target_settings.check(("targets", index), target, find)
        yield from _check_of_provider(("targets", index), target, find)


def _check_of_provider(pointer: Pointer, target: Target, find: Finder) -> Iterator[Diagnostic]:
    """Check what only some providers have."""
    if isinstance(target, PluginTarget):
        yield from plugins.check_target(pointer, target, find)
    if isinstance(target, CliTarget):
        yield from _check_templates(pointer, target, find)
    if isinstance(target, (CliTarget, AgentTarget)):
        yield from _check_sources(pointer, target.sources or (), find)
        if target.workspace is not None:
            yield from workspaces.check_settings((*pointer, "workspace"), target.workspace, find)
    if isinstance(target, HttpTarget):
        if path := prompt_path(target.system_prompt):
            yield from check_reference((*pointer, "system_prompt"), path, find)
        if target.api_key and OPENING not in target.api_key:
            hint = _key_hint(target.api_key)
            yield find.at("AV313", "'api_key' is a literal key", (*pointer, "api_key"), hint=hint)


def _key_hint(api_key: str) -> str:
    """Return a hint, for a misspelt reference with its variable."""
    if tried := re.fullmatch(r"\$\{?(\w+)\}?|\{\{\s*(\w+)\s*\}\}", api_key):
        return f"write the environment reference as ${{{{ {tried[1] or tried[2]} }}}}"
    return "put it in an environment variable and write api_key: ${{ NAME }}"


def _check_templates(pointer: Pointer, target: CliTarget, find: Finder) -> Iterator[Diagnostic]:
    templates = [((*pointer, "command_template"), target.command_template)]
    if isinstance(target.healthcheck, CommandHealthcheck):
        place = (*pointer, "healthcheck", "command_template")
        templates.append((place, target.healthcheck.command_template))
    for place, template in templates:
        unknown = unknown_placeholders(template)
        yield from _unknown(place, unknown, CLI_PLACEHOLDERS, find)
        for name in quoted_placeholders(template):
            message = (
                f"{{{name}}} is inside quotes or after a backslash, "
                "where its value becomes part of the command"
            )
            hint = "write it without quotes or backslash; its value is quoted automatically"
            yield find.at("AV322", message, place, hint=hint)
        if template is target.command_template and not unknown and not target.gets_prompt:
            yield from _without_prompt(place, template, find)
    yield from _check_formats(pointer, target, find)


def _check_formats(pointer: Pointer, target: CliTarget, find: Finder) -> Iterator[Diagnostic]:
    for key in ("files_format", "attachments_format"):
        used = FORMAT_PLACEHOLDER.finditer(getattr(target, key) or "")
        wrong = (match[0] for match in used if match["name"] not in FORMAT_PLACEHOLDERS)
        yield from _unknown((*pointer, key), dict.fromkeys(wrong), FORMAT_PLACEHOLDERS, find)


def _check_sources(pointer: Pointer, sources: Sequence[str], find: Finder) -> Iterator[Diagnostic]:
    """AV105, AV302 and AV318 for the files of an agent's own code."""
    folder = find.source.path.parent
    for index, source in enumerate(sources):
        paths = find_files(source, folder)
        if not paths:
            message = f"no file matches '{source}': {folder / source}"
            yield find.at("AV302", message, (*pointer, "sources", index))
        for path in paths:
            file = find.inspect(path)
            if file.state in ("outside", "unreadable"):
                rule, sentence = PROBLEMS[file.state]
                reason = sentence.format(root=find.source.root, reason=file.reason)
                yield find.at(rule, f"file '{path}' {reason}", (*pointer, "sources", index))
                break


def _without_prompt(place: Pointer, template: str, find: Finder) -> Iterator[Diagnostic]:
    """AV329, unless the template is an environment reference."""
    if variable_of(template) is None and not find.lost_part(place[:-1]):
        message = "the command never gets the prompt: it has neither {PROMPT} nor {PROMPT_FILE}"
        hint = (
            "add {PROMPT}, or set stdin: prompt; "
            "for a command that needs no prompt, set prompt: none"
        )
        if "${PROMPT" in template or "{{PROMPT" in template:
            hint = "write {PROMPT}: ${NAME} is a variable of the shell, and {{NAME}} is literal"
        yield find.at("AV329", message, place, hint=hint)


def _unknown(
    pointer: Pointer, unknown: Iterable[str], known: Sequence[str], find: Finder
) -> Iterator[Diagnostic]:
    for written in unknown:
        name = written.strip("{} ")
        exist = listed(f"{{{each}}}" for each in known)
        message = f"unknown placeholder {written}{did_you_mean(name, known)}; available: {exist}"
        hint = None
        if name.upper() in CLI_PLACEHOLDERS:
            hint = f"placeholders are in capitals: {{{name.upper()}}}"
        elif known is CLI_PLACEHOLDERS:
            literal = f"{{{{{name}}}}}" if name.isupper() else repr(written)
            hint = f"write {literal} for the literal text"
        yield find.at("AV305", message, pointer, hint=hint)


def authored_names(targets: Source) -> list[str] | None:
    """Return the names of all targets, even invalid ones; None if the name of one is missing."""
    items = value_at(targets.data, "targets")
    if not isinstance(items, list):
        return []
    names: set[str] = set()
    for item in items:
        name = text_at(item, "name")
        if not name:
            return None
        names.add(name)
    return sorted(names)


def unknown_name(
    find: Finder, pointer: Pointer, what: str, name: str, names: Sequence[str] | None
) -> Iterator[Diagnostic]:
    """AV304 for a name that is not in `names`."""
    if names is not None and name not in names:
        message = f"unknown {what} '{name}'{did_you_mean(name, names)}; available: {listed(names)}"
        yield find.at("AV304", message, pointer)
