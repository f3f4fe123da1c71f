"""Ask again after errors that may pass, and log each retry."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from msgspec.structs import replace

from agentv_ci.base.retry import RetryPolicy, with_retries
from agentv_ci.contracts.exchange import ProviderError, Response
from agentv_ci.contracts.results import Expense
from agentv_ci.execute.provider_services import ProviderServices


async def logged_retries(
    call: Callable[[], Awaitable[Response]],
    policy: RetryPolicy,
    target: str,
    services: ProviderServices,
    *,
    timeout_s: float,
) -> tuple[Response, int]:
    """Return the answer of `call` and how many tries it took; raises its last ProviderError.

    See `with_retries`.

    Both have the expenses of the tries before.
    """
    expenses: list[Expense] = []

    async def counted() -> Response:
        try:
            response = await call()
        except ProviderError as error:
            error.earlier = (*expenses, *error.earlier)
            expenses[:] = error.expenses
            raise
        if expenses:
            return replace(response, expenses=(*expenses, *response.expenses))
        return response

    def on_retry(error: ProviderError, retry: int, wait_s: float) -> None:
        tries = f"retry {retry} of {policy.max_retries} in {wait_s:.1f} s"
        services.log(f"{target}: {error.detail}; {tries}")

    try:
        return await with_retries(
            counted,
            policy,
            on_retry,
            uniform=services.environment.uniform,
            pause=services.pause,
            timeout_s=timeout_s,
        )
    except ProviderError as error:
        if error.kind == "timeout" and not error.expenses:
            # The time was over during another try.
            error.earlier = tuple(expenses)
        raise
