"""The queries of the documentation, over rows of every run."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from agentv_ci.contracts.results import OutputMessage, ResultRow, ToolCall, TraceSummary, Usage
from agentv_ci.results import jsonl
from tests.support.pages import blocks
from tests.support.runs import finding, row

duckdb = pytest.importorskip("duckdb", reason="pip install 'duckdb>=2'")

(QUERIES,) = [
    [query for query in text.split(";") if query.strip()]
    for place, text in blocks("sql")
    if place.startswith("docs/reports.md:")
]
ERRORS = [row("error", error_kind="timeout", blame="agent"), row("error", trial=2)]


def call(name: str, arguments: Any) -> dict[str, Any]:
    """Return the fields of an answer with a tool call."""
    message = OutputMessage(role="assistant", tool_calls=(ToolCall(tool=name, input=arguments, output=arguments),))
    return {"output_messages": (message,), "trace_summary": TraceSummary.of([name])}


MIXED = [
    *ERRORS,
    row(
        "fail", 0.5, trial=3, evaluator_results=(finding("no", name="kind", verdict="fail"),), metadata={"team": "web"}
    ),
    row(
        trial=4,
        model="m",
        cost_usd=0.25,
        usage=Usage(total_tokens=7),
        metadata={"a": {"b": 1}},
        **call("search", {"q": 1}),
    ),
    row(trial=5, model="m", cost_usd=1, seed=7, metadata={"a": [1]}, request={"body": 1}, **call("fetch", ["x"])),
]


def answers(folder: Path, rows: list[ResultRow], *queries: str) -> list[Any]:
    (folder / "results.jsonl").write_text("".join(map(jsonl.encode, rows)), "utf-8")
    with duckdb.connect() as database:
        return [
            database.sql(query.replace("results.jsonl", str(folder / "results.jsonl"))).fetchall() for query in queries
        ]


def test_queries_of_the_documentation(tmp_path: Path) -> None:
    assert answers(tmp_path, MIXED, *QUERIES) == [
        [("m", 2, 1.25, 7), (None, 3, None, None)],
        [("default", 2 / 4, pytest.approx(2.5 / 4))],
        [("server", 1, "it broke"), ("timeout", 1, "it broke")],
        [("kind", 1)],
        [("web", 0.5), (None, 1.0)],
    ]


@pytest.mark.parametrize("rows", [ERRORS, [row()], MIXED[3:]], ids=["errors", "one", "answers"])
def test_every_run_can_be_queried(tmp_path: Path, rows: list[ResultRow]) -> None:
    columns = "cost_usd, model, seed, usage.input_tokens, usage.output_tokens, usage.total_tokens, usage.cached_tokens"
    answers(tmp_path, rows, *QUERIES, "select sum(cost_usd) from 'results.jsonl'")
    (found,) = answers(tmp_path, rows, f"select {columns}, error, error_kind from 'results.jsonl'")
    assert len(found) == len(rows)


def test_columns_of_free_data_have_one_type(tmp_path: Path) -> None:
    (found,) = answers(
        tmp_path, MIXED, "describe select metadata, request, output_messages, trace_summary from 'results.jsonl'"
    )
    types = {name: kind for name, kind, *_ in found}
    assert (types["metadata"], types["request"]) == ("VARCHAR", "VARCHAR")
    calls = re.search(r"tool_calls STRUCT\((.*?)\)", types["output_messages"])
    assert calls is not None
    assert calls[1] == 'tool VARCHAR, "input" VARCHAR, output VARCHAR'
    assert 'tool_calls_by_name STRUCT("name" VARCHAR, count BIGINT)[]' in types["trace_summary"]
