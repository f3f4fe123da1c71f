"""References that lead where nothing may be opened."""

from __future__ import annotations

import os
from pathlib import Path

from agentv_ci.app.validate import check_paths
from tests.support import write

CASE = """\
$schema: agentv-eval-v2
evalcases:
  - id: a
    expected_outcome: x
    input_messages: [{role: user, content: [{type: file, value: way.md}]}]
    expected_messages: []
    evaluators:
      - {name: j, type: llm_judge, prompt_path: way.md}
      - {name: s, type: schema, schema_file: way.json}
"""


def test_what_a_link_leads_out_to_is_not_opened(tmp_path: Path) -> None:
    write(tmp_path, {"r/x.yaml": CASE, "r/.git/HEAD": ""})
    os.mkfifo(tmp_path / "pipe")  # opening it would wait for ever
    for name in ("way.md", "way.json"):
        (tmp_path / "r" / name).symlink_to(tmp_path / "pipe")
    checks = check_paths(["x.yaml"], targets=None, cwd=tmp_path / "r")
    assert [each.rule for each in checks.files[0].diagnostics] == ["AV318", "AV318", "AV318"]


def test_a_merge_key_given_twice_is_a_key_given_twice(tmp_path: Path) -> None:
    anchors = "x-a: &a {note: x}\nx-b: &b {metadata: {}}\n"
    text = anchors + CASE.replace("    evaluators:", "    <<: *a\n    <<: *b\n    evaluators:").replace("way.", "x.")
    write(tmp_path, {"x.yaml": text, "x.md": "{{ candidate_answer }}", "x.json": "true"})
    checks = check_paths(["x.yaml"], targets=None, cwd=tmp_path)
    assert [(each.rule, each.line) for each in checks.files[0].diagnostics] == [("AV104", 10)]


def test_a_glob_does_not_enter_what_others_installed(tmp_path: Path) -> None:
    case = CASE.partition("    evaluators:")[0].replace("[{type: file, value: way.md}]", "x")
    write(tmp_path, {"e/x.yaml": case, "e/node_modules/y.yaml": case})
    names = [file.path.name for file in check_paths(["**/*.yaml"], targets=None, cwd=tmp_path).files]
    assert names == ["x.yaml"]
    named = check_paths(["e/node_modules/*.yaml"], targets=None, cwd=tmp_path).files
    assert [file.path.name for file in named] == ["y.yaml"]
