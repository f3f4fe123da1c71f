"""A file becomes a Source, whatever the file is."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from agentv_ci.load.document import load
from agentv_ci.load.files import MAX_BYTES
from tests.support import write


def found(path: Path, *, named: bool = True) -> list[tuple[str, str]]:
    return [(each.rule, each.message) for each in load(path, path.parent, named=named).diagnostics]


@pytest.mark.parametrize(
    ("name", "text", "kind"),
    [
        ("x.yaml", "$schema: agentv-eval-v2\n", "eval"),
        ("x.yaml", "$schema: https://org.github.io/agentv-action/schemas/eval-v2.schema.json\n", "eval"),
        ("x.yaml", "$schema: agentv-targets-v2\n", "targets"),
        ("x.yaml", "$schema: agentv-targets-v2.2\n", "targets"),
        ("x.yaml", "$schema: agentv-config-v2\n", "config"),
        ("targets.yaml", "$schema: agentv-eval-v2\n", "eval"),
    ],
)
def test_schema_decides_the_kind(tmp_path: Path, name: str, text: str, kind: str) -> None:
    write(tmp_path, {name: text})
    source = load(tmp_path / name, tmp_path, named=True)
    assert (source.kind, source.diagnostics) == (kind, ())


@pytest.mark.parametrize(
    ("name", "text", "kind"),
    [
        ("targets.yml", "a: 1\n", "targets"),
        (".agentv.yaml", "a: 1\n", "config"),
        (".agentv/config.yaml", "a: 1\n", "config"),
        ("x.yaml", "evalcases: []\n", "eval"),
        ("x.yaml", "targets: [{provider: mock}]\n", "targets"),
        ("x.yaml", "guideline_patterns: []\n", "config"),
        ("x.yaml", "guidelinePatterns: []\n", "config"),
    ],
)
def test_without_schema_name_and_content_decide_with_a_warning(tmp_path: Path, name: str, text: str, kind: str) -> None:
    write(tmp_path, {name: text})
    source = load(tmp_path / name, tmp_path, named=False)
    assert source.kind == kind
    assert [each.rule for each in source.diagnostics] == ["AV102"]


@pytest.mark.parametrize("text", ["targets: [a, b]\n", "targets: {a: 1}\n", "a: 1\n", "- 1\n", "text\n", ""])
def test_a_file_that_is_none_of_ours_is_a_mistake_only_when_named(tmp_path: Path, text: str) -> None:
    write(tmp_path, {"x.yaml": text})
    source = load(tmp_path / "x.yaml", tmp_path, named=False)
    assert (source.kind, source.diagnostics) == (None, ())
    if not text.startswith("targets"):
        assert found(tmp_path / "x.yaml")[0][0] == "AV103"


def test_an_unknown_schema_of_ours_is_always_a_mistake(tmp_path: Path) -> None:
    write(tmp_path, {"x.yaml": "$schema: agentv-eval-v9\n", "y.yaml": "$schema: http://json-schema.org/draft-07\n"})
    assert found(tmp_path / "x.yaml", named=True)[0][0] == "AV103"
    assert load(tmp_path / "y.yaml", tmp_path, named=False).diagnostics == ()
    assert found(tmp_path / "y.yaml")[0][0] == "AV103"


def test_what_is_no_file_is_unreadable(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.yaml")
    (tmp_path / "loop.yaml").symlink_to("loop.yaml")
    assert found(tmp_path / "pipe.yaml") == [("AV105", "not a regular file")]
    assert found(tmp_path / "loop.yaml") == [("AV105", "cannot be read: Too many levels of symbolic links")]
    assert found(tmp_path / "gone.yaml") == [("AV105", "cannot be read: No such file or directory")]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"a: caf\xe9\n", "not UTF-8: byte 0xe9 at 6"),
        ("a: 1\n".encode("utf-16"), "not UTF-8: byte 0xff at 0"),
    ],
)
def test_other_encodings_are_refused(tmp_path: Path, content: bytes, message: str) -> None:
    (tmp_path / "x.yaml").write_bytes(content)
    assert found(tmp_path / "x.yaml") == [("AV105", message)]


def test_byte_order_mark_and_crlf_are_read_over(tmp_path: Path) -> None:
    (tmp_path / "x.yaml").write_bytes(b"\xef\xbb\xbf$schema: agentv-eval-v2\r\nevalcases: []\r\n")
    source = load(tmp_path / "x.yaml", tmp_path, named=True)
    assert (source.data, source.diagnostics) == ({"$schema": "agentv-eval-v2", "evalcases": []}, ())


def test_a_file_that_is_too_large_is_not_read(tmp_path: Path) -> None:
    with (tmp_path / "x.yaml").open("wb") as file:
        file.truncate(MAX_BYTES + 1)
    assert found(tmp_path / "x.yaml") == [("AV101", "larger than 64 MiB")]


def test_references_are_resolved_from_the_file_or_the_repository(tmp_path: Path) -> None:
    write(tmp_path, {"evals/x.yaml": "$schema: agentv-eval-v2\n"})
    source = load(tmp_path / "evals" / "x.yaml", tmp_path, named=True)
    assert source.resolve("a/../b.md") == tmp_path / "evals" / "b.md"
    assert source.resolve("../c.md") == tmp_path / "c.md"
    assert source.resolve("/docs/d.md") == tmp_path / "docs" / "d.md"
