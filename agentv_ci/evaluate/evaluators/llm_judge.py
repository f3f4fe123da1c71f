"""`type: llm_judge`: a model scores.

The answer is data: it is put in once, between marks that it cannot know, and only the judge's own reply is read.
"""

from __future__ import annotations

from agentv_ci.contracts.exchange import Ask, Log, ProviderError, Score
from agentv_ci.contracts.plan import FilePart, PlanLlmJudgeEvaluator, TextPart
from agentv_ci.evaluate.evaluators.prompts import SYSTEM_PROMPT, contract_reminder, fill, sections, variables
from agentv_ci.evaluate.evaluators.replies import first_object, read_score
from agentv_ci.evaluate.submission import Submission

MOST_FINDINGS = 4


class LlmJudge:
    """See Evaluator."""

    def __init__(self, settings: PlanLlmJudgeEvaluator, *, ask: Ask, log: Log) -> None:
        self._settings = settings
        self._ask = ask
        self._log = log

    async def evaluate(self, submission: Submission) -> Score:
        """Ask, and ask again while the reply cannot be read; what cannot be read in the end is an error."""
        system, user = self._prompts(submission)
        reply = ""
        for again in range(self._settings.judge_retries + 1):
            try:
                response = await self._ask(
                    self._settings.target,
                    system=system,
                    user=user,
                    temperature=self._settings.temperature,
                    max_output_tokens=self._settings.max_output_tokens,
                )
            except ProviderError as error:
                return Score(error=f"judge '{self._settings.target}': {error.kind}: {error.detail}")
            reply = response.answer
            found = first_object(reply)
            score = read_score(found, most=MOST_FINDINGS) if found is not None else None
            if score is not None:
                return score
            self._log(f"{submission.case.id}: {self._settings.name}: unreadable reply {again + 1}: {reply!r}")
        tries = self._settings.judge_retries + 1
        reason = f"judge '{self._settings.target}' gave no JSON object with a score in {tries} tries"
        return Score(error=reason, raw_response=reply)

    def _prompts(self, submission: Submission) -> tuple[str, str]:
        values = variables(submission)
        custom = self._custom_prompt(submission)
        if custom is None:
            return SYSTEM_PROMPT, sections(values)
        return contract_reminder(), fill(custom, values)

    def _custom_prompt(self, submission: Submission) -> str | None:
        match self._settings.prompt:
            case None:
                return None
            case TextPart() as part:
                return part.text
            case FilePart() as part:
                return submission.files[part.sha256].text
