"""`agentv-ci eval`: options, plans, results, and its exit codes."""

from __future__ import annotations

import pytest

from tests.cli.builders import in_a_shell
from tests.support.evals import tool
from tests.support.projects import GREETS, HELLO, Project

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

    @pytest.mark.parametrize(
        "arguments",
        [
            ["eval", "evals", "--out", "evals/x.yaml"],
            ["eval", "evals", "--out", "r.jsonl", "--junit", "targets.yaml"],
            ["eval", "evals", "--out", "r.jsonl", "--junit", "./r.jsonl"],
            ["eval", "evals", "--out", "r.jsonl", "--junit", "r.report.json"],
            ["eval", "evals", "--out", "r.jsonl", "--junit", "evals"],
            ["eval", "evals", "--out", "-"],
            ["eval", "evals", "--out", "targets.yaml/r.jsonl"],
            ["report", "before.jsonl", "--out", "-"],
            ["report", "before.jsonl", "--out", "all.jsonl", "--junit", "all.jsonl"],
            ["report", "before.jsonl", "--out", "all.jsonl", "--junit", "all.report.json"],
        ],
    )
    def test_outputs_never_overwrite_inputs_or_each_other(self, arguments: list[str], project: Project) -> None:
        assert project.run("eval", "evals", "--out", "before.jsonl").code == 0
        project.refuses(*arguments)

    @pytest.mark.parametrize(("form", "out"), [("jsonl", "r.yaml"), ("yaml", "r.jsonl")])
    def test_format_must_match_the_name(self, form: str, out: str, project: Project) -> None:
        error = f"error: --output-format {form} does not match --out {out}\n    use a file name in .{form}\n"
        project.refuses("eval", "evals", "--output-format", form, "--out", out, error=error)

    def test_results_without_a_suffix_have_run_reports_of_their_own(self, project: Project) -> None:
        for name in ("part.1", "part.2"):
            assert project.run("eval", "evals", "--out", name).code == 0
        assert {"part.1.report.json", "part.2.report.json"} < {*project.files()}


class TestOptions:
    @pytest.mark.parametrize(
        ("arguments", "error"),
        [
            (["--output-format", "xml"], "'xml' is not one of 'jsonl', 'yaml'"),
            (["--workers", "0"], "0 is not in the range x>=1"),
            (["--workers", "many"], "'many' is not a whole number of at least 1"),
            (["--threshold", "2"], "0<=x<=1"),
            (["--max-cost", "-1"], "--max-cost"),
            (["--max-cost", "nan"], "--max-cost"),
            (["--max-cost", "inf"], "--max-cost"),
            (["--agent-timeout", "inf"], "--agent-timeout"),
            *((["--shard", shard], "must be I/N with I from 1 to N") for shard in ("0/4", "5/4", "1", "-1/2")),
            (["--balance", "r.jsonl"], "--balance requires --shard"),
            (["--shard", "1/2", "--balance", "gone.jsonl"], "gone.jsonl"),
            (["--shard", "1/2", "--balance", "evals/x.yaml"], "not a result row"),
            (["--cache-dir", "x"], "--cache-dir requires --cache"),
            (["--no-cache", "--cache-dir", "x"], "--cache-dir requires --cache"),
            (["--cache", "--dry-run"], "--cache and --dry-run cannot be combined"),
            (["--record", "x", "--replay", "evals"], "--record and --replay cannot be combined"),
            (["--record", "x", "--dry-run"], "--record and --dry-run cannot be combined"),
            (["--replay", "evals", "--dry-run"], "--replay and --dry-run cannot be combined"),
            (["--replay", "evals", "--cache"], "--replay and --cache cannot be combined"),
            (["--replay", "gone"], "--replay: 'gone' is not a directory\n    create it with --record"),
            (["--record", "targets.yaml"], "--record: cannot create 'targets.yaml'"),
            (["--dump-dir", "x"], "--dump-dir requires --dump-prompts or --dump-traces"),
            (["--resume", "x.yaml"], "--resume and --out must use the same format"),
            *(([flag, ""], "the name is empty") for flag in ("--replay", "--record", "--resume")),
        ],
    )
    def test_invalid_options_run_nothing(self, arguments: list[str], error: str, project: Project) -> None:
        project.refuses("eval", "evals", "--out", "r.jsonl", *arguments, error=error)

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


class TestPlans:
    @pytest.fixture(autouse=True)
    def plan(self, project: Project) -> None:
        assert project.run("compile", "evals", "--out", "plan.json").code == 0

    @pytest.mark.parametrize("flags", [["--target", "other"], ["--targets", "targets.yaml"]])
    def test_targets_of_a_plan_are_fixed(self, flags: list[str], project: Project) -> None:
        project.refuses("eval", "plan.json", *flags, error="--target and --targets cannot be combined with a plan")

    def test_cases_of_a_plan_can_be_selected(self, project: Project) -> None:
        selected = ["eval", "plan.json", "--target", "default", "--out", "r.jsonl", "--eval-id"]
        assert project.run(*selected, "wav*").code == 0
        assert [row["eval_id"] for row in project.rows()] == ["waves"]
        project.refuses(*selected, "none", error="no case of the plan is selected", code=3)

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
    done = in_a_shell(project, f"eval evals --out r.jsonl {redirection}")
    assert (done.code, len(project.rows())) == (0, 2)
