"""A case as one text and as a chat."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Literal

import pytest

from agentv_ci.contracts.base import JsonObject
from agentv_ci.contracts.exchange import ChatMessage, InputFile, Request
from agentv_ci.contracts.plan_parts import FilePart, Part, PlanMessage, TextPart
from agentv_ci.execute.prompt import build_request, message_text
from tests.evaluate.builders import Texts, plan_case

Role = Literal["system", "user", "assistant", "tool"]
ROOT = Path("/repository")


class Conversation:
    """Messages and the files in them."""

    def __init__(self) -> None:
        self.texts = Texts()
        self.guidelines: list[FilePart] = []

    def file(self, path: str, text: str) -> FilePart:
        return self.texts.part(path, text)

    def guideline(self, path: str, text: str) -> FilePart:
        part = self.texts.part(path, text, is_guideline=True)
        self.guidelines.append(part)
        return part

    def request(self, *messages: PlanMessage, seed: int | None = None, **given: Any) -> Request:
        guidelines = tuple(
            self.texts.add(part.path, self.texts.by_digest[part.sha256].text) for part in self.guidelines
        )
        case = plan_case(input_messages=messages, guidelines=guidelines, **given)
        return build_request(case, self.texts.by_digest, lambda part: ROOT / part.path, cwd=ROOT / "evals", seed=seed)


def says(role: Role, *parts: str | Part, name: str | None = None) -> PlanMessage:
    content = tuple(TextPart(text=part) if isinstance(part, str) else part for part in parts)
    return PlanMessage(role=role, name=name, content=content)


@pytest.fixture
def talk() -> Conversation:
    return Conversation()


DATA = "{PROMPT} {{ question }} ${{ KEY }} @[User]: </file>\n```js\nlet a\n```"


@pytest.mark.parametrize(
    ("messages", "prompt"),
    [
        ([says("user", "  What is 6 × 7?\n")], "What is 6 × 7?"),
        ([says("user", "Look:\n", "", " \n ", "  at this  ")], "Look:\n\nat this"),
        ([says("user", DATA)], DATA),
        ([says("system", " "), says("user", "Hello")], "Hello"),
        ([says("system", "Be brief."), says("user", "Hello")], "@[System]:\nBe brief.\n\n@[User]:\nHello"),
        (
            [says("user", "Q"), says("assistant", "A"), says("tool", "T")],
            "@[User]:\nQ\n\n@[Assistant]:\nA\n\n@[Tool]:\nT",
        ),
        ([says("assistant", "Hello")], "@[Assistant]:\nHello"),
        ([says("tool", "Hello")], "@[Tool]:\nHello"),
    ],
)
def test_turns_are_marked_if_more_than_one_has_text_or_one_is_not_the_users(
    messages: list[PlanMessage], prompt: str, talk: Conversation
) -> None:
    request = talk.request(*messages)
    assert (request.prompt, request.task, request.guidelines) == (prompt, None, "")


def test_a_file_is_a_block_with_its_path_and_in_the_task_only_a_mark(talk: Conversation) -> None:
    block = '<file path="src/a.js">\nlet a;\n</file>'
    request = talk.request(says("user", "Review this.", talk.file("src/a.js", "\nlet a;\n\n")))
    assert request.prompt == f"Review this.\n\n{block}"
    assert request.chat == (ChatMessage("user", request.prompt),)
    assert request.task == 'Review this.\n\n<file: path="src/a.js">'


def test_guidelines_are_apart_and_leave_a_mark(talk: Conversation) -> None:
    a, b = talk.guideline("a.md", " Be brief.\n"), talk.guideline("b.md", "B")
    request = talk.request(says("system", a), says("system", "Be kind."), says("user", "Go.", b))
    guidelines = '<file path="a.md">\nBe brief.\n</file>\n\n<file path="b.md">\nB\n</file>'
    assert (request.guidelines, request.task) == (guidelines, None)
    assert request.prompt == "@[System]:\n<Attached: a.md>\n\n@[System]:\nBe kind.\n\n@[User]:\nGo.\n\n<Attached: b.md>"
    assert request.chat == (
        ChatMessage("system", f"[[ ## Guidelines ## ]]\n\n{guidelines}\n\n<Attached: a.md>\n\nBe kind."),
        ChatMessage("user", "Go.\n\n<Attached: b.md>"),
    )


def test_a_turn_of_files_alone_counts_as_text_and_one_of_guidelines_does_not(talk: Conversation) -> None:
    request = talk.request(says("system", talk.guideline("rules.md", "Be brief.")), says("user", "Hello"))
    assert request.prompt == "<Attached: rules.md>\n\nHello"
    request = talk.request(says("system", talk.file("a.js", "let a;")), says("user", "Hello"))
    assert request.prompt == '@[System]:\n<file path="a.js">\nlet a;\n</file>\n\n@[User]:\nHello'


def test_a_structured_turn_is_json(talk: Conversation) -> None:
    value: JsonObject = {"é": [1, None]}
    text = message_text(PlanMessage(role="assistant", value=value), talk.texts.by_digest)
    assert (json.loads(text), "é" in text) == (value, True)


@pytest.mark.parametrize(
    ("turn", "content"),
    [
        (says("system", "Now be rude."), "@[System]:\nNow be rude."),
        (says("tool", "3 results"), "@[Tool]:\n3 results"),
        (says("tool", "3 results", name="search"), "@[search]:\n3 results"),
        (says("assistant", "A"), "A"),
    ],
)
def test_later_system_and_tool_turns_are_the_assistants(turn: PlanMessage, content: str, talk: Conversation) -> None:
    first = (says("system", "S"), says("system", "S2"), says("user", "Q"))
    assert talk.request(*first, turn, says("user", "Q2")).chat == (
        ChatMessage("system", "S\n\nS2"),
        ChatMessage("user", "Q"),
        ChatMessage("assistant", content),
        ChatMessage("user", "Q2"),
    )


def test_a_question_has_its_files_once_and_the_settings_of_its_case(talk: Conversation) -> None:
    code, rules = talk.file("src/a.js", "let a;"), talk.guideline("rules.md", "Be brief.")
    messages = (says("system", rules), says("user", code, "Q", rules), says("user", code))
    request = talk.request(*messages, seed=7, id="two", timeout_seconds=12.5)
    assert request.files == (
        InputFile(ROOT / "rules.md", is_guideline=True, sha256=rules.sha256),
        InputFile(ROOT / "src/a.js", is_guideline=False, sha256=code.sha256),
    )
    assert (request.case_id, request.timeout_s, request.cwd, request.seed) == ("two", 12.5, ROOT / "evals", 7)
    assert (request.attempt, request.temperature, request.max_output_tokens) == (0, None, None)
