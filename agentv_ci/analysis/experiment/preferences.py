"""What a judge prefers over many pairs of answers.

These are wins, ties and losses of an arm, and the bias to a position.
"""

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
    compared: Iterable[tuple[Outcome, Preference | None] | None],
) -> PreferenceCounts:
    """Count preferences, in any order.

    Each has the outcome for the arm that is compared with the base.

    None stands for a pair that is not judged; nothing had to be judged where an arm crashed.
    """
    unjudged = contradictions = 0
    outcomes: Counter[Outcome] = Counter()
    choices: Counter[str] = Counter()
    for pair in compared:
        if pair is None:
            unjudged += 1
            continue
        outcome, preference = pair
        outcomes[outcome] += 1
        if preference is not None:
            contradictions += preference.is_contradiction
            choices.update((preference.own_first, preference.other_first))
    return PreferenceCounts(
        wins=outcomes["win"],
        ties=outcomes["tie"],
        losses=outcomes["loss"],
        contradictions=contradictions,
        first=choices["first"],
        second=choices["second"],
        unjudged=unjudged,
    )
