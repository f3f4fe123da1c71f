"""What evaluators find on its way into rows: costs, secrets, times."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from agentv_ci.app.compile import Selection, compile_paths
from agentv_ci.app.report_files import RunFiles
from agentv_ci.app.run import run_plan
from agentv_ci.cli import run
from agentv_ci.compile.overrides import Overrides
from agentv_ci.contracts.api_targets import OpenAITarget
from agentv_ci.contracts.config import Price
from agentv_ci.contracts.exchange import Environment, Response
from agentv_ci.contracts.results import Usage
from agentv_ci.execute.run_services import RunOptions, RunServices
from agentv_ci.prices import cost_of_response
from tests.servers.model_api import model_api, says
from tests.support import NOW, write

SECRET = "canary-0123456789"
CASE = {
    "id": "one",
    "expected_outcome": "A greeting",
    "input_messages": [{"role": "user", "content": "Greet me"}],
    "expected_messages": [],
}
MOCK = {"name": "default", "provider": "mock", "response": "Hello!"}
HELLO = {"name": "hello", "type": "contains", "value": "Hello"}
SAYS_IT = '{"score": 0.5, "hits": ["%s"], "reasoning": "%s"}'
TELLS = {
    "name": "tells",
    "type": "code",
    "script": f"printf '{SAYS_IT}' $MY_SECRET $MY_SECRET; echo $MY_SECRET >&2",
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / ".git").mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MY_SECRET", SECRET)
    return tmp_path


def documents(
    folder: Path, *evaluators: dict[str, Any], targets: tuple[dict[str, Any], ...] = (MOCK,), **config: Any
) -> None:
    evals = {"$schema": "agentv-eval-v2", "evalcases": [{**CASE, "evaluators": evaluators}]}
    write(
        folder,
        {
            "x.yaml": json.dumps(evals),
            "targets.yaml": json.dumps({"$schema": "agentv-targets-v2.2", "targets": targets}),
            ".agentv.yaml": json.dumps({"$schema": "agentv-config-v2", **config}),
        },
    )


def rows(folder: Path, name: str = "r.jsonl") -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / name).read_text("utf-8").splitlines()]


def test_secret_of_a_member_does_not_reach_the_judge_that_aggregates(folder: Path) -> None:
    judge = {
        "name": "judge",
        "provider": "cli",
        "command_template": "cp {PROMPT_FILE} seen.txt; echo '{\"score\": 1}'",
        "cwd": ".",
    }
    together = {"name": "all", "type": "composite", "evaluators": [TELLS], "aggregator": {"type": "llm_judge"}}
    documents(folder, together, targets=({**MOCK, "judge_target": "judge"}, judge))
    assert run(["eval", "x.yaml", "--out", "r.jsonl"]) == 0
    assert "***" in (folder / "seen.txt").read_text("utf-8")
    assert SECRET not in (folder / "seen.txt").read_text("utf-8")
    assert SECRET not in (folder / "r.jsonl").read_text("utf-8")
    assert rows(folder)[0]["masked"] is True


@pytest.mark.parametrize("flags", [[], ["--dry-run"]])
def test_secret_that_only_a_target_calls_so_is_masked_whoever_answers(
    folder: Path, flags: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("MY_SECRET")
    monkeypatch.setenv("UPSTREAM_AUTH", SECRET)
    told = json.loads(json.dumps(TELLS).replace("MY_SECRET", "UPSTREAM_AUTH"))
    with model_api(says("Hello!")) as api:
        target = {"name": "default", "provider": "openai", "model": "m", "base_url": f"{api.url}/v1"}
        documents(folder, told, targets=({**target, "api_key": "${{ UPSTREAM_AUTH }}"},))
        run(["eval", "x.yaml", "--out", "r.jsonl", *flags])
    assert run(["rescore", "r.jsonl"]) in (0, 1)
    for name in ("r.jsonl", "r.rescored.jsonl"):
        assert SECRET not in (folder / name).read_text("utf-8")
        assert rows(folder, name)[0]["masked"] is True


def test_rescored_row_is_masked_as_a_whole(folder: Path) -> None:
    documents(folder, HELLO, targets=({**MOCK, "response": "Hello! old-secret-value"},))
    assert run(["eval", "x.yaml", "--out", "r.jsonl", "--include-trace"]) == 0
    assert "old-secret-value" in (folder / "r.jsonl").read_text("utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LATER_TOKEN", "old-secret-value")
        assert run(["rescore", "r.jsonl"]) == 0
    assert "old-secret-value" not in (folder / "r.rescored.jsonl").read_text("utf-8")
    assert rows(folder, "r.rescored.jsonl")[0]["masked"] is True


@pytest.mark.parametrize(
    ("prices", "wanted"),
    [
        ({"m": 99.0}, 99.0),
        ({"m": 99.0, "m-2026-01-01": 7.0}, 99.0),
        ({"m-2026-01-01": 7.0}, 7.0),
        ({}, None),
    ],
)
def test_answer_is_priced_by_its_target_or_else_by_the_model_that_answered(
    prices: dict[str, float], wanted: float | None
) -> None:
    authored = {name: Price(input_per_mtok=dollars, output_per_mtok=0) for name, dollars in prices.items()}
    target = OpenAITarget(name="t", provider="openai", model="m")
    response = Response(
        "Hello!",
        (),
        has_trace=False,
        model="m-2026-01-01",
        usage=Usage(input_tokens=1_000_000, output_tokens=0, total_tokens=1_000_000),
    )
    assert cost_of_response(target, response, authored) == wanted


def test_waiting_for_others_is_no_latency(folder: Path) -> None:
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)
        await asyncio.sleep(0)

    documents(folder, {"name": "fast", "type": "latency", "max_ms": 300}, targets=({**MOCK, "delay_ms": 300},))
    world = Environment({}, lambda: NOW, lambda: sum(slept), sleep, lambda low, _: low)
    compiled = compile_paths(Selection(["x.yaml"]), cwd=folder)
    # Four trials at once, and one question at a time.
    work = run_plan(
        compiled,
        Overrides(repeat=4),
        RunOptions(root=folder),
        RunFiles(folder / "r.jsonl", "jsonl"),
        RunServices(world, print, print, print, lambda _: None),
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("agentv_ci.execute.limits.cases_at_once", lambda *_: 4)
        asyncio.run(work)
    assert [row["duration_ms"] for row in rows(folder)] == [300] * 4


def test_dry_run_is_written_on_rescored_rows(folder: Path) -> None:
    documents(folder, HELLO)
    assert run(["eval", "x.yaml", "--out", "r.jsonl"]) == 0
    assert run(["rescore", "r.jsonl", "--dry-run"]) == 0
    assert rows(folder, "r.rescored.jsonl")[0]["dry_run"] is True


def test_score_beyond_its_range_counts_as_the_nearer_and_is_told(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    documents(folder, {"name": "percent", "type": "code", "script": "echo '{\"score\": 85}'"})
    assert run(["eval", "x.yaml", "--out", "r.jsonl"]) == 0
    assert "warning: evaluator 'percent' scored 85, outside 0 to 1; it counts as 1" in capsys.readouterr().err
    assert rows(folder)[0]["score"] == 1.0


def test_evaluator_that_cannot_score_is_told_once(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    documents(folder, {"name": "broken", "type": "code", "script": "exit 3"})
    assert run(["eval", "x.yaml", "--out", "r.jsonl", "--repeat", "3"]) == 4
    assert capsys.readouterr().err.count("warning: evaluator 'broken' could not score: the script exited") == 1


def test_bleu_without_its_package_is_refused_before_anything_is_asked(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("agentv_ci.evaluate.evaluators.find_spec", lambda _: None)
    documents(folder, {"name": "near", "type": "similarity", "metric": "bleu", "reference": "Hello"})
    assert run(["eval", "x.yaml", "--out", "r.jsonl"]) == 2
    told = capsys.readouterr().err
    assert "x.yaml:1: evaluator 'near' needs the package 'sacrebleu'" in told
    assert "python -m pip install sacrebleu" in told
    assert not (folder / "r.jsonl").exists()


def test_case_whose_weights_are_all_zero_says_why_it_fails(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    documents(folder, {**HELLO, "weight": 0})
    assert run(["eval", "x.yaml", "--out", "r.jsonl"]) == 1
    assert "all weights are 0, so the score is 0" in capsys.readouterr().out
