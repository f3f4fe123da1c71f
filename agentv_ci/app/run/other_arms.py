"""The answers of the arms of an experiment, for evaluators that compare two of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from agentv_ci.contracts.plan import Plan, PlanCase
from agentv_ci.contracts.plan_evaluators import PlanPairwiseJudgeEvaluator
from agentv_ci.contracts.results import ResultRow
from agentv_ci.evaluate.submission import OtherArms
from agentv_ci.execute.materials import Materials
from agentv_ci.execute.prompt import build_request
from agentv_ci.results.rows import Trial

CaseName = tuple[str, str]
"""Suite and id."""


def base_of(case: PlanCase) -> str | None:
    """Return the arm that others are compared with.

    None if no evaluator of the case compares arms.
    """
    for evaluator in case.evaluators:
        if isinstance(evaluator, PlanPairwiseJudgeEvaluator):
            return evaluator.base
    return None


class ArmAnswers:
    """The answers so far.

    Of two arms, the one that answers later gets the other one to be compared with.
    """

    def __init__(
        self,
        plan: Plan,
        bases: Mapping[CaseName, PlanCase],
        root: Path,
        materials: Materials,
        rows: Iterable[ResultRow],
    ) -> None:
        """`bases` are the cases of the base.

        `rows` are those of an earlier run that do not run again.
        """
        self._plan = plan
        self._bases = bases
        self._root = root
        self._materials = materials
        self._answers: dict[tuple[str, str, int], dict[str, str]] = {}
        for row in rows if bases else ():
            self._of((row.suite, row.eval_id), row.trial)[row.arm or ""] = row.candidate_answer

    def _of(self, case: CaseName, trial: int) -> dict[str, str]:
        return self._answers.setdefault((*case, trial), {})

    def others(self, trial: Trial, answer: str) -> OtherArms | str | None:
        """Take in an answer, and return those to compare it with.

        An arm is compared with the base, and the base with all others. Returns None if there is
        none yet, and a text that says why nothing can be compared.
        """
        case, name = trial.case, (trial.case.suite, trial.case.id)
        base = self._bases.get(name)
        if base is None or base.arm is None or case.arm is None:
            return None
        known = self._of(name, trial.number)
        earlier = {
            arm: text
            for arm, text in known.items()
            if base.arm in (arm, case.arm) and arm != case.arm
        }
        known[case.arm] = answer
        if not earlier:
            return None
        cwd = (self._root / case.suite).parent
        try:
            request = build_request(
                base, self._plan.files, self._materials.locate, cwd=cwd, seed=trial.seed
            )
        except OSError as error:
            return f"the files of the base's question cannot be written: {error.strerror}"
        return OtherArms(request.prompt, earlier)
