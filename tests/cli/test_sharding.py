"""`shards`: how many parts a run is split into, and how long each takes."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.support.projects import GREETS, HELLO, Project

SLOW = {**GREETS, "name": "slow", "delay_ms": 60_000}
TEXT = """\
shard  cases  trials  minutes
1/2        1       3      3.0
2/2        2       2      2.0
2 shards, the longest about 3.0 min, estimated from the sizes of questions and the kinds of targets
"""


def split(project: Project, *flags: str) -> Any:
    """Return what `shards` prints as JSON."""
    done = project.run("shards", "--format", "json", *flags)
    assert (done.code, done.err) == (0, ""), done
    return json.loads(done.out)


def minutes(planned: Any) -> list[float]:
    return [each["minutes"] for each in planned["shards"]]


class TestByTarget:
    @pytest.fixture(autouse=True)
    def documents(self, project: Project) -> None:
        often = {"id": "often", "execution": {"repeat": 3, "evaluators": [HELLO]}}
        project.documents(often, "b", "c", {"id": "skipped", "skip": "Later"}, targets=({**SLOW, "name": "default"},))

    def test_text(self, project: Project) -> None:
        before = project.files()
        done = project.run("shards", "--max", "2")
        assert (done.code, done.out, done.err) == (0, TEXT.replace("2        2", "2        3"), "")
        assert project.files() == before

    def test_outputs_of_a_step(self, project: Project) -> None:
        assert project.run("shards", "--max", "2", "--format", "github").out == "shards=[1, 2]\ntotal=2\n"

    def test_no_more_shards_than_cases_that_run(self, project: Project) -> None:
        assert [each["shard"] for each in split(project, "--max", "20")["shards"]] == ["1/3", "2/3", "3/3"]

    @pytest.mark.parametrize(
        ("flags", "expected"),
        [
            (["--target-minutes", "10"], [5.0]),
            (["--target-minutes", "3"], [3.0, 2.0]),
            (["--target-minutes", "4"], [3.0, 2.0]),
            (["--target-minutes", "0.1"], [3.0, 2.0]),
            (["--target-minutes", "0.1", "--max", "1"], [5.0]),
            (["--target-minutes", "1", "--repeat", "1"], [1.0, 1.0, 1.0]),
            (["--max", "1", "--workers", "2"], [2.5]),
            (["--max", "1", "--workers", "5"], [1.0]),
            (["--eval-id", "b", "--eval-id", "c"], [1.0, 1.0]),
        ],
    )
    def test_number_and_minutes(self, flags: list[str], expected: list[float], project: Project) -> None:
        planned = split(project, *flags)
        assert (minutes(planned), planned["minutes"], planned["basis"]) == (expected, max(expected), "sizes")

    def test_plan(self, project: Project) -> None:
        assert project.run("compile", "evals", "--out", "plan.json").code == 0
        assert split(project, "plan.json", "--max", "2") == split(project, "--max", "2")


def test_busiest_target_counts(project: Project) -> None:
    wide = {**SLOW, "name": "wide", "workers": 3}
    other = {"execution": {"target": "slow", "evaluators": [HELLO]}}
    project.documents("a", *({"id": each, **other} for each in "bcd"), targets=({**wide, "name": "default"}, SLOW))
    assert minutes(split(project, "--max", "1")) == [3.0]


def test_durations_of_an_earlier_run(project: Project) -> None:
    project.documents(*"abcd")
    assert project.eval().code == 0
    took_ms = {"a": 600_000, "b": 300_000, "c": 300_000}
    rows = [{**row, "duration_ms": took_ms.get(row["eval_id"], 0)} for row in project.rows() if row["eval_id"] != "d"]
    project.store("before.jsonl", *rows)
    planned = split(project, "--max", "3", "--balance", "before.jsonl")
    assert (minutes(planned), planned["basis"]) == ([10.0, 10.0, 5.0], "durations")
    for shard in planned["shards"]:
        listed = project.run("eval", "--list", "--shard", shard["shard"], "--balance", "before.jsonl")
        assert listed.out.endswith(
            f"\n{shard['cases']} case{'s' * (shard['cases'] > 1)}, {shard['trials']} "
            f"trial{'s' * (shard['trials'] > 1)}\n"
        )


def test_run_that_takes_no_time_is_one_shard(project: Project) -> None:
    project.documents(*"abcd", targets=(GREETS,))
    assert minutes(split(project, "--target-minutes", "10")) == [0.0]
    assert minutes(split(project, "--max", "2")) == [0.0, 0.0]


def test_run_of_skipped_cases_is_one_shard(project: Project) -> None:
    project.documents({"id": "a", "skip": "Later"}, {"id": "b", "skip": "Later"})
    assert minutes(split(project)) == [0.0]
