"""What agents can do with `agentv-ci mcp`."""

from __future__ import annotations

from pathlib import Path
from unittest import mock

import pytest

from agentv_ci.app.documents.explain import explain
from agentv_ci.contracts.diagnostics import PROOF_RULES, RULES
from tests.mcp_server.builders import answer_to, connected, refusal_of
from tests.support import run_command
from tests.support.projects import Project

pytestmark = pytest.mark.slow

READING = ["validate", "explain_rule", "list_cases", "compile", "estimate", "report", "compare"]


@pytest.fixture
def project(repository: Path) -> Project:
    """Two cases, of which one fails."""
    made = Project(repository)
    made.documents("hello", {"id": "bye", "tags": ["slow"], "evaluators": [{"contains": "Goodbye"}]})
    return made


async def test_without_a_budget_there_is_nothing_that_runs(project: Project) -> None:
    async with connected(project) as client:
        tools = (await client.list_tools()).tools
        assert [each.name for each in tools] == READING
        assert {each.annotations and each.annotations.read_only_hint for each in tools} == {True}
        assert "Unknown tool" in await refusal_of(client, "run", max_cost_usd=0)


async def test_documents_are_checked_and_rules_explained(project: Project) -> None:
    project.write({"evals/wrong.yaml": "$schema: agentv-eval-v2\nevalcases:\n  - {id: a}\n"})
    async with connected(project) as client:
        checked = await answer_to(client, "validate")
        explained = await answer_to(client, "explain_rule", rule="av201")
        nothing = await refusal_of(client, "explain_rule", rule="AV21")
    assert (checked["valid"], checked["summary"]["errors"]) == (False, 3)
    assert {(each["path"], each["line"], each["rule"]) for each in checked["diagnostics"]} == {
        ("evals/wrong.yaml", 3, "AV201")
    }
    assert "```yaml right" in explained["text"]
    assert "unknown rule 'AV21'\nthe rules are AV101, AV102," in nothing


@pytest.mark.parametrize("rule", [*RULES, *PROOF_RULES])
def test_every_rule_has_an_explanation(rule: str) -> None:
    assert len(explain(rule).text) > 40
    assert "\n## " not in explain(rule).text


async def test_cases_are_listed_compiled_and_estimated(project: Project) -> None:
    assert project.run("compile", "evals", "--eval-id", "hello", "--out", "plan.json").code == 0
    async with connected(project) as client:
        listed = await answer_to(client, "list_cases", cases={"tags": ["slow"]})
        compiled = await answer_to(client, "compile", older_plan="plan.json")
        estimate = await answer_to(client, "estimate", cases={"eval_ids": ["hello"]})
        nothing = await refusal_of(client, "list_cases", cases={"eval_ids": ["hallo"]})
        wrong = await refusal_of(client, "list_cases", cases={"nonsense": 1})
    assert [(each["id"], each["line"]) for each in listed["cases"]] == [("bye", 1)]
    assert (compiled["cases"], compiled["targets"]["default"]) == (2, "mock")
    assert [each["id"] for each in compiled["added"]] == ["bye"]
    assert (compiled["removed"], estimate["requests"]) == ([], 1)
    assert "no case matches --eval-id hallo (did you mean 'hello'?)" in nothing
    assert "nonsense" in wrong


async def test_a_run_is_reported_and_compared(project: Project) -> None:
    async with connected(project, "--run-budget", "1") as client:
        assert "there are no results" in await refusal_of(client, "report")
        ran = await answer_to(client, "run", max_cost_usd=0)
        assert {"results": ran["results"], **await answer_to(client, "report")} == {
            name: value for name, value in ran.items() if name != "left_usd"
        }
        assert project.run("baseline", "accept").code == 0
        project.documents({"id": "hello", "evaluators": [{"contains": "Goodbye"}]}, "bye")
        await answer_to(client, "run", max_cost_usd=0, cases={"eval_ids": ["hello"]})
        compared = await answer_to(client, "compare")
        dry = await answer_to(client, "run", max_cost_usd=0, dry_run=True, repeat=3)
    assert (ran["verdict"], ran["exit_code"], ran["left_usd"]) == ("fail", 1, 1.0)
    assert [(each["id"], each["verdict"], each["answer"]) for each in ran["cases_not_passed"]] == [
        ("bye", "fail", "Hello!")
    ]
    assert ran["cases_not_passed"][0]["reasons"] == ["contains: does not contain 'Goodbye'"]
    assert (compared["left_out"], compared["statement"]["verdict"]) == (1, "withheld")
    assert (dry["dry_run"], dry["counts"]["rows"]) == (True, 6)


async def test_broken_documents_do_not_run(project: Project) -> None:
    project.write({"evals/x.yaml": "$schema: agentv-eval-v2\nevalcases: 1\n"})
    async with connected(project, "--run-budget", "1") as client:
        refused = await refusal_of(client, "run", max_cost_usd=1)
        assert "x.yaml:2:12: AV203" in refused
        assert "there are no results" in await refusal_of(client, "report")


def test_the_package_is_named_where_it_is_missing(repository: Path) -> None:
    with mock.patch.dict("sys.modules", {"mcp": None, "agentv_ci.mcp_server.server": None}):
        done = run_command("mcp", cwd=repository)
    assert (done.code, "python -m pip install mcp" in done.err) == (2, True)
