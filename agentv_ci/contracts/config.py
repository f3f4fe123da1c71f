"""The config document: settings for all eval files of a folder."""

from typing import Annotated, ClassVar

from pydantic import Field

from agentv_ci.contracts.base import AtLeastOne, Authored, Items, Maybe, meanings
from agentv_ci.contracts.diagnostics import RuleSetting
from agentv_ci.contracts.source import CONFIG_SCHEMA

DEFAULT_GUIDELINE_PATTERNS = (
    "**/*.instructions.md",
    "**/instructions/**",
    "**/*.prompt.md",
    "**/prompts/**",
)


SEVERITIES = meanings(
    error="Nothing runs before it is corrected.",
    warning="It is reported; --strict fails.",
    off="It is not reported.",
)

Dollars = Annotated[float, Field(ge=0)]


class Rates(Authored):
    """US dollars per million tokens."""

    input_per_mtok: Dollars = Field(description="Input tokens.")
    output_per_mtok: Dollars = Field(description="Output tokens.")
    cached_input_per_mtok: Maybe[Dollars] = Field(
        None, description="Cached input tokens; default: as input tokens."
    )
    cache_write_per_mtok: Maybe[Dollars] = Field(
        None, description="Input tokens written to the cache; default: 1.25 times as input tokens."
    )
    cache_write_1h_per_mtok: Maybe[Dollars] = Field(
        None,
        description="Input tokens written to the cache for an hour; default: twice as input "
        "tokens.",
    )


class LongContext(Rates):
    """The prices of requests with long input, for all of their tokens."""

    above_tokens: AtLeastOne = Field(description="A request with more input tokens is long.")


class Price(Rates):
    """The price of a model, in US dollars per million tokens."""

    long_context: Maybe[LongContext] = Field(
        None,
        description="Prices of requests with long input; default: as others. Agents' sums are "
        "never long.",
    )


class ConfigDocument(Authored):
    """A `.agentv.yaml` or `.agentv/config.yaml` file."""

    free_keys: ClassVar[bool] = True

    schema_: Maybe[str] = Field(
        None,
        alias="$schema",
        description=f"`{CONFIG_SCHEMA}` or the schema's $id.",
        examples=[CONFIG_SCHEMA],
    )
    guideline_patterns: Maybe[Items[str]] = Field(
        None,
        description="Globs of guideline files, matched against the path from the repository root.",
    )
    rules: Maybe[dict[str, Annotated[RuleSetting, Field(json_schema_extra=SEVERITIES)]]] = Field(
        None, description="Rule id → severity: error, warning or off."
    )
    prices: Maybe[dict[str, Price]] = Field(
        None, description="Model → price; overrides the built-in table."
    )
