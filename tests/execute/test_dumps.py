"""Prompts and traces as files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agentv_ci.contracts.api_targets import OpenAITarget
from agentv_ci.contracts.exchange import ChatMessage, Request, Response
from agentv_ci.contracts.results import OutputMessage, ToolCall
from agentv_ci.contracts.targets import CliTarget, Target
from agentv_ci.execute.dumps import Dumps
from agentv_ci.redaction import Redactor
from agentv_ci.results.rows import Trial
from tests.report.builders import case, suite

SECRET = "sk-canary-0123456789"
GPT = OpenAITarget(name="gpt", provider="openai", model="gpt", api_key=SECRET, headers={"x-key": SECRET})


def trial(case_id: str = "one", *, path: str = "evals/a.yaml", number: int = 1) -> Trial:
    return Trial(case(case_id, suite=path), suite(path), GPT, number, None, dry_run=False)


def question(**given: Any) -> Request:
    chat = (ChatMessage("user", "6 × 7?"),)
    plain: dict[str, Any] = {"case_id": "one", "prompt": "6 × 7?", "guidelines": "be brief", "chat": chat}
    return Request(**{**plain, "timeout_s": 600.0, "cwd": Path("/repo/evals"), **given})


def dumps(folder: Path, warned: list[str] | None = None) -> Dumps:
    redactor = Redactor({SECRET})
    return Dumps(folder / "prompts", folder / "traces", redactor, ([] if warned is None else warned).append)


def documents(folder: Path) -> dict[str, Any]:
    return {path.name: json.loads(path.read_text("utf-8")) for path in sorted(folder.iterdir())}


def test_every_question_is_a_file_with_the_case_in_its_name(tmp_path: Path) -> None:
    written = dumps(tmp_path)
    written.prompt(trial(), GPT, question())
    written.prompt(trial(), GPT, question(attempt=1, seed=7))
    written.prompt(trial(number=2), GPT, question())
    found = documents(tmp_path / "prompts")
    assert [name.split("-", 1)[0] for name in found] == ["one"] * 3
    assert [name.split(".", 1)[1] for name in found] == ["trial-1.1.json", "trial-1.2.json", "trial-2.1.json"]
    first, second, _ = found.values()
    assert (first["eval_id"], first["suite"], first["trial"], first["target"]) == ("one", "evals/a.yaml", 1, "gpt")
    assert (first["request"]["prompt"], first["request"]["guidelines"]) == ("6 × 7?", "be brief")
    assert first["request"]["chat"] == [{"role": "user", "content": "6 × 7?"}]
    assert (second["attempt"], second["request"]["seed"]) == (2, 7)


@pytest.mark.parametrize("target", [GPT, CliTarget(name="c", provider="cli", command_template="x", env={"K": SECRET})])
def test_no_secret_is_written(target: Target, tmp_path: Path) -> None:
    written = dumps(tmp_path)
    written.prompt(trial(), target, question(prompt=f"my key is {SECRET}"))
    written.trace(trial(), Response(SECRET, (OutputMessage(role="assistant", content=SECRET),), has_trace=False))
    texts = [path.read_text("utf-8") for path in tmp_path.rglob("*.json")]
    assert len(texts) == 2
    assert not [text for text in texts if SECRET in text]
    assert "***" in texts[0]


def test_a_trace_has_messages_and_tool_calls(tmp_path: Path) -> None:
    messages = (
        OutputMessage(
            role="assistant", content=None, tool_calls=(ToolCall(tool="search", input={"q": 1}, output="found"),)
        ),
    )
    dumps(tmp_path).trace(trial(), Response("42", messages, has_trace=True, model="gpt-2030"))
    (found,) = documents(tmp_path / "traces").values()
    assert (found["answer"], found["model"], found["reports_tool_calls"]) == ("42", "gpt-2030", True)
    assert found["messages"][0]["tool_calls"] == [{"tool": "search", "input": {"q": 1}, "output": "found"}]


@pytest.mark.parametrize("case_id", ["../../etc/passwd", "a/b", "x" * 500, "...", "ünï 😀", "a\nb"])
def test_no_id_leaves_the_folder(case_id: str, tmp_path: Path) -> None:
    dumps(tmp_path).prompt(trial(case_id), GPT, question())
    (path,) = tmp_path.rglob("*.json")
    assert path.parent == tmp_path / "prompts"


def test_cases_whose_names_look_alike_have_files_of_their_own(tmp_path: Path) -> None:
    written = dumps(tmp_path)
    for case_id, path in (("a b", "evals/a.yaml"), ("a/b", "evals/a.yaml"), ("a b", "evals/b.yaml")):
        written.prompt(trial(case_id, path=path), GPT, question())
    assert len(documents(tmp_path / "prompts")) == 3


def test_a_folder_that_takes_no_files_is_told_and_ends_nothing(tmp_path: Path) -> None:
    (tmp_path / "prompts").write_text("a file", encoding="utf-8")
    warned: list[str] = []
    dumps(tmp_path, warned).prompt(trial(), GPT, question())
    assert warned == [f"cannot write '{tmp_path / 'prompts'}': File exists"]


def test_nothing_is_written_unasked(tmp_path: Path) -> None:
    silent = Dumps(None, None, Redactor(set()), print)
    silent.prompt(trial(), GPT, question())
    silent.trace(trial(), Response("42", (), has_trace=False))
    assert list(tmp_path.iterdir()) == []
