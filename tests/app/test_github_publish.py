"""Lines of evaluators, read in the eval files."""

from __future__ import annotations

from pathlib import Path

import pytest

from agentv_ci.app.github_publish import EvaluatorLines
from tests.support import write

SUITE = """\
$schema: agentv-eval-v2
execution:
  evaluators:
    - {name: shared, type: is_json}
evalcases:
  - id: one
    evaluators:
      - name: first
        type: is_json
      - {name: second, type: is_json}
  - id: two
    rubrics: [Is kind]
    execution:
      evaluators:
        - {name: second, type: is_json}
"""


@pytest.mark.parametrize(
    ("case", "evaluator", "line"),
    [
        ("one", "first", 8),
        ("one", "second", 10),
        ("two", "second", 15),
        ("two", "rubrics", 12),
        ("one", "rubrics", None),
        ("one", "shared", None),
        ("three", "first", None),
    ],
)
def test_finds_what_stands_in_the_case(repository: Path, case: str, evaluator: str, line: int | None) -> None:
    write(repository, {"evals/a.yaml": SUITE})
    lines = EvaluatorLines(repository)
    assert lines.find("evals/a.yaml", case, evaluator) == line


@pytest.mark.parametrize("text", ["", "evalcases: 7", "evalcases: [7, {id: one, evaluators: [7]}]", "\x00", "- a\nb"])
def test_file_that_says_something_else_has_no_lines(repository: Path, text: str) -> None:
    write(repository, {"a.yaml": text})
    assert EvaluatorLines(repository).find("a.yaml", "one", "first") is None


def test_file_that_is_gone_has_no_lines(repository: Path) -> None:
    assert EvaluatorLines(repository).find("a.yaml", "one", "first") is None
