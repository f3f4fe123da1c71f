"""`agentv-ci init`: a new project is valid, runs, and overwrites nothing."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from ruamel.yaml import YAML

from agentv_ci.app.documents import init as starting
from agentv_ci.app.documents.init import plan_start, write_start
from agentv_ci.app.documents.validate import check_paths
from agentv_ci.errors import Interrupted, UsageError
from agentv_ci.scaffold.drafts import AGENT_COMMAND, STARTERS, Choices, drafts
from tests.cli.builders import KEYED, Terminal
from tests.servers.model_api import model_api, says
from tests.support import REPOSITORY
from tests.support.evals import tool
from tests.support.projects import Project

TARGETS, EXAMPLE, WORKFLOW = ".agentv/targets.yaml", "evals/example.test.yaml", ".github/workflows/agentv.yml"
SETTINGS, SCHEMA = ".vscode/settings.json", ".agentv/schemas/eval-v2.schema.json"
SCHEMAS = {SCHEMA, ".agentv/schemas/config-v2.schema.json", ".agentv/schemas/targets-v2.schema.json"}
WRITTEN = {".agentv/.gitignore", TARGETS, EXAMPLE, WORKFLOW, SETTINGS, *SCHEMAS}
ADDRESSES = {
    "openai": ("OPENAI_BASE_URL", "/v1"),
    "azure-openai": ("AZURE_OPENAI_ENDPOINT", ""),
    "anthropic": ("ANTHROPIC_BASE_URL", ""),
    "gemini": ("GOOGLE_GEMINI_BASE_URL", ""),
}
JUDGED = {"checks": [{"id": f"rubric-{number}", "satisfied": True, "reasoning": "Yes"} for number in (1, 2)]}
each_kind = pytest.mark.parametrize("kind", STARTERS)


def files(folder: Path) -> dict[str, bytes]:
    return Project(folder).files()


def begin(folder: Path, choices: Choices | None = None) -> None:
    write_start(plan_start(folder, choices or Choices()))


def compiled(project: Project) -> Any:
    assert project.run("compile", "evals", "--out", "plan.json").code == 0
    return project.json("plan.json")


def next_steps(printed: str) -> list[str]:
    return [line.strip() for line in printed.partition("next:\n")[2].splitlines()]


class TestFiles:
    @each_kind
    def test_project_is_valid_and_runs_dry(self, kind: str, project: Project) -> None:
        assert project.run("init", "--provider", kind).code == 0
        assert {*files(project.folder)} == WRITTEN | ({"agents/example.py"} if kind == "cli" else set())
        done = project.run("validate", "--strict", ".")
        assert (done.code, done.out) == (0, "2 files checked, 2 passed, 0 failed, 0 errors, 0 warnings\n")
        done = project.eval("--dry-run")
        assert (done.code, "warning" in done.err) == (0, False)
        assert len(project.rows()) == (3 if STARTERS[kind].judges else 2)

    @pytest.mark.parametrize("flags", [[], ["--provider", "cli"], ["--command", "echo Paris, your name is Ada"]])
    def test_project_without_keys_passes(self, flags: list[str], project: Project) -> None:
        assert (project.run("init", *flags).code, project.eval().code) == (0, 0)

    @pytest.mark.parametrize("kind", ADDRESSES)
    def test_model_answers_and_judges(self, kind: str, project: Project) -> None:
        choices = Choices(kind, model="mock-model")
        begin(project.folder, choices)
        done = project.eval()
        assert done.code == 2
        variables = choices.variables
        assert [name for name in variables if name not in done.err] == []
        steps = [says("Paris."), says("Ada."), says("A pull request proposes changes."), says(json.dumps(JUDGED))]
        with model_api(*steps, requires_key="a-key-for-tests") as api:
            address, base = ADDRESSES[kind]
            project.env |= {**dict.fromkeys(variables, "a-key-for-tests"), address: api.url + base}
            assert project.eval().code == 0
            assert len(api.questions) == 4

    @each_kind
    def test_commented_lines_are_valid(self, kind: str, project: Project) -> None:
        begin(project.folder, Choices(kind))
        changed = []
        for name, lines in (
            (TARGETS, r"judge_target:|- name: judge$|  (?:provider|model|api_key):"),
            (EXAMPLE, r"- id:| {2,}\S"),
        ):
            before = project.text(name)
            after = re.sub(rf"^( *)# (?={lines})", r"\1", before, flags=re.MULTILINE)
            project.write({name: after})
            changed += [name] if after != before else []
        assert changed == ([] if STARTERS[kind].judges else [TARGETS, EXAMPLE])
        checks = check_paths(["."], targets=None, cwd=project.folder)
        assert [found for file in checks.files for found in file.diagnostics] == []
        assert compiled(project)["cases"][2]["id"] == "explains-in-plain-words"

    @pytest.mark.parametrize(
        "model", ["gpt-5.6-luna", "qwen3:8b", "true", "4.1", ".5", ".nan", "~", "a: b # c", '"', "${{ MY_MODEL }}"]
    )
    def test_model_is_quoted_where_necessary(self, model: str, project: Project) -> None:
        begin(project.folder, Choices("openai", model=model))
        assert compiled(project)["targets"]["default"]["model"] == model

    @pytest.mark.parametrize(
        "command",
        [
            *("echo hi", "jq '{a: 1}' {PROMPT_FILE}", "echo {PROMPT} {{x}}", "  echo {PROMPT}  ", "a: b # {PROMPT}"),
            *("{PROMPT}", "$ {PROMPT}", r"echo \x41 \g<0> {PROMPT}", "TARGET: MODEL COMMAND {PROMPT}", "- {PROMPT}"),
            *("| {PROMPT}", "&a {PROMPT}", "!x {PROMPT}", "%x {PROMPT}", "@x {PROMPT}", "::add-mask::e {PROMPT}"),
            *("${{ X }}", "echo ' #: \"é' {PROMPT_FILE} && echo Paris: your name is Ada"),
        ],
    )
    def test_command_is_quoted_where_necessary(self, command: str, project: Project) -> None:
        assert project.run("init", "--command", command, "--no-workflow", "--no-editor").code == 0
        written = command if "PROMPT" in command or command == "${{ X }}" else f"{command} {{PROMPT}}"
        assert YAML(typ="safe").load(project.text(TARGETS))["targets"][0]["command_template"] == written
        assert project.run("validate", "--strict", ".").code == 0
        assert not project.path("agents").exists()

    def test_without_an_editor_no_file_names_a_schema(self, project: Project) -> None:
        assert project.run("init", "--no-editor", "--no-workflow").code == 0
        assert {*files(project.folder)} == {".agentv/.gitignore", TARGETS, EXAMPLE}
        assert all(project.text(name).startswith("$schema: agentv-") for name in (TARGETS, EXAMPLE))

    def test_editors_find_the_schemas(self, project: Project) -> None:
        begin(project.folder)
        for name in (TARGETS, EXAMPLE):
            first, second, *_ = project.text(name).splitlines()
            found = re.fullmatch(r"# yaml-language-server: \$schema=(.+)", first)
            assert found
            assert project.path(name).parent.joinpath(found[1]).is_file()
            assert second.startswith("$schema: ")
        assert [name for name in project.json(SETTINGS)["yaml.schemas"] if not project.path(name).is_file()] == []

    def test_git_ignores_files_of_runs_alone(self, tmp_path: Path) -> None:
        subprocess.run(["git", "init", "-q", tmp_path], check=True)
        begin(tmp_path)
        Project(tmp_path).write({f".agentv/{name}/x": "" for name in ("cache", "logs", "prompts", "results", "traces")})
        listed = ["git", "ls-files", "--others", "--exclude-standard"]
        shown = subprocess.run(listed, cwd=tmp_path, capture_output=True, text=True, check=True).stdout
        assert {*shown.splitlines()} == WRITTEN


class TestWorkflow:
    def test_only_secrets_of_the_provider_are_passed(self) -> None:
        for kind, starter in STARTERS.items():
            (text,) = (each.text for each in drafts(Choices(kind), subfolder=None) if each.path == WORKFLOW)
            assert tuple(re.findall(r"secrets\.(\w+)", text)) == starter.variables
            assert ("validate-only: " in text) == bool(starter.variables or not starter.runs_on_servers)
            assert "#:" not in text
            assert ("# Install what the command requires here." in text) == (kind == "cli")
            assert (f"npm install --global {starter.package} " in text) == (starter.package is not None)

    def test_agents_are_installed_in_tested_versions(self) -> None:
        (agents,) = re.findall(r"^AGENTS = (.*)", (REPOSITORY / "Makefile").read_text("utf-8"), re.MULTILINE)
        assert {starter.package for starter in STARTERS.values() if starter.package} == set(agents.split())

    def test_workflows_of_parts_are_for_the_root(self, project: Project) -> None:
        for part in ("shop", "desk"):
            init = ["init", f"apps/{part}", "--provider", "openai"]
            done = project.run(*init)
            assert (done.code, project.path(f"apps/{part}/.github").exists()) == (0, False)
            name = f".github/workflows/agentv-apps-{part}.yml"
            lines = done.out.partition(f"{name} is outside of FOLDER; create it with:\n")[2].partition("next:")[0]
            assert f"          working-directory: apps/{part}\n" in lines
            assert next_steps(done.out)[:2] == [f"cd apps/{part}", "export OPENAI_API_KEY=<value>"]
            project.write({name: lines})
            assert YAML(typ="safe").load(lines)["jobs"]
            assert "create it with" not in project.run(*init).out
        assert project.run("validate", "--strict", ".").code == 0

    def test_repository_in_the_evals_folder_is_another_one(self, project: Project) -> None:
        project.path("evals/.git").mkdir(parents=True)
        assert project.run("init").code == 0
        assert {*files(project.folder)} == WRITTEN

    @pytest.mark.parametrize("name", ["a: b # c", "yes", "1e3", "é\udcff\x85", "${{ github.token }}"])
    def test_name_of_a_part_is_quoted(self, name: str, project: Project) -> None:
        (step,) = plan_start(project.folder / name, Choices()).of("pasted")
        (line,) = re.findall(r"working-directory: (.+)\n", step.text)
        assert line == json.dumps(name.replace("${{", "${{ '${{' }}")) if "$" not in name else line != name

    @pytest.mark.parametrize(
        ("flags", "present", "absent"),
        [
            (["--provider", "azure-openai", "--model", "gpt-x"], "AZURE_OPENAI_API_KEY", "AZURE_DEPLOYMENT_NAME"),
            (["--provider", "openai", "--model", "${{ MY_MODEL }}"], "MY_MODEL", "AZURE"),
        ],
    )
    def test_variables_follow_the_model(self, flags: list[str], present: str, absent: str, project: Project) -> None:
        printed = project.run("init", *flags).out
        env = YAML(typ="safe").load(project.text(WORKFLOW))["jobs"]["evals"]["steps"][-1]["env"]
        assert (present in env, f"export {present}=" in printed) == (True, True)
        assert not any(absent in text for text in (*env, printed, project.text(TARGETS)))


class TestExistingFiles:
    @given(there=st.sets(st.sampled_from(sorted(WRITTEN))), text=st.sampled_from(["", "{}\n", "mine: 1\n"]))
    @settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture])
    def test_files_are_never_overwritten(
        self, tmp_path_factory: pytest.TempPathFactory, there: set[str], text: str
    ) -> None:
        folder = tmp_path_factory.mktemp("project")
        Project(folder).write(dict.fromkeys(there, text))
        begin(folder)
        after = files(folder)
        assert {name: after[name] for name in there} == dict.fromkeys(there, text.encode())
        assert {*after} == WRITTEN

    def test_second_time_changes_nothing(self, project: Project) -> None:
        assert project.run("init").code == 0
        before = files(project.folder)
        assert project.run("init").out.startswith("nothing written: all files exist already\nnext:\n")
        note = f"unchanged:\n  {TARGETS} (its target 'default' does not use anthropic; add or change a target)\nnext:\n"
        assert note in project.run("init", "--provider", "anthropic").out
        assert files(project.folder) == before
        project.write({SCHEMA: "{}"})
        note = "(schema of another version; to update it, delete it and run init again)"
        assert project.run("init").out.splitlines()[1:3] == ["unchanged:", f"  {SCHEMA} {note}"]

    def test_file_created_meanwhile_is_kept(self, project: Project) -> None:
        start = plan_start(project.folder, Choices())
        project.write({EXAMPLE: "mine"})
        with pytest.raises(UsageError, match=r"example\.test\.yaml': File exists") as raised:
            write_start(start)
        assert raised.value.hint == f"written so far: {project.path(TARGETS)}"
        assert project.text(EXAMPLE) == "mine"

    def test_lines_for_existing_settings_are_printed(self, project: Project) -> None:
        project.write({SETTINGS: '{"editor.tabSize": 2}'})
        printed = project.run("init").out
        assert project.text(SETTINGS) == '{"editor.tabSize": 2}'
        lines = printed.partition(f"{SETTINGS} exists; add these lines to it:\n")[2].partition("next:")[0]
        project.write({SETTINGS: f'{{"editor.tabSize": 2,\n{lines}}}'})
        assert project.json(SETTINGS)["yaml.schemas"]
        assert "add these lines" not in project.run("init").out

    @pytest.mark.parametrize("name", ["targets.yaml", "targets.yml", ".agentv/targets.yml", "evals/targets.yaml"])
    def test_existing_targets_are_used(self, name: str, project: Project) -> None:
        project.targets(tool("echo Paris, your name is Ada", name="mine"), name=name)
        assert project.run("init", "--provider", "openai").code == 0
        assert not project.path(TARGETS).exists()
        assert project.run("validate", "--strict", ".").code == 0
        assert project.eval().code == 0

    @pytest.mark.parametrize(
        ("targets", "name", "text"),
        [
            ([KEYED], WORKFLOW, "env:\n          OPENAI_API_KEY: ${{ secrets.OPENAI_API_KEY }}\n"),
            (
                [{"name": "default", "provider": "codex"}],
                WORKFLOW,
                f"npm install --global {STARTERS['codex'].package} ",
            ),
            ([tool("x", name="a"), tool("x", name="default")], EXAMPLE, "target: default\n"),
            ([tool("x", name="a"), tool("x", name="b")], EXAMPLE, "target: a\n"),
        ],
    )
    def test_files_fit_existing_targets(
        self, targets: list[dict[str, Any]], name: str, text: str, project: Project
    ) -> None:
        project.targets(*targets)
        done = project.run("init", "--provider", "anthropic")
        assert (done.code, text in project.text(name), "export ANTHROPIC_API_KEY" in done.out) == (0, True, False)

    @pytest.mark.parametrize("text", ["", "targets: 1\n", "targets: [1, {name: ''}]\n", "a: [\n"])
    def test_unreadable_targets_are_kept(self, text: str, project: Project) -> None:
        project.write({"targets.yaml": text})
        assert project.run("init").code == 0
        assert "target: default\n" in project.text(EXAMPLE)
        assert project.text("targets.yaml") == text


class TestObstacles:
    @pytest.mark.parametrize(
        ("name", "hint"),
        [
            (".agentv", "move it, or choose another folder"),
            (".github", "move it, or use --no-workflow"),
            (".vscode", "move it, or use --no-editor"),
        ],
    )
    def test_link_or_file_in_place_of_a_folder_is_an_error(
        self, name: str, hint: str, project: Project, tmp_path_factory: pytest.TempPathFactory
    ) -> None:
        outside = tmp_path_factory.mktemp("outside")
        project.path(name).symlink_to(outside)
        project.refuses("init", error=f"error: '{name}' is a symbolic link\n    {hint}\n")
        project.path(name).unlink()
        project.write({name: ""})
        project.refuses("init", error=f"error: '{name}' is in the way of")
        assert files(outside) == {}

    def test_folder_or_link_in_place_of_a_file(self, project: Project) -> None:
        path = project.path(EXAMPLE)
        path.mkdir(parents=True)
        project.refuses("init")
        path.rmdir()
        path.symlink_to("../mine.yaml")
        project.refuses("init")
        project.write({"mine.yaml": "mine: 1\n"})
        assert project.run("init").code == 0
        assert project.text("mine.yaml") == "mine: 1\n"

    def test_interruption_names_the_files_written_so_far(
        self, repository: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        create = starting._create  # noqa: SLF001  # is interrupted at the second file

        def interrupted(path: Path, text: str) -> None:
            if path.name == "example.test.yaml":
                raise KeyboardInterrupt
            create(path, text)

        monkeypatch.setattr(starting, "_create", interrupted)
        with pytest.raises(Interrupted) as error:
            begin(repository)
        assert error.value.hint == f"written so far: {repository / TARGETS}"
        assert {*files(repository)} == {TARGETS}

    def test_partial_file_is_removed(self, tmp_path: Path) -> None:
        with pytest.raises(UnicodeEncodeError):
            starting._create(tmp_path / "x", "\ud800")  # noqa: SLF001  # fails in the middle
        assert files(tmp_path) == {}


class TestOptions:
    def test_names_that_no_shell_passes_write_nothing(self, project: Project) -> None:
        error = "the model's name must be one line of printable text"
        project.refuses("init", "--provider", "openai", "--model", "\udcff", error=error)
        project.refuses("init", "x" * 300, error="File name too long")

    @pytest.mark.parametrize(
        ("kind", "first"),
        [
            ("mock", []),
            ("openai", ["export OPENAI_API_KEY=<value>"]),
            ("vscode-copilot", []),
            ("codex", ["export CODEX_API_KEY=<value>  # unless you are logged in"]),
        ],
    )
    def test_next_steps(self, kind: str, first: list[str], project: Project) -> None:
        printed = project.run("init", "--provider", kind, "--no-editor").out
        last = "" if kind == "mock" else "  # add --dry-run to score the reference answer"
        assert next_steps(printed) == [*first, "agentv-ci validate .", f"agentv-ci eval{last}"]


@pytest.mark.slow
class TestOnATerminal:
    def test_questions_have_defaults_and_invalid_answers_are_asked_again(self, tmp_path: Path) -> None:
        with Terminal(tmp_path, "init") as terminal:
            terminal.answer("Provider [mock]: ", "nonsense")
            terminal.answer("Provider [mock]: ", "cli")
            terminal.answer(f"Command [{AGENT_COMMAND}]: ", "agent '{PROMPT}'")
            terminal.answer("Command [", "echo Paris, your name is Ada")
            terminal.answer("Write a GitHub workflow? [Y/n]: ", "n")
            terminal.answer("Write editor settings and schemas? [Y/n]: ", "")
            assert terminal.end() == 0
        assert f"  openai          {STARTERS['openai'].summary}\n" in terminal.shown
        assert "{PROMPT} is inside quotes" in terminal.shown
        assert {*files(tmp_path)} == WRITTEN - {WORKFLOW}
        assert Project(tmp_path).eval().code == 0

    def test_model_has_a_default(self, tmp_path: Path) -> None:
        with Terminal(tmp_path, "init") as terminal:
            terminal.answer("Provider [mock]: ", "openai")
            for question in ("Model [gpt-5.6-luna]: ", "workflow? [Y/n]: ", "schemas? [Y/n]: "):
                terminal.answer(question, "")
            assert terminal.end() == 0
        assert "model: gpt-5.6-luna\n" in (tmp_path / TARGETS).read_text("utf-8")

    def test_interruption_writes_nothing(self, tmp_path: Path) -> None:
        with Terminal(tmp_path, "init", "new") as terminal:
            terminal.answer("Provider [mock]: ", "")
            terminal.wait_for("Write a GitHub workflow? [Y/n]: ")
            terminal.interrupt()
            assert terminal.end() == 130
        assert terminal.shown.rstrip().endswith("interrupted")
        assert [*tmp_path.iterdir()] == []

    @pytest.mark.parametrize("flag", ["--yes", "--provider=mock"])
    def test_options_replace_questions(self, flag: str, tmp_path: Path) -> None:
        with Terminal(tmp_path, "init", flag) as terminal:
            assert terminal.end() == 0
        assert {*files(tmp_path)} == WRITTEN
