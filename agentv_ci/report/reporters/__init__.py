"""The family of reporters: each turns results into one kind of text. Results are written and read in two forms."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Literal, assert_never

from agentv_ci.contracts.results import ResultRow

ResultsFormat = Literal["jsonl", "yaml"]


def form_of(path: Path) -> ResultsFormat:
    """Return the form of a results file, by its name."""
    return "yaml" if path.suffix in (".yaml", ".yml") else "jsonl"


def encode(row: ResultRow, form: ResultsFormat) -> str:
    """Return a row as it is appended to a results file."""
    match form:
        case "jsonl":
            from agentv_ci.report.reporters import jsonl

            return jsonl.encode(row)
        case "yaml":
            from agentv_ci.report.reporters import yaml

            return yaml.encode(row)
        case _:
            assert_never(form)


def read(path: Path, form: ResultsFormat) -> Iterator[ResultRow]:
    """Return the rows of a results file; raises ValueError with the place of what is no row."""
    match form:
        case "jsonl":
            from agentv_ci.report.reporters import jsonl

            return jsonl.read(path)
        case "yaml":
            from agentv_ci.report.reporters import yaml

            return yaml.read(path)
        case _:
            assert_never(form)
