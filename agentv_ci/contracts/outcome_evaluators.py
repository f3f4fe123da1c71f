"""Evaluators of what an agent leaves behind in its workspace."""

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from agentv_ci.contracts.base import (
    Integer,
    Items,
    JsonObject,
    JsonValue,
    Maybe,
    Name,
    NonNegative,
    Positive,
)
from agentv_ci.contracts.evaluator_settings import EvaluatorSettings, Texts
from agentv_ci.contracts.workspaces import Argv, Contents, Globs, RelativePath


class OutcomeEvaluator(EvaluatorSettings):
    """Settings of evaluators that need a workspace."""

    waits: ClassVar[bool] = True
    needs_workspace: ClassVar[bool] = True


class FileEvaluator(OutcomeEvaluator):
    """A file that the agent leaves behind."""

    short_field: ClassVar[str | None] = "path"

    type: Literal["file"] = Field(description="Check a file in the workspace.")
    path: RelativePath = Field(description="Path of the file in the workspace.")
    exists: bool = Field(True, description="Whether the file must be there.")
    contains: Maybe[Texts] = Field(None, description="Texts that it must contain.")
    regex: Maybe[Name] = Field(
        None, description="Regular expression in Python syntax that must match somewhere in it."
    )
    equals: Maybe[str] = Field(None, description="Its whole text, without surrounding white space.")
    schema_inline: Maybe[JsonObject] = Field(
        None, description="JSON Schema of its content, which must be JSON."
    )
    json_path: Maybe[dict[Name, JsonValue]] = Field(
        None,
        description="Path in its content, which must be JSON, such as a.b[0].c → expected value.",
    )
    unchanged: Maybe[bool] = Field(
        None, description="Whether the file must be as it was (true) or not (false)."
    )
    mode: Maybe[Annotated[str, Field(pattern="^0?[0-7]{3}$")]] = Field(
        None, description="Its permissions, in octal digits.", examples=["755"]
    )


class DiffEvaluator(OutcomeEvaluator):
    """What the agent has changed."""

    type: Literal["diff"] = Field(description="Check which files of the workspace have changed.")
    may_change: Maybe[Globs] = Field(
        None, description="Globs of the paths that may change; no other path may."
    )
    must_change: Maybe[Globs] = Field(
        None, description="Globs, each of which a changed path must match."
    )
    must_not_change: Maybe[Globs] = Field(None, description="Globs of paths that must not change.")
    max_files: Maybe[NonNegative] = Field(None, description="Maximum number of changed files.")
    max_lines: Maybe[NonNegative] = Field(
        None, description="Maximum number of added and removed lines."
    )
    golden: Maybe[Name] = Field(
        None,
        description="Path of a patch; the changed files must be as it makes them, except for white "
        "space.",
    )


class _CommandSettings(OutcomeEvaluator):
    argv: Argv = Field(description="Program and arguments; it starts in the graded tree.")
    files: Maybe[Contents] = Field(
        None,
        description="Files that the agent never sees and that replace its own: path → text, or "
        "`{file: path}`.",
    )
    timeout_seconds: Maybe[Positive] = Field(
        None, description="Time limit, in seconds; default: the case's timeout."
    )


class CommandEvaluator(_CommandSettings):
    """A command in a clean tree with the agent's changes."""

    short_field: ClassVar[str | None] = "argv"

    type: Literal["command"] = Field(description="Run a command on what the agent has changed.")
    exit_code: Integer = Field(0, description="Expected exit code.")
    contains: Maybe[Texts] = Field(None, description="Texts that its standard output must contain.")
    regex: Maybe[Name] = Field(
        None, description="Regular expression that must match somewhere in standard output."
    )
    equals: Maybe[str] = Field(
        None, description="Its whole standard output, without surrounding white space."
    )


class JunitEvaluator(_CommandSettings):
    """Tests in a clean tree with the agent's changes."""

    short_field: ClassVar[str | None] = "argv"

    type: Literal["junit"] = Field(description="Run tests on what the agent has changed.")
    report: RelativePath = Field(
        "junit.xml", description="The JUnit XML file that the command writes."
    )
    fail_to_pass: Maybe[Texts] = Field(
        None,
        description="Tests that fail without the agent's changes and must pass: `classname::name` "
        "or `name`.",
    )
    pass_to_pass: Maybe[Texts] = Field(
        None, description="Tests that pass without the agent's changes and must pass."
    )


class StateEvaluator(OutcomeEvaluator):
    """A database or a document that the agent leaves behind."""

    type: Literal["state"] = Field(
        description="Compare a SQLite database or a JSON document with expected rows."
    )
    database: Maybe[RelativePath] = Field(
        None, description="Path of a SQLite database in the workspace."
    )
    query: Maybe[Name] = Field(None, description="Query of the database; it cannot write.")
    document: Maybe[RelativePath] = Field(
        None, description="Path of a JSON document in the workspace."
    )
    path: Maybe[Name] = Field(
        None, description="Path of a value in the document, such as a.b[0].c; default: all."
    )
    rows: Maybe[Items[JsonValue]] = Field(
        None,
        description="Expected rows: of a query, objects by column or lists; of a document, the "
        "items of a list.",
    )
    ordered: bool = Field(False, description="Whether the rows must have this order.")
