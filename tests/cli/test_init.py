"""`agentv-ci init`: what a newcomer begins with is valid, runs, and costs nobody a file."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import shutil
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agentv_ci.app import init as starting
from agentv_ci.app.init import plan_start, write_start
from agentv_ci.app.validate import check_paths
from agentv_ci.cli import run
from agentv_ci.contracts.targets import Target
from agentv_ci.errors import Interrupted, UsageError
from agentv_ci.scaffold.drafts import AGENT_COMMAND, STARTERS, Choices
from tests.guards.test_families import kinds
from tests.servers.model_api import model_api, says
from tests.support import REPOSITORY, clean_environment, run_process, write

WRITTEN = {
    ".agentv/.gitignore",
    ".agentv/schemas/config-v2.schema.json",
    ".agentv/schemas/eval-v2.schema.json",
    ".agentv/schemas/targets-v2.schema.json",
    ".agentv/targets.yaml",
    ".github/workflows/agentv.yml",
    ".vscode/settings.json",
    "evals/example.test.yaml",
}
ADDRESSES = {
    "openai": ("OPENAI_BASE_URL", "/v1"),
    "azure-openai": ("AZURE_OPENAI_ENDPOINT", ""),
    "anthropic": ("ANTHROPIC_BASE_URL", ""),
    "gemini": ("GOOGLE_GEMINI_BASE_URL", ""),
}
JUDGED = {"checks": [{"id": f"rubric-{number}", "satisfied": True, "reasoning": "Yes"} for number in (1, 2)]}
each_kind = pytest.mark.parametrize("kind", STARTERS)


@pytest.fixture
def project(repository: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty repository, and the current directory in it."""
    monkeypatch.chdir(repository)
    return repository


def files(folder: Path) -> dict[str, bytes]:
    """Return every file below a folder but those of runs."""
    found = {path.relative_to(folder).as_posix(): path for path in folder.rglob("*") if path.is_file()}
    return {name: path.read_bytes() for name, path in found.items() if "/results/" not in name}


def begin(folder: Path, choices: Choices | None = None) -> None:
    write_start(plan_start(folder, choices or Choices()))


class TestWhatIsWritten:
    def test_every_provider_can_be_begun_with(self) -> None:
        assert {*STARTERS} == {*kinds(Target, "provider")}, "add it to scaffold/drafts.py and scaffold/files/targets/"

    @each_kind
    def test_it_validates_strictly(self, kind: str, project: Path, capsys: pytest.CaptureFixture[str]) -> None:
        assert run(["init", "--provider", kind]) == 0
        assert {*files(project)} == WRITTEN | ({"agents/example.py"} if kind == "cli" else set())
        capsys.readouterr()
        assert run(["validate", "--strict", "."]) == 0
        assert capsys.readouterr().out == "2 files checked, 2 passed, 0 failed, 0 errors, 0 warnings\n"

    @each_kind
    def test_it_compiles_without_a_warning_and_runs_dry(
        self, kind: str, project: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        begin(project, Choices(kind))
        assert run(["eval", "evals/", "--dry-run", "--out", "r.jsonl"]) == 0
        rows = [json.loads(line) for line in (project / "r.jsonl").read_text("utf-8").splitlines()]
        assert len(rows) == (3 if STARTERS[kind].judges else 2)
        assert "warning" not in capsys.readouterr().err

    @pytest.mark.parametrize("kind", ["mock", "cli"])
    def test_what_needs_no_key_passes_at_once(self, kind: str, project: Path) -> None:
        begin(project, Choices(kind))
        assert run(["eval", "evals/", "--out", "r.jsonl"]) == 0

    @pytest.mark.parametrize("kind", ADDRESSES)
    def test_a_model_is_asked_and_judges_itself(
        self, kind: str, project: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        begin(project, Choices(kind, model="mock-model"))
        steps = [says("Paris."), says("Ada."), says("You offer changes."), says(json.dumps(JUDGED))]
        with model_api(*steps, requires_key="key-of-a-newcomer") as api:
            for name in STARTERS[kind].variables:
                monkeypatch.setenv(name, "key-of-a-newcomer")
            address, base = ADDRESSES[kind]
            monkeypatch.setenv(address, api.url + base)
            assert run(["eval", "evals/", "--out", "r.jsonl"]) == 0
            assert len(api.questions) == 4

    @pytest.mark.parametrize("kind", ADDRESSES)
    def test_its_variables_are_all_that_a_run_misses(
        self, kind: str, project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        starter = STARTERS[kind]
        for name in starter.variables:
            monkeypatch.delenv(name, raising=False)
        begin(project, Choices(kind))
        assert run(["eval", "evals/", "--out", "r.jsonl"]) == 2
        told = capsys.readouterr().err
        assert [name for name in starter.variables if name not in told] == []

    @each_kind
    def test_what_is_commented_out_is_valid_too(self, kind: str, project: Path) -> None:
        begin(project, Choices(kind))
        assert without_marks(project) == (
            [] if STARTERS[kind].judges else [".agentv/targets.yaml", "evals/example.test.yaml"]
        )
        checks = check_paths(["."], targets=None, cwd=project)
        assert [found for file in checks.files for found in file.diagnostics] == []
        assert [case["id"] for case in compiled()["cases"]][2] == "explains-in-plain-words"

    def test_command_and_model_arrive_as_they_were_given(self, project: Path) -> None:
        strange = "echo ' #: \"é' {PROMPT_FILE} && echo Paris: Ada"
        begin(project, Choices("cli", command=strange))
        assert compiled()["targets"]["default"]["commandTemplate"] == strange
        assert not (project / "agents").exists()
        for model in ("gpt-5.6-luna", "qwen3:8b", "true", "4.1", ".5", ".nan", "~", "a: b # c", '"', "${{ MY_MODEL }}"):
            (project / ".agentv/targets.yaml").unlink()
            begin(project, Choices("openai", model=model))
            assert compiled()["targets"]["default"]["model"] == model

    def test_without_an_editor_no_file_names_a_schema_that_is_not_there(self, project: Path) -> None:
        assert run(["init", "--no-editor", "--no-workflow"]) == 0
        assert {*files(project)} == {".agentv/.gitignore", ".agentv/targets.yaml", "evals/example.test.yaml"}
        for name in (".agentv/targets.yaml", "evals/example.test.yaml"):
            assert (project / name).read_text("utf-8").startswith("$schema: agentv-")

    def test_editors_find_the_schemas(self, project: Path) -> None:
        begin(project)
        for name in (".agentv/targets.yaml", "evals/example.test.yaml"):
            first, second, *_ = (project / name).read_text("utf-8").splitlines()
            found = re.fullmatch(r"# yaml-language-server: \$schema=(.+)", first)
            assert found
            assert (project / name).parent.joinpath(found[1]).is_file()
            assert second.startswith("$schema: ")
        told = json.loads((project / ".vscode/settings.json").read_text("utf-8"))["yaml.schemas"]
        assert [name for name in told if not (project / name).is_file()] == []

    def test_git_ignores_what_runs_leave_and_nothing_that_was_written(self, tmp_path: Path) -> None:
        subprocess.run(["git", "init", "-q", tmp_path], check=True)
        begin(tmp_path)
        write(tmp_path, {f".agentv/{name}/x": "" for name in ("cache", "logs", "prompts", "results", "traces")})
        listed = ["git", "ls-files", "--others", "--exclude-standard"]
        shown = subprocess.run(listed, cwd=tmp_path, capture_output=True, text=True, check=True).stdout
        assert {*shown.splitlines()} == WRITTEN


def without_marks(project: Path) -> list[str]:
    """Take away the # before what is commented out; return the files where there was something."""
    changed = []
    for name in (".agentv/targets.yaml", "evals/example.test.yaml"):
        before = (project / name).read_text("utf-8")
        kept = r"judge_target:|- name: judge$|  (?:provider|model|api_key):"
        if name.startswith("evals"):
            kept = r"- id:| {2,}\S"
        after = re.sub(rf"^( *)# (?={kept})", r"\1", before, flags=re.MULTILINE)
        if after != before:
            (project / name).write_text(after, "utf-8")
            changed.append(name)
    return changed


def compiled() -> Any:
    assert run(["compile", "evals", "--out", "plan.json"]) == 0
    return json.loads(Path("plan.json").read_text("utf-8"))


@pytest.fixture(scope="module")
def workflows(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The workflows of all providers, and one of a part of a repository."""
    folder = tmp_path_factory.mktemp("all")
    for kind in STARTERS:
        begin(folder / kind, Choices(kind))
    (folder / "repository" / ".git").mkdir(parents=True)
    (step,) = plan_start(folder / "repository" / "a part", Choices("codex")).of("pasted")
    write(folder, {"part/.github/workflows/agentv.yml": step.text})
    return folder


class TestWorkflow:
    def test_github_would_take_them(self, workflows: Path) -> None:
        command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.github-workflows"]
        paths = sorted(workflows.rglob("agentv.yml"))
        assert len(paths) == len(STARTERS) + 1
        done = subprocess.run([*command, *paths], capture_output=True, text=True, timeout=60, check=False)
        assert (done.returncode, done.stdout) == (0, "ok -- validation done\n")

    def test_zizmor_finds_nothing(self, workflows: Path) -> None:
        places = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])
        zizmor = shutil.which("zizmor", path=places)
        if zizmor is None:
            pytest.skip("zizmor is missing; install it: python -m pip install 'zizmor>=1.32'")
        paths = sorted(workflows.rglob("agentv.yml"))
        done = subprocess.run(
            [zizmor, "--offline", "--no-progress", "--no-config", *paths],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == 0, done.stdout

    def test_no_secret_is_passed_but_those_of_the_provider(self, workflows: Path) -> None:
        for kind, starter in STARTERS.items():
            text = (workflows / kind / ".github/workflows/agentv.yml").read_text("utf-8")
            assert tuple(re.findall(r"secrets\.(\w+)", text)) == starter.variables
            assert ("validate-only: " in text) == bool(starter.variables or not starter.runs_on_servers)
            assert "#:" not in text

    def test_agents_are_installed_as_they_were_tried(self) -> None:
        (agents,) = re.findall(r"^AGENTS = (.*)", (REPOSITORY / "Makefile").read_text("utf-8"), re.MULTILINE)
        tried = set(agents.split())
        assert {starter.package for starter in STARTERS.values() if starter.package} == tried

    def test_part_of_a_repository_gets_the_lines_for_its_root(
        self, project: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert run(["init", "apps/shop", "--provider", "openai"]) == 0
        assert not (project / "apps/shop/.github").exists()
        printed = capsys.readouterr().out
        lines = printed.partition(".github/workflows/agentv-apps-shop.yml is outside of FOLDER; create it with:\n")[
            2
        ].partition("next:")[0]
        assert "          working-directory: apps/shop\n" in lines
        assert "next:\n  cd apps/shop\n  export OPENAI_API_KEY=<value>\n" in printed
        write(project, {".github/workflows/agentv-apps-shop.yml": lines})
        assert run(["init", "apps/shop", "--provider", "openai"]) == 0
        assert "create it with" not in capsys.readouterr().out
        assert run(["validate", "--strict", "."]) == 0

    def test_repository_among_the_evals_is_another_one(self, project: Path) -> None:
        (project / "evals" / ".git").mkdir(parents=True)
        assert run(["init"]) == 0
        assert {*files(project)} == WRITTEN

    def test_name_of_a_part_is_written_as_a_text(self, project: Path) -> None:
        for name in ("a: b # c", "yes", "1e3", "é\udcff\x85"):
            (step,) = plan_start(project / name, Choices()).of("pasted")
            (line,) = re.findall(r"working-directory: (.+)\n", step.text)
            assert line == json.dumps(name)


class TestNothingIsOverwritten:
    @given(there=st.sets(st.sampled_from(sorted(WRITTEN))), text=st.sampled_from(["", "{}\n", "mine: 1\n"]))
    @settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
    def test_whatever_is_there_stays(
        self, tmp_path_factory: pytest.TempPathFactory, there: set[str], text: str
    ) -> None:
        folder = tmp_path_factory.mktemp("project")
        write(folder, dict.fromkeys(there, text))
        begin(folder)
        after = files(folder)
        assert {name: after[name] for name in there} == dict.fromkeys(there, text.encode())
        assert {*after} == WRITTEN

    def test_second_time_changes_nothing_and_says_so(self, project: Path, capsys: pytest.CaptureFixture[str]) -> None:
        assert run(["init"]) == 0
        before = files(project)
        capsys.readouterr()
        assert run(["init"]) == 0
        assert capsys.readouterr().out.startswith("nothing written: all files exist already\nnext:\n")
        assert run(["init", "--provider", "anthropic"]) == 0
        said = "  .agentv/targets.yaml (uses 'default', not anthropic; add a target to it)\nnext:\n"
        assert said in capsys.readouterr().out
        assert files(project) == before

    def test_schema_of_another_version_is_left_and_told(
        self, project: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert run(["init"]) == 0
        write(project, {".agentv/schemas/eval-v2.schema.json": "{}"})
        capsys.readouterr()
        assert run(["init"]) == 0
        note = "(schema of another version; to update it, delete it and run init again)"
        told = capsys.readouterr().out.splitlines()
        assert told[1:3] == ["unchanged:", f"  .agentv/schemas/eval-v2.schema.json {note}"]

    def test_what_appears_meanwhile_is_not_overwritten(self, project: Path) -> None:
        start = plan_start(project, Choices())
        write(project, {"evals/example.test.yaml": "mine"})
        with pytest.raises(UsageError, match=r"example\.test\.yaml': File exists") as told:
            write_start(start)
        assert told.value.hint == f"written so far: {project / '.agentv/targets.yaml'}"
        assert (project / "evals/example.test.yaml").read_text("utf-8") == "mine"

    def test_settings_that_are_there_get_their_lines_told(
        self, project: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        write(project, {".vscode/settings.json": '{"editor.tabSize": 2}'})
        assert run(["init"]) == 0
        assert (project / ".vscode/settings.json").read_text("utf-8") == '{"editor.tabSize": 2}'
        mark = ".vscode/settings.json exists; add these lines to it:\n"
        lines = capsys.readouterr().out.partition(mark)[2].partition("next:")[0]
        write(project, {".vscode/settings.json": f'{{"editor.tabSize": 2,\n{lines}}}'})
        assert json.loads((project / ".vscode/settings.json").read_text("utf-8"))["yaml.schemas"]
        assert run(["init"]) == 0
        assert "add these lines" not in capsys.readouterr().out

    @pytest.mark.parametrize("name", ["targets.yaml", "targets.yml", ".agentv/targets.yml", "evals/targets.yaml"])
    def test_targets_of_another_name_are_asked(self, project: Path, name: str) -> None:
        mine = "{name: mine, provider: cli, command_template: echo Paris Ada}"
        write(project, {name: f"$schema: agentv-targets-v2.2\ntargets:\n  - {mine}\n"})
        assert run(["init", "--provider", "openai"]) == 0
        assert not (project / ".agentv/targets.yaml").exists()
        assert run(["validate", "--strict", "."]) == 0
        assert run(["eval", "evals/example.test.yaml", "--out", "r.jsonl"]) == 0

    @pytest.mark.parametrize("text", ["", "targets: 1\n", "targets: [1, {name: ''}]\n", "a: [\n"])
    def test_targets_that_nobody_can_read_are_left_alone(self, project: Path, text: str) -> None:
        write(project, {"targets.yaml": text})
        assert run(["init"]) == 0
        assert "target: default\n" in (project / "evals/example.test.yaml").read_text("utf-8")


class TestWhatStandsInTheWay:
    def test_missing_folder_is_made(self, project: Path) -> None:
        assert run(["init", "a/b"]) == 0
        assert (project / "a/b/evals/example.test.yaml").is_file()

    @pytest.mark.parametrize("make", [lambda path: path.write_text(""), lambda path: path.symlink_to("nowhere")])
    def test_folder_that_is_none_is_a_usage_error(self, project: Path, make: object) -> None:
        assert callable(make)
        make(project / "taken")
        assert run(["init", "taken"]) == 2

    @pytest.mark.parametrize(
        ("name", "hint"),
        [
            (".agentv", "move it, or choose another folder"),
            (".github", "move it, or use --no-workflow"),
            (".vscode", "move it, or use --no-editor"),
        ],
    )
    def test_link_and_file_in_place_of_a_folder_are_refused_before_anything_is_written(
        self, name: str, hint: str, repository: Path, tmp_path_factory: pytest.TempPathFactory
    ) -> None:
        outside = tmp_path_factory.mktemp("outside")
        (repository / name).symlink_to(outside)
        with pytest.raises(UsageError, match=re.escape(f"/{name}' is a symbolic link")) as told:
            plan_start(repository, Choices())
        assert told.value.hint == hint
        (repository / name).unlink()
        (repository / name).write_text("")
        with pytest.raises(UsageError, match=re.escape(f"/{name}' is in the way of")):
            plan_start(repository, Choices())
        assert (files(outside), {*files(repository)}) == ({}, {name})

    def test_folder_and_broken_link_in_place_of_a_file_are_refused(self, project: Path) -> None:
        path = project / "evals/example.test.yaml"
        path.mkdir(parents=True)
        assert run(["init"]) == 2
        path.rmdir()
        path.symlink_to(project.parent / "elsewhere.yaml")
        assert run(["init"]) == 2
        assert not (project.parent / "elsewhere.yaml").exists()
        assert not (project / ".agentv").exists()

    def test_link_to_a_file_is_a_file_that_is_there(self, project: Path) -> None:
        write(project, {"mine.yaml": "mine: 1\n", "evals/x": ""})
        (project / "evals/example.test.yaml").symlink_to("../mine.yaml")
        assert run(["init"]) == 0
        assert (project / "mine.yaml").read_text("utf-8") == "mine: 1\n"

    def test_name_that_is_too_long_is_a_usage_error(self, project: Path, capsys: pytest.CaptureFixture[str]) -> None:
        assert run(["init", "x" * 300]) == 2
        assert "File name too long" in capsys.readouterr().err

    def test_folder_that_may_not_be_written_to_is_a_usage_error(
        self, project: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        if os.geteuid() == 0:
            pytest.skip("root may write everywhere")
        project.chmod(0o500)
        try:
            assert run(["init"]) == 2
        finally:
            project.chmod(0o700)
        assert "Permission denied" in capsys.readouterr().err

    @pytest.mark.parametrize(
        ("raised", "expected"),
        [(OSError(28, "No space left on device"), UsageError), (KeyboardInterrupt(), Interrupted)],
        ids=["full disk", "Ctrl-C"],
    )
    def test_failure_in_the_middle_says_what_was_written(
        self,
        raised: BaseException,
        expected: type[UsageError | Interrupted],
        repository: Path,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        create = starting._create  # noqa: SLF001  # the second file is where it happens

        def failing(path: Path, text: str) -> None:
            if path.name == "example.test.yaml":
                raise raised
            create(path, text)

        monkeypatch.setattr(starting, "_create", failing)
        with pytest.raises(expected) as told:
            begin(repository)
        assert told.value.hint == f"written so far: {repository / '.agentv/targets.yaml'}"
        assert {*files(repository)} == {".agentv/targets.yaml"}

    def test_half_a_file_is_not_left(self, tmp_path: Path) -> None:
        with pytest.raises(UnicodeEncodeError):
            starting._create(tmp_path / "x", "\ud800")  # noqa: SLF001  # what no disk here refuses
        assert files(tmp_path) == {}


class TestOptions:
    @pytest.mark.parametrize(
        ("flags", "said"),
        [
            (["--provider", "gpt"], "'gpt' is not one of"),
            (["--provider", "openai", "--command", "x"], "--command requires --provider cli, not 'openai'"),
            (["--model", "x"], "--model cannot be used with --provider mock"),
            (["--provider", "openai", "--model", " "], "the model's name is empty"),
            (["--command", " "], "the command is empty"),
            (["--command", "a\nb"], "the command must be one line of printable text"),
            (["--provider", "openai", "--model", "\udcff"], "the model's name must be one line of printable text"),
            (["--provider", "openai", "--model", "x-${{ X }}"], "an environment reference must be the whole value"),
            (["--command", "agent {PORMPT}"], "unknown placeholder {PORMPT} in the command (did you mean 'PROMPT'?)"),
            (["--command", "agent '{PROMPT}'"], "{PROMPT} is inside quotes"),
            ([""], "the name is empty"),
        ],
    )
    def test_what_does_not_go_together_is_a_usage_error(
        self, flags: list[str], said: str, project: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert run(["init", *flags]) == 2
        assert said in " ".join(capsys.readouterr().err.split())
        assert files(project) == {}

    def test_a_command_alone_means_the_provider_cli(self, project: Path) -> None:
        assert run(["init", "--command", "echo Paris Ada"]) == 0
        assert run(["eval", "evals/", "--out", "r.jsonl"]) == 0

    @pytest.mark.parametrize(
        ("kind", "lines"),
        [
            ("mock", ["agentv-ci validate .", "agentv-ci eval evals/"]),
            (
                "codex",
                [
                    "export CODEX_API_KEY=<value>  # unless you are logged in",
                    "agentv-ci validate .",
                    "agentv-ci eval evals/  # add --dry-run to let the mock answer",
                ],
            ),
        ],
    )
    def test_what_comes_next_is_said(
        self, kind: str, lines: list[str], project: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert run(["init", "--provider", kind, "--no-editor"]) == 0
        assert [line.strip() for line in capsys.readouterr().out.partition("next:\n")[2].splitlines()] == lines

    def test_without_a_terminal_nothing_is_asked(self, tmp_path: Path) -> None:
        done = run_process("init", cwd=tmp_path)
        assert (done.code, done.err) == (0, "")
        assert {*files(tmp_path)} == WRITTEN


class Terminal:
    """`agentv-ci init` with a person before it."""

    def __init__(self, folder: Path, *arguments: str) -> None:
        self._main, end = pty.openpty()
        command = [sys.executable, "-m", "agentv_ci", "init", *arguments]
        env = clean_environment({"TERM": "xterm", "COLUMNS": "100"})
        self._process = subprocess.Popen(
            command, cwd=folder, env=env, stdin=end, stdout=end, stderr=end, start_new_session=True
        )
        os.close(end)
        self.shown = ""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.kill()
        self._process.wait(60)
        os.close(self._main)

    def wait_for(self, text: str) -> None:
        """Read until a text is shown that was not there before."""
        seen = len(self.shown)
        while text not in self.shown[seen:]:
            assert self._read(), self.shown

    def answer(self, question: str, line: str) -> None:
        self.wait_for(question)
        os.write(self._main, f"{line}\n".encode())

    def interrupt(self) -> None:
        """Do what a terminal does when somebody types Ctrl-C.

        Python does not hear a signal that comes when its question is shown but the answer not waited for yet.
        """
        shown = ["ps", "-o", "stat=", "-p", str(self._process.pid)]
        while not subprocess.run(shown, capture_output=True, text=True, check=True).stdout.startswith("S"):
            time.sleep(0.01)
        self._process.send_signal(signal.SIGINT)

    def end(self) -> int:
        while self._read():
            pass
        return self._process.wait(60)

    def _read(self) -> bool:
        """Read what is shown next; False when nothing comes any more."""
        assert select.select([self._main], [], [], 60)[0], self.shown
        # Linux says by an error that nobody has the other end any more.
        with suppress(OSError):
            piece = os.read(self._main, 65_536)
            self.shown += piece.decode("utf-8", "replace")
            return bool(piece)
        return False


class TestOnATerminal:
    def test_questions_have_defaults_and_wrong_answers_are_asked_again(self, tmp_path: Path) -> None:
        with Terminal(tmp_path) as terminal:
            terminal.answer("Provider [mock]: ", "nonsense")
            terminal.answer("Provider [mock]: ", "cli")
            terminal.answer(f"Command [{AGENT_COMMAND}]: ", "agent '{PROMPT}'")
            terminal.answer("Command [", "echo Paris Ada")
            terminal.answer("Write a GitHub workflow? [Y/n]: ", "n")
            terminal.answer("Write editor settings and schemas? [Y/n]: ", "")
            assert terminal.end() == 0
        assert "{PROMPT} is inside quotes" in terminal.shown
        assert {*files(tmp_path)} == WRITTEN - {".github/workflows/agentv.yml"}
        assert run_process("eval", "evals", cwd=tmp_path).code == 0

    def test_model_is_asked_for_where_there_is_one(self, tmp_path: Path) -> None:
        with Terminal(tmp_path) as terminal:
            terminal.answer("Provider [mock]: ", "openai")
            terminal.answer("Model [gpt-5.6-luna]: ", "")
            terminal.answer("workflow? [Y/n]: ", "")
            terminal.answer("schemas? [Y/n]: ", "")
            assert terminal.end() == 0
        assert "model: gpt-5.6-luna\n" in (tmp_path / ".agentv/targets.yaml").read_text("utf-8")

    def test_interrupted_question_leaves_nothing(self, tmp_path: Path) -> None:
        with Terminal(tmp_path, "new") as terminal:
            terminal.answer("Provider [mock]: ", "")
            terminal.wait_for("Write a GitHub workflow? [Y/n]: ")
            terminal.interrupt()
            assert terminal.end() == 130
        assert terminal.shown.rstrip().endswith("interrupted")
        assert [*tmp_path.iterdir()] == []

    @pytest.mark.parametrize("flag", ["--yes", "--provider=mock"])
    def test_options_are_answers_enough(self, flag: str, tmp_path: Path) -> None:
        with Terminal(tmp_path, flag) as terminal:
            assert terminal.end() == 0
        assert {*files(tmp_path)} == WRITTEN
