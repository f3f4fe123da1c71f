"""The clock of the machine jumps while a run goes on: rows say what it said, and nobody waits for it."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta, timezone
from email.utils import format_datetime
from itertools import cycle
from pathlib import Path

import pytest

from tests.faults.builders import KEY, documents, gpt, question, run, tool
from tests.faults.catalogue import fails, reply
from tests.faults.server import faulty_api
from tests.support import NOW, FakeClock, clean_environment

HOUR, YEAR = timedelta(hours=1), timedelta(days=365)

JUMPS = {
    "an hour ahead": [NOW, NOW + HOUR],
    "an hour back": [NOW, NOW - HOUR],
    "to and fro": [NOW, NOW + HOUR, NOW - HOUR, NOW + 10 * YEAR, NOW - 10 * YEAR],
    "to the beginning of time": [NOW, datetime.min.replace(tzinfo=UTC)],
    "to the end of time": [NOW, datetime.max.replace(tzinfo=UTC)],
    "to 1970": [NOW, datetime.fromtimestamp(0, UTC)],
    "to another zone": [NOW, NOW.astimezone(timezone(timedelta(hours=14)))],
    "not at all": [NOW],
}


@dataclass(slots=True)
class Clock:
    """Says one time after the other, and remembers what it has said."""

    times: Iterator[datetime]
    said: list[datetime] = field(default_factory=list)

    def now(self) -> datetime:
        self.said.append(next(self.times))
        return self.said[-1]


def written(moment: datetime) -> str:
    """Return a time as rows have it."""
    return moment.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="milliseconds") + "Z"


@pytest.mark.parametrize("workers", [1, 8])
@pytest.mark.parametrize("jump", JUMPS)
def test_rows_have_the_times_that_the_clock_says_and_took_no_less_than_no_time(
    jump: str, workers: int, repository: Path
) -> None:
    clock = Clock(cycle(JUMPS[jump]))
    documents(repository, [{"id": f"case-{number}"} for number in range(12)], tool("echo 42"))
    rows = run(repository, replace(FakeClock(clean_environment()).environment(), now=clock.now), workers=workers)
    assert [row.status for row in rows] == ["ok"] * 12
    assert [row.timestamp for row in rows] == [written(moment) for moment in clock.said]
    assert all(row.duration_ms >= 0 for row in rows)


IN_FIVE_SECONDS = format_datetime(NOW + timedelta(seconds=5), usegmt=True)
LONGEST_S = 60
PLAYS = {
    "limited": (fails(429, retry_after=IN_FIVE_SECONDS), reply()),
    "overloaded": (fails(503, retry_after=IN_FIVE_SECONDS), fails(503, retry_after=IN_FIVE_SECONDS), reply()),
}


@pytest.mark.parametrize(
    ("skew", "waited_s"),
    [
        (timedelta(0), 5),
        (timedelta(seconds=3), 2),
        (timedelta(seconds=5), 0),
        (timedelta(seconds=-55), 60),
        (timedelta(seconds=-56), None),
        (HOUR, 0),
        (-HOUR, None),
        (10 * YEAR, 0),
        (-10 * YEAR, None),
        (datetime.max.replace(tzinfo=UTC) - NOW, 0),
        (datetime.min.replace(tzinfo=UTC) - NOW, None),
    ],
    ids=str,
)
def test_a_date_to_wait_for_is_never_waited_for_longer_than_the_longest_wait(
    skew: timedelta, waited_s: float | None, repository: Path
) -> None:
    waits = FakeClock(clean_environment({"MOCK_KEY": KEY}))
    with faulty_api(PLAYS) as api:
        asked = {"id": "one", "input_messages": question("case: one; fault: limited")}
        documents(repository, [asked], gpt(api.base_url, retry_max_delay_ms=LONGEST_S * 1000))
        (row,) = run(repository, replace(waits.environment(), now=lambda: NOW + skew))
    # The question waits, and so do all others that its target could be asked meanwhile.
    found = (row.status, row.error_kind, row.requests, set(waits.slept))
    if waited_s is None:
        assert found == ("error", "rate_limit", 1, set())
        assert "longer than retry_max_delay_ms" in (row.error or "")
    else:
        assert found == ("ok", None, 2, {waited_s})


def test_a_date_to_wait_for_that_lies_behind_the_time_of_the_case_is_not_waited_for(repository: Path) -> None:
    waits = FakeClock(clean_environment({"MOCK_KEY": KEY}))
    with faulty_api(PLAYS) as api:
        asked = {"id": "one", "input_messages": question("case: one; fault: limited")}
        patient = gpt(api.base_url, retry_max_delay_ms=10 * HOUR.total_seconds() * 1000)
        documents(repository, [asked], patient, timeout_seconds=LONGEST_S)
        (row,) = run(repository, replace(waits.environment(), now=lambda: NOW - HOUR))
    assert (row.status, row.error_kind, row.requests, waits.slept) == ("error", "rate_limit", 1, [])
    assert "no time left to wait 3605 s" in (row.error or "")


def test_a_clock_that_jumps_at_every_look_makes_nobody_wait_long_and_loses_no_row(repository: Path) -> None:
    chance = random.Random(20_300_102)
    spans = (timedelta(seconds=2), timedelta(minutes=1), HOUR, 10 * YEAR)
    clock = Clock(NOW + chance.uniform(-1, 1) * chance.choice(spans) for _ in iter(int, 1))
    waits = FakeClock(clean_environment({"MOCK_KEY": KEY}))
    faults = {f"case-{number:03}": chance.choice(list(PLAYS)) for number in range(200)}
    with faulty_api(PLAYS) as api:
        asked = [
            {"id": name, "input_messages": question(f"case: {name}; fault: {fault}")} for name, fault in faults.items()
        ]
        documents(repository, asked, gpt(api.base_url, retry_max_delay_ms=LONGEST_S * 1000))
        rows = run(repository, replace(waits.environment(), now=clock.now), workers=16)
    assert sorted(row.eval_id for row in rows) == list(faults)
    assert {row.timestamp for row in rows} <= {written(moment) for moment in clock.said}
    kinds = {"limited": "rate_limit", "overloaded": "server"}
    for row in rows:
        wanted, kind = len(PLAYS[faults[row.eval_id]]), kinds[faults[row.eval_id]]
        assert row.duration_ms >= 0
        assert (row.error_kind, row.requests == wanted) in ((None, True), (kind, False))
    assert {row.status for row in rows} == {"ok", "error"}
    # A wait is what is left until a moment, and the moment is a rounded sum.
    assert all(0 <= waited_s <= LONGEST_S + 1e-6 for waited_s in waits.slept), max(waits.slept)
    assert len(waits.slept) >= sum(row.requests - 1 for row in rows)
