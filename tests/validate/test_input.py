"""Any file is read or is one short error in bounded time, and every name can be printed."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping
from pathlib import Path

import pytest

from agentv_ci.app.validate import check_paths
from agentv_ci.jsonschema.violations import violations
from agentv_ci.load.files import MAX_BYTES
from tests.support import run_command, run_process, write
from tests.validate.builders import CASE, case_with, evaluator, found_in, found_of, rules


def bomb(first: str, other: str) -> str:
    levels = [f"  a0: &a0 {first}\n", *(f"  a{n}: &a{n} {other.replace('*', f'*a{n - 1}')}\n" for n in range(1, 12))]
    return f"x-bomb:\n{''.join(levels)}{CASE}"


REJECTED: Mapping[str, str | bytes] = {
    "bomb of lists": bomb("[x, x, x, x, x, x, x, x, x]", "[*, *, *, *, *, *, *, *, *]"),
    "bomb of mappings": bomb("{a: x}", "{a: *, b: *, c: *, d: *, e: *, f: *, g: *, h: *, i: *}"),
    "bomb of merge keys": bomb("{a: x}", "{<<: [*, *, *, *, *, *, *, *, *]}"),
    "a million aliases": f"x-a: &a [x, x]\nx-b: [{'*a,' * 400_000}]\n{CASE}",
    "flow lists 100 deep": case_with(f"metadata: {'[' * 100}{']' * 100}"),
    "flow mappings 100 deep": case_with(f"metadata: {'{a: ' * 100}1{'}' * 100}"),
    "unclosed flow lists": case_with("metadata: " + "[" * 100_000),
    "block lists 100 deep": case_with("metadata:\n      " + "- " * 100 + "x"),
    "block mappings 100 deep": case_with("metadata:\n" + "".join(f"{' ' * (6 + n)}a:\n" for n in range(100))),
    "keys 100 deep": case_with("metadata:\n      " + "? " * 100 + "x"),
    "alias inside its anchor": case_with("metadata: &a {b: [*a]}"),
    "merge key inside its anchor": case_with("metadata: &a {<<: *a}"),
    "merge key with nothing": case_with("<<:"),
    "merge key with numbers": case_with("<<: [1]"),
    "mapping as key": case_with("? {a: 1}\n    : x"),
    "anchored list as key": case_with("? &a [1]\n    : x"),
    "tag of python": case_with("metadata: {a: !!python/object/apply:os.system [x]}"),
    "binary": case_with("note: !!binary aGk="),
    "own tag of a mapping": case_with("metadata: !custom {a: 1}"),
    "escape character": case_with("note: a\x1b[31mb"),
    "C1 control character": case_with("note: a\x9b31mb"),
    "YAML 2.0": f"%YAML 2.0\n---\n{CASE}",
    "two YAML directives": f"%YAML 1.2\n%YAML 1.2\n---\n{CASE}",
    "directive without document": f"%YAML 1.2\n{CASE}",
    "tab": CASE + "\tnote: x\n",
    "very long key": case_with("k" * 100_000 + ": x"),
    "number of 5,000 digits": case_with("note: " + "9" * 5000),
    "hexadecimal number of 6,000 digits": case_with(f"execution: {{threshold: 0x{'f' * 6000}}}"),
    "octal number of 6,000 digits": case_with(f"note: 0o{'7' * 6000}"),
    "number out of range": case_with(f"execution: {{timeout_seconds: {'9' * 4000}}}"),
    "infinite number": case_with("execution: {threshold: 1e999}"),
    "many directives": "".join(f"%TAG !a{n}! tag:x\n" for n in range(60_000)) + f"---\n{CASE}",
    "mistake at the end of a large file": CASE + "x-l:\n" + "- {a: b}\n" * 60_000 + "]\n",
    **{f"encoding {name}": CASE.encode(name) for name in ("utf-16", "utf-16-be", "utf-32", "utf-32-le")},
    "NUL bytes": b"\0" * 1000,
}


@pytest.mark.parametrize("name", REJECTED)
def test_file_is_rejected_with_one_short_error(repository: Path, name: str) -> None:
    found = found_of(repository, REJECTED[name])
    assert [(each.severity, each.rule[:3]) for each in found] in ([("error", "AV1")], [("error", "AV2")])
    assert len(found[0].message) < 300


ACCEPTED: Mapping[str, str | bytes] = {
    "UTF-8 with a byte order mark": b"\xef\xbb\xbf" + CASE.encode(),
    "lone CR": case_with("note: |\n      a\n      b").replace("\n", "\r"),
    "YAML 1.1": f"%YAML 1.1\n---\n{CASE}",
    "unknown directive": f"%FOO bar\n---\n{CASE}",
    "comment up to the limit": CASE + "#" * (MAX_BYTES - len(CASE)),
    "text of a megabyte": case_with("note: " + "x" * 1_000_000),
    "long key in many mappings": f"x-k: &k {'k' * 100_000}\nx-l: [{'{*k : 1}, ' * 1000}]\n{CASE}",
    "anchor on a key": case_with("&k note: x\n    metadata: {*k : 1}"),
    "alias of the key's own anchor": case_with("metadata: {&k a: *k}"),
    "empty merged list": case_with("<<: []"),
    "nested merge key": case_with("<<: {<<: {note: x}}"),
    "lists 60 deep": case_with("metadata: {a: " + "[" * 58 + "]" * 58 + "}"),
    "escaped surrogate pair": case_with('note: "\\ud83d\\ude00"'),
}


@pytest.mark.parametrize("name", ACCEPTED)
def test_unusual_file_is_accepted(repository: Path, name: str) -> None:
    assert found_of(repository, ACCEPTED[name]) == []


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ("type: schema, schema_inline: {$schema: 'http://['}", ["AV309"]),
        ("type: schema, schema_inline: {$schema: 5}", ["AV309"]),
        ("type: schema, schema_inline: {$id: 'http://[', type: string}", ["AV309"]),
        ("type: schema, schema_inline: {$ref: 'http://['}", ["AV309"]),
        ("type: schema, schema_inline: {pattern: '('}", ["AV309"]),
        ("type: schema, schema_inline: 5", ["AV203"]),
        ("type: schema, schema_file: deep.json", []),
        ("type: schema, schema_file: deeper.json", ["AV309"]),
        ("type: regex, value: 'a{99999999999999999999}'", ["AV310"]),
        ("type: regex, value: '" + "(" * 3000 + ")" * 3000 + "'", ["AV310"]),
        ("type: code, script: '/" + "a" * 5000 + "'", ["AV302"]),
        ("type: code, script: ['/" + "a" * 5000 + "']", ["AV302"]),
        ('type: code, script: "/a\\0b"', ["AV302"]),
        ('type: code, script: "./a\\0b.py"', ["AV302"]),
        ("type: llm_judge, prompt: './" + "a" * 5000 + ".md'", ["AV302"]),
    ],
    ids=lambda each: str(each)[:60],
)
def test_setting_that_breaks_a_library_is_at_most_one_error(
    repository: Path, settings: str, expected: list[str]
) -> None:
    write(repository, {f"{name}.json": '{"not": ' * depth + "{}" + "}" * depth for name, depth in DEPTHS.items()})
    assert rules(found_of(repository, evaluator(settings))) == expected


DEPTHS = {"deep": 50, "deeper": 180}


@pytest.mark.parametrize(
    "prompt",
    ["{{" + "a" * 4000 + " " * 4000, "{{ a " + " " * 60_000 + "!", "{{" * 20_000, "{%" * 50_000, "{{a{" * 20_000],
    ids=["name and space", "space", "braces", "blocks", "names"],
)
def test_variables_of_a_prompt_are_found_in_bounded_time(repository: Path, prompt: str) -> None:
    write(repository, {"p.md": prompt, "x.yaml": evaluator("type: llm_judge, prompt: p.md")})
    assert set(rules(found_in(repository))) <= {"AV306", "AV307"}


def test_time_is_linear_in_the_number_of_mistakes(repository: Path) -> None:
    def seconds(cases: int) -> float:
        content = "$schema: agentv-eval-v2\nevalcases:\n" + "".join(f"  - k{n}: 1\n    j: 1\n" for n in range(cases))
        began = time.process_time()
        assert len(found_of(repository, content)) == cases
        return time.process_time() - began

    seconds(10)
    assert seconds(1200) / seconds(300) < 12, "four times as many mistakes take four times as long, not sixteen times"


def test_messages_have_a_limit(repository: Path) -> None:
    names = "".join(f"  - {{name: target-number-{n}, provider: mock}}\n" for n in range(1000))
    write(repository, {"targets.yaml": f"$schema: agentv-targets-v2.2\ntargets:\n{names}"})
    unknown = found_of(repository, case_with("execution: {target: missing}"))
    long_key = found_of(repository, case_with(f"? {'k' * 100_000}\n    : 1"))
    cases = CASE.replace("id: a", f"id: {'i' * 100_000}")
    duplicate = found_of(repository, cases + cases.partition("evalcases:\n")[2])
    assert max(len(each.message) for each in (*unknown, *long_key, *duplicate)) < 2_100


def test_mistake_behind_an_anchor_is_reported_once(repository: Path) -> None:
    content = CASE.replace("[{role: user, content: x}]", f"[{', '.join(['*m'] * 20)}]")
    found = found_of(repository, f"x-m: &m {{role: user, content: 5}}\n{content}")
    assert [(each.rule, each.line) for each in found] == [("AV206", 1)]
    merged = f"x-a: &a {{note: x}}\nx-b: &b {{metadata: {{}}}}\n{CASE}    <<: *a\n    <<: *b\n"
    assert [(each.rule, each.line) for each in found_of(repository, merged)] == [("AV104", 10)]


@pytest.mark.parametrize(
    "content",
    [
        case_with("zzz: |\n      a").rstrip("\n").replace("\n", "\r"),
        case_with("zzz: |\n      a\n      b").replace("\n", "\r\n"),
        case_with("zzz: >\n      a\r      b\n\n\n"),
        case_with("zzz: |\n      a\x85      b"),
        case_with("zzz: |\u2028      a\u2028      b").rstrip("\n"),
    ],
    ids=["lone CR at the end", "CRLF", "mixed", "NEL", "U+2028 at the end"],
)
def test_positions_are_inside_the_file(repository: Path, content: str) -> None:
    lines = content.replace("\r\n", "\n").replace("\r", "\n").replace("\x85", "\n").replace("\u2028", "\n").split("\n")
    (found,) = found_of(repository, content)
    (whole,) = found_of(repository, content.replace("zzz:", "id:"))
    assert (found.rule, whole.rule) == ("AV202", "AV104")
    for each in (found, whole):
        assert (each.line, each.column) <= (each.end_line, each.end_column)
        assert each.end_line <= len(lines)
        assert each.end_column <= len(lines[each.end_line - 1]) + 1


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"], ids=["LF", "CRLF", "CR"])
def test_block_scalar_ends_with_its_text(repository: Path, end: str) -> None:
    (found,) = found_of(repository, case_with("metadata: |\n      a\n      bc\n    note: x").replace("\n", end))
    assert (found.line, found.column, found.end_line, found.end_column) == (7, 15, 9, 9)


TEXT = r"a\e[31m\e]0;t\a\n::error::b\r::stop-commands::c\r\n##[add-mask]d\u2028e\u202Ef%0A::warning::g\x9b31mh\0i"
DOCUMENT = f"""\
$schema: agentv-eval-v2
target: "{TEXT}1"
execution:
  validators: ["{TEXT}2"]
evalcases:
  - id: "{TEXT}"
    expected_outcome: x
    input_messages: [{{role: "{TEXT}3", content: x}}]
    expected_messages: []
    evaluators: [{{name: "{TEXT}", type: "{TEXT}4"}}]
    "{TEXT}": 1
  - id: "{TEXT}"
    expected_outcome: x
    input_messages: [{{role: user, content: [{{type: file, value: "{TEXT}.md"}}]}}]
    expected_messages: []
    evaluators: [{{name: "{TEXT}", type: regex, value: "("}}, {{name: "{TEXT}", type: is_json}}]
"""
COUNT = 9
"""Mistakes in the document."""


def test_texts_of_a_document_command_nothing(repository: Path) -> None:
    targets = '$schema: agentv-targets-v2.2\ntargets: [{name: "' + TEXT + '", provider: mock}]\n'
    write(repository, {"x.yaml": DOCUMENT, "targets.yaml": targets})
    forms = ("text", "github", "json", "sarif")
    printed = {form: run_command("validate", "--format", form, ".", cwd=repository).out for form in forms}
    lines = printed["text"].split("\n")
    assert all(line.isprintable() for line in lines)
    assert sum("x.yaml:" in line and "[AV" in line for line in lines) == COUNT
    assert "##[" not in printed["text"]
    assert not any(line.lstrip().startswith("::") for line in lines)
    commands = [line for line in printed["github"].split("\n") if "::" in line or "##[" in line]
    assert len(commands) == COUNT == printed["github"].count("\n") - 1
    assert all(line.startswith("::error file=x.yaml,line=") for line in commands)
    assert not any(character in printed["github"] for character in "\x1b\x9b\u202e")
    document = json.loads(printed["json"])
    assert (violations("diagnostics-v1", document), document["summary"]["errors"]) == ([], COUNT)
    assert any(
        (each["case"] or "").startswith("a\x1b[31m") for file in document["files"] for each in file["diagnostics"]
    )
    (run,) = json.loads(printed["sarif"])["runs"]
    assert len(run["results"]) == len({json.dumps(each["partialFingerprints"]) for each in run["results"]}) == COUNT


NAMES = {
    "line break": "a\n::error::b.yaml",
    "escape": "a\x1b[31mb.yaml",
    "glob characters": "a[1]*?{b}.yaml",
    "not UTF-8": os.fsdecode(b"a\xff.yaml"),
    "percent and colon": "a%0A::b,c=d.yaml",
    "direction": "a\u202eb.yaml",
    "command": "##[error]a.yaml",
    "space": " a b .yaml",
    "hyphen": "-x.yaml",
}


@pytest.mark.parametrize("name", NAMES.values(), ids=NAMES)
def test_any_file_name_can_be_printed(
    repository: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], name: str
) -> None:
    from agentv_ci.cli import run  # with the real streams, for names that are not UTF-8

    (repository / name).write_text(CASE + "    zzz: 1\n", encoding="utf-8")
    monkeypatch.chdir(repository)
    for form in ("text", "json", "github", "sarif"):
        assert run(["validate", "--format", form, "."]) == 1
        out = capfd.readouterr().out
        assert "\x1b" not in out
        if form in ("text", "github"):
            assert "\u202e" not in out
            assert len([line for line in out.split("\n") if "AV202" in line]) == 1
            assert sum(line.lstrip().startswith("::") for line in out.split("\n")) == (form == "github")


STRANGE = ("pipe", "circular link", "link to nothing", "link to a device", "file outside", "link to a pipe outside")


@pytest.mark.parametrize("kind", STRANGE)
def test_reference_to_anything_but_a_file_of_the_repository_is_one_error(tmp_path: Path, kind: str) -> None:
    references = "{type: file, value: r.md}"
    text = CASE.replace("content: x", f"content: [{references}]")
    text += "    evaluators: [{name: j, type: llm_judge, prompt: r.md}, {name: s, type: schema, schema_file: r.json}]\n"
    write(tmp_path, {"r/.git/HEAD": "", "r/x.yaml": text, "out.md": "@[User]: x"})
    os.mkfifo(tmp_path / "pipe")  # opening it would block
    places = {"circular link": "r.md", "link to nothing": "nothing", "link to a device": "/dev/zero"}
    places |= {"file outside": "../out.md", "link to a pipe outside": "../pipe"}
    for name in ("r.md", "r.json"):
        if kind == "pipe":
            os.mkfifo(tmp_path / "r" / name)
        else:
            (tmp_path / "r" / name).symlink_to(name if kind == "circular link" else places[kind])
    found = rules(found_in(tmp_path / "r"))
    expected = {"pipe": "AV105", "circular link": "AV302", "link to nothing": "AV302"}
    assert found == [expected.get(kind, "AV318")] * 3


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_file_without_permission_is_one_error(repository: Path) -> None:
    write(repository, {"x.yaml": CASE})
    (repository / "x.yaml").chmod(0)
    assert rules(found_in(repository)) == ["AV105"]


def test_folders_with_names_of_files_and_configs_that_apply_to_each_other(repository: Path) -> None:
    config = "$schema: agentv-config-v2\n"
    write(repository, {"x.yaml/y.yaml": CASE, "targets.yaml/z.yaml": CASE, "d/.agentv.yaml/keep": ""})
    write(repository, {".agentv/.agentv.yaml": config, ".agentv/config.yaml": config})
    assert found_in(repository, ".") == []


def test_files_of_other_programs_are_counted(repository: Path) -> None:
    write(repository, {f"f{n}.yaml": "a: 1\n" for n in range(200)} | {"x.yaml": CASE})
    checks = check_paths(["."], targets=None, cwd=repository)
    assert ([file.path.name for file in checks.files], checks.skipped) == (["x.yaml"], 200)


@pytest.mark.slow
def test_number_of_processes_changes_nothing(repository: Path) -> None:
    texts = [CASE, CASE + "    zzz: 1\n", "a: 1\n", "a: [\n", CASE.replace("role: user", "role: usr"), ""]
    write(repository, {f"{n % 4}/f{n:03}.yaml": texts[n % len(texts)] for n in range(130)})
    write(repository, {"1/targets.yaml": "targets: [{name: default, provider: mock}]\n", "2/targets.yaml": "a: [\n"})
    write(repository, {"3/.agentv.yaml": "rules: {AV102: error}\n"})
    arguments = ("validate", ".", "--format", "json", "--jobs")
    one, two = (run_process(*arguments, jobs, cwd=repository) for jobs in ("1", "2"))
    assert one == two
    assert one.code == 1
