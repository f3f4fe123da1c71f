"""What `prove` calls the wrong answers that it tries."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import Field

from agentv_ci.contracts.base import meanings

NullAgent = Literal[
    "empty",
    "echo-prompt",
    "echo-last-message",
    "refusal",
    "dont-know",
    "other-reference",
    "empty-object",
    "empty-array",
    "changes-nothing",
]
"""Agents that do nothing for the question."""
Operator = Literal[
    "number",
    "unit",
    "entity",
    "antonym",
    "negation",
    "sentence-order",
    "first-sentence",
    "json-field-removed",
    "json-field-retyped",
    "json-text",
    "tool-dropped",
    "tool-added",
    "tool-swapped",
    "tool-arguments",
    "change-dropped",
    "change-damaged",
]
"""Ways to damage a reference answer."""
NullAgentsGate = Literal["forbid", "report"]
WrongAnswer = Literal[NullAgent, Operator]
WRONG_ANSWERS: Mapping[WrongAnswer, str] = {
    "empty": "Nothing.",
    "echo-prompt": "The whole question.",
    "echo-last-message": "The last message of the question.",
    "refusal": "A refusal.",
    "dont-know": "That the agent does not know.",
    "other-reference": "The reference answer of another case.",
    "empty-object": "An empty object, where JSON is expected.",
    "empty-array": "An empty list, where JSON is expected.",
    "changes-nothing": "The reference answer, in a workspace in which nothing has changed.",
    "number": "Another number.",
    "unit": "Another unit.",
    "entity": "A name, an identifier or a quotation is missing.",
    "antonym": "A word is replaced by its opposite.",
    "negation": "The opposite.",
    "sentence-order": "The first sentence or line comes last.",
    "first-sentence": "Only the first sentence is left.",
    "json-field-removed": "A field is missing.",
    "json-field-retyped": "A value becomes a list.",
    "json-text": "A text in JSON is another one.",
    "tool-dropped": "A tool call is missing.",
    "tool-added": "A tool is called that is not asked for.",
    "tool-swapped": "Calls of two tools change places.",
    "tool-arguments": "All arguments of tools are others.",
    "change-dropped": "A part of the golden patch is missing.",
    "change-damaged": "A sign or a number in the golden patch is another one.",
}
"""What each of them answers, or what is wrong in it."""
DescribedWrongAnswer = Annotated[WrongAnswer, Field(json_schema_extra=meanings(**WRONG_ANSWERS))]
