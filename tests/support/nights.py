"""Simulated nights: cases with a known state, and the ledger of many runs of them."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import zip_longest
from typing import Literal, get_args

from msgspec import Struct
from msgspec.structs import replace

from agentv_ci.base.canonical import digest_of
from agentv_ci.contracts.command_output import HealthReport
from agentv_ci.contracts.ledger import CaseLine, JudgedAnswer, Ledger, LedgerRun, RunLine
from agentv_ci.ledger.lines import file_of

State = Literal[
    "clean",
    "noisy",
    "saturated",
    "dead",
    "flaky",
    "flaky-onset",
    "drift-of-scores",
    "drift-of-verdicts",
    "judge-drift",
    "redundant",
    "slow",
    "expensive",
]
STATES: tuple[State, ...] = get_args(State)
FOUND: Mapping[State, str] = {
    "saturated": "saturated",
    "dead": "dead",
    "flaky": "flaky",
    "flaky-onset": "flaky",
    "drift-of-scores": "drifting-provider",
    "drift-of-verdicts": "drifting-provider",
    "judge-drift": "drifting-judge",
    "redundant": "redundant",
    "slow": "slow",
    "expensive": "expensive",
}
"""State → the kind of finding that says so; the others have none."""

TRIALS = 5
"""Of a case with several in a night."""
SUITE = "evals/nights.eval.yaml"
THRESHOLD = 0.8
STEADY = 0.97
"""Pass rate of a healthy case."""
FIRST_NIGHT = datetime(2026, 1, 1, 2, 15, tzinfo=UTC)

Night = Callable[[random.Random, int], CaseLine]
"""Return what a case does in a night."""


class PlannedCase(Struct, frozen=True):
    """A case with a planted state."""

    id: str
    state: State
    onset: int
    """The night from which on it has the state; 0: the first."""
    night: Night


def line(name: str, score: float, rng: random.Random, *, judged: tuple[JudgedAnswer, ...] = ()) -> CaseLine:
    """Return a line of a case with one trial."""
    is_pass = score >= THRESHOLD
    return CaseLine(
        SUITE,
        name,
        "assistant",
        digest_of(name),
        1,
        1,
        int(is_pass),
        "pass" if is_pass else "borderline" if score >= 0.6 else "fail",
        model="gpt-5.2",
        score=round(min(1.0, max(0.0, score)), 4),
        cost_usd=float(f"{rng.lognormvariate(-5, 0.3):.3g}"),
        duration_ms=round(rng.lognormvariate(8, 0.3)),
        judged=judged,
    )


def planned(state: State, number: int, nights: int, rng: random.Random) -> PlannedCase:
    """Return a case with a state, whose figures are drawn."""
    name = f"{state}-{number}"
    onset = rng.randint(nights // 5, nights * 3 // 4)
    rate, level, drop = rng.uniform(0.6, 0.8), rng.uniform(0.9, 0.96), rng.uniform(0.1, 0.3)

    def binary(rng: random.Random, night: int, *, before: float, after: float) -> CaseLine:
        return line(name, float(rng.random() < (before if night < onset else after)), rng)

    def scored(rng: random.Random, night: int, *, after: float) -> CaseLine:
        return line(name, rng.gauss(level if night < onset else after, 0.03), rng)

    def judged(rng: random.Random, night: int) -> CaseLine:
        answer = rng.randrange(4)
        score = 0.85 + 0.04 * answer - (drop if night >= onset else 0.0) + rng.choice((-0.02, 0.0, 0.02))
        score = round(min(1.0, max(0.0, score)), 4)
        # Every other case has several trials in a night, whose scores have more in common than those of two nights.
        trials, apart = (TRIALS if number % 2 else 1), random.Random(f"{name} {night}")
        scores = (round(min(1.0, max(0.0, score + apart.gauss(0.0, 0.005))), 4) for _ in range(1, trials))
        digest = digest_of(f"{name} {answer}")[:8]
        usual = line(name, score, rng, judged=tuple(JudgedAnswer(digest, each) for each in (score, *scores)))
        return replace(usual, trials=trials, graded=trials, passed=trials * usual.passed)

    def together(rng: random.Random, night: int) -> CaseLine:
        # Pairs draw the same verdicts.
        return line(name, float(random.Random(f"{number // 2} {night}").random() < STEADY), rng)

    def costly(rng: random.Random, night: int, *, seconds: float, dollars: float) -> CaseLine:
        usual = binary(rng, night, before=STEADY, after=STEADY)
        return replace(
            usual,
            duration_ms=round((usual.duration_ms or 0) * seconds),
            cost_usd=float(f"{(usual.cost_usd or 0.0) * dollars:.3g}"),
        )

    ways: Mapping[State, Night] = {
        "clean": partial(binary, before=STEADY, after=STEADY),
        "noisy": lambda rng, _: line(name, rng.gauss(0.875, 0.04), rng),
        "saturated": partial(binary, before=1.0, after=1.0),
        "dead": lambda rng, _: line(name, rng.uniform(0.0, 0.5), rng),
        "flaky": partial(binary, before=rate, after=rate),
        "flaky-onset": partial(binary, before=1.0, after=rate),
        "drift-of-scores": partial(scored, after=level - drop),
        "drift-of-verdicts": partial(binary, before=STEADY, after=0.1),
        "judge-drift": judged,
        "redundant": together,
        "slow": partial(costly, seconds=20.0, dollars=1.0),
        "expensive": partial(costly, seconds=1.0, dollars=20.0),
    }
    has_onset = state in ("flaky-onset", "drift-of-scores", "drift-of-verdicts", "judge-drift")
    return PlannedCase(name, state, onset if has_onset else 0, ways[state])


def plan(seed: int, *, nights: int, of_each: int) -> list[PlannedCase]:
    """Return as many cases of each state, and five times as many clean ones."""
    rng = random.Random(seed)
    return [
        planned(state, number, nights, rng)
        for state in STATES
        for number in range(of_each * (5 if state in ("clean", "noisy") else 1))
    ]


def night_of(number: int) -> datetime:
    """Return the time of a night."""
    return FIRST_NIGHT + timedelta(days=number)


def ledger_of(cases: list[PlannedCase], seed: int, nights: int) -> Ledger:
    """Return the ledger of a run in each night."""
    rng = random.Random(f"nights {seed}")
    runs = (
        LedgerRun(
            RunLine(
                1,
                digest_of(f"{seed} {night}")[:12],
                f"{night_of(night):%Y-%m-%dT%H:%M:%SZ}",
                len(cases),
            ),
            tuple(each.night(rng, night) for each in cases),
        )
        for night in range(nights)
    )
    return Ledger(f"simulated ({seed})", tuple(runs), ())


class Stretch(Struct, frozen=True, forbid_unknown_fields=True):
    """What a case of the corpus does for some nights."""

    nights: int
    scores: tuple[float, ...]
    """One after the other, again and again; none: the server of the agent is down."""
    crashes: bool = False
    """Whether the agent crashes in nights with the score 0."""
    edited: bool = False
    """Whether its author changed the case before."""
    answer: str | None = None
    """The answer that a judge scores, if there is one."""
    model: str = "gpt-5.2"
    seconds: float = 2.0
    dollars: float = 0.01


def files_of(cases: Mapping[str, Sequence[Stretch]], suite: str = SUITE) -> dict[str, bytes]:
    """Return the files of a ledger, a run in each night."""
    of_cases = [
        [replace(each, suite=suite) for each in _nights_of(name, stretches)] for name, stretches in cases.items()
    ]
    runs = ([each for each in lines if each is not None] for lines in zip_longest(*of_cases))
    url = "https://github.com/acme/evals/actions/runs"
    return dict(
        file_of(lines, time=night_of(night), commit=f"{night:04x}" * 10, run_url=f"{url}/{night}")
        for night, lines in enumerate(runs)
    )


def _nights_of(name: str, stretches: Sequence[Stretch]) -> Iterator[CaseLine]:
    edits = 0
    for each in stretches:
        edits += each.edited
        for night in range(each.nights):
            score = each.scores[night % len(each.scores)] if each.scores else 0.0
            usual = line(name, score, random.Random(0))
            if each.crashes and score == 0:
                usual = replace(usual, verdict="error", crashed=1)
            elif not each.scores:
                usual = replace(usual, verdict="error", graded=0, score=None)
            judged = (JudgedAnswer(digest_of(each.answer)[:8], score),) if each.answer is not None else ()
            digest = digest_of(f"{name} {edits}")
            duration_ms = round(each.seconds * 1000)
            more = {"model": each.model, "duration_ms": duration_ms, "cost_usd": each.dollars, "judged": judged}
            yield replace(usual, digest=digest, **more)


class Precision:
    """Counts what is found of planted states."""

    def __init__(self) -> None:
        self._right: Counter[State] = Counter()
        self._missed: Counter[State] = Counter()
        self._wrong: Counter[str] = Counter()
        """Findings that are not planted, by kind."""

    def count(self, cases: Iterable[PlannedCase], report: HealthReport) -> None:
        """Add a report about planned cases."""
        found = {(each.id, each.kind) for each in report.findings}
        for case in cases:
            wanted = FOUND.get(case.state)
            if wanted is not None:
                counted = self._right if (case.id, wanted) in found else self._missed
                counted[case.state] += 1
            self._wrong.update(kind for name, kind in found if name == case.id and kind != wanted)

    def figures(self) -> dict[State, tuple[float, float]]:
        """Return precision and recall of each planted state; states with the same kind share its mistakes."""
        kinds = Counter(FOUND[state] for state in self._right.elements())
        return {
            state: (
                kinds[kind] / max(1, kinds[kind] + self._wrong[kind]),
                self._right[state] / max(1, self._right[state] + self._missed[state]),
            )
            for state, kind in FOUND.items()
        }


def year_of(cases: int, nights: int) -> Iterator[list[CaseLine]]:
    """Yield the lines of each night: every answer is new, and a judge scores it."""
    rng = random.Random(1)
    for _ in range(nights):
        yield [
            replace(
                line(f"case-{case}", rng.choice((0.85, 0.9, 0.95, 1.0, 0.5)), rng),
                judged=(JudgedAnswer(f"{rng.getrandbits(32):08x}", rng.choice((0.8, 0.85, 0.9, 0.95, 1.0))),),
            )
            for case in range(cases)
        ]
