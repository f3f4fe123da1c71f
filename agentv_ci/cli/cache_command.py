"""`agentv-ci cache`."""

from __future__ import annotations

from pathlib import Path

import click

from agentv_ci.base.text import counted
from agentv_ci.cli.console import short
from agentv_ci.cli.options import FILE, color_option
from agentv_ci.errors import UsageError
from agentv_ci.execute.stores import CACHE, Contents, Store
from agentv_ci.load.discover import find_root

folder_option = click.option(
    "--cache-dir",
    type=FILE,
    metavar="DIR",
    help=f"Use the cache in DIR (default: {CACHE} of the repository).",
)


@click.group("cache")
def command() -> None:
    """Inspect or clear the response cache.

    \b
    Examples:
      agentv-ci cache info
      agentv-ci cache clear
    """


@command.command()
@folder_option
@color_option
def info(cache_dir: str | None) -> int:
    """Show how many answers the cache holds, and their size."""
    folder = _folder(cache_dir)
    click.echo(f"{folder}: {_described(Store(folder).contents())}")
    return 0


@command.command()
@folder_option
@color_option
def clear(cache_dir: str | None) -> int:
    """Remove all cached answers; keep other files."""
    folder = _folder(cache_dir)
    click.echo(f"{folder}: {_described(Store(folder).clear())} removed")
    return 0


def _folder(cache_dir: str | None) -> Path:
    cwd = Path.cwd()
    folder = Path(cache_dir or short(find_root(cwd / "any", cwd) / CACHE, cwd))
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"--cache-dir: '{folder}' is not a directory")
    return folder


def _described(contents: Contents) -> str:
    return f"{counted(contents.files, 'answer')}, {contents.size_bytes / 1024:,.1f} KiB"
