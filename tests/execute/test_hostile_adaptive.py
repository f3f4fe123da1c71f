"""Trials that stop when their case is decided, together with everything else that a run can be asked for."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from agentv_ci.cli import run
from agentv_ci.results.files import form_of, read_rows
from tests.servers.chat_api import ChatApi, Reply, chat_api, fails, says
from tests.support import write

GOOD = {
    "all": {1, 2, 3, 4, 5},
    "late": {2, 3, 5},
    "none": set[int](),
    "half": {1, 4},
    "early": {1, 2},
    "odd": {2, 4, 5},
}
"""Case → seeds whose answers are right."""
BROKEN = {"odd": {1}}
"""Case → seeds to which there is no answer."""
RAN = {"all": 3, "late": 5, "none": 3, "half": 5, "early": 5, "odd": 5}
"""Case → trials that decide it."""
FINDS = {"name": "finds", "type": "contains", "value": "42"}
VALIDATORS = [
    "structural_consistency",
    "determinism_check",
    "reproducibility_metadata",
    {"key": "schema_adherence", "contract": {"required": {"text": "str"}}},
    {"key": "fairness_balance", "metric_path": "metrics.score"},
]


@pytest.fixture
def api(repository: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ChatApi]:
    monkeypatch.chdir(repository)
    monkeypatch.setenv("ADAPTIVE_KEY", "sk-canary-0123456789")

    def reply(body: Mapping[str, Any]) -> Reply:
        case, seed = body["messages"][-1]["content"], body["seed"]
        if seed in BROKEN.get(case, ()):
            return fails(400)
        return says("42" if seed in GOOD[case] else "43")

    with chat_api(reply) as server:
        yield server


def documents(repository: Path, api: ChatApi, *cases: str, evaluator: Any = None, **execution: Any) -> None:
    common = {"expected_outcome": "42", "expected_messages": []}
    evals = {
        "$schema": "agentv-eval-v2",
        "execution": {
            "evaluators": [evaluator or FINDS],
            "seeds": [1, 2, 3, 4, 5],
            "repeat": {"max": 5, "stop_when": "decided"},
            "gate": {"min_pass_rate": 0.1, "max_errors": 5, "validators": "warn"},
            **execution,
        },
        "evalcases": [
            {**common, "id": each, "input_messages": [{"role": "user", "content": each}]} for each in cases or GOOD
        ],
    }
    target = {"name": "default", "provider": "openai", "model": "gpt-4o", "base_url": api.base_url}
    targets = {"$schema": "agentv-targets-v2.2", "targets": [{**target, "api_key": "${{ ADAPTIVE_KEY }}"}]}
    write(repository, {"evals/a.yaml": json.dumps(evals), "targets.yaml": json.dumps(targets)})


def told(name: str) -> list[tuple[str, int, int | None, str, float]]:
    rows = read_rows(Path(name), form_of(Path(name)))
    return sorted((row.eval_id, row.trial, row.seed, row.verdict, row.score) for row in rows)


def ran(name: str) -> dict[str, int]:
    ids = [each for each, *_ in told(name)]
    return {each: ids.count(each) for each in GOOD if each in ids}


def report(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(Path(name).with_suffix(".report.json").read_text("utf-8"))
    return found


def evaluate(*flags: str, out: str = "r.jsonl") -> int:
    return run(["eval", "evals", "--out", out, *flags])


def test_reports_are_the_same_for_any_number_of_workers(repository: Path, api: ChatApi) -> None:
    documents(repository, api, validators=VALIDATORS)
    found = {}
    for workers in (1, 4, 16):
        assert evaluate("--workers", str(workers), out=f"{workers}.jsonl") == 0
        whole = report(f"{workers}.jsonl")
        whole.pop("concurrency")
        found[workers] = json.dumps(whole), told(f"{workers}.jsonl")
    assert found[1] == found[4] == found[16]
    assert ran("1.jsonl") == RAN


def test_rescored_run_has_the_report_of_the_run(repository: Path, api: ChatApi) -> None:
    documents(repository, api, validators=VALIDATORS)
    assert evaluate() == 0
    for workers in ("1", "16"):
        assert run(["rescore", "r.jsonl", "--out", "s.jsonl", "--workers", workers]) == 0
        assert told("s.jsonl") == told("r.jsonl")
        one, other = report("r.jsonl"), report("s.jsonl")
        assert (one["counts"], one["gate"], one["statistics"]) == (other["counts"], other["gate"], other["statistics"])
        assert one["scenario_reports"] == other["scenario_reports"]


def test_rescored_case_that_is_open_again_is_not_complete(
    repository: Path, api: ChatApi, capsys: pytest.CaptureFixture[str]
) -> None:
    documents(repository, api, "all", "none")
    assert evaluate() == 0
    # Under `all`, three of five that pass do not decide "all" any more.
    documents(repository, api, "all", "none", repeat={"max": 5, "stop_when": "decided", "require": "all"})
    capsys.readouterr()
    assert run(["rescore", "r.jsonl", "--out", "s.jsonl"]) != 0
    assert "passed" not in capsys.readouterr().out.splitlines()[-1]


@pytest.mark.parametrize("shards", [2, 3, 6])
def test_shards_together_are_the_whole(shards: int, repository: Path, api: ChatApi) -> None:
    documents(repository, api, validators=VALIDATORS)
    assert evaluate("--workers", "4") == 0
    parts = [f"p{n}.jsonl" for n in range(1, shards + 1)]
    for n, part in enumerate(parts, 1):
        assert evaluate("--shard", f"{n}/{shards}", "--workers", "4", out=part) == 0
    assert run(["report", *parts, "--expect-shards", str(shards), "--out", "m.jsonl"]) == 0
    assert told("m.jsonl") == told("r.jsonl")
    one, other = report("r.jsonl"), report("m.jsonl")
    assert (one["counts"], one["gate"]["verdict"], one["statistics"]) == (
        other["counts"],
        other["gate"]["verdict"],
        other["statistics"],
    )
    assert one["scenario_reports"] == other["scenario_reports"]


@pytest.mark.parametrize("workers", ["1", "16"])
def test_recorded_run_is_replayed_without_a_server(workers: str, repository: Path, api: ChatApi) -> None:
    cases = [each for each in GOOD if each not in BROKEN]
    documents(repository, api, *cases)
    assert evaluate("--record", "rec", "--workers", workers) == 0
    asked = len(api.requests)
    assert evaluate("--replay", "rec", "--workers", workers, out="s.jsonl") == 0
    assert (told("s.jsonl"), len(api.requests)) == (told("r.jsonl"), asked)


def test_cached_run_asks_nothing_again(repository: Path, api: ChatApi) -> None:
    documents(repository, api, *(each for each in GOOD if each not in BROKEN))
    assert evaluate("--cache", "--workers", "4") == 0
    asked = len(api.requests)
    assert evaluate("--cache", "--workers", "16", out="s.jsonl") == 0
    assert (told("s.jsonl"), len(api.requests)) == (told("r.jsonl"), asked)


def test_yaml_holds_what_jsonl_holds(repository: Path, api: ChatApi) -> None:
    documents(repository, api, validators=VALIDATORS)
    assert evaluate() == 0
    assert evaluate("--output-format", "yaml", out="y.yaml") == 0
    assert told("y.yaml") == told("r.jsonl")
    one, other = report("r.jsonl"), report("y.yaml")
    assert one == other


@pytest.mark.parametrize("out", ["r.jsonl", "r.yaml"])
def test_complete_run_that_is_resumed_asks_for_its_errors_alone(out: str, repository: Path, api: ChatApi) -> None:
    documents(repository, api)
    form = ("--output-format", Path(out).suffix[1:])
    assert evaluate(*form, out=out) == 0
    before, asked = told(out), len(api.requests)
    assert run(["eval", "evals", "--resume", out, *form]) == 0
    assert told(out) == before
    assert [each["body"]["seed"] for each in api.requests[asked:]] == [1]


def test_resumed_run_with_more_trials_goes_on_where_it_stopped(repository: Path, api: ChatApi) -> None:
    documents(repository, api, "all", "half")
    seeds = ("--seed", "1")
    assert evaluate("--repeat", "3", *seeds) in (0, 1)
    asked = len(api.requests)
    assert run(["eval", "evals", "--resume", "r.jsonl", "--repeat", "5", *seeds]) == 0
    later = [(each["body"]["messages"][-1]["content"], each["body"]["seed"]) for each in api.requests[asked:]]
    assert evaluate("--repeat", "5", *seeds, out="whole.jsonl") == 0
    assert len({*told("r.jsonl")}) == len(told("r.jsonl"))
    assert {*told("whole.jsonl")} <= {*told("r.jsonl")}
    assert all(seed > 2 for _, seed in later)


def test_every_row_is_one_test_case_of_junit(repository: Path, api: ChatApi) -> None:
    documents(repository, api)
    assert evaluate("--junit", "j.xml", "--workers", "16") == 0
    cases = [*ET.parse("j.xml").getroot().iter("testcase")]
    names = [(each.get("classname"), each.get("name")) for each in cases]
    assert len(set(names)) == len(names)
    assert sum("[default]" in str(name) for _, name in names) == sum(RAN.values())


@pytest.mark.parametrize("workers", ["1", "16"])
def test_threshold_of_the_command_line_decides(workers: str, repository: Path, api: ChatApi) -> None:
    documents(repository, api, *(each for each in GOOD if each not in BROKEN))
    assert evaluate("--threshold", "0", "--workers", workers) == 0
    assert {*ran("r.jsonl").values()} == {3}


@pytest.mark.parametrize("workers", ["1", "4", "16"])
def test_run_that_fails_fast_is_incomplete_and_is_finished_by_a_resumed_one(
    workers: str, repository: Path, api: ChatApi
) -> None:
    documents(repository, api)
    assert evaluate("--fail-fast", "--workers", workers) != 0
    assert run(["eval", "evals", "--resume", "r.jsonl", "--workers", workers]) == 0
    assert evaluate(out="whole.jsonl") == 0
    assert told("r.jsonl") == told("whole.jsonl")
    one, other = report("r.jsonl"), report("whole.jsonl")
    assert (one["counts"], one["statistics"]) == (other["counts"], other["statistics"])


def test_trials_without_a_seed_are_told_of_once_each(repository: Path, api: ChatApi) -> None:
    documents(repository, api, "all", seeds=[], validators=["determinism_check", "reproducibility_metadata"])
    write(
        repository,
        {
            "targets.yaml": '{"$schema": "agentv-targets-v2.2", "targets": [{"name": "default", '
            '"provider": "mock", "response": "42"}]}'
        },
    )
    assert evaluate() == 0
    determinism, metadata = report("r.jsonl")["scenario_reports"][0]["aggregates"]["validations"]
    assert determinism["summary"]["by_severity"]["warning"] == 3
    assert metadata["summary"]["details"]["missing_seed_count"] == 3


def test_seeds_of_trials_that_were_not_needed_are_not_missing(repository: Path, api: ChatApi) -> None:
    documents(repository, api, "all", validators=["reproducibility_metadata"])
    assert evaluate() == 0
    (said,) = report("r.jsonl")["scenario_reports"][0]["aggregates"]["validations"]
    assert [each["id"] for each in said["issues"]] == []
