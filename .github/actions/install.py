"""Install this checkout of agentv-ci into its own environment, separate from the job's Python and workspace.

Run it with `python -I -S`, so that nothing in the workspace, such as an argparse.py of a pull request, is imported, and
nothing of what agents of an earlier use have installed into this Python. Sets the step's outputs `command`, a program
that runs agentv-ci, and `folder`, the environment.

The wheels in pylock.toml are downloaded, compared with their hashes, unpacked and compiled by several processes. pip
installs them, with the same hashes, where the job has its own package index, or if the download fails. A job installs
once: later uses find the environment by a variable that only the runner can set, and check that it is unchanged.
"""

from __future__ import annotations

import compileall
import hashlib
import io
import os
import shutil
import ssl
import subprocess
import sys
import sysconfig
import tempfile
import tomllib
import urllib.request
import venv
import zipfile
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any

CHECKOUT = Path(__file__).resolve().parents[2]
LOCK = CHECKOUT / "pylock.toml"
TIMEOUT_S = 30.0
PROCESSES = 8
"""They mostly wait for the network."""
FOR_TERMINALS = {"rich", "pygments", "markdown-it-py", "mdurl"}
"""Locked packages that are not installed, since the output of steps is not a terminal."""
UNUSED = ("pydantic/v1/", "pydantic/deprecated/", "anyio/_backends/_trio.py", "regex/tests/")
"""Modules of other packages that agentv-ci does not import."""
VARIABLE = "AGENTV_CI_INSTALLED"
INDEX_SETTINGS = ("index-url", "extra-index-url", "find-links", "no-index")
"""pip's settings that say where packages come from."""
INDEX_VARIABLES = {f"PIP_{name.upper().replace('-', '_')}" for name in INDEX_SETTINGS}
CONFIGS = (
    *("/etc/pip.conf", "/etc/xdg/pip/pip.conf", "/Library/Application Support/pip/pip.conf"),
    *("~/.pip/pip.conf", "~/.config/pip/pip.conf", "~/Library/Application Support/pip/pip.conf"),
)
"""Where pip looks for its settings (pip's documentation, "Configuration")."""
OTHER_SETTINGS = {
    "PIP_TRUSTED_HOST",
    "PIP_CERT",
    "PIP_CLIENT_CERT",
    "PIP_PROXY",
    "PIP_CACHE_DIR",
    "PIP_NO_CACHE_DIR",
}
OTHER_SETTINGS |= {"PIP_TIMEOUT", "PIP_DEFAULT_TIMEOUT", "PIP_RETRIES", "PIP_CONFIG_FILE"}
"""Further settings that apply; others, such as PIP_TARGET, would break the installation."""


def main() -> None:
    """Install, or find what this job has installed, and set the outputs."""
    if os.name == "nt":
        raise OSError("agentv-ci runs on Linux and macOS; use a runner such as ubuntu-latest")
    temporary = Path(os.environ["RUNNER_TEMP"])
    # The name cannot be guessed, and identifies this use of the action.
    use = Path(tempfile.mkdtemp(prefix="agentv-ci.", dir=temporary))
    installed = found_environment() or new_environment(use)
    command = use / "bin" / "agentv-ci"
    command.parent.mkdir()
    command.write_text(
        f'#!/bin/sh\nexec "{interpreter(installed)}" -I -B -m agentv_ci "$@"\n', "utf-8"
    )
    command.chmod(0o555)
    with Path(os.environ["GITHUB_OUTPUT"]).open("a", encoding="utf-8") as file:
        file.write(f"command={command}\nfolder={installed}\n")


def found_environment() -> Path | None:
    """Return what this job has installed from the same lock.

    None if there is nothing, or it has changed.
    """
    folder, _, digest = os.environ.get(VARIABLE, "").rpartition("=")
    return Path(folder) if folder and digest == digest_of(Path(folder)) else None


def new_environment(folder: Path) -> Path:
    """Install into a folder, and tell the runner for later uses."""
    venv.EnvBuilder(symlinks=True, with_pip=False).create(folder / "venv")
    site = next((folder / "venv").glob("lib/*/site-packages"))
    tls()  # for all processes
    with ProcessPoolExecutor(PROCESSES) as pool:
        package = pool.submit(copy_package, site)
        reason = "the job has its own package index" if own_index() else install_wheels(pool, site)
        if reason is not None:
            print(f"installing with pip: {reason}")
            install_with_pip(folder)
        package.result()
    for path in (folder / "venv").rglob("*"):
        if path.is_file() and not path.is_symlink():
            path.chmod(path.stat().st_mode & 0o555)
    with Path(os.environ["GITHUB_ENV"]).open("a", encoding="utf-8") as file:
        file.write(f"{VARIABLE}={folder / 'venv'}={digest_of(folder / 'venv')}\n")
    return folder / "venv"


def install_wheels(pool: ProcessPoolExecutor, site: Path) -> str | None:
    """Install the locked wheels; return why that failed, if it did."""
    try:
        wheels = list(locked_wheels())
        for _ in pool.map(install_wheel, wheels, [site] * len(wheels)):
            pass
    except (OSError, ValueError) as error:
        return str(error)
    return None


def pip_of_python() -> Path:
    """Return what pip is imported from: the wheel in the standard library, which is watched while agents run.

    Without it, that of the installed packages, which could be an agent's: raises OSError where one may have run.
    """
    bundled = sorted(Path(sysconfig.get_path("stdlib"), "ensurepip", "_bundled").glob("pip-*.whl"))
    if bundled:
        return bundled[-1]
    if VARIABLE in os.environ:
        raise OSError(
            "the installed agentv-ci was changed, and this Python has no pip of its own (ensurepip)"
        )
    return Path(sysconfig.get_path("purelib"))


def own_index() -> bool:
    """Whether the job's settings of pip name another package index."""
    if INDEX_VARIABLES & os.environ.keys():
        return True
    config = os.environ.get("PIP_CONFIG_FILE", "")
    if config == os.devnull:
        # pip reads no file then.
        return False
    own = os.environ.get("XDG_CONFIG_HOME", "")
    paths = [
        Path(each).expanduser()
        for each in (*CONFIGS, f"{own}/pip/pip.conf" if own else "", config)
        if each
    ]
    texts = [path.read_text("utf-8", "replace") for path in paths if path.is_file()]
    return any(name in text for text in texts for name in INDEX_SETTINGS)


def locked_packages() -> list[dict[str, Any]]:
    """Return what to install."""
    packages = tomllib.loads(LOCK.read_text("utf-8"))["packages"]
    return [each for each in packages if each["name"] not in FOR_TERMINALS]


def locked_wheels() -> Iterator[dict[str, Any]]:
    """Yield the wheel of each locked package for this interpreter.

    Raises ValueError if there is none.
    """
    # Of all Pythons only that of setup-python is sure to have pip, and pip has these.
    sys.path.append(str(pip_of_python()))
    from pip._vendor.packaging.markers import Marker
    from pip._vendor.packaging.tags import sys_tags
    from pip._vendor.packaging.utils import parse_wheel_filename

    ranks = {tag: rank for rank, tag in enumerate(sys_tags())}
    for package in locked_packages():
        if "marker" in package and not Marker(package["marker"]).evaluate():
            continue
        ranked = []
        for wheel in package["wheels"]:
            tags = parse_wheel_filename(wheel["url"].rpartition("/")[2])[3]
            ranked += [(ranks[tag], wheel["url"], wheel) for tag in tags if tag in ranks]
        if not ranked:
            raise ValueError(f"{package['name']} has no wheel for this system")
        yield min(ranked, key=lambda each: each[:2])[2]


def install_wheel(wheel: dict[str, Any], site: Path) -> None:
    """Download a wheel, compare it with its hash, unpack and compile it.

    Raises OSError, ValueError.
    """
    with urllib.request.urlopen(wheel["url"], timeout=TIMEOUT_S, context=tls()) as response:
        content = response.read(wheel["size"] + 1)
    if hashlib.sha256(content).hexdigest() != wheel["hashes"]["sha256"]:
        raise ValueError(f"{wheel['url']} does not have the locked hash")
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        archive.extractall(site)
        modules = (name for name in archive.namelist() if name.endswith(".py"))
        compile_files([site / name for name in modules if not name.startswith(UNUSED)])


@cache
def tls() -> ssl.SSLContext:
    """Return what connections share: reading the certificates takes longer than a connection."""
    return ssl.create_default_context()


def copy_package(site: Path) -> None:
    """Copy agentv-ci and the published schemas."""
    shutil.copytree(
        CHECKOUT / "agentv_ci", site / "agentv_ci", ignore=shutil.ignore_patterns("__pycache__")
    )
    shutil.copytree(CHECKOUT / "schemas", site / "agentv_ci" / "published")
    compile_files(list((site / "agentv_ci").rglob("*.py")))


def compile_files(paths: list[Path]) -> None:
    """Compile modules: they are read-only later, so Python cannot."""
    for path in paths:
        compileall.compile_file(path, quiet=2)


def install_with_pip(folder: Path) -> None:
    """Install the locked packages with pip, from the job's package index; raises OSError."""
    requirements = folder / "requirements.txt"
    with requirements.open("w", encoding="utf-8") as file:
        for package in locked_packages():
            hashes = " ".join(
                f"--hash=sha256:{wheel['hashes']['sha256']}" for wheel in package["wheels"]
            )
            marker = f" ; {package['marker']}" if "marker" in package else ""
            file.write(f"{package['name']}=={package['version']}{marker} {hashes}\n")
    allowed = INDEX_VARIABLES | OTHER_SETTINGS
    # -I does not apply to the process that pip starts.
    others = ("PYTHONPATH", "PYTHONHOME")
    environment = {
        name: value
        for name, value in os.environ.items()
        if name not in others and (not name.startswith("PIP_") or name in allowed)
    }
    pip = [sys.executable, "-I", "-S", str(pip_of_python() / "pip")]
    pip += ["--python", str(interpreter(folder / "venv")), "--quiet"]
    options = (
        "--no-deps",
        "--only-binary=:all:",
        "--require-hashes",
        "--disable-pip-version-check",
        "--no-color",
    )
    if subprocess.run(
        [*pip, "install", *options, "-r", str(requirements)], env=environment, check=False
    ).returncode:
        raise OSError("pip failed; see the log")


def interpreter(environment: Path) -> Path:
    """Return the Python of an environment."""
    return environment / "bin" / "python"


def digest_of(folder: Path) -> str:
    """Return a digest of the lock and of the state of all files in a folder."""
    sys.path.insert(0, str(CHECKOUT))
    from agentv_ci.base.file_states import file_states

    states = sorted(file_states([folder]).items())
    return hashlib.sha256(repr((LOCK.read_bytes(), states)).encode()).hexdigest()


if __name__ == "__main__":
    try:
        main()
    except Exception as error:
        print(f"::error title=agentv-ci::cannot install agentv-ci: {' '.join(str(error).split())}")
        raise
