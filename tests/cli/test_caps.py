"""What a case may use at most, across its trials and attempts."""

from __future__ import annotations

import json
import sys
from typing import Any

import pytest

from tests.support.projects import HELLO, Project

AGENT = """\
import json, pathlib, sys
sys.stdin.read()
here = pathlib.Path(__file__).parent
first, *others = json.loads((here / "results.json").read_text())
(here / "results.json").write_text(json.dumps(others or [first]))
is_error = first < 0
result = {"type": "result", "is_error": is_error, "result": "Hello!", "total_cost_usd": abs(first)}
print(json.dumps({**result, "usage": {"input_tokens": 9, "output_tokens": 9}}))
sys.exit(is_error)
"""
"""An agent that costs the next number of dollars of a list, and fails for negative ones."""


def agent(project: Project, *costs: float, **execution: Any) -> None:
    project.write({"results.json": json.dumps(costs), "agent": f"#!{sys.executable}\n{AGENT}"})
    project.path("agent").chmod(0o755)
    target = {"name": "default", "provider": "claude-code", "executable": "./agent", "workers": 4}
    project.documents("one", targets=(target,), evaluators=[HELLO], **execution)


CAP = "the case has cost $1.2000, and its max_cost_usd is 1"


@pytest.mark.parametrize(
    ("costs", "execution", "verdicts", "last_error", "code"),
    [
        # The third trial is not started, whatever the number of workers.
        ([0.6], {"max_cost_usd": 1, "repeat": 3}, ["pass", "pass", "error"], f"not started: {CAP}", 5),
        ([0.6], {"max_cost_usd": 2, "repeat": 3}, ["pass", "pass", "pass"], None, 0),
        ([0.6], {"max_requests": 2, "repeat": 3}, ["pass", "pass", "error"], None, 5),
        ([-0.6], {"max_cost_usd": 1, "max_retries": 5}, ["error"], f"not repeated: {CAP}", 4),
        ([-0.6], {"max_requests": 3, "max_retries": 5}, ["error"], None, 4),
        ([-0.6, 0.6], {"max_cost_usd": 1, "repeat": 2}, ["pass", "error"], f"not started: {CAP}", 5),
        # Tolerated like any other error.
        ([0.6], {"max_cost_usd": 1, "repeat": 3, "gate": {"max_errors": 1}}, ["pass", "pass", "error"], None, 0),
        ([0.6], {"max_cost_usd": 1, "repeat": {"max": 3, "stop_when": "decided"}}, ["pass", "pass"], None, 0),
    ],
)
def test_nothing_of_a_case_begins_beyond_its_cap(
    costs: list[float],
    execution: dict[str, Any],
    verdicts: list[str],
    last_error: str | None,
    code: int,
    project: Project,
) -> None:
    agent(project, *costs, **execution)
    done = project.eval("--workers", "3")
    rows = project.rows()
    assert (done.code, [row["verdict"] for row in rows]) == (code, verdicts), done.out
    assert (rows[-1].get("error") or "").endswith(last_error or "")
    if code == 5:
        assert (rows[-1]["error_kind"], rows[-1]["attempts"]) == ("cancelled", 0)
        assert "1 trial not started: the case had used its max_cost_usd or max_requests" in done.out


def test_a_run_that_goes_on_counts_what_the_case_has_used(project: Project) -> None:
    agent(project, -0.6, -0.6, 0.1, max_cost_usd=1, max_retries=0)
    assert project.eval().code == 4
    assert project.eval("--resume", "r.jsonl").code == 4
    assert project.eval("--resume", "r.jsonl").code == 5
    (row,) = project.rows()
    assert (row["error"], row["cost_usd"]) == (f"not started: {CAP}", 1.2)
    agent(project, 0.1, max_cost_usd=2, max_retries=0)
    assert project.eval("--resume", "r.jsonl").code == 0
    (row,) = project.rows()
    assert (row["verdict"], row["cost_usd"]) == ("pass", 1.3)


def test_a_dry_run_has_no_caps(project: Project) -> None:
    agent(project, 1.0, max_requests=1, repeat=3)
    assert project.eval("--dry-run").code == 0
    assert "not started" not in project.text("r.jsonl")


@pytest.mark.parametrize("wrong", [{"max_cost_usd": 0}, {"max_requests": 0}, {"max_requests": 1.5}])
def test_a_cap_is_a_positive_number(wrong: dict[str, Any], project: Project) -> None:
    agent(project, 1.0, **wrong)
    assert project.run("validate", "evals").code == 1
