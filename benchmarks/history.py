"""Measure a ledger of a year, and how well planted states are found; README.md explains it."""

from __future__ import annotations

import argparse
import asyncio
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from statistics import median
from typing import TypeVar

sys.path.insert(0, str(Path(__file__).parent.parent))

from agentv_ci.analysis.health.report import health_of
from agentv_ci.app.run.environment import system_environment
from agentv_ci.ledger.lines import file_of
from agentv_ci.ledger.place import LedgerPlace, add_to_ledger, read_ledger
from tests.support.nights import Precision, ledger_of, night_of, plan, year_of

T = TypeVar("T")

MEGABYTES, ADD_S, READ_S, ENOUGH = 5.0, 1.0, 2.0, 0.95
"""The bars."""
NIGHTS = 200


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=500)
    parser.add_argument("--nights", type=int, default=365)
    parser.add_argument(
        "--rounds", type=int, default=5, help="how often adding and reading are timed (default: 5)"
    )
    parser.add_argument(
        "--seeds", type=int, default=10, help="simulations with planted states (default: 10)"
    )
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        asyncio.run(_store(Path(scratch), options.cases, options.nights, options.rounds))
    _states(options.seeds)


async def _store(folder: Path, cases: int, nights: int, rounds: int) -> None:
    """Add a run for each night, each in a commit of its own, as CI does.

    Then pack the repository.
    """
    _git(folder, "init", "--quiet")
    place, environment = LedgerPlace(folder), system_environment(os.environ)
    seconds = []
    for night, lines in enumerate(year_of(cases, nights)):
        url = f"https://github.com/acme/evals/actions/runs/{19_000_000_000 + 7_919 * night}"
        files = dict(
            [file_of(lines, time=night_of(night), commit=f"{night * 7_919:040x}", run_url=url)]
        )
        _, took = await _timed(lambda files=files: add_to_ledger(place, files, environment))  # type: ignore[misc]
        seconds.append(took)
    _git(folder, "gc", "--quiet")
    packed = sum(
        path.stat().st_size for path in (folder / ".git" / "objects").rglob("*") if path.is_file()
    )
    reads = [await _timed(lambda: read_ledger(place, environment)) for _ in range(rounds)]
    ledger = reads[-1][0]
    begun = time.perf_counter()
    health_of(ledger)
    health_s = time.perf_counter() - begun
    print(f"{cases} cases, {nights} nights, {sum(len(run.cases) for run in ledger.runs):,} lines\n")
    print("| | measured | bar |\n|---|--:|--:|")
    print(f"| packed | {packed / 1e6:.2f} MB | {MEGABYTES:g} MB |")
    print(f"| adding the last runs | {median(seconds[-rounds:]):.2f} s | {ADD_S:g} s |")
    print(f"| reading all | {median(took for _, took in reads):.2f} s | {READ_S:g} s |")
    print(f"| health, without reading | {health_s:.2f} s | – |\n")


async def _timed(work: Callable[[], Awaitable[T]]) -> tuple[T, float]:
    begun = time.perf_counter()
    return await work(), time.perf_counter() - begun


def _git(folder: Path, *words: str) -> None:
    subprocess.run(["git", "-C", folder, *words], check=True)  # noqa: S607  # that of the machine


def _states(seeds: int) -> None:
    precision, alarms = Precision(), 0
    for seed in range(seeds):
        cases = plan(seed, nights=NIGHTS, of_each=10)
        precision.count(cases, health_of(ledger_of(cases, seed, NIGHTS)))
        alarms += _is_alarmed(seed)
    print(f"Planted states in {NIGHTS} nights, {seeds} seeds (bar: {ENOUGH:g} each):\n")
    print("| state | precision | recall |\n|---|--:|--:|")
    for state, (right, recalled) in precision.figures().items():
        print(f"| {state} | {right:.3f} | {recalled:.3f} |")
    print(f"\nReports with a drift of 100 cases without any: {alarms} of {seeds}.")


def _is_alarmed(seed: int) -> bool:
    """Whether a drift is found among cases of which none drifts."""
    healthy = [
        each
        for each in plan(1_000 + seed, nights=NIGHTS, of_each=10)
        if each.state in ("clean", "noisy")
    ]
    report = health_of(ledger_of(healthy, seed, NIGHTS))
    return any(each.kind.startswith("drifting") for each in report.findings)


if __name__ == "__main__":
    main()
