"""Expected messages: what only some roles may have."""

from __future__ import annotations

from collections.abc import Iterator

from agentv_ci.contracts.diagnostics import Diagnostic
from agentv_ci.contracts.evals import EvalDocument
from agentv_ci.validate.findings import Finder


def check(document: EvalDocument, find: Finder) -> Iterator[Diagnostic]:
    """AV201 for a message that says nothing, AV206 for an object that no assistant says."""
    for index, case in enumerate(document.evalcases):
        for number, message in enumerate(case.expected_messages):
            pointer = ("evalcases", index, "expected_messages", number)
            if message.content is None and not (message.role == "assistant" and message.tool_calls):
                yield find.at("AV201", "missing field 'content'", (*pointer, "content"))
            if isinstance(message.content, dict) and message.role != "assistant":
                yield find.at(
                    "AV206",
                    f"only an assistant's content may be a mapping, not that of role '{message.role}'",
                    (*pointer, "content"),
                )
