"""Children that die, hang, flood or leave others behind: each is its row, and none of them survives."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from agentv_ci import process
from agentv_ci.contracts.base import ErrorKind
from agentv_ci.contracts.results import ResultRow
from agentv_ci.results.files import read_rows
from tests.faults.builders import documents, evaluate, question, run, tool
from tests.support import FakeClock, clean_environment, has_ended, write

REMEMBERS = "echo $$ >> ../pids; "
"""Every child says who it is, in the folder above the eval file's; so does every grandchild that a command names."""

SHORT_S = 0.5
"""The time of a case whose command does not end."""
LONG_S = 60
SLEEPS = "sleep 600"
FLOODS_FOR_EVER = "tr '\\0' x < /dev/zero"
FLOODS = "head -c 11534336 /dev/zero | tr '\\0' x"


@dataclass(frozen=True, slots=True)
class Death:
    """What a command does, and what comes of it."""

    command: str
    error_kind: ErrorKind | None = None
    """None: it has answered."""
    error: str = ""
    answer: str = "42"
    printed: str | None = None
    """What a command that failed printed before; None: that is left to chance."""
    hangs: bool = False
    waits_for_grace: bool = False
    """Whether TERM does not end it."""


DEATHS: Mapping[str, Death] = {
    "sound": Death("echo 42"),
    "killed": Death("kill -KILL $$", "process", "(exit code -9)", printed=""),
    "crashed": Death("ulimit -c 0; kill -SEGV $$", "process", "(exit code -11)", printed=""),
    "killed-by-its-group": Death("kill -TERM 0", "process", "(exit code -15)", printed=""),
    "killed-in-its-answer": Death(
        """printf '{"text": "4'; kill -KILL $$""", "process", '{"text": "4 (exit code -9)', printed='{"text": "4'
    ),
    "ended-in-its-answer": Death(
        """printf '{"text": "4'; exit 3""", "process", '{"text": "4 (exit code 3)', printed='{"text": "4'
    ),
    "half-an-answer": Death("""printf '{"text": "42'""", answer='{"text": "42'),
    "no-utf8": Death(r"printf '42 \377\376\303'", answer="42 \ufffd\ufffd\ufffd"),
    "zeros": Death(r"printf '42\0\0'", answer="42\0\0"),
    "no-program": Death("exec /nowhere/at/all 2> /dev/null", "process", "(exit code 127)", printed=""),
    "no-executable": Death("exec ./a.yaml 2> /dev/null", "process", "(exit code 126)", printed=""),
    "floods": Death(FLOODS, "process", "the command printed more than 10 MiB"),
    "complains-at-length": Death(f"({FLOODS}) >&2", "process", "the command printed more than 10 MiB"),
    "never-ends-to-talk": Death(FLOODS_FOR_EVER, "process", "the command printed more than 10 MiB"),
    "leaves-a-child": Death(f"{SLEEPS} & echo $! >> ../pids; echo 42"),
    "leaves-a-silent-child": Death(f"{SLEEPS} > /dev/null 2>&1 & echo $! >> ../pids; echo 42"),
    "leaves-a-stubborn-child": Death(f"(trap '' TERM INT HUP; exec {SLEEPS}) & echo $! >> ../pids; echo 42"),
    "leaves-many": Death(f"for n in 1 2 3 4 5 6 7 8 9; do {SLEEPS} & echo $! >> ../pids; done; echo 42"),
    "leaves-a-grandchild": Death(f"({SLEEPS} & echo $! >> ../pids; {SLEEPS}) & echo $! >> ../pids; echo 42"),
    "dies-and-leaves-a-child": Death(f"{SLEEPS} & echo $! >> ../pids; kill -KILL $$", "process", "(exit code -9)"),
    "hangs": Death(SLEEPS, "timeout", "the command timed out after", hangs=True),
    "closes-and-hangs": Death(f"exec >&- 2>&-; {SLEEPS}", "timeout", "the command timed out after", hangs=True),
    "answers-and-hangs": Death(f"echo 42; exec {SLEEPS}", "timeout", "the command timed out after", hangs=True),
    "hangs-with-a-child": Death(
        f"{SLEEPS} & echo $! >> ../pids; wait", "timeout", "the command timed out after", hangs=True
    ),
    "ignores-term": Death(
        f"trap '' TERM; while :; do {SLEEPS}; done",
        "timeout",
        "the command timed out after",
        hangs=True,
        waits_for_grace=True,
    ),
    "stopped": Death("kill -STOP $$", "timeout", "the command timed out after", hangs=True, waits_for_grace=True),
}

SCORES = """echo '{"score": 1}'"""
JUDGED: Mapping[str, Death] = {
    "sound": Death(SCORES),
    "killed": Death("kill -KILL $$", "evaluator", "the script exited with code -9: no output"),
    "crashed": Death("ulimit -c 0; kill -SEGV $$", "evaluator", "the script exited with code -11"),
    "killed-after-its-score": Death(f"{SCORES}; kill -KILL $$", "evaluator", "the script exited with code -9"),
    "half-a-score": Death("""printf '{"score": 1'""", "evaluator", "the script printed no JSON object with a score"),
    "no-utf8": Death(rf"printf '\377\376\n'; {SCORES}"),
    "no-program": Death("exec /nowhere/at/all 2> /dev/null", "evaluator", "the script exited with code 127"),
    "floods": Death(FLOODS, "evaluator", "the script printed more than 10 MiB"),
    "never-ends-to-talk": Death(FLOODS_FOR_EVER, "evaluator", "the script printed more than 10 MiB"),
    "reads-nothing": Death(f"exec <&-; {SCORES}"),
    "leaves-a-child": Death(f"{SLEEPS} & echo $! >> ../pids; {SCORES}"),
    "leaves-a-stubborn-child": Death(f"(trap '' TERM INT HUP; exec {SLEEPS}) & echo $! >> ../pids; {SCORES}"),
    "hangs": Death(SLEEPS, "evaluator", "the script timed out after", hangs=True),
    "closes-and-hangs": Death(f"exec >&- 2>&-; {SLEEPS}", "evaluator", "the script timed out after", hangs=True),
    "ignores-term": Death(
        f"trap '' TERM; while :; do {SLEEPS}; done",
        "evaluator",
        "the script timed out after",
        hangs=True,
        waits_for_grace=True,
    ),
}


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a grace period that is over soon."""
    monkeypatch.setattr(process, "GRACE_S", 0.2)


def survivors(repository: Path) -> list[int]:
    """Return the processes that have not ended; at least one must have said who it is."""
    pids = [int(pid) for pid in (repository / "pids").read_text("utf-8").split()]
    assert pids
    return [pid for pid in pids if not has_ended(pid)]


def scripts(deaths: Mapping[str, Death]) -> dict[str, str]:
    return {f"evals/{name}.sh": REMEMBERS + death.command for name, death in deaths.items()}


def patience_s(death: Death) -> float:
    return SHORT_S if death.hangs else LONG_S


def dying(cases: Mapping[str, str]) -> list[dict[str, Any]]:
    """Return cases from id and the name of a death."""
    return [
        {
            "id": name,
            "input_messages": question(death),
            "execution": {"timeout_seconds": patience_s(DEATHS[death]), "max_retries": attempts(DEATHS[death]) - 1},
        }
        for name, death in cases.items()
    ]


def attempts(death: Death) -> int:
    """Return how often a command may be run that fails: one that hangs has cost enough time."""
    return 1 if death.hangs else 2


DIES = tool(". ./{PROMPT}.sh")
"""The question is the name of a death; its script runs in the very shell that answers."""


def check(row: ResultRow, death: Death) -> None:
    """Assert that a row is what a command's death makes it."""
    if death.error_kind is None:
        assert (row.status, row.error_kind, row.candidate_answer, row.attempts) == ("ok", None, death.answer, 1)
        return
    assert (row.status, row.verdict, row.error_kind) == ("error", "error", death.error_kind)
    assert death.error in (row.error or "")
    assert (row.attempts, row.requests, row.candidate_answer) == (attempts(death), attempts(death), "")
    if death.printed is not None:
        assert row.printed is not None
        assert row.printed.stdout == death.printed


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("death", DEATHS)
def test_the_death_of_a_command_is_the_row_it_should_be_and_touches_no_other(death: str, repository: Path) -> None:
    write(repository, scripts(DEATHS))
    cases = {"before": "sound", "at": death, "after": "sound"}
    documents(repository, dying(cases), DIES)
    rows = run(repository, FakeClock(clean_environment()).environment())
    assert [row.eval_id for row in rows] == list(cases)
    for row in rows:
        check(row, DEATHS[cases[row.eval_id]])
    assert survivors(repository) == []


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("death", JUDGED)
def test_the_death_of_an_evaluator_is_its_cases_error_and_the_answer_is_kept(death: str, repository: Path) -> None:
    def judged(name: str) -> Mapping[str, Any]:
        script = {"type": "code", "script": f". ./{name}.sh", "timeout_seconds": patience_s(JUDGED[name])}
        return {"evaluators": [{"name": "script", **script}]}

    write(repository, scripts(JUDGED))
    cases = {"before": "sound", "at": death, "after": "sound"}
    documents(repository, [{"id": name, **judged(each)} for name, each in cases.items()], tool("echo 42"))
    rows = run(repository, FakeClock(clean_environment()).environment())
    assert [(row.eval_id, row.candidate_answer, row.attempts) for row in rows] == [(name, "42", 1) for name in cases]
    for row in rows:
        expected = JUDGED[cases[row.eval_id]]
        status = "error" if expected.error_kind else "ok"
        assert (row.status, row.error_kind, row.evaluator_results[0].status) == (status, expected.error_kind, status)
        assert expected.error in (row.error or "")
    assert survivors(repository) == []


def test_among_many_commands_at_once_every_death_is_its_own_row_and_nobody_survives(repository: Path) -> None:
    quick = [name for name, death in DEATHS.items() if not death.waits_for_grace and name != "sound"]
    deaths = [death for each in quick for death in (each, "sound", "sound", "sound", "sound")]
    cases = {f"case-{number:03}": death for number, death in enumerate(deaths)}
    write(repository, scripts(DEATHS))
    documents(repository, dying(cases), DIES)
    done = evaluate("evals", "--out", "r.jsonl", "--workers", "16", cwd=repository)
    rows = list(read_rows(repository / "r.jsonl", "jsonl"))
    assert sorted(row.eval_id for row in rows) == list(cases)
    for row in rows:
        check(row, DEATHS[cases[row.eval_id]])
    errors = sum(DEATHS[death].error_kind is not None for death in deaths)
    counts = json.loads((repository / "r.report.json").read_text("utf-8"))["counts"]
    assert (counts["rows"], counts["errored"], counts["passed"]) == (len(cases), errors, len(cases) - errors)
    assert (done.code, "Traceback" in done.err) == (4, False)
    assert survivors(repository) == []
