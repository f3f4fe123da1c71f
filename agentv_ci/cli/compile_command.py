"""`agentv-ci compile`."""

from __future__ import annotations

from pathlib import Path

import click

from agentv_ci.cli.options import color_option, eval_id_option, target_option, targets_option
from agentv_ci.cli.output import show_diagnostics
from agentv_ci.errors import PASSED, UsageError
from agentv_ci.pipeline import Selection, compile_paths, plan_text


@click.command("compile")
@click.argument("paths", nargs=-1, required=True, metavar="PATH…")
@click.option(
    "--out", default="-", metavar="FILE", help="Where the plan goes; - is standard output.", show_default=True
)
@targets_option
@target_option
@eval_id_option
@color_option
def command(
    paths: tuple[str, ...], out: str, targets: str | None, target: str | None, eval_ids: tuple[str, ...]
) -> int:
    """Compile eval files into one JSON plan: the same files always give the same bytes.

    \b
    Examples:
      agentv-ci compile evals/ --out plan.json
      agentv-ci compile evals/refunds.yaml | jq '.cases[].id'
    """
    compiled = compile_paths(Selection(paths, targets, target, eval_ids), cwd=Path.cwd())
    show_diagnostics(compiled.warnings, err=True)
    text = plan_text(compiled.plan)
    if out == "-":
        click.echo(text, nl=False)
        return PASSED
    compiled.refuse_to_overwrite([Path.cwd() / out])
    try:
        Path(out).parent.mkdir(parents=True, exist_ok=True)
        Path(out).write_text(text, encoding="utf-8", newline="\n")
    except OSError as error:
        raise UsageError(f"cannot write '{out}': {error.strerror}") from error
    number = len(compiled.plan.cases)
    click.echo(f"{number} {'case' if number == 1 else 'cases'} compiled to {out}", err=True)
    return PASSED
