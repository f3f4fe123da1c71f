"""Templates of promptfoo: what is filled in, and what stays a template."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agentv_ci.load.parse import parse_yaml
from agentv_ci.other_tools.imports.promptfoo_templates import filled, partly_rendered
from tests.support.projects import Project

DUMPED = '[{"role": "user", "content": {{ a | dump }}}]'
LOOP = "{% for each in _conversation %}{{ each.input | dump }},{% endfor %}"


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        ({"a": "x {{b}}", "b": "y"}, {"a": "x y", "b": "y"}),
        ({"a": "{{b}}", "b": "{{c}}", "c": "z"}, {"a": "z", "b": "z", "c": "z"}),
        ({"a": "x {{unknown}}"}, {"a": "x {{unknown}}"}),
        ({"a": "{{b}} {{unknown}} {{b}}", "b": "y"}, {"a": "y {{unknown}} {{b}}", "b": "y"}),
        ({"a": "{{a}}!"}, {"a": "{{a}}" + "!" * 32}),
        ({"a": 1, "b": ["{{a}}"]}, {"a": 1, "b": ["{{a}}"]}),
    ],
)
def test_values_name_other_values(row: dict[str, Any], expected: dict[str, Any]) -> None:
    assert filled(row) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (DUMPED, '[{"role": "user", "content": "{{ a }}"}]'),
        (LOOP + DUMPED, '[{"role": "user", "content": "{{ a }}"}]'),
        ("{% for each in a %}{{ each }}{% endfor %}" + DUMPED, None),
        ("{% if a %}x{% endif %}" + DUMPED, None),
        (DUMPED.replace("dump", "upper"), None),
    ],
)
def test_a_conversation_in_json_keeps_its_variables(text: str, expected: str | None) -> None:
    assert partly_rendered(text) == expected


@pytest.fixture
def project(repository: Path) -> Project:
    return Project(repository)


def imported(project: Project, config: dict[str, Any], files: dict[str, str] | None = None) -> str:
    """Return the eval file of a config, after checking that it is valid."""
    project.write({"promptfooconfig.yaml": json.dumps({"providers": ["echo"], **config}), **(files or {})})
    assert project.run("import", "promptfooconfig.yaml", "--out", "ours").code == 0
    assert project.run("validate", "--strict", "ours").code == 0
    return project.text("ours/promptfooconfig.eval.yaml")


def test_what_tests_share_stands_once(project: Project) -> None:
    tests = [{"vars": {"a": each, "doc": "file://doc.md"}} for each in ("x", "y")]
    defaults = {"vars": {"rules": "file://rules.md"}}
    config = {"prompts": ["{{rules}} {{doc}} {{a}}"], "defaultTest": defaults, "tests": tests}
    config["tests"] = [{**each, "description": each["vars"]["a"]} for each in tests]
    files = {"doc.md": "The doc\nsays {{x}}", "rules.md": "Rule 1\nRule 2"}
    text = imported(project, config, files)
    assert (text.count("says {{x}}"), text.count("Rule 2")) == (1, 1)
    document: Any = parse_yaml(text).data
    assert [case["vars"][0] for case in document["evalcases"]] == [
        {"rules": "Rule 1\nRule 2", "a": each, "doc": "The doc\nsays {{x}}"} for each in ("x", "y")
    ]
    project.run("eval", "ours", "--out", "r.jsonl")
    assert project.rows("r.jsonl")[0]["candidate_answer"] == "Rule 1\nRule 2 The doc\nsays {{x}} x"


@pytest.mark.parametrize(
    ("config", "skip"),
    [
        ({"tests": [{"vars": {"a": "x"}}]}, "its prompt is empty"),
        (
            {"prompts": ["{{ a | unknown_filter }}"], "tests": [{"vars": {"a": "x"}}]},
            "only Nunjucks, in Node, can fill in",
        ),
        ({"prompts": ["x"], "tests": "file://tests.py:make"}, "no test can be read without a program"),
    ],
)
def test_a_case_without_a_prompt_is_skipped(config: dict[str, Any], skip: str, project: Project) -> None:
    cases: Any = parse_yaml(imported(project, config)).data
    assert [skip in case["skip"] for case in cases["evalcases"]] == [True]


def test_limits_do_not_depend_on_a_transformation(project: Project) -> None:
    asserts = [{"type": "latency", "threshold": 9000}, {"type": "llm-rubric", "value": "Good"}]
    test = {"assert": asserts, "options": {"transform": "output.answer"}}
    assert "latency: 9000" in imported(project, {"prompts": ["x"], "tests": [test]})
    assert "the judge reads the answer as it is" in project.text("ours/MIGRATION.md")


def test_a_context_that_no_variable_has_cannot_be_judged(project: Project) -> None:
    test = {"assert": [{"type": "context-faithfulness", "contextTransform": "output.context"}]}
    text = imported(project, {"prompts": ["x"], "tests": [test]})
    assert "its checks could not be imported: context-faithfulness" in text


def test_azure_has_an_address_or_a_reference(project: Project) -> None:
    hosts = ["a.openai.azure.com", "{{ env.AZURE_HOST }}"]
    ids = ["azure:chat:d", "azure:chat:{{ env.DEPLOYMENT }}"]
    providers = [{"id": each, "config": {"apiHost": host}} for each, host in zip(ids, hosts, strict=True)]
    imported(project, {"prompts": ["x"], "providers": providers})
    listed: Any = parse_yaml(project.text("ours/targets.yaml")).data
    assert [(each["deployment"], each["endpoint"]) for each in listed["targets"]] == [
        ("d", "https://a.openai.azure.com"),
        ("${{ DEPLOYMENT }}", "${{ AZURE_HOST }}"),
    ]
