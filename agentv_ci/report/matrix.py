"""The cases that several targets answer, side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct

from agentv_ci.analysis.cases.outcomes import CaseOutcome
from agentv_ci.report.view import RunView


class MatrixCase(Struct, frozen=True):
    """A case that several targets answer."""

    outcomes: Mapping[str, CaseOutcome]
    """By target."""

    @property
    def first(self) -> CaseOutcome:
        """One of the outcomes, for what all have in common."""
        return next(iter(self.outcomes.values()))

    @property
    def differs(self) -> bool:
        """Whether its targets have different verdicts."""
        return len({outcome.verdict for outcome in self.outcomes.values()}) > 1

    @property
    def spread(self) -> float:
        """How far apart the scores of its targets are."""
        scores = [outcome.score for outcome in self.outcomes.values()]
        return max(scores) - min(scores)


def matrix_cases(run: RunView) -> Sequence[MatrixCase]:
    """Return the cases that several targets answer, those that tell the targets apart first."""
    if not run.matrix:
        return ()
    by_case: dict[tuple[str, str], dict[str, CaseOutcome]] = {}
    for outcome in run.outcomes:
        if (case := outcome.key[:2]) in run.matrix:
            by_case.setdefault(case, {})[outcome.target] = outcome
    cases = map(MatrixCase, by_case.values())
    return sorted(cases, key=lambda case: (not case.differs, -case.spread))
