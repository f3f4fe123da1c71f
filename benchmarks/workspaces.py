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

from agentv_ci.contracts.plan import PlanFolder, PlanWorkspace
from agentv_ci.workspaces.places import Workspaces
from agentv_ci.workspaces.trees import changes, digest_of_files, files_in

MIB = 1024 * 1024
SHARED_GOAL_MS = 30.0
"""For 100 MB, where copies share blocks."""
COPIED_GOAL = 1.3
"""Times a bare copy, elsewhere."""


def main() -> int:
    """Print a table; 1 if a goal is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=[1, 100, 1000], metavar="MB")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--folder", help="where trees are made; its file system decides (default: temporary files)")
    options = parser.parse_args()
    tempfile.tempdir = options.folder
    with tempfile.TemporaryDirectory(prefix="benchmark-") as name:
        folder = Path(name).resolve()
        tempfile.tempdir = name
        shares = can_share(folder)
        print(f"copies {'share' if shares else 'do not share'} blocks with the original\n")
        print("| repository | bare copy | workspace | times | changes |\n|---|--:|--:|--:|--:|")
        rows = {size: asyncio.run(measured(folder, size, options.rounds, shares=shares)) for size in options.sizes}
    missed = [size for size, is_met in rows.items() if not is_met]
    for size in missed:
        print(f"{size} MB: goal missed", file=sys.stderr)
    return 1 if missed else 0


def can_share(folder: Path) -> bool:
    """Whether the file system makes copies that share blocks."""
    (folder / "one").write_bytes(b"x" * MIB)
    command = ["/bin/cp", "--reflink=always", str(folder / "one"), str(folder / "other")]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


def write_repository(folder: Path, size_mb: int) -> None:
    """Write files of 4 KiB to 1 MiB: half of the bytes in small ones."""
    small, large = size_mb * MIB // 2 // (16 * 1024), size_mb // 2
    for number in range(small):
        path = folder / f"src/{number % 50}/{number}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(os.urandom(16 * 1024))
    for number in range(large):
        (folder / f"{number}.bin").write_bytes(os.urandom(MIB))


def bare_copy(tree: Path, place: Path) -> None:
    """Copy a tree as a person would."""
    subprocess.run(["/bin/cp", "-a", str(tree), str(place)], check=True)


async def measured(folder: Path, size_mb: int, rounds: int, *, shares: bool) -> bool:
    """Print a row; returns whether its goal is met."""
    repository = folder / f"repository-{size_mb}"
    repository.mkdir()
    write_repository(repository, size_mb)
    plan = PlanFolder(path=repository.name, sha256=digest_of_files(repository, files_in(repository)))
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
    times = median(made) / median(copied)
    figures = [f"{median(each) * 1000:.0f} ms" for each in (copied, made, compared)]
    print(f"| {size_mb} MB | {figures[0]} | {figures[1]} | {times:.2f} | {figures[2]} |", flush=True)
    shutil.rmtree(repository)
    return median(made) * 1000 <= SHARED_GOAL_MS * max(1, size_mb / 100) if shares else times <= COPIED_GOAL


if __name__ == "__main__":
    sys.exit(main())
