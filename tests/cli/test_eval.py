"""`agentv-ci eval`: options, plans, results, and its exit codes."""

from __future__ import annotations

import json
import re
import shlex
from typing import Any

import pytest

from agentv_ci import __version__
from tests.cli.builders import in_a_shell
from tests.support.evals import tool
from tests.support.projects import GREETS, HELLO, JUDGE, Project

ANSWER = [{"role": "assistant", "content": "Hello"}]
FAILS = {"evaluators": [{**HELLO, "value": "Bye"}]}


@pytest.fixture(autouse=True)
def documents(project: Project) -> None:
    project.documents("greets", "waves")


class TestResults:
    def test_every_run_has_a_file_of_its_own_by_default(self, project: Project) -> None:
        printed = [project.run("run", "evals").out for _ in range(2)]
        files = sorted(project.path(".agentv/results").glob("eval_*.jsonl"))
        assert [out.splitlines()[-2] for out in printed] == [
            f"results: {file.relative_to(project.folder)}" for file in files
        ]
        assert all(file.with_suffix(".report.json").exists() for file in files)

    def test_results_without_a_suffix_have_run_reports_of_their_own(self, project: Project) -> None:
        for name in ("part-1", "part-2"):
            assert project.run("eval", "evals", "--out", name).code == 0
        assert {"part-1.report.json", "part-2.report.json"} < {*project.files()}


def test_run_report_has_the_command_without_secrets(project: Project) -> None:
    project.env["MY_API_KEY"] = "sk-not-to-be-seen"
    project.run("eval", "evals", "--dump-traces", "--dump-dir", "sk-not-to-be-seen", "--out", "a b.jsonl")
    origin = json.loads(project.text("a b.report.json"))["origin"]
    command = "agentv-ci eval evals --dump-traces --dump-dir *** --out 'a b.jsonl'"
    assert origin == {"command": command, "version": __version__, "commit": None}
    project.path("sk-not-to-be-seen.yaml").write_text(project.text("targets.yaml"))
    project.run("eval", "evals", "--targets", "sk-not-to-be-seen.yaml", "--out", "b.jsonl")
    assert json.loads(project.text("b.report.json"))["again"] == ["--targets=***.yaml"]


@pytest.mark.parametrize(
    ("command", "shown"),
    [("eval", "2 cases: 2 passed"), ("validate", "1 file checked, 1 passed"), ("compile", '"id": "waves"')],
)
def test_evals_of_the_working_directory_are_the_default(command: str, shown: str, project: Project) -> None:
    done = project.run(command)
    assert (done.code, shown in done.out) == (0, True)
    project.path("evals/x.yaml").unlink()
    project.path("evals").rmdir()
    project.refuses(command, error="path 'evals/' does not exist create an example with `agentv-ci init`")


class TestAgain:
    OPTIONS = ("--repeat=2", "--seed=7", "--agent-timeout=9.5", "--max-retries=0", "--threshold=0.9")

    def test_the_command_of_a_case_has_the_options_of_its_run(self, project: Project) -> None:
        project.documents("greets", FAILS)
        project.targets({**GREETS, "name": "mine"}, JUDGE, name="my own/targets.yaml")
        before = project.run(
            "eval", "../evals", "--targets", "targets.yaml", "--target", "mine", *self.OPTIONS, cwd="my own"
        )
        (again,) = re.findall("again: agentv-ci (.*)", before.out)
        assert again == (
            "eval evals/x.yaml --eval-id=case-2 --target=mine --targets='my own/targets.yaml' " + " ".join(self.OPTIONS)
        )
        assert f"again: agentv-ci {again}\n" in project.run("report").out
        assert project.run(*shlex.split(again), "--out", "r.jsonl").code == 1
        fields = ("eval_id", "target", "trials", "seed")
        assert [tuple(row[name] for name in fields) for row in project.rows()] == [
            ("case-2", "mine", 2, seed) for seed in (7, 8)
        ]

    @pytest.mark.parametrize("option", ["--dry-run", "--replay=recorded"])
    def test_answers_of_the_same_kind_are_asked_again(self, option: str, project: Project) -> None:
        project.documents({"id": "fails", **FAILS, "expected_messages": ANSWER}, targets=(tool("echo Hello"),))
        assert project.eval("--record=recorded").code == 1
        assert f"again: agentv-ci eval evals/x.yaml --eval-id=fails {option}\n" in project.eval(option).out


class TestOptions:
    @pytest.mark.parametrize(
        ("flags", "code"),
        [
            ([], 1),
            (["--min-pass-rate", "0.5"], 0),
            (["--min-pass-rate", "0.5", "--min-mean-score", "0.6"], 1),
            (["--threshold", "0"], 0),
        ],
    )
    def test_options_override_the_gate(self, flags: list[str], code: int, project: Project) -> None:
        project.documents("greets", FAILS)
        assert project.eval(*flags).code == code

    def test_agent_timeout_ends_an_attempt(self, project: Project) -> None:
        project.targets({**GREETS, "delay_ms": 60000})
        assert project.eval("--agent-timeout", "0.05", "--max-retries", "1", "--eval-id", "greets").code == 4
        (row,) = project.rows()
        assert (row["error_kind"], row["attempts"], row["error"]) == ("timeout", 2, "no answer within 0.05 s")

    @pytest.mark.parametrize(
        ("cases", "flags", "verdict"),
        [
            (["a", "b"], [], "gate: passed; 2 cases: 2 passed, 0 failed, 0 errors"),
            (
                ["a", FAILS],
                [],
                "gate: not passed: pass rate 50.0% is below 100.0%; 2 cases: 1 passed, 1 failed, 0 errors",
            ),
            (
                ["a", FAILS],
                ["--min-mean-score", "0.9"],
                "gate: not passed: pass rate 50.0% is below 100.0% (and 1 more); 2 cases: 1 passed, 1 failed, 0 errors",
            ),
            (
                ["a"],
                ["--only-changed", "plan.json"],
                "gate: nothing ran: no case was left to run; 0 cases: 0 passed, 0 failed, 0 errors",
            ),
        ],
    )
    def test_quiet_run_prints_its_verdict_alone(
        self, cases: list[Any], flags: list[str], verdict: str, project: Project
    ) -> None:
        unknown = {"name": "judged", "type": "llm_judge", "judge_target": "judge", "prompt": "{{ unknown }}"}
        project.documents(*cases, evaluators=[HELLO, unknown])
        assert project.run("compile", "--out", "plan.json").code == 0
        loud, quiet = project.eval(*flags), project.eval("-q", *flags)
        assert (quiet.code, quiet.out) == (loud.code, f"{verdict}\n")
        assert quiet.err == ""
        assert loud.err != ""


class TestPlans:
    @pytest.fixture(autouse=True)
    def plan(self, project: Project) -> None:
        assert project.run("compile", "evals", "--out", "plan.json").code == 0

    def test_cases_of_a_plan_can_be_selected(self, project: Project) -> None:
        assert (
            project.run("eval", "plan.json", "--target", "default", "--out", "r.jsonl", "--eval-id", "wav*").code == 0
        )
        assert [row["eval_id"] for row in project.rows()] == ["waves"]

    def test_commands_require_the_folder_of_their_suite(self, project: Project) -> None:
        project.targets(tool("echo Hello"))
        assert project.run("compile", "evals", "--out", "elsewhere/plan.json").code == 0
        assert project.run("eval", "elsewhere/plan.json", "--out", "r.jsonl").code == 0
        project.write({"elsewhere/.git/config": ""})
        done = project.run("eval", "plan.json", "--out", "r.jsonl", cwd="elsewhere")
        assert done.code == 2
        assert "the folder of 'evals/x.yaml', in which commands run, does not exist" in done.err
        assert not project.path("elsewhere/r.jsonl").exists()
        assert project.run("eval", "plan.json", "--dry-run", "--out", "r.jsonl", cwd="elsewhere").code == 0


@pytest.mark.slow
@pytest.mark.parametrize("redirection", ["2> /dev/full", "2>&1 > /dev/null | true"])
def test_run_continues_when_warnings_cannot_be_printed(redirection: str, project: Project) -> None:
    project.write({"evals/x.yaml": project.text("evals/x.yaml").replace('"$schema": "agentv-eval-v2", ', "")})
    project.env["PYTHONUNBUFFERED"] = ""  # they are printed at the end
    done = in_a_shell(project, f"eval evals --out r.jsonl {redirection}")
    assert (done.code, len(project.rows())) == (0, 2)
