"""Time how long the workspace of a trial takes, beside a bare copy; README.md explains it."""

from __future__ import annotations

import argparse
import asyncio
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

from agentv_ci.contracts.plan_parts import PlanFolder, PlanWorkspace
from agentv_ci.workspaces.places import Workspaces
from agentv_ci.workspaces.trees import changes, digest_of_files, files_in

MIB = 1024 * 1024
SHARED_GOAL_MS = 30.0
"""For 100 MB, where copies share blocks."""
COPIED_GOAL = 1.3
"""Times a bare copy, everywhere."""


def main() -> int:
    """Print a table; 1 if a goal is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=[1, 100, 1000], metavar="MB")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument(
        "--folder", help="where trees are made; its file system decides (default: temporary files)"
    )
    options = parser.parse_args()
    tempfile.tempdir = options.folder
    with tempfile.TemporaryDirectory(prefix="benchmark-") as name:
        folder = Path(name).resolve()
        tempfile.tempdir = name
        shares = can_share(folder)
        print(f"copies {'share' if shares else 'do not share'} blocks with the original\n")
        print(
            "| repository | files | bare copy | workspace | times | changes |\n|---|--:|--:|--:|--:|--:|"
        )
        shapes = [(size, has_small) for size in options.sizes for has_small in (True, False)]
        missed = [
            f"{size} MB in {'small and large' if has_small else 'large'} files"
            for size, has_small in shapes
            if not asyncio.run(
                measured(folder, size, options.rounds, has_small=has_small, shares=shares)
            )
        ]
    for each in missed:
        print(f"{each}: goal missed", file=sys.stderr)
    return 1 if missed else 0


def can_share(folder: Path) -> bool:
    """Whether the file system makes copies that share blocks."""
    (folder / "one").write_bytes(b"x" * MIB)
    command = ["/bin/cp", "--reflink=always", str(folder / "one"), str(folder / "other")]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


def write_repository(folder: Path, size_mb: int, *, has_small: bool) -> int:
    """Write files of 1 MiB, or half of the bytes in files of 16 KiB; returns how many files."""
    small = size_mb * MIB // 2 // (16 * 1024) if has_small else 0
    large = size_mb // 2 if has_small else size_mb
    for number in range(small):
        path = folder / f"src/{number % 50}/{number}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(os.urandom(16 * 1024))
    for number in range(large):
        (folder / f"{number}.bin").write_bytes(os.urandom(MIB))
    return small + large


def bare_copy(tree: Path, place: Path) -> None:
    """Copy a tree as a person would."""
    subprocess.run(["/bin/cp", "-a", str(tree), str(place)], check=True)


async def measured(
    folder: Path, size_mb: int, rounds: int, *, has_small: bool, shares: bool
) -> bool:
    """Print a row; returns whether its goal is met."""
    repository = folder / f"repository-{size_mb}"
    repository.mkdir()
    files = write_repository(repository, size_mb, has_small=has_small)
    plan = PlanFolder(
        path=repository.name, sha256=digest_of_files(repository, files_in(repository))
    )
    workspace = PlanWorkspace(folder=plan)
    copied: list[float] = []
    made: list[float] = []
    compared: list[float] = []
    with Workspaces({}, folder, {"PATH": os.environ["PATH"]}, lambda _: None) as workspaces:
        base = await workspaces.base_of(workspace)
        for number in range(rounds + 1):
            # Alternating, and the first round of each only warms up.
            begun = time.perf_counter()
            bare_copy(base.folder, folder / "bare")
            one = time.perf_counter() - begun
            shutil.rmtree(folder / "bare")
            begun = time.perf_counter()
            async with workspaces.copy(workspace, base, network=True) as place:
                other = time.perf_counter() - begun
                begun = time.perf_counter()
                changes(base.entries, place.folder)
                third = time.perf_counter() - begun
            if number:
                copied.append(one)
                made.append(other)
                compared.append(third)
    bare_ms, made_ms = median(copied) * 1000, median(made) * 1000
    figures = [f"{median(each) * 1000:.0f} ms" for each in (copied, made, compared)]
    shown = f"{files:,} | {figures[0]} | {figures[1]} | {made_ms / bare_ms:.2f} | {figures[2]}"
    print(f"| {size_mb:,} MB | {shown} |", flush=True)
    shutil.rmtree(repository)
    is_fast = made_ms <= SHARED_GOAL_MS * max(1, size_mb / 100) or not shares
    return is_fast and made_ms <= COPIED_GOAL * bare_ms


if __name__ == "__main__":
    sys.exit(main())
