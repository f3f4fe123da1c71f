"""Scripted agents, and questions to them."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from agentv_ci.contracts.exchange import InputFile
from agentv_ci.contracts.targets import Target
from tests.execute.builders import target

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
