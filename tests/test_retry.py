"""The retry policy, case by case as the reference has measured it."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from email.utils import format_datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentv_ci.contracts.base import ErrorKind
from agentv_ci.contracts.exchange import ProviderError
from agentv_ci.retry import RetryPolicy, retry_hint_s, with_retries
from tests.support import NOW, FakeClock

DEFAULT = RetryPolicy()


def refused(status: int, **headers: str) -> ProviderError:
    """The error of an HTTP status; header names are written with `_` for `-`."""
    hint = retry_hint_s({name.replace("_", "-"): value for name, value in headers.items()}, NOW)
    return ProviderError("server", f"HTTP {status}", status=status, retryable=True, retry_after_s=hint)


def unreachable(kind: ErrorKind = "network", *, retryable: bool = True) -> ProviderError:
    """The error of a connection that never came about."""
    return ProviderError(kind, "ConnectError", retryable=retryable)


@dataclass(frozen=True, slots=True)
class Story:
    """What happens one try after the other, and what has to come of it."""

    name: str
    policy: RetryPolicy
    replies: Sequence[ProviderError | str]
    outcome: str
    tries: int
    slept: Sequence[float]


IN_FIVE_SECONDS = format_datetime(NOW + timedelta(seconds=5), usegmt=True)
SECONDS_AGO = format_datetime(NOW - timedelta(seconds=5), usegmt=True)
LISTED = replace(DEFAULT, status_codes=frozenset({401, 403, 429}))
ONLY_TWO = replace(DEFAULT, status_codes=frozenset({429, 503}))
PATIENT = RetryPolicy(max_retries=5, initial_delay_s=2, max_delay_s=120)
CAPPED = RetryPolicy(max_retries=5, initial_delay_s=30, max_delay_s=60)

STORIES = [
    Story("at once", DEFAULT, ["ok"], "ok", 1, []),
    Story("default, always 429", DEFAULT, [refused(429)] * 4, "HTTP 429", 4, [1, 2, 4]),
    Story("429 twice, then an answer", DEFAULT, [refused(429), refused(429), "ok"], "ok", 3, [1, 2]),
    Story("5 retries, 2 s to 120 s", PATIENT, [refused(429)] * 6, "HTTP 429", 6, [2, 4, 8, 16, 32]),
    Story("cap", CAPPED, [refused(503)] * 6, "HTTP 503", 6, [30, 60, 60, 60, 60]),
    Story("factor", RetryPolicy(backoff_factor=3), [refused(500)] * 4, "HTTP 500", 4, [1, 3, 9]),
    Story("retry-after", DEFAULT, [refused(429, retry_after="7"), "ok"], "ok", 2, [7]),
    Story("milliseconds win", DEFAULT, [refused(429, retry_after_ms="500", retry_after="9"), "ok"], "ok", 2, [0.5]),
    Story("no wait at all", DEFAULT, [refused(429, retry_after="0"), "ok"], "ok", 2, [0]),
    Story("as long as the cap", DEFAULT, [refused(429, retry_after="60"), "ok"], "ok", 2, [60]),
    Story("longer than the cap", DEFAULT, [refused(429, retry_after="3600"), "ok"], "HTTP 429", 1, []),
    Story("longer the second time", DEFAULT, [refused(429), refused(429, retry_after="61")], "HTTP 429", 2, [1]),
    Story("junk", DEFAULT, [refused(429, retry_after="soon"), "ok"], "ok", 2, [1]),
    Story("HTTP date", DEFAULT, [refused(503, retry_after=IN_FIVE_SECONDS), "ok"], "ok", 2, [5]),
    Story("HTTP date in the past", DEFAULT, [refused(503, retry_after=SECONDS_AGO), "ok"], "ok", 2, [0]),
    Story("codes 429 and 503, but 500", ONLY_TWO, [refused(500), "ok"], "HTTP 500", 1, []),
    Story("codes 429 and 503, and 503", ONLY_TWO, [refused(503), "ok"], "ok", 2, [1]),
    Story("no retries", RetryPolicy(max_retries=0), [refused(429), "ok"], "HTTP 429", 1, []),
    Story("401 although listed", LISTED, [refused(401), "ok"], "HTTP 401", 1, []),
    Story("403 although listed", LISTED, [refused(403), "ok"], "HTTP 403", 1, []),
    Story("quota used up", DEFAULT, [ProviderError("rate_limit", "used up", status=429), "ok"], "used up", 1, []),
    Story("connect error", DEFAULT, [unreachable(), "ok"], "ok", 2, [1]),
    Story("no usable address", DEFAULT, [unreachable("request", retryable=False), "ok"], "ConnectError", 1, []),
]


async def retried(
    call: Callable[[], Awaitable[str]],
    policy: RetryPolicy,
    waits: FakeClock,
    on_retry: Callable[[ProviderError, int, float], None] = lambda *_: None,
    *,
    pause: Callable[[float], Awaitable[None]] | None = None,
) -> tuple[str, int]:
    world = waits.environment()
    sleep = pause or world.sleep
    return await with_retries(
        call, policy, on_retry, uniform=world.uniform, pause=lambda _, wait_s: sleep(wait_s), timeout_s=600
    )


def tell(story: Story, waits: FakeClock) -> tuple[str, int]:
    replies = iter(story.replies)

    async def call() -> str:
        reply = next(replies)
        if isinstance(reply, ProviderError):
            raise reply
        return reply

    async def main() -> tuple[str, int]:
        try:
            return await retried(call, story.policy, waits)
        except ProviderError as error:
            return error.detail, error.requests

    return asyncio.run(main())


@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.name)
def test_a_request_is_repeated_as_the_policy_says(story: Story, waits: FakeClock) -> None:
    assert (tell(story, waits), waits.slept) == ((story.outcome, story.tries), list(story.slept))


@pytest.mark.parametrize("status", [408, 429, 500, 502, 503, 504])
def test_a_status_is_repeated_by_default(status: int) -> None:
    assert DEFAULT.retries(refused(status))


@pytest.mark.parametrize("status", [300, 400, 401, 402, 403, 404, 409, 413, 422, 501, 529])
def test_a_status_is_not_repeated_by_default(status: int) -> None:
    assert not DEFAULT.retries(refused(status))


def test_an_error_that_no_provider_raised_is_not_repeated(waits: FakeClock) -> None:
    calls = 0

    async def call() -> str:
        nonlocal calls
        calls += 1
        raise ValueError("a bug")

    with pytest.raises(ValueError, match="a bug"):
        asyncio.run(retried(call, DEFAULT, waits))
    assert calls == 1


def test_every_retry_is_told_before_it_is_waited_for(waits: FakeClock) -> None:
    told: list[tuple[str, int, float, int]] = []
    replies = iter([refused(429), refused(503, retry_after="7")])

    async def call() -> str:
        reply = next(replies, None)
        if reply is not None:
            raise reply
        return "ok"

    def on_retry(error: ProviderError, retry: int, wait_s: float) -> None:
        told.append((error.detail, retry, wait_s, len(waits.slept)))

    asyncio.run(retried(call, DEFAULT, waits, on_retry))
    assert told == [("HTTP 429", 1, 1.0, 0), ("HTTP 503", 2, 7.0, 1)]


@pytest.mark.parametrize("sleeping", [True, False])
def test_cancelling_passes_through_at_once_and_nothing_is_tried_again(sleeping: bool, waits: FakeClock) -> None:
    calls = 0

    async def call() -> str:
        nonlocal calls
        calls += 1
        if not sleeping:
            await asyncio.sleep(60)
        raise unreachable()

    async def main() -> None:
        policy = replace(DEFAULT, initial_delay_s=60)
        task = asyncio.create_task(retried(call, policy, waits, pause=asyncio.sleep))
        await asyncio.sleep(0.05)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asyncio.wait_for(task, 10)

    asyncio.run(main())
    assert calls == 1


POLICIES = st.builds(
    RetryPolicy,
    initial_delay_s=st.floats(0, 1e6),
    max_delay_s=st.floats(0, 1e6),
    backoff_factor=st.floats(1, 1e6),
)


@given(POLICIES, st.integers(0, 10_000), st.floats(0, 1))
def test_the_wait_is_between_three_quarters_and_five_quarters_and_never_above_the_cap(
    policy: RetryPolicy, retry: int, chance: float
) -> None:
    wait_s = policy.delay_s(retry, None, lambda low, high: low + chance * (high - low))
    try:
        nominal = min(policy.max_delay_s, policy.initial_delay_s * policy.backoff_factor**retry)
    except OverflowError:
        nominal = policy.max_delay_s
    assert 0 <= wait_s <= policy.max_delay_s
    assert nominal * 0.75 <= wait_s <= nominal * 1.25 or math.isclose(wait_s, nominal * 1.25)


def test_the_wait_is_spread_by_a_quarter_to_either_side() -> None:
    asked: list[tuple[float, float]] = []

    def uniform(low: float, high: float) -> float:
        asked.append((low, high))
        return low

    assert DEFAULT.delay_s(2, None, uniform) == 3.0
    assert asked == [(0.75, 1.25)]


def test_the_spread_does_not_lift_the_wait_above_the_cap() -> None:
    assert CAPPED.delay_s(3, None, lambda _low, high: high) == 60


def test_a_hint_is_waited_for_as_it_is_given() -> None:
    assert DEFAULT.delay_s(0, 7.5, lambda _low, high: high) == 7.5


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "7"}, 7.0),
        ({"retry-after": "0.25"}, 0.25),
        ({"retry-after": " 3 "}, 3.0),
        ({"retry-after-ms": "1500"}, 1.5),
        ({"retry-after-ms": "500", "retry-after": "9"}, 0.5),
        ({"retry-after-ms": "soon", "retry-after": "9"}, 9.0),
        ({"retry-after-ms": "-1", "retry-after": "9"}, 9.0),
        ({"retry-after": IN_FIVE_SECONDS}, 5.0),
        ({"retry-after": SECONDS_AGO}, 0.0),
        ({"retry-after": "soon"}, None),
        ({"retry-after": ""}, None),
        ({"retry-after": "-1"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "inf"}, None),
        ({"retry-after": "1e999"}, None),
        ({"retry-after": "Wed, 99 Foo 2030 99:99:99 GMT"}, None),
        ({"retry-after": f"Wed, 02 Jan {'9' * 30} 03:04:05 GMT"}, None),
        ({"retry-after": f"Wed, 02 Jan 2030 03:04:05 +{'9' * 30}"}, None),
    ],
)
def test_a_hint_is_read_and_junk_counts_as_absent(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_hint_s(headers, NOW) == seconds


DATE_LIKE = st.lists(
    st.sampled_from(["Wed,", "02", "Jan", "2030", "03:04:05", "GMT", "+0100", "-", ":", "9" * 25, "0", ""]), max_size=8
).map(" ".join)


@given(st.text() | DATE_LIKE)
def test_no_header_breaks_reading_the_hint(value: str) -> None:
    seconds = retry_hint_s({"retry-after": value, "retry-after-ms": value}, NOW)
    assert seconds is None or (math.isfinite(seconds) and seconds >= 0)
