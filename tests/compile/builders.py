"""Repositories as small as a test needs them, compiled by the real stages."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from io import BytesIO
from pathlib import Path
from typing import Any

from agentv_ci.app.compile import Selection, compile_paths, plan_document
from agentv_ci.contracts.plan import Plan, PlanCase
from agentv_ci.errors import InvalidInput
from tests.support import write

EVAL = "evals/a.yaml"
MOCK = {"name": "default", "provider": "mock"}

Document = dict[str, Any]
Files = Mapping[str, str | Document]


def case(id: str = "one", **given: Any) -> Document:  # noqa: A002  # its name in YAML
    """A case with what is required; `given` are further keys, None takes one away."""
    plain = {
        "id": id,
        "expected_outcome": "It greets.",
        "input_messages": [{"role": "user", "content": "Say hello."}],
        "expected_messages": [{"role": "assistant", "content": "Hello!"}],
    }
    return {key: value for key, value in {**plain, **given}.items() if value is not None}


def evals(*cases: Document, **given: Any) -> Document:
    """An eval document; `given` are further keys of the top level."""
    return {"$schema": "agentv-eval-v2", **given, "evalcases": list(cases or [case()])}


def targets(*listed: Document) -> Document:
    """A targets document."""
    return {"$schema": "agentv-targets-v2.2", "targets": list(listed or [MOCK])}


def contains(value: str = "hello", **given: Any) -> Document:
    """An evaluator that needs no judge."""
    return {"name": "c", "type": "contains", "value": value, **given}


def write_repository(root: Path, files: Files) -> Path:
    """Write a repository; data is written as YAML (JSON is), and a targets file is added where there is none."""
    (root / ".git").mkdir(parents=True, exist_ok=True)
    everything = {"targets.yaml": targets(), **files}
    write(root, {name: each if isinstance(each, str) else as_yaml(each) for name, each in everything.items()})
    return root


def as_yaml(data: object, *, indent: int | None = None) -> str:
    """Write data as YAML, which JSON is but for escapes of surrogate pairs."""
    return json.dumps(data, ensure_ascii=False, indent=indent)


def compile_here(
    root: Path,
    files: Files | None = None,
    *,
    patterns: Sequence[str] = ("evals",),
    cwd: Path | None = None,
    **selection: Any,
) -> Plan:
    """Write a repository and compile it."""
    write_repository(root, files or {EVAL: evals()})
    try:
        return compile_paths(Selection(patterns, **selection), cwd=cwd or root).plan
    except InvalidInput as error:
        raise AssertionError([f"{each.rule} {each.message}" for each in error.diagnostics]) from error


def compile_case(root: Path, files: Files | None = None, /, **given: Any) -> PlanCase:
    """Compile one case; `given` are its further keys."""
    (found,) = compile_here(root, {EVAL: evals(case(**given)), **(files or {})}).cases
    return found


def text_of(plan: Plan) -> str:
    """Return a plan as it is published."""
    with BytesIO() as scratch, BytesIO() as out:
        plan_document(plan, scratch).copy_to(out)
        return out.getvalue().decode()
