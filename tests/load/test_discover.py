"""Which files paths match, and which documents belong to an eval file."""

from __future__ import annotations

from pathlib import Path

import pytest

from agentv_ci.errors import UsageError
from agentv_ci.load.discover import discover, find_configs, find_dotenv, find_root, find_targets
from agentv_ci.load.files import with_dotenv
from tests.support import write

NAMES = [
    *("a.yaml", "b.txt", "c[1].yaml", "c1.yaml", "evals/one.test.yml", "evals/deep/two.yaml", "evals/.hidden/x.yaml"),
    *("evals/.agentv/targets.yaml", "node_modules/x.yaml", "env/pyvenv.cfg", "env/x.yaml", "x.yaml/y.yaml"),
    *(".github/x.yaml", "__pycache__/x.yaml", "venv/x.yaml"),
]
BELOW = ["evals/one.test.yml", "evals/.agentv/targets.yaml", "evals/deep/two.yaml"]


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    write(tmp_path, dict.fromkeys(NAMES, ""))
    (tmp_path / "evals" / "loop").symlink_to(".")
    return tmp_path


@pytest.mark.parametrize(
    ("patterns", "expected"),
    [
        (["."], ["a.yaml", "c1.yaml", "c[1].yaml", *BELOW, "x.yaml/y.yaml"]),
        (["evals/deep/two.yaml", "a.yaml", "./a.yaml", "evals"], ["evals/deep/two.yaml", "a.yaml", *BELOW[:2]]),
        (["evals/**/*.yaml"], ["evals/deep/two.yaml"]),
        (["**/*.yaml"], ["a.yaml", "c1.yaml", "c[1].yaml", "env/x.yaml", "evals/deep/two.yaml", "x.yaml/y.yaml"]),
        (["node_modules/*.yaml"], ["node_modules/x.yaml"]),
        (["eval?"], BELOW),
        (["c[1].yaml"], ["c[1].yaml"]),
        (["c[0-9].yaml"], ["c1.yaml"]),
        (["b.txt"], ["b.txt"]),
        (["*.txt", "nothing*.yaml"], []),
    ],
    ids=str,
)
def test_files_are_found_in_order_and_once(tree: Path, patterns: list[str], expected: list[str]) -> None:
    found = [str(each.path.relative_to(tree)) for each in discover(patterns, tree)]
    assert found == expected


def test_only_exact_paths_are_named(tree: Path) -> None:
    found = {each.path.name: each.named for each in discover(["a*.yaml", "evals", "evals/one.test.yml"], tree)}
    assert found == {"a.yaml": False, "one.test.yml": True, "targets.yaml": False, "two.yaml": False}


def test_missing_paths_are_usage_errors(tree: Path) -> None:
    with pytest.raises(UsageError, match=r"^path 'evals/' does not exist$") as error:
        discover(["evals/"], tree / "evals")
    assert error.value.hint == "create an example with `agentv-ci init`"
    with pytest.raises(UsageError, match=r"^path 'gone\.yaml' does not exist$"):
        discover(["gone.yaml", "a.yaml"], tree)
    with pytest.raises(
        UsageError, match=r"^path 'evals/one\.yaml' \(did you mean 'evals/one\.test\.yml'\?\) does not exist$"
    ):
        discover(["evals/one.yaml"], tree)
    with pytest.raises(UsageError, match=r"^paths 'gone', 'a{300}', 'a\0b' do not exist$"):
        discover(["gone", "a" * 300, "a\0b"], tree)


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
def test_targets_file_is_searched_upwards_then_in_the_cwd(
    tmp_path: Path, files: list[str], expected: str | None
) -> None:
    write(tmp_path, dict.fromkeys(files, ""))
    found = find_targets(tmp_path / "a" / "b" / "x.yaml", tmp_path, tmp_path / "cwd")
    assert found == (tmp_path / expected if expected else None)


def test_files_above_the_repository_are_not_used(tmp_path: Path) -> None:
    write(tmp_path, {"targets.yaml": "", ".env": "", ".agentv/config.yaml": "", "repository/.git/HEAD": ""})
    path, root = tmp_path / "repository" / "x.yaml", tmp_path / "repository"
    assert find_root(path, tmp_path) == root
    assert (find_targets(path, root, root), find_dotenv(path, root, root), find_configs(path, root)) == (None, None, ())


def test_config_files_are_nearest_first(tmp_path: Path) -> None:
    write(tmp_path, {"a/.agentv.yaml": "", "a/.agentv/config.yaml": "", ".agentv/config.yaml": "", ".agentv.yaml": ""})
    found = [str(path.relative_to(tmp_path)) for path in find_configs(tmp_path / "a" / "x.yaml", tmp_path)]
    assert found == ["a/.agentv.yaml", "a/.agentv/config.yaml", ".agentv/config.yaml"]


def test_dotenv_does_not_override_and_the_first_file_wins(tmp_path: Path) -> None:
    write(tmp_path, {"a/.env": "X=a\nY='va$lue'\nEMPTY=\n", "b/.env": "X=b\nZ=b # comment\nNAKED\n"})
    assert find_dotenv(tmp_path / "a/x.yaml", tmp_path, tmp_path) == tmp_path / "a/.env"
    merged = with_dotenv({"HOME": "/home", "Z": "process"}, [tmp_path / "a" / ".env", tmp_path / "b" / ".env"])
    assert merged == {"HOME": "/home", "X": "a", "Y": "va$lue", "EMPTY": "", "Z": "process"}


def test_dotenv_that_is_not_text_is_a_usage_error(tmp_path: Path) -> None:
    (tmp_path / ".env").write_bytes(b"X=\xff\xfe\n")
    with pytest.raises(UsageError, match="cannot read"):
        with_dotenv({}, [tmp_path / ".env"])
