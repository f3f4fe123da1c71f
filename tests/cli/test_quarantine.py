"""A quarantine in commands: `eval`, its reports, `report` and `baseline accept`."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.support.evals import tool
from tests.support.projects import HELLO, Project

SAYS_BYE = {**HELLO, "name": "bye", "value": "bye"}
LEAVES = {"id": "leaves", "evaluators": [SAYS_BYE]}
ENTRY = {"id": "leaves", "reason": "<b>It</b> `stays`\n::error::x", "owner": "@ops", "expires": "2999-12-31"}


@pytest.fixture(autouse=True)
def documents(project: Project) -> None:
    project.documents("greets", LEAVES)


def quarantine(project: Project, *entries: dict[str, Any], name: str = ".agentv/quarantine.yaml") -> None:
    project.write({name: json.dumps({"$schema": "agentv-quarantine-v1", "quarantine": entries})})


def day(days: int) -> str:
    return f"{datetime.now(UTC) + timedelta(days=days):%Y-%m-%d}"


def test_file_of_the_repository_counts_unless_another_is_named(project: Project) -> None:
    assert project.eval().code == 1
    quarantine(project, ENTRY)
    done = project.eval()
    assert (done.code, "1 passed, 0 failed, 0 errors, 1 in quarantine" in done.out) == (0, True)
    assert "AV373" in done.err  # its end is far away
    assert project.eval("--no-quarantine").code == 1
    quarantine(project, {**ENTRY, "id": "greets"}, name="other.yaml")
    done = project.eval("--quarantine", "other.yaml")
    assert (done.code, "pass rate 0.0%" in done.out) == (1, True)


@pytest.mark.parametrize(
    ("entry", "rule"),
    [
        ({**ENTRY, "expires": day(-1)}, "AV371"),
        ({**ENTRY, "id": "gone"}, "AV372"),
        ({**ENTRY, "expires": "soon"}, "AV204"),
        ({**ENTRY, "owner": None}, "AV203"),
        ({**ENTRY, "expirse": "2030-01-01"}, "AV202"),
    ],
)
def test_errors_in_it_stop_a_run_before_it_begins(entry: dict[str, Any], rule: str, project: Project) -> None:
    project.documents("greets", LEAVES, targets=(tool("touch ../asked; echo Hello"),))
    quarantine(project, {**ENTRY, "id": "greets", "expires": day(3)}, entry)
    for command in (("eval", "evals/"), ("validate", ".agentv/quarantine.yaml")):
        done = project.run(*command)
        assert (done.code in (1, 2), f"[{rule}]" in done.out + done.err) == (True, True), done
    assert not project.path("asked").exists()


def test_entries_for_cases_that_this_run_leaves_out_are_no_mistake(project: Project) -> None:
    project.documents("greets", name="evals/y.yaml")
    quarantine(project, {**ENTRY, "expires": day(3)})
    assert project.eval("--eval-id=greets").code == 0
    done = project.run("eval", "evals/y.yaml", "--out", "y.jsonl")
    assert (done.code, project.json("y.report.json")["quarantine"]) == (0, [])


def test_what_is_checked_again_every_day_is_not_remembered_as_clean(project: Project) -> None:
    quarantine(project, {**ENTRY, "expires": day(3)})
    assert project.run("validate", ".").code == 0
    project.documents("greets")
    done = project.run("validate", ".")
    assert (done.code, "[AV372]" in done.out) == (1, True)


def test_targets_may_be_unknown(project: Project) -> None:
    project.path("targets.yaml").unlink()
    quarantine(project, {**ENTRY, "expires": day(3)}, {**ENTRY, "target": "gpt", "expires": day(3)})
    assert project.run("validate", ".agentv/quarantine.yaml").code == 0


def test_other_documents_are_no_quarantine(project: Project) -> None:
    for name, said in (("targets.yaml", "is not a quarantine"), ("none.yaml", "does not exist")):
        done = project.eval("--quarantine", name)
        assert (done.code, said in done.err) == (2, True)
    assert "cannot be combined" in project.eval("--quarantine=x.yaml", "--no-quarantine").err


def test_last_days_are_announced(project: Project) -> None:
    quarantine(project, {**ENTRY, "expires": day(0)})
    done = project.eval("--markdown", "r.md")
    assert (done.code, f"until {day(0)} (expires soon)" in done.out) == (0, True)
    assert "1 case in quarantine, not in the gate; 1 entry expires soon" in project.text("r.md")


def test_every_report_shows_it_as_text(project: Project) -> None:
    quarantine(project, ENTRY)
    files = [f"--{name}=r.{name}" for name in ("junit", "markdown", "html", "sarif")]
    assert project.eval(*files).code == 0
    assert "until 2999-12-31 · `@ops`: ``<b>It</b> `stays` ::error::x``" in project.text("r.markdown")
    skipped = '<skipped type="quarantine" message="in quarantine until 2999-12-31 (@ops): &lt;b&gt;It'
    assert skipped in project.text("r.junit")
    (result,) = project.json("r.sarif")["runs"][0]["results"]
    (suppression,) = result["suppressions"]
    assert (suppression["kind"], suppression["status"]) == ("external", "accepted")
    assert '"quarantine":"in quarantine until 2999-12-31 (@ops): \\u003cb\\u003eIt' in project.text("r.html")


def test_dry_run_and_fail_fast(project: Project) -> None:
    project.documents(LEAVES, "greets")
    quarantine(project, ENTRY)
    done = project.eval("--fail-fast")
    assert (done.code, "2 cases: 1 passed" in done.out) == (0, True)
    assert "quarantine" not in project.eval("--dry-run").out


def test_merged_and_accepted_results_know_it(project: Project) -> None:
    quarantine(project, ENTRY)
    for part in (1, 2):
        assert project.run("eval", "evals/", f"--shard={part}/2", f"--out=part-{part}.jsonl").code == 0
    done = project.run("report", "part-1.jsonl", "part-2.jsonl", "--expect-shards=2", "--out=whole.jsonl")
    assert (done.code, "1 in quarantine" in done.out) == (0, True)
    accepted = project.run("baseline", "accept", "whole.jsonl", "--out=baseline.json")
    assert "1 case in quarantine left out" in accepted.out + accepted.err
    assert [each["id"] for each in project.json("baseline.json")["cases"]] == ["greets"]
    assert project.eval("--baseline=baseline.json").code == 0


def test_validators_do_not_see_it(project: Project) -> None:
    strict = {"key": "schema_adherence", "contract": {"required": {"missing": "str"}}}
    project.documents("greets", LEAVES, validators=[strict])
    assert "validator schema_adherence: 2 errors" in project.eval("--no-quarantine").out
    quarantine(project, ENTRY)
    assert "validator schema_adherence: 1 error\n" in project.eval().out
