"""Evaluators in the plan, with their prompts, scripts and schemas."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agentv_ci.canonical import digest_of
from agentv_ci.contracts.base import JsonObject
from agentv_ci.contracts.plan import (
    FilePart,
    FileReference,
    PlanCodeEvaluator,
    PlanEvaluator,
    PlanLlmJudgeEvaluator,
    PlanSchemaEvaluator,
    TextPart,
)
from tests.compile.builders import Document, Files, compile_case


def compile_evaluator(root: Path, files: Files, /, **given: Any) -> PlanEvaluator:
    (found,) = compile_case(root, files, evaluators=[{"name": "e", **given}]).evaluators
    return found


def compile_code(root: Path, files: Files, /, **given: Any) -> PlanCodeEvaluator:
    found = compile_evaluator(root, files, **{"type": "code", **given})
    assert isinstance(found, PlanCodeEvaluator)
    return found


def compile_prompt(root: Path, files: Files, /, **given: Any) -> TextPart | FilePart | None:
    found = compile_evaluator(root, files, type="llm_judge", **given)
    assert isinstance(found, PlanLlmJudgeEvaluator)
    return found.prompt


def reference(path: str, text: str) -> FileReference:
    return FileReference(path=path, sha256=digest_of(text))


@pytest.mark.parametrize(
    ("script", "argv", "command", "files"),
    [
        ("judge.py", ("evals/judge.py",), None, ["evals/judge.py"]),
        ("./judge.py", ("evals/judge.py",), None, ["evals/judge.py"]),
        ("../tools/judge.sh", ("tools/judge.sh",), None, ["tools/judge.sh"]),
        ("judge.py --strict 'two words'", ("evals/judge.py", "--strict", "two words"), None, ["evals/judge.py"]),
        (["judge.py", "--strict"], ("evals/judge.py", "--strict"), None, ["evals/judge.py"]),
        (["python3", "-I", "judge.py"], ("python3", "-I", "evals/judge.py"), None, ["evals/judge.py"]),
        (["node", "judge.mjs"], ("node", "evals/judge.mjs"), None, ["evals/judge.mjs"]),
        (["jq", "-n", "{score: 1}"], ("jq", "-n", "{score: 1}"), None, []),
        ("jq -n '{score: 1}'", None, "jq -n '{score: 1}'", []),
        ("python3 judge.py | tee log", None, "python3 judge.py | tee log", []),
        # An absolute path is not a script of the repository.
        (["/bin/sh", "judge.sh"], ("/bin/sh", "evals/judge.sh"), None, ["evals/judge.sh"]),
        ("/usr/bin/env python3 -c 1", None, "/usr/bin/env python3 -c 1", []),
    ],
)
def test_script_is_a_program_of_the_repository_or_a_command(
    repository: Path, script: object, argv: tuple[str, ...] | None, command: str | None, files: list[str]
) -> None:
    scripts = {"evals/judge.py": "py", "evals/judge.mjs": "mjs", "tools/judge.sh": "sh", "evals/judge.sh": "sh"}
    found = compile_code(repository, scripts, script=script)
    assert (found.argv, found.command, [each.path for each in found.files]) == (argv, command, files)


def test_files_of_a_script_are_references(repository: Path) -> None:
    files = {"evals/judge.py": "py", "evals/data.json": "{}", "common.txt": "x"}
    script, data, common = (reference(path, text) for path, text in files.items())
    found = compile_code(repository, files, script="judge.py", files=["data.json", "../common.txt", "./judge.py"])
    assert found.files == (script, data, common)
    found = compile_code(repository, files, script="python3 judge.py", files=["judge.py"])
    assert (found.command, found.files) == ("python3 judge.py", (script,))


@pytest.mark.parametrize(
    ("cwd", "compiled"),
    [(".", "evals"), ("tools", "evals/tools"), ("..", "."), ("../tools", "tools"), ("/opt/tools", "/opt/tools")],
)
def test_folder_of_a_script_is_relative_to_the_repository(repository: Path, cwd: str, compiled: str) -> None:
    assert compile_code(repository, {}, script="true", cwd=cwd).cwd == compiled
    assert compile_code(repository, {}, script="true").cwd is None


COMMON: Document = {"weight": 2.0, "required": True, "min_score": 0.5, "negate": True}


def test_settings_of_a_script_are_kept(repository: Path) -> None:
    own: Document = {"timeout_seconds": 9.0, "config": {"strict": True, "camelCase": {"snake_case": None}}}
    found = compile_code(repository, {}, type="code_judge", script="true", **COMMON, **own)
    assert found == PlanCodeEvaluator(name="e", command="true", **COMMON, **own)


@pytest.mark.parametrize(
    ("given", "path"),
    [
        ({"prompt": "./judge.md"}, "evals/judge.md"),
        ({"prompt": "judge.md"}, "evals/judge.md"),
        ({"prompt": "../judge"}, "judge"),
        ({"prompt": "/judge"}, "judge"),
        ({"prompt": "judge.txt"}, "evals/judge.txt"),
        ({"prompt": "judge.j2"}, "evals/judge.j2"),
        ({"prompt": "judge.prompt.md"}, "evals/judge.prompt.md"),
        ({"prompt_path": "judge"}, "evals/judge"),
        ({"promptPath": "/evals/judge.md"}, "evals/judge.md"),
    ],
)
def test_prompt_may_be_a_file(repository: Path, given: Document, path: str) -> None:
    names = ["judge.md", "judge.txt", "judge.j2", "judge.prompt.md", "judge", "../judge"]
    files = {f"evals/{name}": "Judge!" for name in names}
    expected = FilePart(type="file", path=path, sha256=digest_of("Judge!"))
    assert compile_prompt(repository, files, **given) == expected


@pytest.mark.parametrize("prompt", ["Is it good?", "Read this:\njudge.md", "./one\ntwo", "Use judge.md for it", "md"])
def test_prompt_is_text_unless_it_is_a_path(repository: Path, prompt: str) -> None:
    assert compile_prompt(repository, {}, prompt=prompt) == TextPart(text=prompt)
    assert compile_prompt(repository, {}) is None


def test_settings_of_a_judge_are_kept(repository: Path) -> None:
    own: Document = {"weight": 0.0, "required": True, "judge_retries": 0, "temperature": 0.0, "max_output_tokens": 9}
    found = compile_evaluator(repository, {}, type="llm_judge", **own)
    assert found == PlanLlmJudgeEvaluator(name="e", target="default", **own)


SCHEMA: JsonObject = {"type": "object", "required": ["camelCase", "snake_case"], "$defs": {"x": {"const": 1.0}}}
YAML = "type: object\nrequired: [camelCase, snake_case]\n$defs:\n  x:\n    const: 1.0\n"


@pytest.mark.parametrize(
    ("given", "files", "schema"),
    [
        ({"schema_inline": SCHEMA}, {}, SCHEMA),
        ({"schema_inline": False}, {}, False),
        ({"schema_file": "s.json"}, {"evals/s.json": json.dumps(SCHEMA)}, SCHEMA),
        ({"schema_file": "/s.yml"}, {"s.yml": YAML}, SCHEMA),
        ({"schema_file": "s.json"}, {"evals/s.json": "true"}, True),
        ({"schema_file": "s.json"}, {"evals/s.json": '{"title": "\\ud83d\\ude00 \\u00e9"}'}, {"title": "😀 é"}),
        ({"schema_file": "s.json"}, {"evals/s.json": '{\n\t"title":\t"é"\n}\n'}, {"title": "é"}),
        ({"schema_file": "s.json"}, {"evals/s.json": '\ufeff{"title": "é"}'}, {"title": "é"}),
        ({"schema_file": "s.json"}, {"evals/s.json": '{"title"\n: "é"}'}, {"title": "é"}),
    ],
)
def test_schema_is_inline(repository: Path, given: Document, files: Files, schema: JsonObject | bool) -> None:
    found = compile_evaluator(repository, files, type="schema", format="yaml", **given)
    assert found == PlanSchemaEvaluator(name="e", schema_=schema, format="yaml")
