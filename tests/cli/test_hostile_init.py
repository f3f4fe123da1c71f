"""`agentv-ci init` where something is there already, and with names that mean something to somebody else."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from agentv_ci.cli import run
from tests.support import write

OPENAI = "{name: mine, provider: openai, model: gpt-5.6-luna, api_key: '${{ OPENAI_API_KEY }}'}"
MARK = "put there:\n"


@pytest.fixture
def project(repository: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(repository)
    return repository


def workflow(project: Path) -> Any:
    """The step that asks, of the workflow that was written."""
    text = (project / ".github/workflows/agentv.yml").read_text("utf-8")
    return YAML(typ="safe").load(text)["jobs"]["evals"]["steps"][-1]


class TestTargetsThatAreThere:
    @pytest.fixture(autouse=True)
    def targets(self, project: Path) -> None:
        write(project, {"targets.yaml": f"$schema: agentv-targets-v2.2\ntargets:\n  - {OPENAI}\n"})

    def test_workflow_passes_the_secrets_that_they_need(self, project: Path) -> None:
        assert run(["init"]) == 0
        assert "OPENAI_API_KEY" in workflow(project).get("env", {})

    def test_provider_that_is_not_written_is_not_prepared_for(
        self, project: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert run(["init", "--provider", "anthropic"]) == 0
        assert "export ANTHROPIC_API_KEY" not in capsys.readouterr().out
        assert "ANTHROPIC_API_KEY" not in workflow(project).get("env", {})


class TestParts:
    def test_workflow_of_a_second_part_can_be_put_where_it_is_told(
        self, project: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        told: dict[str, str] = {}
        for part in ("one", "two"):
            assert run(["init", f"apps/{part}"]) == 0
            said, _, _ = capsys.readouterr().out.partition("next:\n")
            match = re.search(r"^(\S+\.yml) is .*:\n", said, re.MULTILINE)
            assert match is not None
            told[match[1]] = told.get(match[1], "") + said[match.end() :]
            write(project, told)
        for text in told.values():
            assert YAML(typ="safe").load(text)["jobs"]

    def test_name_of_a_folder_is_no_expression(self, project: Path, capsys: pytest.CaptureFixture[str]) -> None:
        assert run(["init", "apps/${{ github.token }}"]) == 0
        assert "working-directory: apps/${{ github.token }}\n" not in capsys.readouterr().out


class TestVariables:
    def test_deployment_that_was_named_needs_no_variable(
        self, project: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert run(["init", "--provider", "azure-openai", "--model", "gpt-x"]) == 0
        assert "AZURE_DEPLOYMENT_NAME" not in (project / ".agentv/targets.yaml").read_text("utf-8")
        assert "AZURE_DEPLOYMENT_NAME" not in capsys.readouterr().out
        assert "AZURE_DEPLOYMENT_NAME" not in workflow(project)["env"]

    def test_model_that_is_a_variable_is_passed(self, project: Path, capsys: pytest.CaptureFixture[str]) -> None:
        assert run(["init", "--provider", "openai", "--model", "${{ MY_MODEL }}"]) == 0
        assert "export MY_MODEL=" in capsys.readouterr().out
        assert "MY_MODEL" in workflow(project)["env"]


@pytest.mark.parametrize(
    "command",
    [
        *("echo hi", "jq '{a: 1}' {PROMPT_FILE}", "echo {PROMPT} {{x}}", "  echo {PROMPT}  ", "a: b # {PROMPT}"),
        *("{PROMPT}", "$ {PROMPT}", r"echo \x41 \g<0> {PROMPT}", "TARGET: MODEL COMMAND {PROMPT}", "- {PROMPT}"),
        *(
            "| {PROMPT}",
            "&a {PROMPT}",
            "!x {PROMPT}",
            "%x {PROMPT}",
            "@x {PROMPT}",
            "::add-mask::e {PROMPT}",
            "${{ X }}",
        ),
    ],
)
def test_command_of_any_kind_is_valid(command: str, project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["init", "--provider", "cli", "--command", command, "--no-workflow", "--no-editor"]) == 0
    loaded = YAML(typ="safe").load((project / ".agentv/targets.yaml").read_text("utf-8"))
    assert loaded["targets"][0]["command_template"] == command
    capsys.readouterr()
    assert run(["validate", "--strict", "."]) == 0
