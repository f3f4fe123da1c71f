"""Templates of promptfoo, filled in by Nunjucks itself where Node is installed."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Mapping
from contextlib import suppress
from functools import cached_property
from pathlib import Path

import agentv_ci.other_tools.imports
from agentv_ci.base.json_access import json_or_none
from agentv_ci.contracts.base import JsonObject

SCRIPT = Path(agentv_ci.other_tools.imports.__path__[0], "nunjucks", "render.mjs")
MEMORY = ("--max-old-space-size=64", "--max-semi-space-size=4")
"""In MiB; a template that needs more ends the process."""


class Nunjucks:
    """Fills in templates, in one process of Node that starts with the first of them."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        """`environ` says where Node is."""
        self._environ = environ
        self._known: dict[str, str | None] = {}

    def filled(self, text: str, variables: JsonObject, env: Mapping[str, str]) -> str | None:
        """Return a template with its variables filled in.

        None without Node, or if the template is refused, fails, or takes longer than a second.
        """
        wish = json.dumps({"text": text, "vars": variables, "env": dict(env)}, default=str)
        if wish not in self._known:
            self._known[wish] = self._asked(wish)
        return self._known[wish]

    def _asked(self, wish: str) -> str | None:
        process = self._process
        if process is None or process.stdin is None or process.stdout is None:
            return None
        with suppress(OSError):
            process.stdin.write(f"{wish}\n")
            process.stdin.flush()
            answer = json_or_none(process.stdout.readline())
            return answer if isinstance(answer, str) else None
        return None

    @cached_property
    def _process(self) -> subprocess.Popen[str] | None:
        node = shutil.which("node", path=self._environ.get("PATH"))
        if node is None:
            return None
        return subprocess.Popen(  # noqa: S603  # templates are data of its standard input
            [node, *MEMORY, str(SCRIPT)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={},
            encoding="utf-8",
        )

    def close(self) -> None:
        """End the process."""
        process = self.__dict__.get("_process")
        if process is not None:
            process.communicate()
