"""Runs that are killed, interrupted, refused, resumed and misled."""

from __future__ import annotations

import asyncio
import json
import os
import pty
import random
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from agentv_ci.app.compile import Selection, compile_paths
from agentv_ci.app.report_files import RunFiles, RunOutcome
from agentv_ci.app.run import run_plan
from agentv_ci.compile.overrides import Overrides
from agentv_ci.contracts.exchange import Environment, ProviderError
from agentv_ci.contracts.results import ResultRow
from agentv_ci.contracts.targets import MockTarget
from agentv_ci.errors import CannotGoOn, UsageError
from agentv_ci.execute.limits import Limit, Limits
from agentv_ci.execute.run_services import RunOptions, RunServices
from agentv_ci.results.files import ResultsFormat, UnreadableResults, form, form_of, read_rows
from tests.servers.chat_api import Reply, chat_api, fails, says
from tests.support import FakeClock, clean_environment, has_ended, run_process, write

FINDS = {"name": "finds", "type": "contains", "value": "42"}
PRAISE = json.dumps({"score": 1.0, "hits": ["all of it"], "misses": [], "reasoning": "fine"})
CASES = [f"case-{number:02}" for number in range(12)]


def documents(
    repository: Path, cases: Sequence[str | Mapping[str, Any]], *targets: Mapping[str, Any], **execution: Any
) -> None:
    """Write the eval file and its targets; a case is its id, or its fields."""
    common = {
        "expected_outcome": "The answer is 42.",
        "expected_messages": [],
        "input_messages": [{"role": "user", "content": "What is 6 × 7?"}],
    }
    given = [{**common, **({"id": case} if isinstance(case, str) else case)} for case in cases]
    execution = {"evaluators": [FINDS], **execution}
    evals = {"$schema": "agentv-eval-v2", "execution": execution, "evalcases": given}
    files = {"evals/a.yaml": evals, "targets.yaml": {"$schema": "agentv-targets-v2.2", "targets": targets}}
    write(repository, {name: json.dumps(document) for name, document in files.items()})


def mock(**settings: Any) -> dict[str, Any]:
    return {"name": "default", "provider": "mock", "response": "42", **settings}


def tool(command: str, **settings: Any) -> dict[str, Any]:
    return {"name": "default", "provider": "cli", "command_template": command, **settings}


def gpt(base_url: str, **settings: Any) -> dict[str, Any]:
    target = {"name": "default", "provider": "openai", "model": "gpt-mock", "base_url": base_url}
    return {**target, "api_key": "${{ MOCK_KEY }}", **settings}


@dataclass(slots=True)
class Run:
    """A repository, and runs of what stands in it, in this process."""

    repository: Path
    form: ResultsFormat = "jsonl"
    environ: Mapping[str, str] = field(default_factory=lambda: clean_environment({"MOCK_KEY": "sk-0123456789abcdef"}))
    log: list[str] = field(default_factory=list)
    is_real: bool = True
    """Whether waiting takes time."""

    @property
    def results(self) -> Path:
        return self.repository / f"r.{self.form}"

    async def start(
        self,
        *,
        resume: Path | None = None,
        overrides: Overrides | None = None,
        out: Path | None = None,
        **settings: Any,
    ) -> RunOutcome:
        compiled = compile_paths(Selection(["evals"]), cwd=self.repository)
        world = FakeClock(self.environ).environment()
        if self.is_real:
            world = Environment(
                self.environ, lambda: datetime.now(UTC), time.monotonic, asyncio.sleep, lambda low, _: low
            )
        return await run_plan(
            compiled,
            overrides or Overrides(),
            RunOptions(root=self.repository, resume=resume, **settings),
            RunFiles(out or self.results, self.form),
            RunServices(world, self.log.append, self.log.append, self.log.append, lambda _: None),
        )

    def __call__(self, **arguments: Any) -> RunOutcome:
        """Run to the end; fails instead of hanging."""

        async def main() -> RunOutcome:
            async with asyncio.timeout(60):
                return await self.start(**arguments)

        return asyncio.run(main())

    def rows(self) -> list[ResultRow]:
        return list(read_rows(self.results, self.form))

    def keep(self, number: int) -> None:
        """Leave only the first rows of a JSONL file."""
        lines = self.results.read_bytes().splitlines(keepends=True)
        self.results.write_bytes(b"".join(lines[:number]))


@pytest.fixture
def run(repository: Path) -> Run:
    return Run(repository)


# --- Killed -----------------------------------------------------------------------------------------------------------

KILLER = """
    import io, json, os, random, signal, sys
    from pathlib import Path
    from tests.execute.test_hostile_running import Run

    repository, form, moments = Path(sys.argv[1]), sys.argv[2], json.loads(sys.argv[3])
    opened = io.open

    class Deadly(io.FileIO):
        left = 0

        def write(self, data):
            data = bytes(data)
            if len(data) > Deadly.left:
                super().write(data[: Deadly.left])
                os.kill(os.getpid(), signal.SIGKILL)
            Deadly.left -= len(data)
            return super().write(data)

    def deadly(path, mode="r", buffering=-1, *rest, **named):
        # The results file, and the one that takes its place when the run tidies up.
        if "r." + form in str(path) and mode in ("ab", "xb"):
            raw = Deadly(path, mode)
            return raw if buffering == 0 else io.BufferedWriter(raw, 512)
        return opened(path, mode, buffering, *rest, **named)

    def renamed(event, arguments):
        if event == "os.rename" and str(arguments[1]).endswith("r." + form):
            os.kill(os.getpid(), signal.SIGKILL)

    run = Run(repository, form)
    # Everything is imported once.
    run(out=repository / "warm.jsonl", workers=4)
    ways = []
    for moment in moments:
        child = os.fork()
        if not child:
            if moment is None:
                sys.addaudithook(renamed)
            else:
                io.open, Deadly.left = deadly, moment
            try:
                run(resume=run.results, workers=4)
            finally:
                os._exit(0)
        ways.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    print(json.dumps(ways))
"""


def told(row: ResultRow) -> dict[str, Any]:
    """What a row says, but for what is never the same twice."""
    return row.model_dump(exclude={"timestamp", "duration_ms"})


@pytest.mark.parametrize(
    ("form_name", "seed", "kills"), [("jsonl", 1, 14), ("jsonl", 2, 14), ("jsonl", 3, 12), ("yaml", 4, 10)]
)
def test_run_that_is_killed_again_and_again_comes_to_the_same_rows(
    form_name: ResultsFormat, seed: int, kills: int, repository: Path
) -> None:
    cases = [f"case-{number:02}" for number in range(40)]
    documents(repository, cases, mock(delay_ms=1))
    run = Run(repository, form_name)
    run(workers=4)
    whole = {row.eval_id: told(row) for row in run.rows()}
    encode = form(form_name).encode
    other = encode(run.rows()[0].model_copy(update={"digest": "0" * 64})).encode()
    # A row of another plan, so that there is something to tidy up at the end.
    run.results.write_bytes(other + encode(run.rows()[1]).encode())
    chance = random.Random(seed)
    # The first ones inside the rows; later ones reach the end of the run, where the file is tidied: `None` is the
    # moment before the tidied file takes the other one's place.
    moments: list[int | None] = [chance.randrange(1, 3_000) for _ in range(kills - 5)]
    moments += [None, chance.randrange(20_000), None, chance.randrange(20_000), None]
    # Without coverage, which would make every fork slow.
    env = {name: value for name, value in clean_environment().items() if not name.startswith("COV")}
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(KILLER), repository, form_name, json.dumps(moments)],
        env={**env, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout) == [-signal.SIGKILL] * kills
    run(resume=run.results, workers=4)
    found = run.rows()
    assert sorted(row.eval_id for row in found) == cases, "none is lost and none is there twice"
    assert {row.eval_id: told(row) for row in found} == whole
    assert not [path for path in repository.iterdir() if "tidied" in path.name]


def every_cut(encoded: bytes, before: bytes, path: Path, name: ResultsFormat) -> list[int]:
    """Return the bytes after which a torn last row changes what is read of the one before it, or counts as a row.

    All places are tried where something begins or ends.
    """
    wrong = []
    ends = [place + after for place, byte in enumerate(encoded) if byte in b"\n,-" for after in (0, 1, 2)]
    for cut in sorted({*range(20), *ends, *range(len(encoded) - 60, len(encoded))} & set(range(len(encoded)))):
        path.write_bytes(before + encoded[:cut])
        with suppress(UnreadableResults):
            if [row.eval_id for row in read_rows(path, name, allow_torn=True)] == ["case-00"]:
                continue
        wrong.append(cut)
    return wrong


@pytest.mark.parametrize(
    "name",
    [
        "jsonl",
        "yaml",
    ],
)
def test_last_row_that_was_torn_at_any_byte_is_absent_and_the_one_before_it_stays(
    name: ResultsFormat, run: Run
) -> None:
    documents(run.repository, CASES[:2], mock())
    run()
    first, second = run.rows()
    second = second.model_copy(update={"candidate_answer": "x\n- y: dry_run\n", "metadata": {"dry_run": "as said"}})
    encode = form(name).encode
    wrong = every_cut(encode(second).encode(), encode(first).encode(), run.repository / f"t.{name}", name)
    assert wrong == []


def changed(line: bytes, **fields: Any) -> bytes:
    return json.dumps({**json.loads(line), **fields}).encode() + b"\n"


@pytest.mark.parametrize(
    ("kept", "damage"),
    [
        (4, lambda lines: b"\xef\xbb\xbf" + b"".join(lines)),
        (4, lambda lines: b"".join(lines).replace(b"\n", b"\r\n")),
        (4, lambda lines: b"".join(lines) + b"\0" * 512),
        (4, lambda lines: b"".join(lines * 3)),
        (3, lambda lines: b"".join(lines)[:-1]),
        (3, lambda lines: b"".join(lines)[:-10]),
        (0, lambda _: b""),
        (0, lambda lines: lines[0][:100]),
        (1, lambda lines: lines[0] + changed(lines[1], digest="0" * 64)),
        (1, lambda lines: lines[0] + changed(lines[1], seed=7)),
        (1, lambda lines: lines[0] + changed(lines[1], target="another")),
        (1, lambda lines: lines[0] + changed(lines[1], trial=2)),
        (1, lambda lines: lines[0] + changed(lines[1], dry_run=True)),
        (1, lambda lines: lines[0] + changed(lines[1], status="error", verdict="error", error_kind="timeout")),
        (2, lambda lines: changed(lines[0], status="error", verdict="error") + lines[0] + lines[1]),
    ],
    ids=[
        "BOM", "CRLF", "NULs", "thrice", "no line break", "torn", "empty", "torn alone", "digest", "seed", "target",
        "trial", "dry run", "error", "error first",
    ],
)  # fmt: skip
def test_damaged_file_is_completed_to_one_row_a_case(
    kept: int, damage: Callable[[list[bytes]], bytes], run: Run
) -> None:
    documents(run.repository, CASES[:4], mock())
    run()
    whole = {row.eval_id: told(row) for row in run.rows()}
    run.results.write_bytes(damage(run.results.read_bytes().splitlines(keepends=True)))
    run.log.clear()
    run(resume=run.results)
    assert [line.split(" in ")[0] for line in run.log if "trials are already in" in line] == [
        f"{kept} of 4 trials are already"
    ]
    assert {row.eval_id: told(row) for row in run.rows()} == whole
    assert len(run.rows()) == 4


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("compose.yaml", "services:\n  web:\n    image: nginx\n"),
        ("baseline.json", '{"cases": [1, 2, 3]}'),
        ("notes.txt", "what I found out in a week\n"),
    ],
)
def test_file_that_holds_no_rows_is_refused_and_stays(name: str, text: str, run: Run) -> None:
    documents(run.repository, CASES[:2], mock())
    write(run.repository, {name: text})
    path = run.repository / name
    run.form = form_of(path)
    with pytest.raises(UsageError):
        run(resume=path, out=path)
    assert path.read_text(encoding="utf-8") == text


def test_run_that_cannot_begin_leaves_the_file_it_would_write_as_it_was(run: Run) -> None:
    target = tool("echo 42", env={"MOCK_KEY": "${{ MOCK_KEY }}"})
    documents(run.repository, CASES[:2], target)
    run()
    earlier = run.results.rename(run.repository / "earlier.jsonl")
    earlier.write_text(earlier.read_text(encoding="utf-8").splitlines(keepends=True)[0], encoding="utf-8")
    run.results.write_text("what an earlier run has found\n", encoding="utf-8")
    run.environ = clean_environment()
    with pytest.raises(CannotGoOn):
        run(resume=earlier)
    assert run.results.read_text(encoding="utf-8") == "what an earlier run has found\n"


def test_results_behind_a_link_are_tidied_where_they_are_and_keep_their_permissions(run: Run) -> None:
    documents(run.repository, CASES[:2], mock())
    run()
    behind = run.results.rename(run.repository / "behind.jsonl")
    behind.write_bytes(behind.read_bytes() * 2)
    behind.chmod(0o640)
    run.results.symlink_to(behind)
    run(resume=run.results)
    assert run.results.is_symlink()
    assert (len(behind.read_text(encoding="utf-8").splitlines()), behind.stat().st_mode & 0o777) == (2, 0o640)


def test_rows_do_not_go_on_in_a_file_that_is_named_for_another_form(run: Run) -> None:
    documents(run.repository, CASES[:2], mock())
    run()
    done = run_process("eval", "evals", "--resume", "r.jsonl", "--out", "more.yaml", cwd=run.repository)
    assert (done.code, "give them the same suffix" in done.err) == (2, True)
    assert not (run.repository / "more.yaml").exists()


@pytest.mark.parametrize(("before", "after"), [(1, 3), (3, 1)])
def test_rows_tell_the_trials_of_the_run_that_they_are_part_of(before: int, after: int, run: Run) -> None:
    documents(run.repository, CASES[:2], mock())
    run(overrides=Overrides(repeat=before))
    run(overrides=Overrides(repeat=after), resume=run.results)
    assert [row.trials for row in run.rows()] == [after] * 2 * after


def test_budget_of_which_nobody_knows_whether_it_was_kept_is_not_met_by_resuming(run: Run) -> None:
    with chat_api(says("42")) as api:
        documents(run.repository, CASES[:2], gpt(api.base_url))
        first = run(max_cost_usd=5.0)
        again = run(max_cost_usd=5.0, resume=run.results)
    assert (first.report.gate.verdict, first.report.unpriced_models) == ("fail", ("gpt-mock",))
    assert (again.report.gate.verdict, again.report.unpriced_models) == ("fail", ("gpt-mock",))


def test_complete_run_has_the_gate_of_its_rows_although_its_target_is_gone(run: Run) -> None:
    check = {"type": "command", "command_template": "test ! -e gone", "cwd": str(run.repository)}
    documents(run.repository, CASES[:2], tool("echo 42", healthcheck=check))
    run()
    (run.repository / "gone").touch()
    assert run(resume=run.results).report.gate.verdict == "pass"


def test_kept_rows_count_against_the_budget_and_a_larger_one_goes_on(run: Run) -> None:
    documents(run.repository, CASES, mock())
    write(
        run.repository,
        {".agentv/config.yaml": json.dumps({"prices": {"gpt-mock": {"input_per_mtok": 10_000, "output_per_mtok": 0}}})},
    )
    with chat_api(says("42")) as api:
        documents(run.repository, CASES, gpt(api.base_url))
        seen = []
        for most in (3.0, 3.0, 5.0, None):
            outcome = run(max_cost_usd=most, resume=run.results)
            seen.append((outcome.report.stopped, len(run.rows()), len(api.requests)))
    assert seen == [("budget", 3, 3), ("budget", 3, 3), ("budget", 5, 5), (None, 12, 12)]


# --- How many at once -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("workers", [None, 1, 4])
def test_two_targets_that_judge_each_other_do_not_wait_for_each_other_for_ever(workers: int | None, run: Run) -> None:
    def reply(body: dict[str, Any]) -> Reply:
        return says(PRAISE) if "expected_outcome" in json.dumps(body) else says("42")

    with chat_api(reply) as api:
        cases = [
            {
                "id": f"{target}-{number}",
                "execution": {
                    "target": target,
                    "evaluators": [{"name": "judge", "type": "llm_judge", "judge_target": judge}],
                },
            }
            for number in range(4)
            for target, judge in (("left", "right"), ("right", "left"))
        ]
        targets = [{**gpt(api.base_url), "name": name, "workers": 1} for name in ("left", "right")]
        documents(run.repository, cases, *targets)
        assert run(workers=workers).report.counts.passed == 8


def test_storm_of_refusals_costs_no_answer_and_no_question_too_many(run: Run) -> None:
    lock, asked = threading.Lock(), [0]

    def reply(_: dict[str, Any]) -> Reply:
        with lock:
            asked[0] += 1
            return fails(429, retry_after="0.01") if asked[0] % 3 else says("42")

    with chat_api(reply) as api:
        documents(run.repository, [f"case-{number}" for number in range(20)], gpt(api.base_url, max_retries=60))
        outcome = run(workers=16)
    rows = run.rows()
    assert (outcome.report.counts.passed, sum(row.requests for row in rows)) == (20, len(api.requests))
    assert {change.reason for change in outcome.report.concurrency} <= {"HTTP 429", "no refusals in a full round"}
    assert min(change.after for change in outcome.report.concurrency) >= 1


def test_run_that_is_cancelled_while_a_server_holds_it_back_ends_at_once_with_its_rows(run: Run) -> None:
    is_held = asyncio.Event()
    replies = iter([says("42")])

    def reply(_: dict[str, Any]) -> Reply:
        return next(replies, fails(429, retry_after="50"))

    async def main() -> RunOutcome:
        loop = asyncio.get_running_loop()
        running = asyncio.ensure_future(run.start(workers=4))

        def watch() -> None:
            if run.results.exists() and run.results.read_bytes() and len(api.requests) >= 4:
                is_held.set()
            else:
                loop.call_later(0.01, watch)

        watch()
        async with asyncio.timeout(60):
            await is_held.wait()
            running.cancel()
            return await running

    with chat_api(reply) as api:
        documents(run.repository, CASES, gpt(api.base_url))
        outcome = asyncio.run(main())
    assert (outcome.report.stopped, outcome.report.gate.exit_code, len(run.rows())) == ("interrupted", 130, 1)


@pytest.mark.parametrize(
    ("settings", "execution"),
    [
        ({"max_retries": 0}, {}),
        ({"retry_max_delay_ms": 1_000}, {}),
        ({}, {"timeout_seconds": 2}),
    ],
    ids=["last try", "longer than the longest wait", "no time"],
)
def test_nobody_asks_for_as_long_as_the_server_wants_although_the_question_is_given_up(
    settings: Mapping[str, Any], execution: Mapping[str, Any], run: Run
) -> None:
    run.is_real = False
    replies = iter([fails(429, retry_after="3")])
    with chat_api(lambda _: next(replies, says("42"))) as api:
        documents(run.repository, CASES[:4], gpt(api.base_url, **settings), **execution)
        outcome = run()
    assert [row.verdict for row in run.rows()] == ["error", "pass", "pass", "pass"]
    assert [change.held_s for change in outcome.report.concurrency] == [3.0]


def limit_of(slots: int, world: Environment) -> Limit:
    target = MockTarget.model_validate({"name": "a", "provider": "mock", "workers": slots})
    return Limits(None, {"a": target}, ["a"], world, lambda _: None).of("a")


def test_slot_comes_back_after_a_round_of_questions_that_were_asked_since_the_refusal() -> None:
    async def main() -> int:
        limit, ends = limit_of(8, FakeClock().environment()), [asyncio.Event() for _ in range(8)]

        async def ask(number: int) -> None:
            with suppress(ProviderError):
                async with limit.slot():
                    await ends[number].wait()
                    if number == 0:
                        raise ProviderError("rate_limit", "HTTP 429", status=429, retryable=True)

        asked = [asyncio.ensure_future(ask(number)) for number in range(8)]
        for end in ends:
            await asyncio.sleep(0)
            end.set()
        await asyncio.gather(*asked)
        return limit.width

    assert asyncio.run(main()) == 4


def test_refused_questions_are_asked_again_in_the_order_of_their_asking() -> None:
    world = Environment({}, lambda: datetime.now(UTC), time.monotonic, asyncio.sleep, lambda low, _: low)

    async def main() -> list[int]:
        limit, order = limit_of(4, world), list[int]()

        async def ask(number: int) -> None:
            async with limit.slot():
                # The first one holds all of them back until the others have waited for themselves.
                wait_s = 0.05 if number else 0.2
                error = ProviderError("rate_limit", "HTTP 429", status=429, retryable=True, retry_after_s=wait_s)
                await limit.pause(error, wait_s)
                order.append(number)

        await asyncio.gather(*map(ask, range(4)))
        return order

    assert [number for number in asyncio.run(main()) if number] == [1, 2, 3]


def test_slow_judge_does_not_hold_up_cases_of_a_target_that_has_nothing_to_do_with_it(run: Run) -> None:
    asked = threading.Event()
    in_time: list[bool] = []

    def judged(_: dict[str, Any]) -> Reply:
        in_time.append(asked.wait(0 if in_time else 1))
        return says(PRAISE)

    def answered(_: dict[str, Any]) -> Reply:
        asked.set()
        return says("42")

    with chat_api(judged) as judge, chat_api(answered) as free:
        slow = {"target": "left", "evaluators": [{"name": "judge", "type": "llm_judge", "judge_target": "judge"}]}
        cases = [{"id": f"left-{number}", "execution": slow} for number in range(5)]
        documents(
            run.repository,
            [*cases, {"id": "right", "execution": {"target": "right"}}],
            mock(name="left", workers=2),
            {**gpt(free.base_url), "name": "right", "workers": 1},
            {**gpt(judge.base_url), "name": "judge", "workers": 1},
        )
        run()
    assert in_time[0], "the free target is asked while the judge takes its time"


EDITOR = """
    import pathlib, re, subprocess, sys

    given = sys.argv[1:]
    if "wakeup" in given:
        pathlib.Path(given[-1].split("file ")[1]).touch()
    elif "chat" in given:
        (asked,) = [each for each in given if each.endswith(("_req.md", "_orchestrator.md"))]
        text = pathlib.Path(asked).read_text()
        names = re.findall(r"messages/(\\S+_req\\.md)", text) if "_orchestrator" in asked else [asked]
        for name in names:
            text = (pathlib.Path(asked).parent / name).read_text()
            pathlib.Path(re.search(r"Create the file (\\S+)", text)[1]).write_text("42")
            subprocess.run(re.search(r"run this command: `(.*)`", text)[1], shell=True, check=True)
"""


def test_batch_of_which_the_cache_knows_every_answer_asks_nobody(run: Run) -> None:
    editor = run.repository / "code"
    editor.write_text(f"#!{sys.executable}\n{textwrap.dedent(EDITOR)}", encoding="utf-8")
    editor.chmod(0o755)
    target = {"provider": "vscode-copilot", "command": str(editor), "subagent_root": str(run.repository / "agents")}
    documents(run.repository, CASES[:2], {"name": "default", **target, "provider_batching": True})
    cache = run.repository / "cache"
    run(cache=cache)
    assert [row.cached for row in run.rows()] == [False, False]
    run(cache=cache)
    assert [(row.verdict, row.cached) for row in run.rows()] == [("pass", True)] * 2


# --- The first failure ------------------------------------------------------------------------------------------------


def test_failure_of_the_last_case_has_stopped_nothing(run: Run) -> None:
    documents(run.repository, CASES[:3], mock(responses={CASES[2]: "no"}))
    outcome = run(fail_fast=True)
    assert (outcome.report.counts.rows, outcome.report.stopped) == (3, None)


def test_trials_that_stay_count_for_whether_a_case_can_still_pass(run: Run) -> None:
    documents(run.repository, CASES[:2], mock(responses={CASES[0]: "no"}))
    run(overrides=Overrides(repeat=3))
    run.keep(1)
    run(overrides=Overrides(repeat=3), resume=run.results, fail_fast=True)
    assert [(row.eval_id, row.trial) for row in run.rows()] == [(CASES[0], 1), (CASES[0], 2)]


# --- Ended from outside -----------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Command:
    """A run in a process of its own."""

    repository: Path
    arguments: Sequence[str] = ()
    before: Sequence[str] = (sys.executable, "-m", "agentv_ci")
    started: subprocess.Popen[str] | None = None

    @property
    def results(self) -> Path:
        return self.repository / "r.jsonl"

    def start(self) -> None:
        self.started = subprocess.Popen(
            [*self.before, "eval", "evals", "--out", "r.jsonl", *self.arguments],
            cwd=self.repository,
            env=clean_environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def when(self, is_so: Callable[[], bool]) -> None:
        """Wait until something is so; fails instead of hanging."""
        deadline = time.monotonic() + 60
        while not is_so():
            assert time.monotonic() < deadline, "it never came to that"
            time.sleep(0.01)

    def has_rows(self) -> bool:
        return self.results.exists() and bool(self.results.read_bytes())

    def signal(self, *numbers: signal.Signals) -> tuple[int, str, str]:
        """Send signals; return how the run ended and what it printed."""
        assert self.started is not None, "it runs"
        for number in numbers:
            self.started.send_signal(number)
            time.sleep(0.02)
        out, err = self.started.communicate(timeout=60)
        return self.started.returncode, out, err

    def pids(self, name: str) -> list[int]:
        """Return the process ids that the commands of the run have left in files of this name."""
        texts = [path.read_text(encoding="utf-8") for path in (self.repository / "evals").glob(f"*.{name}")]
        return [int(text) for text in texts if text.strip()]


STUBBORN = "trap '' TERM INT HUP; echo $$ > {EVAL_ID}.pid; (sleep 60; sleep 60) & echo $! > {EVAL_ID}.child.pid; "


def kill(pids: Sequence[int]) -> None:
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_signal_in_the_middle_keeps_rows_writes_the_report_and_leaves_no_process(
    number: signal.Signals, repository: Path
) -> None:
    hangs = tool(STUBBORN + "wait; sleep 60", name="hangs")
    stuck = [{"id": f"hangs-{each}", "execution": {"target": "hangs"}} for each in range(2)]
    cases: list[str | dict[str, Any]] = [*CASES[:3], *stuck]
    documents(repository, cases, mock(), hangs)
    command = Command(repository, ["--workers", "4"])
    command.start()
    command.when(lambda: len(command.pids("pid")) == 4 and command.results.read_bytes().count(b"\n") == 3)
    pids = command.pids("pid")
    code, out, err = command.signal(number)
    assert (code, err) == (130, "error: interrupted; finished rows are kept\n")
    assert all(map(has_ended, pids))
    assert [row.eval_id for row in read_rows(command.results, "jsonl")] == CASES[:3]
    report = json.loads((repository / "r.report.json").read_text(encoding="utf-8"))
    assert (report["stopped"], report["gate"]["exit_code"]) == ("interrupted", 130)
    assert "interrupted: 2 of 5 cases never ran" in out


def test_signal_ends_a_run_whose_target_answers_without_waiting(repository: Path) -> None:
    documents(repository, CASES[:1], mock(), repeat=100_000_000)
    command = Command(repository)
    command.start()
    command.when(command.has_rows)
    code, out, _ = command.signal(signal.SIGTERM)
    assert code == 130
    assert "interrupted: every case ran, but not every trial" in out
    report = json.loads((repository / "r.report.json").read_text(encoding="utf-8"))
    (repeated,) = report["repeated"]
    assert len(repeated["pass_at_k"]) == min(repeated["trials"], 20)


def test_second_signal_leaves_no_process_either(repository: Path) -> None:
    documents(repository, CASES[:2], tool(STUBBORN + "wait; sleep 60"))
    command = Command(repository, ["--workers", "2"])
    command.start()
    command.when(lambda: len(command.pids("pid")) == 4)
    pids = command.pids("pid")
    code, _, err = command.signal(signal.SIGTERM, signal.SIGTERM)
    assert "Traceback" not in err
    # The process may be on its way out already when the second one comes.
    assert code in (130, -signal.SIGTERM)
    assert all(map(has_ended, pids))


@pytest.mark.parametrize("before", [["nohup"], ["sh", "-c", 'trap "" HUP; exec "$@"', "sh"]])
def test_signal_that_is_ignored_from_the_start_stays_so(before: Sequence[str], repository: Path) -> None:
    documents(repository, CASES[:2], tool("while ! test -e go; do sleep 0.05; done; echo 42"))
    command = Command(repository, before=[*before, sys.executable, "-m", "agentv_ci"])
    command.start()
    command.when(command.results.exists)
    assert command.started is not None
    command.started.send_signal(signal.SIGHUP)
    (repository / "evals" / "go").touch()
    assert command.signal()[0] == 0
    assert len(list(read_rows(command.results, "jsonl"))) == 2


def test_what_stays_in_the_session_of_a_command_ends_with_it(repository: Path) -> None:
    commands = (
        "timeout 60 sh -c 'echo $$ > timeout.pid; exec sleep 60' | cat",
        "bash -c 'set -m; sleep 60 & echo $! > job.pid; wait'",
    )
    targets = [tool(command, name=f"target-{number}") for number, command in enumerate(commands)]
    cases = [{"id": target["name"], "execution": {"target": target["name"]}} for target in targets]
    documents(repository, cases, *targets)
    run = Command(repository, ["--workers", "2"])
    run.start()
    run.when(lambda: len(run.pids("pid")) == 2)
    pids = run.pids("pid")
    try:
        assert run.signal(signal.SIGTERM)[0] == 130
        assert all(map(has_ended, pids))
    finally:
        kill(pids)


EARLY = """
    import os, signal, sys
    from agentv_ci.__main__ import main

    def end(event, arguments):
        if event == "open" and str(arguments[0]).endswith("a.yaml"):
            os.kill(os.getpid(), signal.Signals[NUMBER])

    sys.addaudithook(end)
    main()
"""


@pytest.mark.parametrize("number", ["SIGINT", "SIGTERM"])
def test_signal_while_documents_are_read_is_an_interruption_like_any_other(number: str, repository: Path) -> None:
    documents(repository, CASES[:1], mock())
    script = textwrap.dedent(EARLY).replace("NUMBER", repr(number))
    command = Command(repository, before=[sys.executable, "-c", script])
    command.start()
    code, _, err = command.signal()
    assert (code, err.strip()) == (130, "error: interrupted")


def test_terminal_that_has_gone_is_an_interruption_like_any_other(repository: Path) -> None:
    documents(
        repository,
        [CASES[0], {"id": "hangs", "execution": {"target": "hangs"}}],
        mock(),
        tool("sleep 60", name="hangs"),
    )
    terminal, end = pty.openpty()
    arguments = [sys.executable, "-m", "agentv_ci", "eval", "evals", "--out", "r.jsonl"]
    started = subprocess.Popen(
        arguments,
        cwd=repository,
        env=clean_environment(),
        stdout=subprocess.DEVNULL,
        stderr=end,
        start_new_session=True,
    )
    os.close(end)
    command = Command(repository)
    command.when(command.has_rows)
    os.close(terminal)
    started.send_signal(signal.SIGHUP)
    assert started.wait(60) == 130


def test_progress_goes_to_the_terminal_and_only_the_summary_to_the_output(repository: Path) -> None:
    documents(repository, CASES, mock(delay_ms=40))
    terminal, end = pty.openpty()
    arguments = [sys.executable, "-m", "agentv_ci", "eval", "evals", "--out", "r.jsonl"]
    started = subprocess.Popen(
        arguments,
        cwd=repository,
        env=clean_environment({"TERM": "xterm", "COLUMNS": "100"}),
        stdout=subprocess.PIPE,
        stderr=end,
        start_new_session=True,
    )
    os.close(end)
    shown = bytearray()
    # Linux says by an error that nobody has the other end any more.
    with suppress(OSError):
        while chunk := os.read(terminal, 65_536):
            shown += chunk
    os.close(terminal)
    out, _ = started.communicate(timeout=60)
    assert started.returncode == 0
    assert b"ETA" in shown
    assert (shown.count(b"\x1b[?25l"), shown.count(b"\x1b[?25h")) == (1, 1), "the cursor is there again"
    lines = out.decode().splitlines()
    assert lines[0] == "12 cases: 12 passed, 0 failed, 0 errors"
    assert lines[-3:] == ["gate: passed", "results: r.jsonl", "report: r.report.json"]
    assert b"\x1b" not in out


PUT_AWAY = """
    import asyncio, os, sys
    from pathlib import Path
    from agentv_ci import process

    killed = []

    async def main():
        running = asyncio.ensure_future(process.run("echo 42", cwd=Path("/"), env=dict(os.environ), timeout_s=60))

        def killpg(group, number):
            killed.append(group)
            running.cancel()

        os.killpg = killpg
        await asyncio.wait((running,))
        killed.clear()
        process.kill_all()

    asyncio.run(main())
    print(killed)
"""


def test_cancellation_while_a_process_is_put_away_leaves_nothing_of_it() -> None:
    done = subprocess.run(
        [sys.executable, "-X", "dev", "-W", "error", "-c", textwrap.dedent(PUT_AWAY)],
        env=clean_environment({"PYTHONPATH": os.pathsep.join(sys.path)}),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.stdout, done.stderr) == ("[]\n", "")
