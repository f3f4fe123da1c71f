"""Read a file into a Source."""

from __future__ import annotations

import re
import stat
from collections.abc import Mapping
from pathlib import Path

from agentv_ci.contracts.base import JsonValue
from agentv_ci.contracts.config import CONFIG_SCHEMA
from agentv_ci.contracts.diagnostics import Diagnostic
from agentv_ci.contracts.evals import EVAL_SCHEMA
from agentv_ci.contracts.judge_set import JUDGE_SET_SCHEMA
from agentv_ci.contracts.source import NOWHERE, Kind, Mark, Source, diagnostic_at, locate
from agentv_ci.contracts.targets import TARGETS_SCHEMAS
from agentv_ci.jsonschema.schemas import BASE_ID, SCHEMAS, schema_id
from agentv_ci.load.events import Foreign, Problem, Unparsable
from agentv_ci.load.files import MAX_BYTES
from agentv_ci.load.parse import Parsed, parse_yaml
from agentv_ci.text import did_you_mean, listed, nearest

KNOWN_SCHEMAS: Mapping[str, Kind] = {
    EVAL_SCHEMA: "eval",
    **dict.fromkeys(TARGETS_SCHEMAS, "targets"),
    CONFIG_SCHEMA: "config",
    JUDGE_SET_SCHEMA: "judge-set",
    **{schema_id(name): kind for kind, name in SCHEMAS.items()},
}

CASE_KEYS = frozenset(
    {"input", "input_messages", "vars", "expected", "expected_output", "assert", "assertions", "criteria"}
)
"""Keys of a case in formats of other tools, and of newer versions of AgentV."""
FORMAT_HINT = "write its cases as evalcases (docs/eval-file.md), or move the file out of the folder"

OURS = re.compile(r"\bagentv-(?:eval|targets|config|judge-set)-|^evalcases\s*:", re.MULTILINE)
"""Marks of our documents, for files that go beyond the YAML core schema."""


def load(path: Path, root: Path, *, named: bool) -> Source:
    """Read one YAML document.

    `root` is its repository. With `named`, the user gave this exact path, and a file of another kind is an error.
    Never raises: a file that cannot be read is a Source with diagnostics.
    """
    text = ""
    try:
        text = _read(path)
        parsed = parse_yaml(text)
    except Unparsable as error:
        kind = _kind_by_name(path)
        is_ours = named or kind is not None or not isinstance(error, Foreign) or OURS.search(text) is not None
        refused = (_diagnostic(path, error.problem),) if is_ours else ()
        return Source(path, root, kind, None, lambda: NOWHERE, refused, readable=False)
    kind, problem = _recognize(path, parsed, named=named)
    # Problems in files of other programs do not matter, but an unknown kind of ours does.
    problems = (*(parsed.problems if named or kind is not None else ()), *([problem] if problem else []))
    found = tuple(_diagnostic(path, each) for each in problems)
    data = {} if kind == "config" and parsed.data is None else parsed.data
    return Source(
        path, root, kind, data, parsed.find_mark, found, keys=parsed.keys, text=text, find_items=parsed.find_items
    )


def _read(path: Path) -> str:
    if "\0" in str(path):
        # Results may name any path.
        raise Unparsable("cannot be read: its name contains a NUL byte", rule="AV105")
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            raise Unparsable("not a regular file", rule="AV105")
        if status.st_size > MAX_BYTES:
            raise Unparsable(f"larger than {MAX_BYTES // 1024 // 1024} MiB", rule="AV101")
        return path.read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise Unparsable(f"cannot be read: {error.strerror}", rule="AV105") from error
    except UnicodeDecodeError as error:
        raise Unparsable(f"not UTF-8: byte 0x{error.object[error.start]:02x} at {error.start}", rule="AV105") from error


def _diagnostic(path: Path, problem: Problem) -> Diagnostic:
    mark = Mark(problem.start, problem.end, None)
    return diagnostic_at(mark, problem.rule, problem.message, path, hint=problem.hint)


def _recognize(path: Path, parsed: Parsed, *, named: bool) -> tuple[Kind | None, Problem | None]:
    data = parsed.data
    declared = data.get("$schema") if isinstance(data, dict) else None
    if isinstance(declared, str):
        kind = KNOWN_SCHEMAS.get(declared)
        looks_ours = declared.startswith(("agentv-", BASE_ID)) or _kind_by_content(data, named=named) is not None
        if kind is None and (named or looks_ours):
            place = locate(parsed.find_mark(), ("$schema",))
            names = [name for name in KNOWN_SCHEMAS if not name.startswith("http")]
            message = f"unknown $schema '{declared}'{did_you_mean(declared, names)}; expected one of {listed(names)}"
            return _kind_by_name(path), Problem("AV103", message, place.start, place.end)
        return kind, None
    kind = _kind_by_name(path) or _kind_by_content(data, named=named)
    if not named and kind is None and (other := _other_format(data)) is not None:
        # Skipping it would be a run that silently tests nothing.
        place = locate(parsed.find_mark(), (other[0],))
        message = f"{other[1]}, which agentv-ci does not read"
        return None, Problem("AV103", message, place.start, place.end, hint=FORMAT_HINT)
    if not named and (kind is None or (kind == "targets" and data is not None and not isinstance(data, dict))):
        return None, None  # other files are called targets.yaml too
    if kind is not None and (data is None or _attempts_schema(data)):
        return kind, None
    start = parsed.find_mark().start
    if kind is not None:
        name = next(name for name, each in KNOWN_SCHEMAS.items() if each == kind)
        return kind, Problem("AV102", f"$schema is missing; read as '{name}'", start, start)
    message = "the file is empty"
    if path.suffix == ".jsonl":
        message = "not an eval file; `agentv-ci report` reads results"
    elif data is not None:
        message = "not an agentv-ci document; add a line such as $schema: agentv-eval-v2"
    return None, Problem("AV103", message, start, start)


def _kind_by_name(path: Path) -> Kind | None:
    if path.name in ("targets.yaml", "targets.yml"):
        return "targets"
    if path.name == ".agentv.yaml" or (path.name == "config.yaml" and path.parent.name == ".agentv"):
        return "config"
    return None


def _kind_by_content(data: JsonValue, *, named: bool) -> Kind | None:
    if not isinstance(data, dict):
        return None
    if "evalcases" in data:
        return "eval"
    if "targets" in data and (named or _lists_providers(data["targets"])):
        return "targets"
    if "guideline_patterns" in data or "guidelinePatterns" in data:
        return "config"
    return None


def _other_format(data: JsonValue) -> tuple[str, str] | None:
    """Return the key that shows that a file is an evaluation of another format, and a description of the format."""
    if not isinstance(data, dict):
        return None
    if "prompts" in data and ("providers" in data or "tests" in data):
        return "prompts", "this is a promptfoo config"
    for key in ("tests", "cases"):
        items = data.get(key)
        if (
            isinstance(items, list)
            and items
            and all(isinstance(each, dict) and CASE_KEYS & each.keys() for each in items)
        ):
            return key, f"'{key}' looks like evaluations in another format"
    return None


def _attempts_schema(data: JsonValue) -> bool:
    """Whether `$schema` is there but misspelt or of the wrong type, which `validate` reports."""
    return isinstance(data, dict) and ("$schema" in data or nearest("$schema", data) is not None)


def _lists_providers(value: JsonValue) -> bool:
    return (
        isinstance(value, list) and bool(value) and all(isinstance(item, dict) and "provider" in item for item in value)
    )
