"""How the summary lists what the evaluators of a failed case found."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given, settings

from agentv_ci.analysis.outcomes import MAX_FINDING
from agentv_ci.analysis.run_report import report
from agentv_ci.contracts.report import Ending
from agentv_ci.contracts.results import EvaluatorResult, ResultRow
from agentv_ci.report.renderers.terminal import WIDTH, render
from agentv_ci.report.view import RunView
from tests.report.builders import any_text, case, outcomes_of, plan, row, well_formed

COMMANDING = re.compile("[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def result(name: str = "c", verdict: str = "fail", score: float = 0.0, **given: Any) -> EvaluatorResult:
    status = verdict if verdict in ("error", "skipped") else "ok"
    plain: dict[str, Any] = {"type": "contains", "weight": 1.0, "required": False, "hits": (), "misses": ()}
    plain |= {"reasoning": "", "raw_response": None, "status": status, "name": name, "verdict": verdict, "score": score}
    return EvaluatorResult.model_validate(plain | given)


def listed(*results: EvaluatorResult, of: ResultRow | None = None) -> list[str]:
    """Return the lines below the case."""
    failed = (of or row("fail")).model_copy(update={"evaluator_results": results, "candidate_answer": ""})
    shown = [line.text for line in render(RunView(*report(plan(case()), [failed], Ending())))]
    *found, again = [line[4:] for line in shown if line.startswith("    ")]
    assert again == "again: agentv-ci eval evals/a.yaml --eval-id=one"
    return found


def test_every_evaluator_of_a_failed_case_has_its_line() -> None:
    assert listed(
        result("greets", "pass", 1.0, hits=("contains 'hi'", "in time"), misses=("unsaid",)),
        result("thanks", "borderline", 0.7, hits=("unsaid",), misses=("no thanks", "too short")),
        result("cost", "skipped", reasoning="the target does not report a cost"),
        result("judge", "error", reasoning="it broke", misses=()),
        result("near", "fail", 0.25, reasoning="rouge_l 0.250"),
        result("silent", "fail", 0.0),
    ) == [
        "pass       1.000  greets: contains 'hi'; in time",
        "borderline 0.700  thanks: no thanks; too short",
        "skipped           cost: the target does not report a cost",
        "error             judge: it broke",
        "fail       0.250  near: rouge_l 0.250",
        "fail       0.000  silent",
    ]


def test_only_evaluator_of_a_case_is_its_reason() -> None:
    assert listed(result(misses=("unsaid",)), of=row("fail", misses=("the rows' own",))) == ["the rows' own"]


def test_case_without_findings_says_what_its_row_says() -> None:
    assert listed(of=row("fail", reasoning="because")) == ["because"]


@pytest.mark.parametrize(("kind", "verdict"), [("schema", "fail"), ("contains", "pass"), ("schema", "pass")])
def test_violations_and_what_passed_take_one_line(kind: str, verdict: str) -> None:
    said: dict[str, Any] = {"hits": ("word " * 50,)} if verdict == "pass" else {"misses": ("word " * 50,)}
    first, second = listed(result("a", verdict, type=kind, **said), result("b", misses=("x",)))
    assert first.endswith("…")
    assert second == "fail       0.000  b: x"


def test_long_miss_is_shown_by_its_beginning_and_its_end_on_a_few_lines() -> None:
    shown = listed(result("a", misses=("begin " + "word " * 10_000 + "end",)), result("b"))
    assert shown[0].startswith("fail       0.000  a: begin")
    assert any(line.endswith("end") for line in shown)
    assert 1 < len(shown) < 10
    assert all(len(line) <= WIDTH - 4 for line in shown)


def test_passed_case_has_no_findings() -> None:
    passed = row("pass", evaluator_results=(result("a", "pass", 1.0),))
    (outcome,) = outcomes_of(plan(case()), [passed])
    assert outcome.findings == ()


def test_findings_are_those_of_the_worst_trial() -> None:
    one = case(trials=3)
    rows = [
        row("pass", of=one, trial=1, evaluator_results=(result("a", "pass", 1.0),)),
        row("error", of=one, trial=2, evaluator_results=(result("b", "error"),)),
        row("fail", of=one, trial=3, evaluator_results=(result("c", misses=("x" * 1000,)),)),
    ]
    (outcome,) = outcomes_of(plan(one), rows)
    (found,) = outcome.findings
    assert (found.name, found.verdict, len(found.text)) == ("c", "fail", MAX_FINDING)


@settings(deadline=None, derandomize=True, max_examples=50)
@given(any_text, any_text)
def test_no_text_commands_the_terminal_or_breaks_the_list(name: str, said: str) -> None:
    clean = [well_formed(each) for each in (name or "n", said)]
    both = (result(clean[0] or "n", misses=(clean[1],), reasoning=clean[1]), result("b", hits=(clean[1],)))
    assert not any(COMMANDING.search(line) for line in listed(*both))
