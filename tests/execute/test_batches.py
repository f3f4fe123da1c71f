"""`provider_batching`: all questions in one session, or each by itself when that does not work."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from agentv_ci.contracts.agent_targets import VsCodeTarget
from agentv_ci.contracts.exchange import ProviderError, Request, Response
from agentv_ci.execute import targets
from agentv_ci.execute.budget import Budget
from agentv_ci.execute.limits import Limits
from agentv_ci.execute.providers import BatchProvider
from agentv_ci.execute.run_services import Progress, RunOptions, RunServices
from agentv_ci.execute.targets import OpenTargets
from agentv_ci.results.rows import Trial
from tests.report.builders import case, plan, suite
from tests.support import FakeClock


@dataclass(slots=True)
class Session:
    """A provider that answers many questions with their ids; `error` is what happens instead."""

    error: Exception | None = None
    hangs: bool = False
    asked: list[list[str]] = field(default_factory=list)
    alone: list[str] = field(default_factory=list)
    ended: bool = False

    async def check(self) -> None: ...

    async def ask(self, request: Request) -> Response:
        self.alone.append(request.case_id)
        return Response("answer of its own", (), has_trace=False)

    async def ask_together(self, requests: Sequence[Request]) -> Sequence[Response]:
        self.asked.append([request.case_id for request in requests])
        try:
            await asyncio.sleep(3600 if self.hangs else 0)
        finally:
            self.ended = True
        if self.error is not None:
            raise self.error
        return [Response(f"answer to {request.case_id}", (), has_trace=False) for request in requests]

    async def close(self) -> None: ...


async def answers(session: Session, log: list[str], monkeypatch: pytest.MonkeyPatch, *ids: str) -> list[str]:
    """Ask questions with these ids together, and then have every trial take its answer, the last one first."""
    monkeypatch.setattr(targets, "open_provider", lambda *_: session)
    target = VsCodeTarget(name="editor", provider="vscode", provider_batching=True)
    known = {"default": target}
    services = RunServices(FakeClock().environment(), log=log.append)
    questions = [
        (Trial(case(each), suite(), target, 1, None, dry_run=False), Request(each, each, "", (), 1, cwd=Path("/")))
        for each in ids
    ]
    opened = OpenTargets(
        plan().model_copy(update={"targets": known}),
        known,
        RunOptions(Path("/")),
        services,
        limits=Limits(None, known, known, services.environment, services.log),
        budget=Budget(None, {}, 1, services.warn),
        progress=Progress(len(ids)),
    )
    async with AsyncExitStack() as stack:
        await opened.open("default", stack)
        await opened.ask_together("default", questions)
        return [(await opened.answer(*each)).answer for each in reversed(questions)]


def test_only_what_can_ask_together_is_a_batch_provider() -> None:
    assert isinstance(Session(), BatchProvider)


def test_every_trial_gets_its_own_answer_of_one_session(monkeypatch: pytest.MonkeyPatch) -> None:
    session, log = Session(), list[str]()
    assert asyncio.run(answers(session, log, monkeypatch, "a", "b")) == ["answer to b", "answer to a"]
    assert (session.asked, session.alone) == ([["a", "b"]], [])
    assert log == ["editor: asking 2 questions in one batch"]


@pytest.mark.parametrize("error", [ProviderError("process", "no window"), OSError("no window")])
def test_batch_that_fails_leaves_the_questions_open_and_says_so(
    error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    session, log = Session(error), list[str]()
    assert asyncio.run(answers(session, log, monkeypatch, "a", "b")) == ["answer of its own"] * 2
    assert (session.asked, session.alone) == ([["a", "b"]], ["b", "a"]), "a batch is tried once"
    assert log[1:] == [
        "editor: provider_batching failed: no window; asking case by case",
    ]


def test_a_run_that_is_interrupted_ends_what_is_still_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    session = Session(hangs=True)

    async def main() -> None:
        waiting = asyncio.create_task(answers(session, [], monkeypatch, "a"))
        for _ in range(9):
            await asyncio.sleep(0)
        assert session.asked
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting

    asyncio.run(asyncio.wait_for(main(), 30))
    assert session.ended


def test_nothing_to_ask_opens_no_session(monkeypatch: pytest.MonkeyPatch) -> None:
    session = Session()
    asyncio.run(answers(session, [], monkeypatch))
    assert session.asked == []
