"""Rows with unusual content."""

from __future__ import annotations

from hypothesis import strategies as st

from agentv_ci.contracts.base import JsonValue
from agentv_ci.contracts.results import OutputMessage, ResultRow, ToolCall
from tests.support.runs import finding, row, well_formed, well_formed_text

json_values: st.SearchStrategy[JsonValue] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | well_formed_text,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(well_formed_text, inner, max_size=3),
    max_leaves=6,
)


def saying(text: str) -> ResultRow:
    """A row with a text in every field that may have any text."""
    return row(
        "error",
        candidate_answer=text,
        reasoning=text,
        hits=(text, "x", text),
        misses=(text,),
        error=text,
        model=text,
        conversation_id=text,
        evaluator_results=(finding(text),),
        request={"prompt": text},
        output_messages=(OutputMessage(role="assistant", content=text, tool_calls=(ToolCall(tool=text, input=text),)),),
        metadata={"key": text, well_formed(text): [text]},
    )


def calling_with(depth: int) -> ResultRow:
    """A row with a tool call whose arguments are nested this deep."""
    arguments: JsonValue = "deep"
    for _ in range(depth):
        arguments = [arguments]
    call = ToolCall(tool="x", input=arguments)
    return row(output_messages=(OutputMessage(role="assistant", tool_calls=(call,)),))
