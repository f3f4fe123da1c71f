"""Judging an experiment: what counts, when it stops, and what its verdict follows from."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentv_ci.analysis.experiment.experiment import Judgement
from agentv_ci.analysis.experiment.looks import in_rounds, look_ends
from agentv_ci.analysis.experiment.plan import ExperimentPlan, experiment_plan
from agentv_ci.analysis.experiment.trials import cluster_of
from agentv_ci.contracts.api_targets import OpenAITarget
from agentv_ci.contracts.base import ErrorKind, JsonObject
from agentv_ci.contracts.experiment import ExperimentDocument
from agentv_ci.contracts.experiment_report import ExperimentReport
from agentv_ci.contracts.plan import Plan, PlanCase
from agentv_ci.contracts.results import EvaluatorResult, ResultRow, Usage
from tests.support.runs import SUITE, case, plan, row

ARMS = ("now", "next")


def document(*names: str, **settings: Any) -> ExperimentDocument:
    given = {"arms": [{"name": name} for name in names or ARMS], "evals": ["a.yaml"], **settings}
    return ExperimentDocument.model_validate(given)


def arms_of(*ids: str, names: Sequence[str] = ARMS, trials: int = 1, **given: Any) -> Plan:
    """A plan of these cases, each in every arm; an arm has a digest of its own."""
    return plan(
        *(
            case(each, arm=name, trials=trials, digest=f"{number:064x}", **given)
            for each in ids
            for number, name in enumerate(names)
        )
    )


def planned(compiled: Plan, **settings: Any) -> ExperimentPlan:
    names = dict.fromkeys(each.arm or "" for each in compiled.cases)
    return experiment_plan(document(*names, **settings), "experiment.yaml", compiled)


def rows_of(compiled: Plan, scores: Mapping[str, float], **given: Any) -> list[ResultRow]:
    """A row for each trial, with the score of its arm."""
    return [
        answered(each, number, scores[each.arm or ""], **given)
        for each in compiled.cases
        for number in range(1, each.trials + 1)
    ]


def answered(of: PlanCase, trial: int, score: float, **given: Any) -> ResultRow:
    plain = {"digest": of.digest, "arm": of.arm, "metadata": of.metadata, "tags": of.tags or (), **given}
    return row("pass" if score >= 0.8 else "fail", score, of=of, trial=trial, **plain)


def judged(compiled: Plan, rows: Sequence[ResultRow], **settings: Any) -> ExperimentReport:
    return Judgement(planned(compiled, **settings)).report(rows)


IDS = tuple(f"case-{number}" for number in range(24))


@pytest.mark.parametrize(
    ("by", "cluster"),
    [
        ("case", "a.yaml/one"),
        ("suite", "a.yaml"),
        ("meta.customer", "meta.customer=acme"),
        ("meta.team.name", "meta.team.name=blue"),
        ("meta.nothing", "a.yaml/one"),
        ("tag:team-*", "tag:team-*=team-a"),
        ("tag:other", "a.yaml/one"),
    ],
)
def test_cluster_of_a_case(by: str, cluster: str) -> None:
    metadata: JsonObject = {"customer": "acme", "team": {"name": "blue"}}
    assert cluster_of(by, ("a.yaml", "one"), ("smoke", "team-b", "team-a"), metadata) == cluster


def test_trials_run_in_rounds_and_looks_take_whole_clusters() -> None:
    compiled = plan(*(case(each, arm=arm, trials=trials) for each, trials in (("a", 1), ("b", 2)) for arm in ARMS))
    found = planned(compiled)
    assert [(each.name[1], number) for each, number in in_rounds(found.cases)] == [("a", 1), ("b", 1), ("b", 2)]
    every_two = planned(arms_of(*IDS[:5]), stop={"look_every": 2})
    assert look_ends(every_two) == [2, 4, 5]
    fifths = planned(arms_of(*IDS[:20], trials=2), stop={})
    assert look_ends(fifths) == [*range(4, 41, 4)]
    pairs = plan(*(case(each, arm=arm, metadata={"of": each[-1:] < "2"}) for each in ("0", "1", "2") for arm in ARMS))
    assert look_ends(planned(pairs, stop={"look_every": 1}, cluster_by="meta.of")) == [2, 3]


@given(st.randoms(use_true_random=False), st.integers(1, 3), st.sampled_from([None, {}, {"look_every": 3}]))
def test_report_does_not_depend_on_the_order_of_rows(
    chance: random.Random, trials: int, stop: dict[str, int] | None
) -> None:
    compiled = arms_of(*IDS[:12], trials=trials)
    rows = [answered(each, n, chance.random()) for each in compiled.cases for n in range(1, trials + 1)]
    settings = {"metrics": ["score", "pass"], "margin": {"score": 0.1}, **({} if stop is None else {"stop": stop})}
    found = judged(compiled, rows, **settings)
    chance.shuffle(rows)
    assert judged(compiled, rows, **settings) == found
    # Rows that came too late for the last look change only how many were saved.
    late = {(each.eval_id, each.trial, each.arm) for each in chance.sample(rows, 3)}
    kept = [each for each in rows if (each.eval_id, each.trial, each.arm) not in late]
    fewer = judged(compiled, kept, **settings)
    if stop is not None and fewer.stopped is not None:
        assert fewer.model_copy(update={"saved_trials": 0}) == found.model_copy(update={"saved_trials": 0})


@given(st.randoms(use_true_random=False))
def test_run_stops_at_the_look_that_decides_later(chance: random.Random) -> None:
    compiled = arms_of(*IDS)
    rows = rows_of(compiled, {"now": 0.0, "next": 1.0})
    judgement = Judgement(planned(compiled, stop={"look_every": 5}))
    chance.shuffle(rows)
    is_decided = judgement.watch(())
    assert is_decided is not None
    assert not is_decided(None)
    ran = next(number for number, each in enumerate(rows, 1) if is_decided(each))
    live, whole = judgement.report(rows[:ran]), judgement.report(rows)
    assert (live.verdict, live.effects, live.looks) == (whole.verdict, whole.effects, whole.looks)
    assert live.saved_trials == len(rows) - ran
    resumed = judgement.watch(rows[:ran])
    assert resumed is not None
    assert resumed(None)


def test_few_pairs_that_agree_are_not_futile() -> None:
    compiled = arms_of(*IDS[:10], trials=2)
    settings = {"stop": {"look_every": 2}, "detect": {"score": 0.3}, "alpha": 0.01}
    found = judged(compiled, rows_of(compiled, {"now": 0.0, "next": 1.0}), **settings)
    assert (found.stopped, found.verdict, found.looks[0].trials) == ("decided", "better", 4)


def test_experiment_without_a_rule_never_stops() -> None:
    assert Judgement(planned(arms_of(*IDS))).watch(()) is None


@pytest.mark.parametrize(
    ("scores", "settings", "verdict"),
    [
        ({"now": 0.0, "next": 1.0}, {}, "better"),
        ({"now": 1.0, "next": 0.0}, {}, "worse"),
        ({"now": 0.5, "next": 0.5}, {"margin": {"score": 0.2}}, "equivalent"),
        ({"now": 0.5, "next": 0.5}, {}, "undecided"),
        ({"now": 0.5, "next": 0.5, "other": 1.0}, {}, "undecided"),
        ({"now": 0.5, "next": 0.5, "other": 1.0}, {"margin": {"score": 0.2}}, "equivalent"),
        ({"now": 0.5, "next": 0.0, "other": 1.0}, {}, "worse"),
        ({"now": 0.5, "next": 0.0, "other": 1.0}, {"base": "next"}, "better"),
    ],
)
def test_verdict_is_that_of_all_arms(scores: dict[str, float], settings: dict[str, Any], verdict: str) -> None:
    compiled = arms_of(*IDS, names=[*scores])
    assert judged(compiled, rows_of(compiled, scores), **settings).verdict == verdict


MEASURED = {
    "cost_usd": 0.01,
    "duration_ms": 1000,
    "usage": Usage(input_tokens=100, output_tokens=20),
    "evaluator_results": (
        EvaluatorResult(
            name="whole",
            type="composite",
            status="ok",
            score=0.5,
            weight=1,
            required=False,
            verdict="fail",
            hits=(),
            misses=(),
            reasoning="",
            evaluator_results=(
                EvaluatorResult(
                    name="part",
                    type="contains",
                    status="ok",
                    score=0.25,
                    weight=1,
                    required=False,
                    verdict="fail",
                    hits=(),
                    misses=(),
                    reasoning="",
                ),
            ),
        ),
    ),
}
METRICS = ["score", "pass", "cost", "tokens", "duration", "whole", "part"]


def test_metrics_are_measured_by_trial() -> None:
    compiled = arms_of(*IDS[:2])
    found = judged(compiled, rows_of(compiled, {"now": 0.9, "next": 0.9}, **MEASURED), metrics=METRICS)
    expected = dict(zip(METRICS, (0.9, 1.0, 0.01, 120.0, 1000.0, 0.5, 0.25), strict=True))
    assert found.arms[0].means == expected
    assert [(each.metric, each.scale, each.higher_is_better) for each in found.effects[:3]] == [
        ("score", "difference", True),
        ("pass", "difference", True),
        ("cost", "ratio", False),
    ]
    cached = rows_of(compiled, {"now": 0.9, "next": 0.9}, **MEASURED, cached=True)
    assert judged(compiled, cached, metrics=METRICS).arms[0].means.keys() == expected.keys() - {"cost", "duration"}


def test_trials_without_a_verdict_are_not_compared() -> None:
    compiled = arms_of(*IDS)
    rows = rows_of(compiled, {"now": 0.0, "next": 1.0})
    rows[0] = failed(rows[0])
    found = judged(compiled, rows)
    assert found.effects[0].pairs == len(IDS) - 1
    assert found.warnings == ("1 trial of 'now' without a verdict, not compared; first error: server: HTTP 503",)
    assert [(each.trials, each.errors) for each in found.arms] == [(23, 1), (24, 0)]
    assert found.verdict == "better"


def failed(found: ResultRow, kind: ErrorKind = "server", error: str = "HTTP 503", **given: Any) -> ResultRow:
    """A row with an error instead of an answer."""
    plain = {"verdict": "error", "status": "error", "score": 0.0, "error_kind": kind, "error": error}
    return found.model_copy(update={**plain, "evaluator_results": (), "cost_usd": None, **given})


def with_errors(
    rows: Sequence[ResultRow], arm: str, number: int, kind: ErrorKind = "server", **given: Any
) -> list[ResultRow]:
    """Rows of which the first of an arm have an error."""
    names = [each.eval_id for each in rows if each.arm == arm][:number]
    is_lost = [each.arm == arm and each.eval_id in names for each in rows]
    return [failed(each, kind, **given) if lost else each for each, lost in zip(rows, is_lost, strict=True)]


@pytest.mark.parametrize("kind", ["process", "timeout", "malformed"])
def test_crash_is_a_failure_of_its_arm(kind: ErrorKind) -> None:
    compiled = arms_of(*IDS)
    rows = with_errors(rows_of(compiled, {"now": 0.9, "next": 1.0}), "next", 16, kind, error="boom", provider="cli")
    found = judged(compiled, rows, metrics=["pass", "score"])
    assert found.verdict == "worse"
    assert [(each.base, round(each.head or 0, 3), each.pairs) for each in found.effects] == [
        (1.0, 0.333, 24),
        (0.9, 0.333, 24),
    ]
    crashed = "'next' crashed in 16 of 24 trials, which count as failed; first error: "
    assert found.warnings == (f"{crashed}{kind}: boom",)
    assert [(each.trials, each.errors, each.crashed) for each in found.arms] == [(24, 0, 0), (24, 0, 16)]


def test_crash_has_score_0_of_evaluators_that_scored_other_trials_of_its_case() -> None:
    compiled = arms_of(*IDS)
    rows = [
        each.model_copy(update={"evaluator_results": (scored_by(each, "tone"),) if each.eval_id in IDS[:12] else ()})
        for each in rows_of(compiled, {"now": 0.5, "next": 1.0})
    ]
    rows = with_errors(rows, "next", 24, "process", provider="cli")
    (tone, _) = judged(compiled, rows, metrics=["tone", "pass"]).effects
    assert (tone.verdict, tone.base, tone.head, tone.pairs) == ("worse", 0.5, 0.0, 12)


def scored_by(found: ResultRow, name: str) -> EvaluatorResult:
    return EvaluatorResult(
        name=name, type="code", status="ok", score=found.score or 0.0, weight=1.0, required=False,
        verdict="pass", hits=(), misses=(), reasoning="",
    )  # fmt: skip


def test_crash_loses_against_any_answer() -> None:
    compiled = arms_of(*IDS)
    rows = with_errors(rows_of(compiled, {"now": 0.0, "next": 1.0}), "next", 24, "process", provider="cli")
    rows = [failed(each, "process") if each.eval_id == IDS[0] else each for each in rows]
    judge = {"name": "preferred", "type": "pairwise_judge", "judge_target": "judge"}
    (effect, *_) = judged(compiled, rows, evaluators=[judge], primary="preferred").effects
    counts = effect.preferences
    assert counts is not None
    assert (effect.verdict, counts.wins, counts.ties, counts.losses, counts.unjudged) == ("worse", 0, 1, 23, 0)


def test_money_and_time_of_a_crash_are_compared() -> None:
    compiled = arms_of(*IDS)
    rows = [
        each.model_copy(update={"cost_usd": 0.1, "duration_ms": 1000})
        for each in rows_of(compiled, {"now": 0.9, "next": 0.9})
    ]
    rows = with_errors(rows, "next", 24, "process", provider="cli", cost_usd=1.0, duration_ms=9000)
    found = judged(compiled, rows, metrics=["cost", "duration"])
    assert [(each.verdict, each.head) for each in found.effects] == [("worse", 1.0), ("worse", 9000.0)]


@pytest.mark.parametrize(
    ("arm", "better", "number", "verdict"),
    [
        ("next", True, 2, "better"),
        ("next", True, 12, "withheld"),
        ("now", True, 2, "better"),
        ("now", True, 12, "withheld"),
        ("next", False, 2, "worse"),
        ("next", False, 12, "withheld"),
        ("next", False, 24, "undecided"),
    ],
)
def test_verdict_that_could_depend_on_missing_trials_is_withheld(
    arm: str, better: bool, number: int, verdict: str
) -> None:
    compiled = arms_of(*IDS)
    rows = lost_where_it_matters(compiled, arm, number, better=better)
    found = judged(compiled, rows, metrics=["pass"])
    assert found.verdict == verdict
    if verdict == "withheld":
        missing = f"{number} trials of '{arm}' without a verdict, not compared; first error: server: HTTP 503"
        assert found.reasons[0].startswith(f"{missing}. Depending on them, the verdict could be ")
        regardless = Judgement(planned(compiled, metrics=["pass"]), regardless=True)
        assert regardless.report(rows).verdict == "withheld"


def lost_where_it_matters(compiled: Plan, arm: str, number: int, *, better: bool) -> list[ResultRow]:
    """Rows of an arm that is better, or worse, except in the cases in which one arm has an error."""
    rows = [
        answered(each, 1, float(better == ((each.arm == "next") != (each.id in IDS[:number]))))
        for each in compiled.cases
    ]
    return with_errors(rows, arm, number)


def test_cost_that_could_depend_on_missing_trials_is_withheld() -> None:
    compiled = arms_of(*IDS)
    rows = [
        each.model_copy(update={"cost_usd": 0.1 if each.arm == "now" else 0.02 * (1 + number % 5)})
        for number, each in enumerate(rows_of(compiled, {"now": 0.9, "next": 0.9}))
    ]
    assert judged(compiled, rows, metrics=["cost"]).verdict == "better"
    assert judged(compiled, with_errors(rows, "now", 14), metrics=["cost"]).verdict == "withheld"


def test_experiment_does_not_stop_where_missing_trials_could_decide() -> None:
    compiled = arms_of(*IDS)
    done = judged(compiled, rows_of(compiled, {"now": 0.0, "next": 1.0}), metrics=["pass"], stop={})
    assert done.stopped == "decided"
    lost = judged(compiled, lost_where_it_matters(compiled, "next", 12, better=True), metrics=["pass"], stop={})
    assert (lost.stopped, lost.verdict) == (None, "withheld")


def test_order_of_rows_does_not_change_which_error_is_named() -> None:
    compiled = arms_of(*IDS, trials=2)
    rows = with_errors(rows_of(compiled, {"now": 0.0, "next": 1.0}), "next", 4, "process", provider="cli")
    rows = [each.model_copy(update={"error": f"{each.eval_id} {each.trial}"}) for each in rows]
    assert judged(compiled, rows).warnings == judged(compiled, rows[::-1]).warnings


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"model": "m-2"}, "target 'default' of arm 'next' was answered by m-2, not by m-1"),
        ({"digest": "f" * 64}, "24 rows of other cases than the experiment has now"),
        ({"dry_run": True}, "dry run: no target was asked"),
    ],
)
def test_verdict_is_withheld(change: dict[str, Any], reason: str) -> None:
    compiled = arms_of(*IDS)
    compiled = compiled.model_copy(
        update={"targets": {"default": OpenAITarget(name="default", provider="openai", model="m-1")}}
    )
    rows = [
        each.model_copy(update=change if each.arm == "next" else {"model": "m-1-2030"} if "model" in change else {})
        for each in rows_of(compiled, {"now": 0.0, "next": 1.0})
    ]
    found = judged(compiled, rows)
    assert found.verdict == "withheld"
    assert any(each.startswith(reason) for each in found.reasons), found.reasons
    if "digest" not in change:
        assert Judgement(planned(compiled), regardless=True).report(rows).verdict == "better"


def test_several_models_in_one_arm_and_other_ones_between_arms_are_named() -> None:
    compiled = arms_of(*IDS)
    rows = rows_of(compiled, {"now": 0.0, "next": 1.0})
    mixed = [each.model_copy(update={"model": f"m-{number % 2}"}) for number, each in enumerate(rows)]
    by_case = [each.model_copy(update={"model": f"m-{IDS.index(each.eval_id) % 2}"}) for each in rows]
    (between,) = judged(compiled, mixed).withheld
    assert between == "target 'default' was answered by different models: m-1 in 'next', m-0 in 'now'"
    assert judged(compiled, by_case).withheld == (
        "target 'default' of arm 'next' was answered by several models: m-0, m-1",
        "target 'default' of arm 'now' was answered by several models: m-0, m-1",
    )


def test_expectations_that_differ_are_named() -> None:
    compiled = arms_of(*IDS[:5])
    changed = [each.model_copy(update={"threshold": 0.5} if each.arm == "next" else {}) for each in compiled.cases]
    found = judged(compiled.model_copy(update={"cases": tuple(changed)}), [])
    assert found.withheld == ("the expectations differ between the arms in 5 cases: case-0, case-1, case-2 and 2 more",)


def test_cases_are_called_changed_by_their_trials() -> None:
    compiled = arms_of("steady", "risen", "single", trials=12)
    steady, risen = {"now": 0.5, "next": 0.5}, {"now": 0.0, "next": 1.0}
    scores = {"steady": steady, "risen": risen, "single": steady}
    rows = [
        answered(each, number, scores[each.id][each.arm or ""]) for each in compiled.cases for number in range(1, 13)
    ]
    found = judged(compiled, rows)
    assert [(each.id, each.base, each.head, each.called) for each in found.cases] == [("risen", 0.0, 1.0, True)]
    once = arms_of("one")
    (single,) = judged(once, rows_of(once, {"now": 0.0, "next": 1.0})).cases
    assert (single.p_value, single.called) == (None, False)
    assert single.suite == SUITE
