"""Answers on disk: what makes two questions the same, and what survives."""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentv_ci.contracts.api_targets import OpenAITarget
from agentv_ci.contracts.base import JsonValue
from agentv_ci.contracts.exchange import ChatMessage, InputFile, Request, Response
from agentv_ci.contracts.results import OutputMessage, ToolCall, Usage
from agentv_ci.contracts.targets import MockTarget
from agentv_ci.execute.stores import Store, answer_settings, question_key
from tests.report.builders import well_formed_text
from tests.support import clean_environment

KEY = "ab" + "0" * 62
ANSWER = Response(
    answer="42",
    messages=(
        OutputMessage(
            role="assistant",
            content="42",
            tool_calls=(ToolCall(tool="search", input={"q": [1, None]}, output="found"),),
        ),
    ),
    has_trace=True,
    model="gpt-2030",
    usage=Usage(input_tokens=100, output_tokens=10, total_tokens=110, cached_tokens=20),
    finish_reason="stop",
    requests=3,
    duration_ms=812,
    cost_usd=0.25,
    request={"messages": [{"role": "user", "content": "6 × 7?"}]},
    masked=True,
)


def target(**given: Any) -> OpenAITarget:
    data = {"name": "gpt", "provider": "openai", "model": "gpt", "api_key": "${{ KEY }}", "base_url": "http://a/v1"}
    return OpenAITarget.model_validate({**data, **given})


def question(tmp_path: Path, text: str = "rules") -> Request:
    file = tmp_path / "rules.md"
    file.write_text(text, encoding="utf-8")
    return Request(
        case_id="one",
        prompt="6 × 7?",
        guidelines="be brief",
        chat=(ChatMessage("user", "6 × 7?"),),
        timeout_s=600,
        cwd=tmp_path / "evals",
        files=(InputFile(file, is_guideline=True, sha256=text),),
    )


def key(request: Request, trial: int = 1, *, of: OpenAITarget | None = None) -> str:
    asked = of or target()
    return question_key(answer_settings(asked, asked), request, trial=trial)


def test_an_answer_comes_back_as_it_was_and_marked(tmp_path: Path) -> None:
    store = Store(tmp_path / "cache")
    store.keep(KEY, {"eval_id": "one"}, ANSWER)
    assert store.find(KEY) == replace(ANSWER, cached=True, requests=0)
    assert store.find("cd" + KEY[2:]) is None


@given(text=well_formed_text)
def test_every_answer_comes_back(text: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    store = Store(tmp_path_factory.mktemp("cache"))
    store.keep(KEY, {}, replace(ANSWER, answer=text, request={"prompt": text}))
    found = store.find(KEY)
    assert found is not None
    assert (found.answer, found.request) == (text, {"prompt": text})


CHANGES: Mapping[str, Callable[[Request], Request]] = {
    "the prompt": lambda asked: replace(asked, prompt="6 × 8?"),
    "the guidelines": lambda asked: replace(asked, guidelines="be long"),
    "a turn": lambda asked: replace(asked, chat=(ChatMessage("system", "6 × 7?"),)),
    "the seed": lambda asked: replace(asked, seed=7),
    "the temperature": lambda asked: replace(asked, temperature=0.5),
    "the longest answer": lambda asked: replace(asked, max_output_tokens=9),
    "the task": lambda asked: replace(asked, task="open the file"),
    "no file": lambda asked: replace(asked, files=()),
}
SAME: Mapping[str, Callable[[Request], Request]] = {
    "the time limit": lambda asked: replace(asked, timeout_s=1),
    "the attempt": lambda asked: replace(asked, attempt=2),
    "the case's id": lambda asked: replace(asked, case_id="two"),
    "a sample for the mock": lambda asked: replace(asked, sample="{}"),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES.keys())
def test_another_question_has_another_key(change: Callable[[Request], Request], tmp_path: Path) -> None:
    assert key(change(question(tmp_path))) != key(question(tmp_path))


@pytest.mark.parametrize("change", SAME.values(), ids=SAME.keys())
def test_what_changes_no_answer_changes_no_key(change: Callable[[Request], Request], tmp_path: Path) -> None:
    assert key(change(question(tmp_path))) == key(question(tmp_path))


def test_a_file_with_another_content_is_another_question_and_its_folder_is_not(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    asked = key(question(tmp_path))
    assert key(question(tmp_path / "elsewhere")) == asked
    assert key(question(tmp_path, "other rules")) != asked


def test_every_trial_has_an_answer_of_its_own(tmp_path: Path) -> None:
    assert len({key(question(tmp_path), trial) for trial in (1, 2, 3)}) == 3


CASES: tuple[JsonValue, ...] = (None, ["a.yaml", "one"], ["b.yaml", "one"])


def test_the_case_and_the_order_of_alike_questions_tell_them_apart(tmp_path: Path) -> None:
    asked = question(tmp_path)
    keys = {question_key({}, asked, trial=1, case=case) for case in CASES}
    keys |= {question_key({}, asked, trial=1, occurrence=occurrence) for occurrence in (0, 1, 2)}
    assert len(keys) == 5


@pytest.mark.parametrize(
    "change",
    [
        {"model": "gpt-2"},
        {"base_url": "http://b/v1"},
        {"temperature": 0.1},
        {"max_output_tokens": 5},
        {"extra_body": {"top_p": 1}},
        {"headers": {"x-beta": "on"}},
        {"api_format": "responses"},
    ],
    ids=str,
)
def test_another_setting_has_another_key(change: dict[str, Any], tmp_path: Path) -> None:
    assert key(question(tmp_path), of=target(**change)) != key(question(tmp_path))


@pytest.mark.parametrize(
    "change", [{"name": "x"}, {"workers": 9}, {"api_key": "${{ OTHER }}"}, {"max_retries": 9}], ids=str
)
def test_a_setting_that_changes_no_answer_changes_no_key(change: dict[str, Any], tmp_path: Path) -> None:
    assert key(question(tmp_path), of=target(**change)) == key(question(tmp_path))


def test_the_environment_plays_its_part_but_for_secrets_and_recordings() -> None:
    written = target(base_url="${{ URL }}", headers={"x-key": "${{ KEY }}"})
    used = target(base_url="http://used/v1", headers={"x-key": "sk-canary"}, api_key="sk-canary")
    found = answer_settings(written, used)
    assert (found["base_url"], found["headers"]) == ("http://used/v1", {"x-key": "${{ KEY }}"})
    assert "sk-canary" not in json.dumps(found)
    assert answer_settings(written, None)["base_url"] == "${{ URL }}"


@pytest.mark.parametrize(
    "text",
    ["", "{", "null", "[]", '{"version": 1}', '{"version": 2, "response": {}}', '{"version": 1, "response": {}}',
     "[" * 100_000, "\xff"],
    ids=lambda text: text[:30],
)  # fmt: skip
def test_what_cannot_be_read_counts_as_absent_and_is_replaced(text: str, tmp_path: Path) -> None:
    store = Store(tmp_path)
    place = tmp_path / KEY[:2] / f"{KEY}.json"
    place.parent.mkdir()
    place.write_bytes(text.encode("latin-1"))
    assert store.find(KEY) is None
    store.keep(KEY, {}, ANSWER)
    assert store.find(KEY) is not None


def test_clearing_removes_answers_and_nothing_else(tmp_path: Path) -> None:
    store = Store(tmp_path, outside_git=True)
    store.keep(KEY, {}, ANSWER)
    store.keep("cd" + KEY[2:], {}, ANSWER)
    others = [tmp_path / "notes.txt", tmp_path / "ab" / "mine.json", tmp_path / ".gitignore"]
    for other in others[:2]:
        other.write_text("mine", encoding="utf-8")
    before = store.contents()
    assert (before.files, store.clear(), store.contents().files) == (2, before, 0)
    assert all(other.exists() for other in others)
    assert not (tmp_path / "cd").exists()


def test_a_folder_that_is_not_there_is_empty(tmp_path: Path) -> None:
    store = Store(tmp_path / "none")
    assert (store.find(KEY), store.contents().files, store.clear().files) == (None, 0, 0)
    assert not (tmp_path / "none").exists()


def test_a_half_written_answer_is_never_seen(tmp_path: Path) -> None:
    """Several processes write the same answers, and one reads them all the while."""
    script = """
        import sys
        from pathlib import Path
        from dataclasses import replace
        from agentv_ci.execute.stores import Store
        from tests.execute.test_cache import ANSWER, KEY
        store = Store(Path(sys.argv[1]))
        for number in range(150):
            store.keep(KEY, {}, replace(ANSWER, answer="x" * 50_000))
    """
    command = [sys.executable, "-c", textwrap.dedent(script), str(tmp_path)]
    env = clean_environment({"PYTHONPATH": ":".join(sys.path)})
    store = Store(tmp_path)
    store.keep(KEY, {}, ANSWER)
    writers = [subprocess.Popen(command, env=env) for _ in range(2)]
    while any(writer.poll() is None for writer in writers):
        found = store.find(KEY)
        assert found is not None
        assert found.answer in ("42", "x" * 50_000)
    assert [writer.returncode for writer in writers] == [0, 0]
    assert [path.name for path in tmp_path.rglob("*") if path.is_file()] == [f"{KEY}.json"]


@pytest.mark.parametrize("provider", ["openai", "mock"])
def test_settings_of_any_target_are_json(provider: str) -> None:
    asked = target() if provider == "openai" else MockTarget(name="m", provider="mock", response="x")
    assert json.loads(json.dumps(answer_settings(asked, asked)))["provider"] == provider


@given(st.text(max_size=5), st.text(max_size=5))
def test_no_two_prompts_share_a_key(one: str, two: str) -> None:
    asked = Request(
        case_id="one", prompt=one, guidelines="", chat=(ChatMessage("user", one),), timeout_s=1, cwd=Path("/")
    )
    other = replace(asked, prompt=two, chat=(ChatMessage("user", two),))
    assert (key(asked) == key(other)) == (one == two)
