"""The targets file of an import."""

from __future__ import annotations

import re
from collections.abc import Mapping

from agentv_ci.contracts.source import TARGETS_SCHEMAS, Source, relative
from agentv_ci.other_tools.imports.draft import STAND_IN, Draft, Place, slug
from agentv_ci.other_tools.imports.yaml_text import Alias, Anchored, Block, Node, yaml_text

JUDGES_ITSELF = frozenset(
    {"openai", "azure-openai", "anthropic", "gemini", "openrouter", "ollama", "vllm", "mock"}
)
JUDGE = "judge"


def add_targets_file(draft: Draft, source: Source) -> None:
    """Add `targets.yaml`.

    Programs whose answers a model judges get a judge, which fails until it is configured.
    """
    for name, settings in draft.targets.items():
        if (
            draft.has_judges
            and settings["provider"] not in JUDGES_ITSELF
            and "judge_target" not in settings
        ):
            draft.targets[name] = {**settings, "judge_target": JUDGE}
            draft.named.setdefault(JUDGE, Place(source))
    for settings in tuple(draft.targets.values()):
        judge = settings.get("judge_target")
        if isinstance(judge, str):
            draft.named.setdefault(judge, Place(source))
    for name, place in draft.named.items():
        if name not in draft.targets:
            draft.stand_in(name, place, f"target '{name}'", "no file defines it")
    if not draft.targets:
        return
    where = relative(draft.out / "targets.yaml", draft.root)
    named = [
        {"name": name, **settings, **_message(name, settings, where)}
        for name, settings in draft.targets.items()
    ]
    written = yaml_text({"$schema": TARGETS_SCHEMAS[0], "targets": _with_anchors(named)})
    lines = written.split("\n")
    for number, line in enumerate(lines, 1):
        if match := _PLACEHOLDER.search(line):
            draft.placeholders[match[1]] = f"{where}:{number}"
            lines[number - 1] = line.replace(f"{where}:LINE", f"{where}:{number}")
    draft.texts["targets.yaml"] = "\n".join(lines)


_PLACEHOLDER = re.compile(r"placeholder: configure ''(.*?)'' in .*:LINE")


def _message(name: str, settings: Mapping[str, Node], where: str) -> dict[str, Node]:
    """Return the error of a target that fails until it is configured, with its place."""
    if settings != STAND_IN:
        return {}
    message = f"placeholder: configure '{name}' in {where}:LINE"
    return {"error": {"kind": "request", "message": message}}


def _with_anchors(targets: list[dict[str, Node]]) -> list[dict[str, Node]]:
    """Return targets that write a mapping of several bodies once, under an anchor.

    Such a mapping may be a schema.
    """
    bodies = [_mapping(target.get("extra_body")) for target in targets]
    shared = [
        {key: _anchored(key, [other.get(key) for other in bodies], index) for key in body}
        for index, body in enumerate(bodies)
    ]
    return [
        {**target, "extra_body": body} if body else target
        for target, body in zip(targets, shared, strict=True)
    ]


def _anchored(key: str, values: list[Node], index: int) -> Node:
    """Return a value of a body.

    The first of several equal mappings becomes an anchor, the others its alias.
    """
    value = values[index]
    if not _mapping(value) or values.count(value) == 1:
        return value
    first = values.index(value)
    name = slug(f"{key}-{first + 1}")
    if first == index:
        return Anchored(name, Block(_mapping(value)))
    return Alias(name)


def _mapping(value: Node) -> Mapping[str, Node]:
    if isinstance(value, dict):
        return value
    return {}
