"""`agentv-ci init`."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import click
from msgspec.structs import replace

from agentv_ci.app.documents.init import Start, Step, plan_start, write_start
from agentv_ci.cli.console import one_line, short, show_line
from agentv_ci.cli.options import FILE, argument, option, takes
from agentv_ci.errors import PASSED, UsageError
from agentv_ci.scaffold.drafts import AGENT_COMMAND, STARTERS, Choices


@dataclass(frozen=True)
class InitOptions:
    """Options of `init`."""

    folder: str = argument(default=".", type=FILE, metavar="[FOLDER]")
    provider: str | None = option(
        "--provider",
        type=click.Choice([*STARTERS]),
        help="Choose what answers (default: mock, which requires no key).",
    )
    model: str | None = option(
        "--model", metavar="NAME", help="Set the model; at Azure, the deployment."
    )
    template: str | None = option(
        "--command", metavar="TEXT", help="Set the command for --provider cli."
    )
    workflow: bool | None = option(
        "--workflow/--no-workflow", default=None, help="Write a workflow (default: yes)."
    )
    editor: bool | None = option(
        "--editor/--no-editor", default=None, help="Write editor settings (default: yes)."
    )
    silent: bool = option("--yes", "-y", is_flag=True, help="Use the defaults without asking.")


@click.command("init")
@takes(InitOptions)
def command(options: InitOptions) -> int:
    """Set up targets, an example, a GitHub workflow and editor settings in FOLDER (default: the current directory).

    Existing files are never overwritten. On a terminal, without options, `init` asks a few questions first.

    \b
    Examples:
      agentv-ci init
      agentv-ci init shop --provider openai --model gpt-5.6-luna
      agentv-ci init --provider cli --command './my-agent --prompt-file {PROMPT_FILE}' --no-workflow
    """
    default = "mock" if options.template is None else "cli"
    choices = Choices(
        provider=options.provider or default,
        is_chosen=options.provider is not None or options.template is not None,
        model=options.model,
        command=options.template,
        workflow=options.workflow is not False,
        editor=options.editor is not False,
    )
    place = Path.cwd() / options.folder
    given = (options.provider, options.model, options.template, options.workflow, options.editor)
    is_open = all(each is None for each in given) and not options.silent
    if is_open and sys.stdin.isatty() and sys.stdout.isatty():
        plan_start(place, choices)  # report obstacles before asking anything
        choices = _prompt_choices()
    start = plan_start(place, choices)
    write_start(start)
    _show(start)
    return PASSED


def _prompt_choices() -> Choices:
    width = max(map(len, STARTERS))
    for name, starter in STARTERS.items():
        click.echo(f"  {name:<{width}}  {starter.summary}")
    kinds = click.Choice([*STARTERS])
    provider: str = click.prompt("Provider", default="mock", type=kinds, show_choices=False)
    choices = Choices(provider, is_chosen=True)
    if provider == "cli":
        choices = click.prompt("Command", AGENT_COMMAND, value_proc=_fitting(_with_command))
    elif (suggested := STARTERS[provider].model) is not None:
        choices = click.prompt(
            "Model", suggested, value_proc=_fitting(lambda name: replace(choices, model=name))
        )
    return replace(
        choices,
        workflow=click.confirm("Write a GitHub workflow?", default=True),
        editor=click.confirm("Write editor settings and schemas?", default=True),
    )


def _with_command(template: str) -> Choices:
    return Choices("cli", is_chosen=True, command=None if template == AGENT_COMMAND else template)


def _fitting(chosen: Callable[[str], Choices]) -> Callable[[str], Choices]:
    """Make click ask again after an invalid answer."""

    def convert(answer: str) -> Choices:
        try:
            return chosen(answer)
        except UsageError as error:
            raise click.UsageError(error.message) from error

    return convert


def _show(start: Start) -> None:
    written, kept, pasted = start.of("written"), start.of("kept"), start.of("pasted")
    if not written:
        noted = tuple(step for step in kept if step.note)
        why = "" if pasted or noted else ": all files exist already"
        show_line(f"nothing written{why}", "good")
        kept = noted
    _list("written:", written)
    _list("unchanged:", kept)
    for step in pasted:
        _show_text(step)
    _show_next(start)
    if written and start.choices.editor:
        click.echo(
            "editors require a YAML language server; "
            "in VS Code, install the extension redhat.vscode-yaml"
        )


def _show_text(step: Step) -> None:
    """Print the text of a file to write by hand."""
    what = "is outside of FOLDER; create it with:"
    if step.path.exists():
        what = "exists; add these lines to it:"
    show_line(f"{short(step.path, Path.cwd())} {what}", "warn")
    click.echo(step.text, nl=False)


def _list(title: str, steps: tuple[Step, ...]) -> None:
    if steps:
        click.echo(title)
    for step in steps:
        note = f" ({step.note})" if step.note else ""
        show_line(f"  {short(step.path, Path.cwd())}{note}", "plain")


def _show_next(start: Start) -> None:
    starter = start.choices.starter
    names = start.choices.variables
    lines = []
    if start.folder != Path.cwd():
        lines.append(f"cd {shlex.quote(one_line(str(short(start.folder, Path.cwd()))))}")
    if names and starter.is_agent:
        lines.append(f"export {names[0]}=<value>  # unless you are logged in")
    else:
        lines += [f"export {name}=<value>" for name in names]
    lines += ["agentv-ci validate .", "agentv-ci eval"]
    if names or starter.is_agent:
        lines[-1] += "  # add --dry-run to score the reference answer"
    click.echo("next:")
    for line in lines:
        click.echo(f"  {line}")
