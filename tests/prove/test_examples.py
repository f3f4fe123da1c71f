"""The bundled examples: what docs/proving.md says of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support import REPOSITORY, run_command, write
from tests.support.pages import blocks


def test_what_the_documentation_shows_is_printed(tmp_path: Path) -> None:
    page = "docs/proving.md"
    (document, *_), (shown, *_) = (
        [text for where, text in blocks(kind) if where.startswith(page)] for kind in ("yaml", "text")
    )
    targets = "$schema: agentv-targets-v2.2\ntargets: [{name: default, provider: mock}]\n"
    (tmp_path / ".git").mkdir()
    write(tmp_path, {"evals/refunds.test.yaml": document, "targets.yaml": targets})
    assert run_command("prove", cwd=tmp_path).out.replace(f"{tmp_path}/", "/home/ada/shop/") == shown
    better = document.replace("contains: postage", "contains: postage is not refunded")
    write(tmp_path, {"evals/refunds.test.yaml": better.replace("contains: lamp", "contains: a new lamp")})
    done = run_command("prove", "--null-agents", "forbid", cwd=tmp_path)
    assert (done.code, "1 of 5 mutants survives: sentence-order" in done.out) == (0, True), done


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "killed", "survives"),
    [
        ("code-evaluators", 2, {}),
        ("simple", 12, {"reviews-a-file": 7}),
        ("support", 22, {}),
        ("extraction", 10, {}),
        ("side-by-side", 2, {}),
        ("rows", 6, {}),
        ("rag", 5, {}),
        ("coding", 18, {"search": 1, "roman": 2}),
    ],
)
def test_bundled_example(name: str, killed: int, survives: dict[str, int], tmp_path: Path) -> None:
    folder, out = REPOSITORY / "docs" / "examples" / name, tmp_path / "proof.json"
    done = run_command("prove", "evals", "--out", out, "--null-agents", "forbid", cwd=folder)
    proof: Any = json.loads(out.read_text("utf-8"))
    assert (done.code, proof["summary"]["killed"]) == (0, killed), done
    assert {each["id"]: each["survived"] for each in proof["cases"] if each["survived"]} == survives
