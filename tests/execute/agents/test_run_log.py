"""The log that an agent's run leaves."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from agentv_ci.contracts.base import JsonObject
from agentv_ci.contracts.exchange import Request
from agentv_ci.execute.provider_services import ProviderServices
from agentv_ci.execute.providers.codex import run_log, summary
from tests.execute.builders import context

QUESTION = Request("a/../b c", "", "", (), timeout_s=1, cwd=Path("/"), attempt=1)
EVENT = b'{"type": "turn.started"}'


def written(
    folder: Path, *chunks: tuple[int, bytes], around: ProviderServices | None = None, whole: bool = False
) -> str:
    """Listen to chunks; return what the log says below its head."""
    services, summarize = around or context(), None if whole else summary
    with run_log(folder, "my target", QUESTION, ["codex", "-"], services=services, summarize=summarize) as listener:
        assert listener is not None
        for output, data in chunks:
            listener(output, data)
    (log,) = folder.iterdir()
    head, *lines = log.read_text("utf-8").split("# codex -\n")
    assert head == "# my target: a/../b c, attempt 2\n# started 2030-01-02T03:04:05+00:00\n"
    return "".join(lines)


def test_name_of_the_file_tells_when_what_and_which_attempt(tmp_path: Path) -> None:
    written(tmp_path)
    (log,) = tmp_path.iterdir()
    assert log.name.startswith("20300102T030405Z_my-target_a-..-b-c_attempt-2_")


def test_lines_come_whole_with_time_and_output(tmp_path: Path) -> None:
    chunks = [(1, EVENT[:9]), (2, b"war"), (1, EVENT[9:] + b"\n"), (2, b"ning\n"), (1, b"rest")]
    assert written(tmp_path, *chunks) == (
        "[+00:00] [stdout] turn.started\n[+00:00] [stderr] warning\n[+00:00] [stdout] rest\n"
    )


def test_events_may_stay_as_they_came(tmp_path: Path) -> None:
    assert written(tmp_path, (1, EVENT + b"\n"), whole=True) == f"[+00:00] [stdout] {EVENT.decode()}\n"


def test_secrets_and_what_commands_a_terminal_stay_out(tmp_path: Path) -> None:
    around = context(redact=lambda text: text.replace("canary", "***"))
    assert written(tmp_path, (2, b"\x1b[31mcanary\x1b[0m\xff\n"), around=around) == "[+00:00] [stderr] ***\ufffd\n"


def test_folder_that_takes_no_files_is_told_and_does_no_harm(tmp_path: Path) -> None:
    warned: list[str] = []
    (tmp_path / "file").write_text("", "utf-8")
    with run_log(tmp_path / "file", "t", QUESTION, [], services=context(warned=warned), summarize=None) as listener:
        assert listener is None
    assert [line.split(":")[:2] for line in warned] == [["t", " cannot write agent logs"]]


@pytest.mark.parametrize(
    ("event", "said"),
    [
        (
            {"type": "item.completed", "item": {"type": "command_execution", "command": "ls", "exit_code": 1}},
            ["command (exit 1): ls"],
        ),
        (
            {"type": "item.completed", "item": {"type": "file_change", "changes": [{"path": "a"}]}},
            ['files changed: [{"path": "a"}]'],
        ),
        (
            {"type": "item.completed", "item": {"type": "mcp_tool_call", "server": "s", "tool": "t"}},
            ["tool called: s.t"],
        ),
        ({"type": "item.completed", "item": {"type": "agent_message", "text": "Hi"}}, ["agent_message: Hi"]),
        ({"type": "item.completed", "item": {"type": "error", "message": "hm"}}, ["error: hm"]),
        ({"type": "item.started", "item": {"type": "agent_message"}}, []),
        ({"type": "turn.failed", "error": {"message": "no"}}, ["turn.failed: no"]),
        ({"type": "turn.completed", "usage": {"a": 1}}, ['turn.completed: {"a": 1}']),
        ({"type": "thread.started"}, ["thread.started"]),
        ({}, []),
    ],
)
def test_event_is_summed_up(event: JsonObject, said: list[str]) -> None:
    lines: Iterator[str] = summary(event)
    assert list(lines) == said
