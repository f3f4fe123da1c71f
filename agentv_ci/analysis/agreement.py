"""Measure how well a judge agrees with people.

There are two classes: pass, and everything else. Cohen's kappa = (p − e) / (1 − e), where p is the
share of judgements that agree and e the share expected by chance (J. Cohen 1960). Every judgement
counts, also repeated ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from operator import attrgetter
from statistics import fmean

from msgspec import Struct

from agentv_ci.base.mappings import grouped
from agentv_ci.base.text import counted
from agentv_ci.contracts.judge_evaluators import LabelledAnswer
from agentv_ci.contracts.plan import PlanCase
from agentv_ci.contracts.results import PRECISION, ResultRow
from agentv_ci.errors import FAILED, INFRASTRUCTURE, PASSED


class Judgement(Struct, frozen=True):
    """One verdict of the judge."""

    verdict: str
    score: float
    reasoning: str

    @property
    def passes(self) -> bool:
        """Whether the judge passes the answer."""
        return self.verdict == "pass"


class JudgedItem(Struct, frozen=True):
    """An answer with its label and its judgements."""

    id: str
    line: int
    expected: str
    """The label: a verdict."""
    expected_score: float | None
    judgements: tuple[Judgement, ...]
    errors: tuple[str, ...]
    """Why judgements failed."""

    @property
    def passes(self) -> bool:
        """Whether people pass the answer."""
        return self.expected == "pass"

    @property
    def wrong(self) -> int:
        """Judgements that differ from the label."""
        return sum(judgement.passes != self.passes for judgement in self.judgements)

    @property
    def is_repeated(self) -> bool:
        """Whether the judge judged it more than once."""
        return len(self.judgements) > 1

    @property
    def flips(self) -> bool:
        """Whether the judge contradicts itself."""
        return 0 < sum(judgement.passes for judgement in self.judgements) < len(self.judgements)


class Agreement(Struct, frozen=True):
    """The agreement of a judge with labelled answers."""

    items: tuple[JudgedItem, ...]
    judgements: int
    errors: int
    agreement: float | None
    """Share of judgements that agree; None without judgements."""
    kappa: float | None
    """None when all labels and judgements are the same: chance alone would always agree."""
    false_passes: int
    false_fails: int
    mean_absolute_error: float | None
    """Over answers whose label is a score; None without such answers."""
    flip_rate: float | None
    """Share of repeatedly judged answers on which the judge contradicts itself; None without
    repetition.
    """
    broken_contracts: int
    """Judgements that are the first verdict of a reply that contradicts itself or leaves its scale.
    """
    write_error: str | None
    """Why rows are missing, so that the figures do not cover the whole set."""


class Demands(Struct, frozen=True):
    """What a judge must reach; None: no limit."""

    min_agreement: float | None = None
    min_kappa: float | None = None
    max_error: float | None = None
    """Mean absolute error of scores."""
    max_flip_rate: float | None = None
    max_errors: int = 0
    """Most judgements that may fail."""


def measure(
    labels: Mapping[str, LabelledAnswer],
    cases: Sequence[PlanCase],
    rows: Iterable[ResultRow],
    *,
    write_error: str | None = None,
) -> Agreement:
    """Compare the rows of a judge with the labels of their cases, by id."""
    ordered = sorted(rows, key=attrgetter("trial"))
    by_case = grouped(ordered, lambda row: row.eval_id)
    items = tuple(_item(case, labels[case.id], by_case.get(case.id, ())) for case in cases)
    pairs = list(chain.from_iterable(map(_pairs, items)))
    agreeing = pairs.count((True, True)) + pairs.count((False, False))
    repeated = [item for item in items if item.is_repeated]
    return Agreement(
        items=items,
        judgements=len(pairs),
        errors=sum(len(item.errors) for item in items),
        agreement=_share(agreeing, len(pairs)),
        kappa=kappa(pairs),
        false_passes=pairs.count((False, True)),
        false_fails=pairs.count((True, False)),
        mean_absolute_error=_mean(list(chain.from_iterable(map(_distances, items)))),
        flip_rate=_share(sum(item.flips for item in repeated), len(repeated)),
        broken_contracts=sum(map(_breaks_contract, ordered)),
        write_error=write_error,
    )


def _breaks_contract(row: ResultRow) -> bool:
    return bool(row.evaluator_results) and row.evaluator_results[0].breaks_contract


def _pairs(item: JudgedItem) -> Iterator[tuple[bool, bool]]:
    """Yield whether people pass an answer, with whether each judgement does."""
    for judgement in item.judgements:
        yield item.passes, judgement.passes


def _distances(item: JudgedItem) -> Iterator[float]:
    """Yield how far each score of the judge is from the label, where that is a score."""
    if item.expected_score is not None:
        for judgement in item.judgements:
            yield abs(judgement.score - item.expected_score)


def kappa(pairs: Sequence[tuple[bool, bool]]) -> float | None:
    """Return Cohen's kappa of two raters; None when chance alone would always agree."""
    if not pairs:
        return None
    both, neither = pairs.count((True, True)), pairs.count((False, False))
    passed_first = (both + pairs.count((True, False))) / len(pairs)
    passed_second = (both + pairs.count((False, True))) / len(pairs)
    by_chance = passed_first * passed_second + (1 - passed_first) * (1 - passed_second)
    if by_chance == 1:
        return None
    observed = (both + neither) / len(pairs)
    return round((observed - by_chance) / (1 - by_chance), PRECISION)


def judge_agreement(agreement: Agreement, demands: Demands) -> tuple[int, tuple[str, ...]]:
    """Return the exit code and the reasons for it."""
    too_many = f"{counted(agreement.errors, 'error')}, at most {demands.max_errors} allowed"
    broken = [too_many] if agreement.errors > demands.max_errors else []
    if agreement.write_error is not None:
        broken.append(f"results could not be written: {agreement.write_error}")
    if not agreement.judgements:
        return (INFRASTRUCTURE if broken else FAILED), ("nothing was judged", *broken)
    reasons = [
        *_missed("agreement", agreement.agreement, demands.min_agreement, is_least=True),
        *_missed("kappa", agreement.kappa, demands.min_kappa, is_least=True),
        *_missed(
            "mean absolute error", agreement.mean_absolute_error, demands.max_error, is_least=False
        ),
        *_missed("flip rate", agreement.flip_rate, demands.max_flip_rate, is_least=False),
    ]
    if reasons:
        return FAILED, (*reasons, *broken)
    return (INFRASTRUCTURE if broken else PASSED), (*broken,)


def _item(case: PlanCase, label: LabelledAnswer, rows: Sequence[ResultRow]) -> JudgedItem:
    judgements: list[Judgement] = []
    errors: list[str] = []
    for row in rows:
        if row.status != "ok":
            errors.append(row.error or "no reason given")
        elif row.score is not None:
            reasoning = row.evaluator_results[0].reasoning
            judgements.append(Judgement(row.verdict, row.score, reasoning))
    by_score = "pass" if label.score is not None and label.score >= case.threshold else "fail"
    return JudgedItem(
        id=case.id,
        line=case.source.line,
        expected=label.verdict or by_score,
        expected_score=label.score,
        judgements=tuple(judgements),
        errors=tuple(errors),
    )


def _mean(values: Sequence[float]) -> float | None:
    if not values:
        return None
    return round(fmean(values), PRECISION)


def _share(part: int, whole: int) -> float | None:
    if not whole:
        return None
    return round(part / whole, PRECISION)


def _missed(name: str, reached: float | None, limit: float | None, *, is_least: bool) -> list[str]:
    """Return why a limit is violated; empty when it is kept or None."""
    if limit is None:
        return []
    if reached is None:
        return [f"{name} cannot be measured"]
    bound = round(limit, PRECISION)
    is_kept = reached >= bound if is_least else reached <= bound
    if is_kept:
        return []
    return [f"{name} {reached:.4g} is {'below' if is_least else 'above'} {limit:g}"]
