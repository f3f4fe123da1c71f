"""Tests of real programs are left out only while nothing that they read has changed."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.real_programs import GROUPS, Group, digest_of, group_of
from tests.support import REPOSITORY, write

pytest_plugins = ("pytester",)

FILES = {"tests/x/test_a.py": "a", "tests/x/data/b.txt": "b", "in/c.py": "c", "in/deep/d.py": "d", "out/e.py": "e"}
GROUP = Group(("tests/x",), ("in/**/*",))


@pytest.mark.parametrize(
    ("changed", "counts"),
    [
        ({"tests/x/test_a.py": "A"}, True),
        ({"tests/x/data/b.txt": "B"}, True),
        ({"in/deep/d.py": "D"}, True),
        ({"in/new.py": ""}, True),
        ({"out/e.py": "E"}, False),
        ({"in/__pycache__/c.pyc": "x"}, False),
    ],
)
def test_digest_is_of_what_the_tests_read(changed: dict[str, str], counts: bool, tmp_path: Path) -> None:
    write(tmp_path, FILES)
    before = digest_of(GROUP, tmp_path)
    write(tmp_path, changed)
    assert (digest_of(GROUP, tmp_path) != before) is counts


@pytest.mark.parametrize("name", GROUPS)
def test_all_inputs_exist(name: str) -> None:
    group = GROUPS[name]
    assert [pattern for pattern in (*group.tests, *group.inputs) if not [*REPOSITORY.glob(pattern)]] == []
    assert [group_of(REPOSITORY / tests) for tests in group.tests] == [name] * len(group.tests)


def test_other_tests_are_in_no_group() -> None:
    assert group_of(REPOSITORY / "tests" / "test_corpus.py") is None


def test_what_is_left_out_is_said(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.conftest.unchanged", lambda: frozenset({"act"}))
    monkeypatch.setattr("tests.conftest.group_of", lambda path: "act" if path.name == "test_act.py" else None)
    test = "def test(): pass"
    conftest = (
        "from tests.conftest import (pytest_addoption, pytest_collection_modifyitems, pytest_configure,\n"
        "    pytest_configure_node, pytest_sessionfinish, pytest_terminal_summary)\n"
    )
    ini = "[pytest]\ntestpaths = tests\nmarkers = act\n"
    write(
        pytester.path, {"conftest.py": conftest, "tests/test_act.py": test, "tests/test_b.py": test, "pytest.ini": ini}
    )
    whole = pytester.runpytest("-p", "no:cacheprovider")
    whole.assert_outcomes(passed=1, deselected=1)
    whole.stdout.fnmatch_lines(["left out: tests of act*make test-real"])
    pytester.runpytest("-p", "no:cacheprovider", "tests/test_act.py").assert_outcomes(passed=1)
