"""Files with the results of other tools → their results."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import assert_never

from agentv_ci.adopt import inspect_logs, junit, lines, openai_evals, promptfoo, pydantic_evals
from agentv_ci.contracts.adopted import AdoptedResult, AdoptKind
from agentv_ci.contracts.base import JsonObject
from agentv_ci.json_access import read_json


def results_in(path: Path, kind: AdoptKind, *, columns: Mapping[str, str], threshold: float) -> Iterator[AdoptedResult]:
    """Return the results in a file; raises OSError and ValueError for a file that has none of this kind."""
    match kind:
        case "promptfoo":
            return promptfoo.results(read_json(path.read_text("utf-8")))
        case "inspect":
            return inspect_logs.results(inspect_logs.log_of(path), threshold)
        case "junit":
            return junit.results(path)
        case "openai-evals":
            return openai_evals.results(_lines(path), threshold)
        case "pydantic-evals":
            return pydantic_evals.results(read_json(path.read_text("utf-8")), threshold)
        case "jsonl":
            return lines.results(_lines(path), columns, threshold)
        case _:
            assert_never(kind)


def _lines(path: Path) -> list[JsonObject]:
    found = []
    for number, line in enumerate(path.read_text("utf-8").split("\n"), 1):
        if line.strip():
            try:
                value = read_json(line)
            except ValueError as error:
                raise ValueError(f"line {number} is not JSON: {error}") from error
            if not isinstance(value, dict):
                raise ValueError(f"line {number} is not a JSON object")
            found.append(value)
    return found
