"""`agentv-ci judge-check`: how well a judge agrees with human labels."""

from __future__ import annotations

import json
import signal
from typing import Any

import pytest
from ruamel.yaml import YAML

from tests.cli.builders import stopped
from tests.support import CommandResult
from tests.support.evals import tool
from tests.support.projects import Project

ITEM = {"question": "My parcel is late.", "expected_outcome": "An apology", "answer": "Sorry!"}
KIND = '{"score": 1.0, "reasoning": "kind"}'
PASSES = {"verdict": "pass"}


def judge_set(project: Project, *labels: dict[str, Any], judge: dict[str, Any] | None = None, **document: Any) -> None:
    items = [{"id": f"item-{number}", **ITEM, **label} for number, label in enumerate(labels, 1)]
    answers = {"$schema": "agentv-judge-set-v1", "judge_target": "judge", "items": items, **document}
    target = {"name": "judge", "provider": "mock", **({"response": KIND} if judge is None else judge)}
    project.write({"set.yaml": json.dumps(answers)})
    project.targets(target, {"name": "labelled answers", "provider": "mock"})


def check(project: Project, *flags: str) -> CommandResult:
    return project.run("judge-check", "set.yaml", "--out", "rows.jsonl", *flags)


def as_json(project: Project, *flags: str) -> tuple[int, Any]:
    """Return exit code and document of a check whose output must be JSON and nothing else."""
    done = check(project, "--format", "json", *flags)
    return done.code, json.loads(done.out, parse_constant=pytest.fail)


class TestSets:
    @pytest.mark.parametrize(
        ("labels", "document", "rule"),
        [
            ([{**PASSES, "id": "a"}, {**PASSES, "id": "a"}], {}, "AV301"),
            *(([{**PASSES, "id": given}], {}, "AV20") for given in (1, "", None)),
            *(([{**PASSES, "answer": given}], {}, "AV203") for given in (None, {"a": 1})),
            *(([{"verdict": given}], {}, "AV20") for given in ("good", True)),
            *(([{"score": given}], {}, "AV20") for given in (2, "1")),
            ([{"verdict": None, "score": None}], {}, "AV20"),
            ([{}], {}, "AV320"),
            ([{**PASSES, "unknown": 1}], {}, "AV202"),
            ([], {}, "AV204"),
            ([PASSES], {"judge_target": "jugde"}, "AV304"),
            ([PASSES], {"prompt": "./gone.md"}, "AV302"),
            ([PASSES], {"itmes": []}, "AV202"),
        ],
    )
    def test_invalid_set_is_diagnosed(
        self, labels: list[dict[str, Any]], document: dict[str, Any], rule: str, project: Project
    ) -> None:
        judge_set(project, *labels, **document)
        done = check(project)
        assert (done.code, f"[{rule}" in done.err, "set.yaml:1:" in done.err) == (2, True, True)
        assert not project.path("rows.jsonl").exists()

    def test_any_text_is_an_answer_or_an_id(self, project: Project) -> None:
        project.env["MY_LEAK"] = "value-of-the-environment"
        ids = ["*", "é😀", "../x", "-h", "yes", "a\nb"]
        answers = ["", "x" * 150_000, "\u2028 é 😀 \x00 \x85", "${{ MY_LEAK }}", "{{ question }}", "::error::\x1b[31m"]
        both = zip(ids, answers, strict=True)
        judge_set(project, *({"id": id_, "answer": answer, "verdict": "fail"} for id_, answer in both))
        code, found = as_json(project)
        assert (code, [item["id"] for item in found["items"]]) == (1, ids)
        assert [row["candidate_answer"] for row in project.rows("rows.jsonl")] == answers

    def test_summary_names_lines_in_the_set(self, project: Project) -> None:
        judge_set(project)
        items = [{"id": f"i{number}", **ITEM, "verdict": "fail"} for number in range(30)]
        project.write({"judges/deep/set.yaml": ""})
        document = {"$schema": "agentv-judge-set-v1", "judge_target": "judge", "items": items}
        YAML().dump(document, project.path("judges/deep/set.yaml"))
        done = project.run("judge-check", "judges/deep/set.yaml", "--out", "rows.jsonl")
        assert done.code == 1
        assert "  i0  (judges/deep/set.yaml:4)  expected fail: judged pass 1.000" in done.out
        assert "… and 10 more" in done.out
        assert {row["suite"] for row in project.rows("rows.jsonl")} == {"judges/deep/set.yaml"}


class TestJudges:
    def test_set_reaches_the_judge(self, project: Project) -> None:
        prompt = "{{ question }}|{{ expected_outcome }}|{{ reference_answer }}|{{ candidate_answer }}"
        wanted = "late.|An apology|I am sorry.|<candidate_answer"
        echo = f"tr '\\n' ' ' < {{PROMPT_FILE}} | grep -q '{wanted}' && test \"$SAYS\" = kind && echo '{KIND}'"
        judge = {**tool(echo, env={"SAYS": "${{ SAYS }}"}), "name": "judge"}
        judge_set(project, {**PASSES, "reference_answer": "I am sorry."}, judge=judge, prompt=prompt)
        project.write({".env": "SAYS=kind\n"})
        assert check(project).code == 0

    def test_other_targets_need_no_keys(self, project: Project) -> None:
        judge_set(project, PASSES)
        project.targets(
            *project.json("targets.yaml")["targets"],
            {"name": "t", "provider": "openai", "model": "m", "api_key": "${{ NO_SUCH_KEY }}"},
            {"name": "agent", "provider": "codex", "executable": "no-such-program"},
        )
        assert check(project).code == 0

    @pytest.mark.parametrize(
        ("judge", "code", "error"),
        [
            ({"provider": "openai", "model": "m", "api_key": "${{ NO_SUCH_KEY }}"}, 2, "NO_SUCH_KEY"),
            ({"provider": "codex", "executable": "./no-such-program"}, 4, "no-such-program"),
        ],
    )
    def test_missing_key_or_program_ends_the_check(
        self, judge: dict[str, Any], code: int, error: str, project: Project
    ) -> None:
        judge_set(project, PASSES, judge=judge)
        project.refuses("judge-check", "set.yaml", "--out", "rows.jsonl", error=error, code=code)

    @pytest.mark.parametrize(
        ("judge", "flags", "code", "text"),
        [
            ({"response": "9 out of 10"}, [], 4, "nothing was judged"),
            ({"response": "9 out of 10"}, ["--max-errors", "5"], 1, "nothing was judged"),
            ({"error": {"kind": "server", "message": "busy", "attempts": 1}}, [], 4, "1 error, at most 0 allowed"),
            ({"error": {"kind": "server", "message": "busy", "attempts": 1}}, ["--max-errors", "1"], 0, "1 error"),
        ],
    )
    def test_failed_judgements_are_infrastructure_errors(
        self, judge: dict[str, Any], flags: list[str], code: int, text: str, project: Project
    ) -> None:
        judge_set(project, PASSES, judge={"response": KIND, **judge})
        done = check(project, "--repeat", "2", *flags)
        assert (done.code, text in done.out) == (code, True), done.out
        assert "errors:\n  item-1  (set.yaml:1)  expected pass: error\n    " in done.out

    def test_judge_target_and_targets_can_be_chosen(self, project: Project) -> None:
        judge_set(project, PASSES, judge={"response": "no verdict"}, prompt="{{ question }}")
        project.path("targets.yaml").rename(project.path("t.yaml"))
        project.refuses("judge-check", "set.yaml", error="no targets.yaml found for")
        done = check(project, "--judge-target", "labelled answers", "--targets", "t.yaml")
        assert (done.code, "1 answer, judged once by 'labelled answers' (mock)" in done.out) == (0, True)
        assert ("[AV306]" in done.err, "AV306" in done.out) == (True, False)

    def test_secrets_are_masked(self, project: Project) -> None:
        secret = project.env["MY_API_KEY"] = "sk-live-abcdefghijklmnop"
        reply = json.dumps({"score": 1, "reasoning": secret})
        judge_set(project, {**PASSES, "answer": f"It is {secret}."}, judge={"response": reply})
        assert check(project, "--verbose").code == 0
        assert secret not in project.text("rows.jsonl")

    def test_rows_of_a_check_cannot_be_rescored(self, project: Project) -> None:
        judge_set(project, PASSES)
        assert check(project).code == 0
        assert project.run("rescore", "rows.jsonl").code in (2, 3)


class TestAgreement:
    @pytest.mark.parametrize(
        ("labels", "flags", "code", "text"),
        [
            ([PASSES], [], 0, "check: passed"),
            ([{"score": 0.9}], [], 0, "mean absolute error 0.100"),
            ([{"score": 0.8}], [], 0, "agreement 1.000"),
            ([{"score": 0.7}], [], 1, "item-1  (set.yaml:1)  expected fail: judged pass 1.000"),
            ([{"score": 0.7}], ["--threshold", "0.7"], 0, "agreement 1.000"),
            ([{"score": 0.7}], ["--min-agreement", "0"], 0, "1 false pass, 0 false fails"),
            ([{"verdict": "borderline"}], [], 1, "agreement 0 is below 0.8"),
            ([{"verdict": "fail", "score": 1.0}], [], 1, "mean absolute error 0.000"),
            ([{**PASSES, "score": 0.4}], ["--max-error", "0.5"], 1, "mean absolute error 0.6 is above 0.5"),
            ([PASSES], ["--min-kappa", "0.5"], 1, "kappa cannot be measured"),
            ([PASSES], ["--max-flip-rate", "0", "--repeat", "2"], 0, "flip rate 0.000"),
            ([PASSES] * 4 + [{"verdict": "fail"}], ["--min-kappa", "0"], 0, "kappa 0.000"),
        ],
    )
    def test_requirements(
        self, labels: list[dict[str, Any]], flags: list[str], code: int, text: str, project: Project
    ) -> None:
        judge_set(project, *labels)
        done = check(project, *flags)
        assert (done.code, text in done.out) == (code, True), done.out

    @pytest.mark.parametrize("reply", [KIND, "no verdict", '{"score": 0.5, "reasoning": "\\u2028 \\ud800 \\u0000"}'])
    @pytest.mark.parametrize("flags", [["--verbose", "--min-kappa", "-1"], ["--repeat", "3", "--max-flip-rate", "0"]])
    def test_standard_output_is_json(self, reply: str, flags: list[str], project: Project) -> None:
        judge_set(project, PASSES, {"score": 0.1, "id": "é\u2028"}, judge={"response": reply})
        code, found = as_json(project, *flags)
        assert (found["exit_code"], found["passed"]) == (code, code == 0)
        assert (found["agreement"] is None) == (found["judgements"] == 0)
        assert found["judgements"] + found["errors"] == 2 * (3 if "--repeat" in flags else 1)


@pytest.mark.slow
def test_interruption_keeps_finished_rows(project: Project) -> None:
    program = f"[ -e once ] && touch waits && sleep 60; touch once; echo '{KIND}'"
    judge_set(project, PASSES, PASSES, PASSES, judge={**tool(program), "name": "judge"})
    arguments = ["judge-check", "set.yaml", "--out", "rows.jsonl", "--format", "json"]
    done = stopped(project, *arguments, when=project.path("waits").exists, by=signal.SIGTERM)
    assert (done.code, done.out) == (130, "")
    assert "interrupted; finished rows are kept" in done.err
    assert [row["eval_id"] for row in project.rows("rows.jsonl")] == ["item-1"]
