"""Results of an earlier run → what of it still holds → the rest runs, into the same file."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from agentv_ci.errors import UsageError

if TYPE_CHECKING:
    from agentv_ci.contracts.plan import Plan, PlanCase
    from agentv_ci.contracts.results import ResultRow
    from agentv_ci.execute.engine import Finished
    from agentv_ci.execute.rows import TrialKey
    from agentv_ci.report.reporters import ResultsFormat


@dataclass(frozen=True, slots=True)
class Earlier:
    """What an earlier run left."""

    finished: Finished
    whole_bytes: int
    """How much of its file are whole rows."""
    sentence: str
    """What is kept and what is not, for people."""


@dataclass(frozen=True, slots=True)
class _Kept:
    """The row that counts of a trial."""

    place: int
    is_answered: bool
    cost_usd: float


@dataclass(slots=True)
class _Survey:
    """What a results file holds."""

    rows: int = 0
    whole_bytes: int = 0
    last: dict[TrialKey, _Kept] = field(default_factory=dict)


class Resumable:
    """A results file into which a plan's rows go, some of which may be there already."""

    def __init__(self, results: Path, form: ResultsFormat, plan: Plan, *, dry_run: bool) -> None:
        self._results = results
        self._form = form
        self._plan = plan
        self._dry_run = dry_run

    def read(self, earlier: Path) -> Earlier:
        """Read an earlier run's results and have them lie where this run's go.

        Raises UsageError for a file that cannot be read or has nothing to do with the plan.
        """
        from agentv_ci.execute.engine import Finished

        if not earlier.exists():
            return Earlier(Finished(), 0, f"'{earlier}' does not exist yet: everything runs")
        survey = self._survey(earlier)
        if survey.rows and not survey.last:
            raise UsageError(
                f"none of the {survey.rows} rows in '{earlier}' is of this run: other cases, targets, digests or seeds",
                hint="leave out --resume to run everything, into another file",
            )
        if earlier.resolve() != self._results.resolve():
            self._results.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(earlier, self._results)
        answered = {key: kept for key, kept in survey.last.items() if kept.is_answered}
        costs: dict[str, float] = {}
        for (suite, _, _), kept in answered.items():
            costs[suite] = costs.get(suite, 0.0) + kept.cost_usd
        return Earlier(Finished(answered.keys(), costs), survey.whole_bytes, self._sentence(earlier, survey))

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
        last = self._survey(self._results).last
        for place, (_, row) in enumerate(_read(self._results, self._form)):
            if (kept := last.get(key_of(row))) is not None and kept.place == place:
                yield row

    def tidy(self) -> None:
        """Leave nothing in the file but those rows; raises OSError, and then the file is as it was."""
        survey = self._survey(self._results)
        if len(survey.last) == survey.rows:
            return
        tidied = self._results.with_name(f".{self._results.name}.tidied")
        try:
            with tidied.open("wb") as file:
                for place, (item, row) in enumerate(_read(self._results, self._form)):
                    if (kept := survey.last.get(key_of(row))) is not None and kept.place == place:
                        file.write(item)
                file.flush()
                os.fsync(file.fileno())
            tidied.replace(self._results)
        finally:
            tidied.unlink(missing_ok=True)

    def _survey(self, path: Path) -> _Survey:
        """Find the row that counts of every trial: the last one, but none after an answer."""
        cases = {(case.suite, case.id): case for case in self._plan.cases}
        survey = _Survey()
        for place, (item, row) in enumerate(_read(path, self._form)):
            survey.rows += 1
            survey.whole_bytes += len(item)
            case = cases.get((row.suite, row.eval_id))
            known = survey.last.get(key_of(row))
            if case is not None and self._fits(row, case) and (known is None or not known.is_answered):
                cost_usd = (row.cost_usd or 0.0) + (row.judge_cost_usd or 0.0)
                survey.last[key_of(row)] = _Kept(place, row.status == "ok", cost_usd)
        return survey

    def _fits(self, row: ResultRow, case: PlanCase) -> bool:
        seed = case.seeds[row.trial - 1] if row.trial <= len(case.seeds) else None
        return (
            row.trial <= case.trials
            and (row.digest, row.target, row.seed) == (case.digest, self._plan.targets[case.target].name, seed)
            and row.dry_run == self._dry_run
        )


def key_of(row: ResultRow) -> TrialKey:
    """Return what tells a row's trial from all others of its plan."""
    return row.suite, row.eval_id, row.trial


def _read(path: Path, form: ResultsFormat) -> Iterator[tuple[bytes, ResultRow]]:
    from agentv_ci.report.reporters import read_whole

    try:
        yield from read_whole(path, form)
    except ValueError as error:
        raise UsageError(str(error)) from error
