"""`agentv-ci rescore`: stored answers, the current evaluators, and no target asked."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from typing import Any

import pytest

from agentv_ci.contracts.results import ResultRow
from tests.support.projects import GREETS, HELLO, JUDGE, JUDGED, Project

ADA = {"name": "ada", "type": "contains", "value": "Ada"}
CALLS = {"name": "calls", "type": "tool_trajectory", "mode": "any_order", "minimums": {"greet": 1}}
OTHER = {**GREETS, "name": "other"}
RESCORED = "r.rescored.jsonl"
SECRET = "sk-live-abcdefghijklmnop"


def answered(project: Project) -> dict[str, Any]:
    """Run one case, and return its row."""
    project.documents("one")
    assert project.eval().code == 0
    return project.rows()[0]


def rescored(project: Project, *arguments: str, code: int = 0) -> list[dict[str, Any]]:
    """Rescore `r.jsonl`, and return the new rows."""
    done = project.run("rescore", "r.jsonl", *arguments)
    assert done.code == code, done
    return project.rows(RESCORED)


class TestScores:
    def test_current_evaluators_score_and_no_target_is_asked(self, project: Project) -> None:
        project.documents({"evaluators": [ADA]}, "two")
        assert project.eval().code == 1
        gone = {"name": "default", "provider": "openai", "model": "m", "api_key": "${{ NO_SUCH_KEY }}"}
        project.documents({"evaluators": [HELLO, JUDGED]}, "two", targets=(gone, JUDGE))
        before, after = project.rows(), rescored(project)
        assert [row["score"] for row in before] == [0.0, 1.0]
        assert [row["score"] for row in after] == [0.95, 1.0]
        assert [each["name"] for each in after[0]["evaluator_results"]] == ["hello", "judged"]
        kept = [*("eval_id", "candidate_answer", "target", "provider", "trial", "attempts", "requests")]
        kept += ["duration_ms", "request", "digest"]
        assert [[row[key] for key in kept] for row in after] == [[row[key] for key in kept] for row in before]

    def test_same_evaluators_give_the_same_rows(self, project: Project) -> None:
        project.documents({"evaluators": [HELLO, CALLS, JUDGED]}, repeat=2)
        assert project.eval().code == 0
        before, after = project.rows(), rescored(project)
        assert project.run("rescore", RESCORED).code == 0
        again = project.rows("r.rescored.rescored.jsonl")
        assert [[row | {"timestamp": ""} for row in rows] for rows in (after, again)] == [
            [row | {"timestamp": ""} for row in before]
        ] * 2

    def test_missing_trial_is_an_error(self, project: Project) -> None:
        project.documents("one")
        assert project.eval("--repeat", "3").code == 0
        project.store("r.jsonl", *(row for row in project.rows() if row["trial"] != 2))
        assert len(rescored(project, code=4)) == 2

    @pytest.mark.parametrize(
        ("repeat", "code", "warnings"), [(3, 0, 1), ({"max": 3, "stop_when": "decided"}, 1, 0)], ids=["all", "decided"]
    )
    def test_fewer_trials_than_required_are_a_warning(
        self, repeat: object, code: int, warnings: int, project: Project
    ) -> None:
        answered(project)
        project.documents("one", repeat=repeat)
        done = project.run("rescore", "r.jsonl")
        assert done.code == code
        assert done.err.count("warning: fewer stored trials than the case requires: one\n") == warnings

    @pytest.mark.parametrize(
        ("flags", "code"),
        [([], 1), (["--min-pass-rate", "0"], 0), (["--min-pass-rate", "0", "--min-mean-score", "0.1"], 1)],
    )
    def test_options_override_the_gate(self, flags: list[str], code: int, project: Project) -> None:
        answered(project)
        project.documents({"id": "one", "evaluators": [ADA]})
        rescored(project, *flags, code=code)

    def test_cost_and_tokens_of_the_answer_are_kept(self, project: Project) -> None:
        row = answered(project)
        usage = {"input_tokens": 10, "output_tokens": 20, "total_tokens": 30, "cached_tokens": None}
        project.store("r.jsonl", {**row, "usage": usage, "cost_usd": 0.5, "judge_cost_usd": 9.0, "judge_usage": usage})
        project.documents({"id": "one", "evaluators": [{"name": "c", "type": "cost", "max_usd": 0.4}]})
        (after,) = rescored(project, code=1)
        assert (after["cost_usd"], after["usage"], after.get("judge_cost_usd")) == (0.5, usage, None)

    @pytest.mark.parametrize("again", [[], ["--dry-run"]])
    def test_dry_run_stays_one(self, again: list[str], project: Project) -> None:
        project.documents({"evaluators": [JUDGED]})
        project.eval(*(() if again else ("--dry-run",)))
        rescored(project, *again)
        assert project.json("r.rescored.report.json")["dry_run"] is True

    def test_warnings_of_documents_are_on_standard_error(self, project: Project) -> None:
        answered(project)
        project.documents({"id": "one", "evaluators": [{**JUDGED, "prompt": "{{ question }}"}]})
        done = project.run("rescore", "r.jsonl")
        assert (done.code, "[AV306]" in done.err) == (0, True)

    def test_targets_option_names_the_judge(self, project: Project) -> None:
        answered(project)
        project.documents({"id": "one", "evaluators": [JUDGED]})
        project.targets(GREETS, {**JUDGE, "response": '{"score": 0.1}'}, name="other/t.yaml")
        assert rescored(project, "--targets", "other/t.yaml", code=1)[0]["score"] == 0.1


class TestRows:
    def test_error_of_a_target_is_kept(self, project: Project) -> None:
        project.documents("one", targets=({**GREETS, "error": {"kind": "server", "message": "too busy"}},))
        assert project.eval().code == 4
        project.documents({"id": "one", "evaluators": [ADA]})
        assert rescored(project, code=4) == project.rows()

    @pytest.mark.parametrize(
        ("change", "code", "score"),
        [
            ({"status": "error", "verdict": "error", "error": "old", "error_kind": None}, 0, 1.0),
            ({"status": "error", "verdict": "error", "error": "old", "error_kind": "evaluator"}, 0, 1.0),
            ({"candidate_answer": ""}, 1, 0.0),
        ],
        ids=["error without a kind", "error of an evaluator", "empty answer"],
    )
    def test_row_with_an_answer_is_scored(
        self, change: dict[str, Any], code: int, score: float, project: Project
    ) -> None:
        project.store("r.jsonl", {**answered(project), **change})
        (row,) = rescored(project, code=code)
        assert (row["score"], row.get("error")) == (score, None)

    def test_optional_fields_may_be_missing(self, project: Project) -> None:
        required = {name for name, field in ResultRow.model_fields.items() if field.is_required()}
        project.store("r.jsonl", {key: value for key, value in answered(project).items() if key in required})
        assert rescored(project)[0]["score"] == 1.0

    def test_tool_calls_require_a_trace(self, project: Project) -> None:
        project.documents({"id": "one", "evaluators": [HELLO, CALLS]})
        assert project.eval().code == 0
        rescored(project)
        (row,) = project.rows()
        project.store("r.jsonl", {key: value for key, value in row.items() if key != "trace_summary"})
        rescored(project, code=4)
        assert project.eval("--no-trace").code == 0
        done = project.run("rescore", "r.jsonl")
        warning = "tool calls are unknown in 1 row without messages; run the targets without --no-trace"
        assert (done.code, warning in done.err) == (4, True)
        assert [each["status"] for each in project.rows(RESCORED)[0]["evaluator_results"]] == ["ok", "error"]

    def test_current_secrets_are_masked(self, project: Project) -> None:
        row = answered(project)
        project.store("r.jsonl", {**row, "candidate_answer": f"Hello {SECRET}", "request": {SECRET: [{"x": SECRET}]}})
        project.write({"evals/.env": f"SOME_TOKEN={SECRET}\n"})
        rows = rescored(project, "--verbose", "--junit", "j.xml")
        assert SECRET not in project.text(RESCORED) + project.text("r.rescored.report.json") + project.text("j.xml")
        assert rows[0]["masked"] is True


class TestCases:
    def test_skipped_cases_are_named(self, project: Project) -> None:
        project.documents("stays", "goes", "moves")
        assert project.eval().code == 0
        moved = {"id": "moves", "execution": {"target": "other"}}
        project.documents("stays", "comes", moved, targets=(GREETS, OTHER))
        done = project.run("rescore", "r.jsonl", "--target", "default")
        assert (done.code, done.err.splitlines()) == (
            0,
            [
                "warning: skipped, no longer a case: goes",
                "warning: skipped, answered by another target: moves",
                "warning: skipped, no stored answer: comes",
            ],
        )
        assert done.out.startswith("1 case: 1 passed, 0 failed, 0 errors\n")
        assert "skipped, no longer a case: goes" in done.out
        assert [row["eval_id"] for row in project.rows(RESCORED)] == ["stays"]

    def test_documents_are_compiled_for_the_target_that_answered(self, project: Project) -> None:
        project.documents("one", targets=(GREETS, OTHER))
        assert project.eval("--target", "other").code == 0
        assert rescored(project)[0]["target"] == "other"

    def test_cases_of_several_targets_keep_theirs(self, project: Project) -> None:
        project.documents("one", {"id": "two", "execution": {"target": "other"}}, targets=(GREETS, OTHER))
        assert project.eval().code == 0
        assert [row["target"] for row in rescored(project)] == ["default", "other"]

    @pytest.mark.parametrize("given", [(), ("--target", "own", "--target", "other"), ("--target", "own")])
    def test_answers_of_several_targets_to_one_case(self, given: tuple[str, ...], project: Project) -> None:
        project.documents("one", "two", targets=({**GREETS, "name": "own"}, OTHER))
        assert project.eval("--target", "own", "--target", "other").code == 0
        rows = rescored(project, *given)
        names = ["own", "other"] if len(given) != 2 else ["own"]
        assert [row["eval_id"] for row in rows] == [each for each in ("one", "two") for _ in names]
        assert [row["target"] for row in rows] == names * 2

    def test_targets_of_a_document_keep_their_answers(self, project: Project) -> None:
        own = {"id": "two", "execution": {"target": "other"}}
        project.documents({"id": "one", "execution": {"targets": ["default", "other"]}}, own, targets=(GREETS, OTHER))
        assert project.eval().code == 0
        assert [row["target"] for row in rescored(project)] == ["default", "other", "other"]

    def test_suites_with_the_same_ids_are_distinguished(self, project: Project) -> None:
        project.documents("same")
        project.documents("same", name="evals/y.yaml")
        assert project.eval().code == 0
        assert [row["suite"] for row in rescored(project, "evals/y.yaml")] == ["evals/y.yaml"]
        project.documents({"id": "same", "evaluators": [ADA]}, name="evals/y.yaml")
        rows = rescored(project, code=1)
        assert {row["suite"]: row["score"] for row in rows} == {"evals/x.yaml": 1.0, "evals/y.yaml": 0.0}

    def test_missing_eval_file_stops_nothing_if_others_are_named(self, project: Project) -> None:
        project.documents("one")
        project.documents("two", name="evals/y.yaml")
        assert project.eval().code == 0
        project.path("evals/y.yaml").unlink()
        assert project.run("rescore", "r.jsonl").code == 2
        assert [row["eval_id"] for row in rescored(project, "evals")] == ["one"]

    def test_any_name_and_id_is_found(self, project: Project) -> None:
        project.documents("größe/😀", "e\u0301", "é", "a b\u2028c", "*", "[x]", "İ", "-- help")
        names = ("evals/ünï cödé.yaml", "evals/[a].yaml", "evals/a*b.yaml", "evals/q?.yaml")
        for name in names:
            project.documents("é", name=name)
        assert project.eval().code == 0
        rows = rescored(project, "--junit", "j.xml")
        assert [(row["suite"], row["eval_id"]) for row in rows] == [
            (row["suite"], row["eval_id"]) for row in project.rows()
        ]

    def test_results_may_be_outside_of_the_repository(
        self, project: Project, tmp_path_factory: pytest.TempPathFactory
    ) -> None:
        answered(project)
        away = tmp_path_factory.mktemp("away")
        project.path("r.jsonl").rename(away / "r.jsonl")
        assert project.run("rescore", away / "r.jsonl").code == 0
        assert (away / RESCORED).exists()
        assert project.run("rescore", away / "r.jsonl", "--out", "here.jsonl", cwd="evals").code == 0
        assert project.path("evals/here.jsonl").exists()

    def test_plan_replaces_the_documents(self, project: Project) -> None:
        answered(project)
        assert project.run("compile", "evals", "--out", "plan.json").code == 0
        project.documents("one", targets=(GREETS, OTHER))
        assert project.run("compile", "evals", "--target", "other", "--out", "other.json").code == 0
        for name in ("evals/x.yaml", "targets.yaml"):
            project.path(name).unlink()
        assert project.run("rescore", "r.jsonl", "plan.json", "--output-format", "yaml").code == 0
        assert project.text("r.rescored.yaml").startswith("- schema_version: 1\n")
        assert project.run("rescore", "r.rescored.yaml", "plan.json").code == 0
        assert project.run("rescore", "r.jsonl", "other.json").code == 3

    def test_file_of_a_plan_that_cannot_be_restored_is_an_error_of_its_case(
        self, project: Project, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        attached = [{"role": "user", "content": [{"type": "file", "value": "a.md"}]}]
        project.write({"evals/a.md": "old"})
        project.documents({"input_messages": attached}, "two")
        assert project.eval().code == 0
        assert project.run("compile", "evals", "--out", "plan.json").code == 0
        project.write({"evals/a.md": "new"})
        monkeypatch.setattr(tempfile, "tempdir", str(project.path("missing")))
        assert project.run("rescore", "r.jsonl", "plan.json").code == 4
        rows = {row["eval_id"]: (row["status"], row.get("error_kind")) for row in project.rows(RESCORED)}
        assert rows == {"case-1": ("error", "process"), "two": ("ok", None)}


class TestErrors:
    @pytest.mark.parametrize(
        ("damage", "place"),
        [
            (lambda row: row + row[: len(row) // 2], "r.jsonl:2:"),
            (lambda row: row.replace('"schema_version":1', '"schema_version":2'), "r.jsonl:1:"),
            (lambda row: row * 2, "contains trial 1 of case 'one' twice"),
        ],
        ids=["torn end", "later version", "twice"],
    )
    def test_damaged_row_is_named(self, damage: Callable[[str], str], place: str, project: Project) -> None:
        answered(project)
        project.write({"r.jsonl": damage(project.text("r.jsonl"))})
        project.refuses("rescore", "r.jsonl", error=place)

    @pytest.mark.parametrize("suite", ["../outside.yaml", "/etc/hostname", "evals/../evals/x.yaml", "", ".", "evals"])
    def test_other_suites_are_an_error(self, suite: str, project: Project) -> None:
        project.store("r.jsonl", {**answered(project), "suite": suite})
        assert project.run("rescore", "r.jsonl").code in (2, 3)

    def test_renamed_target_is_named(self, project: Project) -> None:
        answered(project)
        project.documents("one", targets=({**GREETS, "name": "renamed"},))
        project.refuses("rescore", "r.jsonl", error="'default'")
