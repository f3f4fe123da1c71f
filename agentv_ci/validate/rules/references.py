"""References to the environment in a targets document."""

from __future__ import annotations

import re
from collections.abc import Iterator

from agentv_ci.contracts.base import JsonValue
from agentv_ci.contracts.diagnostics import Diagnostic
from agentv_ci.contracts.environment_references import OPENING, variable_of
from agentv_ci.contracts.source import Pointer
from agentv_ci.validate.findings import Finder


def check(find: Finder) -> Iterator[Diagnostic]:
    """AV315 for `${{` that is not a whole `${{ NAME }}` value."""
    for pointer, text in _texts(find.source.data, ()):
        if OPENING not in text or variable_of(text) is not None:
            continue
        if whole := re.fullmatch(r"\s*\$\{\{\s*([^{}]*?)\s*\}\}\s*", text):
            message = f"'{whole[1]}' is no name of a variable; write ${{{{ NAME }}}}"
            yield find.at(
                "AV315",
                message,
                pointer,
                hint="NAME is a variable of the environment; 'env.' and 'secrets.' are GitHub's",
            )
        else:
            hint = "put the whole value into one environment variable and refer to that"
            yield find.at("AV315", "a reference must be the whole value, written ${{ NAME }}", pointer, hint=hint)


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
