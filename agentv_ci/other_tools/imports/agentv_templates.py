"""Templates of AgentV 5: prompts, and the variables that a case gives them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import product
from pathlib import Path

from msgspec.structs import replace

from agentv_ci.base.json_access import found_at, json_or_none
from agentv_ci.contracts.base import JsonObject, JsonValue
from agentv_ci.contracts.source import Source
from agentv_ci.other_tools.imports.draft import Draft, Place, items_of, slug

_NAMESPACE = re.compile(
    r"\{\{\s*(vars|env)\.([\w.]+)\s*(\|\s*default\(\s*(['\"])(.*?)\4\s*\)\s*)?\}\}"
)
_VARIABLE = re.compile(r"(?<!\$)\{\{\s*([A-Za-z_]\w*(?:\.\w+)*)\s*\}\}")
_IN_FILES = ("file", "path")
_PROGRAMS = ("function", "function_file", "command")


@dataclass(frozen=True, slots=True)
class Prompt:
    """A template of the question of every case."""

    name: str
    place: Place | None
    """Its text or messages; None if a program makes it."""


def document(draft: Draft, path: Path) -> Source | None:
    """Return a file of AgentV with variables as ours; None if it cannot be read."""
    source = draft.reads.document(path)
    return source and with_our_variables(draft, source)


def with_our_variables(draft: Draft, source: Source) -> Source:
    """Return a file with `{{ a }}` for `{{ vars.a }}`, and `${{ A }}` for `{{ env.A }}`."""
    defaults: list[str] = []

    def ours(match: re.Match[str]) -> str:
        if match[1] == "vars":
            return f"{{{{ {match[2]} }}}}"
        if match[3]:
            defaults.append(match[2])
            return match[5]
        return f"${{{{ {match[2]} }}}}"

    def changed(value: JsonValue) -> JsonValue:
        match value:
            case str():
                return _NAMESPACE.sub(ours, value)
            case list():
                return list(map(changed, value))
            case dict():
                return {key: changed(item) for key, item in value.items()}
            case _:
                return value

    data = changed(source.data)
    for name in defaults:
        draft.note("approximated", Place(source), f"env.{name}", "its default is written")
    return source if data == source.data else replace(source, data=data)


def prompts_at(draft: Draft, place: Place | None) -> list[Prompt]:
    """Return the prompts of a file: texts, messages, and files of either."""
    items = items_of(place)
    if (
        place
        and items
        and all(isinstance(item.value, dict) and "role" in item.value for item in items)
    ):
        items = [place]
    return [_prompt(draft, item, number) for number, item in enumerate(items, 1)]


def _prompt(draft: Draft, place: Place, number: int) -> Prompt:
    value = place.value
    if not isinstance(value, dict) or "role" in value:
        return Prompt(f"prompt-{number}", _content(draft, place, place))
    fields = draft.fields(place, "prompts")
    name = slug(fields.text("id", "label") or f"prompt-{number}")
    found = fields.at("prompt", "messages", "raw", *_IN_FILES)
    if found and found.pointer[-1] in _IN_FILES:
        found = found.holding(f"file://{str(found.value).removeprefix('file://')}")
    fields.drop(_PROGRAMS, "a program makes the prompt; its cases are skipped")
    fields.end("prompts have no settings of their own")
    return Prompt(name, found and _content(draft, place, found))


def _content(draft: Draft, place: Place, written: Place) -> Place | None:
    """Return the text or messages of a prompt, which may be in a file."""
    value = written.value
    if not isinstance(value, str) or not value.startswith("file://"):
        return written
    text = draft.reads.text(place.source.resolve(value.removeprefix("file://")))
    if text is None:
        draft.note("dropped", place, "prompts", f"'{value}' was not found; its cases are skipped")
        return None
    messages = json_or_none(text) if text.lstrip().startswith("[") else None
    return place.holding(messages if isinstance(messages, list) else text)


@dataclass(frozen=True, slots=True)
class Question:
    """The template of the question of a case, and its variables."""

    prompt: Prompt | None
    variables: dict[str, Place]

    @property
    def whole(self) -> str | None:
        """The variable that is the whole question; None if there is more."""
        text = self.prompt.place.value if self.prompt and self.prompt.place else None
        match = _VARIABLE.fullmatch(text.strip()) if isinstance(text, str) else None
        if match is None or match[1] not in self.variables:
            return None
        value = self.variables[match[1]].value
        return match[1] if _each(value) == [value] else None

    @property
    def place(self) -> Place | None:
        """The text or messages; None if they cannot be read."""
        whole = self.whole
        if whole is not None:
            return self.variables[whole]
        return self.prompt.place if self.prompt else None


def has_more_than_variables(text: str) -> bool:
    """Whether a text has statements or expressions."""
    left = _VARIABLE.sub("", text.replace("${{", ""))
    return "{{" in left or "{%" in left


def rows_of(
    variables: Mapping[str, JsonValue], text: str, others: Iterable[str]
) -> list[JsonObject]:
    """Return the rows of the variables that a text has.

    A list of texts stands for each of them. A name without a value is empty, but for `others`.
    """
    names = {name.partition(".")[0] for name in _VARIABLE.findall(text)}
    missing = dict.fromkeys(sorted(names - variables.keys() - {*others}), "")
    kept = [name for name in variables if name in names]
    rows = product(*(_each(variables[name]) for name in kept))
    found = [{**dict(zip(kept, row, strict=True)), **missing} for row in rows]
    return [
        {name: _filled(value, {**variables, **row}) for name, value in row.items()} for row in found
    ]


def _each(value: JsonValue) -> list[JsonValue]:
    is_several = isinstance(value, list) and all(isinstance(item, str) for item in value[:1])
    return value if isinstance(value, list) and is_several else [value]


def _filled(value: JsonValue, row: Mapping[str, JsonValue]) -> JsonValue:
    """Return a value with the variables that it names."""

    def named(match: re.Match[str]) -> str:
        found = found_at(dict(row), *match[1].split("."))
        return str(found[0]) if found else ""

    return _VARIABLE.sub(named, value) if isinstance(value, str) else value
