"""Options that name the files of results and reports; commands that report share them."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, get_args

from agentv_ci.app.run.files import Reports, reports_of_plugins
from agentv_ci.cli.options import report_option
from agentv_ci.errors import UsageError
from agentv_ci.github.report_links import reports_in_workflow
from agentv_ci.report.renderers import ReportFormat
from agentv_ci.results.files import RESULTS_SUFFIXES, ResultsFormat, form_named

if TYPE_CHECKING:
    from agentv_ci.contracts.proof import Proof


def form_and_name(form: ResultsFormat | None, out: str | None) -> ResultsFormat:
    """Return the format of results: the given one, else that of the file name.

    Raises UsageError for a name of another format, unless the format of the results is given.
    """
    if form is not None or out is None:
        return form or "jsonl"
    if Path(out).suffix not in RESULTS_SUFFIXES:
        raise UsageError(
            f"'{out}' is not a name for results", hint="use a file name in .jsonl or .yaml"
        )
    return form_named(Path(out))


@dataclass(frozen=True, eq=False, repr=False)
class ReportOptions:
    """The files of reports."""

    html: str | None = report_option("--html", help="Write an HTML report to FILE.")
    junit: str | None = report_option(
        "--junit", help="Write a JUnit XML report to FILE, for CI servers."
    )
    markdown: str | None = report_option(
        "--markdown",
        help="Write a Markdown report to FILE, for a job summary or comment "
        "(at most 60,000 characters).",
    )
    sarif: str | None = report_option(
        "--sarif", help="Write a SARIF report to FILE, for code scanning."
    )
    report: tuple[str, ...] = report_option(
        "--report",
        type=str,
        metavar="NAME=FILE",
        multiple=True,
        help="Write the report of a plugin to FILE; repeatable.",
    )
    proof: str | None = report_option(
        "--proof", help="Show this proof, written by `prove`, in HTML and Markdown."
    )

    def at(self, cwd: Path) -> Reports:
        """Return the reports to write.

        Raises UsageError for standard output and for unusable plugins.
        """
        names = [name for name in get_args(ReportFormat) if getattr(self, name) is not None]
        for name in names:
            if getattr(self, name) == "-":
                raise UsageError(
                    f"--{name} requires a file name; the summary is on standard output"
                )
        files = {name: cwd / getattr(self, name) for name in names}
        if self.proof is not None and files.keys().isdisjoint({"html", "markdown"}):
            raise UsageError("--proof requires --html or --markdown, which show it")
        proof = _proof(cwd / self.proof) if self.proof is not None else None
        return reports_in_workflow(
            files, reports_of_plugins(self.report, cwd), os.environ, cwd, proof
        )


def _proof(path: Path) -> Proof:
    from agentv_ci.app.prove.proof_file import read_proof  # few runs have one

    return read_proof(path)
