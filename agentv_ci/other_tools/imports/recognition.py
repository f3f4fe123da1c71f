"""Which tool a file is from."""

from __future__ import annotations

import re
from pathlib import Path

from agentv_ci.base.json_access import json_or_none, value_at
from agentv_ci.contracts.base import JsonValue
from agentv_ci.contracts.other_tools import ImportKind

OF_PROMPTFOO = frozenset({"prompts", "providers", "defaultTest", "scenarios"})
OF_AGENTV = frozenset({"tests", "evalcases", "eval_cases"})
ONLY_PROMPTFOO = frozenset({"defaultTest", "evaluateOptions", "commandLineOptions", "redteam"})
ONLY_AGENTV = frozenset({"target", "execution", "experiment", "workspace", "governance"}) | {
    *("input", "input_files", "assert", "default_test", "evaluate_options", "environment"),
    *("defaults", "derived_metrics"),
}
"""Keys of files of AgentV that may have `prompts`, too."""
OF_AGENTV_TEST = frozenset({"id", "input", "criteria", "turns", "execution", "environment"})
_NO_SENTENCE = re.compile(r"(not-)?[a-z]+(-[a-z]+)*(\([\d.]+\))?:.*", re.DOTALL)
"""A text that names the type of an assertion, as in a table of promptfoo."""
_LABEL = re.compile(r"(?!(?:echo|https?|sequence|browser)$)[A-Za-z][\w-]*|agentv:.*")
"""A provider of a file of AgentV: promptfoo has colons in most of its names."""


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
    if data.keys() & ONLY_PROMPTFOO:
        return False
    if data.keys() & ONLY_AGENTV or ("name" in data and "providers" not in data):
        return True
    return any(map(_is_agentv_test, _objects(data.get("tests")))) or any(
        _LABEL.fullmatch(str(item.get("id", "")) if isinstance(item, dict) else str(item))
        for item in listed(data.get("providers"))
    )


def _is_agentv_test(test: dict[str, JsonValue]) -> bool:
    """Whether a test has an id, or asserts a text or the negation of an assertion."""
    if OF_AGENTV_TEST & test.keys():
        return True
    return any(
        "negate" in item if isinstance(item, dict) else not _NO_SENTENCE.fullmatch(str(item))
        for item in listed(test.get("assert"))
    )


def listed(value: JsonValue) -> list[JsonValue]:
    """Return a list as it is, nothing as an empty one, and any other value as its only item."""
    if isinstance(value, list):
        return value
    return [] if value is None else [value]


def _objects(value: JsonValue) -> list[dict[str, JsonValue]]:
    if isinstance(value, list):
        return [item for item in value if isinstance(item, dict)]
    return []


def _dataset_kind(rows: list[JsonValue]) -> ImportKind | None:
    first = value_at(rows, 0)
    if isinstance(first, dict) and {"id", "vars"} <= first.keys():
        return "agentv"
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
