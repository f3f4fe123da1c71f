"""HTTP providers of promptfoo → targets that ask through a script."""

from __future__ import annotations

import json
import re

from agentv_ci.contracts.base import JsonObject, JsonValue
from agentv_ci.other_tools.imports.draft import Draft, Place, slug
from agentv_ci.other_tools.imports.promptfoo_asserts import transform
from agentv_ci.other_tools.imports.promptfoo_templates import is_simple, variables_of
from agentv_ci.other_tools.imports.yaml_text import Node

KEPT = frozenset({"url", "method", "headers", "queryParams", "body", "transformResponse"})
_OPTIONAL = re.compile(r"\{%-?\s*if \w+\s*-?%\}.*?\{%-?\s*endif\s*-?%\}", re.DOTALL)
"""A part of a request that depends on whether a variable is there."""


def is_http(identity: str, config: JsonObject) -> bool:
    """Whether a provider is a request to an address."""
    return identity.startswith(("http://", "https://")) or (
        identity.partition(":")[0] in {"http", "https"} and isinstance(config.get("url"), str)
    )


def questions_in(config: JsonValue) -> set[str]:
    """Return the variables of a request, besides those of the environment."""
    names = variables_of(_OPTIONAL.sub("", json.dumps(config, ensure_ascii=False)))
    return {name for name in names if not name.startswith("env.")}


def http_target(
    draft: Draft, place: Place, identity: str, config: JsonObject
) -> dict[str, Node] | None:
    """Return the target of a request; None if it needs more of a test than its prompt."""
    request: JsonObject = {"url": identity, **config}
    if "responseParser" in request:
        request["transformResponse"] = request.pop("responseParser")
    kept = {
        key: _without_optional(draft, place, value) for key, value in request.items() if key in KEPT
    }
    names = questions_in(kept)
    if len(names) > 1 or not is_simple(
        json.dumps({**kept, "transformResponse": None}, ensure_ascii=False)
    ):
        return None
    for key in request.keys() - KEPT:
        draft.note("dropped", place, f"config.{key}", "the script does not do this")
    for name in names - {"prompt"}:
        draft.note("approximated", place, f"{{{{{name}}}}} of a request", "the prompt")
    if isinstance(code := kept.get("transformResponse"), str) and code.startswith("file://"):
        kept["transformResponse"] = f"file://{transform(draft, code)['file']}"
    name = (
        draft.files.unique(f"providers/{slug(str(kept['url']).partition('://')[2], 'request')}")
        + ".json"
    )
    draft.texts[name] = json.dumps(kept, ensure_ascii=False, indent=1) + "\n"
    return {
        "provider": "cli",
        "command_template": f"node {draft.script('promptfoo_http.mjs')} {name} {{PROMPT_FILE}}",
    }


def _without_optional(draft: Draft, place: Place, value: JsonValue) -> JsonValue:
    if not isinstance(value, str) or not _OPTIONAL.search(value):
        return value
    draft.note(
        "approximated",
        place,
        "{% if %} in a request",
        "left out, as a request gets only the prompt",
    )
    return _OPTIONAL.sub("", value)
