"""Any file is read or is one short error in bounded time, and every name can be printed."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from agentv_ci.load.files import MAX_BYTES
from tests.support import write
from tests.validate.builders import CASE, case_with, evaluator, found_in, found_of, rules


def bomb(first: str, other: str) -> str:
    levels = [f"  a0: &a0 {first}\n", *(f"  a{n}: &a{n} {other.replace('*', f'*a{n - 1}')}\n" for n in range(1, 12))]
    return f"x-bomb:\n{''.join(levels)}{CASE}"


REJECTED: Sequence[str | bytes] = (
    bomb("[x, x, x, x, x, x, x, x, x]", "[*, *, *, *, *, *, *, *, *]"),
    bomb("{a: x}", "{a: *, b: *, c: *, d: *, e: *, f: *, g: *, h: *, i: *}"),
    bomb("{a: x}", "{<<: [*, *, *, *, *, *, *, *, *]}"),
    f"x-a: &a [x, x]\nx-b: [{'*a,' * 400_000}]\n{CASE}",
    *(case_with(f"metadata: {'[' * depth}{']' * 100}") for depth in (100, 100_000)),
    case_with(f"metadata: {'{a: ' * 100}1{'}' * 100}"),
    *(case_with("metadata:\n      " + sign * 100 + "x") for sign in ("- ", "? ")),
    case_with("metadata:\n" + "".join(f"{' ' * (6 + n)}a:\n" for n in range(100))),
    *(case_with(f"metadata: &a {{{inner}}}") for inner in ("b: [*a]", "<<: *a")),
    *(case_with(line) for line in ("<<:", "<<: [1]", "? {a: 1}\n    : x", "? &a [1]\n    : x", "note: !!binary aGk=")),
    *(case_with(f"metadata: {tagged}") for tagged in ("{a: !!python/object/apply:os.system [x]}", "!custom {a: 1}")),
    *(case_with(f"note: a{escape}[31mb") for escape in ("\x1b", "\x9b")),
    *(f"{directives}{CASE}" for directives in ("%YAML 2.0\n---\n", "%YAML 1.2\n%YAML 1.2\n---\n", "%YAML 1.2\n")),
    CASE + "\tnote: x\n",
    case_with("k" * 100_000 + ": x"),
    *(case_with(f"note: {number}") for number in ("9" * 5000, "0o" + "7" * 6000, "0x" + "f" * 6000)),
    *(case_with(f"execution: {{timeout_seconds: {number}}}") for number in ("9" * 4000, "1e999")),
    "".join(f"%TAG !a{n}! tag:x\n" for n in range(60_000)) + f"---\n{CASE}",
    CASE + "x-l:\n" + "- {a: b}\n" * 60_000 + "]\n",
    *(CASE.encode(name) for name in ("utf-16", "utf-16-be", "utf-32", "utf-32-le")),
    b"\0" * 1000,
)


@pytest.mark.parametrize("content", REJECTED, ids=lambda content: repr(content[:9] + content[-9:]))
def test_file_is_rejected_with_one_short_error(repository: Path, content: str | bytes) -> None:
    found = found_of(repository, content)
    assert [(each.severity, each.rule[:3]) for each in found] in ([("error", "AV1")], [("error", "AV2")])
    assert len(found[0].message) < 300


ACCEPTED: Sequence[str | bytes] = (
    b"\xef\xbb\xbf" + CASE.encode(),
    case_with("note: |\n      a\n      b").replace("\n", "\r"),
    *(f"{directive}\n---\n{CASE}" for directive in ("%YAML 1.1", "%FOO bar")),
    CASE + "#" * (MAX_BYTES - len(CASE)),
    case_with("note: " + "x" * 1_000_000),
    f"x-k: &k {'k' * 100_000}\nx-l: [{'{*k : 1}, ' * 1000}]\n{CASE}",
    *(case_with(line) for line in ("&k note: x\n    metadata: {*k : 1}", "metadata: {&k a: *k}")),
    *(case_with(line) for line in ("<<: []", "<<: {<<: {note: x}}", 'note: "\\ud83d\\ude00"')),
    case_with("metadata: {a: " + "[" * 58 + "]" * 58 + "}"),
)


@pytest.mark.parametrize("content", ACCEPTED, ids=lambda content: repr(content[:9] + content[-9:]))
def test_unusual_file_is_accepted(repository: Path, content: str | bytes) -> None:
    assert found_of(repository, content) == []


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        *(
            (f"type: schema, schema_inline: {{{schema}}}", ["AV309"])
            for schema in ("$schema: 'http://['", "$schema: 5", "$id: 'http://['", "$ref: 'http://['", "pattern: '('")
        ),
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
def test_setting_for_a_library_is_at_most_one_error(repository: Path, settings: str, expected: list[str]) -> None:
    write(repository, {f"{name}.json": '{"not": ' * depth + "{}" + "}" * depth for name, depth in DEPTHS.items()})
    assert rules(found_of(repository, evaluator(settings))) == expected


DEPTHS = {"deep": 50, "deeper": 180}


@pytest.mark.parametrize(
    "prompt",
    ["{{" + "a" * 4000 + " " * 4000, "{{ a " + " " * 60_000 + "!", "{{" * 20_000, "{%" * 50_000, "{{a{" * 20_000],
    ids=lambda prompt: prompt[:5],
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
    assert seconds(300) / seconds(75) < 12, "four times as many mistakes take four times as long, not sixteen times"


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


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_block_scalar_ends_with_its_text(repository: Path, end: str) -> None:
    (found,) = found_of(repository, case_with("metadata: |\n      a\n      bc\n    note: x").replace("\n", end))
    assert (found.line, found.column, found.end_line, found.end_column) == (7, 15, 9, 9)


TEXT = r"a\e[31m\e]0;t\a\n::error::b\r::stop-commands::c\r\n##[add-mask]d\u2028e\u202Ef%0A::warning::g\x9b31mh\0i"
NAMES = (
    *("a\n::error::b.yaml", "a\x1b[31mb.yaml", "a[1]*?{b}.yaml", os.fsdecode(b"a\xff.yaml"), "a%0A::b,c=d.yaml"),
    *("a\u202eb.yaml", "##[error]a.yaml", " a b .yaml", "-x.yaml"),
)


@pytest.mark.parametrize("name", NAMES, ids=repr)
def test_no_file_name_or_text_is_a_command(
    repository: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], name: str
) -> None:
    from agentv_ci.cli import run  # with the real streams, for names that are not UTF-8

    (repository / name).write_text(f'{CASE}    "{TEXT}": 1\n', encoding="utf-8")
    monkeypatch.chdir(repository)
    for form in ("text", "json", "github", "sarif"):
        assert run(["validate", "--format", form, "."]) == 1
        out = capfd.readouterr().out
        assert "\x1b" not in out
        if form in ("text", "github"):
            assert "\u202e" not in out
            assert len([line for line in out.split("\n") if "AV202" in line]) == 1
            others = [line for line in out.split("\n") if "AV105" not in line]
            assert sum(line.lstrip().startswith("::") for line in others) == (form == "github")


@pytest.mark.parametrize(
    ("link", "rule"),
    [
        (None, "AV105"),
        ("{}", "AV302"),
        ("nothing", "AV302"),
        *((to, "AV318") for to in ("/dev/zero", "../o", "../pipe")),
    ],
)
def test_reference_to_anything_but_a_file_inside_is_one_error(tmp_path: Path, link: str | None, rule: str) -> None:
    text = CASE.replace("content: x", "content: [{type: file, value: r.md}]")
    text += "    evaluators: [{name: j, type: llm_judge, prompt: r.md}, {name: s, type: schema, schema_file: r.json}]\n"
    write(tmp_path, {"r/.git/HEAD": "", "r/x.yaml": text, "o": "@[User]: x"})
    os.mkfifo(tmp_path / "pipe")  # opening it would block
    for name in ("r.md", "r.json"):
        if link is None:
            os.mkfifo(tmp_path / "r" / name)
        else:
            (tmp_path / "r" / name).symlink_to(link.format(name))
    assert rules(found_in(tmp_path / "r")) == [rule] * 3


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
