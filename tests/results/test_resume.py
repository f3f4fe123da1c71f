"""Results of an earlier run, and what of them still holds."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from agentv_ci.contracts.plan import Plan
from agentv_ci.contracts.results import ResultRow
from agentv_ci.errors import UsageError
from agentv_ci.results.files import ResultsFormat, form, read_rows
from agentv_ci.results.journal import Journal
from agentv_ci.results.resume import EarlierRun, ResumedResults
from tests.report.builders import case, plan, row

WHOLE = plan(case("a"), case("b", trials=2, seeds=(7,)), case("c"))
FITTING = [
    row(of=WHOLE.cases[0], cost_usd=0.5, judge_cost_usd=0.25),
    row("fail", of=WHOLE.cases[1], seed=7),
    row(of=WHOLE.cases[1], trial=2),
]


def write(path: Path, rows: Sequence[ResultRow]) -> None:
    name: ResultsFormat = "yaml" if path.suffix == ".yaml" else "jsonl"
    path.write_text("".join(map(form(name).encode, rows)), encoding="utf-8")


def resumable(path: Path, of: Plan = WHOLE, *, dry_run: bool = False) -> ResumedResults:
    return ResumedResults(path, "yaml" if path.suffix == ".yaml" else "jsonl", of, path.parent, dry_run=dry_run)


def kept(tmp_path: Path, rows: Sequence[ResultRow], of: Plan = WHOLE, *, dry_run: bool = False) -> EarlierRun:
    path = tmp_path / "r.jsonl"
    write(path, rows)
    return resumable(path, of, dry_run=dry_run).read_earlier(path, is_part=False)


def keys(earlier: EarlierRun) -> list[tuple[str, int]]:
    return sorted((case_id, trial) for _, case_id, trial in earlier.results)


def whole_bytes(earlier: EarlierRun) -> int:
    assert earlier.kept is not None
    return earlier.kept.whole_bytes


def test_rows_that_still_fit_are_finished_and_cost_what_they_cost(tmp_path: Path) -> None:
    earlier = kept(tmp_path, FITTING)
    assert keys(earlier) == [("a", 1), ("b", 1), ("b", 2)]
    assert earlier.cost_usd == {"evals/a.yaml": 0.75}
    assert whole_bytes(earlier) == (tmp_path / "r.jsonl").stat().st_size
    assert earlier.sentence == f"3 of 4 trials are already in '{tmp_path / 'r.jsonl'}'"


def test_what_runs_again_has_cost_what_it_cost(tmp_path: Path) -> None:
    failed = row("error", of=WHOLE.cases[2], cost_usd=0.25)
    stranger = FITTING[0].model_copy(update={"digest": "1" * 64})
    earlier = kept(tmp_path, [failed, failed, stranger, *FITTING])
    assert ("c", 1) not in keys(earlier)
    assert earlier.cost_usd == {"evals/a.yaml": 1.25}


@pytest.mark.parametrize(
    "change",
    [
        {"suite": "evals/b.yaml"},
        {"eval_id": "z"},
        {"target": "other"},
        {"digest": "1" * 64},
        {"trial": 2},
        {"seed": 8},
        {"dry_run": True},
        {"status": "error", "verdict": "error"},
    ],
    ids=str,
)
def test_a_row_that_says_something_else_does_not_count(change: dict[str, Any], tmp_path: Path) -> None:
    earlier = kept(tmp_path, [FITTING[1], FITTING[0].model_copy(update=change)])
    assert keys(earlier) == [("b", 1)]


def test_a_dry_run_goes_on_with_rows_of_a_dry_run(tmp_path: Path) -> None:
    rows = [FITTING[0].model_copy(update={"dry_run": True}), FITTING[1]]
    assert keys(kept(tmp_path, rows, dry_run=True)) == [("a", 1)]


def test_what_runs_again_and_what_goes_is_said(tmp_path: Path) -> None:
    rows = [*FITTING, row("error", of=WHOLE.cases[2]), row(of=case("gone")), row(of=case("too"))]
    sentence = kept(tmp_path, rows).sentence
    assert sentence.endswith("; 1 with an error runs again; 2 other rows are removed at the end")


def test_rows_of_nothing_in_this_run_are_refused_before_they_are_lost(tmp_path: Path) -> None:
    with pytest.raises(
        UsageError, match=r"is not of this run: the cases, targets, digests or seeds of all its rows differ"
    ):
        kept(tmp_path, [row(of=case("gone"))])


@pytest.mark.parametrize("text", [None, ""])
def test_nothing_is_kept_of_a_file_that_is_not_there_or_empty(text: str | None, tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    if text is not None:
        path.write_text(text, encoding="utf-8")
    earlier = resumable(path).read_earlier(path, is_part=False)
    assert (keys(earlier), earlier.kept) == ([], None)


@pytest.mark.parametrize("name", ["r.jsonl", "r.yaml"])
def test_a_torn_last_row_counts_as_absent_wherever_it_is_torn(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    tail = FITTING[1].model_copy(update={"candidate_answer": "one\ntwo\n- three", "metadata": {"a": {"b": 1}, "c": 2}})
    write(path, [FITTING[0]])
    whole = path.stat().st_size
    write(path, [FITTING[0], tail])
    data = path.read_bytes()
    for end in range(whole, len(data)):
        path.write_bytes(data[:end])
        earlier = resumable(path).read_earlier(path, is_part=False)
        assert (keys(earlier), whole_bytes(earlier)) == ([("a", 1)], whole), data[whole:end]
    path.write_bytes(data)
    assert keys(resumable(path).read_earlier(path, is_part=False)) == [("a", 1), ("b", 1)]


def test_a_torn_last_row_counts_as_absent_with_spaces_between_its_words(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    write(path, [FITTING[0]])
    row = json.dumps(json.loads(path.read_bytes())).encode()
    for end in range(1, len(row) + 1):
        path.write_bytes(row + b"\n" + row[:end])
        earlier = resumable(path).read_earlier(path, is_part=False)
        assert (keys(earlier), whole_bytes(earlier)) == ([("a", 1)], len(row) + 1), row[:end]


@pytest.mark.parametrize("name", ["r.jsonl", "r.yaml"])
@pytest.mark.parametrize("tail", [b"\x00" * 4096, b"\x00" * 100 + b"\n"])
def test_whatever_a_disk_without_power_leaves_at_the_end_counts_as_absent(
    tail: bytes, name: str, tmp_path: Path
) -> None:
    path = tmp_path / name
    write(path, FITTING)
    whole = path.stat().st_size
    path.write_bytes(path.read_bytes() + tail)
    assert whole_bytes(resumable(path).read_earlier(path, is_part=False)) == whole


@pytest.mark.parametrize("tail", [b'{"dry_run": 1}\n', b"notes\n", b'{"schema_version": 2, "dry_run": false}\n'])
def test_what_is_no_beginning_of_a_row_is_refused_and_not_lost(tail: bytes, tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    write(path, FITTING)
    path.write_bytes(path.read_bytes() + tail)
    with pytest.raises(UsageError, match=r"r\.jsonl:4: not a result row"):
        resumable(path).read_earlier(path, is_part=False)


def test_what_is_no_row_before_the_last_is_refused_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    write(path, FITTING)
    path.write_bytes(b"no row\n" + path.read_bytes())
    with pytest.raises(UsageError, match=r"r\.jsonl:1: not a result row"):
        resumable(path).read_earlier(path, is_part=False)


def test_the_finished_file_has_one_row_for_each_trial(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    error = row("error", of=WHOLE.cases[2])
    mended = row(of=WHOLE.cases[2])
    write(path, [error, row(of=case("gone")), *FITTING, mended, row("fail", of=WHOLE.cases[2])])
    resumable(path).remove_other_rows()
    assert list(read_rows(path, "jsonl")) == [*FITTING, mended]
    assert list(tmp_path.iterdir()) == [path]


def test_an_error_stays_until_there_is_an_answer(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    errors = [row("error", of=WHOLE.cases[2]), row("error", of=WHOLE.cases[2], error="again")]
    write(path, errors)
    resumable(path).remove_other_rows()
    assert list(read_rows(path, "jsonl")) == errors[1:]


def test_a_tidy_file_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    write(path, FITTING)
    before = path.stat()
    resumable(path).remove_other_rows()
    assert (path.stat().st_ino, path.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


def test_rows_can_go_on_in_another_file(tmp_path: Path) -> None:
    write(tmp_path / "old.jsonl", FITTING)
    new = tmp_path / "deep" / "new.jsonl"
    earlier = resumable(new).read_earlier(tmp_path / "old.jsonl", is_part=False)
    assert keys(earlier) == [("a", 1), ("b", 1), ("b", 2)]
    assert earlier.kept is not None
    assert (earlier.kept.path, new.exists()) == (tmp_path / "old.jsonl", False)
    with Journal(new, form("jsonl").encode, keeps=earlier.kept) as journal:
        journal.begin()
    assert list(resumable(new).rows()) == FITTING


def test_what_the_plan_says_otherwise_today_is_said_so_in_rows_that_stay(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    stale = [FITTING[0].model_copy(update={"trials": 3, "dataset": "old", "metadata": {"a": 1}}), *FITTING[1:]]
    write(path, stale)
    resumable(path).remove_other_rows()
    assert list(read_rows(path, "jsonl")) == FITTING


def test_rows_of_cases_that_are_left_out_are_not_lost(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    write(path, FITTING)
    part = plan(*WHOLE.cases[:1])
    with pytest.raises(UsageError, match="has 2 rows of cases that are not selected"):
        resumable(path, part).read_earlier(path, is_part=True)
    assert keys(resumable(path, part).read_earlier(path, is_part=False)) == [("a", 1)]
    elsewhere = resumable(tmp_path / "new.jsonl", part).read_earlier(path, is_part=True)
    assert keys(elsewhere) == [("a", 1)]
    assert keys(resumable(path).read_earlier(path, is_part=True)) == [("a", 1), ("b", 1), ("b", 2)]


def test_rows_of_eval_files_that_were_not_named_are_not_lost(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    write(path, [*FITTING, row(of=case("z"), suite="evals/z.yaml")])
    assert len(keys(resumable(path).read_earlier(path, is_part=False))) == 3
    (tmp_path / "evals").mkdir()
    (tmp_path / "evals" / "z.yaml").touch()
    with pytest.raises(UsageError, match="has 1 row of cases that are not selected"):
        resumable(path).read_earlier(path, is_part=False)


def test_a_file_that_another_run_writes_is_not_tidied(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    write(path, [row("error", of=WHOLE.cases[2]), *FITTING, row(of=WHOLE.cases[2])])
    before = path.read_bytes()
    with Journal(path, form("jsonl").encode), pytest.raises(UsageError, match="another run is writing"):
        resumable(path).remove_other_rows()
    assert path.read_bytes() == before
