"""A pull request with a regression that lowers its own test: it fails, or the comment says so in its first ten lines.

In every change the agent no longer says goodbye, which the case `leaves` requires.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.action import events
from tests.action.rig import git
from tests.cli.builders import Change, Job, quarantine
from tests.support.projects import HELLO

FIRST_LINES = 10
LEAVES = {"name": "leaves", "type": "contains", "value": "goodbye", "required": True}
GREETS_CASE = {"id": "greets", "input_messages": [{"role": "user", "content": "Greet me"}], "evaluators": [HELLO]}
LEAVES_CASE = {**GREETS_CASE, "id": "leaves", "evaluators": [HELLO, LEAVES]}
LEAVES_CASE["input_messages"] = [{"role": "user", "content": "Leave"}]
CASES = [GREETS_CASE, LEAVES_CASE]
AGENT = {"name": "default", "provider": "cli", "command_template": "cat ../agent.txt", "prompt": "none"}
MOCK = {"name": "default", "provider": "mock", "response": "Hello and goodbye"}
BROKEN = {**AGENT, "name": "broken", "command_template": "exit 3"}
BASELINE = ".agentv/baseline.json"
TARGET_LINE = "target default is now a mock, was cli"


@pytest.fixture
def change(job: Job) -> Iterator[Change]:
    found = Change(job)
    yield found
    assert found.github.violations == []


def docs(job: Job, *cases: Any, targets: Any = (AGENT,), **execution: Any) -> None:
    """Write the documents with lines, as people do."""
    job.documents(*cases, targets=targets, **execution)
    for name in ("evals/x.yaml", "targets.yaml"):
        job.write({name: json.dumps(job.json(name), indent=1)})


def leaving(**given: Any) -> list[Any]:
    """Return the cases, `leaves` with other settings."""
    return [GREETS_CASE, {**LEAVES_CASE, **given}]


def scored(**given: Any) -> list[Any]:
    """Return the cases, the evaluator `leaves` with other settings."""
    return leaving(evaluators=[HELLO, {**LEAVES, **given}])


def begin(change: Change, *, baseline: bool = False, **execution: Any) -> None:
    """Commit the base branch, where the agent says both."""
    job = change.job
    docs(job, *CASES, **execution)
    job.write({"agent.txt": "Hello and goodbye", ".gitignore": "agentv-results/\nresults.*\n"})
    if baseline:
        assert job.run("eval", "evals", "--out", "results.jsonl").code == 0
        assert job.run("baseline", "accept", "results.jsonl", "--out", BASELINE).code == 0
    change.base()
    job.write({"agent.txt": "Hello"})


def played(change: Change, *options: str, baseline: bool = False) -> list[str]:
    """Commit the change, run the action's steps, and return the first lines of the comment."""
    job = change.job
    change.commit()
    job.on("pull_request", events.pull_request(git(job.folder, "rev-parse", "HEAD")))
    change.reads_base(*([f"--baseline={BASELINE}"] if baseline else []))
    job.step(*options)
    with change.github.running() as url:
        job.env |= {"GITHUB_API_URL": url, "GITHUB_GRAPHQL_URL": f"{url}/graphql", "GITHUB_TOKEN": "ghs_0123456789"}
        job.env["AGENTV_BASE_ARTIFACT"] = ""
        job.publish("--comment=always")
    return change.github.comments[-1].body.splitlines()[:FIRST_LINES]


def forged_cache(job: Job) -> None:
    assert job.run("eval", "evals", "--cache", "--out", "results.jsonl").code == 1
    for path in job.path(".agentv/cache").glob("*/*.json"):
        path.write_text(path.read_text("utf-8").replace('"Hello"', '"Hello and goodbye"'), "utf-8")
    job.path(".agentv/cache/.gitignore").unlink(missing_ok=True)


def forged_recordings(job: Job) -> None:
    assert job.run("eval", "evals", "--record", "recordings", "--out", "results.jsonl").code == 1
    for path in job.path("recordings").rglob("*.json"):
        path.write_text(path.read_text("utf-8").replace('"Hello"', '"Hello and goodbye"'), "utf-8")


def moved(job: Job) -> None:
    """Move the case to a file of its own, whose gate is lower."""
    docs(job, GREETS_CASE)
    job.write({"evals/y.yaml": job.text("evals/x.yaml")})
    job.documents(LEAVES_CASE, targets=(AGENT,), name="evals/y.yaml", gate={"min_pass_rate": 0.0})


def in_quarantine(job: Job) -> None:
    entry = {"id": "leaves", "reason": "It is rude.", "owner": "ops", "expires": "2999-12-31"}
    job.write({".agentv/quarantine.yaml": quarantine(entry)})


COUNTS_LATER = "does not count before it is merged"
WAYS: dict[str, tuple[Callable[[Job], object], tuple[str, ...], str, str]] = {
    # name: the change, the options of the workflow, the verdict, and what the first lines say
    "min_pass_rate": (lambda job: docs(job, *CASES, gate={"min_pass_rate": 0.1}), (), "fail", "min_pass_rate 1 → 0.1"),
    "threshold": (lambda job: docs(job, *CASES, threshold=0.0), (), "fail", "threshold 0.8 → 0"),
    "max_errors": (
        lambda job: docs(
            job, *leaving(execution={"target": "broken"}), targets=(AGENT, BROKEN), gate={"max_errors": 9}
        ),
        ("--min-pass-rate=1.0",),
        "error",
        "max_errors 0 → 9",
    ),
    "case deleted": (lambda job: docs(job, GREETS_CASE), (), "pass", "missing, was in evals/x.yaml:"),
    "case renamed": (
        lambda job: docs(job, *leaving(id="stays", evaluators=[HELLO])),
        (),
        "pass",
        "evaluator leaves (contains) removed` · case `stays`",
    ),
    "case moved": (moved, (), "fail", "min_pass_rate 1 → 0"),
    "evaluator removed": (
        lambda job: docs(job, *leaving(evaluators=[HELLO])),
        (),
        "pass",
        "evaluator leaves (contains) removed",
    ),
    "weight 0": (
        lambda job: docs(job, *scored(weight=0, required=False)),
        (),
        "fail",
        "evaluator leaves: weight 1 → 0",
    ),
    "weight of another": (
        lambda job: docs(job, *leaving(evaluators=[{**HELLO, "weight": 99}, {**LEAVES, "required": False}])),
        (),
        "fail",
        "evaluator leaves: weight 50% → 1% of the score",
    ),
    "not required": (
        lambda job: docs(job, *scored(required=False), threshold=0.5),
        (),
        "fail",
        "evaluator leaves: no longer required",
    ),
    "negated": (lambda job: docs(job, *scored(negate=True)), (), "pass", "evaluator leaves: negate False → True"),
    "replaced": (
        lambda job: docs(job, *scored(type="regex", value=".")),
        (),
        "pass",
        "evaluator leaves: replaced: contains → regex",
    ),
    "another text": (lambda job: docs(job, *scored(value="e")), (), "pass", "evaluator 'leaves' value goodbye → e"),
    "mock": (lambda job: docs(job, *CASES, targets=(MOCK,)), (), "pass", TARGET_LINE),
    "skip": (lambda job: docs(job, *leaving(skip="later")), (), "pass", "skipped` · case `leaves`"),
    "quarantine": (in_quarantine, (), "fail", "quarantine of leaves until 2999-12-31"),
    "cache": (forged_cache, ("--args=--cache",), "pass", "2 files with stored answers new or changed"),
    "recordings": (forged_recordings, ("--args=--replay recordings",), "pass", "2 recordings new or changed"),
}
assert len(WAYS) == 18


@pytest.mark.parametrize("baseline", [False, pytest.param(True, marks=pytest.mark.slow)], ids=["", "baseline"])
@pytest.mark.parametrize("name", WAYS)
def test_no_change_lowers_its_own_test_unseen(name: str, baseline: bool, change: Change) -> None:
    lower, options, verdict, said = WAYS[name]
    begin(change, baseline=baseline)
    lower(change.job)
    first = played(change, *options, baseline=baseline)
    assert said in "\n".join(first), first
    assert change.job.outputs["verdict"] == verdict
    if verdict != "pass":
        assert COUNTS_LATER in "\n".join(first)
    assert said in change.job.summary


def stored_rows(job: Job) -> None:
    job.write({"agent.txt": "Hello and goodbye"})
    assert job.run("eval", "evals", "--out", "rows.jsonl").code == 0
    job.write({"agent.txt": "Hello"})


ECHO = {**AGENT, "command_template": "echo Hello and goodbye"}
OTHER_WAYS: dict[str, tuple[Callable[[Job], object], tuple[str, ...], str]] = {
    "another command": (lambda job: docs(job, *CASES, targets=(ECHO,)), (), "greets, leaves: target command_template"),
    "another target": (
        lambda job: docs(job, *leaving(execution={"target": "easy"}), targets=(AGENT, {**ECHO, "name": "easy"})),
        (),
        "leaves: target default → easy",
    ),
    "rows": (stored_rows, ("--args=--resume rows.jsonl",), "1 file with stored answers new or changed"),
    "a tag": (
        lambda job: docs(job, *leaving(tags=["slow"])),
        ("--args=--not-tag slow",),
        "missing, was in evals/x.yaml:32` · case `leaves`",
    ),
}


@pytest.mark.parametrize("name", OTHER_WAYS)
def test_other_ways_are_named_in_the_first_lines(name: str, change: Change) -> None:
    lower, options, said = OTHER_WAYS[name]
    begin(change)
    lower(change.job)
    assert said in "\n".join(played(change, *options))
    assert change.job.outputs["verdict"] == "pass"


def test_honest_change_is_not_accused(change: Change) -> None:
    begin(change)
    asked = {**LEAVES_CASE, "input_messages": [{"role": "user", "content": "Please leave"}]}
    docs(change.job, GREETS_CASE, asked, {**GREETS_CASE, "id": "new"}, gate={"max_errors": 0})
    change.job.write({"agent.txt": "Hello, and goodbye"})
    first = "\n".join(played(change))
    assert "lowers" not in first
    assert "`leaves: input message 1 text changed`, `1 new case: new`" in first
    assert change.job.outputs["verdict"] == "pass"
    assert "Gate: `pass rate ≥ 100%, errors ≤ 0` · held to `main (" in change.job.summary


def test_change_of_the_agent_alone_says_nothing_of_the_test(change: Change) -> None:
    begin(change)
    assert not [line for line in played(change) if "compared with" in line]
    assert change.report["against_base"]["lowered"] == change.report["against_base"]["others"] == []


def test_base_branch_that_moved_on_is_no_lowering(change: Change) -> None:
    """Not what the base branch has gained since the change began, but what it had counts."""
    begin(change)
    folder = change.job.folder
    change.commit()
    git(folder, "switch", "-q", "main")
    docs(change.job, *CASES, {**GREETS_CASE, "id": "later"}, gate={"min_mean_score": 0.9})
    change.commit()
    git(folder, "switch", "-q", "feat")
    assert not [line for line in played(change) if "lowers" in line]
    assert change.report["against_base"]["missing"] == 0


@pytest.mark.parametrize(("missing_cases", "verdict"), [("report", "pass"), ("fail", "fail")])
def test_missing_cases_fail_where_the_workflow_wants_it(missing_cases: str, verdict: str, change: Change) -> None:
    begin(change)
    docs(change.job, GREETS_CASE)
    first = played(change, f"--missing-cases={missing_cases}")
    assert change.job.outputs["verdict"] == verdict
    assert "· case `leaves`" in first[4]
    reasons = [each.split(" of ")[0] for each in change.report["gate"]["reasons"]]
    assert reasons == (["1 case"] if verdict == "fail" else [])


def test_gate_of_the_change_counts_where_the_workflow_wants_it_visibly(change: Change) -> None:
    begin(change)
    docs(change.job, *CASES, gate={"min_pass_rate": 0.5})
    first = "\n".join(played(change, "--gate-from=head"))
    assert change.job.outputs["verdict"] == "pass"
    assert "This change lowers its own test, and that counts**" in first
    assert COUNTS_LATER not in first
    assert "⚠️ that of this change, even where it is lower (`gate-from: head`)" in change.job.summary


def test_baseline_is_compared_at_its_own_threshold(change: Change) -> None:
    """Also where the gate of the change counts: a lower one makes no regression unseen."""
    begin(change, baseline=True)
    assert {each["threshold"] for each in change.job.json(BASELINE)["cases"]} == {0.8}
    docs(change.job, *CASES, threshold=0.0)
    first = "\n".join(played(change, "--gate-from=head", baseline=True))
    assert "This change lowers its own test, and that counts**" in first
    compared = change.report["comparison"]
    assert [(each["id"], each["change"]) for each in compared["cases"]] == [("leaves", "regressed")]
    said = "1 case with trials that pass only below the threshold of baseline.json, which count as failed: leaves"
    assert said in compared["warnings"]
    assert said in change.github.comments[-1].body
    assert change.job.outputs["verdict"] != "pass"


def test_options_of_the_workflow_pin_the_gate(change: Change) -> None:
    begin(change, gate={"min_pass_rate": 0.9, "max_errors": 0})
    docs(change.job, *CASES, gate={"min_pass_rate": 0.1, "max_errors": 9})
    first = "\n".join(played(change, "--min-pass-rate=0.5", "--max-errors=1", "--min-mean-score=0.5"))
    assert "lowers" not in first
    assert change.job.outputs["verdict"] == "pass"
    assert "Gate: `pass rate ≥ 50%, mean score ≥ 0.5, errors ≤ 1`" in first


def test_annotations_are_on_the_lines_that_lower_the_test(change: Change) -> None:
    begin(change)
    docs(change.job, GREETS_CASE, scored(weight=0)[1], targets=(MOCK,), gate={"max_errors": 9})
    change.commit()
    change.reads_base()
    change.job.step()
    said = [line for line in change.job.publish("--comment=never").out.splitlines() if "lowers its own test" in line]
    places = [re.findall(r"file=(.+?),line=(\d+),", line)[0] for line in said]
    shown = [change.job.text(file).splitlines()[int(line) - 1 : int(line) + 1] for file, line in places]
    expected = ('"max_errors": 9', '"name": "default"', '"name": "leaves"')
    assert [text in "".join(lines) for text, lines in zip(expected, shown, strict=True)] == [True] * 3


def test_many_ways_of_one_kind_do_not_hide_another(change: Change) -> None:
    limits = {"min_mean_score": 0.9, "max_cost_usd": 1, "max_cost_increase": "1%", "max_tokens_increase": "1%"}
    begin(change, gate=limits)
    docs(change.job, GREETS_CASE, targets=(MOCK,), gate={"max_errors": 3, "min_pass_rate": 0.0})
    first = played(change)
    assert [kind in "\n".join(first) for kind in ("missing, was in", "is now a mock", "max_cost_increase")] == [
        True
    ] * 3
    assert first[8] == "- … and 4 more: gate (4)"
    assert "All 8 changes of the test" in change.github.comments[-1].body


def test_edits_of_questions_do_not_hide_one_of_an_evaluator(change: Change) -> None:
    begin(change)
    more = [{**GREETS_CASE, "id": f"a{number}"} for number in range(9)]
    edited = {**GREETS_CASE, "input_messages": [{"role": "user", "content": "Greet me!"}]}
    docs(change.job, edited, *more, *scored(value="e")[1:])
    change.job.write({".env": "BASE_URL=http://localhost"})
    first = "\n".join(played(change))
    assert "`variables in .env changed`, `leaves: evaluator 'leaves' value goodbye → e`, " in first


def test_base_branch_that_cannot_be_read_is_named_and_the_change_counts(change: Change) -> None:
    begin(change)
    docs(change.job, *CASES, gate={"min_pass_rate": 0.1})
    change.commit()
    change.reads_base(token="")
    assert change.job.step().code == 0
    change.job.publish("--comment=never")
    assert "not compared with `main`, so that of this change counts: " in change.job.summary
    assert "GITHUB_TOKEN is not set; pass it to this step" in change.job.summary


@pytest.mark.parametrize(
    ("before", "why"),
    [
        ({"evals/x.yaml": '{"$schema": "agentv-eval-v2", "evalcases": [{"id": 1}]}'}, "its documents have errors: "),
        ({"evals/x.yaml": "x: 1"}, "no eval document in "),
    ],
    ids=["invalid", "none"],
)
def test_base_branch_without_valid_tests_is_named(before: dict[str, str], why: str, change: Change) -> None:
    change.job.write(before)
    change.base()
    docs(change.job, *CASES)
    change.job.write({"agent.txt": "Hello and goodbye"})
    first = played(change)
    line = next(line for line in first if line.startswith("Gate: "))
    assert f"so that of this change counts: `{why}" in line
    assert str(change.job.folder) not in line
    assert change.job.outputs["verdict"] == "pass"


def test_checkout_within_the_change_does_not_hide_its_tests(change: Change) -> None:
    begin(change)
    docs(change.job, *CASES, gate={"min_pass_rate": 0.1})
    change.commit()
    git(change.job.path("evals"), "init", "-q")
    change.reads_base()
    change.job.step()
    assert [each["text"] for each in change.report["against_base"]["lowered"]] == ["min_pass_rate 1 → 0.1"]


def test_merged_shards_say_what_the_change_lowers(change: Change) -> None:
    begin(change)
    docs(change.job, *CASES, gate={"min_pass_rate": 0.1})
    change.commit()
    change.reads_base()
    for number in (1, 2):
        change.job.step(f"--shard={number}/2", f"--results-dir=part-{number}")
    parts = [f"part-{number}/results.jsonl" for number in (1, 2)]
    done = change.job.run("report", *parts, "--expect-shards", "2", "--out", "agentv-results/results.jsonl")
    assert done.code == 1
    change.job.publish("--comment=never")
    assert "`min_pass_rate 1 → 0.1`" in change.job.summary


def test_run_that_is_not_of_a_change_shows_its_gate_alone(job: Job) -> None:
    docs(job, *CASES, gate={"min_pass_rate": 0.5})
    job.write({"agent.txt": "Hello"})
    job.on("push", events.push("1" * 40))
    assert job.step().code == 0
    job.publish("--comment=never")
    assert "Gate: `pass rate ≥ 50%, errors ≤ 0`\n" in job.summary
