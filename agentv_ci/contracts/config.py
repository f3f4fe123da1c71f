"""The config document: what holds for all eval files of a folder."""

from typing import Annotated, ClassVar

from pydantic import Field

from agentv_ci.contracts.base import Authored, Items, Maybe
from agentv_ci.contracts.diagnostics import RuleSetting

CONFIG_SCHEMA = "agentv-config-v2"

DEFAULT_GUIDELINE_PATTERNS = ("**/*.instructions.md", "**/instructions/**", "**/*.prompt.md", "**/prompts/**")


Dollars = Annotated[float, Field(ge=0)]


class Price(Authored):
    """What a model costs, in US dollars for a million tokens."""

    input_per_mtok: Dollars = Field(description="Tokens read.")
    output_per_mtok: Dollars = Field(description="Tokens written.")
    cached_input_per_mtok: Maybe[Dollars] = Field(None, description="Tokens read from a cache; default: as input.")


class ConfigDocument(Authored):
    """A `.agentv.yaml` or `.agentv/config.yaml`."""

    free_keys: ClassVar[bool] = True

    schema_: Maybe[str] = Field(None, alias="$schema", description=f"`{CONFIG_SCHEMA}`, or the published schema's $id.")
    guideline_patterns: Maybe[Items[str]] = Field(
        None, description="Globs of files that are guidelines, matched against the path from the repository's root."
    )
    rules: Maybe[dict[str, RuleSetting]] = Field(
        None, description="Rule id → error, warning or off: what `validate` makes of it."
    )
    prices: Maybe[dict[str, Price]] = Field(None, description="Model → its price, over the built-in table.")
