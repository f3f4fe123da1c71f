"""What the vendors have in common: answers and errors before they get one vendor's format."""

from __future__ import annotations

import json
import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from jsonschema import Draft202012Validator

from tests.servers.http import Asked, Reply

Json = dict[str, Any]

ANSWER = "MOCK-ANSWER 42"
REQUEST_ID = "req_mock"
CREATED = 1_900_000_000

NAMED: Json = {"type": "string", "minLength": 1}
"""The schema of a model's name."""
NOTHING: Json = {"not": {}}
"""The schema of what must not be there."""
BASE64 = "[A-Za-z0-9+/]+={0,2}$"


def pattern(regex: str) -> Json:
    """Return the schema of a text."""
    return {"type": "string", "pattern": regex}


def exactly(**properties: Json) -> Json:
    """Return the schema of an object with these keys and no others."""
    return {"type": "object", "required": [*properties], "properties": properties, "additionalProperties": False}


def by_type(schemas: Mapping[str, Json]) -> Json:
    """Return the schema of a part: those of some types; others are free."""
    return {
        "allOf": [
            {"if": {"required": ["type"], "properties": {"type": {"const": kind}}}, "then": schema}
            for kind, schema in schemas.items()
        ]
    }


def only_for_user(key: str, kinds: Sequence[str]) -> Json:
    """Return the schema of a message in which only the user may send these types of parts."""
    free = {"type": "array", "items": {"properties": {"type": {"not": {"enum": [*kinds]}}}}}
    then = {"properties": {key: {"if": {"type": "array"}, "then": free}}}
    return {"if": {"properties": {"role": {"const": "user"}}}, "else": then}


SHELLS: Mapping[str, str] = {
    "exec_command": "cmd",
    "shell": "command",
    "shell_command": "command",
    "Bash": "command",
    "bash": "command",
    "run_shell_command": "command",
}
"""Shell tools of agents, with the argument that takes the command."""


@dataclass(frozen=True, slots=True)
class Usage:
    """The tokens that every answer reports, each vendor in its own figures."""

    input: int = 100
    """All of the input, whether cached or not."""
    cached: int = 20
    cache_written: int = 5
    """Only reported by Anthropic."""
    output: int = 10
    """With the reasoning."""
    reasoning: int = 4

    @property
    def total(self) -> int:
        return self.input + self.output


USAGE = Usage()


@dataclass(frozen=True, slots=True)
class Answer:
    """What the model says."""

    text: str = ANSWER
    thought: str = ""
    command: str | None = None
    """A shell command that the agent is asked to run, when it declares a tool."""
    stop: Literal["end", "length", "refusal", "filter"] = "end"


@dataclass(frozen=True, slots=True)
class Trouble:
    """An error."""

    status: int
    message: str
    kind: str | None = None
    """OpenAI's `type`, Anthropic's `type`, Gemini's `status`; None for what belongs to the HTTP status."""
    code: str | None = None
    """OpenAI's `code`, Anthropic's `details.error_code`, the `reason` in Gemini's ErrorInfo."""
    param: str | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)
    """Further keys of the error object."""
    retry_after_s: float | None = None


class Mistake(Exception):
    """A request that the vendor refuses."""

    def __init__(self, message: str, *, status: int = 400, **trouble: Any) -> None:
        super().__init__(message)
        self.trouble = Trouble(status, message, **trouble)


class Dialect(ABC):
    """One wire protocol."""

    @abstractmethod
    def schema(self) -> Json:
        """Return the JSON Schema of a question's body."""

    @abstractmethod
    def check_key(self, asked: Asked, key: str) -> None:
        """Raise a Mistake unless the request carries the key."""

    def check(self, asked: Asked) -> None:
        """Raise a Mistake when the vendor would refuse the request."""
        if not asked.headers.get("content-type", "").startswith("application/json"):
            raise Mistake("Unsupported content type. Please use 'application/json'.")
        for error in Draft202012Validator(self.schema()).iter_errors(asked.body):
            raise Mistake(f"{error.json_path}: {error.message}")

    @abstractmethod
    def answer(self, asked: Asked, answer: Answer) -> Reply:
        """Answer in the form asked for: plain or streamed."""

    @abstractmethod
    def error(self, trouble: Trouble) -> Reply:
        """The vendor's error body and headers."""

    @abstractmethod
    def unsupported(self, asked: Asked, parameter: str) -> Trouble | None:
        """How the vendor refuses a parameter; None when the request does not carry it."""

    @abstractmethod
    def filtered_prompt(self, asked: Asked) -> Reply:
        """How the vendor refuses a prompt for its content."""

    @abstractmethod
    def lacks_quota(self) -> Reply:
        """What the vendor says when nothing is left to spend."""

    @abstractmethod
    def failed_inside(self, asked: Asked) -> Reply:
        """An error behind the HTTP status 200."""


def served_model(asked: str) -> str:
    """The model that answers: vendors resolve aliases, so that it is not the one asked for."""
    return f"{asked}-2030-01-02"


def tool_call(declared: Mapping[str, Any], command: str | None, *, is_done: bool) -> tuple[str, Json] | None:
    """Choose a tool and its arguments: the agent's shell if there is one, otherwise the first.

    Args:
        declared: name → JSON Schema of the arguments.
        command: what to run; None for nothing.
        is_done: whether the request has the tool's result already.
    """
    if command is None or is_done:
        return None
    name = next((shell for shell in SHELLS if shell in declared), None)
    if name is None:
        first = next(iter(declared), None)
        return None if first is None else (first, _arguments(declared[first], command))
    schema = declared[name] or {}
    properties = schema.get("properties") or {}
    argument = SHELLS[name]
    # Codex's older `shell` takes the command as a list.
    listed = (properties.get(argument) or {}).get("type") == "array"
    arguments: Json = {argument: ["bash", "-lc", command] if listed else command}
    if "description" in properties:
        arguments["description"] = "run a command"
    return name, arguments


def _arguments(schema: Mapping[str, Any] | None, command: str) -> Json:
    required: Sequence[str] = (schema or {}).get("required") or ["command"]
    return dict.fromkeys(required, command)


def streams(events: Iterable[str], headers: Mapping[str, str] | None = None) -> Reply:
    """Server-sent events."""
    named = {"content-type": "text/event-stream; charset=utf-8", **(headers or {})}
    return Reply(200, "".join(events).encode(), named, streamed=True)


def event(data: object, name: str | None = None, *, end: str = "\n") -> str:
    """One server-sent event; characters beyond ASCII are not escaped, so that packets may split them."""
    named = f"event: {name}{end}" if name else ""
    return f"{named}data: {json.dumps(data, ensure_ascii=False)}{end}{end}"


def pieces(text: str) -> Sequence[str]:
    """The text as a model would stream it: word by word."""
    return re.findall(r"\s*\S+\s*?(?=\s|$)|\s+$", text)
