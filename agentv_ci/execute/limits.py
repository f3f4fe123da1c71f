"""How many questions are asked at once, and how that adapts to rate limits.

HTTP 429 halves a target's slots and holds them back for as long as the server asks; every full
round of answers adds one slot again, or a sixteenth of them. Other failures of the server stop that
growth for a round.

A target that cannot be reached is down: no question waits for it. What is under way asks on, and an
answer ends that.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from datetime import UTC
from typing import Protocol

from agentv_ci.contracts.base import ErrorKind
from agentv_ci.contracts.exchange import Environment, Log, ProviderError
from agentv_ci.contracts.report import ConcurrencyChange
from agentv_ci.contracts.targets import Target, at_most, cases_at_once, own_workers

MAX_CHANGES = 10_000
"""Changes that are kept for the report."""
LONGEST_HOLD_S = 60.0
"""The longest `Retry-After` that holds a target back when the refused question is not asked again.
"""
PAUSING: frozenset[ErrorKind] = frozenset({"rate_limit", "server", "network", "timeout"})
"""Failures that may be due to load."""
TOO_MANY = "HTTP 429"
"""The reason of fewer slots."""
DOWN_AFTER = 5
"""Failed connections in a row after which a target is down."""
GROWTH = 16
"""Slots grow by this part of them, or by one: a thousand would take hours to come back one by one.
"""
LEAST_CHANGE_S = 1.0
"""A wait that grows by less is not reported: many questions are refused within moments of each
other.
"""


class SharedSlots(Protocol):
    """Slots of a target that several processes share."""

    async def acquire(self) -> None:
        """Take a slot for this task, once there is one."""

    async def release(self) -> None:
        """Give back the slot of this task, if it has one."""


class Limits:
    """`--workers` bounds the whole run and each target.

    Without it a target's `workers` bounds that target.
    """

    def __init__(
        self,
        workers: int | None,
        targets: Mapping[str, Target],
        answering: Iterable[str],
        environment: Environment,
        log: Log,
    ) -> None:
        self.width = cases_at_once(workers, [targets[key] for key in dict.fromkeys(answering)])
        """Cases at once."""
        self.changes: list[ConcurrencyChange] = []
        """All changes of slots, in order."""
        self._log = log
        self._limits = {
            key: Limit(
                target.name, at_most(target, workers or own_workers(target)), environment, self._add
            )
            for key, target in targets.items()
        }

    def of(self, target: str) -> Limit:
        """Return the slots of a target."""
        return self._limits[target]

    def _add(self, change: ConcurrencyChange) -> None:
        if len(self.changes) < MAX_CHANGES:
            self.changes.append(change)
        held = f", waiting {change.held_s:g} s" if change.held_s else ""
        self._log(
            f"{change.target}: concurrency {change.before} → {change.after}{held}: {change.reason}"
        )

    async def close(self) -> None:
        """End all waiting."""
        for limit in self._limits.values():
            await limit.close()


class Limit:
    """The slots of one target, given away in the order of asking."""

    def __init__(
        self,
        name: str,
        most: int,
        environment: Environment,
        on_change: Callable[[ConcurrencyChange], None],
    ) -> None:
        self.width = most
        """The current number of slots."""
        self.on_room: Callable[[], None] = lambda: None
        """Called whenever there may be room for more."""
        self.on_refused: Callable[[float], None] = lambda _: None
        """Called when a question is refused for its rate, with the seconds to wait."""
        self.shared: SharedSlots | None = None
        """Slots that a question takes besides its own here."""
        self._name = name
        self._most = most
        self._environment = environment
        self._on_change = on_change
        self._taken = 0
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._repeating: deque[asyncio.Future[None]] = deque()
        """Questions that are asked again; they go first."""
        self._answered = 0
        """Answers since the last change or failure."""
        self._stale = 0
        """Questions under way when the slots were last halved: their refusals do not halve again.
        """
        self._unconnected = 0
        """Connections in a row that failed."""
        self._given_up = ""
        """The failure of a question that had all its tries among these."""
        self._held_until = 0.0
        self._hold: asyncio.Task[None] | None = None

    @asynccontextmanager
    async def slot(self) -> AsyncIterator[None]:
        """Hold a slot; the question's outcome may change how many there are.

        Raises ProviderError when the target is down.
        """
        await self._take()
        if self._is_down:
            self._release()
            raise ProviderError("network", self._down, unreachable=True, requests=0)
        try:
            if self.shared is not None:
                await self.shared.acquire()
            yield
        except ProviderError as error:
            # The next question would be refused too.
            hint_s = error.retry_after_s or 0.0
            self._failed(error, hold_s=hint_s if hint_s <= LONGEST_HOLD_S else 0.0)
            if error.unreachable and not self._is_down:
                self._given_up = error.detail
            raise
        else:
            self._succeeded()
        finally:
            self._release()
            if self.shared is not None:
                await self.shared.release()

    async def pause(self, error: ProviderError, wait_s: float) -> None:
        """Give the slot away, wait, and take one again; raises the error if the target is down."""
        self._failed(error, hold_s=wait_s if error.retry_after_s is not None else 0.0)
        if self._is_down:
            error.detail = self._down
            raise error
        self._release()
        try:
            if self.shared is not None:
                await self.shared.release()
            await self._environment.sleep(wait_s)
            await self._take(first=True)
        except BaseException:
            # The slot is given back when the question ends.
            self._taken += 1
            raise
        if self.shared is not None:
            await self.shared.acquire()

    def allow(self, most: int) -> None:
        """Set the number of slots, unless refusals have reduced them."""
        if self.width == self._most:
            self.width = self._most = most
            self._admit()

    def refused(self, hold_s: float) -> bool:
        """Take in that a question was refused for its rate, here or elsewhere.

        Returns whether that changes slots.
        """
        self._answered = 0
        held_s, is_stale = self._hold_back(hold_s), self._stale > 0
        is_change = held_s >= LEAST_CHANGE_S if is_stale else self.width > 1 or held_s > 0
        if is_change:
            self._stale = self._stale or self._taken
            self._change(self.width if is_stale else max(1, self.width // 2), TOO_MANY, held_s)
        return is_change

    async def _take(self, *, first: bool = False) -> None:
        if self._has_room() and not self._repeating and (first or not self._waiting):
            self._taken += 1
            return
        turn = asyncio.get_running_loop().create_future()
        (self._repeating if first else self._waiting).append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self._release()
            raise

    @property
    def _is_down(self) -> bool:
        """Whether connections fail, and a question has had all the retries that the target sets."""
        return self._unconnected >= DOWN_AFTER and self._given_up != ""

    @property
    def _down(self) -> str:
        return f"{self._name} is down ({DOWN_AFTER} connections in a row failed): {self._given_up}"

    def _has_room(self) -> bool:
        return self._hold is None and self._taken < self.width

    def _release(self) -> None:
        self._taken -= 1
        self._stale = max(0, self._stale - 1)
        self._admit()

    def _admit(self) -> None:
        while (self._repeating or self._waiting) and self._has_room():
            turn = (self._repeating or self._waiting).popleft()
            if not turn.done():
                self._taken += 1
                turn.set_result(None)
        self.on_room()

    def _succeeded(self) -> None:
        self._unconnected, self._given_up = 0, ""
        if self._stale:
            # It was asked when there were more slots.
            return
        self._answered += 1
        if self.width < self._most and self._answered >= self.width:
            more = max(1, self.width // GROWTH)
            self._change(min(self._most, self.width + more), "no refusals in a full round")

    def _failed(self, error: ProviderError, *, hold_s: float) -> None:
        if error.unreachable:
            self._unconnected += 1
        else:
            self._unconnected, self._given_up = 0, ""
        if error.kind in PAUSING:
            self._answered = 0
        if error.kind == "rate_limit" and error.retryable:
            self.on_refused(hold_s)
            self.refused(hold_s)

    def _change(self, width: int, reason: str, held_s: float = 0.0) -> None:
        at = (
            self._environment.now()
            .astimezone(UTC)
            .isoformat(timespec="milliseconds")
            .replace("+00:00", "Z")
        )
        change = ConcurrencyChange(
            at=at,
            target=self._name,
            before=self.width,
            after=width,
            held_s=round(held_s, 3),
            reason=reason,
        )
        self.width, self._answered = width, 0
        self._on_change(change)

    def _hold_back(self, seconds: float) -> float:
        """Hold all questions back; returns how much longer that is than before, in seconds."""
        now = self._environment.monotonic()
        more_s = now + seconds - max(self._held_until, now)
        if more_s <= 0:
            return 0.0
        self._held_until = now + seconds
        if self._hold is None:
            self._hold = asyncio.create_task(self._wait_out())
        return more_s

    async def _wait_out(self) -> None:
        while (left_s := self._held_until - self._environment.monotonic()) > 0:
            await self._environment.sleep(left_s)
        self._hold = None
        self._admit()

    async def close(self) -> None:
        """End the waiting."""
        if self._hold is not None:
            self._hold.cancel()
            await asyncio.gather(self._hold, return_exceptions=True)
