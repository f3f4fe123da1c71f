"""Time `python -m agentv_ci eval` against its peers and print Markdown tables.

README.md says how to read them.
"""

from __future__ import annotations

import argparse
import compileall
import json
import math
import os
import platform
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median

from eval_server import Server
from eval_workload import ANSWERER, DIALECTS, JUDGE, RIGHT, WRONG, document_of, folder_of, said

import agentv_ci

CASES = 1_000
WRONG_CASES = 5
STARTS = 10
"""How often a round starts an interpreter that has nothing to do."""
ENVIRONMENT = {
    "OPENAI_API_KEY": "sk-of-the-benchmark",
    "ANSWERER": ANSWERER,
    "JUDGE": JUDGE,
    "NO_PROXY": "127.0.0.1",
    "AGENTV_NO_UPDATE_CHECK": "1",
    "PROMPTFOO_DISABLE_TELEMETRY": "1",
    "PROMPTFOO_DISABLE_UPDATE": "1",
    # With its log files, promptfoo now and then breaks after its last line.
    "PROMPTFOO_DISABLE_DEBUG_LOG": "1",
    "PROMPTFOO_DISABLE_ERROR_LOG": "1",
}
HOMES = ("AGENTV_HOME", "PROMPTFOO_CONFIG_DIR", "XDG_DATA_HOME", "XDG_CACHE_HOME")
OURS, IDEAL = "agentv-ci", "floor: the server alone"
LOOP, FASTEST_LOOP = "floor: a bare httpx loop", "floor: a bare aiohttp loop"
MEGABYTE = 1_000_000
READ_PLAN = """
import sys
from pathlib import Path
from agentv_ci.app.documents.compile import read_plan
read_plan(Path(sys.argv[1]))
"""


@dataclass(frozen=True, slots=True)
class Workload:
    """How many questions wait at a time, and how long."""

    latency_s: float
    width: int
    judged: bool = False

    def __str__(self) -> str:
        return f"{self.latency_s * 1000:g} ms, {self.width} wide{', with a judge' if self.judged else ''}"

    @property
    def ideal_s(self) -> float:
        """How long the questions would wait if nothing else took time."""
        return math.ceil(CASES / self.width) * self.latency_s * (1 + self.judged)


SLOW, FAST, JUDGED = Workload(0.05, 64), Workload(0, 16), Workload(0, 16, judged=True)


@dataclass(frozen=True, slots=True)
class Tool:
    """A command that asks all questions in one process."""

    name: str
    command: tuple[str, ...]
    passed: str
    """What it says of the cases that passed; the group is their number."""
    dialect: str
    version: str | None = ""
    """None if it is not installed."""
    most_workers: int = 1_000


@dataclass(frozen=True, slots=True)
class Run:
    """What one run took; computing and memory are those of its process alone."""

    seconds: float
    busy_s: float
    """Computing, on all cores together: less than `seconds` where it waited, more where it used two
    cores.
    """
    mebibytes: float
    at_once: int = 0


@dataclass(frozen=True, slots=True)
class Bar:
    """What a tool takes as a multiple of what another one takes: at least or at most so much."""

    tool: str
    other: str
    workload: Workload
    least: float | None = None
    most: float | None = None
    measure: str = "seconds"


BARS = (
    Bar(OURS, IDEAL, SLOW, most=1.9),
    Bar(OURS, LOOP, SLOW, most=1.2),
    Bar(OURS, LOOP, FAST, most=1.4),
    Bar(OURS, FASTEST_LOOP, FAST, most=2.0),
    Bar(OURS, FASTEST_LOOP, JUDGED, most=2.5),
    Bar(OURS, "agentv", FAST, most=0.3, measure="mebibytes"),
    Bar("agentv", OURS, FAST, least=4),
    Bar("promptfoo", OURS, FAST, least=3.5),
    Bar("inspect_ai", OURS, FAST, least=12),
    Bar("pydantic-evals", OURS, FAST, least=1.3),
    Bar("agentv", OURS, JUDGED, least=5),
)
Runs = dict[tuple[str, Workload], list[Run]]


def main() -> None:
    """Measure and print."""
    options = _options()
    # As pip does when it installs; from a checkout the first runs would compile.
    compileall.compile_dir(str(Path(agentv_ci.__file__).parent), quiet=1)
    tools = tools_of(options.peers.resolve())
    with tempfile.TemporaryDirectory() as scratch:
        root = Path(scratch)
        (root / ".git").mkdir()
        with Server() as server:
            installed = [tool for tool in tools if tool.version is not None]
            require_wrong_answers_found(installed, root, server)
            runs: Runs = {(IDEAL, SLOW): [Run(SLOW.ideal_s, 0, 0)] * options.rounds}
            for turn in range(options.rounds):
                measure(installed, (SLOW, FAST, JUDGED), turn, root, server, runs)
        for workload in (SLOW, FAST, JUDGED):
            print("\n".join(_table(tools, workload, runs)), end="\n\n")
        print("\n".join(_start_table(options.rounds, root)), end="\n\n")
        if options.large:
            print("\n".join(_large_table(options.rounds, root)), end="\n\n")
    print("\n".join(_notes(options.rounds)))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--rounds", type=int, default=3, help="how often every command runs (default: 3)"
    )
    parser.add_argument(
        "--large", action="store_true", help="10,000 and 100,000 cases that a mock answers, too"
    )
    parser.add_argument(
        "--peers", type=Path, default=Path("peers"), metavar="DIR", help="where peers are installed"
    )
    return parser.parse_args()


def tools_of(peers: Path) -> list[Tool]:
    """Return all tools, ours first."""
    ours = (
        sys.executable,
        "-m",
        "agentv_ci",
        "eval",
        "evals",
        "--workers",
        "{width}",
        "--out",
        "out/rows.jsonl",
    )
    counted = r"^(\d+) of \d+ passed"
    ask = ("ask.py", "{width}", "{judged}")
    modules, environment = peers / "npm" / "node_modules", peers / "venv-eval"
    agentv = (
        str(modules / ".bin" / "agentv"),
        "eval",
        "shop.eval.yaml",
        "--workers",
        "{width}",
        "--output",
        "out",
    )
    # Nothing in its database and no table on the terminal, but its rows in a file, as ours.
    quiet = (
        "--no-cache",
        "--no-share",
        "--no-table",
        "--no-progress-bar",
        "--no-write",
        "-o",
        "rows.jsonl",
    )
    promptfoo = (
        str(modules / ".bin" / "promptfoo"),
        "eval",
        "-c",
        "shop.yaml",
        "-j",
        "{width}",
        *quiet,
    )
    python = str(environment / "bin" / "python")
    inspect, evals, aiohttp = (
        _pypi_version(environment, name) for name in ("inspect_ai", "pydantic_evals", "aiohttp")
    )
    return [
        Tool(OURS, ours, r"^\d+ cases: (\d+) passed", "agentv-ci"),
        Tool(
            "agentv",
            agentv,
            r"\((\d+)/\d+ scored",
            "agentv",
            _npm_version(modules / "agentv"),
            most_workers=50,
        ),
        Tool(
            "promptfoo",
            promptfoo,
            r"([\d,]+) passed",
            "promptfoo",
            _npm_version(modules / "promptfoo"),
        ),
        Tool("inspect_ai", (python, *ask), counted, "inspect_ai", inspect),
        Tool("pydantic-evals", (python, *ask), counted, "pydantic-evals", evals),
        Tool(LOOP, (sys.executable, *ask), counted, "httpx"),
        Tool(FASTEST_LOOP, (python, *ask), counted, "aiohttp", aiohttp),
    ]


def _npm_version(package: Path) -> str | None:
    manifest = package / "package.json"
    return str(json.loads(manifest.read_text("utf-8"))["version"]) if manifest.exists() else None


def _pypi_version(environment: Path, name: str) -> str | None:
    found = environment.glob(f"lib/python*/site-packages/{name}-*.dist-info")
    return next((installed.stem.partition("-")[2] for installed in found), None)


def require_wrong_answers_found(tools: Sequence[Tool], root: Path, server: Server) -> None:
    """Exit unless each tool fails wrong answers."""
    for tool in tools:
        _ask(tool, Workload(0, 2), WRONG_CASES, root, server, answer=WRONG)


def measure(
    tools: list[Tool],
    workloads: Sequence[Workload],
    turn: int,
    root: Path,
    server: Server,
    runs: Runs,
) -> None:
    """Add one round to the runs; each begins with another tool."""
    first = turn % len(tools)
    for workload in workloads:
        for tool in tools[first:] + tools[:first]:
            runs.setdefault((tool.name, workload), []).append(
                _ask(tool, workload, CASES, root, server)
            )


def _ask(
    tool: Tool, workload: Workload, cases: int, root: Path, server: Server, answer: str = RIGHT
) -> Run:
    """Return what a run took.

    Exit unless it asked every question once, and passed just the right answers.
    """
    folder = folder_of(root, tool.dialect, cases, judged=workload.judged, url=server.url)
    shutil.rmtree(folder / "out", ignore_errors=True)
    server.prepare(
        workload.latency_s, {ANSWERER: said(answer), JUDGE: DIALECTS[tool.dialect].verdict}
    )
    width = min(workload.width, tool.most_workers)
    words = {"width": str(width), "judged": "judged" if workload.judged else "plain"}
    run, status, output = _run([part.format(**words) for part in tool.command], folder)
    counts = server.counts()
    found = re.search(tool.passed, output, re.MULTILINE)
    passed = int(found[1].replace(",", "")) if found else None
    right = cases if answer == RIGHT else 0
    wanted = {ANSWERER: cases} | ({JUDGE: cases} if workload.judged else {})
    if passed != right or counts.asked != wanted or (status != 0 and answer == RIGHT):
        about = (
            f"asked {counts.asked}, of {cases} right answers {passed} passed"
            if answer == RIGHT
            else counts.asked
        )
        sys.exit(
            f"{tool.name} ({workload}) ended with {status}: {about}, not {right} and {wanted}\n{output[-3_000:]}"
        )
    if (
        tool.name in (OURS, LOOP, FASTEST_LOOP)
        and workload.latency_s
        and counts.most_at_once != width
    ):
        sys.exit(f"{tool.name} asked {counts.most_at_once} questions at once, not {width}")
    return replace(run, at_once=counts.most_at_once)


def _run(command: Sequence[str], folder: Path) -> tuple[Run, int, str]:
    """Return what a command took, its exit code, and what it said."""
    homes = {name: str(folder.parent / "home") for name in HOMES}
    with tempfile.TemporaryFile("w+", encoding="utf-8") as output:
        start = time.perf_counter()
        process = subprocess.Popen(
            command,
            cwd=folder,
            env=os.environ | ENVIRONMENT | homes,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
        _, status, usage = os.wait4(process.pid, 0)
        run = Run(
            time.perf_counter() - start, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024
        )
        process.returncode = os.waitstatus_to_exitcode(status)
        output.seek(0)
        return run, process.returncode, output.read()


def _table(tools: list[Tool], workload: Workload, runs: Runs) -> Iterator[str]:
    yield f"| {CASES:,} cases, {workload} | wall | computing | peak memory | at once | times ours | bars |"
    yield "|---|--:|--:|--:|--:|--:|---|"
    for tool in tools:
        mine = runs.get((tool.name, workload), [])
        label = f"{tool.name} {'not installed' if tool.version is None else tool.version}".strip()
        cells = ["–"] * 4
        if mine:
            busy, memory = median(run.busy_s for run in mine), median(run.mebibytes for run in mine)
            at_once = f"{max(run.at_once for run in mine)}" if workload.latency_s else "–"
            cells = [_seconds(mine), f"{busy:.2f} s", f"{memory:.0f} MiB", at_once]
        times = _ratio(runs, Bar(tool.name, OURS, workload))
        bars = [
            _verdict(runs, bar) for bar in BARS if (bar.tool, bar.workload) == (tool.name, workload)
        ]
        yield f"| {' | '.join([label, *cells, f'{times:.2f}×' if times else '–', '; '.join(bars)])} |"
    if workload.ideal_s:
        yield f"| {IDEAL} | {workload.ideal_s:.2f} s | – | – | {workload.width} | – | |"


def _seconds(runs: Sequence[Run]) -> str:
    return f"{median(run.seconds for run in runs):.2f} s"


def _verdict(runs: Runs, bar: Bar) -> str:
    ratio = _ratio(runs, bar)
    what = "memory" if bar.measure == "mebibytes" else "time"
    whose = "ours" if bar.other == OURS else f"of {bar.other.removeprefix('floor: ')}"
    limit = f"≥ {bar.least:g}×" if bar.least is not None else f"≤ {bar.most:g}×"
    if ratio is None:
        return f"{what} {limit} {whose}: not measured"
    met = ratio >= bar.least if bar.least is not None else ratio <= (bar.most or 0)
    return f"{what} {limit} {whose}: {ratio:.2f}×, {_met(met)}"


def _met(met: bool) -> str:
    return "met" if met else "not met"


def _ratio(runs: Runs, bar: Bar) -> float | None:
    """Return the median of the rounds' ratios; None if they were not measured."""
    pairs = zip(
        runs.get((bar.tool, bar.workload), []),
        runs.get((bar.other, bar.workload), []),
        strict=False,
    )
    ratios = [getattr(mine, bar.measure) / getattr(theirs, bar.measure) for mine, theirs in pairs]
    return median(ratios) if ratios else None


def _start_table(rounds: int, root: Path) -> Iterator[str]:
    """Time what does nothing but start."""
    bars = {"-c pass": None, "-m agentv_ci --version": 2.0, "-m agentv_ci --help": 5.0}
    runs: dict[str, list[Run]] = {}
    for _ in range(rounds * STARTS):
        for words in bars:
            runs.setdefault(words, []).append(_done([sys.executable, *words.split()], root))
    yield "| start | wall | peak memory | times a bare interpreter | bar |"
    yield "|---|--:|--:|--:|---|"
    for words, most in bars.items():
        cells = [f"`python {words}`", f"{median(run.seconds for run in runs[words]) * 1000:.0f} ms"]
        times = median(
            run.seconds / bare.seconds
            for run, bare in zip(runs[words], runs["-c pass"], strict=True)
        )
        bar = "" if most is None else f"≤ {most:g}×: {_met(times <= most)}"
        yield f"| {' | '.join([*cells, f'{_most_memory(runs[words]):.0f} MiB', f'{times:.2f}×', bar])} |"


def _large_table(rounds: int, root: Path) -> Iterator[str]:
    """Time many cases that a mock answers, so that nothing is waited for."""
    few, many = 10_000, 100_000
    folders = {cases: folder_of(root, "agentv-ci mock", cases) for cases in (few, many)}
    ours = (sys.executable, "-m", "agentv_ci")
    for folder in folders.values():
        _done([*ours, "compile", "evals", "--out", "plan.json"], folder)
    run = ("--workers", str(FAST.width), "--out", "rows.jsonl")
    steps: tuple[tuple[str, int, tuple[str, ...]], ...] = (
        ("eval of documents", few, (*ours, "eval", "evals", *run)),
        ("eval of a plan", few, (*ours, "eval", "plan.json", *run)),
        ("eval of a plan", many, (*ours, "eval", "plan.json", *run)),
        ("the plan only read", many, (sys.executable, "-c", READ_PLAN, "plan.json")),
    )
    runs: list[list[Run]] = [[] for _ in steps]
    for _ in range(rounds):
        for (_, cases, command), mine in zip(steps, runs, strict=True):
            summary = (
                f"\n{cases} cases: {cases} passed, 0 failed, 0 errors\n"
                if "eval" in command
                else ""
            )
            mine.append(_done(command, folders[cases], summary))
    base, read = median(each.seconds for each in runs[1]) / few, _most_memory(runs[3]) * 2**20
    yield "| mock | cases | wall | a case | peak memory | bars |\n|---|--:|--:|--:|--:|---|"
    for (what, cases, _), mine in zip(steps, runs, strict=True):
        memory, each_s = _most_memory(mine) * 2**20, median(each.seconds for each in mine) / cases
        bars = (
            [f"below 300 MB: {memory / MEGABYTE:.0f} MB, {_met(memory < 300 * MEGABYTE)}"]
            if cases == few
            else []
        )
        if mine is runs[2]:
            more, times = (memory - read) / MEGABYTE, each_s / base
            bars.append(f"≤ 100 MB above the plan only read: {more:.0f} MB, {_met(more <= 100)}")
            bars.append(f"a case ≤ 1.2× one of {few:,}: {times:.2f}×, {_met(times <= 1.2)}")
        cells = [
            f"{cases:,}",
            _seconds(mine),
            f"{each_s * 1000:.2f} ms",
            f"{memory / 2**20:,.0f} MiB",
        ]
        yield f"| {' | '.join([what, *cells, '; '.join(bars)])} |"


def _most_memory(runs: Sequence[Run]) -> float:
    return max(run.mebibytes for run in runs)


def _done(command: Sequence[str], folder: Path, summary: str = "") -> Run:
    """Return what a command took; exit unless it ends well and says what it has to."""
    run, status, output = _run(command, folder)
    if status != 0 or summary not in f"\n{output}":
        sys.exit(f"{' '.join(command)} ended with {status}:\n{output[-3_000:]}")
    return run


def _notes(rounds: int) -> Iterator[str]:
    sizes = ", ".join(
        f"{name} {len(document_of(way, range(CASES), judged=False)) / CASES:,.0f}"
        for name, way in DIALECTS.items()
    )
    own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    yield f"* Medians of {rounds} interleaved rounds; ratios are medians of the rounds' ratios."
    yield f"* Bytes a case: {sizes}."
    yield f"* Python {platform.python_version()}, {os.cpu_count()} cores, {platform.system()} {platform.machine()}."
    yield f"* Memory is that of the process that was started; what is below {own:.0f} MiB shows as {own:.0f} MiB."


if __name__ == "__main__":
    main()
