"""`agentv-ci compile`: the plan, its diff and estimate, and the schemas."""

from __future__ import annotations

import errno
import json

import pytest

from agentv_ci.cli.console import show_count
from agentv_ci.jsonschema.schemas import TITLES, text
from agentv_ci.jsonschema.violations import violations
from tests.cli.builders import in_a_shell
from tests.support.projects import HELLO, Project

WAVES = {"id": "waves", "input_messages": [{"role": "user", "content": "Wave"}]}


@pytest.fixture(autouse=True)
def documents(project: Project) -> None:
    project.documents("greets", WAVES)


def test_plan_goes_to_standard_output_or_a_file(project: Project) -> None:
    printed = project.run("compile", "evals")
    assert (printed.code, printed.err) == (0, "")
    assert violations("plan-v1", json.loads(printed.out)) == []
    assert project.run("compile", "evals", "--out", "out/plan.json").err == "2 cases compiled to out/plan.json\n"
    assert project.text("out/plan.json") == printed.out


@pytest.mark.slow
@pytest.mark.parametrize(
    ("redirection", "code", "error"),
    [
        ("| head -1 >/dev/null", 141, ""),
        (">&-", 2, "standard output is closed; use --out FILE"),
        ("> /dev/full", 4, "error: cannot write to standard output: [Errno 28] No space left on device"),
        ("--out /dev/full", 4, "cannot continue: [Errno 28] No space left on device: '/dev/full'"),
        ("--out /dev/null", 0, "700 cases compiled to /dev/null"),
    ],
)
def test_output_that_cannot_be_written_is_not_a_bug(redirection: str, code: int, error: str, project: Project) -> None:
    project.documents(*map(str, range(700)))
    done = in_a_shell(project, f"compile evals {redirection}")
    assert (done.code, error in done.err, "Traceback" in done.err) == (code, True, False)


def test_plan_is_replaced_completely_or_not_at_all(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    assert project.run("compile", "evals", "--out", "plan.json").code == 0
    before = project.text("plan.json")

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("shutil.copyfileobj", full)
    assert project.run("compile", "evals", "--out", "plan.json").code == 4
    assert project.text("plan.json") == before
    assert {path.name for path in project.folder.iterdir()} == {".git", "evals", "plan.json", "targets.yaml"}


@pytest.mark.parametrize("arguments", [["data/*"], ["data", "--target", "default"], ["data", "--eval-id", "gr*"]])
def test_files_of_other_programs_are_skipped(arguments: list[str], project: Project) -> None:
    project.write({"data/x.yaml": project.text("evals/x.yaml"), "data/data.json": "{}"})
    done = project.run("compile", *arguments)
    assert (done.code, done.err) == (0, "")
    assert len(json.loads(done.out)["cases"]) == (1 if "gr*" in arguments else 2)


def test_missing_targets_file_is_an_error_with_a_hint(project: Project) -> None:
    project.path("targets.yaml").unlink()
    project.refuses("compile", "evals", error="\n    create one with `agentv-ci init`, or use --targets FILE\n")


@pytest.mark.parametrize(("is_terminal", "shown"), [(True, "\r2,000 cases\r3,000 cases\r\x1b[K"), (False, "")])
def test_long_work_is_counted_on_a_terminal(
    is_terminal: bool, shown: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stderr.isatty", lambda: is_terminal)
    clock = iter([0.0, 0.5, 1.5, 1.55, 1.7])
    monkeypatch.setattr("time.monotonic", lambda: next(clock))
    with show_count("cases") as watch:
        for number in (1, 2000, 2001, 3000):
            watch(number)
    assert capsys.readouterr().err == shown


@pytest.mark.parametrize("paths", [[], ["evals", "--out", "plan.json"]])
def test_schemas_are_written_alone_or_beside_a_plan(paths: list[str], project: Project) -> None:
    done = project.run("compile", *paths, "--schemas", "made/schemas")
    assert (done.code, done.out) == (0, "")
    assert done.err.startswith(f"{len(TITLES)} schemas written to made/schemas\n")
    assert {name: project.text(f"made/schemas/{name}.schema.json") == text(name) for name in TITLES} == dict.fromkeys(
        TITLES, True
    )
    assert project.path("plan.json").exists() == bool(paths)


class TestDiff:
    @pytest.fixture(autouse=True)
    def changed(self, project: Project) -> None:
        """One of two cases changed since `old.json`."""
        assert project.run("compile", "evals", "--out", "old.json").code == 0
        project.documents("greets", {**WAVES, "expected_outcome": "A wave"})

    @pytest.mark.parametrize(
        ("cases", "flags", "printed"),
        [
            (
                ["greets", {**WAVES, "input_messages": [{"role": "user", "content": "Bow"}]}],
                [],
                "changed  waves  (evals/x.yaml)\n    input message 1 text changed\n1 changed, 0 added, 0 removed",
            ),
            (
                ["greets", {**WAVES, "id": "nods"}],
                [],
                "added  nods  (evals/x.yaml)\nremoved  waves  (evals/x.yaml)\n0 changed, 1 added, 1 removed",
            ),
            (["greets", {"id": "waves"}], ["--eval-id", "greets"], "0 changed, 0 added, 0 removed"),
        ],
        ids=["changed", "added and removed", "selected"],
    )
    def test_changes_have_reasons(self, cases: list[str], flags: list[str], printed: str, project: Project) -> None:
        project.documents(*cases)
        done = project.run("compile", "evals", "--diff", "old.json", *flags)
        assert (done.code, done.out, done.err) == (0, f"{printed}, 1 unchanged\n", "")

    def test_json_is_for_programs(self, project: Project) -> None:
        done = project.run("compile", "evals", "--diff", "old.json", "--format", "json")
        reasons = ["expected outcome changed"]
        changed = {"id": "waves", "suite": "evals/x.yaml", "target": None, "row": None, "reasons": reasons}
        assert json.loads(done.out) == {"added": [], "removed": [], "changed": [changed]}

    def test_new_plan_may_replace_the_old_one(self, project: Project) -> None:
        done = project.run("compile", "evals", "--diff", "old.json", "--out", "old.json")
        assert (done.out.splitlines()[-1], done.err) == (
            "1 changed, 0 added, 0 removed, 1 unchanged",
            "2 cases compiled to old.json\n",
        )
        assert project.run("compile", "evals", "--diff", "old.json").out.endswith(" 2 unchanged\n")

    def test_only_changed_cases_run(self, project: Project) -> None:
        project.documents({"id": "greets", "evaluators": [{**HELLO, "value": "Bye"}]}, name="evals/same.yaml")
        assert project.run("compile", "evals/same.yaml", "--out", "same.json").code == 0
        skipped = "1 of 2 cases skipped: unchanged since old.json"
        done = project.run("eval", "evals/x.yaml", "--out", "r.jsonl", "--only-changed", "old.json")
        assert (done.code, done.err, done.out.splitlines()[-1]) == (0, "", skipped)
        assert [row["eval_id"] for row in project.rows()] == ["waves"]
        # The gate of a suite without changed cases does not count.
        assert project.eval("--only-changed", "old.json").code == 1
        assert project.run("compile", "evals", "--out", "old.json").code == 0
        project.documents("greets", WAVES)
        assert project.eval("--only-changed", "old.json").code == 0

    def test_run_without_changed_cases_passes(self, project: Project) -> None:
        assert project.run("compile", "evals", "--out", "old.json").code == 0
        project.write({"evals/x.yaml": f"# A remark\n{project.text('evals/x.yaml')}"})
        done = project.eval("--only-changed", "old.json", "--junit", "j.xml")
        assert done.code == 0
        assert "gate: nothing ran: no case was left to run" in done.out
        assert project.rows() == []
        report = project.json("r.report.json")
        assert violations("report-v1", report) == []
        assert (report["gate"]["verdict"], report["gate"]["exit_code"]) == ("nothing", 0)


class TestEstimate:
    def test_estimate_is_a_table(self, project: Project) -> None:
        lines = project.run("compile", "evals", "--estimate", "--workers", "2").out.splitlines()
        assert lines[1].split()[:3] == ["default", "(mock)", "2"]
        assert "2 trials of 2 cases, about 0 s with 2 workers" in lines
        assert not project.path(".agentv").exists()

    def test_estimate_of_a_plan_is_that_of_its_documents(self, project: Project) -> None:
        assert project.run("compile", "evals", "--out", "plan.json").code == 0
        first, second = (
            project.run("compile", path, "--estimate", "--format", "json") for path in ("evals", "plan.json")
        )
        assert first == second
        assert json.loads(first.out)["requests"] == 2

    @pytest.mark.parametrize(
        ("model", "text"),
        [("gpt-5", " $0.00"), ("mine", "unknown price of model 'mine' of target 'default', not in the cost")],
    )
    def test_cost_is_shown_and_unknown_prices_are_named(self, model: str, text: str, project: Project) -> None:
        project.targets({"name": "default", "provider": "openai", "model": model, "api_key": "${{ KEY }}"})
        done = project.run("compile", "evals", "--estimate")
        assert (done.code, text in done.out) == (0, True)


@pytest.mark.parametrize(
    ("eval_ids", "selected"),
    [
        (["a*"], ["a*"]),
        (["a?"], ["a*", "ab"]),
        (["[wip] b"], ["[wip] b"]),
        (["[wx] b"], ["w b"]),
        (["a*", "?b"], ["a*", "ab"]),
        (["*"], ["a*", "ab", "[wip] b", "w b"]),
    ],
)
@pytest.mark.parametrize("source", ["evals", "plan.json"])
def test_an_id_that_is_a_glob_selects_the_case_of_that_id(
    eval_ids: list[str], selected: list[str], source: str, project: Project
) -> None:
    project.documents("a*", "ab", "[wip] b", "w b")
    assert project.run("compile", "evals", "--out", "plan.json").code == 0
    flags = [f"--eval-id={eval_id}" for eval_id in eval_ids]
    assert project.run("compile", source, *flags, "--out", "part.json").code == 0
    assert [case["id"] for case in project.json("part.json")["cases"]] == selected
    assert project.run("eval", source, *flags, "--out", "r.jsonl").code == 0
    assert [row["eval_id"] for row in project.rows()] == selected
    diff = project.run("compile", "evals", *flags, "--diff", "plan.json")
    assert diff.out == f"0 changed, 0 added, 0 removed, {len(selected)} unchanged\n"
