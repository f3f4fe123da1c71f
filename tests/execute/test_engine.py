"""The loop: real plans against real commands and servers."""

from __future__ import annotations

import asyncio
import itertools
import json
import math
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from agentv_ci.app.compile import Selection, compile_paths
from agentv_ci.app.report_files import RunFiles, RunOutcome
from agentv_ci.app.run import run_plan
from agentv_ci.compile.overrides import Overrides
from agentv_ci.contracts.results import ResultRow
from agentv_ci.errors import CannotGoOn, TargetUnavailable, UsageError
from agentv_ci.execute.run_services import Progress, RunOptions, RunServices
from agentv_ci.results.files import read_rows
from tests.servers.chat_api import Reply, Step, answers, chat_api, fails, says
from tests.support import FakeClock, clean_environment, has_ended, write

FINDS = {"name": "finds", "type": "contains", "value": "42"}
JUDGE = {"name": "judge", "type": "llm_judge"}
PRAISE = json.dumps({"score": 1.0, "hits": ["all of it"], "misses": [], "reasoning": "fine"})
KEY = "sk-canary-0123456789abcdef"


@dataclass(slots=True)
class Run:
    """A repository with an eval file and its targets, and what came of running it."""

    repository: Path
    environ: Mapping[str, str] = field(default_factory=clean_environment)
    log: list[str] = field(default_factory=list)
    warned: list[str] = field(default_factory=list)
    progress: Progress = field(default_factory=lambda: Progress(0))
    clock: Callable[[], float] = lambda: 0.0

    @property
    def results(self) -> Path:
        return self.repository / "r.jsonl"

    def documents(
        self, cases: Sequence[str | Mapping[str, Any]], *targets: Mapping[str, Any], **execution: Any
    ) -> None:
        """Write the eval file; a case is its id, or its fields."""
        common = {"expected_outcome": "The answer is 42.", "expected_messages": []}
        question = {"input_messages": [{"role": "user", "content": "What is 6 × 7?"}]}
        given = [{"id": case} if isinstance(case, str) else case for case in cases]
        execution = {"evaluators": [FINDS], **execution}
        write(
            self.repository,
            {
                "evals/a.yaml": json.dumps(
                    {
                        "$schema": "agentv-eval-v2",
                        "execution": execution,
                        "evalcases": [{**common, **question, **case} for case in given],
                    }
                ),
                "targets.yaml": json.dumps({"$schema": "agentv-targets-v2.2", "targets": targets}),
            },
        )

    async def start(self, *, between: Callable[[], None] = lambda: None, **settings: Any) -> RunOutcome:
        """Compile and run; `between` happens after the one and before the other."""
        compiled = compile_paths(Selection(["evals"]), cwd=self.repository)
        between()
        return await run_plan(
            compiled,
            Overrides(),
            RunOptions(root=self.repository, **settings),
            RunFiles(self.results, "jsonl"),
            RunServices(
                environment=replace(FakeClock(self.environ).environment(), monotonic=self.clock),
                log=self.log.append,
                warn=self.warned.append,
                note=self.log.append,
                watch=self._watch,
            ),
        )

    def _watch(self, progress: Progress) -> None:
        self.progress = progress

    def __call__(self, **settings: Any) -> list[ResultRow]:
        """Run to the end; fails instead of hanging."""

        async def main() -> None:
            async with asyncio.timeout(30):
                await self.start(**settings)

        asyncio.run(main())
        return self.rows()

    def rows(self) -> list[ResultRow]:
        return list(read_rows(self.results, "jsonl"))


@pytest.fixture
def run(repository: Path) -> Run:
    return Run(repository)


def gpt(base_url: str, **settings: Any) -> dict[str, Any]:
    target = {"name": "default", "provider": "openai", "model": "gpt-mock", "base_url": base_url}
    return {**target, "api_key": "${{ MOCK_KEY }}", **settings}


def tool(command: str, **settings: Any) -> dict[str, Any]:
    return {"name": "default", "provider": "cli", "command_template": command, **settings}


def mock(**settings: Any) -> dict[str, Any]:
    return {"name": "default", "provider": "mock", "response": "42", **settings}


@pytest.fixture
def keyed(run: Run) -> Run:
    """With the variable that `gpt` refers to."""
    run.environ = clean_environment({"MOCK_KEY": KEY})
    return run


def together(number: int, reply: Reply) -> Step:
    """A step that holds the first replies back until so many are asked for at once, or clearly never will be."""
    met, lock, asked = threading.Event(), threading.Lock(), itertools.count(1)

    def step(_body: dict[str, Any]) -> Reply:
        with lock:
            if next(asked) >= number:
                met.set()
        met.wait(3)
        # Time for one too many.
        time.sleep(0.01)
        return reply

    return step


CASES = [f"case-{number:02}" for number in range(12)]


def test_one_worker_asks_in_order_one_at_a_time(keyed: Run) -> None:
    with chat_api(replace(says("42"), delay_s=0.002)) as api:
        keyed.documents(CASES, gpt(api.base_url))
        rows = keyed()
    assert [row.eval_id for row in rows] == CASES
    assert (api.most_at_once, len(api.requests)) == (1, len(CASES))


@pytest.mark.parametrize(("workers", "own", "most"), [(4, None, 4), (None, 3, 3), (2, 6, 2), (5, 2, 5)])
def test_no_more_are_asked_at_once_than_the_command_line_says_else_the_target(
    workers: int | None, own: int | None, most: int, keyed: Run
) -> None:
    with chat_api(together(most, says("42"))) as api:
        keyed.documents(CASES, gpt(api.base_url, **({} if own is None else {"workers": own})))
        rows = keyed(workers=workers)
    assert sorted(row.eval_id for row in rows) == CASES
    assert api.most_at_once == most


def test_every_target_keeps_its_own_limit(keyed: Run) -> None:
    with chat_api(together(2, says("42"))) as one, chat_api(together(1, says("42"))) as two:
        cases = [{"id": case, "execution": {"target": "ab"[number % 2]}} for number, case in enumerate(CASES)]
        keyed.documents(cases, gpt(one.base_url, name="a", workers=2), gpt(two.base_url, name="b"))
        assert len(keyed()) == len(CASES)
    assert (one.most_at_once, two.most_at_once) == (2, 1)


def test_a_free_worker_takes_the_next_case_at_once(keyed: Run) -> None:
    others, all_others = itertools.count(1), threading.Event()

    def reply(body: dict[str, Any]) -> Reply:
        if "slow" in body["messages"][-1]["content"]:
            all_others.wait(10)
        elif next(others) == len(CASES):
            all_others.set()
        return says("42")

    with chat_api(reply) as api:
        slow = {"id": "slow", "input_messages": [{"role": "user", "content": "slow"}]}
        keyed.documents([slow, *CASES], gpt(api.base_url))
        rows = keyed(workers=2)
    assert all_others.is_set()
    assert [row.eval_id for row in rows if row.eval_id != "slow"] == CASES
    # Its reply and the last of the others come at the same moment.
    assert "slow" in [row.eval_id for row in rows[-2:]]


def test_any_number_of_workers_finds_the_same(keyed: Run) -> None:
    def verdicts(rows: list[ResultRow]) -> dict[str, tuple[str, float]]:
        return {row.eval_id: (row.verdict, row.score) for row in rows}

    with chat_api(lambda body: says("42" if body["messages"][-1]["content"] < "case-06" else "43")) as api:
        cases = [{"id": case, "input_messages": [{"role": "user", "content": case}]} for case in CASES]
        keyed.documents(cases, gpt(api.base_url))
        alone, together = verdicts(keyed(workers=1)), verdicts(keyed(workers=8))
    assert alone == together
    assert len(set(alone.values())) == 2


def test_a_row_is_in_the_file_before_the_next_case_begins(run: Run) -> None:
    run.documents(["one", "two", "three"], tool("wc -l < ../r.jsonl"))
    assert [row.candidate_answer.strip() for row in run()] == ["0", "1", "2"]


def test_a_timeout_is_attempted_again_and_counted(run: Run) -> None:
    run.documents(["one"], tool("[ {ATTEMPT} = 0 ] && exec sleep 60; echo 42", timeout_seconds=0.5))
    (row,) = run()
    assert (row.status, row.candidate_answer, row.attempts, row.requests) == ("ok", "42", 2, 2)


def test_a_failed_command_is_attempted_again_and_counted(run: Run) -> None:
    run.documents(["one"], tool("[ {ATTEMPT} -lt 2 ] && exit 3; echo 42"))
    (row,) = run()
    assert (row.status, row.candidate_answer, row.attempts, row.requests) == ("ok", "42", 3, 3)


@pytest.mark.parametrize("max_retries", [0, 1, 3])
def test_a_case_is_given_up_after_its_last_attempt(max_retries: int, run: Run) -> None:
    run.documents(["one"], tool("echo {ATTEMPT} >> asked; echo no >&2; exit 3"), max_retries=max_retries)
    (row,) = run()
    assert (row.status, row.verdict, row.score, row.error_kind) == ("error", "error", 0.0, "process")
    assert (row.error, row.attempts, row.requests) == ("no (exit code 3)", max_retries + 1, max_retries + 1)
    asked = (run.repository / "evals" / "asked").read_text(encoding="utf-8").split()
    assert asked == [str(attempt) for attempt in range(max_retries + 1)]


@pytest.mark.parametrize(
    ("kind", "attempts"),
    [
        ("timeout", 3),
        ("process", 3),
        ("rate_limit", 1),
        ("auth", 1),
        ("network", 1),
        ("server", 1),
        ("request", 1),
        ("malformed", 1),
    ],
)
def test_only_what_another_attempt_may_mend_is_attempted_again(kind: str, attempts: int, run: Run) -> None:
    run.documents(["one"], mock(error={"kind": kind}))
    (row,) = run()
    assert (row.error_kind, row.error, row.attempts) == (kind, "scripted failure", attempts)


def test_an_answer_that_does_not_come_in_time_is_a_timeout(keyed: Run) -> None:
    with chat_api(replace(says("42"), delay_s=0.5)) as api:
        keyed.documents(["one"], gpt(api.base_url), timeout_seconds=0.1, max_retries=1)
        (row,) = keyed()
    assert (row.error_kind, row.attempts, row.requests) == ("timeout", 2, 2)


def test_a_command_is_asked_to_end_when_the_time_of_its_case_is_over_and_its_stderr_is_kept(run: Run) -> None:
    command = "trap 'echo bye > farewell; exit 0' TERM; echo thinking >&2; sleep 60 & wait"
    run.documents(["one"], tool(command), timeout_seconds=0.5, max_retries=0)
    (row,) = run()
    assert (row.error_kind, (run.repository / "evals" / "farewell").exists()) == ("timeout", True)
    assert "thinking" in str(row.error)


def test_the_time_of_a_row_is_that_of_the_last_attempt(run: Run) -> None:
    # Every look at the clock is a second later.
    run.clock = itertools.count().__next__
    run.documents(["one"], tool("[ {ATTEMPT} = 2 ] && echo 42"))
    (row,) = run()
    assert (row.attempts, row.duration_ms) == (3, 1000)


def test_the_tries_of_a_provider_are_requests_and_not_attempts(keyed: Run) -> None:
    with chat_api(fails(503), fails(429), says("42")) as api:
        keyed.documents(["one"], gpt(api.base_url))
        (row,) = keyed()
    assert (row.attempts, row.requests) == (1, 3)


def test_the_tries_of_a_provider_that_gave_up_are_counted_too(keyed: Run) -> None:
    with chat_api(fails(503)) as api:
        keyed.documents(["one"], gpt(api.base_url))
        (row,) = keyed()
    assert (row.error_kind, row.attempts, row.requests) == ("server", 1, 4)


def test_the_tries_of_a_provider_that_ran_out_of_time_are_counted_too(keyed: Run) -> None:
    with chat_api(fails(503), replace(says("42"), delay_s=1.5)) as api:
        quick = gpt(api.base_url) | {"retry_initial_delay_ms": 1}
        keyed.documents(["one"], quick, timeout_seconds=1, max_retries=0)
        (row,) = keyed()
    assert (row.error_kind, row.attempts, row.requests, len(api.requests)) == ("timeout", 1, 2, 2)
    assert "before that: HTTP 503" in (row.error or "")


def test_answer_of_nothing_is_told(run: Run) -> None:
    run.documents(["one", "two"], tool("true"))
    run()
    assert run.warned == ["default: an answer is empty"]


@pytest.mark.parametrize("workers", [1, 3])
def test_a_case_that_fails_does_not_stop_the_others(workers: int, run: Run) -> None:
    run.documents(["one", "bad", "three"], tool("[ {EVAL_ID} = bad ] && exit 1; echo 42"), max_retries=0)
    rows = {row.eval_id: row.status for row in run(workers=workers)}
    assert rows == {"one": "ok", "bad": "error", "three": "ok"}


STRANGE = {
    "half an emoji": '{"text": "42 \\ud83d"}',
    "half an emoji in a trace": json.dumps(
        {"output_messages": [{"role": "assistant", "content": "\ud83d", "tool_calls": [{"tool": "\ud83d"}]}]}
    ),
    "no number": json.dumps(
        {
            "output_messages": [
                {"role": "assistant", "content": math.nan, "tool_calls": [{"tool": "t", "input": -math.inf}]}
            ]
        }
    ),
    "a number without end": '{"output_messages": [{"role": "assistant", "content": 1e999}]}',
    "deep": '{"output_messages": [{"role": "assistant", "content": %s}]}' % ("[" * 400 + "]" * 400),
    "deeper": "[" * 100_000,
    "a role of nothing": '{"output_messages": [{"role": ""}]}',
    "a message of nothing": '{"output_messages": [{}]}',
    "a tool of nothing": '{"output_messages": [{"role": "assistant", "tool_calls": [{"tool": ""}, {}]}]}',
    "no text": "\ufeff\ufffe\x00\x1b[31m\r\n\u2028",
    "much": "x" * 2_000_000,
}


@pytest.mark.parametrize("printed", STRANGE.values(), ids=STRANGE.keys())
def test_an_answer_of_any_kind_is_a_row_and_does_not_stop_the_others(printed: str, run: Run) -> None:
    write(run.repository, {"evals/strange": printed, "evals/plain": "42"})
    run.documents(["strange", "plain"], tool("cat {EVAL_ID}"), max_retries=0)
    rows = run(include_trace=True)
    assert [row.eval_id for row in rows] == ["strange", "plain"]
    assert rows[1].verdict == "pass"


@pytest.mark.parametrize(
    "reply",
    [
        answers(400, {"error": {"message": "cut \ud83d"}}),
        Reply(500, b"\xff\xfe\x00", {"content-type": "text/plain; charset=utf-16"}),
        Reply(400, b"[" * 100_000),
        Reply(200, b"[" * 100_000),
        says("42", message={"content": "\ud83d", "tool_calls": [{"function": {"name": "\ud83d", "arguments": "NaN"}}]}),
        Reply(429, b"{}", {"retry-after": f"Wed, 02 Jan 2030 03:04:05 +{'9' * 30}"}),
    ],
    ids=["half an emoji", "no text", "deep error", "deep answer", "half an emoji in a trace", "junk date"],
)
def test_a_reply_of_any_kind_is_a_row_and_does_not_stop_the_others(reply: Reply, keyed: Run) -> None:
    with chat_api(reply, says("42")) as api:
        keyed.documents(["strange", "plain"], gpt(api.base_url, max_retries=0))
        rows = keyed(include_trace=True)
    assert [row.eval_id for row in rows] == ["strange", "plain"]
    assert rows[1].verdict == "pass"


def test_every_trial_is_a_row_with_its_seed(keyed: Run) -> None:
    with chat_api(says("42")) as api:
        keyed.documents(["one", "two"], gpt(api.base_url), repeat=3, seeds=[7, 11])
        rows = keyed()
    trials = [("one", 1, 7), ("one", 2, 11), ("one", 3, None), ("two", 1, 7), ("two", 2, 11), ("two", 3, None)]
    assert [(row.eval_id, row.trial, row.seed) for row in rows] == trials
    assert [request["body"].get("seed") for request in api.requests] == [seed for _, _, seed in trials]


def test_more_seeds_than_repetitions_are_as_many_trials(keyed: Run) -> None:
    with chat_api(says("42")) as api:
        keyed.documents(["one"], gpt(api.base_url), seeds=[7, 11])
        assert [(row.trial, row.seed) for row in keyed()] == [(1, 7), (2, 11)]


def test_a_command_runs_in_the_folder_of_its_eval_file(run: Run) -> None:
    run.documents(["one"], tool("pwd -P"))
    assert run()[0].candidate_answer == str((run.repository / "evals").resolve())


def test_a_command_gets_a_file_as_the_plan_knows_it_although_it_has_changed_since(run: Run) -> None:
    write(run.repository, {"evals/note.txt": "the answer is 42"})
    content = [{"type": "text", "value": "Look."}, {"type": "file", "value": "note.txt"}]
    case = {"id": "one", "input_messages": [{"role": "user", "content": content}]}
    run.documents([case], tool("cat {FILES}"))
    (row,) = run(between=lambda: write(run.repository, {"evals/note.txt": "the answer is 43"}))
    assert row.candidate_answer == "the answer is 42"


@pytest.mark.parametrize("workers", [None, 1, 4])
def test_a_target_that_judges_its_own_answers_does_not_wait_for_itself(workers: int | None, keyed: Run) -> None:
    with chat_api(together(workers or 1, says(PRAISE))) as api:
        keyed.documents(CASES, gpt(api.base_url), evaluators=[JUDGE, {**JUDGE, "name": "second judge"}])
        rows = keyed(workers=workers)
    assert [row.verdict for row in rows] == ["pass"] * len(CASES)
    assert (api.most_at_once, len(api.requests)) == (workers or 1, 3 * len(CASES))


def test_a_judge_is_asked_no_more_at_once_than_it_may_be(keyed: Run) -> None:
    with chat_api(together(4, says("42"))) as api, chat_api(together(2, says(PRAISE))) as judge:
        target = gpt(api.base_url, workers=4, judge_target="judge")
        keyed.documents(CASES, target, gpt(judge.base_url, name="judge", workers=2), evaluators=[JUDGE])
        rows = keyed()
    assert [row.verdict for row in rows] == ["pass"] * len(CASES)
    assert (api.most_at_once, judge.most_at_once) == (4, 2)


def test_a_judge_gets_system_and_question_with_its_own_settings(keyed: Run) -> None:
    with chat_api(says("the answer"), says(PRAISE)) as api:
        judge = {**JUDGE, "temperature": 0.0, "max_output_tokens": 300}
        keyed.documents(["one"], gpt(api.base_url, temperature=0.9), evaluators=[judge], seeds=[7])
        (row,) = keyed()
    asked, judged = (request["body"] for request in api.requests)
    assert (asked["temperature"], judged["temperature"], judged["max_tokens"]) == (0.9, 0.0, 300)
    assert [message["role"] for message in judged["messages"]] == ["system", "user"]
    assert "the answer" in judged["messages"][1]["content"]
    assert row.judge_usage is not None
    assert row.judge_usage.total_tokens == 110


def test_a_command_that_judges_gets_the_system_prompt_before_the_question(run: Run) -> None:
    write(run.repository, {"evals/praise.json": PRAISE})
    judge = tool("cat {PROMPT_FILE} > seen; cat praise.json", name="judge")
    run.documents(["one"], tool("echo UNIQUE-ANSWER", judge_target="judge"), judge, evaluators=[JUDGE])
    (row,) = run()
    seen = (run.repository / "evals" / "seen").read_text(encoding="utf-8")
    assert (row.verdict, seen.index("hits") < seen.index("UNIQUE-ANSWER")) == ("pass", True)


def test_a_judge_that_fails_is_the_evaluators_error_and_no_new_attempt(keyed: Run) -> None:
    with chat_api(says("42"), fails(401, "no")) as api:
        keyed.documents(["one"], gpt(api.base_url), evaluators=[FINDS, JUDGE])
        (row,) = keyed()
    assert (row.status, row.error_kind, row.attempts, row.score) == ("error", "evaluator", 1, 1.0)
    assert [each.status for each in row.evaluator_results] == ["ok", "error"]


def unhealthy(**healthcheck: Any) -> dict[str, Any]:
    return tool("echo asked >> asked; echo 42", healthcheck=healthcheck)


@pytest.mark.parametrize(
    ("healthcheck", "reason"),
    [
        ({"type": "command", "command_template": "echo not logged in >&2; exit 4"}, "not logged in (exit code 4)"),
        ({"type": "http", "url": "http://127.0.0.1:1/health"}, "http://127.0.0.1:1/health"),
        ({"type": "http", "url": "no address"}, "no address"),
    ],
)
def test_a_target_that_is_not_ready_ends_the_run_before_the_first_case(
    healthcheck: dict[str, Any], reason: str, run: Run
) -> None:
    run.documents(["one", "two"], unhealthy(**healthcheck))
    with pytest.raises(TargetUnavailable) as caught:
        run()
    assert ("'default'" in caught.value.message, reason in caught.value.message) == (True, True)
    assert not (run.repository / "evals" / "asked").exists()
    assert not run.results.exists()


def test_a_judge_that_is_not_ready_ends_the_run_before_the_first_case(run: Run) -> None:
    judge = tool("echo {}", name="judge", healthcheck={"type": "command", "command_template": "exit 1"})
    run.documents(["one"], tool("echo asked > asked", judge_target="judge"), judge, evaluators=[JUDGE])
    with pytest.raises(TargetUnavailable, match="'judge'"):
        run()
    assert not (run.repository / "evals" / "asked").exists()


def test_a_health_check_is_made_once(run: Run) -> None:
    probe = {"type": "command", "command_template": "echo probed >> probed"}
    run.documents(CASES, tool("echo 42", cwd="evals", healthcheck=probe))
    run(workers=4)
    assert (run.repository / "evals" / "probed").read_text(encoding="utf-8") == "probed\n"


def test_a_missing_variable_ends_the_run_before_anything_starts(run: Run) -> None:
    probe = {"type": "command", "command_template": "echo probed > probed"}
    run.documents(["one"], tool("echo 42", env={"TOKEN": "${{ NOT_SET }}"}, healthcheck=probe))
    with pytest.raises(UsageError, match="NOT_SET"):
        run()
    assert not (run.repository / "probed").exists()


def test_a_ca_bundle_that_is_not_there_ends_the_run_before_the_first_case(keyed: Run) -> None:
    keyed.documents(["one"], gpt("https://127.0.0.1:1/v1", ca_bundle="authorities.pem"))
    with pytest.raises(CannotGoOn, match=r"authorities\.pem"):
        keyed()


def test_a_dry_run_asks_nobody(run: Run) -> None:
    with chat_api() as api:
        run.documents(
            [{"id": "one", "execution": {"target": "gpt"}}, {"id": "two", "execution": {"target": "tool"}}],
            gpt(api.base_url, name="gpt", api_key="${{ NOT_SET }}", workers="${{ NOT_SET_EITHER }}"),
            {**unhealthy(type="command", command_template="echo probed > probed; exit 1"), "name": "tool"},
            evaluators=[{**JUDGE, "judge_target": "gpt"}],
        )
        rows = run(dry_run=True)
    assert [(row.eval_id, row.target, row.provider, row.dry_run) for row in rows] == [
        ("one", "gpt", "mock", True),
        ("two", "tool", "mock", True),
    ]
    assert [row.verdict for row in rows] == ["pass", "pass"]
    assert api.requests == []
    assert {path.name for path in run.repository.rglob("*") if path.name in ("asked", "probed")} == set()


def test_the_progress_counts_every_trial(run: Run) -> None:
    command = "case {EVAL_ID} in bad) exit 1;; wrong) echo 43;; *) echo 42;; esac"
    run.documents(["one", "bad", "wrong"], tool(command), repeat=2, max_retries=0)
    run()
    assert run.progress == Progress(total=6, done=6, running=0, passed=2, failed=2, errored=2)


def test_a_batch_that_the_provider_cannot_do_is_said_and_done_case_by_case(run: Run) -> None:
    run.documents(["one", "two"], mock(provider_batching=True))
    assert len(run()) == 2
    assert run.log[0] == "default: 'mock' does not support provider_batching; asking case by case"


def test_the_log_tells_every_question_attempt_and_verdict(run: Run) -> None:
    run.documents(["one"], mock(error={"kind": "timeout", "attempts": 1}))
    run()
    assert run.log == [
        "one: asking default",
        "one: timeout: scripted failure",
        "one: asking default, attempt 2",
        "one: pass, score 1.000",
        "one: finds (contains): pass, score 1.000: contains '42'",
    ]


def test_a_cancelled_run_keeps_its_rows_and_leaves_no_process_behind(run: Run) -> None:
    command = "[ {EVAL_ID} = one ] || { sleep 60 & echo $! > child; wait; }; echo 42"
    run.documents(["one", "two", "three"], tool(command))

    def started() -> int:
        child = run.repository / "evals" / "child"
        return int(child.read_text(encoding="utf-8") or 0) if child.exists() else 0

    async def main() -> None:
        task = asyncio.create_task(run.start())
        async with asyncio.timeout(20):
            while not started():  # noqa: ASYNC110  # a process says it, not the event loop
                await asyncio.sleep(0.01)
            await asyncio.sleep(0.05)
            task.cancel()
            outcome = await task
        assert (outcome.report.stopped, outcome.report.gate.exit_code) == ("interrupted", 130)
        assert outcome.report.gate.reasons[0] == "interrupted: 2 of 3 cases never ran"

    asyncio.run(main())
    assert [row.eval_id for row in run.rows()] == ["one"]
    assert has_ended(started())


@pytest.mark.parametrize("body", ["x" * 1_000_000, json.dumps({"error": {"message": "y" * 1_000_000}})])
def test_a_long_error_is_shortened_wherever_it_is_told(body: str, keyed: Run) -> None:
    with chat_api(Reply(500, body.encode())) as api:
        keyed.documents(["one"], gpt(api.base_url))
        (row,) = keyed()
    assert max(map(len, [str(row.error), *keyed.log])) < 10_000


def test_of_a_long_error_of_a_command_the_end_and_the_exit_code_are_kept(run: Run) -> None:
    command = "head -c 1000000 /dev/zero | tr '\\0' x >&2; echo ' the reason' >&2; exit 3"
    run.documents(["one"], tool(command, verbose=True), max_retries=0)
    (row,) = run()
    assert str(row.error).endswith("the reason (exit code 3)")
    assert max(map(len, [str(row.error), *run.log])) < 10_000


ECHOES = {
    "error body": fails(401, f"Incorrect API key provided: {KEY}."),
    "error at the end of what is quoted": Reply(500, f"{'x' * 180}{KEY}".encode()),
    "plain text": Reply(500, f"no such key {KEY}".encode()),
    "error inside a 200": answers(200, {"error": {"message": f"key {KEY} is unknown"}}),
    "not JSON": Reply(200, f"authorization: Bearer {KEY}".encode()),
    "not an object": answers(200, [KEY]),
    "redirect": Reply(302, b"", {"location": f"https://elsewhere.example/?key={KEY}"}),
    "answer": says(f"Your key is {KEY}."),
    "model": answers(200, {"model": KEY, "choices": [{"message": {"content": "42"}}]}),
    "tool call": says("42", message={"tool_calls": [{"function": {"name": KEY, "arguments": json.dumps({KEY: KEY})}}]}),
}


@pytest.mark.parametrize("reply", ECHOES.values(), ids=ECHOES.keys())
def test_a_key_that_a_server_repeats_is_in_no_row_and_in_no_line_of_the_log(reply: Reply, keyed: Run) -> None:
    with chat_api(reply) as api:
        keyed.documents(["one"], gpt(api.base_url))
        keyed(include_trace=True)
    told = keyed.results.read_text(encoding="utf-8") + "\n".join(keyed.log)
    # Not even the beginning of it, where a long text was cut.
    assert KEY[:15] not in told


def test_an_answer_that_a_key_was_taken_out_of_says_so(keyed: Run) -> None:
    with chat_api(says(f"Your key is {KEY}."), says("42")) as api:
        keyed.documents(["one", "two"], gpt(api.base_url))
        assert [bool(row.masked) for row in keyed()] == [True, False]


@pytest.mark.parametrize("said", ["echo $TOKEN", "echo $TOKEN >&2; exit 1", "echo $TOKEN >&2; echo 42"])
def test_a_token_that_a_command_prints_is_in_no_row_and_in_no_line_of_the_log(said: str, run: Run) -> None:
    run.environ = clean_environment({"MY_TOKEN": KEY})
    run.documents(["one"], tool(said, env={"TOKEN": "${{ MY_TOKEN }}"}, verbose=True), max_retries=0)
    run(include_trace=True)
    assert KEY not in run.results.read_text(encoding="utf-8") + "\n".join(run.log)


def test_a_token_is_not_left_in_half_where_much_output_is_cut(run: Run) -> None:
    run.environ = clean_environment({"MY_TOKEN": KEY})
    script = "import os, sys; sys.exit(os.environ['TOKEN'] + 'x' * 1980)"
    command = f'{sys.executable} -c "{script}"'
    run.documents(["one"], tool(command, env={"TOKEN": "${{ MY_TOKEN }}"}), max_retries=0)
    run()
    assert KEY[-10:] not in run.results.read_text(encoding="utf-8") + "\n".join(run.log)


def test_a_secret_that_is_also_a_word_of_the_results_does_not_break_them(run: Run) -> None:
    run.environ = clean_environment(
        {"SORT_KEY": "timestamp", "GROUP_KEY": "candidate_answer", "CACHE_KEY": "borderline"}
    )
    run.documents(["one"], mock(response="42 timestamp"), threshold=0.9)
    (row,) = run()
    assert (row.eval_id, row.verdict, row.timestamp) == ("one", "pass", "2030-01-02T03:04:05.000Z")
