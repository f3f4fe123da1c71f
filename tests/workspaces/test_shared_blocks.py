"""Copies of a base share their blocks where the file system can: on images of such file systems, mounted for a test."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from shutil import which

import pytest

from agentv_ci.contracts.plan_parts import PlanFolder, PlanWorkspace
from agentv_ci.workspaces.places import Workspaces
from agentv_ci.workspaces.trees import digest_of_files, files_in
from tests.support import write

SIZE = 32 * 1024 * 1024
pytestmark = pytest.mark.slow


@pytest.fixture(params=["xfs", "btrfs"])
def mounted(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Path]:
    """A new file system of this kind."""
    kind = request.param
    if which(f"mkfs.{kind}", path=f"{os.environ['PATH']}:/usr/sbin:/sbin") is None:
        pytest.skip(f"mkfs.{kind} is not installed")
    image, folder = tmp_path / "image", tmp_path / "mounted"
    folder.mkdir()
    with image.open("wb") as file:
        file.truncate(512 * 1024 * 1024)
    path = {**os.environ, "PATH": f"{os.environ['PATH']}:/usr/sbin:/sbin"}
    for command in ((f"mkfs.{kind}", "-q", image), ("mount", "-o", "loop", image, folder)):
        done = subprocess.run(command, env=path, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            pytest.skip(f"{command[0]}: {done.stderr.strip() or 'not allowed'}")
    yield folder
    subprocess.run(["umount", folder], env=path, check=True)


def used_bytes(folder: Path) -> int:
    """Return how much of a file system is used, once it has written everything."""
    os.sync()
    found = os.statvfs(folder)
    return (found.f_blocks - found.f_bfree) * found.f_frsize


async def test_copies_share_their_blocks(mounted: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(mounted))
    write(mounted / "repository", {"small.txt": "small\n"})
    (mounted / "repository" / "large").write_bytes(os.urandom(SIZE))
    repository = mounted / "repository"
    plan = PlanFolder(path="repository", sha256=digest_of_files(repository, files_in(repository)))
    workspace = PlanWorkspace(folder=plan)
    with Workspaces({}, mounted, {"PATH": os.environ["PATH"]}, lambda _: None) as workspaces:
        base = await workspaces.base_of(workspace)
        before = used_bytes(mounted)
        first, second = (workspaces.copy(workspace, base, network=True) for _ in range(2))
        async with first as one, second as another:
            assert used_bytes(mounted) - before < SIZE / 8
            (one.folder / "large").write_bytes(b"changed")
            assert {(each.folder / "large").stat().st_size for each in (another, base)} == {SIZE}
