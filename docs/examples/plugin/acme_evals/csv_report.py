"""`--report acme/csv=FILE`: a line for each trial."""

import csv
import io
from collections.abc import Iterable
from typing import IO

from agentv_ci.plugins import ResultRow, RunReport


class CsvReport:
    """Writes case, trial, verdict and score."""

    def write(self, report: RunReport, rows: Iterable[ResultRow], out: IO[bytes]) -> None:
        """Write the rows, and the verdict of the run as the last line."""
        text = io.TextIOWrapper(out, encoding="utf-8", newline="")
        lines = csv.writer(text)
        lines.writerow(["case", "trial", "verdict", "score"])
        lines.writerows([row.eval_id, row.trial, row.verdict, row.score] for row in rows)
        lines.writerow(["run", "", report.gate.verdict, ""])
        text.detach()
