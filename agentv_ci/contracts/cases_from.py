"""Where the rows of data are from that make cases."""

from pydantic import Field

from agentv_ci.contracts.base import AtLeastOne, Authored, Integer, JsonObject, Maybe, Name


class Sample(Authored):
    """A random part of the rows."""

    n: AtLeastOne = Field(description="Number of rows.")
    seed: Integer = Field(0, description="Seed of the choice; a row added to the file changes it by one row at most.")


class CasesFrom(Authored):
    """A file of rows, each of which makes a case."""

    file: Name = Field(
        description="Path of a .csv, .jsonl, .json or .yaml file: relative to this file, or with a leading / to the "
        "repository."
    )
    vars: JsonObject = Field(default_factory=dict, description="Values for every row; those of the row win.")
    limit: Maybe[AtLeastOne] = Field(None, description="Number of rows to read; default: all.", examples=[10])
    sample: Maybe[Sample] = Field(None, description="Choose some of the rows at random.")
