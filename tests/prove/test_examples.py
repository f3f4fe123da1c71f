"""The bundled examples: what docs/proving.md says of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support import REPOSITORY, run_command


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "killed", "survives"), [("code-evaluators", 1, {}), ("simple", 8, {"reviews-a-file": 7})]
)
def test_bundled_example(name: str, killed: int, survives: dict[str, int], tmp_path: Path) -> None:
    folder, out = REPOSITORY / "docs" / "examples" / name, tmp_path / "proof.json"
    done = run_command("prove", "evals", "--out", out, "--null-agents", "forbid", cwd=folder)
    proof: Any = json.loads(out.read_text("utf-8"))
    assert (done.code, proof["summary"]["killed"]) == (0, killed), done
    assert {each["id"]: each["survived"] for each in proof["cases"] if each["survived"]} == survives
