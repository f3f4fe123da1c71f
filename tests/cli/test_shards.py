"""Shards and their merged report, budgets, and interrupted runs."""

from __future__ import annotations

import pytest

from tests.cli.builders import ONE_ANSWER_USD, PRICED
from tests.servers.chat_api import chat_api, says
from tests.support.evals import gpt
from tests.support.projects import HELLO, JUDGED, Project


def shards(project: Project, total: int, *flags: str) -> list[str]:
    """Run all shards, and return their files."""
    files = [f"part-{index}.jsonl" for index in range(1, total + 1)]
    for index, file in enumerate(files, 1):
        assert project.run("eval", "evals", "--shard", f"{index}/{total}", "--out", file, *flags).code == 0
    return files


class TestMerging:
    def test_merged_report_is_that_of_one_run(self, project: Project) -> None:
        with chat_api(says("Hello")) as api:
            both = (gpt(api.base_url, model=PRICED), gpt(api.base_url, name="judge", model="no-such-model"))
            project.documents(*"abcde", targets=both, gate={"min_mean_score": 0.9})
            picky = {"id": "a", "evaluators": [HELLO, {**HELLO, "name": "bye", "value": "Bye"}]}
            project.documents(picky, {"id": "z", "evaluators": [JUDGED]}, targets=both, name="evals/y.yaml")
            assert project.eval("--repeat", "2").code == 1
            files = shards(project, 3, "--repeat", "2")
        assert project.run("report", *reversed(files), "--expect-shards", "3", "--out", "all.yaml").code == 1
        same = {"duration_s": 0, "origin": None}
        merged, whole = (project.json(name) | same for name in ("all.report.json", "r.report.json"))
        for group in (*merged["suites"], *merged["targets"], *whole["suites"], *whole["targets"]):
            assert group.pop("duration_s") >= 0
        assert merged == whole
        assert project.run("report", "all.yaml").code == 1

    def test_empty_shard_passes(self, project: Project) -> None:
        project.documents("a")
        files = shards(project, 2)
        done = project.run("eval", "evals", "--shard", "3/3", "--out", "3.jsonl")
        assert (done.code, "the shard is empty" in done.out) == (0, True)
        assert project.json("3.report.json")["shard"] == {"index": 3, "total": 3, "cases": 1}
        assert project.run("report", *files, "--expect-shards", "2").code == 0

    def test_shard_of_skipped_cases_passes_and_all_shards_of_them_do_not(self, project: Project) -> None:
        project.documents({"id": "a", "skip": "Not ready"}, {"id": "b", "skip": "Not ready"})
        done = project.run("eval", "evals", "--shard", "1/2", "--out", "1.jsonl")
        assert (done.code, "gate: nothing ran: all cases of the shard are skipped\n" in done.out) == (0, True)
        assert project.run("eval", "evals", "--shard", "2/2", "--out", "2.jsonl").code == 0
        merged = project.run("report", "1.jsonl", "2.jsonl", "--expect-shards", "2")
        assert (merged.code, "no case was graded: all are skipped" in merged.out) == (1, True)

    @pytest.mark.parametrize(
        "arguments",
        [
            ["part-2.jsonl", "--expect-shards", "2"],
            ["part-2.jsonl", "--expect-shards", "3"],
            ["part-2.jsonl", "other.jsonl", "--expect-shards", "2"],
            ["killed.jsonl", "part-2.jsonl", "--expect-shards", "2"],
            ["all.jsonl"],
        ],
        ids=["missing", "wrong number", "another plan", "killed", "merged before"],
    )
    def test_missing_shard_fails(self, arguments: list[str], project: Project) -> None:
        project.documents("b")
        assert project.run("eval", "evals", "--shard", "2/2", "--out", "other.jsonl").code == 0
        project.documents("a")
        shards(project, 2)
        project.store("killed.jsonl")
        assert project.run("report", "part-2.jsonl", "--expect-shards", "2", "--out", "all.jsonl").code == 1
        assert project.run("report", *arguments).code == 1

    def test_file_that_is_named_twice_fails_and_counts_once(self, project: Project) -> None:
        project.documents(*"abcd")
        first, second = shards(project, 2)
        project.store("copy.jsonl", *project.rows(first))
        project.write({"copy.report.json": project.text(first.replace("jsonl", "report.json"))})
        for again, said in ((f"./{first}", f"./{first} is named twice"), ("copy.jsonl", "shard 1/2 occurs 2 times")):
            done = project.run("report", first, again, second, "--expect-shards", "2", "--out", "all.jsonl")
            assert (done.code, said in done.out) == (1, True), done
            assert "4 cases: 4 passed, 0 failed, 0 errors\n" in done.out
        project.refuses("report", first, first, second, error=f"{first}' is named twice")

    def test_row_that_occurs_twice_is_reported_once(self, project: Project) -> None:
        project.documents("a")
        assert project.eval().code == 0
        project.store(
            "r.jsonl", *project.rows(), *({**row, "candidate_answer": "Hello again"} for row in project.rows())
        )
        project.run("report", "r.jsonl", "--html", "r.html")
        assert ("Hello!" in project.text("r.html"), "Hello again" in project.text("r.html")) == (True, False)


class TestBalance:
    @pytest.fixture(autouse=True)
    def before(self, project: Project) -> None:
        project.documents(*"abcdef")
        assert project.run("eval", "evals", "--out", "before.jsonl").code == 0

    def durations(self, project: Project, name: str, **given_ms: int) -> str:
        """Store one trial of `a` and two of all others with these durations."""
        rows = [{**row, "duration_ms": given_ms.get(row["eval_id"], 0)} for row in project.rows("before.jsonl")]
        project.store(name, *rows, *({**row, "trial": 2} for row in rows if row["eval_id"] != "a"))
        return name

    def test_case_in_no_shard_is_missing(self, project: Project) -> None:
        project.documents(*"abc")
        one = self.durations(project, "one.jsonl", a=1000, b=400, c=400)
        other = self.durations(project, "other.jsonl", a=1000, b=1, c=1000)
        assert project.run("eval", "evals", "--shard", "1/2", "--balance", one, "--out", "1.jsonl").code == 0
        assert project.run("eval", "evals", "--shard", "2/2", "--balance", other, "--out", "2.jsonl").code == 0
        assert {row["eval_id"] for name in ("1.jsonl", "2.jsonl") for row in project.rows(name)} == {"a", "c"}
        assert project.run("report", "1.jsonl", "2.jsonl", "--expect-shards", "2").code == 1

    @pytest.mark.parametrize("name", ["torn.jsonl", "torn.yaml"])
    def test_torn_results_can_be_used(self, name: str, project: Project) -> None:
        assert project.run("eval", "evals", "--out", name).code == 0
        project.write({name: project.text(name)[:-100]})
        done = project.eval("--shard", "1/2", "--balance", name)
        assert (done.code, done.err) == (0, "")


class TestBudgets:
    @pytest.mark.parametrize(("share", "code", "ran"), [(0.5, 5, 1), (1, 5, 1), (2, 5, 2), (3.5, 5, 4), (4, 0, 4)])
    def test_nothing_begins_at_the_budget(self, share: float, code: int, ran: int, project: Project) -> None:
        with chat_api(says("Hello")) as api:
            project.documents(*"abcd", targets=(gpt(api.base_url, model=PRICED),))
            done = project.eval("--max-cost", f"{share * ONE_ANSWER_USD:.9f}")
        gate = project.json("r.report.json")["gate"]
        assert (done.code, gate["exit_code"], gate["verdict"]) == (code, code, "budget" if code else "pass")
        assert f"gate: {'budget used up' if code else 'passed'}" in done.out
        assert len(project.rows()) == ran
        assert project.run("report", "r.jsonl").code == code

    def test_every_shard_has_its_share(self, project: Project) -> None:
        with chat_api(says("Hello")) as api:
            project.documents(*"abcd", targets=(gpt(api.base_url, model=PRICED),))
            for index in (1, 2):
                flags = ["--shard", f"{index}/2", "--max-cost", f"{2 * ONE_ANSWER_USD:.9f}"]
                assert project.run("eval", "evals", "--out", f"{index}.jsonl", *flags).code == 5
            assert len(api.requests) == 2
        assert project.run("report", "1.jsonl", "2.jsonl", "--expect-shards", "2").code == 5

    def test_unknown_price_never_passes_a_budget(self, project: Project) -> None:
        with chat_api(says("Hello")) as api:
            project.documents("a", targets=(gpt(api.base_url, model="no-such-model"),), gate={"max_cost_usd": 1})
            assert project.eval().code == 1
            assert project.run("eval", "evals", "--resume", "r.jsonl").code == 1
            assert project.json("r.report.json")["unpriced_models"] == ["no-such-model"]
            assert project.run("report", "r.jsonl").code == 1
            assert project.run("rescore", "r.jsonl").code == 1
