"""Hold the gate of a suite to an older one: the stricter setting of each counts."""

from __future__ import annotations

from collections.abc import Collection
from itertools import filterfalse
from math import inf
from typing import Any

from agentv_ci.contracts.gate import Increases, setting_of
from agentv_ci.contracts.plan import PlanGate

Lower = tuple[str, str]
"""A setting that is lower in the newer gate, and a sentence about it."""

UNDECIDED = ("pass", None, "fail")
"""The laxest first."""


def held_gate(
    old: PlanGate, new: PlanGate, pinned: Collection[str] = ()
) -> tuple[PlanGate, list[Lower]]:
    """Return the stricter of two gates, and what is lower in the newer one.

    `pinned` are settings that options replace in both.
    """
    held: dict[str, Any] = {}
    lower: list[Lower] = []
    for name in PlanGate.model_fields.keys() - {"max_increases", "accept"} - {*pinned}:
        before, after = getattr(old, name), getattr(new, name)
        if _strictness(name, before) > _strictness(name, after):
            held[name] = before
            lower.append((name, f"{name} {shown(before)} → {shown(after)}"))
    limits, higher = _held_limits(old.max_increases or {}, new.max_increases or {}, pinned)
    if higher:
        held["max_increases"] = limits
    is_known = (old.accept or ()).__contains__
    if added := [*filterfalse(is_known, new.accept or ())]:
        held["accept"] = tuple(filter(is_known, new.accept or ())) or None
        lower.append(("accept", f"proofs no longer try {', '.join(added)}"))
    if held:
        new = new.model_copy(update=held)
    return new, sorted([*lower, *higher])


def _held_limits(
    old: Increases, new: Increases, pinned: Collection[str]
) -> tuple[Increases, list[Lower]]:
    """Return the smaller of the limits of increases, and which of the newer ones are higher."""
    limits, higher = {**new}, list[Lower]()
    for metric, share in old.items():
        setting = setting_of(metric)
        if setting not in pinned and share < limits.get(metric, inf):
            higher.append((setting, f"{setting} {share:.6g} → {shown(limits.get(metric))}"))
            limits[metric] = share
    return limits, higher


def _strictness(name: str, value: Any) -> float:  # noqa: ANN401  # of any setting
    """Return how strict a setting of a gate is: the more, the harder it is to pass."""
    match name:
        case "max_errors" | "max_cost_usd":
            return -float(inf if value is None else value)
        case "undecided":
            return UNDECIDED.index(value)
        case "validators" | "null_agents":
            return float(value in ("error", "forbid"))
        case _:
            return float(-inf if value is None else value)


def shown(value: object) -> str:
    """Return a setting as text."""
    if value is None:
        return "none"
    if isinstance(value, float):
        return f"{value:.6g}"
    return str(value)
