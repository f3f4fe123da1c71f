"""What evaluators share that ask a judge."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from agentv_ci.contracts.base import JsonObject
from agentv_ci.contracts.exchange import Ask, JudgeQuestion, Log, ProviderError, Score
from agentv_ci.evaluate.replies import first_object
from agentv_ci.text import shortened

MAX_QUOTED = 80


@dataclass(frozen=True, slots=True)
class Judges:
    """Asks judges until they can be understood."""

    ask: Ask
    log: Log

    async def score(
        self,
        target: str,
        question: JudgeQuestion,
        read: Callable[[JsonObject], Score | None],
        *,
        retries: int,
        label: str,
    ) -> Score:
        """Ask, and ask again while the reply cannot be read; what cannot be read in the end is an error.

        Only the judge's own reply is read: `read` gets its first JSON object, and returns None when that is not what
        was asked for. The repeated question says so: the same one would give the same reply again.
        """
        reply = ""
        for again in range(retries + 1):
            try:
                response = await self.ask(target, _repeated(question) if again else question)
            except ProviderError as error:
                return Score(error=f"judge '{target}': {error.kind}: {error.detail}", raw_response=reply or None)
            reply = response.answer
            found = first_object(reply)
            score = read(found) if found is not None else None
            if score is not None:
                return replace(score, raw_response=reply)
            self.log(f"{label}: unreadable reply {again + 1}: {reply!r}")
        tries = "1 try" if retries == 0 else f"{retries + 1} tries"
        last = f"'{shortened(' '.join(reply.split()), MAX_QUOTED)}'" if reply.strip() else "empty"
        reason = f"judge '{target}' gave no reply of the demanded form in {tries}; the last one is {last}"
        return Score(error=reason, raw_response=reply)


def _repeated(question: JudgeQuestion) -> JudgeQuestion:
    reminder = "Your last reply was not the JSON object that is asked for. Reply with that object and nothing else."
    return replace(question, user=f"{question.user}\n\n{reminder}")
