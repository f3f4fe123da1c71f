"""Prompts and traces as files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from agentv_ci.base.redaction import Redactor
from agentv_ci.contracts.exchange import ChatMessage, Response
from agentv_ci.contracts.results import OutputMessage, ToolCall
from agentv_ci.execute.dumps import Dumps
from agentv_ci.results.rows import Trial
from tests.execute.builders import question, target
from tests.support.runs import case, suite

SECRET = "sk-canary-0123456789"
GPT = target(name="gpt", provider="openai", model="gpt", api_key=SECRET, headers={"x-key": SECRET})
ASKED = question(guidelines="be brief", chat=(ChatMessage("user", "6 × 7?"),))


def trial(case_id: str = "one", *, path: str = "evals/a.yaml", number: int = 1) -> Trial:
    return Trial(case(case_id, suite=path), suite(path), GPT, number, None, dry_run=False)


def dumps(folder: Path, warned: list[str] | None = None) -> Dumps:
    return Dumps(folder / "prompts", folder / "traces", Redactor({SECRET}), ([] if warned is None else warned).append)


def documents(folder: Path) -> dict[str, Any]:
    return {path.name: json.loads(path.read_text("utf-8")) for path in sorted(folder.iterdir())}


def test_every_question_is_a_file_with_the_case_in_its_name(tmp_path: Path) -> None:
    written = dumps(tmp_path)
    written.prompt(trial(), GPT, ASKED)
    written.prompt(trial(), GPT, question(attempt=1, seed=7))
    written.prompt(trial(number=2), GPT, ASKED)
    found = documents(tmp_path / "prompts")
    assert [name.split("-", 1)[0] for name in found] == ["one"] * 3
    assert [name.split(".", 1)[1] for name in found] == ["trial-1.1.json", "trial-1.2.json", "trial-2.1.json"]
    first, second, _ = found.values()
    request = first.pop("request")
    assert first == {
        "eval_id": "one",
        "suite": "evals/a.yaml",
        "trial": 1,
        "seed": None,
        "target": "gpt",
        "provider": "openai",
        "settings": {"model": "gpt", "api_key": "***", "headers": {"x-key": "***"}},
        "attempt": 1,
    }
    assert (request["prompt"], request["guidelines"]) == ("6 × 7?", "be brief")
    assert request["chat"] == [{"role": "user", "content": "6 × 7?"}]
    assert {"case_id", "sample"}.isdisjoint(request)
    assert (second["attempt"], second["request"]["seed"]) == (2, 7)
    written.forget(trial())
    written.prompt(trial(), GPT, ASKED)
    assert len(documents(tmp_path / "prompts")) == 3


def test_a_trace_has_messages_and_tool_calls(tmp_path: Path) -> None:
    call = ToolCall(tool="search", input={"q": 1}, output="found")
    message = OutputMessage(role="assistant", content=None, tool_calls=(call,))
    dumps(tmp_path).trace(trial(), Response("42", (message,), has_trace=True, model="gpt-2030"))
    (found,) = documents(tmp_path / "traces").values()
    assert (found["answer"], found["model"], found["reports_tool_calls"]) == ("42", "gpt-2030", True)
    assert found["messages"][0]["tool_calls"] == [{"tool": "search", "input": {"q": 1}, "output": "found"}]


def test_every_case_has_a_file_of_its_own_in_the_folder(tmp_path: Path) -> None:
    written = dumps(tmp_path)
    ids = ("../../etc/passwd", "a/b", "a b", "x" * 500, "...", "ünï 😀", "a\nb")
    for case_id, path in (*((each, "evals/a.yaml") for each in ids), ("a b", "evals/b.yaml")):
        written.prompt(trial(case_id, path=path), GPT, ASKED)
    assert len(documents(tmp_path / "prompts")) == len([*tmp_path.rglob("*.json")]) == len(ids) + 1


def test_a_folder_that_cannot_be_written_to_is_a_warning(tmp_path: Path) -> None:
    (tmp_path / "prompts").write_text("a file", encoding="utf-8")
    warned: list[str] = []
    dumps(tmp_path, warned).prompt(trial(), GPT, ASKED)
    assert warned == [f"cannot write '{tmp_path / 'prompts'}': File exists"]
