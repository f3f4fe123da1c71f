"""How an author asks for an answer to be scored: one class per `type`."""

from __future__ import annotations

import shlex
from typing import Annotated, Literal

from pydantic import Field
from typing_extensions import TypeAliasType

from agentv_ci.contracts.base import (
    AtLeastOne,
    Authored,
    Items,
    JsonObject,
    JsonValue,
    Maybe,
    Name,
    NonNegative,
    Positive,
    Share,
)

PROMPT_SUFFIXES = (".md", ".txt", ".j2")
SCRIPT_SUFFIXES = (".py", ".js", ".mjs", ".sh")


def _looks_like_path(word: str, suffixes: tuple[str, ...]) -> bool:
    return "\n" not in word and (word.startswith(("./", "../", "/")) or word.endswith(suffixes))


class EvaluatorSettings(Authored):
    """What every evaluator has."""

    name: Name = Field(description="How results call this evaluator; unique in its list.")
    weight: float = Field(1.0, ge=0, description="Its share in the case's score.")
    required: bool = Field(False, description="Failing it fails the case whatever the mean.")
    min_score: Maybe[Share] = Field(None, description="Its own pass line; default: the case's threshold.")
    negate: bool = Field(False, description="Count 1 − score; an error stays an error.")


class CodeEvaluator(EvaluatorSettings):
    """A script that reads the case as JSON on stdin and prints a score as JSON on stdout."""

    type: Literal["code", "code_judge"] = Field(description="Score with a script.")
    script: Name | Annotated[Items[str], Field(min_length=1)] = Field(
        description="A path or a shell command, or a list of arguments; paths are relative to this file."
    )
    cwd: Maybe[Name] = Field(None, description="Where the script runs; default: the folder of this file.")
    timeout_seconds: Maybe[Positive] = Field(None, description="Longest run; default: the case's timeout.")
    config: JsonObject = Field(default_factory=dict, description="Handed to the script as `config`.")
    files: Items[Name] = Field((), description="Further files the script needs; they count as part of it.")

    @property
    def words(self) -> tuple[str, ...]:
        """The command as a list of arguments."""
        return tuple(shlex.split(self.script)) if isinstance(self.script, str) else self.script

    @property
    def script_path(self) -> str | None:
        """The path of the script, when the command names one: the first word of a text, any word of a list.

        An absolute path is the system's, and no script of the repository.
        """
        candidates = self.script.split(maxsplit=1)[:1] if isinstance(self.script, str) else self.script
        found = (word for word in candidates if _looks_like_path(word, SCRIPT_SUFFIXES) and not word.startswith("/"))
        return next(found, None)

    @property
    def program(self) -> str | None:
        """The absolute path the command begins with, if it does."""
        first = self.script.split(maxsplit=1)[0] if isinstance(self.script, str) and self.script.strip() else ""
        first = first if isinstance(self.script, str) else self.script[0]
        return first if first.startswith("/") else None


class LlmJudgeEvaluator(EvaluatorSettings):
    """A model that reads the answer and replies with a score as JSON."""

    type: Literal["llm_judge"] = Field(description="Score with a model.")
    prompt: Maybe[Name] = Field(None, description="The judge's prompt, or a path to it.")
    prompt_path: Maybe[Name] = Field(None, description="A file that holds the judge's prompt.")
    judge_target: Maybe[Name] = Field(None, description="The target that judges; default: the target's own judge.")
    judge_retries: NonNegative = Field(2, description="Asks again after an unreadable reply.")
    temperature: Maybe[Annotated[float, Field(ge=0)]] = Field(None, description="Sampling temperature of the judge.")
    max_output_tokens: Maybe[AtLeastOne] = Field(None, description="Longest reply of the judge.")

    @property
    def prompt_file(self) -> str | None:
        """The path of the prompt, when it is not written in place."""
        if self.prompt_path is not None:
            return self.prompt_path
        return self.prompt if self.prompt is not None and _looks_like_path(self.prompt, PROMPT_SUFFIXES) else None


class ContainsEvaluator(EvaluatorSettings):
    """Whether the answer contains a text."""

    type: Literal["contains"] = Field(description="Look for a text in the answer.")
    value: Name = Field(description="The text to find.")
    case_sensitive: bool = Field(True, description="Whether case matters.")


class RegexEvaluator(EvaluatorSettings):
    """Whether a pattern matches somewhere in the answer."""

    type: Literal["regex"] = Field(description="Search the answer with a regular expression.")
    value: Name = Field(description="The pattern, in Python's syntax.")
    case_sensitive: bool = Field(True, description="Whether case matters.")


class SchemaEvaluator(EvaluatorSettings):
    """Whether the answer is JSON or YAML that a JSON Schema accepts."""

    type: Literal["schema"] = Field(description="Check the answer against a JSON Schema.")
    schema_file: Maybe[Name] = Field(None, description="A .json, .yaml or .yml file with the schema.")
    schema_inline: Maybe[JsonObject | bool] = Field(None, description="The schema itself.")
    format: Literal["json", "yaml"] = Field("json", description="How the answer is written.")


class ExpectedCall(Authored):
    """One tool call that should occur."""

    tool: Name = Field(description="The tool's name.")
    input: JsonValue = Field(None, description="The arguments it should get.")


class ToolTrajectoryEvaluator(EvaluatorSettings):
    """Whether the agent called the tools it should have called."""

    type: Literal["tool_trajectory"] = Field(description="Compare the tool calls with the expected ones.")
    mode: Literal["any_order", "in_order", "exact", "subset", "superset"] = Field(
        description="How strictly the calls must follow the expectation."
    )
    minimums: Maybe[dict[str, NonNegative]] = Field(None, description="Least number of calls per tool (any_order).")
    expected: Maybe[Items[ExpectedCall]] = Field(None, description="The calls, in order (all other modes).")
    args_match: Maybe[Literal["exact", "subset", "ignore"]] = Field(
        None, description="How arguments are compared; default: exact where `input` is given."
    )


AuthoredEvaluator = TypeAliasType(
    "AuthoredEvaluator",
    Annotated[
        CodeEvaluator
        | LlmJudgeEvaluator
        | ContainsEvaluator
        | RegexEvaluator
        | SchemaEvaluator
        | ToolTrajectoryEvaluator,
        Field(discriminator="type"),
    ],
)
