"""Time commands over more and more cases, print one Markdown table, and draw it.

README.md explains it.
"""

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

from plots import drawing
from workload import CASES_PER_FILE, folder_of

import agentv_ci

LINEAR = 1.2
"""At most this many times the time of a case at the size before, from 1,000 cases on."""
COMMANDS = {
    "validate": ("validate", ".", "--no-cache"),
    "compile": ("compile", ".", "--out", "plan.json"),
    "eval of that plan": (
        "eval",
        "plan.json",
        "--workers",
        "16",
        "--quiet",
        "--out",
        "results.jsonl",
    ),
    "report": ("report", "results.jsonl"),
}


@dataclass(frozen=True, slots=True)
class Run:
    """What one command took."""

    seconds: float
    mebibytes: float


def main() -> None:
    """Measure, print and draw."""
    options = _options()
    compileall.compile_dir(str(Path(agentv_ci.__file__).parent), quiet=1)
    runs: dict[tuple[str, int], list[Run]] = {
        (name, size): [] for size in options.cases for name in COMMANDS
    }
    with tempfile.TemporaryDirectory() as scratch:
        root = Path(scratch)
        (root / ".git").mkdir()
        for size in options.cases:
            folder = folder_of(
                root, "agentv-ci", max(1, size // CASES_PER_FILE), cases=min(size, CASES_PER_FILE)
            )
            for _ in range(options.rounds):
                for name, arguments in COMMANDS.items():
                    runs[name, size].append(_run(arguments, folder))
    print("| cases | " + " | ".join(COMMANDS) + " |\n|--:|" + "--:|" * len(COMMANDS))
    for before, size in zip([0, *options.cases], options.cases, strict=False):
        print(f"| {size:,} | {' | '.join(_cell(runs, name, before, size) for name in COMMANDS)} |")
    print(
        f"\n* Median seconds and peak memory of {options.rounds} rounds; the ratio is that of the time of a case to the"
    )
    print(f"  row above. Bar: at most {LINEAR:g} from 1,000 cases on.")
    print(
        f"* Python {platform.python_version()}, {os.cpu_count()} cores, {platform.system()} {platform.machine()}."
    )
    if options.plots is not None:
        _draw(runs, options.cases, options.plots)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--rounds", type=int, default=3, help="how often every command runs (default: 3)"
    )
    parser.add_argument(
        "--cases",
        type=lambda text: [int(word) for word in text.split(",")],
        default=[1, 10, 100, 1_000, 10_000, 100_000],
        help="default: 1,10,100,1000,10000,100000",
    )
    parser.add_argument(
        "--plots", type=Path, help="the folder of growth-time.svg and growth-memory.svg"
    )
    return parser.parse_args()


def _run(arguments: tuple[str, ...], folder: Path) -> Run:
    start = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, "-m", "agentv_ci", *arguments],
        cwd=folder,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - start
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode not in (0, 1):
        sys.exit(f"{arguments[0]} ended with {process.returncode} over {folder}")
    return Run(seconds, usage.ru_maxrss / 1024)


def _cell(runs: dict[tuple[str, int], list[Run]], name: str, before: int, size: int) -> str:
    seconds, memory = (
        median(getattr(run, what) for run in runs[name, size]) for what in ("seconds", "mebibytes")
    )
    text = f"{seconds:.2f} s, {memory:.0f} MiB"
    if before < 1_000:
        return text
    pairs = zip(runs[name, size], runs[name, before], strict=True)
    growth = median((run.seconds / size) / (other.seconds / before) for run, other in pairs)
    return f"{text}, {growth:.2f}×{'' if growth <= LINEAR else ', not met'}"


def _draw(runs: dict[tuple[str, int], list[Run]], sizes: list[int], folder: Path) -> None:
    for name, what, unit in (("time", "seconds", "seconds"), ("memory", "mebibytes", "MiB")):
        lines = {
            command: [
                (size, median(getattr(run, what) for run in runs[command, size])) for size in sizes
            ]
            for command in COMMANDS
        }
        (folder / f"growth-{name}.svg").write_text(
            drawing(lines, "cases", unit, is_log=True), "utf-8"
        )


if __name__ == "__main__":
    main()
