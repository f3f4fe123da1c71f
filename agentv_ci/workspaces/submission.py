"""Which changes of an agent reach its graders."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from posixpath import dirname, join, normpath

from agentv_ci.contracts.plan_parts import PlanWorkspace
from agentv_ci.contracts.results import Change
from agentv_ci.workspaces.globs import matches

GUARDED = (
    # Read by programs without being named: shells, Git, editors, linters, package managers.
    "**/.*",
    "**/.*/**",
    # Executed when Python starts, or pytest.
    *(
        "**/conftest.py",
        "**/{site,user}customize.py",
        "**/{site,user}customize/**",
        "**/*.pth",
        "**/*.egg-link",
    ),
    *("**/*.{dist,egg}-info/**", "**/pyvenv.cfg", "**/*._pth"),
    # Installed packages, test runners among them.
    *("**/{site,dist}-packages/**", "**/{venv,virtualenv}/**", "**/node_modules/**"),
    # Settings of test runners and builds.
    *(
        "**/pytest.{ini,toml}",
        "**/tox.{ini,toml}",
        "**/setup.{cfg,py}",
        "**/pyproject.toml",
        "**/noxfile.py",
    ),
    *(
        "**/package.json",
        "**/{jest,vitest,babel,mocha}.config.*",
        "**/{GNU,}[Mm]akefile",
        "**/*.mk",
    ),
    # Executed in place of the interpreter's own.
    "**/*.{so,pyd,dylib,dll}",
)
"""Globs of the paths that graders get only if `submit_guarded` names them."""
TEST_TOOLS = frozenset(
    {
        *(
            "pytest",
            "_pytest",
            "pluggy",
            "py",
            "iniconfig",
            "packaging",
            "nose",
            "hypothesis",
            "coverage",
            "xdist",
        ),
        *(
            "execnet",
            "exceptiongroup",
            "tomli",
            "colorama",
            "pygments",
            "attr",
            "attrs",
            "typing_extensions",
        ),
        *("setuptools", "pkg_resources", "_distutils_hack"),
    }
)
SHADOWED = frozenset(sys.stdlib_module_names) | TEST_TOOLS
"""Names of Python modules that the interpreter or a test runner imports."""


def submitted(found: Iterable[Change], workspace: PlanWorkspace) -> tuple[list[Change], list[str]]:
    """Return the changes that graders get, and those withheld, each as `path (reason)`."""
    chosen: list[Change] = []
    withheld: list[str] = []
    for each in found:
        if (reason := _refusal(each, workspace)) is None:
            chosen.append(each)
        else:
            withheld.append(f"{each.path} ({reason})")
    return chosen, withheld


def _refusal(change: Change, workspace: PlanWorkspace) -> str | None:
    """Return why graders do not get a change."""
    if change.link is not None and not _stays_inside(change.path, change.link):
        return "a link that leaves the workspace"
    if matches(change.path, workspace.submit_guarded):
        return None
    if workspace.submit and not matches(change.path, workspace.submit):
        return "not in submit"
    if any(matches(name, GUARDED) for name in _names(change)):
        return "guarded"
    is_new = change.kind == "added" or change.link is not None
    if is_new and any(map(_shadows, _names(change))):
        return "named like a module of Python"
    return None


def _names(change: Change) -> Iterator[str]:
    """Yield the paths by which a change may be found.

    A link also has what it leads to, which may be a folder of modules.
    """
    yield change.path
    if change.link is not None:
        yield f"{change.path}/__init__.py"


def _stays_inside(path: str, target: str) -> bool:
    """Whether a link stays in its tree, whatever other links there are.

    `..` may only be at its beginning.
    """
    rest = target
    while rest.startswith("../"):
        rest = rest[3:]
    way = normpath(join(dirname(path), target))
    return not (
        target.startswith("/") or ".." in rest.split("/") or way == ".." or way.startswith("../")
    )


def _shadows(path: str) -> bool:
    """Whether Python may import a file instead of a module of its own.

    The file may be in any folder, as any may be on Python's path.
    """
    return not SHADOWED.isdisjoint(_modules(path))


def _modules(path: str) -> Iterator[str]:
    *folders, name = path.split("/")
    if name.endswith(".py"):
        yield from folders
        yield name.removesuffix(".py")
