"""Several results files as one run."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from agentv_ci.analysis.comparison.comparison import BaselineComparison, Side
from agentv_ci.analysis.merging import MANY_TRIALS, Part, merge
from agentv_ci.analysis.run_report import report
from agentv_ci.contracts.base import Verdict
from agentv_ci.contracts.plan import Plan
from agentv_ci.contracts.plan_parts import FileReference, FileText
from agentv_ci.contracts.report import (
    Ending,
    FailedValidation,
    GateSettings,
    RunOrigin,
    RunReport,
    ScenarioAggregates,
    ScenarioReport,
    ShardRecord,
    Validation,
    ValidatorIssue,
)
from agentv_ci.contracts.results import ResultRow
from agentv_ci.execute.shard import Shard, part_of
from tests.support import NOW
from tests.support.runs import DIGEST, case, plan, row, rows_of, suite

OTHER = "1" * 64
NOT_FINISHED = "its run did not finish; finish it with --resume"
BUDGETS = "these runs had different budgets (--max-cost)"
NOT_DRY = "the run report of a.jsonl is not of a dry run, but some of its rows are"
SPLIT = "they were split differently (--balance)"


@dataclass
class File:
    """A results file and its report."""

    part: Part
    rows: Sequence[ResultRow]


def ran(name: str, of: Plan, rows: Iterable[ResultRow] | None = None, **ending: Any) -> File:
    """The file of a run in which all trials passed, or which has these rows."""
    listed = [row(of=each) for each in of.cases] if rows is None else list(rows)
    return File(Part(name, report(of, listed, Ending(**ending))[0]), listed)


def merged(*files: File, expect: int | None = None, **given: Any) -> RunReport:
    rows = [(file.part, each) for file in files for each in file.rows]
    options: dict[str, Any] = {"validate": lambda _: (), "against": None, **given}
    return merge([file.part for file in files], rows, expect, **options)[0]


def shard(index: int, total: int = 2, *, cost: float | None = None, cases: int = 4, **ending: Any) -> File:
    part = part_of(plan(*(case(name) for name in "abcd")), Shard(index, total), {})
    rows = [row(of=each, cost_usd=cost) for each in part.cases]
    return ran(f"{index}.jsonl", part, rows, shard=ShardRecord(index=index, total=total, cases=cases), **ending)


def of_plan(file: File, digest: str) -> File:
    assert file.part.report is not None
    return File(Part("x.jsonl", file.part.report.model_copy(update={"plan_digest": digest})), file.rows)


RUN, OTHER_RUN = ran("a.jsonl", plan(case())), ran("b.jsonl", plan(case("b")))
UNFINISHED = File(Part("2.jsonl", None), [])
LENIENT = ran("1.jsonl", plan(case(), suites=[suite(min_pass_rate=0.5)]))
DRY = [row(dry_run=True)]


def test_shards_of_a_plan_are_one_run() -> None:
    found = merged(shard(1), shard(2), expect=2)
    assert (found.gate.exit_code, found.gate.verdict, found.gate.reasons) == (0, "pass", ())
    assert (found.counts.cases, found.counts.passed, found.counts.rows, found.plan_digest) == (4, 4, 4, DIGEST)
    assert found.shard is None
    assert merged(RUN, expect=1).gate.exit_code == 0


@pytest.mark.parametrize(
    ("files", "expect", "reasons"),
    [
        ([shard(1)], None, ["shard 2/2 missing"]),
        ([shard(1), shard(1), shard(2)], 2, ["shard 1/2 occurs 2 times: 1.jsonl, 1.jsonl", "duplicate rows: "]),
        ([shard(1), of_plan(shard(2), OTHER)], 2, ["x.jsonl belongs to another plan", "shard 2/2 missing"]),
        ([shard(1), shard(2, 3)], 2, ["2.jsonl is shard 2/3, not one of 2", "shard 2/2 missing"]),
        ([RUN], 2, ["a.jsonl is a whole run, not a shard", "shards 1/2, 2/2 miss"]),
        ([shard(1), UNFINISHED], 2, [f"the run report of 2.jsonl is missing: {NOT_FINISHED}", "shard 2/2 miss"]),
        ([shard(1, cases=5), shard(2, cases=5)], 2, [f"the shards have 4 cases in total, but the plan has 5: {SPLIT}"]),
        ([RUN, ran("b.jsonl", plan(case()))], None, ["duplicate rows: trial 1 of 'one' (default) in b.jsonl"]),
        ([LENIENT, ran("2.jsonl", plan(case()), [])], None, ["evals/a.yaml: these runs had different gates"]),
        ([ran("1.jsonl", plan(case()), max_cost_usd=1.0), OTHER_RUN], None, [BUDGETS]),
        ([ran("a.jsonl", plan(case()), DRY, dry_run=True), OTHER_RUN], None, ["some of these runs are dry runs"]),
        ([ran("a.jsonl", plan(case()), DRY)], None, [NOT_DRY]),
    ],
)
def test_files_that_do_not_fit_together_fail_the_gate(
    files: list[File], expect: int | None, reasons: list[str]
) -> None:
    found = merged(*files, expect=expect)
    assert (found.gate.exit_code, found.gate.verdict) == (1, "fail")
    for reason in reasons:
        assert any(each.startswith(reason) for each in found.gate.reasons), found.gate.reasons


@pytest.mark.parametrize("others", [0, 2 * MANY_TRIALS])
@pytest.mark.parametrize("verdict", ["pass", "fail"])
def test_each_trial_counts_once(verdict: Verdict, others: int) -> None:
    trials = others + 2
    rows = [row(verdict, trial=number, trials=trials) for number in (*range(2, trials + 1), 1)]
    found = merged(File(Part("a.jsonl", None), [*rows, rows[0], rows[-1]]))
    assert found.counts.rows == trials
    assert "duplicate rows: trial 2 of 'one' (default) in a.jsonl, trial 1 of 'one' (default) in a.jsonl" in (
        found.gate.reasons
    )


@pytest.mark.parametrize(("cases", "counted"), [("", "0 rows"), ("a", "1 row"), ("abc", "3 rows")])
def test_rows_must_be_as_many_as_the_report_counts(cases: str, counted: str) -> None:
    file = ran("a.jsonl", plan(case("a"), case("b")), [row(of=case("a")), row(of=case("b"))])
    found = merged(File(file.part, [row(of=case(name)) for name in cases]))
    assert found.gate.exit_code == 1
    assert f"a.jsonl has {counted}, but its run report counts 2" in found.gate.reasons


def test_first_row_of_a_trial_counts() -> None:
    again = ran("b.jsonl", plan(case()), [row("fail", cost_usd=1.0)])
    found = merged(ran("a.jsonl", plan(case()), [row(cost_usd=1.0)]), again)
    assert (found.counts.rows, found.counts.passed, found.cost_usd) == (1, 1, 1.0)
    others = [row(), row(of=case(suite="evals/b.yaml")), row(target="other"), row(trial=2)]
    assert merged(File(Part("a.jsonl", None), others)).counts.rows == 4


def test_cases_without_a_row_are_errors() -> None:
    first, second = plan(*(case(name) for name in "abc")), plan(*(case(name) for name in "de"))
    files = (
        ran("a.jsonl", first, [row(of=first.cases[0])], write_error="disk full"),
        of_plan(ran("b.jsonl", second, []), OTHER),
    )
    found = merged(*files)
    assert (found.counts.cases, found.counts.errored, found.counts.not_run) == (5, 4, 0)
    assert found.gate.reasons == ("results could not be written: disk full", "4 errored cases, at most 0 allowed")
    assert found.gate.exit_code == 4


@pytest.mark.parametrize(
    ("stops", "code"), [(["budget", None], 5), (["interrupted", "budget"], 130), (["fail-fast", "budget"], 5)]
)
def test_worst_stop_of_a_part_is_that_of_the_whole(stops: list[Any], code: int) -> None:
    assert merged(*(shard(n, stopped=stop) for n, stop in enumerate(stops, 1)), expect=2).gate.exit_code == code


def test_budget_is_that_of_the_whole() -> None:
    found = merged(*(shard(index, cost=0.3, max_cost_usd=1.0) for index in (1, 2)), expect=2)
    assert (found.gate.exit_code, found.cost_usd) == (5, 1.2)
    assert found.gate.reasons == ("the run cost $1.2000, at most $1 allowed",)


def test_suites_without_a_report_have_default_settings() -> None:
    found = merged(File(Part("a.jsonl", None), [row(), row(of=case("b")), row(of=case("c"), target="other")]))
    assert found.gate.settings == (GateSettings(suite="evals/a.yaml", cases=3),)
    assert found.counts.cases == 3


def test_origin_is_what_all_parts_have_in_common() -> None:
    first, second = (RunOrigin(command=f"eval --shard {n}/2", version="1.0", commit="c") for n in (1, 2))
    both = merged(shard(1, origin=first), shard(2, origin=second))
    assert both.origin == RunOrigin(command=None, version="1.0", commit="c")
    assert (merged(shard(1, 1, origin=first)).origin, merged(RUN).origin) == (first, None)


def test_guidelines_are_those_of_all_parts() -> None:
    def told(path: str) -> File:
        of = plan(case(path, guidelines=(FileReference(path=path, sha256=DIGEST),)))
        return ran(path, of.model_copy(update={"files": {DIGEST: FileText(path=path, text=f"Read {path}.")}}))

    texts = [(each.path, each.text) for each in merged(told("a.md"), told("b.md")).guidelines]
    assert texts == [("a.md", "Read a.md."), ("b.md", "Read b.md.")]


def test_results_of_several_plans_have_no_plan_digest() -> None:
    assert merged(RUN, OTHER_RUN).plan_digest == DIGEST
    assert merged(RUN, of_plan(OTHER_RUN, OTHER)).plan_digest is None


CASES = st.lists(st.tuples(st.sampled_from("ab"), st.text("pbfe", min_size=1, max_size=4)), min_size=1, max_size=8)


@settings(max_examples=50)
@given(CASES, st.integers(1, 5), st.randoms())
def test_any_split_in_any_order_is_like_the_whole_run(
    cases: list[tuple[str, str]], total: int, chance: random.Random
) -> None:
    known = [
        case(f"c{number}", suite=f"evals/{name}.yaml", trials=len(word), line=number + 1)
        for number, (name, word) in enumerate(cases)
    ]
    whole = plan(*sorted(known, key=lambda each: each.suite))
    rows = {
        each.id: [found.model_copy(update={"cost_usd": 0.1}) for found in rows_of(each, word)]
        for each, (_, word) in zip(known, cases, strict=True)
    }
    files = []
    for index in range(1, total + 1):
        record = ShardRecord(index=index, total=total, cases=len(whole.cases))
        part = part_of(whole, Shard(index, total), {})
        of_part = [found for each in part.cases for found in rows[each.id]]
        chance.shuffle(of_part)
        files.append(ran(f"{index}.jsonl", part, of_part, shard=record))
    chance.shuffle(files)
    alone, outcomes = report(whole, [found for each in whole.cases for found in rows[each.id]], Ending())
    together = merged(*files, expect=total)
    for field in ("counts", "statistics", "cost_usd"):
        assert getattr(together, field) == getattr(alone, field)
    assert (together.gate.exit_code, together.gate.verdict) == (alone.gate.exit_code, alone.gate.verdict)
    assert sorted(together.gate.reasons) == sorted(alone.gate.reasons)
    assert len(outcomes) == together.counts.cases


def baseline(of: Plan, verdict: Any, **given: Any) -> BaselineComparison:
    """A comparison with a run of these verdicts."""
    outcomes = report(of, [row(verdict, of=each) for each in of.cases], Ending())[1]
    return BaselineComparison(Side("base.json", outcomes), "head", NOW, **given)


def test_whole_run_keeps_its_comparison() -> None:
    of = plan(case("a", trials=5), case("b", trials=5), suites=[suite(min_pass_rate=0)])
    rows = [each for one in of.cases for each in rows_of(one, "fffff")]
    before = report(of, [each for one in of.cases for each in rows_of(one, "ppppp")], Ending())[1]
    known = report(of, rows, Ending(), against=BaselineComparison(Side("base.json", before), "head", NOW))[0]
    assert known.gate.exit_code == 1
    again = merged(File(Part("r.jsonl", known), rows))
    assert (again.comparison, again.gate) == (known.comparison, known.gate)


def test_parts_that_were_compared_must_be_compared_together() -> None:
    of = plan(case("a"), case("b"))
    against = replace(baseline(of, "pass"), is_part=True)
    files = []
    for index in (1, 2):
        part, record = part_of(of, Shard(index, 2), {}), ShardRecord(index=index, total=2, cases=2)
        rows = [row(of=each) for each in part.cases]
        found = report(part, rows, Ending(shard=record), against=against)[0]
        files.append(File(Part(f"{index}.jsonl", found), rows))
    gate = merged(*files).gate
    said = "these runs were compared with base.json, but the merged run is not; set --baseline"
    assert (gate.exit_code, gate.reasons) == (1, (said,))
    together = merged(*files, against=baseline(of, "pass")).gate
    assert (together.exit_code, together.reasons) == (0, ())


def test_errors_of_a_validator_that_cannot_run_again_fail_the_gate() -> None:
    def scenario(validation: Validation | FailedValidation) -> ScenarioReport:
        aggregates = ScenarioAggregates(runs=1, errors=0, validations=(validation,))
        return ScenarioReport(scenario_key="evals/a.yaml", aggregates=aggregates)

    bad = Validation(validator="v", issues=(ValidatorIssue(id="x", severity="error", message="bad"),), summary={})
    known = File(Part("r.jsonl", report(plan(case()), [row()], Ending(), scenarios=[scenario(bad)])[0]), [row()])
    silent = scenario(FailedValidation(validator="v", error="unknown validator 'v'"))
    gate = merged(known, validate=lambda _: (silent,)).gate
    assert (gate.exit_code, gate.reasons) == (1, ("evals/a.yaml: validator v found errors, but cannot run here",))
