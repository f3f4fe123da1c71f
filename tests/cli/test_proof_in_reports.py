"""Reports of a run that show a proof: `--proof`, and the action's input `prove`."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.cli.builders import PASSES, Job
from tests.support.projects import Project

BLIND = {
    "id": "blind",
    "input_messages": [{"role": "user", "content": "What is the capital of France?"}],
    "expected_messages": [{"role": "assistant", "content": "The capital of France is Paris."}],
    "evaluators": [{"name": "names-it", "type": "contains", "value": "France"}],
}
BROKEN = {**BLIND, "id": "broken", "evaluators": [{"name": "exact", "type": "equals", "value": "Rome"}]}
SOUND = {
    **BLIND,
    "id": "sound",
    "evaluators": [{"name": "exact", "type": "equals", "value": "The capital of France is Paris."}],
}
SAYS = "Proof: 1 of 1 case can be passed by doing nothing"


def shown(project: Project, *flags: str) -> str:
    done = project.eval("--html", "r.html", "--markdown", "r.md", "--proof", ".agentv/proof.json", *flags)
    assert done.err == "" or "error" not in done.err, done
    return project.text("r.md") + project.text("r.html")


def test_markdown_and_html_show_the_proof(project: Project) -> None:
    project.documents(BLIND)
    project.run("prove", "evals")
    text = shown(project)
    assert f"### ✅ {SAYS}" in text
    assert "`null agents pass this case: echo-prompt, echo-last-message (accepted by names-it)` AV401" in text
    assert '<h2 id="proof-title">Proof: passed</h2>' in text
    assert "1 of 1 case can be passed by doing nothing</li>" in text
    assert "another plan" not in text


def test_reasons_of_a_proof_that_is_not_passed(project: Project) -> None:
    project.documents(BROKEN)
    project.run("prove", "evals")
    text = shown(project)
    assert "### ❌ Proof: 0 of 1 case" in text
    assert text.count("1 reference answer fails its evaluators") == 2
    assert '<span class="verdict fail">error</span>' in text


def test_proof_of_another_plan_is_marked(project: Project) -> None:
    project.documents(BLIND)
    project.run("prove", "evals")
    assert shown(project, "--threshold", "0.5").count("It is the proof of another plan") == 2


def test_merged_reports_show_it_too(project: Project) -> None:
    project.documents(SOUND)
    project.run("prove", "evals")
    project.eval()
    project.run("report", "r.jsonl", "--proof", ".agentv/proof.json", "--markdown", "r.md")
    assert "### ✅ Proof: 0 of 1 case can be passed by doing nothing" in project.text("r.md")


@pytest.mark.parametrize(
    ("text", "error"),
    [
        (None, "cannot read 'NAME': No such file or directory"),
        ("{", "'NAME' is not a proof that this version reads"),
        ("[]", "'NAME' is not a proof that this version reads"),
        ('{"$schema": "https://example.com/v9"}', "its $schema is https://example.com/v9"),
    ],
)
def test_unusable_proof_stops_the_run(text: str | None, error: str, project: Project) -> None:
    project.documents(SOUND)
    project.write({} if text is None else {"p.json": text})
    project.refuses("eval", "evals", "--html", "r.html", "--proof", "p.json", error=error.replace("NAME", "p.json"))


class TestAction:
    @pytest.mark.parametrize(
        ("case", "prove", "code", "verdict"),
        [
            (BLIND, "report", 0, "pass"),
            (BLIND, "gate", 0, "pass"),
            (BROKEN, "report", 0, "pass"),
            (BROKEN, "gate", 1, "fail"),
        ],
    )
    def test_gate(self, case: dict[str, Any], prove: str, code: int, verdict: str, job: Job) -> None:
        answer = case["evaluators"][0]["value"]
        job.documents(case, targets=({"name": "default", "provider": "mock", "response": answer},))
        assert job.step(f"--prove={prove}").code == code
        assert job.ended["verdict"] == verdict
        done = job.publish("--comment=never")
        assert (done.code, job.outputs["verdict"]) == (code, verdict)
        assert "Proof: " in job.summary
        assert "Proof: " in job.left("report.html").read_text("utf-8")
        assert ("::error title=Proof not passed::1 reference answer fails its evaluators" in done.out) == (code == 1)

    def test_nothing_is_proven_unless_it_is_asked_for(self, job: Job) -> None:
        job.step()
        assert not job.left("proof.json").exists()

    @pytest.mark.parametrize(("shard", "proven"), [("1/2", True), ("2/2", False)])
    def test_the_first_shard_proves(self, shard: str, proven: bool, job: Job) -> None:
        job.documents(SOUND, BLIND, targets=(PASSES,))
        job.step("--prove=report", f"--shard={shard}")
        assert job.left("proof.json").exists() == proven

    def test_only_changed_cases_are_proven(self, job: Job) -> None:
        job.documents(SOUND, targets=(PASSES,))
        job.run("compile", "evals", "--out", "old.json")
        job.documents(SOUND, BLIND, targets=(PASSES,))
        job.step("--prove=report", "--only-changed=old.json")
        assert [each["id"] for each in json.loads(job.left("proof.json").read_text("utf-8"))["cases"]] == ["blind"]
