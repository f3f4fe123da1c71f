"""`prove`: what it shows, its gate, and its exit codes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.builders import ONE_ANSWER_USD, PRICED
from tests.servers.chat_api import chat_api, says
from tests.support.evals import gpt, tool
from tests.support.projects import JUDGED, Project

STRONG = {"name": "exact", "type": "equals", "value": "Lamps cost 40 EUR."}
WEAK = {"name": "weak", "type": "contains", "value": "lamp", "case_sensitive": False}
NEGATED = {"name": "no-blame", "type": "contains", "value": "your fault", "negate": True}


def prices(*evaluators: dict[str, Any], name: str = "price", answer: str = "Lamps cost 40 EUR.") -> dict[str, Any]:
    expected = [{"role": "assistant", "content": answer}]
    return {"id": name, "expected_messages": expected, "evaluators": [*evaluators]}


BROKEN = prices({**STRONG, "value": "Lamps cost 45 EUR."}, name="broken")


def proof(project: Project, *flags: str, code: int = 0) -> Any:
    done = project.run("prove", "evals", *flags)
    assert done.code == code, done
    return project.json(".agentv/proof.json")


def test_no_target_is_asked(project: Project) -> None:
    project.documents(prices(STRONG), targets=(tool("touch ../asked"),))
    assert proof(project)["summary"]["killed"] > 0
    assert not project.path("asked").exists()


def test_cases_of_several_targets_are_proven_once(project: Project) -> None:
    others = tuple({"name": name, "provider": "mock"} for name in ("default", "a", "b"))
    project.documents(prices(STRONG), targets=others)
    assert [each["id"] for each in proof(project, "--target", "a", "--target", "b")["cases"]] == ["price"]


@pytest.mark.parametrize(
    ("gate", "flags", "reasons"),
    [
        ({}, [], []),
        ({}, ["--min-kill-rate", "0.9"], ["kill rate 66.6% is below 90.0%"]),
        ({}, ["--min-kill-rate", "0.5"], []),
        ({}, ["--null-agents", "forbid"], ["1 of 2 cases can be passed by doing nothing"]),
        ({"min_kill_rate": 0.9}, [], ["evals/x.yaml: kill rate 66.6% is below 90.0%"]),
        ({"min_kill_rate": 0.9}, ["--min-kill-rate", "0.1"], []),
        ({"null_agents": "forbid"}, [], ["evals/x.yaml: 1 of 2 cases can be passed by doing nothing"]),
        ({"null_agents": "forbid"}, ["--null-agents", "report"], []),
    ],
)
def test_gate(gate: dict[str, Any], flags: list[str], reasons: list[str], project: Project) -> None:
    project.documents(prices({**WEAK, "value": "EUR"}), prices(NEGATED, name="other", answer="Ask us."), gate=gate)
    found = proof(project, *flags, code=1 if reasons else 0)
    assert found["gate"] == {"passed": not reasons, "reasons": reasons}


def test_the_gate_of_a_file_is_for_its_own_cases(project: Project) -> None:
    project.documents(prices(STRONG), name="evals/a.yaml", gate={"min_kill_rate": 1.0, "null_agents": "forbid"})
    project.documents(prices(NEGATED), name="evals/b.yaml")
    assert proof(project)["gate"]["passed"]


def test_a_reference_answer_that_fails_is_an_error(project: Project) -> None:
    project.documents(BROKEN)
    found = proof(project, code=1)
    assert found["gate"]["reasons"] == ["1 reference answer fails its evaluators"]
    assert [(each["rule"], each["severity"]) for each in found["findings"]] == [("AV402", "error")]


def test_a_gate_without_any_mutant_passes_and_says_so(project: Project) -> None:
    project.documents({"evaluators": [STRONG]})
    done = project.run("prove", "evals", "--min-kill-rate", "1")
    assert done.code == 0
    assert "1 case has no reference answer to damage" in done.out
    project.documents(prices({**WEAK, "value": "yes"}, answer="yesterday"))
    assert "no mutants: nothing in the reference answers could be damaged\n1 case has nothing to damage" in (
        project.run("prove", "evals").out
    )


def test_without_any_case_nothing_is_proven_and_reports_say_so(project: Project) -> None:
    project.documents(prices(STRONG))
    project.run("compile", "evals", "--out", "plan.json")
    done = project.run("prove", "evals", "--only-changed", "plan.json")
    assert (done.code, done.out.splitlines()[0]) == (0, "no case to prove")
    project.eval("--html", "r.html", "--markdown", "r.md", "--proof", ".agentv/proof.json")
    assert "Proof: no case to prove" in project.text("r.md")
    assert "<li>no case to prove</li>" in project.text("r.html")


def test_skipped_cases_are_counted_in_reports(project: Project) -> None:
    project.documents(prices(STRONG) | {"skip": "later"})
    assert proof(project)["summary"]["skipped"] == 1
    project.eval("--markdown", "r.md", "--proof", ".agentv/proof.json")
    assert "- 1 case is skipped" in project.text("r.md")


def test_only_changed_cases_are_proven_with_answers_of_all(project: Project) -> None:
    project.documents(prices(STRONG), prices(WEAK, name="other", answer="Ask us."))
    project.run("compile", "evals", "--out", "plan.json")
    project.documents(prices(STRONG), prices({**WEAK, "value": "cost"}, name="other", answer="Ask us what they cost."))
    done = project.run("prove", "evals", "--only-changed", "plan.json")
    assert "1 of 2 cases left out: unchanged since plan.json" in done.err
    (case,) = project.json(".agentv/proof.json")["cases"]
    assert [each["answer"] for each in case["null_agents"] if each["outcome"] == "passes"] == ["Lamps cost 40 EUR."]
    assert project.run("prove", "plan.json", "--only-changed", "plan.json").code == 0


def test_another_answer_stays_the_same_when_other_cases_change(project: Project) -> None:
    project.documents(prices(WEAK), prices(STRONG, name="other", answer="lamp 1"), prices(STRONG, name="last"))
    first = proof(project, code=1)["cases"][0]
    project.documents(prices(WEAK), prices(WEAK, name="other", answer="lamp 1"), prices(STRONG, name="last"))
    assert proof(project)["cases"][0] == first


def test_answers_stay_the_same_when_only_settings_change(project: Project) -> None:
    many = prices(WEAK, answer=" and ".join(f"lamp {number}" for number in range(20)))
    project.documents(many, *(prices(STRONG, name=f"other-{n}", answer=f"lamp x{n}") for n in range(9)))
    first = proof(project, code=1)["cases"][0]
    project.documents(
        many | {"tags": ["new"], "execution": {"timeout_seconds": 7}},
        *(prices(STRONG, name=f"other-{n}", answer=f"lamp x{n}") for n in range(9)),
        targets=(gpt("http://127.0.0.1:1"),),
    )
    assert proof(project, code=1)["cases"][0] | {"line": first["line"]} == first


def test_what_the_gate_accepts_is_not_tried(project: Project) -> None:
    case = prices({**WEAK, "value": "cost"}, answer="Lamps cost 40 EUR. Chairs cost 50 EUR.")
    project.documents(case, gate={"accept": ["sentence-order", "first-sentence", "refusal"], "null_agents": "forbid"})
    (found,) = proof(project)["cases"]
    assert {"sentence-order", "first-sentence"}.isdisjoint(each["operator"] for each in found["survivors"])
    assert found["left_out"] == [
        {"name": each, "reason": "accepted"} for each in ("sentence-order", "first-sentence", "refusal")
    ]
    project.documents(case, gate={"accept": ["sentence-ordre"]})
    done = project.run("validate", "evals")
    assert (done.code, "did you mean 'sentence-order'?" in done.out + done.err) == (1, True), done


def test_what_a_case_accepts_is_not_tried_there(project: Project) -> None:
    case = prices({**WEAK, "value": "cost"}, answer="Lamps cost 40 EUR. Chairs cost 50 EUR.")
    reasons = {"unit": "Any currency will do.", "number": "Prices change."}
    project.documents({**case, "accept": reasons}, {**case, "id": "other"}, gate={"accept": ["refusal"]})
    accepting, other = proof(project)["cases"]
    assert [each["operator"] for each in other["survivors"] if each["operator"] in reasons]
    assert {each["operator"] for each in accepting["survivors"]}.isdisjoint(reasons)
    accepted = [{"name": name, "reason": f"accepted: {reason}"} for name, reason in reasons.items()]
    assert accepting["left_out"] == [{"name": "refusal", "reason": "accepted"}, *accepted]
    assert other["left_out"] == [{"name": "refusal", "reason": "accepted"}]


def test_the_seed_chooses_mutants(project: Project) -> None:
    project.documents(prices(WEAK, answer=" and ".join(f"lamp {number}" for number in range(20))))
    first, again, other = (proof(project, "--seed", seed) for seed in ("0", "0", "7"))
    assert first == again
    assert first["cases"][0]["survivors"] != other["cases"][0]["survivors"]


def test_what_depends_on_a_judge_is_undecided(project: Project) -> None:
    project.documents(
        prices(JUDGED, {**NEGATED, "weight": 9}, name="hardly"),
        prices(JUDGED, STRONG, name="in-part"),
        prices({**JUDGED, "required": True}, {**WEAK, "weight": 99}, name="required"),
    )
    hardly, in_part, required = proof(project)["cases"]
    assert {each["outcome"] for each in hardly["null_agents"]} == {"passes"}
    assert {each["outcome"] for each in in_part["null_agents"]} == {"caught"}
    assert {each["outcome"] for each in required["null_agents"]} == {"caught"}
    assert (in_part["reference"], in_part["killed"] == in_part["mutants"]) == ("undecided", True)
    assert (required["survived"], required["killed"]) == (0, 0)


def test_limits_are_met_and_say_nothing(project: Project) -> None:
    limits = [{"type": "latency", "max_ms": 1}, {"type": "cost", "max_usd": 0}, {"type": "tool_calls", "max": 0}]
    needed = {"name": "long", "type": "token_usage", "min_output": 50, "max_total": 60, "required": True}
    project.documents(prices(STRONG, *limits, needed))
    (case,) = proof(project)["cases"]
    assert case["reference"] == "passes"
    assert [each["state"] for each in case["evaluators"][1:]] == ["untried"] * 4


def test_formats(project: Project) -> None:
    project.documents(BROKEN, prices(NEGATED, name="other", answer="Ask us."))
    as_json = project.run("prove", "evals", "--format", "json")
    assert as_json.out == project.text(".agentv/proof.json")
    sarif = json.loads(project.run("prove", "evals", "--format", "sarif").out)
    (run,) = sarif["runs"]
    rules = [each["id"] for each in run["tool"]["driver"]["rules"]]
    assert all(rules[each["ruleIndex"]] == each["ruleId"] for each in run["results"])
    first, *_ = project.run("prove", "evals", "--format", "github").out.splitlines()
    assert first.startswith("::error file=evals/x.yaml,line=1,")
    quiet = project.run("prove", "evals", "--quiet")
    assert (quiet.out.count("\n"), quiet.out[:18], quiet.err) == (1, "prove: not passed;", "")
    assert "evals/x.yaml:1" in project.run("prove", "evals", "--verbose").out


@pytest.mark.parametrize("mark", [".git/config", ".agentv/config.yaml"])
def test_the_folder_above_with_evaluations_is_named(mark: str, tmp_path: Path) -> None:
    project = Project(tmp_path)
    project.documents(prices(STRONG))
    project.write({mark: "", "src/x.txt": ""})
    done = Project(project.path("src")).run("prove")
    assert (done.code, f"they are in '{project.folder}': run the command there" in done.err) == (2, True), done


def test_exit_codes(project: Project) -> None:
    project.documents(prices(STRONG))
    assert project.run("prove", "evals", "--tag", "none").code == 3
    for out in ("evals/x.yaml", "evals", "targets.yaml/x.json", "-"):
        project.refuses("prove", "evals", "--out", out)
    project.write({"evals/y.yaml": "$schema: agentv-eval-v2\nevalcases: []\n"})
    assert project.run("prove", "evals").code == 2


def test_what_init_writes_is_proven(project: Project) -> None:
    assert project.run("init", "--yes").code == 0
    summary = proof(project, "--min-kill-rate", "1", "--null-agents", "forbid")["summary"]
    assert (summary["killed"], summary["survived"]) == (3, 0)


def test_cases_of_data_rows_are_at_their_rows(project: Project) -> None:
    project.documents({**prices(WEAK), "cases_from": {"file": "rows.csv"}})
    project.write({"evals/rows.csv": "item\nlamp\nchair\n"})
    found = proof(project)
    assert [(each["suite"], each["path"], each["line"]) for each in found["cases"]] == [
        ("evals/x.yaml", "evals/rows.csv", 2),
        ("evals/x.yaml", "evals/rows.csv", 3),
    ]
    assert [(each["path"], each["line"], each["rule"], each["cases"]) for each in found["findings"]] == [
        ("evals/x.yaml", 1, "AV403", 2)
    ]
    assert found["findings"][0]["message"].endswith("; and 1 more case of this template")


def test_changes_are_those_of_the_case_of_the_finding(project: Project) -> None:
    for number in "12":
        template = {**prices(WEAK, answer=f"{{{{ item }}}} costs {number}0 EUR"), "cases_from": {"file": "rows.csv"}}
        project.documents(template, name=f"evals/{number}.yaml")
    project.write({"evals/rows.csv": "item\nlamp\n"})
    out = project.run("prove", "evals").out
    one, two = out.split("evals/2.yaml", 1)
    assert ("-lamp costs 10 EUR" in one, "-lamp costs 20 EUR" in one) == (True, False)
    assert ("-lamp costs 10 EUR" in two, "-lamp costs 20 EUR" in two) == (False, True)


def judged(project: Project, target: dict[str, Any], *evaluators: dict[str, Any]) -> None:
    judge = {**target, "name": "judge"}
    project.documents(
        prices({**JUDGED, "required": True}, *evaluators), targets=({"name": "default", "provider": "mock"}, judge)
    )


def test_judges_are_asked_only_if_wanted(project: Project) -> None:
    judged(project, {"provider": "mock", "response": '{"score": 1}'})
    assert proof(project)["cases"][0]["proven"] is False
    (case,) = proof(project, "--judges", "live")["cases"]
    assert (case["proven"], case["reference"], case["survived"]) == (True, "passes", case["mutants"])
    assert {each["outcome"] for each in case["null_agents"]} == {"passes"}
    assert [each["state"] for each in case["evaluators"]] == ["vacuous"]


def test_replies_of_judges_are_recorded_and_replayed(project: Project) -> None:
    judged(project, {**tool("echo asked >> ../asked; echo '{\"score\": 1}'"), "name": "judge"}, STRONG)
    live = proof(project, "--judges", "live", "--record", "recordings")
    asked = project.text("asked").count("\n")
    replayed = proof(project, "--replay", "recordings")
    assert project.text("asked").count("\n") == asked
    assert {**live, "judges": "replay"} == replayed


def test_a_judge_that_is_broken_is_an_error(project: Project) -> None:
    judged(project, {"provider": "mock", "response": "no JSON"})
    done = project.run("prove", "evals", "--judges", "live", "--quiet")
    error = "judge 'judge' did not reply in the required form in 3 tries; its last reply is 'no JSON'"
    found = project.json(".agentv/proof.json")
    assert (done.code, done.err.strip()) == (4, f"judges did not score 9 of 9 answers: {error}")
    assert (found["summary"]["failed_judgements"], found["summary"]["judge_error"]) == (9, error)
    assert error in project.run("prove", "evals", "--judges", "live", "--verbose").out


def test_the_gate_names_what_it_counts_although_a_judgement_is_missing(project: Project) -> None:
    judged(project, tool("grep -q 'I don.t know' {PROMPT_FILE} && exit 3; echo '{\"score\": 1}'"))
    done = project.run("prove", "evals", "--judges", "live", "--null-agents", "forbid")
    found = project.json(".agentv/proof.json")
    outcomes = {each["agent"]: each["outcome"] for each in found["cases"][0]["null_agents"]}
    assert (outcomes["dont-know"], outcomes["empty"]) == ("undecided", "passes")
    assert (done.code, found["summary"]["failed_judgements"]) == (1, 1)
    assert {each["rule"] for each in found["findings"]} == {"AV401", "AV403"}


def test_what_a_judge_cannot_score_is_undecided(project: Project) -> None:
    judged(project, {"provider": "mock", "response": "no JSON"})
    (case,) = proof(project, "--judges", "live", code=4)["cases"]
    assert (case["reference"], case["killed"], case["survived"]) == ("undecided", 0, 0)
    assert {each["outcome"] for each in case["null_agents"]} == {"undecided"}
    project.path("recordings").mkdir()
    assert proof(project, "--replay", "recordings", code=4)["cases"][0]["reference"] == "undecided"


def test_judges_stop_at_the_budget(project: Project) -> None:
    with chat_api(says('{"score": 1}')) as api:
        judged(project, gpt(api.base_url, model=PRICED))
        (case,) = proof(project, "--judges", "live", "--max-cost", f"{2 * ONE_ANSWER_USD:.9f}")["cases"]
        assert len(api.requests) == 2
    assert sorted({each["outcome"] for each in case["null_agents"]}) == ["passes", "undecided"]


@pytest.mark.parametrize(
    "flags",
    [
        ["--judges", "replay"],
        ["--judges", "live", "--replay", "."],
        ["--record", "recordings"],
        ["--max-cost", "1"],
        ["--replay", "gone"],
    ],
)
def test_options_of_judges_that_contradict_each_other(flags: list[str], project: Project) -> None:
    project.documents(prices(STRONG))
    assert project.run("prove", "evals", *flags).code == 2


def test_a_missing_key_of_a_judge_is_named_with_its_place(project: Project) -> None:
    judged(project, {"provider": "openai", "model": "gpt-4o", "api_key": "${{ GONE_KEY }}"})
    project.refuses("prove", "evals", "--judges", "live", error="targets.yaml:1: target 'judge' needs environment")
    assert proof(project)["judges"] == "skip"


def test_a_reference_answer_that_a_script_cannot_read_is_named_with_the_reason(project: Project) -> None:
    project.documents(prices({"name": "reads", "type": "code", "script": ["sh", "-c", "echo no file >&2; exit 3"]}))
    (finding,) = proof(project, code=1)["findings"]
    assert finding["message"].startswith("the reference answer cannot be scored by 'reads': the script exited")
    assert "no file" in finding["message"]
    assert [each["state"] for each in project.json(".agentv/proof.json")["cases"][0]["evaluators"]] == ["untried"]


def test_a_case_that_no_evaluator_scores_is_not_proven(project: Project) -> None:
    silent = {"name": "reads", "type": "code", "script": ["no-such-program"]}
    without = {"id": "silent", "expected_messages": [], "evaluators": [silent]}
    project.documents(without, prices(NEGATED, name="other", answer="Ask us."))
    found = proof(project)
    assert (found["summary"]["cases"], found["summary"]["unproven"]) == (2, 1)
    (finding,) = (each for each in found["findings"] if each["rule"] == "AV407")
    assert finding["message"].startswith("not proven: no evaluator scored an answer: ")
    assert "no-such-program" in finding["message"]
    assert "1 of 1 case can be passed by doing nothing" in project.run("prove", "evals").out


def test_the_calls_of_several_trajectories_are_made(project: Project) -> None:
    calls = [
        {"type": "tool_trajectory", "name": name, "mode": "any_order", "minimums": {name: least}, "required": True}
        for name, least in (("read", 1), ("write", 2))
    ]
    project.documents(prices(STRONG, *calls))
    assert proof(project)["findings"] == []


@pytest.mark.parametrize(
    ("pattern", "rules"),
    [(r"\A[^<>]*\Z", set()), (r"(?s)\A.{0,300}\Z", set()), (".*", {"AV405"}), (r"[\s\S]*", {"AV405"})],
)
def test_a_pattern_of_what_is_allowed_is_not_vacuous(pattern: str, rules: set[str], project: Project) -> None:
    project.documents(prices(STRONG | {"required": True}, {"name": "form", "type": "regex", "value": pattern}))
    findings = proof(project)["findings"]
    assert {each["rule"] for each in findings} == rules
    assert all("anchor the pattern" in each["hint"] for each in findings)


def test_a_score_that_no_evaluator_passes_but_the_case_does(project: Project) -> None:
    near = {"name": "near", "type": "similarity", "metric": "token_f1", "min_score": 0.95}
    case = prices(near, answer="You can return a lamp within 30 days.")
    question = {"role": "user", "content": "How long can I return a lamp? You can within days."}
    project.documents({**case, "input_messages": [question], "execution": {"threshold": 0.5}})
    first = next(each for each in proof(project)["findings"] if each["rule"] == "AV401")
    assert "no evaluator of the answer passes, but the score is high enough" in first["message"]
    assert first["hint"] == "the score is high enough without near: set 'required: true' there"


def test_equal_evaluators_are_one_finding(project: Project) -> None:
    project.documents(prices(STRONG, STRONG | {"name": "again"}))
    (finding,) = proof(project)["findings"]
    assert finding["message"] == "'exact' and 'again' always agree, and neither changes a verdict alone"


def test_a_script_that_crashes_is_found_with_its_reason(project: Project) -> None:
    read = "import json, sys\nanswer = json.load(sys.stdin)['candidate_answer']\n"
    project.write(
        {"evals/score.py": f"{read}print(json.dumps({{'score': 1}}) if answer else open(__file__ + '.gone'))\n"}
    )
    project.documents(prices({"name": "reads", "type": "code", "script": ["score.py"]}))
    (finding,) = [each for each in proof(project)["findings"] if each["rule"] == "AV404"]
    assert finding["message"].startswith("evaluator 'reads' cannot score the answers of empty: the script exited")
    assert finding["message"].endswith("No such file or directory: 'evals/score.py.gone'")
    assert str(project.folder) not in project.text(".agentv/proof.json")


def test_the_same_bytes_in_every_process(project: Project) -> None:
    project.documents(prices(WEAK, NEGATED), prices(STRONG, STRONG | {"name": "again"}, name="other", answer="[1, 2]"))
    proofs = []
    for number in "12":
        project.env["PYTHONHASHSEED"] = number
        assert project.process("prove", "evals", "--workers", number).code == 1
        proofs.append(project.text(".agentv/proof.json"))
    assert proofs[0] == proofs[1]


def test_progress_is_shown(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agentv_ci.cli.progress.PLAIN_INTERVAL_S", 0.01)
    slow = {"name": "slow", "type": "code", "script": ["sh", "-c", "sleep 0.05; echo '{\"score\": 0}'"]}
    project.documents(prices(WEAK), prices(slow, name="slow"))
    done = project.run("prove", "evals")
    assert "1/2 done in 0:0" in done.err
    assert ", 1 running, 0 passed, 1 failed, 0 errors" in done.err
