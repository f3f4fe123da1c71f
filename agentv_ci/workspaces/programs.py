"""Where programs are, and what they need to run.

This must be visible where most of a machine is not.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from os.path import isdir, isfile
from pathlib import Path

from msgspec import Struct

SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/opt", "/nix/store")
PACKAGES = "node_modules"
VENV = "pyvenv.cfg"
CONDA = "conda-meta"
"""What virtual environments have, and those of conda."""


class Hidden(Struct, frozen=True):
    """What must not appear with a program."""

    repository: Path
    """Nothing in it belongs to a program, but for environments."""
    folders: tuple[Path, ...] = ()
    """Other folders that must not appear as a whole, such as HOME."""

    def hides(self, folder: Path) -> bool:
        """Whether something hidden is or may be in a folder."""
        if any(
            other == folder or folder in other.parents for other in (self.repository, *self.folders)
        ):
            return True
        return folder.is_relative_to(self.repository) and not any(
            (folder / name).exists() for name in (VENV, CONDA)
        )


def toolchains(path: str, hidden: Hidden) -> Iterator[Path]:
    """Yield what the folders of PATH need outside the system.

    It is the folders themselves, or the installation that they belong to.
    """
    for part in dict.fromkeys(path.split(":")):
        folder = Path(part)
        # Not Path.is_dir(), which raises for a folder that this user may not enter.
        if not part.startswith("/") or is_system(folder) or not isdir(part):  # noqa: PTH112
            continue
        yield from installation(folder, hidden)
        for name in ("python3", "python", "node"):
            program = folder / name
            real = program.resolve()
            if program.is_symlink() and not is_system(real) and isfile(real):  # noqa: PTH113
                yield from installation(real.parent, hidden)


def installation(folder: Path, hidden: Hidden) -> Iterator[Path]:
    """Yield the folder of an installation.

    It is the parent of `bin`, unless something hidden may be in it.
    """
    parent = folder.parent
    # `~/.local` and its like hold far more than programs.
    is_named = not parent.name.startswith(".") or (parent / VENV).exists()
    # Shims of pyenv and its like start programs of `versions` beside them.
    is_whole = (folder.name == "bin" and is_named) or folder.name == "shims"
    if is_whole and not hidden.hides(parent):
        yield parent
    elif not any(
        other == folder or folder in other.parents for other in (hidden.repository, *hidden.folders)
    ):
        yield folder


def packages_of(program: Path) -> list[Path]:
    """Return the folder of npm's packages that a program is in, with those that it needs.

    Empty for other programs.
    """
    places = [number for number, part in enumerate(program.parts) if part == PACKAGES]
    if places:
        return [Path(*program.parts[: places[0] + 1])]
    return []


def program_of(word: str) -> str:
    """Return the path by which to start a program.

    For a program of npm, it is not the link: its modules do not stand beside the link.
    """
    real = Path(word).resolve() if word.startswith("/") else Path(word)
    return str(real) if PACKAGES in real.parts else word


def is_system(path: Path) -> bool:
    """Whether a path is among the system's programs, which are always visible."""
    return any(map(path.is_relative_to, SYSTEM))


def needed_by(files: Iterable[Path], program: Path | None, hidden: Hidden) -> Iterator[Path]:
    """Yield files and what they link to, and a program with the installation that it belongs to."""
    for each in (*files, *((program,) if program is not None else ())):
        real = each.resolve()
        yield from (each, real)
        if not is_system(real):
            yield from packages_of(real)
    if (
        program is not None
        and not is_system(real := program.resolve())
        and real.parent.name == "bin"
    ):
        yield from installation(real.parent, hidden)
