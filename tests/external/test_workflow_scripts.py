"""Scripts in workflows, run as the runner runs them: those of the reusable workflow and those that people copy."""

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

from tests.support import REPOSITORY, CommandResult, clean_environment, run_process, write

SHARDED = REPOSITORY / ".github" / "workflows" / "agentv.yml"
EXAMPLES = REPOSITORY / "docs" / "examples" / "workflows"

EVALS = """\
$schema: agentv-eval-v2
evalcases:
  - &case
    id: one
    expected_outcome: Four
    input_messages: [{role: user, content: What is 2 + 2?}]
    expected_messages: [{role: assistant, content: '4'}]
    evaluators: [{name: four, type: contains, value: '4'}]
  - {<<: *case, id: two}
  - {<<: *case, id: three}
"""
TARGETS = "$schema: agentv-targets-v2.2\ntargets: [{name: default, provider: mock, response: '4'}]\n"


def script(workflow: Path, name: str) -> str:
    """The text of a step."""
    jobs = yaml.safe_load(workflow.read_text("utf-8"))["jobs"].values()
    (found,) = (step["run"] for job in jobs for step in job.get("steps", ()) if step.get("name") == name)
    return str(found)


def run(text: str, cwd: Path, env: Mapping[str, str]) -> CommandResult:
    """Run a script with `agentv-ci` and the doubles of `cwd/bin` on the path."""
    commands = cwd / "bin"
    write(cwd, {"bin/agentv-ci": f'#!/bin/sh\nexec "{sys.executable}" -m agentv_ci "$@"\n'})
    for command in commands.iterdir():
        command.chmod(0o755)
    places = os.pathsep.join([str(commands), os.environ.get("PATH", os.defpath)])
    done = subprocess.run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", text],
        cwd=cwd,
        env={
            **clean_environment(),
            "PATH": places,
            "RUNNER_TEMP": str(cwd),
            "GITHUB_OUTPUT": str(cwd / "outputs"),
            **env,
        },
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return CommandResult(done.returncode, done.stdout, done.stderr)


def outputs(cwd: Path) -> dict[str, str]:
    text = (cwd / "outputs").read_text("utf-8")
    return dict(line.split("=", 1) for line in text.splitlines())


class TestShards:
    @pytest.mark.parametrize(("given", "listed"), [("1", [1]), ("3", [1, 2, 3]), ("256", [*range(1, 257)])])
    def test_list_is_json(self, tmp_path: Path, given: str, listed: list[int]) -> None:
        assert run(script(SHARDED, "List the shards"), tmp_path, {"SHARDS": given}).code == 0
        assert json.loads(outputs(tmp_path)["shards"]) == listed

    @pytest.mark.parametrize("given", ["", "0", "-1", "1.5", "257", "1000", "01", "2]", "1\n2", "$(touch x)"])
    def test_anything_but_a_number_of_jobs_is_refused(self, tmp_path: Path, given: str) -> None:
        done = run(script(SHARDED, "List the shards"), tmp_path, {"SHARDS": given})
        assert done.code == 2
        assert done.out.startswith("::error title=shards::")
        assert not (tmp_path / "outputs").exists()


class TestVariables:
    TEXT = (
        "OPENAI_API_KEY=sk-1234567890\nexport QUOTED=\"se cret%value\"\nSHORT=on\n\n# a comment = 1\nB64='YWJjZGVmZw=='"
    )

    def test_file_is_what_was_given_and_nobody_else_reads_it(self, tmp_path: Path) -> None:
        assert run(script(SHARDED, "Write the variables for targets"), tmp_path, {"VARIABLES": self.TEXT}).code == 0
        written = tmp_path / "agentv.env"
        assert written.read_text("utf-8") == f"{self.TEXT}\n"
        assert stat.S_IMODE(written.stat().st_mode) == 0o600

    def test_every_value_is_masked(self, tmp_path: Path) -> None:
        done = run(script(SHARDED, "Write the variables for targets"), tmp_path, {"VARIABLES": self.TEXT})
        masks = [line.removeprefix("::add-mask::") for line in done.out.splitlines()]
        assert {"sk-1234567890", "se cret%25value", "YWJjZGVmZw=="} <= {*masks}
        assert "on" not in masks

    def test_none_given_is_an_empty_file(self, tmp_path: Path) -> None:
        done = run(script(SHARDED, "Write the variables for targets"), tmp_path, {"VARIABLES": ""})
        assert (done.code, done.out) == (0, "")
        assert (tmp_path / "agentv.env").read_text("utf-8") == "\n"


class TestMerge:
    @pytest.fixture
    def parts(self, repository: Path) -> Path:
        """A repository in which two of two parts have run."""
        write(repository, {"evals/x.test.yaml": EVALS, "evals/targets.yaml": TARGETS})
        for part in (1, 2):
            out = f"agentv-parts/part-{part}/results.jsonl"
            assert run_process("eval", "evals/", "--shard", f"{part}/2", "--out", out, cwd=repository).code == 0
            write(repository, {f"agentv-parts/part-{part}/plan.json": "{}"})
        return repository

    def merge(self, parts: Path, **env: str) -> tuple[str, CommandResult]:
        """Run both steps, and return what the second one said."""
        done = run(script(SHARDED, "Merge the parts"), parts, {"SHARDS": "2", "BASELINE": "", **env})
        assert done.code == 0, done.err
        folder = outputs(parts)["folder"]
        (parts / "outputs").unlink()
        github = {
            "GITHUB_ACTIONS": "true",
            "GITHUB_EVENT_NAME": "push",
            "GITHUB_REPOSITORY": "o/r",
            "GITHUB_SHA": "a" * 40,
            "GITHUB_RUN_ID": "1",
            "GITHUB_WORKFLOW": "w",
            "GITHUB_JOB": "merge",
            "AGENTV_RESULTS_DIR": folder,
        }
        return folder, run(script(SHARDED, "Publish"), parts, github)

    def test_parts_are_one_run_and_a_missing_one_is_red(self, parts: Path) -> None:
        folder, said = self.merge(parts)
        assert (folder, said.code) == (str(parts / "agentv-results"), 0)
        assert {path.name for path in (parts / folder).iterdir()} >= {"results.jsonl", "junit.xml", "report.html"}
        written = (parts / "outputs").read_text("utf-8")
        assert "\npass\n" in written
        assert "\n3\n" in written
        (parts / "outputs").unlink()
        (parts / "agentv-parts/part-2/results.jsonl").unlink()
        folder, said = self.merge(parts)
        assert (folder, said.code) == (str(parts / "agentv-results"), 1)
        assert "shard 2/2 missing" in said.out

    def test_what_cannot_be_compared_with_is_red_at_once(self, parts: Path) -> None:
        done = run(script(SHARDED, "Merge the parts"), parts, {"SHARDS": "2", "BASELINE": "nope.json"})
        assert done.code == 2
        assert "cannot read" in done.err
        assert not (parts / "outputs").exists()

    def test_nothing_at_all_is_red(self, repository: Path) -> None:
        _, said = self.merge(repository)
        assert said.code == 70
        assert "no results in" in said.out

    def test_documents_that_are_wrong_are_told_once(self, repository: Path) -> None:
        write(repository, {"evals/x.test.yaml": EVALS.replace("id: two", "idd: two"), "evals/targets.yaml": TARGETS})
        for part in (1, 2):
            folder = f"agentv-parts/part-{part}"
            done = run_process("github", "run", "--shard", f"{part}/2", "--results-dir", folder, cwd=repository)
            assert done.code == 2
        folder, said = self.merge(repository)
        assert (folder, said.code) == (f"{repository}/agentv-parts/part-1", 2)
        assert said.out.count("'idd'") == 1


class TestForkComment:
    """Whoever opens a pull request decides what the artifact holds."""

    STEP = "Take the results out of the artifact"

    def take(self, folder: Path, artifact: Path | None) -> CommandResult:
        if shutil.which("unzip") is None:
            pytest.skip("unzip is missing; install it: apt-get install unzip")
        # The double answers as `gh` does with that --jq: an id, or nothing.
        answer = "7" if artifact is not None else ""
        gh = f'#!/bin/sh\ncase $2 in\n*/zip) cat "{artifact}" ;;\n*) echo "{answer}" ;;\nesac\n'
        write(folder, {"bin/gh": gh})
        return run(script(EXAMPLES / "fork-comment.yml", self.STEP), folder, {"ARTIFACTS": "repos/o/r/x"})

    def test_known_files_are_taken_and_nothing_else(self, tmp_path: Path) -> None:
        artifact = tmp_path / "artifact.zip"
        with zipfile.ZipFile(artifact, "w") as archive:
            for name in ("run.json", "results.jsonl", "../escaped.json", "/tmp/absolute", "comment.md", "evil.sh"):
                archive.writestr(name, f"this is {name}")
        assert self.take(tmp_path, artifact).code == 0
        taken = tmp_path / "agentv-results"
        assert {path.name: path.read_text("utf-8") for path in taken.iterdir()} == {
            "run.json": "this is run.json",
            "results.jsonl": "this is results.jsonl",
        }
        assert outputs(tmp_path) == {"folder": str(taken)}

    def test_link_is_never_made(self, tmp_path: Path) -> None:
        secret = tmp_path / "secret"
        secret.write_text("token", "utf-8")
        artifact = tmp_path / "artifact.zip"
        with zipfile.ZipFile(artifact, "w") as archive:
            link = zipfile.ZipInfo("results.jsonl")
            link.create_system = 3
            link.external_attr = (stat.S_IFLNK | 0o777) << 16
            archive.writestr(link, str(secret))
        assert self.take(tmp_path, artifact).code == 0
        taken = tmp_path / "agentv-results" / "results.jsonl"
        assert not taken.is_symlink()
        assert taken.read_text("utf-8") == str(secret)

    def test_what_unpacks_to_very_much_is_cut(self, tmp_path: Path) -> None:
        artifact = tmp_path / "artifact.zip"
        with zipfile.ZipFile(artifact, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("results.jsonl", b"\n" * 60_000_000)
        assert artifact.stat().st_size < 1_000_000
        assert self.take(tmp_path, artifact).code == 0
        assert (tmp_path / "agentv-results" / "results.jsonl").stat().st_size == 50_000_000

    def test_no_zip_at_all_leaves_nothing(self, tmp_path: Path) -> None:
        artifact = tmp_path / "artifact.zip"
        artifact.write_text("not a zip", "utf-8")
        assert self.take(tmp_path, artifact).code == 0
        assert [*(tmp_path / "agentv-results").iterdir()] == []

    def test_no_artifact_is_a_notice(self, tmp_path: Path) -> None:
        done = self.take(tmp_path, None)
        assert done.code == 0
        assert done.out.startswith("::notice::")
        assert not (tmp_path / "outputs").exists()


class TestNightly:
    STEP = "Open the pull request, or bring it up to date"

    @pytest.fixture
    def checkout(self, tmp_path: Path) -> Path:
        """A clone whose baseline is about to be replaced."""
        git("init", "--quiet", "--bare", "--initial-branch=main", "server", cwd=tmp_path)
        git("clone", "--quiet", "server", "clone", cwd=tmp_path)
        clone = tmp_path / "clone"
        write(clone, {".agentv/baseline.json": "old"})
        git("add", ".agentv", cwd=clone)
        git("-c", "user.name=x", "-c", "user.email=x@y", "commit", "--quiet", "--message=first", cwd=clone)
        git("push", "--quiet", "origin", "HEAD:main", cwd=clone)
        return clone

    def propose(self, checkout: Path, *, is_open: bool = False) -> tuple[CommandResult, list[str]]:
        answer = "echo 7" if is_open else "true"
        gh = f'#!/bin/sh\necho "$1 $2" >> "$RUNNER_TEMP/asked"\ncase $2 in list) {answer} ;; esac\n'
        write(checkout.parent, {"bin/gh": gh})
        text = f'cd "{checkout}"\n{script(EXAMPLES / "nightly.yml", self.STEP)}'
        done = run(text, checkout.parent, {"BASE": "main", "BRANCH": "agentv-ci/baseline", "GITHUB_RUN_ID": "1"})
        asked = checkout.parent / "asked"
        return done, asked.read_text("utf-8").splitlines() if asked.exists() else []

    def test_new_baseline_is_pushed_and_proposed(self, checkout: Path) -> None:
        write(checkout, {".agentv/baseline.json": "new", "agentv-results/x": "not this"})
        done, asked = self.propose(checkout)
        assert (done.code, asked) == (0, ["auth setup-git", "pr list", "pr create"]), done.err
        changed = git("diff", "--name-only", "main", "agentv-ci/baseline", cwd=checkout.parent / "server")
        assert changed == ".agentv/baseline.json\n"

    def test_open_proposal_is_brought_up_to_date(self, checkout: Path) -> None:
        write(checkout, {".agentv/baseline.json": "new"})
        self.propose(checkout)
        # The next night begins with a clone of its own.
        git("switch", "--quiet", "--detach", "origin/main", cwd=checkout)
        git("branch", "--quiet", "-D", "agentv-ci/baseline", cwd=checkout)
        (checkout.parent / "asked").unlink()
        write(checkout, {".agentv/baseline.json": "newer"})
        done, asked = self.propose(checkout, is_open=True)
        assert (done.code, asked) == (0, ["auth setup-git", "pr list"]), done.err
        pushed = git("show", "agentv-ci/baseline:.agentv/baseline.json", cwd=checkout.parent / "server")
        assert pushed == "newer"

    def test_same_baseline_is_no_proposal(self, checkout: Path) -> None:
        done, asked = self.propose(checkout)
        assert (done.code, asked) == (0, [])
        assert done.out == "The baseline is what it was.\n"


class TestMajorTag:
    """`gh` answers with the tags that there are, and writes down what it is asked to change."""

    def move(self, folder: Path, tag: str, tags: str, *, has_major: bool) -> str:
        gh = (
            '#!/bin/sh\ncase "$*" in\n'
            f"*matching-refs*) printf '{tags}' ;;\n"
            f"*/ref/tags/*) exit {0 if has_major else 1} ;;\n"
            '*) echo "$*" >> "$RUNNER_TEMP/changed" ;;\nesac\n'
        )
        write(folder, {"bin/gh": gh})
        env = {
            "GITHUB_REF_NAME": tag,
            "GITHUB_REF": f"refs/tags/{tag}",
            "GITHUB_REPOSITORY": "o/r",
            "GITHUB_SHA": "abc",
        }
        workflow = REPOSITORY / ".github" / "workflows" / "release.yml"
        done = run(script(workflow, "Move it"), folder, env)
        assert done.code == 0, done.err
        changed = folder / "changed"
        return changed.read_text("utf-8") if changed.exists() else done.out

    def test_it_moves_to_a_release(self, tmp_path: Path) -> None:
        tags = "refs/tags/v1.9.0\\nrefs/tags/v1.10.0\\n"
        changed = self.move(tmp_path, "v1.10.0", tags, has_major=True)
        assert changed == "api --method PATCH repos/o/r/git/refs/tags/v1 -f sha=abc -F force=true --silent\n"

    def test_first_release_makes_it(self, tmp_path: Path) -> None:
        changed = self.move(tmp_path, "v1.0.0", "refs/tags/v1.0.0\\n", has_major=False)
        assert changed == "api --method POST repos/o/r/git/refs -f ref=refs/tags/v1 -f sha=abc --silent\n"

    def test_it_never_moves_back(self, tmp_path: Path) -> None:
        tags = "refs/tags/v1.9.1\\nrefs/tags/v1.10.0\\n"
        said = self.move(tmp_path, "v1.9.1", tags, has_major=True)
        assert said == "::notice::v1 stays where it is: there is a newer v1.10.0\n"


def git(*words: str, cwd: Path) -> str:
    done = subprocess.run(["git", *words], cwd=cwd, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout
