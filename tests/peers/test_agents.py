"""The real agents, asked by our providers, against a model API that speaks their protocols."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from agentv_ci.contracts.exchange import InputFile, ProviderError, Response
from agentv_ci.contracts.results import ToolCall
from tests.execute.builders import ask_all, context, question, target
from tests.peers.builders import BIN, GEMINI_SETTINGS, Peer, each_peer
from tests.servers import model_api as served
from tests.servers.model_api import ModelApi, Step, model_api
from tests.support import FakeClock, clean_environment, write

PROMPT = "say hi"


def ask(
    peer: Peer, home: Path, *steps: Step, files: Sequence[InputFile] = (), prompt: str = PROMPT, timeout_s: float = 60
) -> tuple[Response | ProviderError, ModelApi]:
    with model_api(*steps) as api:
        settings = peer.settings(api.url)
        write(home, {".gemini/settings.json": GEMINI_SETTINGS})
        env = {**settings.pop("env"), "HOME": str(home), "CODEX_HOME": str(home)}
        asked = target(executable=str(BIN / peer.program), env=env, **settings)
        request = question(prompt=prompt, timeout_s=timeout_s, cwd=home, files=tuple(files))
        world = FakeClock(clean_environment()).environment()
        (answer,) = ask_all(asked, [request], context(home, environment=world))
        return answer, api


@each_peer
def test_agent_answers(peer: Peer, tmp_path: Path) -> None:
    found, api = ask(peer, tmp_path, served.says("MOCK-ANSWER 42"))
    assert isinstance(found, Response), repr(found)
    assert found.answer == "MOCK-ANSWER 42"
    assert found.has_trace
    assert PROMPT in json.dumps([each.body for each in api.questions])


@each_peer
def test_tool_call_is_in_the_trace(peer: Peer, tmp_path: Path) -> None:
    found, _ = ask(peer, tmp_path, served.calls_tool("echo hello-from-tool"))
    assert isinstance(found, Response), repr(found)
    (call,) = found.calls
    assert isinstance(call, ToolCall)
    assert (call.tool, "echo hello-from-tool" in json.dumps(call.input)) == (peer.tool, True)
    assert "hello-from-tool" in json.dumps(call.output)


@each_peer
def test_prompt_longer_than_a_command_line_arrives_whole_with_its_files(peer: Peer, tmp_path: Path) -> None:
    guideline = tmp_path / "rules (1).instructions.md"
    guideline.write_text("be brief", encoding="utf-8")
    files = [InputFile(guideline, is_guideline=True, sha256="")]
    found, api = ask(peer, tmp_path, served.says("42"), files=files, prompt="x" * 200_000 + " the-end")
    assert isinstance(found, Response), repr(found)
    asked = json.dumps([each.body for each in api.questions])
    assert "rules%20%281%29.instructions.md" in asked
    assert "the-end" in asked


@each_peer
@pytest.mark.parametrize(
    ("step", "which"),
    [
        (served.fails(400, "mock says no", retry_after_s=0), 0),
        (served.fails(429, "mock says no", retry_after_s=0), 1),
        (served.cuts("MOCK-ANSWER 42"), 2),
    ],
    ids=["400", "429", "cut"],
)
def test_error_of_the_api_is_an_error_of_the_target(peer: Peer, step: Step, which: int, tmp_path: Path) -> None:
    found, _ = ask(peer, tmp_path, step, timeout_s=20)
    assert isinstance(found, ProviderError), repr(found)
    assert found.kind == peer.kinds[which], found.detail
    assert which == 2 or found.printed is not None
