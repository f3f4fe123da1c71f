"""Runs over a cluster in which something breaks: no row may be lost or doubled, and the exit status must be right.

    python -m tests.faults.cluster_rounds --rounds 200 --seed 28

prints what happened in how many rounds, and ends with a traceback at the first round that went wrong.
"""

from __future__ import annotations

import argparse
import json
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, get_args

from distributed import Client

from tests.faults.proxy import Proxy, proxy
from tests.support import clean_environment, has_ended
from tests.support.clusters import DaskCluster, free_port, wait_until
from tests.support.evals import tool
from tests.support.projects import GREETS, JUDGE, JUDGED, Project

Fault = Literal["killed", "terminated", "paused", "cut off", "full disk", "scheduler killed"]
"""What happens to a worker in the middle of a case, or to the scheduler."""
FAULTS: tuple[Fault, ...] = get_args(Fault)
SHARES = (5, 4, 5, 5, 5, 2)
WORKERS = 3
SHORT_LIVED = {"DASK_DISTRIBUTED__SCHEDULER__WORKER_TTL": "6s", "DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES": "10"}
"""A worker that is paused for longer is lost; so many losses of one unit are not its own fault."""
DISK_BYTES = 2 * 1024 * 1024
FILE_BYTES = 256 * 1024
SLOW = [f"slow-{number}" for number in range(6)]
SHORT = [f"short-{number:02}" for number in range(40)]
TRIALS = 2
REPEAT = {"max": TRIALS, "require": "any"}
"""Of errors alone, so that the exit status is 4 if there are any."""
COMMAND = (
    f'echo $$ >> {{pids}}; mine="$TMPDIR/$$"; head -c {FILE_BYTES} /dev/zero > "$mine" && sleep {{seconds}}; '
    'code=$?; rm -f "$mine"; [ $code = 0 ] && echo Hello'
)
DEADLINE_S = 90


@dataclass(slots=True)
class Rig:
    """A scheduler, and workers that reach it and are reached through proxies of their own."""

    cluster: DaskCluster
    stack: ExitStack
    proxies: dict[str, tuple[Proxy, Proxy]] = field(default_factory=dict)
    """To the scheduler and to the worker."""
    disks: dict[str, Path] = field(default_factory=dict)
    """The temporary folders of workers; empty where no file system can be mounted."""
    started: int = 0

    def start_worker(self) -> None:
        """Start one more worker."""
        name = f"w{self.started}"
        self.started += 1
        own = free_port()
        there, back = (self.stack.enter_context(proxy(port)) for port in (self.cluster.port, own))
        disk = self.cluster.folder / f"worker {name}" / "tmp"
        disk.mkdir(parents=True)
        if _mounts(disk):
            self.stack.callback(subprocess.run, ["umount", "--lazy", str(disk)], check=True)
            self.disks[name] = disk
        flags = ("--listen-address", f"tcp://127.0.0.1:{own}", "--contact-address", f"tcp://127.0.0.1:{back.port}")
        address = f"tcp://127.0.0.1:{there.port}"
        self.cluster.start_worker(name, {"TMPDIR": str(disk)}, *flags, scheduler=address)
        self.proxies[name] = there, back

    def living(self) -> list[str]:
        """Return the workers that run, and remove those that have ended."""
        for what, process in [*self.cluster.processes.items()]:
            if process.poll() is not None:
                del self.cluster.processes[what]
        return [what.removeprefix("worker ") for what in self.cluster.processes if what != "scheduler"]

    def restore(self) -> None:
        """Start what is missing."""
        if "scheduler" not in self.cluster.processes:
            for name in self.living():
                self.cluster.kill(f"worker {name}")
            self.cluster.start_scheduler(SHORT_LIVED)
        while len(self.living()) < WORKERS:
            self.start_worker()

    def stop(self) -> None:
        """Kill all processes."""
        for what in [*self.cluster.processes]:
            self.cluster.kill(what)

    def strike(self, fault: Fault, name: str, seconds: float) -> None:
        """Let something happen for a while; what is lost stays lost."""
        process = self.cluster.processes[f"worker {name}"]
        match fault:
            case "killed":
                self.cluster.kill(f"worker {name}")
            case "terminated":
                process.terminate()
            case "paused":
                process.send_signal(signal.SIGSTOP)
                time.sleep(seconds)
                process.send_signal(signal.SIGCONT)
            case "cut off":
                for each in self.proxies[name]:
                    each.cut()
                time.sleep(seconds)
                for each in self.proxies[name]:
                    each.mend()
            case "full disk":
                fill = self.disks[name] / "fill"
                with suppress(OSError):
                    fill.write_bytes(b" " * DISK_BYTES)
                time.sleep(seconds)
                fill.unlink()
            case "scheduler killed":
                self.cluster.kill("scheduler")


def _mounts(place: Path) -> bool:
    mount = ["mount", "-t", "tmpfs", "-o", f"size={DISK_BYTES}", "tmpfs", str(place)]
    try:
        return subprocess.run(mount, capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        return False


@contextmanager
def rig(folder: Path) -> Iterator[Rig]:
    """Start a cluster in a folder, and kill it at the end."""
    with ExitStack() as stack:
        running = Rig(DaskCluster(folder), stack)
        stack.callback(running.stop)
        yield running


@dataclass(slots=True)
class Round:
    """One run with one fault."""

    rig: Rig
    project: Project
    chance: random.Random
    fault: Fault

    def run(self) -> Counter[str]:
        """Run it and check what came out; returns what happened."""
        self.rig.restore()
        self._write()
        process = self._start()
        wait_until(lambda: len(self.pids) >= 2 or process.poll() is not None, DEADLINE_S)
        time.sleep(self.chance.uniform(0, 0.8))
        # Some pauses are longer than the scheduler waits for a worker.
        seconds = self.chance.choice([0.3, 1.0, 8.0 if self.fault == "paused" else 2.0])
        self.rig.strike(self.fault, self.chance.choice(self.rig.living()), seconds)
        _, err = process.communicate(timeout=DEADLINE_S)
        found = self._check(process.returncode, err)
        wait_until(lambda: all(map(has_ended, self.pids)))
        return found

    @property
    def pids(self) -> list[int]:
        """The processes of commands so far."""
        path = self.project.path("pids")
        return [int(line) for line in path.read_text("utf-8").split()] if path.exists() else []

    def _write(self) -> None:
        for name in ("pids", "r.jsonl", "r.report.json"):
            self.project.path(name).unlink(missing_ok=True)
        command = COMMAND.format(pids=self.project.path("pids"), seconds=self.chance.choice([0.1, 0.3]))
        limit: dict[str, Any] = self.chance.choice([{}, {"workers": 2}])
        slow, judge = {**tool(command, **limit), "name": "slow"}, {**JUDGE, "workers": 2}
        cases = [{"id": each, "execution": {"target": "slow"}} for each in SLOW]
        judged = [{"id": each, "evaluators": [JUDGED]} for each in SHORT[:5]]
        self.project.documents(*cases, *judged, *SHORT[5:], targets=(GREETS, slow, judge), repeat=REPEAT)

    def _start(self) -> subprocess.Popen[str]:
        flags: list[str] = self.chance.choice([[], [], ["--workers", "3"], ["--max-cost", "1"]])
        return subprocess.Popen(
            self._command("--out", *flags),
            cwd=self.project.folder,
            env=clean_environment(),
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    def _command(self, option: str, *flags: str) -> list[str]:
        engine = self.rig.cluster.flags
        return [sys.executable, "-m", "agentv_ci", "eval", "evals", *engine, *flags, option, "r.jsonl"]

    def _check(self, code: int, err: str) -> Counter[str]:
        assert "Traceback" not in err, err
        found: Counter[str] = Counter()
        if self.fault == "scheduler killed" and not self.project.path("r.report.json").exists():
            assert (code, "the connection to the scheduler is lost; finished rows are kept" in err) == (4, True), err
            kept = self.project.text("r.jsonl") if self.project.path("r.jsonl").exists() else ""
            self.rig.restore()
            again = subprocess.run(
                self._command("--resume"),
                cwd=self.project.folder,
                env=clean_environment(),
                capture_output=True,
                text=True,
                timeout=DEADLINE_S,
                check=False,
            )
            assert self.project.text("r.jsonl").startswith(kept)
            code, err = again.returncode, again.stderr
            found["resumed runs"] += 1
        assert self.project.path("r.jsonl").exists(), (code, err)
        rows = self.project.rows()
        ran = Counter((row["eval_id"], row["trial"]) for row in rows)
        expected = Counter((case, trial) for case in (*SLOW, *SHORT) for trial in range(1, TRIALS + 1))
        assert ran == expected, (ran - expected, expected - ran, code, err)
        failed = [row for row in rows if row["verdict"] != "pass"]
        assert all(row["error_kind"] in ("process", "request") for row in failed), [row["error"] for row in failed]
        assert not failed or self.fault == "full disk", [(row["worker"], row["error"]) for row in failed]
        assert code == (4 if failed else 0), (code, err)
        assert self.project.json("r.report.json")["counts"]["rows"] == len(rows)
        repeated = len(set(self.pids)) - len(SLOW) * TRIALS
        return found + Counter({"rows": len(rows), "rows with an error": len(failed), "commands repeated": repeated})


def leftovers(cluster: DaskCluster) -> object:
    """Return what the scheduler still keeps of runs that have ended."""

    def kept(dask_scheduler: Any) -> object:
        semaphores = dask_scheduler.extensions["semaphores"].max_leases
        kinds = (dask_scheduler.worker_plugins, dask_scheduler.plugins, semaphores, dask_scheduler.tasks)
        return [each for kind in kinds for each in kind if each.startswith("agentv-ci")]

    with Client(cluster.address) as client:
        return client.run_on_scheduler(kept)


def run_rounds(folder: Path, rounds: int, seed: int) -> Counter[str]:
    """Run rounds, and return what happened in them."""
    chance = random.Random(seed)
    total: Counter[str] = Counter()
    (folder / "project" / ".git").mkdir(parents=True)
    project = Project(folder / "project")
    with rig(folder / "cluster") as running:
        running.restore()
        known = FAULTS if running.disks else tuple(each for each in FAULTS if each != "full disk")
        shares = [share for each, share in zip(FAULTS, SHARES, strict=True) if each in known]
        for number in range(rounds):
            # Each fault at least once, also in few rounds.
            fault = known[number] if number < len(known) else chance.choices(known, shares)[0]
            begun = time.monotonic()
            found = Round(running, project, chance, fault).run()
            total += Counter({fault: 1}) + found
            line = {"round": number + 1, "fault": fault, **found, "seconds": round(time.monotonic() - begun, 1)}
            print(json.dumps(line), flush=True)
        running.restore()
        wait_until(lambda: not leftovers(running.cluster))
    return total


def main() -> None:
    """Run rounds and print what happened."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--seed", type=int, default=28)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        print(json.dumps(run_rounds(Path(folder), options.rounds, options.seed)))


if __name__ == "__main__":
    main()
