"""What a command imports decides how it feels."""

from __future__ import annotations

import subprocess
import sys

import pytest

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


def test_validate_imports_nothing_that_only_a_run_needs() -> None:
    needless = {"httpx", "jinja2", "tenacity", "rich", "asyncio", "junit_xml"}
    assert imported_by("validate", "docs/examples") & needless == set()


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
