"""Evaluators of what an agent leaves behind, and the clean tree in which graders run."""

from __future__ import annotations

import json
import sqlite3
from typing import Any, Literal

import pytest

from agentv_ci.contracts.plan_parts import PlanWorkspace
from agentv_ci.contracts.results import Change
from agentv_ci.workspaces.submission import submitted
from tests.workspaces.builders import KINDS, Agent

FILES = {"a.txt": "one\ntwo\n", "a.json": '{"n": [1, 2.0]}', "run.sh": "#!/bin/sh\necho 42\n"}
XML = "<testsuite><testcase classname='t' name='one'/><testcase classname='t' name='two'><{}/></testcase></testsuite>"
SAME = {"mode": "755", "unchanged": True}


@pytest.mark.parametrize(
    ("command", "settings", "score"),
    [
        ("true", {"path": "a.txt"}, 1),
        ("rm a.txt", {"path": "a.txt"}, 0),
        ("rm a.txt", {"path": "a.txt", "exists": False}, 1),
        ("true", {"path": "a.txt", "exists": False}, 0),
        ("ln -sf /etc/passwd a.txt", {"path": "a.txt"}, 0),
        ("true", {"path": "a.txt", "contains": ["one", "six"]}, 0.5),
        ("true", {"path": "a.txt", "regex": "^two$"}, 0),
        ("true", {"path": "a.txt", "regex": "(?m)^two$", "equals": " one\ntwo"}, 1),
        ("true", {"path": "a.txt", "json_path": {"n": 1}}, 0),
        ("true", {"path": "a.json", "json_path": {"n[0]": 1, "n[1]": 2, "m": 3}}, 2 / 3),
        ("true", {"path": "a.json", "schema_inline": {"required": ["n"]}}, 1),
        ("true", {"path": "a.json", "schema_inline": {"required": ["m"]}}, 0),
        ('echo \'{"n": 1, "n": [1]}\' > a.json', {"path": "a.json", "json_path": {"n[0]": 1}}, 0),
        ("true", {"path": "run.sh", **SAME}, 1),
        ("chmod 700 run.sh", {"path": "run.sh", **SAME}, 0),
        ("echo > run.sh", {"path": "run.sh", "unchanged": False}, 1),
    ],
)
def test_file(agent: Agent, command: str, settings: dict[str, Any], score: float) -> None:
    row = agent.row(command, {"type": "file", **settings}, files=FILES)
    assert row["score"] == pytest.approx(score)


GOLDEN = "--- a/a.txt\n+++ b/a.txt\n@@ -1,2 +1,2 @@\n-one\n+1\n two\n"


@pytest.mark.parametrize(
    ("command", "settings", "score"),
    [
        ("true", {}, 0),
        ("touch new", {}, 1),
        ("touch new .pytest_cache x.pyc; mkdir __pycache__; touch __pycache__/y", {"may_change": ["new"]}, 1),
        ("mkdir src; touch src/a src/b", {"may_change": ["src"], "max_files": 2}, 1),
        ("touch new", {"may_change": ["src"]}, 0),
        ("touch src", {"must_change": ["src", "*.txt"]}, 0.5),
        ("touch src", {"must_not_change": ["src", "*.txt"]}, 0.5),
        ("echo 3 >> a.txt", {"max_lines": 1}, 1),
        ("echo 3 > a.txt", {"max_lines": 2}, 0),
        ("printf '1  \\n\\ttwo' > a.txt", {"golden": "golden.patch"}, 1),
        ("printf '1 2' > a.txt; touch new", {"golden": "golden.patch"}, 0),
        ("true", {"golden": "golden.patch"}, 0),
    ],
)
def test_diff(agent: Agent, command: str, settings: dict[str, Any], score: float) -> None:
    agent.project.write({"evals/golden.patch": GOLDEN})
    assert agent.row(command, {"type": "diff", **settings}, files=FILES)["score"] == pytest.approx(score)


def test_change_that_keeps_size_and_time_is_seen(agent: Agent) -> None:
    row = agent.row("touch -r a.txt t; echo 1ne > x; tail -n 1 a.txt >> x; cp x a.txt; touch -r t a.txt", files=FILES)
    assert "a.txt" in row["workspace"]["changed"]


@pytest.mark.parametrize(
    ("settings", "score", "miss"),
    [
        ({"argv": ["sh", "run.sh"], "equals": "42"}, 1, None),
        ({"argv": ["sh", "run.sh"], "contains": ["4", "5"]}, 2 / 3, "does not print '5'; printed '42'"),
        ({"argv": ["sh", "run.sh"], "regex": "^4$"}, 0.5, "output does not match '^4$'; printed '42'"),
        ({"argv": ["true"], "equals": "42"}, 0.5, "does not print '42'; printed nothing"),
        ({"argv": ["sh", "-c", "echo why >&2; exit 3"]}, 0, "exit code 3: why"),
        ({"argv": ["false"], "exit_code": 1}, 1, None),
        ({"argv": ["sleep", "9"], "timeout_seconds": 0.2}, 0, "the command timed out after 0.2 s"),
        ({"argv": ["sh", "own.sh"], "files": {"own.sh": "cat own.sh run.sh | wc -l"}, "equals": "2"}, 1, None),
    ],
)
def test_command(agent: Agent, settings: dict[str, Any], score: float, miss: str | None) -> None:
    row = agent.row("true", {"type": "command", **settings}, files=FILES)
    assert row["score"] == pytest.approx(score)
    assert row["misses"] == ([miss] if miss else [])


@pytest.mark.parametrize("isolation", KINDS)
def test_program_that_does_not_exist_is_an_error(agent: Agent, isolation: str) -> None:
    grader = {"type": "command", "argv": ["no-such-program"]}
    row = agent.row("true", grader, isolation=isolation, limits={"processes": 100})
    assert (row["verdict"], row["error_kind"]) == ("error", "evaluator")
    assert "'no-such-program' is not on PATH" in row["error"]


@pytest.mark.parametrize(
    ("script", "settings", "score", "miss"),
    [
        (f'echo "{XML.format("failure")}" > $1; exit 1', {}, 0.5, "t::two"),
        (f'echo "{XML.format("system-out")}" > $1', {}, 1, None),
        (f'echo "{XML.format("skipped")}" > $1', {"fail_to_pass": ["two"], "pass_to_pass": ["t::one"]}, 0.5, "two"),
        (f'echo "{XML.format("system-out")}" > $1', {"fail_to_pass": ["gone"]}, 0, "gone did not run"),
        (f'echo "{XML.format("system-out")}" > $1; exit 1', {}, 2 / 3, "every test passes in the report, but"),
        ("exit 3", {}, 0, "the command wrote no report (exit code 3)"),
        ("ln -s /etc/passwd $1", {}, 0, "the command wrote no report (exit code 0)"),
        ("mkfifo $1", {}, 0, "the command wrote no report (exit code 0)"),
        ("echo '<a' > $1", {}, 0, "the report is not XML"),
        ("echo '<a/>' > $1", {}, 0, "the report has no tests"),
    ],
)
@pytest.mark.parametrize("report", ["{REPORT}", "junit.xml"])
def test_junit(
    agent: Agent, script: str, settings: dict[str, Any], score: float, miss: str | None, report: str
) -> None:
    grader = {"type": "junit", "argv": ["sh", "grade.sh", report], "files": {"grade.sh": script}, **settings}
    # The agent plants a report.
    row = agent.row(f'echo "{XML.format("system-out")}" > junit.xml', grader)
    assert row["score"] == pytest.approx(score)
    assert (row["misses"] == []) if miss is None else row["misses"][0].startswith(miss)


ROWS = [{"id": 1, "name": "Ada"}, {"id": 2, "name": "Bob"}]


@pytest.mark.parametrize(
    ("rows", "settings", "score"),
    [
        (ROWS, {}, 1),
        (ROWS[::-1], {}, 1),
        (ROWS[::-1], {"ordered": True}, 0),
        ([*ROWS, {"id": 3, "name": "Cy"}], {}, 2 / 3),
        (ROWS[:1], {}, 0.5),
        ([{**ROWS[0], "id": True}, ROWS[1]], {}, 0.5),
    ],
)
def test_state_of_a_document(agent: Agent, rows: list[Any], settings: dict[str, Any], score: float) -> None:
    state = {"type": "state", "document": "s.json", "path": "people", "rows": ROWS, **settings}
    row = agent.row(f"echo '{json.dumps({'people': rows})}' > s.json", state)
    assert row["score"] == pytest.approx(score)


TABLE = "CREATE TABLE people (id, name); INSERT INTO people VALUES (1, 'Ada'), (2, 'Bob');"
VIEW = f"{TABLE} ALTER TABLE people RENAME TO real; CREATE VIEW people AS SELECT 1 AS id, 'Ada' AS name"


@pytest.mark.parametrize(
    ("script", "query", "score", "miss"),
    [
        (TABLE, "SELECT * FROM people", 1, None),
        (TABLE, "SELECT id, name FROM people WHERE id < 2", 0.5, 'missing: {"id": 2, "name": "Bob"}'),
        (TABLE, "DELETE FROM people", 0, "s.db: not authorized"),
        (TABLE, "ATTACH 'other.db' AS other", 0, "s.db: not authorized"),
        (VIEW, "SELECT * FROM people", 0, "s.db: not authorized"),
        (TABLE, "SELECT * FROM absent", 0, "s.db: no such table: absent"),
        (None, "SELECT * FROM people", 0, "s.db: file is not a database"),
    ],
)
def test_state_of_a_database(agent: Agent, script: str | None, query: str, score: float, miss: str | None) -> None:
    database = agent.project.path("shop/s.db")
    if script is None:
        database.write_text("x" * 2000)
    else:
        sqlite3.connect(database).executescript(script).connection.close()
    state = {"type": "state", "database": "s.db", "query": query, "rows": ROWS}
    row = agent.row("true", state, **{"from": "../shop"})
    assert row["score"] == pytest.approx(score)
    assert [each[: len(miss or "")] for each in row["misses"]] == ([miss] if miss else [])


KILLED = """
import os, sqlite3
base = sqlite3.connect("s.db", isolation_level=None)
base.execute("PRAGMA journal_mode={mode}")
base.execute("PRAGMA cache_size=1")
for statement in {statements!r}:
    base.execute(statement)
os._exit(0)
"""
"""A program that is killed while it has a database open."""
ADDED = "UPDATE people SET name = 'Bob' WHERE id = 2"
SPILLED = ["BEGIN", ADDED, "CREATE TABLE big (x)", *["INSERT INTO big VALUES (zeroblob(4096))"] * 64]
"""A transaction that is in the database before it is committed."""


@pytest.mark.parametrize(
    ("mode", "statements", "score"),
    [
        ("wal", [ADDED], 1),
        ("wal", ["BEGIN", ADDED], 0.5),
        ("wal", SPILLED, 0.5),
        ("wal", [*SPILLED, "COMMIT"], 1),
        ("wal", [ADDED, "DELETE FROM people"], 0),
        ("wal", [ADDED, "PRAGMA wal_checkpoint(TRUNCATE)", "DELETE FROM people"], 0),
        ("delete", SPILLED, 0.5),
        ("persist", [ADDED], 1),
    ],
)
def test_state_is_what_is_committed(agent: Agent, mode: str, statements: list[str], score: float) -> None:
    script = TABLE.replace("'Bob'", "'Eve'")
    sqlite3.connect(agent.project.path("shop/s.db")).executescript(script).connection.close()
    agent.project.write({"agent.py": KILLED.format(mode=mode, statements=statements)})
    state = {"type": "state", "database": "s.db", "query": "SELECT * FROM people", "rows": ROWS}
    row = agent.row('python3 "$AGENTV_REPOSITORY/agent.py"', state, **{"from": "../shop"})
    assert row["score"] == pytest.approx(score), row["misses"]


@pytest.mark.parametrize("isolation", KINDS)
def test_grader_runs_where_the_agent_has_never_been(agent: Agent, isolation: str) -> None:
    planted = (
        "echo 'exit 0' > grade.sh; mkdir -p bin; echo planted > $HOME/x; echo planted > $TMPDIR/x; echo x > .profile"
    )
    grader = {"grade.sh": "ls -A . $HOME $TMPDIR; cat grade.sh a.txt | grep -c planted; pwd > where; test -e new"}
    row = agent.row(
        f"{planted}; echo new > new; pwd",
        {"type": "command", "argv": ["sh", "grade.sh"], "files": grader, "regex": "(?s)a.txt.*grade.sh.*new.*1"},
        {"type": "file", "path": "where", "exists": False},
        files=FILES,
        isolation=isolation,
    )
    assert row["verdict"] == "pass", row["misses"]


@pytest.mark.parametrize(
    ("path", "workspace", "reason"),
    [
        ("src/a.py", {}, None),
        ("src/a.py", {"submit": ["docs"]}, "not in submit"),
        ("conftest.py", {}, "guarded"),
        ("src/conftest.py", {"submit": ["src"]}, "guarded"),
        ("src/conftest.py", {"submit_guarded": ["**/conftest.py"]}, None),
        (".github/x", {}, "guarded"),
        ("src/.env", {}, "guarded"),
        ("Makefile", {}, "guarded"),
        ("GNUmakefile", {}, "guarded"),
        ("a/x.pth", {}, "guarded"),
        ("a/b.dist-info/entry_points.txt", {}, "guarded"),
        ("a/core.abi3.so", {}, "guarded"),
        ("unittest.py", {}, "named like a module of Python"),
        ("pytest/__main__.py", {}, "named like a module of Python"),
        ("json.txt", {}, None),
        ("json/data.txt", {}, None),
        ("sitecustomize/__init__.py", {}, "guarded"),
        ("a/usercustomize/x.txt", {}, "guarded"),
        ("node_modules/runner/index.js", {}, "guarded"),
        ("app/node_modules/a.js", {"submit_guarded": ["app/node_modules"]}, None),
        ("venv/bin/pytest", {}, "guarded"),
        ("tools/lib/python3.11/site-packages/pytest/main.py", {}, "guarded"),
        ("graders/json -> ../notes", {}, "named like a module of Python"),
        ("graders/json.py -> ../notes.py", {}, "named like a module of Python"),
        ("graders/notes -> ../pages", {}, None),
        ("sitecustomize -> notes", {}, "guarded"),
        ("node_modules -> notes", {}, "guarded"),
        ("a.dist-info -> notes", {}, "guarded"),
        ("graders/pygments -> ../notes", {"submit": ["graders"]}, "named like a module of Python"),
    ],
)
@pytest.mark.parametrize("kind", ["added", "modified"])
def test_submission(
    path: str, workspace: dict[str, Any], reason: str | None, kind: Literal["added", "modified"]
) -> None:
    path, _, link = path.partition(" -> ")
    if reason == "named like a module of Python" and not link and kind == "modified":
        reason = None  # it is the author's
    change = Change(path=path, kind=kind, link=link) if link else Change(path=path, kind=kind, base64="")
    chosen, withheld = submitted([change], PlanWorkspace(**workspace))
    assert [each.path for each in chosen] == ([] if reason else [path])
    assert withheld == ([f"{path} ({reason})"] if reason else [])


@pytest.mark.parametrize(
    ("path", "link", "stays"),
    [
        ("a", "b", True),
        ("a/b/c", "../../d", True),
        ("a", "/etc", False),
        ("a", "..", False),
        ("a/b", "../../d", False),
        ("a/b", "c/../../..", False),
        ("a", "b/..", False),
    ],
)
def test_submitted_links_stay_inside(path: str, link: str, *, stays: bool) -> None:
    chosen, _ = submitted([Change(path=path, kind="added", link=link)], PlanWorkspace(submit_guarded=("**",)))
    assert bool(chosen) is stays


def test_grader_files_are_not_written_through_links(agent: Agent) -> None:
    row = agent.row(
        "mkdir real; echo > real/x; ln -s real tests; ln -s real/x grade.sh",
        {
            "type": "command",
            "argv": ["sh", "grade.sh"],
            "files": {"grade.sh": "ls real", "tests/t.sh": ""},
            "equals": "x",
        },
    )
    assert row["verdict"] == "pass", row
