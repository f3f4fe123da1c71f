"""`agentv-ci compare` and `baseline`, and `--baseline` of other commands."""

from __future__ import annotations

import json
import math
import random
import re
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from agentv_ci.contracts.base import Verdict
from agentv_ci.contracts.results import OutputMessage, ResultRow
from agentv_ci.ledger.lines import file_of
from agentv_ci.results.files import form, form_of
from tests.servers.chat_api import answers, chat_api, says
from tests.servers.http import Reply
from tests.support.evals import gpt, mock, tool
from tests.support.ledgers import case_line
from tests.support.projects import GREETS, HELLO, Project
from tests.support.runs import case, row, rows_of

REPEATED: Sequence[dict[str, list[int]]] = (
    {"passed": [1], "missed": [1]},
    {"passed": [], "missed": []},
    {"passed": [1, 1], "missed": []},
)
IDS = {
    "escape": "a\x1b]0;owned\x07\x1b[2Jb",
    "runner": "##[error]owned",
    "command": "a\n::error::owned",
    "return": "a\r::error::owned",
    "direction": "a\u202egpj.exe",
    "unicode": "naïve-тест-测试-😀",
}
BASELINE = '"$schema": "agentv-baseline-v1"'


def store(project: Project, name: str, *rows: ResultRow) -> None:
    project.write({name: "".join(map(form(form_of(Path(name))).encode, rows))})


def accepted(project: Project, *rows: ResultRow) -> Any:
    """Write `base.jsonl` and its baseline `base.json`; return the baseline."""
    store(project, "base.jsonl", *rows)
    assert project.run("baseline", "accept", "base.jsonl", "--out", "base.json").code == 0
    return project.json("base.json")


def compared(project: Project, base: str, head: str, *flags: str) -> dict[str, Any]:
    """Compare in both formats, which must agree; returns the JSON."""
    as_text = project.run("compare", base, head, *flags)
    as_json = project.run("compare", base, head, "--format", "json", *flags)
    found: dict[str, Any] = json.loads(as_json.out)
    assert found["exit_code"] == as_json.code == as_text.code
    assert as_json.err == as_text.err == ""
    lines = {
        0: {"compare: no regression shown", "compare: better"},
        1: {"compare: worse"},
        4: {"compare: no case has a verdict on both sides"},
        6: {"compare: undecided"},
    }
    assert lines[as_text.code] & {*as_text.out.splitlines()}
    assert (as_text.code == 1) == bool(found["reasons"])
    assert (as_text.code == 6) == bool(found["undecided"])
    return found


def changes(found: dict[str, Any]) -> dict[str, int]:
    return {change: number for change, number in found["counts"].items() if number}


def is_inert(text: str) -> bool:
    """Whether a text commands neither a terminal nor the runner of a workflow."""
    return (
        not any(line.strip().startswith("::") for line in text.splitlines())
        and "##[" not in text
        and all(c.isprintable() or c in "\n\t" for c in text)
    )


class TestFiles:
    @pytest.mark.parametrize(
        "content",
        [
            *(b"", b"\x00" * 4096, bytes(range(256)), b"null", b"[]", b"{}", b"[" * 200_000, "ü".encode("utf-16")),
            b'{"$schema": "agentv-baseline-v2", "cases": []}',
            b'{"$schema": ["agentv-baseline-v1"]}',
            f"{{{BASELINE}}}".encode(),
            f'{{{BASELINE}, "measured": "x", "plan_digest": null, "cases": []}}'.encode(),
            b'{"a": ' + b"9" * 10_000 + b"}",
        ],
        ids=lambda content: str(content[:24]),
    )
    def test_file_that_is_not_a_baseline_is_an_error(self, content: bytes, project: Project) -> None:
        project.documents("a")
        store(project, "good.jsonl", row())
        project.path("bad.json").write_bytes(content)
        for arguments in (
            ["compare", "bad.json", "good.jsonl"],
            ["compare", "good.jsonl", "bad.json"],
            ["report", "good.jsonl", "--baseline", "bad.json"],
            ["eval", "evals", "--baseline", "bad.json", "--out", "r.jsonl"],
        ):
            project.refuses(*arguments, error="bad.json")

    @pytest.mark.parametrize(
        ("cases", "error"),
        [
            *(([{"mean": value}], r"cases\.0\.|is not valid JSON") for value in (math.nan, math.inf, 1.5, "0.5", True)),
            *(([{"passed": value}], r"cases\.0\.passed") for value in ([0], ["1"], None)),
            *(([{"id": value}], r"cases\.0\.id|is not valid JSON") for value in ("", "\ud800")),
            *(([{"verdict": value}], r"cases\.0\.verdict") for value in ("error", "flaky")),
            *(([{key: value}], rf"cases\.0\.{key}") for key, value in (("digest", "x"), ("target", None), ("more", 1))),
            *(([trials], "has no trials or a repeated one") for trials in REPEATED),
            ([{}, {}], "appears twice"),
        ],
    )
    def test_invalid_baseline_is_an_error(self, cases: list[dict[str, Any]], error: str, project: Project) -> None:
        document = accepted(project, row("pass"))
        document["cases"] = [{**document["cases"][0], **each} for each in cases]
        project.write({"base.json": json.dumps(document)})
        done = project.run("compare", "base.json", "base.jsonl")
        assert (done.code, bool(re.search(error, done.err))) == (2, True)

    @pytest.mark.parametrize(
        ("make", "nothing"),
        [
            (lambda bad, good: None, 2),
            (lambda bad, good: bad.mkdir(), 2),
            (lambda bad, good: bad.touch(), 3),
            (lambda bad, good: bad.write_text(good[:-40]), 2),
            (lambda bad, good: bad.write_text('{"level": "info"}\n'), 2),
            (lambda bad, good: bad.symlink_to("nowhere"), 2),
        ],
        ids=["missing", "folder", "empty", "torn", "foreign", "dangling"],
    )
    def test_invalid_results_are_an_error(
        self, make: Callable[[Path, str], object], nothing: int, project: Project
    ) -> None:
        project.documents("a")
        store(project, "good.jsonl", row())
        make(project.path("bad.jsonl"), project.text("good.jsonl"))
        project.refuses("compare", "bad.jsonl", "good.jsonl", code=nothing)
        project.refuses("compare", "good.jsonl", "bad.jsonl", code=nothing)
        project.refuses("baseline", "accept", "bad.jsonl", code=nothing)
        project.refuses("check", "bad.jsonl", "--validator", "structural_consistency", code=nothing)
        project.refuses("report", "good.jsonl", "--baseline", "bad.jsonl")
        project.refuses("eval", "evals", "--baseline", "bad.jsonl", "--out", "r.jsonl")


class TestCompare:
    @pytest.mark.parametrize("color", ["always", "never"])
    def test_json_has_no_colors(self, color: str, project: Project) -> None:
        store(project, "b.jsonl", *rows_of(case(trials=5), "ppppp"))
        store(project, "h.jsonl", *rows_of(case(trials=5), "fffff"))
        project.env["NO_COLOR"] = "1"
        assert ("\x1b[" in project.run("compare", "b.jsonl", "h.jsonl", "--color", color).out) == (color == "always")
        done = project.run("compare", "b.jsonl", "h.jsonl", "--format", "json", "--color", color)
        assert json.loads(done.out)["exit_code"] == 1

    @pytest.mark.parametrize("name", IDS)
    def test_ids_cannot_be_commands(self, name: str, project: Project) -> None:
        store(project, "b.jsonl", row("pass", of=case(IDS[name])))
        store(project, "h.jsonl", row("fail", of=case(IDS[name])))
        for arguments in (
            ["compare", "b.jsonl", "h.jsonl"],
            ["compare", "h.jsonl", "b.jsonl"],
            ["report", "h.jsonl", "--baseline", "b.jsonl"],
        ):
            printed = project.run(*arguments).out
            assert is_inert(printed)
            assert name != "unicode" or arguments[1] == "h.jsonl" or IDS[name] in printed
        assert compared(project, "h.jsonl", "b.jsonl")["cases"][0]["id"] == IDS[name]

    @pytest.mark.parametrize(
        ("base", "head", "flags", "code", "change"),
        [
            ("e", "p", [], 4, "not enough evidence"),
            ("p", "e", [], 4, "not enough evidence"),
            ("p", "f", [], 6, "regressed"),
            ("f", "p", [], 0, "improved"),
            ("p", "p", [], 0, "unchanged"),
            ("pp", "ff", [], 6, "not enough evidence"),
            ("pppp", "ffff", [], 1, "regressed"),
            ("pppp", "ffff", ["--confidence", "0.99"], 6, "not enough evidence"),
            ("ppppp", "fffff", [], 1, "regressed"),
            ("fffff", "ppppp", [], 0, "improved"),
            ("p", "fffff", [], 6, "not enough evidence"),
            ("eep", "eef", [], 6, "not enough evidence"),
        ],
    )
    def test_change_of_one_case(
        self, base: str, head: str, flags: list[str], code: int, change: str, project: Project
    ) -> None:
        for name, verdicts in (("b.jsonl", base), ("h.jsonl", head)):
            store(project, name, *rows_of(case(trials=len(verdicts)), verdicts))
        found = compared(project, "b.jsonl", "h.jsonl", *flags)
        assert (found["exit_code"], changes(found)) == (code, {change: 1})

    @pytest.mark.parametrize(
        "measured", ["0001-01-01T00:00:00+23:59", "9999-12-31T23:59:59-23:59", "yesterday", "", "2030"]
    )
    def test_any_time_of_measurement_is_accepted(self, measured: str, project: Project) -> None:
        project.write({"base.json": json.dumps({**accepted(project, row()), "measured": measured})})
        found = compared(project, "base.json", "base.jsonl")
        assert found["exit_code"] == 0
        assert all("days old" in warning for warning in found["warnings"])

    def test_many_regressions_are_summarized(self, project: Project) -> None:
        cases = [case(f"case-{number}", line=number) for number in range(1, 101)]
        store(project, "b.jsonl", *(row("pass", of=each) for each in cases))
        store(project, "h.jsonl", *(row("fail", of=each) for each in cases))
        done = project.run("compare", "b.jsonl", "h.jsonl")
        assert (done.code, "100 regressed" in done.out) == (1, True)
        assert len(done.out.splitlines()) < 30

    def test_lost_verdict_is_not_a_pass(self, project: Project) -> None:
        store(project, "b.jsonl", *(row(each, of=case(each)) for each in ("pass", "fail")))
        store(project, "h.jsonl", row("pass", of=case("pass")), row("error", of=case("fail")))
        done = project.run("compare", "b.jsonl", "h.jsonl")
        assert (done.code, done.out.splitlines()[-1]) == (4, "compare: verdict lost for 1 case")


class TestIncompleteRuns:
    @pytest.mark.parametrize(
        ("flags", "error"),
        [
            (["--shard", "1/2"], "'r.jsonl' is shard 1 of 2; merge the shards with `report --out`"),
            (["--fail-fast"], "'r.jsonl' is from a run that was stopped (fail-fast); finish it with --resume"),
            (["--dry-run"], "cannot compare a dry run"),
        ],
    )
    def test_incomplete_run_is_not_compared(self, flags: list[str], error: str, project: Project) -> None:
        project.documents({"id": "a", "evaluators": [{**HELLO, "value": "Bye"}]}, "b")
        project.eval(*flags)
        for arguments in (["compare", "r.jsonl", "r.jsonl"], ["baseline", "accept", "r.jsonl"]):
            project.refuses(*arguments, error=error)

    def test_rows_must_match_the_run_report(self, project: Project) -> None:
        project.documents("a", "b")
        assert project.eval().code == 0
        project.store("r.jsonl", project.rows()[0])
        for arguments in (["compare", "r.jsonl", "r.jsonl"], ["baseline", "accept", "r.jsonl"]):
            project.refuses(*arguments, error="r.jsonl' has 1 row; its run report expects 2")
        project.path("r.report.json").unlink()
        accepts = project.run("baseline", "accept", "r.jsonl")
        assert accepts.code == 0
        assert "warning: the run report of 'r.jsonl' is missing: the run may be incomplete\n" in accepts.err


class TestBaselineOfARun:
    """`eval --baseline` and `report --baseline`, in a run whose gate would pass otherwise."""

    IDS = ("case-0", "case-1", "case-2", "case-3")

    @pytest.fixture(autouse=True)
    def worse(self, project: Project) -> None:
        """A baseline of a run that passed, and documents that no longer pass."""
        project.documents(*self.IDS, repeat=5, gate={"min_pass_rate": 0})
        assert project.run("eval", "evals", "--out", "main.jsonl").code == 0
        assert project.run("baseline", "accept", "main.jsonl", "--out", "main.json").code == 0
        project.targets({**GREETS, "response": "Bye"})

    @pytest.mark.parametrize("base", ["main.json", "main.jsonl"])
    def test_regression_fails_the_gate(self, base: str, project: Project) -> None:
        assert project.eval().code == 0
        assert project.eval("--baseline", base).code == 1
        reason = f"against {base}: 4 cases got worse"
        assert project.json("r.report.json")["gate"]["reasons"][0].startswith(reason)
        assert project.run("compare", base, "r.jsonl").code == 1
        done = project.run("report", "r.jsonl", "--baseline", base)
        assert (done.code, reason in done.out) == (1, True)
        again = project.run("report", "r.jsonl")
        assert (again.code, reason in again.out) == (1, True)

    def test_shards_are_compared_when_they_are_merged(self, project: Project) -> None:
        for index in (1, 2):
            shard = ["--shard", f"{index}/2", "--out", f"{index}.jsonl", "--baseline", "main.json"]
            done = project.run("eval", "evals", *shard)
            assert (done.code, "removed" in done.out) == (0, False)
        forgotten = project.run("report", "1.jsonl", "2.jsonl")
        assert (forgotten.code, "set --baseline" in " ".join(forgotten.out.split())) == (1, True)
        merged = project.run("report", "1.jsonl", "2.jsonl", "--baseline", "main.json", "--out", "all.jsonl")
        assert merged.code == 1
        assert "against main.json: 4 cases got worse" in project.json("all.report.json")["gate"]["reasons"][0]

    def test_dry_run_is_not_compared(self, project: Project) -> None:
        assert project.eval("--dry-run", "--baseline", "main.json").code == 0
        assert project.json("r.report.json")["comparison"] is None

    def test_resumed_run_is_compared_as_a_whole(self, project: Project) -> None:
        assert project.eval("--eval-id", "case-0").code == 0
        assert project.run("eval", "evals", "--resume", "r.jsonl", "--baseline", "main.json").code == 1
        assert project.json("r.report.json")["comparison"]["counts"]["regressed"] == 4

    def test_stopped_run_is_compared_as_far_as_it_came(self, project: Project) -> None:
        assert project.eval("--fail-fast", "--baseline", "main.json").code == 1
        found = project.json("r.report.json")["comparison"]
        assert found["compared"] == 1

    def test_unchanged_cases_cannot_regress(self, project: Project) -> None:
        assert project.run("compile", "evals", "--out", "plan.json").code == 0
        assert project.eval("--only-changed", "plan.json", "--baseline", "main.json").code == 0
        assert project.json("r.report.json")["gate"]["verdict"] == "nothing"

    def test_nothing_compared_is_no_pass(self, project: Project) -> None:
        project.documents("a", "b")
        assert project.run("eval", "evals", "--out", "main.jsonl").code == 0
        project.documents(*({"id": name, "skip": "later"} for name in "ab"), "c")
        assert project.eval("--baseline", "main.jsonl").code == 4
        assert project.run("compare", "main.jsonl", "r.jsonl").code == 4
        reason = "against main.jsonl: no case has a verdict on both sides"
        assert project.json("r.report.json")["gate"]["reasons"] == [reason]
        assert project.eval("--baseline", "main.jsonl", "--eval-id", "c", "--out", "c.jsonl").code == 0

    def test_baseline_of_other_cases_fails_unless_cases_are_selected(self, project: Project) -> None:
        project.documents("new", *self.IDS)
        store(project, "other.jsonl", row(of=case("other", suite="evals/other.yaml")))
        done = project.eval("--baseline", "other.jsonl")
        assert (done.code, "against other.jsonl: " in done.out) == (1, True)
        done = project.eval("--baseline", "main.json", "--eval-id", "new")
        assert done.code == 0
        assert "nothing was compared" in done.out


def test_baseline_has_cases_that_crash_but_none_without_a_verdict(project: Project) -> None:
    """Commands and servers that fail, and not only rows that say so."""
    down = mock(name="down", error={"kind": "server", "message": "HTTP 503"})
    project.documents("a", *({"id": each, "execution": {"target": each}} for each in ("fails", "down")), max_retries=0)
    project.targets(GREETS, tool("exit 3", name="fails"), down)
    assert project.eval("--max-errors", "2", "--min-pass-rate", "0.5").code == 0
    assert project.run("baseline", "accept", "r.jsonl").err.splitlines() == [
        "warning: 1 case without a verdict skipped",
        "warning: one trial per case: noise cannot be distinguished from change; use --repeat",
    ]
    cases = {case["id"]: case for case in project.json(".agentv/baseline.json")["cases"]}
    assert [*cases] == ["a", "fails"]
    assert [cases["fails"][name] for name in ("verdict", "missed", "crashed")] == ["fail", [1], [1]]
    done = project.run("compare", ".agentv/baseline.json", "r.jsonl")
    assert "warning: 1 of 2 trials of .agentv/baseline.json crashed, and count as failed" in done.out.replace(
        "\n    ", " "
    )


class TestLimits:
    """Limits of what answers may cost and take, in documents and as options."""

    IDS = tuple(f"case-{number}" for number in range(12))

    @pytest.fixture(autouse=True)
    def base(self, project: Project) -> None:
        """A baseline of answers of 110 tokens, and a target that takes 150."""
        usage = {"input_tokens": 100, "output_tokens": 10}
        project.documents(*self.IDS, targets=({**GREETS, "usage": usage},))
        assert project.run("eval", "evals", "--out", "main.jsonl").code == 0
        assert project.run("baseline", "accept", "main.jsonl", "--out", "main.json").code == 0
        project.targets({**GREETS, "usage": {**usage, "input_tokens": 140}})

    @pytest.mark.parametrize("limit", ["10%", "30.5%"])
    def test_option_limits_a_run_and_a_comparison(self, limit: str, project: Project) -> None:
        done = project.eval("--baseline", "main.json", "--max-tokens-increase", limit)
        is_worse = limit == "10%"
        assert (done.code, "tokens 110 → 150; in total +36.4%" in done.out) == (1 if is_worse else 6, True)
        assert project.run("compare", "main.json", "r.jsonl").code == done.code, "the limit of the run"
        assert project.run("compare", "main.json", "r.jsonl", "--max-tokens-increase", "90%").code == 0
        assert project.run("report", "r.jsonl").code == done.code

    def test_limit_of_the_document_holds_when_shards_are_merged(self, project: Project) -> None:
        usage = {"input_tokens": 140, "output_tokens": 10}
        project.documents(*self.IDS, targets=({**GREETS, "usage": usage},), gate={"max_tokens_increase": "10%"})
        for index in (1, 2):
            assert project.run("eval", "evals", "--shard", f"{index}/2", "--out", f"{index}.jsonl").code == 0
        merged = project.run("report", "1.jsonl", "2.jsonl", "--baseline", "main.json", "--out", "all.jsonl")
        assert (merged.code, "at most 10% allowed" in " ".join(merged.out.split())) == (1, True)

    def test_baseline_of_an_earlier_version_lacks_them(self, project: Project) -> None:
        document = project.json("main.json")
        for each in document["cases"]:
            for name in ("tokens", "durations_ms", "task"):
                each.pop(name, None)
        project.write({"old.json": json.dumps(document)})
        done = project.eval("--baseline", "old.json", "--max-tokens-increase", "10%")
        said = " ".join(done.out.split())
        assert done.code == 0
        assert "tokens: no tokens before from target default" in said
        assert "old.json was written by an earlier version, without costs, tokens and times: accept it again" in said

    @pytest.mark.parametrize("value", ["10", "0.1", "-5%", "10 %", "ten%", "", "9" * 310 + "%"])
    def test_limit_that_is_not_a_percentage_is_refused(self, value: str, project: Project) -> None:
        limit = ["--max-cost-increase", value]
        project.refuses("compare", "main.json", "main.jsonl", *limit, error="is not a percentage such as 10%")

    def test_limit_needs_a_baseline_or_a_merge(self, project: Project) -> None:
        limit = ["--max-p95-latency-increase", "10%"]
        project.refuses("eval", "evals", *limit, error="--max-p95-latency-increase requires --baseline")
        assert project.run("eval", "evals", "--shard", "1/2", *limit).code == 0

    def test_limit_of_the_document_without_a_baseline_is_a_warning(self, project: Project) -> None:
        project.documents(*self.IDS, gate={"max_tokens_increase": "10%"})
        said = "limits of increases in 'gate' are not checked without --baseline"
        assert said in project.run("eval", "evals").err
        assert said not in project.run("eval", "evals", "--baseline", "main.json").err

    def test_limit_that_cannot_be_checked_fails(self, project: Project) -> None:
        project.targets(GREETS)
        done = project.eval("--baseline", "main.json", "--max-tokens-increase", "10%")
        reason = "against main.json: a limit was not checked: tokens: no tokens now from target default"
        assert (done.code, reason in " ".join(done.out.split())) == (4, True)
        done = project.run("compare", "main.json", "r.jsonl")
        assert (done.code, "compare: a limit was not checked" in done.out) == (4, True)

    def test_new_baseline_of_a_target_without_figures_is_not_an_old_one(self, project: Project) -> None:
        document = project.json("main.json")
        for each in document["cases"]:
            for name in ("tokens", "durations_ms"):
                each.pop(name, None)
        project.write({"bare.json": json.dumps(document)})
        done = project.eval("--baseline", "bare.json", "--max-tokens-increase", "10%")
        assert (done.code, "earlier version" in done.out) == (4, False)

    @pytest.mark.parametrize("option", [["--allow-changes"], ["--undecided", "pass"]])
    def test_options_of_comparisons_need_a_baseline(self, option: list[str], project: Project) -> None:
        project.refuses("eval", "evals", *option, error=f"{option[0]} requires --baseline")


def test_other_question_gives_no_decision_unless_it_is_allowed(project: Project) -> None:
    project.documents("a", "b", repeat=5)
    assert project.run("eval", "evals", "--out", "main.jsonl").code == 0
    project.documents(*({"id": name, "input_messages": "Greet me, please"} for name in "ab"), repeat=5)
    done = project.eval("--baseline", "main.jsonl")
    reason = "the question or the evaluators of all 2 cases changed since main.jsonl"
    assert (done.code, reason in " ".join(done.out.split())) == (4, True)
    assert "--allow-changes decides" in " ".join(done.out.split())
    assert project.run("compare", "main.jsonl", "r.jsonl").code == 4
    assert project.run("compare", "main.jsonl", "r.jsonl", "--allow-changes").code == 0
    assert project.eval("--baseline", "main.jsonl", "--allow-changes").code == 0
    assert project.run("report", "r.jsonl", "--baseline", "main.jsonl", "--allow-changes").code == 0


def test_nothing_but_trials_makes_up_for_missing_ones(project: Project) -> None:
    def answer(body: dict[str, Any]) -> Reply:
        return says("Hello") if is_well or body["seed"] == 1 else answers(401, {})

    with chat_api(answer) as api:
        project.documents(
            *"abcd", targets=(gpt(api.url),), seeds=[1, 2, 3, 4, 5], gate={"min_pass_rate": 0, "max_errors": 99}
        )
        is_well = True
        assert project.run("eval", "evals", "--out", "main.jsonl").code == 0
        is_well = False
        for flags in ((), ("--allow-changes",)):
            done = project.eval("--baseline", "main.jsonl", *flags)
            said = " ".join(done.out.split())
            assert "could decide either way: run them again" in said
            assert (done.code, "--allow-changes decides" in said) == (4, False)


@pytest.mark.parametrize("likeness", [0.0, 0.3])
def test_the_ledger_says_how_alike_trials_of_a_run_are(likeness: float, project: Project) -> None:
    chance = random.Random(7)
    for day in range(60):
        runs = (chance.choice((0, 5)) if chance.random() < likeness else chance.randint(2, 4) for _ in range(5))
        cases = [case_line(f"case-{number}", passed, 5) for number, passed in enumerate(runs)]
        time = datetime.now(UTC) - timedelta(days=day + 1)
        path, content = file_of(cases, time=time, commit=None, run_url=None)
        project.write({f"ledger/{path}": content.decode()})
    project.documents("a", targets=(tool("echo Hello"),))
    for name in ("main.jsonl", "r.jsonl"):
        assert project.run("eval", "evals", "--out", name).code == 0
    done = project.run("compare", "main.jsonl", "r.jsonl", "--ledger", "ledger")
    said = "comparisons of runs are wrong in more than 5%: interleave base and head"
    assert (done.code, "correlation of the trials of one run: " in done.out) == (0, True)
    assert (said in " ".join(done.out.split())) == (likeness > 0)
    done = project.run("compare", "main.jsonl", "r.jsonl", "--ledger", "ledger", "--format", "json")
    assert (json.loads(done.out)["trial_correlation"] > 0.05) == (likeness > 0)


def test_a_ledger_that_shows_too_little_is_said(project: Project) -> None:
    project.documents("a", targets=(tool("echo Hello"),))
    assert project.run("eval", "evals", "--out", "main.jsonl").code == 0
    project.path("ledger").mkdir()
    done = project.run("compare", "main.jsonl", "main.jsonl", "--ledger", "ledger")
    assert (done.code, "warning: too few runs in the ledger 'ledger'" in done.err) == (0, True)
    assert project.run("compare", "main.jsonl", "main.jsonl", "--ledger", "gone").code != 0


class TestUndecided:
    """One trial a side, of which one fails now: chance may explain it."""

    IDS = tuple(f"case-{number}" for number in range(6))

    @pytest.fixture(autouse=True)
    def base(self, project: Project) -> None:
        self.documents(project)
        assert project.run("eval", "evals", "--out", "main.jsonl").code == 0
        project.targets(tool("test {EVAL_ID} = case-0 || echo Hello"))

    def documents(self, project: Project, **gate: str) -> None:
        project.documents(*self.IDS, targets=(tool("echo Hello"),), gate={"min_pass_rate": 0, "max_errors": 9, **gate})

    @pytest.mark.parametrize(("when", "code"), [(None, 6), ("pass", 0), ("fail", 1)])
    @pytest.mark.parametrize("in_document", [True, False])
    def test_it_counts_as_the_gate_or_the_option_says(
        self, when: str | None, code: int, in_document: bool, project: Project
    ) -> None:
        flags = []
        if when is not None and in_document:
            self.documents(project, undecided=when)
            project.targets(tool("test {EVAL_ID} = case-0 || echo Hello"))
        elif when is not None:
            flags = ["--undecided", when]
        done = project.eval("--baseline", "main.jsonl", *flags)
        assert done.code == code
        gate = project.json("r.report.json")["gate"]
        assert gate["verdict"] == {0: "pass", 1: "fail", 6: "undecided"}[code]
        reason = "against main.jsonl: case-0 passed 1 of 1, now 0 of 1; this may be chance"
        assert [each.partition(": run both")[0] for each in gate["reasons"]] == ([] if code == 0 else [reason])
        assert project.run("compare", "main.jsonl", "r.jsonl", *flags).code == code
        reported = project.run("report", "r.jsonl", "--baseline", "main.jsonl", *flags)
        assert reported.code == code
        tolerated = "undecided, which passes: case-0 passed 1 of 1, now 0 of 1"
        assert [tolerated in " ".join(each.out.split()) for each in (done, reported)] == [code == 0] * 2

    def test_an_option_overrules_the_document(self, project: Project) -> None:
        self.documents(project, undecided="fail")
        project.targets(tool("test {EVAL_ID} = case-0 || echo Hello"))
        assert project.eval("--baseline", "main.jsonl", "--undecided", "pass").code == 0

    @pytest.mark.parametrize(
        ("now", "code", "passed"),
        [
            ("test $(cat asked 2>/dev/null | wc -c) -lt 2 || echo Hello", 0, 4),
            ("true", 6, 0),
        ],
        ids=["chance", "broken"],
    )
    def test_suspects_are_confirmed_in_the_same_run(self, now: str, code: int, passed: int, project: Project) -> None:
        asked = project.path("asked").as_posix()
        answer = f"printf x >> {asked}; {now.replace('asked', asked)}"
        project.targets(tool(f"if test {{EVAL_ID}} = case-0; then {answer}; else echo Hello; fi"))
        done = project.eval("--baseline", "main.jsonl", "--confirm", "4", "--workers", "1")
        assert (done.code, "1 case undecided; 4 more trials of each" in done.err) == (code, True)
        few = (
            "warning: main.jsonl has too few trials (1 trial) of case-0: more trials of this run alone can show that a"
        )
        assert few in done.err
        trials = [row["trial"] for row in project.rows() if row["eval_id"] == "case-0"]
        assert (trials, len(project.rows())) == ([1, 2, 3, 4, 5], 5 + 5)
        assert project.path("asked").stat().st_size == 5
        (repeated,) = project.json("r.report.json")["repeated"]
        assert (repeated["graded"], repeated["passed"]) == (5, passed)
        assert project.run("compare", "main.jsonl", "r.jsonl").code == code

    def test_confirming_erases_no_crash(self, project: Project) -> None:
        """The agent crashes three times in the suspect, and once in another case, as before."""
        asked = project.path("asked").as_posix()
        crashes = f"printf x >> {asked}-$1; test $(cat {asked}-$1 | wc -c) -gt $2 || exit 3; echo Hello"
        limits = "case $1 in case-0) ;; case-1) set -- $1 1;; *) set -- $1 0;; esac"
        project.write({"agent.sh": f"{limits}; {crashes}"})
        agents = [tool(f"sh {project.path('agent.sh').as_posix()} {{EVAL_ID}} {number}") for number in (0, 3)]
        gate = {"min_pass_rate": 0, "max_errors": 9}
        project.documents(*self.IDS, targets=(agents[0],), gate=gate, repeat=3, max_retries=0)
        assert project.run("eval", "evals", "--out", "main.jsonl").code == 0
        for name in self.IDS:
            project.path(f"asked-{name}").unlink()
        project.targets(agents[1])
        done = project.eval("--baseline", "main.jsonl", "--confirm", "2", "--workers", "1")
        assert "1 case undecided; 2 more trials of each" in done.err
        verdicts = dict.fromkeys(self.IDS, "")
        for each in sorted(project.rows(), key=lambda each: each["trial"]):
            verdicts[each["eval_id"]] += each["verdict"][0]
        assert [*verdicts.values()] == ["eeepp", "epp", *["ppp"] * 4]
        assert [project.path(f"asked-{name}").stat().st_size for name in self.IDS] == [5, 3, 3, 3, 3, 3]

    def test_a_broken_case_of_several_trials_is_confirmed(self, project: Project) -> None:
        project.documents(*self.IDS, targets=(tool("echo Hello"),), gate={"min_pass_rate": 0}, repeat=3)
        assert project.run("eval", "evals", "--out", "main.jsonl").code == 0
        project.targets(tool("if test {EVAL_ID} = case-0; then echo Bye; else echo Hello; fi"))
        assert project.eval("--baseline", "main.jsonl").code == 6
        done = project.eval("--baseline", "main.jsonl", "--confirm", "3")
        assert (done.code, "too few trials" in done.err) == (1, False)
        assert len(project.rows()) == 6 * 3 + 3
        reason = "against main.jsonl: case-0 passed 3 of 3, now 0 of 6; "
        assert project.json("r.report.json")["gate"]["reasons"][0].startswith(reason)

    def test_nothing_is_confirmed_without_a_baseline_or_suspects(self, project: Project) -> None:
        project.refuses("eval", "evals", "--confirm", "4", error="--confirm requires --baseline")
        project.targets(tool("echo Hello"))
        assert project.eval("--baseline", "main.jsonl", "--confirm", "4").code == 0
        assert len(project.rows()) == 6


def said(verdict: Verdict, answer: str, *tools: str, trial: int = 1, **given: Any) -> ResultRow:
    """A trial of one of two, with its answer and the tools it called."""
    call = {"input": None, "output": None}
    message = {"role": "assistant", "content": answer, "tool_calls": [{"tool": name, **call} for name in tools]}
    messages = (OutputMessage.model_validate(message),)
    return row(verdict, of=case("a", trials=2), trial=trial, candidate_answer=answer, output_messages=messages, **given)


@pytest.mark.parametrize(
    ("base", "head", "lines"),
    [
        (
            [said("fail", "odd"), said("pass", "hello", trial=2)],
            [said("pass", "hi"), said("fail", "bye", trial=2)],
            [],
        ),
        (
            [said("fail", "odd"), said("pass", "hello", trial=2)],
            [said("fail", "bye"), said("fail", "see you", trial=2)],
            ["before: hello", "now:    bye"],
        ),
        (
            [said("pass", "hello", "search", "read")],
            [said("fail", "", "search")],
            ["before: hello [called search, read]", "now:    no answer: it is empty [called search]"],
        ),
        (
            [said("pass", "hello\n::error::owned")],
            [said("error", "", error="no key", error_kind="process", blame="agent", status="error", score=0.0)],
            ["before: hello ::error::owned", "now:    no answer: no key"],
        ),
    ],
    ids=["as good", "worse", "tools", "crashed"],
)
def test_answers_of_a_case_that_got_worse(
    project: Project, base: Sequence[ResultRow], head: Sequence[ResultRow], lines: Sequence[str]
) -> None:
    store(project, "base.jsonl", *base)
    store(project, "head.yaml", *head)
    out = project.run("compare", "base.jsonl", "head.yaml").out
    assert [line.strip() for line in out.splitlines() if line.lstrip().startswith(("before:", "now:"))] == [*lines]


def test_answers_of_targets_and_of_baselines(project: Project) -> None:
    one = case("a")
    rows = [row(of=one, candidate_answer="hello"), row("fail", of=one, candidate_answer="bye")]
    big = rows[1].model_copy(update={"target": "big"})
    store(project, "both.jsonl", rows[0], big)
    shown = project.run("compare", "both.jsonl", "--by", "target", "--base", "default").out
    assert "before: hello\n    now:    bye\n" in shown
    accepted(project, rows[0])
    store(project, "head.jsonl", rows[1])
    assert "before:" not in project.run("compare", "base.json", "head.jsonl").out
    files = ("--html", "h.html", "--markdown", "m.md")
    project.run("report", "head.jsonl", "--baseline", "base.jsonl", *files)
    assert "**before**\n\n```\nhello\n```\n\n**now**\n\n```\nbye\n```" in project.text("m.md")
    assert '"answer_before":{"trial":1,"answer":"hello"}' in project.text("h.html")


@pytest.mark.parametrize("skipped", ["base", "head", "both"])
def test_skipped_case_has_nothing_to_compare(project: Project, skipped: str) -> None:
    asleep = {"skip": "later", "verdict": "skipped", "status": "skipped", "score": None}
    rows = [row(of=case("a")), row(of=case("b"))]
    no_b = [rows[0], rows[1].model_copy(update=asleep)]
    store(project, "base.jsonl", *(rows if skipped == "head" else no_b))
    store(project, "head.jsonl", *(rows if skipped == "base" else no_b))
    out = project.run("compare", "base.jsonl", "head.jsonl").out
    change = {"base": ", 1 new", "head": ", 1 removed", "both": ""}[skipped]
    assert f"cases: 1 unchanged{change}\n" in out
    assert "not enough evidence" not in out
