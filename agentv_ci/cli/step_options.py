"""Options of `github run`, which are inputs of the action, too."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal

import click

from agentv_ci.cli.options import FILE, Option, option, part
from agentv_ci.contracts.against_base import GateFrom, MissingCases

FILE_OPTION = "--runner-file"


class Input(Option):
    """An option that is also an input of the action, set by an environment variable."""

    def __init__(self, *args: Any, **settings: Any) -> None:  # noqa: ANN401  # handed on
        super().__init__(*args, **settings)
        self.envvar = f"AGENTV_{str(self.name).upper()}"


action_input = partial(option, cls=Input)
eval_input = partial(action_input, group="Options of eval")
passed_on = partial(eval_input, help="As in `eval`.")
publish_input = partial(action_input, group="Options of publish")
results_dir_option = partial(
    action_input,
    "--results-dir",
    type=FILE,
    metavar="DIR",
    default="agentv-results",
    show_default=True,
    help="Use DIR for results and reports.",
)


@dataclass(frozen=True)
class PassedOn:
    """Inputs that are passed to `eval` unchanged; `eval` describes and validates them."""

    targets: str | None = passed_on("--targets", metavar="FILE")
    target: str | None = passed_on(
        "--target", metavar="NAME", help="As in `eval`; several, one per line."
    )
    workers: str | None = passed_on("--workers", metavar="N")
    repeat: str | None = passed_on("--repeat", metavar="N")
    threshold: str | None = passed_on("--threshold", metavar="X")
    min_pass_rate: str | None = passed_on("--min-pass-rate", metavar="X")
    min_mean_score: str | None = passed_on("--min-mean-score", metavar="X")
    max_errors: str | None = passed_on("--max-errors", metavar="N")
    max_cost: str | None = passed_on("--max-cost", metavar="USD")
    baseline: str | None = passed_on("--baseline", metavar="FILE")
    only_changed: str | None = passed_on("--only-changed", metavar="OLD_PLAN")
    shard: str | None = passed_on("--shard", metavar="I/N")
    balance: str | None = passed_on("--balance", metavar="FILE")


@dataclass(frozen=True)
class Modes:
    """Options of `publish`. `run` has them too, to reject a wrong value before anything runs."""

    comment: Literal["auto", "always", "never"] = publish_input(
        "--comment",
        type=click.Choice(["auto", "always", "never"]),
        default="auto",
        show_default=True,
        help="Comment on the pull request; auto skips shards.",
    )
    history: Literal["off", "read", "write"] = publish_input(
        "--history",
        type=click.Choice(["off", "read", "write"]),
        default="off",
        show_default=True,
        help="Read from the ledger whether red cases are red on the base branch, too; "
        "write also adds runs of the default branch to it.",
    )
    check: bool = publish_input(
        "--check",
        is_flag=True,
        help="Create a check run with all annotations; requires `checks: write`.",
    )
    annotations: Literal["all", "failures", "none"] = publish_input(
        "--annotations",
        type=click.Choice(["all", "failures", "none"]),
        default="all",
        show_default=True,
        help="Annotate eval files with failures; all adds warnings and flaky cases.",
    )
    fail_on: Literal["gate", "errors", "never"] = publish_input(
        "--fail-on",
        type=click.Choice(["gate", "errors", "never"]),
        default="gate",
        show_default=True,
        help="Choose what fails the step: gate, any run that does not pass; "
        "errors, the same but exit codes 1 and 6; never, only exit codes 2, 70 and 130.",
    )


@dataclass(frozen=True, kw_only=True)
class StepOptions:
    """Options of `github run`."""

    evals: str = action_input(
        "--evals",
        default="evals/",
        show_default=True,
        metavar="PATHS",
        help="Run these eval files, folders and globs, one per line, "
        "or one plan, or one experiment.",
    )
    results: str = action_input(
        "--results",
        default="",
        metavar="PATHS",
        help="Judge these results of another tool, one file per line, instead of running evals.",
    )
    results_from: str = action_input(
        "--results-from",
        default="",
        metavar="TOOL",
        help="Name the tool that wrote these results, as in `adopt --from`.",
    )
    validate_only: bool = action_input(
        "--validate-only", is_flag=True, help="Check the documents; do not run them."
    )
    env_file: str | None = action_input(
        "--env-file",
        type=FILE,
        metavar="FILE",
        help="Load environment variables from FILE; existing ones take precedence.",
    )
    args: str = action_input(
        "--args",
        default="",
        metavar="FLAGS",
        help="Pass these flags to `eval` or `validate`, quoted as in a shell.",
    )
    results_dir: str = results_dir_option()
    quarantine: str | None = action_input(
        "--quarantine",
        type=FILE,
        metavar="FILE",
        help="Use this quarantine, which `github base` has read.",
    )
    base_tree: str | None = action_input(
        "--base-tree",
        type=FILE,
        metavar="DIR",
        help="Compare with these files of the base branch, of `github base`.",
    )
    base_problem: str | None = action_input(
        "--base-problem", metavar="TEXT", help="Say why there are no such files."
    )
    gate_from: GateFrom = action_input(  # noqa: RUF009  # a declaration
        "--gate-from",
        type=click.Choice(["base", "head"]),
        default="base",
        show_default=True,
        help="In pull requests, apply the stricter settings of base branch and change, "
        "or those of the change.",
    )
    missing_cases: MissingCases = action_input(  # noqa: RUF009  # a declaration
        "--missing-cases",
        type=click.Choice(["report", "fail"]),
        default="report",
        show_default=True,
        help="Report cases of the base branch that a pull request lacks; fail, also fail the gate.",
    )
    runner_files: tuple[str, ...] = option(FILE_OPTION, multiple=True, hidden=True)
    exit_zero: bool = option(
        "--exit-zero", is_flag=True, help="Exit with 0; `github publish` has the exit code."
    )
    passed_on: PassedOn = field(metadata=part(PassedOn))
    dry_run: bool = eval_input(
        "--dry-run",
        is_flag=True,
        help="Score the reference answers instead of asking; skip the gate.",
    )
    prove: Literal["off", "report", "gate"] = action_input(
        "--prove",
        type=click.Choice(["off", "report", "gate"]),
        default="off",
        show_default=True,
        help="Prove the cases before they run: report, show what wrong answers they let pass; "
        "gate, also fail if the proof is not passed.",
    )
    modes: Modes = field(metadata=part(Modes))

    @property
    def paths(self) -> Sequence[str]:
        """The paths in `results`, else in `evals`."""
        return _lines(self.results) or _lines(self.evals)

    @property
    def adopts(self) -> bool:
        """Whether results of another tool are judged, and nothing runs."""
        return bool(_lines(self.results))

    def flags(self) -> Iterator[str]:
        """Yield the inputs that are flags of `eval` or `validate`."""
        for name, value in vars(self.passed_on).items():
            if not value or not self._passes_on(name):
                continue
            flag = f"--{name.replace('_', '-')}"
            for text in _lines(value) if name == "target" else [value]:
                yield f"{flag}={text}"
        if self.adopts:
            yield f"--from={self.results_from}"
        elif self.dry_run and not self.validate_only:
            yield "--dry-run"

    def _passes_on(self, name: str) -> bool:
        """Whether the command that runs has an option."""
        if self.validate_only and name != "targets":
            return False
        return not self.adopts or name in OF_ADOPTED


OF_ADOPTED = frozenset({"threshold", "min_pass_rate", "baseline"})
"""Inputs that apply to results of another tool."""


def _lines(text: str) -> list[str]:
    return list(filter(None, map(str.strip, text.splitlines())))
