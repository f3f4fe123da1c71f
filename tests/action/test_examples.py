"""The workflows that users copy, in the five states of a run."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.action.evals import agent, mock, suite
from tests.action.events import pull_request
from tests.action.rig import Rig
from tests.support import REPOSITORY

pytestmark = [pytest.mark.act, pytest.mark.slow]

WORKFLOWS = REPOSITORY / "docs" / "examples" / "workflows"
DOUBLES = REPOSITORY / "tests" / "action" / "sharded"
KEYED = mock().replace('"provider": "mock"', '"provider": "openai", "model": "m", "api_key": "${{ OPENAI_API_KEY }}"')
KEYED = re.sub(r', "responses?": ("yes"|\{\})', "", KEYED)
STATES = {
    "passed": (suite("a"), mock()),
    "failed": (suite("a"), mock("no")),
    "no verdict": (suite("a"), agent("exit 3")),
    "invalid": (suite("a").replace("role: user", "role: usr"), mock()),
    "a missing secret": (suite("a"), KEYED),
}
TITLES = {"passed": "passed", "failed": "not passed", "no verdict": "no verdict", "invalid": "invalid"}


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("name", ["pull-request", "matrix"])
def test_example(name: str, state: str, tmp_path: Path) -> None:
    workflow = (WORKFLOWS / f"{name}.yml").read_text("utf-8")
    evals, targets = STATES[state]
    if name == "matrix":
        targets = re.sub(
            r"\{\"name\": \"default\"(.*)\}\]", r'{"name": "small-model"\1}, {"name": "large-model"\1}]', targets
        )
    rig = Rig(tmp_path, {"evals/a.test.yaml": evals, "targets.yaml": targets})
    rig.prepare()
    pins = re.findall(r"uses: (actions/upload-artifact@\S+)", workflow)
    outcome = rig.start(workflow, pull_request(rig.head), dict.fromkeys(pins, DOUBLES / "upload-artifact"))
    assert ("failure" in {step.result for step in outcome.steps.values()}) == (state != "passed")
    title = f"Evaluations: {TITLES.get(state, 'invalid')}"
    assert outcome.github.violations == []
    assert len(outcome.github.comments) == (2 if name == "matrix" else 1)
    if name == "matrix":
        keys = {comment.body.splitlines()[0].partition("/")[2] for comment in outcome.github.comments}
        assert keys == {f"targets %28{each}%29 -->" for each in ("small-model", "large-model")}
    for comment in outcome.github.comments:
        assert title in comment.body.splitlines()[1]
        assert ("secrets.OPENAI_API_KEY" in comment.body) == (state == "a missing secret")
