"""The one retry policy; the door to tenacity."""

from __future__ import annotations

import asyncio
import math
import re
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime
from typing import TypeVar

from msgspec import Struct
from tenacity import (
    AsyncRetrying,
    RetryCallState,
    retry_if_exception,
    stop_after_attempt,
    wait_exponential,
)
from tenacity.stop import stop_base
from tenacity.wait import wait_base

from agentv_ci.contracts.exchange import ProviderError

T = TypeVar("T")

PLAIN_NUMBER = re.compile(r"[0-9]+(\.[0-9]+)?")
NEVER_RETRIED = frozenset({401, 403})
DEFAULT_STATUS_CODES = frozenset({408, 429, 500, 502, 503, 504})


class RetryPolicy(Struct, frozen=True):
    """delay(n) = min(cap, initial · factor^n) · U(0.75, 1.25), never above the cap.

    N counts from 0.
    """

    max_retries: int = 3
    initial_delay_s: float = 1.0
    max_delay_s: float = 60.0
    backoff_factor: float = 2.0
    status_codes: frozenset[int] = DEFAULT_STATUS_CODES

    def retries(self, error: BaseException) -> bool:
        """Whether to retry a request; not when the server asks for a longer wait than the cap."""
        if not isinstance(error, ProviderError) or not error.retryable:
            return False
        if error.status is not None and error.status not in self.status_codes - NEVER_RETRIED:
            return False
        return error.retry_after_s is None or error.retry_after_s <= self.max_delay_s

    def wait(self, uniform: Callable[[float, float], float]) -> wait_base:
        """Return the wait before each retry."""
        return wait_as_asked(self, uniform)


class wait_as_asked(wait_base):  # noqa: N801  # named like tenacity's
    """Waits as long as the server asks, else exponentially longer, as RetryPolicy says."""

    def __init__(self, policy: RetryPolicy, uniform: Callable[[float, float], float]) -> None:
        self._most_s = policy.max_delay_s
        self._uniform = uniform
        self._backoff = wait_exponential(
            policy.initial_delay_s, policy.max_delay_s, policy.backoff_factor
        )

    def __call__(self, retry_state: RetryCallState) -> float:
        """Return seconds."""
        asked_s = _error(retry_state).retry_after_s
        if asked_s is not None:
            return asked_s
        return min(self._most_s, self._backoff(retry_state) * self._uniform(0.75, 1.25))


class stop_without_time(stop_base):  # noqa: N801  # named like tenacity's
    """Stops before a wait that would exceed the time limit, and adds that to the error."""

    def __init__(self, limit: asyncio.Timeout) -> None:
        self._limit = limit

    def __call__(self, retry_state: RetryCallState) -> bool:
        """Whether there is no time left."""
        wait_s = retry_state.upcoming_sleep
        if wait_s <= _left_s(self._limit):
            return False
        _error(retry_state).detail += f" (no time left to wait {wait_s:g} s)"
        return True


async def with_retries(
    call: Callable[[], Awaitable[T]],
    policy: RetryPolicy,
    on_retry: Callable[[ProviderError, int, float], None],
    *,
    uniform: Callable[[float, float], float],
    pause: Callable[[ProviderError, float], Awaitable[None]],
    timeout_s: float,
) -> tuple[T, int]:
    """Return what `call` returns and how many tries it took.

    Raises its last ProviderError, `requests` set.

    All tries and waits together take at most `timeout_s`; a wait that would exceed it is not begun.
    `on_retry` gets the error, the number of the retry (from 1) and the wait in seconds; `pause`
    then waits. If it takes longer, to let other questions run, that time does not count.
    """
    last: ProviderError | None = None
    tries = 0

    def report(state: RetryCallState) -> None:
        on_retry(_error(state), state.attempt_number, state.upcoming_sleep)

    async def pause_outside_limit(wait_s: float) -> None:
        assert last is not None, "only after an error is there a wait"
        left_s = _left_s(limit)
        limit.reschedule(None)
        # tenacity's own class of float cannot be sent to other machines.
        await pause(last, float(wait_s))
        limit.reschedule(asyncio.get_running_loop().time() + left_s - wait_s)

    try:
        async with asyncio.timeout(timeout_s) as limit:
            async for attempt in AsyncRetrying(
                retry=retry_if_exception(policy.retries),
                wait=policy.wait(uniform),
                stop=stop_after_attempt(policy.max_retries + 1) | stop_without_time(limit),
                before_sleep=report,
                sleep=pause_outside_limit,
                reraise=True,
            ):
                with attempt:
                    tries = attempt.retry_state.attempt_number
                    try:
                        return await call(), tries
                    except ProviderError as error:
                        error.requests = tries
                        last = error
                        raise
    except TimeoutError as error:
        before = f"; before that: {last.detail}" if last is not None else ""
        detail = f"no answer within {timeout_s:g} s{before}"
        raise ProviderError("timeout", detail, requests=tries) from error
    raise AssertionError("the last try returns or raises")


async def with_attempts(
    call: Callable[[int], Awaitable[T]],
    *,
    repeats: Callable[[ProviderError], bool],
    stops: Callable[[ProviderError], bool],
    max_retries: int,
) -> T:
    """Return what `call` returns in the first attempt (from 0) that does not fail.

    Raises its last ProviderError.

    After an error that `repeats`, the next attempt begins at once, unless it was the last one or
    the error `stops`.
    """
    has_no_retries_left = stop_after_attempt(max_retries + 1)

    def is_over(state: RetryCallState) -> bool:
        return has_no_retries_left(state) or stops(_error(state))

    async for attempt in AsyncRetrying(
        retry=retry_if_exception(lambda error: isinstance(error, ProviderError) and repeats(error)),
        stop=is_over,
        reraise=True,
    ):
        with attempt:
            return await call(attempt.retry_state.attempt_number - 1)
    raise AssertionError("the last attempt returns or raises")


def _error(state: RetryCallState) -> ProviderError:
    """Return the error of a call that is about to be retried."""
    error = state.outcome.exception() if state.outcome is not None else None
    assert isinstance(error, ProviderError), "no other errors are retried"
    return error


def _left_s(limit: asyncio.Timeout) -> float:
    deadline = limit.when()
    assert deadline is not None, "the limit is lifted only during a pause"
    return deadline - asyncio.get_running_loop().time()


def retry_hint_s(headers: Mapping[str, str], now: datetime) -> float | None:
    """Return the seconds a server asks to wait.

    It does with `retry-after-ms`, or with `retry-after` in seconds or as an HTTP date. Invalid,
    negative and infinite values are ignored. Header names are lower case.
    """
    for name, divisor in (("retry-after-ms", 1000.0), ("retry-after", 1.0)):
        value = headers.get(name)
        if value is None:
            continue
        is_number = PLAIN_NUMBER.fullmatch(value.strip())
        seconds = float(value) / divisor if is_number else _until(value, now)
        if math.isfinite(seconds):
            return seconds
    return None


def _until(date: str, now: datetime) -> float:
    """Return the seconds until an HTTP date.

    It has any of its three forms (RFC 9110, section 5.6.7), all in UTC.
    """
    from email.utils import parsedate_to_datetime  # slow to import, and rarely needed

    try:
        moment = parsedate_to_datetime(date)
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=UTC)
        return max(0.0, (moment - now).total_seconds())
    except (ValueError, TypeError, OverflowError):
        return math.nan
