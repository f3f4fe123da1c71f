"""The config document: what holds for all eval files of a folder."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from agentv_ci.contracts.base import Authored, Items, Maybe

CONFIG_SCHEMA = "agentv-config-v2"

DEFAULT_GUIDELINE_PATTERNS = ("**/*.instructions.md", "**/instructions/**", "**/*.prompt.md", "**/prompts/**")


class ConfigDocument(Authored):
    """A `.agentv.yaml` or `.agentv/config.yaml`."""

    free_keys: ClassVar[bool] = True

    schema_: Maybe[str] = Field(None, alias="$schema", description=f"`{CONFIG_SCHEMA}`, or the published schema's $id.")
    guideline_patterns: Maybe[Items[str]] = Field(
        None, description="Globs of files that are guidelines, matched against the path from the repository's root."
    )
