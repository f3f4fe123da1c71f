"""Time `python -m agentv_ci prove` on deterministic cases and print a Markdown table.

README.md explains it.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import median

FLAT = 1.1
"""How much more memory more mutants may take."""
GOAL_S = 4.0


@dataclass(frozen=True, slots=True)
class Run:
    """What a command took."""

    seconds: float
    mebibytes: float


def main() -> int:
    """Print the table; 1 if a goal is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / ".git").mkdir()
        targets = {
            "$schema": "agentv-targets-v2.2",
            "targets": [{"name": "default", "provider": "mock"}],
        }
        (folder / "targets.yaml").write_text(json.dumps(targets), "utf-8")
        write_cases(folder / "few.yaml", options.cases, "Yes it goes on.")
        write_cases(
            folder / "many.yaml",
            options.cases,
            "Item {n} costs {n} EUR. It is in Berlin, not in Rome.",
        )
        commands = {
            "compile": ["compile", "many.yaml", "--out", "plan.json"],
            "eval --dry-run": ["eval", "many.yaml", "--dry-run", "--out", "rows.jsonl", "--quiet"],
            "prove, few mutants": ["prove", "few.yaml", "--out", "few.json", "--quiet"],
            "prove, many mutants": ["prove", "many.yaml", "--out", "many.json", "--quiet"],
        }
        runs: dict[str, list[Run]] = {what: [] for what in commands}
        for _ in range(options.rounds):
            for what, command in commands.items():
                runs[what].append(timed(command, folder))
        first = (folder / "many.json").read_bytes()
        timed(["prove", "many.yaml", "--out", "many.json", "--quiet", "--workers", "8"], folder)
        same = (folder / "many.json").read_bytes() == first
        mutants = {
            each: json.loads((folder / f"{each}.json").read_text())["summary"]
            for each in ("few", "many")
        }
    return show(runs, mutants, same=same, cases=options.cases)


def write_cases(path: Path, cases: int, reference: str) -> None:
    """Write an eval file whose evaluators wait for nothing."""
    written = [
        {
            "id": f"case-{n}",
            "expected_outcome": "The price and the place",
            "input": f"What does item {n} cost, and where is it?",
            "expected": reference.format(n=n),
            "evaluators": [
                {"name": "starts", "starts_with": reference.format(n=n)[:12], "required": True},
                {"name": "says", "contains": reference.format(n=n)[8:], "required": True},
            ],
        }
        for n in range(cases)
    ]
    path.write_text(
        json.dumps({"$schema": "agentv-eval-v2", "evalcases": written}, indent=1), "utf-8"
    )


def timed(command: list[str], folder: Path) -> Run:
    """Run a command in a process of its own; end the benchmark if it fails."""
    begun = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, "-m", "agentv_ci", *command],
        cwd=folder,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        sys.exit(f"`agentv-ci {' '.join(command)}` ended with {process.returncode}")
    return Run(time.perf_counter() - begun, usage.ru_maxrss / 1024)


def show(
    runs: dict[str, list[Run]], summaries: dict[str, dict[str, int]], *, same: bool, cases: int
) -> int:
    """Print the medians and whether the goals are met."""
    print(f"| {cases:,} cases | seconds | MiB | times compile |\n|---|--:|--:|--:|")
    for what, own in runs.items():
        ratio = median(
            each.seconds / base.seconds for each, base in zip(own, runs["compile"], strict=True)
        )
        seconds, mebibytes = (
            median(each.seconds for each in own),
            median(each.mebibytes for each in own),
        )
        print(f"| {what} | {seconds:.1f} | {mebibytes:.0f} | {ratio:.1f} |")
    few, many = (
        median(each.mebibytes for each in runs[what])
        for what in ("prove, few mutants", "prove, many mutants")
    )
    seconds = median(each.seconds for each in runs["prove, many mutants"])
    goals = {
        f"{summaries['many']['mutants']:,} mutants in at most {GOAL_S * cases / 1000:g} s": seconds
        <= GOAL_S * cases / 1000,
        f"memory at most {FLAT:g} times that of {summaries['few']['mutants']:,} mutants": many
        <= FLAT * few,
        "the same bytes with 1 and 8 workers": same,
    }
    for goal, is_met in goals.items():
        print(f"\n{'met' if is_met else 'missed'}: {goal}", end="")
    print()
    return 0 if all(goals.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
