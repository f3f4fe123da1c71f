"""Change the product in random places, one at a time, and print the changes that no test notices.

Each mutant runs the tests that cover its line, up to a minute of them, the most specific first. A run of all tests with
coverage records which these are; repeat it with --record after larger changes. The record does not include code that
tests start in other processes, nor the tests in tests/{action,browser,external,faults,guards}. Constants, defaults and
cached functions run once for many tests: they get the tests of the lines that use them. A survivor is a missing test or
a change that makes no difference.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import resource
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from importlib.util import cache_from_source
from itertools import islice
from pathlib import Path
from queue import SimpleQueue

from agentv_ci.analysis.statistics.inference import rate_interval
from tests.conftest import SWEEPS
from tests.mutations import Mutant, mutants
from tests.support import REPOSITORY

FOLDERS = ("base", "compile", "validate", "execute", "evaluate", "results", "analysis", "github")
PYTEST = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
ENDS_S = (2.0, 15.0, 60.0)
"""The tests of a mutant run in up to three processes, split at these totals of recorded time."""
LEAST_S = 0.02
"""The least time of a test: the record leaves out the shortest."""
MEMORY = 8 << 30
"""Bytes for each process: a mutant may allocate without end."""


class Record:
    """Which lines each test covers, and how long it takes."""

    def __init__(self, database: Path) -> None:
        self._covered: dict[str, list[tuple[str, bytes]]] = {}
        self._size: dict[str, int] = {}
        with closing(sqlite3.connect(database)) as db:
            self._seconds: dict[str, float] = dict(db.execute("select test, seconds from duration"))
            rows = db.execute(
                "select path, context, numbits from line_bits join file on file.id = file_id"
                " join context on context.id = context_id where context != ''"
            )
            for path, context, numbits in rows:
                test = context.rpartition("|")[0]
                self._covered.setdefault(path, []).append((test, numbits))
                self._size[test] = self._size.get(test, 0) + int.from_bytes(numbits, "big").bit_count()

    @staticmethod
    def write(database: Path, tests: Sequence[str]) -> None:
        """Run tests with coverage."""
        with tempfile.TemporaryDirectory() as name:
            settings, data = Path(name, "settings"), Path(name, "data")
            settings.write_text(f"[run]\nbranch = false\nrelative_files = true\ndata_file = {data}\n", "utf-8")
            coverage = ["--cov=agentv_ci", "--cov-context=test", "--cov-report=", f"--cov-config={settings}"]
            ignored = [f"--ignore=tests/{folder}" for folder in SWEEPS]
            command = [*PYTEST, "-n", "auto", "--durations=0", *coverage, *ignored, *tests]
            done = subprocess.run(command, cwd=REPOSITORY, stdout=subprocess.PIPE, text=True, check=False)
            if done.returncode:
                sys.exit(f"{done.stdout[-5_000:]}\nthe tests fail without a mutant")
            seconds: dict[str, float] = {}
            for spent, test in re.findall(r"^([\d.]+)s (?:setup|call|teardown) +(.*)$", done.stdout, re.MULTILINE):
                seconds[test] = seconds.get(test, 0.0) + float(spent)
            with closing(sqlite3.connect(data)) as db, db:
                db.execute("create table duration (test text, seconds real)")
                db.executemany("insert into duration values (?, ?)", seconds.items())
            shutil.move(data, database)

    def tests(self, mutant: Mutant) -> list[str]:
        """Return the tests that cover a mutant; first those that are quick and cover little else."""
        for lines in mutant.lines:
            tests = {
                test
                for test, numbits in self._covered.get(mutant.path, ())
                if any(line // 8 < len(numbits) and numbits[line // 8] >> line % 8 & 1 for line in lines)
            }
            if tests:
                return sorted(tests, key=lambda test: (self._size[test] * (0.05 + self.seconds(test)), test))
        return []

    def seconds(self, test: str) -> float:
        """Return how long a test takes."""
        return max(LEAST_S, self._seconds.get(test, 0.0))


@dataclass(slots=True)
class Verdict:
    """The outcome of a mutant's tests."""

    mutant: Mutant
    covering: int
    tried: int = 0
    killer: str | None = None

    def __str__(self) -> str:
        if self.killer is not None:
            return f"killed by {self.killer}"
        return f"SURVIVED {self.tried} of {self.covering} tests" if self.covering else "NOT COVERED"


class Copy:
    """A copy of the working tree, in which one mutant runs at a time."""

    def __init__(self, folder: Path) -> None:
        self._top, self._output, scratch = folder / "copy", folder / "output", folder / "tmp"
        scratch.mkdir(parents=True)
        listed = subprocess.check_output(["git", "ls-files", "-z", "-co", "--exclude-standard"], cwd=REPOSITORY)
        for name in listed.decode().split("\0"):
            if (REPOSITORY / name).is_file():
                (self._top / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(REPOSITORY / name, self._top / name)
        self._env = {**os.environ, "PYTHONPATH": str(self._top), "TMPDIR": str(scratch)}
        _, imported = self._run([sys.executable, "-c", "import agentv_ci; print(agentv_ci.__file__)"], scratch)
        assert Path(imported).is_relative_to(self._top), imported

    def existing(self, tests: Iterable[str]) -> set[str]:
        """Return those tests that have not been removed or renamed since they were recorded."""
        files = sorted({path for test in tests if (self._top / (path := test.partition("::")[0])).exists()})
        return set(self._run([*PYTEST, "--collect-only", *files])[1].splitlines()).intersection(tests)

    def failing(self, tests: Iterable[str], timeout_s: float | None = None, *options: str) -> list[str]:
        """Run tests and return those that failed."""
        code, out = self._run([*PYTEST, "-n0", "-rfE", *options, *tests], timeout_s=timeout_s)
        if code is None:
            return ["time-out"]
        failed = [line for line in re.findall(r"^(?:FAILED|ERROR) (.*)", out, re.MULTILINE) if "::" in line]
        named = [max((test for test in tests if line.startswith(test)), key=len, default=line) for line in failed]
        return named or ([f"exit code {code}"] if code else [])

    def judge(self, mutant: Mutant, tests: Sequence[str], record: Record) -> Verdict:
        """Run the tests of a mutant until one fails."""
        verdict, total_s, pace = Verdict(mutant, len(tests)), 0.0, 1.0
        self._write(mutant.path, mutant.mutated)
        for end_s in ENDS_S:
            stage, begin_s, began = verdict.tried, total_s, time.monotonic()
            while verdict.tried < len(tests) and total_s + record.seconds(tests[verdict.tried]) <= end_s:
                total_s += record.seconds(tests[verdict.tried])
                verdict.tried += 1
            if stage < verdict.tried:
                failed = self.failing(tests[stage : verdict.tried], 20 + 4 * pace * (total_s - begin_s), "-x")
                if failed:
                    verdict.killer = failed[0]
                    break
                # A machine that is busier than when the tests were recorded needs longer.
                pace = max(pace, (time.monotonic() - began) / (total_s - begin_s))
        self._write(mutant.path, mutant.source)
        return verdict

    def _write(self, name: str, source: bytes) -> None:
        path = self._top / name
        path.write_bytes(source)
        # Bytecode is stale only when the size or the second of the last change differs.
        Path(cache_from_source(path)).unlink(missing_ok=True)

    def _run(
        self, command: Sequence[str], folder: Path | None = None, timeout_s: float | None = None
    ) -> tuple[int | None, str]:
        with self._output.open("w") as output:
            process = subprocess.Popen(
                command,
                cwd=folder or self._top,
                env=self._env,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
            try:
                code: int | None = process.wait(timeout_s)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
                code = None
        return code, self._output.read_text("utf-8", "replace")


def drawn(folders: Iterable[str], number: int, seed: int) -> list[Mutant]:
    """Return random mutants of the Python files in folders, each as likely as any other.

    Without `process.py`: a mutant of it could signal processes that its tests did not start.
    """
    places = [REPOSITORY / each for each in folders]
    files = sorted({path for place in places for path in ([place] if place.is_file() else place.rglob("*.py"))})
    files = [path for path in files if path.name != "process.py"]
    found = [each for path in files for each in mutants(path.relative_to(REPOSITORY).as_posix(), path.read_bytes())]
    random.Random(seed).shuffle(found)
    return list(islice((each for each in found if each.is_valid), number))


def _say(text: str) -> None:
    sys.stderr.write(f"{text}\n")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser("make mutants", description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--number", type=int, default=100, help="mutants to draw (default: 100)")
    parser.add_argument("--seed", type=int, default=1, help="the same seed draws the same mutants (default: 1)")
    parser.add_argument(
        "--only",
        nargs="+",
        metavar="PATH",
        default=[f"agentv_ci/{name}" for name in FOLDERS],
        help="files or folders to change",
    )
    parser.add_argument("--jobs", type=int, default=2, help="mutants to run at once (default: 2)")
    contexts = REPOSITORY / ".coverage.contexts"
    parser.add_argument(
        "--contexts", type=Path, metavar="FILE", default=contexts, help="the record of what tests cover"
    )
    parser.add_argument("--record", action="store_true", help="run the tests and write FILE again")
    parser.add_argument(
        "--tests",
        nargs="+",
        metavar="PATH",
        default=["tests"],
        help="tests to record (default: all, which takes minutes)",
    )
    return parser.parse_args()


def main() -> int:
    """Print the kill rate and what survived."""
    options = _arguments()
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    # Tests interrupt processes, and a shell has its background jobs ignore that.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    if options.record or not options.contexts.exists():
        _say(f"running {' '.join(options.tests)} with coverage …")
        Record.write(options.contexts, options.tests)
    recorded = options.contexts.stat().st_mtime
    _say(f"{options.contexts} is {(time.time() - recorded) / 3600:.1f} h old; --record writes it again")
    record, chosen = Record(options.contexts), drawn(options.only, options.number, options.seed)
    for path in sorted({each.path for each in chosen}):
        if (REPOSITORY / path).stat().st_mtime > recorded:
            _say(f"{path} has changed since; its lines may get the wrong tests")
    with (
        tempfile.TemporaryDirectory(prefix="mutants-", ignore_cleanup_errors=True) as folder,
        ThreadPoolExecutor(options.jobs) as pool,
    ):
        copies: SimpleQueue[Copy] = SimpleQueue()
        for number in range(options.jobs):
            copies.put(Copy(Path(folder, str(number))))
        first = copies.get()
        existing = first.existing({test for mutant in chosen for test in record.tests(mutant)})
        copies.put(first)

        def judge(mutant: Mutant) -> Verdict:
            copy, began = copies.get(), time.monotonic()
            try:
                verdict = copy.judge(mutant, [test for test in record.tests(mutant) if test in existing], record)
            finally:
                copies.put(copy)
            _say(f"{mutant.path}:{mutant.line}: {verdict} ({time.monotonic() - began:.0f} s)")
            return verdict

        verdicts = list(pool.map(judge, chosen))
        killers = {each.killer for each in verdicts if each.killer is not None} & existing
        unreliable = first.failing(sorted(killers)) if killers else []
    for survived in (each for each in verdicts if each.killer is None):
        sys.stdout.write(f"{survived.mutant}\n  {survived}\n")
    killed = sum(each.killer is not None for each in verdicts)
    late, uncovered = sum(each.killer == "time-out" for each in verdicts), sum(not each.covering for each in verdicts)
    low, high = rate_interval(killed, len(verdicts), 0.95)
    sys.stdout.write(
        f"kill rate {killed / max(1, len(verdicts)):.1%} ({killed} of {len(verdicts)}, 95 % interval {low:.1%} to"
        f" {high:.1%}), {late} by time-out, {uncovered} not covered; --number {options.number} --seed {options.seed}\n"
    )
    if unreliable:
        sys.stdout.write(f"these tests fail without a mutant too: {', '.join(unreliable)}\n")
    return 1 if unreliable else 0


if __name__ == "__main__":
    sys.exit(main())
