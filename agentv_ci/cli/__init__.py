"""The command line: the only place that prints and reads the environment. Commands load when they are called."""

from __future__ import annotations

import contextlib
import importlib
import os
import sys
from collections.abc import Mapping, Sequence

import click

from agentv_ci import __version__
from agentv_ci.cli.output import show_diagnostics, show_error
from agentv_ci.errors import BUG, INFRASTRUCTURE, INTERRUPTED, CannotGoOn, InvalidInput

COMMANDS: Mapping[str, str] = {
    "init": "Begin: targets, an example, a workflow and editor settings; overwrites nothing.",
    "validate": "Check documents; every mistake with its line.",
    "compile": "Compile eval files into one JSON plan.",
    "eval": "Run eval files or a plan and judge the answers.",
    "rescore": "Score the answers of an earlier run again, asking no target.",
    "report": "Report results again, or several files as one run.",
    "compare": "Say what has become worse from one run to another.",
    "baseline": "Keep what a run came to, for later ones to be compared with.",
    "check": "Run validators over results.",
    "judge-check": "Measure a judge against answers that people have judged.",
    "cache": "Look at the response cache, or empty it.",
    "schema": "List or print the published JSON Schemas.",
}
ALIASES: Mapping[str, str] = {"run": "eval"}


class _ReaderHasGone(Exception):
    """Standard output leads nowhere any more."""


class LazyGroup(click.Group):
    """A group whose commands are modules of this package, imported when they are called."""

    def invoke(self, ctx: click.Context) -> object:
        """Run a command; click itself would end the process with status 1, which means that the answer is no."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError as error:
            raise _ReaderHasGone from error

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Name the commands in the order people need them."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import one command."""
        name = ALIASES.get(cmd_name, cmd_name)
        if name not in COMMANDS:
            return None
        module = importlib.import_module(f"agentv_ci.cli.{name.replace('-', '_')}_command")
        command: click.Command = module.command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Say which command was probably meant."""
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            from agentv_ci.suggestions import did_you_mean

            raise click.UsageError(error.message + did_you_mean(args[0], COMMANDS), ctx) from error


COLOR = click.Choice(["auto", "always", "never"])


@click.group(
    cls=LazyGroup,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Documentation and examples: README.md. Exit codes: 0 passed, 1 not passed, 2 invalid input, "
    "3 nothing to run, 4 infrastructure errors, 5 budget used up, 70 a bug, 130 interrupted.",
)
@click.version_option(__version__, prog_name="agentv-ci", message="%(prog)s %(version)s")
@click.option("--color", type=COLOR, default="auto", help="When to use colours; NO_COLOR is honoured.")
@click.pass_context
def cli(ctx: click.Context, color: str) -> None:
    """Check, compile and run evaluations of AI agents described in YAML.

    \b
    Examples:
      agentv-ci validate evals/
      agentv-ci eval evals/example.test.yaml --workers 4 --junit junit.xml
      agentv-ci compile evals/ --out plan.json
    """
    ctx.color = wants_color(color)


def wants_color(choice: str) -> bool | None:
    """Return what click does with colours: True, False, or None to look at the terminal."""
    if choice != "auto":
        return choice == "always"
    return False if os.environ.get("NO_COLOR") else None


def run(arguments: Sequence[str]) -> int:
    """Run the command line and return its exit code."""
    try:
        result = cli.main(args=list(arguments), prog_name="agentv-ci", standalone_mode=False)
        return result if isinstance(result, int) else 0
    except (click.exceptions.Abort, KeyboardInterrupt):
        show_error("interrupted", None)
        return INTERRUPTED
    except click.ClickException as error:
        error.show()
        return 2
    except InvalidInput as error:
        show_diagnostics(error.diagnostics, err=True)
        return error.exit_code
    except CannotGoOn as error:
        show_error(error.message, error.hint)
        return error.exit_code
    except _ReaderHasGone:
        # There is nobody left to tell.
        _give_up_stdout()
        return 141
    except OSError as error:
        # A full disk or a closed terminal is nobody's bug.
        _give_up_stdout()
        with contextlib.suppress(OSError):
            show_error(f"cannot go on: {error}", None)
        return INFRASTRUCTURE
    except Exception:  # noqa: BLE001  # the last resort: whatever it is, it is our fault
        import traceback

        show_error("this is a bug in agentv-ci; please report it with what follows", None)
        click.echo(traceback.format_exc(), err=True)
        return BUG


def _give_up_stdout() -> None:
    """Send what is still buffered nowhere; else the interpreter tries again at its end and spoils the exit status."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
