"""The targets file of an import."""

from __future__ import annotations

from collections.abc import Mapping

from agentv_ci.contracts.source import TARGETS_SCHEMAS, Source
from agentv_ci.other_tools.imports.draft import Draft, Place, slug
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
    if draft.targets:
        listed = _with_anchors(
            [{"name": name, **settings} for name, settings in draft.targets.items()]
        )
        draft.texts["targets.yaml"] = yaml_text({"$schema": TARGETS_SCHEMAS[0], "targets": listed})


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
