"""What a judge prefers over many pairs of answers: wins, ties and losses of an arm, and the bias to a position."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Literal

from msgspec import Struct

from agentv_ci.analysis.effects import Pair
from agentv_ci.contracts.exchange import Preference

Outcome = Literal["win", "tie", "loss", "error"]
"""Of the head."""
VALUES: dict[Outcome, float] = {"win": 1.0, "tie": 0.0, "loss": -1.0}


class Judged(Struct, frozen=True):
    """The preference between the answers of two arms to one trial of a case."""

    cluster: str
    case: str
    trial: int
    preference: Preference


class Preferences(Struct, frozen=True):
    """How often which arm is preferred."""

    wins: int
    """Pairs in which the head is better in both orders."""
    ties: int
    """Pairs without a winner, contradictions included."""
    losses: int
    errors: int
    """Pairs that the judge could not compare."""
    contradictions: int
    """Pairs in which the order of the answers decided: the first, or the second, was better both times."""
    chose_first: float | None
    """Share of replies with a choice that chose the answer shown first; 0.5 without bias, None without such replies."""


def outcome_of(preference: Preference) -> Outcome:
    """Return whether the head is better: in both orders, else nothing is."""
    match (preference.base_first, preference.head_first):
        case _ if preference.error is not None:
            return "error"
        case ("second", "first"):
            return "win"
        case ("first", "second"):
            return "loss"
        case _:
            return "tie"


def preferences(judged: Iterable[Judged]) -> Preferences:
    """Count preferences; their order does not matter."""
    known = [each.preference for each in judged]
    counts = Counter(map(outcome_of, known))
    choices = [each for one in known if one.error is None for each in (one.base_first, one.head_first)]
    chosen = [each for each in choices if each != "tie"]
    return Preferences(
        wins=counts["win"],
        ties=counts["tie"],
        losses=counts["loss"],
        errors=counts["error"],
        contradictions=sum(_contradicts(each) for each in known),
        chose_first=chosen.count("first") / len(chosen) if chosen else None,
    )


def preference_pairs(judged: Iterable[Judged]) -> Sequence[Pair]:
    """Return preferences as pairs of a metric on the scale `difference`: 1 for a win, 0 for a tie, −1 for a loss.

    Their mean is the share of wins less that of losses, so claims about it hold like those about any metric.
    """
    outcomes = ((each, outcome_of(each.preference)) for each in judged)
    return [
        Pair(each.cluster, each.case, each.trial, 0.0, VALUES[outcome])
        for each, outcome in outcomes
        if outcome != "error"
    ]


def _contradicts(preference: Preference) -> bool:
    return preference.error is None and preference.base_first == preference.head_first != "tie"
