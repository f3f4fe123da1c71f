"""The command line's word over a plan."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from agentv_ci.compile.digest import CaseDigests, document_digest
from agentv_ci.compile.document import as_published, prices_by_suite
from agentv_ci.compile.overrides import Overrides, override
from agentv_ci.contracts.plan import Plan, PlanGate
from tests.compile.builders import EVAL, Document, case, compile_here, evals


def planned(root: Path, execution: Document | None = None) -> Plan:
    """A plan of two cases in two suites; `execution` is the first one's."""
    files = {EVAL: evals(execution=execution or {}), "evals/b.yaml": evals(case("two"))}
    return compile_here(root, files)


def test_plan_stays_when_no_flag_is_given(repository: Path) -> None:
    plan = planned(repository, {"threshold": 0.5, "seeds": [1, 2]})
    assert override(plan, Overrides()) == plan


@pytest.mark.parametrize(
    ("execution", "flags", "trials", "seeds"),
    [
        ({}, {"repeat": 3}, 3, ()),
        ({"repeat": 5}, {"repeat": 2}, 2, ()),
        ({"repeat": 5}, {"seed": 7}, 5, (7, 8, 9, 10, 11)),
        ({}, {"seed": 7}, 1, (7,)),
        ({}, {"seed": 0}, 1, (0,)),
        ({}, {"seed": -1, "repeat": 3}, 3, (-1, 0, 1)),
        ({"seeds": [1, 2]}, {"seed": 7}, 2, (7, 8)),
        ({"seeds": [1, 2]}, {"repeat": 3}, 3, (1, 2)),
        ({"seeds": [1, 2]}, {"threshold": 0.5}, 2, (1, 2)),
        ({"seeds": [1, 2], "repeat": 3}, {"max_errors": 1}, 3, (1, 2)),
    ],
)
def test_trials_and_seeds_are_those_of_the_flags(
    repository: Path, execution: Document, flags: dict[str, Any], trials: int, seeds: tuple[int, ...]
) -> None:
    found = override(planned(repository, execution), Overrides(**flags)).cases[0]
    assert (found.trials, found.seeds) == (trials, seeds)


def test_require_stays_when_trials_are_repeated(repository: Path) -> None:
    plan = planned(repository, {"repeat": {"max": 2, "require": "all"}})
    assert override(plan, Overrides(repeat=5)).cases[0].require == "all"


@pytest.mark.parametrize(
    ("flags", "field", "value"),
    [
        ({"threshold": 0.5}, "threshold", 0.5),
        ({"threshold": 0.0}, "threshold", 0.0),
        ({"timeout_s": 0.5}, "timeout_seconds", 0.5),
        ({"max_retries": 0}, "max_retries", 0),
        ({"max_retries": 9}, "max_retries", 9),
    ],
)
def test_flag_counts_for_every_case(repository: Path, flags: dict[str, Any], field: str, value: float) -> None:
    plan = planned(repository, {"threshold": 0.9, "timeout_seconds": 7, "max_retries": 1})
    assert [getattr(each, field) for each in override(plan, Overrides(**flags)).cases] == [value, value]


@pytest.mark.parametrize(
    ("flags", "first", "second"),
    [
        (
            {},
            PlanGate(min_pass_rate=0.5, min_mean_score=0.6, max_errors=3),
            PlanGate(min_pass_rate=1.0, min_mean_score=None, max_errors=0),
        ),
        (
            {"min_pass_rate": 0.0},
            PlanGate(min_pass_rate=0.0, min_mean_score=0.6, max_errors=3),
            PlanGate(min_pass_rate=0.0, min_mean_score=None, max_errors=0),
        ),
        (
            {"min_mean_score": 0.9},
            PlanGate(min_pass_rate=0.5, min_mean_score=0.9, max_errors=3),
            PlanGate(min_pass_rate=1.0, min_mean_score=0.9, max_errors=0),
        ),
        (
            {"max_errors": 0, "threshold": 0.5},
            PlanGate(min_pass_rate=0.5, min_mean_score=0.6, max_errors=0),
            PlanGate(min_pass_rate=1.0, min_mean_score=None, max_errors=0),
        ),
    ],
)
def test_gate_of_every_suite_is_changed_key_by_key(
    repository: Path, flags: dict[str, Any], first: PlanGate, second: PlanGate
) -> None:
    gate = {"min_pass_rate": 0.5, "min_mean_score": 0.6, "max_errors": 3}
    suites = override(planned(repository, {"gate": gate}), Overrides(**flags)).suites
    assert [each.gate for each in suites] == [first, second]


@pytest.mark.parametrize(
    ("flags", "changes"),
    [
        ({"repeat": 3}, False),
        ({"seed": 7}, False),
        ({"timeout_s": 7}, False),
        ({"max_retries": 7}, False),
        ({"min_pass_rate": 0.5}, False),
        ({"min_mean_score": 0.5}, False),
        ({"max_errors": 5}, False),
        ({"threshold": 0.8}, False),
        ({"threshold": 0.5}, True),
    ],
)
def test_only_the_threshold_changes_a_cases_digest(repository: Path, flags: dict[str, Any], changes: bool) -> None:
    plan = planned(repository)
    changed = override(plan, Overrides(**flags))
    assert [each.digest != before.digest for each, before in zip(changed.cases, plan.cases, strict=True)] == [
        changes
    ] * 2


@pytest.mark.parametrize(
    "flags",
    [{"repeat": 3}, {"seed": 7}, {"timeout_s": 7}, {"max_retries": 7}, {"threshold": 0.5}, {"max_errors": 5}],
    ids=str,
)
def test_digests_fit_the_plan_that_was_changed(repository: Path, flags: dict[str, Any]) -> None:
    plan = planned(repository)
    changed = override(plan, Overrides(**flags))
    assert changed.digest == document_digest(as_published(changed)) != plan.digest
    digests = CaseDigests(changed.targets, prices_by_suite(changed))
    assert all(each.digest == digests.of(each) for each in changed.cases)


def test_threshold_of_the_command_line_is_that_of_the_document(repository: Path) -> None:
    written = planned(repository, {"threshold": 0.5}).cases[0]
    assert override(planned(repository), Overrides(threshold=0.5)).cases[0].digest == written.digest
