"""Options of the command line override a plan."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from agentv_ci.compile.digest import digests_of
from agentv_ci.compile.document import as_published
from agentv_ci.compile.overrides import Overrides, override
from agentv_ci.contracts.plan import Plan, PlanGate
from tests.compile.builders import EVAL, Document, case, compile_here, document_digest, evals


def planned(root: Path, execution: Document | None = None) -> Plan:
    """Return a plan of two cases in two suites; `execution` is that of the first one."""
    return compile_here(root, {EVAL: evals(execution=execution or {}), "evals/b.yaml": evals(case("two"))})


def test_plan_without_options_stays(repository: Path) -> None:
    plan = planned(repository, {"threshold": 0.5, "seeds": [1, 2]})
    assert override(plan, Overrides()) == plan


@pytest.mark.parametrize(
    ("execution", "options", "trials", "seeds"),
    [
        ({}, {"repeat": 3}, 3, ()),
        ({"repeat": 5}, {"repeat": 2}, 2, ()),
        ({"repeat": 5}, {"seed": 7}, 5, (7, 8, 9, 10, 11)),
        ({}, {"seed": 0}, 1, (0,)),
        ({}, {"seed": -1, "repeat": 3}, 3, (-1, 0, 1)),
        ({"seeds": [1, 2]}, {"seed": 7}, 2, (7, 8)),
        ({"seeds": [1, 2]}, {"repeat": 3}, 3, (1, 2)),
        ({"seeds": [1, 2]}, {"repeat": 1}, 1, (1, 2)),
        ({"seeds": [1, 2]}, {"threshold": 0.5}, 2, (1, 2)),
        ({"seeds": [1, 2], "repeat": 3}, {"max_errors": 1}, 3, (1, 2)),
    ],
)
def test_trials_and_seeds(
    repository: Path, execution: Document, options: dict[str, Any], trials: int, seeds: tuple[int, ...]
) -> None:
    found = override(planned(repository, execution), Overrides(**options)).cases[0]
    assert (found.trials, found.seeds) == (trials, seeds)


def test_repeat_keeps_require_and_runs_all_trials(repository: Path) -> None:
    plan = planned(repository, {"repeat": {"max": 2, "require": "all", "stop_when": "decided"}})
    found = override(plan, Overrides(repeat=5)).cases[0]
    assert (found.require, found.stop_when) == ("all", None)
    assert override(plan, Overrides(seed=1)).cases[0].stop_when == "decided"


def test_options_apply_to_every_case(repository: Path) -> None:
    plan = planned(repository, {"threshold": 0.9, "timeout_seconds": 7, "max_retries": 1})
    found = override(plan, Overrides(threshold=0.0, timeout_s=0.5, max_retries=0)).cases
    assert [(each.threshold, each.timeout_seconds, each.max_retries) for each in found] == [(0.0, 0.5, 0)] * 2


@pytest.mark.parametrize(
    "options",
    [{}, {"min_pass_rate": 0.0}, {"min_mean_score": 0.9}, {"max_errors": 0}, {"min_pass_rate": 0.2, "max_errors": 1}],
    ids=str,
)
def test_gate_of_every_suite_is_overridden_key_by_key(repository: Path, options: dict[str, Any]) -> None:
    gate = {"min_pass_rate": 0.5, "min_mean_score": 0.6, "max_errors": 3}
    suites = override(planned(repository, {"gate": gate}), Overrides(threshold=0.5, **options)).suites
    assert [each.gate for each in suites] == [PlanGate(**{**gate, **options}), PlanGate(**options)]


@pytest.mark.parametrize(
    ("options", "changes"),
    [
        ({"repeat": 3, "seed": 7, "timeout_s": 7, "max_retries": 7, "max_errors": 5}, False),
        ({"threshold": 0.5}, True),
    ],
)
def test_digests_match_the_overridden_plan(repository: Path, options: dict[str, Any], changes: bool) -> None:
    plan = planned(repository)
    changed = override(plan, Overrides(**options))
    assert changed.digest == document_digest(as_published(changed)) != plan.digest
    digests = digests_of(changed)
    assert all(each.digest == digests.of(each) for each in changed.cases)
    assert [each.digest != old.digest for each, old in zip(changed.cases, plan.cases, strict=True)] == [changes] * 2
