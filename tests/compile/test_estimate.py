"""What a run will ask and cost."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from agentv_ci.compile.estimate import ANSWER_TOKENS, JUDGE_REPLY_TOKENS, estimate, tokens
from agentv_ci.contracts.plan_summaries import Estimate
from tests.compile.builders import EVAL, case, compile_here, contains, evals, targets

GPT = {"name": "default", "provider": "openai", "model": "gpt-5", "api_key": "${{ KEY }}"}
PRICES = {"gpt-5": {"input_per_mtok": 1_000_000, "output_per_mtok": 0}}


def estimated(folder: Path, *cases: dict[str, Any], target: Any = GPT, workers: int | None = None) -> Estimate:
    listed = target if isinstance(target, list) else [target]
    config = {"$schema": "agentv-config-v2", "prices": PRICES}
    files = {EVAL: evals(*cases), "targets.yaml": targets(*listed), "evals/.agentv.yaml": config}
    return estimate(compile_here(folder, files), workers=workers)


@pytest.mark.parametrize(
    ("text", "least", "most"),
    [
        ("The agent answers the customer's question about a refund, and names the deadline.", 15, 26),
        ("Агент вежливо отвечает на вопрос клиента о возврате денег и называет срок.", 17, 36),
        ("代理应礼貌地回答客户关于退款的问题，说明期限，并询问订单号。", 17, 32),
        ("👍🎉", 2, 6),
        ("", 0, 0),
    ],
)
def test_tokens_lie_between_what_two_vocabularies_take(text: str, least: int, most: int) -> None:
    assert least <= tokens(text) <= most


def test_every_trial_is_a_request(repository: Path) -> None:
    found = estimated(
        repository, case(evaluators=[contains()], execution={"repeat": 3}), case("two", evaluators=[contains()])
    )
    assert (found.cases, found.trials, found.requests) == (2, 4, 4)
    (target,) = found.targets
    assert (target.answers, target.judgements, target.model) == (4, 0, "gpt-5")


def test_judges_are_asked_for_every_trial(repository: Path) -> None:
    judged = [
        {"name": "j", "type": "llm_judge"},
        {"name": "r", "type": "rubric", "rubrics": ["Is kind"]},
        {
            "name": "c",
            "type": "composite",
            "evaluators": [{"name": "m", "type": "llm_judge", "prompt": "Is it good?"}, contains()],
            "aggregator": {"type": "llm_judge", "prompt": "Weigh {{ evaluator_results }}"},
        },
    ]
    found = estimated(repository, case(evaluators=judged, rubrics=["Is short"], execution={"repeat": 2}))
    (target,) = found.targets
    assert (target.answers, target.judgements, found.requests) == (2, 10, 12)


def test_answer_is_as_long_as_the_reference_or_as_the_limit(repository: Path) -> None:
    asked = case(expected_messages=[], evaluators=[contains()])
    assert estimated(repository / "a", asked).output_tokens == ANSWER_TOKENS
    assert estimated(repository / "b", asked, target={**GPT, "max_output_tokens": 7}).output_tokens == 7
    told = case(expected_messages=[{"role": "assistant", "content": "x" * 3800}], evaluators=[contains()])
    assert estimated(repository / "c", told).output_tokens == 1000
    assert estimated(repository / "d", case(expected_messages=[])).output_tokens == ANSWER_TOKENS + JUDGE_REPLY_TOKENS


def test_cost_is_that_of_the_authors_prices(repository: Path) -> None:
    found = estimated(repository, case(evaluators=[contains()]))
    assert found.cost_usd == pytest.approx(found.input_tokens, abs=1)
    assert found.unpriced == ()


def test_model_without_a_price_is_named(repository: Path) -> None:
    found = estimated(repository, case(evaluators=[contains()]), target={**GPT, "model": "my-model"})
    assert (found.cost_usd, found.unpriced) == (None, ("default",))


def test_what_charges_nothing_has_no_cost_and_is_not_unpriced(repository: Path) -> None:
    free = [
        {"name": "default", "provider": "mock", "delay_ms": 500},
        {"name": "command", "provider": "cli", "command_template": "a", "judge_target": "default"},
    ]
    found = estimated(repository, case(), case("two", execution={"target": "command"}), target=free)
    assert (found.cost_usd, found.unpriced) == (None, ())


def test_agent_is_unpriced(repository: Path) -> None:
    agents = [{"name": "default", "provider": "codex", "judge_target": "judge"}, {**GPT, "name": "judge"}]
    assert estimated(repository, case(), target=agents).unpriced == ("default",)


@pytest.mark.parametrize(("workers", "seconds"), [(None, 4.0), (1, 4.0), (2, 2.0), (8, 0.5)])
def test_time_shrinks_with_workers(workers: int | None, seconds: float, repository: Path) -> None:
    slow = {"name": "default", "provider": "mock", "delay_ms": 500}
    cases = [case(f"c{number}", evaluators=[contains()]) for number in range(8)]
    assert estimated(repository, *cases, target=slow, workers=workers).seconds == seconds


def test_workers_of_the_target_count_where_the_command_line_says_nothing(repository: Path) -> None:
    slow = {"name": "default", "provider": "mock", "delay_ms": 500, "workers": 4}
    cases = [case(f"c{number}", evaluators=[contains()]) for number in range(8)]
    found = estimated(repository, *cases, target=slow)
    assert (found.workers, found.seconds) == (4, 1.0)
