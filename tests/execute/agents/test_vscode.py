"""`provider: vscode-copilot`: its folders, requests and answers, with a program that is called like VS Code."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import re
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from agentv_ci.contracts.exchange import InputFile, ProviderError, Response
from agentv_ci.execute.agents.subagents import TOOL, Subagent, take_subagent
from agentv_ci.execute.agents.workspace import proof_request
from agentv_ci.execute.providers import BatchProvider, open_provider
from tests.execute.agents.builders import EDITOR, editor, guideline, script
from tests.execute.builders import answer, ask_all, context, failure, question, response, target
from tests.support import FakeClock, write


def now() -> datetime:
    """Locks are as old as their files: the clock has to be that of the disk."""
    return datetime.now(UTC)


def taken(root: Path) -> str:
    with take_subagent(root, now()) as place:
        return place.name


def test_folders_that_are_taken_at_once_are_different_ones(tmp_path: Path) -> None:
    with take_subagent(tmp_path, now()) as first, take_subagent(tmp_path, now()) as second:
        assert (first.name, second.name) == ("subagent-1", "subagent-2")
        # An agent removes the lock when it has answered; the folder is still in use.
        first.lock.unlink()
        assert taken(tmp_path) == "subagent-3"
    with pytest.raises(KeyboardInterrupt), take_subagent(tmp_path, now()) as place:
        raise KeyboardInterrupt
    assert (place.name, place.lock.exists()) == ("subagent-1", False)


def test_a_folder_of_an_agent_that_still_works_is_not_taken(tmp_path: Path) -> None:
    with take_subagent(tmp_path, now()) as place:
        place.is_kept = True
    assert (place.lock.exists(), taken(tmp_path)) == (True, "subagent-2")
    place.lock.unlink()
    assert taken(tmp_path) == "subagent-1"


def test_a_lock_of_a_killed_run_does_not_count_and_that_of_another_tool_is_not_removed(tmp_path: Path) -> None:
    with take_subagent(tmp_path, now()) as place:
        left = place.lock.read_text("utf-8")
    place.lock.write_text(left, encoding="utf-8")
    with take_subagent(tmp_path, now()) as place:
        place.lock.write_text("another's", encoding="utf-8")
    assert (place.name, place.lock.read_text("utf-8")) == ("subagent-1", "another's")


@pytest.mark.parametrize(
    ("content", "age", "folder"),
    [
        ("", timedelta(), "subagent-2"),
        ([], timedelta(hours=23), "subagent-2"),
        ({"tool": "another"}, timedelta(), "subagent-2"),
        ({"tool": TOOL, "host": "elsewhere"}, timedelta(), "subagent-2"),
        ("", timedelta(hours=25), "subagent-1"),
        ({"tool": "another"}, timedelta(hours=25), "subagent-1"),
    ],
)
def test_a_lock_counts_unless_it_is_old(content: object, age: timedelta, folder: str, tmp_path: Path) -> None:
    write(tmp_path, {"subagent-1/subagent.lock": json.dumps(content)})
    moment = (now() - age).timestamp()
    os.utime(tmp_path / "subagent-1" / "subagent.lock", (moment, moment))
    assert taken(tmp_path) == folder


def test_a_workspace_has_its_own_folder_and_those_of_the_template(tmp_path: Path) -> None:
    template = tmp_path / "there" / "ours.code-workspace"
    settings = """{
      // comments and trailing commas, as editors allow them
      "folders": [{"path": "sub"}, {"path": "/absolute"}, {"uri": "vscode-remote://x"}],
      "settings": {
        "editor.tabSize": 2,
        "chat.promptFilesLocations": {"prompts": true, "/p": true, "~/p": false, "**/p": true, "${here}": true},
      },
    }"""
    write(tmp_path, {"there/ours.code-workspace": settings})
    place = Subagent(tmp_path / "subagent-1")
    place.folder.mkdir()
    place.prepare(template, "0123abcd", keeps_messages=False)
    sub, prompts = (str(template.parent / name) for name in ("sub", "prompts"))
    locations = {prompts: True, "/p": True, "~/p": False, "**/p": True, "${here}": True}
    assert json.loads(place.workspace.read_text("utf-8")) == {
        "folders": [{"path": "."}, {"path": sub}, {"path": "/absolute"}, {"uri": "vscode-remote://x"}],
        "settings": {"editor.tabSize": 2, "chat.promptFilesLocations": locations},
    }
    assert {path.name for path in (place.folder / ".github" / "agents").iterdir()} == {"wakeup.md", "0123abcd.md"}
    for keeps in (True, False):
        (place.messages / "old").write_text("", encoding="utf-8")
        place.prepare(None, "x", keeps_messages=keeps)
        assert (place.messages / "old").exists() is keeps


@pytest.mark.parametrize(
    ("text", "detail"),
    [
        (None, "No such file or directory"),
        ("{", "cannot read workspace_template: "),
        ("\xff", "cannot read workspace_template: "),
        ("[1]", "a.code-workspace' is not a workspace"),
        ("[" * 20_000, "a.code-workspace' is nested too deeply"),
    ],
    ids=lambda value: str(value)[:20],
)
def test_a_template_that_is_not_a_workspace_is_named(text: str | None, detail: str, tmp_path: Path) -> None:
    template = tmp_path / "a.code-workspace"
    if text is not None:
        template.write_text(text, "latin-1")
    error = failure(editor(tmp_path, "", workspace_template=str(template)), root=tmp_path)
    assert (error.kind, detail in error.detail) == ("process", True)
    assert not (tmp_path / "agents").exists()


def lock(folder: Path) -> Path:
    return folder / "agents" / "subagent-1" / "subagent.lock"


def calls(folder: Path) -> list[list[str]]:
    return [json.loads(line) for line in (folder / "code.calls").read_text("utf-8").splitlines()]


@pytest.mark.parametrize(
    ("status", "wakes"),
    [("", True), ("window (subagent-12 - VS Code)", True), ("window (subagent-1 - VS Code)", False)],
)
def test_a_window_is_opened_unless_it_is_open_and_attached_files_go_to_the_chat(
    status: str, wakes: bool, tmp_path: Path
) -> None:
    files = (guideline(tmp_path / "rules.md"), InputFile(tmp_path / "data.csv", is_guideline=False, sha256=""))
    write(tmp_path, {"data.csv": "1"})
    asked = editor(tmp_path, "answer('\\ufeffhello\\r\\n')")
    assert answer(asked, question(files=files), tmp_path, environ={"STATUS": status}) == "hello"
    found = calls(tmp_path)
    assert found[0] == ["--status"]
    assert any("wakeup" in call for call in found) is wakes
    chat = found[-1]
    assert chat[:3] == ["-r", "chat", "-m"]
    attached = [Path(path).name for flag, path in pairwise(chat) if flag == "-a"]
    assert attached == ["rules.md", "data.csv", "20300102030405_req.md"]
    assert chat[-1] == "Follow the instructions in 20300102030405_req.md."
    assert not lock(tmp_path).exists()


@pytest.mark.parametrize(("name", "folder"), [("code", "vscode-agents"), ("code-insiders", "vscode-insiders-agents")])
def test_each_kind_of_vs_code_has_its_folder(
    name: str, folder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    command = script(tmp_path / name, f"{EDITOR}answer('hello')")
    assert answer(target(provider="vscode-copilot", command=command), root=tmp_path) == "hello"
    assert (tmp_path / ".subagent" / folder / "subagent-1").is_dir()


@pytest.mark.parametrize(
    "after", ["asked.unlink()", "asked.write_text('something else')", "lock.write_text('another')"]
)
def test_an_answer_is_read_whatever_happens_to_its_folder_afterwards(after: str, tmp_path: Path) -> None:
    found = response(editor(tmp_path, f"answer('hello')\n{after}"), root=tmp_path)
    assert (found.answer, "6 × 7?" in str(found.request["prompt"])) == ("hello", True)
    assert lock(tmp_path).exists() == ("lock" in after)


@pytest.mark.parametrize(
    ("body", "kind", "detail"),
    [
        ("", "timeout", "VS Code produced no response within 30 s"),
        ("asked.with_name('x_res.tmp.md').write_text('half')", "timeout", "VS Code produced no response within 30 s"),
        ("sys.exit('no window')", "process", "code: no window (exit code 1)"),
    ],
)
def test_a_session_without_an_answer_releases_its_folder(body: str, kind: str, detail: str, tmp_path: Path) -> None:
    error = failure(editor(tmp_path, body), root=tmp_path)
    assert (error.kind, error.detail.replace(f"{tmp_path}/", "")) == (kind, detail)
    assert not lock(tmp_path).exists()


def test_a_window_that_does_not_open_is_named(tmp_path: Path) -> None:
    asked = editor(tmp_path, "")
    script(tmp_path / "code", "")
    # Left by an earlier run.
    write(tmp_path, {"agents/subagent-1/.alive": ""})
    error = failure(asked, question(timeout_s=90), tmp_path)
    alive = tmp_path / "agents" / "subagent-1" / ".alive"
    assert error.detail == f"VS Code did not respond within 60 s: '{alive}' is missing"
    error = failure(editor(tmp_path, "", subagent_root="~missing-user/agents"), root=tmp_path)
    assert error.detail == "'~missing-user/agents': Could not determine home directory."


async def test_a_cancelled_session_releases_its_folder(tmp_path: Path) -> None:
    hangs = tmp_path / "hangs"
    asked = editor(tmp_path, f"Path({str(hangs)!r}).touch(); time.sleep(60)")

    provider = open_provider(asked, context(tmp_path))
    await provider.check()
    asking = asyncio.create_task(provider.ask(question()))
    while not hangs.exists():  # noqa: ASYNC110  # another process makes it
        await asyncio.sleep(0.02)
    asking.cancel()
    with suppress(asyncio.CancelledError):
        await asking
    assert not lock(tmp_path).exists()


@pytest.mark.parametrize(
    ("said", "later", "reported"),
    [
        ("TOKEN\nhello", "write_text('new rules')", None),
        ("TOKEN\nhello", "unlink()", None),
        ("hello", "touch()", "no hash"),
        ("INSTRUCTIONS_READ: `rules.md` i=1 SHA256=00\nhello", "touch()", "a different hash"),
    ],
)
def test_a_guideline_is_compared_as_it_was_when_it_was_asked_for(
    said: str, later: str, reported: str | None, tmp_path: Path
) -> None:
    link = guideline(tmp_path / "rules.md")
    token = proof_request([link]).split("one per line:\n\n")[1].split("\n")[0]
    token = token.replace("<hex>", hashlib.sha256(link.path.read_bytes()).hexdigest())
    body = f"answer({said.replace('TOKEN', token)!r})\nPath({str(link.path)!r}).{later}"
    warned: list[str] = []
    found = response(editor(tmp_path, body), question(files=(link,)), tmp_path, warned=warned)
    assert found.answer == "hello"
    preread: Any = found.request["preread"]
    assert [proof["ok"] for proof in preread] == [reported is None]
    expected = f"it: one: the agent reported {reported} for rules.md: it may not have read it"
    assert warned == ([] if reported is None else [expected])


def test_requests_of_a_dry_run_are_kept(tmp_path: Path) -> None:
    asked = editor(tmp_path, "", dry_run=True)
    warned: list[str] = []
    found = ask_all(asked, [question(prompt=each, seed=7) for each in "ab"], context(tmp_path, warned=warned))
    responses = [each for each in found if isinstance(each, Response)]
    files = [Path(str(each.request["request_file"])) for each in responses]
    assert [file.name for file in files] == ["20300102030405_req.md", "20300102030405-2_req.md"]
    assert [file.read_text() for file in files] == [each.request["prompt"] for each in responses]
    assert warned == ["it: seeds are ignored: the agent does not support them"] * 2


def test_a_window_that_still_works_keeps_its_folder_after_the_run(tmp_path: Path) -> None:
    services = context(tmp_path, environment=replace(FakeClock().environment(), now=now))
    for _ in range(2):
        ask_all(editor(tmp_path, "", wait=False), [question()], services)
    assert sorted(each.name for each in (tmp_path / "agents").iterdir()) == ["subagent-1", "subagent-2"]


def test_a_batch_has_one_answer_for_each_question_or_fails(tmp_path: Path) -> None:
    body = """
for request in sorted(asked.parent.glob("*_req.md"))[:len(arguments) if STATUS else 1]:
    answer("hello " + request.read_text().split("say ")[1].split()[0], request)
"""

    async def main(is_complete: bool) -> list[str]:
        asked = editor(tmp_path, body.replace("STATUS", str(is_complete)))
        provider = open_provider(asked, context(tmp_path))
        assert isinstance(provider, BatchProvider)
        await provider.check()
        questions = [question(prompt=f"say {each}", timeout_s=5) for each in "ab"]
        return [each.answer for each in await provider.ask_together(questions)]

    assert asyncio.run(main(is_complete=True)) == ["hello a", "hello b"]
    *_, attached, said = calls(tmp_path)[-1]
    assert said == "Follow the instructions in 20300102030405_orchestrator.md. Use the tool #runSubagent."
    listed = re.findall(r"^(\d)\. messages/\S+_req\.md$", Path(attached).read_text("utf-8"), re.MULTILINE)
    assert listed == ["1", "2"]
    assert not lock(tmp_path).exists()
    with pytest.raises(ProviderError, match="VS Code produced 1 response for 2 requests") as caught:
        asyncio.run(main(is_complete=False))
    assert caught.value.kind == "timeout"
