"""Eval files of AgentV: their workspaces, targets, cases in other files, and what graders need."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agentv_ci.load.parse import parse_yaml
from tests.support.projects import Project

CASE = {"id": "a", "criteria": "Greets", "input": "Hi", "assertions": [{"type": "contains", "value": "hello"}]}
AGENT = {"name": "agent", "provider": "cli", "command": "./agent.sh {PROMPT_FILE} {OUTPUT_FILE}", "cwd": "../.."}
TARGETS = {"targets": [AGENT, {"name": "llm", "provider": "openai", "model": "m"}]}


@pytest.fixture
def project(repository: Path) -> Project:
    project = Project(repository)
    project.write({".agentv/targets.yaml": json.dumps(TARGETS)})
    return project


def imported(project: Project, suite: dict[str, Any], files: dict[str, str] | None = None) -> dict[str, Any]:
    """Return the eval file of a suite in `evals/x`, after checking that it is valid."""
    project.write({"evals/x/s.eval.yaml": json.dumps({"tests": [CASE], "target": "agent", **suite}), **(files or {})})
    assert project.run("import", "evals/x/s.eval.yaml", "--out", "ours", "--overwrite").code == 0
    assert project.run("validate", "--strict", "ours").code == 0
    document: Any = parse_yaml(project.text("ours/s.eval.yaml")).data
    found: dict[str, Any] = document
    return found


def targets(project: Project) -> dict[str, dict[str, Any]]:
    listed: Any = parse_yaml(project.text("ours/targets.yaml")).data
    return {each.pop("name"): each for each in listed["targets"]}


def test_commands_run_in_a_folder_relative_to_the_eval_file(project: Project) -> None:
    imported(project, {})
    assert targets(project)["agent"]["cwd"] == ".."


def test_a_target_may_stand_for_another_one(project: Project) -> None:
    project.write({".agentv/targets.yaml": json.dumps({"targets": [{"name": "it", "use_target": "agent"}, AGENT]})})
    imported(project, {"target": "it"})
    assert targets(project)["it"] == targets(project)["agent"]


def test_a_template_and_repositories_become_a_workspace(project: Project) -> None:
    repos = [
        {"path": "./lib", "source": {"type": "git", "url": "https://example.com/lib.git"}, "checkout": {"ref": "v1"}},
        {"path": "./app", "repo": "https://example.com/app.git"},
    ]
    hooks = {"before_all": {"command": ["node", "setup.mjs"]}, "after_each": {"reset": "fast"}}
    suite = {"workspace": {"template": "../template", "repos": repos, "hooks": hooks, "docker": {"image": "python"}}}
    made = imported(project, suite, {"evals/template/a.txt": "a"})
    assert made["execution"]["workspace"] == {
        "from": "../evals/template",
        "setup": [
            ["git", "clone", "--quiet", "https://example.com/lib.git", "./lib"],
            ["git", "-C", "./lib", "checkout", "--quiet", "v1"],
            ["git", "clone", "--quiet", "https://example.com/app.git", "./app"],
        ],
    }
    assert "cwd" not in targets(project)["agent"]
    report = project.text("ours/MIGRATION.md")
    assert all(each in report for each in ("`workspace.hooks.before_all.command`", "`workspace.docker`"))


@pytest.mark.parametrize(
    ("suite", "reason"),
    [
        ({"target": "llm", "workspace": {"template": "../template"}}, "target 'llm' is not a command"),
        ({"workspace": {"template": "../missing"}}, "'../missing' has no files"),
        ({"workspace": "missing.yaml"}, "'missing.yaml' was not found"),
        ({"workspace": {"repos": [{"source": {"type": "local", "path": "x"}}]}}, "with an address are cloned"),
    ],
)
def test_a_workspace_that_cannot_be_made_is_reported(suite: dict[str, Any], reason: str, project: Project) -> None:
    made = imported(project, suite, {"evals/template/a.txt": "a"})
    assert "workspace" not in made["execution"]
    assert reason in project.text("ours/MIGRATION.md")


def test_a_case_adds_to_the_workspace_of_its_file(project: Project) -> None:
    case = {**CASE, "workspace": {"repos": [{"repo": "https://example.com/app.git", "path": "app"}]}}
    suite = {"tests": [case], "workspace": {"template": "../template"}}
    made = imported(project, suite, {"evals/template/a.txt": "a"})
    own = made["evalcases"][0]["execution"]["workspace"]
    assert (own["from"], own["setup"][0][-1]) == ("../evals/template", "app")


def test_each_folder_of_cases_is_a_case_with_its_name(project: Project) -> None:
    files = {f"evals/x/cases/{name}/case.yaml": json.dumps({**CASE, "id": None}) for name in ("one", "two")}
    assert [each["id"] for each in imported(project, {"tests": "./cases/"}, files)["evalcases"]] == ["one", "two"]


def test_a_file_without_tests_has_a_skipped_case(project: Project) -> None:
    made = imported(project, {"tests": None})
    assert [each["skip"] for each in made["evalcases"]] == ["Not imported: the file has no tests"]


def test_files_are_found_from_the_folder_of_the_eval_file_up(project: Project) -> None:
    case = {**CASE, "input_files": ["docs/a.md", "/docs/a.md", "docs/b.md"]}
    content = imported(project, {"tests": [case]}, {"docs/a.md": "a"})["evalcases"][0]["input"][-1]["content"]
    assert content == [{"type": "file", "value": "../docs/a.md"}] * 2 + ["[docs/b.md]"]


def test_settings_of_blocks_are_reported(project: Project) -> None:
    block = {"type": "image_url", "value": "https://example.com/a.png", "detail": "high"}
    case = {**CASE, "input": [{"role": "user", "content": [block]}]}
    made = imported(project, {"tests": [case], "target": "llm"})
    content = made["evalcases"][0]["input"][0]["content"]
    assert content == [{"type": "image", "value": "https://example.com/a.png"}]
    assert "`content.detail`" in project.text("ours/MIGRATION.md")


def test_criteria_of_a_judge_have_neither_its_prompt_nor_its_temperature(project: Project) -> None:
    judge = {
        "type": "llm-grader",
        "prompt": "p.md",
        "temperature": 0,
        "metric": "m",
        "rubrics": [{"outcome": "Greets"}],
    }
    made = imported(project, {"tests": [{**CASE, "assertions": [judge]}]}, {"evals/x/p.md": "Score it"})
    assert made["evalcases"][0]["evaluators"] == [{"rubric": ["Greets"], "name": "m"}]
    assert all(f"`llm-grader.{each}`" in project.text("ours/MIGRATION.md") for each in ("prompt", "temperature"))


def test_a_placeholder_in_a_script_becomes_its_argument(project: Project) -> None:
    commands = {
        "bash -c 'echo done > {OUTPUT_FILE}'": """bash -c 'echo done > "$1"' bash {OUTPUT_FILE}""",
        """sh -lc "cat > \\"{OUTPUT_FILE}\\"" """: """sh -lc 'cat > "$1"' sh {OUTPUT_FILE}""",
        """./agent.sh "{PROMPT}" '{OUTPUT_FILE}'""": "./agent.sh {PROMPT} {OUTPUT_FILE}",
        "bash -c 'x $A {PROMPT} {OUTPUT_FILE}'": """bash -c 'x $A "$1" "$2"' bash {PROMPT} {OUTPUT_FILE}""",
    }
    listed = [{**AGENT, "name": f"agent-{at}", "command": command} for at, command in enumerate(commands)]
    project.write({".agentv/targets.yaml": json.dumps({"targets": listed})})
    imported(project, {"target": "agent-0"})
    assert [each["command_template"] for each in targets(project).values()] == list(commands.values())


def test_a_placeholder_within_other_quotes_is_a_target_that_fails(project: Project) -> None:
    agent = {**AGENT, "command": "./agent.sh --to 'x {OUTPUT_FILE}'"}
    project.write({".agentv/targets.yaml": json.dumps({"targets": [agent]})})
    imported(project, {})
    assert targets(project)["agent"]["provider"] == "mock"
    assert "a placeholder is inside quotes" in project.text("ours/MIGRATION.md")


def test_a_lost_check_costs_its_case(project: Project) -> None:
    unknown = {**CASE, "id": "b", "assertions": [*CASE["assertions"], {"type": "unheard-of"}]}
    cases = imported(project, {"tests": [CASE, unknown]})["evalcases"]
    assert [each.get("skip") for each in cases] == [None, "Not imported: its checks could not be imported: unheard-of"]


def test_a_lost_check_of_the_file_costs_all_its_cases(project: Project) -> None:
    cases = imported(project, {"tests": [CASE, {**CASE, "id": "b"}], "assertions": [{"type": "unheard-of"}]})[
        "evalcases"
    ]
    assert all("unheard-of" in each["skip"] for each in cases)


TEST: dict[str, Any] = {"id": "a", "vars": {"input": "Hi"}, "assert": ["Greets"]}
PROMPTED: dict[str, Any] = {"prompts": ["{{ input }}"], "target": None, "tests": [TEST]}


@pytest.mark.parametrize(
    ("provider", "target"),
    [
        ("openai:gpt-4o", {"provider": "openai", "model": "gpt-4o"}),
        ({"id": "openai:responses:gpt-5", "label": "it"}, {"provider": "openai", "model": "gpt-5"}),
        ({"anthropic:messages:claude-9": {"label": "it"}}, {"provider": "anthropic", "model": "claude-9"}),
        ({"id": "agentv:claude-cli", "config": {"model": "m"}}, {"provider": "claude-code", "model": "m"}),
        ({"id": "openai:codex-sdk"}, {"provider": "codex"}),
        ({"id": "anthropic:claude-agent-sdk"}, {"provider": "claude-code"}),
        (
            {"id": "agentv:pi-rpc"},
            {
                "provider": "mock",
                "error": {
                    "kind": "request",
                    "message": "placeholder: configure 'agentv-pi-rpc' in ours/targets.yaml:5",
                },
            },
        ),
        ("file://asked.yaml", {"provider": "gemini", "model": "g"}),
    ],
)
def test_providers_of_version_5_become_targets(provider: Any, target: dict[str, Any], project: Project) -> None:
    project.write({".agentv/targets.yaml": "targets: []\n"})
    files = {"evals/x/asked.yaml": json.dumps([{"id": "gemini:g"}])}
    made = imported(project, {**PROMPTED, "providers": [provider]}, files)
    found = targets(project)[made["execution"]["target"]]
    assert {key: value for key, value in found.items() if key != "judge_target"} == target


@pytest.mark.parametrize(
    ("suite", "reason"),
    [
        ({"default_test": {"options": {"transform": "output.trim()"}}}, "a transform of the answer"),
        ({"tests": [{**TEST, "assert_scoring_function": "file://s.js"}]}, "a program scores it"),
        ({"tests": [{**TEST, "assert": [{"type": "contains", "value": "a", "transform": "x"}]}]}, "contains"),
        ({"prompts": ["file://missing.md"]}, "its prompt could not be read"),
        ({"prompts": [{"function": "make.ts"}]}, "its prompt could not be read"),
        ({"tests": [{**TEST, "vars": {"input": "{% if a %}b{% endif %}"}}]}, "more than variables"),
        ({"tests": [{**TEST, "assert": ["Is {{ input | upper }}"]}]}, "more than variables"),
        ({"tests": [{**TEST, "assert": ["Is {{ env.NAME }}"]}]}, "it needs the environment variables NAME"),
    ],
)
def test_what_cannot_be_kept_skips_the_case(suite: dict[str, Any], reason: str, project: Project) -> None:
    case = imported(project, {**PROMPTED, "target": "agent", **suite})["evalcases"][0]
    assert reason in case["skip"]


def test_names_without_a_value_are_empty_as_there(project: Project) -> None:
    test = {**TEST, "vars": {"input": "Hi {{ nobody }}, {{ vars.who.name }}", "who": {"name": "Ada"}}}
    case = imported(project, {**PROMPTED, "target": "agent", "tests": [test]})["evalcases"][0]
    assert (case["input"], case["vars"]) == (
        "Hi {{ nobody }}, {{ who.name }}",
        [{"who": {"name": "Ada"}, "nobody": ""}],
    )


def test_a_container_of_an_environment_is_that_of_the_workspace(project: Project) -> None:
    recipe = {"type": "docker", "image": "python:3.12", "workdir": "/app", "context": ".", "env": {"A": "b"}}
    made = imported(
        project,
        {**PROMPTED, "target": "agent", "environment": "file://env.yaml"},
        {"evals/x/env.yaml": json.dumps(recipe)},
    )
    assert made["execution"]["workspace"] == {"isolation": "container", "image": "python:3.12"}
    report = project.text("ours/MIGRATION.md")
    assert all(f"`environment.{each}`" in report for each in ("context", "env"))


def test_checks_called_not_are_negated(project: Project) -> None:
    checks = [
        {"type": f"not-{kind}", "value": "a", **more}
        for kind in ("contains", "icontains")
        for more in ({}, {"negate": True})
    ]
    case = imported(project, {"tests": [{**CASE, "assertions": checks}]})["evalcases"][0]
    assert [each.get("negate", False) for each in case["evaluators"]] == [True, False] * 2
