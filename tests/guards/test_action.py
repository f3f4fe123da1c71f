"""The action: its inputs, outputs and options agree; its dependencies are locked; its actions are pinned."""

from __future__ import annotations

import re
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

from agentv_ci.cli import github_base_command, github_publish_command, github_run_command
from agentv_ci.contracts.action import ActionVerdict
from tests import render_docs
from tests.support import REPOSITORY

# Public names: removing one breaks workflows of users.
INPUTS = (
    "evals", "results", "results-from", "targets", "target", "workers", "repeat", "threshold", "min-pass-rate",
    "min-mean-score", "max-errors", "gate-from", "missing-cases",
    "max-cost", "baseline", "only-changed", "shard", "balance", "dry-run", "validate-only", "prove",
    "working-directory", "env-file", "comment", "comment-key", "base-artifact", "history", "check", "annotations",
    "fail-on", "results-dir", "python-path", "github-token", "args",
)  # fmt: skip
OUTPUTS = (
    "verdict", "passed", "failed", "errored", "total", "pass-rate", "mean-score", "cost-usd", "results", "report",
    "junit", "html", "plan",
)  # fmt: skip
NOT_OPTIONS = {"working-directory", "github-token", "python-path"}
INTERNAL = {
    *("AGENTV_CI", "AGENTV_INSTALLED", "AGENTV_QUARANTINE", "AGENTV_RUN_OUTCOME"),
    *("AGENTV_BASE_TREE", "AGENTV_BASE_PROBLEM"),
}
"""Variables that tell a step about the others and the job."""

ACTION = REPOSITORY / "action.yml"
SETUP = REPOSITORY / ".github" / "actions" / "setup" / "action.yml"
WORKFLOWS = [
    *(REPOSITORY / ".github" / "workflows").glob("*.yml"),
    *(REPOSITORY / "docs" / "examples" / "workflows").glob("*.yml"),
    REPOSITORY / "agentv_ci" / "scaffold" / "files" / "workflow.yml",
]
PROJECT = tomllib.loads((REPOSITORY / "pyproject.toml").read_text("utf-8"))
LOCK = tomllib.loads((REPOSITORY / "pylock.toml").read_text("utf-8"))["packages"]


def read(path: Path) -> Any:
    return yaml.safe_load(path.read_text("utf-8"))


action = read(ACTION)
STEPS = {step["id"]: step for step in action["runs"]["steps"]}
COMMANDS = {
    "base": github_base_command.command,
    "run": github_run_command.command,
    "publish": github_publish_command.command,
}


def options(name: str) -> list[click.Option]:
    return [each for each in COMMANDS[name].params if isinstance(each, click.Option)]


def test_inputs_and_outputs() -> None:
    assert (tuple(action["inputs"]), tuple(action["outputs"])) == (INPUTS, OUTPUTS)
    for name, each in action["inputs"].items():
        assert each["description"], name
        assert each.keys() == {"description", "default"}, name
    values = {name: output["value"] for name, output in action["outputs"].items()}
    # What a step publishes after a failed one may be forged.
    assert values.pop("verdict") == "${{ steps.run.outcome == 'success' && steps.publish.outputs.verdict || 'error' }}"
    assert values == {name: f"${{{{ steps.publish.outputs.{name} }}}}" for name in values}


def test_token_is_given_before_the_run_and_after_a_successful_one_alone() -> None:
    with_token = {
        (step_id, name): value
        for step_id, step in STEPS.items()
        for name, value in step.get("env", {}).items()
        if "token" in value
    }
    assert with_token == {
        ("base", "GITHUB_TOKEN"): "${{ inputs.github-token }}",
        ("publish", "GITHUB_TOKEN"): "${{ steps.run.outcome == 'success' && inputs.github-token || '' }}",
    }
    assert {STEPS[step_id]["shell"] for step_id, _ in with_token} == {"/bin/sh {0}"}
    names = [*STEPS]
    assert names.index("base") < names.index("run") < names.index("publish")


@pytest.mark.parametrize("kind", ["inputs", "outputs"])
def test_page_has_a_row_for_each(kind: str) -> None:
    table = re.split(rf"<!-- action: {kind} -->", render_docs.GITHUB_PAGE.read_text("utf-8"))[1].split("<!-- /")[0]
    assert re.findall(r"^\| `([\w-]+)` \|", table, re.MULTILINE) == [*action[kind]]


def test_verdicts_are_those_of_the_contract() -> None:
    words = re.findall(r"\w+", action["outputs"]["verdict"]["description"])
    assert [each for each in words if each != "or"] == [*get_args(ActionVerdict)]


def test_inputs_are_passed_as_variables() -> None:
    given = {value: name for step in STEPS.values() for name, value in step.get("env", {}).items()}
    for name in action["inputs"].keys() - NOT_OPTIONS:
        assert given[f"${{{{ inputs.{name} }}}}"] == f"AGENTV_{name.upper().replace('-', '_')}"


@pytest.mark.parametrize("name", COMMANDS)
def test_options_of_a_step_are_inputs(name: str) -> None:
    given = {variable for variable in STEPS[name]["env"] if variable.startswith("AGENTV_")} - INTERNAL
    assert {str(each.envvar) for each in options(name) if each.envvar} - INTERNAL == given
    shown = [each for each in options(name) if not each.hidden and each.expose_value]
    assert [each.name for each in shown if not each.envvar] == (["exit_zero"] if name == "run" else [])
    for option in options(name):
        if option.envvar and option.envvar not in INTERNAL:
            own = action["inputs"][str(option.envvar).removeprefix("AGENTV_").lower().replace("_", "-")]
            default = option.to_info_dict()["default"]
            if option.name != "comment_key":
                assert own["default"] == {None: "", False: "false"}.get(default, option.default)


def test_step_of_agents_has_no_token() -> None:
    assert [name for name, step in STEPS.items() if "token" in str(step).lower()] == ["base", "publish"]
    assert STEPS["run"]["run"].startswith("exec ")


def test_workflows_pin_each_action_to_one_commit_and_limit_the_time_of_jobs() -> None:
    pins = defaultdict(set)
    for path in (ACTION, SETUP, *WORKFLOWS):
        for line in re.findall(r"uses: (\S.*)$", path.read_text("utf-8"), re.MULTILINE):
            if not line.startswith((".", "org/")):
                name, pin = line.split("@", 1)
                assert re.fullmatch(r"[0-9a-f]{40} # v\d+\.\d+\.\d+", pin), f"{path.name}: {line}"
                pins[name].add(pin)
        assert all("${{" not in script for script in scripts(read(path))), path.name
        for name, job in read(path).get("jobs", {}).items():
            assert "timeout-minutes" in job or "uses" in job, f"{path.name}: {name}"
    assert {name: len(each) for name, each in pins.items()} == dict.fromkeys(pins, 1)


def test_python_versions_are_those_of_the_package() -> None:
    for path in (ACTION, SETUP):
        (step,) = (each for each in read(path)["runs"]["steps"] if each.get("id") == "python")
        first, last = step["with"]["python-version"].split(" - ")
        required = SpecifierSet(PROJECT["project"]["requires-python"])
        assert f">={first}" == str(required)
        assert Version(last) in required
        assert step["with"]["update-environment"] is False
        assert [each for each in scripts(read(path)) if "install.py" in each and '\nexec "$PYTHON" -I -S ' in each]


def test_dependencies_are_locked() -> None:
    locked = {each["name"]: Version(each["version"]) for each in LOCK}
    for text in PROJECT["project"]["dependencies"]:
        required = Requirement(text)
        assert locked[canonicalize_name(required.name)] in required.specifier, f"{text}: run: make lock"
    missing = {name: needs - locked.keys() for name in locked if (needs := needed_by(name)) - locked.keys()}
    assert missing == {}, "run: make lock"


def test_locked_packages_have_wheels_with_hashes() -> None:
    for package in LOCK:
        for wheel in package["wheels"]:
            assert re.fullmatch("[0-9a-f]{64}", wheel["hashes"]["sha256"])
            assert re.fullmatch(r"https://files\.pythonhosted\.org/packages/[\w/]+/[\w.+-]+\.whl", wheel["url"])


def scripts(document: Any) -> Iterator[str]:
    """Yield every `run:` of a document."""
    if isinstance(document, dict):
        for key, value in document.items():
            if key == "run" and isinstance(value, str):
                yield value
            else:
                yield from scripts(value)
    elif isinstance(document, list):
        for each in document:
            yield from scripts(each)


def needed_by(name: str) -> set[str]:
    """Return the dependencies of an installed package on this platform; none if it is not installed."""
    try:
        found = [Requirement(each) for each in metadata.requires(name) or ()]
    except metadata.PackageNotFoundError:
        return set()
    applies = (each for each in found if each.marker is None or each.marker.evaluate({"extra": ""}))
    return {canonicalize_name(each.name) for each in applies}
