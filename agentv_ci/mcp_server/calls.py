"""Bounds what clients can make a server do at once, and for how long."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from agentv_ci.errors import INFRASTRUCTURE, CannotGoOn

T = TypeVar("T")

MAX_CALLS = 8
LONGEST_S = 60.0


class Busy(CannotGoOn):
    """A call is refused, or given up."""

    exit_code = INFRASTRUCTURE


class Calls:
    """Runs the work of calls in threads, of which there are few."""

    def __init__(self, *, most: int = MAX_CALLS, longest_s: float = LONGEST_S) -> None:
        self._free = threading.Semaphore(most)
        self._threads = ThreadPoolExecutor(max_workers=2, thread_name_prefix="call")
        self._longest_s = longest_s

    async def work(self, function: Callable[[], T]) -> T:
        """Return the result of a function that blocks; raises what it raises, and Busy.

        A call that is given up counts until its thread has ended: otherwise many of them could hold
        up the machine.
        """
        if not self._free.acquire(blocking=False):
            raise Busy("too many calls are under way", hint="wait for their results")
        future = self._threads.submit(function)
        future.add_done_callback(lambda _: self._free.release())
        try:
            async with asyncio.timeout(self._longest_s):
                return await asyncio.wrap_future(future)
        except TimeoutError as error:
            raise Busy(
                f"not finished after {self._longest_s:g} s", hint="name fewer files"
            ) from error
