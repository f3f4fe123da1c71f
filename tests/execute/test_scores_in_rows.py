"""What evaluators find on its way into rows: secrets, times, warnings."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agentv_ci.compile.overrides import Overrides
from tests.servers.chat_api import chat_api, says
from tests.support import CommandResult, FakeClock, run_command
from tests.support.evals import FINDS, JUDGE, PRAISE, Run, documents, gpt, mock, tool

SECRET = "canary-0123456789"
SAYS_IT = '{"score": 1, "hits": ["%s"], "reasoning": "%s"}'


def repeating(variable: str) -> dict[str, Any]:
    """Return an evaluator that repeats a variable in its result and on standard error."""
    script = f"printf '{SAYS_IT}' ${variable} ${variable}; echo ${variable} >&2"
    return {"name": "repeats", "type": "code", "script": script}


def evaluate(repository: Path, *flags: str, env: dict[str, str] | None = None) -> CommandResult:
    return run_command("eval", "evals", "--out", "r.jsonl", *flags, cwd=repository, env=env)


def check_masked(repository: Path, name: str) -> None:
    (line,) = (repository / name).read_text("utf-8").splitlines()
    assert (SECRET in line, json.loads(line)["masked"]) == (False, True)


def test_a_secret_of_a_member_does_not_reach_the_judge_that_aggregates(repository: Path) -> None:
    judge = tool(f"cp {{PROMPT_FILE}} ../seen.txt; echo '{PRAISE}'", name="judge")
    aggregator = {"type": "llm_judge"}
    together = {"name": "all", "type": "composite", "evaluators": [repeating("MY_SECRET")], "aggregator": aggregator}
    documents(repository, ["one"], mock(judge_target="judge"), judge, evaluators=[together])
    assert evaluate(repository, env={"MY_SECRET": SECRET}).code == 0
    seen = (repository / "seen.txt").read_text("utf-8")
    assert ("***" in seen, SECRET in seen) == (True, False)
    check_masked(repository, "r.jsonl")


@pytest.mark.parametrize("flags", [[], ["--dry-run"]])
def test_a_secret_of_a_target_is_masked_in_a_dry_run_too(repository: Path, flags: list[str]) -> None:
    env = {"UPSTREAM_AUTH": SECRET}
    with chat_api(says("42")) as api:
        target = gpt(api.base_url, api_key="${{ UPSTREAM_AUTH }}")
        documents(repository, ["one"], target, evaluators=[repeating("UPSTREAM_AUTH")])
        evaluate(repository, *flags, env=env)
    assert run_command("rescore", "r.jsonl", cwd=repository, env=env).code in (0, 1)
    for name in ("r.jsonl", "r.rescored.jsonl"):
        check_masked(repository, name)


def test_waiting_for_other_questions_is_not_latency(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = FakeClock()

    async def sleep(seconds: float) -> None:
        clock.slept.append(seconds)
        await asyncio.sleep(0)

    run = Run(repository, environment=replace(clock.environment(), sleep=sleep))
    run.documents(["one"], mock(delay_ms=300), evaluators=[{"name": "fast", "type": "latency", "max_ms": 300}])
    # Four trials at once, and one question at a time.
    monkeypatch.setattr("agentv_ci.execute.limits.cases_at_once", lambda *_: 4)
    found = run.rows(overrides=Overrides(repeat=4))
    assert [(row.duration_ms, row.verdict) for row in found] == [(300, "pass")] * 4


@pytest.mark.parametrize(
    ("evaluator", "code", "message"),
    [
        (
            {"name": "percent", "type": "code", "script": "echo '{\"score\": 85}'"},
            0,
            "warning: evaluator 'percent' scored 85",
        ),
        (
            {"name": "broken", "type": "code", "script": "exit 3"},
            4,
            "warning: evaluator 'broken' could not score: the script exited with code 3",
        ),
        ({**JUDGE, "judge_target": "default"}, 4, "warning: evaluator 'judge' could not score: "),
        ({**FINDS, "weight": 0}, 1, "all weights are 0, so the score is 0"),
    ],
)
def test_a_problem_with_an_evaluator_is_reported_once(
    evaluator: dict[str, Any], code: int, message: str, repository: Path
) -> None:
    documents(repository, ["one"], mock(), evaluators=[evaluator])
    done = evaluate(repository, "--repeat", "3")
    assert (done.code, (done.out + done.err).count(message)) == (code, 1)


def test_a_missing_package_of_an_evaluator_is_an_error_before_the_first_question(
    repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agentv_ci.evaluate.evaluators.find_spec", lambda _: None)
    near = {"name": "near", "type": "similarity", "metric": "bleu", "reference": "Hello"}
    documents(repository, ["one"], mock(), evaluators=[near])
    done = evaluate(repository)
    assert (done.code, (repository / "r.jsonl").exists()) == (2, False)
    assert "evaluator 'near' needs the package 'sacrebleu'" in done.err
    assert "python -m pip install sacrebleu" in done.err
