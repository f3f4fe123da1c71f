"""The rows of one case → all that is known of it, for a terminal."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from agentv_ci.base.text import dollars, on_one_line, shortened
from agentv_ci.contracts.base import JsonValue
from agentv_ci.contracts.results import EvaluatorResult, ResultRow, ToolCall
from agentv_ci.report.lines import STYLES, Line
from agentv_ci.report.view import rerun_command, runs_again, score_text

MAX_TEXT = 10_000
MAX_VALUE = 200


def case_lines(rows: Sequence[ResultRow], again: Sequence[str] = ()) -> Iterator[Line]:
    """Yield the question, what was expected, and every trial of a case, in the order of `rows`.

    `again` is the options that matter when it runs again.
    """
    first = rows[0]
    place = f"{on_one_line(first.source.path)}:{first.source.line}"
    passed = sum(row.verdict == "pass" for row in rows)
    said = f"{passed} of {len(rows)} trials passed" if len(rows) > 1 else first.verdict
    yield Line.of(
        (on_one_line(first.eval_id), "strong"),
        (f"  {said}", "plain"),
        (f"  (target {on_one_line(first.target)}, {place})", "faint"),
    )
    for message in first.input_messages or ():
        yield from _text(message.role, message.content)
    yield from _text("expected outcome", first.expected_outcome)
    yield from _text("reference answer", first.reference_answer)
    for row in rows:
        yield from _trial(row)
    if runs_again(first.suite, first.arm):
        command = rerun_command(first.suite, first.eval_id, first.target, again)
        yield Line(f"again: {command}", "faint")


def _trial(row: ResultRow) -> Iterator[Line]:
    facts = [f"{row.duration_ms / 1000:.1f} s"]
    if row.cost_usd is not None:
        facts.append(dollars(row.cost_usd))
    if row.model:
        facts.append(on_one_line(row.model))
    yield Line.of(
        (f"trial {row.trial}: ", "title"),
        (score_text(row.verdict, row.score or 0.0), STYLES.get(row.verdict, "plain")),
        (f"  {', '.join(facts)}", "faint"),
    )
    if row.error is not None:
        yield from _text("error", row.error)
    yield from _text("answer", row.candidate_answer)
    for call in row.tool_calls:
        yield Line(f"  called {_call(call)}")
    if row.printed is not None:
        yield from _text("standard output", row.printed.stdout)
        yield from _text("standard error", row.printed.stderr)
    for result in row.evaluator_results:
        yield from _result(result, "  ")


def _call(call: ToolCall) -> str:
    text = f"{on_one_line(call.tool)}({_value(call.input)})"
    return text if call.output is None else f"{text} → {_value(call.output)}"


def _value(value: JsonValue) -> str:
    """Return data of a call, which lines of JSON hold as a text, on one line."""
    if value is None:
        return ""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return shortened(on_one_line(text), MAX_VALUE)


def _result(result: EvaluatorResult, indent: str) -> Iterator[Line]:
    """Yield what an evaluator says, and below it what its members say."""
    style = STYLES.get(result.verdict, "faint")
    reasons = result.hits if result.verdict == "pass" else result.misses
    text = on_one_line("; ".join(reasons) or result.reasoning)
    verdict = score_text(result.verdict, result.score)
    yield Line.of((f"{indent}{verdict:<16} ", style), (f"{result.name}: {text}", "plain"))
    for printed in (result.raw_response, result.stderr):
        if printed and result.verdict != "pass":
            yield Line(f"{indent}  {shortened(on_one_line(printed), MAX_VALUE)}", "faint")
    for member in result.evaluator_results or ():
        yield from _result(member, f"{indent}  ")


def _text(name: str, text: str | None) -> Iterator[Line]:
    if not text or not text.strip():
        return
    yield Line(f"{on_one_line(name)}:", "title")
    for line in shortened(text.strip("\n"), MAX_TEXT).splitlines():
        yield Line(f"  {line}")
