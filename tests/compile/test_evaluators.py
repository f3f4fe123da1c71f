"""Evaluators with everything they need."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from agentv_ci.contracts.base import JsonObject
from agentv_ci.contracts.evaluators import ContainsEvaluator, ExpectedCall, RegexEvaluator, ToolTrajectoryEvaluator
from agentv_ci.contracts.plan import (
    FilePart,
    FileReference,
    PlanCodeEvaluator,
    PlanEvaluator,
    PlanLlmJudgeEvaluator,
    PlanSchemaEvaluator,
    TextPart,
)
from tests.compile.builders import Document, compile_case


def compile_evaluator(root: Path, files: dict[str, str | Document], /, **given: Any) -> PlanEvaluator:
    (found,) = compile_case(root, files, evaluators=[{"name": "e", **given}]).evaluators
    return found


def compile_code(root: Path, files: dict[str, str | Document], /, **given: Any) -> PlanCodeEvaluator:
    found = compile_evaluator(root, files, **{"type": "code", **given})
    assert isinstance(found, PlanCodeEvaluator)
    return found


def compile_prompt(root: Path, files: dict[str, str | Document], /, **given: Any) -> TextPart | FilePart | None:
    found = compile_evaluator(root, files, type="llm_judge", **given)
    assert isinstance(found, PlanLlmJudgeEvaluator)
    return found.prompt


def reference(path: str, text: str) -> FileReference:
    return FileReference(path=path, sha256=hashlib.sha256(text.encode("utf-8")).hexdigest())


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
        ("echo '{\"score\": 1}'", None, "echo '{\"score\": 1}'", []),
    ],
)
def test_script_is_a_program_of_the_repository_or_a_command(
    repository: Path, script: object, argv: tuple[str, ...] | None, command: str | None, files: list[str]
) -> None:
    scripts: dict[str, str | Document] = {
        "evals/judge.py": "py",
        "evals/judge.mjs": "mjs",
        "tools/judge.sh": "sh",
    }
    found = compile_code(repository, scripts, script=script)
    assert (found.argv, found.command, [each.path for each in found.files]) == (argv, command, files)


@pytest.mark.parametrize(
    "script", [["/bin/sh", "-c", "echo 1"], ["/bin/sh", "judge.sh"], "/usr/bin/env python3 -c 1"], ids=str
)
def test_absolute_path_of_a_program_is_the_systems(repository: Path, script: Any) -> None:
    found = compile_code(repository, {"evals/judge.sh": "sh"}, script=script)
    first = found.argv[0] if found.argv else str(found.command).split()[0]
    assert first == (script if isinstance(script, list) else script.split())[0]


def test_script_and_its_files_are_known_by_content(repository: Path) -> None:
    files: dict[str, str | Document] = {"evals/judge.py": "py", "evals/data.json": "{}", "common.txt": "x"}
    found = compile_code(repository, files, script="judge.py", files=["data.json", "../common.txt", "./judge.py"])
    assert found.files == (
        reference("evals/judge.py", "py"),
        reference("evals/data.json", "{}"),
        reference("common.txt", "x"),
    )


def test_command_may_name_the_files_it_needs(repository: Path) -> None:
    found = compile_code(repository, {"evals/judge.py": "py"}, script="python3 judge.py", files=["judge.py"])
    assert (found.command, found.files) == ("python3 judge.py", (reference("evals/judge.py", "py"),))


@pytest.mark.parametrize(
    ("cwd", "compiled"),
    [
        (None, None),
        (".", "evals"),
        ("tools", "evals/tools"),
        ("..", "."),
        ("../tools", "tools"),
        ("/opt/tools", "/opt/tools"),
    ],
)
def test_folder_of_a_script_is_the_repositorys_unless_it_is_absolute(
    repository: Path, cwd: str | None, compiled: str | None
) -> None:
    given = {} if cwd is None else {"cwd": cwd}
    assert compile_code(repository, {}, script="true", **given).cwd == compiled


def test_settings_of_a_script_are_kept(repository: Path) -> None:
    config: JsonObject = {"strict": True, "camelCase": {"snake_case": None}}
    found = compile_code(
        repository,
        {},
        type="code_judge",
        script="true",
        weight=2,
        required=True,
        min_score=0.5,
        negate=True,
        timeout_seconds=9,
        config=config,
    )
    assert found == PlanCodeEvaluator(
        name="e",
        weight=2.0,
        required=True,
        min_score=0.5,
        negate=True,
        command="true",
        timeout_seconds=9.0,
        config=config,
    )


@pytest.mark.parametrize(
    ("given", "path"),
    [
        ({"prompt": "./judge.md"}, "evals/judge.md"),
        ({"prompt": "judge.md"}, "evals/judge.md"),
        ({"prompt": "../judge"}, "judge"),
        ({"prompt": "/judge"}, "judge"),
        ({"prompt": "judge.txt"}, "evals/judge.txt"),
        ({"prompt": "judge.j2"}, "evals/judge.j2"),
        ({"prompt_path": "judge"}, "evals/judge"),
        ({"promptPath": "/evals/judge.md"}, "evals/judge.md"),
    ],
)
def test_prompt_is_read_from_the_file_it_names(repository: Path, given: Document, path: str) -> None:
    files: dict[str, str | Document] = dict.fromkeys(
        ["evals/judge.md", "evals/judge.txt", "evals/judge.j2", "evals/judge", "judge"], "Judge!"
    )
    expected = FilePart(type="file", path=path, sha256=reference(path, "Judge!").sha256)
    assert compile_prompt(repository, files, **given) == expected


@pytest.mark.parametrize(
    "prompt",
    ["Is it good?", "Judge {{ candidate_answer }}", "Read this:\njudge.md", "./one\ntwo", "Use judge.md for it", "md"],
)
def test_prompt_is_the_text_when_it_names_no_file(repository: Path, prompt: str) -> None:
    assert compile_prompt(repository, {}, prompt=prompt) == TextPart(text=prompt)


def test_prompt_is_absent_when_the_built_in_one_is_meant(repository: Path) -> None:
    assert compile_prompt(repository, {}) is None


def test_prompt_that_looks_like_a_guideline_is_a_prompt(repository: Path) -> None:
    found = compile_prompt(repository, {"evals/judge.prompt.md": "Judge!"}, prompt="judge.prompt.md")
    assert found is not None
    assert found.type == "file"


def test_settings_of_a_judge_are_kept(repository: Path) -> None:
    found = compile_evaluator(
        repository, {}, type="llm_judge", weight=0, judge_retries=0, temperature=0, max_output_tokens=9, required=True
    )
    assert found == PlanLlmJudgeEvaluator(
        name="e",
        weight=0.0,
        required=True,
        target="default",
        judge_retries=0,
        temperature=0.0,
        max_output_tokens=9,
    )


SCHEMA: JsonObject = {"type": "object", "required": ["camelCase", "snake_case"], "$defs": {"x": {"const": 1.0}}}


@pytest.mark.parametrize(
    ("given", "files"),
    [
        ({"schema_inline": SCHEMA}, {}),
        ({"schema_file": "s.json"}, {"evals/s.json": SCHEMA}),
        ({"schema_file": "/s.yaml"}, {"s.yaml": SCHEMA}),
        (
            {"schema_file": "s.yml"},
            {"evals/s.yml": "type: object\nrequired: [camelCase, snake_case]\n$defs:\n  x:\n    const: 1.0\n"},
        ),
    ],
)
def test_schema_is_put_in_place(repository: Path, given: Document, files: dict[str, str | Document]) -> None:
    found = compile_evaluator(repository, files, type="schema", **given)
    assert found == PlanSchemaEvaluator(name="e", schema_=SCHEMA, format="json")


@pytest.mark.parametrize(
    "text",
    [
        pytest.param('{"title": "\\ud83d\\ude00 \\u00e9"}', id="escapes"),
        pytest.param('{\n\t"title":\t"😀 é"\n}\n', id="tabs"),
        pytest.param('\ufeff{"title": "😀 é"}', id="byte order mark"),
        pytest.param('{"title"\n: "😀 é"}', id="colon on a line of its own"),
    ],
)
def test_schema_may_be_any_json(repository: Path, text: str) -> None:
    found = compile_evaluator(repository, {"evals/s.json": text}, type="schema", schema_file="s.json")
    assert found == PlanSchemaEvaluator(name="e", schema_={"title": "😀 é"}, format="json")


@pytest.mark.parametrize("schema", [True, False])
def test_schema_may_be_a_truth_value(repository: Path, schema: bool) -> None:
    for given in ({"schema_inline": schema}, {"schema_file": "s.json"}):
        found = compile_evaluator(
            repository, {"evals/s.json": json.dumps(schema)}, type="schema", format="yaml", **given
        )
        assert found == PlanSchemaEvaluator(name="e", schema_=schema, format="yaml")


@pytest.mark.parametrize(
    ("given", "compiled"),
    [
        (
            {"type": "contains", "value": "x", "caseSensitive": False},
            ContainsEvaluator(name="e", type="contains", value="x", case_sensitive=False),
        ),
        (
            {"type": "regex", "value": "x+", "minScore": 0.5},
            RegexEvaluator(name="e", type="regex", value="x+", min_score=0.5),
        ),
        (
            {"type": "tool_trajectory", "mode": "any_order", "minimums": {"a_b": 1, "aB": 2}},
            ToolTrajectoryEvaluator(name="e", type="tool_trajectory", mode="any_order", minimums={"a_b": 1, "aB": 2}),
        ),
        (
            {
                "type": "tool_trajectory",
                "mode": "exact",
                "expected": [{"tool": "x", "input": {"a_b": 1}}, {"tool": "y"}],
                "argsMatch": "subset",
            },
            ToolTrajectoryEvaluator(
                name="e",
                type="tool_trajectory",
                mode="exact",
                expected=(ExpectedCall(tool="x", input={"a_b": 1}), ExpectedCall(tool="y")),
                args_match="subset",
            ),
        ),
    ],
)
def test_evaluator_without_files_stays_as_it_is(repository: Path, given: Document, compiled: PlanEvaluator) -> None:
    assert compile_evaluator(repository, {}, **given) == compiled


def test_evaluators_keep_their_order(repository: Path) -> None:
    listed = [{"name": name, "type": "contains", "value": name} for name in ("z", "a", "m")]
    assert [each.name for each in compile_case(repository, evaluators=listed).evaluators] == ["z", "a", "m"]
