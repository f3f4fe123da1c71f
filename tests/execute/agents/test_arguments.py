"""How each agent is called: its whole list of arguments, for its whole list of settings."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pydantic import TypeAdapter

from agentv_ci.contracts.exchange import ProviderError, Request, Response
from agentv_ci.contracts.targets import Target
from tests.execute.builders import ask_all, context
from tests.support import FakeClock, clean_environment

QUESTION = Request("one", "hello", "", (), timeout_s=30, cwd=Path("/"))

ECHO = """#!/usr/bin/env python3
import json, os, sys
said = json.dumps({"arguments": sys.argv[1:], "env": dict(os.environ), "cwd": os.getcwd(), "stdin": sys.stdin.read()})
for event in EVENTS:
    print(json.dumps(event).replace('"SAID"', json.dumps(said)))
"""
EVENTS: dict[str, list[dict[str, Any]]] = {
    "codex": [
        {"type": "item.completed", "item": {"type": "agent_message", "text": "SAID"}},
        {"type": "turn.completed", "usage": {}},
    ],
    "claude-code": [{"type": "result", "is_error": False, "result": "SAID"}],
    "copilot-cli": [
        {"type": "assistant.message", "data": {"content": "SAID"}},
        {"type": "result", "exitCode": 0},
    ],
    "gemini-cli": [
        {"type": "message", "role": "assistant", "content": "SAID"},
        {"type": "result", "status": "success"},
    ],
}
EVERYTHING = {"model": "m", "args": ["--mine", "x y"], "cwd": "work"}


def ask(
    provider: str, folder: Path, environ: dict[str, str] | None = None, **settings: Any
) -> Response | ProviderError:
    """Ask an agent that answers with how it was called."""
    agent = folder / "agent"
    agent.write_text(ECHO.replace("EVENTS", repr(EVENTS[provider])), encoding="utf-8")
    agent.chmod(0o755)
    (folder / "work").mkdir(exist_ok=True)
    made = {"name": "it", "provider": provider, "executable": str(agent), **settings}
    target = TypeAdapter[Target](Target).validate_python(made)
    world = FakeClock({**clean_environment(), **(environ or {})}).environment()
    (found,) = ask_all(target, [QUESTION], context(folder, environment=world))
    return found


def called(provider: str, folder: Path, environ: dict[str, str] | None = None, **settings: Any) -> dict[str, Any]:
    found = ask(provider, folder, environ, **settings)
    assert isinstance(found, Response), repr(found)
    return dict(TypeAdapter(dict[str, Any]).validate_json(found.answer))


CODEX = "--ask-for-approval {} exec --json --color never --skip-git-repo-check"


@pytest.mark.parametrize(
    ("provider", "settings", "arguments"),
    [
        ("codex", {}, [*CODEX.format("never").split(), "-"]),
        (
            "codex",
            {**EVERYTHING, "profile": "p", "approval": "on-request", "sandbox": "workspace-write"},
            [
                *CODEX.format("on-request").split(),
                *("--profile", "p", "--model", "m", "--sandbox", "workspace-write"),
                *("--add-dir", "<workspace>", "--mine", "x y", "-"),
            ],
        ),
        (
            "codex",
            {"cwd": "work", "sandbox": "read-only"},
            [*CODEX.format("never").split(), "--sandbox", "read-only", "-"],
        ),
        ("claude-code", {}, ["-p", "--output-format", "stream-json", "--verbose"]),
        (
            "claude-code",
            EVERYTHING,
            [
                *("-p", "--output-format", "stream-json", "--verbose", "--model", "m"),
                *("--add-dir", "<workspace>", "--mine", "x y"),
            ],
        ),
        ("copilot-cli", {}, ["--output-format", "json", "--no-color", "--allow-all-tools"]),
        (
            "copilot-cli",
            EVERYTHING,
            [
                *("--output-format", "json", "--no-color", "--allow-all-tools", "--model", "m"),
                *("--add-dir", "<workspace>", "--mine", "x y"),
            ],
        ),
        ("gemini-cli", {}, ["-o", "stream-json", "--skip-trust"]),
        (
            "gemini-cli",
            EVERYTHING,
            [
                *("-o", "stream-json", "--skip-trust", "-m", "m"),
                *("--include-directories", "<workspace>", "--mine", "x y"),
            ],
        ),
    ],
)
def test_arguments(provider: str, settings: dict[str, Any], arguments: list[str], tmp_path: Path) -> None:
    found = called(provider, tmp_path, **settings)
    workspaces = [each for each in found["arguments"] if f"/agentv-{provider}-" in each]
    assert [("<workspace>" if each in workspaces else each) for each in found["arguments"]] == arguments
    assert found["stdin"].endswith("[[ ## user_query ## ]]\n\nhello")
    place = Path(found["cwd"])
    assert place == tmp_path / "work" if "cwd" in settings else f"agentv-{provider}-" in place.name


@pytest.mark.parametrize(
    ("provider", "name", "value"),
    [
        ("claude-code", "DISABLE_AUTOUPDATER", "1"),
        ("claude-code", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"),
        ("copilot-cli", "CI", "1"),
        ("gemini-cli", "GEMINI_TELEMETRY_ENABLED", "false"),
    ],
)
def test_environment_makes_an_agent_fit_for_a_run_where_nobody_has_set_it(
    provider: str, name: str, value: str, tmp_path: Path
) -> None:
    assert called(provider, tmp_path)["env"][name] in (value, clean_environment().get(name))
    assert called(provider, tmp_path, {name: "people's"})["env"][name] == "people's"
    assert called(provider, tmp_path, {name: "people's"}, env={name: "target's"})["env"][name] == "target's"


@pytest.mark.parametrize("provider", EVENTS)
def test_working_directory_that_is_not_there_ends_the_run_before_the_first_case(provider: str, tmp_path: Path) -> None:
    with pytest.raises(ProviderError, match=r"working directory '.*nowhere' does not exist"):
        ask(provider, tmp_path, cwd="nowhere")


@pytest.mark.parametrize("value", ["off", "0", "False"])
def test_logs_of_codex_can_be_turned_off(value: str, tmp_path: Path) -> None:
    called("codex", tmp_path, {"AGENTV_CODEX_STREAM_LOGS": value})
    assert not (tmp_path / "logs").exists()


@pytest.mark.parametrize(("form", "has_events"), [("json", True), ("summary", False)])
def test_logs_of_codex_are_summaries_or_events(form: str, has_events: bool, tmp_path: Path) -> None:
    called("codex", tmp_path, log_format=form, log_dir="my-logs")
    (log,) = (tmp_path / "my-logs").iterdir()
    assert ('"type": "turn.completed"' in log.read_text("utf-8")) is has_events


@pytest.mark.parametrize("provider", EVENTS)
def test_answer_of_an_agent_that_fails_afterwards_is_none(provider: str, tmp_path: Path) -> None:
    agent = tmp_path / "agent"
    ask(provider, tmp_path)
    agent.write_text(agent.read_text("utf-8") + "print('it broke', file=sys.stderr)\nsys.exit(3)\n", encoding="utf-8")
    target = TypeAdapter[Target](Target).validate_python({"name": "it", "provider": provider, "executable": str(agent)})
    (found,) = ask_all(target, [QUESTION], context(tmp_path, environment=FakeClock(clean_environment()).environment()))
    assert isinstance(found, ProviderError)
    assert (found.kind, found.detail) == ("process", f"{provider}: it broke (exit code 3)")
    assert found.printed is not None
    assert found.printed.stdout
