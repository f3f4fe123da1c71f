"""Targets in their resolved form."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

import pytest

from agentv_ci.contracts.plan import Plan
from agentv_ci.contracts.target_settings import TargetSettings
from agentv_ci.contracts.targets import Target
from tests.compile.builders import EVAL, MOCK, Document, case, compile_here, contains, evals, targets, text_of

GPT = {"name": "default", "provider": "openai", "model": "gpt-5", "api_key": "${{ OPENAI_API_KEY }}"}
AGENT = {"name": "default", "provider": "cli", "command_template": "agent {PROMPT}"}


def compile_target(root: Path, target: Document, path: str = "targets.yaml") -> Document:
    """Compile a run against a target and return the target as the plan holds it."""
    plan = compile_here(root, {EVAL: evals(case(evaluators=[contains()])), path: targets(target)}, targets=path)
    return settings(plan, "default")


def settings(plan: Plan, key: str) -> Document:
    return plan.targets[key].model_dump(by_alias=True, exclude_none=True)


@pytest.mark.parametrize(
    "target",
    [
        {**GPT, "base_url": "${{ OPENAI_BASE_URL }}", "temperature": "${{ T }}", "max_retries": "${{ RETRIES }}"},
        {**GPT, "headers": {"Authorization": "${{ TOKEN }}", "X-Plain": "plain"}},
        {**GPT, "extra_body": {"user": "${{ USER_NAME }}", "n": [1, "${{ N }}"]}},
        {**GPT, "retry_status_codes": [500, "${{ STATUS }}"]},
        {**GPT, "api_key": "  ${{SPACED}} "},
        {**AGENT, "env": {"TOKEN": "${{ TOKEN }}"}, "timeout_seconds": "${{ SECONDS }}", "cwd": "${{ FOLDER }}"},
    ],
)
def test_references_to_the_environment_stay_references(
    repository: Path, monkeypatch: pytest.MonkeyPatch, target: Document
) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "TOKEN", "SECONDS", "FOLDER", "USER_NAME"):
        monkeypatch.setenv(name, "value-of-the-environment")
    (repository / ".env").write_text("OPENAI_API_KEY=value-of-the-environment\n")
    plan = compile_here(repository, {EVAL: evals(case(evaluators=[contains()])), "targets.yaml": targets(target)})
    held = plan.targets["default"].model_dump(mode="json", exclude_none=True)
    assert {name: held[name] for name in target} == target
    assert "value-of-the-environment" not in text_of(plan)


@pytest.mark.parametrize("provider", ["openai", "openai-compatible", "ollama", "vllm", "openrouter"])
def test_provider_has_one_name(repository: Path, provider: str) -> None:
    there = {**GPT, "provider": provider, "base_url": "http://127.0.0.1:1/v1"}
    assert compile_target(repository, there)["provider"] == "openai"


@pytest.mark.parametrize("provider", ["ollama", "vllm", "openrouter"])
def test_provider_that_says_where_its_server_is_keeps_its_name(repository: Path, provider: str) -> None:
    assert compile_target(repository, {**GPT, "provider": provider})["provider"] == provider


@pytest.mark.parametrize(
    ("path", "program", "compiled"),
    [
        ("targets.yaml", "codex", "codex"),
        ("targets.yaml", "./codex", "./codex"),
        ("targets.yaml", "tools/codex", "tools/codex"),
        (".agentv/targets.yaml", "../codex", "./codex"),
        (".agentv/targets.yaml", "bin/codex", ".agentv/bin/codex"),
        ("targets.yaml", "/opt/codex", "/opt/codex"),
        ("targets.yaml", "~/codex", "~/codex"),
        ("targets.yaml", "${{ CODEX }}", "${{ CODEX }}"),
    ],
)
def test_program_with_a_slash_is_a_path_and_one_without_is_looked_up(
    repository: Path, path: str, program: str, compiled: str
) -> None:
    found = compile_target(repository, {"name": "default", "provider": "codex", "executable": program}, path)
    assert found["executable"] == compiled


@pytest.mark.parametrize(
    ("path", "field", "value", "compiled"),
    [
        ("targets.yaml", "cwd", "work", "work"),
        ("targets.yaml", "cwd", ".", "."),
        (".agentv/targets.yaml", "cwd", "work", ".agentv/work"),
        (".agentv/targets.yaml", "cwd", "../work", "work"),
        (".agentv/targets.yaml", "cwd", "../../work", "../work"),
        ("targets.yaml", "cwd", "/opt/work", "/opt/work"),
        ("targets.yaml", "cwd", "~/work", "~/work"),
        ("targets.yaml", "cwd", "${{ WORK }}", "${{ WORK }}"),
    ],
)
def test_folder_of_a_command_is_relative_to_the_targets_file(
    repository: Path, path: str, field: str, value: str, compiled: str
) -> None:
    assert compile_target(repository, {**AGENT, field: value}, path)[field] == compiled


@pytest.mark.parametrize(
    ("path", "value", "compiled"),
    [
        ("targets.yaml", "certs/ca.pem", "certs/ca.pem"),
        (".agentv/targets.yaml", "certs/ca.pem", ".agentv/certs/ca.pem"),
        ("targets.yaml", "/etc/ssl/ca.pem", "/etc/ssl/ca.pem"),
        ("targets.yaml", "${{ CA }}", "${{ CA }}"),
    ],
)
def test_bundle_of_certificates_is_relative_to_the_targets_file(
    repository: Path, path: str, value: str, compiled: str
) -> None:
    assert compile_target(repository, {**GPT, "ca_bundle": value}, path)["caBundle"] == compiled


@pytest.mark.parametrize(("cwd", "compiled"), [("probe", ".agentv/probe"), ("/probe", "/probe")])
def test_folder_of_a_health_check_is_relative_to_the_targets_file(repository: Path, cwd: str, compiled: str) -> None:
    healthcheck = {"type": "command", "command_template": "true", "cwd": cwd}
    target = compile_target(repository, {**AGENT, "healthcheck": healthcheck}, ".agentv/targets.yaml")
    assert target["healthcheck"] == {"type": "command", "commandTemplate": "true", "cwd": compiled}


@pytest.mark.parametrize(
    "written",
    [
        {"name": "default", "provider": "openai", "settings": {"model": "gpt-5", "api_key": "${{ OPENAI_API_KEY }}"}},
        {"name": "default", "provider": "openai", "model": "gpt-5", "apiKey": "${{ OPENAI_API_KEY }}"},
        {"name": "default", "provider": "openai", "model": "gpt-5", "settings": {"apiKey": "${{ OPENAI_API_KEY }}"}},
        {**GPT, "settings": {"model": "another"}},
    ],
)
def test_other_ways_to_write_a_target_give_the_same(repository: Path, written: Document) -> None:
    assert compile_target(repository, written) == compile_target(repository, GPT)


def test_plan_holds_only_the_targets_that_answer_and_judge(repository: Path) -> None:
    listed = targets(
        {**AGENT, "judge_target": "judge"},
        {"name": "judge", "provider": "mock"},
        {"name": "second", "provider": "mock"},
        {"name": "unused", "provider": "mock"},
        {"name": "nobody", "provider": "mock"},
    )
    judged = [{"name": "a", "type": "llm_judge"}, {"name": "b", "type": "llm_judge", "judge_target": "second"}]
    plan = compile_here(repository, {EVAL: evals(case(evaluators=judged)), "targets.yaml": listed})
    assert sorted(plan.targets) == ["default", "judge", "second"]


def test_target_keeps_its_name_when_two_files_mean_the_same_by_it(repository: Path) -> None:
    files = {
        "evals/a/a.yaml": evals(),
        "evals/a/targets.yaml": targets(MOCK),
        "evals/b/b.yaml": evals(),
        "evals/b/targets.yaml": targets(MOCK),
    }
    plan = compile_here(repository, files)
    assert ([each.target for each in plan.cases], sorted(plan.targets)) == (["default", "default"], ["default"])


def test_target_is_told_by_its_file_when_two_files_mean_something_else_by_it(repository: Path) -> None:
    files = {
        f"evals/{name}/{kind}.yaml": document
        for name in "abc"
        for kind, document in (
            ("a", evals()),
            ("targets", targets({**MOCK, "response": "same" if name == "c" else name})),
        )
    }
    plan = compile_here(repository, files)
    assert [(each.target, settings(plan, each.target)["response"]) for each in plan.cases] == [
        ("default", "a"),
        ("default@evals/b/targets.yaml", "b"),
        ("default@evals/c/targets.yaml", "same"),
    ]


def test_nearest_targets_file_counts(repository: Path) -> None:
    files = {
        "evals/deep/a.yaml": evals(),
        "evals/.agentv/targets.yaml": targets({**MOCK, "response": "near"}),
        "targets.yaml": targets({**MOCK, "response": "far"}),
    }
    assert settings(compile_here(repository, files), "default")["response"] == "near"


KINDS: tuple[type[TargetSettings], ...] = get_args(get_args(Target.__value__)[0])


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_what_absence_means_is_what_the_description_says(kind: type[TargetSettings]) -> None:
    for field, value in kind.implied.items():
        description = kind.model_fields[field].description or ""
        assert value in ({}, []) or f"default {str(value).lower()}" in description.lower(), field


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_what_lies_outside_the_digest_are_fields(kind: type[TargetSettings]) -> None:
    assert kind.outside_digest <= kind.model_fields.keys()
    assert kind.outside_digest >= TargetSettings.outside_digest


def test_commands_of_one_name_in_two_folders_are_two_targets(repository: Path) -> None:
    files = {
        f"evals/{folder}/{name}": document
        for folder, said in (("a", "hi"), ("b", "ho"))
        for name, document in (
            ("e.yaml", evals(case(folder, evaluators=[contains()]))),
            ("targets.yaml", targets({**AGENT, "command_template": f"echo {said}"})),
        )
    }
    plan = compile_here(repository, files)
    assert list(plan.targets) == ["default", "default@evals/b/targets.yaml"]
