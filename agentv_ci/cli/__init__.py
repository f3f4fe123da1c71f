"""The command line: the only place that prints and reads the environment.

Commands load when they are called.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from types import ModuleType

import click

from agentv_ci.cli.console import show_annotation, wants_color
from agentv_ci.cli.exit import end, interruptible
from agentv_ci.cli.lazy_group import LazyGroup
from agentv_ci.version import __version__

COMMANDS: Mapping[str, str] = {
    "init": "Set up targets, an example, a workflow and editor settings.",
    "import": "Convert evaluations of other tools to eval files.",
    "validate": "Check documents and show the line of every mistake.",
    "explain": "Say what a rule means, with examples.",
    "fmt": "Rewrite documents in one style.",
    "compile": "Compile eval files into one JSON plan.",
    "prove": "Show which wrong answers the cases would pass.",
    "eval": "Run eval files or a plan and score the answers.",
    "experiment": "Compare prompts, models or commits over the same cases, until it is decided.",
    "shards": "Split a run for several machines and estimate the time of each.",
    "rescore": "Score the answers of an earlier run again.",
    "report": "Report on finished results; merge shards into one run.",
    "show": "Show all that is known of one case of a run.",
    "adopt": "Turn results of other tools into results of agentv-ci.",
    "compare": "Show what got worse between two runs.",
    "baseline": "Accept a run as the baseline for later runs.",
    "history": "Keep what every case did in every run, and find unhealthy cases.",
    "check": "Run validators over finished results.",
    "judge-check": "Measure how well a judge agrees with human labels.",
    "cache": "Inspect or clear the response cache.",
    "mcp": "Serve tools for agents over the Model Context Protocol.",
    "schema": "List or print the published JSON Schemas.",
    "github": "Run evaluations in GitHub Actions and publish the results.",
}
ALIASES: Mapping[str, str] = {"run": "eval"}


COLOR = click.Choice(["auto", "always", "never"])


@click.group(
    cls=LazyGroup,
    summaries=COMMANDS,
    aliases=ALIASES,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Exit codes: 0 passed, 1 not passed, 2 invalid input, 3 nothing to run, "
    "4 infrastructure errors, 5 budget exhausted, 6 undecided, 70 a bug in agentv-ci, "
    "130 interrupted. See README.md for documentation.",
)
@click.version_option(__version__, prog_name="agentv-ci", message="%(prog)s %(version)s")
@click.option(
    "--color", type=COLOR, default="auto", help="Control colored output; NO_COLOR is respected."
)
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


def _leave_out_pydantic_plugins() -> None:
    """Keep pydantic from searching every installed package for plugins.

    That takes as long as importing click, and a plugin would watch all that is validated here.
    """
    loader = ModuleType("pydantic.plugin._loader")
    setattr(loader, "get_plugins", tuple)  # noqa: B010  # mypy knows no attribute of a new module
    sys.modules.setdefault(loader.__name__, loader)


def run(arguments: Sequence[str]) -> int:
    """Run the command line and return its exit code."""
    _leave_out_pydantic_plugins()
    with interruptible():
        ended = end(
            lambda: cli.main(args=list(arguments), prog_name="agentv-ci", standalone_mode=False)
        )
    if ended.reason is not None and list(arguments[:1]) == ["github"]:
        show_annotation(ended.reason)
    return ended.exit_code
