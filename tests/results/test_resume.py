"""Resuming: which rows of an earlier run are kept, and which run again."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from agentv_ci.contracts.api_targets import OpenAITarget
from agentv_ci.contracts.plan import Plan
from agentv_ci.contracts.plan_evaluators import PlanRubricEvaluator
from agentv_ci.contracts.results import ResultRow, Usage
from agentv_ci.errors import UsageError
from agentv_ci.results.files import form, form_of, read_rows
from agentv_ci.results.journal import Journal
from agentv_ci.results.resume import EarlierRun, ResumedResults
from tests.support.runs import case, plan, row

WHOLE = plan(case("a"), case("b", trials=2, seeds=(7,)), case("c"))
FITTING = [
    row(of=WHOLE.cases[0], cost_usd=0.5, judge_cost_usd=0.25),
    row("fail", of=WHOLE.cases[1], seed=7),
    row(of=WHOLE.cases[1], trial=2),
]
LAST, ERROR = row(of=WHOLE.cases[2]), row("error", of=WHOLE.cases[2])
CRASH = ERROR.model_copy(update={"blame": "agent"})


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "r.jsonl"


def write(path: Path, rows: Sequence[ResultRow]) -> None:
    path.write_text("".join(map(form(form_of(path)).encode, rows)), encoding="utf-8")


def resumable(path: Path, of: Plan = WHOLE, *, dry_run: bool = False, keeps_crashes: bool = False) -> ResumedResults:
    return ResumedResults(path, form_of(path), of, path.parent, dry_run=dry_run, keeps_crashes=keeps_crashes)


def earlier_of(path: Path, rows: Sequence[ResultRow], of: Plan = WHOLE, **given: bool) -> EarlierRun:
    write(path, rows)
    is_part = given.pop("is_part", False)
    return resumable(path, of, **given).read_earlier(path, is_part=is_part)


def keys(earlier: EarlierRun) -> list[tuple[str, int]]:
    return sorted((case_id, trial) for (_, case_id, _), trial in earlier.results)


def whole_bytes(earlier: EarlierRun) -> int:
    assert earlier.kept is not None
    return earlier.kept.whole_bytes


def test_rows_of_the_plan_are_kept_with_their_cost(path: Path) -> None:
    earlier = earlier_of(path, FITTING)
    assert keys(earlier) == [("a", 1), ("b", 1), ("b", 2)]
    assert earlier.cost_usd == {"evals/a.yaml": 0.75}
    assert whole_bytes(earlier) == path.stat().st_size
    assert earlier.sentence == f"3 of 4 trials already in '{path}'"


def test_rows_that_run_again_have_a_cost(path: Path) -> None:
    failed = ERROR.model_copy(update={"cost_usd": 0.25})
    foreign = FITTING[0].model_copy(update={"digest": "1" * 64})
    earlier = earlier_of(path, [failed, failed, foreign, *FITTING])
    assert ("c", 1) not in keys(earlier)
    assert earlier.cost_usd == {"evals/a.yaml": 1.25}


@pytest.mark.parametrize(
    ("others", "end"),
    [
        ([ERROR], "; 1 with an error runs again"),
        ([CRASH], "; 1 with an error runs again (1 crash of the agent)"),
        ([ERROR, row(of=case("gone"))], "; 1 with an error runs again; 1 other row is removed at the end"),
        ([row(of=case("gone")), row(of=case("too"))], "'; 2 other rows are removed at the end"),
    ],
)
def test_sentence_has_the_rows_that_are_not_kept(path: Path, others: list[ResultRow], end: str) -> None:
    assert earlier_of(path, [*FITTING, *others]).sentence.endswith(end)


@pytest.mark.parametrize(("error", "keeps_crashes", "kept"), [(CRASH, True, 4), (CRASH, False, 3), (ERROR, True, 3)])
def test_crashes_may_be_kept_as_results(error: ResultRow, keeps_crashes: bool, kept: int, path: Path) -> None:
    earlier = earlier_of(path, [*FITTING, error, LAST], keeps_crashes=keeps_crashes)
    assert len(earlier.results) == 4
    assert [result.is_crash for result in earlier.results.values()].count(True) == kept - 3
    assert len(earlier_of(path, [*FITTING, error], keeps_crashes=keeps_crashes).results) == kept


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
def test_row_that_differs_from_the_plan_is_not_kept(change: dict[str, Any], path: Path) -> None:
    assert keys(earlier_of(path, [FITTING[1], FITTING[0].model_copy(update=change)])) == [("b", 1)]


def test_answers_without_a_price_are_named(path: Path) -> None:
    target = OpenAITarget(name="default", provider="ollama", model="m")
    of = plan(case("a")).model_copy(update={"targets": {"default": target}})
    for cost_usd, named in ((0.1, ()), (None, ("m (does not report tokens)",))):
        assert earlier_of(path, [row(of=of.cases[0], cost_usd=cost_usd)], of).unpriced_models == named
    dry = row(of=of.cases[0], dry_run=True)
    assert earlier_of(path, [dry], of, dry_run=True).unpriced_models == ()


@pytest.mark.parametrize(
    ("usage", "cost_usd", "named"),
    [(None, None, ()), (Usage(input_tokens=1), 0.25, ()), (Usage(input_tokens=1), None, ("gpt-judge",))],
)
def test_judges_without_a_price_are_named(
    usage: Usage | None, cost_usd: float | None, named: tuple[str, ...], path: Path
) -> None:
    judge = OpenAITarget(name="judge", provider="openai", model="gpt-judge", api_key="${{ KEY }}")
    rubric = PlanRubricEvaluator(name="r", type="rubric", target="judge", rubrics=())
    judged = case("j", evaluators=(rubric,))
    of = plan(judged).model_copy(update={"targets": {**WHOLE.targets, "judge": judge}})
    assert earlier_of(path, [row(of=judged, judge_usage=usage, judge_cost_usd=cost_usd)], of).unpriced_models == named


def test_errors_after_the_last_answer_of_a_settled_case_do_not_run_again(path: Path) -> None:
    decided = case("d", trials=3, stop_when="decided")
    rows = [row(of=decided), row(of=decided, trial=2), row("error", of=decided, trial=3)]
    earlier = earlier_of(path, rows, plan(decided))
    assert earlier.sentence == f"2 of 3 trials already in '{path}'; 1 other row is removed at the end"
    open_ = earlier_of(path, [rows[0], rows[2]], plan(decided))
    assert open_.sentence == f"1 of 3 trials already in '{path}'; 1 with an error runs again"


@pytest.mark.parametrize("text", [None, ""])
def test_nothing_is_kept_of_a_missing_or_empty_file(text: str | None, path: Path) -> None:
    if text is not None:
        path.write_text(text, encoding="utf-8")
    earlier = resumable(path).read_earlier(path, is_part=False)
    assert (keys(earlier), earlier.kept) == ([], None)


def test_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"--resume: '.*' is not a regular file"):
        resumable(tmp_path / "r.jsonl").read_earlier(tmp_path, is_part=False)


@pytest.mark.parametrize("name", ["r.jsonl", "r.yaml", "spaced.jsonl"])
def test_incomplete_last_row_is_ignored(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    tail = FITTING[1].model_copy(update={"candidate_answer": "one\ntwo\n- three", "metadata": {"a": {"b": 1}, "c": 2}})
    encode = form(form_of(path)).encode
    first, last = (encode(each).encode() for each in (FITTING[0], tail))
    if name == "spaced.jsonl":
        first, last = (json.dumps(json.loads(each)).encode() + b"\n" for each in (first, last))
    for end in range(0, len(last), 7):
        path.write_bytes(first + last[:end])
        earlier = resumable(path).read_earlier(path, is_part=False)
        assert (keys(earlier), whole_bytes(earlier)) == ([("a", 1)], len(first)), last[:end]
    path.write_bytes(first + last[:-1])
    assert keys(resumable(path).read_earlier(path, is_part=False)) == [("a", 1)]
    path.write_bytes(first + last)
    assert keys(resumable(path).read_earlier(path, is_part=False)) == [("a", 1), ("b", 1)]


@pytest.mark.parametrize("name", ["r.jsonl", "r.yaml"])
@pytest.mark.parametrize("tail", [b"\x00" * 4096, b"\x00" * 100 + b"\n"])
def test_zeros_at_the_end_are_ignored_and_a_mark_of_the_byte_order_and_other_line_ends_read(
    tail: bytes, name: str, tmp_path: Path
) -> None:
    path = tmp_path / name
    write(path, FITTING)
    whole = path.read_bytes()
    if name == "r.jsonl":
        whole = b"\xef\xbb\xbf" + whole.replace(b"\n", b"\r\n")
    path.write_bytes(whole + tail)
    earlier = resumable(path).read_earlier(path, is_part=False)
    assert (keys(earlier), whole_bytes(earlier)) == ([("a", 1), ("b", 1), ("b", 2)], len(whole))


@pytest.mark.parametrize(
    ("head", "tail", "line"),
    [
        (b"", b'{"dry_run": 1}\n', 4),
        (b"", b"notes\n", 4),
        (b"", b'{"schema_version": 2, "dry_run": false}\n', 4),
        (b"no row\n", b"", 1),
    ],
)
def test_other_lines_are_refused(head: bytes, tail: bytes, line: int, path: Path) -> None:
    write(path, FITTING)
    path.write_bytes(head + path.read_bytes() + tail)
    with pytest.raises(UsageError, match=rf"r\.jsonl:{line}: not a result row"):
        resumable(path).read_earlier(path, is_part=False)


def test_file_of_another_run_is_refused(path: Path) -> None:
    said = "is not of this run: the cases, targets, digests or seeds of all its rows differ"
    with pytest.raises(UsageError, match=said):
        earlier_of(path, [row(of=case("gone"))])


def test_rows_of_cases_that_are_not_selected_are_not_lost(path: Path) -> None:
    part = plan(*WHOLE.cases[:1])
    with pytest.raises(UsageError, match="has 2 rows of cases that are not selected"):
        earlier_of(path, FITTING, part, is_part=True)
    assert keys(earlier_of(path, FITTING, part)) == [("a", 1)]
    elsewhere = resumable(path.with_name("new.jsonl"), part).read_earlier(path, is_part=True)
    assert keys(elsewhere) == [("a", 1)]
    assert len(keys(earlier_of(path, FITTING, is_part=True))) == 3
    other = [*FITTING, row(of=case("z"), suite="evals/z.yaml")]
    assert len(keys(earlier_of(path, other))) == 3
    (path.parent / "evals").mkdir()
    (path.parent / "evals" / "z.yaml").touch()
    with pytest.raises(UsageError, match="has 1 row of cases that are not selected"):
        earlier_of(path, other)


@pytest.mark.parametrize(
    ("rows", "kept"),
    [
        ([ERROR, row(of=case("gone")), *FITTING, LAST, row("fail", of=WHOLE.cases[2])], [*FITTING, LAST]),
        ([ERROR, ERROR.model_copy(update={"error": "again"})], [ERROR.model_copy(update={"error": "again"})]),
        (
            [FITTING[0].model_copy(update={"trials": 3, "dataset": "old", "metadata": {"a": 1}, "tags": ("old",)})],
            FITTING[:1],
        ),
    ],
    ids=["first answer", "last error", "fields of the plan"],
)
def test_finished_file_has_one_row_per_trial(rows: list[ResultRow], kept: list[ResultRow], path: Path) -> None:
    write(path, rows)
    path.write_bytes(path.read_bytes() + form("jsonl").encode(FITTING[0]).encode()[:-10])
    resumable(path).remove_other_rows()
    assert list(read_rows(path, "jsonl")) == kept
    assert list(path.parent.iterdir()) == [path]
    before = path.stat()
    resumable(path).remove_other_rows()
    assert (path.stat().st_ino, path.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


@pytest.mark.parametrize("separators", [(",", ":"), (", ", ": ")])
def test_rows_of_earlier_versions_are_written_as_those_of_this_one(separators: tuple[str, str], path: Path) -> None:
    path.write_text("".join(f"{json.dumps(each.model_dump(mode='json'), separators=separators)}\n" for each in FITTING))
    resumable(path).remove_other_rows()
    assert path.read_text("utf-8") == "".join(map(form("jsonl").encode, FITTING))


def test_finished_file_behind_a_link_is_rewritten_in_place_and_keeps_its_permissions(path: Path) -> None:
    behind = path.with_name("behind.jsonl")
    write(behind, FITTING * 2)
    behind.chmod(0o640)
    path.symlink_to(behind)
    resumable(path).remove_other_rows()
    assert list(read_rows(behind, "jsonl")) == FITTING
    assert (path.is_symlink(), behind.stat().st_mode & 0o777) == (True, 0o640)


def test_file_that_another_run_is_writing_is_unchanged(path: Path) -> None:
    write(path, [ERROR, *FITTING])
    before = path.read_bytes()
    with Journal(path, form("jsonl").encode), pytest.raises(UsageError, match="another run is writing"):
        resumable(path).remove_other_rows()
    assert path.read_bytes() == before
