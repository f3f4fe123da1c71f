"""Results of an earlier run → what of it still holds → the rest runs, into the same file."""

from __future__ import annotations

import os
import shutil
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from agentv_ci.errors import UsageError
from agentv_ci.results.trials import Result, is_settled
from agentv_ci.text import counted

if TYPE_CHECKING:
    from agentv_ci.contracts.plan import Plan, PlanCase
    from agentv_ci.contracts.results import ResultRow
    from agentv_ci.contracts.targets import Target
    from agentv_ci.execute.run import Finished
    from agentv_ci.results.forms import ResultsFormat
    from agentv_ci.results.rows import TrialKey


@dataclass(frozen=True, slots=True)
class Earlier:
    """What an earlier run left."""

    finished: Finished
    path: Path
    whole_bytes: int
    """How much of its file are whole rows."""
    size: int
    """How long the file was before it was read."""
    sentence: str
    """What is kept and what is not, for people."""


@dataclass(frozen=True, slots=True)
class _Kept:
    """The row that counts of a trial."""

    place: int
    is_answered: bool
    result: Result
    is_stale: bool
    """Whether the plan says something else today of what the row repeats of it."""
    unpriced: tuple[str, ...]
    """Models whose cost nobody knows."""


@dataclass(slots=True)
class _Survey:
    """What a results file holds."""

    rows: int = 0
    strangers: Counter[str] = field(default_factory=Counter)
    """By suite, rows of cases that the plan does not have."""
    whole_bytes: int = 0
    cost_usd: dict[str, float] = field(default_factory=dict)
    """By suite, what the plan's rows have cost, also those that do not count."""
    last: dict[TrialKey, _Kept] = field(default_factory=dict)


class Resumable:
    """A results file into which a plan's rows go, some of which may be there already."""

    def __init__(self, results: Path, form: ResultsFormat, plan: Plan, root: Path, *, dry_run: bool) -> None:
        """`root` is the repository, from which suites are named."""
        self._root = root
        self._results = results
        self._form = form
        self._plan = plan
        self._dry_run = dry_run
        self._cases = {(case.suite, case.id): case for case in plan.cases}
        self._datasets = {suite.path: suite.dataset for suite in plan.suites}

    def read(self, earlier: Path, *, is_part: bool) -> Earlier:
        """Read an earlier run's results; `is_part` says that the plan has not all cases of its documents.

        Raises UsageError for a file that cannot be read, has nothing to do with the plan, or would lose rows to a part.
        """
        from agentv_ci.execute.run import Finished

        if not earlier.exists():
            return Earlier(Finished(), earlier, 0, 0, f"'{earlier}' does not exist yet: everything runs")
        if not earlier.is_file():
            raise UsageError(f"--resume: '{earlier}' is no file, and its rows are read more than once")
        try:
            size = earlier.stat().st_size
            survey = self._survey(earlier)
        except OSError as error:
            raise UsageError(f"--resume: cannot read '{earlier}': {error.strerror}") from error
        if survey.rows and not survey.last:
            raise UsageError(
                f"none of the {survey.rows} rows in '{earlier}' is of this run: other cases, targets, digests or seeds",
                hint="leave out --resume to run everything, into another file",
            )
        lost = sum(number for suite, number in survey.strangers.items() if is_part or self._is_left_out(suite))
        if lost and earlier == self._results:
            raise UsageError(
                f"'{earlier}' holds {counted(lost, 'row')} of cases that are left out here; "
                "they would go out of the file",
                hint="give --out another file, or leave nothing out",
            )
        answered = {key: kept for key, kept in survey.last.items() if kept.is_answered}
        finished = Finished(
            trials={key: kept.result for key, kept in answered.items()},
            cost_usd=survey.cost_usd,
            unpriced_models=tuple(dict.fromkeys(model for kept in answered.values() for model in kept.unpriced)),
        )
        return Earlier(finished, earlier, survey.whole_bytes, size, self._sentence(earlier, survey))

    def _is_left_out(self, suite: str) -> bool:
        """Whether an eval file is there and not in the plan: the paths that were given do not lead to it."""
        return suite not in self._datasets and (self._root / suite).is_file()

    def _sentence(self, earlier: Path, survey: _Survey) -> str:
        total = sum(case.trials for case in self._plan.cases)
        answered = sum(kept.is_answered for kept in survey.last.values())
        sentence = f"{answered} of {total} trials are in '{earlier}' already"
        if errors := len(survey.last) - answered:
            sentence += f"; {errors} with an error {'runs' if errors == 1 else 'run'} again"
        if others := survey.rows - len(survey.last):
            sentence += f"; {others} other {'row goes' if others == 1 else 'rows go'} out of the file at the end"
        return sentence

    def rows(self) -> Iterator[ResultRow]:
        """Yield the rows of this plan, the last one of each trial; raises OSError and UsageError."""
        return (row for _, row in self._counting(self._survey(self._results)))

    def tidy(self) -> None:
        """Leave nothing in the file but those rows; raises OSError and UsageError, and then the file is as it was."""
        from agentv_ci.results.journal import claim

        with claim(self._results):
            self._tidy()

    def _tidy(self) -> None:
        from agentv_ci.results.forms import form

        survey = self._survey(self._results)
        if len(survey.last) == survey.rows and not any(kept.is_stale for kept in survey.last.values()):
            return
        encode = form(self._form).encode
        # Where a link leads.
        results = self._results.resolve()
        tidied = results.with_name(f".{results.name}.tidied")
        try:
            with tidied.open("wb") as file:
                for item, row in self._counting(survey):
                    file.write(item if item is not None else encode(row).encode("utf-8", "replace"))
                file.flush()
                os.fsync(file.fileno())
            shutil.copymode(results, tidied)
            tidied.replace(results)
        finally:
            tidied.unlink(missing_ok=True)

    def _counting(self, survey: _Survey) -> Iterator[tuple[bytes | None, ResultRow]]:
        """Yield the rows that count, with their text where the plan still says what they repeat of it."""
        for place, (item, row) in enumerate(_read(self._results, self._form)):
            kept = survey.last.get(key_of(row))
            if kept is not None and kept.place == place:
                yield (None, self._renewed(row)) if kept.is_stale else (item, row)

    def _renewed(self, row: ResultRow) -> ResultRow:
        return row.model_copy(update=self._told(self._cases[row.suite, row.eval_id]))

    def _told(self, case: PlanCase) -> dict[str, object]:
        """What rows repeat of the plan and no digest covers."""
        from agentv_ci.contracts.results import RowSource

        return {
            "dataset": self._datasets[case.suite],
            "conversation_id": case.conversation_id,
            "trials": case.trials,
            "require": case.require,
            "stop_when": case.stop_when,
            "source": RowSource(path=case.source.path, line=case.source.line),
            "metadata": case.metadata,
        }

    def _survey(self, path: Path) -> _Survey:
        """Find the row that counts of every trial: the last one, but none after an answer."""
        survey = _Survey()
        for place, (item, row) in enumerate(_read(path, self._form)):
            survey.rows += 1
            survey.whole_bytes += len(item)
            case = self._cases.get((row.suite, row.eval_id))
            if case is None:
                survey.strangers[row.suite] += 1
            elif self._fits(row, case):
                survey.cost_usd[case.suite] = survey.cost_usd.get(case.suite, 0.0) + _cost_of(row)
                known = survey.last.get(key_of(row))
                if known is None or not known.is_answered:
                    survey.last[key_of(row)] = self._kept(place, row, case)
        for case in self._cases.values():
            if case.stop_when is not None:
                _forget_unneeded(case, survey)
        return survey

    def _kept(self, place: int, row: ResultRow, case: PlanCase) -> _Kept:
        return _Kept(
            place=place,
            is_answered=row.status == "ok",
            result=Result(row.verdict, row.score),
            is_stale=any(getattr(row, name) != value for name, value in self._told(case).items()),
            unpriced=tuple(self._unpriced(row, case)),
        )

    def _unpriced(self, row: ResultRow, case: PlanCase) -> Iterator[str]:
        from agentv_ci.contracts.plan import judges_of
        from agentv_ci.contracts.targets import model_name

        if self._dry_run:
            return
        targets = self._plan.targets
        yield from unpriced_answer(row, targets[case.target])
        if row.judge_usage is not None and row.judge_cost_usd is None:
            judges = (targets[key] for key in judges_of(case))
            yield from (model_name(judge) or judge.name for judge in judges if _charges(judge))

    def _fits(self, row: ResultRow, case: PlanCase) -> bool:
        from agentv_ci.contracts.plan import seed_of

        return (
            row.trial <= case.trials
            and (row.digest, row.target, row.seed)
            == (case.digest, self._plan.targets[case.target].name, seed_of(case, row.trial))
            and row.dry_run == self._dry_run
        )


def _forget_unneeded(case: PlanCase, survey: _Survey) -> None:
    """Drop errors behind the last answer of a case whose verdict is settled: their trials need not run any more."""
    kept = {
        number: survey.last[key]
        for number in range(1, case.trials + 1)
        if (key := (case.suite, case.id, number)) in survey.last
    }
    answered = {number: each.result for number, each in kept.items() if each.is_answered}
    if answered and is_settled(tuple(answered.values()), case.trials, case.require):
        for number in kept:
            if number > max(answered):
                del survey.last[case.suite, case.id, number]


def unpriced_answer(row: ResultRow, target: Target) -> Iterator[str]:
    """Yield the model that gave an answer, when nobody knows what that cost."""
    from agentv_ci.execute.budget import unpriced_name
    from agentv_ci.results.rows import stored_response

    if row.cost_usd is None and _charges(target):
        yield unpriced_name(target, stored_response(row))


def _cost_of(row: ResultRow) -> float:
    return (row.cost_usd or 0.0) + (row.judge_cost_usd or 0.0)


def _charges(target: Target) -> bool:
    from agentv_ci.contracts.targets import CliTarget, MockTarget

    return not isinstance(target, (CliTarget, MockTarget))


def key_of(row: ResultRow) -> TrialKey:
    """Return what tells a row's trial from all others of its plan."""
    return row.suite, row.eval_id, row.trial


def _read(path: Path, form: ResultsFormat) -> Iterator[tuple[bytes, ResultRow]]:
    from agentv_ci.results.forms import read_whole

    try:
        yield from read_whole(path, form)
    except ValueError as error:
        raise UsageError(str(error)) from error
