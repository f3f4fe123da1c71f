"""Markdown of a whole job, with or without a run."""

from __future__ import annotations

from typing import Any

import pytest

from agentv_ci.contracts.action import ActionRun, ActionVerdict
from agentv_ci.contracts.command_output import ChangedCase, NamedCase, PlanDiff
from agentv_ci.report.job import Job, text
from agentv_ci.report.view import NO_LINKS, Links
from tests.support.runs import diagnostics_of, reported, row

LIMIT = 60_000


def job(verdict: ActionVerdict = "pass", *, limit: int = LIMIT, **given: Any) -> str:
    """The text of a job; fields of its run may be given, too."""
    about_run = {name: given.pop(name) for name in ("reason", "hint", "validate_only") if name in given}
    run = ActionRun(exit_code=0, verdict=verdict, root="/home/ada/shop", **about_run)
    plain: dict[str, Any] = {"reported": None, "diagnostics": None, "changes": None, "links": NO_LINKS}
    return text(Job(run, relative=lambda path: path.removeprefix("/home/ada/shop/"), **{**plain, **given}), limit)


@pytest.mark.parametrize(
    ("verdict", "title"),
    [
        ("pass", "✅ Evaluations: passed"),
        ("fail", "❌ Evaluations: not passed"),
        ("error", "⚠️ Evaluations: no verdict"),
        ("invalid", "❌ Evaluations: invalid"),
        ("nothing", "➖ Evaluations: nothing ran"),
        ("budget", "⛔ Evaluations: budget used up"),
    ],
)
def test_job_without_a_run_shows_the_reason(verdict: ActionVerdict, title: str) -> None:
    said = job(verdict, reason="because\nof this", hint="do that")
    assert said == f"## {title}\n\n```text\nbecause\nof this\n```\n\n`do that`\n"


def test_diagnostics_link_to_their_lines() -> None:
    links = Links.of_commit("https://github.com", "acme/shop", "abc")
    said = job("invalid", diagnostics=diagnostics_of("unknown field 'x'"), links=links)
    address = "https://github.com/acme/shop/blob/abc/evals/a.yaml#L9"
    assert f"- ❌ [`evals/a.yaml:9:11`]({address}) `unknown field 'x'` AV202; `` write `evaluators` ``" in said


def test_validation_without_a_run() -> None:
    said = job("invalid", validate_only=True, diagnostics=diagnostics_of("x"))
    assert said.startswith("## ❌ Documents: invalid\n\n**1 file checked: 1 error, 0 warnings**\n\n- ❌")
    assert job(validate_only=True) == "## ✅ Documents: valid\n"


def test_warnings_of_a_run_are_folded() -> None:
    said = job(reported=reported([row()]), diagnostics=diagnostics_of("empty", severity="warning"))
    assert said.startswith("## ✅ Evaluations: passed")
    assert "<summary>Documents: 0 errors, 1 warning</summary>\n\n- 🟡" in said


def test_changes_since_a_plan() -> None:
    changed = ChangedCase(id="a", suite="s.yaml", reasons=tuple(f"reason {number}" for number in range(7)))
    said = job(changes=PlanDiff(added=(NamedCase(id="b", suite="s.yaml"),), removed=(), changed=(changed,)))
    assert "<summary>Since the older plan: 1 case changed, 1 added, 0 removed</summary>" in said
    assert "- changed `a` in `s.yaml`: `reason 0`, `reason 1`, `reason 2`, `reason 3`, `reason 4`, 2 more" in said
    assert "- added `b` in `s.yaml`" in said
    assert "No case has changed" in job(changes=PlanDiff(added=(), removed=(), changed=()))


@pytest.mark.parametrize("is_empty", [True, False])
def test_changes_come_first_if_nothing_ran(is_empty: bool) -> None:
    said = job(changes=PlanDiff(added=(), removed=(), changed=()), reported=reported([] if is_empty else [row()]))
    assert said.startswith("No case has changed") == is_empty


@pytest.mark.parametrize("limit", [20_000, LIMIT, 1_000_000])
def test_longest_job_fits(limit: int) -> None:
    rows = [row("fail", eval_id=f"case {number} " + "x" * 200, candidate_answer="y" * 5_000) for number in range(300)]
    many = tuple(ChangedCase(id="i" * 999, suite="s" * 999, reasons=("r" * 999,) * 9) for _ in range(99))
    changes = PlanDiff(added=(), removed=(), changed=many)
    said = job(reported=reported(rows), diagnostics=diagnostics_of(*["m" * 999] * 99), changes=changes, limit=limit)
    assert limit // 2 < len(said) <= limit or limit == 1_000_000
    assert len(job(diagnostics=diagnostics_of("x", path="p" * 500_000), limit=limit)) <= limit


def test_diagnostics_leave_room_for_the_reason_or_for_half_of_a_run() -> None:
    found = [diagnostics_of(*["m" * 999] * number) for number in range(40)]
    without = [job(reason="r" * 9_999, hint="h" * 9_999, diagnostics=each, limit=8_000) for each in found]
    assert 7_000 < max(map(len, without)) <= 8_000
    beside = [job(reported=reported([row()]), diagnostics=each, limit=20_000) for each in found]
    assert 8_000 < max(map(len, beside)) < 12_000
