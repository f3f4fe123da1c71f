"""Providers of promptfoo → targets."""

from __future__ import annotations

import json
import re
import shlex
from itertools import chain
from typing import cast

from agentv_ci.contracts.base import JsonObject, JsonValue
from agentv_ci.contracts.source import Source
from agentv_ci.other_tools.imports.draft import Draft, Place, items_of, slug
from agentv_ci.other_tools.imports.promptfoo_asserts import resolved
from agentv_ci.other_tools.imports.promptfoo_http import http_target, is_http, questions_in
from agentv_ci.other_tools.imports.yaml_text import Node
from agentv_ci.other_tools.mappings import without

APIS = {
    "openai": "openai",
    "anthropic": "anthropic",
    "google": "gemini",
    "palm": "gemini",
    "vertex": "gemini",
    "azure": "azure-openai",
    "azureopenai": "azure-openai",
    "ollama": "ollama",
    "openrouter": "openrouter",
    "vllm": "vllm",
}
WITH_URL = {
    "mistral": "https://api.mistral.ai/v1",
    "groq": "https://api.groq.com/openai/v1",
    "deepseek": "https://api.deepseek.com",
    "xai": "https://api.x.ai/v1",
    "togetherai": "https://api.together.xyz/v1",
    "github": "https://models.github.ai/inference",
}
"""Provider → the address of its API, which is compatible with OpenAI's."""
KEYS = {"github": "GITHUB_TOKEN", "togetherai": "TOGETHER_API_KEY"}
KINDS = frozenset({"chat", "responses", "messages", "completion", "assistant", "deployment"})
SETTINGS = {
    "temperature": "temperature",
    "max_tokens": "max_output_tokens",
    "max_completion_tokens": "max_output_tokens",
    "maxOutputTokens": "max_output_tokens",
    "max_output_tokens": "max_output_tokens",
    "apiBaseUrl": "base_url",
    "headers": "headers",
}
_ENV = re.compile(r"\{\{\s*env\.(\w+)\s*\}\}|\$\{(\w+)\}")


def add_target(draft: Draft, place: Place) -> str:
    """Add the target of a provider, and return its name."""
    value = place.value
    identity, settings = _parts(value)
    label = ""
    if isinstance(value, dict):
        label = str(settings.pop("label", ""))
    name = slug(label or identity, "target")
    config = cast("JsonObject", settings.pop("config", None) or {})
    asks_http = is_http(identity, config)
    made = (http_target if asks_http else _target)(draft, place, identity, config)
    for key in settings:
        draft.note("dropped", place, f"providers.{key}", "not a setting of targets")
    if made is None:
        why = "agentv-ci has no such provider"
        if asks_http:
            why = "its request needs more than the prompt"
        draft.stand_in(name, place, identity, why)
    else:
        draft.note("kept", place, f"provider {identity.partition(':')[0]}")
        draft.targets.setdefault(name, made)
    return draft.target(name, place)


def question_of(place: Place | None) -> str:
    """Return the variable that is the prompt of a config without prompts.

    It is that of the config's requests, else `prompt`.
    """
    names = set(
        chain.from_iterable(questions_in(_parts(item.value)[1]) for item in items_of(place))
    )
    if len(names) == 1:
        return names.pop()
    return "prompt"


def _parts(value: JsonValue) -> tuple[str, JsonObject]:
    """Return the id of a provider, and its other settings: a text, {id, …}, or {id: {…}}."""
    if not isinstance(value, dict):
        return str(value), {}
    if isinstance(identity := value.get("id"), str):
        return identity, without(value, {"id"})
    key, inner = next(iter(value.items()), ("", {}))
    return key, dict(inner) if isinstance(inner, dict) else {}


def _target(
    draft: Draft, place: Place, identity: str, config: JsonObject
) -> dict[str, Node] | None:
    head, _, rest = identity.partition(":")
    source = place.source
    if identity == "echo":
        return {"provider": "cli", "command_template": "printf %s {PROMPT}"}
    if head == "exec":
        return {
            "provider": "cli",
            "command_template": f"{rest.strip()} {{PROMPT}}",
            "cwd": draft.reference(source.path.parent),
        }
    if head in {"file", "python"} or identity.endswith((".js", ".mjs", ".py", ".ts")):
        return _program(draft, place, identity, config, source)
    model = rest.partition(":")[2] if rest.partition(":")[0] in KINDS else rest
    made: dict[str, Node]
    if head in WITH_URL:
        key = KEYS.get(head, f"{head.upper()}_API_KEY")
        made = {
            "provider": "openai",
            "model": model,
            "base_url": WITH_URL[head],
            "api_key": f"${{{{ {key} }}}}",
        }
    elif head in APIS and model:
        made = {"provider": APIS[head], "model": model}
        if head == "vertex":
            draft.note("approximated", place, "vertex", "asked through the Gemini API")
        if made["provider"] == "azure-openai":
            made = {
                "provider": "azure-openai",
                "deployment": _references(model),
                "endpoint": _endpoint(config),
            }
        if rest.startswith("responses:"):
            made["api_format"] = "responses"
    else:
        return None
    return {**made, **_settings(draft, place, config)}


def _settings(draft: Draft, place: Place, config: JsonObject) -> dict[str, Node]:
    made: dict[str, Node] = {}
    body: dict[str, Node] = {}
    for key, value in config.items():
        where = place / "config" / key
        if key in SETTINGS:
            made[SETTINGS[key]] = _references(value) if isinstance(value, str) else value
        elif key in {"apiKey", "apiKeyEnvar"}:
            name = _ENV.search(str(value))
            known = None
            if name:
                known = name[1] or name[2]
            if key == "apiKeyEnvar":
                known = str(value)
            if known is None:
                draft.note(
                    "dropped",
                    where,
                    "apiKey",
                    "keys are references such as ${{ OPENAI_API_KEY }}, never themselves",
                )
            else:
                made["api_key"] = f"${{{{ {known} }}}}"
        elif key in {"systemPrompt", "system_prompt", "systemInstruction"} and isinstance(
            value, str
        ):
            made["system_prompt"] = value
        elif key in {"functionToolCallbacks", "cost", "showThinking", "apiHost", "organization"}:
            draft.note("dropped", where, f"config.{key}", "not a setting of targets")
        else:
            body[key] = _loaded(draft, place.source, value)
    if body:
        draft.note(
            "kept", place, "provider config", f"sent as it is, in extra_body: {', '.join(body)}"
        )
        made["extra_body"] = body
    return made


def _references(text: str) -> str:
    """Return a setting with our references to environment variables."""
    return _ENV.sub(lambda match: f"${{{{ {match[1] or match[2]} }}}}", text)


def _endpoint(config: JsonObject) -> str:
    """Take the host of Azure's API, and return its address; a reference is an address."""
    host = _references(str(config.pop("apiHost", None) or "${{ AZURE_OPENAI_ENDPOINT }}"))
    if "://" in host or host.startswith("${{"):
        return host
    return f"https://{host}"


def _loaded(draft: Draft, source: Source, value: JsonValue) -> JsonValue:
    if isinstance(value, str) and value.startswith("file://"):
        found = draft.reads.document(resolved(source, value.removeprefix("file://")))
        if found:
            return found.data
        return value
    return value


def _program(
    draft: Draft, place: Place, identity: str, config: JsonObject, source: Source
) -> dict[str, Node] | None:
    path = identity.removeprefix("file://").removeprefix("python:").removeprefix("file://")
    file, _, function = path.partition(":")
    if not file.endswith(".py"):
        file, function = path, ""
    if file.endswith((".yaml", ".yml", ".json")):
        found = draft.reads.document(resolved(source, file))
        if not found:
            return None
        identity, settings = _parts(found.data)
        return _target(
            draft, Place(found), identity, cast("JsonObject", settings.get("config") or {})
        )
    if not file.endswith((".js", ".mjs", ".cjs", ".py")):
        return None
    runner, script = "node", "promptfoo_provider.mjs"
    if file.endswith(".py"):
        runner, script = "python3", "promptfoo_provider.py"
    named = draft.reference(resolved(source, file))
    if function:
        named += f":{function}"
    command = [runner, draft.script(script), named]
    after = f" {shlex.quote(json.dumps(config))}" if config else ""
    draft.note(
        "approximated",
        place,
        identity,
        "called with the prompt and its config, without the variables of the test",
    )
    return {"provider": "cli", "command_template": f"{shlex.join(command)} {{PROMPT_FILE}}{after}"}
