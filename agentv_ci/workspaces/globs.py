"""Globs of paths in a workspace."""

from __future__ import annotations

from collections.abc import Iterable


def matches(path: str, globs: Iterable[str]) -> bool:
    """Whether a path, or a folder that it is in, matches a glob.

    Globs have `**`, `*`, `{a,b}` and literal parts.
    """
    from wcmatch import glob  # only workspaces and guidelines need it

    patterns: list[str] = []
    for pattern in globs:
        patterns += [pattern, f"{pattern.rstrip('/')}/**"]
    flags = glob.GLOBSTAR | glob.DOTGLOB | glob.FORCEUNIX | glob.BRACE
    return bool(patterns) and bool(glob.globmatch(path, patterns, flags=flags))
