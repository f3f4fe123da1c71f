"""What a run has cost, and whether it may go on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

import pytest

from agentv_ci.contracts.agent_targets import CodexTarget
from agentv_ci.contracts.api_targets import OpenAITarget
from agentv_ci.contracts.exchange import Response
from agentv_ci.contracts.results import OutputMessage, Usage
from agentv_ci.contracts.targets import CliTarget, MockTarget, Target
from agentv_ci.execute.budget import Budget
from tests.report.builders import suite

A, B = "evals/a.yaml", "evals/b.yaml"
GPT = OpenAITarget(name="gpt", provider="openai", model="gpt-2030")
CODEX = CodexTarget(name="codex", provider="codex")
COMMAND = CliTarget(name="command", provider="cli", command_template="x")
MOCK = MockTarget(name="mock", provider="mock")


def answer(
    cost_usd: float | None = None, *, model: str | None = None, cached: bool = False, counted: bool = True
) -> Response:
    messages = (OutputMessage(role="assistant", content="42"),)
    told = Response("42", messages, has_trace=False, model=model, cost_usd=cost_usd, cached=cached)
    return replace(told, usage=Usage(input_tokens=100, output_tokens=10, total_tokens=110) if counted else None)


NONE: Mapping[str, float] = MappingProxyType({})


def budget(
    most_usd: float | None = None,
    *,
    shards: int = 1,
    warned: list[str] | None = None,
    own: Mapping[str, float] = NONE,
) -> Budget:
    suites = {path: suite(path, **({"max_cost_usd": own[name]} if name in own else {})) for name, path in PATHS.items()}
    return Budget(most_usd, suites, shards, ([] if warned is None else warned).append)


PATHS = {"a": A, "b": B}


def test_costs_are_added_up_by_suite_and_in_all() -> None:
    spent = budget(1.0, own={"a": 0.5})
    for path in (A, A, B):
        spent.answered(GPT, answer(0.25), path)
    assert (spent.spent_usd, spent.is_exhausted(A), spent.is_exhausted(B)) == (0.75, True, False)
    spent.answered(GPT, answer(0.25), B)
    assert spent.is_exhausted(B)


def test_without_a_bound_nothing_is_exhausted() -> None:
    spent = budget()
    spent.answered(GPT, answer(1e9), A)
    assert not spent.is_exhausted(A)


def test_nothing_is_the_budget_of_what_costs_nothing() -> None:
    spent = budget(0.0)
    spent.answered(MOCK, answer(), A)
    assert not spent.is_exhausted(A)
    spent.answered(GPT, answer(0.0001), A)
    assert spent.is_exhausted(A)


def test_every_shard_has_its_share() -> None:
    spent = budget(4.0, shards=4, own={"b": 2.0})
    spent.answered(GPT, answer(0.5), B)
    assert (spent.is_exhausted(B), spent.is_exhausted(A)) == (True, False)
    spent.answered(GPT, answer(0.5), A)
    assert spent.is_exhausted(A)


def test_what_was_kept_costs_nothing_again() -> None:
    spent = budget(1.0)
    spent.answered(GPT, answer(5.0, cached=True), A)
    spent.answered(GPT, answer(None, cached=True), A)
    assert (spent.spent_usd, list(spent.unpriced)) == (0.0, [])


@pytest.mark.parametrize(
    ("target", "found", "named"),
    [
        (GPT, answer(), ["gpt-2030"]),
        (CODEX, answer(model="served"), ["served"]),
        (CODEX, answer(), ["codex"]),
        (GPT, answer(counted=False), ["gpt-2030 (does not report tokens)"]),
        (COMMAND, answer(), []),
        (MOCK, answer(), []),
    ],
)
def test_a_model_without_a_price_is_named(target: Target, found: Response, named: list[str]) -> None:
    spent = budget()
    spent.answered(target, found, A)
    spent.answered(target, found, A)
    assert list(spent.unpriced) == named


@pytest.mark.parametrize(("most_usd", "own", "warned"), [(None, {}, 0), (1.0, {}, 1), (None, {"b": 1.0}, 1)])
def test_with_a_budget_people_are_told_of_it_once(most_usd: float | None, own: dict[str, float], warned: int) -> None:
    said: list[str] = []
    spent = budget(most_usd, warned=said, own=own)
    spent.answered(GPT, answer(), A)
    spent.answered(GPT, answer(), B)
    assert len(said) == warned
    assert all("'gpt-2030'" in each and "'prices'" in each for each in said)
