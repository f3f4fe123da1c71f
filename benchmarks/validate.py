"""Time `python -m agentv_ci validate` against its peers and print one Markdown table.

README.md says how to read it.
"""

from __future__ import annotations

import argparse
import compileall
import json
import os
import platform
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median

from workload import CASES_PER_FILE, DIALECTS, document_of, files_of, folder_of

import agentv_ci

QUIET = {
    "AGENTV_NO_UPDATE_CHECK": "1",
    "PROMPTFOO_DISABLE_TELEMETRY": "1",
    "PROMPTFOO_DISABLE_UPDATE": "1",
}
SCHEMA = Path(__file__).resolve().parent.parent / "schemas" / "eval-v2.schema.json"
BROKEN_FILES = 5
LARGE = 5_000
FLAT = 1.1
EVENTS = """
import sys
from ruamel.yaml import CParser
for name in sys.argv[1:]:
    with open(name, encoding="utf-8") as file:
        next_event = CParser(file.read()).get_event
    while next_event() is not None:
        pass
"""


@dataclass(frozen=True, slots=True)
class Tool:
    """A command that reads many files in one process."""

    name: str
    command: tuple[str, ...]
    kind: str = "floor"
    """`ours`, `peer` or `floor`."""
    dialect: str = "agentv-ci"
    version: str | None = ""
    """None if it is not installed."""
    takes_files: bool = True
    """Whether the names of the files follow the command; otherwise it looks for them itself."""


@dataclass(frozen=True, slots=True)
class Run:
    """What one run took; the memory is that of its largest process."""

    seconds: float
    mebibytes: float


@dataclass(frozen=True, slots=True)
class Bar:
    """At least how many times as much as agentv-ci a peer has to take."""

    peer: str
    files: int
    least: float
    measure: str = "seconds"


BARS = (
    Bar("agentv", 1_000, 10),
    Bar("agentv", 1, 4),
    Bar("agentv", 1_000, 4, "mebibytes"),
    Bar("promptfoo", 1_000, 13),
    Bar("check-jsonschema", 1_000, 6.5),
)
Runs = dict[tuple[str, int], list[Run]]


def main() -> None:
    """Measure and print."""
    options = _options()
    # As pip does when it installs; from a checkout the first runs would compile.
    compileall.compile_dir(Path(agentv_ci.__file__).parent, quiet=1)
    tools = tools_of(options.jobs, options.peers.resolve())
    sizes = sorted({*options.files, *([LARGE] if options.large else [])})
    with tempfile.TemporaryDirectory() as scratch:
        root = Path(scratch)
        (root / ".git").mkdir()
        installed = [tool for tool in tools if tool.version is not None]
        require_mistakes_found(installed, root)
        runs: Runs = {}
        for turn in range(options.rounds):
            measure(installed, sizes, turn, root, runs)
    ours = [tool.name for tool in tools if tool.kind == "ours"][-1]
    print("\n".join([*_table(tools, ours, sizes, runs), "", *_notes(ours, options.rounds)]))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--rounds", type=int, default=5, help="how often every command runs (default: 5)"
    )
    parser.add_argument(
        "--files", type=_numbers, default=[1, 100, 1_000], help="default: 1,100,1000"
    )
    parser.add_argument(
        "--large", action="store_true", help=f"agentv-ci and the floor over {LARGE:,} files too"
    )
    parser.add_argument(
        "--jobs",
        type=_numbers,
        default=[1, 2],
        help="values of --jobs (default: 1,2); '' leaves it out",
    )
    parser.add_argument(
        "--peers", type=Path, default=Path("peers"), metavar="DIR", help="where peers are installed"
    )
    return parser.parse_args()


def _numbers(text: str) -> list[int]:
    return [int(word) for word in text.split(",") if word]


def tools_of(jobs: Sequence[int], peers: Path) -> list[Tool]:
    """Return all tools; the last of ours is the one that others are compared with."""
    ours = Tool(
        "agentv-ci", (sys.executable, "-m", "agentv_ci", "validate", "."), "ours", takes_files=False
    )
    ways = [
        replace(ours, name=f"{ours.name} --jobs {n}", command=(*ours.command, "--jobs", str(n)))
        for n in jobs
    ]
    return [
        *(ways or [ours]),
        *_peers(peers / "npm" / "node_modules", peers / "venv"),
        Tool("floor: the C parser's events", (sys.executable, "-c", EVENTS)),
        Tool("floor: a bare interpreter", (sys.executable, "-c", "pass"), takes_files=False),
    ]


def _peers(modules: Path, environment: Path) -> Iterator[Tool]:
    agentv = (str(modules / ".bin" / "agentv"), "validate", ".")
    yield Tool(
        "agentv", agentv, "peer", "agentv", _npm_version(modules / "agentv"), takes_files=False
    )
    promptfoo = (str(modules / ".bin" / "promptfoo"), "validate", "config", "-c")
    yield Tool("promptfoo", promptfoo, "peer", "promptfoo", _npm_version(modules / "promptfoo"))
    checker = (str(environment / "bin" / "check-jsonschema"), "--schemafile", str(SCHEMA))
    yield Tool("check-jsonschema", checker, "peer", version=_checker_version(environment))


def _npm_version(package: Path) -> str | None:
    manifest = package / "package.json"
    return str(json.loads(manifest.read_text("utf-8"))["version"]) if manifest.exists() else None


def _checker_version(environment: Path) -> str | None:
    for installed in environment.glob("lib/python*/site-packages/check_jsonschema-*.dist-info"):
        parser = "C parser" if any(installed.parent.glob("_ruamel_yaml.*")) else "no C parser"
        return f"{installed.stem.partition('-')[2]} ({parser})"
    return None


def require_mistakes_found(tools: Sequence[Tool], root: Path) -> None:
    """Exit unless each tool refuses files with mistakes."""
    for tool in tools:
        _see_it_find_mistakes(tool, root)


def measure(tools: list[Tool], sizes: Sequence[int], turn: int, root: Path, runs: Runs) -> None:
    """Add one round to the runs; each begins with another tool."""
    first = turn % len(tools)
    for size in sizes:
        for tool in tools[first:] + tools[:first]:
            if size == LARGE and tool.kind == "peer":
                continue
            run, status, output = _run(tool, folder_of(root, tool.dialect, size))
            if status != 0:
                sys.exit(f"{tool.name} ended with {status} over {size:,} valid files:\n{output}")
            runs.setdefault((tool.name, size), []).append(run)


def _see_it_find_mistakes(tool: Tool, root: Path) -> None:
    """Exit unless the tool refuses files that all have a mistake near their end, and names every one of them."""
    if tool.kind == "floor":
        return
    folder = folder_of(root, tool.dialect, BROKEN_FILES, broken=True)
    _, status, output = _run(tool, folder)
    overlooked = [name for name in files_of(folder) if name not in output]
    if status == 0 or overlooked:
        sys.exit(
            f"{tool.name} ended with {status}, mistakes overlooked: {', '.join(overlooked) or 'none'}\n{output}"
        )


def _run(tool: Tool, folder: Path) -> tuple[Run, int, str]:
    """Return what a run over a folder took, its exit code, and what it said."""
    command = [*tool.command, *(files_of(folder) if tool.takes_files else ())]
    homes = {name: str(folder.parent / "home") for name in ("AGENTV_HOME", "PROMPTFOO_CONFIG_DIR")}
    with tempfile.TemporaryFile("w+", encoding="utf-8") as output:
        start = time.perf_counter()
        process = subprocess.Popen(
            command,
            cwd=folder,
            env=os.environ | QUIET | homes,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
        _, status, usage = os.wait4(process.pid, 0)
        run = Run(time.perf_counter() - start, usage.ru_maxrss / 1024)
        process.returncode = os.waitstatus_to_exitcode(status)
        output.seek(0)
        return run, process.returncode, output.read()


def _table(tools: list[Tool], ours: str, sizes: list[int], runs: Runs) -> Iterator[str]:
    compared = max((size for size in sizes if size != LARGE), default=LARGE)
    heads = [
        *(f"{size:,} file{'s' if size > 1 else ''}" for size in sizes),
        f"times ours, {compared:,}",
    ]
    yield f"| | {' | '.join(heads)} | bars |"
    yield f"|---|{'--:|' * len(heads)}---|"
    for tool in tools:
        label = f"{tool.name} {'not installed' if tool.version is None else tool.version}".strip()
        cells = [_cell(runs.get((tool.name, size), [])) for size in sizes]
        times = _times(runs, ours, Bar(tool.name, compared, 0))
        verdicts = [
            _verdict(runs, ours, bar)
            for bar in BARS
            if bar.peer == tool.name and bar.files in sizes
        ]
        growth = _growth(runs, tool.name) if tool.kind == "ours" else ()
        yield f"| {' | '.join([label, *cells, f'{times:.2f}×' if times else '–', '; '.join([*verdicts, *growth])])} |"


def _cell(runs: list[Run]) -> str:
    if not runs:
        return "–"
    return f"{median(run.seconds for run in runs):.3f} s, {median(run.mebibytes for run in runs):.0f} MiB"


def _verdict(runs: Runs, ours: str, bar: Bar) -> str:
    times = _times(runs, ours, bar)
    what = f"{'memory' if bar.measure == 'mebibytes' else 'time'} at {bar.files:,} ≥ {bar.least:g}×"
    if times is None:
        return f"{what}: not measured"
    return f"{what}: {times:.1f}×, {'met' if times >= bar.least else 'not met'}"


def _times(runs: Runs, ours: str, bar: Bar) -> float | None:
    """Return the median of the rounds' ratios to ours; None if that was not measured."""
    pairs = zip(runs.get((bar.peer, bar.files), []), runs.get((ours, bar.files), []), strict=False)
    ratios = [getattr(theirs, bar.measure) / getattr(mine, bar.measure) for theirs, mine in pairs]
    return median(ratios) if ratios else None


def _growth(runs: Runs, ours: str) -> Iterator[str]:
    """Say what 100 files' memory became with more files."""
    memory = {
        size: median(run.mebibytes for run in each)
        for (name, size), each in runs.items()
        if name == ours
    }
    for size in sorted(memory):
        if size > 100 and 100 in memory:
            times = memory[size] / memory[100]
            yield f"memory at {size:,} to that at 100: {times:.2f}×, {'flat' if times <= FLAT else 'not flat'}"


def _notes(ours: str, rounds: int) -> Iterator[str]:
    sizes = ", ".join(
        f"{name} {len(document_of(way, 99)) / CASES_PER_FILE:,.0f}"
        for name, way in DIALECTS.items()
    )
    own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    yield f"* Ours: `{ours}`. Medians of {rounds} interleaved rounds; ratios are medians of the rounds' ratios."
    yield f"* {CASES_PER_FILE} cases a file; bytes a case: {sizes}."
    yield f"* Python {platform.python_version()}, {os.cpu_count()} cores, {platform.system()} {platform.machine()}."
    yield f"* Memory is that of the largest process; what is below {own:.0f} MiB shows as {own:.0f} MiB."


if __name__ == "__main__":
    main()
