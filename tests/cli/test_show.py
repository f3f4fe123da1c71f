"""`agentv-ci show`: all that is known of one case."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from agentv_ci.contracts.results import OutputMessage, PrintedOutput
from tests.support.projects import GREETS, HELLO, Project
from tests.support.runs import case, row

BAD = {**GREETS, "name": "bad", "response": "Go away."}
CALL = {"tool": "search", "input": {"q": "ä"}, "output": [3, None]}
TURNS = (OutputMessage.model_validate({"role": "assistant", "content": "Hm", "tool_calls": [CALL]}),)


@pytest.fixture
def project(tmp_path: Path) -> Project:
    found = Project(tmp_path)
    (tmp_path / ".git").mkdir()
    return found


def test_question_trials_and_the_way_to_run_it_again(project: Project) -> None:
    project.documents("greets", {"id": "leaves", "evaluators": [{**HELLO, "name": "bye", "value": "bye"}]})
    project.run("eval", "evals", "--repeat", "2")
    shown = project.run("show", "leaves")
    assert shown.code == 0
    assert (
        shown.out
        == """\
leaves  0 of 2 trials passed  (target default, evals/x.yaml:1)
user:
  Greet me
expected outcome:
  A greeting
trial 1: fail 0.000  0.0 s
answer:
  Hello!
  called greet()
  fail 0.000       bye: does not contain 'bye'
trial 2: fail 0.000  0.0 s
answer:
  Hello!
  called greet()
  fail 0.000       bye: does not contain 'bye'
again: agentv-ci eval evals/x.yaml --eval-id=leaves --repeat=2
"""
    )


def test_targets_of_a_case(project: Project) -> None:
    project.documents("greets", targets=(GREETS, BAD))
    project.run("eval", "evals", "--target", "default", "--target", "bad", "--out", "r.jsonl")
    both = project.run("show", "r.jsonl", "gree*").out
    assert both.count("greets  ") == 2
    only = project.run("show", "r.jsonl", "greets", "--target", "bad").out
    assert "Go away." in only
    assert "Hello!" not in only


@pytest.mark.parametrize(
    ("given", "lines"),
    [
        ({"output_messages": TURNS}, ['  called search({"q": "ä"}) → [3, null]']),
        ({"candidate_answer": "one\n\x1b[2Jtwo\n::error::three"}, ["  one", "  two"]),
        (
            {"error": "no key", "printed": PrintedOutput(stdout="partial", stderr="Traceback")},
            ["error:", "  no key", "standard output:", "  partial", "standard error:", "  Traceback"],
        ),
        ({"candidate_answer": "", "cost_usd": 0.5, "model": "m-1"}, ["trial 1: fail 0.200  1.5 s, $0.5000, m-1"]),
    ],
    ids=["tools", "controls", "crash", "figures"],
)
def test_what_a_trial_shows(project: Project, given: dict[str, Any], lines: list[str]) -> None:
    project.store("r.jsonl", row("fail", of=case("a"), **given).model_dump(mode="json"))
    shown = project.run("show", "r.jsonl", "a").out.splitlines()
    assert [line for line in shown if line in lines] == lines
    assert not any(line.lstrip().startswith("::") or "\x1b" in line for line in shown)


@pytest.mark.parametrize(
    ("arguments", "code", "error"),
    [
        (("r.jsonl", "gretes"), 3, "no case 'gretes' in 'r.jsonl' (did you mean 'greets'?)"),
        (("r.jsonl", "greets", "--target", "other"), 3, "no case 'greets' in 'r.jsonl'"),
        (("gone.jsonl", "greets"), 2, "cannot read 'gone.jsonl'"),
        (("a", "b", "c"), 2, "name one case, and results before it"),
        ((), 2, "missing argument '[RESULTS] CASE'"),
        (("many.jsonl", "*"), 2, "'*' matches 21 cases; name one of them"),
    ],
)
def test_case_that_cannot_be_shown(project: Project, arguments: tuple[str, ...], code: int, error: str) -> None:
    project.store("r.jsonl", row(of=case("greets")).model_dump(mode="json"))
    project.store("many.jsonl", *(row(of=case(f"c-{n}")).model_dump(mode="json") for n in range(21)))
    project.refuses("show", *arguments, error=error, code=code)
