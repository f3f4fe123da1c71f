"""`--resume` keeps an answer only if the same question would be asked again, with the same settings."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.servers.chat_api import chat_api, says
from tests.support.projects import Project

RUBRIC = {"type": "llm_judge", "prompt": "Is {{ candidate_answer }} a greeting?", "judge_target": "judge"}
HELLO = {"type": "contains", "value": "Hello"}
AGENT: dict[str, Any] = {"name": "default", "provider": "cli", "prompt": "none", "command_template": "echo Hello"}
JUDGE: dict[str, Any] = {"name": "judge", "provider": "openai", "api_key": "${{ KEY }}"}


@pytest.fixture
def project(repository: Path) -> Project:
    return Project(
        repository, {"KEY": "first-of-the-keys", "MODEL": "one", "REGION": "west", "TOKEN": "a-long-token-1"}
    )


def is_asked_again(
    project: Project, *targets: dict[str, Any], evaluator: dict[str, Any], **changed: str | None
) -> bool:
    """Run, change the environment, resume; return whether the case was asked again."""
    project.documents({"id": "a", "evaluators": [evaluator]}, targets=targets)
    assert project.run("eval", "evals", "--out", "r.jsonl").code == 0
    (before,) = project.rows("r.jsonl")
    for name, value in changed.items():
        project.env = {**project.env, name: value} if value is not None else _without(project.env, name)
    done = project.run("eval", "evals", "--resume", "r.jsonl")
    assert done.code in {0, 2}, done
    (after,) = project.rows("r.jsonl")
    return bool(after["timestamp"] != before["timestamp"])


def _without(variables: dict[str, str], name: str) -> dict[str, str]:
    return {key: value for key, value in variables.items() if key != name}


@pytest.mark.parametrize(
    ("target", "changed", "again"),
    [
        ({"model": "${{ MODEL }}"}, {}, False),
        ({"model": "${{ MODEL }}"}, {"MODEL": "two"}, True),
        ({"model": "${{ MODEL }}"}, {"KEY": "second-of-the-keys"}, False),
        ({"model": "${{ MODEL }}"}, {"MODEL": "two", "KEY": None}, True),
        ({"model": "m"}, {"MODEL": "two"}, False),
        ({"model": "m", "headers": {"x-team": "${{ REGION }}"}}, {"REGION": "east"}, False),
        ({"model": "m", "temperature": "${{ HEAT }}"}, {"HEAT": "1"}, True),
        ({"model": "m", "extra_body": {"user": "${{ REGION }}"}}, {"REGION": "east"}, True),
        ({"model": "m", "retry_max_delay_ms": "${{ DELAY }}"}, {"DELAY": "900"}, False),
    ],
)
def test_answers_of_other_settings_are_asked_again(
    target: dict[str, Any], changed: dict[str, str | None], again: bool, project: Project
) -> None:
    project.env |= {"HEAT": "0.5", "DELAY": "100"}
    with chat_api(says("Hello")) as api:
        given = {**JUDGE, "name": "default", "base_url": api.url, **target}
        asked_again = is_asked_again(project, given, evaluator=HELLO, **changed)
    # Without its key it cannot be asked, and nothing passes.
    assert asked_again is (again and "KEY" not in changed)
    assert len(api.requests) == 1 + asked_again


@pytest.mark.parametrize(
    ("env", "changed", "again"),
    [
        ({"WHERE": "${{ REGION }}"}, {"REGION": "east"}, True),
        ({"WHERE": "west"}, {"REGION": "east"}, False),
        ({"ACCESS": "${{ TOKEN }}"}, {"TOKEN": "a-long-token-2"}, False),
        ({"API_KEY": "${{ REGION }}"}, {"REGION": "east"}, False),
    ],
)
def test_variables_of_commands_are_compared(
    env: dict[str, str], changed: dict[str, str | None], again: bool, project: Project
) -> None:
    assert is_asked_again(project, {**AGENT, "env": env}, evaluator=HELLO, **changed) is again


def test_answers_judged_by_another_model_are_asked_again(project: Project) -> None:
    with chat_api(says('{"score": 1.0}')) as api:
        judge = {**JUDGE, "base_url": api.url, "model": "${{ MODEL }}"}
        assert is_asked_again(project, AGENT, judge, evaluator=RUBRIC, MODEL="two")


def test_rows_hold_a_digest_and_no_values(project: Project) -> None:
    env = {"WHERE": "${{ REGION }}", "ACCESS": "${{ TOKEN }}"}
    assert not is_asked_again(project, {**AGENT, "env": env}, evaluator=HELLO)
    assert len(project.rows("r.jsonl")[0]["settings_digest"]) == 64
    assert not [value for value in ("west", "a-long-token-1") if value in project.text("r.jsonl")]
    assert not is_asked_again(project, AGENT, evaluator=HELLO)
    assert "settings_digest" not in project.rows("r.jsonl")[0]


def test_the_run_says_what_is_asked_again(project: Project) -> None:
    project.documents({"id": "a", "evaluators": [HELLO]}, targets=({**AGENT, "env": {"WHERE": "${{ REGION }}"}},))
    project.run("eval", "evals", "--out", "r.jsonl")
    project.env["REGION"] = "east"
    assert "evals/" in project.run("eval", "evals", "--resume", "r.jsonl", "--list").out
    said = project.run("eval", "evals", "--resume", "r.jsonl").err
    assert "0 of 1 trial already in" in said
    assert "1 answered with other settings from the environment runs again" in said
