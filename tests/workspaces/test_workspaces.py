"""What an agent finds in its workspace, and what becomes of what it leaves there."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from agentv_ci.contracts.plan_parts import PlanWorkspace
from agentv_ci.workspaces.leftovers import LOCK, PREFIX, sweep
from tests.support import has_ended, write
from tests.support.processes import commands
from tests.workspaces.builders import CHANGED, CONFINED, KINDS, Agent, isolated

SHOP: dict[str, Any] = {"from": "../shop"}


@pytest.mark.parametrize(
    ("workspace", "found"),
    [
        ({}, []),
        (SHOP, ["notes.md", "total.py"]),
        ({**SHOP, "include": ["*.py"]}, ["total.py"]),
        ({**SHOP, "exclude": ["notes.*"]}, ["total.py"]),
        ({"files": {"a/b.txt": "text", "c.md": {"file": "../shop/notes.md"}}}, ["a", "b.txt", "c.md"]),
        ({"setup": [["sh", "-c", "echo made > made.txt"]]}, ["made.txt"]),
    ],
)
def test_workspace_has_what_the_author_puts_there(agent: Agent, workspace: dict[str, Any], found: list[str]) -> None:
    names = agent.says("find . -mindepth 1 | sed 's|.*/||' | sort", **workspace).split()
    assert names == found


def test_patch_is_applied(agent: Agent) -> None:
    agent.project.write({"evals/fix.patch": "--- a/total.py\n+++ b/total.py\n@@ -1 +1 @@\n-total = 0\n+total = 1\n"})
    assert agent.says("cat total.py", **SHOP, patch="fix.patch") == "total = 1"


def git(folder: Path, *arguments: str) -> str:
    settings = ("-c", "user.name=a", "-c", "user.email=a@example.com", "-c", "init.defaultBranch=main")
    return subprocess.run(["git", *settings, *arguments], cwd=folder, check=True, capture_output=True, text=True).stdout


@pytest.mark.parametrize("ref", ["v1", "main~1", "the commit"])
def test_later_commits_are_not_there(agent: Agent, ref: str) -> None:
    shop = agent.project.path("shop")
    git(shop, "init", "-q")
    git(shop, "add", ".")
    git(shop, "commit", "-qm", "with the bug")
    git(shop, "tag", "v1")
    first = git(shop, "rev-parse", "HEAD").strip()
    write(shop, {"total.py": "total = 42\n"})
    git(shop, "commit", "-qam", "the solution")
    later = git(shop, "rev-parse", "HEAD").strip()
    workspace = {"from": {"git": "../shop", "ref": first if ref == "the commit" else ref}}
    if "~" in ref:
        agent.documents("true", **workspace)
        agent.project.refuses("eval", "evals", error="'main~1' is not a branch, a tag or the whole id of a commit")
        return
    said = agent.says(f"cat total.py; git log --all --oneline; git cat-file -t {later} || echo gone", **workspace)
    assert "total = 0" in said
    assert "the solution" not in said
    assert said.endswith("gone")


POINTER = "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 9\n"


@pytest.mark.parametrize(
    ("workspace", "said"),
    [
        (SHOP, None),
        ({**SHOP, "exclude": ["model.bin"]}, "cat: model.bin: No such file or directory"),
        ({**SHOP, "files": {"model.bin": "weights"}}, "weights"),
        ({"from": {"git": "../shop", "ref": "main"}}, None),
        ({"from": {"git": "../shop", "ref": "main"}, "files": {"model.bin": "weights"}}, "weights"),
    ],
)
def test_pointers_of_git_lfs_are_not_given_to_agents(agent: Agent, workspace: dict[str, Any], said: str | None) -> None:
    shop = agent.project.path("shop")
    write(shop, {"model.bin": POINTER})
    git(shop, "init", "-q")
    git(shop, "add", ".")
    git(shop, "commit", "-qm", "all")
    if said is not None:
        assert agent.says("cat model.bin", **workspace) == said
        return
    agent.documents("true", **workspace)
    done = agent.project.run("eval", "evals", "--out", "r.jsonl")
    assert done.code != 0
    rows = agent.project.text("r.jsonl") if agent.project.path("r.jsonl").exists() else ""
    assert "model.bin' " in done.err + rows
    assert "git lfs pull" in done.err + rows


@pytest.mark.parametrize("isolation", KINDS)
def test_environment_is_what_the_target_names(agent: Agent, isolation: str) -> None:
    said = agent.says(
        "env | cut -d= -f1 | sort | grep -v -e ^_ -e OLDPWD -e PWD -e SHLVL; ls -A $HOME $TMPDIR; echo $OWN",
        isolation=isolation,
        targets={"env": {"OWN": "mine"}},
    )
    names = ["AGENTV_REPOSITORY", "HOME", "LANG", "NO_COLOR", "OWN", "PATH", "TERM", "TMPDIR"]
    assert [line for line in said.splitlines() if line and not line.endswith(":")] == [*names, "mine"]


@isolated
@pytest.mark.parametrize(
    "hidden", ["$AGENTV_REPOSITORY/graders", "$AGENTV_REPOSITORY/.git", "/proc/{pid}", "/etc/shadow", "/home"]
)
def test_what_is_hidden_is_not_there(agent: Agent, hidden: str) -> None:
    path = hidden.format(pid=os.getpid())
    assert agent.says(f"ls -d {path}", **CONFINED).endswith("No such file or directory")


@isolated
def test_own_code_is_there_and_nothing_beside_it(agent: Agent) -> None:
    agent.project.write({"agents/own.sh": "ls $AGENTV_REPOSITORY $AGENTV_REPOSITORY/agents\n", "agents/other.sh": ""})
    said = agent.says(
        "sh $AGENTV_REPOSITORY/agents/own.sh; touch $AGENTV_REPOSITORY/agents/own.sh",
        targets={"sources": ["agents/own.sh"]},
        **CONFINED,
    )
    assert "other.sh" not in said
    assert "own.sh" in said
    assert "Read-only file system" in said


@isolated
def test_network_can_be_switched_off(agent: Agent) -> None:
    assert agent.says("cut -d: -f1 /proc/net/dev | tail -n +3 | tr -d ' '", **CONFINED) == "lo"


def test_row_says_what_has_changed(agent: Agent) -> None:
    row = agent.row("echo 'total = 42' > total.py; rm notes.md; echo x > .env; ln -s /etc/passwd out", **SHOP)
    assert [(each["path"], each["kind"]) for each in row["workspace"].pop("changes")] == [
        (".env", "added"),
        ("notes.md", "deleted"),
        ("out", "added"),
        ("total.py", "modified"),
    ]
    assert row["workspace"] == {
        "isolation": "none",
        "network": "on",
        "changed": [".env", "notes.md", "out", "total.py"],
        "withheld": [".env (guarded)", "out (a link that leaves the workspace)"],
        "diff": "--- /dev/null\n+++ b/.env\n@@ -0,0 +1 @@\n+x\n"
        "--- a/notes.md\n+++ /dev/null\n@@ -1 +0,0 @@\n-Notes\n"
        "--- out: added, a link to /etc/passwd\n"
        "--- a/total.py\n+++ b/total.py\n@@ -1 +1 @@\n-total = 0\n+total = 42\n",
        "kept": None,
    }


def test_long_diff_and_its_secrets_are_cut(agent: Agent) -> None:
    agent.project.env["DEPLOY_TOKEN"] = "s3cret-value-1"
    row = agent.row("echo s3cret-value-1 > a; seq 20000 > b; seq 9 > c; head -c 99 /dev/zero > d")
    diff = row["workspace"]["diff"]
    assert "s3cret" not in diff
    assert len(diff) < 21_000
    assert diff.endswith("… and 2 more files\n")


@pytest.mark.parametrize("isolation", KINDS)
def test_failed_trial_says_how_it_was_isolated(agent: Agent, isolation: str) -> None:
    row = agent.row("exit 3", isolation=isolation)
    assert (row["error_kind"], row["workspace"]["isolation"]) == ("process", isolation)


def test_workspace_that_cannot_be_made_is_an_error_of_the_trial(agent: Agent) -> None:
    row = agent.row("true", setup=[["sh", "-c", "echo no such package >&2; exit 3"]])
    assert row["error"].startswith("the workspace cannot be made: setup: sh -c")
    assert row["error"].endswith("exit code 3: no such package")


def test_folders_of_any_depth_are_removed(agent: Agent, folders: Path) -> None:
    deep = "import os; [(os.mkdir('f' * 200), os.chdir('f' * 200)) for _ in range(300)]"
    row = agent.row(f'python3 -c "{deep}"')
    assert row["error_kind"] == "process"
    assert list(folders.iterdir()) == []


def test_attempt_begins_afresh(agent: Agent) -> None:
    agent.documents("test -e seen && echo again; touch seen; exit 1")
    text = agent.project.text("evals/x.yaml").replace('"max_retries": 0', '"max_retries": 2')
    agent.project.write({"evals/x.yaml": text})
    agent.project.eval()
    (row,) = agent.project.rows()
    assert (row["attempts"], row["error"]) == (3, "(exit code 1)")


def test_cached_answer_has_its_changes(agent: Agent) -> None:
    agent.documents("date +%N > time", {"type": "file", "path": "time"})
    rows = []
    for _ in range(2):
        assert agent.project.eval("--cache").code == 0
        rows += agent.project.rows()
    assert [row["cached"] for row in rows] == [False, True]
    assert rows[0]["workspace"] == rows[1]["workspace"]


def test_dry_run_needs_no_workspace(agent: Agent) -> None:
    agent.documents("true", CHANGED, {"type": "contains", "value": "x"}, setup=[["false"]])
    text = agent.project.text("evals/x.yaml").replace('"expected_messages": []', '"expected_messages": "x"')
    agent.project.write({"evals/x.yaml": text})
    assert agent.project.eval("--dry-run").code == 0
    (row,) = agent.project.rows()
    assert row["evaluator_results"][0]["status"] == "skipped"
    assert "workspace" not in row


@pytest.mark.parametrize(
    ("link", "is_kept"), [("workspaces/case-default-1", True), ("workspaces", False), ("workspaces/.gitignore", False)]
)
def test_kept_workspace_follows_no_link(agent: Agent, tmp_path: Path, link: str, *, is_kept: bool) -> None:
    outside = tmp_path / "outside"
    (outside if "ignore" not in link else tmp_path).mkdir(mode=0o755, exist_ok=True)
    place = agent.project.path(f".agentv/{link}")
    place.parent.mkdir(parents=True)
    place.symlink_to(outside)
    agent.documents("echo hi > made")
    agent.project.eval("--keep-workspaces", "all")
    assert (agent.project.rows()[0]["workspace"]["kept"] is not None) is is_kept
    assert [*outside.iterdir()] == [] if outside.is_dir() else not outside.exists()
    assert not outside.is_dir() or outside.stat().st_mode & 0o777 == 0o755


@pytest.mark.parametrize(("keep", "kept"), [("none", []), ("failed", ["case-default-1"]), ("all", ["case-default-1"])])
def test_workspaces_are_kept_on_request(agent: Agent, folders: Path, keep: str, kept: list[str]) -> None:
    agent.documents("echo left > here", {"type": "file", "path": "missing"})
    agent.project.eval("--keep-workspaces", keep)
    folder = agent.project.path(".agentv/workspaces")
    assert sorted(path.name for path in folder.glob("[!.]*")) == kept
    (row,) = agent.project.rows()
    assert row["workspace"]["kept"] == (f".agentv/workspaces/{kept[0]}" if kept else None)
    assert list(folders.iterdir()) == []
    agent.documents("echo left > here", {"type": "file", "path": "here"})
    agent.project.eval("--keep-workspaces", keep)
    (row,) = agent.project.rows()
    assert (row["workspace"]["kept"] is not None) is (keep == "all")


def test_kept_workspace_has_nothing_that_a_reader_waits_for(agent: Agent) -> None:
    agent.documents("mkdir -p a/b; mkfifo a/b/pipe; ln -s /dev/zero link; echo left > here")
    agent.project.eval("--keep-workspaces", "all")
    kept = agent.project.path(agent.project.rows()[0]["workspace"]["kept"])
    assert [sorted(path.name for path in folder.iterdir()) for folder in (kept, kept / "a/b")] == [
        ["a", "here", "link"],
        [],
    ]


def test_folder_that_changes_after_it_was_compiled_is_refused(agent: Agent) -> None:
    agent.documents("true", **SHOP)
    assert agent.project.run("compile", "evals", "--out", "plan.json").code == 0
    agent.project.write({"shop/total.py": "total = 1\n"})
    agent.project.run("eval", "plan.json", "--out", "r.jsonl")
    (row,) = agent.project.rows()
    assert "the folder 'shop' changed after the plan was compiled" in row["error"]


def digest(agent: Agent, **workspace: Any) -> str:
    agent.documents("true", **workspace)
    assert agent.project.run("compile", "evals", "--out", "plan.json").code == 0
    found: str = agent.project.json("plan.json")["cases"][0]["digest"]
    return found


def test_digest_counts_contents_and_not_places(agent: Agent) -> None:
    before = digest(agent, **SHOP)
    agent.project.write({"elsewhere/total.py": "total = 0\n", "elsewhere/notes.md": "Notes\n"})
    assert digest(agent, **{"from": "../elsewhere"}) == before
    assert digest(agent, **SHOP, exclude=["*.md"]) != before
    assert digest(agent, **SHOP, isolation="namespaces") != before
    assert digest(agent, **SHOP, submit=["total.py"]) != before
    agent.project.write({"shop/total.py": "total = 1\n"})
    assert digest(agent, **SHOP) != before


def test_settings_of_a_target_count_like_those_of_a_case(agent: Agent) -> None:
    confined = {"isolation": "namespaces", "limits": {"processes": 9}}
    of_case, plain = digest(agent, **confined), digest(agent)
    assert digest(agent, targets={"workspace": confined}) == of_case
    assert digest(agent, targets={"workspace": {"limits": {"processes": 8}}}, **confined) == of_case
    assert digest(agent, targets={"workspace": confined}, isolation="none", limits={"processes": 9}) not in (
        of_case,
        plain,
    )


@pytest.mark.parametrize("isolation", KINDS)
def test_detached_process_does_not_outlive_its_trial(agent: Agent, isolation: str, tmp_path: Path) -> None:
    mark = f"detached-{tmp_path.name}-{isolation}"
    row = agent.row(
        f"setsid sh -c 'echo $$ > pid; while true; do sleep 0.05; done' {mark} >/dev/null 2>&1 & sleep 0.3",
        {"type": "file", "path": "pid"},
        isolation=isolation,
    )
    assert row["verdict"] == "pass"
    assert [command for command in commands().values() if mark in command] == []


@pytest.mark.parametrize(
    ("limits", "command", "says"),
    [
        ({"cpu_s": 1}, "while true; do :; done", "processor time|exit code|CPU"),
        ({"processes": 10}, "for i in $(seq 40); do sleep 5 & done; wait", "10 processes|fork"),
        ({"memory_mb": 50}, "python3 -c 'bytes(400_000_000)'", "50 MiB|MemoryError"),
        ({"disk_mb": 5}, "for i in 1 2 3 4; do head -c 4000000 /dev/zero > $i; sleep 0.3; done; sleep 9", "5 MiB"),
    ],
)
def test_limits_end_a_trial(agent: Agent, limits: dict[str, Any], command: str, says: str) -> None:
    began = time.monotonic()
    row = agent.row(f"{command}", limits=limits)
    assert row["error_kind"] == "process"
    assert any(each in row["error"] for each in says.split("|")), row["error"]
    assert time.monotonic() - began < 60


class TestSweep:
    def test_folders_of_dead_runs_are_removed(self, tmp_path: Path) -> None:
        write(tmp_path / f"{PREFIX}dead", {LOCK: "", "1/closed/file": ""})
        (tmp_path / f"{PREFIX}dead/1/closed").chmod(0)
        write(tmp_path / "other", {LOCK: ""})
        assert [path.name for path in sweep(tmp_path)] == [f"{PREFIX}dead"]
        assert [path.name for path in tmp_path.iterdir()] == ["other"]

    def test_links_are_not_followed(self, tmp_path: Path) -> None:
        write(tmp_path / "outside", {LOCK: "", "kept": ""})
        (tmp_path / f"{PREFIX}link").symlink_to(tmp_path / "outside")
        write(tmp_path / f"{PREFIX}dead", {LOCK: ""})
        (tmp_path / f"{PREFIX}dead" / "out").symlink_to(tmp_path / "outside")
        sweep(tmp_path)
        assert (tmp_path / "outside" / "kept").exists()

    @pytest.mark.slow
    @pytest.mark.parametrize("isolation", KINDS)
    def test_killed_run_leaves_nothing_after_the_next(self, agent: Agent, folders: Path, isolation: str) -> None:
        agent.documents("echo $$ > $HOME/pid; setsid sleep 314.15 & sleep 314.15", isolation=isolation)
        env = {**os.environ, **agent.project.env, "TMPDIR": str(folders)}
        command = [sys.executable, "-m", "agentv_ci", "eval", "evals", "--out", "r.jsonl"]
        with subprocess.Popen(command, cwd=agent.project.folder, env=env, stderr=subprocess.DEVNULL) as killed:
            deadline = time.monotonic() + 30
            while not [*folders.glob("*/*/home/pid")] and time.monotonic() < deadline:
                time.sleep(0.05)
            (run,) = folders.glob(f"{PREFIX}*")
            assert sweep(folders) == []
            killed.kill()
        assert run.exists()
        agent.row("true")
        assert list(folders.iterdir()) == []
        assert all(has_ended(pid) for pid, command in commands().items() if "sleep 314.15" in command)


def test_isolation_that_is_not_available_is_an_error_before_the_first_question(agent: Agent) -> None:
    agent.documents("touch $AGENTV_REPOSITORY/asked", isolation="container", image="debian:12")
    agent.project.env["PATH"] = "/nonexistent"
    agent.project.refuses("eval", "evals", error="isolation 'container' is not available here: docker is not installed")
    agent.documents("true", isolation="namespaces")
    agent.project.refuses("eval", "evals", error="bubblewrap: bwrap is not installed; unshare: ")


def test_explanation_of_isolation(agent: Agent) -> None:
    agent.project.env["PATH"] = "/nonexistent"
    done = agent.project.run("validate", "--explain-isolation")
    assert done.code == 0
    assert [line.split(":")[0] for line in done.out.splitlines() if not line.startswith(" ")] == [
        "none        available",
        "namespaces  not available",
        "container   not available",
    ]


def test_plan_refuses_paths_that_leave_the_workspace() -> None:
    for path in ("/a", "../a", "a/../b", "./a", "a//b"):
        with pytest.raises(ValueError, match="pattern"):
            PlanWorkspace.model_validate_json(json.dumps({"files": {path: {"path": "a", "sha256": "0" * 64}}}))
