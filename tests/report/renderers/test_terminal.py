"""The summary at the end of a run."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import example, given, settings

from agentv_ci.analysis.run_report import report
from agentv_ci.cli.console import one_line
from agentv_ci.contracts.plan import PlanCase
from agentv_ci.contracts.report import Ending
from agentv_ci.contracts.results import EvaluatorResult, ResultRow, Usage
from agentv_ci.report.lines import Line
from agentv_ci.report.renderers.terminal import WIDTH, render
from agentv_ci.report.view import RunView
from agentv_ci.report.wrapping import clipped
from tests.support.runs import any_text, case, finding, plan, row, rows_of, well_formed

CONTROLS = "\x1b[2J\x1b[H \x1b]0;title\x07 \x1b]8;;https://example.com\x1b\\ \x08 \x9b31m \x00 \x7f \u202eback\u202c"
CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def rendered(cases: Sequence[PlanCase], rows: Sequence[ResultRow], **given: Any) -> list[Line]:
    return list(render(RunView(*report(plan(*cases), rows, Ending(**given)))))


def printed(*rows: ResultRow, cases: Sequence[PlanCase] | None = None) -> list[str]:
    """The lines of the summary; by default every row is the only one of its case."""
    of = cases or [case(each.eval_id, suite=each.suite, line=each.source.line) for each in rows]
    return [line.text for line in rendered(of, rows)]


def result(name: str = "c", verdict: str = "fail", score: float = 0.0, **given: Any) -> EvaluatorResult:
    status = verdict if verdict in ("error", "skipped") else "ok"
    plain = {"status": status, "verdict": verdict, "score": score, "hits": (), "misses": (), "reasoning": ""}
    return finding("", name=name, **{**plain, **given})


def listed(*results: EvaluatorResult, of: ResultRow | None = None) -> list[str]:
    """The lines below a failed case with these results."""
    failed = (of or row("fail")).model_copy(update={"evaluator_results": results, "candidate_answer": ""})
    *found, again = [line[4:] for line in printed(failed) if line.startswith("    ")]
    assert again == "again: agentv-ci eval evals/a.yaml --eval-id=one"
    return found


@pytest.mark.parametrize(
    ("verdict", "ending", "last"),
    [
        ("fail", {"dry_run": True}, Line("gate: not applied to a dry run", "warn")),
        ("pass", {"write_error": "disk full"}, Line("  results could not be written: disk full", "bad")),
        ("pass", {}, Line("gate: passed", "good")),
    ],
)
def test_gate(verdict: Any, ending: dict[str, Any], last: Line) -> None:
    lines = rendered([case()], [row(verdict)], **ending)
    assert lines[-1] == last
    dry = Line("dry run: reference answers were scored, judges mocked; no target was asked", "warn")
    assert (lines[0] == dry) == bool(ending.get("dry_run"))


@pytest.mark.parametrize(("number", "first"), [(10, "evals/00.yaml"), (11, "evals/10.yaml")])
def test_long_lists_of_groups_have_the_worst_first(number: int, first: str) -> None:
    rows = [
        row("fail" if each == number - 1 else "pass", of=case(suite=f"evals/{each:02}.yaml")) for each in range(number)
    ]
    lines = printed(*rows)
    assert lines[lines.index("by suite:") + 1].split()[0] == first


def test_reasons_of_many_suites_are_cut() -> None:
    lines = printed(*(row("fail", of=case(suite=f"evals/{number}.yaml")) for number in range(60)))
    assert "  … and 50 more" in lines[lines.index("gate: not passed") :]


def test_styles() -> None:
    cases = [case(name) for name in "abcd"]
    lines = rendered(cases, [each for of, letter in zip(cases, "pbf-", strict=True) for each in rows_of(of, letter)])
    place = ("  (evals/a.yaml:3)", "faint")
    assert [line.parts[:3] for line in lines if line.text.endswith("(evals/a.yaml:3)")] == [
        (("  error  ", "bad"), ("d", "strong"), place),
        (("  fail 0.200  ", "bad"), ("c", "strong"), place),
        (("  borderline 0.700  ", "warn"), ("b", "strong"), place),
    ]
    assert [line for line in lines if line.style != "plain"] == [
        Line("errors:", "title"),
        Line("failures, worst first:", "title"),
        Line("    answer: Hello", "faint"),
        Line("    answer: Hello", "faint"),
        Line("4 cases: 1 passed, 2 failed, 1 error", "strong"),
        Line("gate: not passed", "bad"),
        Line("  pass rate 33.3% is below 100.0%", "bad"),
        Line("  1 errored case, at most 0 allowed", "bad"),
    ]


@pytest.mark.parametrize(
    ("usage", "shown"),
    [
        (Usage(total_tokens=1_000_000), ["tokens: 0 in, 0 out, 1,000,000 total"]),
        (Usage(input_tokens=1), ["tokens: 1 in, 0 out, 0 total"]),
        (Usage(), []),
    ],
)
def test_tokens_are_shown_if_they_were_counted(usage: Usage, shown: list[str]) -> None:
    assert [text for text in printed(row(usage=usage)) if text.startswith("tokens")] == shown


@pytest.mark.parametrize(
    ("counts", "bars"),
    [((10, 10), (30, 30)), ((7, 14), (15, 30)), ((1, 100), (1, 30)), ((0, 20), (0, 30)), ((29, 30), (29, 30))],
)
def test_bars_are_scaled_to_the_fullest_bin(counts: tuple[int, int], bars: tuple[int, int]) -> None:
    scores = [0.1] * counts[0] + [0.9] * counts[1]
    lines = printed(*(row("fail", score, of=case(f"case-{number}")) for number, score in enumerate(scores)))
    histogram = [line.count("#") for line in lines if line.startswith("[")]
    assert (histogram[0], histogram[-1]) == bars


@pytest.mark.parametrize(
    ("durations_ms", "shown"),
    [
        ([2_000] * 4, "time: 1 min 23 s"),
        ([0, 100, 200, 300, 999], "time: 1 min 23 s"),
        ([1_000, 61_000, 0, 0, 0], "time: 1 min 23 s; slowest: 1 1 min 1 s, 0 1.0 s"),
        ([4_000, 1_000, 3_000, 2_000, 5_000], "time: 1 min 23 s; slowest: 4 5.0 s, 0 4.0 s, 2 3.0 s"),
    ],
)
def test_slowest_of_several_cases_are_named(durations_ms: list[int], shown: str) -> None:
    cases = [case(str(number)) for number in range(len(durations_ms))]
    rows = [row(of=of, duration_ms=duration_ms) for of, duration_ms in zip(cases, durations_ms, strict=True)]
    assert [line.text for line in rendered(cases, rows, duration_s=83.0) if line.text.startswith("time")] == [shown]


def test_slowest_trial_counts_for_its_case() -> None:
    cases = [case(each, trials=2) for each in "abcde"]
    rows = [row(of=of, trial=trial, duration_ms=trial * 1_000) for of in cases for trial in (2, 1)]
    assert rendered(cases, rows, duration_s=3)[-2].text == "time: 3.0 s; slowest: a 2.0 s, b 2.0 s, c 2.0 s"


@pytest.mark.parametrize(
    ("verdicts", "shown"),
    [
        (["pass"], []),
        (["pass", "pass"], ["evaluators: always passed: e0, e1"]),
        (
            ["pass", "fail", "skipped", "error", "pass"],
            [
                "by evaluator:",
                "  e1 (contains)  0/1 passed, mean 0.000",
                "  e2 (contains)  0/0 passed, 1 skipped",
                "  e3 (contains)  0/0 passed, 1 error",
                "  always passed: e0, e4",
            ],
        ),
        (["pass"] * 12, ["evaluators: always passed: e0, e1, e10, e11, e2, e3, e4, e5, e6, e7 … and 2 more"]),
    ],
)
def test_evaluators_that_always_pass_share_a_line(verdicts: list[str], shown: list[str]) -> None:
    scores = {"pass": 1.0}
    results = tuple(result(f"e{number}", verdict, scores.get(verdict, 0.0)) for number, verdict in enumerate(verdicts))
    lines = [line.text for line in rendered([case()], [row(evaluator_results=results)])]
    assert [line for line in lines if re.match(r"evaluators: |by evaluator|  \w+ \(|  always", line)] == shown


@pytest.mark.parametrize("is_first", [True, False])
def test_worst_case_keeps_its_answer_among_many(is_first: bool) -> None:
    why = (finding("why"),) * 100
    rows = [row("fail", score=0.5, of=case(f"{each}", line=each), evaluator_results=why) for each in range(1, 102)]
    worst = row("fail", score=0.0, of=case("worst"), candidate_answer="nonsense", evaluator_results=why)
    assert "    answer: nonsense" in printed(*([worst, *rows] if is_first else [*rows, worst]))


def test_single_evaluator_gives_only_its_reason() -> None:
    assert listed(result(misses=("unsaid",)), of=row("fail", misses=("of the row",))) == ["of the row"]
    assert listed(of=row("fail", reasoning="because")) == ["because"]


@pytest.mark.parametrize(("kind", "verdict"), [("schema", "fail"), ("contains", "pass")])
def test_schema_violations_and_passed_evaluators_take_one_line(kind: str, verdict: str) -> None:
    said: dict[str, Any] = {"hits" if verdict == "pass" else "misses": ("word " * 50,)}
    first, second = listed(result("a", verdict, type=kind, **said), result("b", misses=("x",)))
    assert first.endswith("…")
    assert second == "fail       0.000  b: x"


@settings(max_examples=50)
@given(any_text, any_text)
@example(CONTROLS, CONTROLS)
def test_any_text_stays_inert_within_80_columns(text: str, other: str) -> None:
    clean = well_formed(text) or "x"
    both = (result(clean, misses=(text * 20, other), reasoning=text), result("b", hits=(other,)))
    failed = row("fail", of=case(clean[:20]), misses=(text * 20, other), candidate_answer=text, evaluator_results=both)
    cases = [case(clean[:20]), case(f"{clean[:20]}!")]
    rows = [failed, failed.model_copy(update={"evaluator_results": ()}), row("error", of=cases[1], error=text)]
    for line in rendered(cases, rows):
        assert not CONTROL.search(line.text)
        assert line.text.splitlines() in ([], [line.text])
        assert not line.parts or "".join(part for part, _ in line.parts).rstrip() == line.text
        assert line.parts or len(line.text) <= WIDTH


@pytest.mark.parametrize(
    ("text", "width", "shown"),
    [("ab", 2, "ab"), ("abc", 2, "a…"), ("ab", 1, "…"), ("ab", 0, ""), ("答案", 4, "答案"), ("答案案", 4, "答…")],
)
def test_clipped(text: str, width: int, shown: str) -> None:
    assert clipped(text, width) == shown


def test_wide_characters_fit_80_columns() -> None:
    cases = [case(suite=f"evals/billing-and-payments/{name * 20}.yaml") for name in "ab"]
    rows = [row("fail", of=each, misses=("错误" * 100,), candidate_answer="答案" * 200) for each in cases]
    lines = [line.text for line in rendered(cases, rows) if not line.parts]
    widths = [sum(2 if unicodedata.east_asian_width(each) in "WF" else 1 for each in line) for line in lines]
    assert 76 <= max(widths) <= WIDTH


@pytest.mark.parametrize("padding", [*range(58, 72)])
def test_wrapped_answers_and_names_are_not_runner_commands(padding: int) -> None:
    results = (finding("no", name="::stop-commands::x"), finding("no", name="other"))
    failed = row("fail", candidate_answer=f"{'x' * padding} ::add-mask::e", evaluator_results=results)
    assert not [line for line in printed(failed) if one_line(line).lstrip().startswith("::")]
