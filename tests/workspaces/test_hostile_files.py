"""What agents leave where the tool reads: links, pipes, devices, holes, and trees that look like repositories."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from agentv_ci.workspaces.bases import UnusableWorkspace, apply_patch
from tests.support import clean_environment, write
from tests.workspaces.builders import CONFINED, KINDS, Agent, isolated

OUTPUT = [
    ("ln -s {hidden} {{OUTPUT_FILE}}", "it is a link"),
    ("ln -s /proc/self/environ {{OUTPUT_FILE}}", "it is a link"),
    ("ln -s /dev/zero {{OUTPUT_FILE}}", "it is a link"),
    ("D=$(dirname {{OUTPUT_FILE}}); rm -rf $D; ln -s $(dirname {hidden}) $D", "Not a directory"),
    ("mkfifo {{OUTPUT_FILE}}", "it is not a regular file"),
    ("mkdir {{OUTPUT_FILE}}", "it is not a regular file"),
    ("truncate -s 1T {{OUTPUT_FILE}}", "it is larger than 10 MiB"),
    ("true {{OUTPUT_FILE}}", "did not write its output file"),
]


@pytest.mark.parametrize("isolation", [None, *KINDS])
@pytest.mark.parametrize(("script", "reason"), OUTPUT)
def test_output_file_is_only_a_file(script: str, reason: str, isolation: str | None, agent: Agent) -> None:
    agent.project.write({"hidden/output": "canary"})
    command = script.format(hidden=agent.project.path("hidden/output"))
    if isolation is not None:
        row = agent.row(command, isolation=isolation)
    else:
        target = {"name": "default", "provider": "cli", "command_template": command, "prompt": "none"}
        agent.project.documents("case", targets=(target,), max_retries=0)
        agent.project.eval()
        (row,) = agent.project.rows()
    assert reason in (row["error"] or ""), row
    assert "canary" not in str(row)


@pytest.mark.parametrize("isolation", KINDS)
def test_closed_output_file_is_read(isolation: str, agent: Agent) -> None:
    row = agent.row("echo Hello > {OUTPUT_FILE}; chmod 0 {OUTPUT_FILE}", isolation=isolation)
    assert (row["error"], row["candidate_answer"]) == (None, "Hello")


@pytest.mark.parametrize("script", ["truncate -s 8T holes", "for n in $(seq 60); do truncate -s 1M hole$n; done"])
def test_files_of_holes_are_not_read(script: str, agent: Agent) -> None:
    assert agent.row(script)["error"] == "the agent changed files of more than 50 MiB"


@pytest.mark.parametrize(
    "script", ["rm -r out; ln -s {0} out", "ln -s {0}/report.xml out/report.xml", "mkfifo out/report.xml"]
)
def test_report_of_a_grader_is_only_a_file(script: str, agent: Agent) -> None:
    agent.project.write({"elsewhere/report.xml": "<testsuite><testcase classname='a' name='b'/></testsuite>"})
    script = script.format(agent.project.path("elsewhere"))
    grader = {"type": "junit", "argv": ["sh", "-c", script], "report": "out/report.xml", "fail_to_pass": ["a::b"]}
    row = agent.row("true", grader)
    assert (row["verdict"], row["misses"]) == ("fail", ["the command wrote no report (exit code 0)"])


PATCH = """\
diff --git a/src/a.py b/src/a.py
--- a/src/a.py
+++ b/src/a.py
@@ -1 +1 @@
-x = 0
+x = 42
"""
LIKE_A_REPOSITORY = {
    "HEAD": "ref: refs/heads/main\n",
    "objects/k": "",
    "refs/heads/k": "",
    "info/attributes": "* filter=x\n",
    "src/a.py": "x = 0\n",
}


def config(mark: Path) -> str:
    """Return settings that execute a command whenever Git reads a file."""
    return f'[core]\n\trepositoryformatversion = 0\n\tbare = true\n[filter "x"]\n\tclean = "touch {mark}; cat"\n'


@pytest.mark.parametrize("at", ["", "src/"], ids=["tree", "folder in it"])
@pytest.mark.parametrize("origin", ["folder", "repository", pytest.param("setup", marks=isolated)])
def test_git_executes_nothing_of_a_tree(origin: str, at: str, agent: Agent, tmp_path: Path) -> None:
    mark = tmp_path / "executed"
    files = {**LIKE_A_REPOSITORY, "config": config(mark)}
    project = agent.project
    project.write({f"up/{at if name != 'src/a.py' else ''}{name}": text for name, text in files.items()})
    project.write({"golden.patch": PATCH})
    workspace: dict[str, Any] = {"from": "../up", "patch": "../golden.patch"}
    if origin == "repository":
        settings = ("-c", "user.name=a", "-c", "user.email=a@example.com")
        for words in (("init", "-q", "-b", "master"), ("add", "-f", "-A"), ("commit", "-q", "-m", "x")):
            command = ["git", *settings, *words]
            subprocess.run(command, cwd=project.path("up"), env=clean_environment({}), check=True)
        commit = (project.path("up") / ".git/refs/heads/master").read_text().strip()
        workspace = {"from": {"git": "../up", "ref": commit}, "patch": "../golden.patch"}
    if origin == "setup":
        listed = {path: {"file": f"../up/{path}"} for path in map(str, _files(project.path("up")))}
        # Only confined commands have made it look like a repository.
        moved = {f"later/{path}": named for path, named in listed.items() if path != "src/a.py"}
        setup = [["sh", "-c", "cp -r later/. .; rm -r later"]]
        workspace = {"from": "empty", "files": {**moved, "src/a.py": listed["src/a.py"]}, "setup": setup, **CONFINED}
    golden = {"type": "diff", "golden": "../golden.patch", "weight": 0}
    evaluators: list[dict[str, Any]] = [{"type": "contains", "value": "F"}, *([golden] if origin == "setup" else [])]
    row = agent.row("echo Fixed", *evaluators, **workspace)
    assert row["verdict"] == "pass", row["error"]
    assert not mark.exists()


def _files(folder: Path) -> list[Path]:
    return [each.relative_to(folder) for each in folder.rglob("*") if each.is_file()]


@pytest.mark.parametrize("address", ["fd::17/x://y", "ext::touch {0}://y", "ssh://-oProxyCommand=touch {0}/x"])
def test_git_takes_no_other_protocols(address: str, agent: Agent, tmp_path: Path) -> None:
    write(tmp_path, {"x": ""})
    mark = tmp_path / "executed"
    origin = {"git": address.format(mark), "ref": "0" * 40}
    agent.documents("true", **{"from": origin})
    done = agent.project.eval()
    assert done.code != 0
    assert not mark.exists()
    assert "not allowed" in str(agent.project.rows()[0]["error"]) or address.startswith("ssh")


@pytest.mark.parametrize(
    "name",
    [
        "../outside.txt",
        "{outside}",
        "a/../../outside.txt",
        '"../outside.txt"',
        '"\\056./outside.txt"',
        "..//outside.txt",
    ],
)
async def test_patch_copies_nothing_from_outside(name: str, tmp_path: Path) -> None:
    write(tmp_path, {"outside.txt": "canary", "tree/a/b": ""})
    copied = name.format(outside=tmp_path / "outside.txt")
    patch = f"diff --git a/x b/y\nsimilarity index 100%\ncopy from {copied}\ncopy to y\n"
    with pytest.raises(UnusableWorkspace, match="from outside of the workspace"):
        await apply_patch(patch.encode(), tmp_path / "tree", os.environ)
    assert not (tmp_path / "tree/y").exists()


async def test_patch_copies_within_the_tree(tmp_path: Path) -> None:
    write(tmp_path, {"tree/a/b..c": "canary"})
    patch = b"diff --git a/a/b..c b/y\nsimilarity index 100%\ncopy from a/b..c\ncopy to y\n"
    await apply_patch(patch, tmp_path / "tree", os.environ)
    assert (tmp_path / "tree/y").read_text() == "canary"
