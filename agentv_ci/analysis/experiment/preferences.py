"""What a judge prefers over many pairs of answers: wins, ties and losses of an arm, and the bias to a position."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from agentv_ci.contracts.experiment_report import PreferenceCounts
from agentv_ci.contracts.results import Outcome, Preference

MIRRORED: dict[Outcome, Outcome] = {"win": "loss", "tie": "tie", "loss": "win"}
CHOSEN: dict[Outcome, tuple[float, float]] = {
    "win": (0.0, 1.0),
    "tie": (0.0, 0.0),
    "loss": (1.0, 0.0),
}
"""Outcome for an arm → whether the base and the arm are preferred. The means over many pairs are
shares, and their difference is the share of wins less that of losses, so what holds of scores holds
of preferences.
"""


def preference_counts(
    found: Iterable[tuple[Outcome, Preference | None] | None],
) -> PreferenceCounts:
    """Count preferences, in any order.

    Each has the outcome for the arm that is compared with the base.

    None stands for a pair that is not judged; nothing had to be judged where an arm crashed.
    """
    every = [*found]
    known = [each for each in every if each is not None]
    outcomes = Counter(outcome for outcome, _ in known)
    judged = [preference for _, preference in known if preference is not None]
    choices = Counter(choice for each in judged for choice in (each.own_first, each.other_first))
    return PreferenceCounts(
        wins=outcomes["win"],
        ties=outcomes["tie"],
        losses=outcomes["loss"],
        contradictions=sum(each.is_contradiction for each in judged),
        first=choices["first"],
        second=choices["second"],
        unjudged=len(every) - len(known),
    )
