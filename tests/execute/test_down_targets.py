"""Targets that refuse connections: when they are down, and what their questions wait for."""

from __future__ import annotations

import asyncio
import socket
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from agentv_ci.contracts.results import ResultRow
from tests.servers.chat_api import chat_api
from tests.support import FakeClock
from tests.support.evals import JUDGE, Run, gpt, mock

CASES = [f"case-{number:02}" for number in range(12)]


@pytest.fixture
def port() -> Iterator[int]:
    """A port that refuses connections, and that no other program gets."""
    with closing(socket.socket()) as bound:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind(("127.0.0.1", 0))
        yield bound.getsockname()[1]


class Scene:
    """Runs of all cases against a port; a server begins to listen there in the `opens_at`-th wait."""

    def __init__(self, repository: Path, port: int) -> None:
        self.run = Run(repository)
        self.port = port
        self.clock = FakeClock()
        self.slept = self.clock.slept

    def documents(self, **settings: Any) -> None:
        self.run.documents(CASES, gpt(f"http://127.0.0.1:{self.port}/v1", **settings))

    def rows(self, *, opens_at: int = 0, **options: Any) -> list[ResultRow]:
        environment = self.clock.environment()
        with ExitStack() as stack:

            async def sleep(seconds: float) -> None:
                await environment.sleep(seconds)
                if len(self.slept) == opens_at:
                    stack.enter_context(chat_api(port=self.port))
                await asyncio.sleep(0)

            self.run.environment = replace(environment, sleep=sleep, variables=self.run.variables)
            return self.run.rows(**options)


@pytest.fixture
def scene(repository: Path, port: int) -> Scene:
    return Scene(repository, port)


@pytest.mark.parametrize(
    ("settings", "requests", "slept"),
    [
        ({}, [4, 1], [1, 2, 4]),
        ({"max_retries": 0}, [1, 1, 1, 1, 1], []),
        ({"max_retries": 1}, [2, 2, 1], [1, 1]),
        ({"max_retries": 6}, [7], [1, 2, 4, 8, 16, 32]),
    ],
    ids=["default", "no retries", "one retry", "as patient as the author says"],
)
def test_questions_to_a_target_that_is_down_are_errors_at_once(
    settings: dict[str, Any], requests: list[int], slept: list[float], scene: Scene
) -> None:
    scene.documents(**settings)
    rows = scene.rows()
    assert [row.requests for row in rows] == requests + [0] * (len(CASES) - len(requests))
    assert scene.slept == slept
    reason = f"ConnectError at http://127.0.0.1:{scene.port}/v1: [Errno 111] Connect call failed"
    down = [row.error for row in rows if row.requests == 0]
    assert len(set(down)) == 1
    assert str(down[0]).startswith(f"default is down (5 connections in a row failed): {reason}")
    assert {(row.error_kind, row.attempts) for row in rows} == {("network", 1)}


def test_workers_that_are_refused_at_the_same_moment_have_all_their_retries(scene: Scene) -> None:
    scene.documents()
    rows = scene.rows(workers=4)
    assert Counter(row.requests for row in rows) == {4: 4, 0: 8}
    assert Counter(scene.slept) == {1: 4, 2: 4, 4: 4}


@pytest.mark.parametrize(
    ("settings", "opens_at", "workers", "failed"),
    [({}, 1, 1, 0), ({}, 3, 1, 0), ({"max_retries": 1}, 2, 1, 1), ({"max_retries": 1}, 8, 8, 0)],
)
def test_a_target_that_answers_in_time_is_not_down(
    settings: dict[str, Any], opens_at: int, workers: int, failed: int, scene: Scene
) -> None:
    scene.documents(**settings)
    rows = scene.rows(opens_at=opens_at, workers=workers)
    assert Counter(row.verdict for row in rows) == Counter(["error"] * failed + ["pass"] * (12 - failed))


def test_a_judge_that_is_down_costs_its_retries_once(scene: Scene) -> None:
    judge = gpt(f"http://127.0.0.1:{scene.port}/v1", name="judge")
    scene.run.documents(CASES, mock(judge_target="judge"), judge, evaluators=[JUDGE])
    rows = scene.rows(workers=1)
    assert scene.slept == [1, 2, 4]
    assert {row.error_kind for row in rows} == {"evaluator"}
    assert sum("judge is down (" in str(row.error) for row in rows) == 11
