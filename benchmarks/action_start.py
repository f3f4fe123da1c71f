"""Measure how long the action takes before the first question: installing, and starting.

Compares the ways to install, interleaved, with a bare interpreter beside them: the locked wheels,
pip with the same lock, and the environment that the job has installed already. Needs the network.
Run from the repository's root:

    python benchmarks/action_start.py [ROUNDS]
"""

from __future__ import annotations

import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
EVAL = """\
$schema: agentv-eval-v2
evalcases:
  - id: asks
    expected_outcome: Notes when it is asked
    input_messages: [{role: user, content: Now?}]
    expected_messages: []
    evaluators: [{name: says-yes, type: contains, value: "yes"}]
"""
TARGETS = """\
$schema: agentv-targets-v2.2
targets:
  - {name: default, provider: cli, command_template: "date +%s.%N > asked; echo yes # {EVAL_ID}", prompt: none}
"""
INSTALLER = [sys.executable, "-I", str(ROOT / ".github/actions/install.py")]


def main(rounds: int) -> None:
    """Print the medians of some rounds."""
    ways: dict[str, Callable[[Path], tuple[float, float]]] = {
        "locked wheels": lambda folder: started(folder, {"PIP_CONFIG_FILE": os.devnull}),
        "installed already": again,
        "pip": lambda folder: started(folder, {"PIP_INDEX_URL": "https://pypi.org/simple/"}),
    }
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in ways}
    bare: list[float] = []
    for _ in range(rounds):
        begun = time.time()
        subprocess.run([sys.executable, "-I", "-c", "pass"], check=True)
        bare.append(time.time() - begun)
        for name, way in ways.items():
            folder = Path(tempfile.mkdtemp())
            times[name].append(way(folder))
            shutil.rmtree(folder)
    print(
        f"bare interpreter: {statistics.median(bare):.3f} s, {os.cpu_count()} CPUs, {rounds} rounds"
    )
    for name, measured in times.items():
        install, question = (statistics.median(each) for each in zip(*measured, strict=True))
        print(
            f"{name:18}  installed after {install:.2f} s, first question after {install + question:.2f} s"
        )


def again(folder: Path) -> tuple[float, float]:
    """Measure a second use of the action in a job."""
    started(folder, {"PIP_CONFIG_FILE": os.devnull})
    name, _, value = (folder / "env").read_text("utf-8").strip().partition("=")
    return started(folder, {name: value})


def started(folder: Path, env: dict[str, str]) -> tuple[float, float]:
    """Return the seconds that the installation takes, and then the run until its first question."""
    runner = {"RUNNER_TEMP": str(folder), "GITHUB_ACTIONS": "true"}
    runner |= {
        name: str(folder / name.removeprefix("GITHUB_").lower())
        for name in ("GITHUB_OUTPUT", "GITHUB_ENV")
    }
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PIP_")}
    begun = time.time()
    subprocess.run(INSTALLER, env=kept | runner | env, check=True, stdout=subprocess.DEVNULL)
    installed = time.time()
    command = re.findall("^command=(.*)$", (folder / "output").read_text("utf-8"), re.MULTILINE)[-1]
    (folder / "evals").mkdir(exist_ok=True)
    (folder / "evals/a.test.yaml").write_text(EVAL, "utf-8")
    (folder / "targets.yaml").write_text(TARGETS, "utf-8")
    variables = kept | runner | {"AGENTV_INSTALLED": str(Path(command).parents[1] / "venv")}
    ran = subprocess.run(
        [command, "github", "run"], cwd=folder, env=variables, check=False, capture_output=True
    )
    if ran.returncode:
        raise SystemExit(ran.stdout.decode() + ran.stderr.decode())
    return installed - begun, float((folder / "evals/asked").read_text("utf-8")) - installed


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 5)
