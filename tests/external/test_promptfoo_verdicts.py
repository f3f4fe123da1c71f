"""Imported configs of promptfoo give the verdict that promptfoo itself gives, test by test."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agentv_ci.load.parse import parse_yaml
from tests.external.test_imports import PROMPTFOO, QUIET
from tests.external.tools import node_modules, run
from tests.support.projects import Project

MATRIX: Any = parse_yaml(Path(__file__).with_name("promptfoo_matrix.yaml").read_text("utf-8")).data
CHUNK = 200
"""Tests of one config."""
DIFFERENT = {"JSON in a code fence": ("is-json", "```json")}
"""Documented difference → the type of the assertion and what the answer begins with."""


def of_matrix() -> Iterator[dict[str, Any]]:
    """Yield the tests of the matrix, each with a description of its own."""
    number = 0
    for assertion in MATRIX["assertions"]:
        for answer in MATRIX["answers"]:
            number += 1
            yield {
                "description": f"t-{number}",
                "vars": {"answer": answer, "n": 2, "list": [1, 2]},
                "assert": [assertion],
            }
    for test in MATRIX["tests"]:
        number += 1
        yield {"description": f"t-{number}", **test}


TESTS = list(of_matrix())


@pytest.mark.slow
@pytest.mark.parametrize("start", range(0, len(TESTS), CHUNK))
def test_every_verdict_is_that_of_promptfoo(start: int, repository: Path) -> None:
    project = Project(repository, env={"PATH": os.environ["PATH"]})
    tests = TESTS[start : start + CHUNK]
    config = {"prompts": ["{{answer}}"], "providers": ["echo"], "tests": tests}
    project.write({"promptfooconfig.yaml": json.dumps(config)})
    theirs, ours = verdicts_of_promptfoo(project), verdicts_of_import(project)
    assert ours.keys() <= theirs.keys()
    different = [
        {**test, "promptfoo": theirs[name], "agentv-ci": ours.get(name, "no row")}
        for test in tests
        if ours.get(name := test["description"]) is not theirs[name] and not is_documented(test)
    ]
    assert different == []


def is_documented(test: dict[str, Any]) -> bool:
    """Whether the guide names the difference."""
    kinds = {assertion["type"].removeprefix("not-") for assertion in test["assert"]}
    answer = str(test["vars"]["answer"])
    return any(kind in kinds and answer.startswith(text) for kind, text in DIFFERENT.values())


def verdicts_of_promptfoo(project: Project) -> dict[str, bool]:
    """Return whether promptfoo passes each test, by its description."""
    modules, folder = node_modules(PROMPTFOO), project.folder
    command = [modules / ".bin" / "promptfoo", "eval", "-c", folder / "promptfooconfig.yaml"]
    flags = ["-o", folder / "theirs.json", "--no-cache", "--no-table", "--no-progress-bar"]
    env = {**QUIET, **project.env, "PROMPTFOO_CONFIG_DIR": str(folder / "home")}
    run([*command, *flags], codes=(0, 100), env=env)
    results = project.json("theirs.json")["results"]["results"]
    return {each["testCase"]["description"]: each["success"] for each in results}


def verdicts_of_import(project: Project) -> dict[str, bool]:
    """Return whether the imported config passes each test, by its description."""
    assert project.run("import", "promptfooconfig.yaml", "--out", "converted").code == 0
    assert project.run("validate", "--strict", "converted").code == 0
    project.run("eval", "converted", "--out", "rows.jsonl", "--max-retries", "0")
    rows = project.rows("rows.jsonl")
    return {re.sub("-[0-9a-f]{12}$", "", row["eval_id"]): row["verdict"] == "pass" for row in rows}
