"""Guidelines and texts of files; tests/corpus/checked/what-messages-become shows messages in plans."""

from __future__ import annotations

from pathlib import Path

import pytest

from agentv_ci.base.canonical import digest_of
from tests.compile.builders import EVAL, Files, compile_here, evals, with_file

NEAR, NEXT, FAR = "evals/.agentv.yaml", "evals/.agentv/config.yaml", ".agentv/config.yaml"
RULES = ["**/rules.md"]


@pytest.mark.parametrize(
    ("path", "configs", "expected"),
    [
        *((path, {NEAR: ["**/*.rules.md"]}, "guideline") for path in ("evals/deep/a.rules.md", "a.rules.md")),
        ("docs/a.md", {NEAR: ["docs/*.md"]}, "guideline"),
        ("docs/deep/a.md", {NEAR: ["docs/*.md"]}, "file"),
        ("evals/b.txt", {NEAR: ["a.md", "evals/*.txt"]}, "guideline"),
        ("a.instructions.md", {NEAR: []}, "file"),
        *(("evals/rules.md", configs, "guideline") for configs in ({FAR: RULES}, {NEXT: None, FAR: RULES})),
        *(("evals/rules.md", configs, "file") for configs in ({NEAR: [], NEXT: RULES}, {NEXT: [], FAR: RULES})),
        *(("evals/rules.md", {path: RULES}, "file") for path in (".agentv.yaml", "evals/deep/.agentv.yaml")),
    ],
)
def test_guidelines_match_the_nearest_patterns(repository: Path, path: str, configs: Files, expected: str) -> None:
    documents = {
        name: {"$schema": "agentv-config-v2", **({} if patterns is None else {"guideline_patterns": patterns})}
        for name, patterns in configs.items()
    }
    (found,) = compile_here(repository, {path: "text", **documents, EVAL: evals(with_file(f"/{path}"))}).cases
    assert found.input_messages[0].content[0].type == expected


def test_text_of_a_file_is_kept_unchanged_under_its_digest(repository: Path) -> None:
    text = "\ufeffGrüße\r\ntwo\rthree\n\n "
    (repository / "evals").mkdir()
    (repository / "evals/a.txt").write_bytes(text.encode())
    plan = compile_here(repository, {EVAL: evals(with_file("a.txt"))})
    assert {sha256: (each.path, each.text) for sha256, each in plan.files.items()} == {
        digest_of(text): ("evals/a.txt", text)
    }
