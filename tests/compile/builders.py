"""Repositories as small as a test needs them, compiled by the real stages."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from io import BytesIO
from pathlib import Path
from typing import Any

from agentv_ci.app.documents.compile import Selection, compile_paths, plan_document, write_plan
from agentv_ci.base.canonical import canonical, digest_of
from agentv_ci.contracts.plan import Plan
from agentv_ci.errors import InvalidInput
from tests.support import write

EVAL = "evals/a.yaml"
MOCK = {"name": "default", "provider": "mock"}

Document = dict[str, Any]
Files = Mapping[str, Any]
"""Path → text or data."""


def case(id: str = "one", **given: Any) -> Document:  # noqa: A002  # its name in YAML
    """Return a case with what is required; `given` are further keys, None removes one."""
    plain = {
        "id": id,
        "expected_outcome": "It greets.",
        "input_messages": [{"role": "user", "content": "Say hello."}],
        "expected_messages": [{"role": "assistant", "content": "Hello!"}],
    }
    return {key: value for key, value in {**plain, **given}.items() if value is not None}


def with_file(path: str, id: str = "one", **given: Any) -> Document:  # noqa: A002
    """Return a case that asks with a file."""
    return case(id, input_messages=[{"role": "user", "content": [{"type": "file", "value": path}]}], **given)


def evals(*cases: Document, **given: Any) -> Document:
    """Return an eval document; `given` are further keys of the top level."""
    return {"$schema": "agentv-eval-v2", **given, "evalcases": list(cases or [case()])}


def targets(*listed: Document) -> Document:
    """Return a targets document."""
    return {"$schema": "agentv-targets-v2.2", "targets": list(listed or [MOCK])}


def contains(value: str = "hello", **given: Any) -> Document:
    """Return an evaluator that needs no judge."""
    return {"name": "c", "type": "contains", "value": value, **given}


def write_repository(root: Path, files: Files) -> Path:
    """Write a repository with a targets file; data is written as JSON, which is YAML."""
    (root / ".git").mkdir(parents=True, exist_ok=True)
    everything = {"targets.yaml": targets(), **files}
    write(root, {name: each if isinstance(each, str) else as_yaml(each) for name, each in everything.items()})
    return root


def as_yaml(data: object, *, indent: int | None = None) -> str:
    """Return data as JSON without escapes, which is YAML."""
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


def published(*patterns: str | Path, cwd: Path) -> bytes:
    """Compile paths, and return the plan as `compile` writes it."""
    with BytesIO() as scratch, BytesIO() as out:
        selection = Selection(list(map(str, patterns)))
        document, _ = write_plan(selection, cwd=cwd, scratch=scratch, watch=lambda _: None)
        document.copy_to(out)
        return out.getvalue()


def text_of(plan: Plan) -> str:
    """Return a plan as it is published."""
    with BytesIO() as scratch, BytesIO() as out:
        plan_document(plan, scratch).copy_to(out)
        return out.getvalue().decode()


def rich(text: str = "text") -> dict[str, Any]:
    """Return a repository whose case `one` uses every feature; `text` is its text everywhere."""
    asked = case(
        "one",
        expected_outcome=text,
        input_messages=[
            {"role": "system", "content": [{"type": "file", "value": "rules.prompt.md"}]},
            {"role": "user", "content": [text, {"type": "file", "value": "question.txt"}]},
        ],
        expected_messages=[
            {"role": "assistant", "tool_calls": [{"tool": "search", "input": {"q": text}}]},
            {"role": "assistant", "content": text},
        ],
        evaluators=[
            contains(text),
            {"name": "r", "type": "regex", "value": "a+"},
            {"name": "j", "type": "llm_judge", "prompt": "./judge.md"},
            {"name": "k", "type": "llm_judge", "prompt": "Is it good?", "judge_target": "strict"},
            {"name": "s", "type": "schema", "schema_file": "schema.json"},
            {"name": "p", "type": "code", "script": "judge.py", "files": ["x.json", "y.json"], "config": {"a": text}},
            {"name": "t", "type": "tool_trajectory", "mode": "any_order", "minimums": {"search": 1}},
            {"name": "u", "type": "tool_trajectory", "mode": "exact", "expected": [{"tool": "search", "input": 1}]},
        ],
    )
    return {
        EVAL: evals(asked, case("two")),
        "evals/rules.prompt.md": f"Rules: {text}",
        "evals/question.txt": f"Question: {text}",
        "evals/judge.md": f"Judge: {text}",
        "evals/judge.py": f"# {text}",
        "evals/x.json": '"x"',
        "evals/y.json": '"y"',
        "evals/schema.json": {"type": "object", "title": text},
        "targets.yaml": targets(
            {**MOCK, "response": text, "judge_target": "judge"},
            {"name": "judge", "provider": "mock", "response": text},
            {"name": "strict", "provider": "mock", "response": text},
            {"name": "other", "provider": "mock", "response": f"Other: {text}"},
        ),
    }


def document_digest(document: Document) -> str:
    """Return the digest of a plan as it is published: of everything but its `digest`."""
    return digest_of(canonical({key: value for key, value in document.items() if key != "digest"}))
