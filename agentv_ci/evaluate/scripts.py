"""Run scripts that score: they print `{"score", "hits", "misses", "reasoning"}` on stdout."""

from __future__ import annotations

import json
import os
import shlex
import sys
from collections.abc import Mapping
from pathlib import Path

from msgspec.structs import replace

from agentv_ci.base.process import ProcessFailed, child_environment, run
from agentv_ci.base.tracebacks import last_words
from agentv_ci.contracts.base import JsonObject
from agentv_ci.contracts.exchange import ProcessResult, Score
from agentv_ci.contracts.plan_evaluators import PlanScript
from agentv_ci.evaluate.replies import last_score
from agentv_ci.evaluate.submission import EvaluatorServices

INTERPRETERS: Mapping[str, tuple[str, ...]] = {
    ".js": ("node",),
    ".mjs": ("node",),
    ".sh": ("/bin/sh",),
}


async def script_score(
    services: EvaluatorServices,
    label: str,
    script: PlanScript,
    given: JsonObject,
    *,
    cwd: Path,
    timeout_s: float,
) -> Score:
    """Run a script with `given` on stdin; a crash, a timeout or a missing score is an error."""
    try:
        finished = await run(
            _command(script, services),
            cwd=cwd,
            env=child_environment(services.environ),
            timeout_s=timeout_s,
            stdin=json.dumps(given, ensure_ascii=False).encode("utf-8", "replace"),
        )
    except ProcessFailed as error:
        return Score(
            error=f"the script {error}",
            raw_response=error.stdout or None,
            stderr=error.stderr.strip() or None,
        )
    if finished.stderr.strip():
        services.log(f"{label}: stderr: {' '.join(finished.stderr.split())}")
    return _score_in(finished)


def _command(script: PlanScript, services: EvaluatorServices) -> str | list[str]:
    paths = services.locate_together(script.files)
    if script.argv is None:
        assert script.command is not None, "a script has argv or a command"
        return script.command
    words = [str(paths.get(word, word)) for word in script.argv]
    program = paths.get(script.argv[0])
    if program is not None:
        return [*_interpreter(program), *words]
    return words


def _interpreter(program: Path) -> tuple[str, ...]:
    """Return what starts a script.

    That is this Python for `.py`. For others it is nothing, the `#!` line, or a program by suffix.

    The `#!` line is read here because copies and checkouts may lose the executable bit.
    """
    if program.suffix == ".py":
        return (sys.executable,)
    if os.access(program, os.X_OK):
        return ()
    with program.open("rb") as file:
        first = file.readline(1_000)
    if first.startswith(b"#!"):
        return tuple(shlex.split(first[2:].decode("utf-8", "replace")))
    return INTERPRETERS.get(program.suffix, ())


def _score_in(finished: ProcessResult) -> Score:
    stderr = finished.stderr.strip() or None
    if finished.status != 0:
        said = last_words(finished.stderr) or last_words(finished.stdout) or "no output"
        return Score(
            error=f"the script exited with code {finished.status}: {' '.join(said.split())}",
            raw_response=finished.stdout or None,
            stderr=stderr,
        )
    score = last_score(finished.stdout)
    if score is None:
        printed = " ".join(finished.stdout.split()) or "nothing"
        reason = f"the script printed no JSON object with a score: {printed}"
        return Score(error=reason, raw_response=finished.stdout, stderr=stderr)
    return replace(score, stderr=stderr)
