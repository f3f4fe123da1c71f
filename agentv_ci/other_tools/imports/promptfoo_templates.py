"""Templates of promptfoo: which are only variables, and the others, which Nunjucks fills in."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from agentv_ci.base.json_access import found_at
from agentv_ci.contracts.base import JsonObject, JsonValue
from agentv_ci.contracts.other_tools import ReadImports

_EXPRESSION = re.compile(r"\{\{-?\s*(.*?)\s*-?\}\}", re.DOTALL)
_VARIABLE = re.compile(r"[A-Za-z_][\w.-]*")
_PLAIN = re.compile(r"\{\{\s*[A-Za-z_][\w.]*\s*\}\}")
_DUMPED = re.compile(r"\{\{-?\s*([A-Za-z_]\w*)\s*\|\s*dump\s*-?\}\}")
_NAMED = re.compile(r"\{\{\s*(\w+)\s*\}\}")
_BLOCK = re.compile(
    r"\{%-?\s*for\s+\w+\s+in\s+_conversation\s*-?%\}.*?\{%-?\s*endfor\s*-?%\}", re.DOTALL
)
"""A loop over earlier questions."""
_CUT_OFF = re.compile(r"\{%[^%]*$|\{\{[^}]*$|\{#[^#]*$", re.MULTILINE)
_TAG = re.compile(r"\{\{.*?\}\}|\{%.*?%\}", re.DOTALL)
_ENVIRONMENT = re.compile(r"\benv\s*(?:\.\s*(\w+)|\[\s*['\"]([^'\"]+)['\"]\s*\])?")
_USED = re.compile(
    r"\{\{\s*([^{}\s|]+)\s*(?:\|[^}]+)?\}\}|\{%\s*(?:if|for)\s+([^{}\s]+)\s*.*?%\}", re.DOTALL
)
_STRING = re.compile(r"[A-Za-z_]\w*")
OWN_NAMES = frozenset({"output", "rubric", "context", "env", "_conversation"})
"""Variables of promptfoo itself."""


class FileText(str):
    """The text of a file."""

    __slots__ = ()


class Unfilled(ValueError):
    """A template that cannot be filled in here; the message says why."""


def variables_of(text: str) -> set[str]:
    """Return the variables that stand alone in a template."""
    return set(filter(_VARIABLE.fullmatch, _EXPRESSION.findall(text)))


def has_tags(text: str) -> bool:
    """Whether a text may be a template."""
    return "{{" in text or "{%" in text or "{#" in text


def is_simple(text: str) -> bool:
    """Whether a template has only variables, and no statements or expressions."""
    return not has_tags(_PLAIN.sub("", text))


def filled(row: JsonObject) -> JsonObject:
    """Return a row in whose values other values of the row are filled in.

    This takes five rounds, as in promptfoo.

    A name without a value stays as it is, and so does what comes after it in its value.
    """
    made = {key: _without_newline(value) for key, value in row.items()}
    for _ in range(5):
        for key, value in made.items():
            match = None
            if isinstance(value, str):
                match = _NAMED.search(value)
            if match is not None and match[1] in made:
                made[key] = (
                    f"{match.string[: match.start()]}{shown(made[match[1]])}"
                    f"{match.string[match.end() :]}"
                )
    return made


def _without_newline(value: JsonValue) -> JsonValue:
    if isinstance(value, str) and value.endswith("\n"):
        return type(value)(value[:-1])
    return value


def shown(value: JsonValue) -> str:
    """Return a value in a text, as JavaScript shows it."""
    match value:
        case str():
            return value
        case None:
            return "null"
        case list():
            return ",".join("" if item is None else shown(item) for item in value)
        case dict():
            return "[object Object]"
        case float() if value.is_integer():
            return str(int(value))
        case _:
            return json.dumps(value)


def in_row(value: JsonValue) -> JsonValue:
    """Return a value that our variables show as promptfoo's do: nothing for null."""
    if value is None:
        return ""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value


def shows_alike(names: Iterable[str], row: JsonObject) -> bool:
    """Whether our variables of these names show the values of a row as Nunjucks does."""
    for name in names:
        found = found_at(row, *name.split("."))
        value = found[0] if found else ""
        if isinstance(value, (list, dict)) or ("." in name and value in (None, "")):
            return False
        if isinstance(value, float) and not value.is_integer():
            return False
    return not any(
        has_tags(value) and not _stays(value, row)
        for value in row.values()
        if isinstance(value, str)
    )


def _stays(text: str, row: JsonObject) -> bool:
    """Whether a value is text although it looks like a template: it names what is not there."""
    names = [match[1] or match[2] for match in _USED.finditer(text)]
    roots = [root[0] for name in names if (root := _STRING.match(name))]
    return any(root != "env" and row.get(root) is None for root in roots)


@dataclass(slots=True)
class Templates:
    """Fills in the templates of a config."""

    reads: ReadImports
    env: Mapping[str, str] = field(default_factory=dict)
    """The variables under `env`."""

    def value(self, value: JsonValue, row: JsonObject) -> JsonValue:
        """Return a text, or the texts in lists and mappings, with variables filled in.

        Raises Unfilled.
        """
        if isinstance(value, list):
            return [self.value(item, row) for item in value]
        if isinstance(value, dict):
            return {key: self.value(item, row) for key, item in value.items()}
        if isinstance(value, str) and not isinstance(value, FileText):
            return self._text(value, row)
        return value

    def prompt(self, text: str, row: JsonObject) -> str:
        """Return a prompt, in which values that are templates are filled in, too.

        Raises Unfilled.
        """
        shown = {
            key: self._value_in_prompt(value, row) if isinstance(value, str) else value
            for key, value in row.items()
        }
        return text if _CUT_OFF.search(text) else self._text(text, shown)

    def _value_in_prompt(self, text: str, row: JsonObject) -> str:
        if not has_tags(text) or _CUT_OFF.search(text) or _stays(text, row):
            return text
        return self._text(text, row)

    def _text(self, text: str, row: JsonObject) -> str:
        if not has_tags(text):
            return text
        names = variables_of(text) - OWN_NAMES
        if is_simple(text) and shows_alike(names, row) and not OWN_NAMES & variables_of(text):
            return _PLAIN.sub(lambda match: _simply(match[0], row), text)
        for tag in _TAG.findall(text):
            for match in _ENVIRONMENT.finditer(tag):
                if "env" not in row and (match[1] or match[2]) not in self.env:
                    raise Unfilled(f"'{tag}' reads the environment")
        made = self.reads.filled(text, row, self.env)
        if made is None:
            raise Unfilled(f"only Nunjucks, in Node, can fill in '{text[:60]}'")
        return made


def _simply(tag: str, row: JsonObject) -> str:
    """Return the value of a variable in a text."""
    found = found_at(row, *tag.strip("{} \t\n").split("."))
    if not found or found[0] is None:
        return ""
    return shown(found[0])


def partly_rendered(text: str) -> str | None:
    """Return a template in JSON with only variables: `{{ name | dump }}` is the text "{{ name }}".

    Loops over earlier questions leave nothing. None if the template has anything else.
    """
    made = _DUMPED.sub(lambda match: json.dumps(f"{{{{ {match[1]} }}}}"), _BLOCK.sub("", text))
    return made if is_simple(made) else None
