"""Options that select cases and targets; commands that compile share them."""

from __future__ import annotations

from dataclasses import dataclass

from agentv_ci.app.documents.compile import Selection
from agentv_ci.cli.options import selection_option, targets_option
from agentv_ci.compile.selection import CaseFilter


@dataclass(frozen=True, eq=False, repr=False)
class SelectionOptions:
    """Which cases to run, and against which targets."""

    targets: str | None = targets_option()
    target: tuple[str, ...] = selection_option(
        "--target",
        metavar="NAME",
        multiple=True,
        help="Run every case against this target; repeatable. 'default' alone changes nothing.",
    )
    eval_ids: tuple[str, ...] = selection_option(
        "--eval-id",
        metavar="ID",
        multiple=True,
        help="Run only cases with this id or glob; repeatable.",
    )

    tags: tuple[str, ...] = selection_option(
        "--tag",
        metavar="TAG",
        multiple=True,
        help="Run only cases with this tag or glob; repeatable, one is enough.",
    )
    not_tags: tuple[str, ...] = selection_option(
        "--not-tag",
        metavar="TAG",
        multiple=True,
        help="Skip cases with this tag or glob; repeatable.",
    )
    expression: str | None = selection_option(
        "--filter",
        metavar="EXPR",
        help="Run only cases that meet a condition such as "
        "'tag:smoke and not suite:nightly and meta.team=payments'.",
    )

    def only(self) -> CaseFilter:
        """Return the conditions on cases; raises UsageError for an invalid one."""
        only = CaseFilter(self.eval_ids, self.tags, self.not_tags, self.expression)
        _ = only.predicate  # before anything is read
        return only

    def of(self, paths: tuple[str, ...]) -> Selection:
        """Return the selection from paths."""
        return Selection(paths, self.targets, self.target, self.only())
