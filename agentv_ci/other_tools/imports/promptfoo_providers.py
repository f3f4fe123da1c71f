"""Providers of promptfoo → targets."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain
from typing import cast

from msgspec import structs

from agentv_ci.base.mappings import without
from agentv_ci.contracts.base import JsonObject, JsonValue
from agentv_ci.other_tools.imports.draft import STAND_IN, Draft, Place, items_of, slug
from agentv_ci.other_tools.imports.promptfoo_http import http_target, is_http, questions_in
from agentv_ci.other_tools.imports.yaml_text import Node

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
CHATS = frozenset({"chat", "responses", "messages", "deployment"})
"""Kinds of models that answer in a chat."""
NO_CHATS = frozenset(
    (
        *("agents", "assistant", "chatkit", "codex-app-server", "codex-desktop", "foundry-agent"),
        *("embedding", "embeddings", "image", "imagine", "live", "moderation", "realtime"),
        *("speech", "transcription", "tts", "video", "voice"),
    )
)
"""Kinds of models and agents that agentv-ci does not ask."""
AGENTS = {
    "anthropic:claude-agent-sdk": "claude-code",
    "anthropic:claude-code": "claude-code",
    "openai:codex-sdk": "codex",
    "openai:codex": "codex",
}
SETTINGS = {
    "temperature": "temperature",
    "max_tokens": "max_output_tokens",
    "max_completion_tokens": "max_output_tokens",
    "maxOutputTokens": "max_output_tokens",
    "max_output_tokens": "max_output_tokens",
    "num_predict": "max_output_tokens",
    "apiBaseUrl": "base_url",
    "headers": "headers",
}
IN_BODY: Mapping[str, tuple[str, ...]] = {
    "anthropic": (
        *("top_p", "top_k", "stop_sequences", "tools", "tool_choice", "thinking"),
        *("metadata", "service_tier", "output_format", "effort"),
    ),
    "gemini": ("safetySettings", "tools", "toolConfig", "cachedContent"),
    "ollama": ("top_p", "seed", "stop", "frequency_penalty", "presence_penalty", "tools"),
    "openai": (
        *("top_p", "frequency_penalty", "presence_penalty", "seed", "random_seed", "stop", "n"),
        *("tools", "tool_choice", "parallel_tool_calls", "functions", "function_call"),
        *("response_format", "reasoning_effort", "reasoning", "verbosity", "text", "include"),
        *("metadata", "store", "user", "service_tier", "logit_bias", "logprobs", "top_logprobs"),
        *("modalities", "audio", "prediction", "web_search_options", "safe_prompt", "top_k"),
        *("provider", "models", "transforms", "route", "extra_body", "repetition_penalty"),
    ),
}
"""Our provider → settings that are sent as they are; `openai` also for all others."""
IN_GENERATION = (
    *("topP", "topK", "stopSequences", "responseSchema", "responseMimeType", "seed"),
    *("candidateCount", "presencePenalty", "frequencyPenalty", "thinkingConfig"),
)
"""Settings of Gemini that are sent in its generationConfig."""
_ENV = re.compile(r"\{\{\s*env\.(\w+)\s*\}\}|\$\{(\w+)\}")


@dataclass(slots=True)
class Provider:
    """A provider, and what of it concerns tests."""

    name: str
    """The name of its target."""
    identity: str
    label: str = ""
    config: JsonObject = field(default_factory=dict)
    transform: JsonValue = None
    prompts: JsonValue = None
    """The prompts that it is asked; None for all."""
    is_program: bool = False
    is_parsed: bool = False
    """Whether promptfoo reads its answers as JSON."""

    def is_one_of(self, wanted: JsonValue) -> bool:
        """Whether a list of labels and ids, which may end with an asterisk, names it."""
        if not isinstance(wanted, list):
            return True
        names = (self.label, self.identity)
        return any(
            name == text or (text.endswith("*") and name.startswith(text[:-1]))
            for text in map(str, wanted)
            for name in names
        )


class Providers:
    """The providers of a config, and others that its tests name."""

    def __init__(self, draft: Draft, place: Place | None) -> None:
        """Add the targets of the providers at a place."""
        self._draft = draft
        self._known: dict[str, Provider] = {}
        self.listed = list(map(self.added, chain.from_iterable(_each(draft, place))))

    def named(self, value: JsonValue, place: Place) -> Provider:
        """Return the provider with this label or id; add the target of another one."""
        for provider in self.listed:
            if value in (provider.label, provider.identity):
                return provider
        return self.added(Place(structs.replace(place.source, data=value), place.pointer), value)

    def added(self, place: Place, value: JsonValue = None) -> Provider:
        """Return a provider, after adding its target unless the same one is known."""
        value = place.value if value is None else value
        key = json.dumps(value, sort_keys=True, default=str)
        if key not in self._known:
            self._known[key] = _added(self._draft, place, value)
        return self._known[key]


def _each(draft: Draft, place: Place | None) -> Iterator[list[Place]]:
    """Yield the places of providers; those in a file stand for it."""
    for item in items_of(place):
        value = item.value
        path = value.removeprefix("file://") if isinstance(value, str) else ""
        source = None
        if path.endswith((".yaml", ".yml", ".json")):
            source = draft.reads.document(draft.beside(path))
        yield [item] if source is None else Place(source).items


def _added(draft: Draft, place: Place, value: JsonValue) -> Provider:
    identity, settings = _parts(value)
    label = str(settings.pop("label", ""))
    config = cast("JsonObject", settings.pop("config", None) or {})
    name = draft.targets_named.unique(slug(label or identity, "target"))
    provider = Provider(name, identity, label, config)
    provider.transform, provider.prompts = (
        settings.pop("transform", None),
        settings.pop("prompts", None),
    )
    asks_http = is_http(identity, config)
    made = (http_target if asks_http else _target)(draft, place, identity, config)
    if made is not None and made["provider"] == "cli" and isinstance(settings.get("env"), dict):
        variables = cast("JsonObject", settings.pop("env"))
        made["env"] = {key: _references(str(value)) for key, value in variables.items()}
    for key in settings:
        draft.note("dropped", place, f"providers.{key}", "not a setting of targets")
    if made is None:
        why = "agentv-ci has no such provider"
        if asks_http:
            why = "its request needs more than the prompt"
        draft.stand_in(name, place, identity, why)
        made = dict(STAND_IN)
    else:
        draft.note("kept", place, f"provider {identity.partition(':')[0]}")
        draft.targets[name] = made
    provider.is_program = made["provider"] == "cli"
    form = config.get("response_format")
    kinds = (
        {"json_schema", "json_object"} if made["provider"] == "azure-openai" else {"json_schema"}
    )
    is_api = not provider.is_program and isinstance(form, dict)
    provider.is_parsed = is_api and cast("JsonObject", form).get("type") in kinds
    draft.target(name, place)
    return provider


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
    inner = dict(inner) if isinstance(inner, dict) else {}
    return str(inner.pop("id", key)), inner


def _target(
    draft: Draft, place: Place, identity: str, config: JsonObject
) -> dict[str, Node] | None:
    head, _, rest = identity.partition(":")
    if identity == "echo":
        return {"provider": "cli", "command_template": "printf %s {PROMPT}"}
    if head == "exec":
        _drop(draft, place, config)
        return {
            "provider": "cli",
            "command_template": f"{rest.strip()} {{PROMPT}}",
            "cwd": draft.reference(draft.base),
        }
    if head in {"file", "python"} or identity.endswith((".js", ".mjs", ".py", ".ts")):
        return _program(draft, place, identity, config)
    agent = next((key for key in AGENTS if f"{identity}:".startswith(f"{key}:")), None)
    if agent is not None:
        return _agent(draft, place, AGENTS[agent], identity[len(agent) + 1 :], config)
    return _model(draft, place, head, rest, config)


def _model(
    draft: Draft, place: Place, head: str, rest: str, config: JsonObject
) -> dict[str, Node] | None:
    """Return the target of a model that answers in a chat; None for any other one."""
    kind, _, name = rest.partition(":")
    is_claude = head == "vertex" and "claude" in rest
    if kind in NO_CHATS or is_claude or (kind == "completion" and head != "ollama"):
        return None
    model = name if kind in CHATS | {"completion"} else rest
    model = _references(model or str(config.get("model") or ""))
    if not model or not (head in WITH_URL or head in APIS):
        return None
    made: dict[str, Node] = {"provider": APIS.get(head, "openai"), "model": model}
    if head in WITH_URL:
        key = KEYS.get(head, f"{head.upper()}_API_KEY")
        made |= {"base_url": WITH_URL[head], "api_key": f"${{{{ {key} }}}}"}
    if head == "vertex":
        draft.note("approximated", place, "vertex", "asked through the Gemini API")
    if head == "ollama" and kind != "chat":
        draft.note("approximated", place, "ollama:completion", "asked as a chat")
    if made["provider"] == "azure-openai":
        endpoint = _endpoint(config)
        made = {"provider": "azure-openai", "deployment": model, "endpoint": endpoint}
    if kind == "responses":
        made["api_format"] = "responses"
    others = without(config, {"model"}) if model == config.get("model") else config
    return {**made, **_settings(draft, place, str(made["provider"]), others)}


def _agent(
    draft: Draft, place: Place, provider: str, model: str, config: JsonObject
) -> dict[str, Node]:
    """Return the target of an agent; how it may act is for the user to say."""
    made: dict[str, Node] = {"provider": provider}
    if named := model or config.get("model"):
        made["model"] = str(named)
    folder = config.get("working_dir")
    has_folder = isinstance(folder, str) and draft.beside(folder).is_dir()
    if has_folder:
        made["cwd"] = draft.reference(draft.beside(str(folder)))
    sandbox = config.get("sandbox_mode")
    if provider == "codex" and isinstance(sandbox, str):
        made["sandbox"] = sandbox
    taken = {"model"}
    taken |= {"working_dir"} if has_folder else set()
    taken |= {"sandbox_mode"} if "sandbox" in made else set()
    how = "asked through its command line, with its own settings"
    draft.note("approximated", place, provider, how)
    _drop(draft, place, without(config, taken), "name it in `args` of the target")
    return made


def _drop(
    draft: Draft, place: Place, config: JsonObject, why: str = "not a setting of targets"
) -> None:
    for key in config:
        draft.note("dropped", place / "config" / key, f"config.{key}", why)


def _settings(draft: Draft, place: Place, provider: str, config: JsonObject) -> dict[str, Node]:
    made: dict[str, Node] = {}
    body: dict[str, Node] = {}
    if isinstance(generation := config.get("generationConfig"), dict):
        config = {**without(config, {"generationConfig"}), **generation}
    in_body = IN_BODY.get(provider, IN_BODY["openai"])
    for key, value in config.items():
        if own := _setting(key, value):
            made |= own
        elif key in {"passthrough", "extra_body"} and isinstance(value, dict):
            body |= value
        elif provider == "gemini" and key in IN_GENERATION:
            inner = cast("dict[str, Node]", body.setdefault("generationConfig", {}))
            inner[key] = _loaded(draft, value)
        elif key in in_body:
            body[key] = _loaded(draft, value)
        else:
            why = "not a setting of targets"
            if key == "apiKey":
                why = "keys are references such as ${{ OPENAI_API_KEY }}, never themselves"
            draft.note("dropped", place / "config" / key, f"config.{key}", why)
    if body:
        how = f"sent as it is, in extra_body: {', '.join(body)}"
        draft.note("kept", place, "provider config", how)
        made["extra_body"] = body
    return made


def _setting(key: str, value: JsonValue) -> dict[str, Node]:
    """Return the setting of a target that a setting of a provider is; empty for any other one."""
    if key in SETTINGS:
        return {SETTINGS[key]: _references(value) if isinstance(value, str) else value}
    if not isinstance(value, str):
        return {}
    match key:
        case "apiKeyEnvar":
            return {"api_key": f"${{{{ {value} }}}}"}
        case "apiKey" if name := _ENV.search(value):
            return {"api_key": f"${{{{ {name[1] or name[2]} }}}}"}
        case "apiHost":
            return {"base_url": f"https://{_references(value)}/v1"}
        case "systemPrompt" | "system_prompt" | "systemInstruction":
            return {"system_prompt": value}
        case _:
            return {}


def _references(text: str) -> str:
    """Return a setting with our references to environment variables."""
    return _ENV.sub(lambda match: f"${{{{ {match[1] or match[2]} }}}}", text)


def _endpoint(config: JsonObject) -> str:
    """Take the host of Azure's API, and return its address; a reference is an address."""
    host = _references(str(config.pop("apiHost", None) or "${{ AZURE_OPENAI_ENDPOINT }}"))
    if "://" in host or host.startswith("${{"):
        return host
    return f"https://{host}"


def _loaded(draft: Draft, value: JsonValue) -> JsonValue:
    if isinstance(value, str) and value.startswith("file://"):
        found = draft.reads.document(draft.beside(value))
        if found:
            return found.data
        return value
    return value


def _program(
    draft: Draft, place: Place, identity: str, config: JsonObject
) -> dict[str, Node] | None:
    path = identity.removeprefix("file://").removeprefix("python:").removeprefix("file://")
    file, _, function = path.partition(":")
    if not file.endswith(".py"):
        file, function = path, ""
    if not file.endswith((".js", ".mjs", ".cjs", ".py")):
        return None
    runner, script = "node", "promptfoo_provider.mjs"
    if file.endswith(".py"):
        runner, script = "python3", "promptfoo_provider.py"
    named = draft.reference(draft.beside(file))
    if function:
        named += f":{function}"
    command = [runner, draft.script(script), named]
    after = ""
    if config:
        written = shlex.quote(json.dumps(config))
        after = " " + re.sub(r"\{([A-Z_]+)\}", r"{{\1}}", written)
    draft.note(
        "approximated",
        place,
        identity,
        "called with the prompt and its config, without the variables of the test",
    )
    return {"provider": "cli", "command_template": f"{shlex.join(command)} {{PROMPT_FILE}}{after}"}
