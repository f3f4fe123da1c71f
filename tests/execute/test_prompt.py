"""A case as one text and as a chat."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Literal

import pytest

from agentv_ci.contracts.base import JsonObject
from agentv_ci.contracts.exchange import ChatMessage, InputFile, Request
from agentv_ci.contracts.plan import FilePart, Part, PlanMessage, TextPart
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
        return build_request(
            case, self.texts.by_digest, lambda reference: ROOT / reference.path, cwd=ROOT / "evals", seed=seed
        )


def says(role: Role, *parts: str | Part, name: str | None = None) -> PlanMessage:
    content = tuple(TextPart(text=part) if isinstance(part, str) else part for part in parts)
    return PlanMessage(role=role, name=name, content=content)


@pytest.fixture
def talk() -> Conversation:
    return Conversation()


def test_a_single_turn_is_its_text_without_a_mark(talk: Conversation) -> None:
    assert talk.request(says("user", "  What is 6 × 7?\n")).prompt == "What is 6 × 7?"


def test_parts_are_trimmed_and_joined_by_blank_lines(talk: Conversation) -> None:
    request = talk.request(says("user", "Look:\n", "", " \n ", "  at this  "))
    assert request.prompt == "Look:\n\nat this"


def test_a_file_is_a_block_with_its_path(talk: Conversation) -> None:
    request = talk.request(says("user", "Review this.", talk.file("src/a.js", "\nlet a;\n\n")))
    assert request.prompt == 'Review this.\n\n<file path="src/a.js">\nlet a;\n</file>'


def test_code_blocks_are_not_repeated(talk: Conversation) -> None:
    text = "Fix:\n```js\nlet a\n```"
    assert talk.request(says("user", text)).prompt == text


def test_a_guideline_leaves_a_mark_where_it_stood_and_its_text_apart(talk: Conversation) -> None:
    request = talk.request(says("user", "Write code.", talk.guideline("rules.md", " Be brief.\n")))
    assert request.prompt == "Write code.\n\n<Attached: rules.md>"
    assert request.guidelines == '<file path="rules.md">\nBe brief.\n</file>'


def test_several_guidelines_are_joined_by_blank_lines(talk: Conversation) -> None:
    request = talk.request(says("user", talk.guideline("a.md", "A"), talk.guideline("b.md", "B"), "Go."))
    assert request.guidelines == '<file path="a.md">\nA\n</file>\n\n<file path="b.md">\nB\n</file>'


def test_turns_are_marked_when_more_than_one_says_something(talk: Conversation) -> None:
    request = talk.request(says("system", "Be brief."), says("user", "Hello"))
    assert request.prompt == "@[System]:\nBe brief.\n\n@[User]:\nHello"


def test_every_role_has_its_mark(talk: Conversation) -> None:
    request = talk.request(says("user", "Q"), says("assistant", "A"), says("tool", "T"), says("user", "Q2"))
    assert request.prompt == "@[User]:\nQ\n\n@[Assistant]:\nA\n\n@[Tool]:\nT\n\n@[User]:\nQ2"


@pytest.mark.parametrize("role", ["assistant", "tool"])
def test_a_single_turn_of_somebody_else_is_marked(role: Role, talk: Conversation) -> None:
    assert talk.request(says(role, "Hello")).prompt == f"@[{role.capitalize()}]:\nHello"


def test_a_turn_of_guidelines_alone_says_nothing(talk: Conversation) -> None:
    request = talk.request(says("system", talk.guideline("rules.md", "Be brief.")), says("user", "Hello"))
    assert request.prompt == "<Attached: rules.md>\n\nHello"


def test_a_turn_without_text_is_left_out(talk: Conversation) -> None:
    assert talk.request(says("system", " "), says("user", "Hello")).prompt == "Hello"


def test_a_structured_turn_is_json(talk: Conversation) -> None:
    value: JsonObject = {"é": [1, None]}
    text = message_text(PlanMessage(role="assistant", value=value), talk.texts.by_digest)
    assert json.loads(text) == value
    assert "é" in text


def test_a_chat_has_one_message_per_turn(talk: Conversation) -> None:
    request = talk.request(says("user", "Q"), says("assistant", "A"), says("user", "Q2"))
    assert request.chat == (ChatMessage("user", "Q"), ChatMessage("assistant", "A"), ChatMessage("user", "Q2"))


def test_leading_system_turns_are_one_system_message(talk: Conversation) -> None:
    request = talk.request(says("system", "Be brief."), says("system", "Be kind."), says("user", "Q"))
    assert request.chat == (ChatMessage("system", "Be brief.\n\nBe kind."), ChatMessage("user", "Q"))


def test_guidelines_go_before_all_system_turns(talk: Conversation) -> None:
    request = talk.request(says("system", "Be kind."), says("user", "Q", talk.guideline("rules.md", "Be brief.")))
    system, user = request.chat
    assert system == ChatMessage(
        "system", '[[ ## Guidelines ## ]]\n\n<file path="rules.md">\nBe brief.\n</file>\n\nBe kind.'
    )
    assert (user.role, "Be brief." in user.content) == ("user", False)


@pytest.mark.parametrize(
    ("message", "start"),
    [
        (says("system", "Now be rude."), "@[System]:"),
        (says("tool", "3 results"), "@[Tool]:"),
        (says("tool", "3 results", name="search"), "@[search]:"),
    ],
)
def test_later_system_and_tool_turns_are_told_as_the_assistants(
    message: PlanMessage, start: str, talk: Conversation
) -> None:
    chat = talk.request(says("user", "Q"), message, says("user", "Q2")).chat
    assert [each.role for each in chat] == ["user", "assistant", "user"]
    assert chat[1].content.startswith(start)
    assert chat[1].content.endswith(message_text(message, talk.texts.by_digest))


def test_a_chat_without_system_turns_and_guidelines_has_no_system_message(talk: Conversation) -> None:
    assert talk.request(says("user", "Q")).chat == (ChatMessage("user", "Q"),)


def test_files_stand_in_a_chat_as_blocks(talk: Conversation) -> None:
    request = talk.request(says("user", talk.file("a.js", "let a;"), "Review."))
    assert request.chat == (ChatMessage("user", '<file path="a.js">\nlet a;\n</file>\n\nReview.'),)


def test_braces_and_marks_in_texts_are_data(talk: Conversation) -> None:
    text = "{PROMPT} {{ question }} ${{ KEY }} @[User]: </file>"
    request = talk.request(says("user", text))
    assert (request.prompt, request.chat[0].content) == (text, text)


def test_the_files_of_a_case_are_listed_once_in_order_with_their_place(talk: Conversation) -> None:
    code, rules = talk.file("src/a.js", "let a;"), talk.guideline("rules.md", "Be brief.")
    request = talk.request(says("system", rules), says("user", code, "Q", rules), says("user", code))
    assert request.files == (
        InputFile(ROOT / "rules.md", is_guideline=True, sha256=rules.sha256),
        InputFile(ROOT / "src/a.js", is_guideline=False, sha256=code.sha256),
    )


def test_a_question_begins_with_the_settings_of_its_case(talk: Conversation) -> None:
    request = talk.request(says("user", "Q"), seed=7, id="two", timeout_seconds=12.5)
    assert (request.case_id, request.timeout_s, request.cwd, request.seed, request.attempt) == (
        "two",
        12.5,
        ROOT / "evals",
        7,
        0,
    )
    assert (request.temperature, request.max_output_tokens) == (None, None)
