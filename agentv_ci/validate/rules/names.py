"""Names that must be unique."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from agentv_ci.contracts.diagnostics import Diagnostic
from agentv_ci.contracts.source import Pointer, locate
from agentv_ci.validate.findings import Finder


def duplicates(find: Finder, what: str, named: Iterable[tuple[Pointer, str]]) -> Iterator[Diagnostic]:
    """AV301 for every name that was given before."""
    first: dict[str, Pointer] = {}
    for pointer, name in named:
        if name in first:
            line = locate(find.source.mark, find.authored(first[name])).start[0] + 1
            yield find.at("AV301", f"{what} '{name}' is given twice; first on line {line}", pointer)
        else:
            first[name] = pointer
