"""Texts anywhere in a document: environment references and typographic quotes."""

from __future__ import annotations

import re
from collections.abc import Iterator

from agentv_ci.base.case_rows import VARIABLE, is_template
from agentv_ci.base.json_access import text_at, value_at
from agentv_ci.contracts.base import JsonValue
from agentv_ci.contracts.diagnostics import Diagnostic
from agentv_ci.contracts.environment_references import (
    OPENING,
    REFERENCE_LIKE,
    variable_of,
    variables_in,
)
from agentv_ci.contracts.source import Pointer, locate
from agentv_ci.validate.findings import Finder

_QUOTED = re.compile(
    "[\u201c\u201d\u201e][^\u201c\u201d\u201e]*[\u201c\u201d\u201e]|[\u2018\u201a][^\u2018\u201a]*\u2019"
)


def check(find: Finder) -> Iterator[Diagnostic]:
    """AV315, AV326 and AV327 for all texts of a document."""
    source = find.source
    has_braces = "{{" in source.text
    if has_braces and source.kind == "eval":
        yield from _check_ids(find)
    may_be_quoted = not source.text.isascii() and _QUOTED.search(source.text) is not None
    may_refer = has_braces and OPENING in source.text
    if not may_be_quoted and not may_refer:
        return
    for pointer, text in _texts(source.data, ()):
        if may_be_quoted and _QUOTED.fullmatch(text) and _is_plain(find, pointer, text):
            message = "the value is in typographic quotes, which are part of it"
            yield find.at("AV326", message, pointer, hint="use straight quotes: ' or \"")
        if may_refer and OPENING in text:
            yield from _check_reference(pointer, text, find)


def _check_ids(find: Finder) -> Iterator[Diagnostic]:
    cases = value_at(find.source.data, "evalcases")
    for index, case in enumerate(cases if isinstance(cases, list) else ()):
        if not is_template(case) and (found := VARIABLE.search(text_at(case, "id") or "")):
            message = f"{found[0]} stays literal in the id of a case without rows"
            hint = "'cases_from' or 'vars' make a case of each row"
            yield find.at("AV327", message, ("evalcases", index, "id"), hint=hint)


def _is_plain(find: Finder, pointer: Pointer, text: str) -> bool:
    """Whether a text has no quotes of YAML around it."""
    start, end, _ = locate(find.source.mark, pointer)
    return end == (start[0], start[1] + len(text))


def _check_reference(pointer: Pointer, text: str, find: Finder) -> Iterator[Diagnostic]:
    if find.source.kind == "eval":
        if is_template(value_at(find.source.data, *pointer[:2])):
            return  # {{ name }} is a variable of rows
        # In a prompt it may be a variable of the prompt.
        if pointer[-1] not in ("prompt", "llm_judge") and (names := variables_in(text)):
            hint = "environment references are only replaced in targets files"
            message = f"${{{{ {names[0]} }}}} stays literal in an eval file"
            yield find.at("AV327", message, pointer, hint=hint)
    elif find.source.kind != "targets" or variable_of(text) is not None:
        return
    elif whole := REFERENCE_LIKE.fullmatch(text.strip()):
        message = f"'{whole[1]}' is not a variable name; write ${{{{ NAME }}}}"
        hint = "NAME is an environment variable; 'env.' and 'secrets.' are GitHub syntax"
        yield find.at("AV315", message, pointer, hint=hint)
    else:
        message = "an environment reference must be the whole value: ${{ NAME }}"
        hint = "put the whole value in one environment variable"
        yield find.at("AV315", message, pointer, hint=hint)


def _texts(value: JsonValue, pointer: Pointer) -> Iterator[tuple[Pointer, str]]:
    if isinstance(value, str):
        yield pointer, value
    elif isinstance(value, dict):
        for key, item in value.items():
            if not key.startswith("x-"):
                yield from _texts(item, (*pointer, key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _texts(item, (*pointer, index))
