"""The baseline file: the outcomes of a run, one line per case, so that changes are readable in a diff."""

from __future__ import annotations

import json
from collections.abc import Iterable

from agentv_ci.analysis.outcomes import CaseOutcome, RowCase, TrialOutcome
from agentv_ci.contracts.case_head import RowPlace
from agentv_ci.contracts.comparison import BASELINE_SCHEMA, BaselineCase, BaselineDocument


def baseline_of(outcomes: Iterable[CaseOutcome], *, plan_digest: str | None, measured: str) -> BaselineDocument | None:
    """Return the baseline of a run, without cases that have no verdict; None when nothing was graded."""
    cases = tuple(_case(outcome) for outcome in outcomes if outcome.is_graded)
    if not cases:
        return None
    return BaselineDocument(schema_=BASELINE_SCHEMA, measured=measured, plan_digest=plan_digest, cases=cases)


def baseline_text(document: BaselineDocument) -> str:
    """Return the text of a baseline file; the same run gives the same bytes."""
    data = document.model_dump(by_alias=True)
    head = "".join(f"  {json.dumps(name)}: {json.dumps(data[name])},\n" for name in data if name != "cases")
    cases = ",\n".join(f"    {json.dumps(case, ensure_ascii=False)}" for case in data["cases"])
    return f'{{\n{head}  "cases": [\n{cases}\n  ]\n}}\n'


def _case(outcome: CaseOutcome) -> BaselineCase:
    assert outcome.verdict != "error", "a baseline has no cases without a verdict"
    assert outcome.verdict != "skipped", "nor skipped ones"
    return BaselineCase(
        suite=outcome.case.suite,
        id=outcome.case.id,
        target=outcome.target,
        verdict=outcome.verdict,
        mean=outcome.score,
        passed=tuple(each.number for each in outcome.graded if each.verdict == "pass"),
        missed=tuple(each.number for each in outcome.graded if each.verdict != "pass"),
        digest=outcome.case.digest,
    )


def outcome_of(case: BaselineCase) -> CaseOutcome:
    """Return the outcome of a case, as far as the baseline has it."""
    passed = (TrialOutcome(number, "pass", 1.0, "") for number in case.passed)
    missed = (TrialOutcome(number, "fail", 0.0, "") for number in case.missed)
    trials = tuple(sorted((*passed, *missed), key=lambda each: each.number))
    place = RowPlace(case.suite, 1)
    known = RowCase(case.id, case.suite, case.digest, place, len(trials), "majority", None)
    return CaseOutcome(known, case.target, case.verdict, case.mean, trials)
