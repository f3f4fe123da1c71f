"""What confines a command: a folder, Linux namespaces or a container.

Namespaces are those of bubblewrap where it is installed, else of util-linux (unshare, mount,
pivot_root, setpriv). A command sees the system's programs, its own folders at their places, and
nothing else.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from shutil import which
from tempfile import TemporaryDirectory
from typing import Literal

from msgspec import Struct

from agentv_ci.base.mappings import without
from agentv_ci.base.process import ProcessFailed, run
from agentv_ci.base.text import last_line
from agentv_ci.contracts.workspaces import Isolation, WorkspaceLimits
from agentv_ci.workspaces.keyring import leave_session_keyring
from agentv_ci.workspaces.programs import SYSTEM

SETTINGS = (
    *(
        "alternatives",
        "ca-certificates",
        "ca-certificates.conf",
        "group",
        "host.conf",
        "hosts",
        "java-17-openjdk",
    ),
    *(
        "ld.so.cache",
        "ld.so.conf",
        "ld.so.conf.d",
        "localtime",
        "mime.types",
        "nsswitch.conf",
        "passwd",
        "pki",
    ),
    *("protocols", "resolv.conf", "services", "ssl"),
)
"""Files of /etc that programs need; not those with passwords or keys."""
DEVICES = ("null", "zero", "full", "random", "urandom")
KERNEL = (
    "sys",
    "sysrq-trigger",
    "bus",
    "fs",
    "irq",
    "acpi",
    "mtrr",
    "scsi",
    "pressure",
    "timer_list",
)
"""What in /proc is of the kernel and not of a process: root may write it without any capability."""
PROBE_S = 10.0

FOLDERS = ("HOME", "TMPDIR")
"""Variables with folders of a trial."""

Backend = Literal["bubblewrap", "unshare", "docker", "podman"]
GIVES: Mapping[Isolation, str] = {
    "namespaces": "other files and processes are not there; the network can be switched off",
    "container": "only the image and the workspace are there; the network can be switched off",
}
NEEDED: Mapping[Backend, tuple[str, ...]] = {
    "bubblewrap": ("bwrap",),
    "unshare": ("unshare", "setpriv", "mount", "mountpoint", "pivot_root"),
}
"""Backend of namespaces → its programs, the first choice first."""
ENGINES: tuple[Backend, ...] = ("docker", "podman")

ADMINISTRATION = ("/usr/sbin", "/sbin")
"""Where programs such as pivot_root are, which are not on the PATH of every user."""

UNSHARE = f"""
set -e
path=$PATH
PATH=$PATH:{":".join(ADMINISTRATION)}
setpriv=$(command -v setpriv)
seal() {{ mount -o remount,bind,ro,nosuid,nodev "$1"; }}
root=$1
mount -t tmpfs tmpfs "$root"
mkdir -p "$root/proc" "$root/dev/shm" "$root/tmp"
mount --bind "$2/tmp" "$root/tmp"
mount --bind "$2/shm" "$root/dev/shm"
shift 2
while [ "$1" != -- ]; do
  if [ -d "$2" ]; then mkdir -p "$root$2"; else mkdir -p "$(dirname "$root$2")"; : > "$root$2"; fi
  if [ "$1" = no ]; then mount -t tmpfs tmpfs "$root$2"; else mount --rbind "$2" "$root$2"; fi
  if [ "$1" = ro ]; then
    seal "$root$2"
    while read -r _ _ _ _ point _; do
      case $point in *\\\\*) point=$(printf %b "$point");; esac
      case $point in "$root$2"/*) if mountpoint -q "$point"; then seal "$point"; fi;; esac
    done < /proc/self/mountinfo
  fi
  shift 2
done
shift
mount -t proc proc "$root/proc"
for each in {" ".join(KERNEL)}; do
  if [ -e "$root/proc/$each" ]; then
    mount --bind "$root/proc/$each" "$root/proc/$each"
    seal "$root/proc/$each"
  fi
done
for each in null zero full random urandom; do
  : > "$root/dev/$each"
  mount --bind "/dev/$each" "$root/dev/$each"
done
cd "$root"
mkdir .before
pivot_root . .before
umount -l /.before
rmdir /.before
seal /
cd "$1"
shift
PATH=$path
exec "$setpriv" --no-new-privs --bounding-set=-all --inh-caps=-all --ambient-caps=-all -- "$@"
"""
"""Makes a root of the given folders, and runs a command there without capabilities. Arguments: an
empty folder; that of /tmp and /dev/shm; `ro`, `rw` or `no` and a path, for each; `--`; the working
directory; the command.

What is mounted below a folder stays as it is when that becomes read-only, and root may write
settings of the kernel.
"""


class Means(Struct, frozen=True):
    """What this machine can do for one kind of isolation."""

    isolation: Isolation
    backend: Backend | None
    problem: str | None = None
    """Why it is not available."""
    hint: str | None = None

    @property
    def explanation(self) -> str:
        """What it gives, in one line."""
        if self.isolation == "none":
            return (
                "a fresh folder, HOME and environment; all files, "
                "processes and networks of the machine are there"
            )
        return f"{self.backend}; {GIVES[self.isolation]}"


class Box(Struct, frozen=True):
    """What a command may see and use."""

    means: Means
    network: bool
    writable: tuple[Path, ...]
    """Its folders, at the same places inside and outside."""
    visible: tuple[Path, ...]
    """What else it may read."""
    image: str | None = None
    limits: WorkspaceLimits | None = None
    masked: tuple[Path, ...] = ()
    """Folders among the system's programs that it must not see."""
    root: Path | None = None
    """An empty folder."""
    shared: Path | None = None
    """A folder with `tmp` and `shm`, which are /tmp and /dev/shm inside: on disk, where they can be
    counted.
    """
    name: str = ""
    """The name of its container."""
    engine_env: Mapping[str, str] = {}
    """The environment of docker or podman, which find their images and settings in it."""

    def confined(self, argv: Sequence[str], env: Mapping[str, str], cwd: Path) -> tuple[str, ...]:
        """Return the command that runs `argv` in this box; `env` is its environment."""
        limited = (*_limits(self.limits, self.means), *argv)
        match self.means.backend:
            case None:
                return limited
            case "bubblewrap":
                return (*self._bubblewrap(cwd), *limited)
            case "unshare":
                return (*self._unshare(cwd), *limited)
            case "docker" | "podman" as engine:
                return (*self._container(engine, env, cwd), *argv)

    def _bubblewrap(self, cwd: Path) -> Iterator[str]:
        yield from (
            "bwrap",
            "--die-with-parent",
            "--unshare-user",
            "--unshare-pid",
            "--unshare-ipc",
            "--unshare-uts",
        )
        yield from ("--unshare-cgroup-try", "--cap-drop", "ALL", "--hostname", "workspace")
        if not self.network:
            yield "--unshare-net"
        for path in _system():
            yield from ("--ro-bind-try", path, path)
        yield from ("--proc", "/proc", "--dev", "/dev")
        yield from ("--bind", f"{self.shared}/tmp", "/tmp")  # noqa: S108
        yield from ("--bind", f"{self.shared}/shm", "/dev/shm")  # noqa: S108
        for name in KERNEL:
            yield from ("--ro-bind-try", f"/proc/{name}", f"/proc/{name}")
        for path in map(str, self.masked):
            yield from ("--tmpfs", path)
        for path in map(str, self.visible):
            yield from ("--ro-bind-try", path, path)
        for path in map(str, self.writable):
            yield from ("--bind", path, path)
        yield from ("--remount-ro", "/dev", "--remount-ro", "/", "--chdir", str(cwd), "--")

    def _unshare(self, cwd: Path) -> Iterator[str]:
        yield from (
            "setpriv",
            "--pdeathsig",
            "KILL",
            "unshare",
            "--user",
            "--map-root-user",
            "--mount",
            "--pid",
        )
        yield from ("--fork", "--kill-child", "--ipc", "--uts")
        if not self.network:
            yield "--net"
        yield from ("--", "/bin/sh", "-c", UNSHARE, "sh", str(self.root), str(self.shared))
        for path in filter(_exists, _system()):
            yield from ("ro", path)
        for path in map(str, self.masked):
            yield from ("no", path)
        # A folder after those in it would cover what is mounted there.
        for path in sorted(filter(_exists, map(str, self.visible))):
            yield from ("ro", path)
        for path in map(str, self.writable):
            yield from ("rw", path)
        yield from ("--", str(cwd))

    def _container(self, engine: str, env: Mapping[str, str], cwd: Path) -> Iterator[str]:
        """Arguments of docker and podman.

        See https://docs.docker.com/reference/cli/docker/container/run/.
        """
        yield from (
            engine,
            "run",
            "--rm",
            "--interactive",
            "--init",
            "--name",
            self.name,
            "--cap-drop",
            "ALL",
        )
        yield from ("--security-opt", "no-new-privileges")
        if not self.network:
            yield from ("--network", "none")
        if (limits := self.limits) is not None:
            if limits.memory_mb is not None:
                yield from ("--memory", f"{int(limits.memory_mb)}m")
            if limits.processes is not None:
                yield from ("--pids-limit", str(limits.processes))
            if limits.cpu_s is not None:
                yield from ("--ulimit", f"cpu={_whole(limits.cpu_s)}")
        for path in self.visible:
            yield from ("--volume", f"{path}:{path}:ro")
        for path in self.writable:
            yield from ("--volume", f"{path}:{path}")
        for name in sorted(env.keys() - {"PATH"}):
            # Secrets are in no list of processes: the engine takes them from its environment, in
            # which it has its own folders. Programs are those of the image.
            yield from ("--env", f"{name}={env[name]}" if name in FOLDERS else name)
        if engine == "docker" and os.getuid() != 0:
            # Its root is that of the machine, and without capabilities could not write to the
            # folders of others.
            yield from ("--user", f"{os.getuid()}:{os.getgid()}")
        assert self.image is not None, "a container has an image"
        yield from ("--workdir", str(cwd), self.image)

    def environment(self, env: Mapping[str, str]) -> Mapping[str, str]:
        """Return the environment of the command that `confined` returns.

        `env` is that of the command in this box.
        """
        if self.means.isolation != "container":
            return env
        return {
            **self.engine_env,
            **without(env, (*FOLDERS, "PATH")),
        }

    def before_start(self) -> None:
        """Take from this thread what namespaces do not.

        Called just before a command of theirs is started.
        """
        if self.means.isolation == "namespaces":
            leave_session_keyring()

    @property
    def removal(self) -> tuple[str, ...] | None:
        """The command that ends what outlives the confined command; None where nothing does."""
        if self.means.backend in ("docker", "podman"):
            return (self.means.backend, "rm", "--force", self.name)
        return None


def _limits(limits: WorkspaceLimits | None, means: Means) -> Iterator[str]:
    """Yield the command that limits each process; the sum of all of them is watched."""
    if limits is None or not sys.platform.startswith("linux"):
        return
    yield from ("prlimit", "--core=0")
    if limits.cpu_s is not None:
        yield f"--cpu={_whole(limits.cpu_s)}"
    if limits.memory_mb is not None:
        # Not the address space: runtimes such as Node reserve far more than they use.
        yield f"--data={int(limits.memory_mb * 1024 * 1024)}"
    if limits.disk_mb is not None:
        yield f"--fsize={int(limits.disk_mb * 1024 * 1024)}"
    if limits.processes is not None and means.isolation == "namespaces":
        # Elsewhere it would count all processes of the user.
        yield f"--nproc={limits.processes}"
    yield "--"


def _whole(seconds: float) -> int:
    return max(1, round(seconds))


def _system() -> Iterator[str]:
    yield from SYSTEM
    yield from (f"/etc/{name}" for name in SETTINGS)


def _exists(path: str) -> bool:
    return Path(path).exists()


async def means_of(isolation: Isolation, environ: Mapping[str, str]) -> Means:
    """Return what this machine can do for a kind of isolation, tried on a harmless command."""
    match isolation:
        case "none":
            return Means("none", None)
        case "namespaces":
            return await _namespaces(environ)
        case "container":
            return await _containers(environ)


async def _namespaces(environ: Mapping[str, str]) -> Means:
    if not sys.platform.startswith("linux"):
        return Means(
            "namespaces",
            None,
            f"namespaces exist only on Linux, not on {sys.platform}",
            "isolation: none",
        )
    problems: list[str] = []
    path = ":".join((environ.get("PATH", ""), *ADMINISTRATION))
    for backend, programs in NEEDED.items():
        if missing := [program for program in programs if which(program, path=path) is None]:
            problems.append(f"{backend}: {missing[0]} is not installed")
            continue
        means = Means("namespaces", backend)
        if (problem := await _try(means, environ)) is None:
            return means
        problems.append(f"{backend}: {problem}")
    hint = (
        "install bubblewrap; where the kernel restricts namespaces of users, "
        "allow them (see docs/workspaces.md)"
    )
    return Means("namespaces", None, "; ".join(problems), hint)


async def _try(means: Means, environ: Mapping[str, str]) -> str | None:
    """Return why a command does not run in namespaces."""
    with TemporaryDirectory(prefix="agentv-ci-") as scratch:
        folder = Path(scratch)
        for name in ("tree", "root", "shared/tmp", "shared/shm"):
            (folder / name).mkdir(parents=True)
        tree, root, shared = map(folder.joinpath, ("tree", "root", "shared"))
        box = Box(means, network=False, writable=(tree,), visible=(), root=root, shared=shared)
        env = {"PATH": environ.get("PATH", "")}
        try:
            ended = await run(
                box.confined(("true",), env, folder / "tree"),
                cwd=folder,
                env=env,
                timeout_s=PROBE_S,
            )
        except ProcessFailed as error:
            return str(error)
    if ended.status == 0:
        return None
    return " ".join(ended.stderr.split()) or f"exit code {ended.status}"


async def _containers(environ: Mapping[str, str]) -> Means:
    problems: list[str] = []
    for engine in ENGINES:
        if which(engine, path=environ.get("PATH", "")) is None:
            problems.append(f"{engine} is not installed")
            continue
        try:
            ended = await run((engine, "info"), cwd=Path("/"), env=environ, timeout_s=PROBE_S)
        except ProcessFailed as error:
            problems.append(f"{engine} {error}")
            continue
        if ended.status == 0:
            return Means("container", engine)
        problems.append(f"{engine}: {last_line(ended.stderr) or 'no reason given'}")
    return Means(
        "container",
        None,
        "; ".join(problems),
        "start docker or podman, or use isolation: namespaces",
    )
