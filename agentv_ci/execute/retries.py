"""Ask again after errors that may pass, and log each retry."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

from agentv_ci.contracts.exchange import ProviderError
from agentv_ci.execute.provider_services import ProviderServices
from agentv_ci.retry import RetryPolicy, with_retries

T = TypeVar("T")


async def logged_retries(
    call: Callable[[], Awaitable[T]], policy: RetryPolicy, target: str, services: ProviderServices, *, timeout_s: float
) -> tuple[T, int]:
    """Return what `call` returns and how many tries it took; raises its last ProviderError. See `with_retries`."""

    def on_retry(error: ProviderError, retry: int, wait_s: float) -> None:
        tries = f"retry {retry} of {policy.max_retries} in {wait_s:.1f} s"
        services.log(f"{target}: {error.detail}; {tries}")

    return await with_retries(
        call,
        policy,
        on_retry,
        uniform=services.environment.uniform,
        pause=services.pause,
        timeout_s=timeout_s,
    )
