"""Runs of plans: attempts, judges, files, limits, their rows and logs, and how they are resumed."""

from __future__ import annotations

import asyncio
import itertools
import json
import sys
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from agentv_ci.base.redaction import NO_SECRETS
from agentv_ci.compile.overrides import Overrides
from agentv_ci.contracts.base import ErrorKind
from agentv_ci.contracts.exchange import about_case
from agentv_ci.contracts.results import ToolCall, Usage
from agentv_ci.errors import TargetUnavailable
from agentv_ci.execute.run_services import MAX_WARNINGS, Progress, RunLog
from tests.servers.chat_api import Step, answers, chat_api, fails, says
from tests.servers.http import Reply
from tests.support import NOW, CommandResult, FakeClock, clean_environment, run_command, write
from tests.support.evals import FINDS, JUDGE, KEY, PRAISE, Run, documents, gpt, mock, tool

CASES = [f"case-{number:02}" for number in range(12)]


@pytest.fixture
def run(repository: Path) -> Run:
    return Run(repository)


@pytest.mark.parametrize(
    ("kind", "failures", "max_retries", "attempts", "status"),
    [
        ("timeout", 1, 2, 2, "ok"),
        ("process", 2, 2, 3, "ok"),
        ("timeout", 3, 2, 3, "error"),
        ("process", 1, 0, 1, "error"),
        *((kind, 1, 2, 1, "error") for kind in ("rate_limit", "auth", "network", "server", "request", "malformed")),
    ],
)
def test_only_time_outs_and_failed_processes_are_attempted_again(
    kind: ErrorKind, failures: int, max_retries: int, attempts: int, status: str, run: Run
) -> None:
    run.documents(["one"], mock(error={"kind": kind, "attempts": failures}), max_retries=max_retries)
    (row,) = run.rows()
    assert (row.status, row.attempts, row.requests) == (status, attempts, attempts)
    if status == "error":
        assert (row.verdict, row.score, row.error_kind, row.error) == ("error", 0.0, kind, "scripted failure")


@pytest.mark.parametrize(("delay_ms", "error_kind"), [(30_000, None), (30_001, "timeout")])
def test_a_mock_waits_up_to_the_time_limit_and_reports_what_its_target_sets(
    delay_ms: int, error_kind: str | None, run: Run
) -> None:
    clock = FakeClock()
    run.environment = clock.environment()
    calls = [{"tool": "search", "input": {"q": 1}, "output": [2]}]
    target = mock(
        delay_ms=delay_ms, usage={"input_tokens": 3, "output_tokens": 4}, tool_calls=calls, responses={"two": "2"}
    )
    run.documents(["one", "two"], target, timeout_seconds=30, max_retries=0)
    one, two = run.rows()
    assert (one.error_kind, clock.slept) == (error_kind, [30, 30])
    if error_kind is None:
        assert (one.candidate_answer, two.candidate_answer) == ("42", "2")
        assert one.usage == Usage(input_tokens=3, output_tokens=4, total_tokens=7)
        assert one.output_messages is not None
        assert one.output_messages[0].tool_calls == (ToolCall(tool="search", input={"q": 1}, output=[2]),)
    else:
        assert one.error == "no answer within 30 s"


@pytest.mark.parametrize(
    ("target", "duration_ms"),
    [(mock(error={"kind": "timeout", "attempts": 5}), 2000), (tool("[ {ATTEMPT} = 2 ] && pwd -P"), 1000)],
    ids=["mock", "command"],
)
def test_a_row_has_the_duration_of_its_last_attempt(target: dict[str, Any], duration_ms: int, run: Run) -> None:
    ticks = itertools.count()
    run.environment = replace(FakeClock(clean_environment()).environment(), monotonic=lambda: float(next(ticks)))
    run.documents(["one"], target)
    (row,) = run.rows()
    assert (row.attempts, row.duration_ms) == (3, duration_ms)
    assert row.candidate_answer in ("", str((run.repository / "evals").resolve()))


@pytest.mark.parametrize(
    ("steps", "timeout_s", "error_kind", "requests"),
    [
        ((fails(503), fails(429), says("42")), 60, None, 3),
        ((fails(503),), 60, "server", 4),
        ((fails(503), replace(says("42"), delay_s=0.6)), 0.3, "timeout", 2),
    ],
)
def test_retries_of_a_provider_are_requests_and_not_attempts(
    steps: tuple[Step, ...], timeout_s: float, error_kind: str | None, requests: int, run: Run
) -> None:
    with chat_api(*steps) as api:
        target = gpt(api.base_url, retry_initial_delay_ms=1)
        run.documents(["one"], target, timeout_seconds=timeout_s, max_retries=0)
        (row,) = run.rows()
    assert (row.error_kind, row.attempts, row.requests) == (error_kind, 1, requests)


def test_a_row_is_in_the_file_before_the_next_case_begins(run: Run) -> None:
    run.documents(["one", "two", "three"], tool("wc -l < ../r.jsonl"))
    assert [row.candidate_answer.strip() for row in run.rows()] == ["0", "1", "2"]


def test_a_question_without_a_recording_is_an_error_without_a_request(run: Run) -> None:
    run.documents(["one"], tool("echo 42"))
    (run.repository / "recorded").mkdir()
    report = run(replay=run.repository / "recorded").report
    (row,) = run.written()
    assert (row.error_kind, row.requests, row.attempts, report.unrecorded) == ("request", 0, 1, 1)


def test_each_warning_is_shown_once_and_their_number_is_limited() -> None:
    shown: list[str] = []
    messages = RunLog(shown.append, shown.append, NO_SECRETS)
    for number in range(2 * MAX_WARNINGS + 2):
        messages.warn(f"warning {number // 2}")
    assert shown == [f"warning {number}" for number in range(MAX_WARNINGS)]


def test_a_warning_is_shown_for_the_first_few_cases() -> None:
    shown: list[str] = []
    messages = RunLog(shown.append, shown.append, NO_SECRETS)
    for sentence in ("gone", "cut"):
        for case_id in "aabcdde":
            messages.warn(about_case(sentence, case_id))
    assert shown == [
        *("gone; case 'a'", "gone; case 'b'", "gone; case 'c'", "gone; and more cases"),
        *("cut; case 'a'", "cut; case 'b'", "cut; case 'c'", "cut; and more cases"),
    ]


PRINTED = {
    "half an emoji": '{"text": "42 \\ud83d"}',
    "half an emoji in a trace": json.dumps(
        {"output_messages": [{"role": "assistant", "content": "\ud83d", "tool_calls": [{"tool": "\ud83d"}]}]}
    ),
    "not a number": '{"output_messages": [{"role": "assistant", "content": NaN, "tool_calls": [{"tool": "t"}]}]}',
    "deep": '{"output_messages": [{"role": "assistant", "content": %s}]}' % ("[" * 400 + "]" * 400),
    "empty role": '{"output_messages": [{"role": ""}]}',
    "empty tool": '{"output_messages": [{"role": "assistant", "tool_calls": [{"tool": ""}, {}]}]}',
    "control characters": "\ufeff\ufffe\x00\x1b[31m\r\n\u2028",
    "long": "x" * 2_000_000,
    "plain": "42",
}


def test_every_output_of_a_command_is_a_row(run: Run) -> None:
    write(run.repository, {f"evals/{name}": printed for name, printed in PRINTED.items()})
    run.documents([*PRINTED], tool("cat {EVAL_ID}"), max_retries=0)
    rows = run.rows()
    assert [row.eval_id for row in rows] == [*PRINTED]
    assert rows[-1].verdict == "pass"
    assert run.warned == [f"default: an answer is empty; case '{name}'" for name in ("not a number", "empty role")]


def test_a_command_gets_files_as_they_were_compiled(run: Run) -> None:
    write(run.repository, {"evals/note.txt": "the answer is 42"})
    content = [{"type": "text", "value": "Look."}, {"type": "file", "value": "note.txt"}]
    run.documents([{"id": "one", "input_messages": [{"role": "user", "content": content}]}], tool("cat {FILES}"))
    (row,) = run.rows(between=lambda: write(run.repository, {"evals/note.txt": "the answer is 43"}))
    assert row.candidate_answer == "the answer is 42"


@pytest.mark.parametrize(("left", "right"), [("left", "right"), ("right", "left")], ids=["themselves", "each other"])
@pytest.mark.parametrize("workers", [None, 4])
def test_targets_that_judge_do_not_block_each_other(left: str, right: str, workers: int | None, run: Run) -> None:
    def reply(body: dict[str, Any]) -> Reply:
        return says(PRAISE) if "expected_outcome" in json.dumps(body) else says("42")

    with chat_api(reply) as api:
        cases = [
            {"id": f"{name}-{n}", "execution": {"target": name, "evaluators": [{**JUDGE, "judge_target": judge}]}}
            for n in range(4)
            for name, judge in (("left", left), ("right", right))
        ]
        run.documents(cases, *(gpt(api.base_url, name=name, workers=1) for name in ("left", "right")))
        assert run(workers=workers).report.counts.passed == 8


def test_a_judge_has_its_own_limit_of_questions(run: Run) -> None:
    with chat_api(says("42")) as api, chat_api(replace(says(PRAISE), delay_s=0.01)) as judge:
        target = gpt(api.base_url, workers=4, judge_target="judge")
        run.documents(CASES, target, gpt(judge.base_url, name="judge", workers=2), evaluators=[JUDGE])
        assert run().report.counts.passed == len(CASES)
    assert judge.most_at_once == 2


def test_a_judge_gets_its_own_settings_and_both_parts_of_its_prompt(run: Run) -> None:
    with chat_api(says("the answer"), says(PRAISE)) as api:
        judge = {**JUDGE, "temperature": 0.0, "max_output_tokens": 300}
        run.documents(["one"], gpt(api.base_url, temperature=0.9), evaluators=[judge], seeds=[7])
        (row,) = run.rows()
    asked, judged = (request["body"] for request in api.requests)
    assert (asked["temperature"], judged["temperature"], judged["max_tokens"]) == (0.9, 0.0, 300)
    assert [message["role"] for message in judged["messages"]] == ["system", "user"]
    assert "the answer" in judged["messages"][1]["content"]
    assert row.judge_usage is not None
    assert row.judge_usage.total_tokens == 110


def test_a_command_that_judges_gets_the_system_prompt_first(run: Run) -> None:
    write(run.repository, {"evals/praise.json": PRAISE})
    judge = tool("cat {PROMPT_FILE} > seen; cat praise.json", name="judge")
    run.documents(["one"], tool("echo UNIQUE-ANSWER", judge_target="judge"), judge, evaluators=[JUDGE])
    (row,) = run.rows()
    seen = (run.repository / "evals" / "seen").read_text(encoding="utf-8")
    assert (row.verdict, seen.index("hits") < seen.index("UNIQUE-ANSWER")) == ("pass", True)


def test_a_judge_that_fails_is_an_error_of_its_evaluator(run: Run) -> None:
    with chat_api(says("42"), fails(401, "no")) as api:
        run.documents(["one"], gpt(api.base_url), evaluators=[FINDS, JUDGE])
        (row,) = run.rows()
    assert (row.status, row.error_kind, row.attempts, row.score) == ("error", "evaluator", 1, 0.0)
    assert [each.status for each in row.evaluator_results] == ["ok", "error"]


def test_a_judge_that_is_not_ready_ends_the_run_before_the_first_case(run: Run) -> None:
    check = {"type": "command", "command_template": "echo not logged in >&2; exit 1"}
    target = tool("echo asked > asked", judge_target="judge")
    run.documents(["one"], target, tool("true", name="judge", healthcheck=check), evaluators=[JUDGE])
    with pytest.raises(TargetUnavailable, match=r"'judge' is not available: .*not logged in \(exit code 1\)"):
        run()
    assert not (run.repository / "evals" / "asked").exists()
    assert not run.results.exists()


def test_the_progress_counts_every_trial(run: Run) -> None:
    command = "case {EVAL_ID} in bad) exit 1;; wrong) echo 43;; *) echo 42;; esac"
    run.documents(["one", "bad", "wrong"], tool(command), repeat=2, max_retries=1)
    run()
    assert run.progress == Progress(total=6, done=6, passed=2, failed=2, errored=2, retries=2)


def test_the_log_has_every_question_attempt_and_verdict(run: Run) -> None:
    run.documents(["one"], mock(error={"kind": "timeout", "attempts": 1}))
    run()
    assert run.log == [
        "one: asking default",
        "one: timeout: scripted failure",
        "one: asking default, attempt 2",
        "one: pass, score 1.000",
        "one: finds (contains): pass, score 1.000: contains '42'",
    ]


def test_long_errors_are_shortened_in_rows_and_in_the_log(run: Run) -> None:
    command = "head -c 1000000 /dev/zero | tr '\\0' x >&2; echo ' the reason' >&2; exit 3"
    run.documents(["one"], tool(command, verbose=True), max_retries=0)
    (row,) = run.rows()
    assert str(row.error).endswith("the reason (exit code 3)")
    assert max(map(len, [str(row.error), *run.log])) < 10_000


ECHOES: Mapping[str, Reply] = {
    "error": fails(401, f"Incorrect API key provided: {KEY}."),
    "error cut in a quotation": Reply(500, f"{'x' * 180}{KEY}".encode()),
    "error in a 200": answers(200, {"error": {"message": f"key {KEY} is unknown"}}),
    "not JSON": Reply(200, f"authorization: Bearer {KEY}".encode()),
    "not an object": answers(200, [KEY]),
    "redirect": Reply(302, b"", {"location": f"https://elsewhere.example/?key={KEY}"}),
    "model": answers(200, {"model": KEY, "choices": [{"message": {"content": "42"}, "finish_reason": KEY}]}),
    "tool call": says("42", message={"tool_calls": [{"function": {"name": KEY, "arguments": json.dumps({KEY: KEY})}}]}),
    "answer": says(f"Your key is {KEY}."),
    "nothing": says("42"),
}


def test_a_key_that_a_server_repeats_is_not_in_rows_and_not_in_the_log(run: Run) -> None:
    with chat_api(*ECHOES.values()) as api:
        run.documents([*ECHOES], gpt(api.base_url, max_retries=0))
        rows = run.rows()
    # Not even its beginning, where a long text was cut.
    assert KEY[:15] not in run.results.read_text(encoding="utf-8") + "\n".join(run.log)
    assert [(row.eval_id, row.masked) for row in rows[-2:]] == [("answer", True), ("nothing", False)]


def test_a_token_that_a_command_prints_is_not_in_rows_and_not_in_the_log(run: Run) -> None:
    run.variables = clean_environment({"MY_TOKEN": KEY})
    said = {
        "answer": "echo $TOKEN",
        "failure": "echo $TOKEN >&2; exit 1",
        "complaint": "echo $TOKEN >&2; echo 42",
        "cut": f"{sys.executable} -c \"import os, sys; sys.exit(os.environ['TOKEN'] + 'x' * 1980)\"",
    }
    write(run.repository, {f"evals/{name}.sh": command for name, command in said.items()})
    run.documents([*said], tool(". ./{EVAL_ID}.sh", env={"TOKEN": "${{ MY_TOKEN }}"}, verbose=True), max_retries=0)
    assert len(run.rows()) == len(said)
    written = run.results.read_text(encoding="utf-8") + "\n".join(run.log)
    assert (KEY in written, KEY[-10:] in written) == (False, False)


def test_a_secret_that_is_a_word_of_the_results_does_not_break_them(run: Run) -> None:
    run.variables = clean_environment(
        {"SORT_KEY": "timestamp", "GROUP_KEY": "candidate_answer", "CACHE_KEY": "borderline"}
    )
    run.documents(["one"], mock(response="42 timestamp"), threshold=0.9)
    (row,) = run.rows()
    assert (row.eval_id, row.verdict, row.timestamp) == ("one", "pass", "2030-01-02T03:04:05.000Z")


def test_a_clock_that_jumps_is_in_the_rows_and_no_duration_is_negative(run: Run) -> None:
    times = [NOW, NOW + timedelta(hours=1), NOW - timedelta(days=3650), datetime.min.replace(tzinfo=UTC)]
    coming = iter([NOW, *times, NOW - timedelta(seconds=1)])
    run.environment = replace(FakeClock().environment(), now=lambda: next(coming))
    run.documents(CASES[: len(times)], mock())
    assert run().report.duration_s == 0
    rows = run.written()
    written = [each.replace(tzinfo=None).isoformat(timespec="milliseconds") + "Z" for each in times]
    assert [(row.timestamp, row.duration_ms >= 0) for row in rows] == [(each, True) for each in written]


def test_earlier_rows_count_against_the_budget_and_a_larger_one_continues(run: Run) -> None:
    costs = {"prices": {"gpt-mock": {"input_per_mtok": 10_000, "output_per_mtok": 0}}}
    write(run.repository, {".agentv/config.yaml": json.dumps(costs)})
    with chat_api(says("42")) as api:
        run.documents(CASES, gpt(api.base_url))
        seen = []
        for most in (3.0, 3.0, 5.0, None):
            stopped = run(max_cost_usd=most, resume=run.results).report.stopped
            seen.append((stopped, len(run.written()), len(api.requests)))
    assert seen == [("budget", 3, 3), ("budget", 3, 3), ("budget", 5, 5), (None, 12, 12)]


def test_a_complete_run_needs_neither_its_target_nor_its_environment(run: Run) -> None:
    check = {"type": "command", "command_template": "test ! -e gone", "cwd": str(run.repository)}
    run.documents(CASES[:2], tool("echo 42", env={"MOCK_KEY": "${{ MOCK_KEY }}"}, healthcheck=check))
    run()
    (run.repository / "gone").touch()
    run.variables = clean_environment()
    assert run(resume=run.results).report.gate.verdict == "pass"


def test_earlier_trials_count_for_whether_a_case_can_still_pass(run: Run) -> None:
    run.documents(CASES[:2], mock(responses={CASES[0]: "no"}))
    run(overrides=Overrides(repeat=3))
    run.results.write_bytes(run.results.read_bytes().splitlines(keepends=True)[0])
    rows = run.rows(overrides=Overrides(repeat=3), resume=run.results, fail_fast=True)
    assert [(row.eval_id, row.trial) for row in rows] == [(CASES[0], 1), (CASES[0], 2)]


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
        case = {"id": "one", "expected_messages": [{"role": "assistant", "content": "42"}]}
        documents(repository, [case], target, evaluators=[repeating("UPSTREAM_AUTH")])
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


FAILS = "warning: evaluator 'it' could not score:"


@pytest.mark.parametrize(
    ("evaluator", "code", "message"),
    [
        ({"name": "it", "type": "code", "script": "echo '{\"score\": 85}'"}, 0, "warning: evaluator 'it' scored 85"),
        ({"name": "it", "type": "code", "script": "exit 3"}, 4, f"{FAILS} the script exited with code 3"),
        ({**JUDGE, "name": "it", "judge_target": "default"}, 4, f"{FAILS} "),
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
