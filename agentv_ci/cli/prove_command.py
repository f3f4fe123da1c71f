"""`agentv-ci prove`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Literal, get_args

import click

from agentv_ci.app.documents.compile import compile_paths, only_changed
from agentv_ci.app.prove.proof_file import proof_text, write_proof
from agentv_ci.app.prove.prove import ProofOptions, diagnostics_of, prove
from agentv_ci.app.run.files import RunFiles, require_writable
from agentv_ci.base.text import counted
from agentv_ci.cli.console import (
    ignoring_lost_output,
    short,
    show_diagnostics,
    show_line,
    show_warnings_of,
)
from agentv_ci.cli.listing import show_table
from agentv_ci.cli.options import (
    FILE,
    SHARE,
    Command,
    Range,
    Verbosity,
    gate_option,
    option,
    part,
    paths_argument,
    selection_option,
    takes,
    workers_option,
)
from agentv_ci.cli.running import run
from agentv_ci.cli.selection_options import SelectionOptions
from agentv_ci.contracts.gate import NullAgentsGate
from agentv_ci.contracts.proof import CaseProof, Judges, Proof
from agentv_ci.contracts.source import relative
from agentv_ci.errors import FAILED, INFRASTRUCTURE, PASSED, Interrupted, UsageError
from agentv_ci.report.proof import (
    facts,
    headline,
    mutants_text,
    rate_text,
    unjudged_text,
    verdict_text,
)

HEAD = (
    "place",
    "case",
    "reference",
    "null agents pass",
    "killed",
    "survived",
    "undecided",
    "kill rate",
)
"""Of the table of all cases."""
PROOF = Path(".agentv", "proof.json")


judge_option = partial(option, group="Judges")


@dataclass(frozen=True, kw_only=True)
class ProveOptions:
    """Options of `prove`."""

    paths: tuple[str, ...] = paths_argument()
    selection: SelectionOptions = field(metadata=part(SelectionOptions))
    old_plan: str | None = selection_option(
        "--only-changed",
        type=FILE,
        metavar="OLD_PLAN",
        help="Prove only cases that changed since OLD_PLAN.",
    )
    seed: int = option(
        "--seed",
        type=int,
        default=0,
        show_default=True,
        help="Choose other mutants and other answers.",
    )
    workers: int | None = workers_option()
    min_kill_rate: float | None = gate_option(
        "--min-kill-rate",
        type=SHARE,
        metavar="X",
        help="Require this share of mutants to be killed.",
    )
    null_agents: NullAgentsGate | None = gate_option(  # noqa: RUF009  # a declaration
        "--null-agents",
        type=click.Choice(["forbid", "report"]),
        help="Fail if a null agent passes a case, or only report it.",
    )
    judges: Judges | None = judge_option(  # noqa: RUF009  # a declaration
        "--judges",
        type=click.Choice(get_args(Judges)),
        help="Leave judges out, take what they said from --replay, or ask them "
        "(default: skip, with --replay replay).",
    )
    replay: str | None = judge_option(
        "--replay", type=FILE, metavar="DIR", help="Take replies of judges from DIR."
    )
    record: str | None = judge_option(
        "--record", type=FILE, metavar="DIR", help="Record replies of judges in DIR."
    )
    max_cost: float | None = judge_option(
        "--max-cost",
        type=Range(min=0),
        metavar="USD",
        help="Ask no judge any more when they have cost USD.",
    )
    out: str | None = option(
        "--out", type=FILE, help=f"Write the proof to FILE (default: {PROOF})."
    )
    form: Literal["text", "json", "github", "sarif"] = option(
        "--format",
        type=click.Choice(["text", "json", "github", "sarif"]),
        default="text",
        show_default=True,
        help="Print text for people, the proof as JSON, annotations for a GitHub workflow, "
        "or SARIF for code scanning.",
    )
    verbosity: Verbosity = field(metadata=part(Verbosity))

    def proof_options(self, cwd: Path) -> ProofOptions:
        """Return how to prove; raises UsageError for options that cannot be combined."""
        judges: Judges = self.judges or ("skip" if self.replay is None else "replay")
        if (judges == "replay") != (self.replay is not None):
            raise UsageError("--judges replay and --replay DIR require each other")
        if judges != "live" and (self.record is not None or self.max_cost is not None):
            raise UsageError("--record and --max-cost require --judges live")
        if self.replay is not None and not (cwd / self.replay).is_dir():
            raise UsageError(
                f"--replay: '{self.replay}' is not a directory", hint="create it with --record"
            )
        return ProofOptions(
            seed=self.seed,
            workers=self.workers or 1,
            judges=judges,
            min_kill_rate=self.min_kill_rate,
            null_agents=self.null_agents,
            max_cost_usd=self.max_cost,
            record=cwd / self.record if self.record is not None else None,
            replay=cwd / self.replay if self.replay is not None else None,
        )


@click.command("prove", cls=Command)
@takes(ProveOptions)
def command(options: ProveOptions) -> int:
    """Show whether the cases would notice wrong answers: those of agents that do nothing, and damaged references.

    No target is asked, and judges only with --judges live. Exit code 1: a reference answer fails its own evaluators, or
    the gate is not passed; 4: no judge scored anything.

    \b
    Examples:
      agentv-ci prove
      agentv-ci prove evals/example.test.yaml --verbose
      agentv-ci prove evals/ --min-kill-rate 0.9 --null-agents forbid
      agentv-ci prove evals/ --only-changed plan.json --format github
      agentv-ci prove evals/ --judges live --max-cost 1 --record recordings/
    """
    cwd = Path.cwd()
    how = options.proof_options(cwd)
    everything = compile_paths(options.selection.of(options.paths), cwd=cwd)
    compiled = everything
    if options.old_plan is not None:
        compiled = only_changed(everything, cwd / options.old_plan)
        left_out = len(everything.plan.cases) - len(compiled.plan.cases)
        total = counted(len(everything.plan.cases), "case")
        show_line(
            f"{left_out} of {total} left out: unchanged since {options.old_plan}", "warn", err=True
        )
    root, quiet = compiled.origin.root, options.verbosity.quiet
    if not quiet:
        with ignoring_lost_output():
            show_warnings_of(compiled.origin)
    out = cwd / options.out if options.out is not None else root / PROOF
    if options.out == "-":
        raise UsageError("cannot write the proof to standard output; use --format json")
    require_writable([out], compiled.origin.sources)
    work = partial(prove, compiled, everything.plan, how)
    try:
        proof = run(
            work,
            RunFiles(out, "jsonl"),
            dotenv_files=compiled.origin.dotenv_files,
            verbosity=options.verbosity,
        )
    except Interrupted:
        raise Interrupted("interrupted; no proof was written") from None
    write_proof(proof, out)
    _show(proof, root, options)
    if options.form in ("text", "github") and not quiet:
        show_line(f"proof: {short(out, cwd)}", "plain")
    if not proof.gate.passed:
        return FAILED
    if proof.summary.failed_judgements and not proof.summary.judgements:
        return INFRASTRUCTURE
    return PASSED


def _show(proof: Proof, root: Path, options: ProveOptions) -> None:
    quiet = options.verbosity.quiet
    if options.form == "text" and not quiet:
        _show_findings(proof, root, verbose=options.verbosity.verbose)
    elif options.form != "text":
        _print(proof, root, options.form)
    if options.form in ("text", "github"):
        _show_summary(proof, quiet=quiet)
    if proof.summary.failed_judgements:
        reason = f": {proof.summary.judge_error}" if proof.summary.judge_error else ""
        show_line(f"{unjudged_text(proof.summary)}{reason}", "warn", err=True)


def _print(proof: Proof, root: Path, form: Literal["json", "github", "sarif"]) -> None:
    if form == "json":
        click.echo(proof_text(proof), nl=False)
        return
    from agentv_ci.report.diagnostics import render_findings

    findings = [*diagnostics_of(proof, root)]
    click.echo(render_findings(findings, form, lambda path: relative(Path(path), root)), nl=False)


def _show_findings(proof: Proof, root: Path, *, verbose: bool) -> None:
    """Print the findings, and if wanted a table of all cases.

    Below a surviving mutant it says what changed.
    """
    # A summary has the number of cases that are not proven, which may be most.
    without = () if verbose else ("AV407",)
    cases = {(each.suite, each.id): each for each in proof.cases}
    for found, diagnostic in zip(proof.findings, diagnostics_of(proof, root), strict=True):
        if found.rule in without:
            continue
        show_diagnostics([diagnostic], err=False)
        if found.rule == "AV403":
            for line, style in _diffs(cases[found.suite, found.case]):
                show_line(f"      {line}", style)
    if verbose and proof.cases:
        show_table([HEAD, *map(_row, proof.cases)], left=3)


def _diffs(case: CaseProof) -> Iterator[tuple[str, str]]:
    styles = {"-": "bad", "+": "good"}
    for survivor in case.survivors:
        yield f"{survivor.operator}: {survivor.change}", "plain"
        for line in survivor.diff.splitlines():
            if line[:2] != "@@":
                yield line, styles.get(line[:1], "faint")


def _row(case: CaseProof) -> Sequence[str]:
    """Return the cells of a case: those of HEAD."""
    return (
        f"{case.path}:{case.line}",
        case.id,
        case.reference,
        f"{len(case.passing)}/{len(case.null_agents)}",
        str(case.killed),
        str(case.survived),
        str(case.mutants - case.killed - case.survived),
        rate_text(case.kill_rate),
    )


def _show_summary(proof: Proof, *, quiet: bool) -> None:
    verdict, style = verdict_text(proof), "good" if proof.gate.passed else "bad"
    if quiet:
        show_line(f"prove: {verdict}; {headline(proof).text}; {mutants_text(proof.summary)}", style)
        return
    for line in (headline(proof), *facts(proof)):
        show_line(line.text, line.style)
    show_line(f"prove: {verdict}", style)
    for reason in proof.gate.reasons:
        show_line(f"  {reason}", style)
