"""The one retry policy; the door to tenacity."""

from __future__ import annotations

import asyncio
import math
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TypeVar

from tenacity import AsyncRetrying, RetryCallState, retry_if_exception, stop_after_attempt

from agentv_ci.contracts.exchange import ProviderError

T = TypeVar("T")

PLAIN_NUMBER = re.compile(r"[0-9]+(\.[0-9]+)?")
NEVER_RETRIED = frozenset({401, 403})
DEFAULT_STATUS_CODES = frozenset({408, 429, 500, 502, 503, 504})


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """delay(n) = min(cap, initial · factor^n) · U(0.75, 1.25), never above the cap; n counts from 0."""

    max_retries: int = 3
    initial_delay_s: float = 1.0
    max_delay_s: float = 60.0
    backoff_factor: float = 2.0
    status_codes: frozenset[int] = DEFAULT_STATUS_CODES

    def retries(self, error: BaseException) -> bool:
        """Whether the same request is worth another try.

        A server that asks for a longer wait than the cap is not waited for.
        """
        if not isinstance(error, ProviderError) or not self._is_passing(error):
            return False
        return error.retry_after_s is None or error.retry_after_s <= self.max_delay_s

    def _is_passing(self, error: ProviderError) -> bool:
        if error.status is None:
            return error.retryable
        return error.retryable and error.status in self.status_codes and error.status not in NEVER_RETRIED

    def delay_s(self, retry: int, hint_s: float | None, uniform: Callable[[float, float], float]) -> float:
        """Return the wait before retry number `retry` (from 0); the server's hint goes before."""
        if hint_s is not None:
            return hint_s
        try:
            computed = self.initial_delay_s * self.backoff_factor**retry
        except OverflowError:
            computed = self.max_delay_s
        return min(self.max_delay_s, min(self.max_delay_s, computed) * uniform(0.75, 1.25))


async def with_retries(
    call: Callable[[], Awaitable[T]],
    policy: RetryPolicy,
    on_retry: Callable[[ProviderError, int, float], None],
    *,
    uniform: Callable[[float, float], float],
    pause: Callable[[ProviderError, float], Awaitable[None]],
    timeout_s: float,
) -> tuple[T, int]:
    """Return what `call` returns and how many tries it took; raises its last ProviderError, `requests` set.

    All tries and waits together take no longer than `timeout_s`; a wait for which there is no time is not begun.
    `on_retry` is told the error, the number of the retry (from 1) and the wait in seconds; `pause` then waits. What it
    takes longer than that is for others' sake and does not count.
    """
    tries = 0
    last: ProviderError | None = None
    loop = asyncio.get_running_loop()

    async def attempt() -> T:
        nonlocal tries, last
        tries += 1
        try:
            return await call()
        except ProviderError as error:
            error.requests = tries
            last = error
            raise

    def wait(state: RetryCallState) -> float:
        error = _error(state)
        return policy.delay_s(state.attempt_number - 1, error.retry_after_s, uniform)

    async def sleep(seconds: float) -> None:
        assert last is not None, "there is a wait after a failure only"
        deadline = limit.when()
        assert deadline is not None, "it is only put off below"
        left_s = deadline - loop.time()
        if seconds > left_s:
            last.detail += f" (no time to wait {seconds:g} s)"
            raise last
        limit.reschedule(None)
        await pause(last, seconds)
        limit.reschedule(loop.time() + left_s - seconds)

    def tell(state: RetryCallState) -> None:
        assert state.next_action is not None
        on_retry(_error(state), state.attempt_number, state.next_action.sleep)

    retrying = AsyncRetrying(
        stop=stop_after_attempt(policy.max_retries + 1),
        wait=wait,
        retry=retry_if_exception(policy.retries),
        before_sleep=tell,
        sleep=sleep,
        reraise=True,
    )
    try:
        async with asyncio.timeout(timeout_s) as limit:
            return await retrying(attempt), tries
    except TimeoutError as error:
        before = f"; before that: {last.detail}" if last is not None else ""
        raise ProviderError("timeout", f"no answer within {timeout_s:g} s{before}", requests=tries) from error


def _error(state: RetryCallState) -> ProviderError:
    assert state.outcome is not None
    error = state.outcome.exception()
    assert isinstance(error, ProviderError)
    return error


def retry_hint_s(headers: Mapping[str, str], now: datetime) -> float | None:
    """Return the seconds a server asks to wait: `retry-after-ms`, `retry-after` in seconds, or as an HTTP date.

    Junk, negative and infinite values count as absent. Header names are lower case.
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
    """Seconds until an HTTP date, in any of its three forms (RFC 9110, section 5.6.7), which all are in UTC."""
    try:
        moment = parsedate_to_datetime(date)
        moment = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
        return max(0.0, (moment - now).total_seconds())
    except (ValueError, TypeError, OverflowError):
        return math.nan
