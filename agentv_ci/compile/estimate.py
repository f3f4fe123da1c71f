"""Estimate the requests, tokens, time and cost of a run. See docs/plan.md for the figures."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from math import isfinite

from msgspec import Struct

from agentv_ci.base.prices import price_of, prices_as_of, rates_of
from agentv_ci.compile.digest import prices_by_suite
from agentv_ci.contracts.api_targets import HttpTarget
from agentv_ci.contracts.attachments import TEXT
from agentv_ci.contracts.cli_target import CliTarget
from agentv_ci.contracts.command_output import Estimate, TargetEstimate
from agentv_ci.contracts.config import Price
from agentv_ci.contracts.packed_cases import heads_of
from agentv_ci.contracts.plan import Plan, PlanCase
from agentv_ci.contracts.plan_evaluators import (
    PlanCompositeEvaluator,
    PlanEvaluator,
    PlanLlmJudgeAggregator,
    PlanLlmJudgeEvaluator,
    PlanPairwiseJudgeEvaluator,
    PlanRubric,
    PlanRubricEvaluator,
    flat,
)
from agentv_ci.contracts.plan_parts import (
    AttachmentPart,
    FilePart,
    FileText,
    Part,
    PlanMessage,
    TextPart,
)
from agentv_ci.contracts.targets import MockTarget, Target, cases_at_once, model_name, own_workers

IDEOGRAPHS = re.compile(
    "[\u1100-\u11ff\u2e80-\u9fff\uac00-\ud7ff\uf900-\ufaff\uff00-\uffef\U00020000-\U0003ffff]"
)
ALPHABETS = re.compile("[\u0370-\u10ff\u1200-\u1fff]")
"""Other alphabets than Latin: Greek, Cyrillic, Hebrew, Arabic, Indic …"""
SYMBOLS = re.compile("[\u2000-\u2dff\U0001f000-\U0001ffff]")
CHARACTERS_A_TOKEN = ((IDEOGRAPHS, 1.3), (ALPHABETS, 2.5), (SYMBOLS, 1.0))
LATIN_A_TOKEN = 3.8
"""Characters per token, between those of the vocabularies o200k_base and cl100k_base."""

TOKENS_A_MESSAGE = 4
ANSWER_TOKENS = 300
"""Length of an answer without a reference answer."""
JUDGE_PROMPT_TOKENS = 300
JUDGE_REPLY_TOKENS = 120
MEMBER_TOKENS = 100
"""Tokens that an aggregator reads per member."""

API_LATENCY_S = 1.0
API_TOKENS_A_SECOND = 60.0
COMMAND_S = 10.0
AGENT_S = 90.0


def tokens(text: str) -> float:
    """Return the approximate number of tokens of a text."""
    if text.isascii():
        return len(text) / LATIN_A_TOKEN
    others = [(len(pattern.findall(text)), rate) for pattern, rate in CHARACTERS_A_TOKEN]
    latin = len(text) - sum(number for number, _ in others)
    return latin / LATIN_A_TOKEN + sum(number / rate for number, rate in others)


def estimate(plan: Plan, *, workers: int | None) -> Estimate:
    """Return the estimate of a run with `workers` cases at once (None: the targets' own).

    Raises OverflowError when a figure is not finite.
    """
    uses = {key: _Use(target) for key, target in plan.targets.items()}
    prices, sizes = prices_by_suite(plan), _sizes(plan)
    for case in plan.cases:
        if case.skip is None:
            _count(case, sizes, uses, prices[case.suite])
    if not isfinite(sum(use.dollars + use.seconds for use in uses.values())):
        raise OverflowError

    cases = trials = 0
    answering: dict[str, Target] = {}
    for head in heads_of(plan):
        if head.skip is None:
            cases += 1
            trials += head.trials
            answering[head.target] = plan.targets[head.target]
    targets = [_target(key, use) for key, use in uses.items() if use.requests]
    costs = [target.cost_usd for target in targets if target.cost_usd is not None]
    width = cases_at_once(workers, list(answering.values()))
    return Estimate(
        cases=cases,
        trials=trials,
        requests=sum(use.requests for use in uses.values()),
        input_tokens=sum(target.input_tokens for target in targets),
        output_tokens=sum(target.output_tokens for target in targets),
        cost_usd=round(sum(costs), 6) if costs else None,
        unpriced=tuple(
            target.target
            for target in targets
            if target.cost_usd is None and uses[target.target].target.charges
        ),
        workers=width,
        seconds=round(_seconds(trials, uses, width, workers), 1),
        prices_as_of=prices_as_of(),
        targets=tuple(targets),
    )


def _sizes(plan: Plan) -> Sizes:
    return {
        sha256: tokens(file.text)
        for sha256, file in plan.files.items()
        if isinstance(file, FileText)
    }


class _Use(Struct):
    """The expected use of one target."""

    target: Target
    answers: int = 0
    judgements: int = 0
    tokens_in: float = 0.0
    tokens_out: float = 0.0
    seconds: float = 0.0
    dollars: float = 0.0
    unpriced: bool = False
    """Whether a request has no known price."""

    @property
    def requests(self) -> int:
        return self.answers + self.judgements

    def add(
        self, times: int, tokens_in: float, tokens_out: float, prices: Mapping[str, Price]
    ) -> None:
        limit = getattr(self.target, "max_output_tokens", None)
        written = min(tokens_out, limit) if isinstance(limit, int) else tokens_out
        self.tokens_in += times * tokens_in
        self.tokens_out += times * written
        self.seconds += times * _seconds_for(self.target, written)
        model = model_name(self.target)
        price = price_of(model, prices) if model is not None else None
        if price is None:
            self.unpriced = True
            return
        rates = rates_of(price, tokens_in)
        dollars = tokens_in * rates.input_per_mtok + written * rates.output_per_mtok
        self.dollars += times * dollars / 1e6


Sizes = Mapping[str, float]
"""SHA-256 → tokens of the file, if it is a text."""


def _count(
    case: PlanCase, sizes: Sizes, uses: Mapping[str, _Use], prices: Mapping[str, Price]
) -> None:
    question = sum(_message(message, sizes) for message in case.input_messages)
    reference = tokens(case.reference_answer)
    answer = reference or ANSWER_TOKENS
    uses[case.target].answers += case.trials
    uses[case.target].add(case.trials, question, answer, prices)
    judged = question + answer + reference + tokens(case.expected_outcome)
    for key, more in (*_judgements(case.evaluators, sizes), *_choices(case, answer)):
        uses[key].judgements += case.trials
        uses[key].add(case.trials, JUDGE_PROMPT_TOKENS + judged + more, JUDGE_REPLY_TOKENS, prices)


def _message(message: PlanMessage, sizes: Sizes) -> float:
    return TOKENS_A_MESSAGE + sum(_part(part, sizes) for part in message.content)


def _judgements(evaluators: Iterable[PlanEvaluator], sizes: Sizes) -> Iterator[tuple[str, float]]:
    """Yield the judge of every judgement, and the tokens it reads.

    These are without the question and the answer.
    """
    for evaluator in flat(evaluators):
        match evaluator:
            case PlanLlmJudgeEvaluator():
                rubrics = _rubrics(evaluator.rubrics or ())
                yield evaluator.target, _part(evaluator.prompt, sizes) + rubrics
            case PlanRubricEvaluator():
                yield evaluator.target, _rubrics(evaluator.rubrics)
            case PlanCompositeEvaluator(aggregator=PlanLlmJudgeAggregator() as aggregator):
                members = MEMBER_TOKENS * len(evaluator.evaluators)
                yield aggregator.target, _part(aggregator.prompt, sizes) + members
            case _:
                pass


def _choices(case: PlanCase, answer: float) -> Iterator[tuple[str, float]]:
    """Yield the judge of every choice between the answer of an arm and that of the base.

    There are two of each pair.
    """
    for evaluator in case.evaluators:
        if isinstance(evaluator, PlanPairwiseJudgeEvaluator) and case.arm != evaluator.base:
            yield from [(evaluator.target, answer)] * 2


def _part(part: Part | None, sizes: Sizes) -> float:
    match part:
        case TextPart():
            return tokens(part.text)
        case FilePart():
            return tokens(part.path) + sizes.get(part.sha256, 0.0)
        case AttachmentPart():
            # How many tokens an image or a page takes is known only to the model.
            if part.media_type != TEXT:
                return 0.0
            return sizes.get(part.sha256 or "", 0.0)
        case None:
            return 0.0


def _rubrics(rubrics: Iterable[PlanRubric]) -> float:
    return sum(tokens(f"{rubric.id} {rubric.description}") for rubric in rubrics)


def _target(key: str, use: _Use) -> TargetEstimate:
    return TargetEstimate(
        target=key,
        provider=use.target.provider,
        model=model_name(use.target),
        answers=use.answers,
        judgements=use.judgements,
        input_tokens=round(use.tokens_in),
        output_tokens=round(use.tokens_out),
        cost_usd=round(use.dollars, 6) if use.target.charges and not use.unpriced else None,
        seconds=round(use.seconds, 1),
    )


def _seconds_for(target: Target, written: float) -> float:
    match target:
        case MockTarget():
            if not isinstance(target.delay_ms, (int, float)):
                return 0.0
            return target.delay_ms / 1000
        case CliTarget():
            return COMMAND_S
        case HttpTarget():
            return API_LATENCY_S + written / API_TOKENS_A_SECOND
        case _:
            return AGENT_S


def _seconds(trials: int, uses: Mapping[str, _Use], width: int, workers: int | None) -> float:
    """Return the time of the run: of all requests at full width, or of the busiest target."""
    longest = sum(use.seconds for use in uses.values()) / max(1, min(width, trials))
    for use in uses.values():
        at_once = min(workers or own_workers(use.target), use.requests)
        longest = max(longest, use.seconds / max(1, at_once))
    return longest
