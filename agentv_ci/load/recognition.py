"""Recognize documents: by `$schema`, by name, by content; and evaluations of other tools."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from pathlib import Path

from agentv_ci.base.text import did_you_mean, listed, nearest
from agentv_ci.contracts.base import JsonValue
from agentv_ci.contracts.diagnostics import Kind
from agentv_ci.contracts.source import (
    CONFIG_SCHEMA,
    EVAL_SCHEMA,
    EXPERIMENT_SCHEMA,
    JUDGE_SET_SCHEMA,
    QUARANTINE_SCHEMA,
    TARGETS_SCHEMAS,
    locate,
)
from agentv_ci.jsonschema.schemas import BASE_ID, SCHEMAS, schema_id
from agentv_ci.load.events import Problem
from agentv_ci.load.parse import Parsed

KNOWN_SCHEMAS: Mapping[str, Kind] = {
    EVAL_SCHEMA: "eval",
    **dict.fromkeys(TARGETS_SCHEMAS, "targets"),
    CONFIG_SCHEMA: "config",
    JUDGE_SET_SCHEMA: "judge-set",
    QUARANTINE_SCHEMA: "quarantine",
    EXPERIMENT_SCHEMA: "experiment",
    **{schema_id(name): kind for kind, name in SCHEMAS.items()},
}

EVAL_NAME = re.compile(r"(?:.+\.)?EVAL\.ya?ml|.+\.eval\.ya?ml")
"""Names that only eval files have; `eval.yaml` is also a usual name for settings of other programs.
"""

TEST_NAME = re.compile(r".+\.test\.ya?ml")
"""The usual name of eval files; other programs have tests, too."""

OURS = re.compile(
    r"""\bagentv-(?:eval|targets|config|judge-set|quarantine|experiment)-"""
    r"""|/schemas/(?:eval|targets|config|judge-set|quarantine|experiment)-v\d"""
    r"""|^[ \t{\ufffd]*["']?(?:evalcases|guideline_patterns|guidelinePatterns)["']?\s*:""",
    re.MULTILINE,
)
TARGETS = re.compile(r"^targets\s*:", re.MULTILINE)

CASE_KEYS = frozenset(
    {"vars", "assert", "assertions", "criteria", "expected_output", "input_messages"}
)
"""Keys that only cases of evaluations have."""
COMMON_CASE_KEYS = frozenset({"input", "expected"})
"""Keys that tests of programs have too; a case also has an id."""
CASE_FILE = re.compile(r"file://.+|.+\.(?:ya?ml|jsonl?|csv)")
AGENTV_KEYS = frozenset({"target", "execution", "workspace"})
OF_AGENTV_SETTINGS = frozenset({"defaults", "execution", "eval_patterns", "providers"}) | {
    *("required_version", "results", "repo_resolvers", "refs", "hooks", "tests", "targets"),
    *("dashboard", "studio", "projects", "env_from", "env_path"),
}
"""Keys of `.agentv/config.yaml` of AgentV, whose `$schema` may be that of ours."""
FORMAT_HINT = "convert it: agentv-ci import {name} --out converted; then move it out of the folder"


def is_ours_by_name(path: Path) -> bool:
    """Whether only documents of ours have this name."""
    return kind_by_name(path) is not None or EVAL_NAME.fullmatch(path.name) is not None


def has_eval_name(path: Path) -> bool:
    """Whether eval files usually have such a name."""
    return EVAL_NAME.fullmatch(path.name) is not None or TEST_NAME.fullmatch(path.name) is not None


def bears_our_mark(content: bytes) -> bool:
    """Whether a text that cannot be parsed is probably a document of ours, in whatever encoding."""
    text = content.replace(b"\0", b"").decode("utf-8", "replace")
    return OURS.search(text) is not None or (
        TARGETS.search(text) is not None and "provider" in text
    )


def recognize(path: Path, parsed: Parsed, *, named: bool) -> tuple[Kind | None, Problem | None]:
    """Return the kind of a document, and the problem of the whole file.

    Neither for a file of another program.

    With `named`, the user gave this exact path, and a file of another program is a problem.
    """
    data = parsed.data
    if isinstance(data, dict) and _has_settings_of_agentv(path, data):
        return None, _not_ours(path, parsed) if named else None
    declared = data.get("$schema") if isinstance(data, dict) else None
    if isinstance(declared, str) and declared in KNOWN_SCHEMAS:
        return KNOWN_SCHEMAS[declared], None
    by_content = _kind_by_content(data, named=named) or _misspelt(path, data)
    kind = kind_by_name(path) or by_content
    other = _other_format(path, data) if kind is None else None
    if isinstance(declared, str):
        looks_ours = declared.startswith(("agentv-", BASE_ID)) or by_content is not None
        if looks_ours or (named and other is None):
            return kind_by_name(path), _unknown_schema(declared, parsed)
        kind = None
    if other is not None:
        # Skipping it would be a run that silently tests nothing.
        place = locate(parsed.find_mark(), (other[0],))
        message = f"{other[1]}, which agentv-ci does not read"
        return None, Problem(
            "AV103",
            message,
            place.start,
            place.end,
            hint=FORMAT_HINT.format(name=shlex.quote(path.name)),
        )
    expected = named or (data is None and has_eval_name(path))
    if not expected and (
        kind is None or (kind == "targets" and data is not None and not isinstance(data, dict))
    ):
        return None, None  # other files are called targets.yaml too
    if kind is not None and (data is None or _attempts_schema(data)):
        return kind, None
    start = parsed.find_mark().start
    if kind is not None:
        name = next(name for name, known in KNOWN_SCHEMAS.items() if known == kind)
        return kind, Problem("AV102", f"$schema is missing; read as '{name}'", start, start)
    return None, _not_ours(path, parsed)


def _not_ours(path: Path, parsed: Parsed) -> Problem:
    message = "the file is empty"
    if kind_by_name(path) == "config":
        message = "these are settings of AgentV, which agentv-ci does not read"
    elif path.suffix == ".jsonl":
        message = "not an eval file; `agentv-ci report` reads results"
    elif parsed.data is not None:
        message = "not an agentv-ci document; add a line such as $schema: agentv-eval-v2"
    start = parsed.find_mark().start
    return Problem("AV103", message, start, start)


def _unknown_schema(declared: str, parsed: Parsed) -> Problem:
    place = locate(parsed.find_mark(), ("$schema",))
    names = [name for name in KNOWN_SCHEMAS if not name.startswith("http")]
    close = did_you_mean(declared, names)
    message = f"unknown $schema '{declared}'{close}; expected one of {listed(names)}"
    return Problem("AV103", message, place.start, place.end)


def kind_by_name(path: Path) -> Kind | None:
    """Return the kind of documents with this name."""
    if path.name in ("targets.yaml", "targets.yml"):
        return "targets"
    if path.name == ".agentv.yaml" or (
        path.name == "config.yaml" and path.parent.name == ".agentv"
    ):
        return "config"
    if path.name == "quarantine.yaml" and path.parent.name == ".agentv":
        return "quarantine"
    return None


def _has_settings_of_agentv(path: Path, data: Mapping[str, JsonValue]) -> bool:
    """Whether a file has the settings of AgentV, which reads the same name."""
    ours = {"guideline_patterns", "guidelinePatterns", "rules", "prices"} & data.keys()
    return kind_by_name(path) == "config" and not ours and bool(OF_AGENTV_SETTINGS & data.keys())


def _misspelt(path: Path, data: JsonValue) -> Kind | None:
    """Return the kind of a file that has the name of eval files and a key much like theirs."""
    if not isinstance(data, dict) or not has_eval_name(path):
        return None
    return "eval" if any(nearest(key, ["evalcases"]) for key in data) else None


def _kind_by_content(data: JsonValue, *, named: bool) -> Kind | None:
    if not isinstance(data, dict):
        return None
    if "evalcases" in data:
        return "eval"
    if "targets" in data and (
        _lists_providers(data["targets"]) or (named and not _lists_names(data["targets"]))
    ):
        return "targets"
    if "guideline_patterns" in data or "guidelinePatterns" in data:
        return "config"
    if "arms" in data and "evals" in data:
        return "experiment"
    return None


def _other_format(path: Path, data: JsonValue) -> tuple[str, str] | None:
    """Return the key that shows that a file is of another tool, and a description of the file."""
    if not isinstance(data, dict):
        return None
    is_prompt = path.name.endswith((".prompt.yml", ".prompt.yaml"))
    if is_prompt and {"messages", "testData"} <= data.keys():
        return "messages", "this is a prompt file of GitHub Models"
    is_agentv = bool(AGENTV_KEYS & data.keys()) or EVAL_NAME.fullmatch(path.name) is not None
    if "prompts" in data and ("providers" in data or "tests" in data) and not is_agentv:
        return "prompts", "this is a promptfoo config"
    for key in ("tests", "cases"):
        items = _items(data.get(key))
        has_cases = any(map(_is_case, items))
        if is_agentv and (has_cases or any(map(_names_cases, items))):
            return key, "this is an eval file of a later version of AgentV"
        if has_cases:
            return key, f"'{key}' looks like evaluations in another format"
    return None


def _names_cases(item: JsonValue) -> bool:
    return isinstance(item, str) and CASE_FILE.fullmatch(item) is not None


def _items(value: JsonValue) -> list[JsonValue]:
    return value if isinstance(value, list) else [value]


def _is_case(item: JsonValue) -> bool:
    return isinstance(item, dict) and bool(
        CASE_KEYS & item.keys() or ("id" in item and COMMON_CASE_KEYS & item.keys())
    )


def _attempts_schema(data: JsonValue) -> bool:
    """Whether `$schema` is there but misspelt or of the wrong type, which `validate` reports."""
    return isinstance(data, dict) and ("$schema" in data or nearest("$schema", data) is not None)


def _lists_names(value: JsonValue) -> bool:
    """Whether this is the list of targets of an eval file."""
    return isinstance(value, list) and bool(value) and all(isinstance(item, str) for item in value)


def _lists_providers(value: JsonValue) -> bool:
    return (
        isinstance(value, list)
        and bool(value)
        and all(isinstance(item, dict) and "provider" in item for item in value)
    )
