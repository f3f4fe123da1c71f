"""Targets in the plan: their names, keys and paths; environment references are kept."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, get_args

import pytest

from agentv_ci.contracts.plan import Plan
from agentv_ci.contracts.target_settings import TargetSettings
from agentv_ci.contracts.targets import Target
from tests.compile.builders import EVAL, MOCK, Document, case, compile_here, contains, evals, targets, text_of
from tests.support import run_command, write

GPT = {"name": "default", "provider": "openai", "model": "gpt-5", "api_key": "${{ OPENAI_API_KEY }}"}
AGENT = {"name": "default", "provider": "cli", "command_template": "agent {PROMPT}"}
CODEX = {"name": "default", "provider": "codex"}
BELOW = ".agentv/targets.yaml"


def compile_target(root: Path, target: Document, path: str = "targets.yaml") -> Document:
    """Return a target as it is in the plan."""
    plan = compile_here(root, {EVAL: evals(case(evaluators=[contains()])), path: targets(target)}, targets=path)
    return settings(plan, "default")


def settings(plan: Plan, key: str) -> Document:
    return plan.targets[key].model_dump(by_alias=True, exclude_none=True)


@pytest.mark.parametrize(
    "target",
    [
        {**GPT, "base_url": "${{ OPENAI_BASE_URL }}", "temperature": "${{ T }}", "max_retries": "${{ RETRIES }}"},
        {**GPT, "headers": {"Authorization": "${{ TOKEN }}"}, "extra_body": {"user": "${{ USER_NAME }}", "n": [1]}},
        {**GPT, "retry_status_codes": [500, "${{ STATUS }}"], "api_key": "  ${{SPACED}} "},
        {**AGENT, "env": {"TOKEN": "${{ TOKEN }}"}, "timeout_seconds": "${{ SECONDS }}", "cwd": "${{ FOLDER }}"},
    ],
)
def test_environment_references_are_kept(repository: Path, monkeypatch: pytest.MonkeyPatch, target: Document) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "TOKEN", "SECONDS", "FOLDER", "USER_NAME"):
        monkeypatch.setenv(name, "value-of-the-environment")
    (repository / ".env").write_text("OPENAI_API_KEY=value-of-the-environment\n")
    plan = compile_here(repository, {EVAL: evals(case(evaluators=[contains()])), "targets.yaml": targets(target)})
    compiled = plan.targets["default"].model_dump(mode="json", exclude_none=True)
    assert {name: compiled[name] for name in target} == target
    assert "value-of-the-environment" not in text_of(plan)


@pytest.mark.parametrize(
    ("provider", "kept"),
    [("openai-compatible", False), ("ollama", True), ("vllm", True), ("openrouter", True), ("openai", True)],
)
def test_provider_is_canonical_unless_it_implies_the_server(repository: Path, provider: str, kept: bool) -> None:
    target = {**GPT, "provider": provider}
    assert compile_target(repository, target)["provider"] == (provider if kept else "openai")
    assert compile_target(repository, {**target, "base_url": "http://127.0.0.1:1/v1"})["provider"] == "openai"


@pytest.mark.parametrize(
    ("target", "path", "field", "compiled"),
    [
        ({**CODEX, "executable": "codex"}, "targets.yaml", "executable", "codex"),
        ({**CODEX, "executable": "./codex"}, "targets.yaml", "executable", "./codex"),
        ({**CODEX, "executable": "../codex"}, BELOW, "executable", "./codex"),
        ({**CODEX, "executable": "bin/codex"}, BELOW, "executable", ".agentv/bin/codex"),
        ({**CODEX, "executable": "/opt/codex"}, BELOW, "executable", "/opt/codex"),
        ({**CODEX, "executable": "~/codex"}, BELOW, "executable", "~/codex"),
        ({**CODEX, "executable": "${{ CODEX }}"}, BELOW, "executable", "${{ CODEX }}"),
        ({**AGENT, "cwd": "work"}, BELOW, "cwd", ".agentv/work"),
        ({**AGENT, "cwd": "../../work"}, BELOW, "cwd", "../work"),
        ({**AGENT, "cwd": "${{ WORK }}"}, BELOW, "cwd", "${{ WORK }}"),
        ({**GPT, "ca_bundle": "certs/ca.pem"}, BELOW, "caBundle", ".agentv/certs/ca.pem"),
        ({**CODEX, "log_dir": "logs"}, BELOW, "logDir", ".agentv/logs"),
        ({"name": "default", "provider": "vscode-insiders"}, "targets.yaml", "command", "code-insiders"),
        ({"name": "default", "provider": "vscode-insiders", "command": "c"}, "targets.yaml", "command", "c"),
    ],
    ids=str,
)
def test_paths_are_relative_to_the_repository(
    repository: Path, target: Document, path: str, field: str, compiled: str
) -> None:
    assert compile_target(repository, target, path)[field] == compiled


@pytest.mark.parametrize(("cwd", "compiled"), [("probe", ".agentv/probe"), ("/probe", "/probe")])
def test_folder_of_a_health_check_is_relative_to_the_repository(repository: Path, cwd: str, compiled: str) -> None:
    healthcheck = {"type": "command", "command_template": "true", "cwd": cwd}
    target = compile_target(repository, {**AGENT, "healthcheck": healthcheck}, BELOW)
    assert target["healthcheck"] == {"type": "command", "commandTemplate": "true", "cwd": compiled}


def test_plan_contains_only_targets_that_answer_or_judge(repository: Path) -> None:
    others = [{"name": name, "provider": "mock"} for name in ("judge", "second", "unused")]
    judged = [{"name": "a", "type": "llm_judge"}, {"name": "b", "type": "llm_judge", "judge_target": "second"}]
    files = {EVAL: evals(case(evaluators=judged)), "targets.yaml": targets({**AGENT, "judge_target": "judge"}, *others)}
    assert sorted(compile_here(repository, files).targets) == ["default", "judge", "second"]


LOOKALIKE = {"name": "default@evals/b/targets.yaml", "provider": "mock", "response": "z"}


@pytest.mark.parametrize(
    ("a", "b", "keys"),
    [
        ([MOCK], MOCK, ["default"]),
        ([{**MOCK, "response": "a"}], {**MOCK, "response": "b"}, ["default", "default@evals/b/targets.yaml"]),
        # Python takes 1 for true.
        (
            [{**GPT, "extra_body": {"a": 1}}],
            {**GPT, "extra_body": {"a": True}},
            ["default", "default@evals/b/targets.yaml"],
        ),
        (
            [MOCK, LOOKALIKE],
            {**MOCK, "response": "y"},
            ["default", "default@evals/b/targets.yaml", "default@evals/b/targets.yaml#2"],
        ),
    ],
    ids=["equal", "different", "1 and true", "name like a key"],
)
def test_targets_of_one_name_have_own_keys(repository: Path, a: list[Document], b: Document, keys: list[str]) -> None:
    cases = [case(each["name"], evaluators=[contains()], execution={"target": each["name"]}) for each in a]
    files: dict[str, Any] = {"evals/a/e.yaml": evals(*cases), "evals/a/targets.yaml": targets(*a)}
    files |= {"evals/b/e.yaml": evals(case("two", evaluators=[contains()])), "evals/b/targets.yaml": targets(b)}
    plan = compile_here(repository, files)
    assert sorted(plan.targets) == keys
    expected = [each.get("response") for each in (*a, b)]
    assert [settings(plan, each.target).get("response") for each in plan.cases] == expected
    write(repository, {"plan.json": text_of(plan)})
    assert json.loads(run_command("compile", "plan.json", cwd=repository).out)["digest"] == plan.digest


KINDS: tuple[type[TargetSettings], ...] = get_args(get_args(Target.__value__)[0])


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_contract_of_a_provider_is_consistent(kind: type[TargetSettings]) -> None:
    for field, value in kind.implied.items():
        description = kind.model_fields[field].description or ""
        assert value in ({}, []) or f"default {str(value).lower()}" in description.lower(), field
    assert TargetSettings.outside_digest <= kind.outside_digest <= kind.model_fields.keys()
