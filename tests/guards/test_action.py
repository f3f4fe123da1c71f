"""The action hands on what it promises: inputs, outputs, variables, and dependencies that are locked."""

from __future__ import annotations

import re
import subprocess
import tomllib
from collections import defaultdict
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from typing import Any, get_args

import click
import pytest
import yaml
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import Version

from agentv_ci.cli.github_command import publish_command, run_command
from agentv_ci.contracts.action import ActionVerdict
from tests import render_docs
from tests.support import REPOSITORY

INPUTS = (
    "evals", "targets", "target", "workers", "repeat", "threshold", "min-pass-rate", "max-cost", "baseline",
    "only-changed", "shard", "dry-run", "validate-only", "working-directory", "env-file", "comment", "comment-key",
    "annotations", "fail-on", "results-dir", "github-token", "args",
)  # fmt: skip
OUTPUTS = (
    "verdict", "passed", "failed", "errored", "total", "pass-rate", "mean-score", "cost-usd", "results", "report",
    "junit", "html", "plan",
)  # fmt: skip
ELSEWHERE = {"working-directory", "github-token"}
"""Inputs that are no options: where steps run, and the token under the name that everybody knows."""

ACTION = REPOSITORY / "action.yml"
SETUP = REPOSITORY / ".github" / "actions" / "setup" / "action.yml"
INSTALL = (REPOSITORY / ".github" / "actions" / "install.sh").read_text("utf-8")
WORKFLOWS = [
    *(REPOSITORY / ".github" / "workflows").glob("*.yml"),
    *(REPOSITORY / "docs" / "examples" / "workflows").glob("*.yml"),
    REPOSITORY / "agentv_ci" / "scaffold" / "files" / "workflow.yml",
]
PROJECT = tomllib.loads((REPOSITORY / "pyproject.toml").read_text("utf-8"))
LOCK = (REPOSITORY / "requirements.lock").read_text("utf-8")


def read(path: Path) -> Any:
    return yaml.safe_load(path.read_text("utf-8"))


action = read(ACTION)
STEPS = {step["id"]: step for step in action["runs"]["steps"]}
COMMANDS = {"run": run_command, "publish": publish_command}


class TestPromises:
    def test_inputs_are_the_promised_ones(self) -> None:
        assert tuple(action["inputs"]) == INPUTS

    def test_outputs_are_the_promised_ones(self) -> None:
        assert tuple(action["outputs"]) == OUTPUTS

    def test_every_output_comes_from_the_step_that_publishes(self) -> None:
        for name, output in action["outputs"].items():
            assert output["value"] == f"${{{{ steps.publish.outputs.{name} }}}}"

    def test_every_input_has_a_description_and_a_default(self) -> None:
        for name, each in action["inputs"].items():
            assert each["description"], name
            assert "default" in each, name
            assert "required" not in each, name

    @pytest.mark.parametrize("kind", ["inputs", "outputs"])
    def test_github_page_has_a_row_for_each(self, kind: str) -> None:
        table = re.split(rf"<!-- action: {kind} -->", render_docs.GITHUB_PAGE.read_text("utf-8"))[1].split("<!-- /")[0]
        assert re.findall(r"^\| `([\w-]+)` \|", table, re.MULTILINE) == [*action[kind]]

    def test_verdicts_are_those_of_the_contract(self) -> None:
        words = re.findall(r"\w+", action["outputs"]["verdict"]["description"])
        assert [each for each in words if each != "or"] == [*get_args(ActionVerdict)]


class TestHandingOn:
    def test_every_input_reaches_a_step_by_a_variable(self) -> None:
        given = {value: name for step in STEPS.values() for name, value in step.get("env", {}).items()}
        for name in action["inputs"]:
            variable = given.get(f"${{{{ inputs.{name} }}}}")
            if name in ELSEWHERE:
                continue
            assert variable == f"AGENTV_{name.upper().replace('-', '_')}"

    def test_no_script_holds_an_expression(self) -> None:
        for path in (ACTION, SETUP, *WORKFLOWS):
            for script in scripts(read(path)):
                assert "${{" not in script, path.name

    @pytest.mark.parametrize("name", COMMANDS)
    def test_every_option_of_a_step_is_an_input_and_the_other_way_round(self, name: str) -> None:
        known = {str(each.envvar) for each in COMMANDS[name].params if isinstance(each, click.Option) and each.envvar}
        given = {variable for variable in STEPS[name]["env"] if variable.startswith("AGENTV_")}
        assert known == given - {"AGENTV_CI"}

    @pytest.mark.parametrize("name", COMMANDS)
    def test_every_option_can_be_given_by_the_environment(self, name: str) -> None:
        options = [each for each in COMMANDS[name].params if isinstance(each, click.Option)]
        shown = [each for each in options if not each.hidden and each.expose_value]
        without = [each.name for each in shown if not each.envvar]
        assert without == (["exit_zero"] if name == "run" else [])

    @pytest.mark.parametrize("name", COMMANDS)
    def test_default_of_an_input_is_that_of_its_option(self, name: str) -> None:
        for option in COMMANDS[name].params:
            if option.envvar:
                given = action["inputs"][str(option.envvar).removeprefix("AGENTV_").lower().replace("_", "-")][
                    "default"
                ]
                assert given == {None: "", False: "false"}.get(option.to_info_dict()["default"], option.default)

    def test_only_the_step_that_publishes_has_the_token(self) -> None:
        with_token = [name for name, step in STEPS.items() if "token" in str(step).lower()]
        assert with_token == ["publish"]

    def test_agents_run_in_the_place_of_the_shell(self) -> None:
        assert STEPS["run"]["run"].startswith("exec ")


class TestPins:
    def test_one_version_of_every_action_of_others(self) -> None:
        pins = defaultdict(set)
        for path in (ACTION, SETUP, *WORKFLOWS):
            for line in re.findall(r"uses: (\S.*)$", path.read_text("utf-8"), re.MULTILINE):
                if not line.startswith((".", "org/")):
                    name, pin = line.split("@", 1)
                    assert re.fullmatch(r"[0-9a-f]{40} # v\d+\.\d+\.\d+", pin), f"{path.name}: {line}"
                    pins[name].add(pin)
        assert {name: len(each) for name, each in pins.items()} == dict.fromkeys(pins, 1)

    def test_every_checkout_leaves_no_token(self) -> None:
        for path in WORKFLOWS:
            text = path.read_text("utf-8")
            assert text.count("uses: actions/checkout@") == text.count("persist-credentials: false"), path.name

    def test_every_job_has_a_limit(self) -> None:
        for path in WORKFLOWS:
            for name, job in read(path)["jobs"].items():
                assert "timeout-minutes" in job or "uses" in job, f"{path.name}: {name}"


class TestInstalling:
    def test_python_is_one_the_package_runs_on(self) -> None:
        for path in (ACTION, SETUP):
            (step,) = (each for each in read(path)["runs"]["steps"] if each.get("id") == "python")
            first, last = step["with"]["python-version"].split(" - ")
            wanted = SpecifierSet(PROJECT["project"]["requires-python"])
            assert Version(first) in wanted
            assert Version(last) in wanted
            assert f">={first}" == str(wanted)
            assert step["with"]["update-environment"] is False

    def test_both_actions_install_the_same_way(self) -> None:
        scripts_of = {path: [each for each in scripts(read(path)) if "install.sh" in each] for path in (ACTION, SETUP)}
        assert [len(each) for each in scripts_of.values()] == [1, 1]

    def test_every_dependency_is_locked_at_a_version_that_will_do(self) -> None:
        locked = {canonicalize_name(each.name): each for each in requirements()}
        for text in (*PROJECT["project"]["dependencies"], *PROJECT["build-system"]["requires"]):
            wanted = Requirement(text)
            name = canonicalize_name(wanted.name)
            assert name in locked, f"{name}: run: make lock"
            assert pinned(locked[name]) in wanted.specifier, f"{name}: run: make lock"

    def test_every_locked_package_has_one_version_and_hashes(self) -> None:
        entries = [each for each in LOCK.replace("\\\n", " ").splitlines() if each and not each.startswith("#")]
        assert len(entries) == len([*requirements()])
        for entry in entries:
            assert re.search(r" --hash=sha256:[0-9a-f]{64}( |$)", entry), entry

    def test_nothing_that_is_locked_needs_something_that_is_not(self) -> None:
        names = {canonicalize_name(each.name) for each in requirements()}
        needed = {each.name: needs(each.name) for each in requirements()}
        missing = {name: each - names for name, each in needed.items() if each - names}
        assert missing == {}, "run: make lock"

    def test_lock_names_no_index(self) -> None:
        assert "://" not in LOCK

    def test_script_takes_nothing_from_the_workspace_and_little_from_elsewhere(self) -> None:
        assert "set -euo pipefail" in INSTALL
        assert "--require-hashes" in INSTALL
        assert "--no-index" in INSTALL
        for line in INSTALL.splitlines():
            if '"$PYTHON"' in line:
                assert '"$PYTHON" -I ' in line, line
        for word in ("curl", "wget", "eval", "sudo", "GITHUB_ENV", "GITHUB_PATH", "GITHUB_WORKSPACE", "http"):
            assert word not in INSTALL.replace("agentv_ci eval", ""), word

    def test_script_is_read_by_the_shell_without_complaint(self) -> None:
        path = REPOSITORY / ".github" / "actions" / "install.sh"
        done = subprocess.run(["bash", "-n", path], capture_output=True, text=True, timeout=60, check=False)
        assert (done.returncode, done.stderr) == (0, "")


def scripts(document: Any) -> Iterator[str]:
    """Yield every `run:`, wherever it stands."""
    if isinstance(document, dict):
        for key, value in document.items():
            if key == "run" and isinstance(value, str):
                yield value
            else:
                yield from scripts(value)
    elif isinstance(document, list):
        for each in document:
            yield from scripts(each)


def requirements() -> Iterator[Requirement]:
    """Yield what is locked."""
    for line in LOCK.splitlines():
        if line and not line.startswith((" ", "#")):
            yield Requirement(line.removesuffix(" \\"))


def needs(name: str) -> set[str]:
    """Return what an installed package needs here; of one that is not installed nothing is known."""
    try:
        found = [Requirement(each) for each in metadata.requires(name) or ()]
    except metadata.PackageNotFoundError:
        return set()
    return {
        canonicalize_name(each.name) for each in found if each.marker is None or each.marker.evaluate({"extra": ""})
    }


def pinned(requirement: Requirement) -> Version:
    (only,) = requirement.specifier
    assert only.operator == "=="
    return Version(only.version)
