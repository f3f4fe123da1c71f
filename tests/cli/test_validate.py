"""`agentv-ci validate`: which files it checks, what it prints, and its exit codes."""

from __future__ import annotations

import json
from pathlib import Path
from unittest.mock import Mock

import pytest

from agentv_ci.jsonschema.violations import violations
from tests.support.projects import GREETS, Project

EVAL = "evals/x.yaml"


@pytest.fixture(autouse=True)
def documents(project: Project) -> None:
    project.documents("greets", "waves")


def test_json_follows_the_schema(project: Project) -> None:
    wrong = project.json(EVAL)
    del wrong["evalcases"][1]["expected_outcome"]
    project.write({"bad.yaml": json.dumps(wrong, indent=1)})
    done = project.run("validate", ".", "--format", "json")
    document = json.loads(done.out)
    assert (done.code, violations("diagnostics-v1", document)) == (1, [])
    counts = {"files": 3, "passed": 2, "failed": 1, "skipped": 0, "errors": 1, "warnings": 0}
    assert document["summary"] == counts
    (diagnostic,) = next(file for file in document["files"] if file["path"].endswith("bad.yaml"))["diagnostics"]
    assert diagnostic.pop("message").startswith("missing field 'expected_outcome'")
    what = {"rule": "AV201", "severity": "error", "pointer": "evalcases[1].expected_outcome"}
    where = {"line": 24, "column": 3, "end_line": 33, "end_column": 4}
    assert diagnostic.items() >= {**what, **where, "case": "waves", "target": None, "hint": None}.items()


def test_paths_are_checked_in_order_and_once(project: Project) -> None:
    done = project.run("validate", "targets.yaml", EVAL, "*.yaml", "evals/*.yaml", ".", "--format", "json")
    assert [Path(file["path"]).name for file in json.loads(done.out)["files"]] == ["targets.yaml", "x.yaml"]


def test_targets_of_the_eval_files_are_checked(project: Project) -> None:
    """Otherwise `eval` refuses what `validate` accepts."""
    project.write({"targets.yaml": project.text("targets.yaml").replace('"response"', '"respones"')})
    done = project.run("validate", "evals")
    assert (done.code, "did you mean 'responses'" in done.out) == (1, True)
    assert done.out.endswith("2 files checked, 1 passed, 1 failed, 2 errors, 0 warnings\n")


def test_other_yaml_in_a_folder_is_skipped(project: Project) -> None:
    project.write({"compose.yaml": "services: {}\n", "broken.yaml": "a: [\n", "node_modules/x.yaml": "a: 1\n"})
    done = project.run("validate", ".", "--strict")
    assert (done.code, done.out) == (0, "2 files checked, 2 passed, 0 failed, 0 errors, 0 warnings, 2 skipped\n")


def test_evaluations_in_other_formats_are_not_skipped(project: Project) -> None:
    project.write({"a/EVAL.yaml": "tests: ./cases.jsonl\n", "b/promptfooconfig.yaml": "prompts: [a]\ntests: []\n"})
    for command, code in (("validate", 1), ("validate --strict", 1), ("eval", 2), ("compile", 2)):
        done = project.run(*command.split(), ".")
        assert (done.code, (done.out + done.err).count("[AV103]")) == (code, 2), done


@pytest.mark.parametrize(
    ("arguments", "code", "text"),
    [
        (["schemaless.yaml"], 0, "warning: $schema is missing"),
        (["schemaless.yaml", "--strict"], 1, "warning: $schema is missing"),
        ([EVAL, "--targets", "other"], 1, "no target is set"),
        ([EVAL, "--targets", "targets.yaml"], 0, "1 file checked, 1 passed, 0 failed, 0 errors, 0 warnings\n"),
        ([EVAL, "--color", "always"], 0, "\x1b[32m1 file checked"),
    ],
)
def test_exit_code_and_message(arguments: list[str], code: int, text: str, project: Project) -> None:
    schemaless = project.text(EVAL).replace('"$schema": "agentv-eval-v2", ', "")
    project.write({"schemaless.yaml": schemaless})
    project.targets({**GREETS, "name": "other"}, name="other/targets.yaml")
    done = project.run("validate", *arguments)
    assert done.code == code
    assert text in done.out + done.err


@pytest.mark.parametrize(("flags", "env"), [(["--color", "always"], {}), ([], {}), ([], {"NO_COLOR": "1"})])
def test_severities_have_colors_only_on_request(flags: list[str], env: dict[str, str], project: Project) -> None:
    project.env |= env
    project.write({"bad.yaml": project.text(EVAL).replace("user", "usr").replace('"$schema": "agentv-eval-v2", ', "")})
    printed = project.run("validate", "bad.yaml", *flags).out
    assert ["\x1b[31merror" in printed, "\x1b[33mwarning" in printed, "\x1b" in printed] == [bool(flags)] * 3


@pytest.mark.slow
@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_processes_may_start_either_way(method: str, project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    right = project.text(EVAL)
    texts = [right, right.replace("user", "usr"), "a: 1\n", "a: [\n", ""]
    project.write({f"many/{number % 4}/{number:03}.yaml": texts[number % 5] for number in range(130)})
    project.write({"many/2/targets.yaml": "a: [\n", "many/3/.agentv.yaml": "rules: {AV102: error}\n"})
    begin = Mock(return_value=method)
    monkeypatch.setattr("agentv_ci.app.documents.check_files.start_method", begin)
    monkeypatch.setattr("agentv_ci.app.documents.check_files.WORTH_A_PROCESS_BYTES", 1_000)
    one, two = (project.run("validate", "many", "--format", "json", "--jobs", jobs) for jobs in ("1", "2"))
    assert (one, begin.call_count) == (two, 1)
    assert one.code == 1


def test_last_color_option_wins(project: Project) -> None:
    assert "\x1b[" not in project.run("--color", "always", "validate", ".", "--color", "never").out


@pytest.mark.parametrize("form", ["text", "json", "sarif"])
def test_documents_without_targets_are_checked_alone(form: str, project: Project) -> None:
    project.path("targets.yaml").unlink()
    done = project.run("validate", ".", "--format", form)
    notice = "no targets file found: names of targets and judges were not checked\n"
    assert (done.code, notice in (done.out if form == "text" else done.err)) == (0, True)
    assert form == "text" or json.loads(done.out)
