"""What a person sees: the summary on a real terminal, and what is left of it where there is none."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import pytest

from agentv_ci.text import ANSI
from tests.support import clean_environment, write

TARGETS = """\
$schema: agentv-targets-v2.2
targets:
  - {name: default, provider: mock, response: "No", responses: {agrees: "Yes, of course"}}
"""
EVALS = """\
$schema: agentv-eval-v2
evalcases:
""" + "".join(
    f"""\
  - id: {name}
    expected_outcome: Agrees
    input_messages: [{{role: user, content: {question}}}]
    expected_messages: []
    evaluators: [{{name: agrees, type: contains, value: "Yes"}}, {{name: polite, type: contains, value: course}}]
"""
    for name, question in (("agrees", "Say yes"), ("refuses", "Say nothing"))
)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    write(tmp_path, {"evals/a.test.yaml": EVALS, "targets.yaml": TARGETS, ".git/HEAD": ""})
    return tmp_path


def on_a_terminal(repository: Path, *flags: str, **env: str) -> str:
    """What a terminal of 80 columns is sent on standard output."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "agentv_ci", "eval", "evals", "--out", "r.jsonl", *flags],
        cwd=repository,
        env=clean_environment({"TERM": "xterm-256color", "COLUMNS": "80", **env}),
        stdin=subprocess.DEVNULL,
        stdout=theirs,
        stderr=subprocess.PIPE,
    )
    os.close(theirs)
    sent = b""
    while True:
        try:
            piece = os.read(ours, 65_536)
        except OSError:  # the other end is closed
            break
        if not piece:
            break
        sent += piece
    process.communicate(timeout=30)
    os.close(ours)
    assert process.returncode == 1
    return sent.decode().replace("\r\n", "\n")


def test_terminal_shows_styles_and_solid_bars(repository: Path) -> None:
    assert on_a_terminal(repository, PYTHONIOENCODING="utf-8").replace("\x1b", "^") == (
        """\
^[1mfailures, worst first:^[0m
^[31m  fail 0.000  ^[0m^[1mrefuses^[0m^[2m  (evals/a.test.yaml:8)^[0m
    fail       0.000  agrees: does not contain 'Yes'
    fail       0.000  polite: does not contain 'course'
^[2m    answer: No^[0m
^[2m    again: agentv-ci eval evals/a.test.yaml --eval-id=refuses^[0m

^[1m2 cases: 1 passed, 1 failed, 0 errors^[0m
mean 0.500  median 0.500  min 0.000  max 1.000  stdev 0.500
[0.0, 0.2)      1  ^[36m██████████████████████████████^[0m
[0.2, 0.4)      0
[0.4, 0.6)      0
[0.6, 0.8)      0
[0.8, 1.0]      1  ^[36m██████████████████████████████^[0m
^[1mby evaluator:^[0m
  agrees (contains)  1/2 passed, mean 0.500
  polite (contains)  1/2 passed, mean 0.500
^[31mgate: not passed^[0m
^[31m  pass rate 50.0% is below 100.0%^[0m
results: r.jsonl
report: r.report.json
"""
    )


def test_whoever_wants_no_colour_gets_none(repository: Path) -> None:
    plain = on_a_terminal(repository, "--color", "never")
    assert not ANSI.search(plain)
    assert on_a_terminal(repository, NO_COLOR="1") == plain
    assert all(len(line) <= 80 for line in plain.splitlines())


def test_terminal_without_unicode_gets_bars_that_it_can_show(repository: Path) -> None:
    shown = ANSI.sub("", on_a_terminal(repository, PYTHONIOENCODING="ascii:replace"))
    assert "█" not in shown
    assert re.search(r"\[0\.8, 1\.0\] +1  #{30}\n", shown)
