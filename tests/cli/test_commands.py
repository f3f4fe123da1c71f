"""Each command: what it prints, where, and how it ends."""

from __future__ import annotations

import errno
import json
import subprocess
import sys
from pathlib import Path

import pytest

from agentv_ci import __version__
from agentv_ci.cli import COMMANDS, run
from agentv_ci.cli.console import show_count
from agentv_ci.jsonschema.schemas import TITLES, text
from agentv_ci.jsonschema.violations import violations
from tests.support import clean_environment, run_process, write

TARGETS = "$schema: agentv-targets-v2.2\ntargets:\n  - {name: default, provider: mock, response: Hi}\n"
EVAL = """\
$schema: agentv-eval-v2
evalcases:
  - id: greets
    expected_outcome: A greeting
    input_messages: [{role: user, content: Hello}]
    expected_messages: []
    evaluators: [{name: says-hi, type: contains, value: Hi}]
  - id: waves
    expected_outcome: A wave
    input_messages: [{role: user, content: Wave}]
    expected_messages: []
    evaluators: [{name: says-hi, type: contains, value: Hi}]
"""


@pytest.fixture
def project(repository: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with an eval file and targets, and the current directory in it."""
    write(repository, {"targets.yaml": TARGETS, "greet.test.yaml": EVAL})
    monkeypatch.chdir(repository)
    return repository


class TestHelp:
    @pytest.mark.parametrize("command", COMMANDS)
    def test_every_command_has_help_with_an_example(self, command: str, capsys: pytest.CaptureFixture[str]) -> None:
        assert run([command, "--help"]) == 0
        assert f"agentv-ci {command} " in capsys.readouterr().out.split("Examples:")[1]

    def test_version_is_the_same_by_every_door(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        assert run_process("--version", cwd=tmp_path).out == f"agentv-ci {__version__}\n"
        assert run(["--color", "never", "--version"]) == 0
        assert capsys.readouterr().out == f"agentv-ci {__version__}\n"

    def test_misspelt_command_is_corrected(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert run(["valdate", "x"]) == 2
        assert "No such command 'valdate'. (did you mean 'validate'?)" in capsys.readouterr().err

    def test_workers_help_says_default_and_meaning(self, capsys: pytest.CaptureFixture[str]) -> None:
        run(["eval", "--help"])
        text = " ".join(capsys.readouterr().out.split())
        assert "--workers N" in text
        assert "in parallel, in any order (default: 1, one at a time, in order)" in text

    def test_run_is_another_name_for_eval(self, project: Path) -> None:
        assert run(["run", "greet.test.yaml", "--out", "r.jsonl"]) == 0


class TestValidate:
    def test_json_is_what_the_schema_says(self, project: Path, capsys: pytest.CaptureFixture[str]) -> None:
        write(project, {"bad.yaml": EVAL.replace("expected_outcome: A wave", "note: none")})
        assert run(["validate", ".", "--format", "json"]) == 1
        document = json.loads(capsys.readouterr().out)
        assert violations("diagnostics-v1", document) == []
        assert document["summary"] == {
            "files": 3,
            "passed": 2,
            "failed": 1,
            "skipped": 0,
            "errors": 1,
            "warnings": 0,
        }
        (diagnostic,) = document["files"][0]["diagnostics"]
        assert diagnostic == {
            "rule": "AV201",
            "severity": "error",
            "message": "missing field 'expected_outcome'",
            "path": str(project / "bad.yaml"),
            "line": 8,
            "column": 5,
            "end_line": 12,
            "end_column": 61,
            "pointer": "evalcases[1].expected_outcome",
            "case": "waves",
            "target": None,
            "hint": None,
        }

    def test_paths_are_checked_in_order_and_once(self, project: Path, capsys: pytest.CaptureFixture[str]) -> None:
        run(["validate", "targets.yaml", "greet.test.yaml", "*.yaml", ".", "--format", "json"])
        files = json.loads(capsys.readouterr().out)["files"]
        assert [Path(file["path"]).name for file in files] == ["targets.yaml", "greet.test.yaml"]

    def test_foreign_yaml_is_skipped_in_a_folder(self, project: Path, capsys: pytest.CaptureFixture[str]) -> None:
        write(project, {"compose.yaml": "services: {}\n", "broken.yaml": "a: [\n", "node_modules/x.yaml": "a: 1\n"})
        assert run(["validate", "."]) == 1
        out = capsys.readouterr().out
        assert "broken.yaml:2:1: error: not valid YAML" in out
        assert out.endswith("3 files checked, 2 passed, 1 failed, 1 error, 0 warnings, 1 skipped\n")

    def test_warnings_fail_when_strict(self, project: Path, capsys: pytest.CaptureFixture[str]) -> None:
        write(project, {"greet.test.yaml": EVAL.removeprefix("$schema: agentv-eval-v2\n")})
        assert run(["validate", "greet.test.yaml"]) == 0
        assert run(["validate", "greet.test.yaml", "--strict"]) == 1
        assert "warning: $schema is missing" in capsys.readouterr().out

    def test_missing_path_is_a_usage_error(self, project: Path, capsys: pytest.CaptureFixture[str]) -> None:
        assert run(["validate", "nowhere.yaml"]) == 2
        assert capsys.readouterr().err == "error: path 'nowhere.yaml' does not exist\n"

    @pytest.mark.parametrize("pattern", ["none/*.yaml", "empty"])
    def test_nothing_of_ours_is_exit_3(self, project: Path, pattern: str) -> None:
        (project / "empty").mkdir()
        assert run(["validate", pattern]) == 3

    def test_colours_are_for_terminals(self, project: Path, capsys: pytest.CaptureFixture[str]) -> None:
        run(["validate", "."])
        assert "\x1b[" not in capsys.readouterr().out
        run(["validate", ".", "--color", "always"])
        assert "\x1b[32m2 files checked" in capsys.readouterr().out
        run(["--color", "always", "validate", ".", "--color", "never"])
        assert "\x1b[" not in capsys.readouterr().out

    def test_targets_option_names_another_file_or_folder(self, project: Path) -> None:
        write(project, {"other/targets.yaml": TARGETS.replace("default", "other")})
        assert run(["validate", "greet.test.yaml", "--targets", "other"]) == 1
        assert run(["validate", "greet.test.yaml", "--targets", "targets.yaml"]) == 0
        assert run(["validate", "greet.test.yaml", "--targets", "missing"]) == 2
        assert run(["validate", "greet.test.yaml", "--targets", "greet.test.yaml"]) == 2

    def test_without_targets_documents_are_checked_alone(
        self, project: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        (project / "targets.yaml").unlink()
        assert run(["validate", "."]) == 0
        assert "no targets file found" in capsys.readouterr().out


class TestCompile:
    def test_plan_goes_to_stdout_or_to_a_file(self, project: Path, capsys: pytest.CaptureFixture[str]) -> None:
        assert run(["compile", "."]) == 0
        printed = capsys.readouterr()
        assert violations("plan-v1", json.loads(printed.out)) == []
        assert printed.err == ""
        assert run(["compile", ".", "--out", "out/plan.json"]) == 0
        assert (project / "out" / "plan.json").read_text("utf-8") == printed.out

    @pytest.mark.parametrize(
        ("redirection", "code", "said"),
        [
            ("| head -1 >/dev/null; exit ${PIPESTATUS[0]}", 141, ""),
            (">&-", 2, "standard output is closed; use --out FILE"),
            ("> /dev/full", 4, "No space left on device"),
            ("--out /dev/full", 4, "No space left on device"),
            ("--out /dev/null", 0, "700 cases compiled to /dev/null"),
        ],
    )
    def test_output_that_cannot_be_written_is_nobodys_bug(
        self, redirection: str, code: int, said: str, project: Path
    ) -> None:
        head, body = EVAL.split("  - id: greets", 1)
        cases = "".join(f"  - id: g{number}{body.split('  - id: waves')[0]}" for number in range(700))
        write(project, {"many.test.yaml": head + cases})
        command = f"{sys.executable} -m agentv_ci compile many.test.yaml {redirection}"
        done = subprocess.run(
            ["bash", "-c", command],
            cwd=project,
            env=clean_environment(),
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == code
        assert said in done.stderr
        assert "Traceback" not in done.stderr

    def test_plan_is_replaced_whole_or_not_at_all(self, project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        assert run(["compile", ".", "--out", "plan.json"]) == 0
        before = (project / "plan.json").read_bytes()

        def full(*_: object) -> None:
            raise OSError(errno.ENOSPC, "No space left on device")

        monkeypatch.setattr("shutil.copyfileobj", full)
        assert run(["compile", ".", "--out", "plan.json"]) == 4
        assert (project / "plan.json").read_bytes() == before
        assert sorted(path.name for path in project.iterdir() if path.is_file()) == [
            "greet.test.yaml",
            "plan.json",
            "targets.yaml",
        ]

    @pytest.mark.parametrize(
        ("arguments", "said"),
        [
            (["--format", "json"], "--format requires --diff or --estimate"),
            (["--workers", "2"], "--workers requires --estimate"),
            (["plan.json"], "cannot be combined with other paths"),
        ],
    )
    def test_what_would_be_ignored_is_refused(
        self, arguments: list[str], said: str, project: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert run(["compile", ".", "--out", "plan.json"]) == 0
        assert run(["compile", "greet.test.yaml", *arguments]) == 2
        assert said in capsys.readouterr().err

    def test_data_beside_the_evals_is_no_plan(self, project: Path) -> None:
        write(project, {"evals/a.test.yaml": EVAL, "evals/data.json": "{}"})
        assert run(["compile", "evals/*", "--out", "plan.json"]) == 0
        assert run(["compile", "evals", "--out", "plan.json"]) == 0

    def test_errors_are_on_stderr_and_nothing_is_printed(
        self, project: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        write(project, {"greet.test.yaml": EVAL.replace("type: contains", "type: contians")})
        assert run(["compile", "."]) == 2
        printed = capsys.readouterr()
        assert printed.out == ""
        assert printed.err.count("(did you mean 'contains'?)") == 2

    def test_errors_of_the_targets_file_count(self, project: Path, capsys: pytest.CaptureFixture[str]) -> None:
        write(project, {"targets.yaml": TARGETS + "    retries: 3\n"})
        assert run(["compile", "greet.test.yaml"]) == 2
        assert "targets.yaml:4:5: error" in capsys.readouterr().err

    @pytest.mark.parametrize(
        ("arguments", "code", "message"),
        [
            (["--target", "defualt"], 2, "unknown target 'defualt' (did you mean 'default'?)"),
            (["--target", "default"], 0, ""),
            (["--eval-id", "nothing-*"], 3, "no case matches --eval-id nothing-*"),
            (["--eval-id", "gr*"], 0, ""),
            (["--out", "/proc/none/plan.json"], 2, "cannot write '/proc/none/plan.json'"),
        ],
    )
    def test_options_are_checked(
        self, project: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], code: int, message: str
    ) -> None:
        assert run(["compile", "greet.test.yaml", *arguments]) == code
        assert message in capsys.readouterr().err

    def test_without_a_targets_file_it_says_what_to_do(self, project: Path, capsys: pytest.CaptureFixture[str]) -> None:
        (project / "targets.yaml").unlink()
        assert run(["compile", "."]) == 2
        assert "create a targets.yaml, or use --targets FILE" in capsys.readouterr().err

    def test_folder_without_evals_has_nothing_to_run(self, project: Path) -> None:
        (project / "greet.test.yaml").unlink()
        assert run(["compile", "."]) == 3


class TestCount:
    def test_long_work_is_counted_on_a_terminal(
        self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        monkeypatch.setattr("sys.stderr.isatty", lambda: True)
        clock = iter([0.0, 0.5, 1.5, 1.55, 1.7])
        monkeypatch.setattr("time.monotonic", lambda: next(clock))
        with show_count("cases compiled") as watch:
            for number in (1, 2000, 2001, 3000):
                watch(number)
        assert capsys.readouterr().err == "\r2,000 cases compiled\r3,000 cases compiled\r\x1b[K"

    def test_nothing_is_counted_elsewhere(self, capsys: pytest.CaptureFixture[str]) -> None:
        with show_count("cases compiled") as watch:
            watch(1)
        assert capsys.readouterr().err == ""


class TestSchemas:
    def test_schemas_are_written_and_nothing_is_compiled(
        self, project: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert run(["compile", "--schemas", "made/schemas"]) == 0
        printed = capsys.readouterr()
        assert (printed.out, printed.err) == ("", f"{len(TITLES)} schemas written to made/schemas\n")
        for name in TITLES:
            assert (project / "made" / "schemas" / f"{name}.schema.json").read_text("utf-8") == text(name)

    def test_schemas_and_a_plan_go_together(self, project: Path) -> None:
        assert run(["compile", ".", "--schemas", "schemas", "--out", "plan.json"]) == 0
        assert (project / "plan.json").exists()
        assert (project / "schemas" / "plan-v1.schema.json").exists()

    def test_folder_that_is_a_file_is_a_usage_error(self, project: Path, capsys: pytest.CaptureFixture[str]) -> None:
        assert run(["compile", "--schemas", "targets.yaml"]) == 2
        assert "--schemas: 'targets.yaml' is not a directory" in capsys.readouterr().err

    def test_without_a_path_it_says_what_to_do(self, project: Path, capsys: pytest.CaptureFixture[str]) -> None:
        assert run(["compile"]) == 2
        assert "agentv-ci compile evals/ --out plan.json" in capsys.readouterr().err


class TestDiff:
    @pytest.fixture
    def changed(self, project: Path, capsys: pytest.CaptureFixture[str]) -> Path:
        """A project one of whose two cases changed since `old.json`."""
        assert run(["compile", ".", "--out", "old.json"]) == 0
        write(project, {"greet.test.yaml": EVAL.replace("Wave", "Wave twice")})
        capsys.readouterr()
        return project

    def test_changes_are_told_with_their_reasons(self, changed: Path, capsys: pytest.CaptureFixture[str]) -> None:
        assert run(["compile", ".", "--diff", "old.json"]) == 0
        printed = capsys.readouterr()
        assert printed.err == ""
        assert printed.out == (
            "changed  waves  (greet.test.yaml)\n"
            "    input message 1 text changed\n"
            "1 changed, 0 added, 0 removed, 1 unchanged\n"
        )

    def test_added_and_removed_cases_are_told(self, changed: Path, capsys: pytest.CaptureFixture[str]) -> None:
        write(changed, {"greet.test.yaml": EVAL.replace("id: waves", "id: nods")})
        assert run(["compile", ".", "--diff", "old.json"]) == 0
        assert capsys.readouterr().out == (
            "added  nods  (greet.test.yaml)\n"
            "removed  waves  (greet.test.yaml)\n"
            "0 changed, 1 added, 1 removed, 1 unchanged\n"
        )

    def test_json_is_for_programs(self, changed: Path, capsys: pytest.CaptureFixture[str]) -> None:
        assert run(["compile", ".", "--diff", "old.json", "--format", "json"]) == 0
        assert json.loads(capsys.readouterr().out) == {
            "added": [],
            "removed": [],
            "changed": [
                {"id": "waves", "suite": "greet.test.yaml", "reasons": ["input message 1 text changed"]},
            ],
        }

    def test_only_selected_cases_are_compared(self, changed: Path, capsys: pytest.CaptureFixture[str]) -> None:
        assert run(["compile", ".", "--diff", "old.json", "--eval-id", "greets"]) == 0
        assert capsys.readouterr().out == "0 changed, 0 added, 0 removed, 1 unchanged\n"

    def test_older_plan_may_be_replaced_by_the_newer_one(
        self, changed: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert run(["compile", ".", "--diff", "old.json", "--out", "old.json"]) == 0
        printed = capsys.readouterr()
        assert printed.out.endswith("1 changed, 0 added, 0 removed, 1 unchanged\n")
        assert printed.err == "2 cases compiled to old.json\n"
        assert run(["compile", ".", "--diff", "old.json"]) == 0
        assert capsys.readouterr().out == "0 changed, 0 added, 0 removed, 2 unchanged\n"

    def test_older_plan_must_be_one(self, changed: Path, capsys: pytest.CaptureFixture[str]) -> None:
        assert run(["compile", ".", "--diff", "missing.json"]) == 2
        assert "cannot read" in capsys.readouterr().err
        assert run(["compile", ".", "--diff", "old.json", "--estimate"]) == 2

    def test_only_what_changed_runs(self, changed: Path, capsys: pytest.CaptureFixture[str]) -> None:
        assert run(["eval", ".", "--only-changed", "old.json", "--out", "rows.jsonl"]) == 0
        printed = capsys.readouterr()
        assert "1 of 2 cases skipped: unchanged since old.json" in printed.err
        assert printed.out.splitlines()[-1] == "1 of 2 cases skipped: unchanged since old.json"
        rows = [json.loads(line) for line in (changed / "rows.jsonl").read_text("utf-8").splitlines()]
        assert [row["eval_id"] for row in rows] == ["waves"]

    def test_when_nothing_changed_nothing_runs_and_nothing_fails(
        self, changed: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        write(changed, {"greet.test.yaml": f"# A remark\n{EVAL}"})
        assert run(["eval", ".", "--only-changed", "old.json", "--out", "rows.jsonl", "--junit", "j.xml"]) == 0
        assert "gate: nothing ran: no case was left to run" in capsys.readouterr().out
        assert (changed / "rows.jsonl").read_text("utf-8") == ""
        report = json.loads((changed / "rows.report.json").read_text("utf-8"))
        assert violations("report-v1", report) == []
        assert (report["gate"]["verdict"], report["gate"]["exit_code"]) == ("nothing", 0)

    def test_older_plan_is_not_overwritten(self, changed: Path, capsys: pytest.CaptureFixture[str]) -> None:
        before = (changed / "old.json").read_bytes()
        assert run(["eval", ".", "--only-changed", "old.json", "--out", "old.json"]) == 2
        assert "would be overwritten" in capsys.readouterr().err
        assert (changed / "old.json").read_bytes() == before

    def test_suites_without_a_changed_case_do_not_fail_the_gate(self, changed: Path) -> None:
        write(changed, {"other.test.yaml": EVAL})
        assert run(["compile", ".", "--out", "old.json"]) == 0
        write(changed, {"other.test.yaml": EVAL.replace("Wave", "Wave twice and bow")})
        assert run(["eval", ".", "--only-changed", "old.json", "--out", "rows.jsonl"]) == 0


class TestEstimate:
    def test_estimate_is_a_table(self, project: Path, capsys: pytest.CaptureFixture[str]) -> None:
        assert run(["compile", ".", "--estimate", "--workers", "2"]) == 0
        lines = capsys.readouterr().out.splitlines()
        assert [line.split()[:3] for line in lines[1:2]] == [["default", "(mock)", "2"]]
        assert "2 trials of 2 cases, about 0 s with 2 workers" in lines
        assert not (project / ".agentv").exists()

    def test_estimate_of_a_plan_is_that_of_its_documents(
        self, project: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert run(["compile", ".", "--out", "plan.json"]) == 0
        capsys.readouterr()
        assert run(["compile", ".", "--estimate", "--format", "json"]) == 0
        first = capsys.readouterr().out
        assert run(["compile", "plan.json", "--estimate", "--format", "json"]) == 0
        assert capsys.readouterr().out == first
        assert json.loads(first)["requests"] == 2

    def test_cost_is_shown_and_what_has_no_price_is_named(
        self, project: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        model = "{name: default, provider: openai, model: gpt-5, api_key: '${{ KEY }}'}"
        write(project, {"targets.yaml": f"$schema: agentv-targets-v2.2\ntargets: [{model}]\n"})
        assert run(["compile", ".", "--estimate"]) == 0
        assert " $0.00" in capsys.readouterr().out
        write(project, {"targets.yaml": (project / "targets.yaml").read_text("utf-8").replace("gpt-5", "mine")})
        assert run(["compile", ".", "--estimate"]) == 0
        assert "unknown price of model 'mine' of target 'default': not in the cost" in capsys.readouterr().out


class TestEval:
    def test_results_lie_under_agentv_by_default(self, project: Path, capsys: pytest.CaptureFixture[str]) -> None:
        assert run(["eval", "greet.test.yaml"]) == 0
        (rows,) = (project / ".agentv" / "results").glob("eval_*.jsonl")
        assert f"results: {rows.relative_to(project)}\n" in capsys.readouterr().out
        assert rows.with_suffix(".report.json").exists()

    def test_yaml_holds_the_same_rows(self, project: Path) -> None:
        from ruamel.yaml import YAML

        assert run(["eval", "greet.test.yaml", "--out", "r.yaml", "--output-format", "yaml"]) == 0
        rows = YAML(typ="safe").load((project / "r.yaml").read_text("utf-8"))
        assert [row["eval_id"] for row in rows] == ["greets", "waves"]
        assert all(violations("result-v1", row) == [] for row in rows)

    @pytest.mark.parametrize(
        ("arguments", "words"),
        [
            (["--output-format", "xml"], ["'jsonl'", "'yaml'"]),
            (["--workers", "0"], ["0 is not in the range x>=1"]),
            (["--workers", "-2"], ["x>=1"]),
            (["--workers", "many"], ["'many' is not a whole number of at least 1"]),
            (["--threshold", "2"], ["0<=x<=1"]),
        ],
    )
    def test_wrong_option_values_run_nothing(
        self, project: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], words: list[str]
    ) -> None:
        assert run(["eval", "greet.test.yaml", "--out", "r.jsonl", *arguments]) == 2
        err = capsys.readouterr().err
        assert all(word in err for word in words), err
        assert not (project / "r.jsonl").exists()

    def test_flags_move_the_gate(self, project: Path, capsys: pytest.CaptureFixture[str]) -> None:
        write(project, {"greet.test.yaml": EVAL.replace("value: Hi}]\n  - id: waves", "value: Bye}]\n  - id: waves")})
        assert run(["eval", "greet.test.yaml", "--out", "r.jsonl"]) == 1
        assert run(["eval", "greet.test.yaml", "--out", "r.jsonl", "--min-pass-rate", "0.5"]) == 0
        flags = ["--min-pass-rate", "0.5", "--min-mean-score", "0.6"]
        assert run(["eval", "greet.test.yaml", "--out", "r.jsonl", *flags]) == 1
        assert run(["eval", "greet.test.yaml", "--out", "r.jsonl", "--threshold", "0"]) == 0
        capsys.readouterr()

    def test_dry_run_asks_nobody_and_says_so(self, project: Path, capsys: pytest.CaptureFixture[str]) -> None:
        targets = """\
$schema: agentv-targets-v2.2
targets:
  - name: default
    provider: cli
    command_template: touch asked
    healthcheck: {type: command, command_template: touch probed}
    judge_target: judge
  - {name: judge, provider: openai, model: m, api_key: '${{ NOT_SET_ANYWHERE }}'}
"""
        evals = EVAL.replace("{name: says-hi, type: contains, value: Hi}", "{name: judged, type: llm_judge}")
        write(project, {"targets.yaml": targets, "greet.test.yaml": evals})
        assert run(["eval", "greet.test.yaml", "--out", "r.jsonl", "--dry-run"]) == 0
        out = capsys.readouterr().out
        assert out.startswith("dry run: the mock answered; the scores below are meaningless\n")
        assert "gate: not applied to a dry run\n" in out
        rows = [json.loads(line) for line in (project / "r.jsonl").read_text("utf-8").splitlines()]
        assert [(row["dry_run"], row["provider"], row["verdict"]) for row in rows] == [(True, "mock", "pass")] * 2
        assert json.loads((project / "r.report.json").read_text("utf-8"))["dry_run"] is True
        assert not (project / "asked").exists()
        assert not (project / "probed").exists()

    def test_trials_and_seeds(self, project: Path) -> None:
        flags = ["--repeat", "2", "--seed", "7", "--eval-id", "greets"]
        assert run(["eval", "greet.test.yaml", "--out", "r.jsonl", *flags]) == 0
        rows = [json.loads(line) for line in (project / "r.jsonl").read_text("utf-8").splitlines()]
        assert [(row["eval_id"], row["trial"], row["seed"]) for row in rows] == [("greets", 1, 7), ("greets", 2, 8)]

    def test_failed_health_check_stops_the_run(self, project: Path, capsys: pytest.CaptureFixture[str]) -> None:
        probe = "healthcheck: {type: command, command_template: 'echo not up >&2; exit 1'}"
        targets = f"$schema: agentv-targets-v2.2\ntargets:\n  - name: default\n    provider: cli\n    {probe}\n"
        write(project, {"targets.yaml": f"{targets}    command_template: touch asked\n"})
        assert run(["eval", "greet.test.yaml", "--out", "r.jsonl"]) == 4
        assert "target 'default' is not available: health check failed: not up (exit code 1)" in capsys.readouterr().err
        assert not (project / "asked").exists()

    def test_results_that_cannot_be_written_are_a_usage_error(
        self, project: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert run(["eval", "greet.test.yaml", "--out", "targets.yaml/r.jsonl"]) == 2
        assert "cannot write" in capsys.readouterr().err

    def test_agent_timeout_ends_an_attempt(self, project: Path) -> None:
        write(project, {"targets.yaml": TARGETS.replace("response: Hi", "delay_ms: 60000")})
        flags = ["--agent-timeout", "0.05", "--max-retries", "1", "--eval-id", "greets"]
        assert run(["eval", "greet.test.yaml", "--out", "r.jsonl", *flags]) == 4
        row = json.loads((project / "r.jsonl").read_text("utf-8"))
        assert (row["error_kind"], row["attempts"], row["error"]) == ("timeout", 2, "no answer within 0.05 s")


class TestOutputs:
    @pytest.mark.parametrize(
        "arguments",
        [
            ["eval", "greet.test.yaml", "--out", "greet.test.yaml"],
            ["eval", "greet.test.yaml", "--out", "r.jsonl", "--junit", "targets.yaml"],
            ["eval", "greet.test.yaml", "--out", "r.jsonl", "--junit", "./r.jsonl"],
            ["eval", "greet.test.yaml", "--out", "r.jsonl", "--junit", "r.report.json"],
            ["eval", "greet.test.yaml", "--out", "-"],
            ["compile", "greet.test.yaml", "--out", "greet.test.yaml"],
        ],
    )
    def test_no_output_overwrites_an_input_or_another_output(
        self, project: Path, capsys: pytest.CaptureFixture[str], arguments: list[str]
    ) -> None:
        before = {path.name: path.read_bytes() for path in project.iterdir() if path.is_file()}
        assert run(arguments) == 2
        assert "Traceback" not in capsys.readouterr().err
        assert {path.name: path.read_bytes() for path in project.iterdir() if path.is_file()} == before

    def test_two_runs_of_one_second_are_two_files(self, project: Path) -> None:
        for _ in range(3):
            assert run(["eval", "greet.test.yaml"]) == 0
        assert len(list((project / ".agentv" / "results").glob("eval_*.jsonl"))) == 3

    def test_a_full_terminal_is_nobodys_bug(self, project: Path) -> None:
        command = [sys.executable, "-m", "agentv_ci", "validate", "greet.test.yaml"]
        with Path("/dev/full").open("w") as full:
            done = subprocess.run(command, cwd=project, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
        assert (done.returncode, done.stderr) == (4, "error: cannot continue: [Errno 28] No space left on device\n")


class TestPlans:
    @pytest.mark.parametrize("flags", [["--target", "other"], ["--targets", "targets.yaml"]])
    def test_targets_of_a_plan_cannot_be_chosen_any_more(self, project: Path, flags: list[str]) -> None:
        run(["compile", ".", "--out", "plan.json"])
        assert run(["eval", "plan.json", *flags]) == 2
        assert run(["eval", "plan.json", "--target", "default", "--out", "r.jsonl"]) == 0

    def test_plan_whose_commands_have_no_folder_is_refused_at_once(
        self, project: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        command = "{name: default, provider: cli, command_template: echo Hi}"
        write(
            project, {"evals/e.yaml": EVAL, "evals/targets.yaml": f"$schema: agentv-targets-v2\ntargets: [{command}]\n"}
        )
        assert run(["compile", "evals", "--out", "elsewhere/plan.json"]) == 0
        assert run(["eval", "elsewhere/plan.json", "--out", "rows.jsonl"]) == 0
        (project / "elsewhere" / ".git").mkdir()
        monkeypatch.chdir(project / "elsewhere")
        capsys.readouterr()
        assert run(["eval", "plan.json", "--out", "rows.jsonl"]) == 2
        printed = capsys.readouterr().err
        assert "the folder of 'evals/e.yaml', in which commands run, does not exist" in printed
        assert not Path("rows.jsonl").exists()
        assert run(["eval", "plan.json", "--dry-run", "--out", "rows.jsonl"]) == 0

    def test_plan_of_another_major_version_is_refused(self, project: Path, capsys: pytest.CaptureFixture[str]) -> None:
        run(["compile", ".", "--out", "plan.json"])
        text = (project / "plan.json").read_text("utf-8").replace("plan-v1.schema.json", "plan-v2.schema.json")
        write(project, {"plan.json": text})
        assert run(["eval", "plan.json"]) == 2
        assert "is a version 2 plan; this agentv-ci supports version 1" in capsys.readouterr().err

    @pytest.mark.parametrize(
        ("old", "new"), [('"threshold": 0.8', '"threshold": 0.1'), ('"maxErrors": 0', '"maxErrors": 9')]
    )
    def test_changed_plan_is_refused(
        self, project: Path, capsys: pytest.CaptureFixture[str], old: str, new: str
    ) -> None:
        run(["compile", ".", "--out", "plan.json"])
        write(project, {"plan.json": (project / "plan.json").read_text("utf-8").replace(old, new)})
        assert run(["eval", "plan.json"]) == 2
        assert "changed after compilation" in capsys.readouterr().err

    @pytest.mark.parametrize("text", ["{", "[]", '{"$schema": "x"}'])
    def test_json_that_is_no_plan_is_refused(self, project: Path, text: str) -> None:
        write(project, {"plan.json": text})
        assert run(["eval", "plan.json"]) == 2

    def test_plan_against_the_schema_is_diagnosed(self, project: Path, capsys: pytest.CaptureFixture[str]) -> None:
        run(["compile", ".", "--out", "plan.json"])
        plan = json.loads((project / "plan.json").read_text("utf-8"))
        write(project, {"plan.json": json.dumps({**plan, "cases": [{**plan["cases"][0], "trials": 0}]})})
        assert run(["eval", "plan.json"]) == 2
        assert "(cases[0].trials)" in capsys.readouterr().err

    def test_cases_of_a_plan_can_be_selected(self, project: Path) -> None:
        run(["compile", ".", "--out", "plan.json"])
        assert run(["eval", "plan.json", "--eval-id", "wav*", "--out", "r.jsonl"]) == 0
        assert len((project / "r.jsonl").read_text("utf-8").splitlines()) == 1
        assert run(["eval", "plan.json", "--eval-id", "nobody"]) == 3


class TestSchema:
    def test_schemas_are_listed(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert run(["schema"]) == 0
        assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == list(TITLES)

    def test_unknown_schema_is_corrected(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert run(["schema", "eval-v1"]) == 2
        assert "unknown schema 'eval-v1' (did you mean 'eval-v2'?)" in capsys.readouterr().err


@pytest.mark.parametrize("command", [["eval"], ["compile"], ["rescore", "r.jsonl"]])
def test_a_second_target_is_a_mistake_and_not_the_last_word(command: list[str], repository: Path) -> None:
    done = run_process(*command, "evals", "--target", "a", "--target", "b", cwd=repository)
    assert done.code == 2
    assert "Invalid value for '--target': can be given once; run each target separately" in done.err
