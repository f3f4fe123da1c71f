"""Settings of built-in validators: a mistake in them is found before a run and not after it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from pydantic import ValidationError

from agentv_ci.contracts.base import JsonObject
from agentv_ci.contracts.source import Pointer
from agentv_ci.model_errors import Refusal, refusals
from agentv_ci.text import did_you_mean
from agentv_ci.validators.builtin import built_in


def setting_names(key: str) -> list[str] | None:
    """Return the settings that a built-in validator has; None for another, of which nothing is known."""
    validator = built_in(key)
    return None if validator is None else list(validator.Settings.model_fields)


def wrong_settings(key: str, context: JsonObject) -> Iterator[tuple[Pointer, str]]:
    """Yield what is wrong with the settings of a built-in validator, and where; of others nothing is known."""
    validator = built_in(key)
    if validator is None:
        return
    try:
        validator.Settings.model_validate(context)
    except ValidationError as error:
        for each in refusals(error):
            yield each.place, _sentence(key, list(validator.Settings.model_fields), each)


def unknown_settings(keys: Iterable[str], context: JsonObject) -> list[str]:
    """Return settings that none of several built-in validators has."""
    known = {name for key in keys for name in setting_names(key) or ()}
    return [name for name in context if name not in known]


def own_settings(key: str, context: JsonObject) -> JsonObject:
    """Return those of several validators' settings that one of them has; all of them for one that is not built in."""
    known = setting_names(key)
    return context if known is None else {name: context[name] for name in context if name in known}


def _sentence(key: str, known: list[str], refusal: Refusal) -> str:
    name = ".".join(map(str, refusal.place))
    match refusal.kind:
        case "missing":
            return f"validator '{key}' needs the setting '{name}'"
        case "extra_forbidden" if len(refusal.place) == 1:
            has = f"it has {', '.join(known)}" if known else "it has none"
            return f"validator '{key}' has no setting '{name}'{did_you_mean(name, known)}; {has}"
        case "model_type":
            return f"setting '{name}' of validator '{key}' is a mapping"
        case "sentence":
            return f"setting '{name}' of validator '{key}' {refusal.message}"
        case _:
            return f"setting '{name}' of validator '{key}': {refusal.message.removeprefix('Input ').lower()}"
