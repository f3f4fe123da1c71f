"""`agentv-ci github issue`: one issue as long as evaluations have shifted."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from tests.action import events
from tests.action.github_api import BOT, Failure, FakeGitHub
from tests.cli.builders import Job
from tests.support import CommandResult
from tests.support.markdown import MarkdownPage

FELL = {
    "kind": "drifting-provider",
    "severity": "warning",
    "suite": "evals/x.yaml",
    "id": "greets",
    "target": "gpt",
    "message": "mean score 0.40 since 2026-11-02, 0.90 before",
    "action": "name the version of the model",
    "runs": 40,
    "before": 0.9,
    "after": 0.4,
    "since": "2026-11-02T02:00:00Z",
    "fell_from": 0.9,
    "run_url": "https://github.com/acme/demo/actions/runs/17",
}
ROSE = {**FELL, "before": 0.4, "after": 0.9, "fell_from": None}
PARTLY = {**FELL, "before": 0.3, "after": 0.5}
JUDGE = {**ROSE, "kind": "drifting-judge", "before": 0.4, "after": 0.9, "message": "judges score the same answers 0.9"}
NOISE = [{**FELL, "kind": kind} for kind in ("flaky", "dead", "saturated", "model-changed", "slow", "redundant")]
MARK = "<!-- agentv-ci:shifts Evals -->\n"


@pytest.fixture
def github(job: Job) -> Iterator[FakeGitHub]:
    found = FakeGitHub(permissions={"issues": "write"})
    job.on("schedule", events.push("1" * 40))
    with found.running() as url:
        job.env |= {"GITHUB_API_URL": url, "GITHUB_TOKEN": "ghs_0123456789"}
        yield found
    assert found.violations == []


def reports(job: Job, *findings: dict[str, Any]) -> CommandResult:
    """Report these findings of a night."""
    report = {
        "$schema": "https://org.github.io/agentv-action/schemas/health-v1.schema.json",
        "source": "refs/remotes/origin/agentv-history (1f2e3d4)",
        "runs": 40,
        "first": "2026-10-01T02:00:00Z",
        "last": "2026-11-10T02:00:00Z",
        "cases": 3,
        "unjudged": 0,
        "false_alarms": 0.01,
        "findings": findings,
        "damaged": [],
    }
    job.write({"health.json": json.dumps(report)})
    return job.run("github", "issue", "health.json")


def test_issue_is_opened_updated_and_closed(job: Job, github: FakeGitHub) -> None:
    assert reports(job, *NOISE, ROSE).out == "no new shift, and no open issue\n"
    assert github.issues == []
    assert reports(job, FELL).out == "issue opened: https://github.com/acme/demo/issues/1\n"
    assert reports(job, FELL, JUDGE).out == "issue updated: https://github.com/acme/demo/issues/1\n"
    (issue,) = github.issues
    assert (issue["title"], issue["labels"], issue["state"]) == ("Evaluations have shifted", ["agentv-ci"], "open")
    assert issue["body"].startswith(MARK)
    assert (
        "- 📉 `evals/x.yaml: greets [gpt]`: `mean score 0.40 since 2026-11-02, 0.90 before` ([first run]("
        in issue["body"]
    )
    assert "- ⚖️ `evals/x.yaml: greets [gpt]`: `judges score the same answers 0.9`" in issue["body"]
    assert "A shift is chance in at most 1% of reports. 40 runs of " in issue["body"]
    assert reports(job, PARTLY).out == "issue updated: https://github.com/acme/demo/issues/1\n"
    assert reports(job, ROSE).out == "issue closed: https://github.com/acme/demo/issues/1\n"
    assert (issue["state"], "It is over: no shift is left" in issue["body"]) == ("closed", True)
    assert reports(job, ROSE).out == "no new shift, and no open issue\n"
    assert reports(job, JUDGE).out == "issue opened: https://github.com/acme/demo/issues/2\n"


def test_issue_that_a_person_closed_is_not_opened_again(job: Job, github: FakeGitHub) -> None:
    reports(job, FELL, JUDGE)
    github.issues[0]["state"] = "closed"
    for shifts in ((FELL, JUDGE), (FELL,)):
        assert reports(job, *shifts).out == "no new shift, and no open issue\n"
    later = {**FELL, "since": "2026-11-09T02:00:00Z"}
    assert reports(job, later).out == "issue opened: https://github.com/acme/demo/issues/2\n"
    assert reports(job, ROSE).out == "issue closed: https://github.com/acme/demo/issues/2\n"
    # It is over, and begins again.
    assert reports(job, later).out == "issue opened: https://github.com/acme/demo/issues/3\n"


def test_issues_of_others_are_left_alone(job: Job, github: FakeGitHub) -> None:
    plain = {"title": "Evaluations have shifted", "state": "open", "labels": ["agentv-ci"]}
    github.issues = [
        {**plain, "number": 1, "author": "stranger", "body": f"{MARK}mine"},
        {**plain, "number": 2, "author": BOT, "body": "<!-- agentv-ci:shifts Other -->\nof another workflow"},
        {**plain, "number": 3, "author": BOT, "body": f"{MARK}the first"},
        {**plain, "number": 4, "author": BOT, "body": f"{MARK}a second one"},
    ]
    assert reports(job, FELL).out.endswith("issue updated: https://github.com/acme/demo/issues/3\n")
    assert [each["state"] for each in github.issues] == ["open", "open", "open", "closed"]
    assert [each["body"] for each in github.issues[:2]] == [
        f"{MARK}mine",
        "<!-- agentv-ci:shifts Other -->\nof another workflow",
    ]


def test_texts_of_the_ledger_stay_text(job: Job, github: FakeGitHub) -> None:
    attack = "@octocat #1 ![x](https://evil.example/x.png) <img src=x> ` -->\n# x"
    forged = dict.fromkeys(("suite", "id", "target", "message", "action", "run_url"), attack)
    reports(job, {**FELL, **forged})
    page = MarkdownPage(github.issues[0]["body"])
    assert page.links == ["https://github.com/acme/demo/actions/runs/5"]
    mark, found = page.comments
    assert ("@octocat" in page.loose, mark) == (False, " agentv-ci:shifts Evals ")
    assert re.fullmatch(" agentv-ci:found [0-9a-f]{12} ", found)


@pytest.mark.parametrize(
    ("failure", "said"),
    [
        (Failure(403, "Resource not accessible by integration"), "the job needs `issues: write`"),
        (Failure(410, "Issues are disabled for this repo"), "GitHub returned 410: Issues are disabled"),
    ],
)
def test_refusal_is_a_notice(failure: Failure, said: str, job: Job, github: FakeGitHub) -> None:
    github.failures = [failure]
    done = reports(job, FELL)
    assert (done.code, said in done.out) == (0, True)
    assert done.out.startswith("::notice title=No issue about shifts::")
    del job.env["GITHUB_TOKEN"]
    assert "::GITHUB_TOKEN is not set" in reports(job, FELL).out


def test_file_that_is_no_report(job: Job, github: FakeGitHub) -> None:
    job.write({"x.json": "{}"})
    for name, said in (("x.json", "is not a health report: "), ("none.json", "No such file or directory")):
        done = job.run("github", "issue", name)
        assert (done.code, said in done.err, "history health --format json" in done.err) == (2, True, True)
    assert github.calls == []
