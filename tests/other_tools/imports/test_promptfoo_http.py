"""HTTP providers of promptfoo: the target that asks them, and what its script sends and reads."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from agentv_ci.load.parse import parse_yaml
from tests.servers.http import Asked, Reply, answers, serve
from tests.support.projects import Project

BODY = {"messages": [{"role": "user", "content": "{{prompt}}"}], "stream": False}
needs_node = pytest.mark.skipif(shutil.which("node") is None, reason="node is missing")


@pytest.fixture
def project(repository: Path) -> Project:
    return Project(repository, env={"PATH": os.environ["PATH"], "TEAM": "ours"})


def imported(project: Project, request: dict[str, Any], **config: Any) -> dict[str, Any]:
    """Return the target of a config whose provider is a request, after checking that both are valid."""
    provider = {"id": "https", "label": "api", "config": {"url": "https://example.com/ask", **request}}
    test = {"vars": {"question": 'Is it "so"?'}, "assert": [{"type": "equals", "value": "yes"}]}
    made = {"prompts": ["{{question}}"], "providers": [provider], "tests": [test], **config}
    project.write({"promptfooconfig.yaml": json.dumps(made)})
    assert project.run("import", "promptfooconfig.yaml", "--out", "ours").code == 0
    assert project.run("validate", "--strict", "ours").code == 0
    listed: Any = parse_yaml(project.text("ours/targets.yaml")).data
    target: dict[str, Any] = listed["targets"][0]
    return target


def asked(project: Project, reply: Reply, request: dict[str, Any]) -> tuple[list[Asked], dict[str, Any]]:
    """Return what a server is asked by an imported config, and the row of the answer."""
    seen: list[Asked] = []

    def answer(each: Asked) -> Reply:
        seen.append(each)
        return reply

    with serve(answer) as url:
        imported(project, {"url": f"{url}/ask?v=1", **request})
        project.run("eval", "ours", "--out", "r.jsonl", "--max-retries", "0")
    return seen, project.rows("r.jsonl")[0]


@needs_node
def test_a_request_is_sent_with_the_prompt_and_the_environment(project: Project) -> None:
    headers = {"X-Team": "{{ env.TEAM }}", "X-None": "[{{ env.NOT_SET }}]"}
    request = {"headers": headers, "queryParams": {"q": "{{prompt}}"}, "body": BODY, "transformResponse": "json.a[0]"}
    seen, row = asked(project, answers(200, {"a": ["yes"]}), request)
    assert (row["candidate_answer"], row["verdict"]) == ("yes", "pass")
    assert (seen[0].method, seen[0].query) == ("POST", {"v": "1", "q": 'Is it "so"?'})
    assert seen[0].body == {"messages": [{"role": "user", "content": 'Is it "so"?'}], "stream": False}
    assert (seen[0].headers["x-team"], seen[0].headers["x-none"]) == ("ours", "[]")


@needs_node
@pytest.mark.parametrize(
    ("code", "answer"),
    [
        (None, '{"a":["yes"]}'),
        ("json", '{"a":["yes"]}'),
        ("(json, text) => text.length", "14"),
        ("if (json.a) { return json.a.join(); }\nreturn 'none';", "yes"),
        ("file://read.js", "read yes"),
    ],
)
def test_answers_are_read_as_the_config_says(code: str | None, answer: str, project: Project) -> None:
    project.write({"read.js": "module.exports = (json) => `read ${json.a[0]}`;\n"})
    request = {"body": '{"q": "{{ question }}"}'} | ({"transformResponse": code} if code else {})
    seen, row = asked(project, answers(200, {"a": ["yes"]}), request)
    assert (seen[0].body, row["candidate_answer"]) == ({"q": 'Is it "so"?'}, answer)


@needs_node
def test_a_refused_request_is_an_error(project: Project) -> None:
    _, row = asked(project, answers(503, {"error": "busy"}), {"method": "GET"})
    assert (row["status"], "503" in row["error"]) == ("error", True)


def test_a_config_without_prompts_asks_what_its_request_names(project: Project) -> None:
    body = '{"q": "{{ question }}"{% if image %}, "image": "{{ image }}"{% endif %}}'
    imported(project, {"body": body}, prompts=[])
    evals: Any = parse_yaml(project.text("ours/promptfooconfig.eval.yaml")).data
    assert evals["evalcases"][0]["input"] == "{{ question }}"
    assert "left out, as a request gets only the prompt" in project.text("ours/MIGRATION.md")


@pytest.mark.parametrize(
    "body", ['{"a": "{{a}}", "b": "{{b}}"}', "{{ prompt | upper }}", "{% for each in rows %}{{ each }}{% endfor %}"]
)
def test_a_request_that_needs_more_than_the_prompt_fails_until_it_is_configured(body: str, project: Project) -> None:
    message = "placeholder: configure 'api' in ours/targets.yaml:5"
    failing = {"provider": "mock", "error": {"kind": "request", "message": message}}
    assert imported(project, {"body": body}) == {"name": "api", **failing}
    assert "its request needs more than the prompt" in project.text("ours/MIGRATION.md")


def test_settings_that_the_script_does_not_have_are_reported(project: Project) -> None:
    imported(project, {"body": BODY, "sessionParser": "data.id"})
    assert "| `config.sessionParser` | the script does not do this |" in project.text("ours/MIGRATION.md")


def test_mappings_that_targets_share_stand_once(project: Project) -> None:
    schema = {"type": "json_schema", "json_schema": {"name": "answer", "schema": {"type": "object"}}}
    providers = [
        {"id": "openai:m", "label": label, "config": {"response_format": schema, "user": label}} for label in "ab"
    ]
    imported(project, {}, providers=providers)
    text = project.text("ours/targets.yaml")
    assert text.count("json_schema:") == 1
    listed: Any = parse_yaml(text).data
    assert [each["extra_body"] for each in listed["targets"]] == [each["config"] for each in providers]
