"""Annotations of a finished run: line, level, order, and that each is one command."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from agentv_ci.app.documents.evaluator_lines import EvaluatorLines
from agentv_ci.base.json_access import text_at
from agentv_ci.base.workflow_commands import annotation_command
from agentv_ci.contracts.action import Annotation
from agentv_ci.contracts.report import Ending, GateReason, GateVerdict
from agentv_ci.github.publishing import limited
from agentv_ci.report import diagnostics
from agentv_ci.report.renderers.annotations import annotate
from agentv_ci.report.view import RunView
from tests.support import write
from tests.support.markdown import MARKDOWN_ATTACKS
from tests.support.runs import case, diagnostics_of, finding, reported, row, rows_of, well_formed

RUNNER_KEEPS = 4_096
"""Characters of a message."""


def annotated(run: RunView, line: int | None = None) -> list[Annotation]:
    return [*annotate(run, lambda *_: line)]


def with_gate(run: RunView, **given: Any) -> RunView:
    return replace(run, report=run.report.model_copy(update={"gate": run.report.gate.model_copy(update=given)}))


def test_errors_first_then_the_worst_failures() -> None:
    rows = [
        row("fail", 0.5, of=case("half", line=3)),
        row("fail", 0.1, of=case("bad", line=9)),
        row("error", of=case("broken", line=20)),
        row("pass", of=case("fine", line=30)),
    ]
    assert [(each.level, each.title, each.path, each.line) for each in annotated(reported(rows))] == [
        ("error", "broken: error", "evals/a.yaml", 20),
        ("error", "bad: fail 0.100", "evals/a.yaml", 9),
        ("error", "half: fail 0.500", "evals/a.yaml", 3),
    ]


def test_one_failed_evaluator_is_annotated_on_its_line() -> None:
    lines = {("evals/a.yaml", "one", "c"): 12}
    run = reported([row("fail", evaluator_results=(finding("no greeting"),))])
    (one,) = annotate(run, lambda *place: lines[place])
    assert (one.line, one.message) == (12, "c: no greeting\ntarget default")


def test_several_failed_evaluators_are_one_annotation_on_the_case() -> None:
    wrong = tuple(finding(f"reason {number}", name=f"e{number}") for number in range(20))
    (one,) = annotated(reported([row("fail", evaluator_results=wrong)]), 12)
    assert one.line == 3
    assert one.message.startswith("e0: reason 0\ne1: reason 1\n")
    assert one.message.endswith("… and 12 more evaluators\ntarget default")


def test_failures_are_warnings_if_the_gate_is_passed() -> None:
    (one,) = annotated(with_gate(reported([row("fail", 0.5)]), verdict="pass"))
    assert (one.level, one.is_failure) == ("warning", True)


@pytest.mark.parametrize(("verdict", "level"), [("fail", "error"), ("nothing", "notice")])
def test_gate_that_no_case_explains(verdict: GateVerdict, level: str) -> None:
    run = with_gate(reported([row("pass")]), verdict=verdict, reasons=("1 regression", "mean too low"))
    (one,) = annotated(run)
    assert (one.level, one.title, one.message) == (level, run.title, "1 regression\nmean too low")


def test_gate_that_cases_explain_in_part() -> None:
    run = reported([row("fail")])
    regression = GateReason(kind="regression", suite=None, message="against main: pass rate of all cases: 90% → 80%")
    assert [each.level for each in annotated(run)] == ["error"]
    assert len(annotated(with_gate(run, causes=(*run.report.gate.causes, regression)))) == 2


def test_flaky_cases_and_trials_without_a_verdict() -> None:
    run = reported(rows_of(case("shaky", line=5, trials=4), "ppfe"))
    assert [(each.level, each.title, each.message) for each in annotated(run)[1:]] == [
        ("warning", "shaky: trial 4 of 4 has no verdict", "server: it broke"),
        ("notice", "shaky: flaky", "2 of 3 trials passed"),
    ]


def test_dry_run() -> None:
    (only,) = annotated(reported([row("fail")], Ending(dry_run=True)))
    assert (only.level, only.title) == ("notice", "Dry run")


def undone(command: str) -> str:
    """The message that the runner reads from a command."""
    return command.split("::", 2)[2].replace("%0D", "\r").replace("%0A", "\n").replace("%25", "%")


@settings(max_examples=25)
@given(st.sampled_from([*MARKDOWN_ATTACKS, "##[error]x", "::error::x", "\n::stop-commands::x\n", "\r##[add-mask]e"]))
def test_every_annotation_is_one_command(attack: str) -> None:
    name = well_formed(attack) or "x"
    failed = row("fail", eval_id=f"{attack}x", target=name, evaluator_results=(finding(attack * 3, name=name),))
    document = diagnostics_of(attack, hint=attack, path=attack, case=attack, target=attack)
    for each in map(annotation_command, [*annotated(reported([failed])), *diagnostics.annotate(document, str)]):
        assert len(each.splitlines()) == 1
        assert "##[" not in each
        assert re.match(r"::(error|warning|notice) [^:]*::", each)
        assert not re.search(r"^\s*::", undone(each), re.MULTILINE)


@pytest.mark.parametrize("piece", ["%", "\n", ":,", "😀", "\x1b[31m", "\u202e"])
def test_messages_are_not_longer_than_the_runner_keeps(piece: str) -> None:
    bad = tuple(finding(piece * 9_999, name=f"{piece}{number}") for number in range(99))
    run = reported([row("fail", eval_id=piece * 999, evaluator_results=bad)])
    document = diagnostics_of(piece * 9_999, hint=piece * 9_999, path=piece * 9_999)
    for each in limited([*annotated(run), *diagnostics.annotate(document, str)]):
        assert len(undone(annotation_command(each))) <= RUNNER_KEEPS


def test_lines_of_many_cases_are_found_in_one_reading(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    looked_up = Mock(side_effect=text_at)
    monkeypatch.setattr("agentv_ci.app.documents.evaluator_lines.text_at", looked_up)
    one = "  - id: case-{}\n    evaluators: [{{name: judge, type: contains, value: x}}]\n"
    cases = "".join(one.format(number) for number in range(200))
    write(tmp_path, {"evals/a.yaml": f"$schema: agentv-eval-v2\nevalcases:\n{cases}"})
    rows = [row("fail", of=case(f"case-{each}"), evaluator_results=(finding("no"),)) for each in range(200)]
    assert len([*limited(annotate(reported(rows), EvaluatorLines(tmp_path, tmp_path).find))]) == 10
    assert looked_up.call_count <= 2_000


@pytest.mark.parametrize("suite", ["a\0b", "/proc/self/environ", "/dev/zero", "../../etc/passwd", "fifo", "x" * 5_000])
def test_suite_outside_the_repository_has_no_lines(tmp_path: Path, suite: str) -> None:
    os.mkfifo(tmp_path / "fifo")
    failed = row("fail", suite=suite, evaluator_results=(finding("no"),))
    (only,) = annotate(reported([failed]), EvaluatorLines(tmp_path, tmp_path).find)
    assert only.line == failed.source.line
