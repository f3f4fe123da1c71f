"""Mistakes in a golden patch, and answers that leave things behind."""

from __future__ import annotations

from base64 import b64decode, b64encode
from typing import Any

import pytest

from agentv_ci.contracts.results import Change
from agentv_ci.prove.answers import WrittenAnswer, golden_of, leaves_all, reads_answers
from agentv_ci.prove.damaged_changes import change_mutants
from tests.prove.builders import case

LIMITS = "if a < 3:\n    b = 1\n"
TWO = {"a.py": ("x = 1\ny\nz = 2\n", "x = 7\ny\nz = 8\n")}


def golden(files: dict[str, tuple[str | bytes | None, str | bytes | None]]) -> tuple[Change, ...]:
    def change(path: str, old: object, new: str | bytes | None) -> Change:
        if new is None:
            return Change(path=path, kind="deleted")
        content = b64encode(new.encode() if isinstance(new, str) else new).decode()
        return Change(path=path, kind="added" if old is None else "modified", mode=0o644, base64=content)

    return tuple(change(path, *each) for path, each in files.items())


def mutants(files: dict[str, tuple[Any, Any]], accepted: tuple[str, ...] = ()) -> dict[str, dict[str, str | None]]:
    """Return change → path → content of each mutant."""

    def before(path: str) -> bytes | None:
        old = files[path][0]
        return old.encode() if isinstance(old, str) else old

    found = change_mutants(WrittenAnswer("done", changes=golden(files)), before, "seed", accepted)
    assert all(each.answer.text == "done" for each in found)
    return {
        each.change: {
            one.path: b64decode(one.base64).decode("latin-1") if one.base64 is not None else None
            for one in each.answer.changes or ()
        }
        for each in found
    }


@pytest.mark.parametrize(
    ("files", "found"),
    [
        (
            TWO,
            {
                "the change of a.py, line 1, is missing": {"a.py": "x = 1\ny\nz = 8\n"},
                "the change of a.py, line 3, is missing": {"a.py": "x = 7\ny\nz = 2\n"},
                "7 became 8 in a.py, line 1": {"a.py": "x = 8\ny\nz = 8\n"},
                "8 became 9 in a.py, line 3": {"a.py": "x = 7\ny\nz = 9\n"},
            },
        ),
        (
            {"new.md": (None, "1 < 2\n"), "old.md": ("gone\n", None)},
            {
                "the change of new.md is missing": {"old.md": None},
                "the change of old.md is missing": {"new.md": "1 < 2\n"},
            },
        ),
        (
            {"a.py": ("pass\n", LIMITS)},
            {
                "< became <= in a.py, line 1": {"a.py": LIMITS.replace("<", "<=")},
                "3 became 4 in a.py, line 1": {"a.py": LIMITS.replace("3", "4")},
                "1 became 2 in a.py, line 2": {"a.py": LIMITS.replace("1", "2")},
            },
        ),
        ({"a.js": ("", "if (a === b) {}\n")}, {"=== became !== in a.js, line 1": {"a.js": "if (a !== b) {}\n"}}),
        ({"a.py": ("", "a = b - c\n")}, {"- became + in a.py, line 1": {"a.py": "a = b + c\n"}}),
        ({"a.py": ("", "# 1 < 2\nsay('1 < 2')\nx1 = a-b\n")}, {}),
        ({"a.bin": (b"\0", b"\0 1 < 2")}, {}),
    ],
)
def test_mutants(files: dict[str, tuple[Any, Any]], found: dict[str, dict[str, str | None]]) -> None:
    assert mutants(files) == found


def test_accepted_mistakes_are_not_made() -> None:
    assert {*mutants(TWO, ("change-damaged",))} == {
        "the change of a.py, line 1, is missing",
        "the change of a.py, line 3, is missing",
    }


def test_a_few_of_many_are_made() -> None:
    many = {f"{number}.py": ("", f"x = {number}\n") for number in range(9)}
    assert len(mutants(many)) == 6


COMMAND = {"type": "command", "name": "command", "argv": ["true"]}
SAYS = {"type": "contains", "name": "says", "value": "done"}
GOLDEN = {"type": "diff", "name": "golden", "golden": {"path": "a.patch", "sha256": "0" * 64}}


@pytest.mark.parametrize(
    ("evaluators", "expected"),
    [
        ([COMMAND], (False, False, False)),
        ([COMMAND, SAYS], (True, False, False)),
        ([COMMAND, {"type": "latency", "name": "fast", "max_ms": 9}], (False, False, False)),
        ([SAYS, {"type": "diff", "name": "d", "max_files": 0}], (True, False, True)),
        ([SAYS, {"type": "diff", "name": "d", "may_change": []}], (True, False, True)),
        ([SAYS, {"type": "diff", "name": "d", "must_not_change": ["a"]}], (True, False, True)),
        ([SAYS, {"type": "diff", "name": "d", "may_change": ["a"]}], (True, False, False)),
        ([SAYS, {"type": "file", "name": "f", "path": "a", "unchanged": True}], (True, False, True)),
        ([SAYS, {"type": "file", "name": "f", "path": "a"}], (True, False, False)),
        ([GOLDEN], (False, True, False)),
        ([{**GOLDEN, "negate": True}], (False, False, False)),
    ],
)
def test_what_a_case_asks_for(evaluators: list[dict[str, Any]], expected: tuple[bool, bool, bool]) -> None:
    made = case("done", evaluators=evaluators)
    assert (reads_answers(made), golden_of(made) is not None, leaves_all(made)) == expected
