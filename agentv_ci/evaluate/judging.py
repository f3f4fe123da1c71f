"""What evaluators share that ask a judge, for a score or for which criteria are met.

Score of criteria = Σ weight of those that are met / Σ weight of all; one that the judge leaves out is not met.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from agentv_ci.contracts.base import JsonObject, JsonValue
from agentv_ci.contracts.exchange import JudgeQuestion, ProviderError, Score
from agentv_ci.contracts.plan import PlanRubric
from agentv_ci.evaluate.replies import first_object
from agentv_ci.evaluate.scoring import weighted_mean
from agentv_ci.evaluate.services import EvaluatorServices
from agentv_ci.json_access import objects_at, text_at
from agentv_ci.text import shortened

MAX_QUOTED = 80


async def judge_score(
    services: EvaluatorServices,
    target: str,
    question: JudgeQuestion,
    read: Callable[[JsonObject], Score | None],
    *,
    retries: int,
    label: str,
) -> Score:
    """Ask a judge, and ask again while its reply cannot be read; what cannot be read in the end is an error.

    Only the judge's own reply is read: `read` gets its first JSON object, and returns None when that is not what
    was asked for. The repeated question says so: the same one would give the same reply again.
    """
    reply = ""
    for again in range(retries + 1):
        try:
            response = await services.ask_judge(target, _repeated(question) if again else question)
        except ProviderError as error:
            return Score(error=f"judge '{target}': {error.kind}: {error.detail}", raw_response=reply or None)
        reply = response.answer
        found = first_object(reply)
        score = read(found) if found is not None else None
        if score is not None:
            return replace(score, raw_response=reply)
        services.log(f"{label}: unreadable reply {again + 1}: {reply!r}")
    tries = "1 try" if retries == 0 else f"{retries + 1} tries"
    last = f"'{shortened(' '.join(reply.split()), MAX_QUOTED)}'" if reply.strip() else "empty"
    reason = f"judge '{target}' gave no reply of the demanded form in {tries}; the last one is {last}"
    return Score(error=reason, raw_response=reply)


def _repeated(question: JudgeQuestion) -> JudgeQuestion:
    reminder = "Your last reply was not the JSON object that is asked for. Reply with that object and nothing else."
    return replace(question, user=f"{question.user}\n\n{reminder}")


def criteria_text(rubrics: Sequence[PlanRubric]) -> str:
    """Return criteria as a judge reads them, one a line."""
    return "\n".join(f"[{each.id}] {' '.join(each.description.split())}" for each in rubrics)


def read_checks(reply: JsonObject, rubrics: Sequence[PlanRubric]) -> Score | None:
    """Return the score of a judge's checks; None when they say nothing, or one thing and its opposite."""
    checks: dict[str, tuple[bool, str]] = {}
    for check in objects_at(reply, "checks"):
        name, satisfied = _meant(check.get("id"), rubrics), _truth(check.get("satisfied"))
        if name is None:
            continue
        if satisfied is None or (name in checks and checks[name][0] != satisfied):
            return None
        checks[name] = (satisfied, " ".join((text_at(check, "reasoning") or "").split()))
    if not checks:
        return None
    met = {each.id for each in rubrics if checks.get(each.id, (False, ""))[0]}
    return Score(
        weighted_mean((each.weight, float(each.id in met)) for each in rubrics),
        hits=tuple(_finding(each, checks) for each in rubrics if each.id in met),
        misses=tuple(_finding(each, checks) for each in rubrics if each.id not in met),
        reasoning=" ".join((text_at(reply, "overall_reasoning") or "").split()),
        misses_required=any(each.required and each.id not in met for each in rubrics),
        weighs_nothing=not any(each.weight for each in rubrics),
    )


def _meant(written: JsonValue, rubrics: Sequence[PlanRubric]) -> str | None:
    """Return the id that a judge writes, perhaps in the brackets in which it was listed."""
    text = str(written)
    ids = [each.id for each in rubrics]
    near = (each for each in ids if text.strip() in (each.strip(), f"[{each}]"))
    return text if text in ids else next(near, None)


def _finding(rubric: PlanRubric, checks: Mapping[str, tuple[bool, str]]) -> str:
    _, reasoning = checks.get(rubric.id, (False, "the judge left it out"))
    return f"[{rubric.id}] {rubric.description}" + (f": {reasoning}" if reasoning else "")


def _truth(value: JsonValue) -> bool | None:
    if isinstance(value, str):
        return {"true": True, "false": False}.get(value.strip().lower())
    return value if isinstance(value, bool) else None
