"""Comparison of two runs: changes of cases, warnings and reasons."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from agentv_ci.analysis.comparison.baseline import baseline_of, baseline_text, outcome_of
from agentv_ci.analysis.comparison.comparison import BaselineComparison, Side, compare, compare_sides
from agentv_ci.analysis.comparison.statement import Terms
from agentv_ci.contracts.comparison import BaselineDocument, Change, Comparison
from tests.support import NOW
from tests.support.runs import case, outcomes_of, plan, row, rows_of


def side(words: str, *, measured: str | None = None, digest: str = "0", target: str = "t") -> Side:
    """A run with one case per word and one trial per letter; `-` is not in the run."""
    cases = [
        case(f"case-{number}", trials=len(word), digest=digest * 64, target="default")
        for number, word in enumerate(words.split())
    ]
    rows = [
        [each.model_copy(update={"target": target}) for each in rows_of(one, word)]
        for one, word in zip(cases, words.split(), strict=True)
        if word != "-"
    ]
    of = plan(*(one for one, word in zip(cases, words.split(), strict=True) if word != "-"))
    of = of.model_copy(update={"targets": {"default": of.targets["default"].model_copy(update={"name": target})}})
    return Side("base.json", outcomes_of(of, [each for own in rows for each in own]), measured)


def compared(base: str | Side, head: str | Side, *, confidence: float = 0.95, **given: Any) -> Comparison:
    one, other = (side(each) if isinstance(each, str) else each for each in (base, head))
    return compare_sides(one, other, Terms(confidence, **given), now=NOW)


@pytest.mark.parametrize(
    ("base", "head", "change"),
    [
        ("p", "f", "regressed"),
        ("p", "b", "regressed"),
        ("b", "f", "regressed"),
        ("f", "b", "improved"),
        ("p", "p", "unchanged"),
        ("ppppp", "fffff", "regressed"),
        ("fffff", "ppppp", "improved"),
        ("ppppp", "pffff", "regressed"),
        ("ppppp", "ppfff", "not enough evidence"),
        ("ppp", "fff", "not enough evidence"),
        ("ppp", "ppf", "flaky"),
        ("pff", "fff", "flaky"),
        ("ppp", "ppp", "unchanged"),
        ("ppp", "eee", "not enough evidence"),
        ("p", "e", "not enough evidence"),
        ("p", "ppp", "unchanged"),
        ("-", "p", "new"),
        ("p", "-", "removed"),
    ],
)
def test_change_of_a_case(base: str, head: str, change: Change) -> None:
    found = compared(f"p {base}", f"p {head}")
    assert [each.change for each in found.cases] == ([] if change == "unchanged" else [change])
    assert found.counts[change] == (2 if change == "unchanged" else 1)


def test_confidence_decides_about_a_regression() -> None:
    found = [compared("ppppp", "pffff", confidence=confidence) for confidence in (0.95, 0.97)]
    assert [(each.cases[0].change, bool(each.reasons)) for each in found] == [
        ("regressed", True),
        ("not enough evidence", False),
    ]


def test_changes_are_worst_first_and_all_cases_together_decide() -> None:
    found = compared("f p p p ppppp", "p f f p fffff")
    assert [each.change for each in found.cases] == ["regressed"] * 3 + ["improved"]
    chance = "chance alone explains that in less than 5% of comparisons"
    assert found.reasons == (
        f"case-4 passed 5 of 5, now 0 of 5; {chance}",
        "pass rate 80% → 40% (mean of 5 cases); chance alone explains such a drop in 1.4% of comparisons",
    )
    five, six = (compared(" ".join("p" * number), " ".join("f" * number)) for number in (5, 6))
    drop = "chance alone explains such a drop in 1.6% of comparisons"
    assert six.reasons == (f"pass rate 100% → 0% (6 → 0 of 6 trials); {drop}",)
    assert (five.reasons, len(five.undecided)) == ((), 1)


def test_cases_are_counted_when_both_sides_are_graded() -> None:
    found = compared("p p p e", "p f e p")
    assert (found.compared, found.lost) == (2, 1)


def test_targets_are_compared_unless_a_side_has_several() -> None:
    assert compared(side("p", target="a"), side("f", target="b")).counts["regressed"] == 1
    both = Side("base.json", (*side("p", target="a").cases, *side("f", target="b").cases))
    again = compared(both, Side("head", (*side("f", target="b").cases, *side("p", target="a").cases)))
    assert again.counts["unchanged"] == 2


def test_part_of_a_run_is_compared_with_the_same_part() -> None:
    whole, part = side("p p"), side("f -")
    found = compare(BaselineComparison(whole, "head", NOW, is_part=True), part.cases)
    assert (found.counts["regressed"], found.counts["removed"]) == (1, 0)
    assert compare(BaselineComparison(whole, "head", NOW), part.cases).counts["removed"] == 1


@pytest.mark.parametrize(("days", "warnings"), [(30, ()), (31, ("base.json is 31 days old",)), (-5, ()), (None, ())])
def test_old_baseline_is_a_warning(days: int | None, warnings: tuple[str, ...]) -> None:
    measured = (NOW - timedelta(days=days)).isoformat() if days is not None else "yesterday"
    assert compared(side("p", measured=measured), "p").warnings == warnings


@pytest.mark.parametrize(
    ("base", "head", "warning"),
    [
        (
            side("p p", digest="0"),
            side("p p", digest="1"),
            "2 cases changed since base.json (case or target): case-0, case-1",
        ),
        (side("p p"), side("p -"), "1 case of base.json not in this run: case-1"),
        (side("p"), Side("head", ()), "no case of this run is in base.json: nothing was compared"),
        (
            side("pp pp"),
            side("pp pp"),
            "2 cases have too few trials to show that one of them broke: case-0, case-1",
        ),
        (
            side(" ".join(["ppp"] * 9)),
            side(" ".join(["ppp"] * 9)),
            (
                "9 cases have too few trials to show that one of them broke: case-0, case-1, case-2, case-3, case-4 "
                "and 4 more"
            ),
        ),
    ],
)
def test_what_makes_a_comparison_weak_is_a_warning(base: Side, head: Side, warning: str) -> None:
    assert compared(base, head).warnings == (warning,)


@pytest.mark.parametrize(("trials", "confidence", "is_weak"), [(4, 0.95, False), (5, 0.95, False), (5, 0.995, True)])
def test_a_case_is_called_weak_at_the_level_that_decides(trials: int, confidence: float, is_weak: bool) -> None:
    words = " ".join(["p" * trials] * 2)
    weak = [warning for warning in compared(words, words, confidence=confidence).warnings if "too few" in warning]
    assert bool(weak) == is_weak


def test_baseline_keeps_graded_cases_with_their_trials() -> None:
    document = baseline_of(side("ppf e").cases, plan_digest=None, measured="2030-01-02T03:04:05Z")
    assert document is not None
    (kept,) = document.cases
    assert (kept.id, kept.verdict, kept.passed, kept.missed) == ("case-0", "pass", (1, 2), (3,))
    again = outcome_of(kept)
    assert (again.verdict, again.score, again.passed, len(again.graded)) == ("pass", kept.mean, 2, 3)
    assert baseline_of(side("e").cases, plan_digest=None, measured="") is None


@pytest.mark.parametrize(
    ("threshold", "change", "is_named"),
    [(0.8, "regressed", True), (0.5, "unchanged", False), (None, "unchanged", False)],
)
def test_newer_run_is_held_to_the_thresholds_of_a_baseline(
    threshold: float | None, change: Change, is_named: bool
) -> None:
    scores = (0.79, 0.8, 0.5, 0.5, 0.5, 0.7)
    older, newer = case(trials=6), case(trials=6, threshold=0.5)
    document = baseline_of(outcomes_of(plan(older), rows_of(older, "pppppp")), plan_digest=None, measured="")
    assert document is not None
    base = [outcome_of(each.model_copy(update={"threshold": threshold})) for each in document.cases]
    rows = [row(score=score, of=newer, trial=trial) for trial, score in enumerate(scores, 1)]
    found = compared(Side("base.json", base), Side("head", outcomes_of(plan(newer), rows)))
    assert [each.change for each in found.cases if each.change != "unchanged"] == [change] * is_named
    named = "1 case with trials that pass only below the threshold of base.json, which count as failed: one"
    assert (named in found.warnings) == is_named


@pytest.mark.parametrize(
    ("base", "head", "withheld"),
    [
        ("pppee", "fffff", True),
        ("pfeee", "fffff", True),
        ("fffff", "pppee", True),
        ("ppppp", "fffff", False),
        ("ppppp ppeee", "ppppp fffff", True),
        ("ppppp ppeee", "ppppp ppppp", False),
        ("ppppp ppeee", "fffff fffff", False),
    ],
)
def test_baseline_withholds_what_its_results_withhold(base: str, head: str, withheld: bool) -> None:
    results = side(base)
    document = baseline_of(results.cases, plan_digest=None, measured="2030-01-02T03:04:05Z")
    assert document is not None
    again = BaselineDocument.model_validate_json(baseline_text(document))
    stored = replace(results, cases=tuple(map(outcome_of, again.cases)))
    found = [compared(each, head).statement for each in (results, stored)]
    assert found[0] == found[1]
    assert found[0] is not None
    assert (found[0].verdict == "withheld") == withheld
