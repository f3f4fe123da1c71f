"""`provider: cli` with real commands in a real shell."""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from agentv_ci.contracts.exchange import InputFile, ProviderError, Request, Response
from agentv_ci.contracts.results import OutputMessage, ToolCall
from agentv_ci.contracts.targets import Target
from tests.execute.builders import answer, ask, failure, question, response, target
from tests.servers.model_api import model_api
from tests.support import has_ended

TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=200)
"""Everything that a command line can hold."""
PROMPT = question().prompt


def tool(command: str, **settings: Any) -> Target:
    return target(provider="cli", name="tool", command_template=command, **settings)


def echo(*placeholders: str) -> str:
    """Return a command that answers with its arguments as JSON, which keeps every byte of them."""
    script = "import json, sys; print(json.dumps(sys.argv[1:]))"
    return f"{sys.executable} -c '{script}' {' '.join(placeholders)}"


def arguments(command: str, request: Request, **settings: Any) -> list[str]:
    """Return the arguments that a command of `echo` got."""
    found: list[str] = json.loads(answer(tool(command, **settings), request))
    return found


@settings(max_examples=8)
@given(TEXT, TEXT)
@example("{EVAL_ID} {{PROMPT}} {GUIDELINES}", "{PROMPT}")
@example("'; touch injected; '", "$(touch injected) `touch injected` -n it's")
def test_every_text_is_one_argument_byte_for_byte(prompt: str, case_id: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        asked = question(cwd=Path(folder), prompt=prompt, case_id=case_id, guidelines=prompt)
        command = (
            "printf %s {PROMPT} > prompt; printf %s {EVAL_ID} > id; printf %s {GUIDELINES} > guidelines; "
            "cat {PROMPT_FILE} > prompt.md"
        )
        answer(tool(command), asked)
        written = {path.name: path.read_bytes().decode() for path in Path(folder).iterdir()}
    assert written == {"prompt": prompt, "id": case_id, "guidelines": prompt, "prompt.md": prompt}


@settings(max_examples=8)
@given(st.lists(TEXT.filter(lambda text: text not in ("", ".", "..")), max_size=3))
@example(["{path}", "{basename}", "{PROMPT}"])
@example(["x; touch injected", "$(touch injected)", "'"])
def test_a_file_name_cannot_become_part_of_the_command(names: list[str]) -> None:
    paths = [Path(f"/r/{name.replace('/', '_')}") for name in names]
    files = tuple(InputFile(path, is_guideline=False, sha256="") for path in paths)
    with tempfile.TemporaryDirectory() as folder:
        asked = question(cwd=Path(folder), files=files)
        found = arguments(echo("{FILES}"), asked, files_format="{path} {basename}")
        assert list(Path(folder).iterdir()) == []
    assert found == [part for path in paths for part in (str(path), path.name)]


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        (echo("{{PROMPT}}", "{{HOME}}"), '["{PROMPT}", "{HOME}"]'),
        ("echo ${{ANSWER}}", "42"),
        ("echo '{prompt} {Prompt} {} { PROMPT }'", "{prompt} {Prompt} {} { PROMPT }"),
        ("echo {ATTEMPT}", "1"),
        ("echo noise; echo 42 > {OUTPUT_FILE}", "42"),
        ("printf '%s' '{\"text\": \"42\"}' > {OUTPUT_FILE}", "42"),
        ('printf \'%s\' \'{"text": "42", "n": 1}\' > {OUTPUT_FILE}', '{"text": "42", "n": 1}'),
        ("echo '{\"text\": \"no\"}'; printf '{}' > {OUTPUT_FILE}", "{}"),
        ("echo '{{OUTPUT_FILE}}'", "{OUTPUT_FILE}"),
        ("cat; echo end", "end"),
        ("echo [$GITHUB_TOKEN] [$ACTIONS_RUNTIME_TOKEN] [$KEPT]", "[explicit] [] [a]"),
    ],
)
def test_placeholders_and_the_environment(command: str, expected: str) -> None:
    environ = {"GITHUB_TOKEN": "inherited", "ACTIONS_RUNTIME_TOKEN": "inherited", "KEPT": "a"}
    env = {"ANSWER": "42", "GITHUB_TOKEN": "explicit"}
    assert answer(tool(command, env=env), question(attempt=1), environ=environ) == expected


def test_prompt_on_standard_input() -> None:
    asked = question(prompt="what?\n" * 100_000, guidelines="be kind")
    text = answer(tool("cat", stdin="prompt"), asked)
    assert (text.startswith("[[ ## "), "be kind" in text, text.count("what?")) == (True, True, 100_000)


FILES = tuple(
    InputFile(Path(path), is_guideline=path == "/r/rules.md", sha256="")
    for path in ("/r/a b.md", "/r/it's.js", "/r/rules.md")
)


@pytest.mark.parametrize(
    ("placeholder", "formats", "expected"),
    [
        ("{FILES}", {}, ["/r/a b.md", "/r/it's.js", "/r/rules.md"]),
        ("{ATTACHMENTS}", {}, ["/r/a b.md", "/r/it's.js"]),
        ("{FILES}", {"files_format": "-f {basename}"}, ["-f", "a b.md", "-f", "it's.js", "-f", "rules.md"]),
        ("{ATTACHMENTS}", {"attachments_format": "{basename}={path}"}, ["a b.md=/r/a b.md", "it's.js=/r/it's.js"]),
    ],
)
def test_files_are_arguments(placeholder: str, formats: dict[str, str], expected: list[str]) -> None:
    assert arguments(echo(placeholder, "end"), question(files=FILES), **formats) == [*expected, "end"]
    assert arguments(echo(placeholder, "end"), question(), **formats) == ["end"]


def test_guidelines_go_before_the_prompt_unless_the_template_has_them() -> None:
    asked = question(guidelines="Be brief.")
    found = response(tool("printf %s {PROMPT}"), asked)
    assert found.answer == f"[[ ## Guidelines ## ]]\n\nBe brief.\n\n[[ ## Task ## ]]\n\n{PROMPT}"
    assert found.request == {"prompt": found.answer}
    assert answer(tool("cat {PROMPT_FILE}"), asked) == found.answer
    assert arguments(echo("{GUIDELINES}", "{PROMPT}"), asked) == ["Be brief.", PROMPT]
    assert "Be brief." in answer(tool("printf '%s' {PROMPT} '{{GUIDELINES}}'"), asked)


@pytest.mark.parametrize("case_id", ["../../escape", "/etc/passwd", "-"])
def test_temporary_files_are_in_one_folder_and_removed(case_id: str) -> None:
    said, asked = "echo {OUTPUT_FILE} {PROMPT_FILE}", question(case_id=case_id)
    failed = failure(tool(f"{said} >&2; exit 1"), asked).detail.split(" (")[0]
    for found in (answer(tool(f"{said} > {{OUTPUT_FILE}}"), asked), failed):
        output, prompt = map(Path, found.split())
        assert output.parent == prompt.parent
        assert (output.parent.parent, output.parent.exists()) == (Path(tempfile.gettempdir()), False)


def test_temporary_files_are_kept_on_demand(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    log: list[str] = []
    answer(tool("cat {PROMPT_FILE} > {OUTPUT_FILE}", keep_temp_files=True), log=log)
    (line,) = log
    kept = Path(line.removeprefix("tool: one: files kept in "))
    assert {path.read_text(encoding="utf-8") for path in kept.iterdir()} == {PROMPT}


def test_a_command_runs_in_the_folder_of_its_eval_file_unless_the_target_sets_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "agent").mkdir()
    assert answer(tool("pwd -P"), question(cwd=tmp_path)) == str(tmp_path.resolve())
    assert answer(tool("pwd -P", cwd="agent"), root=tmp_path) == str((tmp_path / "agent").resolve())
    monkeypatch.setenv("HOME", str(tmp_path))
    probe = {**probes("true"), "cwd": "~/agent"}
    assert answer(tool("pwd -P", cwd="~/agent", healthcheck=probe)).endswith("agent")
    error = failure(tool("true", cwd="gone"), root=tmp_path)
    assert error.kind == "process"
    assert error.detail == f"working directory '{tmp_path / 'gone'}' does not exist (setting 'cwd')"


LONG = "the command cannot start '/bin/sh': Argument list too long; use {PROMPT_FILE} or stdin: prompt for long prompts"


@pytest.mark.parametrize(
    ("command", "prompt", "detail"),
    [
        ("echo out; echo why >&2; exit 3", "", "why (exit code 3, after it had printed an answer)"),
        ("echo out; exit 3", "", "out (exit code 3)"),
        ("echo '  ' >&2; exit 1", "", "(exit code 1)"),
        ("kill -KILL $$", "", "(exit code -9)"),
        ("true {OUTPUT_FILE}", "", "the command did not write its output file: No such file or directory"),
        ("head -c 10485761 /dev/zero > {OUTPUT_FILE}", "", "the output file cannot be read: it is larger than 10 MiB"),
        ("exec yes", "", "the command printed more than 10 MiB"),
        ("printf %s {PROMPT}", "x" * 200_000, LONG),
        ("printf %s {PROMPT}", "a\0b", "the command cannot start '/bin/sh': embedded null byte"),
    ],
    ids=lambda value: value[:40],
)
def test_a_command_that_fails_reports_why(command: str, prompt: str, detail: str) -> None:
    error = failure(tool(command), question(prompt=prompt))
    assert (error.kind, error.detail) == ("process", detail)
    if error.printed is not None and "out;" in command:
        assert (error.printed.stdout, error.printed.stderr) == ("out\n", "why\n" if "why" in command else "")


def test_a_long_prompt_fits_into_its_file() -> None:
    assert answer(tool("wc -c < {PROMPT_FILE}"), question(prompt="x" * 200_000)) == "200000"


def test_a_folder_for_temporary_files_that_is_missing_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", "/nowhere")
    assert failure(tool("echo 42")).detail.startswith("cannot write the files of the question: ")


def test_standard_error_and_on_demand_the_command_are_logged() -> None:
    log: list[str] = []
    assert answer(tool("echo working >&2; echo {PROMPT}", verbose=True), log=log) == PROMPT
    assert log == [f"tool: running echo working >&2; echo '{PROMPT}'", "tool: one: stderr: working"]


@pytest.mark.parametrize(
    ("command", "given", "hint"),
    [("echo thinking >&2; ", {"timeout_seconds": 0.5}, "; stderr: thinking"), ("", {}, "")],
)
def test_a_command_ends_at_the_time_limit_of_its_target_or_case(
    command: str, given: dict[str, Any], hint: str, tmp_path: Path
) -> None:
    asked = tool(f"{command}echo $$ > pid; exec sleep 60", **given)
    error = failure(asked, question(cwd=tmp_path, timeout_s=0.5))
    assert (error.kind, error.detail) == ("timeout", f"the command timed out after 0.5 s{hint}")
    assert has_ended(int((tmp_path / "pid").read_text(encoding="utf-8")))


def printed(text: str, folder: Path) -> Response | ProviderError:
    """Ask a command that prints a text."""
    (folder / "printed").write_bytes(text.encode())
    return ask(tool("cat printed"), question(cwd=folder))


def test_output_messages_are_the_answer_with_its_trace(tmp_path: Path) -> None:
    messages = [
        {"role": "assistant", "content": "Let me see.", "tool_calls": [{"tool": "search", "input": {"q": "tea"}}]},
        {"role": "tool", "content": [1, 2]},
        {"role": "assistant", "content": "42"},
        {"role": "assistant", "content": "", "tool_calls": [{"tool": "stop", "output": "ok", "id": "7"}]},
    ]
    search, stop = ToolCall(tool="search", input={"q": "tea"}), ToolCall(tool="stop", input=None, output="ok")
    assert printed(f"\n {json.dumps({'output_messages': messages})}\n", tmp_path) == Response(
        answer="42",
        messages=(
            OutputMessage(role="assistant", content="Let me see.", tool_calls=(search,)),
            OutputMessage(role="tool", content=[1, 2]),
            OutputMessage(role="assistant", content="42"),
            OutputMessage(role="assistant", content="", tool_calls=(stop,)),
        ),
        has_trace=True,
        request={"prompt": PROMPT},
    )


@pytest.mark.parametrize(
    ("messages", "expected"),
    [
        ([], ""),
        ([{"role": "user", "content": "no"}], ""),
        ([{"role": "assistant"}], ""),
        ([{"role": "assistant", "content": {"é": 1}}], '{"é": 1}'),
        ([{"role": "assistant", "content": [{"type": "text"}]}], '[{"type": "text"}]'),
        ([{"role": "assistant", "content": 0}], "0"),
        ([{"role": "assistant", "content": "\ud83d"}], "\ufffd"),
        ([{}], "an entry of output_messages must have a string 'role'"),
        (["hi"], "an entry of output_messages must have a string 'role'"),
        ([{"role": "assistant", "tool_calls": [{"tool": 5}]}], "an entry of tool_calls must have a string 'tool'"),
    ],
)
def test_the_answer_is_the_last_content_of_the_assistant(messages: list[object], expected: str, tmp_path: Path) -> None:
    found = printed(json.dumps({"output_messages": messages}), tmp_path)
    assert (found.answer if isinstance(found, Response) else found.detail) == expected
    assert isinstance(found, Response) or found.kind == "malformed"


SAYS = {"role": "assistant", "content": "42"}


@pytest.mark.parametrize(
    ("text", "messages", "expected"),
    [
        ("42\n", [SAYS], "42"),
        ("42", [], "42"),
        ("", [SAYS], "42"),
        ("43", [SAYS], "'text' and 'output_messages' have different answers"),
    ],
)
def test_text_beside_messages_is_the_same_answer(
    text: str, messages: list[object], expected: str, tmp_path: Path
) -> None:
    found = printed(json.dumps({"text": text, "output_messages": messages}), tmp_path)
    assert (found.answer if isinstance(found, Response) else found.detail) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"text": "42"}', "42"),
        (' {"text": "42\\n"}\n', "42"),
        ('{"text": ""}', ""),
        ('{"text": "cut \\ud83d"}', "cut \ufffd"),
        *(
            (as_printed, as_printed)
            for as_printed in (
                '{"text": "hi", "lang": "en"}',
                '{"text": "42", "tokens": 3}',
                '{"text":"42","text":"43"}',
                '{"text": {"a": "é"}}',
                '{"text": ["42"]}',
                '{"text": null}',
                '{"text": 42}',
                '{"Text": "42"}',
                '{"output_messages": [], "usage": {}}',
                '{"output_messages": {}}',
                '{"output_messages": "none"}',
                "{}",
                "[]",
                '[{"text": "42"}]',
                '[{"role": "assistant", "content": "42"}]',
                '{"text": "42"}\n{"text": "43"}',
                '\ufeff{"text": "42"}',
                '```json\n{"text": "42"}\n```',
            )
        ),
        ('{"output_messages": "none", "text": "42"}', "42"),
        ('{"answer": 42}', '{"answer": 42}'),
        ('"42"', '"42"'),
        ('{"text": "42"} and more', '{"text": "42"} and more'),
        ("", ""),
        ("  42\n\n", "42"),
        ("9" * 5000, "9" * 5000),
        ("[" * 100_000, "[" * 100_000),
    ],
    ids=lambda text: text[:30],
)
def test_an_object_with_nothing_but_text_is_that_text_and_all_else_is_the_answer(
    text: str, expected: str, tmp_path: Path
) -> None:
    assert printed(text, tmp_path) == Response(
        expected,
        (OutputMessage(role="assistant", content=expected),),
        has_trace=False,
        request={"prompt": PROMPT},
    )


def probes(command: str) -> dict[str, str]:
    return {"type": "command", "command_template": command}


def reaches(url: str) -> dict[str, str]:
    return {"type": "http", "url": url}


@pytest.mark.parametrize(
    ("check", "failed"),
    [
        (probes("echo not logged in >&2; exit 4"), "process: health check failed: not logged in (exit code 4)"),
        (probes("sleep 60"), "timeout: health check failed: the command timed out after 0.2 s"),
        (reaches("http://127.0.0.1:1/a"), "network: health check of http://127.0.0.1:1/a failed: ConnectError"),
        (reaches("no address"), "request: health check of no address failed: UnsupportedProtocol"),
    ],
)
def test_a_target_whose_health_check_fails_is_not_asked(check: dict[str, str], failed: str, tmp_path: Path) -> None:
    error = failure(tool("touch asked", healthcheck={**check, "timeout_seconds": 0.2}), question(cwd=tmp_path))
    assert f"{error.kind}: {error.detail}".startswith(failed)
    assert not (tmp_path / "asked").exists()


def test_a_url_must_answer_with_2xx() -> None:
    with model_api() as api:
        answer(tool("true", healthcheck=reaches(f"{api.url}/v1/models")))
        error = failure(tool("true", healthcheck=reaches(f"{api.url}/health")))
    assert (error.kind, error.detail) == ("server", f"health check of {api.url}/health failed: HTTP 404")


def test_a_health_check_fills_placeholders_and_runs_like_the_command(tmp_path: Path) -> None:
    for name in ("agent", "probe"):
        (tmp_path / name).mkdir()
    seen = "printf '%s,' {EVAL_ID} {PROMPT} {GUIDELINES} {ATTEMPT} {FILES} {ATTACHMENTS} $TOKEN > seen"
    check = probes(seen)
    for name, place in (("agent", {}), ("probe", {"cwd": "probe"})):
        answer(tool("true", cwd="agent", env={"TOKEN": "t"}, healthcheck={**check, **place}), root=tmp_path)
        assert (tmp_path / name / "seen").read_text(encoding="utf-8") == "healthcheck,,,0,t,"
