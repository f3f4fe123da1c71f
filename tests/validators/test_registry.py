"""Validators are found by their key, whoever brings them; one that breaks is an error and nothing more."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from agentv_ci import validators
from agentv_ci.validators import apply_validator, get_validator, list_validators, register_validator
from agentv_ci.validators.builtin import BUILT_IN
from tests.support import write
from tests.validators.builders import report, run

NOTHING: dict[str, Any] = {"issues": [], "summary": {}}


@pytest.fixture(autouse=True)
def registered(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a test registers is gone with it."""
    monkeypatch.setattr(validators, "_registered", {})


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of installed packages."""
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path


def install(site: Path, *, code: str, module: str = "own_checks", **entry_points: str) -> None:
    """Install a package that brings validators."""
    lines = [f"{name} = {value}" for name, value in entry_points.items()]
    info = f"{module}-1.0.dist-info"
    write(
        site,
        {
            f"{module}.py": code,
            f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {module}\nVersion: 1.0\n",
            f"{info}/entry_points.txt": "\n".join(["[agentv_ci.validators]", *lines, ""]),
        },
    )
    sys.modules.pop(module, None)


def returning(value: Any) -> Any:
    def own(report: Any, context: Any = None) -> Any:
        return value

    return own


def test_built_in_validators_are_those_of_the_contract() -> None:
    assert list_validators() == sorted(BUILT_IN) == [*BUILT_IN]
    for key in BUILT_IN:
        assert get_validator(key).__module__ == f"agentv_ci.validators.builtin.{key}"
    assert get_validator("outlier_detection")({}, None)["issues"] == []


def test_registered_validator_is_known() -> None:
    fn = returning(NOTHING)
    register_validator("own", fn)
    assert get_validator("own") is fn
    assert list_validators() == sorted([*BUILT_IN, "own"])


def test_registered_validator_replaces_a_built_in_one() -> None:
    fn = returning(NOTHING)
    register_validator("outlier_detection", fn)
    assert get_validator("outlier_detection") is fn
    assert list_validators() == [*BUILT_IN]


@pytest.mark.parametrize(
    ("key", "fn", "exception"),
    [("", print, ValueError), (None, print, TypeError), (5, print, TypeError), ("own", "print", TypeError)],
)
def test_what_is_no_validator_cannot_be_registered(key: Any, fn: Any, exception: type[Exception]) -> None:
    with pytest.raises(exception, match="validator"):
        register_validator(key, fn)
    assert list_validators() == [*BUILT_IN]


def test_unknown_validator_is_a_key_error_with_a_suggestion() -> None:
    with pytest.raises(
        KeyError, match=r"unknown validator 'outliers_detection' \(did you mean 'outlier_detection'\?\)"
    ):
        get_validator("outliers_detection")


def test_validator_of_a_package_is_known(site: Path) -> None:
    code = "def check(report, context=None):\n    return {'issues': [], 'summary': {'runs': len(report['runs'])}}\n"
    install(site, code=code, own_check="own_checks:check")
    assert "own_check" in list_validators()
    assert get_validator("own_check").__module__ == "own_checks"
    applied = apply_validator("own_check", report(run()), {})
    assert applied == {"validator": "own_check", "issues": [], "summary": {"runs": 1}}


def test_validator_of_a_package_does_not_replace_a_built_in_one(site: Path) -> None:
    install(site, code="check = None", outlier_detection="own_checks:check")
    assert get_validator("outlier_detection").__module__ == "agentv_ci.validators.builtin.outlier_detection"
    assert list_validators() == [*BUILT_IN]


def test_registered_validator_replaces_that_of_a_package(site: Path) -> None:
    install(site, code="raise RuntimeError", own_check="own_checks:check")
    register_validator("own_check", returning(NOTHING))
    assert apply_validator("own_check", {}, None) == {"validator": "own_check", **NOTHING}


@pytest.mark.parametrize(
    ("code", "value", "error"),
    [
        ("raise RuntimeError('no licence')", "own_checks:check", "cannot be loaded: RuntimeError: no licence"),
        ("raise SystemExit(3)", "own_checks:check", "cannot be loaded: SystemExit: 3"),
        ("", "own_checks:check", "cannot be loaded: AttributeError: module 'own_checks' has no attribute 'check'"),
        ("", "not_there:check", "cannot be loaded: ModuleNotFoundError: No module named 'not_there'"),
        ("raise KeyError('x')", "own_checks:check", "cannot be loaded: KeyError: 'x'"),
        ("check = 5", "own_checks:check", "cannot be loaded: TypeError: a validator must be callable, not int"),
        ("def check():\n    pass", "own_checks:check", "unexpected TypeError: check() takes 0 positional arguments"),
    ],
)
def test_validator_of_a_package_that_is_broken_is_an_error(site: Path, code: str, value: str, error: str) -> None:
    install(site, code=code, own_check=value)
    applied = apply_validator("own_check", {}, None)
    assert [*applied] == ["validator", "error"]
    assert str(applied["error"]).startswith(error)


def test_unknown_validator_is_an_error() -> None:
    assert apply_validator("nonsense", {}, None) == {
        "validator": "nonsense",
        "error": f"unknown validator 'nonsense'; validators are {', '.join(BUILT_IN)}",
    }


@pytest.mark.parametrize("key", BUILT_IN)
def test_built_in_validator_is_applied(key: str) -> None:
    settings = {"metric_path": "metrics.score"}
    applied = apply_validator(key, report(run(), "no run"), settings)
    assert applied == {"validator": key, **get_validator(key)(report(run(), "no run"), settings)}


@pytest.mark.parametrize("error", [ValueError("no"), RecursionError("no"), SystemExit("no"), KeyError("no")])
def test_validator_that_raises_is_an_error(error: BaseException) -> None:
    def broken(report: Any, context: Any = None) -> Any:
        raise error

    register_validator("own", broken)
    applied = apply_validator("own", {}, None)
    assert applied == {"validator": "own", "error": f"unexpected {type(error).__name__}: {error}"}


def test_error_is_short_and_can_be_written() -> None:
    def broken(report: Any, context: Any = None) -> Any:
        raise ValueError("\ud800" + "x" * 100_000)

    register_validator("own", broken)
    error = str(apply_validator("own", {}, None)["error"])
    assert error.startswith("unexpected ValueError: \ufffdxxx")
    assert len(error) == 2000


def test_interrupt_is_not_taken_for_a_broken_validator() -> None:
    def interrupted(report: Any, context: Any = None) -> Any:
        raise KeyboardInterrupt

    register_validator("own", interrupted)
    with pytest.raises(KeyboardInterrupt):
        apply_validator("own", {}, None)


def cycle() -> Any:
    found: dict[str, Any] = {"issues": [], "summary": {}}
    found["summary"]["self"] = found
    return found


def deep() -> Any:
    value: Any = {}
    for _ in range(100_000):
        value = {"a": value}
    return {"issues": [], "summary": value}


ISSUE = {"id": "own_issue", "severity": "error", "message": "no", "path": ["runs", "0"]}


@pytest.mark.parametrize(
    "returned",
    [
        None,
        [],
        {},
        {"issues": []},
        {"summary": {}},
        {"issues": {}, "summary": {}},
        {"issues": [], "summary": []},
        {"issues": [], "summary": {"at": object()}},
        {"issues": [], "summary": {(1, 2): 3}},
        {"issues": [], "summary": {"digits": 10**5000}},
        {"issues": {"a"}, "summary": {}},
        cycle(),
        deep(),
        *(
            {"issues": [ISSUE, issue], "summary": {}}
            for issue in (
                None,
                "text",
                {},
                {**ISSUE, "id": 5},
                {**ISSUE, "severity": "fatal"},
                {**ISSUE, "severity": ["error"]},
                {**ISSUE, "message": None},
                {**ISSUE, "path": "runs.0"},
                {**ISSUE, "path": ["runs", 0]},
                {**ISSUE, "path": {}},
            )
        ),
    ],
)
def test_result_of_another_form_is_an_error(returned: Any) -> None:
    register_validator("own", returning(returned))
    applied = apply_validator("own", {}, None)
    assert [*applied] == ["validator", "error"]
    assert str(applied["error"]).startswith("invalid result: ")


class Text(str):
    """A text of a type of its own."""

    __slots__ = ()


def test_result_is_made_plain_json() -> None:
    returned = {
        "issues": ({"id": Text("own"), "severity": "info", "message": "\ud800", "more": 1},),
        "summary": {1: float("nan"), "mean": (1, float("inf"))},
        "elapsed": 5,
    }
    register_validator("own", returning(returned))
    applied = apply_validator("own", {}, None)
    assert applied == {
        "validator": "own",
        "issues": [{"id": "own", "severity": "info", "message": "\ufffd", "path": None}],
        "summary": {"1": None, "mean": [1, None]},
    }
    issues: Any = applied["issues"]
    assert type(issues[0]["id"]) is str
