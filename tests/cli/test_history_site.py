"""`agentv-ci history site`."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from agentv_ci.ledger.folder import add_to_folder
from agentv_ci.ledger.lines import file_of
from agentv_ci.report.site.document import GENERATED
from tests.support import run_command
from tests.support.ledgers import case_line


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    path, content = file_of([case_line()], time=datetime.now(UTC), commit=None, run_url=None)
    add_to_folder(tmp_path / "ledger", {path: content})
    return tmp_path / "ledger"


def test_pages_are_written_again_over_older_ones(ledger: Path, tmp_path: Path) -> None:
    arguments = ("history", "site", "--dir", str(ledger), "--out", "site")
    for _ in range(2):
        done = run_command(*arguments, cwd=tmp_path)
        assert (done.code, done.out) == (0, f"pages: {tmp_path / 'site' / 'index.html'}\n")
    assert {path.name for path in (tmp_path / "site").iterdir()} == {
        "index.html",
        "badge.svg",
        "status.json",
        ".nojekyll",
    }
    assert json.loads((tmp_path / "site" / "status.json").read_text("utf-8"))["message"] == "1/1 passed"


def test_page_of_another_program_is_kept(ledger: Path, tmp_path: Path) -> None:
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "index.html").write_text(f"<title>Mine</title>{' ' * 5_000}{GENERATED}", "utf-8")
    done = run_command("history", "site", "--dir", str(ledger), "--out", "site", cwd=tmp_path)
    assert done.code == 2
    assert "index.html' is not a file of agentv-ci" in done.err
    assert not (tmp_path / "site" / "badge.svg").exists()


@pytest.mark.parametrize("name", ["badge.svg", "status.json"])
def test_file_of_another_program_is_kept(name: str, ledger: Path, tmp_path: Path) -> None:
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / name).write_text("mine", "utf-8")
    done = run_command("history", "site", "--dir", str(ledger), "--out", "site", cwd=tmp_path)
    assert (done.code, f"{name}' is not a file of agentv-ci" in done.err) == (2, True)
    assert [each.read_text("utf-8") for each in (tmp_path / "site").iterdir()] == ["mine"]


def test_ledger_without_runs_is_nothing_to_draw(tmp_path: Path) -> None:
    (tmp_path / "ledger").mkdir()
    done = run_command("history", "site", "--dir", "ledger", "--out", "site", cwd=tmp_path)
    assert (done.code, (tmp_path / "site").exists()) == (3, False)
    assert "agentv-ci history add" in done.err


def test_damaged_ledger_is_drawn_and_says_so(ledger: Path, tmp_path: Path) -> None:
    (broken,) = ledger.glob("*/*.jsonl")
    broken.write_text("not JSON\n", "utf-8")
    assert run_command("history", "site", "--dir", "ledger", "--out", "site", cwd=tmp_path).code == 0
    assert "1 part of the ledger cannot be used" in (tmp_path / "site" / "index.html").read_text("utf-8")


QUARANTINE = """\
$schema: agentv-quarantine-v1
quarantine:
  - {id: one, reason: waits for a fix, owner: ada, expires: '2999-01-01', issue: 'https://example.com/7'}
  - {id: other, reason: not in the ledger, owner: ada, expires: '2999-01-01'}
"""


def test_quarantine_of_the_repository_is_shown(ledger: Path, tmp_path: Path) -> None:
    file = tmp_path / ".agentv" / "quarantine.yaml"
    file.parent.mkdir()
    file.write_text(QUARANTINE, "utf-8")
    arguments = ("history", "site", "--dir", "ledger", "--out", "site")
    assert run_command(*arguments, cwd=tmp_path).code == 0
    page = (tmp_path / "site" / "index.html").read_text("utf-8")
    assert "waits for a fix" in page
    assert "not in the ledger" not in page
    assert '"marks":["quarantine"]' in page
    file.write_text("quarantine: none\n", "utf-8")
    done = run_command(*arguments, cwd=tmp_path)
    assert (done.code, "quarantine.yaml: line 1: " in done.err) == (2, True)
