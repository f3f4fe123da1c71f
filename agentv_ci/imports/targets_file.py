"""The targets file of an import."""

from __future__ import annotations

from agentv_ci.contracts.source import Source
from agentv_ci.contracts.targets import TARGETS_SCHEMAS
from agentv_ci.imports.draft import Draft, Place
from agentv_ci.imports.yaml_text import yaml_text

JUDGES_ITSELF = frozenset({"openai", "azure-openai", "anthropic", "gemini", "openrouter", "ollama", "vllm", "mock"})
JUDGE = "judge"


def add_targets_file(draft: Draft, source: Source) -> None:
    """Add `targets.yaml`; programs whose answers a model judges get a judge, which fails until it is configured."""
    for name, settings in draft.targets.items():
        if draft.has_judges and settings["provider"] not in JUDGES_ITSELF and "judge_target" not in settings:
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
        listed = [{"name": name, **settings} for name, settings in draft.targets.items()]
        draft.texts["targets.yaml"] = yaml_text({"$schema": TARGETS_SCHEMAS[0], "targets": listed})
