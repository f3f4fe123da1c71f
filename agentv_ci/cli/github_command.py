"""`agentv-ci github`: the steps of the GitHub Action.

Every option can be set by an environment variable. The action passes its inputs that way, so that
they are never code.
"""

from __future__ import annotations

from collections.abc import Mapping

import click

from agentv_ci.cli.lazy_group import LazyGroup

COMMANDS: Mapping[str, str] = {
    "base": "Read what counts from a pull request's base branch.",
    "run": "Run evals and keep the results in a directory.",
    "publish": "Publish results to GitHub.",
    "issue": "Keep one issue about shifts, as long as there are any.",
}


@click.group("github", cls=LazyGroup, summaries=COMMANDS, prefix="github_")
def command() -> None:
    """Run evaluations in GitHub Actions and publish the results.

    Agents run in `run`, which has no token; `base` before it and `publish` after it have the token.

    \b
    Examples:
      agentv-ci github base --baseline .agentv/baseline.json
      agentv-ci github run --evals evals/ --workers 4
      agentv-ci github publish --comment never
    """
