"""Answers on disk: what makes two questions the same, and what is found again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from msgspec.structs import replace

from agentv_ci.contracts.base import JsonValue
from agentv_ci.contracts.exchange import NO_SYSTEM_PROMPT, ChatMessage, InputFile, Request, Response
from agentv_ci.contracts.results import OutputMessage, ToolCall, Usage
from agentv_ci.contracts.targets import PluginTarget, Target
from agentv_ci.execute.stores import Store, answer_settings, question_key
from tests.execute.builders import question, target
from tests.support import write
from tests.support.runs import well_formed_text

KEY = "ab" + "0" * 62
CALL = ToolCall(tool="search", input={"q": [1, None]}, output="found")
ANSWER = Response(
    answer="42",
    messages=(OutputMessage(role="assistant", content="42", tool_calls=(CALL,)),),
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
RULES = InputFile(Path("/repo/rules.md"), is_guideline=True, sha256="rules")
ASKED = question(
    guidelines="be brief",
    chat=(ChatMessage("user", "6 × 7?"),),
    cwd=Path("/repo/evals"),
    files=(RULES,),
)


def gpt(**given: Any) -> Target:
    return target(provider="openai", **{"model": "gpt", "api_key": "${{ KEY }}", "base_url": "http://a/v1", **given})


def key(request: Request = ASKED, trial: int = 1, *, of: Target | None = None, **given: Any) -> str:
    asked = of or gpt()
    return question_key(answer_settings(asked, asked), request, trial=trial, **given)


@given(text=well_formed_text)
def test_an_answer_is_found_as_it_was_and_marked_as_cached(text: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    store = Store(tmp_path_factory.mktemp("cache"))
    answer = replace(ANSWER, answer=text, request={"prompt": text})
    store.keep(KEY, {"eval_id": text}, answer)
    assert store.find(KEY) == replace(answer, cached=True, requests=0)
    assert store.find("cd" + KEY[2:]) is None


@pytest.mark.parametrize(
    "change",
    [
        {"prompt": "6 × 8?"},
        {"guidelines": "be long"},
        {"chat": (ChatMessage("system", "6 × 7?"),)},
        {"seed": 7},
        {"temperature": 0.5},
        {"max_output_tokens": 9},
        {"task": "open the file"},
        {"files": ()},
        {"files": (replace(RULES, sha256="other"),)},
        {"files": (replace(RULES, is_guideline=False),)},
        {"files": (replace(RULES, path=Path("/repo/other.md")),)},
    ],
    ids=str,
)
def test_what_can_change_an_answer_changes_the_key_of_a_question(change: dict[str, Any]) -> None:
    assert key(replace(ASKED, **change)) != key()


def test_what_changes_no_answer_changes_no_key() -> None:
    elsewhere: dict[str, Any] = {
        "files": (replace(RULES, path=Path("/elsewhere/rules.md")),),
        "cwd": Path("/elsewhere"),
    }
    assert key(replace(ASKED, timeout_s=1, attempt=2, case_id="two", sample="{}", **elsewhere)) == key()
    assert key(of=gpt(name="x", workers=9, api_key="${{ OTHER }}", max_retries=9)) == key()


def test_no_system_prompt_counts_unless_the_question_has_its_own_and_the_target_has_none() -> None:
    judged = replace(ASKED, chat=(ChatMessage("system", "You judge."), *ASKED.chat))
    assert key(replace(judged, system_prompt=NO_SYSTEM_PROMPT)) == key(judged)
    prompted = gpt(system_prompt="Be brief.")
    assert key(replace(judged, system_prompt=NO_SYSTEM_PROMPT), of=prompted) != key(judged, of=prompted)
    assert key(replace(ASKED, system_prompt=NO_SYSTEM_PROMPT)) != key()


def test_trials_cases_and_occurrences_have_keys_of_their_own() -> None:
    cases: list[JsonValue] = [["a.yaml", "one"], ["b.yaml", "one"]]
    keys = {key(trial=trial) for trial in (1, 2, 3)} | {key(occurrence=each) for each in (0, 1, 2)}
    assert len(keys | {key(case=case) for case in cases}) == 7


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
def test_settings_that_can_change_an_answer_change_the_key(change: dict[str, Any]) -> None:
    assert key(of=gpt(**change)) != key()


def test_settings_have_the_values_of_the_environment_except_for_secrets_and_recordings() -> None:
    written = gpt(base_url="${{ URL }}", headers={"x-key": "${{ MY_KEY }}", "x-org": "${{ ORG }}"})
    used = gpt(base_url="http://used/v1", headers={"x-key": "canary", "x-org": "org"}, api_key="canary")
    found = answer_settings(written, used)
    assert found["base_url"] == "http://used/v1"
    assert found["headers"] == {"x-key": "${{ MY_KEY }}", "x-org": "org"}
    assert "canary" not in json.dumps(found)
    assert answer_settings(written, None)["base_url"] == "${{ URL }}"


def test_secrets_inside_settings_of_a_plugin_stay_as_written() -> None:
    written: dict[str, Any] = {"auth": [{"key": "${{ MY_KEY }}", "org": "${{ ORG }}"}], "style": "plain"}
    used: dict[str, Any] = {"auth": [{"key": "canary", "org": "org"}], "style": "plain"}
    one, other = (PluginTarget(name="bot", provider="acme/bot", settings=each) for each in (written, used))
    assert answer_settings(one, other)["settings"] == {
        "auth": [{"key": "${{ MY_KEY }}", "org": "org"}],
        "style": "plain",
    }


STORED = {"answer": "42", "messages": [], "has_trace": False}
ENTRY = {"version": 1, "asked": {}, "response": STORED}
WRONG: list[dict[str, Any]] = [{"duration_ms": -1}, {"usage": {"input_tokens": -1}}]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "null",
        '{"version": 1}',
        json.dumps({**ENTRY, "asked": float("nan")}),
        json.dumps({**ENTRY, "version": 2}),
        json.dumps({**ENTRY, "response": {}}),
        *(json.dumps({**ENTRY, "response": {**STORED, **wrong}}) for wrong in WRONG),
        "[" * 100_000,
        "\xff",
    ],
    ids=lambda text: text[:60],
)
def test_a_file_that_cannot_be_read_counts_as_absent_and_is_replaced(text: str, tmp_path: Path) -> None:
    store = Store(tmp_path)
    place = tmp_path / KEY[:2] / f"{KEY}.json"
    write(tmp_path, {f"{KEY[:2]}/{KEY}.json": json.dumps(ENTRY)})
    assert store.find(KEY) is not None
    place.write_bytes(text.encode("latin-1"))
    assert store.find(KEY) is None
    store.keep(KEY, {}, ANSWER)
    assert store.find(KEY) is not None


def test_clearing_removes_answers_and_scratch_files_and_nothing_else(tmp_path: Path) -> None:
    store = Store(tmp_path, outside_git=True)
    store.keep(KEY, {}, ANSWER)
    store.keep("cd" + KEY[2:], {}, ANSWER)
    others = ["notes.txt", "ab/mine.json", "ab/.mine.json.1.new", f"cd/.{KEY}.json.4711.new", f"ef/{KEY}.json"]
    write(tmp_path, dict.fromkeys(others, "mine"))
    write(tmp_path, {f"ab/.{KEY}.json.4711.new": "{", f"ab/{'ab' + '1' * 62}.json": "[]"})
    elsewhere = f"{KEY[:1]}c{KEY[2:]}"
    Store(tmp_path / "other").keep(elsewhere, {}, ANSWER)
    (tmp_path / elsewhere[:2]).symlink_to(tmp_path / "other" / elsewhere[:2])
    others.append(f"other/{elsewhere[:2]}/{elsewhere}.json")
    before = store.contents()
    sizes = [path.stat().st_size for path in tmp_path.rglob("*0.json") if path.parent.name in ("ab", "cd")]
    assert (before.files, before.size_bytes) == (2, sum(sizes))
    assert (store.clear(), store.contents().files) == (before, 0)
    left = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()}
    assert left == {*others, f"ab/{'ab' + '1' * 62}.json", ".gitignore"}


def test_a_missing_folder_is_empty_and_not_created(tmp_path: Path) -> None:
    store = Store(tmp_path / "none")
    assert (store.find(KEY), store.contents().files, store.clear().files) == (None, 0, 0)
    assert not (tmp_path / "none").exists()
