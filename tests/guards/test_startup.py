"""What a command imports decides how it feels."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.support import run_process

ROOT = Path(__file__).parents[2]

HEAVY = (
    *("click", "pydantic", "httpx", "jinja2", "jsonschema", "ruamel", "rich"),
    *("asyncio", "tenacity", "junit_xml", "regex"),
)


def imported_by(*arguments: str) -> set[str]:
    """Return which of the heavy packages a command line imports."""
    program = (
        "import sys\n"
        f"sys.argv = ['agentv-ci', *{list(arguments)!r}]\n"
        "from agentv_ci.__main__ import main\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\n"
        f"print('imported:', *(name for name in {HEAVY!r} if name in sys.modules), file=sys.stderr)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    return set(done.stderr.split("imported:")[1].split())


@pytest.mark.parametrize(
    ("arguments", "needed"),
    [(["--version"], set()), (["--help"], {"click"}), (["nonsense"], {"click"})],
    ids=["version", "help", "unknown command"],
)
def test_light_commands_import_little(arguments: list[str], needed: set[str]) -> None:
    assert imported_by(*arguments) == needed


RUNNING = ("agentv_ci.execute", "agentv_ci.evaluate", "httpx", "jinja2", "tenacity", "rich", "asyncio", "junit_xml")
REPORTING = ("agentv_ci.report", "agentv_ci.publish", "agentv_ci.results", "agentv_ci.analysis")
FORBIDDEN: Mapping[str, tuple[str, ...]] = {
    "validate": (
        *RUNNING,
        *REPORTING,
        *("agentv_ci.compile", "agentv_ci.scaffold", "agentv_ci.validators"),
        *("agentv_ci.contracts.plan", "agentv_ci.contracts.results"),
    ),
    "compile": (*RUNNING, *REPORTING, "agentv_ci.scaffold", "agentv_ci.validators"),
    "schema": (*RUNNING, *REPORTING, "agentv_ci.app", "agentv_ci.load", "agentv_ci.validate", "jsonschema", "ruamel"),
    "init": (*RUNNING, *REPORTING, "agentv_ci.compile", "agentv_ci.validate", "jsonschema"),
    "report": (*RUNNING, "agentv_ci.compile", "agentv_ci.validate", "agentv_ci.scaffold", "jsonschema", "ruamel"),
}
"""What commands must not load: what only others need."""
ARGUMENTS: Mapping[str, tuple[str, ...]] = {
    "validate": ("simple",),
    "compile": ("simple",),
    "schema": ("eval-v2",),
    "init": ("new", "--yes"),
    "report": ("results.jsonl",),
}


@pytest.mark.parametrize("command", FORBIDDEN)
def test_commands_load_only_what_they_need(command: str, repository: Path) -> None:
    shutil.copytree(ROOT / "docs/examples/simple", repository / "simple")
    if command == "report":
        ran = run_process("eval", "simple", "--dry-run", "--out", "results.jsonl", cwd=repository)
        assert ran.code == 0
    program = (
        "import sys\n"
        "from agentv_ci.cli import run\n"
        f"status = run({[command, *ARGUMENTS[command]]!r})\n"
        f"print('loaded:', *(name for name in {FORBIDDEN[command]!r} if name in sys.modules), file=sys.stderr)\n"
        "sys.exit(status)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=repository, capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stderr.split("loaded:")[1].split() == []


def test_validate_builds_only_the_kinds_that_occur() -> None:
    program = (
        "from agentv_ci.cli import run\n"
        "assert run(['validate', 'docs/examples/simple']) == 0\n"
        "from agentv_ci.contracts.evaluators import CodeEvaluator, CostEvaluator\n"
        "from agentv_ci.contracts.targets import CliTarget, GeminiTarget\n"
        "print(*(each.__pydantic_complete__ for each in (CodeEvaluator, CliTarget, CostEvaluator, GeminiTarget)))\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.splitlines()[-1] == "True True False False"
