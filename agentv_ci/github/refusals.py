"""Why something of a run is not on GitHub."""

from __future__ import annotations


class NotPublished(Exception):
    """The reason, as one sentence."""


class NotPermitted(NotPublished):
    """The token lacks a permission.

    Workflows that did not ask for it, and those of forks, do not have it.
    """
