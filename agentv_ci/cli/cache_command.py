"""`agentv-ci cache`."""

from __future__ import annotations

from pathlib import Path

import click

from agentv_ci.cli.options import FILE, color_option
from agentv_ci.errors import UsageError
from agentv_ci.execute.stores import CACHE, Contents, Store
from agentv_ci.text import counted

folder_option = click.option(
    "--cache-dir", type=FILE, metavar="DIR", default=str(CACHE), show_default=True, help="Where the cache lies."
)


@click.group("cache")
def command() -> None:
    """Look at the response cache, or empty it.

    \b
    Examples:
      agentv-ci cache info
      agentv-ci cache clear --cache-dir /tmp/answers
    """


@command.command()
@folder_option
@color_option
def info(cache_dir: str) -> int:
    """Say how many answers there are, and how large they are."""
    click.echo(f"{cache_dir}: {_described(_store(cache_dir).contents())}")
    return 0


@command.command()
@folder_option
@color_option
def clear(cache_dir: str) -> int:
    """Remove all answers; other files stay."""
    click.echo(f"{cache_dir}: {_described(_store(cache_dir).clear())} removed")
    return 0


def _store(cache_dir: str) -> Store:
    folder = Path(cache_dir)
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"--cache-dir: '{cache_dir}' is no folder")
    return Store(folder)


def _described(contents: Contents) -> str:
    return f"{counted(contents.files, 'answer')}, {contents.size_bytes / 1024:,.1f} KiB"
