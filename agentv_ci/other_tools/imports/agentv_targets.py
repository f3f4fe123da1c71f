"""Targets of AgentV → targets."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from itertools import product
from pathlib import Path
from typing import cast

from agentv_ci.base.json_access import value_at
from agentv_ci.base.mappings import only, without
from agentv_ci.contracts.base import JsonObject
from agentv_ci.contracts.cli_target import quoted_placeholders
from agentv_ci.contracts.environment_references import variables_in
from agentv_ci.contracts.source import Source
from agentv_ci.other_tools.imports.agentv_templates import document
from agentv_ci.other_tools.imports.draft import STAND_IN, Draft, Fields, Place, slug
from agentv_ci.other_tools.imports.yaml_text import Node

NAMES = (
    *(".agentv/targets.yaml", ".agentv/providers.yaml", "targets.yaml", ".agentv/targets.yml"),
    *("providers.yaml", ".agentv/config.yaml"),
)
PROVIDERS: Mapping[str, str] = {
    "azure": "azure-openai",
    "azure-openai": "azure-openai",
    "openai": "openai",
    "openrouter": "openrouter",
    "ollama": "ollama",
    "vllm": "vllm",
    "anthropic": "anthropic",
    "gemini": "gemini",
    "google": "gemini",
    "google-gemini": "gemini",
    "codex": "codex",
    "codex-cli": "codex",
    "codex-app-server": "codex",
    "codex-sdk": "codex",
    "openai:codex-sdk": "codex",
    "anthropic:claude-agent-sdk": "claude-code",
    "claude": "claude-code",
    "claude-cli": "claude-code",
    "claude-code": "claude-code",
    "claude-sdk": "claude-code",
    "copilot": "copilot-cli",
    "copilot-cli": "copilot-cli",
    "copilot-sdk": "copilot-cli",
    "gemini-cli": "gemini-cli",
    "vscode": "vscode",
    "vscode-insiders": "vscode-insiders",
    "cli": "cli",
    "mock": "mock",
}
_QUOTED = re.compile(r"(['\"])(\{[A-Z_]+\})\1")
SAME = (
    "workers",
    "model",
    "temperature",
    "timeout_seconds",
    "executable",
    "args",
    "cwd",
    "env",
    "headers",
    "version",
)
OF_MODELS = frozenset(
    {"azure-openai", "openai", "openrouter", "ollama", "vllm", "anthropic", "gemini"}
)
OF_AGENTS = frozenset({"codex", "claude-code", "copilot-cli", "gemini-cli"})
TAKEN: Mapping[str, frozenset[str]] = {
    **dict.fromkeys(OF_MODELS, frozenset({"workers", "model", "temperature", "headers"})),
    "azure-openai": frozenset({"workers", "temperature", "headers", "version"}),
    **dict.fromkeys(
        OF_AGENTS,
        frozenset({"workers", "model", "timeout_seconds", "executable", "args", "cwd", "env"}),
    ),
    "cli": frozenset({"workers", "timeout_seconds", "cwd", "env"}),
    "mock": frozenset({"workers"}),
    **dict.fromkeys(("vscode", "vscode-insiders"), frozenset({"timeout_seconds"})),
}
"""Provider → the settings that have the same name and meaning."""


def read_targets(draft: Draft, source: Source) -> str | None:
    """Add the targets of the nearest targets file.

    Return the one that the settings of the repository name for all files; None without any.
    """
    found = next((candidate for candidate in _candidates(draft, source)), None)
    if found is not None:
        place = Place(found)
        listed = next(
            (place / key for key in ("targets", "providers") if (place / key).value is not None),
            place,
        )
        for item in sorted(listed.items, key=_is_alias):
            if isinstance(item.value, dict):
                add_target(draft, item, source.path.parent)
    return _with_defaults(draft, source)


def _with_defaults(draft: Draft, source: Source) -> str | None:
    """Let the default grader judge the targets that name none; return the default target."""
    for folder in source.path.parents:
        settings = document(draft, folder / ".agentv" / "config.yaml")
        if settings is not None:
            defaults = value_at(settings.data, "defaults")
            asked, grader = value_at(defaults, "provider"), value_at(defaults, "grader")
            for name, target in draft.targets.items():
                if grader in draft.targets and name != grader and target != STAND_IN:
                    draft.targets[name] = {"judge_target": grader, **target}
            return asked if isinstance(asked, str) else None
    return None


def add_missing_targets(draft: Draft) -> None:
    """Add targets that eval files name and no targets file has; they fail."""
    for name, place in draft.named.items():
        if name not in draft.targets:
            draft.stand_in(name, place, f"target '{name}'", "no targets file defines it")


def _candidates(draft: Draft, source: Source) -> list[Source]:
    folders = [folder for folder in source.path.parents if folder.is_relative_to(source.root)]
    paths = [folder / name for folder, name in product(folders, NAMES)]
    return [
        found for path in paths if draft.reads.matching(path) and (found := document(draft, path))
    ]


def _is_alias(place: Place) -> bool:
    """Whether a target stands for another one, which must be there first."""
    return isinstance(place.value, dict) and "use_target" in place.value


def _of_version_4(place: Place) -> Place:
    """Return a provider of AgentV 5, whose `id` says what is asked, as a target of version 4."""
    value = place.value
    if isinstance(value, dict) and len(value) == 1 and not value.keys() & {"id", "name"}:
        (identity, settings), *_ = value.items()
        value = {"id": identity, **(settings if isinstance(settings, dict) else {})}
    if not isinstance(value, dict):
        value = {"id": str(value)}
    if "provider" in value or "use_target" in value or "id" not in value:
        return place
    backend = str(value["id"]).removeprefix("agentv:")
    name = str(value.get("label") or slug(str(value["id"])))
    made: JsonObject = {"name": name, "provider": backend, **only(value, {"environment", "hooks"})}
    head, _, rest = backend.partition(":")
    if rest and backend not in PROVIDERS:
        made |= {"provider": head, "model": rest.rpartition(":")[2]}
    config = value.get("config")
    made |= without(value, {"id", "label", "config"})
    made |= config if isinstance(config, dict) else {}
    command = made.get("command")
    if isinstance(command, list) and backend != "cli" and command:
        made = without(made, {"command"}) | {"executable": command[0], "args": command[1:]}
    if made.get("runtime") == "host":
        del made["runtime"]
    return place.holding(made)


def add_target(draft: Draft, place: Place, folder: Path) -> str:
    """Add a target, unless one has its name; return its name."""
    place = _of_version_4(place)
    fields = draft.fields(place, "targets")
    name = fields.text("name", "label", "id") or "default"
    if name in draft.targets:
        fields.rest()
        return name
    theirs = fields.text("provider") or ""
    provider = PROVIDERS.get(theirs)
    used = fields.text("use_target")
    if used in draft.targets:
        draft.targets[name] = draft.targets[used]
        fields.end("those of the other target are used")
        return name
    if used is not None or provider is None:
        why = f"it stands for the target in {used}" if used else f"there is no provider '{theirs}'"
        draft.stand_in(name, place, f"provider {theirs}" if theirs else "use_target", why)
        fields.rest()
        return name
    if theirs.endswith("-sdk"):
        draft.note(
            "approximated", place, f"provider {theirs}", f"asked by its command line: {provider}"
        )
    made: dict[str, Node] = {"provider": provider, **_settings(draft, fields, provider, folder)}
    judge = fields.text("grader_target", "judge_target")
    if judge:
        made["judge_target"] = draft.target(judge, place)
    fields.drop(
        {"log_dir", "log_format", "stream_log", "log_output_format", "retry", "subprovider"},
        "not needed",
    )
    fields.end("not a setting of this provider")
    if provider == "cli" and quoted_placeholders(str(made["command_template"])):
        draft.stand_in(name, place, "targets.command", "a placeholder is inside quotes")
        return name
    draft.targets[name] = made
    return name


def _settings(draft: Draft, fields: Fields, provider: str, folder: Path) -> dict[str, Node]:
    made: dict[str, Node] = {}
    for key in SAME:
        if key in TAKEN[provider] and (value := fields.take(key)) is not None:
            made[key] = value
    cwd = made.get("cwd")
    if isinstance(cwd, str) and not variables_in(cwd):
        made["cwd"] = draft.reference(folder / cwd)
    if provider in OF_MODELS:
        made |= _of_model(draft, fields, provider, made)
    elif provider == "cli":
        made |= _command(draft, fields)
        made.setdefault("cwd", draft.reference(folder))
    elif provider == "mock":
        made["response"] = fields.text("response") or ""
        if (delay := fields.take("delay_ms", "delayMs")) is not None:
            made["delay_ms"] = delay
    return made


def _of_model(
    draft: Draft, fields: Fields, provider: str, made: dict[str, Node]
) -> dict[str, Node]:
    found: dict[str, Node] = {}
    is_azure = provider == "azure-openai"
    if (url := fields.take("base_url", "endpoint")) is not None:
        found["endpoint" if is_azure else "base_url"] = url
    if (limit := fields.take("max_output_tokens")) is not None:
        found["max_output_tokens"] = limit
    found |= _key(draft, fields)
    if is_azure:
        found["deployment"] = (
            fields.take("deployment", "deployment_name", "model") or "set-a-deployment"
        )
        found.setdefault("endpoint", "${{ AZURE_OPENAI_ENDPOINT }}")
    elif "model" not in made:
        found["model"] = "set-a-model"
        draft.note("approximated", fields.place, "targets.model", "the model must be set")
    return found


def _key(draft: Draft, fields: Fields) -> dict[str, Node]:
    place = fields.at("api_key")
    if place is None:
        return {}
    if variables_in(str(place.value)):
        return {"api_key": place.value}
    draft.note(
        "dropped",
        place,
        "targets.api_key",
        "keys are references such as ${{ OPENAI_API_KEY }}, never themselves",
    )
    return {}


def _command(draft: Draft, fields: Fields) -> dict[str, Node]:
    command = fields.take("command", "command_template")
    text = shlex.join(map(str, command)) if isinstance(command, list) else str(command or "")
    text = _with_arguments(_QUOTED.sub(r"\2", text))
    made: dict[str, Node] = {"command_template": text}
    if not any(variable in text for variable in ("{PROMPT}", "{PROMPT_FILE}", "{STDIN}")):
        made["prompt"] = "none"
    for ours, theirs in (
        ("files_format", ("files_format", "attachments_format")),
        ("keep_temp_files", ("keep_temp_files",)),
    ):
        if (value := fields.take(*theirs)) is not None:
            made[ours] = value
    if (check := fields.at("healthcheck")) is not None and isinstance(check.value, dict):
        inner = draft.fields(check, "healthcheck")
        command, url = inner.text("command", "command_template"), inner.text("url")
        if command or url:
            made["healthcheck"] = (
                {"type": "command", "command_template": command}
                if command
                else {"type": "http", "url": cast("str", url)}
            )
        if value_at(check.value, "type") in {None, "command", "http"}:
            inner.ignore("type")
        inner.end("not a setting of health checks")
    return made


def _with_arguments(template: str) -> str:
    """Return a command whose script in quotes gets values as its arguments: `sh -c '…$1' sh {A}`.

    Values are quoted, which inside other quotes would end those.
    """
    names = dict.fromkeys(quoted_placeholders(template))
    try:
        words = shlex.split(template)
    except ValueError:
        return template
    if not names or len(words) != 3 or not re.fullmatch(r"-\w*c", words[1]):
        return template
    script = _QUOTED.sub(r"\2", words[2])
    for number, name in enumerate(names, 1):
        script = script.replace(f"{{{name}}}", f'"${number}"')
    values = " ".join(f"{{{name}}}" for name in names)
    return f"{shlex.join([*words[:2], script, words[0]])} {values}"
