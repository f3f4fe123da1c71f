"""A matrix: several targets answer every case of a run."""

from __future__ import annotations

import json

import pytest

import agentv_ci
from tests.support.projects import GREETS, HELLO, Project

GOOD, BAD = {**GREETS, "name": "good"}, {**GREETS, "name": "bad", "response": "Go away."}
BOTH = ("--target", "good", "--target", "bad")


@pytest.fixture
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    found = Project(tmp_path_factory.mktemp("matrix"))
    (found.folder / ".git").mkdir()
    bye = {"id": "bye", "evaluators": [{**HELLO, "value": "Go"}]}
    found.documents("hello", bye, targets=(GOOD, BAD))
    return found


def pairs(project: Project, name: str = "r.jsonl") -> list[tuple[str, str, str]]:
    return [(row["eval_id"], row["target"], row["verdict"]) for row in project.rows(name)]


def test_each_case_is_answered_by_each_target(project: Project) -> None:
    assert project.eval(*BOTH).code == 1
    assert pairs(project) == [
        ("hello", "good", "pass"),
        ("hello", "bad", "fail"),
        ("bye", "good", "fail"),
        ("bye", "bad", "pass"),
    ]


def test_target_called_default_is_one_of_several(project: Project) -> None:
    project.targets(GREETS, BAD)
    assert project.eval("--target", "bad", "--target", "default").code == 1
    assert [(target, verdict) for _, target, verdict in pairs(project)][:2] == [("bad", "fail"), ("default", "pass")]


def test_listed_cases_name_their_targets(project: Project) -> None:
    listed = project.run("eval", "evals", *BOTH, "--list").out.splitlines()
    assert [line.split()[1:3] for line in listed[1:5]] == [
        ["hello", "good"],
        ["hello", "bad"],
        ["bye", "good"],
        ["bye", "bad"],
    ]


def test_failed_cases_run_again_for_the_targets_they_failed_with(project: Project) -> None:
    project.eval(*BOTH)
    project.run("eval", "evals", *BOTH, "--failed", "r.jsonl", "--out", "again.jsonl")
    assert pairs(project, "again.jsonl") == [("hello", "bad", "fail"), ("bye", "good", "fail")]


def test_resumed_run_asks_only_targets_without_an_answer(project: Project) -> None:
    project.eval("--target", "good")
    done = project.run("eval", "evals", *BOTH, "--resume", "r.jsonl")
    assert "2 of 4 trials already in" in done.err
    assert sorted(pairs(project)) == [
        ("bye", "bad", "pass"),
        ("bye", "good", "fail"),
        ("hello", "bad", "fail"),
        ("hello", "good", "pass"),
    ]
    error = "has 2 rows of targets that are not selected and would be removed"
    project.refuses("eval", "evals", "--target", "good", "--resume", "r.jsonl", error=error)


def test_shards_together_are_the_run(project: Project) -> None:
    for number in "12":
        project.run("eval", "evals", *BOTH, "--shard", f"{number}/2", "--out", f"{number}.jsonl")
    assert project.run("report", "1.jsonl", "2.jsonl", "--out", "r.jsonl").code == 1
    project.run("eval", "evals", *BOTH, "--out", "whole.jsonl")
    assert sorted(pairs(project)) == sorted(pairs(project, "whole.jsonl"))


def test_each_target_is_compared_with_its_own_baseline(project: Project) -> None:
    project.eval(*BOTH)
    project.run("baseline", "accept", "r.jsonl", "--out", "base.json")
    project.documents("hello", "bye", targets=(GOOD, BAD))
    done = project.run("eval", "evals", *BOTH, "--baseline", "base.json", "--out", "r.jsonl")
    compared = project.json("r.report.json")["comparison"]["cases"]
    assert [(each["id"], each["target"], each["change"]) for each in compared] == [
        ("bye", "bad", "regressed"),
        ("bye", "good", "improved"),
    ]
    assert done.code == 1


@pytest.mark.parametrize("shard", ["1/2", "2/2"])
def test_shard_is_compared_with_its_part_of_the_baseline(project: Project, shard: str) -> None:
    project.eval(*BOTH)
    project.run("baseline", "accept", "r.jsonl", "--out", "base.json")
    project.run("eval", "evals", *BOTH, "--baseline", "base.json", "--shard", shard, "--out", "r.jsonl")
    assert project.json("r.report.json")["comparison"]["counts"] | {"unchanged": 0} == dict.fromkeys(
        ("regressed", "improved", "flaky", "unchanged", "new", "removed", "not enough evidence"), 0
    )


def test_changes_of_a_plan_name_the_target(project: Project) -> None:
    project.run("compile", "evals", *BOTH, "--out", "old.json")
    project.targets(GOOD, {**BAD, "response": "Hello?"}, {**GOOD, "name": "third", "response": "Hi!"})
    found = project.run("compile", "evals", *BOTH[:2], "--target", "third", "--diff", "old.json").out
    assert found.splitlines() == [
        "added  hello  third  (evals/x.yaml)",
        "added  bye  third  (evals/x.yaml)",
        "removed  hello  bad  (evals/x.yaml)",
        "removed  bye  bad  (evals/x.yaml)",
        "0 changed, 2 added, 2 removed, 2 unchanged",
    ]
    changed = project.run("compile", "evals", *BOTH, "--diff", "old.json").out
    assert changed.splitlines()[0] == "changed  hello  bad  (evals/x.yaml)"


def test_option_replaces_the_only_target_of_a_plan(project: Project) -> None:
    project.run("compile", "evals", "--target", "good", "--out", "old.json")
    found = project.run("compile", "evals", "--target", "bad", "--diff", "old.json").out
    assert found.splitlines()[:2] == ["changed  hello  (evals/x.yaml)", "    target good → bad"]


def verdicts(project: Project) -> tuple[list[str], dict[str, str]]:
    gate = project.json("r.report.json")["gate"]
    return gate["reasons"], gate["targets"]


def test_gate_holds_for_each_target_and_for_all(project: Project) -> None:
    project.documents("hello", "hi", "hey", targets=(GOOD, BAD), gate={"min_pass_rate": 0.5})
    assert project.eval(*BOTH).code == 1
    assert verdicts(project) == (["target bad: pass rate 0.0% is below 50.0%"], {"good": "pass", "bad": "fail"})


def test_errors_of_one_target_are_its_own(project: Project) -> None:
    broken = {"name": "broken", "provider": "cli", "command_template": "false", "prompt": "none"}
    project.documents("hello", "hi", targets=(GOOD, broken), max_retries=0)
    assert project.eval("--target", "good", "--target", "broken").code == 4
    assert verdicts(project) == (
        [
            "pass rate 50.0% is below 100.0%",
            "2 errored cases, at most 0 allowed",
            "target broken: 2 errored cases, at most 0 allowed",
            "target broken: all 2 cases crashed",
        ],
        {"good": "pass", "broken": "error"},
    )


def test_reasons_name_the_suite_if_there_are_several(project: Project) -> None:
    project.documents("hello", targets=(GOOD, BAD), name="evals/y.yaml", gate={"min_pass_rate": 0.5})
    project.documents({"id": "own", "execution": {"target": "good"}}, targets=(GOOD, BAD))
    assert project.eval("--target", "good", "--target", "bad").code == 1
    assert "evals/y.yaml: target bad: pass rate 0.0% is below 50.0%" in verdicts(project)[0]


def test_targets_of_different_cases_are_judged_together(project: Project) -> None:
    own = {"id": "own", "execution": {"target": "bad"}}
    project.documents("hello", own, targets=(GOOD, BAD), target="good", gate={"min_pass_rate": 0.5})
    assert project.eval().code == 0
    assert verdicts(project) == ([], {})


def test_merged_shards_are_judged_for_each_target(project: Project) -> None:
    project.documents("hello", "hi", "hey", targets=(GOOD, BAD), gate={"min_pass_rate": 0.5})
    for number in "12":
        project.run("eval", "evals", *BOTH, "--shard", f"{number}/2", "--out", f"{number}.jsonl")
    assert project.run("report", "1.jsonl", "2.jsonl", "--out", "r.jsonl").code == 1
    assert verdicts(project) == (["target bad: pass rate 0.0% is below 50.0%"], {"bad": "fail", "good": "pass"})


def test_stopped_run_is_passed_for_no_target(project: Project) -> None:
    project.documents("hello", "hi", targets=(GOOD, BAD), gate={"min_pass_rate": 0})
    assert project.eval(*BOTH, "--fail-fast").code == 1
    assert verdicts(project)[1] == {"good": "fail", "bad": "fail"}


THIRD = {**GOOD, "name": "third"}


def test_targets_of_a_run_are_compared(project: Project) -> None:
    project.documents("hello", *("abcdefg"), targets=(GOOD, BAD, THIRD), repeat=5)
    assert project.eval(*BOTH, "--target", "third").code == 1
    done = project.run("compare", "r.jsonl", "--by", "target")
    assert done.code == 1
    assert "  worse            pass rate 100% → 0% (40 → 0 of 40 trials)" in done.out
    assert [line for line in done.out.splitlines() if line.startswith(("against", "cases", "compare"))] == [
        "against good, 8 cases:",
        "cases: 8 regressed",
        "compare: worse",
        "against good, 8 cases:",
        "cases: 8 unchanged",
        "compare: no regression shown",
    ]
    found = project.run("compare", "r.jsonl", "--by", "target", "--base", "bad", "--format", "json")
    document = json.loads(found.out)
    assert (found.code, document["exit_code"]) == (0, 0)
    assert [(each["base"], each["head"], each["counts"]["improved"]) for each in document["comparisons"]] == [
        ("bad", "good", 8),
        ("bad", "third", 8),
    ]
    assert all(not each["warnings"] for each in document["comparisons"])


def test_only_cases_that_both_targets_answer_are_compared(project: Project) -> None:
    own = [{"id": name, "execution": {"target": name}} for name in ("good", "third")]
    project.documents({"id": "both", "execution": {"targets": ["good", "bad"]}}, *own, targets=(GOOD, BAD, THIRD))
    project.eval()
    done = project.run("compare", "--by", "target", "r.jsonl")
    assert [line for line in done.out.splitlines() if line.startswith("cases")] == ["cases: 1 regressed"]
    error = "no case of 'r.jsonl' is answered by 'third' and another target"
    project.refuses("compare", "r.jsonl", "--by", "target", "--base", "third", error=error, code=3)
    error = "no answers of target 'thrid' in 'r.jsonl' (did you mean 'third'?): good, bad, third"
    project.refuses("compare", "r.jsonl", "--by", "target", "--base", "thrid", error=error)


def test_log_of_a_run_names_the_target(project: Project) -> None:
    done = project.eval(*BOTH, "--verbose", "--repeat", "2")
    assert "hello [bad] (trial 2): asking bad" in done.err
    project.documents("hello", targets=(GOOD, BAD))
    assert "hello: asking good" in project.eval("--target", "good", "--verbose").err


def test_targets_stay_in_the_order_of_the_author(project: Project) -> None:
    project.eval(*BOTH, "--workers", "4")
    ran = project.run("report", "r.jsonl", "--out", "again.jsonl").out
    assert "  bye: good fail 0.000, bad pass 1.000\n" in ran
    assert [each["name"] for each in project.json("again.report.json")["targets"]] == ["good", "bad"]
    found = project.run("compare", "again.jsonl", "--by", "target").out
    assert found.startswith("against good, ")


@pytest.mark.parametrize("target", ["good", ["good", "bad"]])
def test_targets_of_the_python_interface(
    project: Project, monkeypatch: pytest.MonkeyPatch, target: str | list[str]
) -> None:
    monkeypatch.chdir(project.folder)
    results = agentv_ci.run("evals/", target=target)
    names = ["good", "bad"] if isinstance(target, list) else ["good"]
    assert [each.target for each in results.cases] == names * 2
    assert [*results.report.gate.targets] == (names if isinstance(target, list) else [])


def test_drop_of_one_target_is_not_made_up_for_by_another(project: Project) -> None:
    project.documents(*"abcdef", targets=(GOOD, BAD), gate={"min_pass_rate": 0}, repeat=5)
    project.eval(*BOTH)
    project.run("baseline", "accept", "r.jsonl", "--out", "base.json")
    project.targets({**GOOD, "response": "No."}, {**BAD, "response": "Hello"})
    assert project.eval(*BOTH, "--baseline", "base.json").code == 1
    reasons = verdicts(project)[0]
    assert [each.split(": ", 1)[1].split(" (")[0] for each in reasons] == [
        "6 cases got worse: a [good], b [good], c [good], d [good], e [good] and 1 more",
        "pass rate of target good 100% → 0%",
    ]
