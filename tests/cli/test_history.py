"""Results become runs of a ledger, and runs of a ledger findings."""

from __future__ import annotations

import json
import shutil
import subprocess
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from agentv_ci.ledger.folder import add_to_folder
from agentv_ci.ledger.lines import file_of
from agentv_ci.results import yaml
from tests.support.ledgers import case_line
from tests.support.nights import Stretch, files_of
from tests.support.projects import GREETS, JUDGED, Project
from tests.support.runs import case, finding
from tests.support.runs import row as row_of

row = partial(row_of, timestamp="2026-01-02T03:04:05.000Z")
"""A row of a run that is over."""


@pytest.fixture
def project(repository: Path) -> Project:
    return Project(repository)


def ledger(project: Project, folder: str = "ledger") -> list[list[dict[str, Any]]]:
    """Return the lines of each run, the oldest first."""
    files = sorted(project.path(folder).rglob("*.jsonl"), key=lambda path: path.name)
    return [[json.loads(line) for line in path.read_text("utf-8").splitlines()] for path in files]


def add(project: Project, *rows: Any) -> list[dict[str, Any]]:
    """Add rows to a new ledger, and return the lines of its cases."""
    project.store("r.jsonl", *(each.model_dump(mode="json") for each in rows))
    shutil.rmtree(project.path("ledger"), ignore_errors=True)
    done = project.run("history", "add", "r.jsonl", "--dir", "ledger")
    assert (done.code, done.err) == (0, ""), done
    ((_, *cases),) = ledger(project)
    return cases


def test_latest_results_are_added_once(project: Project) -> None:
    project.documents("greets", targets=(GREETS,))
    assert project.run("eval").code == 0
    first = project.run("history", "add", "--dir", "ledger")
    assert first.out == f"1 run added to {project.path('ledger')}\n"
    again = project.run("history", "add", "--dir", "ledger")
    assert again.out == f"0 runs added to {project.path('ledger')}; 1 run was in it already\n"
    ((head, line),) = ledger(project)
    assert head["cases"] == 1
    assert (line["id"], line["verdict"], line["passed"]) == ("greets", "pass", 1)
    assert "Hello" not in json.dumps([head, line])


def test_run_names_commit_and_workflow(project: Project) -> None:
    project.documents("greets", targets=(GREETS,))
    project.env |= {
        "GITHUB_ACTIONS": "true",
        "GITHUB_REPOSITORY": "acme/evals",
        "GITHUB_RUN_ID": "7",
        "GITHUB_SERVER_URL": "https://github.com",
    }
    project.eval()
    report = project.json("r.report.json")
    report["origin"]["commit"] = "4f" * 20
    project.write({"r.report.json": json.dumps(report)})
    project.run("history", "add", "r.jsonl", "--dir", "ledger")
    ((head, _),) = ledger(project)
    assert head["commit"] == "4f" * 20
    assert head["run_url"] == "https://github.com/acme/evals/actions/runs/7"
    project.run("history", "add", "r.jsonl", "--dir", "other", "--run-url", "https://ci.example/7")
    ((head, _),) = ledger(project, "other")
    assert head["run_url"] == "https://ci.example/7"


def test_trials_make_one_line(project: Project) -> None:
    of = case(trials=3)
    (line,) = add(
        project,
        row("pass", 1.0, of=of, trial=1, cost_usd=0.001234, judge_cost_usd=0.0005, duration_ms=100, model="b"),
        row("fail", 0.25, of=of, trial=2, cost_usd=0.002, duration_ms=301, model="a"),
        row("error", of=of, trial=3, duration_ms=9_000),
    )
    assert {key: line[key] for key in ("trials", "graded", "passed", "verdict", "score")} == {
        "trials": 3,
        "graded": 2,
        "passed": 1,
        "verdict": "borderline",
        "score": 0.625,
    }
    assert (line["cost_usd"], line["duration_ms"], line["model"]) == (0.00373, 200, "a, b")


def test_answers_that_judges_score_are_recognised(project: Project) -> None:
    judged = finding("", name="judged", type="llm_judge", score=0.5)
    code, inner = finding("", type="code", score=0.0), finding("", type="rubric", score=0.7)
    combined = finding("", type="composite", raw_response=None, evaluator_results=(inner, code))
    aggregated = finding("", type="composite", score=0.2, raw_response="{}", evaluator_results=(inner,))
    answers = [("A", (judged, code)), ("B", (code,)), ("A", (combined,)), ("C", (aggregated,))]
    of = case(trials=len(answers))
    rows = (
        row(of=of, trial=trial, candidate_answer=answer, evaluator_results=results)
        for trial, (answer, results) in enumerate(answers, 1)
    )
    (line,) = add(project, *rows)
    assert [each["score"] for each in line["judged"]] == [0.5, 0.7, 0.2]
    first, second, third = [each["answer"] for each in line["judged"]]
    assert first == second != third


def test_cases_that_did_not_end_and_skipped_ones_have_no_line(project: Project) -> None:
    lines = add(
        project,
        row(of=case("done")),
        row(of=case("open", line=9, trials=3)),
        row("skipped", of=case("skipped", line=19), status="skipped", score=None, skip="later"),
    )
    assert [line["id"] for line in lines] == ["done"]


def test_recorded_answers_have_no_cost_and_time(project: Project) -> None:
    (line,) = add(project, row(cached=True, cost_usd=0.0, duration_ms=70))
    assert line["cached"] is True
    assert {"cost_usd", "duration_ms"}.isdisjoint(line)


def test_time_of_a_run_is_that_of_its_last_answer_in_any_time_zone(project: Project) -> None:
    of = case(trials=2)
    times = ("2019-03-01T09:00:00+09:00", "2019-03-01T02:00:00.000Z")
    add(project, *(row(of=of, trial=trial, timestamp=time) for trial, time in enumerate(times, 1)))
    ((head, _),) = ledger(project)
    assert head["time"] == "2019-03-01T02:00:00Z"


def test_older_results_are_imported_at_their_own_time(project: Project) -> None:
    project.store("old/a.jsonl", row(timestamp="2025-03-01T02:00:00.000Z").model_dump(mode="json"))
    project.write({"old/b.yaml": yaml.encode(row(timestamp="2025-04-01T02:00:00.000Z"))})
    project.store("old/dry.jsonl", row(dry_run=True).model_dump(mode="json"))
    project.write({"old/notes.jsonl": "hello\n", "old/readme.md": "hello"})
    done = project.run("history", "import", "old/*", "old/a.jsonl", "--dir", "ledger")
    assert done.code == 0
    assert done.out == f"2 runs added to {project.path('ledger')}\n"
    left_out = [line.partition(f"{project.folder}/")[2] for line in done.err.splitlines()]
    assert [each.split("'")[0].split(":")[0] for each in left_out] == ["old/dry.jsonl", "old/notes.jsonl"]
    assert [head["time"] for head, *_ in ledger(project)] == ["2025-03-01T02:00:00Z", "2025-04-01T02:00:00Z"]


def test_import_says_why_nothing_is_added(project: Project) -> None:
    project.documents("one", "two", targets=(GREETS,))
    project.run("eval", "evals", "--shard", "1/2", "--out", "part.jsonl")
    project.write({"notes.md": "hello"})
    for name, reason in {
        "part.jsonl": "is shard 1 of 2; merge the shards with `agentv-ci report --out`",
        "notes.md": "notes.md:1: not a result row",
        "*.md": "'*.md' is not a results file expected .jsonl or .yaml",
        "none.jsonl": "no results file 'none.jsonl'",
    }.items():
        code = 3 if name in ("part.jsonl", "notes.md") else 2
        project.refuses("history", "import", name, "--dir", "ledger", error=reason, code=code)


def test_proof_says_whether_saturated_cases_would_notice_anything(project: Project) -> None:
    noticing = {"name": "paris", "type": "contains", "value": "Paris"}
    lenient = {"name": "any", "type": "regex", "value": ".*"}
    expected = [{"role": "assistant", "content": "Paris"}]
    project.documents(
        {"id": "strict", "evaluators": [noticing], "expected_messages": expected},
        {"id": "lenient", "evaluators": [lenient], "expected_messages": expected},
        {"id": "judged", "evaluators": [JUDGED], "expected_messages": expected},
    )
    project.run("prove", "evals", "--out", "proof.json")
    files = files_of({name: [Stretch(20, (1.0,))] for name in ("strict", "lenient", "judged")}, suite="evals/x.yaml")
    add_to_folder(project.path("ledger"), files)
    health = ("history", "health", "--dir", "ledger", "--days", "36500", "--format", "json")
    found = json.loads(project.run(*health, "--proof", "proof.json").out)["findings"]
    assert {each["id"]: each["message"].partition("; ")[2] for each in found} == {
        "judged": "",
        "lenient": "null agent 'empty', which does nothing, passes it, too",
        "strict": "agents that do nothing fail it",
    }
    actions = {each["id"]: each["action"] for each in found}
    assert actions["judged"].startswith("the proof says nothing of it")
    assert json.loads(project.run(*health).out)["findings"][0]["action"].startswith(
        "see whether agents that do nothing"
    )


def test_only_the_last_days_count(project: Project) -> None:
    add_to_folder(project.path("ledger"), files_of({"one": [Stretch(30, (0.0,))]}))
    done = project.run("history", "health", "--dir", "ledger", "--days", "36500")
    assert "passes none of 30 runs" in done.out
    project.refuses("history", "health", "--dir", "ledger", "--days", "1", error="no run since", code=3)


def test_damage_is_shown_and_changes_no_exit_code(project: Project) -> None:
    add_to_folder(project.path("ledger"), files_of({"one": [Stretch(3, (1.0,))]}))
    first = min(project.path("ledger").rglob("*.jsonl"))
    first.write_bytes(first.read_bytes() + b"<b>\x1b[31m\n")
    done = project.run("history", "health", "--dir", "ledger", "--days", "36500")
    assert done.code == 0
    assert f"not used: 2026-01/{first.name}:3: is not a line of a ledger" in done.out
    assert "\x1b" not in done.out


def test_run_in_the_future_silences_nothing(project: Project) -> None:
    """Beside it, all cases would seem to be gone."""
    add_to_folder(project.path("ledger"), files_of({"one": [Stretch(30, (0.0,))]}))
    health = ("history", "health", "--dir", "ledger", "--days", "36500")
    assert "passes none of 30 runs" in project.run(*health).out
    path, content = file_of([case_line("two")], time=datetime(2999, 1, 1, tzinfo=UTC), commit=None, run_url=None)
    add_to_folder(project.path("ledger"), {path: content})
    done = project.run(*health)
    assert "passes none of 30 runs" in done.out
    assert f"not used: run {path[-18:-6]}: its time is in the future: 2999-01-01T00:00:00Z" in done.out


def test_shard_is_refused(project: Project) -> None:
    project.documents("one", "two", targets=(GREETS,))
    project.run("eval", "evals", "--shard", "1/2", "--out", "part.jsonl")
    project.refuses(
        *("history", "add", "part.jsonl", "--dir", "ledger"),
        error="is shard 1 of 2 merge the shards with `agentv-ci report --out`",
    )


@pytest.mark.parametrize(
    ("command", "why"),
    [
        (("eval", "evals", "--eval-id", "one", "--out", "part.jsonl"), "only some cases were selected"),
        (("eval", "evals", "--tag", "smoke", "--out", "part.jsonl"), "only some cases were selected"),
        (("rescore", "whole.jsonl", "--out", "part.jsonl"), "its answers were scored again"),
    ],
    ids=["id", "tag", "rescored"],
)
def test_part_of_a_run_is_added_only_if_asked(project: Project, command: tuple[str, ...], why: str) -> None:
    project.documents({"id": "one", "tags": ["smoke"]}, "two", targets=(GREETS,))
    project.run("eval", "evals", "--out", "whole.jsonl")
    assert project.run(*command).code == 0
    add = ("part.jsonl", "--dir", "ledger")
    project.refuses("history", "add", *add, error=f"is not a run of all cases: {why} add it with --partial")
    project.refuses("history", "import", *add, error="none of these files can be added", code=3)
    assert project.run("history", "import", *add, "--partial").code == 0
    assert "was in it already" in project.run("history", "add", *add, "--partial").out


def test_run_of_all_cases_begins_a_baseline(project: Project) -> None:
    project.documents("one", "two", targets=(GREETS,))
    project.run("eval", "evals", "--eval-id", "one", "--out", "part.jsonl")
    project.refuses("baseline", "accept", "part.jsonl", error="a baseline would lack the others")
    assert project.run("baseline", "accept", "part.jsonl", "--partial").code == 0
    project.run("eval", "evals", "--out", "whole.jsonl")
    assert project.run("baseline", "accept", "whole.jsonl").code == 0
    lost = "would lose 1 case"
    project.refuses("baseline", "accept", "part.jsonl", "--partial", error=lost)


@pytest.mark.parametrize(
    ("rows", "code", "error"),
    [
        ([row(dry_run=True)], 2, "is of a dry run"),
        ([row(), row()], 2, "contains trial 1 of case 'one' twice"),
        ([row(timestamp="yesterday")], 2, "'yesterday' is not a time in ISO 8601"),
        ([row(timestamp="2030-01-01T00:00:00")], 2, "has no time zone"),
        ([row(timestamp="2999-01-01T00:00:00Z")], 2, "'2999-01-01T00:00:00Z' is in the future"),
        ([row(timestamp="0001-01-01T00:00:00+14:00")], 2, "is not a time in ISO 8601"),
        ([row(timestamp="0500-01-01T00:00:00Z")], 2, "it is not from a year with four digits"),
        ([row(), row(of=case("two"), model="m" * 70_000)], 2, "case 'two' is longer than 64 KiB"),
        ([row(duration_ms=2**60)], 2, "case 'one' is not a line of a ledger: Expected `int` <= 9007199254740992"),
        ([row(cost_usd=1e12)], 2, "case 'one' is not a line of a ledger: Expected `float` <= 1000000000.0"),
        ([row(of=case(trials=3))], 3, "no case of"),
        ([], 3, "no case of"),
    ],
    ids=[
        *("dry run", "twice", "no time", "no zone", "future", "overflow", "past", "long", "slow", "dear"),
        *("open", "empty"),
    ],
)
def test_what_is_no_run_is_refused(project: Project, rows: list[Any], code: int, error: str) -> None:
    project.store("r.jsonl", *(each.model_dump(mode="json") for each in rows))
    project.refuses("history", "add", "r.jsonl", "--dir", "ledger", error=error, code=code)


def test_branch_of_the_repository_is_the_default(project: Project) -> None:
    subprocess.run(["git", "init", "-q", "."], cwd=project.folder, check=True)
    project.store("r.jsonl", row(timestamp="2025-03-01T02:00:00.000Z").model_dump(mode="json"))
    assert project.run("history", "add", "r.jsonl").out == "1 run added to branch agentv-history\n"
    done = project.run("history", "health", "--days", "36500")
    assert "ledger: refs/heads/agentv-history (" in done.out
    assert "1 run, 2025-03-01 to 2025-03-01; 1 case, 1 with too few runs to judge" in done.out
    assert project.run("history", "health", "--branch", "other").code == 3
