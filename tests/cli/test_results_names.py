"""Results with names of any kind: `--out NAME --output-format F`, and commands that read them."""

from __future__ import annotations

import pytest

from tests.support.projects import Project

NAMES = ("all.txt", "all.json", "all.csv", "nightly.2026-01-01", "all")


@pytest.mark.parametrize("form", ["jsonl", "yaml"])
@pytest.mark.parametrize("name", [*NAMES, "all.yaml", "all.jsonl"])
def test_every_command_reads_results_of_any_name(form: str, name: str, project: Project) -> None:
    project.documents("greets", "waves")
    project.write({"deep/x": ""})
    assert project.run("eval", "evals", "--out", name, "--output-format", form).code == 0
    assert project.text(name)[:2] == {"jsonl": '{"', "yaml": "- "}[form]
    for command in (
        ["report", name],
        ["check", name, "--validator", "outlier_detection"],
        ["baseline", "accept", name],
        ["compare", name, name],
        ["rescore", name],
        ["history", "import", name, "--dir", "ledger"],
        ["eval", "evals", "--resume", name],
    ):
        assert project.run(*command).code == 0, command
    assert project.json(".agentv/baseline.json")["cases"][0]["id"] == "greets"
    assert project.text(name)[:2] == {"jsonl": '{"', "yaml": "- "}[form]


def test_resumed_results_keep_their_format(project: Project) -> None:
    project.documents("greets", "waves")
    assert project.run("eval", "evals", "--out", "r.txt", "--output-format", "yaml", "--eval-id", "greets").code == 0
    assert project.run("eval", "evals", "--resume", "r.txt").code == 0
    assert project.text("r.txt").count("\n  eval_id: ") == 2
    hint = "--resume cannot change the format of the results set --output-format yaml, the format of 'r.txt'"
    project.refuses("eval", "evals", "--resume", "r.txt", "--out", "n.jsonl", error=hint)
