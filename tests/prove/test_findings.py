"""Findings: what they say, and how to fix them."""

from __future__ import annotations

from typing import Any

import pytest

from agentv_ci.contracts.proof import CaseProof, NullAgentRecord
from agentv_ci.prove.findings import REQUIRE, CaseFindings
from tests.prove.builders import case

EXACT = {"type": "contains", "name": "exact", "value": "x"}
GUARD = {**EXACT, "name": "guard", "negate": True}
OTHER = {**EXACT, "name": "other"}


def passed(
    agents: list[Any], through: list[str], *evaluators: dict[str, Any], redundant: str | None = None
) -> list[tuple[str, str | None]]:
    """Return the messages and hints of a case that null agents pass."""
    one = case("x", evaluators=evaluators)
    records = [NullAgentRecord(agent=each, outcome="passes", evaluators=tuple(through), answer="") for each in agents]
    names = [each["name"] for each in evaluators]
    states: list[Any] = [{"name": each, "state": "redundant" if each == redundant else "needed"} for each in names]
    proof = CaseProof.model_validate(
        {
            "suite": one.suite,
            "id": one.id,
            "path": one.suite,
            "line": 3,
            "proven": True,
            "reference": "none",
            "null_agents": tuple(records),
            "mutants": 0,
            "killed": 0,
            "survived": 0,
            "evaluators": states,
        }
    )
    return [(found.message, found.hint) for found in CaseFindings(one, proof, lambda _: None).all()]


@pytest.mark.parametrize(
    ("agents", "through", "evaluators", "hint"),
    [
        (["empty", "echo-prompt"], ["guard"], [GUARD], f"only negated checks accept it: {REQUIRE}"),
        (["empty"], ["guard"], [GUARD, EXACT], f"only negated checks accept it: {REQUIRE}"),
        (["empty"], ["exact"], [EXACT], REQUIRE),
        (["refusal"], ["exact", "guard"], [EXACT, GUARD], REQUIRE),
        (["empty"], ["exact"], [EXACT, OTHER], "the score is high enough without other: set 'required: true' there"),
        (["echo-prompt"], ["exact"], [EXACT], "the question contains what is looked for"),
        (["other-reference"], ["exact"], [EXACT], "only the answer to this question"),
        (["empty"], [], [EXACT], "without exact: set 'required: true'"),
    ],
)
def test_the_hint_says_what_would_have_caught_a_null_agent(
    agents: list[Any], through: list[str], evaluators: list[Any], hint: str
) -> None:
    ((message, given),) = passed(agents, through, *evaluators)
    by = f"accepted by {', '.join(through)}" if through else "no evaluator of the answer passes"
    assert f"{', '.join(agents)} ({by}" in message
    assert hint in (given or "")


@pytest.mark.parametrize(("through", "hint"), [(["exact"], "set 'required: true'"), (["exact", "other"], "remove it")])
def test_the_hint_of_a_redundant_evaluator_depends_on_what_it_notices(through: list[str], hint: str) -> None:
    _, (message, given) = passed(["empty"], through, EXACT, OTHER, redundant="other")
    assert "'other' is redundant" in message
    assert hint in (given or "")
