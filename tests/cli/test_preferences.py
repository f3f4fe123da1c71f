"""Experiments in which a judge chooses between the answers of two arms."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.projects import Project

CASES = 8
READER = """
import re, sys
question = open(sys.argv[1], encoding="utf-8").read()
with open("asked.txt", "a") as log:
    log.write("asked\\n")
first = re.search(r"<first_answer-\\w+>\\n(.*)\\n</first_answer-", question)[1]
print('{"better": "%s", "reasoning": ""}' % ("first" if "kind" in first else "second"))
"""
Row = dict[str, Any]


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """An experiment in which a judge prefers the arm `kind`, whatever the order."""
    found = Project(tmp_path)
    (tmp_path / ".git").mkdir()
    found.documents(*(f"case-{number}" for number in range(CASES)), target="plain", evaluators=[{"contains": "hello"}])
    found.targets(
        {"name": "plain", "provider": "mock", "response": "hello"},
        {"name": "kind", "provider": "mock", "response": "a kind hello"},
        {"name": "reader", "provider": "cli", "command_template": "python3 reader.py {PROMPT_FILE}", "cwd": "."},
    )
    write_experiment(found)
    found.write({"reader.py": READER})
    return found


def write_experiment(project: Project, **settings: Any) -> None:
    document = {
        "$schema": "agentv-experiment-v1",
        "arms": [{"name": "now", "target": "plain"}, {"name": "next", "target": "kind"}],
        "evals": ["evals/"],
        "evaluators": [{"name": "preferred", "type": "pairwise_judge", "judge_target": "reader"}],
        "primary": "preferred",
        **settings,
    }
    project.write({"experiment.yaml": json.dumps(document)})


def judged(project: Project, *flags: str, code: int = 0) -> dict[str, Any]:
    done = project.run("experiment", "experiment.yaml", *flags)
    assert done.code == code, done
    found: dict[str, Any] = project.json("r.report.json")["experiment"]
    return found


def questions(project: Project) -> int:
    asked = project.path("asked.txt")
    number = len(asked.read_text("utf-8").splitlines()) if asked.exists() else 0
    asked.unlink(missing_ok=True)
    return number


def holds_preference(row: Row) -> bool:
    return any("preferences" in each for each in row["evaluator_results"])


WINS = {"wins": CASES, "ties": 0, "losses": 0, "contradictions": 0, "first": CASES, "second": CASES, "unjudged": 0}


def test_each_pair_is_judged_once_whichever_arm_answers_first(project: Project) -> None:
    found = judged(project, "--out", "r.jsonl", "--workers", "5")
    assert (found["verdict"], found["effects"][0]["preferences"]) == ("better", WINS)
    assert questions(project) == 2 * CASES
    holders = Counter(row["arm"] for row in project.rows() if holds_preference(row))
    assert holders.total() == CASES
    assert len(holders) == 2, "arms run in random order"
    assert {row["score"] for row in project.rows()} == {1}
    assert {row["verdict"] for row in project.rows()} == {"pass"}


@pytest.mark.parametrize(
    ("keeps", "again"),
    [
        (holds_preference, CASES),
        (lambda row: not holds_preference(row), CASES),
        (lambda row: row["arm"] == "next", CASES),
        (lambda row: row["eval_id"] in ("case-1", "case-2"), CASES - 2),
    ],
    ids=["those-with-preferences", "those-without", "one-arm", "two-cases"],
)
def test_resumed_run_judges_pairs_that_lack_a_row(project: Project, keeps: Callable[[Row], bool], again: int) -> None:
    found = judged(project, "--out", "r.jsonl")
    questions(project)
    project.store("r.jsonl", *filter(keeps, project.rows()))
    assert judged(project, "--resume", "r.jsonl")["effects"] == found["effects"]
    assert questions(project) == 2 * again


def twice(row: Row) -> Row:
    """The row with each comparison given twice."""
    *others, found = row["evaluator_results"]
    return {**row, "evaluator_results": [*others, {**found, "preferences": found["preferences"] * 2}]}


@pytest.mark.parametrize(
    "change",
    [
        lambda row: row if holds_preference(row) else {**row, "candidate_answer": "hello, again"},
        lambda row: {**row, "candidate_answer": "hello, again"} if holds_preference(row) else row,
        lambda row: twice(row) if holds_preference(row) else row,
    ],
    ids=["another-answer-of-the-other-arm", "another-answer-of-its-own", "two-preferences-of-one-pair"],
)
def test_comparison_of_other_answers_is_none(project: Project, change: Callable[[Row], Row]) -> None:
    judged(project, "--out", "r.jsonl")
    project.store("r.jsonl", *map(change, project.rows()))
    done = project.run("experiment", "experiment.yaml", "--results", "r.jsonl", "--out", "again.jsonl")
    assert done.code == 4
    (effect, *_) = project.json("again.report.json")["experiment"]["effects"]
    assert (effect["pairs"], effect["preferences"]["wins"], effect["preferences"]["unjudged"]) == (0, 0, CASES)


def test_trials_with_several_rows_have_no_verdict(project: Project) -> None:
    judged(project, "--out", "r.jsonl")
    project.write({"copy.jsonl": project.text("r.jsonl")})
    twice = ("--results", "r.jsonl", "--results", "copy.jsonl", "--out", "again.jsonl")
    assert project.run("experiment", "experiment.yaml", *twice).code == 1
    found = project.json("again.report.json")["experiment"]
    assert (found["verdict"], found["reasons"]) == ("withheld", [f"{2 * CASES} trials with more than one row"])


def test_questions_to_the_judge_are_estimated(project: Project) -> None:
    estimated = json.loads(project.run("compile", "--estimate", "experiment.yaml", "--format", "json").out)
    assert {each["target"]: each["judgements"] for each in estimated["targets"]}["reader"] == 2 * CASES


def test_power_of_a_preference_states_its_assumption(project: Project) -> None:
    table = json.loads(project.run("compile", "--power", "experiment.yaml", "--format", "json").out)
    assert (table["metric"], table["basis"]) == (
        "preferred",
        "assumed: half of the pairs have a winner, and half of the cases change",
    )


def test_answers_of_arms_are_scored_again_with_a_plan(project: Project) -> None:
    judged(project, "--out", "r.jsonl")
    error = "has answers of the arms of an experiment compile the experiment with `agentv-ci compile experiment.yaml"
    project.refuses("rescore", "r.jsonl", error=error)


def test_decided_preference_stops_the_run(project: Project) -> None:
    write_experiment(project, repeat=4, stop={"when": "decided", "look_every": CASES}, detect={"preferred": 0.5})
    found = judged(project, "--out", "r.jsonl")
    assert (found["verdict"], found["stopped"]) == ("better", "decided")
    assert found["saved_trials"] > 0


def test_pair_that_is_not_judged_is_an_error_and_judged_by_resume(project: Project) -> None:
    project.write({"reader.py": "print('both are fine')"})
    done = project.run("experiment", "experiment.yaml", "--out", "r.jsonl")
    assert done.code == 4, done
    assert f"{CASES} pairs of answers not judged, at most 0 allowed" in done.out
    found = project.json("r.report.json")["experiment"]
    assert (found["effects"][0]["pairs"], found["effects"][0]["preferences"]["unjudged"]) == (0, CASES)
    assert found["warnings"] == [f"{CASES} pairs of 'next' not judged by 'preferred', and not compared"]
    assert {row["verdict"] for row in project.rows()} == {"pass"}, "their answers are scored"
    project.write({"reader.py": READER})
    assert judged(project, "--resume", "r.jsonl")["effects"][0]["preferences"] == WINS


def test_dry_run_asks_no_judge(project: Project) -> None:
    done = project.run("experiment", "experiment.yaml", "--out", "r.jsonl", "--dry-run")
    assert "experiment: withheld\n  dry run: no target was asked\n" in done.out
    found = project.json("r.report.json")["experiment"]
    assert (found["verdict"], found["effects"][0]["preferences"]["wins"]) == ("withheld", 0)
    assert questions(project) == 0


def test_plan_of_an_experiment_judges_too_and_is_scored_again(project: Project) -> None:
    assert project.run("compile", "experiment.yaml", "--out", "plan.json").code == 0
    assert project.run("eval", "plan.json", "--out", "r.jsonl").code == 0
    assert questions(project) == 2 * CASES
    assert project.run("rescore", "r.jsonl", "plan.json", "--out", "again.jsonl").code == 0
    assert questions(project) == 2 * CASES
    assert sum(map(holds_preference, project.rows("again.jsonl"))) == CASES


def test_reports_show_what_the_judge_prefers(project: Project) -> None:
    reports = ("--markdown", "summary.md", "--html", "r.html")
    done = project.run("experiment", "experiment.yaml", "--out", "r.jsonl", *reports)
    lines = [f"preferred of 'next': {CASES} wins, 0 ties, 0 losses"]
    lines.append(f"preferred of 'next': the answer shown first was chosen {CASES} of {2 * CASES} times")
    for text in (" ".join(done.out.split()), project.text("summary.md"), project.text("r.html")):
        assert all(each.replace("'", "&#39;") in text or each in text for each in lines), text
    assert "preferred (pairwise_judge)" not in done.out, "it says nothing of single answers"


def test_what_cannot_be_compared_is_refused(project: Project) -> None:
    project.refuses(
        "experiment",
        "experiment.yaml",
        *("--engine", "dask", "--local-cluster", "1"),
        error="--engine dask does not support 'pairwise_judge'",
    )
    write_experiment(project, evaluators=[{"name": "contains", "type": "pairwise_judge", "judge_target": "reader"}])
    project.refuses(
        "experiment", "experiment.yaml", error="evaluator 'contains' has the name of an evaluator of the cases"
    )
    write_experiment(project)
    project.path("targets.yaml").unlink()
    project.refuses("experiment", "experiment.yaml", error="no targets.yaml found for 'experiment.yaml'")
