"""`type: llm_judge`: a model scores, freely or by a list of criteria.

The answer is data: it is put in once, between marks that it cannot know, and only the judge's own reply is read.
"""

from __future__ import annotations

from dataclasses import replace

from agentv_ci.contracts.base import JsonObject
from agentv_ci.contracts.exchange import JudgeQuestion, Score
from agentv_ci.contracts.plan import PlanLlmJudgeEvaluator
from agentv_ci.evaluate.criteria import read_checks
from agentv_ci.evaluate.judging import Judges
from agentv_ci.evaluate.prompts import checks_question, prompt_text, score_question
from agentv_ci.evaluate.replies import MOST_FINDINGS, read_score
from agentv_ci.evaluate.submission import Submission


class LlmJudge:
    """See Evaluator."""

    def __init__(self, settings: PlanLlmJudgeEvaluator, judges: Judges) -> None:
        self._settings = settings
        self._judges = judges

    async def evaluate(self, submission: Submission) -> Score:
        """Ask for a score."""
        return await self._judges.score(
            self._settings.target,
            replace(
                self._question(submission),
                temperature=self._settings.temperature,
                max_output_tokens=self._settings.max_output_tokens,
            ),
            self._read,
            retries=self._settings.judge_retries,
            label=f"{submission.case.id}: {self._settings.name}",
        )

    def _question(self, submission: Submission) -> JudgeQuestion:
        custom = prompt_text(self._settings.prompt, submission)
        if self._settings.rubrics:
            return checks_question(submission, self._settings.rubrics, custom)
        return score_question(submission, custom)

    def _read(self, reply: JsonObject) -> Score | None:
        if self._settings.rubrics:
            return read_checks(reply, self._settings.rubrics)
        return read_score(reply, most=MOST_FINDINGS)
