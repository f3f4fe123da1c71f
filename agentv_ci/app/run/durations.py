"""Results → how long a trial of each case takes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from statistics import fmean

from agentv_ci.contracts.cases import CaseKey
from agentv_ci.errors import UsageError
from agentv_ci.results.files import UnreadableResults, scan_rows


def durations_of(results: Path) -> Mapping[CaseKey, float]:
    """Return the mean duration of a trial of each case, in seconds.

    Raises UsageError for unreadable results.
    """
    durations_ms: dict[CaseKey, list[int]] = {}
    try:
        for row in scan_rows(results, allow_torn=True):
            if row.status == "ok":
                durations_ms.setdefault(row.case_key, []).append(row.duration_ms)
    except UnreadableResults as error:
        raise UsageError(f"--balance: {error}") from error
    return {key: fmean(trials) / 1000 for key, trials in durations_ms.items()}
