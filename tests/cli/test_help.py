"""Help, versions, schemas, and options that all commands share."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from agentv_ci import __version__
from agentv_ci.cli import COMMANDS, run
from agentv_ci.jsonschema.schemas import TITLES
from tests.support import run_command, run_process


@pytest.mark.parametrize("command", COMMANDS)
def test_help_of_every_command_has_an_example(command: str, tmp_path: Path) -> None:
    done = run_command(command, "--help", cwd=tmp_path)
    assert done.code == 0
    assert f"agentv-ci {command} " in done.out.split("Examples:")[1]


def test_help_groups_options_and_lists_no_arguments(tmp_path: Path) -> None:
    usage, *_, last = run_command("eval", "--help", cwd=tmp_path).out.split("\n\n")
    assert usage == "Usage: agentv-ci eval [OPTIONS] [PATH…]"
    assert last.startswith("Options:\n  -v, --verbose ")
    assert "PATH…" not in last


@pytest.mark.parametrize(
    ("command", "default"),
    [
        ("eval", "else one at a time, in order)"),
        ("judge-check", "[default: 0.8;"),
        *(("github publish", f"[default: {choice}]") for choice in ("auto", "all", "gate")),
    ],
)
def test_help_has_defaults(command: str, default: str, tmp_path: Path) -> None:
    assert default in " ".join(run_command(*command.split(), "--help", cwd=tmp_path).out.split())


@pytest.mark.parametrize("group", [[], ["baseline"], ["cache"], ["github"]])
def test_group_without_a_command_shows_its_help(group: list[str], tmp_path: Path) -> None:
    done = run_command(*group, cwd=tmp_path)
    assert (done.code, done.out, done.err) == (2, "", run_command(*group, "--help", cwd=tmp_path).out)


def test_version_with_and_without_other_options(tmp_path: Path) -> None:
    version = f"agentv-ci {__version__}\n"
    assert run_process("--version", cwd=tmp_path).out == version
    assert run_command("--color", "never", "--version", cwd=tmp_path).out == version


def test_schemas_are_listed(tmp_path: Path) -> None:
    assert [line.split()[0] for line in run_command("schema", cwd=tmp_path).out.splitlines()] == list(TITLES)


@pytest.mark.parametrize(
    ("words", "completed"),
    [
        ("agentv-ci ev", ["plain,eval"]),
        ("agentv-ci eval --re", [f"plain,--{each}" for each in ("repeat", "resume", "record", "replay", "report")]),
        ("agentv-ci eval --output-format y", ["plain,yaml"]),
        ("agentv-ci eval ev", ["file,ev"]),
        ("agentv-ci eval --targets tar", ["file,tar"]),
    ],
)
def test_shell_completes_commands_options_and_files(words: str, completed: list[str], tmp_path: Path) -> None:
    env = {"_AGENTV_CI_COMPLETE": "bash_complete", "COMP_WORDS": words, "COMP_CWORD": str(len(words.split()) - 1)}
    done = run_process(cwd=tmp_path, env=env)
    assert (done.out.splitlines(), done.err) == (completed, "")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_shell_gets_a_script(shell: str, tmp_path: Path) -> None:
    assert "agentv_ci_completion" in run_process(cwd=tmp_path, env={"_AGENTV_CI_COMPLETE": f"{shell}_source"}).out


def test_commands_run_in_other_threads() -> None:
    """Only the main thread can handle signals."""
    with ThreadPoolExecutor() as threads:
        assert threads.submit(run, ["schema"]).result() == 0
