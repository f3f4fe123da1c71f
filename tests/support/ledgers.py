"""Ledgers with a few runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from agentv_ci.contracts.ledger import CaseLine, Ledger, LedgerRun, RunLine
from agentv_ci.contracts.results import BORDERLINE

DIGEST = "d" * 64


def case_line(case_id: str = "one", passed: int = 1, graded: int = 1, **given: Any) -> CaseLine:
    """A case whose verdict and score follow from its trials."""
    score = passed / graded if graded else None
    verdict = (
        "error" if score is None else "pass" if passed > graded / 2 else "fail" if score < BORDERLINE else "borderline"
    )
    fields: dict[str, Any] = {
        "suite": "evals/a.yaml",
        "id": case_id,
        "target": "default",
        "digest": DIGEST,
        "trials": max(graded, 1),
        "graded": graded,
        "passed": passed,
        "verdict": verdict,
        "score": score,
    }
    return CaseLine(**(fields | given))


def ledger_of(*runs: Sequence[CaseLine], **given: Any) -> Ledger:
    """A ledger with a run a day, from 2026-01-01 on; `given` are fields of every run."""
    heads = (
        RunLine(1, f"{number:012x}", f"2026-{number // 28 + 1:02}-{number % 28 + 1:02}T02:15:00Z", len(cases), **given)
        for number, cases in enumerate(runs)
    )
    return Ledger("refs/heads/agentv-history (1f2e3d4)", tuple(map(LedgerRun, heads, map(tuple, runs))), ())
