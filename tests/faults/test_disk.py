"""Full disks, files that vanish, closed outputs: what can be kept is kept, and the run reports the rest."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from agentv_ci.results.files import form_of, read_rows
from tests.faults.builders import gpt, shell
from tests.faults.catalogue import PLAYS
from tests.faults.server import faulty_api
from tests.support import CommandResult, run_command, run_process, write
from tests.support.evals import KEY, documents, question, tool

DISK_BYTES = 32 * 1024
CASES = [f"case-{number:02}" for number in range(30)]
THREE = ["one", "two", "three"]
LONG_ANSWER = tool("echo {EVAL_ID} >> ../asked; printf '42 %01500d' 0")
"""Its rows are so long that a small disk holds a dozen."""


@pytest.fixture
def full_disk(small_disk: Path) -> Path:
    (small_disk / "full").write_bytes(b" " * DISK_BYTES)
    return small_disk


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 32 KiB; mounting one requires rights."""
    place = tmp_path / "disk"
    place.mkdir()
    try:
        mount = ["mount", "-t", "tmpfs", "-o", f"size={DISK_BYTES}", "tmpfs", str(place)]
        done = subprocess.run(mount, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        pytest.skip("the command 'mount' is missing")
    if done.returncode != 0:
        pytest.skip(f"no file system can be mounted here: {done.stderr.strip()}")
    try:
        yield place
    finally:
        subprocess.run(["umount", "--lazy", str(place)], check=True)


def ids(path: Path) -> list[str]:
    """Return the ids of the rows in a file, all of which have to be whole."""
    assert path.read_bytes().endswith(b"\n")
    return [row.eval_id for row in read_rows(path, form_of(path))]


def check(done: CommandResult, code: int, *printed: str, cases: int = 0, passed: int = 0) -> None:
    """Assert the exit status of a command, what it printed, and its summary, if there are cases."""
    assert (done.code, "Traceback" in done.err) == (code, False)
    for each in printed:
        assert each in " ".join((done.out + done.err).split())
    if cases:
        assert f"{cases} cases: {passed} passed, " in done.out
        assert "gate: " in done.out


def test_rows_that_fit_on_the_disk_are_kept_and_the_rest_is_reported(repository: Path, small_disk: Path) -> None:
    documents(repository, CASES, LONG_ANSWER)
    results = small_disk / "r.jsonl"
    done = run_command("eval", "evals", "--out", results, cwd=repository)
    assert (repository / "asked").read_text("utf-8").split() == CASES
    kept = ids(results)
    assert 5 < len(kept) < len(CASES)
    assert kept == CASES[: len(kept)]
    check(done, 4, f"{results}: No space left on device", cases=len(CASES), passed=len(kept))
    assert done.err.count(f"warning: results cannot be written: {results}: No space left on device") == 1
    assert "not run" not in done.out
    subprocess.run(["mount", "-o", "remount,size=4m", str(small_disk)], check=True)
    done = run_command("eval", "evals", "--resume", results, cwd=repository)
    assert (repository / "asked").read_text("utf-8").split() == CASES + CASES[len(kept) :]
    assert ids(results) == CASES
    check(done, 0, cases=len(CASES), passed=len(CASES))


def test_a_run_report_that_cannot_be_written_is_reported_and_left_whole(repository: Path, small_disk: Path) -> None:
    two = THREE[:2]  # their rows fit into one page of memory
    documents(repository, two, tool("echo 42; head -c 1000000 /dev/zero > ../disk/full; true"))
    results, report = small_disk / "r.jsonl", small_disk / "r.report.json"
    results.write_bytes(b" " * 4096)
    done = run_command("eval", "evals", "--out", results, cwd=repository)
    check(done, 4, "No space left on device", str(report), cases=2, passed=2)
    assert not report.exists() or json.loads(report.read_text("utf-8"))


@pytest.mark.parametrize(
    ("harm", "printed", "kept"),
    [
        ("rm ../r.jsonl", "r.jsonl", None),
        (": > ../r.jsonl", "3 cases: 2 passed, ", ["two", "three"]),
        ("echo junk >> ../r.jsonl", "r.jsonl:2", None),
    ],
    ids=["deleted", "emptied", "written to"],
)
def test_results_that_are_harmed_during_the_run_are_reported(
    harm: str, printed: str, kept: list[str] | None, repository: Path
) -> None:
    documents(repository, THREE, tool(f"echo 42; echo {{EVAL_ID}} >> ../asked; [ {{EVAL_ID}} != two ] || {harm}"))
    done = run_command("eval", "evals", "--out", "r.jsonl", cwd=repository)
    assert (repository / "asked").read_text("utf-8").split() == THREE
    check(done, 4, printed)
    assert kept is None or ids(repository / "r.jsonl") == kept


@pytest.mark.parametrize(
    ("flags", "code"),
    [
        (["--cache", "--cache-dir"], 0),
        (["--dump-prompts", "--dump-dir"], 0),
        (["--dump-traces", "--dump-dir"], 0),
        (["--record"], 4),
        (["--junit"], 4),
    ],
)
def test_a_recording_or_report_that_is_lost_on_a_full_disk_fails_and_other_copies_are_warnings(
    flags: list[str], code: int, repository: Path, full_disk: Path
) -> None:
    documents(repository, THREE, tool("echo 42"))
    place = full_disk / "j.xml" if "--junit" in flags else full_disk
    done = run_command("eval", "evals", "--out", "r.jsonl", *flags, place, cwd=repository)
    assert ids(repository / "r.jsonl") == THREE
    assert json.loads((repository / "r.report.json").read_text("utf-8"))["counts"]["passed"] == 3
    check(done, code, str(full_disk), "No space left on device", cases=3, passed=3)
    assert done.err.count("warning: cannot write") == ("--junit" not in flags)


def statuses(repository: Path) -> list[tuple[str, str | None]]:
    return [(row.status, row.error_kind) for row in read_rows(repository / "r.jsonl", "jsonl")]


LOOKS = {"id": "two", "input_messages": [{"role": "user", "content": [{"type": "file", "value": "note.txt"}]}]}
ONE_FAILS = [("ok", None), ("error", "process"), ("ok", None)]


@pytest.mark.slow
def test_a_question_whose_files_cannot_be_copied_is_an_error_of_one_row(repository: Path, small_disk: Path) -> None:
    write(repository, {"evals/note.txt": "note " * DISK_BYTES})
    documents(repository, ["one", LOOKS, "three"], tool("echo 42"), max_retries=0)
    assert run_command("compile", "evals", "--out", "plan.json", cwd=repository).code == 0
    # What the plan holds is no longer in the repository, so it has to be copied.
    write(repository, {"evals/note.txt": "another note"})
    done = run_process("eval", "plan.json", "--out", "r.jsonl", cwd=repository, env={"TMPDIR": str(small_disk)})
    check(done, 4)
    assert statuses(repository) == ONE_FAILS


def test_a_file_that_is_deleted_between_two_attempts_is_an_error_of_one_row(repository: Path) -> None:
    write(repository, {"evals/note.txt": "a note"})
    command = "[ {EVAL_ID} != two ] || { rm -f note.txt; exit 1; }; echo 42"
    documents(repository, ["one", LOOKS, "three"], tool(command), max_retries=1)
    check(run_command("eval", "evals", "--out", "r.jsonl", "--cache", cwd=repository), 4)
    assert statuses(repository) == ONE_FAILS


@pytest.mark.slow
def test_every_case_has_its_row_when_no_more_files_may_be_open(repository: Path) -> None:
    with faulty_api(PLAYS) as api:
        asked = [{"id": name, "input_messages": question(f"case: {name}; fault: drip")} for name in CASES]
        documents(repository, asked, gpt(api.base_url))
        command = 'ulimit -n 30; exec "$0" -m agentv_ci eval evals --out r.jsonl --workers 32'
        done = shell(command, sys.executable, cwd=repository, env={"MOCK_KEY": KEY})
    assert ("Traceback" in done.err, done.code in (0, 4)) == (False, True)
    assert sorted(ids(repository / "r.jsonl")) == CASES
    assert {kind for _, kind in statuses(repository)} <= {None, "network"}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("redirection", "code"),
    [
        ("2>&-", 0),
        ("2>/dev/full", 0),
        ("2>&GONE", 0),
        (">&-", 0),
        (">/dev/full", 4),
        (">&GONE", 141),
        ("<&- >&- 2>&-", 0),
        (">/dev/full 2>&1", 4),
        (">&GONE 2>&1", 141),
    ],
)
def test_a_run_with_closed_outputs_writes_every_row_and_its_report(
    redirection: str, code: int, repository: Path
) -> None:
    # The empty answer is a warning.
    documents(repository, THREE, tool("[ {EVAL_ID} = two ] || echo 42"))
    with closed_pipe() as pipe:
        where = redirection.replace("GONE", str(pipe))
        command = f'"$0" -m agentv_ci eval evals --out r.jsonl --min-pass-rate 0.5 --verbose {where}'
        done = shell(command, sys.executable, cwd=repository, pipe=pipe)
    assert ids(repository / "r.jsonl") == THREE
    report = json.loads((repository / "r.report.json").read_text("utf-8"))
    assert (report["counts"]["passed"], report["counts"]["failed"], report["gate"]["exit_code"]) == (2, 1, 0)
    check(done, code)


@contextmanager
def closed_pipe() -> Iterator[int]:
    """Yield a pipe whose reading end is closed."""
    reading, writing = os.pipe()
    os.close(reading)
    try:
        yield writing
    finally:
        os.close(writing)
