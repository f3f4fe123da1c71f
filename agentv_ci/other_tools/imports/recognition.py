"""Which tool a file is from."""

from __future__ import annotations

from pathlib import Path

from agentv_ci.base.json_access import json_or_none, value_at
from agentv_ci.contracts.base import JsonValue
from agentv_ci.contracts.other_tools import ImportKind

OF_PROMPTFOO = frozenset({"prompts", "providers", "defaultTest", "scenarios"})
OF_AGENTV = frozenset({"tests", "evalcases", "eval_cases"})
ONLY_AGENTV = frozenset({"target", "execution", "experiment", "workspace", "governance"})
"""Keys of files of AgentV that may have `prompts`, too."""


def kind_of(path: Path, data: JsonValue, text: str) -> ImportKind | None:
    """Return the tool that a file is from, by its name and content.

    None if it is from none of them.
    """
    if path.name.endswith((".prompt.yml", ".prompt.yaml")):
        return "prompt-yml"
    if isinstance(data, dict) and path.suffix != ".jsonl":
        if "messages" in data and data.keys() & {"testData", "modelParameters", "evaluators"}:
            return "prompt-yml"
        if data.keys() & OF_PROMPTFOO or any(
            "vars" in item or "assert" in item for item in _objects(data.get("tests"))
        ):
            if _is_agentv(data):
                return "agentv"
            return "promptfoo"
        if data.keys() & OF_AGENTV:
            return "agentv"
        return None
    return _dataset_kind(
        data if isinstance(data, list) else [json_or_none(text.partition("\n")[0])]
    )


def _is_agentv(data: dict[str, JsonValue]) -> bool:
    """Whether a file that may be one of promptfoo has what only AgentV has."""
    if data.keys() & ONLY_AGENTV and "providers" not in data:
        return True
    if data.keys() & OF_PROMPTFOO:
        return False
    return any({"input", "criteria"} & item.keys() for item in _objects(data.get("tests")))


def _objects(value: JsonValue) -> list[dict[str, JsonValue]]:
    if isinstance(value, list):
        return [item for item in value if isinstance(item, dict)]
    return []


def _dataset_kind(rows: list[JsonValue]) -> ImportKind | None:
    first = value_at(rows, 0)
    if not isinstance(first, dict) or "input" not in first:
        return None
    if first.keys() & {"criteria", "assertions"}:
        return "agentv"
    if "ideal" in first:
        return "openai-evals"
    if first.keys() & {"actual_output", "expected_output", "retrieval_context"}:
        return "deepeval"
    if first.keys() & {"target", "choices"}:
        return "inspect"
    return None
