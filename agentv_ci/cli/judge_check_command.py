"""`agentv-ci judge-check`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import click
from msgspec import to_builtins

from agentv_ci.analysis.agreement import Agreement, Demands, JudgedItem, judge_agreement
from agentv_ci.app.results.judge_check import JudgeCheck, check_judge, prepare_judge_check
from agentv_ci.app.run.files import RunFiles
from agentv_ci.app.run.latest import new_results
from agentv_ci.base.text import counted, shortened
from agentv_ci.cli.console import one_line, short, show_diagnostics, show_line
from agentv_ci.cli.options import (
    FILE,
    SHARE,
    TEXT_OR_JSON,
    Command,
    Count,
    Range,
    Verbosity,
    argument,
    option,
    path_in,
    results_option,
    selection_option,
    takes,
    targets_option,
    verbose_option,
    workers_option,
)
from agentv_ci.cli.report_options import form_and_name
from agentv_ci.cli.running import run
from agentv_ci.compile.overrides import Overrides
from agentv_ci.errors import UsageError
from agentv_ci.execute.run_services import RunOptions

MAX_SHOWN = 20
MAX_REASON = 200
requirement = partial(option, group="Requirements")


@dataclass(frozen=True)
class JudgeCheckOptions:
    """Options of `judge-check`."""

    file: str = argument(metavar="FILE")
    targets: str | None = targets_option()
    judge_target: str | None = selection_option(
        "--judge-target", metavar="NAME", help="Use this judge target."
    )
    repeat: int = option(
        "--repeat",
        type=Count(min=1),
        default=1,
        show_default=True,
        group="Run options",
        help="Judge every answer N times.",
    )
    threshold: float | None = requirement(
        "--threshold",
        type=SHARE,
        metavar="X",
        help="Pass an answer that scores at least X (default: 0.8).",
    )
    workers: int | None = workers_option()
    min_agreement: float = requirement(
        "--min-agreement",
        type=SHARE,
        default=0.8,
        show_default=True,
        metavar="X",
        help="Require this share of judgements to agree with the labels.",
    )
    min_kappa: float | None = requirement(
        "--min-kappa", type=Range(-1, 1), metavar="X", help="Require a kappa of X."
    )
    max_error: float | None = requirement(
        "--max-error",
        type=SHARE,
        metavar="X",
        help="Allow at most this mean absolute error of scores.",
    )
    max_flip_rate: float | None = requirement(
        "--max-flip-rate",
        type=SHARE,
        metavar="X",
        help="Allow the judge to contradict itself on at most this share of answers.",
    )
    max_errors: int = requirement(
        "--max-errors",
        type=Count(min=0),
        default=0,
        show_default=True,
        help="Allow at most N failed judgements.",
    )
    out: str | None = results_option(
        "--out",
        type=FILE,
        help="Write the results to FILE (default: .agentv/results/judge-check_<timestamp>.jsonl).",
    )
    form: str = option("--format", **TEXT_OR_JSON)
    verbose: bool = verbose_option()

    def demands(self) -> Demands:
        """Return the requirements.

        Raises UsageError for a flip rate with a single judgement per answer.
        """
        if self.max_flip_rate is not None and self.repeat == 1:
            raise UsageError("--max-flip-rate requires --repeat 2 or more")
        return Demands(
            self.min_agreement, self.min_kappa, self.max_error, self.max_flip_rate, self.max_errors
        )


@click.command("judge-check", cls=Command)
@takes(JudgeCheckOptions)
def command(options: JudgeCheckOptions) -> int:
    """Measure how well a judge agrees with human labels.

    FILE is a judge set: {$schema: agentv-judge-set-v1, judge_target, prompt?, items: [{id, question,
    expected_outcome, answer, verdict or score}]}. An answer passes or does not; borderline does not pass.

    \b
    Examples:
      agentv-ci judge-check judges/refunds.yaml
      agentv-ci judge-check judges/refunds.yaml --repeat 3 --min-kappa 0.6 --max-flip-rate 0.1
      agentv-ci judge-check judges/refunds.yaml --judge-target judge --format json
    """
    cwd = Path.cwd()
    demands = options.demands()
    check = prepare_judge_check(
        options.file, targets=options.targets, judge_target=options.judge_target, cwd=cwd
    )
    if demands.max_error is not None and all(item.score is None for item in check.items):
        raise UsageError("--max-error requires labels with a score; the judge set has none")
    origin = check.compiled.origin
    show_diagnostics(origin.warnings, err=True)
    results = path_in(cwd, options.out)
    if results is None:
        results = new_results(origin.root, datetime.now(UTC), kind="judge-check")
    files = RunFiles(results, form_and_name(None, options.out))
    overrides = Overrides(repeat=options.repeat, threshold=options.threshold)
    work = partial(
        check_judge, check, overrides, RunOptions(root=origin.root, workers=options.workers), files
    )
    agreement = run(
        work,
        files,
        dotenv_files=origin.dotenv_files,
        verbosity=Verbosity(verbose=options.verbose, quiet=False),
        judges=True,
    )
    code, reasons = judge_agreement(agreement, demands)
    if options.form == "json":
        click.echo(_as_json(check, agreement, demands, code, reasons))
        return code
    _show(check, agreement, options.repeat, options.file)
    show_line("check: not passed" if code else "check: passed", "bad" if code else "good")
    for reason in reasons:
        show_line(f"  {reason}", "bad")
    show_line(f"results: {short(results, cwd)}", "plain")
    return code


def _as_json(
    check: JudgeCheck, found: Agreement, demands: Demands, code: int, reasons: Sequence[str]
) -> str:
    judge = {"target": check.judge.name, "provider": check.judge.provider}
    verdict = {"passed": code == 0, "exit_code": code, "reasons": list(reasons)}
    return json.dumps(
        {"judge": judge, **to_builtins(found), "demands": to_builtins(demands), **verdict}, indent=2
    )


def _show(check: JudgeCheck, found: Agreement, repeat: int, file: str) -> None:
    times = "once" if repeat == 1 else f"{repeat} times each"
    answers = counted(len(found.items), "answer")
    show_line(
        f"{answers}, judged {times} by '{check.judge.name}' ({check.judge.provider})", "plain"
    )
    _show_section("errors", [item for item in found.items if item.errors], file, "bad")
    _show_section("disagreements", [item for item in found.items if item.wrong], file, "warn")
    show_line(
        f"agreement {_figure(found.agreement)}  kappa {_figure(found.kappa)}  "
        f"mean absolute error {_figure(found.mean_absolute_error)}  "
        f"flip rate {_figure(found.flip_rate)}",
        "plain",
    )
    show_line(
        f"{counted(found.judgements, 'judgement')}: "
        f"{counted(found.false_passes, 'false pass', 'false passes')}, "
        f"{counted(found.false_fails, 'false fail')}, {counted(found.errors, 'error')}",
        "plain",
    )
    if found.broken_contracts:
        broken = counted(found.broken_contracts, "judgement")
        show_line(
            f"first verdict of a reply that contradicts itself or leaves its scale: {broken}",
            "warn",
        )
    if flipping := [one_line(item.id) for item in found.items if item.flips]:
        show_line(f"contradictory judgements of: {', '.join(flipping[:MAX_SHOWN])}", "warn")


def _show_section(title: str, items: Sequence[JudgedItem], file: str, style: str) -> None:
    if not items:
        return
    show_line(f"{title}:", "plain")
    for item in items[:MAX_SHOWN]:
        judged, reason = _judged(item), _reason(item)
        if title == "errors":
            judged, reason = "error", item.errors[0]
        show_line(
            f"  {one_line(item.id)}  ({file}:{item.line})  expected {item.expected}: {judged}",
            style,
        )
        if reason:
            show_line(f"    {one_line(shortened(' '.join(reason.split()), MAX_REASON))}", "plain")
    if len(items) > MAX_SHOWN:
        show_line(f"  … and {len(items) - MAX_SHOWN} more", "plain")


def _judged(item: JudgedItem) -> str:
    if len(item.judgements) == 1:
        return f"judged {item.judgements[0].verdict} {item.judgements[0].score:.3f}"
    scores = ", ".join(f"{each.score:.3f}" for each in item.judgements)
    return f"judged differently {item.wrong} of {len(item.judgements)} times ({scores})"


def _reason(item: JudgedItem) -> str:
    return next((each.reasoning for each in item.judgements if each.passes != item.passes), "")


def _figure(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"
