"""Time agentv-ci and its peers over all workloads, interleaved, and print ratios with their spread; see README.md."""

from __future__ import annotations

import argparse
import compileall
import os
import platform
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median

import run_eval
import validate
from eval_server import Server

import agentv_ci

FILES = 1_000
WORKLOADS = (run_eval.SLOW, run_eval.FAST, run_eval.JUDGED)


def main() -> None:
    """Measure and print."""
    options = _options()
    # As pip does when it installs; from a checkout the first runs would compile.
    compileall.compile_dir(str(Path(agentv_ci.__file__).parent), quiet=1)
    peers = options.peers.resolve()
    checking = [tool for tool in validate.tools_of([], peers) if tool.version is not None]
    running = [tool for tool in run_eval.tools_of(peers) if tool.version is not None]
    checks: validate.Runs = {}
    runs: run_eval.Runs = {}
    with tempfile.TemporaryDirectory() as scratch, Server() as server:
        root = Path(scratch)
        (root / ".git").mkdir()
        validate.require_mistakes_found(checking, root)
        run_eval.require_wrong_answers_found(running, root, server)
        for turn in range(options.rounds):
            start = time.monotonic()
            validate.measure(checking, [1, FILES], turn, root, checks)
            run_eval.measure(running, WORKLOADS, turn, root, server, runs)
            print(
                f"round {turn + 1} of {options.rounds}: {time.monotonic() - start:.0f} s",
                file=sys.stderr,
            )
    print("\n".join(_table(checking, running, checks, runs)), end="\n\n")
    print("\n".join(_notes(options.rounds)))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--rounds", type=int, default=5, help="how often every command runs (default: 5)"
    )
    parser.add_argument(
        "--peers", type=Path, default=Path("peers"), metavar="DIR", help="made by peers.sh"
    )
    return parser.parse_args()


def _table(
    checking: Sequence[validate.Tool],
    running: Sequence[run_eval.Tool],
    checks: validate.Runs,
    runs: run_eval.Runs,
) -> Iterator[str]:
    yield "| workload | tool | time, times ours | memory, times ours |"
    yield "|---|---|--:|--:|"
    ours, *others = checking
    for files in (1, FILES):
        for tool in others:
            label = f"{tool.name} {tool.version}".strip()
            yield _line(
                f"validate {files:,}", label, checks[tool.name, files], checks[ours.name, files]
            )
    us, *rest = running
    for workload in WORKLOADS:
        for other in rest:
            label = f"{other.name} {other.version}".strip()
            yield _line(
                f"eval, {workload}", label, runs[other.name, workload], runs[us.name, workload]
            )


def _line(
    workload: str,
    tool: str,
    theirs: Sequence[validate.Run | run_eval.Run],
    ours: Sequence[validate.Run | run_eval.Run],
) -> str:
    pairs = [*zip(theirs, ours, strict=True)]
    times = _spread([their.seconds / our.seconds for their, our in pairs])
    memory = _spread([their.mebibytes / our.mebibytes for their, our in pairs])
    return f"| {workload} | {tool} | {times} | {memory} |"


def _spread(ratios: Sequence[float]) -> str:
    """Return the median of the rounds' ratios, the smallest and the largest."""
    return f"{median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})"


def _notes(rounds: int) -> Iterator[str]:
    yield f"* Medians of the ratios of {rounds} interleaved rounds, and in brackets the smallest and the largest."
    yield f"* Python {platform.python_version()}, {os.cpu_count()} cores, {platform.system()} {platform.machine()}."


if __name__ == "__main__":
    main()
