"""The retry policy: what is retried, after which wait, within which time."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable
from datetime import timedelta
from email.utils import format_datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from tenacity import AsyncRetrying, RetryCallState

from agentv_ci.base.retry import RetryPolicy, retry_hint_s, with_retries
from agentv_ci.contracts.base import ErrorKind
from agentv_ci.contracts.exchange import ProviderError
from tests.support import NOW, FakeClock

DEFAULT = RetryPolicy()
LISTED = replace(DEFAULT, status_codes=frozenset({401, 403, 429}))
PATIENT, CAPPED = RetryPolicy(5, initial_delay_s=2, max_delay_s=120), RetryPolicy(5, initial_delay_s=30, max_delay_s=60)


def refused(status: int, **headers: str) -> ProviderError:
    """Return the error of an HTTP status; header names are written with `_` for `-`."""
    hint = retry_hint_s({name.replace("_", "-"): value for name, value in headers.items()}, NOW)
    return ProviderError("server", f"HTTP {status}", status=status, retryable=True, retry_after_s=hint)


def unreachable(kind: ErrorKind = "network", *, retryable: bool = True) -> ProviderError:
    return ProviderError(kind, "ConnectError", retryable=retryable)


def calling(*replies: ProviderError | str) -> Callable[[], Awaitable[str]]:
    """Return a call that has these replies one after the other, and then hangs."""
    left = iter(replies)

    async def call() -> str:
        reply = next(left, None)
        if isinstance(reply, ProviderError):
            raise reply
        if reply is None:
            await asyncio.sleep(60)
        return reply or "too late"

    return call


async def retried(
    call: Callable[[], Awaitable[str]],
    policy: RetryPolicy,
    waits: FakeClock,
    on_retry: Callable[[ProviderError, int, float], None] = lambda *_: None,
    *,
    pause: Callable[[float], Awaitable[None]] | None = None,
    timeout_s: float = 600,
) -> tuple[str, int]:
    environment = waits.environment()
    sleep = pause or environment.sleep
    return await with_retries(
        call, policy, on_retry, uniform=environment.uniform, pause=lambda _, wait_s: sleep(wait_s), timeout_s=timeout_s
    )


@pytest.mark.parametrize(
    ("policy", "replies", "outcome", "tries", "slept"),
    [
        pytest.param(DEFAULT, ["ok"], "ok", 1, [], id="at once"),
        pytest.param(DEFAULT, [refused(429)] * 4, "HTTP 429", 4, [1, 2, 4], id="always 429"),
        pytest.param(DEFAULT, [refused(429), refused(429), "ok"], "ok", 3, [1, 2], id="429 twice"),
        pytest.param(PATIENT, [refused(429)] * 6, "HTTP 429", 6, [2, 4, 8, 16, 32], id="2 s to 120 s"),
        pytest.param(CAPPED, [refused(503)] * 6, "HTTP 503", 6, [30, 60, 60, 60, 60], id="cap"),
        pytest.param(RetryPolicy(max_delay_s=0), [refused(503), "ok"], "ok", 2, [0], id="no wait"),
        pytest.param(RetryPolicy(max_delay_s=0), [refused(429, retry_after="1")], "HTTP 429", 1, [], id="none allowed"),
        pytest.param(RetryPolicy(backoff_factor=3), [refused(500)] * 4, "HTTP 500", 4, [1, 3, 9], id="factor"),
        pytest.param(RetryPolicy(backoff_factor=1e300), [refused(500)] * 4, "HTTP 500", 4, [1, 60, 60], id="overflow"),
        pytest.param(DEFAULT, [refused(429, retry_after="7"), "ok"], "ok", 2, [7], id="retry-after"),
        pytest.param(DEFAULT, [refused(429, retry_after="0"), "ok"], "ok", 2, [0], id="retry-after 0"),
        pytest.param(DEFAULT, [refused(429, retry_after="60"), "ok"], "ok", 2, [60], id="as long as the cap"),
        pytest.param(DEFAULT, [refused(429, retry_after="61"), "ok"], "HTTP 429", 1, [], id="longer than the cap"),
        pytest.param(DEFAULT, [refused(429), refused(429, retry_after="61")], "HTTP 429", 2, [1], id="longer later"),
        pytest.param(LISTED, [refused(500), "ok"], "HTTP 500", 1, [], id="not listed"),
        pytest.param(LISTED, [refused(429), "ok"], "ok", 2, [1], id="listed"),
        pytest.param(LISTED, [refused(401), "ok"], "HTTP 401", 1, [], id="401 although listed"),
        pytest.param(LISTED, [refused(403), "ok"], "HTTP 403", 1, [], id="403 although listed"),
        pytest.param(RetryPolicy(max_retries=0), [refused(429), "ok"], "HTTP 429", 1, [], id="no retries"),
        pytest.param(RetryPolicy(max_retries=1), [refused(429)] * 2, "HTTP 429", 2, [1], id="one retry"),
        pytest.param(DEFAULT, [ProviderError("rate_limit", "used up", status=429)], "used up", 1, [], id="quota"),
        pytest.param(DEFAULT, [unreachable(), "ok"], "ok", 2, [1], id="connect error"),
        pytest.param(DEFAULT, [unreachable("request", retryable=False)], "ConnectError", 1, [], id="invalid address"),
    ],
)
async def test_a_request_is_retried_as_the_policy_sets(
    policy: RetryPolicy,
    replies: list[ProviderError | str],
    outcome: str,
    tries: int,
    slept: list[float],
    waits: FakeClock,
) -> None:
    try:
        found = await retried(calling(*replies), policy, waits)
    except ProviderError as error:
        found = error.detail, error.requests
    assert (found, waits.slept) == ((outcome, tries), slept)


@pytest.mark.parametrize("status", [*range(300, 310), *range(400, 432), 451, *range(500, 512), 529])
def test_the_default_statuses(status: int) -> None:
    assert DEFAULT.retries(refused(status)) == (status in (408, 429, 500, 502, 503, 504))


def test_every_retry_is_reported_before_its_wait(waits: FakeClock) -> None:
    reported: list[tuple[str, int, float, int]] = []

    def on_retry(error: ProviderError, retry: int, wait_s: float) -> None:
        reported.append((error.detail, retry, wait_s, len(waits.slept)))

    asyncio.run(retried(calling(refused(429), refused(503, retry_after="7"), "ok"), DEFAULT, waits, on_retry))
    assert reported == [("HTTP 429", 1, 1.0, 0), ("HTTP 503", 2, 7.0, 1)]


@pytest.mark.parametrize("sleeping", [True, False])
async def test_other_errors_and_cancellation_are_not_retried(sleeping: bool, waits: FakeClock) -> None:
    call = calling(*([unreachable()] if sleeping else []))
    paused: list[float] = []

    async def pause(wait_s: float) -> None:
        paused.append(wait_s)
        await asyncio.sleep(60)

    async def fail() -> str:
        raise ValueError("a bug")

    task = asyncio.create_task(retried(call, DEFAULT, waits, pause=pause))
    await asyncio.sleep(0.05)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(task, 10)
    with pytest.raises(ValueError, match="a bug"):
        await retried(fail, DEFAULT, waits)
    assert (len(paused), waits.slept) == (sleeping, [])


@pytest.mark.parametrize(
    ("failures", "timeout_s", "detail", "kind", "requests"),
    [
        ([], 0.1, "no answer within 0.1 s", "timeout", 1),
        ([refused(503, retry_after="0")], 0.1, "no answer within 0.1 s; before that: HTTP 503", "timeout", 2),
        ([refused(503, retry_after="7")], 5, "HTTP 503 (no time left to wait 7 s)", "server", 1),
        ([refused(503, retry_after="20")] * 2, 30, "HTTP 503 (no time left to wait 20 s)", "server", 2),
    ],
)
def test_all_tries_and_waits_stay_within_the_time_limit(
    failures: list[ProviderError], timeout_s: float, detail: str, kind: str, requests: int, waits: FakeClock
) -> None:
    with pytest.raises(ProviderError) as caught:
        asyncio.run(retried(calling(*failures), DEFAULT, waits, timeout_s=timeout_s))
    assert (caught.value.detail, caught.value.kind, caught.value.requests) == (detail, kind, requests)


def test_a_pause_that_takes_longer_than_its_wait_does_not_count(waits: FakeClock) -> None:
    call = calling(*[refused(429, retry_after="0.01")] * 2, "ok")
    found = asyncio.run(retried(call, DEFAULT, waits, pause=lambda _: asyncio.sleep(0.15), timeout_s=0.1))
    assert found == ("ok", 3)


def wait_of(policy: RetryPolicy, retry: int, hint_s: float | None, uniform: Callable[[float, float], float]) -> float:
    """Return the wait before a retry, which counts from 0."""
    state = RetryCallState(AsyncRetrying(), None, (), {})
    state.attempt_number = retry + 1
    error = ProviderError("server", "HTTP 503", retryable=True, retry_after_s=hint_s)
    state.set_exception((ProviderError, error, None))
    return policy.wait(uniform)(state)


@given(
    st.builds(
        RetryPolicy,
        initial_delay_s=st.floats(0, 1e6),
        max_delay_s=st.floats(0, 1e6),
        backoff_factor=st.floats(1, 1e6),
    ),
    st.integers(0, 10_000),
    st.floats(0, 1),
)
def test_a_wait_is_spread_by_a_quarter_and_never_above_the_cap(policy: RetryPolicy, retry: int, chance: float) -> None:
    wait_s = wait_of(policy, retry, None, lambda low, high: low + chance * (high - low))
    try:
        nominal = min(policy.max_delay_s, policy.initial_delay_s * policy.backoff_factor**retry)
    except OverflowError:
        nominal = policy.max_delay_s
    assert 0 <= wait_s <= policy.max_delay_s
    assert nominal * 0.75 <= wait_s <= nominal * 1.25 or math.isclose(wait_s, nominal * 1.25)
    assert wait_of(DEFAULT, 2, None, lambda low, _: low) == 3.0
    assert wait_of(DEFAULT, 2, None, lambda _, high: high) == 5.0
    assert wait_of(DEFAULT, 2, 7.5, lambda _, high: high) == 7.5


def http_date(seconds: float) -> str:
    return format_datetime(NOW + timedelta(seconds=seconds), usegmt=True)


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "7"}, 7.0),
        ({"retry-after": " 0.25 "}, 0.25),
        ({"retry-after-ms": "1500"}, 1.5),
        ({"retry-after-ms": "500", "retry-after": "9"}, 0.5),
        ({"retry-after-ms": "soon", "retry-after": "9"}, 9.0),
        ({"retry-after-ms": "-1", "retry-after": "9"}, 9.0),
        ({"retry-after": http_date(5)}, 5.0),
        ({"retry-after": http_date(-5)}, 0.0),
        ({"retry-after": "Wednesday, 02-Jan-30 03:04:15 GMT"}, 10),
        ({"retry-after": "Wed Jan  2 03:04:15 2030"}, 10),
        ({"retry-after": "Wed, 02 Jan 2030 05:04:15 +0200"}, 10),
        ({"retry-after": "Wed, 02 Jan 2030 03:04:15 -0000"}, 10),
        *(
            ({"retry-after": junk}, None)
            for junk in ("", "soon", "-1", "nan", "inf", "1e999", "1_0", "0x10", "7, 7", "7s", "Wed,", "\u0663")
        ),
        ({"retry-after": "Wed, 99 Foo 2030 99:99:99 GMT"}, None),
        ({"retry-after": f"Wed, 02 Jan {'9' * 30} 03:04:05 GMT"}, None),
        ({"retry-after": f"Wed, 02 Jan 2030 03:04:05 +{'9' * 30}"}, None),
    ],
)
def test_the_wait_that_a_server_asks_for(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_hint_s(headers, NOW) == seconds


DATE_LIKE = st.lists(
    st.sampled_from(["Wed,", "02", "Jan", "2030", "03:04:05", "GMT", "+0100", "-", ":", "9" * 25, "0", ""]), max_size=8
).map(" ".join)


@given(st.text() | DATE_LIKE)
def test_no_header_breaks_reading_the_wait(value: str) -> None:
    seconds = retry_hint_s({"retry-after": value, "retry-after-ms": value}, NOW)
    assert seconds is None or (math.isfinite(seconds) and seconds >= 0)
