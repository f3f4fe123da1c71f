"""Events among other text, cut off, and split in every way: they are read as they are, or are an error."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from contextlib import suppress
from pathlib import Path

import pytest

from agentv_ci.contracts.exchange import ProcessResult, Response
from agentv_ci.execute.agents.events import AgentFailed, FinalEvent, NotEvents, Progress, read_events
from agentv_ci.execute.providers import claude_code, codex, copilot_cli, gemini_cli

STREAMS = Path(__file__).parent / "streams"
READERS: Mapping[str, Callable[[ProcessResult], Response | None]] = {
    "claude": claude_code.read_output,
    "codex": codex.read_output,
    "copilot": copilot_cli.read_output,
    "gemini": gemini_cli.read_output,
}
PROGRESS: Mapping[str, tuple[AbstractSet[str], Callable[[], Progress]]] = {
    "claude": (claude_code.KNOWN, claude_code.ClaudeProgress),
    "codex": (codex.KNOWN, codex.PROGRESS),
    "copilot": (copilot_cli.KNOWN, copilot_cli.PROGRESS),
    "gemini": (gemini_cli.KNOWN, gemini_cli.PROGRESS),
}
WITH_TOOLS = {
    "claude": "claude/stream-tool",
    "codex": "codex/tool",
    "copilot": "copilot/tool",
    "gemini": "gemini/stream-tool",
}


def recorded(agent: str) -> list[str]:
    return (STREAMS / f"{WITH_TOOLS[agent]}.jsonl").read_text("utf-8").splitlines()


def read(agent: str, text: str) -> Response:
    found = READERS[agent](ProcessResult(0, text, ""))
    assert found is not None
    return found


def joined(before: str = "", after: str = "\n") -> Callable[[list[str]], str]:
    return lambda lines: "".join(f"{before}{line}{after}" for line in lines)


DAMAGE: Mapping[str, Callable[[list[str]], str]] = {
    "a warning before each event": joined("MCP issues detected. Run /mcp list for status."),
    "a warning after each event": joined("", " (node:7) Warning: {url: x} is deprecated\n"),
    "a warning with an object": joined('Config {"type": "odd", "a": {"type": "user"}} is ignored.'),
    "a warning with a brace": joined("{ } {{ {'type': 1} "),
    "colours": joined("\x1b[2K\x1b[1G", "\x1b[0m\n"),
    "a progress line": joined("\rThinking…\r", "\n"),
    "CRLF": joined("", "\r\n"),
    "a byte order mark": lambda lines: "\ufeff" + "\n".join(lines),
    "a byte order mark before each event": joined("\ufeff"),
    "blank lines": joined("\n\n  ", "\n\n"),
    "one line": joined("", ""),
    "one line with blanks": joined("", "  "),
    "two events on a line": lambda lines: "".join(f"{line}{'' if n % 2 else chr(10)}" for n, line in enumerate(lines)),
    "a NUL character": joined("\0"),
    "no last line break": "\n".join,
    "a cut event at the end": lambda lines: "\n".join([*lines, lines[-1][:40]]),
}


@pytest.mark.parametrize("agent", READERS)
@pytest.mark.parametrize("damage", DAMAGE)
def test_events_are_read_among_other_text(agent: str, damage: str) -> None:
    lines = recorded(agent)
    whole = read(agent, "\n".join(lines))
    assert (whole.answer, len(whole.calls)) == ("MOCK-ANSWER 42", 1)
    assert read(agent, DAMAGE[damage](lines)) == whole


PIECES = [
    '{"type": "init", "model": "gemini-3-pro"}',
    '{"type": "message", "role": "assistant", "content": "The capital ", "delta": true}',
    '{"type": "message", "role": "assistant", "content": "is Paris.", "delta": true}',
    '{"type": "result", "status": "success", "stats": {}}',
]


def test_a_warning_before_a_piece_of_an_answer_takes_nothing_of_it() -> None:
    glued = "\n".join(f"Warning!{line}" for line in PIECES)
    assert read("gemini", glued).answer == "The capital is Paris."


@pytest.mark.parametrize("rest", ["\n", "", " and a warning\n"])
@pytest.mark.parametrize("place", [1, 2])
def test_a_piece_of_an_answer_that_is_cut_off_is_an_error(rest: str, place: int) -> None:
    lines = [f"{line}\n" for line in PIECES]
    lines[place] = PIECES[place][:60] + rest
    with pytest.raises(AgentFailed, match="an event is cut off") as caught:
        read("gemini", "".join(lines))
    assert caught.value.kind == "malformed"


@pytest.mark.parametrize("agent", READERS)
def test_an_output_that_ends_early_has_no_other_answer(agent: str) -> None:
    text = "\n".join(recorded(agent))
    for end in range(0, len(text), 97):
        with suppress(AgentFailed, NotEvents):
            assert read(agent, text[:end]).answer == "MOCK-ANSWER 42"


def test_a_long_line_of_braces_is_not_searched_for_long() -> None:
    line = '{"type": "result", "a": ' * 100_000
    with pytest.raises(NotEvents):
        read_events(line, {"result"})


def heard(agent: str, *chunks: bytes) -> tuple[bool, float | None]:
    """Return whether an answer is complete after some output, and when it was."""
    times = iter(range(100))
    known, progress = PROGRESS[agent]
    final = FinalEvent(known, progress(), lambda: next(times))
    for chunk in chunks:
        final(1, chunk)
    return final.done.is_set(), final.at_s


@pytest.mark.parametrize("agent", READERS)
@pytest.mark.parametrize("size", [1, 7, 1_000_000])
def test_the_final_event_is_noticed_whatever_the_output_is_cut_into(agent: str, size: int) -> None:
    data = "\n".join(recorded(agent)).encode()
    chunks = [data[start : start + size] for start in range(0, len(data), size)]
    assert heard(agent, *chunks)[0]
    assert not heard(agent, *chunks[:-1], chunks[-1][:-1])[0]
    assert heard(agent, b"Warning: ", *chunks, b"\n", b"more text")[0]


def test_only_standard_output_has_events() -> None:
    final = FinalEvent(claude_code.KNOWN, claude_code.ClaudeProgress(), lambda: 0.0)
    final(2, b'{"type": "result"}\n')
    assert not final.done.is_set()


@pytest.mark.parametrize(
    ("agent", "after", "is_done"),
    [
        ("claude", {"type": "system", "subtype": "hook_response"}, True),
        ("claude", {"type": "assistant", "message": {"content": []}}, False),
        ("codex", {"type": "turn.started"}, False),
        ("codex", {"type": "item.updated"}, True),
        ("copilot", {"type": "assistant.turn_start"}, False),
        ("copilot", {"type": "session.background_tasks_changed"}, True),
        ("gemini", {"type": "tool_use"}, False),
        ("gemini", {"type": "error", "severity": "warning"}, True),
    ],
)
def test_an_agent_that_works_on_is_not_done(agent: str, after: object, is_done: bool) -> None:
    data = "\n".join(recorded(agent)).encode() + b"\n"
    more = json.dumps(after).encode() + b"\n"
    assert heard(agent, data, more) == (is_done, 0)
    assert heard(agent, data, more, data) == (True, 1)


def task(subtype: str, **more: object) -> dict[str, object]:
    return {"type": "system", "subtype": subtype, "task_id": "t1", **more}


STARTED = task("task_started", task_type="local_agent")
COMMAND = task("task_started", task_type="local_bash")
NOTIFIED = task("task_notification", status="completed")
UPDATED = task("task_updated", patch={"status": "completed"})
INIT = {"type": "system", "subtype": "init"}
SAID = {"type": "assistant", "message": {"content": []}}
RESULT = {"type": "result", "subtype": "success"}


@pytest.mark.parametrize(
    ("printed", "is_done"),
    [
        ([INIT, SAID, RESULT], True),
        ([INIT, SAID, STARTED, RESULT], False),
        ([INIT, SAID, STARTED, RESULT, NOTIFIED], True),
        ([INIT, SAID, STARTED, RESULT, UPDATED], True),
        ([INIT, SAID, STARTED, RESULT, task("task_updated", patch={"status": "running"})], False),
        ([INIT, SAID, STARTED, NOTIFIED, RESULT], True),
        ([INIT, SAID, STARTED, RESULT, NOTIFIED, INIT], False),
        ([INIT, SAID, STARTED, RESULT, NOTIFIED, INIT, SAID, RESULT], True),
        ([INIT, SAID, COMMAND, RESULT], True),
        ([INIT, SAID, task("task_started", subagent_type="Explore"), RESULT], False),
    ],
)
def test_claude_is_not_done_before_its_agents_in_the_background(printed: list[object], is_done: bool) -> None:
    assert heard("claude", *(json.dumps(event).encode() + b"\n" for event in printed))[0] is is_done
