"""Several result files as one run."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentv_ci.analysis.comparison import BaselineComparison, Side
from agentv_ci.analysis.merging import Part, merge
from agentv_ci.analysis.run_report import report
from agentv_ci.contracts.plan import Plan
from agentv_ci.contracts.report import (
    Ending,
    FailedValidation,
    RunReport,
    ScenarioAggregates,
    ScenarioReport,
    ShardRecord,
    Validation,
    ValidatorIssue,
)
from agentv_ci.contracts.results import ResultRow
from agentv_ci.execute.shard import Shard, part_of
from tests.report.builders import DIGEST, case, plan, row, rows_of, suite
from tests.support import NOW

VERDICTS = ("pass", "borderline", "fail", "error")
OTHER = "1" * 64


@dataclass
class File:
    """A results file and its report."""

    part: Part
    rows: Sequence[ResultRow]


def ran(name: str, of: Plan, rows: Iterable[ResultRow], **ending: Any) -> File:
    listed = list(rows)
    return File(Part(name, report(of, listed, Ending(**ending))[0]), listed)


def merged(*files: File, expect: int | None = None) -> RunReport:
    rows = [(file.part, each) for file in files for each in file.rows]
    parts = [file.part for file in files]
    return merge(parts, rows, expect, validate=lambda _: (), against=None)[0]


def shard(index: int, total: int, *, of: Plan | None = None, verdict: Any = "pass", **ending: Any) -> File:
    whole = of or plan(*(case(name) for name in "abcd"))
    record = ShardRecord(index=index, total=total, cases=len(whole.cases))
    part = part_of(whole, Shard(index, total), {})
    return ran(f"{index}.jsonl", part, [row(verdict, of=each) for each in part.cases], shard=record, **ending)


def test_the_parts_of_a_plan_are_one_run_again() -> None:
    found = merged(shard(1, 2), shard(2, 2), expect=2)
    assert (found.gate.exit_code, found.gate.verdict, found.gate.reasons) == (0, "pass", ())
    assert (found.counts.cases, found.counts.passed, found.counts.rows, found.plan_digest) == (4, 4, 4, DIGEST)
    assert found.shard is None


ABSENT = File(Part("2.jsonl", None), [])
FOREIGN = File(
    Part("x.jsonl", shard(2, 2).part.report.model_copy(update={"plan_digest": OTHER})),  # type: ignore[union-attr]
    shard(2, 2).rows,
)


@pytest.mark.parametrize(
    ("files", "expect", "reasons"),
    [
        ([shard(1, 2)], 2, ["shard 2/2 missing"]),
        ([shard(2, 4), shard(3, 4)], 4, ["shards 1/4, 4/4 missing"]),
        ([shard(1, 2), shard(1, 2), shard(2, 2)], 2, ["shard 1/2 occurs 2 times: 1.jsonl, 1.jsonl", "duplicate rows"]),
        ([shard(1, 2), FOREIGN], 2, ["x.jsonl belongs to another plan", "shard 2/2 missing"]),
        ([shard(1, 2), shard(2, 3)], 2, ["2.jsonl is shard 2/3, not one of 2", "shard 2/2 missing"]),
        ([ran("all.jsonl", plan(case()), [row()])], 2, ["all.jsonl is a whole run, not a shard", "missing"]),
        ([shard(1, 2), ABSENT], 2, ["the run report of 2.jsonl is missing", "shard 2/2 missing"]),
    ],
)
def test_what_is_missing_doubled_or_foreign_fails_the_gate_and_is_named(
    files: list[File], expect: int, reasons: list[str]
) -> None:
    found = merged(*files, expect=expect)
    assert (found.gate.exit_code, found.gate.verdict) == (1, "fail")
    for reason in reasons:
        assert any(reason in each for each in found.gate.reasons), found.gate.reasons


def test_a_whole_run_is_its_own_only_part() -> None:
    assert merged(ran("all.jsonl", plan(case()), [row()]), expect=1).gate.exit_code == 0


def test_a_row_that_is_there_twice_is_named_and_counted_once() -> None:
    found = merged(ran("a.jsonl", plan(case()), [row()]), ran("b.jsonl", plan(case()), [row()]))
    assert found.gate.exit_code == 1
    assert "duplicate rows: trial 1 of 'one' (default) in b.jsonl" in found.gate.reasons
    assert found.counts.rows == 1


@pytest.mark.parametrize("rows", [[], [row(of=case("a")), row(of=case("b")), row(of=case("c"))]])
def test_a_file_that_does_not_have_the_rows_its_report_counts_is_named(rows: list[ResultRow]) -> None:
    file = ran("a.jsonl", plan(case("a"), case("b")), [row(of=case("a")), row(of=case("b"))])
    found = merged(File(file.part, rows))
    assert found.gate.exit_code == 1
    assert f"a.jsonl has {len(rows)} rows, but its run report counts 2" in found.gate.reasons


def test_cases_without_a_row_are_errors() -> None:
    cases = [case(name) for name in "abc"]
    found = merged(ran("a.jsonl", plan(*cases), [row(of=cases[0])], write_error="disk full"))
    assert (found.counts.cases, found.counts.errored, found.counts.not_run) == (3, 2, 2)
    assert "2 errors, at most 0 allowed" in found.gate.reasons
    assert found.gate.exit_code == 4


@pytest.mark.parametrize(
    ("stops", "code"),
    [
        (["budget", None], 5),
        (["interrupted", None], 130),
        (["budget", "interrupted"], 130),
        (["fail-fast", "budget"], 5),
    ],
)
def test_the_worst_end_of_a_part_is_that_of_the_whole(stops: list[Any], code: int) -> None:
    files = [shard(number, 2, stopped=stop) for number, stop in enumerate(stops, 1)]
    assert merged(*files, expect=2).gate.exit_code == code


def test_the_budget_is_that_of_the_whole() -> None:
    whole = plan(*(case(name) for name in "abcd"))
    files = []
    for index in (1, 2):
        file = shard(index, 2, of=whole, max_cost_usd=1.0)
        files.append(File(file.part, [each.model_copy(update={"cost_usd": 0.3}) for each in file.rows]))
    found = merged(*files, expect=2)
    assert (found.gate.exit_code, found.cost_usd) == (5, 1.2)
    assert found.gate.reasons == ("the run cost $1.2000, at most $1 allowed",)


def test_gates_that_differ_are_said() -> None:
    one = ran("1.jsonl", plan(case(), suites=[suite(min_pass_rate=0.5)]), [row()])
    two = ran("2.jsonl", plan(case(target="default"), suites=[suite()]), [row(trial=1, target="other")])
    reasons = merged(one, two).gate.reasons
    assert "evals/a.yaml: these runs had different gates" in reasons


def test_a_dry_run_passes_nothing_and_mixed_with_another_run_it_fails() -> None:
    dry = ran("a.jsonl", plan(case()), [row(dry_run=True)], dry_run=True)
    assert (merged(dry).gate.verdict, merged(dry).gate.exit_code) == ("dry-run", 0)
    real = ran("b.jsonl", plan(case("b")), [row(of=case("b"))])
    assert "some of these runs are dry runs" in merged(dry, real).gate.reasons
    assert merged(dry, real).gate.exit_code == 1


def test_results_of_several_plans_have_no_plan() -> None:
    one = ran("a.jsonl", plan(case()), [row()])
    report_of_two = one.part.report
    assert report_of_two is not None
    two = File(Part("b.jsonl", report_of_two.model_copy(update={"plan_digest": OTHER})), [row(of=case("b"))])
    assert merged(one, two).plan_digest is None


@given(
    st.lists(
        st.tuples(
            st.sampled_from("ab"), st.lists(st.sampled_from(["pass", "borderline", "fail", "error"]), min_size=1)
        ),
        min_size=1,
        max_size=8,
    ),
    st.integers(1, 5),
    st.integers(0, 9),
)
def test_any_split_in_any_order_comes_to_what_the_whole_run_comes_to(
    cases: list[tuple[str, list[Any]]], total: int, seed: int
) -> None:
    known = [
        case(f"c{number}", suite=f"evals/{name}.yaml", trials=len(verdicts), line=number + 1)
        for number, (name, verdicts) in enumerate(cases)
    ]
    whole = plan(*sorted(known, key=lambda each: each.suite))
    rows = {
        each.id: [
            found.model_copy(update={"trials": each.trials, "cost_usd": 0.1}) for found in rows_of(each, *verdicts)
        ]
        for each, (_, verdicts) in zip(known, cases, strict=True)
    }
    files = []
    for index in range(1, total + 1):
        record = ShardRecord(index=index, total=total, cases=len(whole.cases))
        part = part_of(whole, Shard(index, total), {})
        of_part = [found for each in part.cases for found in rows[each.id]]
        random.Random(seed).shuffle(of_part)
        files.append(ran(f"{index}.jsonl", part, of_part, shard=record))
    random.Random(seed).shuffle(files)
    alone, outcomes = report(whole, [found for each in whole.cases for found in rows[each.id]], Ending())
    together = merged(*files, expect=total)
    assert together.counts == alone.counts
    assert together.statistics == alone.statistics
    assert together.cost_usd == alone.cost_usd
    assert (together.gate.exit_code, together.gate.verdict) == (alone.gate.exit_code, alone.gate.verdict)
    assert sorted(together.gate.reasons) == sorted(alone.gate.reasons)
    assert len(outcomes) == together.counts.cases


def compared(of: Plan, verdict: Any) -> BaselineComparison:
    """What a run is compared with that ended like this."""
    outcomes = report(of, [row(verdict, of=each) for each in of.cases], Ending())[1]
    return BaselineComparison(Side("base.json", outcomes), "head", NOW)


def test_a_whole_run_keeps_what_was_said_of_it_against_its_baseline() -> None:
    of = plan(case("a"), case("b"), suites=[suite(min_pass_rate=0)])
    rows = [row("fail", of=each) for each in of.cases]
    known = report(of, rows, Ending(), against=compared(of, "pass"))[0]
    assert known.gate.exit_code == 1
    again = merged(File(Part("r.jsonl", known), rows))
    assert (again.comparison, again.gate) == (known.comparison, known.gate)


def test_parts_that_were_compared_are_compared_together_or_do_not_pass() -> None:
    of = plan(case("a"), case("b"))
    files = []
    for index in (1, 2):
        part = part_of(of, Shard(index, 2), {})
        rows = [row(of=each) for each in part.cases]
        ending = Ending(shard=ShardRecord(index=index, total=2, cases=2))
        against = replace(compared(of, "pass"), is_part=True)
        files.append(File(Part(f"{index}.jsonl", report(part, rows, ending, against=against)[0]), rows))
    found = merged(*files)
    assert found.gate.exit_code == 1
    assert "these runs were compared with base.json, but the merged run is not; set --baseline" in (found.gate.reasons)
    parts = [file.part for file in files]
    located = [(file.part, each) for file in files for each in file.rows]
    together = merge(parts, located, None, validate=lambda _: (), against=compared(of, "pass"))[0]
    assert (together.gate.exit_code, together.gate.reasons) == (0, ())


def scenario(validation: Validation | FailedValidation) -> ScenarioReport:
    aggregates = ScenarioAggregates(runs=1, errors=0, validations=(validation,))
    return ScenarioReport(scenario_key="evals/a.yaml", aggregates=aggregates)


def test_errors_of_a_validator_that_cannot_run_here_are_not_forgotten() -> None:
    of = plan(case("a"))
    rows = [row(of=of.cases[0])]
    issue = ValidatorIssue(id="x", severity="error", message="bad")
    known = report(of, rows, Ending(), scenarios=[scenario(Validation(validator="v", issues=(issue,), summary={}))])[0]
    part = Part("r.jsonl", known)
    silent = scenario(FailedValidation(validator="v", error="unknown validator 'v'"))
    found = merge([part], [(part, rows[0])], None, validate=lambda _: (silent,), against=None)[0]
    assert found.gate.exit_code == 1
    assert found.gate.reasons == ("evals/a.yaml: validator v found errors, but cannot run here",)
