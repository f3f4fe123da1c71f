"""Lines of a ledger are written in one form, and read whatever they are."""

from __future__ import annotations

import json
import random
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentv_ci.app.run.environment import system_environment
from agentv_ci.contracts.ledger import Damage, LedgerRun
from agentv_ci.errors import LedgerUnavailable
from agentv_ci.jsonschema.violations import violations
from agentv_ci.ledger.folder import add_to_folder, read_folder
from agentv_ci.ledger.lines import FILE_NAME, MAX_LINE_BYTES, file_of, read_run
from agentv_ci.ledger.place import LedgerPlace, add_to_ledger, read_ledger
from tests.support import NOW, run_command
from tests.support.nights import Stretch, files_of, line
from tests.support.runs import well_formed_text

GOOD = next(iter(files_of({"one": [Stretch(1, (1.0,))], "two": [Stretch(1, (0.5,))]}).items()))
PATH, CONTENT = GOOD
HEAD, ONE, TWO = CONTENT.splitlines()


def edited(line: bytes, **fields: Any) -> bytes:
    return json.dumps({**json.loads(line), **fields}).encode()


def read(content: bytes) -> tuple[LedgerRun | None, list[Damage]]:
    damaged: list[Damage] = []
    return read_run(PATH, content, damaged), damaged


HOSTILE: dict[str, bytes] = {
    "not JSON": b"<script>alert(1)</script>",
    "markup in a field that does not exist": edited(ONE, **{"<img src=x onerror=alert(1)>": 1}),
    "a command to the runner": b"::error::owned",
    "an escape sequence": b'{"kind":"case","suite":"\x1b]0;owned\x07"}',
    "NUL": b"\0" * 100,
    "not UTF-8": b'{"kind":"case","suite":"\xff\xfe"}',
    "a lone surrogate": rb'{"kind":"case","suite":"\ud800"}',
    "deep": b"[" * 50_000 + b"]" * 50_000,
    "deep within a case": ONE[:-1] + b',"judged":' + b"[" * 20_000 + b"]" * 20_000 + b"}",
    "huge": edited(ONE, suite="x" * MAX_LINE_BYTES),
    "a number beyond all": ONE.replace(b'"trials":1', b'"trials":1' + b"0" * 400),
    "a float beyond all": ONE.replace(b'"cost_usd":0.01', b'"cost_usd":1e999'),
    "NaN": ONE.replace(b'"score":1.0', b'"score":NaN'),
    "a negative cost": edited(ONE, cost_usd=-1),
    "more passed than graded": edited(ONE, passed=9),
    "no score of what is graded": ONE.replace(b'"score":1.0,', b""),
    "another kind": edited(ONE, kind="other"),
    "the line of a run": HEAD,
    "a path as digest": edited(ONE, digest="../../etc/passwd"),
    "a list": b"[]",
    "nothing": b"",
}


@pytest.mark.parametrize("hostile", HOSTILE.values(), ids=HOSTILE)
def test_hostile_line_is_reported_and_harms_no_other(hostile: bytes) -> None:
    run, damaged = read(b"\n".join([HEAD, hostile, TWO, b""]))
    assert run is not None
    assert [each.id for each in run.cases] == ["two"]
    assert [each.place for each in damaged] == [f"{PATH}:2"]
    assert damaged[0].reason.isprintable()
    assert len(damaged[0].reason) < 200


HEADS: dict[str, tuple[bytes, str]] = {
    "of a later version": (
        edited(HEAD, schema_version=3, shape=[]),
        "schema_version 3 is not supported; this version of agentv-ci reads 1",
    ),
    "of a case": (ONE, "does not describe a run"),
    "of no day": (edited(HEAD, time="2026-02-31T00:00:00Z"), "day is out of range for month"),
    "with a link to a script": (
        edited(HEAD, run_url="javascript:alert(1)"),
        "is not a line of a ledger: Expected `str` matching regex '^https?://' - at `$.run_url`",
    ),
    "missing": (b"", "is not a line of a ledger: Input data was truncated"),
}


@pytest.mark.parametrize(("head", "reason"), HEADS.values(), ids=HEADS)
def test_run_without_a_usable_first_line_is_left_out(head: bytes, reason: str) -> None:
    run, damaged = read(b"\n".join([head, ONE, TWO, b""]))
    assert run is None
    assert damaged == [Damage(f"{PATH}:1", reason)]


def test_torn_file_keeps_its_whole_lines() -> None:
    run, damaged = read(CONTENT[: -len(TWO) // 2])
    assert run is not None
    assert [each.id for each in run.cases] == ["one"]
    assert [each.place for each in damaged] == [f"{PATH}:3"]
    run, damaged = read(b"\n".join([HEAD, ONE, b""]))
    assert damaged == [Damage(PATH, "has 1 cases; its first line says 2")]


def test_case_counts_once_in_a_run() -> None:
    run, damaged = read(b"\n".join([HEAD, ONE, edited(ONE, score=0.1), b""]))
    assert run is not None
    assert [each.score for each in run.cases] == [1.0]
    assert damaged == [Damage(f"{PATH}:3", "is of a case that this run has already")]


@given(st.lists(st.tuples(well_formed_text.filter(bool), st.floats(0, 1)), max_size=5, unique_by=lambda pair: pair[0]))
def test_what_is_written_is_read_and_valid(cases: list[tuple[str, float]]) -> None:
    lines = [line(name, score, random.Random(1)) for name, score in cases]
    path, content = file_of(lines, time=NOW, commit=None, run_url=None)
    damaged: list[Damage] = []
    run = read_run(path, content, damaged)
    assert FILE_NAME.fullmatch(path)
    assert damaged == []
    assert run is not None
    assert list(run.cases) == lines
    assert [violations("ledger-v1", json.loads(each)) for each in content.splitlines()] == [[]] * (len(lines) + 1)
    assert file_of(lines, time=NOW, commit=None, run_url=None) == (path, content)


def test_name_of_a_run_is_by_its_time_in_utc() -> None:
    time = datetime.fromisoformat("2026-12-31T23:30:00-02:00")
    path, content = file_of([], time=time, commit=None, run_url=None)
    assert path.startswith("2027-01/20270101T013000Z-")
    assert json.loads(content)["time"] == "2027-01-01T01:30:00Z"


def test_folder_has_only_its_own_files_read(tmp_path: Path) -> None:
    assert add_to_folder(tmp_path, dict([GOOD])) == [PATH]
    assert add_to_folder(tmp_path, dict([GOOD])) == []
    month = tmp_path / PATH[:7]
    (month / "notes.jsonl").write_text("not ours")
    (tmp_path / "README.md").write_text("ours")
    secret = tmp_path / "secret"
    secret.write_bytes(CONTENT)
    linked = month / "20260102T000000Z-000000000000.jsonl"
    linked.symlink_to(secret)
    ledger = read_folder(tmp_path)
    assert [run.head.time for run in ledger.runs] == ["2026-01-01T02:15:00Z"]
    assert ledger.damaged == (Damage(f"{PATH[:7]}/{linked.name}", "is not a regular file"),)


def test_huge_file_of_a_folder_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    add_to_folder(tmp_path, dict([GOOD]))
    monkeypatch.setattr("agentv_ci.ledger.folder.MAX_FILE_BYTES", 10)
    assert read_folder(tmp_path).damaged == (Damage(PATH, "is larger than 0 MiB"),)


async def test_folder_that_is_a_file_is_refused(tmp_path: Path) -> None:
    place = LedgerPlace(tmp_path / "file", None)
    place.folder.write_text("x")
    environment = system_environment({})
    with pytest.raises(LedgerUnavailable, match="cannot read the ledger in"):
        await read_ledger(place, environment)
    with pytest.raises(LedgerUnavailable, match="cannot write the ledger in"):
        await add_to_ledger(place, dict([GOOD]), environment)


def test_runs_are_read_since_a_day(tmp_path: Path) -> None:
    add_to_folder(tmp_path, files_of({"one": [Stretch(70, (1.0,))]}))
    since = datetime(2026, 2, 20, tzinfo=UTC).date()
    assert len(read_folder(tmp_path).runs) == 70
    runs = read_folder(tmp_path, since).runs
    assert [runs[0].head.time[:10], runs[-1].head.time[:10]] == ["2026-02-20", "2026-03-11"]


NASTY = "</script><script>alert(1)</script>\n::error::owned\x1b[31m ##[error]%0A"


@pytest.mark.parametrize("form", ["text", "json", "github"])
def test_texts_of_a_ledger_command_nothing(tmp_path: Path, form: str) -> None:
    files = files_of({NASTY: [Stretch(25, (0.0,), model=NASTY)]})
    add_to_folder(tmp_path / "ledger", files)
    done = run_command("history", "health", "--dir", "ledger", "--days", "36500", "--format", form, cwd=tmp_path)
    assert done.code == 0
    assert "\x1b" not in done.out
    commands = [each for each in done.out.splitlines() if each.lstrip().startswith("::") or "##[" in each]
    assert all(each.startswith("::warning ") for each in commands)
    assert len(commands) == (1 if form == "github" else 0)
    if form == "json":
        (found,) = json.loads(done.out)["findings"]
        assert found["id"] == NASTY
