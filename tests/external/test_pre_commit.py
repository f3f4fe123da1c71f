"""The hook that other repositories name in their `.pre-commit-config.yaml`."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

from agentv_ci.load.parse import parse_yaml
from tests.support import REPOSITORY, run_command, write

CASE = "$schema: agentv-eval-v2\nevalcases: [{}]\n"


def test_hook_checks_the_whole_repository(tmp_path: Path) -> None:
    hooks: Any = parse_yaml((REPOSITORY / ".pre-commit-hooks.yaml").read_text("utf-8")).data
    (hook,) = [each for each in hooks if each["id"] == "agentv-ci-validate"]
    assert (hook["id"], hook["language"], hook["pass_filenames"]) == ("agentv-ci-validate", "python", False)
    program, *words = shlex.split(hook["entry"])
    assert program == "agentv-ci"
    words += hook["args"]
    write(tmp_path, {"evals/x.yaml": CASE, "other.yaml": "on: push\n"})
    done = run_command(*words, cwd=tmp_path)
    assert (done.code, "missing field 'id'" in done.out) == (1, True)


def test_hook_formats_the_whole_repository(tmp_path: Path) -> None:
    hooks: Any = parse_yaml((REPOSITORY / ".pre-commit-hooks.yaml").read_text("utf-8")).data
    (hook,) = [each for each in hooks if each["id"] == "agentv-ci-fmt"]
    assert hook["pass_filenames"] is False
    write(tmp_path, {"evals/x.yaml": "$schema:  agentv-eval-v2\nevalcases: [{}]\n", "other.yaml": "on:  push\n"})
    done = run_command(*shlex.split(hook["entry"])[1:], *hook["args"], cwd=tmp_path)
    assert (done.code, done.out) == (0, "formatted evals/x.yaml\n1 file formatted, 0 unchanged\n")
    assert (tmp_path / "evals/x.yaml").read_text("utf-8") == "$schema: agentv-eval-v2\nevalcases: [{}]\n"
