"""Data sets of Inspect, DeepEval and OpenAI Evals → one template and their rows."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain
from pathlib import Path
from typing import Literal, cast

from agentv_ci.base.json_access import json_or_none
from agentv_ci.contracts.base import JsonObject, JsonValue
from agentv_ci.contracts.source import EVAL_SCHEMA, Source
from agentv_ci.other_tools.imports.draft import Draft, Names, Place, slug
from agentv_ci.other_tools.imports.yaml_text import Block, Node, yaml_text

DataSet = Literal["inspect", "deepeval", "openai-evals"]
COLUMNS: Mapping[DataSet, Mapping[str, str]] = {
    "inspect": {"input": "input", "expected": "target", "id": "id"},
    "deepeval": {"input": "input", "expected": "expected_output", "id": "name"},
    "openai-evals": {"input": "input", "expected": "ideal", "id": "id"},
}
"""Our field → the column of a data set."""


def convert(draft: Draft, source: Source, kind: DataSet, columns: Mapping[str, str]) -> None:
    """Add the eval file of one data set; `columns` replaces the usual names of columns."""
    place, notes = Place(source), len(draft.notes)
    names = {**COLUMNS[kind], **columns}
    rows = _rows(draft, source)
    name = slug(source.path.stem, "data")
    cases: list[Node] = []
    is_flat = bool(rows) and all(
        isinstance(row.get(names["input"]), str) and isinstance(row.get(names["expected"]), str)
        for row in rows
    )
    if is_flat:
        draft.note("kept", place, f"{len(rows)} rows", "read from the file itself")
        cases.append(
            Block(
                _template(
                    draft, source.path, names, kind, has_ids=all(names["id"] in row for row in rows)
                )
            )
        )
    else:
        draft.note(
            "kept",
            place,
            f"{len(rows)} rows",
            "written as cases: they have messages, or several answers",
        )
        ids = Names()
        for number, row in enumerate(rows, 1):
            cases.append(
                Block(
                    _case(
                        row,
                        names,
                        kind,
                        ids.unique(slug(str(row.get(names["id"]) or number), name)),
                    )
                )
            )
    if kind == "deepeval":
        draft.has_judges = True
        draft.note(
            "approximated",
            place,
            "metrics",
            "they are in Python; a judge compares with the expected output",
        )
    columns_used = {*names.values()}
    for column in sorted(set(chain.from_iterable(rows)) - columns_used - {"metadata"}):
        draft.note("dropped", place, f"column {column}", "no evaluator uses it")
    draft.count(notes, {"vars": cast("Node", rows)})
    made: dict[str, Node] = {
        "$schema": EVAL_SCHEMA,
        "target": draft.target("default", place),
        "evalcases": cases,
    }
    draft.texts[f"{draft.evals.unique(name)}.eval.yaml"] = yaml_text(made)


def _rows(draft: Draft, source: Source) -> list[JsonObject]:
    if source.path.suffix == ".jsonl":
        lines = (draft.reads.text(source.path) or "").split("\n")
        return [row for line in lines if isinstance(row := json_or_none(line), dict)]
    return [row for row in cast("list[JsonValue]", source.data) if isinstance(row, dict)]


def _template(
    draft: Draft, path: Path, names: Mapping[str, str], kind: DataSet, *, has_ids: bool
) -> dict[str, Node]:
    expected = f"{{{{ {names['expected']} }}}}"
    return {
        "id": f"{{{{ {names['id']} }}}}" if has_ids else "row",
        "cases_from": {"file": draft.reference(path)},
        "expected_outcome": expected,
        "input": f"{{{{ {names['input']} }}}}",
        "expected": expected,
        **_evaluators(kind, expected),
    }


def _case(
    row: JsonObject, names: Mapping[str, str], kind: DataSet, identity: str
) -> dict[str, Node]:
    asked, expected = row.get(names["input"]), row.get(names["expected"])
    accepted = expected if isinstance(expected, list) else [expected]
    answers = [str(answer) for answer in accepted if answer is not None]
    made: dict[str, Node] = {
        "id": identity,
        "expected_outcome": " or ".join(answers) or "A good answer",
    }
    made["input"] = cast("Node", asked) if isinstance(asked, list) else str(asked)
    made["expected"] = answers[0] if answers and answers[0] else []
    if len(answers) > 1 and kind != "deepeval":
        made["evaluators"] = [{"contains_any": answers}]
    elif answers:
        made |= _evaluators(kind, answers[0])
    return made


def _evaluators(kind: DataSet, expected: str) -> dict[str, Node]:
    match kind:
        case "inspect":
            return {"evaluators": [{"contains": expected, "case_sensitive": False}]}
        case "openai-evals":
            return {"evaluators": [{"starts_with": expected}]}
        case _:
            return {}
