"""The response cache, recordings, and what a run dumps."""

from __future__ import annotations

import base64
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from msgspec.structs import replace

from agentv_ci.contracts.exchange import Response
from agentv_ci.execute.stores import Store
from tests.cli.builders import ONE_ANSWER_USD, PRICED
from tests.servers.chat_api import chat_api, fails, says
from tests.support.evals import KEY, gpt, tool
from tests.support.projects import GREETS, HELLO, JUDGED, Project


def with_file(name: str) -> dict[str, Any]:
    content = [{"type": "text", "value": "Greet me"}, {"type": "file", "value": name}]
    return {"input_messages": [{"role": "user", "content": content}]}


class TestCache:
    def test_only_changed_questions_are_asked_again(self, project: Project) -> None:
        def questions(case: dict[str, Any], judge: str = "Judge {{ candidate_answer }}") -> int:
            before = len(api.requests)
            evaluators = [{**JUDGED, "prompt": judge}]
            project.documents(
                case, targets=(gpt(api.base_url), gpt(api.base_url, name="judge", model="other")), evaluators=evaluators
            )
            assert project.eval("--cache").code == 0
            return len(api.requests) - before

        with chat_api(says('{"score": 1.0, "reasoning": "Hello"}')) as api:
            project.write({"evals/a.txt": "one"})
            case = {"id": "a", **with_file("a.txt")}
            assert [questions(case), questions(case), questions({**case, "id": "b"})] == [2, 0, 0]
            assert [questions(case, "Look at {{ candidate_answer }}") for _ in range(2)] == [1, 0]
            project.write({"evals/a.txt": "two"})
            assert [questions(case), questions(case)] == [2, 0]  # the judge sees the question too

    def test_errors_are_asked_again(self, project: Project) -> None:
        with chat_api(fails(400, "no"), says("Hello")) as api:
            project.documents("a", targets=(gpt(api.base_url),))
            assert [project.eval("--cache").code for _ in range(3)] == [4, 0, 0]
            assert len(api.requests) == 2

    def test_same_question_of_many_cases_is_asked_once(self, project: Project) -> None:
        with chat_api(replace(says("Hello!"), delay_s=0.1)) as api:
            project.documents(*"abcdefgh", targets=(gpt(api.base_url, model=PRICED),))
            done = project.eval("--cache", "--workers", "8", "--verbose")
            assert (done.code, done.err.count(": not asked, the answer is stored\n")) == (0, 7)
            assert len(api.requests) == 1
        assert sorted(row["cached"] for row in project.rows()) == [False] + [True] * 7
        assert sum(row["cost_usd"] for row in project.rows()) == pytest.approx(ONE_ANSWER_USD)

    def test_same_question_without_an_answer_is_asked_for_each_case_in_parallel(self, project: Project) -> None:
        with chat_api(replace(fails(400), delay_s=0.1)) as api:
            project.documents(*"abcdefgh", targets=(gpt(api.base_url),))
            assert project.eval("--cache", "--workers", "8").code == 4
            assert len(api.requests) == 8
            assert api.most_at_once > 2

    def test_unreadable_reply_of_a_judge_is_not_reused(self, project: Project) -> None:
        with chat_api(says("what?"), says("what?"), says('{"score": 1.0, "reasoning": "fine"}')) as api:
            project.documents("a", targets=(GREETS, gpt(api.base_url, name="judge")), evaluators=[JUDGED])
            assert project.eval("--cache").code == 0

    def test_new_price_counts_for_stored_answers(self, project: Project) -> None:
        cheap = {"name": "cheap", "type": "cost", "max_usd": 1, "required": True}
        with chat_api(says("Hello")) as api:
            project.documents("a", targets=(gpt(api.base_url),), evaluators=[HELLO, cheap])
            assert project.eval("--cache").code == 4
            price = {"gpt-mock": {"input_per_mtok": 1, "output_per_mtok": 1}}
            project.write({".agentv/config.yaml": json.dumps({"$schema": "agentv-config-v2", "prices": price})})
            assert project.eval("--cache").code == 0

    def test_clear_keeps_other_files(self, project: Project) -> None:
        project.documents("a", targets=(tool("echo Hello"),))
        assert project.eval("--cache", "--cache-dir", "x").code == 0
        project.write({"x/ab/mine.json": "{}"})
        assert project.run("cache", "info", "--cache-dir", "x").out.startswith("x: 1 answer, ")
        assert project.run("cache", "clear", "--cache-dir", "x").out.endswith(" KiB removed\n")
        assert project.run("cache", "info", "--cache-dir", "x").out == "x: 0 answers, 0.0 KiB\n"
        assert project.text("x/ab/mine.json") == "{}"

    @pytest.mark.parametrize("command", ["info", "clear"])
    def test_answers_removed_meanwhile_are_not_an_error(
        self, command: str, project: Project, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        store = Store(project.path("c"))
        for digit in "ab":
            store.keep(digit * 64, {}, Response("Hello", (), has_trace=False))
        listed = Store._files  # noqa: SLF001  # the moment between listing and reading

        def vanishing(self: Store) -> Iterator[tuple[Path, int]]:
            for path, size in listed(self):
                path.unlink()
                yield path, size

        monkeypatch.setattr(Store, "_files", vanishing)
        assert project.run("cache", command, "--cache-dir", "c").code == 0

    def test_answer_is_kept_though_its_folder_is_removed_meanwhile(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        opened = Path.open
        times: list[Path] = []

        def cleared(self: Path, mode: str = "r", *arguments: Any, **given: Any) -> Any:
            if mode == "xb" and not times:
                times.append(self)
                self.parent.rmdir()
            return opened(self, mode, *arguments, **given)

        monkeypatch.setattr(Path, "open", cleared)
        store = Store(tmp_path / "c")
        store.keep("a" * 64, {}, Response("Hello", (), has_trace=False))
        assert (len(times), store.contents().files) == (1, 1)


class TestSources:
    """An agent whose code changes between runs."""

    @pytest.fixture
    def agent(self, project: Project) -> Project:
        command = tool("echo x >> asked; cat greeting src/* | tr -d '\\n'", cwd=".", sources=["greeting", "src/**"])
        project.documents("a", "b", targets=(command,))
        project.write({"greeting": "Hello", "src/deep/x.txt": "", "src/name.txt": " Ada", "src/__pycache__/x": "1"})
        return project

    def asked(self, agent: Project) -> int:
        return agent.text("asked").count("x") if agent.path("asked").exists() else 0

    def test_answers_of_older_code_are_not_reused(self, agent: Project) -> None:
        first = agent.eval("--cache")
        assert (first.code, first.err.count("sources"), "from cache" in first.out) == (0, 0, False)
        again = agent.eval("--cache")
        assert (self.asked(agent), "2 of 2 answers from cache\n" in again.out) == (2, True)
        assert agent.json("r.report.json")["counts"]["cached"] == 2
        agent.write({"src/__pycache__/x": "2", "src/.hidden": "", "other.txt": ""})
        assert (agent.eval("--cache").code, self.asked(agent)) == (0, 2)
        agent.write({"src/deep/x.txt": "changed"})
        assert (agent.eval("--cache").code, self.asked(agent)) == (0, 4)

    def test_digest_has_every_file(self, agent: Project) -> None:
        assert agent.run("compile", "evals", "--out", "old.json").code == 0
        assert "2 of 2 cases skipped" in agent.eval("--only-changed", "old.json").out
        agent.write({"greeting": "Hello,", "src/new.txt": ""})
        agent.path("src/name.txt").unlink()
        done = agent.run("compile", "evals", "--diff", "old.json")
        reasons = [
            f"target source {each}" for each in ("greeting changed", "src/name.txt removed", "src/new.txt added")
        ]
        assert all(reason in done.out for reason in reasons), done
        assert (agent.eval("--only-changed", "old.json").code, self.asked(agent)) == (0, 2)
        assert (agent.eval("--resume", "r.jsonl").code, self.asked(agent)) == (0, 2)
        agent.write({"greeting": "Hello!"})
        agent.refuses("eval", "evals", "--resume", "r.jsonl", error="digests or seeds of all its rows differ")

    def test_a_plan_of_older_code_does_not_run(self, agent: Project) -> None:
        assert agent.run("compile", "evals", "--out", "plan.json").code == 0
        assert agent.run("eval", "plan.json", "--out", "r.jsonl").code == 0
        agent.path("r.jsonl").unlink()
        agent.path("r.report.json").unlink()
        agent.write({"greeting": "Bye"})
        agent.refuses("eval", "plan.json", "--out", "r.jsonl", error="changed after the plan was compiled: greeting")

    def test_code_is_never_overwritten(self, agent: Project) -> None:
        agent.refuses("eval", "evals", "--out", "greeting.jsonl", "--junit", "greeting", error="greeting")

    def test_cache_without_sources_is_one_warning(self, project: Project) -> None:
        project.documents("a", "b", targets=(tool("echo Hello"),))
        assert project.eval("--cache").err.count("changes of the code behind default go unnoticed") == 1
        assert "unnoticed" not in project.eval().err
        project.documents("a", "b", targets=(tool("echo Hello", sources=[]),))
        assert "unnoticed" not in project.eval("--cache").err


class TestRecordings:
    def test_the_summary_says_that_answers_are_replayed(self, project: Project) -> None:
        project.documents("a", "b", targets=(tool("echo Hello"),))
        assert project.eval("--record", "rec").code == 0
        done = project.eval("--replay", "rec", "--markdown", "s.md", "--html", "h.html")
        said = "2 of 2 answers replayed"
        assert (said in done.out, said in project.text("s.md"), said in project.text("h.html")) == (True, True, True)

    def test_replay_needs_no_keys_environment_or_programs(self, project: Project) -> None:
        with chat_api(lambda body: says('{"score": 0.9}' if "score" in str(body) else "Hello")) as api:
            project.env |= {"MODEL": PRICED, "OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": api.base_url}
            asked = (
                {"name": "default", "provider": "openai", "model": "${{ MODEL }}"},
                gpt("${{ OPENAI_BASE_URL }}", name="judge", model="${{ MODEL }}"),
                tool("cat {FILES}", name="cat", healthcheck={"type": "command", "command_template": "test $MODEL"}),
            )
            cases: list[dict[str, Any]] = [
                {"id": "a", "evaluators": [JUDGED]},
                {"id": "b", "execution": {"target": "cat"}, **with_file("hello.txt")},
            ]
            here = Project(project.folder / "here", project.env)
            here.write({".git/config": "", "evals/hello.txt": "Hello"})
            here.documents(*cases, targets=asked)
            flags = ["--repeat", "2", "--seed", "7"]
            assert here.eval("--record", "recorded", "--workers", "3", *flags).code == 0
        shutil.move(here.folder, project.folder / "there")
        there = Project(project.folder / "there")
        assert there.run("eval", "evals", "--replay", "recorded", "--out", "2.jsonl", *flags).code == 0
        # A replay reads nothing from the environment, so no setting of it can have changed an answer.
        assert all(("settings_digest" in row) == (row["eval_id"] == "a") for row in there.rows())
        assert not any("settings_digest" in row for row in there.rows("2.jsonl"))
        measured = {"timestamp", "cached", "requests", "duration_ms", "cost_usd", "judge_cost_usd", "settings_digest"}
        before, after = (
            {(row["eval_id"], row["trial"]): {k: v for k, v in row.items() if k not in measured} for row in rows}
            for rows in (there.rows(), there.rows("2.jsonl"))
        )
        assert before == after
        assert all(row["cached"] and not row["cost_usd"] for row in there.rows("2.jsonl"))

    def test_answers_of_the_cache_are_recorded(self, project: Project) -> None:
        project.documents("a", targets=(tool("echo Hello"),))
        assert project.eval("--cache").code == 0
        assert project.eval("--cache", "--record", "recorded").code == 0
        assert project.eval("--replay", "recorded").code == 0

    def test_agent_may_edit_its_files(self, project: Project) -> None:
        project.write({"evals/f.txt": "old"})
        project.documents({"id": "a", **with_file("f.txt")}, targets=(tool("echo new > {FILES}; echo Hello"),))
        assert project.eval("--record", "recorded").code == 0
        project.write({"evals/f.txt": "old"})
        assert project.eval("--replay", "recorded").code == 0

    def test_plan_and_recording_are_enough(self, project: Project) -> None:
        project.documents("a", targets=(tool("echo Hello"),))
        assert project.run("compile", "evals", "--out", "else/plan.json").code == 0
        assert project.run("eval", "else/plan.json", "--record", "else/recorded").code == 0
        project.write({"else/.git/config": ""})
        assert project.run("eval", "plan.json", "--replay", "recorded", cwd="else").code == 0


def test_deep_arguments_of_a_call_can_be_dumped(project: Project) -> None:
    call = {"id": "1", "type": "function", "function": {"name": "t", "arguments": f'{{"a": {"[" * 199}{"]" * 199}}}'}}
    message = {"role": "assistant", "content": "Hello", "tool_calls": [call]}
    with chat_api(says(None, message=message)) as api:
        project.documents("a", targets=(gpt(api.base_url),))
        assert (project.eval().code, project.eval("--dump-traces").code) == (0, 0)


def test_secret_is_in_no_file_in_any_form(project: Project) -> None:
    forms = [KEY, base64.b64encode(KEY.encode()).decode().rstrip("="), quote(f"{KEY}/")]
    call = {"id": "1", "type": "function", "function": {"name": KEY, "arguments": json.dumps({KEY: [KEY]})}}
    message = {"role": "assistant", "content": f"Hello {' '.join(forms)}", "tool_calls": [call]}
    with chat_api(says(None, message=message)) as api:
        asked = (gpt(api.base_url, headers={"X-Again": "${{ MOCK_KEY }}"}), gpt(api.base_url, name="judge"))
        project.documents("a", targets=asked, evaluators=[HELLO, JUDGED])
        dumps = ["--dump-prompts", "--dump-traces"]
        assert project.eval("--cache", *dumps).code == 4
        yaml = ["--out", "r.yaml", "--output-format", "yaml"]
        assert project.run("eval", "evals", "--record", "recorded", *yaml, *dumps).code == 4
    files = [path for path in project.folder.rglob("*") if path.is_file()]
    assert len(files) > 10
    assert [path for path in files if any(form.encode() in path.read_bytes() for form in forms)] == []
    assert not any(KEY in str(path) for path in files)
