"""How Git is run on trees and repositories that others have made.

Nothing in them is executed. Git executes what a repository's configuration names: hooks, filters,
monitors, helpers (git-config(1)). It finds one in any folder that looks like a bare repository, and
takes any protocol for an address (gitremote-helpers(7)).
"""

from __future__ import annotations

from collections.abc import Mapping

from agentv_ci.base.mappings import without

SETTINGS = (
    # In a container the checkout belongs to another user, which git refuses to read by default.
    # Files that look like a bare repository could claim any commit, and run their filters.
    *("safe.directory=*", "safe.bareRepository=explicit"),
    *("core.hooksPath=/dev/null", "core.fsmonitor=false", "core.attributesFile=/dev/null"),
    *("gc.auto=0", "maintenance.auto=false"),
)
ALWAYS = {
    "LC_ALL": "C",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_ALLOW_PROTOCOL": "file:git:http:https:ssh",
    "GIT_NO_LAZY_FETCH": "1",
}
ELSEWHERE = frozenset(
    {
        *(
            "GIT_DIR",
            "GIT_COMMON_DIR",
            "GIT_WORK_TREE",
            "GIT_INDEX_FILE",
            "GIT_NAMESPACE",
            "GIT_PREFIX",
        ),
        *(
            "GIT_OBJECT_DIRECTORY",
            "GIT_ALTERNATE_OBJECT_DIRECTORIES",
            "GIT_EXTERNAL_DIFF",
            "GIT_EXEC_PATH",
        ),
    }
)
"""Variables that would lead to another repository, or to other programs."""
NO_REPOSITORY = {"GIT_DIR": "/dev/null"}
"""Variables for a tree that must not be taken for a repository."""


def git_command(*words: str, settings: tuple[str, ...] = ()) -> tuple[str, ...]:
    """Return a command of Git that executes nothing of a repository."""
    options: list[str] = []
    for setting in (*SETTINGS, *settings):
        options += ("-c", setting)
    return ("git", *options, *words)


def with_credentials(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of a command that reaches remotes as the user does.

    It has the user's settings.
    """
    return without(environ, ELSEWHERE) | ALWAYS


def without_settings(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of a command without anyone's settings, credentials or variables."""
    return {
        "PATH": environ.get("PATH", ""),
        "HOME": "/nonexistent",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": "/dev/null",
        "GIT_ATTR_NOSYSTEM": "1",
        **ALWAYS,
    }
