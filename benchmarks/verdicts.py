"""How often verdicts are wrong: agents whose pass rates are known, run after run through the gate and `compare`.

    python benchmarks/verdicts.py [--runs 2000] [--plot docs/verdicts.svg]

An agent answers each of the suite's cases well with a known probability. A *false alarm* is a gate that fails an agent
that is good enough, or a regression between two runs of the same agent. A *miss* is a gate that passes an agent with a
broken case, or a comparison that does not see what has become worse. Every verdict comes from the code that
`agentv-ci` runs; only the answers are drawn by lot, from a fixed seed.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from msgspec.structs import replace

from agentv_ci.analysis.cases.outcomes import CaseOutcome, FullOutcome
from agentv_ci.analysis.cases.tally import Tally
from agentv_ci.analysis.cases.trial_outcomes import TrialOutcome
from agentv_ci.analysis.comparison.comparison import CONFIDENCE, Side, compare_sides
from agentv_ci.analysis.comparison.metric_changes import Limit
from agentv_ci.analysis.comparison.statement import Terms
from agentv_ci.analysis.gate import decide_gate
from agentv_ci.contracts.base import Require
from agentv_ci.contracts.cases import RowCase
from agentv_ci.contracts.comparison import MetricVerdict
from agentv_ci.contracts.report import Ending, GateSettings
from agentv_ci.results.trials import Result, needed, verdict_of_trials

REPEATS = (1, 3, 5, 10)
CONFIDENCES = (CONFIDENCE,)
CASES = 20
STEADY, MOODY = 0.95, 0.8
"""How often a good agent passes a case, and how often one does whose answers vary a lot."""
BROKEN, DROPPED, WORSE = 0.1, 0.85, 0.7
"""How often an agent passes a case that has broken, and how often all of them after a small and
after a large drop.
"""
REPAIRED = 6
"""Cases that get better beside one that breaks."""
NOW = datetime(2030, 1, 1, tzinfo=UTC)
SUITE = "simulated.yaml"

ALLOWED, SPREAD = 0.1, 0.4
"""The allowed increase of costs, and how much they vary: the deviation of their logarithm, of cases
and of trials.
"""
REQUIREMENTS: Sequence[Require] = ("majority", "all", "any")
PLANNED = 5
"""Trials of a case with `stop_when: decided`."""
RATES = (0.1, 0.5, 0.8, 0.95)

Agent = Sequence[float]
"""The pass rate of each case."""

GOOD: Agent = [STEADY] * CASES
VARYING: Agent = [MOODY] * CASES
ONE_BROKEN: Agent = [BROKEN, *[STEADY] * (CASES - 1)]
ALL_DROPPED: Agent = [DROPPED] * CASES
ALL_WORSE: Agent = [WORSE] * CASES
TO_REPAIR: Agent = [STEADY, *[BROKEN] * REPAIRED, *[STEADY] * (CASES - 1 - REPAIRED)]
"""One case passes that will break, and six fail that will be repaired."""


def run_of(agent: Agent, repeat: int, chance: random.Random) -> list[CaseOutcome]:
    """Return what a run of an agent comes to."""
    return [
        _outcome(number, [chance.random() < rate for _ in range(repeat)])
        for number, rate in enumerate(agent)
    ]


def _outcome(number: int, passes: Sequence[bool]) -> CaseOutcome:
    case = RowCase(f"case-{number}", SUITE, "", SUITE, number + 1, len(passes), "majority", None)
    results = [Result("pass", 1.0) if each else Result("fail", 0.0) for each in passes]
    verdict, score = verdict_of_trials(results, len(passes), "majority")
    trials = tuple(
        TrialOutcome(n, each.verdict, each.score, "") for n, each in enumerate(results, 1)
    )
    return FullOutcome(case, "agent", verdict, score, trials)


def gate_fails(outcomes: Sequence[CaseOutcome], min_pass_rate: float) -> bool:
    """Whether a run does not pass the gate."""
    settings = [GateSettings(suite=SUITE, cases=CASES, min_pass_rate=min_pass_rate)]
    return decide_gate(settings, outcomes, Tally(), Ending(), (), None).exit_code != 0


def compare_fails(
    base: Sequence[CaseOutcome], head: Sequence[CaseOutcome], confidence: float
) -> bool:
    """Whether a run is a regression against another."""
    sides = Side("base", base), Side("head", head)
    return bool(compare_sides(*sides, Terms(confidence), now=NOW).reasons)


@dataclass(frozen=True, slots=True)
class Gated:
    """A run through a gate that should fail, or should not."""

    agent: Agent
    min_pass_rate: float
    should_fail: bool

    def is_wrong(self, repeat: int, chance: random.Random) -> bool:
        """Whether the gate's word over one run is wrong."""
        return (
            gate_fails(run_of(self.agent, repeat, chance), self.min_pass_rate) != self.should_fail
        )


@dataclass(frozen=True, slots=True)
class Compared:
    """Two runs, of which the second is worse, or is not."""

    base: Agent
    head: Agent
    confidence: float
    should_fail: bool

    def is_wrong(self, repeat: int, chance: random.Random) -> bool:
        """Whether one comparison is wrong."""
        base, head = (run_of(agent, repeat, chance) for agent in (self.base, self.head))
        return compare_fails(base, head, self.confidence) != self.should_fail


@dataclass(frozen=True, slots=True)
class Undecided:
    """Two runs, of which too few trials may not say whether the second is worse."""

    base: Agent
    head: Agent

    def is_wrong(self, repeat: int, chance: random.Random) -> bool:
        """Whether the comparison is undecided."""
        base, head = (run_of(agent, repeat, chance) for agent in (self.base, self.head))
        return bool(
            compare_sides(
                Side("base", base), Side("head", head), Terms(CONFIDENCE), now=NOW
            ).undecided
        )


@dataclass(frozen=True, slots=True)
class Called:
    """Two runs, in the second of which the first case has broken."""

    base: Agent
    head: Agent

    def is_wrong(self, repeat: int, chance: random.Random) -> float:
        """Return the share of the cases that are called regressed and are as good as before."""
        base, head = (run_of(agent, repeat, chance) for agent in (self.base, self.head))
        cases = compare_sides(
            Side("base", base), Side("head", head), Terms(CONFIDENCE), now=NOW
        ).cases
        called = [each.id for each in cases if each.change == "regressed" and not each.single]
        return sum(each != "case-0" for each in called) / len(called) if called else 0.0


@dataclass(frozen=True, slots=True)
class Priced:
    """Two runs whose answers cost differently, with a limit of the increase."""

    increase: float
    verdict: MetricVerdict
    """The one that is counted."""

    def is_wrong(self, repeat: int, chance: random.Random) -> bool:
        """Whether the decision about the limit is the one that is counted."""
        prices = [chance.lognormvariate(0, SPREAD) for _ in range(CASES)]
        base = priced(run_of(GOOD, repeat, chance), prices, chance)
        head = priced(
            run_of(GOOD, repeat, chance), [each * (1 + self.increase) for each in prices], chance
        )
        terms = Terms(CONFIDENCE, [Limit("cost", ALLOWED)])
        statement = compare_sides(Side("base", base), Side("head", head), terms, now=NOW).statement
        assert statement is not None, "runs have cases in common"
        (found,) = (change.verdict for change in statement.metrics if change.metric == "cost")
        return found == self.verdict


def priced(
    outcomes: Sequence[CaseOutcome], prices: Sequence[float], chance: random.Random
) -> list[CaseOutcome]:
    """Return cases whose answers cost about this much."""
    found = []
    for outcome, price in zip(outcomes, prices, strict=True):
        trials = (
            replace(each, cost_usd=price * chance.lognormvariate(0, SPREAD))
            for each in outcome.trials
        )
        found.append(replace(outcome, trials=tuple(trials)))
    return found


Measure = Gated | Compared | Undecided | Called | Priced


def measures() -> Iterator[tuple[str, Measure]]:
    """Yield what is measured, by name."""
    for least in (1.0, 0.9):
        yield f"gate {least:.0%}, steady agent: false alarm", Gated(GOOD, least, should_fail=False)
        yield (
            f"gate {least:.0%}, one case broken: missed",
            Gated(ONE_BROKEN, least, should_fail=True),
        )
    for confidence in CONFIDENCES:
        about = f"compare at {confidence:g}"
        yield (
            f"{about}, steady agent: false alarm",
            Compared(GOOD, GOOD, confidence, should_fail=False),
        )
        yield (
            f"{about}, moody agent: false alarm",
            Compared(VARYING, VARYING, confidence, should_fail=False),
        )
        yield (
            f"{about}, one case broken: missed",
            Compared(GOOD, ONE_BROKEN, confidence, should_fail=True),
        )
        hidden = Compared(TO_REPAIR, ONE_BROKEN, confidence, should_fail=True)
        yield f"{about}, one broken and six repaired: missed", hidden
        yield (
            f"{about}, all drop to {DROPPED:.0%}: missed",
            Compared(GOOD, ALL_DROPPED, confidence, should_fail=True),
        )
        yield f"{about}, all worse: missed", Compared(GOOD, ALL_WORSE, confidence, should_fail=True)
        yield f"{about}, steady agent: undecided", Undecided(GOOD, GOOD)
        yield f"{about}, moody agent: undecided", Undecided(VARYING, VARYING)
        yield f"{about}, one case broken: undecided", Undecided(GOOD, ONE_BROKEN)
    yield (
        "moody agent, one case broken: wrong among the cases called",
        Called(VARYING, [BROKEN, *VARYING[1:]]),
    )
    yield f"cost as before, at most {ALLOWED:.0%} more: false alarm", Priced(0.0, "worse")
    yield f"cost as before, at most {ALLOWED:.0%} more: undecided", Priced(0.0, "undecided")
    yield (
        f"cost {ALLOWED:.0%} more, at most {ALLOWED:.0%} more: false alarm",
        Priced(ALLOWED, "worse"),
    )
    yield f"cost 60% more, at most {ALLOWED:.0%} more: within", Priced(0.6, "within")
    yield f"cost 60% more, at most {ALLOWED:.0%} more: undecided", Priced(0.6, "undecided")


def rates(name: str, measure: Measure, runs: int) -> dict[int, float]:
    """Return the share of wrong verdicts, by number of trials."""
    found = {}
    for repeat in REPEATS:
        chance = random.Random(f"{name} {repeat}")  # noqa: S311  # a lottery, and the same one every time
        found[repeat] = sum(measure.is_wrong(repeat, chance) for _ in range(runs)) / runs
    return found


def trials_saved(rate: float, require: Require, runs: int) -> float:
    """Return the share of trials that `stop_when: decided` does not run, for a case that passes at a rate."""
    chance = random.Random(f"{rate} {require}")  # noqa: S311  # a lottery, and the same one every time
    ran = 0
    for _ in range(runs):
        results: list[Result] = []
        while more := needed(results, PLANNED, require):
            results += [
                Result("pass", 1.0) if chance.random() < rate else Result("fail", 0.0)
                for _ in range(more)
            ]
        ran += len(results)
    return 1 - ran / (runs * PLANNED)


def main() -> None:
    """Print the table, and draw it."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=2000)
    parser.add_argument("--plot", type=Path)
    given = parser.parse_args()
    print(
        f"{CASES} cases; {given.runs} runs each. Pass rates: steady {STEADY:g}, moody {MOODY:g}, broken {BROKEN:g},"
    )
    print(f"worse everywhere {WORSE:g}\n")
    print("| wrong verdicts |" + "".join(f" repeat {repeat} |" for repeat in REPEATS))
    print("|---|" + "---|" * len(REPEATS))
    table: dict[str, Mapping[int, float]] = {}
    for name, measure in measures():
        table[name] = rates(name, measure, given.runs)
        print(
            f"| {name} |" + "".join(f" {rate:.1%} |" for rate in table[name].values()), flush=True
        )
    print(f"\n| of {PLANNED} trials saved |" + "".join(f" passes {rate:.0%} |" for rate in RATES))
    print("|---|" + "---|" * len(RATES))
    for require in REQUIREMENTS:
        shares = (trials_saved(rate, require, given.runs) for rate in RATES)
        print(f"| `require: {require}` |" + "".join(f" {share:.0%} |" for share in shares))
    if given.plot is not None:
        given.plot.write_text(drawing(table), encoding="utf-8")


DRAWN = {
    "gate 100%, steady agent: false alarm": "#c0392b",
    "gate 100%, one case broken: missed": "#e59866",
    f"compare at {CONFIDENCE:g}, steady agent: false alarm": "#1f618d",
    f"compare at {CONFIDENCE:g}, moody agent: false alarm": "#5dade2",
    f"compare at {CONFIDENCE:g}, one case broken: missed": "#7d8a35",
}
"""What the plot shows, and in which color."""
LEFT, TOP, WIDTH, HEIGHT = 50, 20, 440, 260


def drawing(table: Mapping[str, Mapping[int, float]]) -> str:
    """Return the plot as SVG: wrong verdicts over the number of trials."""
    bottom, right = TOP + HEIGHT, LEFT + WIDTH
    parts = [
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {right + 330} {bottom + 50}" '
            'font-family="sans-serif" font-size="13">'
        ),
        f'<rect width="{right + 330}" height="{bottom + 50}" fill="white"/>',
        f'<text x="{LEFT + WIDTH // 2}" y="{bottom + 42}" text-anchor="middle">trials of each case</text>',
    ]
    for percent in range(0, 101, 20):
        y = bottom - HEIGHT * percent / 100
        parts.append(f'<line x1="{LEFT}" y1="{y:g}" x2="{right}" y2="{y:g}" stroke="#ddd"/>')
        parts.append(f'<text x="{LEFT - 6}" y="{y + 4:g}" text-anchor="end">{percent} %</text>')
    places = {repeat: LEFT + WIDTH * (repeat - 1) / (REPEATS[-1] - 1) for repeat in REPEATS}
    parts += [
        f'<text x="{x:g}" y="{bottom + 20}" text-anchor="middle">{repeat}</text>'
        for repeat, x in places.items()
    ]
    for row, (name, color) in enumerate(DRAWN.items()):
        points = [(places[repeat], bottom - HEIGHT * rate) for repeat, rate in table[name].items()]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        parts.append(f'<polyline points="{path}" fill="none" stroke="{color}" stroke-width="2"/>')
        parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.5" fill="{color}"/>' for x, y in points]
        y = TOP + 10 + row * 22
        parts.append(f'<rect x="{right + 20}" y="{y - 9}" width="12" height="12" fill="{color}"/>')
        parts.append(f'<text x="{right + 38}" y="{y + 2}">{name}</text>')
    return "\n".join([*parts, "</svg>"]) + "\n"


if __name__ == "__main__":
    main()
