"""Commands import only what they need."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from tests.support import REPOSITORY, run_command

HEAVY = (
    *("click", "pydantic", "httpx", "jinja2", "jsonschema", "ruamel", "rich"),
    *("asyncio", "tenacity", "junit_xml", "regex", "msgspec"),
)
RUNNING = ("agentv_ci.execute", "agentv_ci.evaluate", "httpx", "jinja2", "tenacity", "rich", "asyncio", "junit_xml")
REPORTING = ("agentv_ci.report", "agentv_ci.github", "agentv_ci.results", "agentv_ci.analysis")
SIMPLE = str(REPOSITORY / "docs" / "examples" / "simple")
FORBIDDEN: Mapping[tuple[str, ...], tuple[str, ...]] = {
    ("validate", "simple"): (
        *(*RUNNING, *REPORTING),
        *("agentv_ci.compile", "agentv_ci.scaffold", "agentv_ci.validators"),
        *("agentv_ci.contracts.plan", "agentv_ci.contracts.results"),
    ),
    ("fmt", "simple"): (*RUNNING, *REPORTING, "agentv_ci.compile", "agentv_ci.validators", "agentv_ci.contracts.plan"),
    ("compile", "simple"): (*RUNNING, *REPORTING, "agentv_ci.scaffold", "agentv_ci.validators"),
    ("schema", "eval-v2"): (
        *(*RUNNING, *REPORTING),
        *("agentv_ci.app", "agentv_ci.load", "agentv_ci.validate", "jsonschema", "ruamel"),
    ),
    ("init", "new", "--yes"): (*RUNNING, *REPORTING, "agentv_ci.compile", "agentv_ci.validate", "jsonschema"),
    # What plugins, databases, comparisons, experiments and workspaces need is for few runs.
    ("eval", "simple", "--dry-run", "--out", "results.jsonl"): (
        *("agentv_ci.plugins", "sqlite3", "agentv_ci.compile.estimate", "agentv_ci.contracts.command_output"),
        *("importlib.metadata", "jinja2", "httpx"),
        *("agentv_ci.analysis.comparison.comparison", "agentv_ci.contracts.comparison"),
        "agentv_ci.contracts.experiment_report",
        "agentv_ci.validate.rules.judge_scales",
    ),
    ("report", "results.jsonl"): (
        *RUNNING,
        *("agentv_ci.compile", "agentv_ci.validate", "agentv_ci.scaffold", "jsonschema", "ruamel"),
    ),
}
"""A command line → modules that it must not import."""


def imported(arguments: Sequence[str], modules: Sequence[str], cwd: Path, *, code: int = 0) -> set[str]:
    """Return which of the modules a command line imports."""
    program = (
        "import atexit, sys\n"
        f"sys.argv = ['agentv-ci', *{list(arguments)!r}]\n"
        "from agentv_ci.__main__ import main\n"
        "def show():\n"
        f"    print('imported:', *(name for name in {modules!r} if name in sys.modules), file=sys.stderr)\n"
        "atexit.register(show)\n"
        "main()\n"
    )
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == code, done.stderr
    return set(done.stderr.split("imported:")[1].split())


@pytest.mark.parametrize(
    ("argument", "needed", "code"), [("--version", set(), 0), ("--help", {"click"}, 0), ("nonsense", {"click"}, 2)]
)
def test_light_commands_import_little(argument: str, needed: set[str], code: int, tmp_path: Path) -> None:
    assert imported([argument], HEAVY, tmp_path, code=code) == needed


@pytest.mark.slow
@pytest.mark.parametrize("arguments", FORBIDDEN, ids=lambda arguments: arguments[0])
def test_commands_import_only_what_they_need(arguments: tuple[str, ...], repository: Path) -> None:
    shutil.copytree(SIMPLE, repository / "simple")
    if arguments[0] == "report":
        assert run_command("eval", "simple", "--dry-run", "--out", "results.jsonl", cwd=repository).code == 0
    assert imported(arguments, FORBIDDEN[arguments], repository) == set()


@pytest.mark.slow
def test_validate_builds_only_the_kinds_that_occur() -> None:
    program = (
        "from agentv_ci.cli import run\n"
        f"assert run(['validate', {SIMPLE!r}]) == 0\n"
        "from agentv_ci.contracts.cli_target import CliTarget\n"
        "from agentv_ci.contracts.answer_evaluators import ContainsEvaluator, EqualsEvaluator\n"
        "print(*(each.__pydantic_complete__ for each in (CliTarget, ContainsEvaluator, EqualsEvaluator)))\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.splitlines()[-1] == "True True False"
