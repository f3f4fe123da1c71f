"""What an agent reads: the prompt, copies of files in a scratch folder, and the proof that it has read them."""

from __future__ import annotations

import asyncio
import hashlib
import json
import subprocess
import sys
import tempfile
import threading
from collections.abc import Sequence
from pathlib import Path

import pytest

from agentv_ci.contracts.exchange import InputFile, ProviderError
from agentv_ci.execute.agents import workspace as module
from agentv_ci.execute.agents.workspace import (
    Workspace,
    file_link,
    guidelines_of,
    prompt_document,
    proof_request,
    take_proofs,
    workspace,
)
from tests.execute.agents.builders import codex, guideline
from tests.execute.builders import answer, question
from tests.support import REPOSITORY, write

GUIDELINE = InputFile(Path("/repo/a.instructions.md"), is_guideline=True, sha256="")
ATTACHED = InputFile(Path("/repo/data.csv"), is_guideline=False, sha256="")


def test_the_prompt_lists_guidelines_and_attachments_apart() -> None:
    asked = question(prompt="with contents", task="  do it  ")
    assert prompt_document(asked, [ATTACHED, GUIDELINE]) == (
        "Read all guideline files:\n* [a.instructions.md](file:///repo/a.instructions.md).\n\n"
        "Read all attached files:\n* [data.csv](file:///repo/data.csv).\n\n"
        "If a file is missing, answer `ERROR: missing-file <filename>` and stop.\n"
        "Then apply the system instructions to the user query below.\n\n"
        "[[ ## user_query ## ]]\n\ndo it"
    )
    assert prompt_document(asked, []) == "[[ ## user_query ## ]]\n\ndo it"
    assert prompt_document(question(prompt="judge this"), []).endswith("\n\njudge this")


def test_a_link_is_markdown_for_every_name() -> None:
    link = file_link(InputFile(Path("/r/é [1] (a#b?).md"), is_guideline=False, sha256=""))
    assert link == "[é \\[1\\] (a#b?).md](file:///r/%C3%A9%20%5B1%5D%20%28a%23b%3F%29.md)"


def test_an_agent_can_open_files_of_every_name_as_separate_copies(tmp_path: Path) -> None:
    names = ["a b", "a#b", "a%20b", "a(b)", "a[b]", "a\\b", "a'b", 'a"b', "-n", "..b", "a*b", "übung 世界", "prompt.md"]
    names += ["a/x.md", "b/x.md", "c/x.md.1"]
    write(tmp_path / "files", {name: name for name in names})
    opens = """
import re, urllib.parse
linked = re.findall(r"[(]file://([^)]+)[)]", sys.stdin.read())
say(json.dumps([open(urllib.parse.unquote(path)).read() for path in linked]))
"""
    files = tuple(InputFile(tmp_path / "files" / name, is_guideline=True, sha256="") for name in names)
    assert json.loads(answer(codex(tmp_path, opens), question(files=files), tmp_path)) == names


@pytest.fixture
def scratch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "scratch"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


async def use(*files: InputFile) -> None:
    async with workspace("codex", files) as place:
        (copy,) = place.files
        assert (copy.path.read_text("utf-8"), copy.is_guideline) == ("a", True)
        copy.path.write_text("changed", encoding="utf-8")


async def test_a_workspace_has_copies_and_is_removed(scratch: Path, tmp_path: Path) -> None:
    await use(guideline(tmp_path / "a.md", "a"))
    assert (list(scratch.iterdir()), (tmp_path / "a.md").read_text("utf-8")) == ([], "a")


@pytest.mark.parametrize("missing", ["file", "folder"])
async def test_a_workspace_that_cannot_be_made_is_a_failure_and_leaves_nothing(
    missing: str, scratch: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if missing == "folder":
        monkeypatch.setattr(tempfile, "tempdir", str(scratch / "nowhere"))
    with pytest.raises(ProviderError, match="cannot write the files of the question"):
        await use(InputFile(scratch / "gone.md", is_guideline=False, sha256=""))
    assert list(scratch.iterdir()) == []


async def test_a_question_that_is_cancelled_while_files_are_copied_leaves_nothing(
    scratch: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, continues = threading.Event(), threading.Event()
    make = module._make

    def slow(kind: str, files: tuple[InputFile, ...], parent: Path | None) -> Workspace:
        begun.set()
        assert continues.wait(30)
        return make(kind, files, parent)

    monkeypatch.setattr(module, "_make", slow)
    using = asyncio.create_task(use())
    await asyncio.to_thread(begun.wait, 30)
    using.cancel()
    asyncio.get_running_loop().call_later(0.05, continues.set)
    with pytest.raises(asyncio.CancelledError):
        await using
    assert list(scratch.iterdir()) == []


async def test_a_cancelled_question_removes_its_workspace(scratch: Path) -> None:
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.1), workspace("codex", []):
            await asyncio.sleep(60)
    assert list(scratch.iterdir()) == []


@pytest.mark.parametrize("body", ["import shutil; shutil.rmtree(os.getcwd())", "os.chmod('.', 0)"])
def test_a_workspace_is_removed_whatever_the_agent_does_to_it(body: str, scratch: Path, tmp_path: Path) -> None:
    assert answer(codex(tmp_path, f"{body}\nsay('hello')"), root=tmp_path) == "hello"
    assert list(scratch.iterdir()) == []


READ_ONLY = f"""
import asyncio, concurrent.futures.thread, os, sys, tempfile
sys.path.insert(0, {str(REPOSITORY)!r})
from agentv_ci.execute.agents.workspace import workspace
tempfile.tempdir = sys.argv[1]
if os.getuid() == 0:
    os.setuid(65534)

async def main():
    async with workspace("codex", []) as place:
        for mode in (0o500, 0o300, 0o000):
            module = place.folder / f"module-{{mode}}"
            module.mkdir()
            (module / "file").write_text("")
            module.chmod(mode)

asyncio.run(main())
"""


def test_read_only_folders_of_an_agent_are_removed_too() -> None:
    # As a user whom modes stop: the administrator would not notice.
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o777)
        command = [sys.executable, "-c", READ_ONLY, folder]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
        assert (done.returncode, done.stderr, list(Path(folder).iterdir())) == (0, "", [])


def hash_of(link: InputFile) -> str:
    return hashlib.sha256(link.path.read_bytes()).hexdigest()


def tokens(links: Sequence[InputFile]) -> list[str]:
    """Return the tokens as an agent returns them that follows its instructions."""
    asked = proof_request(links).split("one per line:\n\n")[1].split("\n\nReplace")[0]
    first, *rest = asked.split("<hex>")
    return "".join([first, *(hash_of(link) + each for link, each in zip(links, rest, strict=True))]).split("\n")


def test_a_proof_is_requested_for_each_guideline() -> None:
    assert proof_request(guidelines_of([ATTACHED])) == ""
    text = proof_request([GUIDELINE, InputFile(Path("/repo/b.md"), is_guideline=True, sha256="")])
    assert text.startswith("[[ ## mandatory_pre_read ## ]]\n\nRead all instruction files: [a.instructions.md](file:")
    assert "INSTRUCTIONS_READ: `a.instructions.md` i=1 SHA256=<hex>\nINSTRUCTIONS_READ: `b.md` i=2 SHA256=<hex>" in text


@pytest.mark.parametrize("name", ["a b.md", "a i=2 SHA256=x.md", "a`b.md", "a\nb.md"])
@pytest.mark.parametrize("form", ["{}", "- {}", "**{}**", "{}\r"])
def test_tokens_of_every_name_and_form_are_removed_and_compared(name: str, form: str, tmp_path: Path) -> None:
    links = [guideline(tmp_path / each, each) for each in (name, "b.md")]
    given = [form.format(each) for each in reversed(tokens(links))]
    text, proofs = take_proofs("\n".join([*given, "", "hello\n"]), guidelines_of(links))
    assert (text, [proof["ok"] for proof in proofs]) == ("hello", [True, True])


FAR = f"INSTRUCTIONS_READ: `a.md` i={'9' * 5000} SHA256=AB"


@pytest.mark.parametrize(
    ("said", "text", "reported"),
    [
        ("\nThe answer.\n", "The answer.", None),
        ("TOKEN\n\nThe answer.", "The answer.", "ab"),
        ("```\nTOKEN\n```\nThe answer.", "The answer.", "ab"),
        ("```text\nTOKEN\n```\n\n```\nThe answer.\n```", "```\nThe answer.\n```", "ab"),
        ("TOKEN\n```\nThe answer.\n```", "```\nThe answer.\n```", "ab"),
        ("The answer.\nTOKEN", "The answer.\nINSTRUCTIONS_READ: `a.md` i=1 SHA256=AB", None),
        ("INSTRUCTIONS_READ: `a.md` i=0 SHA256=AB\nThe answer.", "The answer.", None),
        ("INSTRUCTIONS_READ: `b.md` i=1 SHA256=AB\nThe answer.", "The answer.", None),
        (FAR, FAR, None),
    ],
    ids=lambda value: value[:30] if isinstance(value, str) else "",
)
def test_only_tokens_at_the_top_of_an_answer_are_proofs(
    said: str, text: str, reported: str | None, tmp_path: Path
) -> None:
    link = guideline(tmp_path / "a.md")
    found, proofs = take_proofs(said.replace("TOKEN", "INSTRUCTIONS_READ: `a.md` i=1 SHA256=AB"), guidelines_of([link]))
    proof = {"file": "a.md", "i": 1, "sha256_expected": hash_of(link), "sha256_reported": reported, "ok": False}
    assert (found, proofs) == (text, [proof])
    said = "INSTRUCTIONS_READ: `a.md` i=1 SHA256=00\nhello"
    assert take_proofs(said, []) == (said, [])
