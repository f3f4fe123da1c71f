"""Results → the rows of single cases."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from agentv_ci.base.text import did_you_mean
from agentv_ci.contracts.cases import CaseKey, matches
from agentv_ci.contracts.results import ResultRow
from agentv_ci.errors import NothingToRun, UsageError
from agentv_ci.results.files import scan_rows

MAX_CASES = 20


def rows_of_case(results: Path, case: str, targets: Sequence[str] = ()) -> list[list[ResultRow]]:
    """Return the trials of each case with this id, or else of those that the glob matches.

    Of the rows, only fields and properties can be used.
    `targets` leaves out the answers of others. Raises UsageError for results that cannot be read
    and for more than MAX_CASES cases, NothingToRun if there is none.
    """
    ids = {row.eval_id for row in scan_rows(results, allow_torn=True)}
    wanted = {case} if case in ids else {name for name in ids if matches(name, case)}
    if len(wanted) > MAX_CASES:
        raise UsageError(f"'{case}' matches {len(wanted)} cases; name one of them")
    trials: dict[CaseKey, list[ResultRow]] = {}
    for row in scan_rows(results, allow_torn=True):
        if row.eval_id in wanted and (not targets or row.target in targets):
            trials.setdefault(row.case_key, []).append(row)
    if not trials:
        raise NothingToRun(f"no case '{case}' in '{results}'{did_you_mean(case, sorted(ids))}")
    return [sorted(rows, key=lambda row: row.trial) for rows in trials.values()]
