"""Workspaces of AgentV → workspaces."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Mapping
from itertools import chain
from pathlib import Path

from agentv_ci.base.mappings import without
from agentv_ci.contracts.source import normal
from agentv_ci.other_tools.imports.agentv_templates import document
from agentv_ci.other_tools.imports.draft import STAND_IN, Draft, Fields, Place, items_of
from agentv_ci.other_tools.imports.yaml_text import Node

CAN_WORK = frozenset({"cli", "codex", "claude-code", "copilot-cli", "gemini-cli", "mock"})
"""Providers whose targets work in a workspace."""
FRESH = "each trial gets a fresh copy"
GRADERS = (
    f"{FRESH}; scripts of graders get the answer, "
    "and evaluators such as `command` and `diff` the files"
)
BESIDE = (
    "commands of AgentV run beside the eval file; write those that complete a workspace as `setup`"
)


def workspace(draft: Draft, place: Place) -> dict[str, Node]:
    """Return a workspace; empty if nothing is in it."""
    if isinstance(place.value, str):
        found = document(draft, place.source.resolve(place.value.removeprefix("file://")))
        if found is None:
            draft.note("dropped", place, "workspace", f"'{place.value}' was not found")
            return {}
        place = Place(found)
    if "workdir" in _mapping(place.value):
        return _recipe(draft, draft.fields(place, "environment"))
    return _made(draft, draft.fields(place, "workspace"))


def _recipe(draft: Draft, fields: Fields) -> dict[str, Node]:
    """Return the workspace of an `environment` of AgentV 5."""
    made: dict[str, Node] = {}
    source = fields.place.source
    folder = source.resolve(str((fields.place / "workdir").value))
    kind = (fields.place / "type").value
    if kind == "docker":
        made["isolation"] = "container"
        fields.ignore("type")
        fields.drop({"workdir"}, "the agent works in a folder of its own")
        fields.approximate("resources", "write `limits`")
        if (image := fields.text("image")) is not None:
            made["image"] = image
        fields.drop({"context", "dockerfile"}, "build the image before, and write `image`")
    else:
        has_files = any(draft.reads.matching(folder / "**" / glob) for glob in ("*", ".*"))
        if kind == "host" and has_files:
            made["from"] = draft.reference(folder)
        fields.ignore(*({"type"} if kind == "host" else ()))
        fields.take("workdir")
    if (setup := fields.at("setup")) is not None:
        inner = draft.fields(setup, "environment.setup")
        command = inner.at("command")
        start = source.resolve(inner.text("cwd") or ".")
        if command is not None:
            made["setup"] = [_argv(draft, command, start, folder)]
        inner.end("setup has no such setting")
    fields.drop({"env"}, "write `env` of the target")
    fields.end("workspaces have no such setting")
    return made


def _argv(draft: Draft, command: Place, start: Path, folder: Path) -> list[str]:
    """Return a command that runs in the workspace: files keep their place in the repository."""
    words = [str(word.value) for word in command.items]
    paths = [start / word if not word.startswith("-") else start for word in words]
    found: list[str] = []
    for word, path in zip(words, map(normal, paths), strict=True):
        if path == folder:
            found.append(".")
        elif path != start and draft.reads.matching(path):
            found.append(f'"$AGENTV_REPOSITORY/{path.relative_to(draft.root).as_posix()}"')
        else:
            found.append(shlex.quote(word))
    script = " ".join(found)
    return ["sh", "-c", script] if "$" in script else shlex.split(script)


def can_work(draft: Draft, place: Place, targets: Collection[str]) -> bool:
    """Whether targets can work in a workspace.

    Commands then run in it, not in a folder of their own.
    """
    refused = [
        name
        for name in sorted(targets)
        if draft.targets.get(name, STAND_IN)["provider"] not in CAN_WORK
    ]
    if refused:
        draft.note(
            "dropped",
            place,
            "workspace",
            f"target '{refused[0]}' is not a command, and cannot work in one",
        )
        return False
    draft.note("approximated", place, "workspace", GRADERS)
    for name in sorted(targets):
        _without_folder(draft, place, name)
    return True


def _made(draft: Draft, fields: Fields) -> dict[str, Node]:
    made: dict[str, Node] = {}
    template, repositories, hooks = fields.at("template"), fields.at("repos"), fields.at("hooks")
    if template is not None:
        folder = template.source.resolve(str(template.value))
        if draft.reads.matching(folder / "**" / "*") or draft.reads.matching(folder / "**" / ".*"):
            made["from"] = draft.reference(folder)
        else:
            draft.note(
                "dropped", template, "workspace.template", f"'{template.value}' has no files"
            )
    commands = list(chain.from_iterable(_cloned(draft, place) for place in items_of(repositories)))
    if commands:
        made["setup"] = commands
    _hooks(draft, hooks)
    fields.drop(
        {"docker"},
        "the agent would work in the image, too: write `image` and `isolation: container` for that",
    )
    for key in ("isolation", "scope", "mode"):
        fields.approximate(key, FRESH)
    fields.drop({"path"}, "agents work in copies, never in a folder of yours")
    fields.end("workspaces have no such setting")
    return made


def _cloned(draft: Draft, place: Place) -> list[Node]:
    """Return the commands that put a repository into the workspace."""
    fields = draft.fields(place, "workspace.repos")
    source = _mapping(fields.take("source"))
    checkout = _mapping(fields.take("checkout"))
    url = fields.text("repo", "url") or source.get("url")
    path = fields.text("path") or "."
    reference = fields.text("commit", "ref") or checkout.get("ref")
    fields.approximate("clone", "cloned as a whole")
    fields.end("not a setting of git clone")
    if not isinstance(url, str):
        draft.note(
            "dropped", place, "workspace.repos", "only repositories with an address are cloned"
        )
        return []
    clone: list[Node] = ["git", "clone", "--quiet", url, path]
    if reference:
        return [clone, ["git", "-C", path, "checkout", "--quiet", str(reference)]]
    return [clone]


def _hooks(draft: Draft, place: Place | None) -> None:
    if place is None:
        return
    fields = draft.fields(place, "workspace.hooks")
    for name in ("before_all", "before_each", "after_each", "after_all", "on_reuse", "on_finish"):
        hook = fields.at(name)
        if hook is not None:
            inner = draft.fields(hook, f"workspace.hooks.{name}")
            inner.approximate("reset", FRESH)
            inner.drop({"command", "script"}, BESIDE)
            inner.ignore("timeout_ms", "cwd")
    fields.end("workspaces have no hooks")


def _without_folder(draft: Draft, place: Place, name: str) -> None:
    settings = draft.targets.get(name, STAND_IN)
    if "cwd" in settings:
        draft.targets[name] = without(settings, {"cwd"})
        draft.note(
            "approximated", place, f"cwd of target '{name}'", "its command runs in the workspace"
        )


def _mapping(value: object) -> Mapping[str, object]:
    if isinstance(value, dict):
        return value
    return {}
