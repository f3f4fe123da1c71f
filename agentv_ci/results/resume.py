"""Resume a run: keep the results that are still valid, so that only the others run again."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from itertools import chain
from operator import itemgetter
from pathlib import Path

from msgspec import Struct, field

from agentv_ci.base.atomic import replacing
from agentv_ci.base.left_files import open_named
from agentv_ci.base.prices import price_of, unpriced_name
from agentv_ci.base.text import counted
from agentv_ci.contracts.cases import CaseKey
from agentv_ci.contracts.plan import Plan, PlanCase, seed_of
from agentv_ci.contracts.results import Expense, ResultRow, RowSource
from agentv_ci.contracts.targets import Target, model_name
from agentv_ci.errors import UsageError
from agentv_ci.results.caps import NOTHING_USED, Used, is_capped
from agentv_ci.results.expenses import as_earlier, earlier_cost
from agentv_ci.results.files import ResultsFormat, form, read_items
from agentv_ci.results.journal import KeptRows, claim
from agentv_ci.results.rows import TrialKey
from agentv_ci.results.trials import Result, is_settled

HasSameSettings = Callable[[ResultRow, PlanCase], bool]

OLD_DATA = re.compile(rb'"metadata": ?\{')
"""Data in a JSON line of an earlier version; this one has JSON text."""


class EarlierRun(Struct, frozen=True):
    """What is reused of an earlier run of the same plan."""

    results: Mapping[TrialKey, Result] = field(default_factory=dict)
    """Results of trials that do not run again."""
    cost_usd: Mapping[str, float] = field(default_factory=dict)
    """Cost of that run by suite, including trials that run again."""
    expenses: Mapping[TrialKey, tuple[Expense, ...]] = field(default_factory=dict)
    """What trials that run again have used."""
    used: Mapping[CaseKey, Used] = field(default_factory=dict)
    """What cases with caps have used."""
    unpriced_models: tuple[str, ...] = ()
    """Models whose cost is unknown, and not included."""
    kept: KeptRows | None = None
    """The part of its file that is kept; None: nothing."""
    sentence: str = ""
    """A sentence for the terminal: what is kept and what runs."""


NO_EARLIER_RUN = EarlierRun()


class _LastRow(Struct, frozen=True):
    """The row of a trial that counts."""

    place: int
    is_answered: bool
    result: Result
    is_stale: bool
    """Whether it is written as by an earlier version, or the plan has other values of fields that
    the row repeats.
    """
    unpriced: tuple[str, ...]
    """Models whose cost is unknown."""
    expenses: tuple[Expense, ...]
    """What the trial has used, if it runs again."""


class _Index(Struct):
    """The content of a results file."""

    rows: int = 0
    otherwise: int = 0
    """Number of rows of cases that were skipped and are not, or the reverse."""
    other_settings: int = 0
    """Number of rows that were answered with other settings from the environment."""
    other_rows: Counter[str] = field(default_factory=Counter)
    """Number of rows of cases that are not in the plan, by suite."""
    other_targets: Counter[tuple[str, ...]] = field(default_factory=Counter)
    """Number of rows of a case of the plan, by suite and id, that another target answered."""
    whole_bytes: int = 0
    cost_usd: dict[str, float] = field(default_factory=dict)
    """Cost of the plan's rows by suite, including rows that do not count."""
    used: dict[CaseKey, Used] = field(default_factory=dict)
    """The same of cases with caps."""
    last: dict[TrialKey, _LastRow] = field(default_factory=dict)

    def count(self, row: ResultRow, case: PlanCase, *, is_first: bool) -> None:
        """Count what a row has used; `is_first`: it is the first one of its trial."""
        cost_usd = (row.cost_usd or 0.0) + (row.judge_cost_usd or 0.0)
        if not is_first:
            # It goes on from the rows of the same trial before it.
            cost_usd -= earlier_cost(row)
        self.cost_usd[case.suite] = self.cost_usd.get(case.suite, 0.0) + cost_usd
        if is_capped(case):
            self.used[row.case_key] = self.used.get(row.case_key, NOTHING_USED).plus(
                cost_usd, row.requests
            )


class ResumedResults:
    """A results file for the rows of a plan, which may already contain some of them."""

    def __init__(
        self,
        path: Path,
        form: ResultsFormat,
        plan: Plan,
        root: Path,
        *,
        dry_run: bool,
        keeps_crashes: bool = False,
        has_same_settings: HasSameSettings = lambda _, __: True,
    ) -> None:
        """`root` is the repository; suites are paths relative to it.

        `keeps_crashes`: an error of the agent is a result, whose trial does not run again.

        `has_same_settings` compares the settings that a row has from the environment with those of
        a case now.
        """
        self._path = path
        self._form = form
        self._plan = plan
        self._root = root
        self._dry_run = dry_run
        self._keeps_crashes = keeps_crashes
        self._has_same_settings = has_same_settings
        self._datasets = {suite.path: suite.dataset for suite in plan.suites}

    @cached_property
    def _cases(self) -> Mapping[CaseKey, PlanCase]:
        return {self._plan.key_of(case): case for case in self._plan.cases}

    def read_earlier(self, earlier: Path, *, is_part: bool) -> EarlierRun:
        """Read the results of an earlier run.

        `is_part`: the plan does not have all cases of its documents.

        Raises UsageError for a file that cannot be read, does not belong to the plan, or would lose
        rows.
        """
        if not earlier.exists():
            return EarlierRun(sentence=f"'{earlier}' does not exist yet: everything runs")
        if not earlier.is_file():
            raise UsageError(f"--resume: '{earlier}' is not a regular file")
        size = _size_of(earlier)
        index = self._index(earlier)
        self._refuse_losses(earlier, index, is_part=is_part)
        answered = {key: last for key, last in index.last.items() if last.is_answered}
        return EarlierRun(
            results={key: last.result for key, last in answered.items()},
            cost_usd=index.cost_usd,
            used=index.used,
            expenses={key: last.expenses for key, last in index.last.items() if last.expenses},
            unpriced_models=tuple(
                dict.fromkeys(chain.from_iterable(last.unpriced for last in index.last.values()))
            ),
            kept=KeptRows(earlier, index.whole_bytes, size) if index.whole_bytes else None,
            sentence=self._sentence(earlier, index),
        )

    def _refuse_losses(self, earlier: Path, index: _Index, *, is_part: bool) -> None:
        """Raise UsageError for a file that does not belong to the plan, or would lose rows."""
        if index.rows and not index.last and not index.otherwise and not index.other_settings:
            raise UsageError(
                (
                    f"'{earlier}' is not of this run: the cases, targets, "
                    "digests or seeds of all its rows differ"
                ),
                hint="to run everything, leave out --resume and write to another file",
            )
        lost = sum(
            number
            for suite, number in index.other_rows.items()
            if is_part or self._is_left_out(suite)
        )
        of_targets = sum(index.other_targets[case] for case in {key[:2] for key, _ in index.last})
        lost += of_targets
        if lost and earlier == self._path:
            what = "cases" if lost > of_targets else "targets"
            raise UsageError(
                (
                    f"'{earlier}' has {counted(lost, 'row')} of {what} that are not selected and "
                    "would "
                    "be removed"
                ),
                hint=f"set --out to another file, or select all {what}",
            )

    def _is_left_out(self, suite: str) -> bool:
        """Whether an eval file exists but is not in the plan, because it was not selected."""
        return suite not in self._datasets and (self._root / suite).is_file()

    def _sentence(self, earlier: Path, index: _Index) -> str:
        total = sum(case.trials for case in self._plan.cases if case.skip is None)
        kept = [last for last in index.last.values() if last.result.verdict != "skipped"]
        answered = sum(last.is_answered for last in kept)
        sentence = f"{answered} of {counted(total, 'trial')} already in '{earlier}'"
        if errors := len(kept) - answered:
            sentence += f"; {errors} with an error {'runs' if errors == 1 else 'run'} again"
        if crashes := sum(last.result.is_crash and not last.is_answered for last in kept):
            sentence += f" ({counted(crashes, 'crash', 'crashes')} of the agent)"
        if index.other_settings:
            verb = "runs" if index.other_settings == 1 else "run"
            sentence += (
                f"; {index.other_settings} answered with other settings from the "
                f"environment {verb} again"
            )
        if others := index.rows - len(index.last):
            sentence += (
                f"; {others} other {'row is' if others == 1 else 'rows are'} removed at the end"
            )
        return sentence

    def rows(self) -> Iterator[ResultRow]:
        """Yield the rows of this plan that count, one per trial; raises UnreadableResults."""
        return map(itemgetter(1), self._last_rows(self._index(self._path)))

    def remove_other_rows(self) -> None:
        """Remove all other rows from the file.

        Raises OSError and UsageError, which leave it unchanged.
        """
        with claim(self._path):
            index = self._index(self._path)
            if len(index.last) < index.rows or any(last.is_stale for last in index.last.values()):
                self._write_last_rows(index)

    def _write_last_rows(self, index: _Index) -> None:
        encode = form(self._form).encode
        # A fixed name: the next run replaces what a killed one leaves.
        with replacing(self._path, scratch_name=f".{self._path.resolve().name}.tidied") as file:
            for item, row in self._last_rows(index):
                file.write(item if item is not None else encode(row).encode("utf-8", "replace"))
            file.flush()
            os.fsync(file.fileno())

    def _last_rows(self, index: _Index) -> Iterator[tuple[bytes | None, ResultRow]]:
        """Yield the rows that count, with their bytes unless they are stale."""
        for place, (item, row) in enumerate(read_items(self._path, self._form, allow_torn=True)):
            last = index.last.get((row.case_key, row.trial))
            if last is None or last.place != place:
                continue
            if last.is_stale:
                yield None, row.model_copy(update=self._repeated(self._cases[row.case_key]))
            else:
                yield item, row

    def _repeated(self, case: PlanCase) -> dict[str, object]:
        """Return the fields that rows repeat from the plan and that digests do not cover."""
        return {
            "dataset": self._datasets[case.suite],
            "conversation_id": case.conversation_id,
            "trials": case.trials,
            "require": case.require,
            "stop_when": case.stop_when,
            "source": RowSource(path=case.source.path, line=case.source.line),
            "tags": case.tags or (),
            "skip": case.skip,
            "metadata": case.metadata,
        }

    def _index(self, path: Path) -> _Index:
        """Find the row of every trial that counts: the first with an answer, else the last one."""
        index = _Index()
        asked = {key[:2] for key in self._cases}
        for place, (item, row) in enumerate(read_items(path, self._form, allow_torn=True)):
            index.rows += 1
            index.whole_bytes += len(item)
            case = self._cases.get(row.case_key)
            if case is None and row.case_key[:2] in asked:
                index.other_targets[row.case_key[:2]] += 1
            elif case is None:
                index.other_rows[row.suite] += 1
            elif (row.verdict == "skipped") != (case.skip is not None):
                index.otherwise += self._fits(row, case)
            elif self._fits(row, case):
                self._add(place, item, row, case, index)
        for case_key, case in self._cases.items():
            if case.stop_when is not None:
                _forget_unneeded(case, case_key, index)
        return index

    def _add(self, place: int, item: bytes, row: ResultRow, case: PlanCase, index: _Index) -> None:
        """Add a row of a case of the plan."""
        if case.skip is None and not self._has_same_settings(row, case):
            index.other_settings += 1
            return
        key = row.case_key, row.trial
        known = index.last.get(key)
        index.count(row, case, is_first=known is None)
        if known is None or not known.is_answered:
            index.last[key] = self._last_row(place, item, row, case)

    def _last_row(self, place: int, item: bytes, row: ResultRow, case: PlanCase) -> _LastRow:
        is_answered = row.status != "error" and not any(
            result.is_unjudged for result in row.evaluator_results
        )
        is_answered |= self._keeps_crashes and row.is_crash
        return _LastRow(
            place=place,
            is_answered=is_answered,
            result=Result(row.verdict, row.score or 0.0, row.is_crash),
            is_stale=OLD_DATA.search(item) is not None
            or any(getattr(row, name) != value for name, value in self._repeated(case).items()),
            unpriced=() if self._dry_run else tuple(self._unpriced(row, case)),
            expenses=() if is_answered else as_earlier(row),
        )

    def _unpriced(self, row: ResultRow, case: PlanCase) -> Iterator[str]:
        targets = self._plan.targets
        yield from unpriced_answer(row, targets[case.target])
        is_unpriced = any(
            expense.is_judge and expense.cost_usd is None for expense in row.expenses or ()
        )
        if is_unpriced or (row.judge_usage is not None and row.judge_cost_usd is None):
            prices = next(suite.prices for suite in self._plan.suites if suite.path == case.suite)
            for key in case.judges:
                judge = targets[key]
                if not judge.charges:
                    continue
                name = model_name(judge) or judge.name
                if not is_unpriced or price_of(name, prices) is None:
                    yield name

    def _fits(self, row: ResultRow, case: PlanCase) -> bool:
        return (
            row.trial <= case.trials
            and (row.digest, row.seed) == (case.digest, seed_of(case, row.trial))
            and row.dry_run == self._dry_run
        )


def _size_of(path: Path) -> int:
    try:
        with open_named(path) as file:
            return os.fstat(file.fileno()).st_size
    except OSError as error:
        raise UsageError(f"--resume: cannot read '{path}': {error.strerror}") from error


def _forget_unneeded(case: PlanCase, case_key: CaseKey, index: _Index) -> None:
    """Drop errors after the last answer of a settled case: their trials do not run again."""
    keys = [(case_key, number) for number in range(1, case.trials + 1)]
    rows = {key: index.last[key] for key in keys if key in index.last}
    answered = {key: row.result for key, row in rows.items() if row.is_answered}
    if answered and is_settled(tuple(answered.values()), case.trials, case.require):
        for key in rows:
            if key > max(answered):
                del index.last[key]


def unpriced_answer(row: ResultRow, target: Target) -> Iterator[str]:
    """Yield the models of an answer and of failed attempts whose cost is unknown."""
    if not target.charges:
        return
    has_answer = row.verdict != "skipped" and row.error_kind in (None, "evaluator")
    own = []
    if has_answer:
        own = [Expense(model=row.model, usage=row.usage, cost_usd=row.cost_usd)]
    expenses = row.expenses if row.expenses is not None else own
    for expense in expenses:
        if not expense.is_judge and expense.cost_usd is None:
            yield unpriced_name(target, expense.model, expense.usage)
