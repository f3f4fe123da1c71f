"""`agentv-ci import`."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import click

from agentv_ci.app.documents.importing import KINDS, REPORT, ImportWish, checked_kind, imported
from agentv_ci.base.text import counted
from agentv_ci.cli.console import short, show_line
from agentv_ci.cli.options import FILE, argument, option, takes, typed_command
from agentv_ci.errors import FAILED, PASSED, UsageError


@dataclass(frozen=True)
class ImportOptions:
    """Options of `import`."""

    files: tuple[str, ...] = argument(nargs=-1, required=True, type=FILE, metavar="FILE...")
    kind: str = option(
        "--from",
        type=click.Choice(["auto", *KINDS]),
        default="auto",
        help="Name the tool (default: recognize it).",
    )
    out: str = option(
        "--out", "-o", type=FILE, metavar="DIR", required=True, help="Set the folder to write to."
    )
    columns: tuple[str, ...] = option(
        "--map",
        multiple=True,
        metavar="FIELD=COLUMN",
        help="Name a column of a data set: input, expected or id.",
    )
    check: str | None = option(
        "--check",
        type=FILE,
        metavar="RESULTS",
        help="Compare with the verdicts in results of promptfoo: judge their answers here.",
    )
    strict: bool = option("--strict", is_flag=True, help="Exit with 1 if anything was dropped.")
    overwrite: bool = option("--overwrite", is_flag=True, help="Replace files in DIR.")


@click.command("import")
@takes(ImportOptions)
def command(options: ImportOptions) -> int:
    """Convert evaluations of other tools to eval files and targets.

    FILE is a promptfoo config, an eval file of AgentV, a prompt file of GitHub Models, or a data set of Inspect,
    DeepEval or OpenAI Evals. MIGRATION.md in DIR says of every construct whether it is kept, approximated or dropped,
    with its file and line. Files are not changed, and data stays where it is: rows are read from their own file.

    \b
    Examples:
      agentv-ci import promptfooconfig.yaml --out converted
      agentv-ci import 'suites/**/*.eval.yaml' --from agentv --out imported --strict
      agentv-ci import promptfooconfig.yaml --out checked --check old.json
      agentv-ci import questions.jsonl --from inspect --map input=question --map expected=answer --out questions
    """
    wish = ImportWish(
        options.files,
        checked_kind(options.kind),
        Path(options.out),
        dict(map(_pair, options.columns)),
        typed_command(),
        overwrite=options.overwrite,
    )
    written = imported(wish, cwd=Path.cwd(), environ=os.environ)
    files = written.files
    dropped = files.count("dropped")
    for name in sorted(files.texts):
        show_line(f"  {short(Path.cwd() / options.out / name, Path.cwd())}", "plain")
    first, *lines = written.summary
    show_line(first, "warn" if lines else "good")
    for line in lines:
        show_line(line, "plain")
    if dropped or files.count("approximated"):
        click.echo(f"read {short(Path.cwd() / options.out / REPORT, Path.cwd())} first")
    if written.errors:
        errors = counted(written.errors, "error")
        show_line(f"`agentv-ci validate` finds {errors} in it; {REPORT} lists them", "bad")
    click.echo("next:")
    for name, place in files.placeholders.items():
        show_line(f"  configure '{name}' in {place}; it fails until then", "plain")
    click.echo(f"  agentv-ci validate {options.out} --strict")
    click.echo(f"  agentv-ci eval {options.out} --dry-run")
    if options.check is None and any(
        note.construct.startswith("provider ") for note in files.notes
    ):
        click.echo("  promptfoo eval -o r.json; then add --overwrite --check r.json to this import")
    if options.check is not None and not _show_check(options, Path.cwd()):
        return FAILED
    if written.errors or (options.strict and dropped):
        return FAILED
    return PASSED


def _show_check(options: ImportOptions, cwd: Path) -> bool:
    """Print which verdicts differ from those of the old tool, and return whether none does."""
    from agentv_ci.cli.import_check import (  # it runs evals, which few imports do
        SHOWN,
        compared,
    )

    found = compared(cwd / options.out, cwd / str(options.check), cwd)
    show_line(found.sentence, "bad" if found.different else "good")
    for line in found.different[:SHOWN]:
        show_line(f"  {line}", "plain")
    return not found.different


def _pair(text: str) -> tuple[str, str]:
    field, equals, column = text.partition("=")
    if field not in {"input", "expected", "id"} or not equals or not column:
        raise UsageError(
            f"--map {text}: expected FIELD=COLUMN, with the field input, expected or id"
        )
    return field, column
