"""What failed attempts and failed judges cost: in rows, reports, limits and budgets, and in runs that go on."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from typing import Any

import pytest

from tests.servers.chat_api import Step, answers, chat_api, says
from tests.support.evals import PRAISE, gpt, mock
from tests.support.projects import HELLO, Project

AGENT = """\
import json, pathlib, sys
sys.stdin.read()
here = pathlib.Path(__file__).parent
first, *others = json.loads((here / "results.json").read_text())
(here / "results.json").write_text(json.dumps(others or [first]))
print(json.dumps({"type": "result", **first}))
sys.exit(1 if first["is_error"] else 0)
"""
"""An agent that prints the next result of a list; the last one again and again."""
USAGE = {"input_tokens": 900, "output_tokens": 90}


def crash(cost_usd: float | None) -> dict[str, Any]:
    return {"is_error": True, "errors": ["a tool crashed"], "total_cost_usd": cost_usd, "usage": USAGE}


def hello(cost_usd: float) -> dict[str, Any]:
    return {"is_error": False, "result": "Hello!", "total_cost_usd": cost_usd, "usage": USAGE}


def agent(project: Project, *results: dict[str, Any], **execution: Any) -> None:
    """Write one case, and an agent with these results."""
    project.write({"results.json": json.dumps(results), "agent": f"#!{sys.executable}\n{AGENT}"})
    project.path("agent").chmod(0o755)
    target = {"name": "default", "provider": "claude-code", "executable": "./agent"}
    project.documents(*execution.pop("cases", ["one"]), targets=(target,), **execution)


def report(project: Project) -> Any:
    return project.json("r.report.json")


def test_a_run_stops_at_its_budget_when_answers_fail(project: Project) -> None:
    cases = [f"case-{number}" for number in range(8)]
    agent(project, crash(5.0), cases=cases, max_retries=0)
    done = project.eval("--max-cost", "6", "--max-errors", "8", "--markdown", "r.md", "--html", "r.html")
    assert (done.code, len(project.rows())) == (5, 2)
    for shown in (done.out, project.text("r.md")):
        assert "$10.00" in shown
    assert (report(project)["cost_usd"], report(project)["usage"]["total_tokens"]) == (10.0, 1980)
    assert [row["cost_usd"] for row in project.rows()] == [5.0, 5.0]
    (expense,) = project.rows()[0]["expenses"]
    assert (expense["attempt"], expense["error_kind"], expense["cost_usd"]) == (1, "process", 5.0)


def test_no_attempt_begins_beyond_the_budget(project: Project) -> None:
    agent(project, crash(5.0), max_retries=5)
    assert project.eval("--max-cost", "6").code == 5
    (row,) = project.rows()
    assert (row["attempts"], row["cost_usd"]) == (2, 10.0)
    assert row["error"].endswith("; not repeated: the budget is used up")


COST = {"type": "cost", "max_usd": 0.40, "required": True}
TOKENS = {"type": "token_usage", "max_total": 1500, "min_output": 91, "required": True}


def test_limits_count_what_failed_before_the_answer(project: Project) -> None:
    agent(project, crash(5.0), hello(0.05), evaluators=[HELLO, COST, TOKENS])
    assert project.eval().code == 1
    (row,) = project.rows()
    assert (row["verdict"], row["cost_usd"], row["attempts"]) == ("fail", 5.05, 2)
    assert row["usage"]["total_tokens"] == 1980
    assert [(each["attempt"], each["error_kind"], each["cost_usd"]) for each in row["expenses"]] == [
        (1, "process", 5.0),
        (2, None, 0.05),
    ]
    assert row["misses"] == [
        "$5.05 ($5 of it in failed attempts), at most $0.4",
        "1,980 tokens, at most 1,500",
        "90 output tokens, at least 91",
    ]
    assert project.run("rescore", "r.jsonl", "--out", "s.jsonl").code == 1
    (again,) = project.rows("s.jsonl")
    assert [again[name] for name in ("misses", "cost_usd", "expenses")] == [
        row[name] for name in ("misses", "cost_usd", "expenses")
    ]


def test_a_limit_is_not_met_by_what_is_known_of_the_cost(project: Project) -> None:
    unknown = {"is_error": True, "errors": ["gone"], "usage": USAGE}
    agent(project, unknown, hello(0.05), evaluators=[HELLO, COST])
    assert project.eval().code == 4
    (row,) = project.rows()
    assert (row["error_kind"], row["cost_usd"]) == ("evaluator", 0.05)
    assert report(project)["unpriced_models"] == ["default"]


def test_a_run_that_goes_on_keeps_what_was_spent(project: Project) -> None:
    agent(project, crash(5.0), hello(0.05), max_retries=0, evaluators=[HELLO, COST])
    assert project.eval().code == 4
    before = project.text("r.jsonl")
    assert project.eval("--resume", "r.jsonl").code == 0
    (row,) = project.rows()
    assert [(each["is_earlier"], each["cost_usd"]) for each in row["expenses"]] == [(True, 5.0), (False, 0.05)]
    assert (row["cost_usd"], report(project)["cost_usd"]) == (5.05, 5.05)
    assert row["hits"] == ["contains 'Hello'", "$0.05, at most $0.4"]
    # A killed run leaves both rows.
    project.write({"r.jsonl": before + project.text("r.jsonl")})
    assert project.eval("--resume", "r.jsonl", "--max-cost", "5.06").code == 0
    assert (len(project.rows()), report(project)["cost_usd"]) == (1, 5.05)


def test_what_failed_is_paid_once_where_the_answer_is_stored(project: Project) -> None:
    agent(project, crash(5.0), hello(0.05))
    costs = []
    for _ in range(2):
        assert project.eval("--cache").code == 0
        costs.append(report(project)["cost_usd"])
    assert costs == [5.05, 0.0]
    assert "expenses" not in project.rows()[0]


USED = {"prompt_tokens": 1000, "completion_tokens": 100, "total_tokens": 1100}
FILTERED = {"message": {"content": ""}, "finish_reason": "content_filter"}
WITHHELD = answers(200, {"model": "m", "usage": USED, "choices": [FILTERED]})
NO_CHOICE, NO_TEXT = (
    answers(200, {"model": "m", "usage": USED, "choices": choices}) for choices in ([], [{"message": 5}])
)
REFUSED = answers(400, {"error": {"message": "no"}, "model": "m", "usage": USED})
PRICES = "prices: {gpt-mock: {input_per_mtok: 1000, output_per_mtok: 10000}}"
"""A thousand tokens cost a dollar."""


@pytest.mark.parametrize(
    ("steps", "cost_usd", "judge_cost_usd"),
    [
        ([WITHHELD], 2.0, None),
        ([NO_CHOICE], 2.0, None),
        ([NO_TEXT], 2.0, None),
        ([REFUSED], 2.0, None),
        ([says("Hello!"), NO_CHOICE], 0.2, 2.0),
        ([says("Hello!"), REFUSED], 0.2, 2.0),
        ([says("Hello!"), WITHHELD], 0.2, 2.0),
        ([says("Hello!"), says("no JSON"), WITHHELD], 0.2, 2.2),
    ],
)
def test_a_withheld_answer_is_paid(
    steps: Sequence[Step], cost_usd: float, judge_cost_usd: float | None, project: Project
) -> None:
    with chat_api(*steps) as api:
        judged = {"type": "llm_judge", "judge_target": "judge"}
        targets = (gpt(api.url), gpt(api.url, name="judge"))
        project.documents("one", targets=targets, evaluators=[judged])
        project.write({".agentv/config.yaml": f"$schema: agentv-config-v2\n{PRICES}\n"})
        assert project.eval().code == 4
    (row,) = project.rows()
    assert (row["cost_usd"], row.get("judge_cost_usd")) == pytest.approx((cost_usd, judge_cost_usd))
    assert report(project)["cost_usd"] == pytest.approx(cost_usd + (judge_cost_usd or 0))


def test_each_passed_case_costs_its_share_of_what_failed_too(project: Project) -> None:
    agent(project, crash(3.0), hello(1.0), crash(None), hello(1.0), cases=["one", "two", "three"], max_retries=0)
    done = project.eval("--max-errors", "3", "--markdown", "r.md", "--html", "r.html", "--junit", "r.xml")
    assert [report(project)[name] for name in ("cost_usd", "cost_per_pass_usd")] == [4.0, 4.0]
    assert report(project)["targets"][0]["cost_per_pass_usd"] == 4.0
    assert "cost: at least $4.0000, $4.0000 per passed case" in done.out
    assert "at least $4.0000, $4.0000 per passed case" in project.text("r.md")
    assert "per passed case" in project.text("r.html")
    assert '<property name="cost_per_pass_usd" value="4.000000"' in project.text("r.xml")


def test_a_run_that_goes_on_keeps_what_judges_cost(project: Project) -> None:
    with chat_api(says("Hello!"), WITHHELD, says("Hello!"), says(PRAISE)) as api:
        judged = {"type": "llm_judge", "judge_target": "judge"}
        project.documents("one", targets=(gpt(api.url), gpt(api.url, name="judge")), evaluators=[judged, COST])
        project.write({".agentv/config.yaml": f"$schema: agentv-config-v2\n{PRICES}\n"})
        assert project.eval().code == 4
        assert project.eval("--resume", "r.jsonl").code == 0
    (row,) = project.rows()
    assert [(each["is_judge"], each["is_earlier"], each["cost_usd"]) for each in row["expenses"]] == [
        (False, True, pytest.approx(0.2)),
        (True, True, pytest.approx(2.0)),
        (False, False, pytest.approx(0.2)),
        (True, False, pytest.approx(0.2)),
    ]
    assert (row["cost_usd"], row["judge_cost_usd"]) == (pytest.approx(0.4), pytest.approx(2.2))
    assert report(project)["cost_usd"] == pytest.approx(2.6)


def test_the_cost_of_judges_is_its_known_part(project: Project) -> None:
    with chat_api(says(PRAISE)) as api:
        targets = (mock(), *(gpt(api.url, name=name, model=name) for name in ("gpt-mock", "other")))
        judges = [{"name": name, "type": "llm_judge", "judge_target": name} for name in ("gpt-mock", "other")]
        project.documents("one", "two", targets=targets, evaluators=judges)
        project.write({".agentv/config.yaml": f"$schema: agentv-config-v2\n{PRICES}\n"})
        done = project.eval()
    assert (done.code, "cost: at least $0.4000" in done.out) == (0, True)
    for row in project.rows():
        assert row["judge_cost_usd"] == pytest.approx(0.2)
        expenses = [(each["is_judge"], each["cost_usd"]) for each in row["expenses"]]
        assert expenses == [(True, pytest.approx(0.2)), (True, None)]
    assert report(project)["unpriced_models"] == ["other"]
    assert project.eval("--resume", "r.jsonl").code == 0
    assert report(project)["unpriced_models"] == ["other"]


def test_only_targets_without_a_price_cost_at_least_what_is_known(project: Project) -> None:
    with chat_api(says(PRAISE)) as api:
        targets = tuple(gpt(api.url, name=name, model=name) for name in ("gpt-mock", "other"))
        judged = {"type": "llm_judge", "judge_target": "gpt-mock"}
        project.documents("one", targets=targets, evaluators=[judged])
        project.write({".agentv/config.yaml": f"$schema: agentv-config-v2\n{PRICES}\n"})
        done = project.eval("--target", "gpt-mock", "--target", "other", "--markdown", "r.md")
    lines = {line.split()[0]: line for line in done.out.splitlines() if "1/1 passed" in line}
    assert {name: "at least" in line for name, line in lines.items()} == {"gpt-mock": False, "other": True}
    cells = [cell.strip() for cell in project.text("r.md").split("|")]
    assert [cell for cell in cells if cell.startswith("≥ $")] == ["≥ $0.2000", "≥ $0.2000"]
    assert "cost: at least $0.6000" in done.out
