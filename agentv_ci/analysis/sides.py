"""Two runs that are compared, each by what it keeps of its cases, and which case goes with which."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from agentv_ci.analysis.outcomes import CaseOutcome
from agentv_ci.contracts.base import Verdict
from agentv_ci.contracts.baseline import BaselineDocument
from agentv_ci.contracts.compared import Rate


@dataclass(frozen=True, slots=True)
class SideCase:
    """A case of one side."""

    suite: str
    id: str
    target: str
    digest: str
    verdict: Verdict
    score: float
    """Mean of its graded trials."""
    ran: int
    """Trials that ran, graded or not."""
    trials: Mapping[int, bool]
    """Graded trials by number, and whether they passed."""

    @property
    def passes(self) -> list[bool]:
        """Whether its trials passed, in order."""
        return [self.trials[number] for number in sorted(self.trials)]

    @property
    def rate(self) -> Rate:
        """How often it passes."""
        mean = self.score if self.trials else None
        return Rate(verdict=self.verdict, passed=sum(self.passes), graded=len(self.trials), mean=mean)


@dataclass(frozen=True, slots=True)
class Side:
    """A run that is compared."""

    name: str
    cases: tuple[SideCase, ...]
    measured: str | None = None
    """When its last answer was had: ISO 8601."""

    @classmethod
    def of_outcomes(cls, name: str, outcomes: Iterable[CaseOutcome], measured: str | None = None) -> Side:
        """Return a run by its cases' outcomes."""
        return cls(name, tuple(map(_side_case, outcomes)), measured)

    @classmethod
    def of_baseline(cls, name: str, document: BaselineDocument) -> Side:
        """Return a run by what a baseline keeps of it."""
        cases = (
            SideCase(
                suite=case.suite,
                id=case.id,
                target=case.target,
                digest=case.digest,
                verdict=case.verdict,
                score=case.mean,
                ran=len(case.passed) + len(case.missed),
                trials=dict.fromkeys(case.missed, False) | dict.fromkeys(case.passed, True),
            )
            for case in document.cases
        )
        return cls(name, tuple(cases), document.measured)


def _side_case(outcome: CaseOutcome) -> SideCase:
    case = outcome.case
    return SideCase(
        suite=case.suite,
        id=case.id,
        target=outcome.target,
        digest=case.digest,
        verdict=outcome.verdict,
        score=outcome.score,
        ran=len(outcome.trials),
        trials={trial.number: trial.verdict == "pass" for trial in outcome.graded},
    )


def paired(base: Side, head: Side) -> list[tuple[SideCase | None, SideCase | None]]:
    """Return the cases of both sides together, those of the newer one first.

    The target counts only where a side asks several the same case: else two targets are what is compared.
    """
    asked = [Counter((each.suite, each.id) for each in side.cases) for side in (base, head)]
    by_target = {case for counts in asked for case, targets in counts.items() if targets > 1}

    def keyed(side: Side) -> dict[tuple[str, ...], SideCase]:
        return {
            (each.suite, each.id, *([each.target] if (each.suite, each.id) in by_target else [])): each
            for each in side.cases
        }

    older, newer = keyed(base), keyed(head)
    return [
        *((older.get(key), case) for key, case in newer.items()),
        *((case, None) for key, case in older.items() if key not in newer),
    ]
