"""`skip: reason` on a case: it is not asked, and never left out silently."""

from __future__ import annotations

import json
from typing import Any

import pytest

import agentv_ci
from tests.support.evals import tool
from tests.support.projects import GREETS, HELLO, JUDGED, Project

LATER = {"id": "later", "skip": "Not ready", "execution": {"repeat": 3}}
SAYS_BYE = {**HELLO, "name": "bye", "value": "bye"}
WRONG = {"id": "leaves", "evaluators": [SAYS_BYE]}


@pytest.fixture(autouse=True)
def documents(project: Project) -> None:
    project.documents("greets", LATER)


def verdicts(project: Project, name: str = "r.jsonl") -> list[tuple[str, int, str]]:
    return sorted((row["eval_id"], row["trial"], row["verdict"]) for row in project.rows(name))


def counts(project: Project, name: str = "r.report.json") -> Any:
    return project.json(name)["counts"]


SKIPPED = [("greets", 1, "pass"), ("later", 1, "skipped")]


def test_skipped_case_is_not_asked_and_has_one_row(project: Project) -> None:
    project.documents("greets", LATER, targets=(tool("echo asked >> ../asked; echo Hello"),))
    done = project.eval()
    assert done.code == 0, done
    assert project.text("asked") == "asked\n"
    (row,) = [row for row in project.rows() if row["eval_id"] == "later"]
    expected: dict[str, Any] = {
        "status": "skipped",
        "verdict": "skipped",
        "score": None,
        "skip": "Not ready",
        "error": None,
    }
    expected |= {"attempts": 0, "requests": 0, "candidate_answer": "", "evaluator_results": []}
    assert {name: row[name] for name in expected} == expected
    assert (counts(project)["cases"], counts(project)["passed"], counts(project)["skipped"]) == (2, 1, 1)
    assert project.json("r.report.json")["statistics"]["mean"] == 1.0


@pytest.mark.parametrize(
    ("flags", "says"), [((), "1 passed, 0 failed, 0 errors, 1 skipped"), (("--quiet",), "gate: passed; 2 cases: 1 pas")]
)
def test_the_end_says_how_many_are_skipped(flags: tuple[str, ...], says: str, project: Project) -> None:
    done = project.eval(*flags)
    assert says in done.out
    assert "1 skipped" in done.out


def test_reason_is_text_in_every_report(project: Project) -> None:
    project.documents("greets", {**LATER, "skip": "<b>&amp; `x`\n::error::y"})
    done = project.eval("--junit", "r.xml", "--markdown", "r.md", "--html", "r.html")
    assert done.code == 0, done
    assert "later: <b>&amp; `x` ::error::y" in done.out
    assert 'message="&lt;b&gt;&amp;amp; `x` ::error::y"' in project.text("r.xml")
    assert "`later`: ``<b>&amp; `x` ::error::y``" in project.text("r.md")
    assert "<b>" not in project.text("r.html")
    assert project.run("report", "r.jsonl", "--out", "again.yaml").code == 0
    assert "skip: " in project.text("again.yaml")


@pytest.mark.parametrize("flags", [(), ("--dry-run",)])
def test_nothing_graded_is_no_pass(flags: tuple[str, ...], project: Project) -> None:
    project.documents(LATER)
    done = project.eval(*flags)
    assert ("no case was graded: all are skipped" in done.out, done.code) == ((False, 0) if flags else (True, 1)), done
    assert "gate: passed" not in done.out
    assert verdicts(project) == [("later", 1, "skipped")]


def test_a_suite_of_skipped_cases_fails_no_other(project: Project) -> None:
    project.documents(LATER, name="evals/y.yaml")
    assert project.eval().code == 0
    assert counts(project)["skipped"] == 2


def test_skipping_changes_no_digest(project: Project) -> None:
    before = project.run("compile", "evals", "--out", "before.json")
    project.documents("greets", {**LATER, "skip": "Another reason"})
    done = project.run("compile", "evals", "--diff", "before.json", "--format", "json")
    assert (before.code, done.code) == (0, 0), done
    assert json.loads(done.out)["changed"] == []


@pytest.mark.parametrize("command", ["eval", "compile"])
def test_list_says_what_is_skipped(command: str, project: Project) -> None:
    done = project.run(command, "evals", "--list")
    assert "skipped: later: Not ready\n2 cases, 1 trial, 1 skipped\n" in done.out, done
    cases = json.loads(project.run(command, "evals", "--list", "--format", "json").out)["cases"]
    assert [(each["id"], each["trials"], each.get("skip")) for each in cases] == [
        ("greets", 1, None),
        ("later", 0, "Not ready"),
    ]


def test_estimate_leaves_out_what_is_skipped(project: Project) -> None:
    found = json.loads(project.run("compile", "evals", "--estimate", "--format", "json").out)
    assert (found["cases"], found["trials"], found["requests"]) == (1, 1, 1)


def test_resumed_run_keeps_the_row(project: Project) -> None:
    project.eval()
    before = project.text("r.jsonl")
    done = project.eval("--resume", "r.jsonl")
    assert (done.code, project.text("r.jsonl")) == (0, before)
    assert "1 of 1 trial already" in done.err


def test_resumed_run_asks_what_is_no_longer_skipped_and_drops_what_is(project: Project) -> None:
    project.eval()
    project.documents({"id": "greets", "skip": "Broken"}, {"id": "later"})
    assert project.eval("--resume", "r.jsonl").code == 0
    assert verdicts(project) == [("greets", 1, "skipped"), ("later", 1, "pass")]


def test_resumed_run_after_all_were_skipped(project: Project) -> None:
    project.documents(LATER)
    project.eval()
    project.documents({**LATER, "skip": "Another reason"})
    assert project.eval("--resume", "r.jsonl").code == 1
    assert [row["skip"] for row in project.rows()] == ["Another reason"]
    project.documents("later", "more")
    assert project.eval("--resume", "r.jsonl").code == 0


def test_only_failed_leaves_it_out(project: Project) -> None:
    project.documents(WRONG, LATER)
    project.eval()
    assert project.run("eval", "evals", "--failed", "r.jsonl", "--out", "again.jsonl").code == 1
    assert verdicts(project, "again.jsonl") == [("leaves", 1, "fail")]


def test_report_and_rescore_keep_the_row(project: Project) -> None:
    project.eval()
    assert project.run("report", "r.jsonl", "--out", "whole.jsonl").code == 0
    done = project.run("rescore", "r.jsonl", "--out", "again.jsonl")
    assert done.code == 0, done
    assert verdicts(project, "whole.jsonl") == verdicts(project, "again.jsonl") == SKIPPED
    assert counts(project, "whole.report.json") == counts(project, "again.report.json") == counts(project)


def test_rescored_answers_of_a_case_that_is_skipped_since(project: Project) -> None:
    project.documents("greets", {"id": "later", "execution": {"repeat": 3}})
    project.eval()
    project.documents("greets", {**LATER, "evaluators": [JUDGED]})
    done = project.run("rescore", "r.jsonl", "--out", "again.jsonl")
    assert (done.code, verdicts(project, "again.jsonl")) == (0, SKIPPED), done


def test_rescored_row_of_a_case_that_is_no_longer_skipped(project: Project) -> None:
    project.eval()
    project.documents("greets", "later")
    assert project.run("rescore", "r.jsonl", "--out", "again.jsonl").code == 0
    assert verdicts(project, "again.jsonl") == SKIPPED


def test_compared_case_has_no_verdict_to_lose(project: Project) -> None:
    project.documents("greets", "later")
    project.eval("--out", "base.jsonl")
    project.documents("greets", LATER)
    project.eval()
    done = project.run("compare", "base.jsonl", "r.jsonl")
    assert done.code == 0, done
    assert "  skipped: later\n" in done.out
    assert "not in this run" not in done.out
    back = project.run("compare", "r.jsonl", "base.jsonl")
    assert (back.code, "  new: later\n" in back.out) == (0, True), back


def test_baseline_has_no_skipped_case(project: Project) -> None:
    project.eval()
    done = project.run("baseline", "accept", "r.jsonl", "--out", "b.json")
    assert (done.code, [each["id"] for each in project.json("b.json")["cases"]]) == (0, ["greets"]), done
    project.documents("greets", {"id": "later"})
    assert project.eval("--baseline", "b.json").code == 0
    assert project.json("r.report.json")["comparison"]["counts"]["new"] == 1


def test_shards_together_are_the_run(project: Project) -> None:
    for number in (1, 2):
        done = project.run("eval", "evals", "--shard", f"{number}/2", "--out", f"{number}.jsonl")
        assert done.code == 0, done
    assert project.run("report", "1.jsonl", "2.jsonl", "--out", "r.jsonl").code == 0
    assert verdicts(project) == SKIPPED
    assert counts(project)["skipped"] == 1


def test_stopped_run_says_what_is_skipped(project: Project) -> None:
    project.documents(WRONG, "greets", LATER)
    assert project.eval("--fail-fast", "--workers", "1").code == 1
    found = counts(project)
    assert (found["failed"], found["not_run"], found["skipped"]) == (1, 1, 1)


def test_validators_do_not_see_it(project: Project) -> None:
    project.documents("greets", LATER, validators=["structural_consistency"])
    assert project.eval().code == 0
    (scenario,) = project.json("r.report.json")["scenario_reports"]
    assert "later" not in json.dumps(scenario)


def test_python_api_has_the_reason_and_no_score(project: Project) -> None:
    greets, later = agentv_ci.run("evals", cwd=project.folder).cases
    assert (greets.verdict, greets.score) == ("pass", 1.0)
    assert (later.verdict, later.score, later.reasons) == ("skipped", None, ("Not ready",))


def test_progress_and_the_target_ignore_it(project: Project) -> None:
    closed = {"name": "closed", "provider": "openai", "model": "gpt-5", "api_key": "${{ MISSING_KEY }}"}
    project.documents("greets", {**LATER, "execution": {"target": "closed"}}, targets=(GREETS, closed))
    assert project.eval().code == 0
    assert verdicts(project) == SKIPPED
