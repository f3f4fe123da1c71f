"""The one retry policy; the door to tenacity."""

from __future__ import annotations

import asyncio
import math
import re
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime
from typing import TypeVar

from msgspec import Struct
from tenacity import AsyncRetrying, RetryCallState, retry_if_exception, stop_after_attempt

from agentv_ci.contracts.exchange import ProviderError

T = TypeVar("T")

PLAIN_NUMBER = re.compile(r"[0-9]+(\.[0-9]+)?")
NEVER_RETRIED = frozenset({401, 403})
DEFAULT_STATUS_CODES = frozenset({408, 429, 500, 502, 503, 504})


class RetryPolicy(Struct, frozen=True):
    """delay(n) = min(cap, initial · factor^n) · U(0.75, 1.25), never above the cap; n counts from 0."""

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

    def delay_s(self, retry: int, hint_s: float | None, uniform: Callable[[float, float], float]) -> float:
        """Return the wait before retry number `retry` (from 0); the server's hint takes precedence."""
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

    All tries and waits together take at most `timeout_s`; a wait that would exceed it is not begun. `on_retry` gets the
    error, the number of the retry (from 1) and the wait in seconds; `pause` then waits. If it takes longer, to let
    other questions run, that time does not count.
    """
    failures: list[ProviderError] = []

    async def attempt() -> T:
        try:
            return await call()
        except ProviderError as error:
            failures.append(error)
            error.requests = len(failures)
            raise

    async def pause_before_retry(_: RetryCallState) -> None:
        error, loop, deadline = failures[-1], asyncio.get_running_loop(), limit.when()
        assert deadline is not None, "the limit is lifted only while this waits"
        wait_s = policy.delay_s(len(failures) - 1, error.retry_after_s, uniform)
        left_s = deadline - loop.time()
        if wait_s > left_s:
            error.detail += f" (no time left to wait {wait_s:g} s)"
            raise error
        on_retry(error, len(failures), wait_s)
        limit.reschedule(None)
        await pause(error, wait_s)
        limit.reschedule(loop.time() + left_s - wait_s)

    try:
        async with asyncio.timeout(timeout_s) as limit:
            try:
                # Without tenacity, whose overhead is a tenth of a request; most succeed at once.
                return await attempt(), 1
            except ProviderError as error:
                if policy.max_retries == 0 or not policy.retries(error):
                    raise
            retrying = AsyncRetrying(
                before=pause_before_retry,
                retry=retry_if_exception(policy.retries),
                stop=stop_after_attempt(policy.max_retries),
                sleep=asyncio.sleep,
                reraise=True,
            )
            return await retrying(attempt), len(failures) + 1
    except TimeoutError as error:
        before = f"; before that: {failures[-1].detail}" if failures else ""
        detail = f"no answer within {timeout_s:g} s{before}"
        raise ProviderError("timeout", detail, requests=len(failures) + 1) from error


def retry_hint_s(headers: Mapping[str, str], now: datetime) -> float | None:
    """Return the seconds a server asks to wait: `retry-after-ms`, or `retry-after` in seconds or as an HTTP date.

    Invalid, negative and infinite values are ignored. Header names are lower case.
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
    """Return the seconds until an HTTP date, in any of its three forms (RFC 9110, section 5.6.7), all in UTC."""
    from email.utils import parsedate_to_datetime  # slow to import, and rarely needed

    try:
        moment = parsedate_to_datetime(date)
        moment = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
        return max(0.0, (moment - now).total_seconds())
    except (ValueError, TypeError, OverflowError):
        return math.nan
