"""Scripts in workflows, run as the runner runs them: those of the reusable workflow and of the examples."""

from __future__ import annotations

import json
import os
import shutil
import stat
import subprocess
import sys
import zipfile
from collections.abc import Mapping
from pathlib import Path

import pytest
import yaml

from tests.support import REPOSITORY, CommandResult, clean_environment, run_command, write
from tests.support.evals import documents, mock

SHARDED = REPOSITORY / ".github" / "workflows" / "agentv.yml"
RELEASE = REPOSITORY / ".github" / "workflows" / "release.yml"
EXAMPLES = REPOSITORY / "docs" / "examples" / "workflows"


def script(workflow: Path, name: str) -> str:
    jobs = yaml.safe_load(workflow.read_text("utf-8"))["jobs"].values()
    (found,) = (step["run"] for job in jobs for step in job.get("steps", ()) if step.get("name") == name)
    return str(found)


def run(text: str, cwd: Path, env: Mapping[str, str]) -> CommandResult:
    """Run a script with `agentv-ci` and the doubles of `cwd/bin` on the path."""
    write(cwd, {"bin/agentv-ci": f'#!/bin/sh\nexec "{sys.executable}" -m agentv_ci "$@"\n'})
    for command in (cwd / "bin").iterdir():
        command.chmod(0o755)
    path = os.pathsep.join([str(cwd / "bin"), os.environ.get("PATH", os.defpath)])
    runner = {"PATH": path, "RUNNER_TEMP": str(cwd), "GITHUB_OUTPUT": str(cwd / "outputs")}
    done = subprocess.run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", text],
        cwd=cwd,
        env=clean_environment({**runner, **env}),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return CommandResult(done.returncode, done.stdout, done.stderr)


def outputs(cwd: Path) -> dict[str, str]:
    return dict(line.split("=", 1) for line in (cwd / "outputs").read_text("utf-8").splitlines())


@pytest.mark.parametrize("given", ["1", "3", "256"])
def test_number_of_shards(tmp_path: Path, given: str) -> None:
    assert run(script(SHARDED, "Check the number of shards"), tmp_path, {"SHARDS": given}).code == 0


@pytest.mark.parametrize("given", ["", "0", "-1", "1.5", "257", "1000", "01", "2]", "1\n2", "$(touch x)"])
def test_invalid_number_of_shards(tmp_path: Path, given: str) -> None:
    done = run(script(SHARDED, "Check the number of shards"), tmp_path, {"SHARDS": given})
    assert (done.code, done.out) == (2, "::error title=shards::must be a whole number from 1 to 256\n")
    assert not (tmp_path / "outputs").exists()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("given", "listed"),
    [
        ({}, [1, 2, 3, 4]),
        ({"SHARDS": "1", "EVALS": "gone"}, [1]),
        ({"SHARDS": "2"}, [1, 2]),
        ({"EVALS": "\n  my evals/a.yaml  \n\nmy evals/b.yaml\n"}, [1, 2, 3, 4]),
        ({"EVALS": "my evals/a.yaml"}, [1, 2]),
        ({"TARGETS": "more targets/targets.yaml", "TARGET": "b"}, [1, 2, 3, 4]),
        ({"TARGETS": "more targets/targets.yaml", "TARGET": " b \n\nc\n"}, [*range(1, 9)]),
        ({"TARGET_MINUTES": "10", "TARGETS": "more targets/targets.yaml", "TARGET": "c"}, [1]),
        ({"TARGET_MINUTES": "2", "REPEAT": "2", "TARGETS": "more targets/targets.yaml", "TARGET": "c"}, [1, 2, 3, 4]),
        ({"TARGET_MINUTES": "2", "WORKERS": "2", "TARGETS": "more targets/targets.yaml", "TARGET": "c"}, [1]),
        ({"BALANCE": "gone.jsonl"}, [1]),
        ({"EVALS": "gone"}, [1]),
        ({"WORKING_DIRECTORY": "gone"}, [1]),
    ],
)
def test_list_of_shards(given: Mapping[str, str], listed: list[int], repository: Path) -> None:
    project = repository / "project"
    documents(project, ["one", "two"], mock())
    text = (project / "evals" / "a.yaml").read_text("utf-8")
    others = [mock(), mock(name="b"), mock(name="c", delay_ms=60_000)]
    more = json.dumps({"$schema": "agentv-targets-v2.2", "targets": others})
    write(project, {"my evals/a.yaml": text, "my evals/b.yaml": text, "more targets/targets.yaml": more})
    inputs = {"WORKING_DIRECTORY": "project", "EVALS": "my evals/", "SHARDS": "20"}
    unset = dict.fromkeys(("TARGETS", "TARGET", "WORKERS", "REPEAT", "TARGET_MINUTES", "BALANCE"), "")
    done = run(script(SHARDED, "List the shards"), repository, {**unset, **inputs, **given})
    assert done.code == 0
    found = outputs(repository)
    assert (json.loads(found["shards"]), found["total"]) == (listed, str(len(listed))), done.err


VARIABLES = "OPENAI_API_KEY=sk-1234567890\nexport QUOTED=\"se cret%value\"\nSHORT=on\n\n# a = 1\nB64='YWJjZGVmZw=='"


@pytest.mark.parametrize(
    ("text", "masked"), [(VARIABLES, ["sk-1234567890", "se cret%25value", "YWJjZGVmZw=="]), ("", [])]
)
def test_variables_are_masked_and_private(tmp_path: Path, text: str, masked: list[str]) -> None:
    done = run(script(SHARDED, "Write the variables for targets"), tmp_path, {"VARIABLES": text})
    assert (done.code, done.out.splitlines()) == (0, [f"::add-mask::{each}" for each in masked])
    written = tmp_path / "agentv.env"
    assert written.read_text("utf-8") == f"{text}\n"
    assert stat.S_IMODE(written.stat().st_mode) == 0o600


@pytest.mark.slow
class TestMerge:
    """The whole workflow is in tests/action/test_sharded_workflow.py."""

    @pytest.fixture
    def parts(self, repository: Path) -> Path:
        """A repository in which the first of two parts has run."""
        documents(repository, ["one", "two", "three"], mock())
        out = "agentv-parts/part-1/results.jsonl"
        assert run_command("eval", "evals", "--shard", "1/2", "--out", out, cwd=repository).code == 0
        write(repository, {"agentv-parts/part-1/plan.json": "{}"})
        return repository

    def merge(self, parts: Path) -> tuple[str, CommandResult]:
        """Run the merging and the publishing step; returns the folder, and the result of the second."""
        done = run(script(SHARDED, "Merge the parts"), parts, {"SHARDS": "2", "BASELINE": ""})
        assert done.code == 0, done.err
        folder = outputs(parts)["folder"]
        (parts / "outputs").unlink()
        github = {"GITHUB_ACTIONS": "true", "GITHUB_EVENT_NAME": "push", "GITHUB_REPOSITORY": "o/r"}
        github |= {"GITHUB_SHA": "a" * 40, "GITHUB_RUN_ID": "1", "GITHUB_WORKFLOW": "w", "GITHUB_JOB": "merge"}
        return folder, run(script(SHARDED, "Publish"), parts, {**github, "AGENTV_RESULTS_DIR": folder})

    def test_missing_part_fails(self, parts: Path) -> None:
        folder, published = self.merge(parts)
        assert (folder, published.code) == (str(parts / "agentv-results"), 1)
        assert "shard 2/2 missing" in published.out
        names = {path.name for path in Path(folder).iterdir()}
        assert names >= {"results.jsonl", "junit.xml", "report.html", "plan.json"}

    def test_unreadable_baseline_fails(self, parts: Path) -> None:
        done = run(script(SHARDED, "Merge the parts"), parts, {"SHARDS": "2", "BASELINE": "nope.json"})
        assert (done.code, "nope.json" in done.err, (parts / "outputs").exists()) == (2, True, False)

    def test_no_parts_fail(self, repository: Path) -> None:
        _, published = self.merge(repository)
        assert published.code == 70
        assert "no results in" in published.out

    def test_invalid_documents_are_reported_once(self, repository: Path) -> None:
        documents(repository, [{"idd": "two"}], mock())
        for part in (1, 2):
            flags = ("--shard", f"{part}/2", "--results-dir", f"agentv-parts/part-{part}")
            assert run_command("github", "run", *flags, cwd=repository).code == 2
        folder, published = self.merge(repository)
        assert (folder, published.code) == (f"{repository}/agentv-parts/part-1", 2)
        assert published.out.count("'idd'") == 1


class TestForkComment:
    """The author of a pull request controls the contents of the artifact."""

    def take(self, folder: Path, artifact: Path | None) -> CommandResult:
        if shutil.which("unzip") is None:
            pytest.skip("unzip is missing: apt-get install unzip")
        # `gh` answers that --jq with an id, or with nothing.
        answer = "7" if artifact is not None else ""
        gh = f'#!/bin/sh\ncase $2 in\n*/zip) cat "{artifact}" ;;\n*) echo "{answer}" ;;\nesac\n'
        write(folder, {"bin/gh": gh})
        text = script(EXAMPLES / "fork-comment.yml", "Take the results out of the artifact")
        return run(text, folder, {"ARTIFACTS": "repos/o/r/x"})

    def taken(self, folder: Path, *entries: tuple[str | zipfile.ZipInfo, str | bytes]) -> Path:
        artifact = folder / "artifact.zip"
        with zipfile.ZipFile(artifact, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, text in entries:
                archive.writestr(name, text)
        assert self.take(folder, artifact).code == 0
        return folder / "agentv-results"

    def test_only_known_files_are_taken(self, tmp_path: Path) -> None:
        names = ("run.json", "results.jsonl", "../escaped.json", "/tmp/absolute", "comment.md", "evil.sh")
        taken = self.taken(tmp_path, *((name, f"this is {name}") for name in names))
        found = {path.name: path.read_text("utf-8") for path in taken.iterdir()}
        assert found == {name: f"this is {name}" for name in names[:2]}
        assert outputs(tmp_path) == {"folder": str(taken)}

    def test_links_are_not_made(self, tmp_path: Path) -> None:
        link = zipfile.ZipInfo("results.jsonl")
        link.create_system = 3
        link.external_attr = (stat.S_IFLNK | 0o777) << 16
        taken = self.taken(tmp_path, (link, "/etc/passwd")) / "results.jsonl"
        assert (taken.is_symlink(), taken.read_text("utf-8")) == (False, "/etc/passwd")

    def test_large_files_are_cut(self, tmp_path: Path) -> None:
        taken = self.taken(tmp_path, ("results.jsonl", b"\n" * 50_000_001))
        assert (taken / "results.jsonl").stat().st_size == 50_000_000

    def test_file_that_is_not_a_zip(self, tmp_path: Path) -> None:
        write(tmp_path, {"artifact.zip": "not a zip"})
        assert self.take(tmp_path, tmp_path / "artifact.zip").code == 0
        assert [*(tmp_path / "agentv-results").iterdir()] == []

    def test_missing_artifact_is_a_notice(self, tmp_path: Path) -> None:
        done = self.take(tmp_path, None)
        assert (done.code, done.out.startswith("::notice::")) == (0, True)
        assert not (tmp_path / "outputs").exists()


class TestNightly:
    @pytest.fixture
    def checkout(self, tmp_path: Path) -> Path:
        """A clone with an old baseline."""
        git("init", "--quiet", "--bare", "--initial-branch=main", "server", cwd=tmp_path)
        git("clone", "--quiet", "server", "clone", cwd=tmp_path)
        clone = tmp_path / "clone"
        write(clone, {".agentv/baseline.json": "old"})
        git("add", ".agentv", cwd=clone)
        git("-c", "user.name=x", "-c", "user.email=x@y", "commit", "--quiet", "--message=first", cwd=clone)
        git("push", "--quiet", "origin", "HEAD:main", cwd=clone)
        return clone

    def propose(self, checkout: Path, *, is_open: bool = False) -> tuple[CommandResult, list[str]]:
        """Run the step; returns its result, and what `gh` was asked."""
        answer = "echo 7" if is_open else "true"
        gh = f'#!/bin/sh\necho "$1 $2" >> "$RUNNER_TEMP/asked"\ncase $2 in list) {answer} ;; esac\n'
        write(checkout.parent, {"bin/gh": gh, "asked": ""})
        text = script(EXAMPLES / "nightly.yml", "Open the pull request, or bring it up to date")
        env = {"BASE": "main", "BRANCH": "agentv-ci/baseline", "GITHUB_RUN_ID": "1"}
        done = run(f'cd "{checkout}"\n{text}', checkout.parent, env)
        return done, (checkout.parent / "asked").read_text("utf-8").splitlines()

    def test_new_baseline_is_proposed(self, checkout: Path) -> None:
        write(checkout, {".agentv/baseline.json": "new", "agentv-results/x": "not this"})
        done, asked = self.propose(checkout)
        assert (done.code, asked) == (0, ["auth setup-git", "pr list", "pr create"]), done.err
        changed = git("diff", "--name-only", "main", "agentv-ci/baseline", cwd=checkout.parent / "server")
        assert changed == ".agentv/baseline.json\n"

    def test_open_proposal_is_updated(self, checkout: Path) -> None:
        write(checkout, {".agentv/baseline.json": "new"})
        self.propose(checkout)
        # The next night has a fresh clone.
        git("switch", "--quiet", "--detach", "origin/main", cwd=checkout)
        git("branch", "--quiet", "-D", "agentv-ci/baseline", cwd=checkout)
        write(checkout, {".agentv/baseline.json": "newer"})
        done, asked = self.propose(checkout, is_open=True)
        assert (done.code, asked) == (0, ["auth setup-git", "pr list"]), done.err
        pushed = git("show", "agentv-ci/baseline:.agentv/baseline.json", cwd=checkout.parent / "server")
        assert pushed == "newer"

    def test_same_baseline_is_not_proposed(self, checkout: Path) -> None:
        done, asked = self.propose(checkout)
        assert (done.code, asked) == (0, [])
        assert done.out == "The baseline is what it was.\n"


@pytest.mark.parametrize(
    ("tag", "tags", "has_major", "changed"),
    [
        ("v1.10.0", ["v1.9.0", "v1.10.0"], True, "PATCH repos/o/r/git/refs/tags/v1 -f sha=abc -F force=true"),
        ("v1.0.0", ["v1.0.0"], False, "POST repos/o/r/git/refs -f ref=refs/tags/v1 -f sha=abc"),
        ("v1.9.1", ["v1.9.1", "v1.10.0"], True, ""),
    ],
    ids=["newer", "first", "older"],
)
def test_major_tag_moves_forward(tmp_path: Path, tag: str, tags: list[str], has_major: bool, changed: str) -> None:
    listed = "".join(f"refs/tags/{each}\\n" for each in tags)
    gh = (
        '#!/bin/sh\ncase "$*" in\n'
        f"*matching-refs*) printf '{listed}' ;;\n"
        f"*/ref/tags/*) exit {0 if has_major else 1} ;;\n"
        '*) echo "$*" >> "$RUNNER_TEMP/changed" ;;\nesac\n'
    )
    write(tmp_path, {"bin/gh": gh, "changed": ""})
    env = {"GITHUB_REF_NAME": tag, "GITHUB_REF": f"refs/tags/{tag}", "GITHUB_REPOSITORY": "o/r", "GITHUB_SHA": "abc"}
    done = run(script(RELEASE, "Move it"), tmp_path, env)
    assert done.code == 0, done.err
    assert (tmp_path / "changed").read_text("utf-8") == (f"api --method {changed} --silent\n" if changed else "")
    assert (done.out == "::notice::v1 is not moved: v1.10.0 is newer\n") == (not changed)


def git(*words: str, cwd: Path) -> str:
    done = subprocess.run(["git", *words], cwd=cwd, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout
