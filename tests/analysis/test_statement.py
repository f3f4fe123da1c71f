"""What a comparison states as a whole: limits of increases, and sides that are not comparable."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentv_ci.analysis.cases.tally import Tally
from agentv_ci.analysis.comparison.comparison import Side, compare_sides
from agentv_ci.analysis.comparison.metric_changes import Limit, limits_of
from agentv_ci.analysis.comparison.metric_texts import metric_text
from agentv_ci.analysis.comparison.statement import Terms
from agentv_ci.contracts.base import Verdict
from agentv_ci.contracts.comparison import Comparison, MetricChange, Statement
from agentv_ci.contracts.plan import PlanCase
from agentv_ci.contracts.report import GateSettings
from agentv_ci.contracts.results import InputMessageRecord, ResultRow, Usage
from tests.support import NOW
from tests.support.runs import case, finding, row

CASES = 12


def side(name: str, rows: Sequence[ResultRow]) -> Side:
    tally = Tally(compares=True)
    for each in rows:
        tally.add(each)
    return Side(name, tally.outcomes())


def run(cases: int = CASES, trials: int = 3, **given: Any) -> list[ResultRow]:
    """Rows of cases that pass; a field that is a list has a value for each row in turn."""
    rows = []
    for number in range(cases):
        of = case(f"case-{number}", trials=trials, line=number + 1)
        for trial in range(1, trials + 1):
            place = number * trials + trial - 1
            own = {name: each[place % len(each)] if isinstance(each, list) else each for name, each in given.items()}
            rows.append(row("pass", of=of, trial=trial, **own))
    return rows


def compared(base: Sequence[ResultRow], head: Sequence[ResultRow], *limits: Limit, **given: Any) -> Comparison:
    return compare_sides(side("main.jsonl", base), side("head", head), Terms(0.95, limits, **given), now=NOW)


def stated(*given: Any, **terms: Any) -> Statement:
    statement = compared(*given, **terms).statement
    assert statement is not None
    return statement


def limited(*given: Any, **terms: Any) -> MetricChange:
    (found,) = (each for each in stated(*given, **terms).metrics if each.allowed is not None)
    return found


NOISE = [1.0, 1.1, 0.9, 1.05, 0.95, 1.02, 0.97]


def noisy(value: float, *, shift: int = 0) -> list[float]:
    return [value * each for each in (*NOISE[shift:], *NOISE[:shift])]


@pytest.mark.parametrize(("factor", "verdict"), [(1.0, "within"), (1.5, "worse"), (0.5, "within"), (1.11, "undecided")])
def test_an_increase_of_costs_is_worse_if_its_whole_interval_is_above_the_limit(factor: float, verdict: str) -> None:
    found = limited(run(cost_usd=noisy(0.01)), run(cost_usd=noisy(0.01 * factor, shift=2)), Limit("cost", 0.1))
    assert (found.verdict, found.cases) == (verdict, CASES)
    assert found.change == pytest.approx(factor - 1, abs=0.05)
    assert found.low is not None
    assert found.high is not None
    assert found.change is not None
    assert found.low < found.change < found.high
    assert (found.low > 0.1) == (verdict == "worse")
    assert (found.high < 0.1) == (verdict == "within")


def test_a_limit_makes_the_comparison_worse() -> None:
    found = compared(run(cost_usd=noisy(0.01)), run(cost_usd=noisy(0.02, shift=2)), Limit("cost", 0.1))
    assert found.statement is not None
    assert found.statement.verdict == "worse"
    (reason,) = found.reasons
    assert reason.startswith("cost $0.009986 → $0.01992; in total +99.4%, range per case +")
    assert reason.endswith(" (99%); at most 10% allowed")


def test_costs_below_a_cent_have_no_exponent() -> None:
    found = limited(run(cost_usd=0.000012), run(cost_usd=0.00003), Limit("cost", 0.1))
    assert metric_text(found).startswith("cost $0.000012 → $0.000030; in total +150.0%")


@pytest.mark.parametrize("metric", ["mean_latency", "p95_latency"])
def test_times_are_limited_by_their_mean_and_by_a_quantile(metric: Any) -> None:
    base, head = run(duration_ms=[1000, 1100, 900, 1050]), run(duration_ms=[2000, 2200, 1800, 2100])
    assert limited(base, head, Limit(metric, 0.2)).verdict == "worse"
    found = limited(base, base, Limit(metric, 0.2))
    assert (found.verdict, found.change) == ("within", 0.0)


def test_tokens_of_few_cases_are_compared_trial_by_trial() -> None:
    few = {"cases": 2, "trials": 8}
    base = run(usage=[Usage(total_tokens=round(each)) for each in noisy(100)], **few)
    head = run(usage=[Usage(total_tokens=round(each)) for each in noisy(200, shift=2)], **few)
    assert limited(base, head, Limit("tokens", 0.1)).verdict == "worse"
    one, other = (run(1, 1, usage=Usage(total_tokens=number)) for number in (1, 9))
    single = limited(one, other, Limit("tokens", 0.1))
    assert (single.verdict, single.low) == ("undecided", None)
    assert single.reason == "it needs 8 cases, or --repeat 10"


@pytest.mark.parametrize(
    ("cases", "before", "now", "reason"),
    [
        (1, 1, 1, "it needs 8 cases, or --repeat 10"),
        (2, 1, 1, "it needs 8 cases, or --repeat 5"),
        (2, 1, 5, "it needs 8 cases, or --repeat 5 on both sides"),
        (2, 5, 1, "it needs 8 cases, or --repeat 5 on both sides"),
    ],
)
def test_what_a_limit_needs_is_more_than_there_was(cases: int, before: int, now: int, reason: str) -> None:
    base, head = (run(cases, trials, usage=Usage(total_tokens=9)) for trials in (before, now))
    assert limited(base, head, Limit("tokens", 0.1)).reason == reason


@pytest.mark.parametrize(
    ("cases", "before", "now", "advice"),
    [
        (1, 1, 1, "use --repeat 5"),
        (1, 1, 5, "use --repeat 5 on both sides"),
        (1, 3, 3, "use --repeat 5"),
        (5, 1, 1, "use --repeat 5"),
    ],
)
def test_advised_trials_are_more_than_there_were_and_suffice(cases: int, before: int, now: int, advice: str) -> None:
    (rate,) = stated(run(cases, before), run(cases, now)).metrics
    assert rate.reason == f"too few trials to see any drop; {advice}"
    (rate,) = stated(run(cases, 5), run(cases, 5)).metrics
    assert rate.reason is None


@pytest.mark.parametrize(
    ("base", "head", "text"),
    [
        ({}, {}, "cost: no costs from target default"),
        ({"cost_usd": 0.1}, {}, "cost: no costs now from target default"),
        ({}, {"cost_usd": 0.1}, "cost: no costs before from target default"),
        ({"cost_usd": 0.1}, {"cost_usd": 0.0, "cached": True}, "cost: no costs now from target default"),
    ],
)
def test_costs_that_are_not_measured_are_named_and_never_0(
    base: dict[str, Any], head: dict[str, Any], text: str
) -> None:
    found = limited(run(**base), run(**head), Limit("cost", 0.1))
    assert (found.verdict, found.base, found.head, metric_text(found)) == ("not compared", None, None, text)


def test_cases_without_a_cost_are_counted() -> None:
    base, head = run(cost_usd=noisy(0.01)), run(cost_usd=noisy(0.01))
    head = [each.model_copy(update={"cost_usd": None}) if each.eval_id == "case-3" else each for each in head]
    found = limited(base, head, Limit("cost", 0.5))
    reason = "1 of 12 cases not measured on both sides; 3 trials not measured, which may break the limit"
    assert (found.cases, found.verdict, found.reason) == (CASES - 1, "undecided", reason)


def test_trials_without_a_cost_leave_a_limit_undecided() -> None:
    base, head = run(cost_usd=[0.1, 0.1, 9.0]), run(cost_usd=[0.1, 0.1, 9.0])
    assert limited(base, head, Limit("cost", 0.1)).verdict == "within"
    unknown = [each.model_copy(update={"cost_usd": None}) if each.trial == 3 else each for each in head]
    found = limited(base, unknown, Limit("cost", 0.1))
    reason = f"{CASES} trials not measured, which may break the limit"
    assert (found.verdict, found.reason) == ("undecided", reason)
    stored = [each.model_copy(update={"cached": True}) if each.trial == 3 else each for each in unknown]
    assert limited(base, stored, Limit("cost", 0.1)).verdict == "within"


HALF_FREE = [0.0] * 3 + [0.1] * 3
"""Of cases with three trials, every other one costs nothing."""
HALF_ONE_DOLLAR = [1.0] * 3 + [0.1] * 3


@pytest.mark.parametrize(
    ("base", "head", "verdict", "reason"),
    [
        (HALF_FREE, HALF_ONE_DOLLAR, "undecided", "6 of 12 cases had 0 before and more now"),
        ([0.0], [1.0], "undecided", "12 of 12 cases had 0 before and more now"),
        ([0.0], [0.0], "within", None),
        (HALF_FREE, HALF_FREE, "within", None),
        ([1.0], [0.0], "within", "12 of 12 cases had more before and 0 now"),
        (HALF_ONE_DOLLAR, HALF_FREE, "within", "6 of 12 cases had more before and 0 now"),
        ([0.0, 0.0, 0.1], [0.0, 0.0, 0.1], "within", None),
        ([0.0, 0.0, 0.1], [0.1, 0.1, 0.1], "worse", None),
        ([0.2] * 3 + [0.1] * 3, [0.0] * 3 + [0.2] * 3, "undecided", "6 of 12 cases had more before and 0 now"),
    ],
)
def test_costs_of_0_are_costs(base: list[float], head: list[float], verdict: str, reason: str | None) -> None:
    found = limited(run(cost_usd=base), run(cost_usd=head), Limit("cost", 0.1))
    assert (found.verdict, found.reason) == (verdict, reason)
    assert found.base == pytest.approx(sum(base) / len(base))
    assert found.head == pytest.approx(sum(head) / len(head))


def test_an_undecided_limit_leaves_the_comparison_undecided() -> None:
    found = compared(run(cost_usd=HALF_FREE), run(cost_usd=HALF_ONE_DOLLAR), Limit("cost", 0.1))
    (reason,) = found.undecided
    assert reason.startswith("cost $0.05 → $0.55; in total +1000.0%, range per case +0.0% to +0.0% (90%); ")
    assert found.reasons == ()
    assert compared(run(cost_usd=0.1), run(cost_usd=0.1), Limit("cost", 0.1)).undecided == ()


def test_suites_with_the_same_limit_are_judged_together() -> None:
    settings = [
        GateSettings(suite="a", cases=1, max_increases={"cost": 0.1}),
        GateSettings(suite="b", cases=1, max_increases={"cost": 0.1, "tokens": 0.2}),
    ]
    assert limits_of(settings) == (Limit("cost", 0.1), Limit("tokens", 0.2, ("b",)))


def test_other_models_and_judges_are_named_and_the_statement_is_withheld() -> None:
    base, head = run(model="gpt-5-0807"), run(model="gpt-5-1101")
    reason = "questions to target default were answered by gpt-5-0807 in main.jsonl, and by gpt-5-1101 now"
    found = stated(base, head)
    assert (found.verdict, found.withheld) == ("withheld", (reason,))
    assert stated(base, head, allows_changes=True).withheld == ()
    assert stated(run(model=None), head).withheld == ()
    judged = [[finding("judged", judge=judge)] for judge in ("strict", "mild")]
    before, now = (run(evaluator_results=tuple(each)) for each in judged)
    assert stated(before, now).withheld == ("main.jsonl was judged by strict, this run by mild",)


def test_cases_with_another_question_are_left_out() -> None:
    def asked(text: str) -> tuple[InputMessageRecord, ...]:
        return (InputMessageRecord(role="user", content=text),)

    base = run(input_messages=asked("May I?"))
    changed = [
        each.model_copy(update={"input_messages": asked("May I, please?")}) if each.eval_id == "case-0" else each
        for each in base
    ]
    found = compared(base, changed)
    assert found.statement is not None
    assert (found.statement.verdict, found.statement.cases) == ("undecided", CASES - 1)
    assert found.warnings[1].startswith("1 case with a changed question or evaluators left out: case-0; ")
    everywhere = stated(base, run(input_messages=asked("Might I?")))
    assert everywhere.withheld == ("the question or the evaluators of all 12 cases changed since main.jsonl",)
    assert stated(base, changed, allows_changes=True).cases == CASES
    assert (found.left_out, sum(found.counts.values())) == (1, CASES - 1)


def test_a_case_cannot_get_worse_by_another_question() -> None:
    base, other = run(), {"expected_outcome": "Anything", "verdict": "fail"}
    changed = [each.model_copy(update=other) if each.eval_id == "case-0" else each for each in base]
    reason = "1 case with a changed question or evaluators and a worse verdict than in main.jsonl: case-0"
    found = compared(base, changed)
    assert found.statement is not None
    assert (found.statement.verdict, found.statement.withheld, found.reasons) == ("withheld", (reason,), ())
    assert stated(base, changed, allows_changes=True).withheld == ()


def test_files_of_evaluators_may_change() -> None:
    def judged(path: str, digest: str, **more: Any) -> list[ResultRow]:
        settings = json.dumps({"golden": {"path": path, "sha256": digest}, "ignore": ["*.lock"], **more})
        return run(evaluator_results=(finding("x", settings=settings),))

    before = judged("fix.patch", "1")
    assert stated(before, judged("patches/fix.patch", "2")).cases == CASES
    assert stated(before, judged("fix.patch", "1", least=0.5)).cases == 0


@pytest.mark.parametrize(
    ("base", "head", "verdict"),
    [
        ([1000, 1000], [1000, 1000, 90_000], "worse"),
        ([1000, 1000, 90_000], [1000, 1000], "within"),
        ([1000, 90_000], [1000, 90_000, 1000, 90_000], "within"),
        ([1000, 1000], [1000, 1000, 1000], "within"),
    ],
)
def test_all_answers_count_for_a_quantile(base: list[int], head: list[int], verdict: str) -> None:
    sides = (run(trials=len(each), duration_ms=each) for each in (base, head))
    assert limited(*sides, Limit("p95_latency", 0.2)).verdict == verdict


def test_few_cases_are_worse_all_together_among_many() -> None:
    def broken(cases: int) -> Statement:
        head = [
            each.model_copy(update={"verdict": "fail"}) if each.eval_id in ("case-0", "case-1", "case-2") else each
            for each in run(cases)
        ]
        return stated(run(cases), head)

    for cases in (9, 10, 20):
        found = broken(cases)
        (rate,) = found.metrics
        assert (rate.metric, rate.verdict, rate.base_passed, rate.head_passed) == (
            "pass rate",
            "worse",
            3 * cases,
            3 * cases - 9,
        )


def verdicts(words: str) -> Comparison:
    """Compare cases, each with its trials on both sides: `ppp:fff`, or `ppp*6:fff` for six of them."""
    sides: tuple[list[ResultRow], list[ResultRow]] = ([], [])
    number = 0
    for word in words.split():
        kind, _, times = word.partition("*")
        for _ in range(int(times or 1)):
            for rows, letters in zip(sides, kind.split(":"), strict=True):
                of = case(f"case-{number}", trials=len(letters), line=number + 1)
                rows += [scored(of, letter, trial) for trial, letter in enumerate(letters, 1)]
            number += 1
    return compared(*sides)


def pairs_of_trials() -> st.SearchStrategy[tuple[str, str]]:
    """Trials of a case on both sides."""
    letters = st.integers(1, 6).flatmap(lambda size: st.text("pf", min_size=size, max_size=size))
    return st.tuples(letters, letters)


def scored(of: PlanCase, letter: str, trial: int) -> ResultRow:
    words: dict[str, Verdict] = {"p": "pass", "f": "fail", "e": "error"}
    return row(words[letter], of=of, trial=trial, score=float(letter == "p") if letter != "e" else None)


@pytest.mark.parametrize(
    ("words", "verdict", "suspects", "worse"),
    [
        # One trial a side: from six failures on, chance is no explanation.
        ("p:f p:p*5", "undecided", 1, 0),
        ("p:f*5 p:p", "undecided", 5, 0),
        ("p:f*6 p:p", "worse", 0, 0),
        ("p:f*7", "worse", 0, 0),
        ("p:f p:p*199", "undecided", 1, 0),
        ("p:f*6 f:p", "undecided", 6, 0),
        ("p:p*5", "undecided", 0, 0),
        ("f:f*5", "undecided", 0, 0),
        ("f:p*8", "better", 0, 0),
        ("f:p*8 p:f", "undecided", 1, 0),
        # Several trials.
        ("ppp:fff ppp:ppp*9", "undecided", 1, 0),
        ("ppp:fff*2 ppp:ppp*9", "worse", 0, 0),
        ("ppp:pff ppp:ppp*9", "undecided", 0, 0),
        ("ppppp:fffff ppppp:ppppp*9", "worse", 0, 1),
        ("ppppp:fffff fffff:ppppp*6 ppppp:ppppp*3", "worse", 0, 1),
        ("ppppp:fffff fffff:ppppp*60", "worse", 0, 1),
        ("ppppp:fffff pppff:ppfff*25 ppfff:pppff*25", "undecided", 1, 0),
        ("ppppp:pffff pppff:ppfff*25 ppfff:pppff*25", "undecided", 1, 0),
        # Failures of another case never hide one that its own trials show to be worse.
        ("pppff:ppppf ppppp:pffff", "worse", 0, 1),
        ("pppff:pppff ppppp:pffff", "undecided", 1, 0),
        ("pppff:pffff ppppp:pffff", "worse", 0, 0),
        ("pfff:pppp pppp:ffff", "worse", 0, 1),
        ("pfff:pppf pppp:ffff", "undecided", 1, 0),
        # A better suite does not excuse a case that cannot be told from chance.
        ("ppp:fff fff:ppp*9", "undecided", 1, 0),
    ],
)
def test_the_verdict_and_its_suspects(words: str, verdict: str, suspects: int, worse: int) -> None:
    found = verdicts(words)
    assert found.statement is not None
    assert len(found.statement.maybe_worse_cases) == suspects
    assert len(found.statement.worse_cases) == worse
    is_open = bool(found.undecided)
    assert is_open == bool(suspects)
    assert bool(found.reasons) == (verdict == "worse")
    assert is_open or found.statement.verdict == verdict


@pytest.mark.parametrize(
    ("words", "p_value", "verdict"),
    [
        (
            ("ppppp:ppppp*8 ppppp:ppppf*7 ppppp:pppff ppppf:ppppp ppppf:ppppf ppppf:pppff ppppf:ppfff"),
            0.0058,
            "worse",
        ),
        (
            ("ppppp:ppppp*5 ppppp:ppppf*4 ppppp:pppff*3 ppppp:ppfff ppppf:ppppp*3 ppppf:ppppf*2 ppppf:pppff*2"),
            0.0102,
            "worse",
        ),
        (
            ("ppppp:ppppp*13 ppppp:ppppf*3 ppppf:ppppp*3 pppff:ppppf"),
            0.78,
            "undecided",
        ),
    ],
    ids=["first", "second", "equal"],
)
def test_a_drop_of_all_cases_is_found_by_its_total(words: str, p_value: float, verdict: str) -> None:
    """Twenty cases of five trials, drawn with pass rates of 95% and 85%, and twice with 95%."""
    found = verdicts(words).statement
    assert found is not None
    (rate,) = found.metrics
    assert (found.verdict, rate.verdict) == (verdict, verdict)
    assert rate.base_trials == rate.head_trials == 100
    if verdict == "worse":
        assert rate.p_value == pytest.approx(p_value, rel=0.05)


@pytest.mark.parametrize("trials", [1, 2, 3, 5])
@pytest.mark.parametrize("repaired", [0, 1, 6, 20])
def test_more_broken_cases_are_never_better_news(trials: int, repaired: int) -> None:
    passes, fails = "p" * trials, "f" * trials
    ranks = []
    for broken in range(9):
        parts = {f"{passes}:{fails}": broken, f"{fails}:{passes}": repaired, f"{passes}:{passes}": 10 - broken}
        found = verdicts(" ".join(f"{kind}*{number}" for kind, number in parts.items() if number))
        ranks.append(2 if found.reasons else 1 if found.undecided else 0)
    assert ranks == sorted(ranks)
    assert ranks[0] == 0 < ranks[1]


@given(st.lists(pairs_of_trials(), min_size=1, max_size=6), st.data())
def test_one_more_failure_never_makes_a_comparison_pass(cases: list[tuple[str, str]], data: st.DataObject) -> None:
    failing = data.draw(st.sampled_from(range(len(cases))))
    base, head = cases[failing]
    more = [*cases[:failing], (base, head.replace("p", "f", 1)), *cases[failing + 1 :]]
    before, after = (verdicts(" ".join(":".join(sides) for sides in side)) for side in (cases, more))
    assert bool(after.reasons or after.undecided) >= bool(before.reasons or before.undecided)


@pytest.mark.parametrize(
    ("words", "undecided"),
    [
        (
            "p:f p:p*5",
            (
                "case-0 passed 1 of 1, now 0 of 1; this may be chance: run both sides with --eval-id case-0 --repeat 5 "
                "to decide"
            ),
        ),
        (
            "p:f*2 p:p*5",
            (
                "2 cases now fail more often: case-0, case-1 (the first passed 1 of 1, now 0 of 1); this may be "
                "chance: run both sides with --eval-id case-0 --eval-id case-1 --repeat 5 to decide"
            ),
        ),
        (
            "ppppp:fffff pppff:ppfff*25 ppfff:pppff*25",
            (
                "case-0 passed 5 of 5, now 0 of 5; this may be chance: "
                "run both sides with --eval-id case-0 --repeat 10 to decide"
            ),
        ),
    ],
)
def test_suspects_are_named_with_what_decides(words: str, undecided: str) -> None:
    assert verdicts(words).undecided == (undecided,)


@pytest.mark.parametrize(
    ("words", "withheld"),
    [
        ("ppppp:peeee*4", "16 trials without a verdict (16 of this run) could decide either way: run them again"),
        ("peeee:ppppp*4", None),
        ("ppppp:ppppe ppppp:ppppp*19", None),
        ("ppppp:fffff ppppp:ppppe*3", None),
        ("peeee:pffff*3", "12 trials without a verdict (12 of main.jsonl) could decide either way: run them again"),
        # An undecided comparison asks for more trials already.
        ("eep:eef", None),
        # Nor may they decide whether a case is a suspect, or whether the run is better.
        ("ppppp:pfffe", "1 trial without a verdict (1 of this run) could decide either way: run it again"),
        (
            "pppff:ppppe*12 pppff:pppff*4",
            "12 trials without a verdict (12 of this run) could decide either way: run them again",
        ),
        ("ppppf:ppppe*20", "20 trials without a verdict (20 of this run) could decide either way: run them again"),
        ("fffff:ppppe*20", None),
        (
            "ppppp:eeeee ppppp:ppppp*9",
            "5 trials without a verdict (5 of this run) could decide either way: run them again",
        ),
    ],
)
def test_missing_trials_withhold_a_verdict_that_they_would_decide(words: str, withheld: str | None) -> None:
    found = verdicts(words).statement
    assert found is not None
    assert found.withheld == ((withheld,) if withheld is not None else ())


@pytest.mark.parametrize(
    ("words", "warning"),
    [
        ("ppppp:ppppe ppppp:ppppp*19", "1 trial without a verdict (1 of head) does not count, and cannot change that"),
        (
            "peeee:ppppp*4 ppppe:ppppe",
            "18 trials without a verdict (17 of main.jsonl and 1 of head) do not count, and cannot change that",
        ),
        ("ppppp:ppppp*4", None),
        ("ppppp:peeee*4", None),
    ],
)
def test_missing_trials_that_decide_nothing_are_counted(words: str, warning: str | None) -> None:
    found = [each for each in verdicts(words).warnings if "without a verdict" in each]
    assert found == ([warning] if warning is not None else [])


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (
            "ppppp:ppppp*4",
            "100% before and now (20 → 20 of 20 trials); the real change may be a drop of up to 16 points",
        ),
        ("fffff:fffff*4", "0% before and now (0 → 0 of 20 trials); none passed before, so none can be lost"),
    ],
)
def test_a_pass_rate_without_a_change_says_how_far_it_may_have_dropped(words: str, text: str) -> None:
    statement = verdicts(words).statement
    assert statement is not None
    (rate,) = statement.metrics
    assert metric_text(rate) == f"pass rate {text}"


def test_scores_that_follow_from_passing_are_not_compared_twice() -> None:
    found = verdicts("ppp:ppf*10").statement
    assert found is not None
    assert [change.metric for change in found.metrics] == ["pass rate"]
    graded = stated(run(score=[0.9, 0.8]), run(score=[0.85, 0.95]))
    assert [change.metric for change in graded.metrics] == ["pass rate", "mean score"]


def test_rates_and_scores_of_too_few_cases_say_what_is_needed() -> None:
    texts = [metric_text(change) for change in stated(run(3, 1, score=[0.9, 1.0]), run(3, 1)).metrics]
    assert texts == [
        "pass rate 100% before and now (3 → 3 of 3 trials); too few trials to see any drop; use --repeat 5",
        "mean score: it needs 7 cases, there are 3",
    ]
