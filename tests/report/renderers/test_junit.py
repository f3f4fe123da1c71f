"""JUnit XML, read with readers of others."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections.abc import Sequence
from typing import Any
from unittest import mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from junitparser import Error, Failure, JUnitXml

from agentv_ci.analysis.run_report import report
from agentv_ci.contracts.experiment_report import ExperimentReport, ExperimentVerdict
from agentv_ci.contracts.plan import Plan
from agentv_ci.contracts.report import Ending
from agentv_ci.contracts.results import ResultRow, RowSource
from agentv_ci.report.renderers import junit
from agentv_ci.report.renderers.junit import GATE
from agentv_ci.report.view import RunView
from tests.support.runs import SUITE, VERDICTS, any_text, case, plan, reported, row, rows_of, suite, well_formed_text

B = "evals/b.yaml"
LOST = Ending(write_error="disk full")
BLANK = ("", " \n", "\x1b[31m", "\x1b[0m \x1b[1m", "\r")
LONGEST = "x" * 10_000


def rendered(run: RunView) -> bytes:
    return b"".join(junit.render(run))


def parsed(*rows: ResultRow, ending: Ending | None = None) -> ET.Element:
    return ET.fromstring(rendered(reported(rows, ending)))


def stopped(of: Plan, rows: Sequence[ResultRow], ending: Ending) -> ET.Element:
    return ET.fromstring(rendered(RunView(*report(of, rows, ending), lambda: rows)))


def element_of(found: ResultRow) -> ET.Element:
    (element,) = parsed(found).iter("testcase")
    return element


def blame_of(found: ResultRow) -> tuple[str, str, str]:
    """Element and type, message, and text of why a row is not green."""
    (element,) = (each for each in element_of(found) if each.tag in ("failure", "error"))
    return f"{element.tag} {element.get('type')}", element.get("message") or "", element.text or ""


def counts(element: Any) -> tuple[int, int, int, int]:
    return element.tests, element.failures, element.errors, element.skipped


def skipped(root: ET.Element) -> list[tuple[str | None, str | None, str | None]]:
    """Name, line and message of skipped tests."""
    found = [(each, each.find("skipped")) for each in root.iter("testcase")]
    assert all(why is None or why.text == why.get("message") for _, why in found)
    return [(each.get("name"), each.get("line"), why.get("message")) for each, why in found if why is not None]


@pytest.mark.parametrize(
    ("ending", "said"),
    [
        (LOST, ("error", "results could not be written: disk full")),
        (Ending(stopped="budget"), ("error", "the budget is used up: every case ran, but not every trial")),
        (Ending(incomplete=("shard 2/2 missing",)), ("failure", "shard 2/2 missing")),
    ],
)
def test_gate_that_no_test_shows_has_its_own_suite(ending: Ending, said: tuple[str, str]) -> None:
    *_, suite = parsed(row(), ending=ending)
    assert (suite.get("name"), [(each.tag, each.get("message")) for each in suite[-1]]) == (GATE, [said])


@pytest.mark.parametrize(("verdicts", "failures"), [("pfp", 0), ("pff", 2)])
def test_failed_trials_count_unless_their_case_passed(verdicts: str, failures: int) -> None:
    text = rendered(reported(rows_of(case("one", trials=3), verdicts)))
    assert counts(JUnitXml.fromstring(text)) == (3, failures, 0, 0)
    assert (b"fail, score 0.200; other trials make up for it" in text) == (failures == 0)


@pytest.mark.parametrize(
    ("letters", "max_errors", "red"),
    [
        ("ppc", 1, (0, 0)),
        ("ppe", 1, (0, 0)),
        ("ppc", 0, (0, 1)),
        ("pcc", 2, (0, 2)),
        ("ccc", 3, (0, 3)),
        ("pfc", 1, (1, 1)),
    ],
)
def test_tolerated_errors_of_a_case_that_passes_are_not_red(
    letters: str, max_errors: int, red: tuple[int, int]
) -> None:
    one = case("one", trials=3)
    rows = rows_of(one, letters)
    found, outcomes = report(plan(one, suites=[suite(max_errors=max_errors)]), rows, Ending())
    text = b"".join(junit.render(RunView(found, outcomes, lambda: rows)))
    assert counts(JUnitXml.fromstring(text)) == (3, *red, 0)
    is_passed = found.gate.exit_code == 0
    assert is_passed == (red == (0, 0))
    assert (b"other trials make up for it" in text) == is_passed


@pytest.mark.parametrize(("verdict", "code"), [("better", 0), ("worse", 1)])
def test_trials_of_an_experiment_are_not_red(verdict: ExperimentVerdict, code: int) -> None:
    experiment = ExperimentReport(
        schema_="x", name="e.yaml", description=None, plan_digest=None, base="now", primary="pass", alpha=0.05,
        cluster_by="case", verdict=verdict, reasons=("pass of 'next' changed",), arms=(), effects=(), planned_trials=3,
        trials=3, seed=1,
    )  # fmt: skip
    one = case("one", trials=3)
    of, rows = plan(one, suites=[suite(min_pass_rate=0, max_errors=2)]), rows_of(one, "fce")
    root = stopped(of, rows, Ending(experiment=experiment))
    assert (root.get("failures"), root.get("errors")) == (str(code), "0")
    remarks = [each.text for each in root.iter("system-err")]
    assert remarks == [
        f"fail, score 0.200; the experiment is {verdict}",
        f"process: boom; the experiment is {verdict}",
        f"server: it broke; the experiment is {verdict}",
    ]


@pytest.mark.parametrize(
    ("ending", "why"),
    [
        (Ending(stopped="fail-fast"), "not run: the run stopped at the first failure"),
        (Ending(stopped="budget"), "not run: the budget is used up"),
        (Ending(stopped="interrupted"), "not run: the run was interrupted"),
        (Ending(), "no result"),
        (Ending(stopped="budget", write_error="disk full"), "no result"),
    ],
)
def test_case_that_did_not_run_is_skipped(ending: Ending, why: str) -> None:
    of = plan(case("ran", line=3), case("left", line=9))
    root = stopped(of, rows_of(of.cases[0], "p"), ending)
    assert skipped(root) == [("left [default]", "9", why)]
    assert [root[0].get(name) for name in ("tests", "failures", "errors", "skipped")] == ["2", "0", "0", "1"]
    assert [each.get("time") for each in root[0].iter("testcase")] == ["1.500", "0.000"]
    assert [each.get("name") for each in root] == [SUITE, GATE]


def test_missing_trials_of_a_case_are_skipped_once() -> None:
    of = plan(case("some", trials=5), case("none", trials=10_000, line=9))
    root = stopped(of, [row(of=of.cases[0], trial=number) for number in (1, 3)], Ending(stopped="interrupted"))
    assert skipped(root) == [
        ("some [default] #2", "3", "3 of 5 trials: not run: the run was interrupted"),
        ("none [default]", "9", "10000 of 10000 trials: not run: the run was interrupted"),
    ]
    decided = plan(case(trials=3, stop_when="decided"))
    assert skipped(stopped(decided, rows_of(decided.cases[0], "pp"), Ending())) == []
    assert stopped(plan(case("a"), case("b")), [], LOST).get("errors") == "1"


@pytest.mark.parametrize(
    ("found", "kind", "message", "text"),
    [
        (row("fail", misses=("a", "b"), reasoning="why"), "failure fail", "score 0.200; a; b", "score 0.200\na\nb"),
        (row("borderline", 0.7, reasoning="a\nb"), "failure borderline", "score 0.700; a b", "score 0.700\na\nb"),
        (row("fail", 0.4), "failure fail", "score 0.400", "score 0.400"),
        (row("error", error="no\nanswer", error_kind="timeout"), "error timeout", "no answer", "no\nanswer"),
        (row("error", 0.9, error="broke", error_kind="evaluator", misses=("a",)), "error evaluator", "broke", "broke"),
        (row("error", error=None, error_kind=None), "error error", "no verdict", "no verdict"),
        *((row("error", error=blank), "error server", "no verdict", "no verdict") for blank in BLANK),
        (
            row("fail", misses=("one\ntwo\r\n\tthree", "x" * 1000)),
            "failure fail",
            f"score 0.200; one two three; {'x' * 271}…",
            f"score 0.200\none\ntwo\n\tthree\n{'x' * 1000}",
        ),
        (row("error", error="x" * 300), "error server", "x" * 300, "x" * 300),
        (
            row("error", error="x" * 1_250_000),
            "error server",
            "x" * 299 + "…",
            f"{LONGEST}\n… 1,240,000 more characters",
        ),
    ],
)
def test_blame(found: ResultRow, kind: str, message: str, text: str) -> None:
    assert blame_of(found) == (kind, message, text)


def test_order_is_that_of_the_files() -> None:
    rows = [
        row(of=case("y", suite=B, line=9)),
        row(of=case("x", suite=B, line=3), trial=2),
        row(of=case("z", line=5)),
        row(of=case("x", suite=B, line=3), trial=1),
    ]
    suites = list(parsed(*rows))
    assert [(each.get("name"), [inner.get("name") for inner in each.iter("testcase")]) for each in suites] == [
        ("evals/a.yaml", ["z [default]"]),
        (B, ["x [default]", "x [default] #2", "y [default]"]),
    ]
    assert rendered(reported(rows)) == rendered(reported(rows[::-1]))


@pytest.mark.parametrize(
    "rows",
    [
        [row(trial=trial) for trial in (1, 2, 10)],
        [row(target="a"), row(target="b")],
        [row(of=case(suite=name)) for name in ("a b.yaml", "a  b.yaml")],
        *([row(of=case(name)) for name in ids] for ids in (("x", "X"), ("a b", "a  b"), ("a\x01", "a\x02"))),
        [row(of=case("x" * 400 + f"{number}")) for number in range(50)],
        [row(of=case("x" * 400), trial=trial) for trial in (1, 2)],
    ],
)
def test_names_are_unique(rows: Sequence[ResultRow]) -> None:
    names = [(each.get("classname"), each.get("name")) for each in parsed(*rows).iter("testcase")]
    assert len(set(names)) == len(rows)


@pytest.mark.parametrize("path", ["evals/two  spaces.yaml", "evals/" + "x" * 400 + ".yaml"], ids=len)
def test_every_test_has_its_file_and_line(path: str) -> None:
    found = [row(verdict, of=case(verdict, suite=path, line=line)) for line, verdict in enumerate(VERDICTS.values(), 7)]
    places = [(each.get("file"), each.get("line")) for each in parsed(*found).iter("testcase")]
    assert places == [(path, "7"), (path, "8"), (path, "9"), (path, "10")]


@pytest.mark.parametrize(
    ("durations", "time"),
    [([0], "0.001"), ([1499], "1.499"), ([60_000], "60.000"), ([1234567], "1234.567"), ([100] * 3, "0.300")],
)
def test_time_has_three_decimals(durations: list[int], time: str) -> None:
    root = parsed(*(row(trial=number, duration_ms=each) for number, each in enumerate(durations, 1)))
    assert (root.get("time"), root[0].get("time")) == (time, time)


@pytest.mark.parametrize(
    ("found", "start"),
    [
        ([("2030-01-02T03:04:05.000Z", 1500)], "2030-01-02T03:04:03"),
        ([("2030-01-02T03:04:05Z", 0), ("2030-01-02T03:04:09.999Z", 9000)], "2030-01-02T03:04:00"),
        ([("2030-01-02T03:04:05+02:00", 0)], "2030-01-02T01:04:05"),
        ([("2030-01-02T03:04:05", 0)], "2030-01-02T03:04:05"),
        ([("yesterday", 0)], None),
        ([("2030-01-02T03:04:05Z", 10**30)], None),
        ([("yesterday", 0), ("2030-01-02T03:04:05Z", 0)], "2030-01-02T03:04:05"),
    ],
)
def test_timestamp_is_the_start_of_the_first_trial(found: list[tuple[str, int]], start: str | None) -> None:
    rows = [row(trial=number, timestamp=when, duration_ms=took) for number, (when, took) in enumerate(found, 1)]
    assert parsed(*rows)[0].get("timestamp") == start


@pytest.mark.parametrize(
    ("answer", "shown"),
    [
        ("", None),
        (LONGEST, LONGEST),
        (f"{LONGEST}x", f"{LONGEST}\n… 1 more character"),
        ("a\x00b\x08c\x0bd", "a\ufffdb\ufffdc\ufffdd"),
        ("\x1b[1;31mred\x1b[0m \x1b]0;title\x07plain", "red plain"),
        ("a\r\nb\rc", "a\nb\nc"),
        ("a\x7fb\x9fc", "a\ufffdb\ufffdc"),
        ("\x85", "\x85"),
        ("a\ud800b\udfff", "a\ufffdb\ufffd"),
        ("\ufffe\uffff\ufdd0\U0001ffff", "\ufffd" * 4),
        ("]]> <b>&amp;</b> \"'", "]]> <b>&amp;</b> \"'"),
        ("😀 é \u2028 \ufeff", "😀 é \u2028 \ufeff"),
        ("  two\tspaces  ", "  two\tspaces  "),
    ],
    ids=lambda text: ascii(text)[:20],
)
def test_answer_is_readable_for_every_parser(answer: str, shown: str | None) -> None:
    assert element_of(row(candidate_answer=answer)).findtext("system-out") == shown


@pytest.mark.parametrize(
    ("size", "kept"),
    [
        (700_000, (10_000, 10_000)),
        (600_000, (3_000, 10_000)),
        (500_000, (1_000, 10_000)),
        (475_000, (300, 10_000)),
        (400_000, (0, 3_000)),
        (150_000, (0, 1_000)),
        (90_000, (0, 300)),
        (70_000, (0, 100)),
        (66_000, (0, 0)),
        (1_000, (0, 0)),
    ],
)
@pytest.mark.parametrize(("character", "bytes_of_one"), [("x", 1), ("<", 4)])
def test_answers_that_passed_are_cut_first(
    monkeypatch: pytest.MonkeyPatch, size: int, kept: tuple[int, int], character: str, bytes_of_one: int
) -> None:
    monkeypatch.setattr(junit, "MAX_BYTES", limit := size * bytes_of_one)
    rows = [
        row(VERDICTS[each], of=case(f"{n}"), candidate_answer=character * 10_000) for n, each in enumerate("pfe" * 20)
    ]
    written = rendered(reported(rows))
    assert written == rendered(reported(rows[::-1]))
    root = ET.fromstring(written)
    assert root.get("tests") == "60"
    assert len(written) <= limit or size == 1_000
    longest = {True: 0, False: 0}
    for each in root.iter("testcase"):
        did_pass = each.find("properties/property[@value='pass']") is not None
        answer, _, _ = (each.findtext("system-out") or "").partition("\n… ")
        longest[did_pass] = max(longest[did_pass], len(answer))
    assert (longest[True], longest[False]) == kept or bytes_of_one > 1


@given(st.sampled_from([0.9, 0.5, 0.2, 0.1]), st.lists(any_text, min_size=1, max_size=5))
@settings(max_examples=10)
def test_file_fits_with_any_texts(share: float, texts: list[str]) -> None:
    rows = [
        row(verdict, of=case(f"{number}"), candidate_answer=text * 1000, misses=(text * 1000,), error=text * 1000)
        for number, text in enumerate(texts * 4)
        for verdict in ("pass", "fail", "error")
    ]
    limit = max(int(len(rendered(reported(rows))) * share), 3_000 * len(rows))
    with mock.patch.object(junit, "MAX_BYTES", limit):
        written = rendered(reported(rows))
    assert len(written) <= limit
    assert ET.fromstring(written).get("tests") == str(len(rows))


@st.composite
def any_rows(draw: st.DrawFn) -> list[ResultRow]:
    names = draw(st.lists(well_formed_text, min_size=1, max_size=4, unique=True))
    return [
        row(
            draw(st.sampled_from(["pass", "borderline", "fail", "error"])),
            of=case(f"{number}{name}", suite=draw(st.sampled_from(["a.yaml", "b\x00.yaml", "ü/<&>.yaml"]))),
            candidate_answer=draw(any_text),
            misses=tuple(draw(st.lists(any_text, max_size=2))),
            reasoning=draw(any_text),
            error=draw(any_text),
            error_kind="process",
            target=f"{draw(any_text)}x",
            duration_ms=draw(st.integers(0, 10**7)),
            source=RowSource(path="a.yaml", line=draw(st.integers(1, 9))),
        )
        for number, name in enumerate(names)
    ]


@settings(max_examples=50)
@given(any_rows())
def test_any_text_gives_a_document_with_right_counts(rows: list[ResultRow]) -> None:
    xml = JUnitXml.fromstring(rendered(reported(rows)))
    errors = sum(each.verdict == "error" for each in rows)
    failures = sum(each.verdict in ("fail", "borderline") for each in rows)
    assert counts(xml) == (len(rows), failures, errors, 0)
    for part in xml:
        blamed = [type(result) for each in part for result in each.result]
        assert counts(part) == (len(list(part)), blamed.count(Failure), blamed.count(Error), 0)
    for result in (result for part in xml for each in part for result in each.result):
        assert re.fullmatch(r"[^\r\n\t]{1,300}", result.message)
        assert result.text
