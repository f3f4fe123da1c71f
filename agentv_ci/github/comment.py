"""The one comment on a pull request: the last run, and figures of the runs before it.

The comment stores the earlier runs itself, in a hidden line of JSON that holds only numbers and
fixed words.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from hashlib import sha256
from urllib.parse import quote

from msgspec import Struct
from pydantic import ValidationError

from agentv_ci.base.text import dollars, on_one_line
from agentv_ci.contracts.action import History, PastRun
from agentv_ci.github.workflow import Workflow

LIMIT = 60_000
"""Characters; GitHub refuses more than 65,536."""
MAX_RUNS = 10

MAX_NAME = 100

_HISTORY = re.compile(r"^<!-- agentv-ci:history (\{.*\}) -->\s*\Z", re.MULTILINE)
"""The last line: the text above it is untrusted."""


class Comment(Struct, frozen=True):
    """A run to comment on."""

    key: str
    """Distinguishes the comment from others on the same pull request."""
    body: Callable[[int, PastRun | None], str]
    """Returns a text of at most so many characters, and compares with the last run, if there was
    one.
    """
    run: PastRun
    """The figures of the run, kept for the comments of later runs."""
    workflow: Workflow

    @property
    def marker(self) -> str:
        """The line that identifies the comment."""
        return f"<!-- agentv-ci:{self._name} -->"

    @property
    def _name(self) -> str:
        """The key, shortened and quoted.

        It can close neither the marker (`--`) nor the code around it.
        """
        key = self.key.encode("utf-8", "surrogateescape")
        name = quote(key, safe="/ ").replace("--", "-%2D")
        if len(name) <= MAX_NAME:
            return name
        return f"{name[: MAX_NAME - 20]} {sha256(key).hexdigest()[:16]}"

    def is_older_than(self, text: str) -> bool:
        """Return whether a comment is from a later run, so that this run must not replace it."""
        runs = history_of(text)
        return bool(runs) and runs[0].run_id > self.run.run_id

    def text(self, before: str | None) -> str:
        """Return the whole comment; `before` is its current text, if it exists."""
        earlier = [run for run in history_of(before or "") if run.run_id != self.run.run_id]
        runs = [self.run, *earlier][:MAX_RUNS]
        memory = f"<!-- agentv-ci:history {History(runs=tuple(runs)).model_dump_json()} -->"
        table = [_history(runs, self.workflow)] if len(runs) > 1 else []
        ending = "\n\n".join([*table, self._footer(), memory])
        last = runs[1] if len(runs) > 1 else None
        body = self.body(LIMIT - len(self.marker) - len(ending) - 4, last).rstrip("\n")
        return f"{self.marker}\n{body}\n\n{ending}\n"

    def _footer(self) -> str:
        flow = self.workflow
        name = on_one_line(self.key).replace("`", "'")[:MAX_NAME] or "agentv-ci"
        footer = f"`{name}` · [run {flow.run_id}]({flow.run_url})"
        if flow.run_attempt > 1:
            footer += f", attempt {flow.run_attempt}"
        footer += f" · {self.run.sha[:7]}"
        if flow.event == "workflow_run" and flow.is_from_fork:
            # The author of a pull request controls the results of its runs.
            footer += " · from a fork's run, whose author controls the results"
        return footer


def history_of(text: str) -> Sequence[PastRun]:
    """Return the runs that a comment stores, the newest first."""
    found = _HISTORY.search(text)
    if found is None:
        return ()
    try:
        return History.model_validate_json(found[1]).runs
    except ValidationError:
        return ()


def _history(runs: Sequence[PastRun], workflow: Workflow) -> str:
    rows = [_row(run, workflow) for run in runs]
    table = "\n".join(
        ["| run | commit | result | passed | mean | cost |", "|---|---|---|---|---|---|", *rows]
    )
    return f"<details><summary>The last {len(runs)} runs</summary>\n\n{table}\n\n</details>"


def _row(run: PastRun, workflow: Workflow) -> str:
    url = f"{workflow.server_url}/{workflow.repository}/actions/runs/{run.run_id}"
    passed = "" if run.passed is None or run.total is None else f"{run.passed}/{run.total}"
    mean = "" if run.mean is None else f"{run.mean:.3f}"
    cost = "" if run.cost_usd is None else dollars(run.cost_usd)
    return f"| [{run.at}]({url}) | {run.sha[:7]} | {run.verdict} | {passed} | {mean} | {cost} |"
