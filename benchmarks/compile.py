"""Time `python -m agentv_ci compile` over more and more cases and print one Markdown table; README.md explains it."""

from __future__ import annotations

import argparse
import compileall
import os
import platform
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from workload import CASES_PER_FILE, folder_of

import agentv_ci

LINEAR = 1.2
"""At most this many times the time of a case at the size before."""
MOST_MEBIBYTES = 1_024


@dataclass(frozen=True, slots=True)
class Run:
    """What one compilation took."""

    seconds: float
    mebibytes: float
    plan_mebibytes: float


def main() -> None:
    """Measure and print."""
    options = _options()
    compileall.compile_dir(str(Path(agentv_ci.__file__).parent), quiet=1)
    runs: dict[int, list[Run]] = {size: [] for size in options.cases}
    with tempfile.TemporaryDirectory() as scratch:
        root = Path(scratch)
        (root / ".git").mkdir()
        for _ in range(options.rounds):
            for size in options.cases:
                runs[size].append(_run(folder_of(root, "agentv-ci", size // CASES_PER_FILE), root / "plan.json"))
    print("| cases | wall | a case | times the row above | peak memory | plan |\n|--:|--:|--:|--:|--:|--:|")
    for before, size in zip([options.cases[0], *options.cases], options.cases, strict=False):
        print(_row(size, runs[size], before, runs[before]))
    print(f"\n* Medians of {options.rounds} interleaved rounds; ratios are medians of the rounds' ratios.")
    print(f"* Python {platform.python_version()}, {os.cpu_count()} cores, {platform.system()} {platform.machine()}.")
    print(f"* Bars: a case at most {LINEAR:g} times that of the row above, memory below {MOST_MEBIBYTES:,} MiB.")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3, help="how often every size is compiled (default: 3)")
    parser.add_argument(
        "--cases",
        type=lambda text: [int(word) for word in text.split(",")],
        default=[1_000, 10_000, 100_000],
        help="default: 1000,10000,100000",
    )
    return parser.parse_args()


def _run(folder: Path, plan: Path) -> Run:
    start = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, "-m", "agentv_ci", "compile", ".", "--out", str(plan)], cwd=folder, stderr=subprocess.DEVNULL
    )
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - start
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        sys.exit(f"compile ended with {process.returncode} over {folder}")
    return Run(seconds, usage.ru_maxrss / 1024, plan.stat().st_size / 2**20)


def _row(size: int, found: list[Run], before: int, others: list[Run]) -> str:
    seconds, memory = median(run.seconds for run in found), max(run.mebibytes for run in found)
    pairs = zip(found, others, strict=True)
    growth = median((run.seconds / size) / (other.seconds / before) for run, other in pairs)
    met = growth <= LINEAR and memory < MOST_MEBIBYTES
    compared = f"{growth:.2f}×, {'met' if met else 'not met'}" if size != before else "–"
    cells = [
        f"{size:,}",
        f"{seconds:.2f} s",
        f"{seconds / size * 1000:.2f} ms",
        compared,
        f"{memory:.0f} MiB",
        f"{found[0].plan_mebibytes:.0f} MiB",
    ]
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    main()
