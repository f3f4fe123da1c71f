"""What files, ids and people can do to `compare`, `baseline`, `--baseline` and `check`."""

from __future__ import annotations

import json
import math
import os
from pathlib import Path
from typing import Any

import pytest

from agentv_ci.contracts.plan import PlanCase
from agentv_ci.contracts.results import ResultRow
from agentv_ci.results.files import form, form_of
from agentv_ci.validators import register_validator
from tests.analysis.test_one_verdict import BALANCED, WORSE, documents, end, folder
from tests.report.builders import Verdict, case, row, rows_of
from tests.servers.chat_api import chat_api, says
from tests.support import CommandResult, run_process, write

__all__ = ["folder"]

NASTY_IDS = {
    "escape": "a\x1b]0;owned\x07\x1b[2Jb",
    "runner": "##[error]owned",
    "command": "a\n::error::owned",
    "return": "a\r::error::owned",
    "direction": "a\u202egpj.exe",
    "unicode": "naïve-тест-测试-😀",
}
STALE = "1" * 64


def store(name: str, *rows: ResultRow) -> None:
    path = Path(name)
    path.write_text("".join(map(form(form_of(path)).encode, rows)), "utf-8")


def told(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(Path(name).read_text("utf-8"))
    return found


def accepted(capsys: pytest.CaptureFixture[str], *rows: ResultRow, **changed: Any) -> dict[str, Any]:
    """Write the baseline of rows to `base.json`, changed in some way."""
    store("base.jsonl", *rows)
    assert end(capsys, "baseline", "accept", "base.jsonl", "--out", "base.json").code == 0
    document = {**told("base.json"), **changed}
    Path("base.json").write_text(json.dumps(document), "utf-8")
    return document


def compared(capsys: pytest.CaptureFixture[str], base: str, head: str, *flags: str) -> dict[str, Any]:
    """Compare in both formats, which must agree; returns what JSON says."""
    as_text = end(capsys, "compare", base, head, *flags)
    as_json = end(capsys, "compare", base, head, "--format", "json", *flags)
    found: dict[str, Any] = json.loads(as_json.out)
    assert found["exit_code"] == as_json.code == as_text.code
    assert as_json.err == as_text.err == ""
    word = {0: "compare: no regression", 1: "compare: regressed", 4: "compare: no case has a verdict on both sides"}
    assert word[as_text.code] in as_text.out.splitlines()
    assert (as_text.code == 1) == bool(found["reasons"])
    return found


def changes(found: dict[str, Any]) -> dict[str, int]:
    return {change: number for change, number in found["counts"].items() if number}


def is_inert(text: str) -> bool:
    """Whether a text commands neither a terminal nor the runner of a workflow."""
    lines = [line.strip() for line in text.splitlines()]
    return (
        not any(line.startswith("::") for line in lines)
        and "##[" not in text
        and all(c.isprintable() or c in "\n\t" for c in text)
    )


# --- Files ---


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(b"", id="empty"),
        pytest.param(b"\x00" * 4096, id="zeros"),
        pytest.param(bytes(range(256)) * 20, id="binary"),
        pytest.param(b"null", id="null"),
        pytest.param(b"[]", id="list"),
        pytest.param(b"{}", id="nothing in it"),
        pytest.param(b"[" * 200_000, id="deep"),
        pytest.param(b'{"$schema": "agentv-baseline-v2", "cases": []}', id="another version"),
        pytest.param(b'{"$schema": ["agentv-baseline-v1"]}', id="schema is a list"),
        pytest.param(b'{"$schema": "agentv-baseline-v1"}', id="no cases"),
        pytest.param(b'{"$schema": "agentv-baseline-v1", "measured": "x", "plan_digest": null, "cases": []}', id="0"),
        pytest.param(b'{"a": ' + b"9" * 10_000 + b"}", id="a number too long"),
        pytest.param("ünïcode".encode("utf-16"), id="utf-16"),
    ],
)
@pytest.mark.parametrize("side", ["base", "head"])
def test_file_that_is_no_baseline_is_invalid_input(
    folder: Path, content: bytes, side: str, capsys: pytest.CaptureFixture[str]
) -> None:
    documents(folder, a={})
    store("good.jsonl", row())
    (folder / "bad.json").write_bytes(content)
    files = ("bad.json", "good.jsonl") if side == "base" else ("good.jsonl", "bad.json")
    ended = end(capsys, "compare", *files)
    assert (ended.code, ended.out) == (2, "")
    assert "bad.json" in ended.err
    ended = end(capsys, "eval", "evals", "--baseline", "bad.json", "--out", "r.jsonl")
    assert ended.code == 2
    assert not (folder / "r.jsonl").exists(), "nothing is asked for what cannot be compared"
    assert end(capsys, "report", "good.jsonl", "--baseline", "bad.json").code == 2


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("mean", math.nan),
        ("mean", math.inf),
        ("mean", 1.5),
        ("mean", "0.5"),
        ("mean", True),
        ("verdict", "error"),
        ("verdict", "flaky"),
        ("passed", [0]),
        ("passed", ["1"]),
        ("passed", None),
        ("digest", "x"),
        ("id", ""),
        ("id", "\ud800"),
        ("target", None),
        ("more", 1),
    ],
)
def test_baseline_with_a_wrong_value_is_refused_with_its_place(
    folder: Path, field: str, value: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    document = accepted(capsys, row())
    document["cases"][0][field] = value
    (folder / "base.json").write_text(json.dumps(document), "utf-8")
    ended = end(capsys, "compare", "base.json", "base.jsonl")
    assert ended.code == 2
    assert "is not a valid baseline: cases.0." in ended.err or "is not valid JSON" in ended.err


@pytest.mark.parametrize("command", ["base", "head", "accept", "check", "report", "eval"])
@pytest.mark.parametrize("what", ["missing", "folder", "empty", "torn", "foreign", "dangling"])
def test_results_that_are_none_are_told_and_nothing_else_happens(
    folder: Path, command: str, what: str, capsys: pytest.CaptureFixture[str]
) -> None:
    documents(folder, a={})
    store("good.jsonl", row())
    bad = folder / "bad.jsonl"
    match what:
        case "folder":
            bad.mkdir()
        case "empty":
            bad.write_text("")
        case "torn":
            bad.write_text((folder / "good.jsonl").read_text()[:-40])
        case "foreign":
            bad.write_text('{"level": "info"}\n')
        case "dangling":
            bad.symlink_to("nowhere")
        case _:
            pass
    arguments = {
        "base": ["compare", "bad.jsonl", "good.jsonl"],
        "head": ["compare", "good.jsonl", "bad.jsonl"],
        "accept": ["baseline", "accept", "bad.jsonl"],
        "check": ["check", "bad.jsonl", "--validator", "structural_consistency"],
        "report": ["report", "good.jsonl", "--baseline", "bad.jsonl"],
        "eval": ["eval", "evals", "--baseline", "bad.jsonl", "--out", "r.jsonl"],
    }[command]
    ended = end(capsys, *arguments)
    assert ended.code == (3 if what == "empty" and command not in ("report", "eval") else 2)
    assert ended.out == ""
    assert ended.err.startswith("error: ")
    assert not (folder / ".agentv").exists()
    assert not (folder / "r.jsonl").exists()


def test_results_of_a_dry_run_are_compared_with_nothing(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    documents(folder, a={})
    assert end(capsys, "eval", "evals", "--dry-run", "--out", "dry.jsonl").code == 0
    for arguments in (["compare", "dry.jsonl", "dry.jsonl"], ["baseline", "accept", "dry.jsonl"]):
        ended = end(capsys, *arguments)
        assert ended.code == 2
        assert "dry run" in ended.err


@pytest.mark.parametrize("name", ["b.jsonl", "b.yaml", "b.yml"])
def test_same_rows_give_the_same_baseline_in_whatever_order_and_form(
    folder: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    cases = [case(f"case-{number}", line=number, trials=3) for number in range(1, 9)]
    rows = [found for each in cases for found in rows_of(each, "pass", "fail", "error")]
    store("a.jsonl", *rows)
    store(name, *reversed(rows))
    for source, out in (("a.jsonl", "1.json"), (name, "2.json"), ("a.jsonl", "1.json")):
        assert end(capsys, "baseline", "accept", source, "--out", out).code == 0
    assert Path("1.json").read_bytes() == Path("2.json").read_bytes()


@pytest.mark.parametrize("target", ["base.jsonl", "link.json", "../x/base.jsonl"])
def test_baseline_never_replaces_its_results(folder: Path, target: str, capsys: pytest.CaptureFixture[str]) -> None:
    store("base.jsonl", row())
    before = Path("base.jsonl").read_bytes()
    Path("link.json").symlink_to("base.jsonl")
    ended = end(capsys, "baseline", "accept", "base.jsonl", "--out", target)
    assert ended.code == 2
    assert Path("base.jsonl").read_bytes() == before


def test_baseline_never_replaces_the_run_report(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    documents(folder, a={})
    assert end(capsys, "eval", "evals", "--out", "r.jsonl").code == 0
    before = Path("r.report.json").read_bytes()
    ended = end(capsys, "baseline", "accept", "r.jsonl", "--out", "r.report.json")
    assert Path("r.report.json").read_bytes() == before
    assert ended.code == 2


@pytest.mark.parametrize("flags", [["--out", "base.jsonl"], ["--junit", "base.jsonl"]])
def test_report_never_replaces_the_baseline(folder: Path, flags: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    documents(folder, a={})
    assert end(capsys, "eval", "evals", "--out", "r.jsonl").code == 0
    store("base.jsonl", row("pass", of=case("other")))
    before = Path("base.jsonl").read_bytes()
    ended = end(capsys, "report", "r.jsonl", "--baseline", "base.jsonl", *flags)
    assert Path("base.jsonl").read_bytes() == before
    assert ended.code == 2


@pytest.mark.parametrize("flags", [["--out", "base.jsonl"], ["--out", "r.jsonl", "--junit", "base.jsonl"]])
def test_eval_never_replaces_the_baseline(folder: Path, flags: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    documents(folder, a={})
    store("base.jsonl", row())
    before = Path("base.jsonl").read_bytes()
    assert end(capsys, "eval", "evals", "--baseline", "base.jsonl", *flags).code == 2
    assert Path("base.jsonl").read_bytes() == before


@pytest.mark.parametrize("out", ["folder.json", "base.jsonl/b.json"])
def test_baseline_that_cannot_be_written_is_no_bug(folder: Path, out: str) -> None:
    store("base.jsonl", row())
    (folder / "folder.json").mkdir()
    ended = run_process("baseline", "accept", "base.jsonl", "--out", out, cwd=folder)
    assert ended.code in (2, 4)
    assert ended.out == ""
    assert "Traceback" not in ended.err


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_folder_without_permission_is_no_bug(folder: Path) -> None:
    store("base.jsonl", row())
    (folder / "shut").mkdir(mode=0o500)
    ended = run_process("baseline", "accept", "base.jsonl", "--out", "shut/b.json", cwd=folder)
    assert ended.code in (2, 4)
    assert "Traceback" not in ended.err


def test_case_that_is_twice_in_a_baseline_is_refused(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    document = accepted(capsys, row("pass"))
    worse = {**document["cases"][0], "verdict": "fail", "passed": [], "missed": [1], "mean": 0.0}
    (folder / "base.json").write_text(json.dumps({**document, "cases": [*document["cases"], worse]}), "utf-8")
    store("head.jsonl", row("fail"))
    assert end(capsys, "compare", "base.json", "head.jsonl").code == 2


@pytest.mark.parametrize(
    "given", [{"passed": [1], "missed": [1]}, {"passed": [], "missed": []}, {"passed": [1, 1], "missed": []}]
)
def test_baseline_whose_trials_contradict_each_other_is_refused(
    folder: Path, given: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    document = accepted(capsys, row("pass"))
    (folder / "base.json").write_text(json.dumps({**document, "cases": [{**document["cases"][0], **given}]}), "utf-8")
    store("head.jsonl", row("fail"))
    assert end(capsys, "compare", "base.json", "head.jsonl").code == 2


# --- What people give ---


@pytest.mark.parametrize("confidence", ["0", "1", "-1", "nan", "inf", "x", "", "1.0000001"])
def test_confidence_that_is_none_is_a_usage_error(
    folder: Path, confidence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    store("r.jsonl", row())
    ended = end(capsys, "compare", "r.jsonl", "r.jsonl", "--confidence", confidence)
    assert (ended.code, ended.out) == (2, "")


SEVERAL = case("several", trials=5)
PASSES: tuple[Verdict, ...] = ("pass",) * 5
FAILS: tuple[Verdict, ...] = ("fail",) * 4


@pytest.mark.parametrize("confidence", ["0.5", "0.9", "0.9999"])
def test_every_confidence_gives_an_answer(folder: Path, confidence: str, capsys: pytest.CaptureFixture[str]) -> None:
    store("b.jsonl", *rows_of(SEVERAL, *PASSES))
    store("h.jsonl", *rows_of(SEVERAL, *FAILS, "pass"))
    (found,) = compared(capsys, "b.jsonl", "h.jsonl", "--confidence", confidence)["cases"]
    assert -1 <= found["low"] <= found["high"] <= 1


def test_largest_confidence_is_no_crash(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store("b.jsonl", *rows_of(SEVERAL, *PASSES))
    store("h.jsonl", *rows_of(SEVERAL, *FAILS, "pass"))
    assert end(capsys, "compare", "b.jsonl", "h.jsonl", "--confidence", "0.9999999999999999").code != 70


@pytest.mark.parametrize("flag", [["--color", "always"], ["--color", "never"], []])
def test_colour_is_never_in_json_nor_where_it_is_not_wanted(folder: Path, flag: list[str]) -> None:
    store("b.jsonl", row("pass"))
    store("h.jsonl", row("fail"))
    told = run_process("compare", "b.jsonl", "h.jsonl", *flag, cwd=folder, env={"NO_COLOR": "1"})
    assert told.code == 1
    assert ("\x1b[" in told.out) == (flag == ["--color", "always"])
    as_json = run_process("compare", "b.jsonl", "h.jsonl", "--format", "json", *flag, cwd=folder)
    assert json.loads(as_json.out)["exit_code"] == 1


# --- Ids ---


@pytest.mark.parametrize("name", ["escape", "direction", "unicode"])
def test_id_that_got_better_or_stays_commands_nothing(
    folder: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    of = case(NASTY_IDS[name])
    store("b.jsonl", row("fail", of=of))
    store("h.jsonl", row("pass", of=of))
    assert is_inert(end(capsys, "compare", "b.jsonl", "h.jsonl").out)
    found = compared(capsys, "b.jsonl", "h.jsonl")
    assert found["cases"][0]["id"] == NASTY_IDS[name]


def regressed(capsys: pytest.CaptureFixture[str], name: str) -> CommandResult:
    of = case(NASTY_IDS[name])
    store("b.jsonl", row("pass", of=of))
    store("h.jsonl", row("fail", of=of))
    return end(capsys, "compare", "b.jsonl", "h.jsonl")


def test_unicode_id_that_regressed_is_named(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert NASTY_IDS["unicode"] in regressed(capsys, "unicode").out


@pytest.mark.parametrize("name", ["escape", "runner", "command", "return", "direction"])
def test_id_that_regressed_commands_nothing(folder: Path, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert is_inert(regressed(capsys, name).out)


@pytest.mark.parametrize("name", ["escape", "runner", "command", "return"])
def test_reasons_of_the_gate_command_nothing(folder: Path, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    regressed(capsys, name)
    ended = end(capsys, "report", "h.jsonl", "--baseline", "b.jsonl")
    assert ended.code == 1
    assert is_inert(ended.out)


def test_issue_of_a_validator_commands_nothing(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("agentv_ci.validators._registered", {})
    documents(folder, a={"validators": ["own"]})
    register_validator("own", finds("off\n::error::owned\x1b[2J", "error"))
    ended = end(capsys, "eval", "evals", "--out", "r.jsonl")
    assert ended.code == 1
    assert is_inert(ended.out)


# --- Figures ---


@pytest.mark.parametrize(
    ("base", "head", "code", "change"),
    [
        ("e", "p", 4, "not enough evidence"),
        ("p", "e", 4, "not enough evidence"),
        ("e", "e", 4, "not enough evidence"),
        ("p", "f", 1, "regressed"),
        ("p", "b", 1, "regressed"),
        ("b", "f", 1, "regressed"),
        ("f", "p", 0, "improved"),
        ("p", "p", 0, None),
        ("pp", "pf", 0, "not enough evidence"),
        ("ppppp", "fffff", 1, "regressed"),
        ("p", "fffff", 0, "not enough evidence"),
        ("eep", "eef", 0, "not enough evidence"),
    ],
)
def test_one_case_changes_as_the_table_says(
    folder: Path, base: str, head: str, code: int, change: str | None, capsys: pytest.CaptureFixture[str]
) -> None:
    letters: dict[str, Any] = {"p": "pass", "b": "borderline", "f": "fail", "e": "error"}
    for name, word in (("b.jsonl", base), ("h.jsonl", head)):
        store(name, *rows_of(case(trials=len(word)), *(letters[each] for each in word)))
    found = compared(capsys, "b.jsonl", "h.jsonl")
    assert found["exit_code"] == code
    assert changes(found) == {change or "unchanged": 1}


def test_errors_beside_a_trial_that_passes_are_no_regression(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store("b.jsonl", row("pass"))
    store("h.jsonl", *rows_of(case(trials=3), "pass", "error", "error"))
    assert "regressed" not in changes(compared(capsys, "b.jsonl", "h.jsonl"))


def test_reason_tells_two_means_apart(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cases = [case(f"case-{number}") for number in range(10)]
    store("b.jsonl", *(row("pass", 0.9001, of=each) for each in cases))
    store("h.jsonl", *(row("pass", 0.9, of=each) for each in cases))
    (reason,) = compared(capsys, "b.jsonl", "h.jsonl")["reasons"]
    before, now = reason.partition(": ")[2].partition(" (")[0].split(" → ")
    assert before != now


@pytest.mark.parametrize(
    "measured", ["0001-01-01T00:00:00+23:59", "9999-12-31T23:59:59-23:59", "yesterday", "", "2030"]
)
def test_moment_that_is_none_stops_nothing(folder: Path, measured: str, capsys: pytest.CaptureFixture[str]) -> None:
    accepted(capsys, row(), measured=measured)
    found = compared(capsys, "base.json", "base.jsonl")
    assert found["exit_code"] == 0
    assert all("days old" in warning for warning in found["warnings"])


def test_case_that_changed_is_marked(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store("b.jsonl", row("pass"))
    store("h.jsonl", row("fail", digest=STALE))
    found = compared(capsys, "b.jsonl", "h.jsonl")
    assert found["cases"][0]["stale"]
    assert "with a digest that b.jsonl has not" in found["warnings"][0]


def test_other_target_on_the_newer_side_is_what_is_compared(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store("b.jsonl", row("pass", target="x"))
    store("h.jsonl", row("fail", target="y"))
    assert changes(compared(capsys, "b.jsonl", "h.jsonl")) == {"regressed": 1}


def test_several_targets_are_matched_by_their_names(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store("b.jsonl", row("pass", target="x"), row("pass", target="y"))
    store("h.jsonl", row("pass", target="x"), row("fail", target="y"), row("pass", target="z"))
    assert changes(compared(capsys, "b.jsonl", "h.jsonl")) == {"regressed": 1, "unchanged": 1, "new": 1}


def test_same_id_in_two_suites_is_two_cases(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one, other = case("same", suite="evals/a.yaml"), case("same", suite="evals/b.yaml")
    store("b.jsonl", row("pass", of=one), row("fail", of=other))
    store("h.jsonl", row("fail", of=one), row("pass", of=other))
    assert changes(compared(capsys, "b.jsonl", "h.jsonl")) == {"regressed": 1, "improved": 1}


def test_case_of_one_target_a_side_is_compared_beside_one_of_several(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    both, single = case("both"), case("single", suite="evals/b.yaml")
    store("b.jsonl", row(of=both, target="x"), row(of=both, target="y"), row("pass", of=single, target="x"))
    store("h.jsonl", row(of=both, target="x"), row(of=both, target="y"), row("fail", of=single, target="y"))
    assert changes(compared(capsys, "b.jsonl", "h.jsonl")) == {"regressed": 1, "unchanged": 2}


def test_ten_thousand_cases_are_compared(folder: Path) -> None:
    cases: list[PlanCase] = [case(f"case-{number}", line=number) for number in range(1, 10_001)]
    store("b.jsonl", *(row("pass", of=each) for each in cases))
    store("h.jsonl", *(row("pass" if number % 10 else "fail", of=each) for number, each in enumerate(cases)))
    ended = run_process("compare", "b.jsonl", "h.jsonl", cwd=folder)
    assert ended.code == 1
    assert "1000 cases regressed" in ended.out
    assert len(ended.out.splitlines()) < 30


# --- With the other flags of `eval` ---


def gate_of(name: str) -> dict[str, Any]:
    found: dict[str, Any] = told(name)["gate"]
    return found


def worse_than_main(folder: Path, capsys: pytest.CaptureFixture[str], cases: int = 4) -> None:
    """Leave the baseline of a run that passed, and documents that no longer pass and whose gate does not mind."""
    names = [f"case-{number}" for number in range(cases)]
    documents(folder, a={"cases": {name: {} for name in names}})
    assert end(capsys, "eval", "evals", "--out", "main.jsonl").code == 0
    assert end(capsys, "baseline", "accept", "main.jsonl", "--out", "main.json").code == 0
    documents(folder, a={"cases": dict.fromkeys(names, WORSE), "gate": {"min_pass_rate": 0}})


@pytest.mark.parametrize("base", ["main.json", "main.jsonl"])
def test_regression_fails_a_gate_that_is_otherwise_content(
    folder: Path, base: str, capsys: pytest.CaptureFixture[str]
) -> None:
    worse_than_main(folder, capsys)
    assert end(capsys, "eval", "evals", "--out", "r.jsonl").code == 0
    assert end(capsys, "eval", "evals", "--out", "r.jsonl", "--baseline", base).code == 1
    assert gate_of("r.report.json")["reasons"][0].startswith(f"against {base}: 4 cases regressed")
    assert end(capsys, "compare", base, "r.jsonl").code == 1
    assert end(capsys, "report", "r.jsonl", "--baseline", base).code == 1


def test_regression_in_shards_is_judged_by_report(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    worse_than_main(folder, capsys)
    for index in (1, 2):
        shard = ["--shard", f"{index}/2", "--out", f"{index}.jsonl", "--baseline", "main.json"]
        assert end(capsys, "eval", "evals", *shard).code == 0
    forgotten = end(capsys, "report", "1.jsonl", "2.jsonl")
    assert forgotten.code == 1
    assert "set --baseline" in " ".join(forgotten.out.split())
    whole = end(capsys, "report", "1.jsonl", "2.jsonl", "--baseline", "main.json", "--out", "all.jsonl")
    assert whole.code == 1
    assert gate_of("all.report.json")["reasons"][0].startswith("against main.json: 4 cases regressed")


def test_dry_run_is_compared_with_nothing(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    worse_than_main(folder, capsys)
    assert end(capsys, "eval", "evals", "--dry-run", "--baseline", "main.json", "--out", "r.jsonl").code == 0
    assert told("r.report.json")["comparison"] is None


def test_resumed_run_is_compared_as_a_whole(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    worse_than_main(folder, capsys)
    assert end(capsys, "eval", "evals", "--out", "r.jsonl", "--eval-id", "case-0").code == 0
    assert end(capsys, "eval", "evals", "--resume", "r.jsonl", "--baseline", "main.json").code == 1
    assert told("r.report.json")["comparison"]["counts"]["regressed"] == 4


def test_run_that_stopped_is_compared_as_far_as_it_came(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    worse_than_main(folder, capsys)
    ended = end(capsys, "eval", "evals", "--fail-fast", "--out", "r.jsonl", "--baseline", "main.json")
    assert ended.code == 1
    counts = told("r.report.json")["comparison"]["counts"]
    assert (counts["regressed"], counts["not enough evidence"]) == (1, 3)
    assert end(capsys, "baseline", "accept", "r.jsonl").code == 2


def test_nothing_that_changed_is_no_regression(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    worse_than_main(folder, capsys)
    assert end(capsys, "compile", "evals", "--out", "plan.json").code == 0
    flags = ["--only-changed", "plan.json", "--baseline", "main.json", "--out", "r.jsonl"]
    assert end(capsys, "eval", "evals", *flags).code == 0
    assert gate_of("r.report.json")["verdict"] == "nothing"


def test_baseline_that_shares_no_case_does_not_pass_in_silence(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    documents(folder, a={})
    store("other.jsonl", row(of=case("other", suite="evals/other.yaml")))
    ended = end(capsys, "eval", "evals", "--out", "r.jsonl", "--baseline", "other.jsonl")
    assert ended.code != 0 or "warning" in ended.out + ended.err


def test_results_without_a_run_report_are_not_accepted_in_silence(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    documents(folder, a={"cases": {"one": {}, "two": {}}})
    assert end(capsys, "eval", "evals", "--out", "r.jsonl").code == 0
    Path("r.report.json").unlink()
    Path("r.jsonl").write_text(Path("r.jsonl").read_text("utf-8").splitlines(keepends=True)[0], "utf-8")
    ended = end(capsys, "baseline", "accept", "r.jsonl")
    assert ended.code != 0 or "run report" in ended.err


def test_cost_that_is_not_known_does_not_pass_under_a_budget_when_rescored(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    documents(folder, a={"gate": {"max_cost_usd": 1}})
    monkeypatch.setenv("GREETER_KEY", "sk-canary-0123456789")
    with chat_api(says("Hello")) as api:
        own = {"name": "default", "provider": "openai", "model": "no-such-model", "base_url": api.base_url}
        targets = {"$schema": "agentv-targets-v2.2", "targets": [{**own, "api_key": "${{ GREETER_KEY }}"}]}
        write(folder, {"targets.yaml": json.dumps(targets)})
        assert end(capsys, "eval", "evals", "--out", "r.jsonl").code == 1
        assert end(capsys, "report", "r.jsonl").code == 1
        assert end(capsys, "rescore", "r.jsonl").code == 1


# --- Validators ---


def finds(message: str, severity: str) -> Any:
    def own(report: Any, context: Any = None) -> Any:
        found = {"id": "found", "severity": severity, "message": message, "path": None}
        return {"issues": [found], "summary": {"runs": len(report["runs"]), "context": context}}

    return own


def breaks(report: Any, context: Any = None) -> Any:
    raise SystemExit(0)


@pytest.fixture
def registered(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a test registers is gone with it."""
    monkeypatch.setattr("agentv_ci.validators._registered", {})
    register_validator("finds", finds("it is off", "error"))
    register_validator("breaks", breaks)


def validations(name: str) -> list[dict[str, Any]]:
    return [each for one in told(name)["scenario_reports"] for each in one["aggregates"]["validations"]]


@pytest.mark.parametrize(
    ("keys", "gate", "code"),
    [
        (["finds"], "error", 1),
        (["finds"], "warn", 0),
        (["breaks"], "error", 0),
        (["breaks", "finds"], "error", 1),
        (["breaks", "finds"], "warn", 0),
    ],
)
def test_validators_count_as_the_gate_says_wherever_results_are_judged(
    folder: Path, registered: None, keys: list[str], gate: str, code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    documents(folder, a={"cases": {"one": {}, "two": {}}, "validators": keys, "gate": {"validators": gate}})
    assert end(capsys, "eval", "evals", "--out", "r.jsonl").code == code
    assert [each["validator"] for each in validations("r.report.json")] == keys
    assert end(capsys, "report", "r.jsonl", "--out", "all.jsonl").code == code
    assert validations("all.report.json") == validations("r.report.json")
    assert end(capsys, "rescore", "r.jsonl").code == code
    assert validations("r.rescored.report.json") == validations("r.report.json")
    for index in (1, 2):
        assert end(capsys, "eval", "evals", "--shard", f"{index}/2", "--out", f"{index}.jsonl").code == 0
    assert end(capsys, "report", "1.jsonl", "2.jsonl", "--out", "both.jsonl").code == code
    assert validations("both.report.json") == validations("r.report.json")
    assert end(capsys, "eval", "evals", "--dry-run", "--out", "dry.jsonl").code == 0


def test_check_says_what_the_run_report_says(
    folder: Path, registered: None, capsys: pytest.CaptureFixture[str]
) -> None:
    cases = {"one": {}, "two": WORSE}
    given = {"cases": cases, "validators": ["finds", BALANCED], "seeds": [7, 11], "gate": {"validators": "warn"}}
    documents(folder, a=given)
    assert end(capsys, "eval", "evals", "--out", "r.jsonl", "--min-pass-rate", "0").code == 0
    context = json.dumps({key: value for key, value in BALANCED.items() if key != "key"})
    first = end(capsys, "check", "r.jsonl", "--validator", "finds", "--format", "json")
    keys = ["--validator", "fairness_balance", "--context", context]
    second = end(capsys, "check", "r.jsonl", *keys, "--format", "json")
    assert (first.code, second.code) == (1, 1)
    said = [json.loads(each.out)["scenario_reports"][0]["aggregates"]["validations"][0] for each in (first, second)]
    assert said == validations("r.report.json")
    assert said[0]["summary"]["context"]["expected_seeds"] == [7, 11]


def test_own_context_goes_before_what_is_filled_in(
    folder: Path, registered: None, capsys: pytest.CaptureFixture[str]
) -> None:
    documents(
        folder, a={"validators": [{"key": "finds", "expected_seeds": [1], "k": 2}], "gate": {"validators": "warn"}}
    )
    assert end(capsys, "eval", "evals", "--out", "r.jsonl").code == 0
    (said,) = validations("r.report.json")
    assert (said["summary"]["context"]["expected_seeds"], said["summary"]["context"]["k"]) == ([1], 2)


def test_unknown_validator_is_told_by_check_and_in_documents(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    documents(folder, a={"validators": ["outlier_detektion"]})
    ended = end(capsys, "eval", "evals", "--out", "r.jsonl")
    assert ended.code in (0, 2)
    assert "AV311" in ended.err
    store("rows.jsonl", row())
    ended = end(capsys, "check", "rows.jsonl", "--validator", "outlier_detektion")
    assert ended.code == 2
    assert "did you mean" in ended.err


@pytest.mark.parametrize("context", ["[]", "{", "1", "null", '{"k": NaN}', '{"k": 1e999}', "[" * 100_000])
def test_context_that_is_no_mapping_is_a_usage_error(
    folder: Path, context: str, capsys: pytest.CaptureFixture[str]
) -> None:
    store("rows.jsonl", row())
    ended = end(capsys, "check", "rows.jsonl", "--validator", "outlier_detection", "--context", context)
    assert (ended.code, ended.out) == (2, "")


def test_validator_that_breaks_ends_check_with_an_error(
    folder: Path, registered: None, capsys: pytest.CaptureFixture[str]
) -> None:
    store("rows.jsonl", row())
    ended = end(capsys, "check", "rows.jsonl", "--validator", "breaks", "--format", "json")
    assert (ended.code, json.loads(ended.out)["exit_code"]) == (4, 4)


def test_file_that_is_named_twice_is_refused(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store("rows.jsonl", row())
    assert end(capsys, "check", "rows.jsonl", "./rows.jsonl", "--validator", "outlier_detection").code == 2
