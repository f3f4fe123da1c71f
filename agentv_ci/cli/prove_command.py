"""`agentv-ci prove`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import click

from agentv_ci.app.compile import compile_paths
from agentv_ci.app.prove import ProofOptions, diagnostics_of, prove, write_proof
from agentv_ci.app.report_files import RunFiles
from agentv_ci.atomic import refuse_to_overwrite
from agentv_ci.cli.console import short, show_diagnostics, show_line
from agentv_ci.cli.options import (
    FILE,
    Command,
    SelectionOptions,
    Verbosity,
    option,
    part,
    paths_argument,
    takes,
    workers_option,
)
from agentv_ci.cli.running import run
from agentv_ci.contracts.proof import CaseProof, Proof
from agentv_ci.errors import FAILED, PASSED
from agentv_ci.text import counted

PROOF = Path(".agentv", "proof.json")


@dataclass(frozen=True, kw_only=True)
class ProveOptions:
    """Options of `prove`."""

    paths: tuple[str, ...] = paths_argument()
    selection: SelectionOptions = field(metadata=part(SelectionOptions))
    seed: int = option("--seed", type=int, default=0, show_default=True, help="Choose other mutants and other answers.")
    workers: int | None = workers_option()
    out: str | None = option("--out", type=FILE, help=f"Write the proof to FILE (default: {PROOF}).")
    verbosity: Verbosity = field(metadata=part(Verbosity))


@click.command("prove", cls=Command)
@takes(ProveOptions)
def command(options: ProveOptions) -> int:
    """Show whether the cases would notice wrong answers: those of agents that do nothing, and damaged references.

    No target is asked. Evaluators that need a judge are left out.

    \b
    Examples:
      agentv-ci prove
      agentv-ci prove evals/example.test.yaml --verbose
    """
    cwd = Path.cwd()
    compiled = compile_paths(options.selection.of(options.paths), cwd=cwd)
    quiet = options.verbosity.quiet
    if not quiet:
        show_diagnostics(compiled.origin.warnings, err=True)
    root = compiled.origin.root
    out = cwd / options.out if options.out is not None else root / PROOF
    refuse_to_overwrite([out], compiled.origin.sources)
    how = ProofOptions(seed=options.seed, workers=options.workers or 1)
    work = partial(prove, compiled, compiled.plan, how)
    proof = run(work, RunFiles(out, "jsonl"), dotenv_files=compiled.origin.dotenv_files, verbosity=options.verbosity)
    write_proof(proof, out)
    if not quiet:
        _show_findings(proof, root)
    _show_summary(proof)
    if not quiet:
        show_line(f"proof: {short(out, cwd)}", "plain")
    return PASSED if proof.gate.passed else FAILED


def _show_findings(proof: Proof, root: Path) -> None:
    """Print the findings, and below those of surviving mutants what changed."""
    cases = {(str(root / each.suite), each.id): each for each in proof.cases}
    for each in diagnostics_of(proof, root):
        show_diagnostics([each], err=False)
        if each.rule == "AV403":
            for line, style in _diffs(cases[each.path, each.case or ""]):
                show_line(f"      {line}", style)


def _diffs(case: CaseProof) -> Iterator[tuple[str, str]]:
    styles = {"-": "bad", "+": "good"}
    for survivor in case.survivors:
        yield f"{survivor.operator}: {survivor.change}", "plain"
        yield from ((line, styles.get(line[0], "faint")) for line in survivor.diff.splitlines() if line[:2] != "@@")


def _show_summary(proof: Proof) -> None:
    total = proof.summary
    by_nothing = f"{total.passed_by_null_agents} of {counted(total.cases, 'case')} can be passed by doing nothing"
    show_line(by_nothing, "warn" if total.passed_by_null_agents else "good")
    rate = "no mutants" if total.kill_rate is None else f"kill rate {total.kill_rate:.1%}"
    mutants = f"{total.killed} of {counted(total.mutants, 'mutant')} killed, {total.survived} survived"
    show_line(f"{rate}: {mutants}", "warn" if total.survived else "plain")
    for number, one, several in (
        (
            total.references_failed,
            "reference answer fails its own evaluators",
            "reference answers fail their evaluators",
        ),
        (total.without_reference, "case has no reference answer to damage", "cases have no reference answer to damage"),
        (
            total.judged_evaluators,
            "evaluator needs a judge and was left out",
            "evaluators need a judge and were left out",
        ),
        (total.unproven, "case is not proven", "cases are not proven"),
        (total.skipped, "case is skipped", "cases are skipped"),
    ):
        if number:
            show_line(counted(number, one, several), "plain")
