"""How far a judge agrees with people.

Two classes count: pass, and everything else. Cohen's kappa = (p − e) / (1 − e), where p is the share of judgements that
agree and e the share that would by chance (J. Cohen 1960). Every judgement counts, of repeated ones each.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from agentv_ci.contracts.judge_set import LabelledAnswer
from agentv_ci.contracts.plan import PlanCase
from agentv_ci.contracts.results import PRECISION, ResultRow
from agentv_ci.errors import FAILED, INFRASTRUCTURE, PASSED
from agentv_ci.text import counted


@dataclass(frozen=True, slots=True)
class Judgement:
    """What the judge said once."""

    verdict: str
    score: float
    reasoning: str

    @property
    def passes(self) -> bool:
        """Whether the judge lets the answer pass."""
        return self.verdict == "pass"


@dataclass(frozen=True, slots=True)
class JudgedItem:
    """An answer with what people and the judge say of it."""

    id: str
    line: int
    expected: str
    """The label: a verdict."""
    expected_score: float | None
    judgements: tuple[Judgement, ...]
    errors: tuple[str, ...]
    """Why it was not judged, time after time."""

    @property
    def passes(self) -> bool:
        """Whether people let the answer pass."""
        return self.expected == "pass"

    @property
    def wrong(self) -> int:
        """Judgements that differ from the label."""
        return sum(each.passes != self.passes for each in self.judgements)

    @property
    def flips(self) -> bool:
        """Whether the judge contradicts itself."""
        return 0 < sum(each.passes for each in self.judgements) < len(self.judgements)


@dataclass(frozen=True, slots=True)
class Agreement:
    """A judge against labelled answers."""

    items: tuple[JudgedItem, ...]
    judgements: int
    errors: int
    agreement: float | None
    """Share of judgements that agree; None when there are none."""
    kappa: float | None
    """None when chance alone would agree always: labels and judgements are all the same."""
    false_passes: int
    false_fails: int
    mean_absolute_error: float | None
    """Over answers whose label is a score; None when there are none."""
    flip_rate: float | None
    """Share of answers, judged several times, on which the judge contradicts itself; None when judged once."""
    write_error: str | None
    """Why rows are missing: then the figures are not those of the whole set."""


@dataclass(frozen=True, slots=True)
class Demands:
    """What a judge must reach; None: anything goes."""

    min_agreement: float | None = None
    min_kappa: float | None = None
    max_error: float | None = None
    """Mean absolute error of scores."""
    max_flip_rate: float | None = None
    max_errors: int = 0
    """Judgements that could not be had."""


def measure(
    labels: Mapping[str, LabelledAnswer],
    cases: Sequence[PlanCase],
    rows: Iterable[ResultRow],
    *,
    write_error: str | None = None,
) -> Agreement:
    """Compare rows of a judge with the labels of their cases, by id."""
    judged: dict[str, list[tuple[int, Judgement]]] = {case.id: [] for case in cases}
    errors: dict[str, list[tuple[int, str]]] = {case.id: [] for case in cases}
    for row in rows:
        if row.status == "ok":
            said = Judgement(row.verdict, row.score, row.evaluator_results[0].reasoning)
            judged[row.eval_id].append((row.trial, said))
        else:
            errors[row.eval_id].append((row.trial, row.error or "no reason given"))
    items = tuple(_item(case, labels[case.id], judged[case.id], errors[case.id]) for case in cases)
    pairs = [(item.passes, each.passes) for item in items for each in item.judgements]
    distances = [
        abs(each.score - item.expected_score)
        for item in items
        if item.expected_score is not None
        for each in item.judgements
    ]
    repeated = [item for item in items if len(item.judgements) > 1]
    return Agreement(
        items=items,
        judgements=len(pairs),
        errors=sum(len(item.errors) for item in items),
        agreement=_mean([float(one == other) for one, other in pairs]),
        kappa=kappa(pairs),
        false_passes=pairs.count((False, True)),
        false_fails=pairs.count((True, False)),
        mean_absolute_error=_mean(distances),
        flip_rate=_mean([float(item.flips) for item in repeated]),
        write_error=write_error,
    )


def kappa(pairs: Sequence[tuple[bool, bool]]) -> float | None:
    """Return Cohen's kappa of two raters who said yes or no; None where chance alone would agree always."""
    if not pairs:
        return None
    first, second = (sum(pair[rater] for pair in pairs) / len(pairs) for rater in (0, 1))
    by_chance = first * second + (1 - first) * (1 - second)
    if by_chance == 1:
        return None
    observed = sum(one == other for one, other in pairs) / len(pairs)
    return round((observed - by_chance) / (1 - by_chance), PRECISION)


def judge_agreement(found: Agreement, demands: Demands) -> tuple[int, tuple[str, ...]]:
    """Return the exit code, and what was not reached."""
    too_many = f"{counted(found.errors, 'error')}, at most {demands.max_errors} are allowed"
    broken = [too_many] if found.errors > demands.max_errors else []
    if found.write_error is not None:
        broken.append(f"results could not be written: {found.write_error}")
    if not found.judgements:
        return (INFRASTRUCTURE if broken else FAILED), ("nothing was judged", *broken)
    reasons = [
        *_below("agreement", found.agreement, demands.min_agreement),
        *_below("kappa", found.kappa, demands.min_kappa),
        *_above("mean absolute error", found.mean_absolute_error, demands.max_error),
        *_above("flip rate", found.flip_rate, demands.max_flip_rate),
    ]
    return (FAILED if reasons else INFRASTRUCTURE if broken else PASSED), (*reasons, *broken)


def _item(
    case: PlanCase,
    label: LabelledAnswer,
    judged: Sequence[tuple[int, Judgement]],
    errors: Sequence[tuple[int, str]],
) -> JudgedItem:
    by_score = "pass" if label.score is not None and label.score >= case.threshold else "fail"
    return JudgedItem(
        id=case.id,
        line=case.source.line,
        expected=label.verdict or by_score,
        expected_score=label.score,
        judgements=tuple(said for _, said in sorted(judged, key=_trial)),
        errors=tuple(said for _, said in sorted(errors, key=_trial)),
    )


def _trial(numbered: tuple[int, object]) -> int:
    return numbered[0]


def _mean(values: Sequence[float]) -> float | None:
    return round(math.fsum(values) / len(values), PRECISION) if values else None


def _below(name: str, reached: float | None, least: float | None) -> list[str]:
    if least is None or (reached is not None and reached >= round(least, PRECISION)):
        return []
    return [f"{name} {reached:.4g} is below {least:g}" if reached is not None else f"{name} cannot be measured here"]


def _above(name: str, reached: float | None, most: float | None) -> list[str]:
    if most is None or (reached is not None and reached <= round(most, PRECISION)):
        return []
    return [f"{name} {reached:.4g} is above {most:g}" if reached is not None else f"{name} cannot be measured here"]
