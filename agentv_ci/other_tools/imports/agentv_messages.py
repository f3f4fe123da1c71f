"""Messages of AgentV: inputs, files and expected outputs → messages."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import cast

from agentv_ci.base.json_access import json_or_none, objects_at
from agentv_ci.contracts.base import JsonObject, JsonValue
from agentv_ci.contracts.evals import ROLES
from agentv_ci.contracts.source import Source
from agentv_ci.other_tools.imports.agentv_checks import CaseContext
from agentv_ci.other_tools.imports.draft import Draft, Fields, Place
from agentv_ci.other_tools.imports.yaml_text import Node


class Messages:
    """Reads the messages of one file."""

    def __init__(self, draft: Draft, source: Source) -> None:
        """`source` is the eval file, from whose folder upwards AgentV looks for files."""
        self._draft = draft
        self._source = source

    def listed(self, place: Place | None) -> list[Node]:
        """Return the messages of an input: a text, content, or a list of messages."""
        if place is None or place.value in (None, "", []):
            return []
        if _are_messages(place.value):
            return list(map(self._message, place.items))
        return [{"role": "user", "content": self._content(place)}]

    def _message(self, place: Place) -> dict[str, Node]:
        fields = self._draft.fields(place, "input")
        made: dict[str, Node] = {"role": self._role(fields, "user")}
        if name := fields.text("name"):
            made["name"] = name
        content = fields.at("content")
        made["content"] = self._content(content) if content else ""
        fields.end()
        return made

    def _role(self, fields: Fields, otherwise: str) -> str:
        role = fields.text("role") or otherwise
        if role in ROLES:
            return role
        self._draft.note("approximated", fields.place, f"role: {role}", otherwise)
        return otherwise

    def _content(self, place: Place) -> Node:
        value = place.value
        if isinstance(value, str):
            return value
        if isinstance(value, list) and all(isinstance(item, (str, dict)) for item in value):
            return list(map(self._block, place.items))
        return json.dumps(value, ensure_ascii=False)

    def _block(self, place: Place) -> Node:
        value = place.value
        if not isinstance(value, dict):
            return str(value)
        kind = str(value.get("type")).removesuffix("_url")
        content = value.get("value") or value.get("path") or value.get("text")
        for key in value.keys() - {"type", "value", "path", "text"}:
            self._draft.note(
                "dropped", place / key, f"content.{key}", "blocks have no such setting"
            )
        if kind in {"file", "image", "document"} and isinstance(content, str):
            return self._file(place, content, kind)
        if kind not in {"text", "None"}:
            self._draft.note("approximated", place, f"content.type: {kind}", "its text")
        if isinstance(content, str):
            return str(content)
        return json.dumps(value, ensure_ascii=False)

    def files(self, place: Place | None) -> list[Node]:
        """Return the message with the files of a case."""
        if place is None:
            return []
        return [
            {
                "role": "user",
                "content": [self._file(item, str(item.value), "file") for item in place.items],
            }
        ]

    def _file(self, place: Place, path: str, kind: str) -> Node:
        if path.startswith("http"):
            return {"type": kind, "value": path}
        file = next(
            filter(self._draft.reads.matching, self._places(place, path)),
            None,
        )
        if file is None:
            self._draft.note(
                "dropped", place, "file", f"'{path}' was not found; its name is in the message"
            )
            return f"[{path}]"
        return {"type": kind, "value": self._draft.reference(file)}

    def _places(self, place: Place, path: str) -> Iterator[Path]:
        """Yield where AgentV looks for a file.

        These are the folders from that of the eval file up to the repository's.
        """
        yield place.source.resolve(path)
        for folder in self._source.path.parents:
            yield folder / path.lstrip("/")
            if folder == self._source.root:
                return

    def expected(self, place: Place | None, context: CaseContext) -> Node:
        """Return the expected messages; `context` gets what evaluators need of them."""
        if place is None or place.value in (None, "", [], {}):
            return []
        value = place.value
        if isinstance(value, str):
            context.reference = json_or_none(value)
            return value
        if _are_messages(value):
            return [self._expected_message(item, context) for item in place.items]
        context.reference = value
        return [_assistant(value)]

    def _expected_message(self, place: Place, context: CaseContext) -> Node:
        fields = self._draft.fields(place, "expected_output")
        role = self._role(fields, "assistant")
        made: dict[str, Node] = {"role": role}
        if name := fields.text("name"):
            made["name"] = name
        content, calls = fields.at("content"), fields.at("tool_calls")
        if content is not None:
            value = content.value
            context.reference = json_or_none(value) if isinstance(value, str) else value
            is_data = isinstance(value, dict) and role == "assistant"
            made["content"] = value if is_data else self._content(content)
        for item in objects_at(calls.value if calls else None):
            call: JsonObject = {
                ours: item[ours] for ours in ("tool", "input", "output") if ours in item
            }
            call.setdefault("tool", str(item.get("name") or "tool"))
            context.calls.append(call)
        if calls and context.calls and made["role"] == "assistant":
            made["tool_calls"] = cast("list[Node]", context.calls[-len(calls.items) :])
        if "content" not in made and "tool_calls" not in made:
            made["content"] = ""
        fields.end("not part of an expected message")
        return made


def _are_messages(value: JsonValue) -> bool:
    """Whether a value is a list of messages."""
    if not isinstance(value, list):
        return False
    return all(isinstance(item, dict) and "role" in item for item in value)


def _assistant(value: JsonValue) -> Node:
    content = value if isinstance(value, (dict, str)) else json.dumps(value, ensure_ascii=False)
    return {"role": "assistant", "content": content}
