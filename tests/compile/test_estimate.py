"""The estimate of a run: requests, tokens, cost and time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from agentv_ci.compile.estimate import ANSWER_TOKENS, JUDGE_REPLY_TOKENS, estimate, tokens
from agentv_ci.contracts.command_output import Estimate
from agentv_ci.errors import BUG
from tests.compile.builders import EVAL, MOCK, Document, case, compile_here, contains, evals, targets, write_repository
from tests.support import run_command

GPT = {"name": "default", "provider": "openai", "model": "gpt-5", "api_key": "${{ KEY }}"}
SLOW = {**MOCK, "delay_ms": 500}
PLAIN = case(evaluators=[contains()])


def prices(read: float, written: float = 0) -> Document:
    return {"$schema": "agentv-config-v2", "prices": {"gpt-5": {"input_per_mtok": read, "output_per_mtok": written}}}


def estimated(folder: Path, *cases: Document, target: Any = GPT, workers: int | None = None) -> Estimate:
    listed = target if isinstance(target, list) else [target]
    files = {EVAL: evals(*cases), "targets.yaml": targets(*listed), "evals/.agentv.yaml": prices(1_000_000)}
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
def test_tokens_are_between_those_of_two_vocabularies(text: str, least: int, most: int) -> None:
    assert least <= tokens(text) <= most


def test_answers_and_judgements_are_counted_for_every_trial(repository: Path) -> None:
    by_judge = {
        "name": "c",
        "type": "composite",
        "evaluators": [{"name": "m", "type": "llm_judge", "prompt": "Is it good?"}, contains()],
        "aggregator": {"type": "llm_judge", "prompt": "Weigh {{ evaluator_results }}"},
    }
    judged = [{"name": "j", "type": "llm_judge"}, {"name": "r", "type": "rubric", "rubrics": ["Is kind"]}, by_judge]
    both = case("b", evaluators=judged, rubrics=["Is short"], execution={"repeat": 2})
    found = estimated(repository, PLAIN, both)
    assert (found.cases, found.trials, found.requests) == (2, 3, 13)
    (target,) = found.targets
    assert (target.answers, target.judgements, target.model) == (3, 10, "gpt-5")


def test_judgement_reads_prompts_rubrics_and_members(repository: Path) -> None:
    def read(number: int, *evaluators: Document) -> int:
        return estimated(repository / str(number), case(evaluators=list(evaluators))).input_tokens

    judge = {"name": "j", "type": "llm_judge"}
    plain = read(1, judge)
    assert read(2, {**judge, "prompt": "x" * 3800}) == plain + 1000
    assert read(3, {**judge, "rubrics": ["x" * 3791]}) == plain + 1000
    members = {"name": "k", "type": "composite", "evaluators": [contains(), contains(name="d")]}
    assert read(4, {**members, "aggregator": {"type": "llm_judge"}}) == plain + 200


def test_question_is_read(repository: Path) -> None:
    def asked(size: int) -> Estimate:
        messages = [{"role": "user", "content": "x" * size}]
        return estimated(repository / str(size), case(input_messages=messages, evaluators=[contains()]))

    assert asked(3802).input_tokens - asked(2).input_tokens == 1000
    assert asked(2).cost_usd == 4.526316


def test_images_and_pdf_files_count_as_nothing_and_text_as_a_text(repository: Path) -> None:
    def asked(name: str, kind: str, content: bytes) -> int:
        folder = repository / name
        (folder / "evals").mkdir(parents=True)
        (folder / "evals" / name).write_bytes(content)
        blocks = [{"type": kind, "value": name}]
        messages = [{"role": "user", "content": blocks}]
        asking = case(input_messages=messages, evaluators=[contains()])
        return estimated(folder, asking, target={**GPT, "api_format": "responses"}).input_tokens

    pdf = asked("a.pdf", "document", b"%PDF-" + b"x" * 3800)
    assert asked("a.png", "image", b"\x89PNG\r\n\x1a\n" + b"x" * 3800) == pdf
    assert asked("a.txt", "document", b"x" * 3800) == pdf + 1000


def test_answer_is_as_long_as_the_reference_or_the_limit(repository: Path) -> None:
    asked = case(expected_messages=[], evaluators=[contains()])
    assert estimated(repository / "a", asked).output_tokens == ANSWER_TOKENS
    assert estimated(repository / "b", asked, target={**GPT, "max_output_tokens": 7}).output_tokens == 7
    answered = case(expected_messages=[{"role": "assistant", "content": "x" * 3800}], evaluators=[contains()])
    assert estimated(repository / "c", answered).output_tokens == 1000
    assert estimated(repository / "d", case(expected_messages=[])).output_tokens == ANSWER_TOKENS + JUDGE_REPLY_TOKENS


JUDGED = {"name": "default", "judge_target": "judge"}
CLI, AGENT = {**JUDGED, "provider": "cli", "command_template": "a {PROMPT}"}, {**JUDGED, "provider": "codex"}
JUDGE = {**MOCK, "name": "judge"}


@pytest.mark.parametrize(
    ("target", "has_cost", "unpriced"),
    [
        (GPT, True, ()),
        ({**GPT, "model": "my-model"}, False, ("default",)),
        ([SLOW], False, ()),
        ([CLI, JUDGE], False, ()),
        ([AGENT, {**GPT, "name": "judge"}], True, ("default",)),
    ],
    ids=["price", "no price", "mock", "command", "agent"],
)
def test_cost_is_that_of_known_prices(repository: Path, target: Any, has_cost: bool, unpriced: tuple[str, ...]) -> None:
    found = estimated(repository, case(), target=target)
    assert (found.cost_usd is not None, found.unpriced) == (has_cost, unpriced)
    priced = sum(each.input_tokens for each in found.targets if each.model == "gpt-5")
    assert (found.cost_usd or 0) == pytest.approx(priced, abs=1)


def test_every_suite_has_its_own_prices(repository: Path) -> None:
    files = {f"evals/{name}/e.yaml": evals(PLAIN) for name in "ab"} | {"targets.yaml": targets(GPT)}
    files |= {"evals/a/.agentv.yaml": prices(1000, 1000), "evals/b/.agentv.yaml": prices(0)}
    both = estimate(compile_here(repository, files), workers=None).cost_usd
    assert both == estimate(compile_here(repository, files, patterns=["evals/a"]), workers=None).cost_usd


@pytest.mark.parametrize(
    ("target", "workers", "width", "seconds"),
    [
        (SLOW, None, 1, 4.0),
        (SLOW, 2, 2, 2.0),
        (SLOW, 8, 8, 0.5),
        ({**SLOW, "workers": 4}, None, 4, 1.0),
        ([CLI, JUDGE], 4, 4, 20.0),
        ([AGENT, JUDGE], 8, 8, 90.0),
        (GPT, 8, 8, 1 + 300 / 60),
    ],
)
def test_time_is_that_of_all_requests_by_workers(
    target: Any, workers: int | None, width: int, seconds: float, repository: Path
) -> None:
    cases = [case(f"c{number}", evaluators=[contains()], expected_messages=[]) for number in range(8)]
    found = estimated(repository, *cases, target=target, workers=workers)
    assert (found.workers, found.seconds) == (width, seconds)


@pytest.mark.parametrize(
    ("repeat", "target", "price"),
    [(10**400, MOCK, 1), (1e308, MOCK, 1), (1, {**MOCK, "workers": 10**400}, 1), (10**9, GPT, 1e308)],
    ids=["trials", "trials as a float", "workers", "prices"],
)
def test_huge_numbers_are_not_a_bug(repository: Path, repeat: float, target: Document, price: float) -> None:
    files = {EVAL: evals(PLAIN, execution={"repeat": repeat}), "evals/.agentv.yaml": prices(price, price)}
    write_repository(repository, {**files, "targets.yaml": targets(target)})
    assert run_command("compile", "evals", "--estimate", cwd=repository).code != BUG
