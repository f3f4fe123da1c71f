"""Scripted agents, and questions to them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from agentv_ci.contracts.exchange import InputFile, ProviderError, Request, Response
from agentv_ci.contracts.targets import Target
from tests.execute.builders import ask_all, context, question, target
from tests.support import FakeClock

CODEX = """\
import json, os, subprocess, sys, time
def event(**fields):
    print(json.dumps(fields, ensure_ascii=False), flush=True)
def say(text):
    event(type="item.completed", item={"type": "agent_message", "text": text})
    event(type="turn.completed", usage={})
"""
"""The beginning of a program that prints events of Codex."""

EDITOR = """\
import json, os, re, subprocess, sys, time
from pathlib import Path
arguments = sys.argv[1:]
with open(__file__ + ".calls", "a") as calls:
    calls.write(json.dumps(arguments) + "\\n")
if arguments == ["--status"]:
    print(os.environ.get("STATUS", ""))
if arguments[:2] != ["-r", "chat"]:
    sys.exit()
if alive := re.search(r"Create an empty file (.+)", arguments[-1]):
    Path(alive[1]).touch()
    sys.exit()
asked = Path(arguments[-2])
folder = asked.parent.parent
lock = folder / "subagent.lock"
def answer(text, asked=asked):
    request = asked.read_text()
    Path(re.search(r"Create the file (.+?) and write", request)[1]).write_text(text)
    subprocess.run(re.search(r"run this command: `(.*)`", request)[1], shell=True, check=True)
"""
"""The beginning of a program that is called like VS Code; what follows is done when it is asked."""


def script(path: Path, body: str) -> str:
    """Write a Python program; return its path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!{sys.executable}\n{body}", encoding="utf-8")
    path.chmod(0o755)
    return str(path)


def codex(folder: Path, body: str, **settings: Any) -> Target:
    return target(provider="codex", **{"executable": script(folder / "agent", CODEX + body), **settings})


def editor(folder: Path, body: str, **settings: Any) -> Target:
    given = {"command": script(folder / "code", EDITOR + body), "subagent_root": str(folder / "agents"), **settings}
    return target(provider="vscode-copilot", **given)


def ask(
    asked: Target,
    root: Path,
    request: Request | None = None,
    *,
    environ: Mapping[str, str] | None = None,
    log: list[str] | None = None,
    warned: list[str] | None = None,
    redact: Callable[[str], str] = lambda text: text,
) -> Response | ProviderError:
    """Ask once; a failed check is a failure too."""
    environment = FakeClock(environ or {}).environment()
    try:
        services = context(root, environment=environment, log=log, warned=warned, redact=redact)
        return ask_all(asked, [request or question(prompt="say hello")], services)[0]
    except ProviderError as error:
        return error


def answer(asked: Target, root: Path, request: Request | None = None, **given: Any) -> str:
    found = ask(asked, root, request, **given)
    assert isinstance(found, Response), found
    return found.answer


def failure(asked: Target, root: Path, request: Request | None = None, **given: Any) -> ProviderError:
    found = ask(asked, root, request, **given)
    assert isinstance(found, ProviderError), found
    return found


def guideline(path: Path, text: str = "rules") -> InputFile:
    path.write_text(text, encoding="utf-8")
    return InputFile(path, is_guideline=True, sha256="")


def events(agent: str, text: str, **last: Any) -> list[dict[str, Any]]:
    """Return the events of an answer; `last` replaces fields of the last one."""
    item = {"type": "agent_message", "text": text}
    streams: dict[str, list[dict[str, Any]]] = {
        "codex": [{"type": "item.completed", "item": item}, {"type": "turn.completed", "usage": {}}],
        "claude": [{"type": "result", "is_error": False, "result": text}],
        "copilot": [{"type": "assistant.message", "data": {"content": text}}, {"type": "result", "exitCode": 0}],
        "gemini": [
            {"type": "message", "role": "assistant", "content": text},
            {"type": "result", "status": "success"},
        ],
    }
    *first, end = streams[agent]
    return [*first, {**end, **last}]
