"""`agentv-ci github publish`: what it shows of the first step, and files that an agent changed since."""

from __future__ import annotations

import io
import json
import os
import re
import zipfile
from pathlib import Path
from typing import Any

import pytest
import yaml

from agentv_ci.app.documents.evaluator_lines import EvaluatorLines
from agentv_ci.github.publish import FailOn, exit_code
from agentv_ci.github.run import action_run
from tests.action import events
from tests.action.github_api import FakeGitHub, Run
from tests.cli.builders import GREETS, KEYED, LEAVES, PASSES, Job
from tests.github.workflows import HEAD
from tests.support import REPOSITORY, write
from tests.support.evals import tool

COMMAND = re.compile(r"^\s*::(?!(error|warning|notice) )|##\[", re.MULTILINE)
"""What the runner would take for a command, except for annotations."""
STATISTICS = {"mean": 0.5, "median": 0.5, "min": 0.0, "max": 1.0, "stdev": 0.5, "histogram": [1, 0, 0, 0, 1]}
COUNTS = {"cases": 1, "passed": 0, "failed": 1, "errored": 0, "not_run": 0, "flaky": 0, "rows": 1}
FILES = ("run.json", "results.report.json", "results.jsonl", "plan-diff.json", "diagnostics.json")


class TestOutcomes:
    def test_passed(self, job: Job) -> None:
        job.step()
        done = job.publish("--comment=never")
        assert (done.code, done.out) == (0, "agentv-ci: pass\n")
        names = {"results": "results.jsonl", "report": "results.report.json", "junit": "junit.xml"}
        names |= {"html": "report.html", "plan": "plan.json"}
        assert job.outputs == {
            "verdict": "pass",
            "passed": "1",
            "failed": "0",
            "errored": "0",
            "total": "1",
            "pass-rate": "1.0",
            "mean-score": "1.0",
            "cost-usd": job.outputs["cost-usd"],
            **{name: str(job.left(file)) for name, file in names.items()},
        }
        assert job.summary.startswith("## ✅ Evaluations: passed")
        assert job.left("comment.md").read_text("utf-8").startswith("<!-- agentv-ci:Evals/evals -->\n## ✅")

    def test_crashed_case_has_not_passed(self, job: Job) -> None:
        crashing = {"id": "crashes", "execution": {"target": "crashing", "max_retries": 0}}
        job.documents(GREETS, crashing, targets=(PASSES, tool("exit 3", name="crashing")))
        job.step("--exit-zero", "--args=--max-errors 1")
        job.publish("--comment=never")
        names = "verdict", "passed", "failed", "errored", "total", "pass-rate", "mean-score"
        assert [job.outputs[name] for name in names] == ["fail", "1", "0", "1", "2", "0.5", "0.5"]

    def test_failed_case_is_shown_on_the_line_of_its_evaluator(self, job: Job) -> None:
        job.documents(GREETS, LEAVES, targets=(PASSES,))
        text = json.dumps(job.json("evals/x.yaml"), indent=1)
        job.write({"evals/x.yaml": text})
        lines = text.splitlines()
        case, evaluator = (
            next(i for i, line in enumerate(lines, 1) if f'"{key}": "leaves"' in line) for key in ("id", "name")
        )
        job.step("--exit-zero")
        error = "::error file=evals/x.yaml,line={},title=leaves%3A fail 0.500::leaves (required): "
        # Files outside of the workspace are not read.
        for workspace, line in ((job.path("evals"), evaluator - 1), (job.path("agentv-results"), case - 1)):
            job.env["GITHUB_WORKSPACE"] = str(workspace)
            done = job.publish()
            assert (done.code, error.format(line) in done.out) == (1, True)
            assert "::notice title=No comment on the pull request::GITHUB_TOKEN is not set" in done.out
        assert f"https://github.com/acme/demo/blob/{HEAD}/evals/x.yaml#L{case - 1}" in job.summary

    @pytest.mark.parametrize(("flags", "code"), [([], 2), (["--validate-only"], 1)])
    def test_invalid_documents_are_shown_on_their_lines(self, flags: list[str], code: int, job: Job) -> None:
        job.write(
            {
                "evals/x.yaml": "\n"
                + job.text("evals/x.yaml").replace('"evaluators": [{"name"', '"evalutors": [{"name"', 1)
            }
        )
        assert job.step(*flags).code == code
        done = job.publish()
        assert done.code == code
        assert ("::error file=evals/x.yaml,line=2," in done.out, done.out.count("::error")) == (True, 1)
        assert job.outputs["verdict"] == "invalid"
        assert "did you mean 'evaluators'?" in job.summary
        assert not flags or job.summary.startswith("## ❌ Documents: invalid")

    def test_valid_documents(self, job: Job) -> None:
        assert job.step("--validate-only", "--workers=4").code == 0
        assert job.publish().code == 0
        assert (job.outputs["verdict"], job.outputs["total"], job.outputs["results"]) == ("pass", "0", "")
        assert job.outputs["plan"].endswith("plan.json")
        assert job.summary.startswith("## ✅ Documents: valid\n\n**1 file checked")

    def test_valid_documents_with_invalid_targets(self, job: Job) -> None:
        job.targets({**PASSES, "respones": "x"})
        assert job.step("--validate-only").code == 1
        done = job.publish()
        assert (done.code, "::error file=targets.yaml,line=1," in done.out) == (1, True)

    def test_valid_documents_without_targets(self, job: Job) -> None:
        job.path("targets.yaml").unlink()
        done = job.step("--validate-only")
        assert (done.code, "no plan: no targets.yaml" in done.out) == (0, True)
        assert (job.publish().code, job.outputs["plan"]) == (0, "")

    def test_changes_since_a_plan(self, job: Job) -> None:
        job.step("--validate-only", "--results-dir", "base")
        assert job.step("--only-changed", "base/plan.json").code == 0
        assert (job.publish().code, job.outputs["verdict"]) == (0, "nothing")
        job.documents(GREETS, LEAVES, targets=(PASSES,))
        assert job.step("--only-changed", "base/plan.json").code == 1
        job.publish()
        assert "Since the older plan: 0 cases changed, 1 added, 0 removed" in job.summary
        assert job.outputs["total"] == "1"
        assert len(job.json("agentv-results/plan.json")["cases"]) == 2

    def test_changes_against_the_base_branch(self, job: Job) -> None:
        job.on("pull_request", events.pull_request(HEAD))
        base = self.results_as_artifact(job)
        job.documents(GREETS, LEAVES, targets=({**PASSES, "response": "goodbye"},))
        job.step("--exit-zero")
        github = FakeGitHub(permissions={"actions": "read"}, runs=[Run(4, {"agentv-results": base})])
        job.env |= {
            "GITHUB_WORKFLOW_REF": "acme/demo/.github/workflows/evals.yml@main",
            "GITHUB_TOKEN": "ghs_0123456789",
        }
        with github.running() as url:
            job.env["GITHUB_API_URL"] = url
            said = job.publish("--comment=never").out
            assert "### Against `main (0000000)`\n\n**1 regressed, 1 new**" in job.summary
            assert "| 📉 regressed | `greets` |" in job.summary
            assert "On `main (0000000)`, 2 cases that did not pass: 1 green, 1 unknown." in job.summary
            assert "· 🆕 passes on `main (0000000)` |" in job.summary
            for damaged in (b"no zip", base.replace(b"PK\x01\x02", b"PK\x01\x03")):
                github.runs = [Run(4, {"agentv-results": damaged})]
                done = job.publish("--comment=never")
                assert "the results of main (0000000) cannot be read: BadZipFile" in done.out
                assert done.code == 1
        # The gate decides without it.
        assert ("regress" in said, "no comparison" in said) == (False, False)
        assert job.publish("--base-artifact=", "--comment=never").out.count("\n") == said.count("\n")

    def results_as_artifact(self, job: Job) -> bytes:
        """Run, and return the results as upload-artifact stores them."""
        job.step("--results-dir=base")
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w") as archive:
            for path in job.path("base").iterdir():
                archive.write(path, path.name)
        return packed.getvalue()

    def test_merged_shards(self, job: Job) -> None:
        job.documents(GREETS, LEAVES, targets=(PASSES,))
        for part in (1, 2):
            assert job.step(f"--shard={part}/2", "--results-dir", f"part-{part}").code == 0
        done = job.publish("--results-dir", "part-1")
        assert done.out.endswith(f"agentv-ci: {job.outputs['verdict']}\n")
        assert "No comment on the pull request" not in done.out
        parts = [f"part-{part}/results.jsonl" for part in (1, 2)]
        assert job.run("report", *parts, "--expect-shards=2", "--out=agentv-results/results.jsonl").code == 1
        job.path(".git/outputs").unlink()
        assert job.publish("--comment=never").code == 1
        assert (job.outputs["verdict"], job.outputs["total"]) == ("fail", "2")

    def test_dry_run(self, job: Job) -> None:
        job.targets(KEYED)
        assert job.step("--dry-run").code == 0
        done = job.publish("--comment=never")
        assert (done.code, job.outputs["verdict"]) == (0, "pass")
        assert "::notice title=Dry run::" in done.out

    def test_results_of_a_step_that_failed_are_not_trusted(self, job: Job) -> None:
        job.step()
        job.env["AGENTV_RUN_OUTCOME"] = "failure"
        done = job.publish()
        assert (done.code, job.outputs["verdict"], job.outputs["passed"]) == (70, "error", "0")
        assert "::error title=agentv-ci::the step that ran the agents did not end properly" in done.out
        assert "::notice title=No comment on the pull request::GITHUB_TOKEN is not set" in done.out

    @pytest.mark.parametrize(
        ("key", "name"),
        [
            ("", "evals"),
            ("null", "evals"),
            ("{}", "evals"),
            ('{"target": "gpt", "python": 3.13}', "evals (gpt, 3.13)"),
            ("nightly", "nightly"),
            ("5", "5"),
        ],
    )
    def test_comment_is_identified_by_workflow_job_and_matrix(self, key: str, name: str, job: Job) -> None:
        job.env |= {"AGENTV_COMMENT_KEY": key}
        job.publish()
        assert f"\n`Evals/{name}` · [run 5]" in job.left("comment.md").read_text("utf-8")

    def test_event_that_names_another_pull_request(self, job: Job) -> None:
        job.env["GITHUB_REF"] = "refs/pull/8/merge"
        assert "::the event and GITHUB_REF name different pull requests" in job.publish().out

    def test_no_results(self, job: Job) -> None:
        assert job.publish().code == 70
        assert job.outputs["verdict"] == "error"
        assert "the run ended too early" in job.summary

    def test_outside_of_a_workflow(self, job: Job) -> None:
        del job.env["GITHUB_ACTIONS"]
        done = job.publish()
        assert (done.code, done.err.splitlines()[0]) == (2, "error: not running in GitHub Actions")

    @pytest.mark.parametrize(
        ("fail_on", "codes"),
        [
            ("gate", {0: 0, 1: 1, 2: 2, 3: 3, 4: 4, 5: 5, 70: 70, 130: 130}),
            ("errors", {0: 0, 1: 0, 2: 2, 3: 3, 4: 4, 5: 5, 70: 70, 130: 130}),
            ("never", {0: 0, 1: 0, 2: 2, 3: 0, 4: 0, 5: 0, 70: 70, 130: 130}),
        ],
    )
    def test_exit_code(self, fail_on: FailOn, codes: dict[int, int]) -> None:
        assert {code: exit_code(action_run(code, root=Path("/")), fail_on) for code in codes} == codes

    def test_step_is_skipped_when_nothing_ran(self) -> None:
        action = yaml.safe_load((REPOSITORY / "action.yml").read_text("utf-8"))
        (condition,) = (step["if"] for step in action["runs"]["steps"] if step.get("id") == "publish")
        assert "skipped" in condition or "steps.run.outcome == 'success'" in condition


class TestOtherRuns:
    def test_results_of_another_use_of_the_action_are_not_published(self, job: Job) -> None:
        job.env["AGENTV_CI"] = "/tmp/agentv-ci.Xy12/bin/agentv-ci"
        job.step()
        assert job.publish("--comment=never").code == 0
        job.env["AGENTV_CI"] = "/tmp/agentv-ci.Zz99/bin/agentv-ci"
        assert job.publish("--comment=never").code == 70
        assert "no results in" in job.summary

    def test_results_of_another_run_are_not_published(self, job: Job) -> None:
        job.step()
        job.env["GITHUB_RUN_ID"] = "6"
        assert job.publish().code != 0

    def test_results_of_an_earlier_run_are_not_published(self, job: Job) -> None:
        job.step()
        job.write({"evals/x.yaml": job.text("evals/x.yaml").replace("evaluators", "evalutors")})
        assert job.step("--exit-zero").code == 0
        assert (job.publish().code, job.outputs["verdict"]) == (2, "invalid")


class TestForgedFiles:
    @pytest.fixture(autouse=True)
    def ran(self, job: Job) -> None:
        job.documents(GREETS, LEAVES, targets=(PASSES,))
        job.step()

    @pytest.mark.parametrize("name", FILES)
    def test_nonsense_is_rejected(self, name: str, job: Job) -> None:
        nonsense = ("[]", "null", "\n", "NaN", "[" * 100_000, '{"$schema": 5}', '{"$schema": "\\ud800"}')
        for text in nonsense:
            job.left(name).write_text(text)
            done = job.publish("--comment=never")
            assert (done.code, COMMAND.search(done.out + done.err)) == (2, None)

    def test_statistics_without_a_histogram_are_rejected(self, job: Job) -> None:
        report = job.json("agentv-results/results.report.json")
        job.write(
            {"agentv-results/results.report.json": json.dumps({**report, "statistics": STATISTICS | {"histogram": []}})}
        )
        assert job.publish().code == 2

    @pytest.mark.parametrize("name", FILES)
    def test_only_regular_files_are_read(self, name: str, job: Job) -> None:
        job.write({"secret": '{"token": "ghs_secret"}'})
        path = job.left(name)
        path.unlink(missing_ok=True)
        path.symlink_to("../secret")
        done = job.publish()
        assert (done.code, "ghs_secret" in done.out + done.err) == (2, False)
        path.unlink()
        os.mkfifo(path)
        assert job.publish().code == 2
        path.unlink()
        path.mkdir()
        assert job.publish().code == 2

    def test_large_file_is_not_read(self, job: Job) -> None:
        with job.left("run.json").open("r+b") as file:
            file.truncate(65 * 1024 * 1024)
        assert job.publish().code == 2

    def test_report_requires_a_schema(self, job: Job) -> None:
        job.left("results.report.json").write_text("{}")
        assert job.publish().code == 2

    @pytest.mark.parametrize(
        ("name", "change"),
        [
            ("results.report.json", {"cost_usd": 1e308}),
            ("results.report.json", {"counts": {**COUNTS, "passed": 10**400}}),
            ("results.jsonl", {"cost_usd": 1e308, "judge_cost_usd": 1e308}),
            ("results.report.json", {"unpriced_models": ["m" * 100_000] * 20}),
            ("results.report.json", {"statistics": {**STATISTICS, "median": None}}),
            ("results.jsonl", {"suite": "/proc/self/environ"}),
            ("results.jsonl", {"source": {"path": "/etc/passwd\n::error::x", "line": 10**18}}),
            ("run.json", {"root": "/proc/self"}),
            ("run.json", {"root": "", "reason": "x" * 1_000_000, "hint": "##[error]x"}),
            ("run.json", {"exit_code": 0, "verdict": "pass"}),
        ],
    )
    def test_forged_values_are_harmless(self, name: str, change: dict[str, Any], job: Job) -> None:
        lines = (
            job.left(name).read_text("utf-8").splitlines()
            if name.endswith("l")
            else [job.left(name).read_text("utf-8")]
        )
        job.left(name).write_text("".join(json.dumps({**json.loads(line), **change}) + "\n" for line in lines), "utf-8")
        done = job.publish("--comment=never")
        assert (done.code, COMMAND.search(done.out + done.err)) == (1, None)
        assert job.path(".git/summary").stat().st_size < 1_000_000

    def test_outputs_name_no_links(self, job: Job) -> None:
        job.left("plan.json").unlink()
        job.left("plan.json").symlink_to("/proc/self/environ")
        job.publish("--comment=never")
        assert job.outputs["plan"] == ""

    def test_comment_that_cannot_be_kept_is_a_notice(self, job: Job) -> None:
        job.targets(tool("mkdir -p ../agentv-results/comment.md; echo Hello"))
        job.step()
        done = job.publish("--comment=never")
        assert "::error file=evals/x.yaml" in done.out
        assert "::notice title=cannot write comment.md::" in done.out

    @pytest.mark.parametrize("name", ["COMMENT", "FAIL_ON", "ANNOTATIONS"])
    def test_invalid_choice_is_not_a_command(self, name: str, job: Job) -> None:
        job.env[f"AGENTV_{name}"] = "x\n::set-output name=verdict::pass\n##[error]x"
        done = job.publish()
        assert (done.code, re.search(r"^\s*::", done.err, re.MULTILINE)) == (2, None)


SUITE = """\
$schema: agentv-eval-v2
execution:
  evaluators:
    - {name: shared, type: is_json}
evalcases:
  - id: one
    evaluators:
      - name: first
        type: is_json
      - {name: second, type: is_json}
  - id: two
    rubrics: [Is kind]
    execution:
      evaluators:
        - {name: second, type: is_json}
  - id: in-short
    evaluators:
      - is_json
      - contains: Ada
      - {contains: Bob, name: contains-2}
      - {type: contains, value: Eve}
"""


@pytest.mark.parametrize(
    ("case", "evaluator", "line"),
    [
        ("one", "first", 8),
        ("one", "second", 10),
        ("two", "second", 15),
        ("two", "rubrics", 12),
        ("one", "rubrics", None),
        ("one", "shared", None),
        ("three", "first", None),
        # The file has an evaluator of this type with a name of its own.
        ("in-short", "is_json", 18),
        ("in-short", "contains", 19),
        ("in-short", "contains-2", 20),
        ("in-short", "contains-3", 21),
    ],
)
def test_line_of_an_evaluator_defined_in_a_case(repository: Path, case: str, evaluator: str, line: int | None) -> None:
    write(repository, {"evals/a.yaml": SUITE})
    assert EvaluatorLines(repository, repository).find("evals/a.yaml", case, evaluator) == line


@pytest.mark.parametrize(
    "text", [None, "", "evalcases: 7", "evalcases: [7, {id: one, evaluators: [7]}]", "\x00", "- a\nb"]
)
def test_other_and_missing_files_have_no_lines(repository: Path, text: str | None) -> None:
    if text is not None:
        write(repository, {"a.yaml": text})
    assert EvaluatorLines(repository, repository).find("a.yaml", "one", "first") is None
