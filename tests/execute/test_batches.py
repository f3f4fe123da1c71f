"""`provider_batching`: all questions in one session, or each by itself when that fails."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from agentv_ci.contracts.agent_targets import VsCodeTarget
from agentv_ci.contracts.exchange import ProviderError, Request
from agentv_ci.execute import targets
from agentv_ci.execute.budget import Budget
from agentv_ci.execute.limits import Limits
from agentv_ci.execute.run_services import Progress, RunOptions, RunServices
from agentv_ci.execute.targets import OpenTargets
from agentv_ci.results.rows import Trial
from tests.execute.builders import Session
from tests.support import FakeClock
from tests.support.runs import case, plan, suite


async def answers(
    session: Session, monkeypatch: pytest.MonkeyPatch, ids: str, *, log: list[str] | None = None, **options: Any
) -> list[str]:
    """Ask for cases together, then have every trial take its answer, the last one first."""
    monkeypatch.setattr(targets, "open_provider", lambda *_: session)
    known = {"default": VsCodeTarget(name="editor", provider="vscode", provider_batching=True)}
    services = RunServices(FakeClock().environment(), log=([] if log is None else log).append)
    questions = [
        (
            Trial(case(each), suite(), known["default"], 1, None, dry_run=False),
            Request(each, each, "", (), 1, Path("/")),
        )
        for each in ids
    ]
    opened = OpenTargets(
        plan().model_copy(update={"targets": known}),
        known,
        RunOptions(Path("/"), **options),
        services,
        limits=Limits(None, known, known, services.environment, services.log),
        budget=Budget(None, {}, 1, services.warn),
        progress=Progress(len(ids)),
    )
    async with AsyncExitStack() as stack:
        await opened.open("default", stack)
        await opened.ask_together("default", questions)
        return [(await opened.answer(*each)).answer for each in reversed(questions)]


async def test_every_trial_gets_its_own_answer_of_one_session(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    session, log = Session(), list[str]()
    found = await answers(session, monkeypatch, "ab", log=log, prompts=tmp_path)
    assert (found, len([*tmp_path.iterdir()])) == (["answer to b", "answer to a"], 2)
    assert (session.together, session.alone) == ([[("a", None), ("b", None)]], [])
    assert log == ["editor: asking 2 questions in one batch"]


@pytest.mark.parametrize("error", [ProviderError("process", "no window"), OSError("no window")])
async def test_a_failed_batch_is_asked_case_by_case(error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    session, log = Session(error), list[str]()
    found = await answers(session, monkeypatch, "ab", log=log)
    assert found == ["single answer to b", "single answer to a"]
    assert len(session.together) == 1
    assert log[1:] == ["editor: provider_batching failed: no window; asking case by case"]


async def test_only_questions_without_stored_answers_are_asked(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    session = Session()
    await answers(session, monkeypatch, "ab", cache=tmp_path)
    again = await answers(session, monkeypatch, "abc", cache=tmp_path)
    assert again == ["answer to c", "answer to b", "answer to a"]
    await answers(session, monkeypatch, "abc", cache=tmp_path)
    await answers(session, monkeypatch, "")
    await answers(session, monkeypatch, "d", dry_run=True)
    assert [[name for name, _ in batch] for batch in session.together] == [["a", "b"], ["c"]]


async def test_an_interrupted_run_ends_its_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    session = Session(hangs=True)
    waiting = asyncio.create_task(answers(session, monkeypatch, "a"))
    while not session.together:  # noqa: ASYNC110  # it takes a few rounds of the loop
        await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert session.ended
