"""Cases and suites with all defaults filled in."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from agentv_ci.contracts.plan import PlanCase, PlanGate, PlanSource, PlanSuite
from tests.compile.builders import (
    EVAL,
    MOCK,
    Document,
    case,
    compile_case,
    compile_here,
    contains,
    evals,
    targets,
    text_of,
)

GPT = {"name": "gpt", "provider": "openai", "model": "gpt-5", "api_key": "${{ KEY }}", "base_url": "http://localhost"}
AGENT = {"name": "agent", "provider": "cli", "command_template": "agent {PROMPT}"}
NONE: list[Document] = []
OTHER, OWN = [contains("suite")], [contains("case")]
LIMITS: Document = {"threshold": 0.5, "timeout_seconds": 5, "max_retries": 5}


def without_none(**given: Any) -> Document:
    return {key: value for key, value in given.items() if value is not None}


def compile_execution(root: Path, suite: Any, own: Any, *, top: str | None = None, **selection: Any) -> PlanCase:
    """Compile a case with its own `execution` in a file with another one."""
    document = evals(case(execution=own), **without_none(execution=suite, target=top))
    files = {
        EVAL: document,
        "targets.yaml": targets({**MOCK, "judge_target": "gpt"}, GPT, AGENT | {"judge_target": "gpt"}),
    }
    return compile_here(root, files, **selection).cases[0]


@pytest.mark.parametrize(
    ("suite", "own", "changed"),
    [
        (None, None, {}),
        (LIMITS, None, LIMITS),
        (LIMITS, dict.fromkeys(LIMITS, 1), dict.fromkeys(LIMITS, 1)),
        (LIMITS, {"threshold": 0.0, "max_retries": 0}, {**LIMITS, "threshold": 0.0, "max_retries": 0}),
        ({"repeat": 3}, None, {"trials": 3}),
        ({"repeat": {"max": 3, "require": "all"}}, None, {"trials": 3, "require": "all"}),
        ({"repeat": {"max": 3, "require": "all"}}, {"repeat": 2.0}, {"trials": 2, "require": "majority"}),
        ({"seeds": [7, 11]}, None, {"trials": 2, "seeds": (7, 11)}),
        ({"seeds": [7, 11], "repeat": 1}, None, {"trials": 2, "seeds": (7, 11)}),
        ({"seeds": [7, 11]}, {"repeat": 3}, {"trials": 3, "seeds": (7, 11)}),
        ({"seeds": [7, 11]}, {"seeds": []}, {"seeds": ()}),
        ({"target": "gpt"}, {"target": "default"}, {}),
    ],
)
def test_case_overrides_its_file_key_by_key(repository: Path, suite: Any, own: Any, changed: dict[str, Any]) -> None:
    defaults = {"target": "default", "trials": 1, "require": "majority", "seeds": ()}
    defaults |= {"timeout_seconds": 600.0, "max_retries": 2, "threshold": 0.8}
    found = compile_execution(repository, suite, own)
    assert {name: getattr(found, name) for name in defaults} == {**defaults, **changed}


@pytest.mark.parametrize(
    ("top", "suite", "own", "option", "target"),
    [
        (None, None, None, None, "default"),
        ("gpt", None, None, None, "gpt"),
        ("gpt", "agent", None, None, "agent"),
        ("gpt", "agent", "default", None, "default"),
        ("gpt", "gpt", "gpt", "agent", "agent"),
        (None, None, None, "gpt", "gpt"),
        ("gpt", None, None, "default", "gpt"),
    ],
)
def test_nearest_target_is_used_and_the_option_overrides_it(
    repository: Path, top: str | None, suite: str | None, own: str | None, option: str | None, target: str
) -> None:
    given = [None if each is None else {"target": each} for each in (suite, own)]
    assert compile_execution(repository, *given, top=top, target=option).target == target


@pytest.mark.parametrize(
    ("suite", "own", "execution", "values"),
    [
        (None, None, None, ["judge"]),
        (OTHER, None, None, ["suite"]),
        (OTHER, None, {"threshold": 0.5}, ["suite"]),
        (OTHER, OWN, None, ["case"]),
        (OTHER, None, {"evaluators": OWN}, ["case"]),
        (None, NONE, None, ["judge"]),
        (None, None, {"evaluators": NONE}, ["judge"]),
        (OTHER, NONE, {"evaluators": NONE}, ["suite"]),
    ],
)
def test_evaluators_of_the_file_apply_to_cases_without_their_own(
    repository: Path, suite: Any, own: Any, execution: Any, values: list[str]
) -> None:
    given = without_none(execution=without_none(evaluators=suite) or None)
    (found,) = compile_here(repository, {EVAL: evals(case(evaluators=own, execution=execution), **given)}).cases
    assert [each.value if each.type == "contains" else "judge" for each in found.evaluators] == values


@pytest.mark.parametrize(
    ("target", "own", "judge"),
    [
        (MOCK, None, "default"),
        ({**MOCK, "judge_target": "gpt"}, None, "gpt"),
        ({**MOCK, "judge_target": "gpt"}, "default", "default"),
        (AGENT, "gpt", "gpt"),
    ],
)
def test_judge_of_the_evaluator_or_of_the_target(
    repository: Path, target: Document, own: str | None, judge: str
) -> None:
    listed = targets({**target, "name": "default"}, GPT)
    judged = {"name": "j", "type": "llm_judge", **without_none(judge_target=own)}
    found = compile_case(repository, {"targets.yaml": listed}, evaluators=[judged])
    assert getattr(found.evaluators[0], "target", None) == judge
    assert found.judge_target == (None if target is AGENT else target.get("judge_target", "default"))


@pytest.mark.parametrize("gate", [{}, {"min_pass_rate": 0.0}, {"min_mean_score": 0.0, "max_errors": 2}], ids=str)
def test_suite_is_compiled_in_full(repository: Path, gate: Document) -> None:
    document = evals(description="What it checks.", dataset="greetings", execution={"gate": gate})
    expected = PlanGate(**{"min_pass_rate": 1.0, "min_mean_score": None, "max_errors": 0, **gate})
    assert compile_here(repository, {EVAL: document}).suites == (
        PlanSuite(path=EVAL, dataset="greetings", description="What it checks.", gate=expected),
    )


@pytest.mark.parametrize(("name", "dataset"), [("refunds.test.yaml", "refunds"), ("a b.eval.yml", "a b")])
def test_dataset_is_the_file_name_without_suffixes(repository: Path, name: str, dataset: str) -> None:
    (suite,) = compile_here(repository, {f"evals/{name}": evals()}).suites
    assert suite.dataset == dataset


TEXT = """\
# A remark.
$schema: agentv-eval-v2
evalcases:
  - id: first
    expected_outcome: ok
    input_messages: [{role: user, content: hi}]
    expected_messages: []

  # About the second.
  -   id: second
      expected_outcome: |
        one
        two
      input_messages:
        - role: user
          content: >
            folded
            text

      expected_messages: [
        ]

  - {id: third, expected_outcome: ok, input_messages: [{role: user, content: hi}], expected_messages: []}
# The end.
"""


def test_case_has_its_lines(repository: Path) -> None:
    plan = compile_here(repository, {EVAL: TEXT})
    assert [each.source for each in plan.cases] == [
        PlanSource(path=EVAL, line=4, column=5, end_line=7),
        PlanSource(path=EVAL, line=10, column=7, end_line=21),
        PlanSource(path=EVAL, line=23, column=5, end_line=23),
    ]
    trailing = TEXT.replace("_messages: []\n\n", "_messages: []\n    note: |\n      x\n\n      y\n\n\n")
    assert compile_here(repository, {EVAL: trailing}).cases[0].source.end_line == 11


def test_cases_are_in_the_order_of_files_and_documents(repository: Path) -> None:
    files = {
        "evals/b.yaml": evals(case("z"), case("a")),
        "evals/a/c.yaml": evals(case("m")),
        "evals/a.yaml": evals(case("y")),
    }
    plan = compile_here(repository, files, patterns=["evals/b.yaml", "evals"])
    order = ["evals/a/c.yaml m", "evals/a.yaml y", "evals/b.yaml z", "evals/b.yaml a"]
    assert [f"{each.suite} {each.id}" for each in plan.cases] == order
    assert [each.path for each in plan.suites] == ["evals/a/c.yaml", "evals/a.yaml", "evals/b.yaml"]


def test_metadata_is_kept_and_a_note_is_not(repository: Path) -> None:
    metadata = {"owner": "me", "camelCase": {"snake_case": [1, None, 2.5, True]}, "x-y": "z"}
    plan = compile_here(repository, {EVAL: evals(case(conversation_id="talk", metadata=metadata, note="a remark"))})
    assert (plan.cases[0].conversation_id, plan.cases[0].metadata) == ("talk", metadata)
    assert "a remark" not in text_of(plan)
