"""Evaluators that are a script."""

import shlex
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from agentv_ci.contracts.base import Authored, Items, JsonObject, Maybe, Name, Positive
from agentv_ci.contracts.evaluator_settings import EvaluatorSettings
from agentv_ci.contracts.evaluators import SCRIPT_SUFFIXES, looks_like_path


class Script(Authored):
    """A command: a text or a list of arguments."""

    script: Name | Annotated[Items[str], Field(min_length=1)] = Field(
        description="A script path, a shell command or a list of arguments; paths are relative to this file."
    )

    @property
    def words(self) -> tuple[str, ...]:
        """The command as a list of arguments."""
        return tuple(shlex.split(self.script)) if isinstance(self.script, str) else self.script

    @property
    def script_path(self) -> str | None:
        """The path of the script, if any: the first word of a text, or any word of a list.

        An absolute path is not a script of the repository.
        """
        candidates = self.script.split(maxsplit=1)[:1] if isinstance(self.script, str) else self.script
        found = (word for word in candidates if looks_like_path(word, SCRIPT_SUFFIXES) and not word.startswith("/"))
        return next(found, None)

    @property
    def program(self) -> str | None:
        """The absolute path of the program, if it is one."""
        first = self.script.split(maxsplit=1)[0] if isinstance(self.script, str) and self.script.strip() else ""
        first = first if isinstance(self.script, str) else self.script[0]
        return first if first.startswith("/") else None


class CodeEvaluator(Script, EvaluatorSettings):
    """A script that reads the case as JSON on stdin and prints a score as JSON on stdout."""

    short_field: ClassVar[str | None] = "script"
    older_kinds: ClassVar[frozenset[str]] = frozenset({"code_judge"})

    type: Literal["code", "code_judge"] = Field(description="Score with a script.")
    cwd: Maybe[Name] = Field(None, description="Working directory; default: the folder of this file.")
    timeout_seconds: Maybe[Positive] = Field(None, description="Time limit, in seconds; default: the case's timeout.")
    config: JsonObject = Field(default_factory=dict, description="Passed to the script as `config`.")
    files: Items[Name] = Field((), description="Other files that the script needs; part of the case's digest.")
