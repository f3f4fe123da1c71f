"""Runs as a user sees them: answers of commands and APIs, workers, warnings, judges without a model."""

from __future__ import annotations

import json
import sys

import pytest

from tests.support.evals import tool
from tests.support.projects import GREETS, JUDGED, Project

TEN = [f"case-{number}" for number in range(10)]


def test_health_check_runs_once(project: Project) -> None:
    check = {"type": "command", "command_template": "echo x >> probes"}
    project.documents(*TEN, targets=(tool("echo Hello", healthcheck=check),))
    assert project.eval().code == 0
    assert project.text("probes") == "x\n"


def test_run_writes_its_results_alone_unless_prompts_are_dumped(project: Project) -> None:
    project.documents("one", targets=(tool("echo Hello"),))
    assert project.eval().code == 0
    assert {*project.files()} == {"evals/x.yaml", "targets.yaml", "r.jsonl", "r.report.json"}
    assert project.eval("--dump-prompts").code == 0
    (dumped,) = project.path(".agentv/prompts").iterdir()
    document = json.loads(dumped.read_text("utf-8"))
    assert (document["request"]["prompt"], document["settings"]["command_template"]) == ("Greet me", "echo Hello")


def test_provider_that_cannot_batch_is_asked_case_by_case(project: Project) -> None:
    project.documents("one", targets=({**GREETS, "settings": {"provider_batching": True}},))
    done = project.eval("--verbose")
    assert done.code == 0
    assert "default: 'mock' does not support provider_batching; asking case by case" in done.err


@pytest.mark.parametrize("flags", [[], ["--color", "always"]])
def test_warning_about_a_document_is_yellow_only_on_request(flags: list[str], project: Project) -> None:
    project.documents("one", evaluators=[{**JUDGED, "prompt": "{{ question }} {{ unknown }}"}])
    done = project.eval(*flags)
    assert (done.code, "\x1b[33m" in done.err, "\x1b[" in done.err) == (0, bool(flags), bool(flags))
    assert "is missing required fields" in done.err
    assert "unknown variables: {{ unknown }}" in done.err


def test_dry_run_has_a_reply_for_every_judge(project: Project) -> None:
    criteria = ["Is kind", {"id": "short", "description": "Is short", "weight": 2}]
    members = [{"name": "m", "type": "llm_judge"}, {"name": "r", "type": "rubric", "rubrics": criteria}]
    aggregators = [
        {"type": "weighted_average"},
        {"type": "code", "script": [sys.executable, "-c", "print('{\"score\": 1}')"]},
        {"type": "llm_judge"},
        {"type": "llm_judge", "prompt": "Weigh {{ evaluator_results }}"},
    ]
    evaluators = [
        {"name": "plain", "type": "llm_judge"},
        {"name": "own", "type": "llm_judge", "prompt": "Judge {{ candidate_answer }}"},
        {"name": "listed", "type": "llm_judge", "rubrics": criteria},
        {"name": "criteria", "type": "rubric", "rubrics": criteria},
        *(
            {"name": f"composite-{number}", "type": "composite", "evaluators": members, "aggregator": aggregator}
            for number, aggregator in enumerate(aggregators)
        ),
    ]
    asked = {"name": "judge", "provider": "anthropic", "model": "m", "base_url": "http://127.0.0.1:1"}
    targets = ({**GREETS, "judge_target": "judge"}, asked)
    answer = [{"role": "assistant", "content": "Hello"}]
    project.documents({"evaluators": evaluators, "rubrics": criteria, "expected_messages": answer}, targets=targets)
    done = project.eval("--dry-run")
    assert (done.code, done.out[:9], "gate: not applied to a dry run\n" in done.out) == (0, "dry run: ", True)
    results = project.rows()[0]["evaluator_results"]
    assert (results[0]["name"], len(results)) == ("rubrics", 9)
    assert {(each["status"], each["score"]) for each in results} == {("ok", 1)}
