"""The scenarios of the evaluation specification that are about running, in its order, run as a user runs them."""

from __future__ import annotations

import itertools
import json
import re
import subprocess
import sys
import threading
from typing import Any

import pytest

from tests.acceptance.builders import Repository
from tests.servers.chat_api import ChatApi, Reply, chat_api, says
from tests.support import clean_environment

TEN = [f"case-{number}" for number in range(10)]


def command(template: str, **settings: Any) -> dict[str, Any]:
    return {"provider": "cli", "command_template": template, **settings}


def served(api: ChatApi, **settings: Any) -> dict[str, Any]:
    return {"provider": "openai", "model": "gpt", "base_url": api.base_url, **settings}


class Gate:
    """Holds replies back until so many are open at once."""

    def __init__(self, width: int) -> None:
        self._asked = itertools.count(1)
        self._width = width
        self._met = threading.Event()

    def __call__(self, _: dict[str, Any]) -> Reply:
        if next(self._asked) >= self._width:
            self._met.set()
        self._met.wait(30)
        return says("42")


class TestTestCaseExecution:
    def test_successful_test_execution(self, repository: Repository) -> None:
        repository.target(command("echo asked: {PROMPT}, 42"))
        assert repository.eval().code == 0
        assert repository.rows()[0]["candidate_answer"] == "asked: question one, 42"

    def test_timeout_with_retry(self, repository: Repository) -> None:
        repository.target(command("[ {ATTEMPT} = 0 ] && exec sleep 60; echo 42", timeout_seconds=0.5))
        assert repository.eval("--max-retries", "1").code == 0
        assert repository.rows()[0]["attempts"] == 2

    def test_maximum_retries_exceeded(self, repository: Repository) -> None:
        repository.cases("one", "two")
        repository.target(command("[ {EVAL_ID} = one ] && { echo why >&2; exit 3; }; echo 42"))
        assert repository.eval("--max-retries", "1").code == 4
        first, second = repository.rows()
        assert (first["status"], first["error"], first["attempts"]) == ("error", "why (exit code 3)", 2)
        assert second["verdict"] == "pass"


class TestPromptDumping:
    def test_enabled(self, repository: Repository) -> None:
        repository.target(command("echo 42"))
        assert repository.eval("--dump-prompts").code == 0
        (dumped,) = repository.path(".agentv/prompts").iterdir()
        assert dumped.name.startswith("one")
        document = json.loads(dumped.read_text("utf-8"))
        assert (document["request"]["prompt"], document["request"]["guidelines"]) == ("question one", "")
        assert document["settings"]["command_template"] == "echo 42"

    def test_disabled(self, repository: Repository) -> None:
        repository.target(command("echo 42"))
        assert repository.eval().code == 0
        assert not repository.path(".agentv/prompts").exists()


class TestCachingControl:
    def test_enabled(self, repository: Repository) -> None:
        with chat_api(says("42")) as api:
            repository.target(served(api))
            first, second = repository.eval("--cache"), repository.eval("--cache")
        assert (first.code, second.code, len(api.requests)) == (0, 0, 1)
        assert repository.rows()[0]["cached"] is True

    def test_disabled_by_default(self, repository: Repository) -> None:
        with chat_api(says("42")) as api:
            repository.target(served(api))
            repository.eval()
            repository.eval()
        assert len(api.requests) == 2
        assert not repository.path(".agentv/cache").exists()


class TestParallelTestExecution:
    def test_sequential_by_default(self, repository: Repository) -> None:
        repository.cases(*TEN)
        with chat_api(says("42")) as api:
            repository.target(served(api))
            assert repository.eval().code == 0
        assert ([row["eval_id"] for row in repository.rows()], api.most_at_once) == (TEN, 1)

    def test_parallel_with_worker_pool(self, repository: Repository) -> None:
        repository.cases(*TEN)
        with chat_api(Gate(4)) as api:
            repository.target(served(api))
            assert repository.eval("--workers", "4").code == 0
        assert (sorted(row["eval_id"] for row in repository.rows()), api.most_at_once) == (TEN, 4)

    def test_immediate_scheduling(self, repository: Repository) -> None:
        """One case is answered after all others: they go through the other three workers."""
        repository.cases(*TEN)
        others, all_others = itertools.count(1), threading.Event()

        def reply(body: dict[str, Any]) -> Reply:
            if body["messages"][-1]["content"].endswith("case-0"):
                all_others.wait(30)
            elif next(others) == len(TEN) - 1:
                all_others.set()
            return says("42")

        with chat_api(reply) as api:
            repository.target(served(api))
            assert repository.eval("--workers", "4").code == 0
        assert all_others.is_set()
        assert len(repository.rows()) == len(TEN)

    def test_error_isolation_and_partial_completion(self, repository: Repository) -> None:
        repository.cases(*TEN)
        repository.target(command("case {EVAL_ID} in *[13579]) exit 3;; esac; echo 42"))
        assert repository.eval("--workers", "4", "--max-retries", "0").code == 4
        verdicts = {row["eval_id"]: row["verdict"] for row in repository.rows()}
        assert verdicts == {case: "error" if int(case[-1]) % 2 else "pass" for case in TEN}


class TestThreadSafeOutputWriting:
    def test_rows_are_whole_lines_in_the_order_of_completion(self, repository: Repository) -> None:
        cases = [f"case-{number}" for number in range(60)]
        repository.cases(*cases)
        with chat_api(lambda _: says("42" + "x" * 50_000)) as api:
            repository.target(served(api))
            assert repository.eval("--workers", "16").code == 0
        assert sorted(row["eval_id"] for row in repository.rows()) == sorted(cases)

    def test_failed_write_is_reported_and_others_are_written(self, repository: Repository) -> None:
        repository.cases("one", "large", "two")
        repository.target(command("[ {EVAL_ID} = large ] && head -c 60000 /dev/zero | tr '\\0' x; echo 42"))
        # Files of at most 20 blocks of 1,024 bytes, for the run and all it starts.
        shell = f"ulimit -f 20; exec {sys.executable} -m agentv_ci eval x.eval.yaml --out r.jsonl"
        done = subprocess.run(
            ["bash", "-c", shell],
            cwd=repository.folder,
            env=clean_environment(),
            capture_output=True,
            text=True,
            check=False,
        )
        assert [row["eval_id"] for row in repository.rows()] == ["one", "two"]
        assert (done.returncode, "results could not be written" in done.stdout) == (4, True)


class TestParallelExecutionCli:
    def most(self, repository: Repository, width: int, *arguments: str, workers: int | None = None) -> int:
        repository.cases(*TEN)
        with chat_api(Gate(width)) as api:
            repository.target(served(api, **({} if workers is None else {"workers": workers})))
            assert repository.eval(*arguments).code == 0
        return api.most_at_once

    def test_flag_overrides_the_target(self, repository: Repository) -> None:
        assert self.most(repository, 2, "--workers", "2", workers=5) == 2

    def test_workers_of_the_target(self, repository: Repository) -> None:
        assert self.most(repository, 3, workers=3) == 3

    @pytest.mark.parametrize("value", ["x", "1.5", "0", "-2", ""])
    def test_bad_values_are_rejected_and_nothing_runs(self, repository: Repository, value: str) -> None:
        repository.target(command("echo asked > asked"))
        done = repository.eval("--workers", value)
        assert (done.code, repository.path("asked").exists()) == (2, False)
        assert "'--workers'" in done.err
        if value in ("0", "-2"):
            assert "x>=1" in done.err

    def test_help(self, repository: Repository) -> None:
        text = " ".join(repository.run("eval", "--help").out.split())
        assert re.search(r"--workers N .*in parallel, in any order \(default: 1, one at a time, in order\)", text)


class TestStatisticsAfterParallelCompletion:
    def test_figures_are_those_of_a_sequential_run(self, repository: Repository) -> None:
        repository.cases(*TEN, gate={"min_pass_rate": 0})
        repository.target(command("case {EVAL_ID} in *[0369]) echo no;; *) echo 42;; esac"))
        statistics = []
        for workers in ("1", "4"):
            assert repository.eval("--workers", workers).code == 0
            report = repository.json("r.report.json")
            statistics.append((report["statistics"], report["counts"]))
        assert statistics[0] == statistics[1]
        assert statistics[0][0]["mean"] == 0.6
