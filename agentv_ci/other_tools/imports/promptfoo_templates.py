"""Templates of promptfoo: which are only variables, and the others filled in. A door to jinja2."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import TYPE_CHECKING

from agentv_ci.contracts.base import JsonObject, JsonValue

if TYPE_CHECKING:
    from jinja2.nodes import Template

_EXPRESSION = re.compile(r"\{\{-?\s*(.*?)\s*-?\}\}", re.DOTALL)
_VARIABLE = re.compile(r"[A-Za-z_][\w.-]*")
_DUMPED = re.compile(r"\{\{-?\s*([A-Za-z_]\w*)(?:\s*\|\s*dump)?\s*-?\}\}")
_NAMED = re.compile(r"\{\{\s*(\w+)\s*\}\}")
_STATEMENT = re.compile(r"\{%.*?%\}", re.DOTALL)
_BLOCK = re.compile(r"\{%-?\s*for .*?\{%-?\s*endfor\s*-?%\}", re.DOTALL)

FILTERS = (
    *(
        "abs",
        "capitalize",
        "count",
        "d",
        "default",
        "e",
        "escape",
        "first",
        "float",
        "int",
        "join",
        "last",
        "length",
        "list",
    ),
    *(
        "lower",
        "reverse",
        "round",
        "safe",
        "sort",
        "string",
        "title",
        "tojson",
        "trim",
        "unique",
        "upper",
        "wordcount",
    ),
)
"""Filters whose result is about as long as what they are given."""
MOST_ASSIGNED = 10
"""Assignments of a template: each may double a text."""
MOST_BETWEEN = 50
"""Characters between the texts that are joined."""
MOST_STEPS = 5_000_000
MOST_CHARACTERS = 1_000_000


def variables_of(text: str) -> set[str]:
    """Return the variables that stand alone in a template."""
    return {match for match in _EXPRESSION.findall(text) if _VARIABLE.fullmatch(match)}


def is_simple(text: str) -> bool:
    """Whether a template has only variables, and no statements or expressions."""
    return (
        "{%" not in text
        and "{#" not in text
        and all(map(_VARIABLE.fullmatch, _EXPRESSION.findall(text)))
    )


class FileText(str):
    """The text of a file."""

    __slots__ = ()


def filled(row: JsonObject) -> JsonObject:
    """Return a row in whose values other values of the row are filled in.

    This takes five rounds, as in promptfoo.

    A name without a value stays as it is, and so does what comes after it in its value.
    """
    made = dict(row)
    for _ in range(5):
        for key, value in made.items():
            match = _NAMED.search(value) if isinstance(value, str) else None
            if match is not None and match[1] in made:
                made[key] = (
                    f"{match.string[: match.start()]}{made[match[1]]}{match.string[match.end() :]}"
                )
    return made


def rendered(value: JsonValue, row: JsonObject) -> JsonValue:
    """Return a text, or messages, with its template filled in.

    One that jinja2 cannot read stays as it is.
    """
    if isinstance(value, list):
        return [rendered(item, row) for item in value]
    if isinstance(value, dict):
        return {key: rendered(item, row) for key, item in value.items()}
    if not isinstance(value, str):
        return value
    from jinja2 import ChainableUndefined, TemplateError
    from jinja2.sandbox import SandboxedEnvironment

    templates = SandboxedEnvironment(autoescape=False, undefined=ChainableUndefined)  # no markup
    templates.globals.clear()
    templates.filters = {name: templates.filters[name] for name in FILTERS} | {"dump": _dump}
    try:
        if not _ends_soon(templates.parse(value), len(json.dumps(row))):
            return value
        texts = list(_bounded(templates.from_string(value).generate(row)))
    except (TemplateError, TypeError, ValueError, ArithmeticError, RecursionError):
        return value
    return "".join(texts)


def _ends_soon(template: Template, size: int) -> bool:
    """Whether a template cannot take long, or make much, of values of this size.

    Such a template has no calls and no powers.
    """
    from jinja2 import nodes

    if next(
        template.find_all(
            (nodes.Call, nodes.Mul, nodes.Pow, nodes.Mod, nodes.Macro, nodes.CallBlock)
        ),
        None,
    ):
        return False
    loops = list(template.find_all(nodes.For))
    is_nested = any(
        next(child.find_all(nodes.For), None)
        for child in chain.from_iterable(loop.body for loop in loops)
    )
    if is_nested or len(list(template.find_all((nodes.Assign, nodes.AssignBlock)))) > MOST_ASSIGNED:
        return False
    joins = [node for node in template.find_all(nodes.Filter) if node.name == "join"]
    if len(joins) > 1 or not all(
        isinstance(argument, nodes.Const)
        for argument in chain.from_iterable(join.args for join in joins)
    ):
        return False
    if any(
        len(str(node.value)) > MOST_BETWEEN
        for node in chain.from_iterable(join.find_all(nodes.Const) for join in joins)
    ):
        return False
    return (len(loops) + len(list(template.find_all(nodes.Name)))) * size <= MOST_STEPS


def _bounded(texts: Iterable[str]) -> Iterator[str]:
    """Yield the parts of a text; raises ValueError for a long one."""
    left = MOST_CHARACTERS
    for text in texts:
        left -= len(text)
        if left < 0:
            raise ValueError("the text is too long")
        yield text


def partly_rendered(text: str) -> str | None:
    """Return a template in JSON with only variables: `{{ name | dump }}` is the text "{{ name }}".

    Statements are carried out as without variables, so that a loop over earlier questions leaves
    nothing. None if the template has other expressions, or if its statements need variables.
    """
    names = {match[1]: f"{{{{ {match[1]} }}}}" for match in _DUMPED.finditer(_BLOCK.sub("", text))}
    words = set(
        chain.from_iterable(re.findall(r"\w+", statement) for statement in _STATEMENT.findall(text))
    )
    if words & names.keys() or not is_simple(
        _STATEMENT.sub("", _DUMPED.sub("", _BLOCK.sub("", text)))
    ):
        return None
    made = rendered(text, dict(names))
    if isinstance(made, str):
        return made
    return None


def _dump(value: object, indent: int | None = None) -> str:
    """Return a value as JSON, as the filter of Nunjucks does.

    Nothing for a variable that is not there.
    """
    from jinja2 import Undefined

    separators = (",", ":") if indent is None else None
    is_there = not isinstance(value, Undefined)
    if is_there:
        return json.dumps(value, ensure_ascii=False, indent=indent, separators=separators)
    return ""
