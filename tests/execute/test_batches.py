"""`provider_batching`: all questions in one session, or each by itself when that does not work."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from agentv_ci.contracts.exchange import ProviderError, Request, Response
from agentv_ci.execute.batches import Batch
from agentv_ci.execute.providers import BatchProvider
from tests.conftest import Waits


@dataclass(slots=True)
class Session:
    """A provider that answers many questions with their ids; `error` is what happens instead."""

    error: ProviderError | None = None
    hangs: bool = False
    asked: list[list[str]] = field(default_factory=list)
    ended: bool = False

    async def check(self) -> None: ...

    async def ask(self, request: Request) -> Response:
        raise AssertionError(request)

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


def batch(session: Session, log: list[str], *ids: str) -> Batch:
    requests = {("s", each, 1): Request(each, each, "", (), timeout_s=1, cwd=Path("/")) for each in ids}
    return Batch("editor", session, requests, slot=asyncio.Semaphore(), environment=Waits().world(), log=log.append)


def test_only_what_can_ask_together_is_a_batch_provider() -> None:
    assert isinstance(Session(), BatchProvider)


def test_every_trial_gets_its_own_answer_of_one_session() -> None:
    session, log = Session(), list[str]()

    async def main() -> list[Response | None]:
        together = batch(session, log, "a", "b")
        return list(await asyncio.gather(together.answer(("s", "b", 1)), together.answer(("s", "a", 1))))

    found = asyncio.run(main())
    assert [each and each.answer for each in found] == ["answer to b", "answer to a"]
    assert session.asked == [["a", "b"]]
    assert log == ["editor: asks 2 questions in one batch"]


def test_batch_that_fails_leaves_the_questions_open_and_says_so() -> None:
    session, log = Session(ProviderError("process", "no window")), list[str]()

    async def main() -> list[Response | None]:
        together = batch(session, log, "a")
        return [await together.answer(("s", "a", 1)) for _ in range(2)]

    assert asyncio.run(main()) == [None, None]
    assert session.asked == [["a"]], "a batch is tried once"
    assert log[1:] == [
        "editor: provider_batching was requested but not applied: no window; asks case by case",
    ]


def test_trial_that_is_cancelled_does_not_take_the_others_answers_with_it() -> None:
    session = Session()

    async def main() -> Response | None:
        together = batch(session, [], "a", "b")
        first = asyncio.create_task(together.answer(("s", "a", 1)))
        await asyncio.sleep(0)
        first.cancel()
        return await together.answer(("s", "b", 1))

    found = asyncio.run(main())
    assert found is not None
    assert found.answer == "answer to b"


def test_closing_ends_what_is_still_asked() -> None:
    session = Session(hangs=True)

    async def main() -> None:
        together = batch(session, [], "a")
        waiting = asyncio.create_task(together.answer(("s", "a", 1)))
        for _ in range(3):
            await asyncio.sleep(0)
        assert session.asked
        await together.close()
        with pytest.raises(asyncio.CancelledError):
            await waiting

    asyncio.run(asyncio.wait_for(main(), 30))
    assert session.ended


def test_closing_a_batch_that_nobody_wanted_is_nothing() -> None:
    asyncio.run(batch(Session(), [], "a").close())
