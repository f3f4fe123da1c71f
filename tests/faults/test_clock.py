"""The machine's clock jumps during a run: rows have its times, and waits stay within their limits."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta, timezone
from email.utils import format_datetime
from itertools import cycle
from pathlib import Path

import pytest

from tests.faults.builders import gpt
from tests.faults.catalogue import fails, reply
from tests.faults.server import faulty_api
from tests.support import NOW, FakeClock, clean_environment
from tests.support.evals import KEY, Run, mock, question

HOUR, YEAR = timedelta(hours=1), timedelta(days=365)
FIRST, LAST = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)


@dataclass(slots=True)
class Clock:
    """Returns one time after the other, and remembers them."""

    times: Iterator[datetime]
    returned: list[datetime] = field(default_factory=list)

    def now(self) -> datetime:
        self.returned.append(next(self.times))
        return self.returned[-1]


def written(moment: datetime) -> str:
    """Return a time as rows have it."""
    return moment.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="milliseconds") + "Z"


@pytest.mark.parametrize(
    "times",
    [
        [NOW, NOW + HOUR, NOW - HOUR, NOW + 10 * YEAR, NOW - 10 * YEAR],
        [NOW, FIRST, LAST, datetime.fromtimestamp(0, UTC)],
        [NOW, NOW.astimezone(timezone(timedelta(hours=14)))],
    ],
    ids=["jumps", "extremes", "zones"],
)
def test_rows_have_the_times_of_the_clock_and_no_negative_duration(times: list[datetime], repository: Path) -> None:
    clock = Clock(cycle(times))
    run = Run(repository, environment=replace(FakeClock().environment(), now=clock.now))
    run.documents([f"case-{number}" for number in range(12)], mock())
    rows = run.rows(workers=8)
    assert [row.status for row in rows] == ["ok"] * 12
    assert [row.timestamp for row in rows] == [written(moment) for moment in clock.returned]
    assert all(row.duration_ms >= 0 for row in rows)


IN_FIVE_SECONDS = format_datetime(NOW + timedelta(seconds=5), usegmt=True)
LONGEST_S = 60
PLAYS = {
    "limited": (fails(429, retry_after=IN_FIVE_SECONDS), reply()),
    "overloaded": (fails(503, retry_after=IN_FIVE_SECONDS), fails(503, retry_after=IN_FIVE_SECONDS), reply()),
}
PATIENT = {"retry_max_delay_ms": LONGEST_S * 1000}


@pytest.mark.parametrize(
    ("skew", "waited_s"),
    [
        (timedelta(0), 5),
        (timedelta(seconds=5), 0),
        (timedelta(seconds=-55), 60),
        (timedelta(seconds=-56), None),
        (10 * YEAR, 0),
        (-10 * YEAR, None),
        (LAST - NOW, 0),
        (FIRST - NOW, None),
    ],
    ids=str,
)
def test_a_date_in_retry_after_is_waited_for_up_to_the_longest_wait(
    skew: timedelta, waited_s: float | None, repository: Path
) -> None:
    waits = FakeClock(clean_environment({"MOCK_KEY": KEY}))
    run = Run(repository, environment=replace(waits.environment(), now=lambda: NOW + skew))
    with faulty_api(PLAYS) as api:
        run.documents(
            [{"id": "one", "input_messages": question("case: one; fault: limited")}], gpt(api.base_url, **PATIENT)
        )
        (row,) = run.rows()
    # The question waits, and so do all others of its target.
    found = (row.status, row.error_kind, row.requests, set(waits.slept))
    assert found == (("error", "rate_limit", 1, set()) if waited_s is None else ("ok", None, 2, {waited_s}))
