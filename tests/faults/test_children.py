"""Child processes that die, hang, flood or leave others behind: each is its row, and none of them survives."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from agentv_ci import process
from agentv_ci.contracts.base import ErrorKind
from tests.support import has_ended, write
from tests.support.evals import Run, question, tool

HANG_S = 0.5
"""The time of a case whose command does not end."""
SLEEPS = "sleep 600"
PID = "echo $! >> ../pids"
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
    """What a failed command printed; None: that is left to chance."""
    hangs: bool = False


def failed(command: str, code: int, printed: str = "") -> Death:
    return Death(command, "process", f"(exit code {code})", printed=printed)


def floods(command: str) -> Death:
    return Death(command, "process", "printed more than 10 MiB")


def hangs(command: str) -> Death:
    return Death(command, "timeout", "timed out after", hangs=True)


DEATHS: Mapping[str, Death] = {
    "sound": Death("echo 42"),
    "killed": failed("kill -KILL $$", -9),
    "crashed": failed("ulimit -c 0; kill -SEGV $$", -11),
    "killed by its group": failed("kill -TERM 0", -15),
    "killed in its answer": failed("""printf '{"text": "4'; kill -KILL $$""", -9, '{"text": "4'),
    "ended in its answer": failed("""printf '{"text": "4'; exit 3""", 3, '{"text": "4'),
    "half an answer": Death("""printf '{"text": "42'""", answer='{"text": "42'),
    "not UTF-8": Death(r"printf '42 \377\376\303'", answer="42 \ufffd\ufffd\ufffd"),
    "zeros": Death(r"printf '42\0\0'", answer="42\0\0"),
    "missing program": failed("exec /nowhere/at/all 2> /dev/null", 127),
    "not executable": failed("exec ./a.yaml 2> /dev/null", 126),
    "floods": floods(FLOODS),
    "floods stderr": floods(f"({FLOODS}) >&2"),
    "floods without end": floods("tr '\\0' x < /dev/zero"),
    "leaves a child": Death(f"{SLEEPS} & {PID}; echo 42"),
    "leaves a silent child": Death(f"{SLEEPS} > /dev/null 2>&1 & {PID}; echo 42"),
    "leaves a child that ignores signals": Death(f"(trap '' TERM INT HUP; exec {SLEEPS}) & {PID}; echo 42"),
    "leaves a grandchild": Death(f"({SLEEPS} & {PID}; {SLEEPS}) & {PID}; echo 42"),
    "dies and leaves a child": Death(f"{SLEEPS} & {PID}; kill -KILL $$", "process", "(exit code -9)"),
    "hangs": hangs(SLEEPS),
    "closes its outputs and hangs": hangs(f"exec >&- 2>&-; {SLEEPS}"),
    "answers and hangs": hangs(f"echo 42; exec {SLEEPS}"),
    "hangs with a child": hangs(f"{SLEEPS} & {PID}; wait"),
    "ignores TERM": hangs(f"trap '' TERM; while :; do {SLEEPS}; done"),
    "stopped": hangs("kill -STOP $$"),
}


@pytest.fixture(autouse=True)
def short_grace(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "GRACE_S", 0.2)


def survivors(repository: Path) -> list[int]:
    """Return the processes that have not ended, of all that wrote their ids."""
    pids = [int(pid) for pid in (repository / "pids").read_text("utf-8").split()]
    assert pids
    return [pid for pid in pids if not has_ended(pid)]


@pytest.mark.slow
def test_the_death_of_a_command_is_the_row_it_should_be_and_touches_no_other(repository: Path) -> None:
    run = Run(repository)
    write(repository, {f"evals/{name}.sh": f"echo $$ >> ../pids; {each.command}" for name, each in DEATHS.items()})
    run.documents(
        [
            {
                "id": name,
                "input_messages": question(name),
                # The one that hangs takes its time once.
                "execution": {"timeout_seconds": HANG_S if each.hangs else 60, "max_retries": int(not each.hangs)},
            }
            for name, each in DEATHS.items()
        ],
        tool(". ./{EVAL_ID}.sh"),
    )
    rows = {row.eval_id: row for row in run.rows(workers=4)}
    assert rows.keys() == DEATHS.keys()
    for name, death in DEATHS.items():
        row, attempts = rows[name], 1 if death.hangs or not death.error_kind else 2
        answer = "" if death.error_kind else death.answer
        assert (row.error_kind, row.candidate_answer, row.attempts) == (death.error_kind, answer, attempts), name
        assert death.error in (row.error or ""), name
        assert death.printed is None or (row.printed is not None and row.printed.stdout == death.printed), name
    assert survivors(repository) == []


SCORES = """echo '{"score": 1}'"""


@pytest.mark.slow
def test_the_death_of_an_evaluator_is_an_error_of_its_case_and_the_answer_is_kept(repository: Path) -> None:
    deaths: Mapping[str, tuple[str, str | None]] = {
        "killed after its score": (f"{SCORES}; kill -KILL $$", "exited with code -9"),
        "floods": (FLOODS, "printed more than 10 MiB"),
        "hangs": (SLEEPS, "timed out after"),
        "ignores TERM": (f"trap '' TERM; while :; do {SLEEPS}; done", "timed out after"),
        "leaves a child": (f"{SLEEPS} & {PID}; {SCORES}", None),
        "reads nothing": (f"exec <&-; {SCORES}", None),
    }
    run = Run(repository)
    write(repository, {f"evals/{name}.sh": f"echo $$ >> ../pids; {command}" for name, (command, _) in deaths.items()})

    def judged(name: str) -> dict[str, Any]:
        script = {"name": "script", "type": "code", "script": f". ./{shlex.quote(name)}.sh", "timeout_seconds": 1}
        return {"id": name, "evaluators": [script]}

    run.documents([judged(name) for name in deaths], tool("echo 42"))
    rows = run.rows(workers=4)
    assert sorted(row.eval_id for row in rows) == sorted(deaths)
    for row in rows:
        error = deaths[row.eval_id][1]
        assert (row.error_kind, row.candidate_answer) == ("evaluator" if error else None, "42"), row.eval_id
        assert (error or "") in (row.error or ""), row.eval_id
    assert survivors(repository) == []
