"""Full disks, files that vanish, and outputs that nobody reads: what can be kept is kept, and the run says the rest."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from agentv_ci.results.files import ResultsFormat, form_of, read_rows
from tests.faults.builders import KEY, documents, evaluate, gpt, question, shell, tool
from tests.faults.catalogue import PLAYS
from tests.faults.server import faulty_api
from tests.support import CommandResult, clean_environment, run_process, write

DISK_BYTES = 64 * 1024
LONG_ANSWER = "printf '42 %01500d' 0"
"""An answer whose row is so long that a small disk holds a few dozen."""
CASES = [f"case-{number:02}" for number in range(60)]


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 64 KiB; mounting one takes rights that not every machine gives."""
    yield from mounted(tmp_path / "disk", f"size={DISK_BYTES}")


@pytest.fixture
def locked_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system that nobody can write to, not even an administrator."""
    yield from mounted(tmp_path / "disk", "ro")


def mounted(place: Path, options: str) -> Iterator[Path]:
    place.mkdir()
    try:
        mount = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(place)]
        done = subprocess.run(mount, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        pytest.skip("there is no command 'mount'")
    if done.returncode != 0:
        pytest.skip(f"no file system can be mounted here: {done.stderr.strip()}")
    try:
        yield place
    finally:
        subprocess.run(["umount", "--lazy", str(place)], check=True)


def ids(path: Path) -> list[str]:
    """Return the ids of the rows in a file, every one of which has to be whole."""
    assert path.read_bytes().endswith(b"\n")
    return [row.eval_id for row in read_rows(path, form_of(path))]


def said(done: CommandResult, *sentences: str) -> None:
    """Assert that a command told people all of this, and no traceback."""
    for sentence in sentences:
        assert sentence in " ".join((done.out + done.err).split())
    assert "Traceback" not in done.err


def has_summary(done: CommandResult, cases: int, passed: int) -> bool:
    return f"{cases} cases: {passed} passed, " in done.out and "gate: " in done.out


@pytest.mark.parametrize("form", ["jsonl", "yaml"])
def test_rows_that_fit_on_the_disk_are_kept_and_the_end_says_what_is_missing(
    form: ResultsFormat, repository: Path, small_disk: Path
) -> None:
    documents(repository, [{"id": name} for name in CASES], tool(f"echo {{EVAL_ID}} >> ../asked; {LONG_ANSWER}"))
    results = small_disk / f"r.{form}"
    flags = ["--out", str(results), "--output-format", form]
    done = evaluate("evals", *flags, cwd=repository)
    assert (repository / "asked").read_text("utf-8").split() == CASES
    kept = ids(results)
    assert 10 < len(kept) < len(CASES)
    assert kept == CASES[: len(kept)]
    said(done, f"results could not be written: {results}: No space left on device")
    assert (done.code, has_summary(done, len(CASES), len(kept))) == (4, True)


@pytest.mark.parametrize("form", ["jsonl", "yaml"])
def test_a_row_that_is_too_long_is_missing_and_the_ones_after_it_are_kept(
    form: ResultsFormat, repository: Path
) -> None:
    write(repository, {"evals/long": "42 " + "long " * 5_000, "evals/short": "42"})
    names = ["short-1", "long-1", "short-2", "long-2", "short-3"]
    cases = [{"id": name, "input_messages": question(name.split("-")[0])} for name in names]
    documents(repository, cases, tool("cat {PROMPT}"))
    done = limited(20, "evals", "--out", f"r.{form}", "--output-format", form, cwd=repository)
    assert ids(repository / f"r.{form}") == ["short-1", "short-2", "short-3"]
    said(done, f"results could not be written: {repository / f'r.{form}'}: File too large")
    assert (done.code, has_summary(done, 5, 3)) == (4, True)
    report = json.loads((repository / "r.report.json").read_text("utf-8"))
    assert (report["counts"]["rows"], report["gate"]["exit_code"]) == (3, 4)
    assert report["write_error"] == f"{repository / f'r.{form}'}: File too large"


def test_a_run_report_that_cannot_be_written_is_told_beside_the_summary_and_no_half_is_left(
    repository: Path, small_disk: Path
) -> None:
    fills = "head -c 1000000 /dev/zero > ../disk/full"
    documents(repository, [{"id": "one"}, {"id": "two"}], tool(f"echo 42; {fills}; true"))
    results = small_disk / "r.jsonl"
    results.write_bytes(b" " * 4096)
    done = evaluate("evals", "--out", str(results), cwd=repository)
    said(done, "No space left on device", str(small_disk / "r.report.json"))
    assert (done.code, has_summary(done, 2, 2)) == (4, True)
    report = small_disk / "r.report.json"
    assert not report.exists() or json.loads(report.read_text("utf-8"))


def test_a_junit_file_that_cannot_be_written_is_told_beside_the_summary(repository: Path) -> None:
    documents(repository, [{"id": "one"}, {"id": "two"}], tool("echo 42"))
    done = run_process("eval", "evals", "--out", "r.jsonl", "--junit", "/dev/full", cwd=repository)
    assert ids(repository / "r.jsonl") == ["one", "two"]
    assert json.loads((repository / "r.report.json").read_text("utf-8"))["counts"]["passed"] == 2
    said(done, "No space left on device", "/dev/full")
    assert (done.code, has_summary(done, 2, 2)) == (4, True)


def test_a_place_nobody_can_write_to_is_told_before_anybody_is_asked(repository: Path, locked_disk: Path) -> None:
    documents(repository, [{"id": "one"}], tool("echo 42; touch ../asked"))
    done = run_process("eval", "evals", "--out", str(locked_disk / "r.jsonl"), cwd=repository)
    said(done, "Read-only file system", str(locked_disk / "r.jsonl"))
    assert (done.code, (repository / "asked").exists()) == (2, False)


def test_results_that_are_deleted_under_the_run_are_said_to_be_missing(repository: Path) -> None:
    command = "echo 42; echo {EVAL_ID} >> ../asked; [ {EVAL_ID} != two ] || rm ../r.jsonl"
    documents(repository, [{"id": name} for name in ("one", "two", "three")], tool(command))
    done = run_process("eval", "evals", "--out", "r.jsonl", cwd=repository)
    assert (repository / "asked").read_text("utf-8").split() == ["one", "two", "three"]
    said(done, str(repository / "r.jsonl"))
    assert done.code == 4


def test_results_that_somebody_else_writes_into_are_named_with_the_line(repository: Path) -> None:
    command = "echo 42; [ {EVAL_ID} != two ] || echo junk >> ../r.jsonl"
    documents(repository, [{"id": name} for name in ("one", "two", "three")], tool(command))
    done = run_process("eval", "evals", "--out", "r.jsonl", cwd=repository)
    said(done, f"{repository / 'r.jsonl'}:2")
    assert done.code == 4


def test_results_that_are_emptied_under_the_run_are_counted_as_they_are(repository: Path) -> None:
    command = "echo 42; [ {EVAL_ID} != two ] || : > ../r.jsonl"
    documents(repository, [{"id": name} for name in ("one", "two", "three")], tool(command))
    done = run_process("eval", "evals", "--out", "r.jsonl", cwd=repository)
    assert ids(repository / "r.jsonl") == ["two", "three"]
    assert (done.code, has_summary(done, 3, 2)) == (4, True)


def test_a_question_whose_files_cannot_be_copied_is_a_row_and_touches_no_other(
    repository: Path, small_disk: Path
) -> None:
    write(repository, {"evals/note.txt": "note " * DISK_BYTES})
    content = [{"type": "text", "value": "Look."}, {"type": "file", "value": "note.txt"}]
    asking = {"id": "two", "input_messages": [{"role": "user", "content": content}]}
    documents(repository, [{"id": "one"}, asking, {"id": "three"}], tool("echo 42"), max_retries=0)
    assert run_process("compile", "evals", "--out", "plan.json", cwd=repository).code == 0
    # What the plan knows is no longer in the repository, so that it has to be copied.
    write(repository, {"evals/note.txt": "another note"})
    done = evaluate("plan.json", "--out", "r.jsonl", cwd=repository, env=clean_environment({"TMPDIR": str(small_disk)}))
    assert "Traceback" not in done.err
    rows = {row.eval_id: (row.status, row.error_kind) for row in read_rows(repository / "r.jsonl", "jsonl")}
    assert rows == {"one": ("ok", None), "two": ("error", "process"), "three": ("ok", None)}
    assert done.code == 4


def test_when_no_more_files_may_be_open_every_case_still_has_its_row(repository: Path) -> None:
    with faulty_api(PLAYS) as api:
        asked = [{"id": name, "input_messages": question(f"case: {name}; fault: drip")} for name in CASES]
        documents(repository, asked, gpt(api.base_url))
        command = 'ulimit -n 30; exec "$0" -m agentv_ci eval "$@"'
        arguments = ["evals", "--out", "r.jsonl", "--workers", "32"]
        done = shell(command, sys.executable, *arguments, cwd=repository, env={"MOCK_KEY": KEY})
    assert "Traceback" not in done.err
    rows = list(read_rows(repository / "r.jsonl", "jsonl"))
    assert sorted(row.eval_id for row in rows) == CASES
    assert {row.error_kind for row in rows} <= {None, "network"}
    assert done.code in (0, 4)


SILENCED = [
    ("2>&-", "", 0),
    ("2>&-", "--verbose", 0),
    ("2>/dev/full", "", 0),
    ("2>/dev/full", "--verbose", 0),
    ("2>&GONE", "", 0),
    ("2>&GONE", "--verbose", 0),
    (">&-", "", 0),
    (">&-", "--verbose", 0),
    (">/dev/full", "", 4),
    (">/dev/full", "--verbose", 4),
    (">&GONE", "", 141),
    (">&GONE", "--verbose", 141),
    (">&- 2>&-", "", 0),
    ("<&- >&- 2>&-", "", 0),
    ("<&- >&- 2>&-", "--verbose", 0),
    (">/dev/full 2>&1", "", 4),
    (">/dev/full 2>&1", "--verbose", 4),
    (">&GONE 2>&1", "", 141),
    (">&GONE 2>&1", "--verbose", 141),
]
"""What becomes of the outputs (GONE: a pipe whose reader has gone), a flag, and the exit status."""


@pytest.mark.parametrize(("redirection", "flag", "code"), SILENCED)
def test_a_run_that_nobody_listens_to_writes_every_row_and_its_report(
    redirection: str, flag: str, code: int, repository: Path
) -> None:
    # The empty answer is warned of: something is said without --verbose too.
    documents(repository, [{"id": name} for name in ("one", "two", "three")], tool("[ {EVAL_ID} = two ] || echo 42"))
    with gone() as pipe:
        where = redirection.replace("GONE", str(pipe))
        command = f'"$0" -m agentv_ci eval evals --out r.jsonl --min-pass-rate 0.5 {flag} {where}'
        done = shell(command, sys.executable, cwd=repository, pipe=pipe)
    assert ids(repository / "r.jsonl") == ["one", "two", "three"]
    report = json.loads((repository / "r.report.json").read_text("utf-8"))
    assert (report["counts"]["passed"], report["counts"]["failed"], report["gate"]["exit_code"]) == (2, 1, 0)
    assert (done.code, "Traceback" in done.err) == (code, False)


def test_a_run_that_a_full_disk_has_cut_short_is_completed_once_there_is_room(
    repository: Path, small_disk: Path
) -> None:
    documents(repository, [{"id": name} for name in CASES], tool(f"echo {{EVAL_ID}} >> ../asked; {LONG_ANSWER}"))
    results = small_disk / "r.jsonl"
    evaluate("evals", "--out", str(results), cwd=repository)
    kept = ids(results)
    assert 10 < len(kept) < len(CASES)
    subprocess.run(["mount", "-o", "remount,size=4m", str(small_disk)], check=True)
    done = evaluate("evals", "--resume", str(results), cwd=repository)
    assert (repository / "asked").read_text("utf-8").split() == CASES + CASES[len(kept) :]
    assert ids(results) == CASES
    said(done, f"{len(kept)} of {len(CASES)} trials are already in '{results}'")
    assert (done.code, has_summary(done, len(CASES), len(CASES))) == (0, True)


@pytest.mark.parametrize(
    "flags",
    [["--cache", "--cache-dir"], ["--dump-prompts", "--dump-dir"], ["--dump-traces", "--dump-dir"]],
)
def test_what_is_only_kept_for_later_may_be_lost_on_a_full_disk_and_that_is_said(
    flags: list[str], repository: Path, small_disk: Path
) -> None:
    (small_disk / "full").write_bytes(b" " * DISK_BYTES)
    documents(repository, [{"id": name} for name in ("one", "two", "three")], tool("echo 42"))
    done = run_process("eval", "evals", "--out", "r.jsonl", *flags, str(small_disk), cwd=repository)
    assert ids(repository / "r.jsonl") == ["one", "two", "three"]
    said(done, str(small_disk), "No space left on device")
    assert (done.code, has_summary(done, 3, 3)) == (0, True)


def test_a_recording_that_is_lost_on_a_full_disk_is_no_success(repository: Path, small_disk: Path) -> None:
    (small_disk / "full").write_bytes(b" " * DISK_BYTES)
    documents(repository, [{"id": name} for name in ("one", "two", "three")], tool("echo 42"))
    done = run_process("eval", "evals", "--out", "r.jsonl", "--record", str(small_disk), cwd=repository)
    assert ids(repository / "r.jsonl") == ["one", "two", "three"]
    said(done, str(small_disk), "No space left on device")
    assert (done.code, has_summary(done, 3, 3)) == (4, True)


def test_an_answer_in_the_cache_that_is_only_half_there_is_asked_for_again(repository: Path) -> None:
    documents(repository, [{"id": "one"}, {"id": "two"}], tool("echo {EVAL_ID} >> ../asked; echo 42"))
    flags = ["--out", "r.jsonl", "--cache", "--cache-dir", "cache"]
    run_process("eval", "evals", *flags, cwd=repository)
    for path in (repository / "cache").rglob("*.json"):
        if '"two"' in path.read_text("utf-8"):
            path.write_bytes(path.read_bytes()[:-50])
    done = run_process("eval", "evals", *flags, cwd=repository)
    assert (repository / "asked").read_text("utf-8").split() == ["one", "two", "two"]
    assert (done.code, ids(repository / "r.jsonl")) == (0, ["one", "two"])


def test_a_file_of_a_question_that_is_deleted_between_two_attempts_costs_no_other_case_its_row(
    repository: Path,
) -> None:
    write(repository, {"evals/note.txt": "a note"})
    content = [{"type": "text", "value": "Look."}, {"type": "file", "value": "note.txt"}]
    asking = {"id": "two", "input_messages": [{"role": "user", "content": content}]}
    command = "[ {EVAL_ID} != two ] || { rm -f note.txt; exit 1; }; echo 42"
    documents(repository, [{"id": "one"}, asking, {"id": "three"}], tool(command), max_retries=1)
    done = run_process("eval", "evals", "--out", "r.jsonl", "--cache", cwd=repository)
    assert "Traceback" not in done.err
    rows = {row.eval_id: (row.status, row.error_kind) for row in read_rows(repository / "r.jsonl", "jsonl")}
    assert rows == {"one": ("ok", None), "two": ("error", "process"), "three": ("ok", None)}
    assert done.code == 4


@contextmanager
def gone() -> Iterator[int]:
    """Yield the number of a pipe whose reader has gone."""
    reading, writing = os.pipe()
    os.close(reading)
    try:
        yield writing
    finally:
        os.close(writing)


def limited(blocks: int, *arguments: str, cwd: Path) -> CommandResult:
    """Run `agentv-ci eval` where no file becomes larger than so many blocks of 1024 bytes."""
    return shell(f'ulimit -f {blocks}; exec "$0" -m agentv_ci eval "$@"', sys.executable, *arguments, cwd=cwd)
