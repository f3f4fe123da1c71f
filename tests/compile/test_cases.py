"""Cases with all defaults filled in."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agentv_ci.contracts.plan import PlanCase, PlanGate, PlanSource, PlanSuite
from agentv_ci.errors import NothingToRun
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
EVERY_TARGET = {"targets.yaml": targets(MOCK, GPT, AGENT)}


def compile_execution(root: Path, suite: Document | None, own: Document | None, **top: Any) -> PlanCase:
    """Compile a case with an `execution` of its own in a file with another."""
    given: Document = {} if own is None else {"execution": own}
    execution: Document = {} if suite is None else {"execution": suite}
    (found,) = compile_here(root, {EVAL: evals(case(**given), **execution, **top), **EVERY_TARGET}).cases
    return found


def test_case_is_compiled_in_full(repository: Path) -> None:
    plan = compile_here(repository)
    assert json.loads(text_of(plan)) == {
        "$schema": "https://org.github.io/agentv-action/schemas/plan-v1.schema.json",
        "digest": plan.digest,
        "suites": [
            {
                "path": "evals/a.yaml",
                "dataset": "a",
                "validators": [],
                "prices": {},
                "gate": {"minPassRate": 1.0, "maxErrors": 0, "validators": "error"},
            }
        ],
        "targets": {"default": {"name": "default", "provider": "mock"}},
        "files": {},
        "cases": [
            {
                "id": "one",
                "suite": "evals/a.yaml",
                "digest": plan.cases[0].digest,
                "source": {"path": "evals/a.yaml", "line": 1, "column": 45, "endLine": 1},
                "target": "default",
                "judgeTarget": "default",
                "inputMessages": [
                    {"role": "user", "content": [{"type": "text", "text": "Say hello."}], "toolCalls": []}
                ],
                "expectedMessages": [
                    {"role": "assistant", "content": [{"type": "text", "text": "Hello!"}], "toolCalls": []}
                ],
                "expectedOutcome": "It greets.",
                "referenceAnswer": "Hello!",
                "guidelines": [],
                "evaluators": [
                    {
                        "name": "llm_judge",
                        "weight": 1.0,
                        "required": False,
                        "negate": False,
                        "type": "llm_judge",
                        "target": "default",
                        "judgeRetries": 2,
                    }
                ],
                "trials": 1,
                "require": "majority",
                "seeds": [],
                "timeoutSeconds": 600.0,
                "maxRetries": 2,
                "threshold": 0.8,
                "metadata": {},
            }
        ],
    }


@pytest.mark.parametrize(
    ("suite", "own", "changed"),
    [
        (None, None, {}),
        ({"threshold": 0.5}, None, {"threshold": 0.5}),
        ({"threshold": 0.5}, {"threshold": 0.9}, {"threshold": 0.9}),
        ({"threshold": 0.5}, {"threshold": 0.0}, {"threshold": 0.0}),
        ({"timeout_seconds": 5}, None, {"timeout_seconds": 5.0}),
        ({"timeout_seconds": 5}, {"timeout_seconds": 0.5}, {"timeout_seconds": 0.5}),
        ({"max_retries": 5}, None, {"max_retries": 5}),
        ({"max_retries": 5}, {"max_retries": 0}, {"max_retries": 0}),
        ({"target": "gpt"}, None, {"target": "gpt"}),
        ({"target": "gpt"}, {"target": "default"}, {"target": "default"}),
        ({"repeat": 3}, None, {"trials": 3}),
        ({"repeat": 3}, {"repeat": 2}, {"trials": 2}),
        ({"repeat": {"max": 3}}, None, {"trials": 3}),
        ({"repeat": {"max": 3, "require": "all"}}, None, {"trials": 3, "require": "all"}),
        ({"repeat": {"max": 3, "require": "all"}}, {"repeat": 2}, {"trials": 2, "require": "majority"}),
        ({"repeat": 5}, {"repeat": {"max": 2, "require": "any"}}, {"trials": 2, "require": "any"}),
        ({"seeds": [7, 11]}, None, {"trials": 2, "seeds": (7, 11)}),
        ({"seeds": [7, 11], "repeat": 3}, None, {"trials": 3, "seeds": (7, 11)}),
        ({"seeds": [7, 11], "repeat": 1}, None, {"trials": 2, "seeds": (7, 11)}),
        ({"seeds": [7, 11]}, {"seeds": []}, {"seeds": ()}),
        ({"seeds": [7, 11]}, {"repeat": 3}, {"trials": 3, "seeds": (7, 11)}),
        ({"threshold": 0.5, "max_retries": 0}, {"threshold": 0.6}, {"threshold": 0.6, "max_retries": 0}),
        (None, {"threshold": 1, "repeat": 2.0}, {"threshold": 1.0, "trials": 2}),
    ],
)
def test_case_overrides_its_file_key_by_key(
    repository: Path, suite: Document | None, own: Document | None, changed: dict[str, Any]
) -> None:
    defaults = {
        "target": "default",
        "trials": 1,
        "require": "majority",
        "seeds": (),
        "timeout_seconds": 600.0,
        "max_retries": 2,
        "threshold": 0.8,
    }
    found = compile_execution(repository, suite, own)
    assert {name: getattr(found, name) for name in defaults} == {**defaults, **changed}


@pytest.mark.parametrize(
    ("top", "suite", "own", "flag", "target"),
    [
        (None, None, None, None, "default"),
        ("gpt", None, None, None, "gpt"),
        ("gpt", "agent", None, None, "agent"),
        ("gpt", "agent", "default", None, "default"),
        ("gpt", None, "agent", None, "agent"),
        ("gpt", "gpt", "gpt", "agent", "agent"),
        (None, None, None, "gpt", "gpt"),
        ("gpt", None, None, "default", "gpt"),
        (None, None, "agent", "default", "agent"),
    ],
)
def test_nearest_target_counts_and_the_command_line_beats_it(
    repository: Path, top: str | None, suite: str | None, own: str | None, flag: str | None, target: str
) -> None:
    document = evals(
        case(execution={"target": own} if own else {}, evaluators=[contains()]),
        **({"target": top} if top else {}),
        **({"execution": {"target": suite}} if suite else {}),
    )
    assert compile_here(repository, {EVAL: document, **EVERY_TARGET}, target=flag).cases[0].target == target


NONE: list[Document] = []
OTHER, OWN = [contains("suite")], [contains("case")]


@pytest.mark.parametrize(
    ("suite", "own", "execution", "values"),
    [
        (None, None, None, ["judge"]),
        (OTHER, None, None, ["suite"]),
        (OTHER, OWN, None, ["case"]),
        (OTHER, None, OWN, ["case"]),
        (OTHER, OTHER, OWN, ["case"]),
        (None, OWN, None, ["case"]),
        (None, NONE, None, ["judge"]),
        (None, None, NONE, ["judge"]),
        (NONE, None, None, ["judge"]),
        (NONE, OWN, None, ["case"]),
        (OTHER, NONE, None, ["suite"]),
        (OTHER, None, NONE, ["suite"]),
        (OTHER, OWN, NONE, ["case"]),
    ],
)
def test_evaluators_of_the_file_apply_to_every_case_that_declares_none(
    repository: Path,
    suite: list[Document] | None,
    own: list[Document] | None,
    execution: list[Document] | None,
    values: list[str],
) -> None:
    given: Document = {} if own is None else {"evaluators": own}
    if execution is not None:
        given["execution"] = {"evaluators": execution}
    document = evals(case(**given), **({} if suite is None else {"execution": {"evaluators": suite}}))
    (found,) = compile_here(repository, {EVAL: document}).cases
    assert [each.value if each.type == "contains" else "judge" for each in found.evaluators] == values


def test_evaluators_of_the_file_stay_when_a_case_has_another_execution(repository: Path) -> None:
    found = compile_execution(repository, {"evaluators": OTHER}, {"threshold": 0.5})
    assert [each.name for each in found.evaluators] == ["c"]


@pytest.mark.parametrize(
    ("target", "judge"),
    [
        (MOCK, "default"),
        ({**MOCK, "judge_target": "gpt"}, "gpt"),
        ({**AGENT, "name": "default"}, None),
        ({**AGENT, "name": "default", "judge_target": "gpt"}, "gpt"),
    ],
)
def test_target_is_judged_by_its_judge_and_models_by_themselves(
    repository: Path, target: Document, judge: str | None
) -> None:
    found = compile_case(repository, {"targets.yaml": targets(target, GPT)}, evaluators=[contains()])
    assert found.judge_target == judge


@pytest.mark.parametrize(
    ("evaluator", "judge"),
    [({}, "gpt"), ({"judge_target": "other"}, "other"), ({"judge_target": "default"}, "default")],
)
def test_evaluator_may_name_another_judge(repository: Path, evaluator: Document, judge: str) -> None:
    listed = targets({**MOCK, "judge_target": "gpt"}, GPT, {"name": "other", "provider": "mock"})
    found = compile_case(
        repository, {"targets.yaml": listed}, evaluators=[{"name": "j", "type": "llm_judge", **evaluator}]
    )
    assert [each.target for each in found.evaluators if each.type == "llm_judge"] == [judge]


def test_suite_is_compiled_in_full(repository: Path) -> None:
    document = evals(
        description="What it checks.",
        dataset="greetings",
        execution={"gate": {"min_pass_rate": 0.5, "min_mean_score": 0.25, "max_errors": 3}},
    )
    assert compile_here(repository, {EVAL: document}).suites == (
        PlanSuite(
            path="evals/a.yaml",
            dataset="greetings",
            description="What it checks.",
            gate=PlanGate(min_pass_rate=0.5, min_mean_score=0.25, max_errors=3),
        ),
    )


@pytest.mark.parametrize(
    ("given", "gate"),
    [
        ({}, PlanGate(min_pass_rate=1.0, min_mean_score=None, max_errors=0)),
        ({"min_pass_rate": 0}, PlanGate(min_pass_rate=0.0, min_mean_score=None, max_errors=0)),
        ({"min_mean_score": 0}, PlanGate(min_pass_rate=1.0, min_mean_score=0.0, max_errors=0)),
        ({"max_errors": 2}, PlanGate(min_pass_rate=1.0, min_mean_score=None, max_errors=2)),
    ],
)
def test_gate_has_its_defaults_key_by_key(repository: Path, given: Document, gate: PlanGate) -> None:
    (suite,) = compile_here(repository, {EVAL: evals(execution={"gate": given})}).suites
    assert suite.gate == gate


@pytest.mark.parametrize(
    ("name", "dataset"),
    [("a.yaml", "a"), ("refunds.test.yaml", "refunds"), ("a b.eval.yml", "a b"), ("x.y.z.yml", "x")],
)
def test_dataset_is_the_files_name_without_suffixes(repository: Path, name: str, dataset: str) -> None:
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


def test_case_is_placed_where_the_author_wrote_it(repository: Path) -> None:
    plan = compile_here(repository, {EVAL: TEXT})
    assert [each.source for each in plan.cases] == [
        PlanSource(path="evals/a.yaml", line=4, column=5, end_line=7),
        PlanSource(path="evals/a.yaml", line=10, column=7, end_line=21),
        PlanSource(path="evals/a.yaml", line=23, column=5, end_line=23),
    ]


def test_case_ends_with_its_last_line_of_text(repository: Path) -> None:
    text = TEXT.replace(
        "    expected_messages: []\n\n", "    expected_messages: []\n    note: |\n      x\n\n      y\n\n\n"
    )
    assert compile_here(repository, {EVAL: text}).cases[0].source.end_line == 11


def test_cases_come_in_the_order_of_their_files_and_documents(repository: Path) -> None:
    files = {
        "evals/b.yaml": evals(case("z"), case("a")),
        "evals/a/c.yaml": evals(case("m")),
        "evals/a.yaml": evals(case("y")),
    }
    plan = compile_here(repository, files, patterns=["evals/b.yaml", "evals"])
    assert [(each.suite, each.id) for each in plan.cases] == [
        ("evals/a/c.yaml", "m"),
        ("evals/a.yaml", "y"),
        ("evals/b.yaml", "z"),
        ("evals/b.yaml", "a"),
    ]
    assert [each.path for each in plan.suites] == ["evals/a/c.yaml", "evals/a.yaml", "evals/b.yaml"]


@pytest.mark.parametrize(
    ("patterns", "ids"),
    [
        ([], ["refund-1", "refund-2", "a[1]", "A[1]"]),
        (["refund-1"], ["refund-1"]),
        (["refund-*"], ["refund-1", "refund-2"]),
        (["*1*"], ["refund-1", "a[1]", "A[1]"]),
        (["refund-2", "refund-1"], ["refund-1", "refund-2"]),
        (["refund-?", "refund-1"], ["refund-1", "refund-2"]),
        (["a[1]"], ["a[1]"]),
        (["refund-[12]"], ["refund-1", "refund-2"]),
    ],
)
def test_cases_are_kept_when_their_id_is_asked_for(repository: Path, patterns: list[str], ids: list[str]) -> None:
    document = evals(*(case(name) for name in ("refund-1", "refund-2", "a[1]", "A[1]")))
    assert [each.id for each in compile_here(repository, {EVAL: document}, eval_ids=patterns).cases] == ids


def test_suite_without_cases_that_are_asked_for_is_left_out(repository: Path) -> None:
    files = {EVAL: evals(case("one")), "evals/b.yaml": evals(case("two"))}
    plan = compile_here(repository, files, eval_ids=["two"])
    assert [each.path for each in plan.suites] == ["evals/b.yaml"]


def test_nothing_is_compiled_when_no_id_matches(repository: Path) -> None:
    with pytest.raises(NothingToRun, match="no case matches --eval-id"):
        compile_here(repository, eval_ids=["x"])


def test_conversation_and_metadata_are_kept(repository: Path) -> None:
    metadata = {"owner": "me", "camelCase": {"snake_case": [1, None, 2.5, True]}, "x-y": "z"}
    found = compile_case(repository, conversation_id="talk", metadata=metadata)
    assert (found.conversation_id, found.metadata) == ("talk", metadata)


def test_note_is_not_part_of_the_plan(repository: Path) -> None:
    plan = compile_here(repository, {EVAL: evals(case(note="nobody reads this"))})
    assert "nobody reads this" not in text_of(plan)


@pytest.mark.parametrize(
    "written",
    [
        pytest.param(
            {"expected_outcome": None, "outcome": "It greets.", "conversation_id": "x"}, id="older name of the outcome"
        ),
        pytest.param(
            {
                "expected_outcome": None,
                "input_messages": None,
                "expected_messages": None,
                "expectedOutcome": "It greets.",
                "inputMessages": [{"role": "user", "content": "Say hello."}],
                "expectedMessages": [{"role": "assistant", "content": "Hello!"}],
                "conversationId": "x",
            },
            id="camel case",
        ),
        pytest.param(
            {
                "input_messages": [{"role": "user", "content": [{"type": "text", "value": "Say hello."}]}],
                "expected_messages": [{"role": "assistant", "content": ["Hello!"]}],
                "conversation_id": "x",
            },
            id="long form",
        ),
        pytest.param(
            {
                "conversation_id": "x",
                "metadata": {},
                "execution": {
                    "target": "default",
                    "repeat": {"max": 1, "require": "majority"},
                    "seeds": [],
                    "threshold": 0.8,
                    "timeout_seconds": 600,
                    "max_retries": 2,
                },
            },
            id="defaults written out",
        ),
    ],
)
def test_other_ways_to_write_a_case_give_the_same(repository: Path, written: Document) -> None:
    plain = compile_case(repository, conversation_id="x")
    found = compile_case(repository, **written)
    assert found.model_copy(update={"source": plain.source}) == plain


def test_lone_surrogate_in_a_document_is_a_mistake_of_its_author_and_no_crash(repository: Path) -> None:
    document = json.dumps(evals(case(metadata={"x": "\ud800"})))
    with pytest.raises(AssertionError, match="AV"):
        compile_here(repository, {EVAL: document})
