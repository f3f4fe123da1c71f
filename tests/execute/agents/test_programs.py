"""Agents on the command line: how they are found and called, their failures, and the logs of Codex."""

from __future__ import annotations

import json
import resource
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from agentv_ci.base import process
from agentv_ci.base.redaction import Redactor
from agentv_ci.contracts.base import JsonObject
from agentv_ci.execute.providers.codex import run_log, summary
from tests.execute.agents.builders import codex, events, script
from tests.execute.builders import answer, context, failure, question, response, target
from tests.support import clean_environment, has_ended, run_command, write
from tests.support.evals import documents

pytestmark = pytest.mark.slow

ECHO = """
import json, os, sys
said = json.dumps({"arguments": sys.argv[1:], "env": dict(os.environ), "cwd": os.getcwd(), "stdin": sys.stdin.read()})
for event in EVENTS:
    print(json.dumps(event).replace('"SAID"', json.dumps(said)))
"""


def called(provider: str, folder: Path, environ: dict[str, str] | None = None, **settings: Any) -> dict[str, Any]:
    """Return how an agent was called."""
    agent = script(folder / "agent", ECHO.replace("EVENTS", repr(events(provider.split("-", maxsplit=1)[0], "SAID"))))
    (folder / "work").mkdir(exist_ok=True)
    asked = target(provider=provider, executable=agent, **settings)
    found: dict[str, Any] = json.loads(answer(asked, root=folder, environ=environ))
    return found


CODEX = "--ask-for-approval {} exec --json --color never --skip-git-repo-check"
CLAUDE, COPILOT = "-p --output-format stream-json --verbose", "--output-format json --no-color --allow-all-tools"
GEMINI, FOLDER = "-o stream-json --skip-trust", "--add-dir WORKSPACE --mine x_y"
EVERYTHING: dict[str, Any] = {"model": "m", "args": ["--mine", "x y"], "cwd": "work"}
ALL_OF_CODEX = {**EVERYTHING, "profile": "p", "approval": "on-request", "sandbox": "workspace-write"}


@pytest.mark.parametrize(
    ("provider", "settings", "arguments"),
    [
        ("codex", {}, f"{CODEX.format('never')} -"),
        (
            "codex",
            ALL_OF_CODEX,
            f"{CODEX.format('on-request')} --profile p --model m --sandbox workspace-write {FOLDER} -",
        ),
        ("codex", {"cwd": "work", "sandbox": "read-only"}, f"{CODEX.format('never')} --sandbox read-only -"),
        ("claude-code", {}, CLAUDE),
        ("claude-code", EVERYTHING, f"{CLAUDE} --model m {FOLDER}"),
        ("copilot-cli", {}, COPILOT),
        ("copilot-cli", EVERYTHING, f"{COPILOT} --model m {FOLDER}"),
        ("gemini-cli", {}, GEMINI),
        ("gemini-cli", EVERYTHING, f"{GEMINI} -m m --include-directories WORKSPACE --mine x_y"),
    ],
)
def test_arguments(provider: str, settings: dict[str, Any], arguments: str, tmp_path: Path) -> None:
    found = called(provider, tmp_path, **settings)
    seen = ["WORKSPACE" if f"/agentv-{provider}-" in each else each for each in found["arguments"]]
    assert [each.replace(" ", "_") for each in seen] == arguments.split()
    assert found["stdin"] == "[[ ## user_query ## ]]\n\n6 × 7?"
    place = Path(found["cwd"])
    assert place == tmp_path / "work" if "cwd" in settings else f"agentv-{provider}-" in place.name


@pytest.mark.parametrize(
    ("provider", "name", "value"),
    [
        ("claude-code", "DISABLE_AUTOUPDATER", "1"),
        ("claude-code", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"),
        ("copilot-cli", "CI", "1"),
        ("gemini-cli", "GEMINI_TELEMETRY_ENABLED", "false"),
    ],
)
def test_variables_have_defaults_that_the_environment_and_the_target_override(
    provider: str, name: str, value: str, tmp_path: Path
) -> None:
    assert called(provider, tmp_path)["env"][name] in (value, clean_environment().get(name))
    assert called(provider, tmp_path, {name: "a"})["env"][name] == "a"
    assert called(provider, tmp_path, {name: "a"}, env={name: "b"})["env"][name] == "b"


SLEEPS = "subprocess.Popen(['sleep', '60'])"


@pytest.mark.parametrize(
    "body",
    [
        "say('hello')",
        "sys.stdin.close(); say('hello')",
        f"child = {SLEEPS}\nopen('pid', 'w').write(str(child.pid))\nsay('hello')",
        "say('hello')\nos.close(1)\ntime.sleep(0.3)\nopen('done', 'w')",
    ],
    ids=["answers", "does not read", "leaves a child", "closes its output"],
)
def test_an_agent_is_waited_for_and_ended_with_its_children(body: str, tmp_path: Path) -> None:
    asked = codex(tmp_path, body, cwd=str(tmp_path))
    assert answer(asked, question(prompt="x" * 1_000_000), tmp_path) == "hello"
    assert (tmp_path / "done").exists() == ("done" in body)
    assert "pid" not in body or has_ended(int((tmp_path / "pid").read_text()))


HANGS = """
import json, os, subprocess, sys, time
child = subprocess.Popen(["sleep", "60"])
open("pid", "w").write(f"{os.getpid()} {child.pid}")
for event in EVENTS:
    print(json.dumps(event), end="ENDING", flush=True)
time.sleep(60)
"""
"""Prints events and then does not end, nor does its child."""


@pytest.mark.parametrize("ending", ["\\n", "\\r\\n", ""])
@pytest.mark.parametrize("provider", ["codex", "claude-code", "copilot-cli", "gemini-cli"])
def test_an_agent_that_does_not_end_after_its_answer_is_ended_with_its_children(
    provider: str, ending: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "DONE_GRACE_S", 0.2)
    printed = repr(events(provider.split("-", maxsplit=1)[0], "hello"))
    agent = script(tmp_path / "agent", HANGS.replace("EVENTS", printed).replace("ENDING", ending))
    asked = target(provider=provider, executable=agent, cwd=str(tmp_path))
    assert answer(asked, root=tmp_path) == "hello"
    assert all(has_ended(int(pid)) for pid in (tmp_path / "pid").read_text().split())


@pytest.mark.parametrize(
    ("printed", "kind", "detail"),
    [
        ([{"type": "turn.failed", "error": {"message": "no"}}], "process", "codex: no"),
        (events("codex", "hello")[:-1], "timeout", "codex timed out after 1 s"),
        ([*events("codex", "hello"), {"type": "turn.started"}], "timeout", "codex timed out after 1 s"),
    ],
)
def test_an_agent_that_does_not_end_has_failed_as_it_says_or_by_its_time(
    printed: list[JsonObject], kind: str, detail: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "DONE_GRACE_S", 0.2)
    agent = script(tmp_path / "agent", HANGS.replace("EVENTS", repr(printed)).replace("ENDING", "\\n"))
    asked = target(provider="codex", executable=agent, cwd=str(tmp_path), timeout_seconds=1)
    error = failure(asked, root=tmp_path)
    assert (error.kind, error.detail) == (kind, detail)


MESSAGE = {
    "type": "assistant",
    "message": {"id": "m1", "model": "m", "content": [], "usage": {"input_tokens": 900, "output_tokens": 1}},
}
RESULT = {"type": "result", "usage": {"input_tokens": 900, "output_tokens": 90}, "total_cost_usd": 5.0}
STATS = {"input_tokens": 80, "output_tokens": 20, "total_tokens": 100}


@pytest.mark.parametrize(
    ("provider", "printed", "model", "tokens", "cost_usd"),
    [
        ("claude-code", [MESSAGE, {**RESULT, "is_error": True, "result": "no"}], "m", (900, 90), 5.0),
        ("claude-code", [MESSAGE, {**RESULT, "subtype": "error_max_turns"}], "m", (900, 90), 5.0),
        ("claude-code", [MESSAGE, RESULT], "m", (900, 90), 5.0),
        ("claude-code", [MESSAGE], "m", (900, 1), None),
        ("codex", [{"type": "turn.completed", "usage": RESULT["usage"]}], None, (900, 90), None),
        ("codex", [{"type": "turn.failed"}], None, None, None),
        (
            "gemini-cli",
            [{"type": "init", "model": "m"}, {"type": "result", "status": "error", "stats": STATS}],
            "m",
            (80, 20),
            None,
        ),
    ],
)
@pytest.mark.parametrize("end", ["sys.exit()", "sys.exit(3)", "time.sleep(60)"])
def test_a_failed_agent_has_its_tokens_and_cost(
    provider: str,
    printed: list[JsonObject],
    model: str | None,
    tokens: tuple[int, int] | None,
    cost_usd: float | None,
    end: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(process, "DONE_GRACE_S", 0.05)
    body = f"import json, sys, time\nfor event in {printed!r}:\n    print(json.dumps(event), flush=True)\n{end}"
    asked = target(provider=provider, executable=script(tmp_path / "agent", body), timeout_seconds=3)
    error = failure(asked, root=tmp_path)
    used = None if error.usage is None else (error.usage.input_tokens, error.usage.output_tokens)
    assert (error.model, used, error.cost_usd) == (model, tokens, cost_usd)


@pytest.mark.parametrize(
    ("reason", "warned"),
    [
        ("end_turn", []),
        ("max_tokens", ["it: an answer was truncated (max_tokens); case 'one'"]),
        ("pause_turn", ["it: an answer may not be whole (pause_turn); case 'one'"]),
    ],
)
def test_an_answer_that_may_not_be_whole_is_a_warning(reason: str, warned: list[str], tmp_path: Path) -> None:
    printed = events("claude", "half", stop_reason=reason)
    body = f"import json\nfor event in {printed!r}:\n    print(json.dumps(event))"
    said: list[str] = []
    found = response(target(provider="claude-code", executable=script(tmp_path / "agent", body)), warned=said)
    assert (found.answer, found.finish_reason, said) == ("half", reason, warned)


def turn_failed(message: str) -> str:
    return f"event(type='turn.failed', error={{'message': {message!r}}})"


@pytest.mark.parametrize(
    ("body", "kind", "detail"),
    [
        ("say('hello')\nsys.stderr.write('first\\nit broke')\nsys.exit(3)", "process", ": it broke (exit code 3)"),
        ("say('hello')\nsys.exit(3)", "process", ": no reason given (exit code 3)"),
        (turn_failed("no"), "process", ": no"),
        (turn_failed("Missing environment variable: K"), "auth", ": Missing environment variable: K"),
        ("event(type='turn.completed')", "malformed", ": no assistant message"),
        ("", "malformed", " printed nothing (exit code 0)"),
        ("print('hi')", "malformed", " printed no JSON (exit code 0): hi"),
        ("print('hi')\nsys.exit('Not logged in')", "auth", " printed no JSON (exit code 1): Not logged in"),
        ("print('x' * 11_000_000)", "process", " printed more than 10 MiB"),
        ("print('waiting', file=sys.stderr)\ntime.sleep(60)", "timeout", " timed out after 0.7 s; stderr: waiting"),
    ],
)
def test_a_failed_agent_has_a_kind_a_reason_and_its_output(body: str, kind: str, detail: str, tmp_path: Path) -> None:
    log: list[str] = []
    error = failure(codex(tmp_path, body, timeout_seconds=0.7 if kind == "timeout" else 20), root=tmp_path, log=log)
    assert (error.kind, error.detail) == (kind, f"codex{detail}")
    assert error.printed is not None
    assert ("hello" in error.printed.stdout, "waiting" in error.printed.stderr) == ("hello" in body, "waiting" in body)
    (file,) = (tmp_path / "logs" / "codex").iterdir()
    assert f"it: one: log in {file}" in log
    assert f"it: one: running {tmp_path / 'agent'} {CODEX.format('never')} -" in log
    assert ("[stderr] waiting" in file.read_text("utf-8")) == ("waiting" in body)


@pytest.mark.parametrize(
    ("setting", "value", "detail"),
    [
        ("executable", "no-such-agent", "executable 'no-such-agent' is not on PATH; install it or set 'executable'"),
        ("executable", "./gone", "executable 'ROOT/gone' does not exist (setting 'executable')"),
        ("executable", "./folder", "executable 'ROOT/folder' is a directory (setting 'executable')"),
        ("executable", "./plain", "executable 'ROOT/plain' is not executable (setting 'executable')"),
        ("executable", "./text", "codex cannot start 'ROOT/text': Exec format error (setting 'executable')"),
        ("executable", "./odd", "codex cannot start 'ROOT/odd': No such file or directory (setting 'executable')"),
        ("executable", "~missing-user/agent", "'~missing-user/agent': Could not determine home directory."),
        ("cwd", "gone", "working directory 'ROOT/gone' does not exist (setting 'cwd')"),
        ("cwd", "~missing-user/place", "'~missing-user/place': Could not determine home directory."),
    ],
)
def test_an_agent_that_cannot_start_is_named_with_its_setting(
    setting: str, value: str, detail: str, tmp_path: Path
) -> None:
    (tmp_path / "folder").mkdir()
    write(tmp_path, {"plain": "#!/bin/sh\n", "text": "not a program\n", "odd": "#!/no/such/interpreter\n"})
    for name in ("text", "odd"):
        (tmp_path / name).chmod(0o755)
    error = failure(codex(tmp_path, "say('hello')", **{setting: value}), root=tmp_path, environ={"PATH": "/usr/bin"})
    assert (error.kind, error.detail) == ("process", detail.replace("ROOT", str(tmp_path)))


def test_an_agent_is_found_in_a_relative_folder_of_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = codex(tmp_path / "bin", "say('hello')", env={"PATH": "bin"}, executable="agent")
    monkeypatch.chdir(tmp_path)
    assert answer(asked, root=tmp_path) == "hello"


EVENT = b'{"type": "turn.started"}'


def logged(folder: Path, *chunks: tuple[int, bytes], whole: bool = False) -> str:
    """Listen to chunks; return what the log has below its head."""
    asked = question(case_id="a/../b c", attempt=1)
    services = context(redact=Redactor(["canary-canary"]).text)
    summarize = None if whole else summary
    with run_log(folder, "my target", asked, ["codex", "-"], services=services, summarize=summarize) as listener:
        assert listener is not None
        for output, data in chunks:
            listener(output, data)
    (log,) = folder.iterdir()
    assert log.name.startswith("20300102T030405Z_my-target_a-..-b-c_attempt-2_")
    head, *rest = log.read_text("utf-8").split("# codex -\n")
    assert head == "# my target: a/../b c, attempt 2\n# started 2030-01-02T03:04:05+00:00\n"
    return "".join(rest)


@pytest.mark.parametrize(
    ("chunks", "whole", "expected"),
    [
        (
            [(1, EVENT[:9]), (2, b"war"), (1, EVENT[9:] + b"\n"), (2, b"ning\n"), (1, b"rest")],
            False,
            "[+00:00] [stdout] turn.started\n[+00:00] [stderr] warning\n[+00:00] [stdout] rest\n",
        ),
        ([(1, EVENT + b"\n")], True, f"[+00:00] [stdout] {EVENT.decode()}\n"),
        ([(2, b"\x1b[31mcanary-\x1b[0mcanary\xff\n")], False, "[+00:00] [stderr] ***\ufffd\n"),
    ],
    ids=["lines", "events", "secrets"],
)
def test_a_log_has_whole_lines_with_time_and_output(
    chunks: Sequence[tuple[int, bytes]], whole: bool, expected: str, tmp_path: Path
) -> None:
    assert logged(tmp_path, *chunks, whole=whole) == expected


@pytest.mark.parametrize(
    ("event", "expected"),
    [
        ({"item": {"type": "command_execution", "command": "ls", "exit_code": 1}}, ["command (exit 1): ls"]),
        ({"item": {"type": "file_change", "changes": [{"path": "a"}]}}, ['files changed: [{"path": "a"}]']),
        ({"item": {"type": "mcp_tool_call", "server": "s", "tool": "t"}}, ["tool called: s.t"]),
        ({"item": {"type": "agent_message", "text": "Hi"}}, ["agent_message: Hi"]),
        ({"item": {"type": "error", "message": "hm"}}, ["error: hm"]),
        ({"type": "item.started", "item": {"type": "agent_message"}}, []),
        ({"type": "turn.failed", "error": {"message": "no"}}, ["turn.failed: no"]),
        ({"type": "turn.completed", "usage": {"a": 1}}, ['turn.completed: {"a": 1}']),
        ({"type": "thread.started"}, ["thread.started"]),
        ({"type": None}, []),
    ],
)
def test_an_event_is_summarised(event: JsonObject, expected: list[str]) -> None:
    assert list(summary({"type": "item.completed", **event})) == expected


@pytest.mark.parametrize(("form", "has_events"), [("json", True), ("summary", False)])
def test_logs_of_codex_have_a_folder_and_a_format(
    form: str, has_events: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    warned: list[str] = []
    asked = codex(tmp_path, "say('hello')", log_dir="~/my-logs", log_format=form)
    found = response(asked, question(seed=7), tmp_path / "repository", warned=warned)
    (log,) = (tmp_path / "my-logs").iterdir()
    assert ('"type": "turn.completed"' in log.read_text("utf-8")) is has_events
    assert found.request == {"prompt": "[[ ## user_query ## ]]\n\n6 × 7?"}
    assert warned == ["it: seeds are ignored: the agent does not support them"]


@pytest.mark.parametrize("value", [" OFF ", "0", "False"])
def test_logs_of_codex_can_be_turned_off(value: str, tmp_path: Path) -> None:
    answer(codex(tmp_path, "say('hello')"), root=tmp_path, environ={"AGENTV_CODEX_STREAM_LOGS": value})
    assert not (tmp_path / "logs").exists()


def test_a_log_that_cannot_be_written_is_one_warning(tmp_path: Path) -> None:
    write(tmp_path, {"file": ""})
    warned: list[str] = []
    assert answer(codex(tmp_path, "say('hello')", log_dir="file/logs"), root=tmp_path, warned=warned) == "hello"
    prints = codex(tmp_path, "print('a line\\n' * 5_000)\nsay('hello')\nsys.stdout.write('and a rest')")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, hard))
    try:
        assert answer(prints, root=tmp_path, warned=warned) == "hello"
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert [each.split(": [")[0] for each in warned] == ["it: cannot write agent logs", "cannot write agent logs"]


def test_a_secret_split_by_colours_is_not_printed(repository: Path) -> None:
    script(repository / "agent", "import sys\nprint('key sk-\\x1b[0mabcdefgh', file=sys.stderr)\nsys.exit(1)")
    documents(repository, ["one"], {"name": "default", "provider": "codex", "executable": "./agent"}, max_retries=0)
    arguments = ("eval", "evals", "--out", "r.jsonl", "--verbose")
    done = run_command(*arguments, cwd=repository, env={"MY_API_KEY": "sk-abcdefgh"})
    assert (done.code, "***" in done.err, "sk-abcdefgh" in done.out + done.err) == (4, True, False)
