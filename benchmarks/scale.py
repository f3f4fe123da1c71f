"""Time `agentv-ci eval` with and without a Dask cluster on this machine.

Docs/scale.md has the figures.

Needs the extra `dask`. Every run is a process of its own that must pass. Run: python
benchmarks/scale.py
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median

WORK = f'{sys.executable} -c "import time; t = time.process_time()\nwhile time.process_time() - t < 0.5: pass"; echo it'
"""A command that computes for half a second."""
HEAVY = 16
CASES_OF_A_FILE = 10_000
OVERHEAD_MS, SPEED_UP = 2.0, 0.9
"""The bars: milliseconds of a cluster per case, and speed-up per core."""


def main() -> int:
    """Print the figures as Markdown; 1 if a bar is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--cores", type=int, default=2)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / ".git").mkdir()
        targets = [
            {"name": "default", "provider": "mock", "response": "it"},
            {"name": "heavy", "provider": "cli", "command_template": WORK, "prompt": "none"},
        ]
        (folder / "targets.yaml").write_text(
            json.dumps({"$schema": "agentv-targets-v2.2", "targets": targets})
        )
        for file, cases in (("one", 1), ("many", options.cases), ("heavy", HEAVY)):
            write_plan(folder, file, cases, "heavy" if file == "heavy" else "default")
        alone: list[str] = []
        one, all_workers = ["--local-cluster", "1"], ["--local-cluster", str(options.cores)]
        runs: dict[str, list[float]] = {}
        for _ in range(options.rounds):
            for what, plan, flags in (
                ("start", "one", alone),
                ("start of a cluster", "one", one),
                ("many", "many", alone),
                ("many on a cluster", "many", all_workers),
                ("heavy", "heavy", alone),
                ("heavy on one worker", "heavy", one),
                ("heavy on all workers", "heavy", all_workers),
            ):
                runs.setdefault(what, []).append(timed(folder, plan, flags))
    return show({what: median(each) for what, each in runs.items()}, options.cases, options.cores)


def write_plan(folder: Path, name: str, cases: int, target: str) -> None:
    """Compile cases into a plan."""
    written = [
        {
            "id": f"case-{number}",
            "expected_outcome": "it",
            "input_messages": [{"role": "user", "content": "Say it"}],
            "expected_messages": [],
            "evaluators": [{"name": "says", "type": "contains", "value": "it"}],
        }
        for number in range(cases)
    ]
    (folder / name).mkdir()
    for begin in range(0, cases, CASES_OF_A_FILE):
        some = written[begin : begin + CASES_OF_A_FILE]
        document = {"$schema": "agentv-eval-v2", "execution": {"target": target}, "evalcases": some}
        (folder / name / f"{begin}.test.yaml").write_text(json.dumps(document))
    command = [sys.executable, "-m", "agentv_ci", "compile", name, "--out", f"{name}.json"]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)


def timed(folder: Path, plan: str, flags: Sequence[str]) -> float:
    """Return the seconds that a run takes; end the benchmark if it fails."""
    engine = ["--engine", "dask", *flags] if flags else []
    command = [
        sys.executable,
        "-m",
        "agentv_ci",
        "eval",
        f"{plan}.json",
        "--quiet",
        "--out",
        "rows.jsonl",
        *engine,
    ]
    (folder / "rows.jsonl").unlink(missing_ok=True)
    begun = time.perf_counter()
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
    return time.perf_counter() - begun


def show(seconds: dict[str, float], cases: int, cores: int) -> int:
    """Print the figures; 1 if a bar is missed."""
    start = seconds["start of a cluster"] - seconds["start"]
    overhead_ms = (seconds["many on a cluster"] - seconds["many"] - start) / cases * 1000
    ready = seconds["start of a cluster"]
    speed_up = (seconds["heavy on one worker"] - ready) / (seconds["heavy on all workers"] - ready)
    against_none = (seconds["heavy"] - seconds["start"]) / (seconds["heavy on one worker"] - ready)
    print("| | |\n|---|--:|")
    print(f"| start of a cluster of one worker | {start:.1f} s |")
    print(f"| {cases:,} mock cases without a cluster | {seconds['many']:.1f} s |")
    print(f"| the same on {cores} workers | {seconds['many on a cluster']:.1f} s |")
    print(f"| more for each case | {overhead_ms:.2f} ms |")
    print(
        f"| {HEAVY} cases of 0.5 s of computing: one worker, as a multiple of none | {1 / against_none:.2f} |"
    )
    print(f"| {cores} workers, as a multiple of one | {speed_up:.2f} |")
    return int(overhead_ms > OVERHEAD_MS or speed_up < SPEED_UP * cores)


if __name__ == "__main__":
    sys.exit(main())
