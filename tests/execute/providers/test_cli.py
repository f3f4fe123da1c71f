"""`provider: cli` with real commands in a real shell."""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from agentv_ci import process
from agentv_ci.contracts.exchange import InputFile, ProviderError, Request, Response
from agentv_ci.contracts.results import OutputMessage, ToolCall
from agentv_ci.contracts.targets import CliTarget
from agentv_ci.execute.providers import open_provider
from tests.execute.builders import context
from tests.servers.chat_api import chat_api
from tests.support import FakeClock, clean_environment, has_ended

TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=200)
"""Everything a command line can hold."""

NASTY = [
    "",
    "it's",
    '$HOME `id` \\ "q"',
    "-n",
    "a\nb\r\n\t",
    "{EVAL_ID} {{PROMPT}}",
    "'; touch x; '",
    "übung 世界 🎉",
    "%s%n",
]


def question(cwd: Path, **changes: Any) -> Request:
    asked = Request(case_id="one", prompt="What is 6 × 7?", guidelines="", chat=(), timeout_s=30, cwd=cwd)
    return replace(asked, **changes)


def target(command: str, **settings: Any) -> CliTarget:
    return CliTarget.model_validate({"name": "tool", "provider": "cli", "command_template": command, **settings})


def ask(
    asked: CliTarget,
    request: Request,
    *,
    root: Path = Path("/"),
    log: list[str] | None = None,
    environ: Mapping[str, str] | None = None,
) -> Response:
    """Ask once."""
    lines: list[str] = [] if log is None else log

    async def main() -> Response:
        world = FakeClock(clean_environment(environ)).environment()
        provider = open_provider(asked, context(root, environment=world, log=lines))
        try:
            async with asyncio.timeout(20):
                return await provider.ask(request)
        finally:
            await provider.close()

    return asyncio.run(main())


def says(command: str, cwd: Path, **changes: Any) -> str:
    """Return the answer of a command; `changes` are fields of the request."""
    return ask(target(command), question(cwd, **changes)).answer


def failure(asked: CliTarget, request: Request, **given: Any) -> ProviderError:
    with pytest.raises(ProviderError) as caught:
        ask(asked, request, **given)
    return caught.value


def check(asked: CliTarget, root: Path, log: list[str] | None = None) -> None:
    """Run the health check."""
    lines: list[str] = [] if log is None else log

    async def main() -> None:
        clock = FakeClock(clean_environment())
        provider = open_provider(asked, context(root, environment=clock.environment(), log=lines))
        try:
            async with asyncio.timeout(20):
                await provider.check()
        finally:
            await provider.close()

    asyncio.run(main())


def unhealthy(root: Path, **probe: Any) -> ProviderError:
    with pytest.raises(ProviderError) as caught:
        check(target("true", healthcheck=probe), root)
    return caught.value


def echo(*placeholders: str) -> str:
    """A command that answers with its arguments as JSON, which keeps every byte of them."""
    script = 'import json, sys; print(json.dumps({"text": sys.argv[1:]}))'
    return f"{sys.executable} -c '{script}' {' '.join(placeholders)}"


def arguments(command: str, request: Request, **settings: Any) -> list[str]:
    """Return the arguments that a command of `echo` got."""
    found: list[str] = json.loads(ask(target(command, **settings), request).answer)
    return found


def test_what_a_command_prints_is_the_answer(tmp_path: Path) -> None:
    assert ask(target("echo 42"), question(tmp_path)) == Response(
        answer="42",
        messages=(OutputMessage(role="assistant", content="42"),),
        has_trace=False,
        request={"prompt": "What is 6 × 7?"},
    )


@settings(max_examples=40, deadline=None)
@given(TEXT, TEXT)
@example("{EVAL_ID}", "{PROMPT}")
@example("{{PROMPT}}", "{GUIDELINES}")
def test_any_text_comes_back_byte_for_byte(prompt: str, case_id: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        request = question(Path(folder), prompt=prompt, case_id=case_id, guidelines=prompt)
        command = (
            "printf %s {PROMPT} > prompt; printf %s {EVAL_ID} > id; printf %s {GUIDELINES} > guidelines; "
            "cat {PROMPT_FILE} > prompt.md"
        )
        ask(target(command), request)
        written = {path.name: path.read_bytes() for path in Path(folder).iterdir()}
    assert written == {
        "prompt": prompt.encode(),
        "id": case_id.encode(),
        "guidelines": prompt.encode(),
        "prompt.md": prompt.encode(),
    }


@pytest.mark.parametrize("text", NASTY)
def test_a_text_that_looks_like_a_command_stays_one_argument(text: str, tmp_path: Path) -> None:
    request = question(tmp_path, prompt=text, case_id=text)
    assert arguments(echo("{PROMPT}", "{EVAL_ID}"), request) == [text, text]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["PROMPT", "EVAL_ID", "GUIDELINES", "OUTPUT_FILE", "FILES"])
def test_a_placeholder_inside_a_value_is_not_filled(name: str, tmp_path: Path) -> None:
    request = question(tmp_path, prompt=f"{{{name}}}", case_id="{PROMPT}", guidelines=f"{{{{{name}}}}}")
    assert arguments(echo("{PROMPT}", "{EVAL_ID}", "{GUIDELINES}"), request) == [
        f"{{{name}}}",
        "{PROMPT}",
        f"{{{{{name}}}}}",
    ]


def test_a_name_in_two_pairs_of_braces_is_the_name_in_one(tmp_path: Path) -> None:
    assert arguments(echo("{{PROMPT}}", "{{HOME}}", "$" + "{{HOME}}x"), question(tmp_path))[:2] == [
        "{PROMPT}",
        "{HOME}",
    ]


def test_a_shells_own_braces_are_written_in_two_pairs(tmp_path: Path) -> None:
    assert ask(target("echo ${{ANSWER}}", env={"ANSWER": "42"}), question(tmp_path)).answer == "42"


def test_braces_around_anything_else_stay(tmp_path: Path) -> None:
    assert says("echo '{prompt} {Prompt} {} { PROMPT }'", tmp_path) == "{prompt} {Prompt} {} { PROMPT }"


def test_attempts_count_from_zero(tmp_path: Path) -> None:
    assert (says("echo {ATTEMPT}", tmp_path), says("echo {ATTEMPT}", tmp_path, attempt=2)) == ("0", "2")


def files(*paths: str, guidelines: Sequence[str] = ()) -> tuple[InputFile, ...]:
    return tuple(InputFile(Path(path), is_guideline=path in guidelines, sha256="") for path in paths)


ATTACHED = files("/r/a b.md", "/r/it's.js", "/r/rules.md", guidelines=["/r/rules.md"])


def test_files_are_all_files_one_argument_each(tmp_path: Path) -> None:
    request = question(tmp_path, files=ATTACHED)
    assert arguments(echo("{FILES}"), request) == ["/r/a b.md", "/r/it's.js", "/r/rules.md"]


def test_attachments_are_the_files_that_are_no_guidelines(tmp_path: Path) -> None:
    request = question(tmp_path, files=ATTACHED)
    assert arguments(echo("{ATTACHMENTS}"), request) == ["/r/a b.md", "/r/it's.js"]


def test_no_files_are_no_arguments(tmp_path: Path) -> None:
    assert arguments(echo("{FILES}", "{ATTACHMENTS}", "end"), question(tmp_path)) == ["end"]


def test_files_and_attachments_have_formats_of_their_own(tmp_path: Path) -> None:
    request = question(tmp_path, files=ATTACHED)
    formats = {"files_format": "--file {path}", "attachments_format": "{basename}={path}"}
    assert arguments(echo("{FILES}"), request, **formats) == [
        "--file",
        "/r/a b.md",
        "--file",
        "/r/it's.js",
        "--file",
        "/r/rules.md",
    ]
    assert arguments(echo("{ATTACHMENTS}"), request, **formats) == ["a b.md=/r/a b.md", "it's.js=/r/it's.js"]


@settings(max_examples=15, deadline=None)
@given(st.lists(TEXT.filter(lambda text: text not in ("", ".", "..")), max_size=3))
@example(["{path}", "{basename}", "{PROMPT}"])
@example(["x; touch injected", "$(touch injected)", "'"])
def test_a_file_name_cannot_become_part_of_the_command(names: list[str]) -> None:
    paths = [f"/r/{name.replace('/', '_')}" for name in names]
    with tempfile.TemporaryDirectory() as folder:
        request = question(Path(folder), files=files(*paths))
        found = arguments(echo("{FILES}"), request, files_format="{path} {basename}")
        assert list(Path(folder).iterdir()) == []
    assert found == [part for path in paths for part in (str(Path(path)), Path(path).name)]


RULES = "Be brief."


def test_guidelines_go_before_the_prompt(tmp_path: Path) -> None:
    prompt = says("printf %s {PROMPT}", tmp_path, guidelines=RULES)
    assert prompt.index("[[ ## Guidelines ## ]]") < prompt.index(RULES) < prompt.index("What is 6 × 7?")


def test_guidelines_go_before_the_prompt_in_its_file_too(tmp_path: Path) -> None:
    asked = question(tmp_path, guidelines=RULES)
    assert ask(target("cat {PROMPT_FILE}"), asked).answer == ask(target("printf %s {PROMPT}"), asked).answer


def test_guidelines_are_not_repeated_where_they_have_a_place_of_their_own(tmp_path: Path) -> None:
    request = question(tmp_path, guidelines=RULES)
    assert arguments(echo("{GUIDELINES}", "{PROMPT}"), request) == [RULES, "What is 6 × 7?"]


def test_guidelines_stay_in_the_prompt_where_their_placeholder_is_meant_literally(tmp_path: Path) -> None:
    assert RULES in says("printf '%s' {PROMPT} '{{GUIDELINES}}'", tmp_path, guidelines=RULES)


def test_what_was_asked_is_kept_as_the_command_got_it(tmp_path: Path) -> None:
    found = ask(target("printf %s {PROMPT}"), question(tmp_path, guidelines=RULES))
    assert found.request == {"prompt": found.answer}


def test_the_output_file_is_the_answer_where_the_template_names_one(tmp_path: Path) -> None:
    assert says("echo noise; echo 42 > {OUTPUT_FILE}", tmp_path) == "42"


def test_an_output_file_that_was_not_written_is_a_failed_command(tmp_path: Path) -> None:
    error = failure(target("true {OUTPUT_FILE}"), question(tmp_path))
    assert (error.kind, "output file" in error.detail) == ("process", True)


def test_what_is_printed_is_the_answer_where_the_output_file_is_meant_literally(tmp_path: Path) -> None:
    assert says("echo '{{OUTPUT_FILE}}'", tmp_path) == "{OUTPUT_FILE}"


@pytest.mark.parametrize("case_id", ["../../escape", "a/b", "/etc/passwd", "-", "…"])
def test_the_output_file_lies_in_a_folder_of_its_own_whatever_the_case_is_called(case_id: str, tmp_path: Path) -> None:
    answer = says("echo {OUTPUT_FILE} {PROMPT_FILE} > {OUTPUT_FILE}", tmp_path, case_id=case_id)
    output, prompt = map(Path, answer.split())
    assert output.parent == prompt.parent
    assert output.parent.parent == Path(tempfile.gettempdir())


def test_temporary_files_are_removed(tmp_path: Path) -> None:
    path = Path(says("printf %s {PROMPT_FILE}", tmp_path))
    assert not path.parent.exists()


def test_temporary_files_are_removed_after_a_failure_too(tmp_path: Path) -> None:
    error = failure(target("printf %s {PROMPT_FILE}; exit 1"), question(tmp_path))
    assert not Path(error.detail.split(" (")[0]).parent.exists()


def test_temporary_files_are_kept_on_demand_and_their_place_is_logged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    log: list[str] = []
    found = ask(target("cat {PROMPT_FILE} > {OUTPUT_FILE}", keep_temp_files=True), question(tmp_path), log=log)
    (line,) = log
    kept = Path(line.split(" files kept in ")[1])
    assert {path.read_text(encoding="utf-8") for path in kept.iterdir()} == {found.answer}


def test_a_folder_for_temporary_files_that_is_not_there_is_a_failure_and_not_a_crash(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "gone"))
    assert failure(target("echo 42"), question(tmp_path)).kind == "process"


def test_a_command_runs_in_the_folder_of_the_eval_file(tmp_path: Path) -> None:
    assert says("pwd -P", tmp_path) == str(tmp_path.resolve())


def test_a_command_runs_in_its_own_folder_where_the_target_names_one(tmp_path: Path) -> None:
    (tmp_path / "agent").mkdir()
    found = ask(target("pwd -P", cwd="agent"), question(Path("/")), root=tmp_path)
    assert found.answer == str((tmp_path / "agent").resolve())


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    error = failure(target("true", cwd="gone"), question(tmp_path), root=tmp_path)
    assert (error.kind, str(tmp_path / "gone") in error.detail) == ("process", True)


def test_the_environment_of_the_target_is_added_to_the_inherited_one(tmp_path: Path) -> None:
    found = ask(
        target("echo $KEPT $ADDED $REPLACED", env={"ADDED": "b", "REPLACED": "c"}),
        question(tmp_path),
        environ={"KEPT": "a", "REPLACED": "x"},
    )
    assert found.answer == "a b c"


def test_the_runners_token_reaches_a_command_only_where_the_target_says_so(tmp_path: Path) -> None:
    environ = {"GITHUB_TOKEN": "inherited", "ACTIONS_RUNTIME_TOKEN": "inherited"}
    command = "echo [$GITHUB_TOKEN] [$ACTIONS_RUNTIME_TOKEN]"
    given_back = ask(target(command, env={"GITHUB_TOKEN": "explicit"}), question(tmp_path), environ=environ)
    assert given_back.answer == "[explicit] []"


def test_stdin_is_empty(tmp_path: Path) -> None:
    assert says("cat; echo end", tmp_path) == "end"


@pytest.mark.parametrize(
    ("command", "detail"),
    [
        ("echo out; echo why >&2; exit 3", "why (exit code 3)"),
        ("echo out; exit 3", "out (exit code 3)"),
        ("exit 3", "(exit code 3)"),
        ("echo '  ' >&2; exit 1", "(exit code 1)"),
        ("kill -KILL $$", "(exit code -9)"),
    ],
)
def test_a_command_that_fails_says_why_and_with_which_code(command: str, detail: str, tmp_path: Path) -> None:
    error = failure(target(command), question(tmp_path))
    assert (error.kind, error.detail) == ("process", detail)


def test_a_program_that_is_not_there_is_the_shells_failure(tmp_path: Path) -> None:
    error = failure(target("no-such-program --help"), question(tmp_path))
    assert (error.kind, "no-such-program" in error.detail, "(exit code 127)" in error.detail) == ("process", True, True)


def test_stderr_goes_to_the_log(tmp_path: Path) -> None:
    log: list[str] = []
    assert ask(target("echo working >&2; echo 42"), question(tmp_path), log=log).answer == "42"
    assert log == ["tool: one: stderr: working"]


def test_the_command_is_logged_on_demand(tmp_path: Path) -> None:
    log: list[str] = []
    ask(target("printf %s {PROMPT}", verbose=True), question(tmp_path), log=log)
    assert log == ["tool: running printf %s 'What is 6 × 7?'"]


def test_a_command_that_takes_longer_than_the_target_allows_is_a_timeout_with_its_stderr(tmp_path: Path) -> None:
    command = "echo thinking >&2; echo $$ > pid; exec sleep 60"
    error = failure(target(command, timeout_seconds=0.5), question(tmp_path))
    assert (error.kind, error.detail) == ("timeout", "the command timed out after 0.5 s; stderr: thinking")
    assert has_ended(int((tmp_path / "pid").read_text(encoding="utf-8")))


def test_a_command_has_the_time_of_its_case_where_the_target_says_nothing(tmp_path: Path) -> None:
    error = failure(target("sleep 60"), question(tmp_path, timeout_s=0.5))
    assert (error.kind, error.detail) == ("timeout", "the command timed out after 0.5 s")


def test_a_command_that_does_not_mind_being_asked_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "GRACE_S", 0.2)
    command = f'exec {sys.executable} -c "import signal, time; signal.signal(15, signal.SIG_IGN); time.sleep(60)"'
    assert failure(target(f"echo $$ > pid; {command}", timeout_seconds=0.5), question(tmp_path)).kind == "timeout"
    assert has_ended(int((tmp_path / "pid").read_text(encoding="utf-8")))


def test_an_answer_that_never_ends_is_a_failed_command(tmp_path: Path) -> None:
    error = failure(target("exec yes"), question(tmp_path))
    assert (error.kind, "10 MiB" in error.detail) == ("process", True)


def test_a_prompt_too_long_for_the_command_line_is_a_failure_that_names_the_way_out(tmp_path: Path) -> None:
    error = failure(target("printf %s {PROMPT}"), question(tmp_path, prompt="x" * 200_000))
    assert (error.kind, "{PROMPT_FILE}" in error.detail, len(error.detail) < 500) == ("process", True, True)


def test_a_prompt_too_long_for_the_command_line_fits_into_its_file(tmp_path: Path) -> None:
    assert says("wc -c < {PROMPT_FILE}", tmp_path, prompt="x" * 200_000) == "200000"


def test_a_nul_in_a_prompt_is_a_failure_and_not_a_crash(tmp_path: Path) -> None:
    assert failure(target("printf %s {PROMPT}"), question(tmp_path, prompt="a\0b")).kind == "process"


def prints(text: str, folder: Path) -> Response:
    """Ask a command that prints `text`."""
    (folder / "printed").write_bytes(text.encode())
    return ask(target("cat printed"), question(folder))


def test_output_messages_are_the_answer_with_its_trace(tmp_path: Path) -> None:
    messages = [
        {"role": "assistant", "content": "Let me see.", "tool_calls": [{"tool": "search", "input": {"q": "tea"}}]},
        {"role": "tool", "content": [1, 2]},
        {"role": "assistant", "content": "42"},
        {"role": "assistant", "content": "", "tool_calls": [{"tool": "stop", "output": "ok", "id": "7"}]},
    ]
    assert prints(f"\n {json.dumps({'output_messages': messages})}\n", tmp_path) == Response(
        answer="42",
        messages=(
            OutputMessage(
                role="assistant", content="Let me see.", tool_calls=(ToolCall(tool="search", input={"q": "tea"}),)
            ),
            OutputMessage(role="tool", content=[1, 2]),
            OutputMessage(role="assistant", content="42"),
            OutputMessage(role="assistant", content="", tool_calls=(ToolCall(tool="stop", input=None, output="ok"),)),
        ),
        has_trace=True,
        request={"prompt": "What is 6 × 7?"},
    )


@pytest.mark.parametrize(
    ("messages", "answer"),
    [
        ([], ""),
        ([{"role": "user", "content": "no"}], ""),
        ([{"role": "assistant"}], ""),
        ([{"role": "assistant", "content": {"é": 1}}], '{"é": 1}'),
        ([{"role": "assistant", "content": [{"type": "text"}]}], '[{"type": "text"}]'),
        ([{"role": "assistant", "content": 0}], "0"),
    ],
)
def test_the_answer_is_what_the_assistant_said_last(messages: list[object], answer: str, tmp_path: Path) -> None:
    assert prints(json.dumps({"output_messages": messages}), tmp_path).answer == answer


@pytest.mark.parametrize(
    ("printed", "answer"),
    [
        ('{"text": "42"}', "42"),
        ('{"text": "42", "tokens": 3}', "42"),
        ('{"text": {"a": "é"}}', '{"a": "é"}'),
        ('{"text": 42}', "42"),
        ('{"output_messages": "none", "text": "42"}', "42"),
        ('{"answer": 42}', '{"answer": 42}'),
        ("[42]", "[42]"),
        ('"42"', '"42"'),
        ("42", "42"),
        ('{"text": "42"} and more', '{"text": "42"} and more'),
        ("", ""),
        ("  42\n\n", "42"),
        ("9" * 5000, "9" * 5000),
        ("[" * 100_000, "[" * 100_000),
    ],
    ids=lambda text: text[:30],
)
def test_an_object_with_text_is_that_text_and_everything_else_is_the_answer_itself(
    printed: str, answer: str, tmp_path: Path
) -> None:
    found = prints(printed, tmp_path)
    assert (found.answer, found.has_trace) == (answer, False)


@pytest.mark.parametrize("printed", ['{"text": "cut \\ud83d"}', '{"output_messages": [{"role": "a\\ud83d"}]}'])
def test_half_an_emoji_does_not_reach_anything_that_cannot_hold_it(printed: str, tmp_path: Path) -> None:
    found = prints(printed, tmp_path)
    (found.answer + found.messages[0].role).encode("utf-8")


def test_an_output_file_may_hold_the_same_forms(tmp_path: Path) -> None:
    assert says("printf '%s' '{\"text\": \"42\"}' > {OUTPUT_FILE}", tmp_path) == "42"


def test_a_target_without_a_health_check_is_ready(tmp_path: Path) -> None:
    check(target("no-such-program"), tmp_path)


def test_a_url_that_answers_with_2xx_is_healthy(tmp_path: Path) -> None:
    with chat_api() as api:
        check(target("true", healthcheck={"type": "http", "url": f"{api.url}/health"}), tmp_path)


def test_a_url_that_answers_with_anything_else_is_not_healthy(tmp_path: Path) -> None:
    async def main() -> None:
        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readuntil(b"\r\n\r\n")
            writer.write(b"HTTP/1.1 503 Busy\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
            await writer.drain()
            writer.close()
            await writer.wait_closed()

        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/health"
        probed = target("true", healthcheck={"type": "http", "url": url})
        provider = open_provider(probed, context(tmp_path))
        with pytest.raises(ProviderError) as caught:
            await provider.check()
        server.close()
        await server.wait_closed()
        assert (url in caught.value.detail, "HTTP 503" in caught.value.detail) == (True, True)

    asyncio.run(main())


def test_a_url_that_nobody_answers_is_not_healthy(tmp_path: Path) -> None:
    error = unhealthy(tmp_path, type="http", url="http://127.0.0.1:1/health")
    assert "http://127.0.0.1:1/health" in error.detail


def test_a_command_that_succeeds_is_healthy(tmp_path: Path) -> None:
    check(target("true", healthcheck={"type": "command", "command_template": "true"}), tmp_path)


def test_a_command_that_fails_is_not_healthy_and_says_why(tmp_path: Path) -> None:
    error = unhealthy(tmp_path, type="command", command_template="echo not logged in >&2; exit 4")
    assert "not logged in (exit code 4)" in error.detail


def test_a_health_check_has_a_time_limit(tmp_path: Path) -> None:
    error = unhealthy(tmp_path, type="command", command_template="sleep 60", timeout_seconds=0.2)
    assert (error.kind, "timed out after 0.2 s" in error.detail) == ("timeout", True)


def test_a_health_check_fills_the_placeholders_with_nothing_but_its_own_name(tmp_path: Path) -> None:
    command = echo("{EVAL_ID}", "{PROMPT}", "{GUIDELINES}", "{ATTEMPT}", "{FILES}", "{ATTACHMENTS}") + " > seen"
    check(target("true", healthcheck={"type": "command", "command_template": command}), tmp_path)
    seen = json.loads((tmp_path / "seen").read_text(encoding="utf-8"))
    assert seen == {"text": ["healthcheck", "", "", "0"]}


def test_a_health_check_runs_where_the_targets_command_runs(tmp_path: Path) -> None:
    (tmp_path / "agent").mkdir()
    check(target("true", cwd="agent", healthcheck={"type": "command", "command_template": "touch here"}), tmp_path)
    assert (tmp_path / "agent" / "here").exists()


def test_a_health_check_may_have_a_folder_and_sees_the_targets_environment(tmp_path: Path) -> None:
    (tmp_path / "probe").mkdir()
    probe = {"type": "command", "command_template": "echo $TOKEN > seen", "cwd": "probe"}
    check(target("true", env={"TOKEN": "t"}, healthcheck=probe), tmp_path)
    assert (tmp_path / "probe" / "seen").read_text(encoding="utf-8") == "t\n"
