"""Markdown of a whole job, with or without a run."""

from __future__ import annotations

from typing import Any

import pytest

from agentv_ci.contracts.action import ActionRun, ActionVerdict
from agentv_ci.contracts.diagnostics_document import (
    DiagnosticRecord,
    DiagnosticsDocument,
    DiagnosticsSummary,
    FileRecord,
)
from agentv_ci.contracts.plan_summaries import ChangedCase, NamedCase, PlanDiff
from agentv_ci.report.job import Job, text
from agentv_ci.report.view import NO_LINKS, Links
from tests.report.builders import reported, row

LIMIT = 60_000


def ended(verdict: ActionVerdict = "pass", **given: Any) -> ActionRun:
    return ActionRun(exit_code=0, verdict=verdict, root="/home/ada/shop", **given)


def job(run: ActionRun | None = None, **given: Any) -> Job:
    plain: dict[str, Any] = {"reported": None, "diagnostics": None, "changes": None, "links": NO_LINKS}
    return Job(run or ended(), relative=lambda path: path.removeprefix("/home/ada/shop/"), **{**plain, **given})


def wrong(*messages: str, severity: Any = "error") -> DiagnosticsDocument:
    found = tuple(
        DiagnosticRecord(
            rule="AV202",
            severity=severity,
            message=message,
            path="/home/ada/shop/evals/a.yaml",
            line=9,
            column=11,
            end_line=9,
            end_column=20,
            pointer=None,
            case=None,
            target=None,
            hint="write `evaluators`",
        )
        for message in messages
    )
    errors = len(messages) if severity == "error" else 0
    summary = DiagnosticsSummary(files=1, passed=0, failed=1, skipped=0, errors=errors, warnings=len(messages) - errors)
    file = FileRecord(path="/home/ada/shop/evals/a.yaml", kind="eval", valid=not errors, diagnostics=found)
    return DiagnosticsDocument(schema_="x", files=(file,), summary=summary)


TITLES = {
    "pass": "✅ Evaluations: passed",
    "fail": "❌ Evaluations: not passed",
    "error": "⚠️ Evaluations: no verdict",
    "invalid": "❌ Evaluations: invalid",
    "nothing": "➖ Evaluations: nothing ran",
    "budget": "⛔ Evaluations: budget used up",
}


@pytest.mark.parametrize("verdict", [*TITLES])
def test_job_without_a_run_says_why(verdict: ActionVerdict) -> None:
    said = text(job(ended(verdict, reason="because\nof this", hint="do that")), LIMIT)
    assert said == f"## {TITLES[verdict]}\n\n```text\nbecause\nof this\n```\n\n`do that`\n"


def test_documents_are_named_with_their_lines() -> None:
    links = Links.of_commit("https://github.com", "acme/shop", "abc")
    said = text(job(ended("invalid"), diagnostics=wrong("unknown field 'x'"), links=links), LIMIT)
    address = "https://github.com/acme/shop/blob/abc/evals/a.yaml#L9"
    assert f"- ❌ [`evals/a.yaml:9:11`]({address}) `unknown field 'x'` AV202; `` write `evaluators` ``" in said


def test_validation_alone_has_its_own_words() -> None:
    said = text(job(ended("invalid", validate_only=True), diagnostics=wrong("x")), LIMIT)
    assert said.startswith("## ❌ Documents: invalid\n\n**1 file checked: 1 error, 0 warnings**\n\n- ❌")
    assert text(job(ended(validate_only=True)), LIMIT).startswith("## ✅ Documents: valid\n")


def test_warnings_of_a_run_are_folded() -> None:
    said = text(job(reported=reported([row()]), diagnostics=wrong("empty", severity="warning")), LIMIT)
    assert said.startswith("## ✅ Evaluations: passed")
    assert "<summary>Documents: 0 errors, 1 warning</summary>" in said


def test_changes_since_a_plan() -> None:
    changed = ChangedCase(id="a", suite="s.yaml", reasons=tuple(f"reason {number}" for number in range(7)))
    changes = PlanDiff(added=(NamedCase(id="b", suite="s.yaml"),), removed=(), changed=(changed,))
    said = text(job(changes=changes), LIMIT)
    assert "<summary>Since the older plan: 1 case changed, 1 added, 0 removed</summary>" in said
    assert "- changed `a` in `s.yaml`: `reason 0`, `reason 1`, `reason 2`, `reason 3`, `reason 4`, 2 more" in said
    assert "- added `b` in `s.yaml`" in said
    assert "No case has changed" in text(job(changes=PlanDiff(added=(), removed=(), changed=())), LIMIT)


@pytest.mark.parametrize("limit", [20_000, LIMIT, 1_000_000])
def test_longest_job_fits(limit: int) -> None:
    rows = [row("fail", eval_id=f"case {number} " + "x" * 200, candidate_answer="y" * 5_000) for number in range(300)]
    many = tuple(ChangedCase(id="i" * 999, suite="s" * 999, reasons=("r" * 999,) * 9) for _ in range(99))
    changes = PlanDiff(added=(), removed=(), changed=many)
    whole = job(reported=reported(rows), diagnostics=wrong(*["m" * 999] * 99), changes=changes)
    assert len(text(whole, limit)) <= limit
