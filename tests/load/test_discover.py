"""Which files are meant, and which documents belong to them."""

from __future__ import annotations

from pathlib import Path

import pytest

from agentv_ci.errors import UsageError
from agentv_ci.load.discover import discover, find_configs, find_dotenv, find_root, find_targets
from agentv_ci.load.files import with_dotenv
from tests.support import write

TREE = {
    "a.yaml": "",
    "b.txt": "",
    "evals/one.test.yml": "",
    "evals/deep/two.yaml": "",
    "evals/.agentv/targets.yaml": "",
    "evals/.hidden/x.yaml": "",
    "node_modules/x.yaml": "",
    "env/pyvenv.cfg": "",
    "env/x.yaml": "",
}


def names(tmp_path: Path, *patterns: str) -> list[str]:
    return [str(found.path.relative_to(tmp_path)) for found in discover(patterns, tmp_path)]


def test_folders_are_walked_but_not_those_that_hold_nothing_of_ours(tmp_path: Path) -> None:
    write(tmp_path, TREE)
    assert names(tmp_path, ".") == [
        "a.yaml",
        "evals/one.test.yml",
        "evals/.agentv/targets.yaml",
        "evals/deep/two.yaml",
    ]


def test_paths_come_in_order_and_once(tmp_path: Path) -> None:
    write(tmp_path, TREE)
    assert names(tmp_path, "evals/deep/two.yaml", "a.yaml", "./a.yaml", "evals") == [
        "evals/deep/two.yaml",
        "a.yaml",
        "evals/one.test.yml",
        "evals/.agentv/targets.yaml",
    ]


def test_globs_match_at_any_depth_and_folders_in_them_are_walked(tmp_path: Path) -> None:
    write(tmp_path, TREE)
    assert names(tmp_path, "evals/**/*.yaml") == ["evals/deep/two.yaml"]
    assert names(tmp_path, "eval?") == ["evals/one.test.yml", "evals/.agentv/targets.yaml", "evals/deep/two.yaml"]
    assert names(tmp_path, "nothing*.yaml") == []


def test_only_what_was_written_out_is_named(tmp_path: Path) -> None:
    write(tmp_path, TREE)
    found = {each.path.name: each.named for each in discover(["*.yaml", "evals", "evals/one.test.yml"], tmp_path)}
    assert found == {"a.yaml": False, "one.test.yml": True, "targets.yaml": False, "two.yaml": False}


def test_a_path_that_does_not_exist_is_a_usage_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"path 'gone\.yaml' does not exist"):
        discover(["gone.yaml"], tmp_path)


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        (["a/b/targets.yaml", "a/targets.yaml"], "a/b/targets.yaml"),
        (["a/b/targets.yml", "a/b/.agentv/targets.yaml"], "a/b/targets.yml"),
        (["a/b/.agentv/targets.yml", "a/targets.yaml"], "a/b/.agentv/targets.yml"),
        (["a/.agentv/targets.yaml", "targets.yaml"], "a/.agentv/targets.yaml"),
        (["targets.yaml", "cwd/targets.yaml"], "targets.yaml"),
        (["cwd/.agentv/targets.yml"], "cwd/.agentv/targets.yml"),
        ([], None),
    ],
)
def test_targets_are_looked_for_upwards_then_in_the_working_directory(
    tmp_path: Path, files: list[str], expected: str | None
) -> None:
    write(tmp_path, dict.fromkeys(files, ""))
    found = find_targets(tmp_path / "a" / "b" / "x.yaml", tmp_path, tmp_path / "cwd")
    assert found == (tmp_path / expected if expected else None)


def test_nothing_above_the_repository_is_looked_at(tmp_path: Path) -> None:
    write(tmp_path, {"targets.yaml": "", ".env": "", ".agentv/config.yaml": "", "repository/.git/HEAD": ""})
    path, root = tmp_path / "repository" / "x.yaml", tmp_path / "repository"
    assert find_root(path, tmp_path) == root
    assert find_targets(path, root, root) is None
    assert find_dotenv(path, root, root) is None
    assert find_configs(path, root) == ()


def test_configs_come_nearest_first(tmp_path: Path) -> None:
    write(tmp_path, {"a/.agentv.yaml": "", "a/.agentv/config.yaml": "", ".agentv/config.yaml": "", ".agentv.yaml": ""})
    found = [str(path.relative_to(tmp_path)) for path in find_configs(tmp_path / "a" / "x.yaml", tmp_path)]
    assert found == ["a/.agentv.yaml", "a/.agentv/config.yaml", ".agentv/config.yaml"]


def test_dotenv_never_overrides_and_the_first_file_wins(tmp_path: Path) -> None:
    write(tmp_path, {"a/.env": "X=a\nY='va$lue'\nEMPTY=\n", "b/.env": "X=b\nZ=b # comment\nNAKED\n"})
    merged = with_dotenv({"HOME": "/home", "Z": "process"}, [tmp_path / "a" / ".env", tmp_path / "b" / ".env"])
    assert merged == {"HOME": "/home", "X": "a", "Y": "va$lue", "EMPTY": "", "Z": "process"}


def test_a_dotenv_that_is_not_text_is_a_usage_error(tmp_path: Path) -> None:
    (tmp_path / ".env").write_bytes(b"X=\xff\xfe\n")
    with pytest.raises(UsageError, match="cannot read"):
        with_dotenv({}, [tmp_path / ".env"])
