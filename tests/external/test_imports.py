"""Imported files give the verdicts that they have in promptfoo and AgentV, whose own programs run them here."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest

from agentv_ci.load.parse import parse_yaml
from tests.external.tools import node_modules, run
from tests.support import write
from tests.support.projects import Project

HERE = Path(__file__).parent
PROMPTFOO = "promptfoo@0.121.20"
AGENTV = "agentv@4.42.4"
QUIET = {
    "PROMPTFOO_DISABLE_TELEMETRY": "1",
    "PROMPTFOO_DISABLE_UPDATE": "1",
    "PROMPTFOO_DISABLE_REMOTE_GENERATION": "1",
    "AGENTV_TELEMETRY": "0",
}
ECHO = {"name": "echo", "provider": "cli", "command": "cp {PROMPT_FILE} {OUTPUT_FILE}"}
Verdicts = list[tuple[str, bool]]


def suites(name: str) -> list[Any]:
    """Return the suites of a file, each with the files beside it."""
    found: Any = parse_yaml((HERE / name).read_text("utf-8")).data
    return [pytest.param(suite, suite.pop("files", {}), id=key) for key, suite in found.items()]


def ours(project: Project, file: str) -> list[dict[str, Any]]:
    """Return the rows of a file after one import."""
    assert project.run("import", file, "--out", "converted").code == 0
    assert project.run("validate", "--strict", "converted").code == 0
    done = project.run("eval", "converted", "--out", "rows.jsonl", "--max-retries", "0")
    assert done.code in {0, 1}, done
    return project.rows("rows.jsonl")


@pytest.mark.slow
@pytest.mark.parametrize(("config", "files"), suites("promptfoo_configs.yaml"))
def test_promptfoo_gives_the_same_verdicts(config: dict[str, Any], files: dict[str, str], repository: Path) -> None:
    modules = node_modules(PROMPTFOO)
    project = Project(repository, env={"PATH": os.environ["PATH"]})
    project.write({**files, "promptfooconfig.yaml": json.dumps(config)})
    command = [modules / ".bin" / "promptfoo", "eval", "-c", repository / "promptfooconfig.yaml"]
    flags = ["-o", repository / "theirs.json", "--no-cache", "--no-table", "--no-progress-bar"]
    run([*command, *flags], codes=(0, 100), env={**QUIET, "PROMPTFOO_CONFIG_DIR": str(repository / "home")})
    results = project.json("theirs.json")["results"]["results"]
    theirs = [(str(each["response"]["output"]), each["success"]) for each in results]
    rows = [(row["candidate_answer"], row["verdict"] == "pass") for row in ours(project, "promptfooconfig.yaml")]
    assert {passed for _, passed in theirs} == {True, False}
    assert _sorted(rows, config) == _sorted(theirs, config)


def _sorted(verdicts: Verdicts, config: dict[str, Any]) -> Verdicts:
    # A transformation changes the answer that promptfoo reports; here the row has the answer itself, without the
    # whitespace around what a command prints.
    hidden = "transform" in json.dumps(config)
    return sorted(("", passed) if hidden else (text.strip(), passed) for text, passed in verdicts)


@pytest.mark.slow
@pytest.mark.parametrize(("suite", "files"), suites("agentv_suites.yaml"))
def test_agentv_gives_the_same_verdicts(suite: dict[str, Any], files: dict[str, str], repository: Path) -> None:
    modules = node_modules(AGENTV)
    project = Project(repository, env={"PATH": os.environ["PATH"]})
    write(repository / ".agentv", {"targets.yaml": json.dumps({"targets": [ECHO]})})
    project.write({**files, "suite.eval.yaml": json.dumps(suite)})
    command = [modules / ".bin" / "agentv", "eval", "suite.eval.yaml", "--output", "theirs"]
    run(
        ["sh", "-c", f"cd {repository} && {' '.join(map(str, command))}"],
        env={**QUIET, "HOME": str(repository / "home")},
    )
    lines = [json.loads(line) for line in project.text("theirs/index.jsonl").splitlines()]
    theirs = sorted((each["test_id"], passes(each)) for each in lines)
    rows = ours(project, "suite.eval.yaml")
    assert {passed for _, passed in theirs} == {True, False}
    assert sorted((re.sub("-[0-9a-f]{12}$", "", row["eval_id"]), row["verdict"] == "pass") for row in rows) == theirs


def passes(result: dict[str, Any]) -> bool:
    """Whether AgentV passes a test: its score is enough, and every required assertion is met."""
    assert result["execution_status"] != "execution_error", result
    return bool(result["execution_status"] == "ok")
