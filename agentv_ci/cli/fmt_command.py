"""`agentv-ci fmt`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import click

from agentv_ci.app.documents.fmt import FormattedFile, format_paths, write
from agentv_ci.base.text import counted, listed
from agentv_ci.cli.console import one_line, short, show_diagnostics, show_line
from agentv_ci.cli.options import option, paths_argument, takes
from agentv_ci.errors import FAILED, INVALID, PASSED, NothingToRun, UsageError
from agentv_ci.load.discover import NO_EVALS_HINT


@dataclass(frozen=True)
class FmtOptions:
    """Options of `fmt`."""

    paths: tuple[str, ...] = paths_argument()
    check: bool = option(
        "--check", is_flag=True, help="Write nothing; list the files that would change and fail."
    )
    diff: bool = option(
        "--diff", is_flag=True, help="Write nothing; print what would change and fail."
    )


@click.command("fmt")
@takes(FmtOptions)
def command(options: FmtOptions) -> int:
    """Rewrite eval, targets and config files and judge sets in one style, without changing their data.

    PATH is a file, a folder or a glob (default: evals/). Keys get their current names in snake_case, lists and mappings
    an indentation of two spaces, and cases a blank line between them. Comments, anchors, quotes and the order of keys
    stay, and texts are never wrapped. Exit code 0: done; 1: files would change, with --check or --diff; 2: a file is
    invalid YAML and stays as it is; 3: nothing to format.

    \b
    Examples:
      agentv-ci fmt evals/
      agentv-ci fmt evals/ --check
      agentv-ci fmt evals/example.test.yaml --diff
    """
    if "-" in options.paths:
        raise UsageError("standard input cannot be formatted; name files or folders")
    cwd = Path.cwd()
    files = list(format_paths(options.paths, cwd=cwd))
    if not files:
        raise NothingToRun(
            f"no eval, targets or config document in {listed(options.paths)}", NO_EVALS_HINT
        )
    changed = [file for file in files if file.is_changed]
    refused = [file for file in files if file.refusals]
    for file in files:
        show_diagnostics(file.refusals, err=True)
    writes = not (options.check or options.diff)
    for file in changed:
        _show(file, options, cwd)
    done = "formatted" if writes else "would change"
    counts = [
        f"{counted(len(changed), 'file')} {done}",
        f"{len(files) - len(changed) - len(refused)} unchanged",
    ]
    code = PASSED
    if changed and not writes:
        code = FAILED
    if refused:
        code = INVALID
        counts.append(f"{len(refused)} refused")
    show_line(", ".join(counts), "good" if code == PASSED else "bad", err=options.diff)
    return code


def _show(file: FormattedFile, options: FmtOptions, cwd: Path) -> None:
    """Write a changed file, or print what would change."""
    name = short(file.path, cwd)
    if options.diff:
        click.echo("".join(file.diff(str(name))), nl=False)
    elif options.check:
        click.echo(f"would format {one_line(str(name))}")
    else:
        write(file)
        click.echo(f"formatted {one_line(str(name))}")
