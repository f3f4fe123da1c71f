"""The summary at the end of a run."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings

from agentv_ci.analysis.run_report import report
from agentv_ci.contracts.plan import PlanCase, PlanSuite
from agentv_ci.contracts.report import Ending
from agentv_ci.contracts.results import ResultRow, Usage
from agentv_ci.report.lines import Line
from agentv_ci.report.renderers.terminal import render
from agentv_ci.report.view import RunView
from tests.report.builders import any_text, case, plan, row, suite, well_formed

LONG = "a sentence that goes on and on without coming to its end, although nobody wants it"
COMMANDS = (
    "\x1b[2J\x1b[Hclear \x1b]0;title\x07 \x1b]8;;https://example.com\x1b\\ \x08 \x9b31m \x00 \x7f \u202eback\u202c"
)
COMMANDING = re.compile("[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def rendered(
    cases: Sequence[PlanCase], rows: Sequence[ResultRow], *, suites: Sequence[PlanSuite] | None = None, **given: Any
) -> list[Line]:
    return list(render(RunView(*report(plan(*cases, suites=suites), rows, Ending(**given)))))


def printed(
    cases: Sequence[PlanCase], rows: Sequence[ResultRow], *, suites: Sequence[PlanSuite] | None = None, **given: Any
) -> str:
    return "".join(f"{line.text}\n" for line in rendered(cases, rows, suites=suites, **given))


def test_summary_tells_errors_failures_figures_and_the_gate() -> None:
    cases = [
        case("greets", line=3),
        case("apologises", line=9),
        case("explains", line=15),
        case("refuses", line=21),
        case("counts", line=27, trials=3),
        case("waits", line=33),
    ]
    rows = [
        row("pass", 0.95, of=cases[0], usage=Usage(input_tokens=1200, output_tokens=34, total_tokens=1234)),
        row("borderline", 0.7, of=cases[1], misses=("too\nlong", "no apology"), candidate_answer="So\nwhat?"),
        row("fail", 0.25, of=cases[2], reasoning=LONG, candidate_answer=f"First, {LONG * 3}, and last."),
        row("error", of=cases[3], error="no answer within 600 s", error_kind="timeout", candidate_answer=""),
        row("pass", 1.0, of=cases[4], trial=1, judge_usage=Usage(input_tokens=800, total_tokens=800)),
        row("pass", 1.0, of=cases[4], trial=2),
        row("fail", 0.4, of=cases[4], trial=3, misses=("lost count",)),
    ]
    assert printed(cases, rows) == (
        """\
errors:
  error  refuses  (evals/a.yaml:21)
    timeout: no answer within 600 s
    again: agentv-ci eval evals/a.yaml --eval-id=refuses
  error  waits  (evals/a.yaml:33)
    it never ran
    again: agentv-ci eval evals/a.yaml --eval-id=waits

failures, worst first:
  fail 0.250  explains  (evals/a.yaml:15)
    a sentence that goes on and on without coming to its end, although nobody
    wants it
    answer: First, a sentence that goes on and on without co … hat goes on and
      on without coming to its end, although nobody wants it, and last.
    again: agentv-ci eval evals/a.yaml --eval-id=explains
  borderline 0.700  apologises  (evals/a.yaml:9)
    too long; no apology
    answer: So what?
    again: agentv-ci eval evals/a.yaml --eval-id=apologises

flaky, trials disagree:
  2 of 3 passed (95%: 21% to 94%)  counts

6 cases: 2 passed, 2 failed, 2 errors, 1 flaky
mean 0.675  median 0.750  min 0.250  max 0.950  stdev 0.261
[0.0, 0.2)      0
[0.2, 0.4)      1  ###############
[0.4, 0.6)      0
[0.6, 0.8)      1  ###############
[0.8, 1.0]      2  ##############################
tokens: 2,000 in, 34 out, 2,034 total
gate: not passed
  pass rate 50.0% is below 100.0%
  2 errors, at most 0 allowed
"""
    )


def test_summary_is_short_when_everything_passed() -> None:
    one = case()
    assert printed([one], [row(of=one)]) == (
        """\
1 case: 1 passed, 0 failed, 0 errors
mean 1.000  median 1.000  min 1.000  max 1.000  stdev 0.000
[0.0, 0.2)      0
[0.2, 0.4)      0
[0.4, 0.6)      0
[0.6, 0.8)      0
[0.8, 1.0]      1  ##############################
gate: passed
"""
    )


def test_summary_has_no_figures_when_nothing_was_graded() -> None:
    one = case()
    assert printed([one], [row("error", of=one, candidate_answer="")]) == (
        """\
errors:
  error  one  (evals/a.yaml:3)
    process: it broke
    again: agentv-ci eval evals/a.yaml --eval-id=one

1 case: 0 passed, 0 failed, 1 error
gate: not passed
  1 error, at most 0 allowed
  no case was graded
"""
    )


def test_dry_run_is_said_first_and_not_gated() -> None:
    one = case()
    lines = rendered([one], [row("fail", of=one)], dry_run=True)
    assert lines[0] == Line("dry run: the mock answered; the scores below are meaningless", "warn")
    assert lines[-1] == Line("gate: not applied to a dry run", "warn")


def test_reasons_name_the_suite_when_there_are_several() -> None:
    cases = [case("one"), case("two", suite="evals/b.yaml")]
    lines = rendered(cases, [row("pass", of=cases[0]), row("fail", of=cases[1])])
    assert lines[-2:] == [
        Line("gate: not passed", "bad"),
        Line("  evals/b.yaml: pass rate 0.0% is below 100.0%", "bad"),
    ]


def test_results_that_could_not_be_written_are_told() -> None:
    one = case()
    assert rendered([one], [row(of=one)], write_error="disk full")[-1] == Line(
        "  results could not be written: disk full", "bad"
    )


@pytest.mark.parametrize(
    ("failing", "shown", "last"), [(10, 10, ""), (11, 10, "  … and 1 more"), (99, 10, "  … and 89 more")]
)
def test_at_most_ten_cases_are_listed(failing: int, shown: int, last: str) -> None:
    cases = [case(f"case-{number}") for number in range(failing)]
    lines = [line.text for line in rendered(cases, [row("fail", of=each) for each in cases])]
    listed = [text for text in lines if text.startswith("  fail ")]
    assert len(listed) == shown
    assert [text for text in lines if "more" in text] == ([last] if last else [])


def test_worst_cases_come_first() -> None:
    cases = [case(name) for name in "abcd"]
    scores = {"a": 0.5, "b": 0.7, "c": 0.1, "d": 0.5}
    lines = rendered(cases, [row("fail", scores[each.id], of=each) for each in cases])
    assert [line.text.split()[2] for line in lines if line.text.startswith("  fail ")] == ["c", "a", "d", "b"]


def test_lines_are_coloured_by_what_they_say() -> None:
    cases = [case(name) for name in "abcd"]
    rows = [row("pass", of=cases[0]), row("borderline", of=cases[1]), row("fail", of=cases[2])]
    told = rendered(cases, rows)
    place = ("  (evals/a.yaml:3)", "faint")
    assert [line.parts[:3] for line in told if line.text.endswith("(evals/a.yaml:3)")] == [
        (("  error  ", "bad"), ("d", "strong"), place),
        (("  fail 0.200  ", "bad"), ("c", "strong"), place),
        (("  borderline 0.700  ", "warn"), ("b", "strong"), place),
    ]
    assert [line for line in told if line.style != "plain"] == [
        Line("errors:", "title"),
        Line("failures, worst first:", "title"),
        Line("    answer: Hello", "faint"),
        Line("    answer: Hello", "faint"),
        Line("4 cases: 1 passed, 2 failed, 1 error", "strong"),
        Line("gate: not passed", "bad"),
        Line("  pass rate 33.3% is below 100.0%", "bad"),
        Line("  1 error, at most 0 allowed", "bad"),
    ]


@given(any_text)
def test_pieces_of_a_line_are_the_line(text: str) -> None:
    one = case(well_formed(text) or "x")
    for line in rendered([one], [row("fail", of=one, candidate_answer=text)]):
        assert not line.parts or "".join(part for part, _ in line.parts).rstrip() == line.text


def test_gate_is_good_when_it_is_passed() -> None:
    one = case()
    assert rendered([one], [row(of=one)])[-1] == Line("gate: passed", "good")


@pytest.mark.parametrize(
    ("usage", "told"),
    [
        (Usage(input_tokens=1, output_tokens=2, total_tokens=3), "tokens: 1 in, 2 out, 3 total"),
        (Usage(total_tokens=1_000_000), "tokens: 0 in, 0 out, 1,000,000 total"),
        (Usage(), None),
        (None, None),
    ],
)
def test_tokens_are_told_when_somebody_counted_them(usage: Usage | None, told: str | None) -> None:
    one = case()
    lines = [line.text for line in rendered([one], [row(of=one, usage=usage)])]
    assert [text for text in lines if text.startswith("tokens")] == ([told] if told else [])


@pytest.mark.parametrize(
    ("counts", "bars"),
    [((1, 1), (30, 30)), ((1, 2), (15, 30)), ((1, 100), (1, 30)), ((0, 5), (0, 30)), ((29, 30), (29, 30))],
)
def test_longest_bar_is_the_fullest_bin_and_no_case_is_without_a_mark(
    counts: tuple[int, int], bars: tuple[int, int]
) -> None:
    scores = [0.1] * counts[0] + [0.9] * counts[1]
    cases = [case(f"case-{number}") for number in range(len(scores))]
    rows = [row("fail", score, of=each) for each, score in zip(cases, scores, strict=True)]
    lines = [line.text for line in rendered(cases, rows) if line.text.startswith("[")]
    assert (lines[0].count("#"), lines[-1].count("#")) == bars


def test_long_sentence_keeps_its_beginning_and_its_end_where_causes_stand() -> None:
    said = f"it began so {'and went on ' * 100}until the cause"
    text = printed([case("one")], [row("error", of=case("one"), error=said, candidate_answer="")])
    *lines, _again = [line for line in text.splitlines() if line.startswith("    ")]
    assert lines[0].startswith("    process: it began so")
    assert lines[-1].endswith("until the cause")
    assert len(lines) <= 5


@settings(deadline=None, derandomize=True, max_examples=50)
@given(any_text, any_text)
def test_no_text_leaves_its_line_or_the_80_columns(text: str, other: str) -> None:
    one = case()
    lines = [line.text for line in rendered([one], [row("fail", of=one, misses=(text * 20, other))])]
    assert all(len(line) <= 80 and line.splitlines() in ([], [line]) for line in lines)


@pytest.mark.parametrize(
    ("where", "found"),
    [
        ("misses", row("fail", misses=(COMMANDS,))),
        ("reasoning", row("fail", reasoning=COMMANDS)),
        ("error", row("error", error=COMMANDS)),
        ("id", row("fail", of=case(COMMANDS))),
    ],
)
def test_nothing_from_outside_commands_the_terminal(where: str, found: ResultRow) -> None:
    one = case(COMMANDS if where == "id" else "one")
    assert [line.text for line in rendered([one], [found]) if COMMANDING.search(line.text)] == []


def test_thresholds_do_not_change_the_figures() -> None:
    one = case()
    lines = rendered([one], [row("fail", of=one)], suites=[suite(min_pass_rate=0.0)])
    assert lines[-1] == Line("gate: passed", "good")


def test_trial_without_a_verdict_is_named_where_its_case_has_one() -> None:
    of = case("moody", trials=3)
    rows = [row("pass", of=of), row("error", of=of, trial=2, error="no answer"), row("pass", of=of, trial=3)]
    text = printed([of], rows)
    assert text.startswith(
        """\
trials without a verdict:
  error  trial 2 of 3  moody  (evals/a.yaml:3)
    process: no answer

1 case: 1 passed, 0 failed, 0 errors, 1 trial without a verdict
"""
    )
    assert text.endswith("gate: not passed\n  1 error, at most 0 allowed\n")
