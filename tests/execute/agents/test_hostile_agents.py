"""Agents, editors and files that do what they should not."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import resource
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentv_ci.contracts.agent_targets import CodexTarget, VsCodeTarget
from agentv_ci.contracts.exchange import InputFile, ProviderError, Request, Response
from agentv_ci.contracts.plan import FileReference, FileText
from agentv_ci.contracts.targets import CliTarget, Target
from agentv_ci.execute.agents.events import AgentFailed, NotEvents
from agentv_ci.execute.agents.workspace import guidelines_of, proof_request, take_proofs
from agentv_ci.execute.materials import Materials
from agentv_ci.execute.providers import claude_code, copilot_cli, gemini_cli, open_provider
from agentv_ci.execute.providers import codex as codex_provider
from agentv_ci.process import ProcessResult
from agentv_ci.redaction import Redactor
from tests.execute.builders import ask_all, context
from tests.support import REPOSITORY, FakeClock, clean_environment, has_ended, run_process, write

SECRET = "sk-abcdefgh"

TOLD = """\
import json, os, subprocess, sys, time
def tell(**event):
    print(json.dumps(event, ensure_ascii=False), flush=True)
def say(text):
    tell(type="item.completed", item={"type": "agent_message", "text": text})
    tell(type="turn.completed", usage={})
"""

OPENS = """
import re, urllib.parse
linked = re.findall(r"[(]file://([^)]+)[)]", sys.stdin.read())
say(json.dumps([open(urllib.parse.unquote(path)).read() for path in linked]))
"""

EDITOR = """\
import json, os, re, subprocess, sys
from pathlib import Path
arguments = sys.argv[1:]
with open(__file__ + ".calls", "a") as calls:
    calls.write(json.dumps(arguments) + "\\n")
if arguments == ["--status"]:
    print(os.environ.get("STATUS", ""))
if arguments[:2] != ["-r", "chat"]:
    sys.exit()
if awake := re.search(r"Create an empty file (.+)", arguments[-1]):
    Path(awake[1]).touch()
    sys.exit()
asked = Path(arguments[-2])
folder = asked.parent.parent
lock = folder / "subagent.lock"
def answer(said, asked=asked):
    text = asked.read_text()
    Path(re.search(r"Create the file (.+?) and write", text)[1]).write_text(said)
    subprocess.run(re.search(r"run this command: `(.*)`", text)[1], shell=True, check=True)
"""


def script(path: Path, body: str) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!{sys.executable}\n{body}", encoding="utf-8")
    path.chmod(0o755)
    return str(path)


def codex(folder: Path, body: str, **settings: Any) -> CodexTarget:
    given = {"executable": script(folder / "agent", TOLD + body), **settings}
    return CodexTarget.model_validate({"name": "it", "provider": "codex", **given})


def editor(folder: Path, body: str, **settings: Any) -> VsCodeTarget:
    given = {"command": script(folder / "code", EDITOR + body), "subagent_root": str(folder / "agents"), **settings}
    return VsCodeTarget.model_validate({"name": "it", "provider": "vscode-copilot", **given})


def question(*files: InputFile, timeout_s: float = 20, prompt: str = "say hello") -> Request:
    return Request(
        case_id="one", prompt=prompt, guidelines="", chat=(), timeout_s=timeout_s, cwd=Path("/"), files=files
    )


def ask(
    asked: Target,
    request: Request | None = None,
    *,
    root: Path,
    environ: Mapping[str, str] | None = None,
    log: list[str] | None = None,
    warned: list[str] | None = None,
    redact: Callable[[str], str] = lambda text: text,
) -> Response | ProviderError:
    """Ask once; a target that is not there at all is a failure too."""
    means = context(root, environment=FakeClock(environ or {}).environment(), log=log, warned=warned, redact=redact)
    try:
        return ask_all(asked, [request or question()], means)[0]
    except ProviderError as error:
        return error


def answer(found: Response | ProviderError) -> str:
    assert isinstance(found, Response), found
    return found.answer


def failure(found: Response | ProviderError) -> ProviderError:
    assert isinstance(found, ProviderError), found
    return found


def logged(folder: Path) -> str:
    (log,) = (folder / "logs" / "codex").glob("*.log")
    return log.read_text("utf-8")


# What agents print.

READERS: Mapping[str, Callable[[ProcessResult], Response | None]] = {
    "codex": codex_provider.read_output,
    "claude-code": claude_code.read_output,
    "copilot-cli": copilot_cli.read_output,
    "gemini-cli": gemini_cli.read_output,
}


def read(kind: str, finished: ProcessResult) -> Response:
    """Return what an agent's output says, which is an answer."""
    response = READERS[kind](finished)
    assert response is not None
    return response


COPILOT_RESULT = {"type": "result", "exitCode": 0}


def stream(kind: str, text: str) -> list[dict[str, Any]]:
    """What an agent prints that answers with a text."""
    streams: dict[str, list[dict[str, Any]]] = {
        "codex": [
            {"type": "item.completed", "item": {"type": "agent_message", "text": text}},
            {"type": "turn.completed", "usage": {}},
        ],
        "claude-code": [{"type": "result", "is_error": False, "result": text}],
        "copilot-cli": [{"type": "assistant.message", "data": {"content": text}}, COPILOT_RESULT],
        "gemini-cli": [
            {"type": "message", "role": "assistant", "content": text},
            {"type": "result", "status": "success"},
        ],
    }
    return streams[kind]


def printed(events: Sequence[object], status: int = 0) -> ProcessResult:
    return ProcessResult(status, "\n".join(json.dumps(event, ensure_ascii=False) for event in events), "")


@pytest.mark.parametrize("kind", READERS)
def test_an_answer_may_hold_every_line_separator_that_json_leaves_as_it_is(kind: str) -> None:
    said = "one\u2028two\u2029three\u0085four"
    assert read(kind, printed(stream(kind, said))).answer == said


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    "type",
                    "item",
                    "text",
                    "error",
                    "message",
                    "data",
                    "content",
                    "usage",
                    "role",
                    "result",
                    "is_error",
                    "errors",
                    "exitCode",
                    "toolCallId",
                    "id",
                    "name",
                    "input",
                    "tool_id",
                    "tool_name",
                    "output",
                    "stats",
                    "status",
                    "code",
                    "statusCode",
                    "model",
                    "changes",
                    "input_tokens",
                ]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=8,
)
EVENTS = st.lists(
    st.builds(
        lambda kind, rest: {**rest, "type": kind},
        st.sampled_from(
            [
                "item.completed",
                "turn.completed",
                "turn.failed",
                "error",
                "thread.started",
                "system",
                "assistant",
                "user",
                "result",
                "assistant.message",
                "session.error",
                "tool.execution_start",
                "tool.execution_complete",
                "init",
                "message",
                "tool_use",
                "tool_result",
            ]
        ),
        st.dictionaries(
            st.sampled_from(["item", "message", "error", "data", "result", "usage", "stats", "content", "role"]),
            ANYTHING,
        ),
    ),
    max_size=5,
)


@pytest.mark.parametrize("kind", READERS)
@given(events=EVENTS, status=st.sampled_from([0, 1]))
def test_events_of_any_shape_are_heard_without_a_crash(kind: str, events: list[dict[str, Any]], status: int) -> None:
    with suppress(NotEvents, AgentFailed):
        READERS[kind](printed(events, status))


@pytest.mark.parametrize("kind", READERS)
def test_warnings_and_broken_lines_around_the_events_do_not_matter(kind: str) -> None:
    clean = printed(stream(kind, "hello")).stdout
    around = f'Warning: x\n\x1b[31m{{"type": "half\n[1]\n{"[" * 100_000}\n{clean}\n{{"type": "result"'
    assert read(kind, ProcessResult(0, around, "")).answer == "hello"


@pytest.mark.parametrize("kind", READERS)
def test_a_stream_without_its_end_is_no_answer(kind: str) -> None:
    with pytest.raises(AgentFailed):
        READERS[kind](printed([{"type": "system"}, *stream(kind, "hello")[:-1]]))


def test_copilot_that_reports_a_failed_session_has_not_answered() -> None:
    with pytest.raises(AgentFailed):
        READERS["copilot-cli"](printed([*stream("copilot-cli", "I give up"), {"type": "result", "exitCode": 1}]))


def test_a_prompt_of_megabytes_that_nobody_reads_does_not_hold_up_the_answer(tmp_path: Path) -> None:
    request = question(prompt="x" * 3_000_000)
    assert answer(ask(codex(tmp_path, "say('hello')"), request, root=tmp_path)) == "hello"


def test_an_agent_that_closes_its_output_early_is_waited_for(tmp_path: Path) -> None:
    done = tmp_path / "done"
    body = f"say('hello')\nos.close(1)\ntime.sleep(0.3)\nopen({str(done)!r}, 'w')"
    assert answer(ask(codex(tmp_path, body), root=tmp_path)) == "hello"
    assert done.exists()


@pytest.mark.parametrize("body", ["import shutil; shutil.rmtree(os.getcwd())", "os.chmod('.', 0)"])
def test_whatever_an_agent_does_to_its_workspace_it_is_gone_afterwards(
    body: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(scratch))
    assert answer(ask(codex(tmp_path, f"{body}\nsay('hello')"), root=tmp_path)) == "hello"
    assert list(scratch.iterdir()) == []


def test_folders_that_an_agent_made_read_only_are_removed_too(tmp_path: Path) -> None:
    # As somebody whom the modes of files stop: the administrator would not notice.
    program = f"""
import asyncio, concurrent.futures.thread, os, sys, tempfile
sys.path.insert(0, {str(REPOSITORY)!r})
from agentv_ci.execute.agents.workspace import workspace
scratch = tempfile.mkdtemp()
os.chmod(scratch, 0o777)
tempfile.tempdir = scratch
child = os.fork()
if child == 0:
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
    os._exit(len(os.listdir(scratch)))
status = os.waitpid(child, 0)[1]
import shutil
shutil.rmtree(scratch, ignore_errors=True)
sys.exit(os.waitstatus_to_exitcode(status))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")


def test_children_that_an_agent_leaves_behind_are_ended(tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    body = f"child = subprocess.Popen(['sleep', '60'])\nopen({str(pid)!r}, 'w').write(str(child.pid))\nsay('hello')"
    assert answer(ask(codex(tmp_path, body), root=tmp_path)) == "hello"
    assert has_ended(int(pid.read_text()))


# Programs and folders.


@pytest.mark.parametrize("field", ["executable", "cwd"])
def test_a_home_folder_of_nobody_is_a_failure_and_not_a_crash(field: str, tmp_path: Path) -> None:
    asked = codex(tmp_path, "say('hello')", **{field: "~nobody-of-that-name/place"})
    assert "nobody-of-that-name" in failure(ask(asked, root=tmp_path)).detail


def test_a_root_of_windows_in_a_home_folder_of_nobody_is_a_failure_and_not_a_crash(tmp_path: Path) -> None:
    asked = editor(tmp_path, "answer('hello')", subagent_root="~nobody-of-that-name/agents")
    assert "nobody-of-that-name" in failure(ask(asked, root=tmp_path)).detail


def test_a_program_found_in_a_relative_folder_of_path_is_the_one_that_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script(tmp_path / "bin" / "codex", TOLD + "say('hello')")
    monkeypatch.chdir(tmp_path)
    asked = CodexTarget.model_validate({"name": "it", "provider": "codex", "env": {"PATH": "bin"}})
    assert answer(ask(asked, root=tmp_path)) == "hello"


def test_a_program_that_is_a_folder_is_not_called_missing(tmp_path: Path) -> None:
    detail = failure(ask(codex(tmp_path, "", executable=str(tmp_path)), root=tmp_path)).detail
    assert "does not exist" not in detail


def test_a_working_directory_that_is_not_there_is_not_blamed_on_the_executable(tmp_path: Path) -> None:
    detail = failure(ask(codex(tmp_path, "", cwd="nowhere"), root=tmp_path)).detail
    assert "working directory" in detail
    assert "setting 'executable'" not in detail


def test_an_agent_that_prints_too_much_is_not_blamed_on_the_executable(tmp_path: Path) -> None:
    detail = failure(ask(codex(tmp_path, "print('x' * 11_000_000)"), root=tmp_path)).detail
    assert "printed more than 10 MiB" in detail
    assert "setting 'executable'" not in detail


@pytest.mark.parametrize(
    ("text", "mode"), [("#!/no/such/interpreter\n", 0o755), ("no program\n", 0o755), ("#!/bin/sh\n", 0o644)]
)
def test_a_program_that_cannot_start_is_named(text: str, mode: int, tmp_path: Path) -> None:
    program = tmp_path / "folder of it" / "codex"
    write(tmp_path, {"folder of it/codex": text})
    program.chmod(mode)
    found = failure(ask(codex(tmp_path, "", executable="folder of it/codex"), root=tmp_path))
    assert (found.kind, str(program) in found.detail) == ("process", True)


def test_a_health_check_runs_in_a_folder_below_home_like_any_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "probes").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path))
    probe = {"type": "command", "command_template": "true", "cwd": "~/probes"}
    asked = CliTarget.model_validate(
        {"name": "it", "provider": "cli", "command_template": "echo hello", "cwd": "~/probes", "healthcheck": probe}
    )
    assert answer(ask(asked, root=tmp_path / "elsewhere")) == "hello"


def test_an_output_file_over_the_limit_of_outputs_is_a_failed_command(tmp_path: Path) -> None:
    command = "head -c 11000000 /dev/zero > {OUTPUT_FILE}"
    asked = CliTarget.model_validate({"name": "it", "provider": "cli", "command_template": command})
    assert failure(ask(asked, root=tmp_path)).kind == "process"


# The question's files.


def test_no_copy_of_a_file_takes_the_place_of_another(tmp_path: Path) -> None:
    write(tmp_path, {"a/x.md": "A", "b/x.md": "B", "c/x.md.1": "C"})
    files = [InputFile(tmp_path / name, is_guideline=False, sha256="") for name in ("a/x.md", "b/x.md", "c/x.md.1")]
    assert json.loads(answer(ask(codex(tmp_path, OPENS), question(*files), root=tmp_path))) == ["A", "B", "C"]


def test_a_file_of_any_name_can_be_opened_by_its_link(tmp_path: Path) -> None:
    names = [
        "a b",
        "a#b",
        "a%20b",
        "a(b)",
        "a[b]",
        "a\\b",
        "a'b",
        'a"b',
        "-n",
        "..b",
        "a*b_c_",
        "übung 世界",
        "prompt.md",
    ]
    write(tmp_path / "files", {name: name for name in names})
    request = question(*(InputFile(tmp_path / "files" / name, is_guideline=True, sha256="") for name in names))
    assert json.loads(answer(ask(codex(tmp_path, OPENS), request, root=tmp_path))) == names


def test_a_file_behind_a_symbolic_link_keeps_the_name_that_the_question_uses(tmp_path: Path) -> None:
    write(tmp_path, {"v3.md": "three"})
    (tmp_path / "current.md").symlink_to("v3.md")
    digest = hashlib.sha256(b"three").hexdigest()
    with Materials({digest: FileText(path="current.md", text="three")}, tmp_path) as materials:
        assert materials.locate(FileReference(path="current.md", sha256=digest)).name == "current.md"


def test_a_file_that_an_agent_has_changed_is_not_handed_to_the_next_question(tmp_path: Path) -> None:
    write(tmp_path, {"rules.md": "old"})
    digest = hashlib.sha256(b"old").hexdigest()
    reference = FileReference(path="rules.md", sha256=digest)
    with Materials({digest: FileText(path="rules.md", text="old")}, tmp_path) as materials:
        materials.locate(reference)
        write(tmp_path, {"rules.md": "new"})
        assert materials.locate(reference).read_text("utf-8") == "old"


# Proofs of reading.


def guideline(folder: Path, name: str) -> InputFile:
    path = folder / name
    path.write_text(f"rules of {name}", encoding="utf-8")
    return InputFile(path, is_guideline=True, sha256="")


def tokens(links: Sequence[InputFile]) -> list[str]:
    """The tokens as an agent returns them that copies them letter by letter."""
    asked = proof_request(links).split("one per line:\n\n")[1].split("\n\nReplace")[0]
    hashes = iter(hashlib.sha256(link.path.read_bytes()).hexdigest() for link in links)
    first, *rest = asked.split("<hex>")
    return "".join([first, *(next(hashes) + each for each in rest)]).split("\n")


@pytest.mark.parametrize("name", ["a b.md", "a i=2 SHA256=x.md", "a`b.md", "a\nb.md"])
def test_a_guideline_of_any_name_can_be_proven(name: str, tmp_path: Path) -> None:
    links = [guideline(tmp_path, name)]
    said, proofs = take_proofs("\n".join([*tokens(links), "hello"]), guidelines_of(links))
    assert (said, [proof["ok"] for proof in proofs]) == ("hello", [True])


@pytest.mark.parametrize("joined", ["\n", "\r\n"])
def test_proofs_may_come_in_any_order(joined: str, tmp_path: Path) -> None:
    links = [guideline(tmp_path, name) for name in ("a.md", "b.md")]
    said, proofs = take_proofs(joined.join([*reversed(tokens(links)), "hello"]), guidelines_of(links))
    assert (said, [proof["ok"] for proof in proofs]) == ("hello", [True, True])


@pytest.mark.parametrize("number", ["0", "9" * 5000])
def test_a_proof_of_a_guideline_that_there_is_not_proves_nothing(number: str, tmp_path: Path) -> None:
    said, (proof,) = take_proofs(
        f"INSTRUCTIONS_READ: `a.md` i={number} SHA256=00\nhello", guidelines_of([guideline(tmp_path, "a.md")])
    )
    assert (said.splitlines()[-1], proof["sha256_reported"]) == ("hello", None)


def test_an_answer_is_left_alone_where_no_proof_was_asked_for() -> None:
    said = "INSTRUCTIONS_READ: `a.md` i=1 SHA256=00\nis what the log says"
    assert take_proofs(said, []) == (said, [])


# Logs.


def test_a_log_folder_below_home_is_found_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    root = tmp_path / "repository"
    answer(ask(codex(tmp_path, "say('hello')", log_dir="~/logs"), root=root))
    assert len(list((tmp_path / "home" / "logs").glob("*.log"))) == 1


def test_a_log_that_can_grow_no_further_does_not_cost_the_answer(tmp_path: Path) -> None:
    asked = codex(tmp_path, "print('a line\\n' * 5_000)\nsay('hello')\nsys.stdout.write('and a rest')")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, hard))
    try:
        found = ask(asked, root=tmp_path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert answer(found) == "hello"


def test_a_log_folder_that_takes_no_files_does_not_cost_the_answer(tmp_path: Path) -> None:
    warned: list[str] = []
    write(tmp_path, {"file": ""})
    found = ask(codex(tmp_path, "say('hello')", log_dir="file/logs"), root=tmp_path, warned=warned)
    assert (answer(found), len(warned)) == ("hello", 1)


def test_the_log_of_an_agent_that_took_too_long_holds_its_last_words(tmp_path: Path) -> None:
    body = "sys.stderr.write('waiting for the network')\nsys.stderr.flush()\ntime.sleep(60)"
    assert failure(ask(codex(tmp_path, body, timeout_seconds=1), root=tmp_path)).kind == "timeout"
    assert "waiting for the network" in logged(tmp_path)


def test_people_are_told_where_the_log_of_a_run_lies_that_took_too_long(tmp_path: Path) -> None:
    log: list[str] = []
    failure(ask(codex(tmp_path, "time.sleep(60)", timeout_seconds=0.3), root=tmp_path, log=log))
    (file,) = (tmp_path / "logs" / "codex").glob("*.log")
    assert any(str(file) in line for line in log)


def test_a_case_id_with_slashes_names_one_log_in_its_folder(tmp_path: Path) -> None:
    request = replace(question(), case_id="../../a/b")
    answer(ask(codex(tmp_path, "say('hello')"), request, root=tmp_path))
    assert "../../a/b" in logged(tmp_path)


@pytest.mark.parametrize("value", ["0", " OFF "])
def test_logs_can_be_switched_off(value: str, tmp_path: Path) -> None:
    environ = {"AGENTV_CODEX_STREAM_LOGS": value}
    answer(ask(codex(tmp_path, "say('hello')"), root=tmp_path, environ=environ))
    assert not (tmp_path / "logs").exists()


# Secrets.


@pytest.mark.parametrize("output", ["sys.stdout", "sys.stderr"])
def test_colours_in_the_middle_of_a_secret_do_not_bring_it_into_a_log(output: str, tmp_path: Path) -> None:
    body = f"print('found sk-\\x1b[0mabcdefgh', file={output})\nsay('hello')"
    answer(ask(codex(tmp_path, body), root=tmp_path, redact=Redactor([SECRET]).text))
    assert SECRET not in logged(tmp_path)


def test_a_secret_of_several_lines_does_not_reach_a_log(tmp_path: Path) -> None:
    key = "-----BEGIN KEY-----\nc2VjcmV0IHNlY3JldA\n-----END KEY-----"
    body = f"print({key!r}, file=sys.stderr)\nsay('hello')"
    answer(ask(codex(tmp_path, body), root=tmp_path, redact=Redactor([key]).text))
    assert "c2VjcmV0IHNlY3JldA" not in logged(tmp_path)


def test_a_secret_does_not_reach_a_row_through_the_reason_why_an_agent_stopped() -> None:
    stopped = printed([{"type": "result", "result": "hello", "stop_reason": f"because of {SECRET}"}])
    given = read("claude-code", stopped)
    assert SECRET in (given.finish_reason or "")
    assert SECRET not in repr(Redactor([SECRET]).response(given))


# Copilot in VS Code.


def test_the_lock_of_somebody_else_stays_where_it_is(tmp_path: Path) -> None:
    # The agent gives the folder back with its answer; from then on anybody may take it.
    owner = json.dumps({"pid": os.getpid(), "host": socket.gethostname()})
    assert answer(ask(editor(tmp_path, f"answer('hello')\nlock.write_text({owner!r})"), root=tmp_path)) == "hello"
    assert (tmp_path / "agents" / "subagent-1" / "subagent.lock").exists()


def test_an_answer_is_not_lost_when_another_run_takes_the_folder_at_once(tmp_path: Path) -> None:
    other = f"""
answer('hello')
sys.path.insert(0, {str(REPOSITORY)!r})
from datetime import datetime, UTC
from agentv_ci.execute.agents.subagents import take_subagent
with take_subagent(folder.parent, datetime.now(UTC)) as taken:
    taken.prepare(None, "00000000", keeps_messages=False)
"""
    assert answer(ask(editor(tmp_path, other), root=tmp_path)) == "hello"


@pytest.mark.parametrize("body", ["", "sys.exit(3)", "asked.with_name('x_res.tmp.md').write_text('half')"])
def test_a_session_without_an_answer_gives_its_folder_back(body: str, tmp_path: Path) -> None:
    found = failure(ask(editor(tmp_path, body), root=tmp_path))
    assert found.kind == ("process" if "exit" in body else "timeout")
    assert not (tmp_path / "agents" / "subagent-1" / "subagent.lock").exists()


def test_a_cancelled_session_gives_its_folder_back(tmp_path: Path) -> None:
    hangs = tmp_path / "hangs"
    asked = editor(tmp_path, f"import time; Path({str(hangs)!r}).touch(); time.sleep(60)")

    async def main() -> None:
        provider = open_provider(asked, context(tmp_path))
        await provider.check()
        asking = asyncio.create_task(provider.ask(question()))
        while not hangs.exists():  # noqa: ASYNC110  # another process makes it
            await asyncio.sleep(0.02)
        asking.cancel()
        with suppress(asyncio.CancelledError):
            await asking

    asyncio.run(main())
    assert not (tmp_path / "agents" / "subagent-1" / "subagent.lock").exists()


def test_a_window_of_another_number_is_not_taken_for_the_folders_own(tmp_path: Path) -> None:
    found = ask(
        editor(tmp_path, "answer('hello')"), root=tmp_path, environ={"STATUS": "window (subagent-12 - VS Code)"}
    )
    assert answer(found) == "hello"
    calls = [json.loads(line) for line in (tmp_path / "code.calls").read_text().splitlines()]
    assert any("wakeup" in call for call in calls)


def test_an_agent_that_tidies_its_question_away_has_answered(tmp_path: Path) -> None:
    assert answer(ask(editor(tmp_path, "answer('hello')\nasked.unlink()"), root=tmp_path)) == "hello"


def test_a_row_keeps_the_question_as_it_was_asked(tmp_path: Path) -> None:
    found = ask(editor(tmp_path, "answer('hello')\nasked.write_text('something else')"), root=tmp_path)
    assert isinstance(found, Response)
    assert "say hello" in str(found.request["prompt"])


@pytest.mark.parametrize("later", ["write_text('new rules')", "unlink()"])
def test_a_guideline_is_proven_as_it_was_when_it_was_asked_for(later: str, tmp_path: Path) -> None:
    link = guideline(tmp_path, "rules.md")
    said = "\n".join([*tokens([link]), "hello"])
    body = f"answer({said!r})\nPath({str(link.path)!r}).{later}"
    warned: list[str] = []
    found = ask(
        editor(tmp_path, body),
        question(InputFile(link.path, is_guideline=True, sha256="")),
        root=tmp_path,
        warned=warned,
    )
    assert (answer(found), warned) == ("hello", [])


def test_a_byte_order_mark_is_no_part_of_an_answer(tmp_path: Path) -> None:
    assert answer(ask(editor(tmp_path, "answer('\\ufeffhello')"), root=tmp_path)) == "hello"


def test_requests_that_are_only_written_stay(tmp_path: Path) -> None:
    asked = editor(tmp_path, "", dry_run=True)
    found = ask_all(asked, [question(prompt="one"), question(prompt="two")], context(tmp_path))
    files = [Path(str(each.request["request_file"])) for each in found if isinstance(each, Response)]
    assert ["say" if not file.exists() else file.read_text() for file in files] == [
        each.request["prompt"] for each in found if isinstance(each, Response)
    ]


def test_a_template_nested_too_deep_is_a_failure_and_not_a_crash(tmp_path: Path) -> None:
    write(tmp_path, {"deep.code-workspace": "[" * 20_000})
    asked = editor(tmp_path, "answer('hello')", workspace_template=str(tmp_path / "deep.code-workspace"))
    assert failure(ask(asked, root=tmp_path)).kind == "process"


@pytest.mark.parametrize("text", [None, "{", "[1]", "\xff"])
def test_a_template_that_is_no_workspace_is_named_and_gives_the_folder_back(text: str | None, tmp_path: Path) -> None:
    template = tmp_path / "a.code-workspace"
    if text is not None:
        template.write_text(text, "latin-1")
    found = failure(ask(editor(tmp_path, "", workspace_template=str(template)), root=tmp_path))
    assert found.kind == "process"
    assert not (tmp_path / "agents" / "subagent-1" / "subagent.lock").exists()


# Whole runs.

CASE = """\
  - id: {id}
    expected_outcome: Says hello
    input_messages: [{{role: user, content: {said}}}]
    expected_messages: []
    evaluators: [{{name: a, type: contains, value: hello}}]
"""


def suite(repository: Path, target: Mapping[str, Any], *, ids: Sequence[str] = ("one",), name: str = "q") -> None:
    """An eval file and its targets; what targets name lies beside them."""
    cases = "".join(CASE.format(id=each, said=f"say {each}") for each in ids)
    execution = "execution: {max_retries: 0}\n"
    targets = {"$schema": "agentv-targets-v2.2", "targets": [{"name": "default", **target}]}
    write(
        repository,
        {
            f"{name}.eval.yaml": f"$schema: agentv-eval-v2\n{execution}evalcases:\n{cases}",
            "targets.yaml": json.dumps(targets),
        },
    )


def rows(repository: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (repository / "r.jsonl").read_text("utf-8").splitlines()]


@pytest.mark.parametrize("executable", ["no-agent-of-that-name", "./no/codex", "~nobody-of-that-name/codex"])
def test_a_missing_agent_ends_the_run_with_4_before_the_first_case(executable: str, repository: Path) -> None:
    suite(repository, {"provider": "codex", "executable": executable})
    done = run_process("eval", "q.eval.yaml", "--out", "r.jsonl", cwd=repository)
    assert (done.code, "Traceback" in done.err) == (4, False)


def test_colours_in_the_middle_of_a_secret_do_not_bring_it_to_the_terminal(repository: Path) -> None:
    script(repository / "agent", TOLD + "print('key sk-\\x1b[0mabcdefgh', file=sys.stderr)\nsys.exit(1)")
    suite(repository, {"provider": "codex", "executable": "./agent"})
    arguments = ("eval", "q.eval.yaml", "--out", "r.jsonl", "--verbose")
    done = run_process(*arguments, cwd=repository, env={"MY_API_KEY": SECRET})
    assert SECRET not in done.out + done.err


def test_a_log_format_that_there_is_not_is_named_with_the_variable_it_comes_from(repository: Path) -> None:
    script(repository / "agent", TOLD + "say('hello')")
    suite(repository, {"provider": "codex", "executable": "./agent"})
    arguments = ("eval", "q.eval.yaml", "--out", "r.jsonl")
    done = run_process(*arguments, cwd=repository, env={"AGENTV_CODEX_LOG_FORMAT": "xml"})
    assert done.code == 2
    assert "AGENTV_CODEX_LOG_FORMAT" in done.err
    assert "constrained-str" not in done.err


def test_a_dry_run_does_not_say_that_vs_code_cannot_batch(repository: Path) -> None:
    suite(repository, {"provider": "vscode-copilot", "settings": {"provider_batching": True}})
    done = run_process("eval", "q.eval.yaml", "--out", "r.jsonl", "--dry-run", "--verbose", cwd=repository)
    assert "'vscode-copilot' cannot" not in done.err


def test_a_window_that_still_works_keeps_its_folder_when_the_run_has_ended(repository: Path) -> None:
    script(repository / "code", EDITOR)
    suite(repository, {"provider": "vscode-copilot", "command": "./code", "subagent_root": "agents", "wait": False})
    for _ in range(2):
        run_process("eval", "q.eval.yaml", "--out", "r.jsonl", cwd=repository)
    assert sorted(each.name for each in (repository / "agents").iterdir()) == ["subagent-1", "subagent-2"]


def test_a_batch_of_which_one_answer_is_missing_is_asked_again_case_by_case(repository: Path) -> None:
    body = "if 'orchestrator' not in asked.name: answer('hello')"
    script(repository / "code", EDITOR + body)
    target = {"provider": "vscode-copilot", "command": "./code", "subagent_root": "agents", "timeout_seconds": 3}
    suite(repository, {**target, "provider_batching": "${{ BATCHED }}"}, ids=("one", "two"))
    arguments = ("eval", "q.eval.yaml", "--out", "r.jsonl", "--verbose", "--workers", "8")
    done = run_process(*arguments, cwd=repository, env={"BATCHED": "true"})
    assert done.code == 0, done.err
    assert [row["candidate_answer"] for row in rows(repository)] == ["hello", "hello"]
    assert "provider_batching failed: VS Code produced 0 responses for 2 requests" in done.err


def test_every_trial_of_every_suite_gets_its_own_answer_out_of_a_batch(repository: Path) -> None:
    body = """
for request in sorted(asked.parent.glob("*_req.md")):
    answer("hello " + request.read_text().split("say ")[1].split()[0], request)
"""
    script(repository / "code", EDITOR + body)
    target = {"provider": "vscode-copilot", "command": "./code", "subagent_root": "agents", "provider_batching": True}
    suite(repository, target, ids=("one", "two"), name="a")
    suite(repository, target, ids=("two", "one"), name="b")
    done = run_process("eval", ".", "--out", "r.jsonl", "--repeat", "2", "--verbose", cwd=repository)
    assert done.code == 0, done.err
    assert [row["candidate_answer"].split()[1] for row in rows(repository)] == [
        row["eval_id"] for row in rows(repository)
    ]
    assert "asking 8 questions in one batch" in done.err


@pytest.mark.parametrize(("kind", "number"), [("codex", signal.SIGINT), ("vscode-copilot", signal.SIGTERM)])
def test_an_interrupted_run_leaves_no_agent_no_lock_and_no_scratch_folder(
    kind: str, number: signal.Signals, repository: Path
) -> None:
    scratch, pid = repository / "scratch", repository / "pid"
    scratch.mkdir()
    waits = (
        "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "child = subprocess.Popen(['sleep', '60'])\n"
        f"open({str(pid)!r}, 'w').write(f'{{os.getpid()}} {{child.pid}}')\n"
        "time.sleep(60)"
    )
    script(repository / "agent", (TOLD if kind == "codex" else EDITOR) + waits)
    named = {"executable": "./agent"} if kind == "codex" else {"command": "./agent", "subagent_root": "agents"}
    suite(repository, {"provider": kind, **named})
    hearing = "import signal, runpy; signal.signal(signal.SIGINT, signal.default_int_handler); "
    program = f"{hearing}runpy.run_module('agentv_ci', run_name='__main__', alter_sys=True)"
    arguments = [sys.executable, "-c", program, "eval", "q.eval.yaml", "--out", "r.jsonl"]
    env = clean_environment({"TMPDIR": str(scratch), "PYTHONPATH": str(REPOSITORY)})
    run = subprocess.Popen(arguments, cwd=repository, env=env, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 30
    while not (pid.exists() and len(pid.read_text().split()) == 2) and time.monotonic() < deadline:
        time.sleep(0.02)
    run.send_signal(number)
    _, err = run.communicate(timeout=30)
    assert (run.returncode, "Traceback" in err) == (130, False)
    assert all(has_ended(int(each)) for each in pid.read_text().split())
    assert list(scratch.iterdir()) == []
    assert not list(repository.glob("agents/*/subagent.lock"))
