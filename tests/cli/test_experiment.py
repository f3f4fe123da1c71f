"""Experiments as users run them: what an arm changes, when it stops, what the verdict and the exit code are."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from tests.support import REPOSITORY, run_program
from tests.support.projects import Project

AGENT = """
import os, sys
asked = open(sys.argv[1]).read()
terse = os.environ.get("TERSE") == "1"
print("short" if terse or "Be terse" in asked else "long", "version 1")
"""
CASES = [f"case-{number}" for number in range(1, 25)]
SHORT = {"name": "short", "type": "contains", "value": "short"}
COMMAND = {"name": "agent", "provider": "cli", "command_template": "python3 agent.py {PROMPT_FILE}", "cwd": "."}
YES, NO = ({"name": name, "provider": "mock", "response": name} for name in ("yes", "no"))
DECIDED = {"when": "decided"}


@pytest.fixture
def project(tmp_path: Path) -> Project:
    found = Project(tmp_path)
    (tmp_path / ".git").mkdir()
    return found


def arms(project: Project, *given: Mapping[str, Any], cases: int = len(CASES), **settings: Any) -> None:
    """Write an experiment over cases that want `yes`, with its targets."""
    yes = [{"type": "equals", "name": "yes", "value": "yes"}]
    project.documents(*({"id": each, "evaluators": yes} for each in CASES[:cases]), targets=(YES, NO), target="yes")
    experiment(project, *given, **settings)


def experiment(project: Project, *given: Mapping[str, Any], **settings: Any) -> None:
    document = {"$schema": "agentv-experiment-v1", "arms": given, "evals": ["evals/"], **settings}
    project.write({"experiment.yaml": json.dumps(document)})


def judged(project: Project, *flags: str, code: int = 0) -> dict[str, Any]:
    """Run an experiment that must end with a code, and return its report."""
    done = project.run("experiment", "experiment.yaml", "--out", "r.jsonl", *flags)
    assert done.code == code, done
    found: dict[str, Any] = project.json("r.report.json")["experiment"]
    return found


NOW, BETTER = {"name": "now", "target": "no"}, {"name": "next", "target": "yes"}
GOOD, WORSE = {"name": "now", "target": "yes"}, {"name": "next", "target": "no"}
SAME = {**WORSE, "system_prompt": "Hm"}
"""Another question for the mock, which answers alike."""


@pytest.mark.parametrize(
    ("change", "answers"),
    [
        ({"env": {"TERSE": "1"}}, "short"),
        ({"guidelines": ["prompts/terse.md"]}, "short"),
        ({"files": {"prompts/rules.md": "prompts/terse.md"}}, "short"),
        ({"target": "other"}, "other"),
    ],
    ids=lambda each: next(iter(each)) if isinstance(each, dict) else None,
)
def test_arm_changes_one_thing(project: Project, change: dict[str, Any], answers: str) -> None:
    asked = [{"role": "user", "content": [{"type": "file", "value": "../prompts/rules.md"}, "Greet me"]}]
    other = {**COMMAND, "name": "other", "command_template": "echo other {PROMPT}"}
    project.documents({"id": "one", "input_messages": asked}, targets=(COMMAND, other), target="agent")
    project.write({"agent.py": AGENT, "prompts/rules.md": "Greet.", "prompts/terse.md": "Be terse."})
    experiment(project, {"name": "now"}, {"name": "next", **change})
    judged(project, code=6)
    rows = {row["arm"]: row for row in project.rows()}
    assert rows["now"]["candidate_answer"].startswith("long")
    assert rows["next"]["candidate_answer"].startswith(answers)
    assert rows["now"]["digest"] != rows["next"]["digest"]
    assert rows["now"]["input_messages"][0]["content"].endswith("Greet me")


def test_arm_replaces_the_files_of_workspaces(project: Project) -> None:
    read = {**COMMAND, "cwd": None, "command_template": "cat skills/a.md", "prompt": "none"}
    target = {key: value for key, value in read.items() if value is not None}
    project.documents("one", targets=(target,), target="agent", workspace={"from": "../tree"})
    project.write({"tree/skills/a.md": "Hello", "better.md": "Hello, you"})
    experiment(project, {"name": "now"}, {"name": "next", "files": {"tree/skills/a.md": "better.md"}})
    judged(project, code=6)
    assert {row["arm"]: row["candidate_answer"] for row in project.rows()} == {"now": "Hello", "next": "Hello, you"}


def git(folder: Path, *arguments: str) -> None:
    names = ("-c", "user.name=A", "-c", "user.email=a@example.org", "-c", "init.defaultBranch=main")
    done = run_program("git", *names, *arguments, cwd=folder)
    assert done.code == 0, done


def test_arm_at_a_commit_runs_the_code_of_the_commit_and_the_cases_of_today(tmp_path: Path) -> None:
    project = Project(tmp_path)
    project.documents("one", targets=(COMMAND,), target="agent")
    project.write({"agent.py": AGENT})
    git(tmp_path, "init", "--quiet")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "--quiet", "-m", "One")
    commit = run_program("git", "rev-parse", "HEAD", cwd=tmp_path).out
    project.write({"agent.py": AGENT.replace("version 1", "version 2")})
    project.documents("one", "two", targets=(COMMAND,), target="agent")
    experiment(project, {"name": "before", "ref": "main"}, {"name": "now"})
    judged(project, code=6)
    answers = {(row["eval_id"], row["arm"]): row["candidate_answer"] for row in project.rows()}
    versions = {"before": 1, "now": 2}
    assert answers == {(case, arm): f"long version {versions[arm]}" for case in ("one", "two") for arm in versions}
    assert not (tmp_path / ".agentv" / "commits").exists()
    listed = run_program("git", "worktree", "list", cwd=tmp_path).out
    assert len(listed.splitlines()) == 1
    # A tree that another run may use is not touched.
    (tmp_path / ".agentv" / "commits" / commit[:12]).mkdir(parents=True)
    project.refuses("experiment", "experiment.yaml", error="another experiment uses it, or one was killed")
    shutil.rmtree(tmp_path / ".agentv" / "commits")
    # The same plan, so that a run can be resumed.
    done = project.run("experiment", "experiment.yaml", "--resume", "r.jsonl")
    assert "4 of 4 trials already in" in done.err


def test_arms_get_the_same_cases_trials_and_seeds_in_random_order(project: Project) -> None:
    arms(project, NOW, BETTER, repeat=2, seed=7)
    judged(project, "--workers", "1")
    rows = project.rows()
    by_arm = {
        arm: sorted((row["eval_id"], row["trial"], row["seed"]) for row in rows if row["arm"] == arm)
        for arm in ("now", "next")
    }
    assert by_arm["now"] == by_arm["next"]
    assert [row["trial"] for row in rows] == [1] * 48 + [2] * 48
    firsts = [row["arm"] for row in rows[:48:2]]
    assert {*firsts} == {"now", "next"}
    assert [row["eval_id"] for row in rows[:48:2]] != CASES
    judged(project, "--eval-id", "case-1?", "--workers", "1")
    some = [row["eval_id"] for row in project.rows()]
    assert some[:20] == [row["eval_id"] for row in rows[:48] if row["eval_id"] in some]


def test_stopped_experiment_counts_complete_rounds_and_is_not_resumed(project: Project) -> None:
    arms(project, NOW, BETTER, repeat=3, stop={"when": "decided", "look_every": 10})
    found = judged(project)
    assert (found["verdict"], found["stopped"], found["trials"]) == ("better", "decided", 20)
    assert found["saved_trials"] == 24 * 3 * 2 - len(project.rows())
    assert [each["cases"] for each in found["looks"]] == [10]
    assert project.json("r.report.json")["stopped"] == "decided"
    again = project.run("experiment", "experiment.yaml", "--resume", "r.jsonl")
    assert again.code == 0, again
    assert len(project.rows()) == 20
    assert project.json("r.report.json")["experiment"] == found


def test_cases_of_a_stopped_experiment_have_the_verdict_of_what_ran(project: Project) -> None:
    arms(project, NOW, BETTER, repeat=3, stop={"when": "decided", "look_every": 10})
    judged(project)
    ran = [row["verdict"] for row in project.rows() if row["arm"] == "next"]
    counts = project.json("r.report.json")["counts"]
    assert (counts["passed"], counts["failed"]) == (len(ran), len(ran))


def test_quiet_run_prints_the_verdict(project: Project) -> None:
    arms(project, NOW, BETTER)
    assert (
        project.run("experiment", "experiment.yaml", "--quiet").out == "experiment: better: score of 'next' is better\n"
    )


def test_means_weigh_each_case_the_same_as_their_change_does(project: Project) -> None:
    arms(project, NOW, BETTER, cases=8)
    text = project.text("evals/x.yaml").replace('"id": "case-1"', '"id": "case-1", "execution": {"repeat": 9}')
    project.write({"evals/x.yaml": text})
    project.targets(YES, {**NO, "responses": {"case-1": "yes"}})
    (effect,) = judged(project)["effects"]
    assert (effect["base"], effect["head"], effect["estimate"]) == (0.125, 1.0, 0.875)


def test_hopeless_experiment_stops(project: Project) -> None:
    arms(project, NOW, SAME, margin={"score": 0.001}, stop=DECIDED)
    found = judged(project, code=6)
    assert (found["verdict"], found["stopped"]) == ("undecided", "futile")


@pytest.mark.parametrize(
    ("given", "flags", "code", "verdict"),
    [
        ((NOW, BETTER), (), 0, "better"),
        ((GOOD, WORSE), (), 1, "worse"),
        ((GOOD, WORSE), ("--allow-undecided",), 1, "worse"),
        ((NOW, SAME), (), 6, "undecided"),
        ((NOW, SAME), ("--allow-undecided",), 0, "undecided"),
        ((NOW, BETTER), ("--dry-run",), 0, "withheld"),
        ((NOW, BETTER), ("--dry-run", "--allow-changes"), 0, "undecided"),
    ],
    ids=["better", "worse", "worse-all-the-more", "undecided", "allowed", "dry-run", "dry-run-judged"],
)
def test_verdict_and_exit_code(
    project: Project, given: tuple[dict[str, Any], ...], flags: tuple[str, ...], code: int, verdict: str
) -> None:
    arms(project, *given)
    assert judged(project, *flags, code=code)["verdict"] == verdict


def test_errors_have_their_own_exit_code(project: Project) -> None:
    arms(project, NOW, BETTER)
    project.targets(YES, {"name": "no", "provider": "mock", "error": {"kind": "auth"}})
    found = judged(project, code=4)
    assert found["verdict"] == "undecided"
    assert found["effects"][0]["method"] == "measured in both arms in fewer than two clusters"
    (warning,) = found["warnings"]
    assert warning.startswith("24 trials of 'now' without a verdict, not compared; first error: auth: ")


def test_shards_are_judged_together(project: Project) -> None:
    arms(project, NOW, BETTER, stop={})
    for shard in (1, 2):
        done = project.run("experiment", "experiment.yaml", "--shard", f"{shard}/2", "--out", f"part-{shard}.jsonl")
        assert (done.code, "experiment:" in done.out) == (0, False)
        assert "again: " not in done.out, "no command runs an arm alone"
    parts = ("part-1.jsonl", "part-2.jsonl")
    done = project.run("report", *parts, "--expect-shards", "2")
    assert done.code == 1, done
    assert "judge them with `agentv-ci experiment FILE --results RESULTS`" in " ".join(done.out.split())
    named = [word for part in parts for word in ("--results", part)]
    done = project.run("experiment", "experiment.yaml", *named, "--out", "all.jsonl")
    assert (done.code, "the others do not count" in " ".join(done.out.split())) == (0, True)
    assert project.json("all.report.json")["experiment"]["verdict"] == "better"
    assert project.run("report", "all.jsonl").code == 0


def test_rows_of_other_cases_are_not_judged(project: Project) -> None:
    arms(project, NOW, BETTER)
    judged(project)
    project.write({"evals/x.yaml": project.text("evals/x.yaml").replace("A greeting", "Another greeting")})
    results = ("experiment", "experiment.yaml", "--results", "r.jsonl", "--out", "again.jsonl")
    assert project.run(*results).code == 6
    found = project.json("again.report.json")["experiment"]
    assert found["verdict"] == "withheld"
    assert "48 rows of other cases than the experiment has now" in found["reasons"][0]


def test_mistakes_that_only_the_cases_show(project: Project) -> None:
    arms(project, NOW, BETTER, metrics=["score", "yse"])
    project.refuses("experiment", "experiment.yaml", error="unknown metric 'yse' (did you mean 'yes'?)")
    assert "unknown metric 'yse' (did you mean 'yes'?)" in project.run("validate", "experiment.yaml").out
    project.write({"a.md": "a", "b.md": "b"})
    experiment(project, NOW, {**NOW, "name": "next", "files": {"a.md": "b.md"}})
    project.refuses("experiment", "experiment.yaml", error="no case uses 'a.md'")
    assert "no case uses 'a.md'" in project.run("validate", "experiment.yaml").out
    experiment(project, {"name": "now"}, {"name": "next", "target": "yes"})
    project.refuses("experiment", "experiment.yaml", error="arms 'now' and 'next' do not differ")
    assert "arms 'now' and 'next' do not differ" in project.run("validate", "experiment.yaml").out
    project.refuses("experiment", "evals/x.yaml", error="is not an experiment but a document of kind 'eval'")
    experiment(project, NOW, BETTER)
    both = ("--results", "r.jsonl", "--shard", "1/2")
    project.refuses("experiment", "experiment.yaml", *both, error="cannot be combined")


def test_arm_whose_cases_have_several_targets_names_one(project: Project) -> None:
    arms(project, {"name": "now"}, {"name": "next", "system_prompt": "Hm"}, cases=1)
    text = project.text("evals/x.yaml").replace('"target": "yes"', '"targets": ["yes", "no"]')
    project.write({"evals/x.yaml": text})
    project.refuses("experiment", "experiment.yaml", error="arm 'now': several targets answer case 'case-1'")


def test_plan_with_arms_is_compiled_listed_and_estimated(project: Project) -> None:
    arms(project, NOW, BETTER, cases=2)
    assert project.run("compile", "experiment.yaml", "--out", "plan.json").code == 0
    cases = project.json("plan.json")["cases"]
    assert {(each["id"], each["arm"]) for each in cases} == {*product(("case-1", "case-2"), ("now", "next"))}
    listed = project.run("experiment", "experiment.yaml", "--list", "--format", "json")
    assert [each["target"] for each in json.loads(listed.out)["cases"]] == [case["arm"] for case in cases]
    assert "4 trials of 4 cases" in project.run("compile", "experiment.yaml", "--estimate").out
    assert project.run("eval", "plan.json", "--out", "r.jsonl").code == 0
    assert {row["arm"] for row in project.rows()} == {"now", "next"}


def test_power_is_that_of_the_design(project: Project) -> None:
    arms(project, NOW, BETTER, repeat=2, detect={"score": 0.3}, metrics=["score", "pass"])
    table = json.loads(project.run("compile", "--power", "experiment.yaml", "--format", "json").out)
    assert (table["alpha"], table["power"], table["cases"], table["planned"]) == (0.025, 0.8, 24, 2)
    found = [each["detectable"] for each in table["rows"]]
    assert found == sorted(found, reverse=True)
    needed = next(each for each in table["rows"] if each["trials_per_case"] == table["needed"])
    assert needed["detectable"] <= 0.3
    assert needed["trials"] == table["needed"] * 48
    judged(project)
    earlier = json.loads(project.run("compile", "--power", "experiment.yaml", "r.jsonl", "--format", "json").out)
    assert earlier["basis"] == "the earlier experiment, 'now' and 'next'"
    alone = project.run("compile", "--power", "r.jsonl")
    assert "assumed: each case passes half of its trials" in alone.out  # they do not vary
    project.refuses("compile", "--power", "gone.jsonl", error="cannot read 'gone.jsonl'")


def test_action_runs_an_experiment_and_publishes_its_verdict(project: Project, tmp_path: Path) -> None:
    arms(project, NOW, SAME)
    summary, outputs = tmp_path / "summary.md", tmp_path / "outputs.txt"
    project.env |= {
        "GITHUB_ACTIONS": "true",
        "GITHUB_STEP_SUMMARY": str(summary),
        "GITHUB_OUTPUT": str(outputs),
        "GITHUB_REPOSITORY": "acme/desk",
        "GITHUB_SERVER_URL": "https://github.com",
        "GITHUB_SHA": "a" * 40,
        "GITHUB_RUN_ID": "1",
        "GITHUB_EVENT_NAME": "push",
    }
    ran = project.process("github", "run", "--evals", "experiment.yaml", "--results-dir", "results", "--exit-zero")
    assert ran.code == 0, ran
    published = project.run("github", "publish", "--results-dir", "results")
    assert published.code == 6, published
    assert "title=Experiment%3A undecided" in published.out
    assert "Experiment: undecided" in summary.read_text("utf-8")
    assert "\nundecided\n" in outputs.read_text("utf-8")
    assert project.run("github", "publish", "--results-dir", "results", "--fail-on", "errors").code == 0


def test_bundled_example_is_decided_without_a_key_as_its_page_shows(tmp_path: Path) -> None:
    where = Path("docs", "examples", "experiment")
    shutil.copytree(REPOSITORY / where, tmp_path / where)
    (tmp_path / ".git").mkdir()
    project = Project(tmp_path / where)
    assert project.run("validate", "--strict", ".").code == 0
    shown = project.run("experiment", "experiment.yaml").out
    page = (REPOSITORY / "docs" / "experiments.md").read_text("utf-8")
    block = page.split("agentv-ci experiment experiment.yaml\n```\n\n```text\n")[1].split("```")[0]
    assert block in shown
