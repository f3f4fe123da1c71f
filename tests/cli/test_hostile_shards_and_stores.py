"""What files, machines and people can do to caches, recordings, shards, budgets and dumps."""

from __future__ import annotations

import base64
import json
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from agentv_ci.cli import run
from agentv_ci.contracts.exchange import Response
from agentv_ci.execute import targets as asking
from agentv_ci.execute.stores import Store
from tests.execute.builders import Session
from tests.servers.chat_api import ChatApi, Reply, chat_api, fails, says
from tests.support import clean_environment, write

KEY = "sk-canary-0123456789"
SAYS_HELLO = {"name": "hello", "type": "contains", "value": "Hello"}
JUDGED = {"name": "judged", "type": "llm_judge", "judge_target": "judge"}
GREETS = {"name": "default", "provider": "mock", "response": "Hello!"}
PRICED = "gpt-4o"
ONE_ANSWER_USD = 0.000325
"""What an answer of the server costs at the price of that model."""
ENDS_S = 60
"""A command that takes so long would never end."""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / ".git").mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GREETER_KEY", KEY)
    return tmp_path


def documents(
    folder: Path,
    *cases: dict[str, Any] | str,
    targets: tuple[dict[str, Any], ...] = (GREETS,),
    name: str = "evals/x.yaml",
    **execution: Any,
) -> None:
    """Write an eval file, and the targets; a case may be its id alone."""
    given = [{"id": case} if isinstance(case, str) else case for case in cases]
    asked = {"expected_outcome": "A greeting", "expected_messages": [], "input_messages": [user("Greet me")]}
    evals = {
        "$schema": "agentv-eval-v2",
        "execution": {"evaluators": [SAYS_HELLO], **execution},
        "evalcases": [{**asked, **case} for case in given],
    }
    write(
        folder,
        {
            name: json.dumps(evals),
            "targets.yaml": json.dumps({"$schema": "agentv-targets-v2.2", "targets": targets}),
        },
    )


def user(content: Any) -> dict[str, Any]:
    return {"role": "user", "content": content}


def with_file(name: str) -> dict[str, Any]:
    return {"input_messages": [user([{"type": "text", "value": "Greet me"}, {"type": "file", "value": name}])]}


def gpt(api: ChatApi, **given: Any) -> dict[str, Any]:
    own = {"name": "default", "provider": "openai", "model": "m", "base_url": api.base_url}
    return {**own, "api_key": "${{ GREETER_KEY }}", **given}


def shell(command: str, **given: Any) -> dict[str, Any]:
    return {"name": "default", "provider": "cli", "command_template": command, **given}


def rows(path: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in Path(path).read_text("utf-8").splitlines()]


def store(path: str, *stored: dict[str, Any]) -> None:
    Path(path).write_text("".join(json.dumps(row) + "\n" for row in stored), "utf-8")


def told(path: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(Path(path).read_text("utf-8"))
    return found


def shards(total: int, *flags: str) -> list[str]:
    """Run all parts, and return their files."""
    files = [f"part-{index}.jsonl" for index in range(1, total + 1)]
    for index, file in enumerate(files, 1):
        assert run(["eval", "evals", "--shard", f"{index}/{total}", "--out", file, *flags]) == 0
    return files


# --- The response cache ---


def test_what_changes_the_question_is_asked_again_and_nothing_else(folder: Path) -> None:
    def questions(case: dict[str, Any], judge: str = "Judge {{ candidate_answer }}") -> int:
        before = len(api.requests)
        evaluators = [{**JUDGED, "prompt": judge}]
        documents(folder, case, targets=(gpt(api), gpt(api, name="judge", model="n")), evaluators=evaluators)
        assert run(["eval", "evals", "--cache", "--out", "r.jsonl"]) == 0
        return len(api.requests) - before

    with chat_api(says('{"score": 1.0, "reasoning": "Hello"}')) as api:
        write(folder, {"evals/rules.instructions.md": "Be kind", "evals/a.txt": "one"})
        case = {"id": "a", **with_file("a.txt")}
        guided = {"id": "a", **with_file("rules.instructions.md")}
        assert [questions(case), questions(case), questions({**case, "id": "b"})] == [2, 0, 0]
        assert [questions(case, "Look at {{ candidate_answer }}") for _ in range(2)] == [1, 0]
        write(folder, {"evals/a.txt": "two"})
        assert [questions(case), questions(case)] == [2, 0], "the judge sees the question too"
        assert questions(guided) > 0
        write(folder, {"evals/rules.instructions.md": "Be short"})
        assert [questions(guided) > 0, questions(guided)] == [True, 0]


def test_errors_are_asked_again(folder: Path) -> None:
    with chat_api(fails(400, "no"), says("Hello")) as api:
        documents(folder, "a", targets=(gpt(api),))
        assert [run(["eval", "evals", "--cache"]) for _ in range(3)] == [4, 0, 0]
        assert len(api.requests) == 2


def test_question_of_many_cases_is_asked_once(folder: Path) -> None:
    ids = [f"c{number}" for number in range(8)]
    with chat_api(replace(says("Hello!"), delay_s=0.2)) as api:
        documents(folder, *ids, targets=(gpt(api, model=PRICED),))
        assert run(["eval", "evals", "--cache", "--workers", "8", "--out", "r.jsonl"]) == 0
        assert len(api.requests) == 1
    found = rows("r.jsonl")
    assert sorted(row["cached"] for row in found) == [False] + [True] * 7
    assert sum(row["cost_usd"] for row in found) == pytest.approx(ONE_ANSWER_USD)


def test_question_of_many_cases_that_gets_no_answer_is_asked_for_each_side_by_side(folder: Path) -> None:
    ids = [f"c{number}" for number in range(8)]
    with chat_api(replace(fails(400), delay_s=0.2)) as api:
        documents(folder, *ids, targets=(gpt(api),))
        assert run(["eval", "evals", "--cache", "--workers", "8"]) == 4
        assert len(api.requests) == 8
        assert api.most_at_once > 2


def test_no_form_of_a_secret_is_in_any_file(folder: Path) -> None:
    forms = [KEY, base64.b64encode(KEY.encode()).decode().rstrip("="), quote(f"{KEY}/")]
    call = {"id": "1", "type": "function", "function": {"name": KEY, "arguments": json.dumps({KEY: [KEY]})}}
    message = {"role": "assistant", "content": f"Hello {' '.join(forms)}", "tool_calls": [call]}
    with chat_api(says(None, message=message)) as api:
        targets = (gpt(api, headers={"X-Again": "${{ GREETER_KEY }}"}), gpt(api, name="judge"))
        documents(folder, "a", targets=targets, evaluators=[SAYS_HELLO, JUDGED])
        dumps = ["--dump-prompts", "--dump-traces", "--include-trace"]
        assert run(["eval", "evals", "--cache", *dumps]) == 4
        assert run(["eval", "evals", "--record", "recorded", "--out", "r.yaml", "--output-format", "yaml", *dumps]) == 4
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert len(files) > 10
    assert [path for path in files if any(form.encode() in path.read_bytes() for form in forms)] == []
    assert not any(KEY in str(path) for path in files)


@pytest.mark.parametrize(
    "damage", [{"duration_ms": -1}, {"request": {"top_p": float("nan")}}], ids=["negative-time", "nan"]
)
def test_damaged_entry_counts_as_absent(folder: Path, damage: dict[str, Any]) -> None:
    documents(folder, "a", targets=(shell("echo Hello"),))
    assert run(["eval", "evals", "--cache"]) == 0
    (path,) = folder.glob(".agentv/cache/*/*.json")
    entry = json.loads(path.read_text("utf-8"))
    path.write_text(json.dumps({**entry, "response": {**entry["response"], **damage}}), "utf-8")
    assert run(["eval", "evals", "--cache", "--out", "r.jsonl"]) == 0


@pytest.mark.parametrize("text", ["", "{", "[" * 100_000, "null", '{"version": 1}', "\x00", '{"version": 2}'])
def test_entry_that_is_none_counts_as_absent(folder: Path, text: str) -> None:
    documents(folder, "a", targets=(shell("echo Hello"),))
    assert run(["eval", "evals", "--cache"]) == 0
    (path,) = folder.glob(".agentv/cache/*/*.json")
    path.write_text(text, "utf-8")
    assert run(["eval", "evals", "--cache", "--out", "r.jsonl"]) == 0
    assert rows("r.jsonl")[0]["cached"] is False


def replies(*texts: str) -> Callable[[dict[str, Any]], Reply]:
    """Return a step that says one text after the other, and the last one again and again."""
    left = list(texts)
    return lambda _: says(left.pop(0) if len(left) > 1 else left[0])


def test_unreadable_reply_of_a_judge_does_not_stand_for_the_next_one(folder: Path) -> None:
    with chat_api(replies("what?", "what?", '{"score": 1.0, "reasoning": "fine"}')) as api:
        documents(folder, "a", targets=(GREETS, gpt(api, name="judge")), evaluators=[JUDGED])
        assert run(["eval", "evals", "--cache"]) == 0


def test_price_that_is_set_later_counts_for_stored_answers(folder: Path) -> None:
    with chat_api(says("Hello")) as api:
        cheap = {"name": "cheap", "type": "cost", "max_usd": 1, "required": True}
        documents(folder, "a", targets=(gpt(api),), evaluators=[SAYS_HELLO, cheap])
        assert run(["eval", "evals", "--cache"]) == 4
        price = {"input_per_mtok": 1, "output_per_mtok": 1}
        write(folder, {".agentv/config.yaml": json.dumps({"$schema": "agentv-config-v2", "prices": {"m": price}})})
        assert run(["eval", "evals", "--cache"]) == 0


def test_command_with_another_environment_is_asked_again(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    documents(folder, "a", targets=(shell("echo Hello $SIZE", env={"SIZE": "${{ SIZE }}"}),))
    for size in ("small", "large"):
        monkeypatch.setenv("SIZE", size)
        assert run(["eval", "evals", "--cache", "--out", "r.jsonl"]) == 0
    assert rows("r.jsonl")[0]["candidate_answer"] == "Hello large"


def test_batch_whose_answers_are_all_known_asks_nobody(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    session = Session()
    monkeypatch.setattr(asking, "open_provider", lambda *_: session)
    target = {"name": "default", "provider": "vscode", "provider_batching": True}
    documents(folder, "a", "b", targets=(target,), evaluators=[{**SAYS_HELLO, "value": "answer"}])
    assert [run(["eval", "evals", "--cache"]) for _ in range(2)] == [0, 0]
    assert [[name for name, _ in batch] for batch in session.together] == [["a", "b"]]


def test_clearing_leaves_files_of_others(folder: Path) -> None:
    mine = {f"x/ab/{'ab' + '0' * 62}.json": '{"mine": 1}', f"x/ab/{'f' * 64}.json": "[]", f"y/cd/{'c' * 64}.json": "[]"}
    write(folder, mine)
    (folder / "x/cd").symlink_to(folder / "y/cd")
    assert run(["cache", "clear", "--cache-dir", "x"]) == 0
    assert [name for name in mine if not (folder / name).exists()] == []


@pytest.mark.parametrize("command", ["info", "clear"])
def test_cache_that_is_a_file_is_a_mistake(command: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "c").write_text("mine", "utf-8")
    assert run(["cache", command, "--cache-dir", "c"]) == 2
    assert "'c' is not a directory" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["info", "clear"])
def test_cache_that_somebody_else_clears_is_no_error(
    folder: Path, command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    store_ = Store(folder / "c")
    for digit in "ab":
        store_.keep(digit * 64, {}, Response("Hello", (), has_trace=False))
    listed = Store._files  # noqa: SLF001  # the moment between the two cannot be had otherwise

    def vanishing(self: Store) -> Iterator[tuple[Path, int]]:
        for path, size in listed(self):
            path.unlink()
            yield path, size

    monkeypatch.setattr(Store, "_files", vanishing)
    assert run(["cache", command, "--cache-dir", "c"]) == 0


def test_answer_is_kept_though_somebody_clears_at_that_moment(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened = Path.open
    times: list[Path] = []

    def cleared(self: Path, mode: str = "r", *arguments: Any, **given: Any) -> Any:
        if mode == "xb" and not times:
            times.append(self)
            self.parent.rmdir()
        return opened(self, mode, *arguments, **given)

    monkeypatch.setattr(Path, "open", cleared)
    store_ = Store(folder / "c")
    store_.keep("a" * 64, {}, Response("Hello", (), has_trace=False))
    assert (len(times), store_.contents().files) == (1, 1)


# --- Recordings ---


def test_recording_holds_elsewhere_without_keys_environment_or_programs(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MODEL", PRICED)
    with chat_api(lambda body: says('{"score": 0.9}' if "score" in str(body) else "Hello")) as api:
        monkeypatch.setenv("OPENAI_API_KEY", KEY)
        monkeypatch.setenv("OPENAI_BASE_URL", api.base_url)
        targets = (
            {"name": "default", "provider": "openai", "model": "${{ MODEL }}"},
            gpt(api, name="judge", model="${{ MODEL }}", base_url="${{ OPENAI_BASE_URL }}"),
            shell("cat {FILES}", name="cat", healthcheck={"type": "command", "command_template": "test $MODEL"}),
        )
        cases: list[dict[str, Any]] = [
            {"id": "a", "evaluators": [JUDGED]},
            {"id": "b", "execution": {"target": "cat"}, **with_file("hello.txt")},
        ]
        write(folder, {"here/.git/config": "", "here/evals/hello.txt": "Hello"})
        documents(folder / "here", *cases, targets=targets)
        monkeypatch.chdir(folder / "here")
        flags = ["--repeat", "2", "--seed", "7"]
        assert run(["eval", "evals", "--record", "recorded", "--out", "1.jsonl", "--workers", "3", *flags]) == 0
    shutil.move(folder / "here", folder / "there")
    monkeypatch.chdir(folder / "there")
    for name in ("MODEL", "OPENAI_API_KEY", "OPENAI_BASE_URL", "GREETER_KEY"):
        monkeypatch.delenv(name)
    assert run(["eval", "evals", "--replay", "recorded", "--out", "2.jsonl", *flags]) == 0
    told_anew = {"timestamp", "cached", "requests", "duration_ms", "cost_usd", "judge_cost_usd"}
    before, after = (
        sorted(([each["eval_id"], each["trial"], each] for each in rows(name)), key=lambda known: known[:2])
        for name in ("1.jsonl", "2.jsonl")
    )
    assert [{k: v for k, v in row.items() if k not in told_anew} for *_, row in after] == [
        {k: v for k, v in row.items() if k not in told_anew} for *_, row in before
    ]
    assert all(row["cached"] and not row["cost_usd"] for *_, row in after)


def test_recording_holds_what_the_cache_answered(folder: Path) -> None:
    documents(folder, "a", targets=(shell("echo Hello"),))
    assert run(["eval", "evals", "--cache"]) == 0
    assert run(["eval", "evals", "--cache", "--record", "recorded"]) == 0
    (folder / "recorded").mkdir(exist_ok=True)
    assert run(["eval", "evals", "--replay", "recorded"]) == 0


def test_replay_gives_every_case_the_answer_that_was_recorded(folder: Path) -> None:
    cases = [{"id": word, "evaluators": [{**SAYS_HELLO, "value": word}]} for word in ("first", "second")]
    with chat_api(says("the first"), says("the second")) as api:
        documents(folder, *cases, targets=(gpt(api),))
        assert run(["eval", "evals", "--record", "recorded", "--out", "1.jsonl"]) == 0
    assert run(["eval", "evals", "--replay", "recorded", "--out", "2.jsonl"]) == 0


def test_recording_of_an_agent_that_edits_files_is_found(folder: Path) -> None:
    write(folder, {"evals/f.txt": "old"})
    documents(folder, {"id": "a", **with_file("f.txt")}, targets=(shell("echo new > {FILES}; echo Hello"),))
    assert run(["eval", "evals", "--record", "recorded"]) == 0
    write(folder, {"evals/f.txt": "old"})
    assert run(["eval", "evals", "--replay", "recorded"]) == 0


def test_agent_that_removes_its_files_fails_alone(folder: Path) -> None:
    write(folder, {"evals/f.txt": "old"})
    documents(folder, {"id": "a", **with_file("f.txt")}, "b", targets=(shell("rm -f {FILES}; exit 1"),))
    assert run(["eval", "evals", "--cache", "--max-retries", "1", "--out", "r.jsonl"]) == 4
    assert [row["error_kind"] for row in rows("r.jsonl")] == ["process", "process"]


@pytest.mark.parametrize("recorded", [["a"], []], ids=["one-of-two", "none"])
def test_replay_that_lacks_answers_does_not_pass_whatever_errors_are_allowed(folder: Path, recorded: list[str]) -> None:
    documents(folder, "a", "b", targets=(shell("echo Hello {EVAL_ID}"),))
    (folder / "recorded").mkdir()
    for each in recorded:
        assert run(["eval", "evals", "--record", "recorded", "--eval-id", each]) == 0
    assert run(["eval", "evals", "--replay", "recorded", "--max-errors", "2"]) == 4


def test_plan_and_recording_are_all_that_a_replay_needs(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    documents(folder, "a", targets=(shell("echo Hello"),))
    assert run(["compile", "evals", "--out", "plan.json"]) == 0
    assert run(["eval", "plan.json", "--record", "recorded"]) == 0
    (folder / "else/.git").mkdir(parents=True)
    shutil.copytree("recorded", "else/recorded")
    shutil.copy("plan.json", "else")
    monkeypatch.chdir(folder / "else")
    assert run(["eval", "plan.json", "--replay", "recorded"]) == 0


def test_recording_that_cannot_be_written_is_no_success(folder: Path) -> None:
    documents(folder, "a", targets=(shell("echo Hello"),))
    write(folder, {"recorded": "a file"})
    assert run(["eval", "evals", "--record", "recorded"]) in (2, 4)


# --- Shards ---


def test_merged_figures_are_those_of_one_run(folder: Path) -> None:
    with chat_api(says("Hello")) as api:
        both = (gpt(api, model=PRICED), gpt(api, name="judge", model="nobody-knows-it"))
        documents(folder, *"abcde", targets=both, gate={"min_mean_score": 0.9})
        picky = {"id": "a", "evaluators": [SAYS_HELLO, {**SAYS_HELLO, "name": "bye", "value": "Bye"}]}
        documents(folder, picky, {"id": "z", "evaluators": [JUDGED]}, targets=both, name="evals/y.yaml")
        assert run(["eval", "evals", "--out", "whole.jsonl", "--repeat", "2"]) == 1
        files = shards(3, "--repeat", "2")
    assert run(["report", *reversed(files), "--expect-shards", "3", "--out", "all.yaml"]) == 1
    whole, merged = told("whole.report.json"), told("all.report.json")
    assert merged == whole
    assert run(["report", "all.yaml"]) == 1


def test_empty_shard_says_so_and_ends_well(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    documents(folder, "a")
    files = shards(3)
    assert "the shard is empty" in capsys.readouterr().out
    assert told("part-3.report.json")["shard"] == {"index": 3, "total": 3, "cases": 1}
    assert run(["report", *files, "--expect-shards", "3"]) == 0


@pytest.mark.parametrize("given", ["missing", "wrong-number", "another-plan", "killed"])
def test_empty_shard_does_not_hide_that_others_are_missing(folder: Path, given: str) -> None:
    documents(folder, "a")
    shards(2)
    match given:
        case "missing":
            arguments = ["part-2.jsonl", "--expect-shards", "2"]
        case "wrong-number":
            arguments = ["part-2.jsonl", "--expect-shards", "3"]
        case "another-plan":
            documents(folder, "b")
            assert run(["eval", "evals", "--shard", "2/2", "--out", "other.jsonl"]) == 0
            arguments = ["part-2.jsonl", "other.jsonl", "--expect-shards", "2"]
        case _:
            Path("part-1.jsonl").write_text("", "utf-8")
            Path("part-1.report.json").unlink()
            arguments = ["part-1.jsonl", "part-2.jsonl", "--expect-shards", "2"]
    assert run(["report", *arguments]) == 1


def test_parts_may_have_the_same_name_in_folders_of_their_own(folder: Path) -> None:
    documents(folder, "a", "b")
    for index in (1, 2):
        assert run(["eval", "evals", "--shard", f"{index}/2", "--out", f"shard-{index}/results.jsonl"]) == 0
    assert run(["report", "shard-1/results.jsonl", "shard-2/results.jsonl", "--expect-shards", "2"]) == 0


def durations(path: str, **given_ms: int) -> str:
    """Write results that took so long, and return their name."""
    store(path, *({**row, "duration_ms": given_ms.get(row["eval_id"], 0)} for row in rows("before.jsonl")))
    return path


def test_case_that_is_in_no_shard_is_missed(folder: Path) -> None:
    documents(folder, *"abc")
    assert run(["eval", "evals", "--out", "before.jsonl"]) == 0
    one = durations("one.jsonl", a=1000, b=400, c=400)
    other = durations("other.jsonl", a=1000, b=1, c=1000)
    assert run(["eval", "evals", "--shard", "1/2", "--balance", one, "--out", "1.jsonl"]) == 0
    assert run(["eval", "evals", "--shard", "2/2", "--balance", other, "--out", "2.jsonl"]) == 0
    assert {row["eval_id"] for row in (*rows("1.jsonl"), *rows("2.jsonl"))} == {"a", "c"}, "the premise"
    assert run(["report", "1.jsonl", "2.jsonl", "--expect-shards", "2"]) == 1


def test_cases_that_took_no_time_are_shared_out_all_the_same(folder: Path) -> None:
    documents(folder, *"abcdef")
    assert run(["eval", "evals", "--out", "before.jsonl"]) == 0
    files = shards(3, "--balance", durations("none.jsonl"))
    assert [len(rows(file)) for file in files] == [2, 2, 2]


def test_balance_of_another_suite_shares_out_all_the_same(folder: Path) -> None:
    documents(folder, *"abcd")
    assert run(["eval", "evals", "--out", "before.jsonl"]) == 0
    foreign = durations("foreign.jsonl", a=900, b=5, c=70, d=8)
    documents(folder, *"efgh")
    assert sorted(row["eval_id"] for file in shards(2, "--balance", foreign) for row in rows(file)) == [*"efgh"]


@pytest.mark.parametrize("names", [("part.1", "part.2")], ids=["numbers"])
def test_every_results_file_has_a_run_report_of_its_own(folder: Path, names: tuple[str, str]) -> None:
    documents(folder, "a", "b")
    for index, name in enumerate(names, 1):
        form = "yaml" if name.endswith(".yaml") else "jsonl"
        flags = ["--shard", f"{index}/2", "--output-format", form, "--out", name]
        # Whoever refuses the second name has mended it too.
        assert run(["eval", "evals", *flags]) in ((0,) if index == 1 else (0, 2))
    assert len([*folder.glob("p*.report.json")]) == 2


def test_part_that_was_killed_in_the_middle_of_a_row_did_not_end(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    documents(folder, "a", "b")
    first, second = shards(2)
    Path(first).write_text(Path(first).read_text("utf-8")[:-40], "utf-8")
    Path("part-1.report.json").unlink()
    assert run(["report", first, second, "--expect-shards", "2"]) == 1
    assert first in capsys.readouterr().out


def test_run_report_of_an_earlier_run_does_not_speak_for_a_killed_one(folder: Path) -> None:
    documents(folder, "a", "b")
    assert run(["eval", "evals", "--out", "r.jsonl"]) == 0
    before = rows("r.jsonl")
    # It outlives its parent, but not for long.
    waits = shell(f"n=0; until [ -e {folder}/go ] || [ $n -gt 600 ]; do n=$((n+1)); sleep 0.1; done", name="waits")
    documents(folder, "a", "b", {"id": "c", "execution": {"target": "waits"}}, targets=(GREETS, waits))
    with started("eval", "evals", "--out", "r.jsonl") as process:
        wait_until(lambda: len(known := whole_rows("r.jsonl")) == 2 and known != before)
        process.kill()
    (folder / "go").touch()
    assert run(["report", "r.jsonl"]) != 0


def test_merging_does_not_make_up_for_a_missing_part(folder: Path) -> None:
    documents(folder, "a", "b")
    first, _ = shards(2)
    assert run(["report", first, "--expect-shards", "2", "--out", "all.jsonl"]) == 1
    assert run(["report", "all.jsonl"]) == 1


@pytest.mark.parametrize("junit", ["all.jsonl", "all.report.json"])
def test_one_output_does_not_replace_another(folder: Path, junit: str) -> None:
    documents(folder, "a")
    assert run(["eval", "evals", "--out", "r.jsonl"]) == 0
    assert run(["report", "r.jsonl", "--out", "all.jsonl", "--junit", junit]) == 2


def test_merged_rows_do_not_go_into_a_file_named_by_a_dash(folder: Path) -> None:
    documents(folder, "a")
    assert run(["eval", "evals", "--out", "r.jsonl"]) == 0
    assert run(["report", "r.jsonl", "--out", "-"]) == 2
    assert not Path("-").exists()


@pytest.mark.parametrize(("form", "out"), [("jsonl", "r.yaml"), ("yaml", "r.jsonl")])
def test_what_eval_wrote_can_be_reported(folder: Path, form: str, out: str) -> None:
    documents(folder, "a")
    # Refusing it before anything is asked would do as well.
    assert (code := run(["eval", "evals", "--output-format", form, "--out", out])) in (0, 2)
    assert code == 2 or run(["report", out]) == 0


# --- Budgets, gates and ends ---


@pytest.mark.parametrize(("share", "code", "ran"), [(0.5, 5, 1), (1, 5, 1), (2, 5, 2), (3.5, 5, 4), (4, 0, 4)])
def test_at_the_budget_nothing_new_begins_and_everybody_says_so(
    folder: Path, share: float, code: int, ran: int, capsys: pytest.CaptureFixture[str]
) -> None:
    with chat_api(says("Hello")) as api:
        documents(folder, *"abcd", targets=(gpt(api, model=PRICED),))
        assert run(["eval", "evals", "--out", "r.jsonl", "--max-cost", f"{share * ONE_ANSWER_USD:.9f}"]) == code
    gate = told("r.report.json")["gate"]
    assert (gate["exit_code"], gate["verdict"], len(rows("r.jsonl"))) == (code, "budget" if code else "pass", ran)
    assert f"gate: {'not passed' if code else 'passed'}" in capsys.readouterr().out
    assert run(["report", "r.jsonl"]) == code


def test_suite_without_money_does_not_hold_up_the_others(folder: Path) -> None:
    with chat_api(says("Hello")) as api:
        targets = (gpt(api, model=PRICED),)
        documents(folder, *"abc", targets=targets, gate={"max_cost_usd": 1.2 * ONE_ANSWER_USD})
        documents(folder, *"abc", targets=targets, name="evals/y.yaml")
        assert run(["eval", "evals", "--out", "r.jsonl"]) == 5
        assert [row["suite"] for row in rows("r.jsonl")].count("evals/y.yaml") == 3
        assert run(["eval", "evals", "--resume", "r.jsonl"]) == 5
        assert len(api.requests) == 5


def test_every_shard_has_its_share_of_the_budget(folder: Path) -> None:
    with chat_api(says("Hello")) as api:
        documents(folder, *"abcd", targets=(gpt(api, model=PRICED),))
        budget = ["--max-cost", f"{2 * ONE_ANSWER_USD:.9f}"]
        for index in (1, 2):
            assert run(["eval", "evals", "--shard", f"{index}/2", "--out", f"{index}.jsonl", *budget]) == 5
        assert len(api.requests) == 2
    assert run(["report", "1.jsonl", "2.jsonl", "--expect-shards", "2"]) == 5


def test_model_without_a_price_does_not_pass_on_the_second_try(folder: Path) -> None:
    with chat_api(says("Hello")) as api:
        documents(folder, "a", targets=(gpt(api, model="nobody-knows-it"),))
        assert run(["eval", "evals", "--out", "r.jsonl", "--max-cost", "1"]) == 1
        assert run(["eval", "evals", "--resume", "r.jsonl", "--max-cost", "1"]) == 1
    assert told("r.report.json")["unpriced_models"] == ["nobody-knows-it"]


def test_interrupted_shard_keeps_its_rows_and_everybody_says_so(folder: Path) -> None:
    waits = shell("sleep 60", name="waits")
    documents(folder, "a", {"id": "b", "execution": {"target": "waits"}}, targets=(GREETS, waits))
    with started("eval", "evals", "--out", "r.jsonl", "--shard", "1/1") as process:
        wait_until(lambda: len(whole_rows("r.jsonl")) == 1)
        process.send_signal(signal.SIGINT)
        assert process.wait(ENDS_S) == 130
    report = told("r.report.json")
    assert (report["gate"]["exit_code"], report["stopped"], report["counts"]["rows"]) == (130, "interrupted", 1)
    assert run(["report", "r.jsonl", "--expect-shards", "1"]) == 130


@pytest.mark.parametrize(
    ("blocked", "flags"), [("r.report.json", []), ("j.xml", ["--junit", "j.xml"])], ids=["report", "junit"]
)
def test_report_that_cannot_be_written_is_known_before_or_told_with_the_results(
    folder: Path, blocked: str, flags: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    documents(folder, "a")
    (folder / blocked).mkdir()
    code = run(["eval", "evals", "--out", "r.jsonl", *flags])
    if Path("r.jsonl").exists():
        assert code == 4
        assert "1 case" in capsys.readouterr().out
    else:
        assert code == 2


def test_failure_of_the_last_case_stops_nothing(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    documents(folder, "a", {"id": "b", "evaluators": [{**SAYS_HELLO, "value": "Bye"}]})
    assert run(["eval", "evals", "--out", "r.jsonl", "--fail-fast"]) == 1
    out = capsys.readouterr().out
    assert "not every trial" not in out
    assert "the rest runs with" not in out


# --- Dumps ---


def test_every_question_is_dumped_below_the_folder_whatever_its_case_is_called(folder: Path) -> None:
    hostile = ["../x", "a/b", "a?b", "a b", "x" * 300, "日本語", "größe", "CON", ".", "..", "-rf", "a\u202eb"]
    judge = {**GREETS, "name": "judge", "response": '{"score": 1.0}'}
    for name in ("evals/x.yaml", "evals/y.yaml"):
        documents(folder, *hostile, targets=(GREETS, judge), name=name, evaluators=[JUDGED])
    before = {path for path in folder.rglob("*") if path.is_file()}
    assert run(["eval", "evals", "--out", "r.jsonl", "--dump-dir", "d", "--dump-prompts", "--dump-traces"]) == 0
    written = {path for path in folder.rglob("*") if path.is_file()} - before - {folder / "r.jsonl"}
    assert {path.parent for path in written} == {folder, folder / "d/prompts", folder / "d/traces"}
    prompts = [json.loads(path.read_text("utf-8")) for path in (folder / "d/prompts").iterdir()]
    assert len(prompts) == 2 * 2 * len(hostile)
    assert {(each["eval_id"], each["suite"], each["target"]) for each in prompts} == {
        (case, f"evals/{name}.yaml", target) for case in hostile for name in "xy" for target in ("default", "judge")
    }
    assert len([*(folder / "d/traces").iterdir()]) == 2 * len(hostile)


def test_deep_arguments_of_a_call_do_not_end_a_run_that_dumps_traces(folder: Path) -> None:
    deep = "[" * 199 + "]" * 199
    call = {"id": "1", "type": "function", "function": {"name": "t", "arguments": f'{{"a": {deep}}}'}}
    with chat_api(says(None, message={"role": "assistant", "content": "Hello", "tool_calls": [call]})) as api:
        documents(folder, "a", targets=(gpt(api),))
        assert run(["eval", "evals", "--out", "r.jsonl"]) == 0
        assert run(["eval", "evals", "--out", "r.jsonl", "--dump-traces"]) == 0


# --- The command line ---


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--shard", "0/4"], "such as 2/4"),
        (["--shard", "5/4"], "such as 2/4"),
        (["--shard", "1"], "such as 2/4"),
        (["--shard", "-1/2"], "such as 2/4"),
        (["--balance", "r.jsonl"], "--shard"),
        (["--shard", "1/2", "--balance", "gone.jsonl"], "gone.jsonl"),
        (["--shard", "1/2", "--balance", "evals/x.yaml"], "not a result row"),
        (["--cache-dir", "x"], "--cache"),
        (["--no-cache", "--cache-dir", "x"], "--cache"),
        (["--record", "x", "--replay", "evals"], "--record and --replay"),
        (["--record", "x", "--dry-run"], "--record and --dry-run"),
        (["--replay", "evals", "--dry-run"], "--replay and --dry-run"),
        (["--replay", "evals", "--cache"], "--replay and --cache"),
        (["--replay", "gone"], "--record"),
        (["--dump-dir", "x"], "--dump-prompts or --dump-traces"),
        (["--max-cost", "-1"], "--max-cost"),
        (["--max-cost", "nan"], "--max-cost"),
    ],
)
def test_wrong_combination_is_a_usage_error_that_says_what_to_do(
    folder: Path, flags: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    documents(folder, "a")
    assert run(["eval", "evals", "--out", "r.jsonl", *flags]) == 2
    assert said in capsys.readouterr().err
    assert not Path("r.jsonl").exists()


@pytest.mark.parametrize("flag", ["--max-cost", "--agent-timeout"])
def test_infinity_is_a_usage_error(folder: Path, flag: str) -> None:
    documents(folder, "a")
    assert run(["eval", "evals", flag, "inf"]) == 2


@pytest.mark.parametrize("flag", ["--replay", "--record", "--resume"])
def test_empty_value_is_a_usage_error_and_nobody_is_asked(folder: Path, flag: str) -> None:
    with chat_api(says("Hello")) as api:
        documents(folder, "a", targets=(gpt(api),))
        assert run(["eval", "evals", flag, ""]) == 2
        assert api.requests == []


# --- Processes ---


@contextmanager
def started(*arguments: str) -> Iterator[subprocess.Popen[bytes]]:
    """Run the command line in a process that ends with the block at the latest."""
    process = subprocess.Popen(
        [sys.executable, "-m", "agentv_ci", *arguments],
        env=clean_environment(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        stdin=subprocess.DEVNULL,
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait(ENDS_S)


def whole_rows(path: str) -> list[dict[str, Any]]:
    """The rows of a file that is being written."""
    if not Path(path).exists():
        return []
    return [json.loads(line) for line in Path(path).read_text("utf-8").splitlines(keepends=True) if line.endswith("\n")]


def wait_until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + ENDS_S
    while not holds():
        assert time.monotonic() < deadline, "it never came to that"
        time.sleep(0.02)
