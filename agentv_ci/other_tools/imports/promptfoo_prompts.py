"""Prompts of promptfoo: texts, conversations in JSON, and files of them."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

from agentv_ci.base.json_access import json_or_none, objects_at
from agentv_ci.contracts.base import JsonValue
from agentv_ci.contracts.evals import ROLES
from agentv_ci.other_tools.imports.draft import Draft, Place, items_of, slug
from agentv_ci.other_tools.imports.promptfoo_asserts import resolved
from agentv_ci.other_tools.imports.promptfoo_templates import is_simple, partly_rendered
from agentv_ci.other_tools.imports.yaml_text import Node

FUNCTIONS = (".py", ".js", ".ts", ".mjs", ".cjs")
"""Suffixes of programs."""


@dataclass(frozen=True, slots=True)
class Prompt:
    """A prompt: a text or messages, with variables."""

    name: str
    messages: Node
    is_program: bool = False

    @property
    def is_shared(self) -> bool:
        """Whether it has only variables, and so can be that of several cases."""
        return is_simple(json.dumps(self.messages, ensure_ascii=False))


def prompts_at(draft: Draft, place: Place | None) -> list[Prompt]:
    """Return the prompts of a config."""
    found: list[Prompt] = []
    if place is not None and isinstance(place.value, dict):
        for key in place.value:  # an older form: file or text → label
            found += _prompt(draft, place / key, key)
    else:
        for item in items_of(place):
            value = item.value
            if isinstance(value, dict):
                for key in value.keys() - {"id", "label", "raw"}:
                    draft.note(
                        "dropped", item, f"prompts.{key}", "prompts have no settings of their own"
                    )
                found += _prompt(
                    draft, item, str(value.get("raw") or value.get("id") or value.get("file") or "")
                )
            else:
                found += _prompt(draft, item, str(value))
    return found


def _prompt(draft: Draft, place: Place, text: str) -> list[Prompt]:
    is_file = text.startswith("file://") or (
        "\n" not in text
        and re.fullmatch(r"[\w./*-]+\.(txt|json|ya?ml|md|j2|csv|py|js|mjs|ts)(:\w+)?", text)
        is not None
    )
    if not is_file:
        return [Prompt("prompt", messages_in(text))]
    path = text.removeprefix("file://")
    files = draft.reads.matching(resolved(place.source, path))
    if not files or any(file.suffix in FUNCTIONS for file in files):
        why = "a program makes the prompt"
        if not files:
            why = "the file was not found"
        if re.search(r"\.(py|js|mjs|ts|cjs)(:\w+)?$", path):
            why = "a program makes the prompt"
        draft.note("dropped", place, f"prompt {text}", f"{why}; its cases are skipped")
        return [Prompt(slug(path, "prompt"), f"({text})", is_program=True)]
    found = []
    for file in files:
        content = draft.reads.text(file) or ""
        if file.suffix == ".txt":
            parts = re.split(r"^---\s*$", content, flags=re.MULTILINE)
        else:
            parts = [content]
        messages = [messages_in(part.strip()) for part in parts if part.strip()]
        if file.suffix in {".yaml", ".yml"} and (source := draft.reads.document(file)) is not None:
            messages = [messages_in(json.dumps(source.data, ensure_ascii=False))]
        found += [Prompt(slug(file.stem, "prompt"), message) for message in messages]
    if any("_conversation" in (draft.reads.text(file) or "") for file in files):
        draft.note(
            "approximated",
            place,
            "_conversation",
            "each test is asked on its own, without earlier ones",
        )
    draft.note(
        "kept",
        place,
        "prompts: file://",
        "variables work only in the eval file, so the text is there",
    )
    return found


def messages_in(text: str) -> Node:
    """Return the messages of a prompt that is a conversation in JSON; any other text as it is."""
    if not text.lstrip().startswith("["):
        return text
    data = json_or_none(text) if is_simple(text) else json_or_none(partly_rendered(text) or "")
    messages = objects_at(data)
    if not messages or not all(
        message.get("role") in {*ROLES, "developer"} and "content" in message
        for message in messages
    ):
        return text
    return [
        {
            "role": "system" if message["role"] == "developer" else message["role"],
            "content": _content(message["content"]),
        }
        for message in messages
    ]


def _content(content: JsonValue) -> Node:
    if isinstance(content, str):
        return content
    texts = [
        str(item.get("text", ""))
        for item in objects_at(content)
        if item.get("type", "text") == "text"
    ]
    return "\n".join(texts) or json.dumps(content, ensure_ascii=False)
