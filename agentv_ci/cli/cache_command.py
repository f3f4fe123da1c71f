"""`agentv-ci cache`."""

from __future__ import annotations

from pathlib import Path

import click

from agentv_ci.cli.options import FILE, color_option
from agentv_ci.errors import UsageError
from agentv_ci.execute.stores import CACHE, Contents, Store
from agentv_ci.text import counted

folder_option = click.option(
    "--cache-dir", type=FILE, metavar="DIR", default=str(CACHE), show_default=True, help="Use the cache in DIR."
)


@click.group("cache")
def command() -> None:
    """Inspect or clear the response cache.

    \b
    Examples:
      agentv-ci cache info
      agentv-ci cache clear --cache-dir /tmp/answers
    """


@command.command()
@folder_option
@color_option
def info(cache_dir: str) -> int:
    """Show how many answers the cache holds, and their size."""
    click.echo(f"{cache_dir}: {_described(_store(cache_dir).contents())}")
    return 0


@command.command()
@folder_option
@color_option
def clear(cache_dir: str) -> int:
    """Remove all cached answers; keep other files."""
    click.echo(f"{cache_dir}: {_described(_store(cache_dir).clear())} removed")
    return 0


def _store(cache_dir: str) -> Store:
    folder = Path(cache_dir)
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"--cache-dir: '{cache_dir}' is not a directory")
    return Store(folder)


def _described(contents: Contents) -> str:
    return f"{counted(contents.files, 'answer')}, {contents.size_bytes / 1024:,.1f} KiB"
