"""What evaluators share that go through a list of criteria.

Score = Σ weight of satisfied criteria / Σ weight of all; one that the judge leaves out is not satisfied.
"""

from __future__ import annotations

from collections.abc import Sequence

from agentv_ci.contracts.base import JsonObject, JsonValue
from agentv_ci.contracts.exchange import Score
from agentv_ci.contracts.plan import PlanRubric
from agentv_ci.evaluate.scoring import weighted_mean
from agentv_ci.json_access import objects_at, text_at


def listed(rubrics: Sequence[PlanRubric]) -> str:
    """Return criteria as a judge reads them, one a line."""
    return "\n".join(f"[{each.id}] {' '.join(each.description.split())}" for each in rubrics)


def read_checks(reply: JsonObject, rubrics: Sequence[PlanRubric]) -> Score | None:
    """Return the score of a judge's checks; None when they say nothing, or one thing and its opposite."""
    said: dict[str, tuple[bool, str]] = {}
    for check in objects_at(reply, "checks"):
        name, satisfied = _meant(check.get("id"), rubrics), _truth(check.get("satisfied"))
        if name is None:
            continue
        if satisfied is None or (name in said and said[name][0] != satisfied):
            return None
        said[name] = (satisfied, " ".join((text_at(check, "reasoning") or "").split()))
    if not said:
        return None
    met = {each.id for each in rubrics if said.get(each.id, (False, ""))[0]}
    return Score(
        weighted_mean((each.weight, float(each.id in met)) for each in rubrics),
        hits=tuple(_finding(each, said) for each in rubrics if each.id in met),
        misses=tuple(_finding(each, said) for each in rubrics if each.id not in met),
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


def _finding(rubric: PlanRubric, said: dict[str, tuple[bool, str]]) -> str:
    _, reasoning = said.get(rubric.id, (False, "the judge left it out"))
    return f"[{rubric.id}] {rubric.description}" + (f": {reasoning}" if reasoning else "")


def _truth(value: JsonValue) -> bool | None:
    if isinstance(value, str):
        return {"true": True, "false": False}.get(value.strip().lower())
    return value if isinstance(value, bool) else None
