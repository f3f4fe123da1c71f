"""Lines of evaluators in eval files, for annotations."""

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
def test_line_of_an_evaluator_defined_in_a_case(repository: Path, case: str, evaluator: str, line: int | None) -> None:
    write(repository, {"evals/a.yaml": SUITE})
    assert EvaluatorLines(repository, repository).find("evals/a.yaml", case, evaluator) == line


@pytest.mark.parametrize(
    "text", [None, "", "evalcases: 7", "evalcases: [7, {id: one, evaluators: [7]}]", "\x00", "- a\nb"]
)
def test_other_and_missing_files_have_no_lines(repository: Path, text: str | None) -> None:
    if text is not None:
        write(repository, {"a.yaml": text})
    assert EvaluatorLines(repository, repository).find("a.yaml", "one", "first") is None
