"""A run with everything that reports show: a shop's support agent, two targets, trials, a baseline, validators."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

from agentv_ci.analysis.comparison.comparison import BaselineComparison, Side
from agentv_ci.analysis.run_report import report
from agentv_ci.contracts.base import JsonValue, Verdict
from agentv_ci.contracts.plan import Plan, PlanCase, PlanSource
from agentv_ci.contracts.report import (
    Ending,
    FailedValidation,
    RunOrigin,
    ScenarioAggregates,
    ScenarioReport,
    Validation,
    ValidatorIssue,
)
from agentv_ci.contracts.results import (
    EvaluatorResult,
    InputMessageRecord,
    OutputMessage,
    PrintedOutput,
    ResultRow,
    ToolCall,
    TraceSummary,
    Usage,
)
from agentv_ci.contracts.targets import MockTarget
from agentv_ci.report.view import Links, RunView
from tests.support.clock import NOW
from tests.support.runs import VERDICTS, case, finding, plan, row, suite

MODELS = {"support-agent": "gpt-5", "support-agent-mini": "gpt-5-mini"}
TARGETS = tuple(MODELS)
TAGS = {"refunds": "money", "shipping": "delivery", "account": "privacy", "safety": "attack"}
ORIGIN = RunOrigin(command="agentv-ci eval evals/ --repeat 5 --baseline baselines/main.json", version="1.2.3")
LINKS = Links("https://github.com/example/shop/blob/4f2c9d1")

Story = Mapping[str, Any]
"""A case of `shop.yaml`, with its suite."""


@cache
def _stories() -> Mapping[str, Story]:
    suites = YAML(typ="safe", pure=True).load(Path(__file__).with_suffix(".yaml").read_text("utf-8"))
    return {story["id"]: {"tools": (), **story, "suite": path} for path, stories in suites.items() for story in stories}


def shop_run() -> RunView:
    """The run as renderers get it."""
    cases = tuple(
        case(
            story["id"],
            suite=story["suite"],
            source=PlanSource(path=story["suite"], line=8 + 21 * number, column=5, end_line=24 + 21 * number),
            target=target,
            trials=5,
        )
        for number, story in enumerate(_stories().values())
        for target in TARGETS
    )
    rows = list(_rows(cases, "trials", seed=7))
    before = _plan(tuple(each for each in cases if each.id != "merge-two-accounts"))
    base = report(before, list(_rows(before.cases, "before", seed=3)), Ending())[1]
    against = BaselineComparison(Side("baselines/main.json", base), "this run", NOW)
    found = report(_plan(cases), rows, Ending(origin=ORIGIN), scenarios=_scenarios(), against=against)
    return RunView(*found, lambda: rows, LINKS)


def _plan(cases: tuple[PlanCase, ...]) -> Plan:
    suites = [suite(path, min_pass_rate=0.8) for path in dict.fromkeys(each.suite for each in cases)]
    targets = {name: MockTarget(name=name, provider="mock") for name in TARGETS}
    return plan(*cases, suites=suites).model_copy(update={"targets": targets})


def _rows(cases: Sequence[PlanCase], side: str, *, seed: int) -> Iterator[ResultRow]:
    chance = random.Random(seed)
    for each in cases:
        story = _stories()[each.id]
        for trial, letter in enumerate(story.get(side, {}).get(each.target, "ppppp"), 1):
            yield _row(each, story, trial, VERDICTS[letter], chance)


def _row(of: PlanCase, story: Story, trial: int, verdict: Verdict, chance: random.Random) -> ResultRow:
    is_large = of.target == TARGETS[0]
    tools = story["tools"]
    duration_ms = round((1.0 if is_large else 0.4) * (1400 + 900 * len(tools)) * chance.lognormvariate(0, 0.35))
    tokens = round((420 + 300 * len(tools)) * chance.uniform(0.8, 1.3))
    asked: dict[str, Any] = {
        "timestamp": f"2030-01-02T03:{trial:02}:{len(of.id):02}.000Z",
        "dataset": "shop",
        "target": of.target,
        "model": MODELS[of.target],
        "seed": 1000 + trial,
        "input_messages": (
            InputMessageRecord(role="system", content="You are the support agent of a shop. Be brief, exact and kind."),
            InputMessageRecord(role="user", content=story["question"]),
        ),
        "expected_outcome": f"The answer is exact and {story['misses'][-1]}.",
        "reference_answer": story["reference"],
        "duration_ms": duration_ms,
        "request": {"temperature": 0.2, "max_output_tokens": 800},
        "metadata": {"owner": "support", "since": "2029-11"},
        "tags": _tags(story),
    }
    if verdict == "error":
        failed: dict[str, Any] = {
            "error": "the agent ended with status 1: KeyError: 'NO'",
            "printed": PRINTED,
            "candidate_answer": "",
        }
        return row(verdict, of=of, trial=trial, **asked, **failed, attempts=3, requests=3)
    answer = story["reference" if verdict == "pass" else "wrong"]
    evaluators = _evaluators(story, answer, verdict, chance)
    return row(
        verdict,
        round(sum(each.score * each.weight for each in evaluators) / 3, 3),
        of=of,
        trial=trial,
        **asked,
        misses=tuple(miss for each in evaluators for miss in each.misses),
        candidate_answer=answer,
        evaluator_results=evaluators,
        finish_reason="stop",
        usage=Usage(input_tokens=tokens, output_tokens=90, total_tokens=tokens + 90),
        cost_usd=round((11e-6 if is_large else 1.6e-6) * tokens * chance.uniform(0.9, 1.4), 6),
        judge_usage=Usage(input_tokens=310, output_tokens=60, total_tokens=370),
        judge_cost_usd=0.0004,
        output_messages=_turns(story, answer) if is_large else None,
        trace_summary=TraceSummary.of(tools) if tools else None,
    )


def _tags(story: Story) -> tuple[str, ...]:
    topic = TAGS[Path(story["suite"]).name.partition(".")[0]]
    return (topic, "tools") if story["tools"] else (topic,)


PRINTED = PrintedOutput(
    stdout="looking up rates for NO …\n",
    stderr='Traceback (most recent call last):\n  File "agent.py", line 88, in rates\n    return RATES[country]\n'
    "KeyError: 'NO'\n",
)


PROMISE = '{"value": "guarantee|promise", "negate": true}'


def _json(**settings: JsonValue) -> str:
    return json.dumps(settings)


def _evaluators(story: Story, answer: str, verdict: Verdict, chance: random.Random) -> tuple[EvaluatorResult, ...]:
    quality = {"pass": chance.uniform(0.9, 1.0), "borderline": 0.62, "fail": chance.uniform(0.05, 0.35)}[verdict]
    facts, is_good = tuple(story["misses"]), verdict == "pass"
    good, bad = (facts, ()) if is_good else ((), facts)
    members = (
        _result(
            "no-false-promise", "regex", 1.0, hits=("no promise that cannot be kept",), required=True, settings=PROMISE
        ),
        _result(
            "facts", "contains_all", 1.0 if is_good else 0.2, hits=good, misses=bad, settings=_json(value=[*facts])
        ),
    )
    reasoning = "The answer reads well, but its facts are not those of the policy: a customer would be misled."
    return (
        _result(
            "judge",
            "llm_judge",
            round(quality, 2),
            weight=2.0,
            hits=good or ("is kind",),
            misses=bad,
            settings=_json(prompt={"path": "prompts/judge.md"}, target="judge", judge_retries=1),
            judge_prompt=f"Compare the answer with the policy of the shop.\n\n<answer>\n{answer}\n</answer>",
            reasoning="All facts are those of the reference answer." if is_good else reasoning,
            raw_response=f'{{"score": {quality:.2f}, "verdict": "{verdict}"}}',
        ),
        _result("rules", "composite", 1.0 if is_good else 0.6, evaluator_results=members),
    )


def _result(name: str, kind: str, score: float, **given: Any) -> EvaluatorResult:
    verdict = "pass" if score >= 0.8 else "borderline" if score >= 0.6 else "fail"
    plain = {"hits": (), "misses": (), "reasoning": "", "raw_response": None}
    return finding("", name=name, type=kind, score=score, verdict=verdict, **{**plain, **given})


def _turns(story: Story, answer: str) -> tuple[OutputMessage, ...]:
    calls = tuple(
        ToolCall(tool=tool, input={"order": 48213, "customer": "c-9931"}, output={"ok": True, "step": number})
        for number, tool in enumerate(story["tools"], 1)
    )
    return (
        OutputMessage(role="assistant", content="Let me look that up.", tool_calls=calls),
        OutputMessage(role="assistant", content=answer),
    )


def _scenarios() -> tuple[ScenarioReport, ...]:
    slow = "change-of-address-after-dispatch took 11.2 s, 4 times the rest"
    issues = (
        ValidatorIssue(id="outlier", severity="warning", message=slow),
        ValidatorIssue(id="n", severity="info", message="140 runs were compared"),
    )
    validations = (
        Validation(validator="outlier_detection", issues=issues, summary={"by_severity": {"warning": 1, "info": 1}}),
        Validation(validator="determinism_check", issues=(), summary={}),
        FailedValidation(validator="schema_adherence", error="the schema 'answer.json' does not exist"),
    )
    aggregates = ScenarioAggregates(runs=40, errors=6, validations=validations)
    return (ScenarioReport(scenario_key="evals/shipping.test.yaml", aggregates=aggregates),)
