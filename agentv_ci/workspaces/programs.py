"""Where programs are, and what they need to run: what must be visible where most of a machine is not."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/opt", "/nix/store")
PACKAGES = "node_modules"


def toolchains(path: str, hidden: Iterable[Path]) -> Iterator[Path]:
    """Yield what the folders of PATH need outside the system: themselves, or the installation that they belong to.

    `hidden` are folders that must not appear, such as the repository; none of their parents is yielded.
    """
    hidden = tuple(hidden)
    for each in dict.fromkeys(path.split(":")):
        folder = Path(each)
        if not each.startswith("/") or is_system(folder) or not folder.is_dir():
            continue
        yield from installation(folder, hidden)
        for name in ("python3", "python", "node"):
            program = folder / name
            if program.is_symlink() and not is_system(real := program.resolve()) and real.is_file():
                yield from installation(real.parent, hidden)


def installation(folder: Path, hidden: Iterable[Path]) -> Iterator[Path]:
    """Yield the folder of an installation: the parent of `bin`, unless something hidden may be in it."""
    parent = folder.parent
    # `~/.local` and its like hold far more than programs.
    is_named = not parent.name.startswith(".") or (parent / "pyvenv.cfg").exists()
    # Shims of pyenv and its like start programs of `versions` beside them.
    is_whole = (folder.name == "bin" and is_named) or folder.name == "shims"
    for each in (parent, folder) if is_whole else (folder,):
        if not any(other == each or each in other.parents for other in hidden):
            yield each
            return


def packages_of(program: Path) -> list[Path]:
    """Return the folder of npm's packages that a program is in, with those that it needs; empty for other programs."""
    places = [number for number, part in enumerate(program.parts) if part == PACKAGES]
    return [Path(*program.parts[: places[0] + 1])] if places else []


def program_of(word: str) -> str:
    """Return the path by which to start a program: of npm's, not the link to it, beside which its modules are not."""
    real = Path(word).resolve() if word.startswith("/") else Path(word)
    return str(real) if PACKAGES in real.parts else word


def is_system(path: Path) -> bool:
    """Whether a path is among the system's programs, which are always visible."""
    return any(path.is_relative_to(each) for each in SYSTEM)


def needed_by(files: Iterable[Path], repository: Path) -> Iterator[Path]:
    """Yield files, what they link to, and the installations of those that are programs."""
    for each in files:
        real = each.resolve()
        yield from (each, real)
        if not is_system(real):
            yield from packages_of(real)
            yield from installation(real.parent, (repository,)) if real.parent.name == "bin" else ()
