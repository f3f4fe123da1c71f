"""Plugins: whether they are installed, and their settings."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from agentv_ci.base.installed_plugins import (
    Plugin,
    UnusablePlugin,
    find_plugin,
    known_settings,
    refused_settings,
)
from agentv_ci.base.json_access import value_at
from agentv_ci.base.text import listed
from agentv_ci.contracts.base import JsonObject, JsonValue
from agentv_ci.contracts.diagnostics import Diagnostic
from agentv_ci.contracts.evaluators import PluginEvaluator
from agentv_ci.contracts.source import Pointer
from agentv_ci.contracts.targets import PluginTarget
from agentv_ci.validate.findings import Finder

RULES = {"unknown": "AV202", "missing": "AV201", "literal": "AV313", "broken": "AV351"}
"""Kind of a refusal → its rule; of all others, AV204."""


def check_evaluator(
    pointer: Pointer, evaluator: PluginEvaluator, find: Finder
) -> Iterator[Diagnostic]:
    """AV351 for an evaluator that cannot be used.

    Else AV201, AV202, AV204, AV313 and AV314 for its settings.
    """
    found = find_plugin("evaluator", evaluator.type, evaluator.version)
    hint = "read it from the environment in the plugin: eval files have no environment references"
    yield from _check(found, (*pointer, "type"), evaluator.settings, hint, find)


def check_target(pointer: Pointer, target: PluginTarget, find: Finder) -> Iterator[Diagnostic]:
    """AV351 for a provider that cannot be used.

    Else AV201, AV202, AV204, AV313 and AV314 for its settings.
    """
    found = find_plugin("provider", target.provider, target.version)
    hint = "put it in an environment variable and write ${{ NAME }}"
    yield from _check(found, (*pointer, "provider"), target.settings, hint, find)


def _check(
    found: Plugin | UnusablePlugin, kind: Pointer, settings: JsonObject, hint: str, find: Finder
) -> Iterator[Diagnostic]:
    if isinstance(found, UnusablePlugin):
        yield find.at("AV351", found.message, kind, hint=found.hint)
        return
    owner = value_at(find.source.data, *find.authored(kind[:-1]))
    yield from _given_twice(owner, known_settings(found), kind[:-1], find)
    for place, message, refused in refused_settings(found, settings):
        rule = RULES.get(refused, "AV204")
        if not place:
            yield find.at(
                rule,
                message if refused == "broken" else f"{found.label} refuses it: {message}",
                kind,
            )
            continue
        is_beside = isinstance(owner, dict) and place[0] in owner
        is_nowhere = refused == "missing" and len(place) == 1
        pointer = (*kind[:-1], *(() if is_beside or is_nowhere else ("settings",)), *place)
        name = ".".join(map(str, place))
        match refused:
            case "unknown":
                known = f"known fields: {listed(known_settings(found))}"
                shown = None if "did you mean" in message else known
                yield find.at(rule, message, pointer, key=True, hint=shown)
            case "missing":
                yield find.at(rule, f"missing field '{name}' of {found.label}", pointer)
            case "literal":
                yield find.at(rule, message, pointer, hint=hint)
            case _:
                reason = f"'{name}' is not accepted by {found.label}: {message}"
                yield find.at(rule, reason, pointer)


def _given_twice(
    owner: JsonValue, known: Sequence[str], pointer: Pointer, find: Finder
) -> Iterator[Diagnostic]:
    settings = value_at(owner, "settings")
    if isinstance(owner, dict) and isinstance(settings, dict):
        for key in known:
            if key in settings and key in owner:
                message = f"'{key}' is also given outside of 'settings', where it wins"
                yield find.at("AV314", message, (*pointer, "settings", key), key=True)
