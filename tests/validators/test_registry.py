"""Validators are found by key; one that fails is an error of its own."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agentv_ci import validators
from agentv_ci.validators import apply_validator, get_validator, list_validators, register_validator
from agentv_ci.validators.builtin import BUILT_IN
from tests.support import write
from tests.validators.builders import report, run

NOTHING: dict[str, Any] = {"issues": [], "summary": {}}
ISSUE = {"id": "own_issue", "severity": "error", "message": "no", "path": ["runs", "0"]}


@pytest.fixture(autouse=True)
def registered(monkeypatch: pytest.MonkeyPatch) -> None:
    """Undo what a test registers."""
    monkeypatch.setattr(validators, "_registered", {})


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Install the package `own_checks` with this code, which provides validators."""

    def installed(code: str, **entry_points: str) -> None:
        lines = [f"{name} = {value}" for name, value in entry_points.items()]
        info = "own_checks-1.0.dist-info"
        files = {
            "own_checks.py": code,
            f"{info}/METADATA": "Metadata-Version: 2.1\nName: own_checks\nVersion: 1.0\n",
            f"{info}/entry_points.txt": "\n".join(["[agentv_ci.validators]", *lines, ""]),
        }
        write(tmp_path, files)
        monkeypatch.syspath_prepend(str(tmp_path))
        sys.modules.pop("own_checks", None)

    return installed


def returning(value: Any) -> Any:
    def own(report: Any, context: Any = None) -> Any:
        return value

    return own


def raising(error: BaseException) -> Any:
    def own(report: Any, context: Any = None) -> Any:
        raise error

    return own


def applied(fn: Any) -> dict[str, Any]:
    """The result of a validator of this process."""
    register_validator("own", fn)
    return apply_validator("own", {}, None)


def test_built_in_validators_are_those_of_the_contract() -> None:
    assert list_validators() == sorted(BUILT_IN) == [*BUILT_IN]
    settings = {"metric_path": "metrics.score"}
    for key in BUILT_IN:
        validate = get_validator(key)
        assert validate.__module__ == f"agentv_ci.validators.builtin.{key}"
        expected = {"validator": key, **validate(report(run(), "no run"), settings)}
        assert apply_validator(key, report(run(), "no run"), settings) == expected


@pytest.mark.parametrize(("key", "keys"), [("own", [*BUILT_IN, "own"]), ("outlier_detection", BUILT_IN)])
def test_registered_validator_is_known_and_replaces_a_built_in_one(key: str, keys: list[str]) -> None:
    fn = returning(NOTHING)
    register_validator(key, fn)
    assert get_validator(key) is fn
    assert list_validators() == sorted(keys)


@pytest.mark.parametrize(
    ("key", "fn", "exception"),
    [("", print, ValueError), (None, print, TypeError), (5, print, TypeError), ("own", "print", TypeError)],
)
def test_invalid_validator_cannot_be_registered(key: Any, fn: Any, exception: type[Exception]) -> None:
    with pytest.raises(exception, match="validator"):
        register_validator(key, fn)
    assert list_validators() == [*BUILT_IN]


def test_unknown_validator_is_a_key_error_with_a_suggestion() -> None:
    said = r"unknown validator 'outliers_detection' \(did you mean 'outlier_detection'\?\)"
    with pytest.raises(KeyError, match=said):
        get_validator("outliers_detection")
    error = f"unknown validator 'nonsense'; validators are {', '.join(BUILT_IN)}"
    assert apply_validator("nonsense", {}, None) == {"validator": "nonsense", "error": error}


def test_validator_of_a_package_is_known(install: Callable[..., None]) -> None:
    code = "def check(report, context=None):\n    return {'issues': [], 'summary': {'runs': len(report['runs'])}}\n"
    install(code, own_check="own_checks:check", outlier_detection="own_checks:check")
    assert list_validators() == sorted([*BUILT_IN, "own_check"])
    summary = {"validator": "own_check", "issues": [], "summary": {"runs": 1}}
    assert apply_validator("own_check", report(run()), {}) == summary
    assert get_validator("outlier_detection").__module__ == "agentv_ci.validators.builtin.outlier_detection"
    fn = returning(NOTHING)
    register_validator("own_check", fn)
    assert get_validator("own_check") is fn


@pytest.mark.parametrize(
    ("code", "value", "error"),
    [
        ("raise RuntimeError('no licence')", "own_checks:check", "cannot be loaded: RuntimeError: no licence"),
        ("raise SystemExit(3)", "own_checks:check", "cannot be loaded: SystemExit: 3"),
        ("", "own_checks:check", "cannot be loaded: AttributeError: module 'own_checks' has no attribute 'check'"),
        ("", "not_there:check", "cannot be loaded: ModuleNotFoundError: No module named 'not_there'"),
        ("check = 5", "own_checks:check", "cannot be loaded: TypeError: a validator must be callable, not int"),
        ("def check():\n    pass", "own_checks:check", "unexpected TypeError: check() takes 0 positional arguments"),
    ],
)
def test_broken_validator_of_a_package_is_an_error(
    install: Callable[..., None], code: str, value: str, error: str
) -> None:
    install(code, own_check=value)
    found = apply_validator("own_check", {}, None)
    assert [*found] == ["validator", "error"]
    assert str(found["error"]).startswith(error)


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (ValueError("no"), "unexpected ValueError: no"),
        (SystemExit("no"), "unexpected SystemExit: no"),
        (KeyError("no"), "unexpected KeyError: 'no'"),
        (ValueError("\ud800"), "unexpected ValueError: \ufffd"),
    ],
)
def test_validator_that_raises_is_an_error(error: BaseException, said: str) -> None:
    assert applied(raising(error)) == {"validator": "own", "error": said}


def test_long_errors_are_shortened() -> None:
    assert len(applied(raising(ValueError("x" * 100_000)))["error"]) == 2000


def test_interrupt_is_not_an_error_of_a_validator() -> None:
    with pytest.raises(KeyboardInterrupt):
        applied(raising(KeyboardInterrupt()))


def cycle() -> Any:
    found: dict[str, Any] = {"issues": [], "summary": {}}
    found["summary"]["self"] = found
    return found


def deep() -> Any:
    value: Any = {}
    for _ in range(100_000):
        value = {"a": value}
    return {"issues": [], "summary": value}


OTHERS: list[Any] = [None, "text", {}]
CHANGES: list[dict[str, Any]] = [
    *({"id": 5}, {"severity": "fatal"}, {"severity": ["error"]}, {"message": None}),
    *({"path": "runs.0"}, {"path": ["runs", 0]}, {"path": {}}),
]


@pytest.mark.parametrize(
    "returned",
    [
        *(None, [], {"issues": []}, {"summary": {}}, {"issues": {}, "summary": {}}, {"issues": [], "summary": []}),
        *({**NOTHING, "summary": summary} for summary in ({"at": object()}, {(1, 2): 3}, {"digits": 10**5000})),
        *(cycle(), deep()),
        *({**NOTHING, "issues": [ISSUE, each]} for each in OTHERS),
        *({**NOTHING, "issues": [ISSUE, {**ISSUE, **change}]} for change in CHANGES),
    ],
)
def test_result_of_another_form_is_an_error(returned: Any) -> None:
    found = applied(returning(returned))
    assert [*found] == ["validator", "error"]
    assert str(found["error"]).startswith("invalid result: ")


class Text(str):
    """A subclass of str."""

    __slots__ = ()


def test_result_is_plain_json() -> None:
    issue = {"id": Text("own"), "severity": "info", "message": "\ud800", "more": 1}
    summary = {1: float("nan"), "mean": (1, float("inf"))}
    found = applied(returning({"issues": (issue, ISSUE), "summary": summary, "elapsed": 5}))
    plain = {"id": "own", "severity": "info", "message": "\ufffd", "path": None}
    assert found == {"validator": "own", "issues": [plain, ISSUE], "summary": {"1": None, "mean": [1, None]}}
    assert type(found["issues"][0]["id"]) is str
