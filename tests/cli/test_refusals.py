"""Command lines that cannot be run: refusals.yaml has their messages."""

from __future__ import annotations

import json
import shlex
import shutil
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from tests.support.projects import Project

REFUSALS = YAML(typ="safe").load(Path(__file__).with_name("refusals.yaml").read_text("utf-8"))
ITEM = {"id": "a", "question": "Hi", "expected_outcome": "A greeting", "answer": "Hello", "verdict": "pass"}


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository with a file for each kind of mistake."""
    project = Project(tmp_path_factory.mktemp("template"))
    project.write({".git/config": "", "empty/x.txt": "", "p.md": "{{ candidate_answer }} {{ expected_messages }}"})
    project.documents("greets", "waves")
    assert project.run("compile", "evals", "--out", "plan.json").code == 0
    assert project.eval().code == 0
    first, second = project.rows()
    project.store("empty.jsonl")
    project.store("foreign.jsonl", {**first, "suite": "evals/gone.yaml"}, {**second, "suite": "evals/gone.yaml"})
    project.store("base.jsonl", {**first, "eval_id": "other"})
    wrong = project.text("evals/x.yaml").replace("contains", "contians")
    project.write({"wrong/x.yaml": wrong, "wrong/targets.yaml": '{"targets": [{}]}', "folder.json/x": ""})
    judged = {"$schema": "agentv-judge-set-v1", "judge_target": "judge", "prompt": "./p.md", "items": [ITEM]}
    project.write(dict.fromkeys(("set.yaml", "two/a.yaml", "two/b.yaml"), json.dumps(judged)))
    for name, to in (("link.jsonl", "r.jsonl"), ("link.json", "r.jsonl"), ("broken", "nowhere")):
        project.path(name).symlink_to(to)
    return project.folder


@pytest.mark.parametrize(
    ("code", "line", "error"),
    [pytest.param(code, line, error, id=line) for code, lines in REFUSALS.items() for line, error in lines.items()],
)
def test_command_line_is_refused(code: int, line: str, error: str, template: Path, tmp_path: Path) -> None:
    shutil.copytree(template, tmp_path / "copy", symlinks=True)
    Project(tmp_path / "copy").refuses(*shlex.split(line), error=error, code=code)
