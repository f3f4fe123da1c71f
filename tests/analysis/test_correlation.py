"""How alike the trials of one run are, by the ledger."""

from __future__ import annotations

import random

import pytest

from agentv_ci.analysis.health.report import health_of
from agentv_ci.report.health import health_lines
from tests.support.ledgers import case_line, ledger_of

NIGHTS, CASES, TRIALS = 60, 20, 5


def estimated(correlation: float, *, trials: int = TRIALS, nights: int = NIGHTS) -> tuple[float | None, list[str]]:
    chance = random.Random(7)

    def rate() -> float:
        if not correlation:
            return 0.8
        strength = 1 / correlation - 1
        return chance.betavariate(0.8 * strength, 0.2 * strength)

    runs = []
    for _ in range(nights):
        passes = [sum(chance.random() < level for _ in range(trials)) for level in (rate() for _ in range(CASES))]
        runs.append([case_line(f"case-{number}", passed, trials) for number, passed in enumerate(passes)])
    report = health_of(ledger_of(*runs))
    return report.trial_correlation, [line.text for line in health_lines(report)]


@pytest.mark.parametrize("correlation", [0.0, 0.1, 0.3])
def test_the_correlation_is_found(correlation: float) -> None:
    found, texts = estimated(correlation)
    assert found == pytest.approx(correlation, abs=0.05)
    (text,) = (text for text in texts if text.startswith("correlation of the trials of one run: "))
    assert ("interleave" in text) == (correlation >= 0.1)


@pytest.mark.parametrize("few", [{"trials": 1}, {"nights": 9}], ids=["trials", "runs"])
def test_too_few_runs_show_nothing(few: dict[str, int]) -> None:
    found, texts = estimated(0.3, **few)
    assert found is None
    assert not any("correlation" in text for text in texts)
