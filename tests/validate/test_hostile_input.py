"""Files that are meant to hurt: one clear diagnostic, in bounded time, and never a traceback."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from agentv_ci.app.validate import check_paths
from agentv_ci.contracts.diagnostics import Diagnostic
from agentv_ci.load.files import MAX_BYTES
from tests.support import run_process, write

CASE = """\
$schema: agentv-eval-v2
evalcases:
  - id: a
    expected_outcome: x
    input_messages: [{role: user, content: x}]
    expected_messages: []
"""


@contextlib.contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Raise TimeoutError in what takes longer, so that an endless loop is a failure and not the end of the run."""

    def stop(*_: object) -> None:
        raise TimeoutError(f"takes longer than {seconds} seconds")

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def case_with(line: str) -> str:
    return f"{CASE}    {line}\n"


def evaluator(settings: str) -> str:
    return case_with(f"evaluators: [{{name: e, {settings}}}]")


def found_in(folder: Path, *patterns: str) -> list[Diagnostic]:
    with time_limit(60):
        checks = check_paths(patterns or ("x.yaml",), targets=None, cwd=folder)
    return [each for file in checks.files for each in file.diagnostics]


def found_of(repository: Path, content: str | bytes) -> list[Diagnostic]:
    (repository / "x.yaml").write_bytes(content if isinstance(content, bytes) else content.encode())
    return found_in(repository)


def rules(found: list[Diagnostic]) -> list[str]:
    return [each.rule for each in found]


def bomb(first: str, other: str) -> str:
    levels = [f"  a0: &a0 {first}\n", *(f"  a{n}: &a{n} {other.replace('*', f'*a{n - 1}')}\n" for n in range(1, 12))]
    return f"x-bomb:\n{''.join(levels)}{CASE}"


REFUSED: Mapping[str, str | bytes] = {
    "bomb of lists": bomb("[x, x, x, x, x, x, x, x, x]", "[*, *, *, *, *, *, *, *, *]"),
    "bomb of mappings": bomb("{a: x}", "{a: *, b: *, c: *, d: *, e: *, f: *, g: *, h: *, i: *}"),
    "bomb of merge keys": bomb("{a: x}", "{<<: [*, *, *, *, *, *, *, *, *]}"),
    "a million aliases": f"x-a: &a [x, x]\nx-b: [{'*a,' * 400_000}]\n{CASE}",
    "flow lists 100 deep": case_with(f"metadata: {'[' * 100}{']' * 100}"),
    "flow mappings 100 deep": case_with(f"metadata: {'{a: ' * 100}1{'}' * 100}"),
    "flow lists without end": case_with("metadata: " + "[" * 100_000),
    "block lists 100 deep": case_with("metadata:\n      " + "- " * 100 + "x"),
    "block mappings 100 deep": case_with("metadata:\n" + "".join(f"{' ' * (6 + n)}a:\n" for n in range(100))),
    "keys 100 deep": case_with("metadata:\n      " + "? " * 100 + "x"),
    "alias inside its anchor": case_with("metadata: &a {b: [*a]}"),
    "merge key inside its anchor": case_with("metadata: &a {<<: *a}"),
    "alias without anchor": case_with("note: *a"),
    "merge key with a number": case_with("<<: 5"),
    "merge key with nothing": case_with("<<:"),
    "merge key with a list of numbers": case_with("<<: [1]"),
    "mapping as key": case_with("? {a: 1}\n    : x"),
    "anchored list as key": case_with("? &a [1]\n    : x"),
    "tag of python": case_with("note: !!python/object:os.system x"),
    "binary": case_with("note: !!binary aGk="),
    "own tag": case_with("note: !custom x"),
    "own tag of a mapping": case_with("metadata: !custom {a: 1}"),
    "tag of python on a list": case_with("metadata: {a: !!python/object/apply:os.system [x]}"),
    "NUL": case_with("note: a\0b"),
    "bell": case_with("note: a\x07b"),
    "escape": case_with("note: a\x1b[31mb"),
    "C1 control": case_with("note: a\x9b31mb"),
    "half a surrogate pair": case_with('note: "\\ud83d"'),
    "two documents": CASE + "---\n" + CASE,
    "YAML 2.0": f"%YAML 2.0\n---\n{CASE}",
    "two YAML directives": f"%YAML 1.2\n%YAML 1.2\n---\n{CASE}",
    "directive without document": f"%YAML 1.2\n{CASE}",
    "tab": CASE + "\tnote: x\n",
    "key without end": case_with("k" * 100_000 + ": x"),
    "number of 5,000 digits": case_with("note: " + "9" * 5000),
    **{
        f"UTF-16 or 32 ({name})": CASE.encode(name)
        for name in ("utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-32-le", "utf-32-be")
    },
    "Latin-1": case_with("note: café").encode("latin-1"),
    "nothing but NUL": b"\0" * 1000,
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_hostile_file_is_one_error(repository: Path, name: str) -> None:
    found = found_of(repository, REFUSED[name])
    assert [(each.severity, each.rule[:3]) for each in found] in ([("error", "AV1")], [("error", "AV2")])
    assert len(found[0].message) < 300


READ: Mapping[str, str | bytes] = {
    "UTF-8 with a byte order mark": b"\xef\xbb\xbf" + CASE.encode(),
    "CRLF": case_with("note: |\n      a\n      b").replace("\n", "\r\n"),
    "lone CR": case_with("note: |\n      a\n      b").replace("\n", "\r"),
    "YAML 1.2": f"%YAML 1.2\n---\n{CASE}",
    "YAML 1.1": f"%YAML 1.1\n---\n{CASE}",
    "a directive nobody knows": f"%FOO bar\n---\n{CASE}",
    "a comment of exactly the limit": CASE + "#" * (MAX_BYTES - len(CASE)),
    "a text of a megabyte": case_with("note: " + "x" * 1_000_000),
    "one long key in many mappings": f"x-k: &k {'k' * 100_000}\nx-l: [{'{*k : 1}, ' * 1000}]\n{CASE}",
    "anchor on a key": case_with("&k note: x\n    metadata: {*k : 1}"),
    "alias of the key's own anchor": case_with("metadata: {&k a: *k}"),
    "merged list of nothing": case_with("<<: []"),
    "merge key inside a merge key": case_with("<<: {<<: {note: x}}"),
    "lists 60 deep": case_with("metadata: {a: " + "[" * 58 + "]" * 58 + "}"),
    "an emoji as JSON writes it": case_with('note: "\\ud83d\\ude00"'),
}


@pytest.mark.parametrize("name", READ)
def test_what_is_only_unusual_is_read(repository: Path, name: str) -> None:
    assert [(each.rule, each.message) for each in found_of(repository, READ[name])] == []


@pytest.mark.parametrize(
    "content",
    [
        case_with("note: |\n      a\n      b\n    zzz: x").replace("\n", "\r"),
        case_with("zzz: |\n      a").rstrip("\n").replace("\n", "\r"),
        case_with("zzz: |\n      a\n      b").replace("\n", "\r\n"),
        case_with("zzz: >\n      a\r      b\n\n\n"),
        case_with("zzz: |\n      a\x85      b"),
        case_with("zzz: |\u2028      a\u2028      b").rstrip("\n"),
    ],
    ids=["lone CR", "lone CR at the end", "CRLF", "mixed", "NEL", "U+2028 at the end"],
)
def test_places_are_inside_the_file_whatever_ends_its_lines(repository: Path, content: str) -> None:
    lines = content.replace("\r\n", "\n").replace("\r", "\n").replace("\x85", "\n").replace("\u2028", "\n").split("\n")
    (found,) = found_of(repository, content)
    assert found.rule == "AV202"
    (whole,) = found_of(repository, content.replace("zzz:", "id:"))
    for each in (found, whole):
        assert (each.line, each.column) <= (each.end_line, each.end_column)
        assert each.end_line <= len(lines)
        assert each.end_column <= len(lines[each.end_line - 1]) + 1


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"], ids=["LF", "CRLF", "CR"])
def test_a_wrong_block_of_text_ends_where_its_text_ends(repository: Path, end: str) -> None:
    (found,) = found_of(repository, case_with("metadata: |\n      a\n      bc\n    note: x").replace("\n", end))
    assert (found.line, found.column, found.end_line, found.end_column) == (7, 15, 9, 9)


@pytest.mark.parametrize(
    "line",
    [
        *(f"execution: {{threshold: 0x{'f' * 6000}}}", f"note: 0x{'f' * 6000}", f"note: 0o{'7' * 6000}"),
        *(f"execution: {{threshold: {'9' * 4000}}}", f"execution: {{timeout_seconds: {'9' * 4000}}}"),
        *("execution: {threshold: 1e999}", f"execution: {{timeout_seconds: 0x{'f' * 6000}}}"),
    ],
    ids=["hex out of range", "hex as text", "octal as text", "decimal", "decimal as float", "infinite", "hex as float"],
)
def test_a_huge_number_is_one_short_error(repository: Path, line: str) -> None:
    (found,) = found_of(repository, case_with(line))
    assert (found.rule[:3], found.line) == ("AV2", 7)
    assert len(found.message) < 300


@pytest.mark.parametrize(
    ("settings", "rule"),
    [
        ("type: schema, schema_inline: {$schema: 'http://['}", "AV309"),
        ("type: schema, schema_inline: {$schema: 5}", "AV309"),
        ("type: schema, schema_inline: {$id: 'http://[', type: string}", "AV309"),
        ("type: schema, schema_inline: {$ref: 'http://['}", "AV309"),
        ("type: schema, schema_inline: {pattern: '('}", "AV309"),
        ("type: regex, value: 'a{99999999999999999999}'", "AV310"),
        ("type: code, script: '/" + "a" * 5000 + "'", "AV302"),
        ("type: code, script: ['/" + "a" * 5000 + "']", "AV302"),
        ('type: code, script: "/a\\0b"', "AV302"),
        ('type: code, script: "./a\\0b.py"', "AV302"),
        ("type: llm_judge, prompt: './" + "a" * 5000 + ".md'", "AV302"),
    ],
)
def test_a_hostile_setting_is_one_error(repository: Path, settings: str, rule: str) -> None:
    assert rules(found_of(repository, evaluator(settings))) == [rule]


def test_a_pattern_that_is_nested_deeply_is_no_bug(repository: Path) -> None:
    pattern = "(" * 3000 + ")" * 3000
    assert set(rules(found_of(repository, evaluator(f"type: regex, value: '{pattern}'")))) <= {"AV310"}


def test_a_schema_that_is_nested_deeply_is_no_bug(repository: Path) -> None:
    write(repository, {"deep.json": '{"not": ' * 180 + "{}" + "}" * 180})
    assert set(rules(found_of(repository, evaluator("type: schema, schema_file: deep.json")))) <= {"AV309"}


def test_two_config_documents_that_belong_to_each_other_end(repository: Path) -> None:
    config = "$schema: agentv-config-v2\n"
    write(repository, {"x.yaml": CASE, ".agentv/.agentv.yaml": config, ".agentv/config.yaml": config})
    assert found_in(repository, ".") == []


def within(seconds: float, repository: Path, *arguments: str) -> int:
    """Run `validate` and return its exit code; fail when it takes longer."""
    try:
        return run_process("validate", *arguments, cwd=repository, timeout_s=seconds).code
    except subprocess.TimeoutExpired:
        pytest.fail(f"validate takes longer than {seconds} seconds")


@pytest.mark.parametrize(
    "prompt",
    ["{{" + "a" * 4000 + " " * 4000, "{{ a " + " " * 60_000 + "!", "{{" * 20_000, "{%" * 50_000, "{{a{" * 20_000],
    ids=["name and space", "space", "braces", "blocks", "names"],
)
def test_looking_for_variables_in_a_prompt_takes_no_longer_than_reading_it(repository: Path, prompt: str) -> None:
    write(repository, {"p.md": prompt, "x.yaml": evaluator("type: llm_judge, prompt: p.md")})
    assert within(30, repository, "x.yaml") == 0


def test_many_tag_directives_are_read_in_bounded_time(repository: Path) -> None:
    write(repository, {"x.yaml": "".join(f"%TAG !a{n}! tag:x\n" for n in range(60_000)) + f"---\n{CASE}"})
    assert within(30, repository, "x.yaml") in (0, 1)


def test_a_mistake_at_the_end_of_a_large_file_is_found_in_bounded_time(repository: Path) -> None:
    write(repository, {"x.yaml": "- {a: b}\n" * 60_000 + "]\n"})
    assert within(30, repository, "x.yaml") == 1


def test_time_grows_with_the_number_of_mistakes_and_not_with_its_square(repository: Path) -> None:
    def seconds(cases: int) -> float:
        content = "$schema: agentv-eval-v2\nevalcases:\n" + "".join(f"  - k{n}: 1\n" for n in range(cases))
        began = time.process_time()
        assert len(found_of(repository, content)) == cases
        return time.process_time() - began

    seconds(10)
    small, large = seconds(400), seconds(1600)
    assert large / small < 12, "four times as many mistakes take four times as long, not sixteen times"


def test_a_file_over_the_limit_is_not_read(repository: Path) -> None:
    (repository / "x.yaml").touch()
    os.truncate(repository / "x.yaml", 100 * 1024 * 1024)
    assert [(each.rule, each.message) for each in found_in(repository)] == [("AV101", "larger than 64 MiB")]


def test_messages_stay_short_however_long_names_and_lists_are(repository: Path) -> None:
    names = "".join(f"  - {{name: target-number-{n}, provider: mock}}\n" for n in range(1000))
    write(repository, {"targets.yaml": f"$schema: agentv-targets-v2.2\ntargets:\n{names}"})
    unknown = found_of(repository, case_with("execution: {target: nobody}"))
    long_key = found_of(repository, case_with(f"? {'k' * 100_000}\n    : 1"))
    long_id = found_of(
        repository, CASE.replace("id: a", f"id: {'i' * 100_000}") + CASE.partition("evalcases:\n")[2] * 2
    )
    assert max(len(each.message) for each in (*unknown, *long_key, *long_id)) < 10_000


def test_a_mistake_behind_an_anchor_is_said_once(repository: Path) -> None:
    turns = ", ".join("*m" for _ in range(20))
    content = CASE.replace("[{role: user, content: x}]", f"[{turns}]")
    found = found_of(repository, f"x-m: &m {{role: user, content: 5}}\n{content}")
    assert [(each.rule, each.line) for each in found] == [("AV206", 1)]
