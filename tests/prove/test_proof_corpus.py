"""Suites that are blind in a known way, and sound ones: `corpus/KINDS.md` explains them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agentv_ci.app.documents.validate import check_paths
from agentv_ci.load.parse import parse_yaml
from tests.support import run_command

CORPUS = Path(__file__).parent / "corpus"
BLIND, SOUND = (sorted((CORPUS / name).iterdir()) for name in ("blind", "sound"))


@pytest.mark.slow
@pytest.mark.parametrize("suite", BLIND, ids=lambda path: path.name)
def test_every_way_in_which_a_suite_is_blind_is_found(suite: Path, tmp_path: Path) -> None:
    text = (suite / "expected.yaml").read_text("utf-8")
    expected: Any = parse_yaml(text).data
    proof, static = proven(suite, tmp_path)
    cases = {each["id"]: each for each in proof["cases"]}
    missed = [each for each in expected if not is_found(each, cases[each["case"]], static)]
    assert missed == []
    sound = text.splitlines()[0].removeprefix("# sound: [").removesuffix("]").split(", ")
    false = [each for each in proof["findings"] if each["case"] in sound and each["rule"] != "AV407"]
    assert false == []


@pytest.mark.slow
@pytest.mark.parametrize("suite", SOUND, ids=lambda path: path.name)
def test_nothing_is_found_in_a_sound_suite(suite: Path, tmp_path: Path) -> None:
    proof, static = proven(suite, tmp_path)
    assert [each for each in proof["findings"] if each["rule"] != "AV407"] == []
    assert static == set()


def proven(suite: Path, scratch: Path) -> tuple[Any, set[str | None]]:
    """Return the proof of a suite, and the cases of which `validate` says that they require nothing."""
    out = scratch / "proof.json"
    run_command("prove", suite, "--out", out, cwd=CORPUS)
    checks = check_paths([str(suite)], targets=None, cwd=CORPUS)
    static = {found.case for each in checks.files for found in each.diagnostics if found.rule == "AV346"}
    return json.loads(out.read_text("utf-8")), static


def is_found(expected: Any, case: Any, static: set[str | None]) -> bool:
    """Whether a finding of `expected.yaml` is in the proof of its case."""
    named = set(expected.get("evaluators", ()))
    states = {each["name"]: each for each in case["evaluators"]}
    match expected["finding"]:
        case "static":
            return expected["case"] in static
        case "null-agent":
            return any(
                each["agent"] == expected["agent"] and each["outcome"] == "passes" and named <= {*each["evaluators"]}
                for each in case["null_agents"]
            )
        case "mutant":
            return any(
                each["operator"] == expected["operator"] and named <= {*each["evaluators"]}
                for each in case["survivors"]
            )
        case "reference":
            return case["reference"] == "fails" and named <= {*case["failed_by"]}
        case "script":
            return all(states[name]["errors"] for name in named)
        case state:
            return all(states[name]["state"] == state for name in named)
