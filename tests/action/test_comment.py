"""The one comment on a pull request: written once, then updated; other comments are not touched."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from tests.action.conftest import Once
from tests.action.evals import mock, suite
from tests.action.events import pull_request
from tests.action.github_api import BOT, FakeGitHub
from tests.action.rig import CHECKOUT, Outcome, Rig, uses

pytestmark = [pytest.mark.act, pytest.mark.slow]

MARKER = "<!-- agentv-ci:Evals/evals -->"


def test_second_run_updates_the_comment(once: Once) -> None:
    others = [*(f"comment {number}" for number in range(120)), f"{MARKER}\nAll is well."]

    def scenario(folder: Path) -> Outcome:
        github = FakeGitHub(viewer=BOT)
        for text in others:
            github.plant(text)
        github.plant("<!-- agentv-ci:other -->", author=BOT)
        files = {"evals/a.test.yaml": suite("a", "b"), "good.yaml": mock(), "bad.yaml": mock("no")}
        rig = Rig(folder, files, github, environ={"GITHUB_RUN_ID": "41"})
        rig.prepare()
        rig.run({"steps": [CHECKOUT, uses(targets="bad.yaml")]}, pull_request(rig.head))
        rig = replace(rig, environ={"GITHUB_RUN_ID": "42"})
        return rig.run({"steps": [CHECKOUT, uses(targets="good.yaml")]}, pull_request(rig.head))

    github = once("twice", scenario).github
    assert [(call.method, call.status) for call in github.writes()] == [("POST", 201), ("PATCH", 200)]
    assert github.violations == []
    *bodies, own = [each.body for each in github.comments]
    assert bodies == [*others, "<!-- agentv-ci:other -->"]
    assert own == github.writes()[-1].body["body"]
    assert own.startswith(f"{MARKER}\n## ✅ Evaluations: passed")
    rows = re.findall(r"^\| \[.*\]\(.*/actions/runs/(\d+)\) \| \w+ \| (\w+) \| (\S+) \|", own, re.MULTILINE)
    assert rows == [("42", "pass", "2/2"), ("41", "fail", "0/2")]
