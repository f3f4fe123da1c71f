"""Annotations of a finished run: on which line, how bad, and in which order."""

from __future__ import annotations

from agentv_ci.contracts.action import Annotation
from agentv_ci.contracts.report import Ending, GateReason
from agentv_ci.report.renderers.annotations import annotate
from tests.report.builders import case, finding, reported, row, rows_of


def nowhere(*_: str) -> None:
    return None


def test_worst_first_errors_before_failures() -> None:
    rows = [
        row("fail", 0.5, of=case("half", line=3)),
        row("fail", 0.1, of=case("bad", line=9)),
        row("error", of=case("broken", line=20)),
        row("pass", of=case("fine", line=30)),
    ]
    found = [*annotate(reported(rows), nowhere)]
    assert [(each.level, each.title, each.line) for each in found] == [
        ("error", "broken: error", 20),
        ("error", "bad: fail 0.100", 9),
        ("error", "half: fail 0.500", 3),
    ]
    assert {each.path for each in found} == {"evals/a.yaml"}


def test_one_evaluator_that_failed_has_a_line_of_its_own() -> None:
    asked: list[tuple[str, ...]] = []

    def find(*place: str) -> int:
        asked.append(place)
        return 12

    wrong = finding("no greeting")
    (one,) = annotate(reported([row("fail", evaluator_results=(wrong,))]), find)
    assert one.line == 12
    assert one.message == "c: no greeting\ntarget default"
    assert asked == [("evals/a.yaml", "one", "c")]


def test_several_evaluators_are_one_annotation_on_the_case() -> None:
    wrong = tuple(finding(f"reason {number}").model_copy(update={"name": f"e{number}"}) for number in range(20))
    (one,) = annotate(reported([row("fail", evaluator_results=wrong)]), lambda *_: 12)
    assert one.line == 3
    assert one.message.startswith("e0: reason 0\ne1: reason 1\n")
    assert "… and 12 more evaluators" in one.message
    assert len(one.message) < 4_096


def test_failures_that_the_gate_allows_are_warnings() -> None:
    run = reported([row("fail", 0.5)])
    passing = run.report.model_copy(update={"gate": run.report.gate.model_copy(update={"verdict": "pass"})})
    found = annotate(type(run)(passing, run.outcomes, run.rows), nowhere)
    assert [each.level for each in found] == ["warning"]


def test_gate_that_no_case_explains_is_said_without_a_line() -> None:
    run = reported([row("pass")])
    gate = run.report.gate.model_copy(update={"verdict": "fail", "reasons": ("1 regression", "mean too low")})
    found = [*annotate(type(run)(run.report.model_copy(update={"gate": gate}), run.outcomes, run.rows), nowhere)]
    assert found == [Annotation("error", "Evaluations: not passed", "1 regression\nmean too low")]


def test_gate_that_cases_explain_in_part_is_said_besides() -> None:
    run = reported([row("fail")])
    regression = GateReason(kind="regression", suite=None, message="against main: pass rate of all cases: 90% → 80%")
    for causes, levels in (((), ["error"]), ((regression,), ["error", "error"])):
        gate = run.report.gate
        more = {"causes": (*gate.causes, *causes), "reasons": (*gate.reasons, *(each.message for each in causes))}
        report = run.report.model_copy(update={"gate": gate.model_copy(update=more)})
        found = annotate(type(run)(report, run.outcomes, run.rows), nowhere)
        assert [each.level for each in found] == levels


def test_flaky_cases_and_lost_trials_are_told_apart() -> None:
    rows = rows_of(case("shaky", line=5, trials=4), "pass", "pass", "fail", "error")
    found = [*annotate(reported(rows), nowhere)]
    assert ("warning", "shaky: trial 4 of 4 has no verdict") in [(each.level, each.title) for each in found]
    assert ("notice", "shaky: flaky", "2 of 3 trials passed") in [
        (each.level, each.title, each.message) for each in found
    ]


def test_dry_run_says_only_that() -> None:
    found = annotate(reported([row("fail")], Ending(dry_run=True)), nowhere)
    assert [(each.level, each.title) for each in found] == [("notice", "Dry run")]
