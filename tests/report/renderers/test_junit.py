"""JUnit XML, read back with somebody else's reader."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from junitparser import Error, Failure, JUnitXml

from agentv_ci.analysis.run_report import report
from agentv_ci.contracts.plan import Plan
from agentv_ci.contracts.report import Ending
from agentv_ci.contracts.results import ResultRow, RowSource
from agentv_ci.report.renderers import junit
from agentv_ci.report.renderers.junit import GATE, render
from agentv_ci.report.view import RunView
from tests.report.builders import NASTY, SUITE, Verdict, any_text, case, plan, reported, row, rows_of, well_formed_text

B = "evals/b.yaml"


def rendered(rows: Sequence[ResultRow]) -> bytes:
    return b"".join(render(reported(rows)))


def parsed(*rows: ResultRow) -> ET.Element:
    return ET.fromstring(rendered(rows))


def gate_of(rows: Sequence[ResultRow], ending: Ending) -> tuple[str | None, str | None]:
    """What the gate says, where it has a suite of its own."""
    root = ET.fromstring(b"".join(render(reported(rows, ending))))
    said = [each for suite in root if suite.get("name") == GATE for each in next(suite.iter("testcase"))]
    return (said[0].tag, said[0].get("message")) if said else (None, None)


LOST = Ending(write_error="disk full")


@pytest.mark.parametrize(
    ("verdicts", "ending", "said"),
    [
        (["pass"], Ending(), (None, None)),
        (["fail"], Ending(), (None, None)),
        (["pass", "error"], Ending(), (None, None)),
        (["pass"], Ending(dry_run=True), (None, None)),
        ([], Ending(), (None, None)),
        (["pass"], LOST, ("error", "results could not be written: disk full")),
        (["fail"], LOST, (None, None)),
        (["pass"], Ending(stopped="budget"), ("error", "the budget is used up: every case ran, but not every trial")),
        (["pass"], Ending(incomplete=("shard 2/2 missing",)), ("failure", "shard 2/2 missing")),
    ],
)
def test_a_gate_that_no_case_tells_of_has_a_suite_of_its_own(
    verdicts: list[Verdict], ending: Ending, said: tuple[str | None, str | None]
) -> None:
    rows = [row(verdict, of=case(f"case-{number}")) for number, verdict in enumerate(verdicts)]
    assert gate_of(rows, ending) == said


def test_every_suite_has_the_verdict_of_the_gate() -> None:
    (suite,) = parsed(row("fail"))
    properties = {each.get("name"): each.get("value") for each in suite.findall("properties/property")}
    assert properties == {"gate": "fail", "exit_code": "1"}


def test_a_trial_that_others_make_up_for_is_no_failure() -> None:
    of = case("one", trials=3)
    rows = rows_of(of, "pass", "fail", "pass")
    xml = JUnitXml.fromstring(rendered(rows))
    assert counts(xml) == (3, 0, 0, 0)
    assert "fail, score 0.200; other trials make up for it" in rendered(rows).decode()


def test_trials_of_a_case_that_does_not_pass_are_told_as_they_are() -> None:
    of = case("one", trials=3)
    rows = rows_of(of, "pass", "fail", "fail")
    assert counts(JUnitXml.fromstring(rendered(rows))) == (3, 2, 0, 0)


def stopped_run(of: Plan, rows: Sequence[ResultRow], ending: Ending) -> ET.Element:
    found, outcomes = report(of, rows, ending)
    return ET.fromstring(b"".join(render(RunView(found, outcomes, lambda: rows))))


def skipped(root: ET.Element) -> list[tuple[str | None, str | None, str | None, str | None]]:
    """What was not run: name, line, message and text."""
    found = [(each, each.find("skipped")) for each in root.iter("testcase")]
    return [
        (each.get("name"), each.get("line"), why.get("message"), why.text) for each, why in found if why is not None
    ]


@pytest.mark.parametrize(
    ("ending", "why"),
    [
        (Ending(stopped="fail-fast"), "it never ran: the run stopped at the first failure"),
        (Ending(stopped="budget"), "it never ran: the budget is used up"),
        (Ending(stopped="interrupted"), "it never ran: the run was interrupted"),
        (Ending(), "it has no result"),
        (Ending(stopped="budget", write_error="disk full"), "it has no result"),
    ],
)
def test_case_that_never_ran_is_skipped(ending: Ending, why: str) -> None:
    of = plan(case("ran", line=3), case("left", line=9))
    root = stopped_run(of, rows_of(of.cases[0], "pass"), ending)
    assert skipped(root) == [("left [default]", "9", why, why)]
    assert [root[0].get(name) for name in ("tests", "failures", "errors", "skipped")] == ["2", "0", "0", "1"]
    assert [each.get("time") for each in root[0].iter("testcase")] == ["1.500", "0.000"]
    # No test that is skipped makes a file green.
    assert [each.get("name") for each in root] == [SUITE, GATE]


def test_what_is_left_of_a_case_is_skipped_once() -> None:
    of = plan(case("some", trials=5), case("none", trials=10_000, line=9))
    root = stopped_run(of, [row(of=of.cases[0], trial=number) for number in (1, 3)], Ending(stopped="interrupted"))
    why = "the run was interrupted"
    assert [each[:3] for each in skipped(root)] == [
        ("some [default] #2", "3", f"3 of 5 trials never ran: {why}"),
        ("none [default]", "9", f"10000 of 10000 trials never ran: {why}"),
    ]


def test_trials_that_cannot_change_the_verdict_are_not_skipped() -> None:
    of = plan(case(trials=3, stop_when="decided"))
    assert skipped(stopped_run(of, rows_of(of.cases[0], "pass", "pass"), Ending())) == []


def test_run_of_which_nothing_is_left_is_skipped_and_not_green() -> None:
    root = stopped_run(plan(case("a"), case("b")), [], Ending(write_error="r.jsonl: it is gone"))
    assert len(skipped(root)) == 2
    assert root.get("errors") == "1"


def element_of(found: ResultRow) -> ET.Element:
    """The element of the only row."""
    (element,) = parsed(found).iter("testcase")
    return element


def told(found: ResultRow) -> tuple[str, str | None, str | None, str | None]:
    """How a row is blamed: element, type, message, text."""
    (element,) = (each for each in element_of(found) if each.tag in ("failure", "error"))
    return element.tag, element.get("type"), element.get("message"), element.text


def counts(element: Any) -> tuple[int, int, int, int]:
    return element.tests, element.failures, element.errors, element.skipped


def test_document_is_written_in_full() -> None:
    rows = [
        row("fail", 0.25, of=case("two", line=12), misses=("too long", "no\ngreeting"), candidate_answer=""),
        row("pass", of=case("one", line=3), duration_ms=1234),
    ]
    assert rendered(rows).decode() == (
        """\
<?xml version="1.0" encoding="utf-8"?>
<testsuites name="agentv-ci" tests="2" failures="1" errors="0" skipped="0" time="2.734">
  <testsuite errors="0" failures="1" name="evals/a.yaml" skipped="0" tests="2" time="2.734" \
timestamp="2030-01-02T03:04:03" file="evals/a.yaml">
    <properties>
      <property name="gate" value="fail" />
      <property name="exit_code" value="1" />
    </properties>
    <testcase name="one [default]" classname="evals/a.yaml" file="evals/a.yaml" line="3" time="1.234">
      <properties>
        <property name="score" value="1.000" />
        <property name="verdict" value="pass" />
        <property name="target" value="default" />
        <property name="trial" value="1" />
        <property name="digest" value="0000000000000000000000000000000000000000000000000000000000000000" />
        <property name="dry_run" value="false" />
      </properties>
      <system-out>Hello</system-out>
    </testcase>
    <testcase name="two [default]" classname="evals/a.yaml" file="evals/a.yaml" line="12" time="1.500">
      <properties>
        <property name="score" value="0.250" />
        <property name="verdict" value="fail" />
        <property name="target" value="default" />
        <property name="trial" value="1" />
        <property name="digest" value="0000000000000000000000000000000000000000000000000000000000000000" />
        <property name="dry_run" value="false" />
      </properties>
      <failure type="fail" message="score 0.250; too long; no greeting">score 0.250
too long
no
greeting</failure>
    </testcase>
  </testsuite>
</testsuites>
"""
    )


def test_document_without_rows_is_well_formed() -> None:
    root = parsed()
    assert (root.tag, len(root)) == ("testsuites", 0)


@pytest.mark.parametrize(
    ("found", "blame"),
    [
        (
            row("fail", 0.2, misses=("a", "b"), reasoning="why"),
            ("failure", "fail", "score 0.200; a; b", "score 0.200\na\nb"),
        ),
        (
            row("borderline", 0.7, reasoning="nearly\nthere"),
            ("failure", "borderline", "score 0.700; nearly there", "score 0.700\nnearly\nthere"),
        ),
        (row("fail", 0.4), ("failure", "fail", "score 0.400", "score 0.400")),
        (
            row("error", error="no answer\nwithin 9 s", error_kind="timeout"),
            ("error", "timeout", "no answer within 9 s", "no answer\nwithin 9 s"),
        ),
        (row("error", error=None, error_kind=None), ("error", "error", "no verdict", "no verdict")),
        (
            row("error", 0.9, error="evaluator 'j': it broke", error_kind="evaluator", misses=("a",)),
            ("error", "evaluator", "evaluator 'j': it broke", "evaluator 'j': it broke"),
        ),
    ],
)
def test_row_that_did_not_pass_is_blamed_once(found: ResultRow, blame: tuple[str, str, str, str]) -> None:
    assert told(found) == blame


def test_row_that_passed_is_not_blamed() -> None:
    assert [each.tag for each in element_of(row("pass", misses=("nearly",)))] == ["properties", "system-out"]


@pytest.mark.parametrize("error", ["", " \n", "\x1b[31m", "\x1b[0m \x1b[1m", "\r"], ids=ascii)
def test_error_without_readable_words_is_an_error_with_a_message_all_the_same(error: str) -> None:
    found = row("error", error=error, error_kind="process")
    assert parsed(found).get("errors") == "1"
    assert told(found)[2]


def test_suites_and_rows_have_an_order_of_their_own() -> None:
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
    assert rendered(rows) == rendered(rows[::-1])


@pytest.mark.parametrize(
    "rows",
    [
        pytest.param([row(trial=1), row(trial=2), row(trial=10)], id="trials"),
        pytest.param([row(target="a"), row(target="b")], id="targets"),
        pytest.param([row(of=case(suite="a.yaml")), row(of=case(suite="b.yaml"))], id="suites"),
        pytest.param([row(of=case(suite="a b.yaml")), row(of=case(suite="a  b.yaml"))], id="white space in suites"),
        pytest.param([row(of=case("x")), row(of=case("X"))], id="upper case"),
        pytest.param([row(of=case("a b")), row(of=case("a  b"))], id="white space"),
        pytest.param([row(of=case("a\x01")), row(of=case("a\x02"))], id="control characters"),
        pytest.param([row(of=case("x" * 400 + "1")), row(of=case("x" * 400 + "2"))], id="long"),
        pytest.param([row(of=case("x" * 400), trial=1), row(of=case("x" * 400), trial=2)], id="trials of a long id"),
    ],
)
def test_class_and_name_are_unique(rows: Sequence[ResultRow]) -> None:
    names = [(each.get("classname"), each.get("name")) for each in parsed(*rows).iter("testcase")]
    assert len(set(names)) == len(rows)


@pytest.mark.parametrize("path", ["evals/a.yaml", "evals/two  spaces.yaml", "evals/" + "x" * 400 + ".yaml"], ids=len)
def test_every_case_has_its_file_and_line(path: str) -> None:
    verdicts: list[Verdict] = ["pass", "borderline", "fail", "error"]
    found = [row(verdict, of=case(verdict, suite=path, line=line)) for line, verdict in enumerate(verdicts, 7)]
    places = [(each.get("file"), each.get("line")) for each in parsed(*found).iter("testcase")]
    assert places == [(path, "7"), (path, "8"), (path, "9"), (path, "10")]


@pytest.mark.parametrize(
    ("duration_ms", "time"), [(0, "0.001"), (1, "0.001"), (1499, "1.499"), (60_000, "60.000"), (1234567, "1234.567")]
)
def test_time_has_three_decimals(duration_ms: int, time: str) -> None:
    root = parsed(row(duration_ms=duration_ms))
    assert [each.get("time") for each in root.iter() if each.tag.startswith("test")] == [time] * 3


def test_times_are_summed_without_float_noise() -> None:
    assert parsed(*(row(trial=number, duration_ms=100) for number in range(1, 4))).get("time") == "0.300"


def test_message_is_one_line_of_at_most_300_characters() -> None:
    _, _, message, text = told(row("fail", 0.2, misses=("one\ntwo\r\n\tthree", "x" * 1000)))
    assert message == "score 0.200; one two three; " + "x" * 271 + "…"
    assert len(message) == 300
    assert text == "score 0.200\none\ntwo\n\tthree\n" + "x" * 1000


def test_message_of_300_characters_is_not_cut() -> None:
    assert told(row("error", error="x" * 300))[2] == "x" * 300


@pytest.mark.parametrize(
    ("length", "shown"),
    [
        (10_000, "x" * 10_000),
        (10_001, "x" * 10_000 + "\n… 1 more character"),
        (1_250_000, "x" * 10_000 + "\n… 1,240,000 more characters"),
    ],
)
def test_answer_is_cut_at_10_000_characters(length: int, shown: str) -> None:
    assert element_of(row(candidate_answer="x" * length)).findtext("system-out") == shown


@pytest.mark.parametrize(
    ("answer", "shown"),
    [
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
    ids=ascii,
)
def test_answer_stays_readable_for_every_parser(answer: str, shown: str) -> None:
    assert element_of(row(candidate_answer=answer)).findtext("system-out") == shown


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
def test_suite_says_when_its_first_answer_was_asked_for(found: list[tuple[str, int]], start: str | None) -> None:
    rows = [row(trial=number, timestamp=when, duration_ms=took) for number, (when, took) in enumerate(found, 1)]
    (suite,) = parsed(*rows)
    assert suite.get("timestamp") == start


def test_reason_is_cut_at_10_000_characters() -> None:
    _, _, message, text = told(row("fail", 0.2, misses=("x" * 2_000_000,)))
    assert (len(message or ""), len(text or "")) == (300, 10_000 + len("\n… 1,990,012 more characters"))


def answers(root: ET.Element) -> dict[str, set[int]]:
    """How long answers are, by their verdict."""
    found: dict[str, set[int]] = {}
    for each in root.iter("testcase"):
        (verdict,) = (known.get("value") or "" for known in each.iter("property") if known.get("name") == "verdict")
        found.setdefault(verdict, set()).add(len((each.findtext("system-out") or "").partition("\n… ")[0]))
    return found


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
@pytest.mark.parametrize("character", ["x", "<", "é", "\x00"])
def test_file_is_kept_small_by_cutting_answers_that_passed_first(
    monkeypatch: pytest.MonkeyPatch, size: int, kept: tuple[int, int], character: str
) -> None:
    bytes_of_one = {"x": 1, "<": 4, "é": 2, "\x00": 3}[character]
    monkeypatch.setattr(junit, "MAX_BYTES", limit := size * bytes_of_one)
    verdicts: list[Verdict] = ["pass", "fail", "error"] * 20
    rows = [
        row(verdict, of=case(f"{number}"), candidate_answer=character * 10_000)
        for number, verdict in enumerate(verdicts)
    ]
    written = rendered(rows)
    assert written == rendered(rows[::-1])
    root = ET.fromstring(written)
    assert len(list(root.iter("testcase"))) == 60
    assert len(written) <= limit or size == 1_000
    if bytes_of_one == 1:
        assert (max(answers(root)["pass"]), max(answers(root)["fail"] | answers(root)["error"])) == kept


@pytest.mark.parametrize("share", [0.9, 0.5, 0.2, 0.1])
@given(st.data())
@settings(deadline=None, derandomize=True, max_examples=10)
def test_file_is_not_larger_than_it_may_be(share: float, data: st.DataObject) -> None:
    texts = data.draw(st.lists(any_text, min_size=1, max_size=5))
    rows = [
        row(verdict, of=case(f"{number}"), candidate_answer=text * 1000, misses=(text * 1000,), error=text * 1000)
        for number, text in enumerate(texts * 4)
        for verdict in ("pass", "fail", "error")
    ]
    least = 3_000 * len(rows)
    limit = max(int(len(rendered(rows)) * share), least)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(junit, "MAX_BYTES", limit)
        written = rendered(rows)
    assert len(written) <= limit
    assert len(list(ET.fromstring(written).iter("testcase"))) == len(rows)


def test_names_of_many_long_ids_are_unique() -> None:
    rows = [row(of=case("x" * 400 + f"{number}")) for number in range(500)]
    names = {each.get("name") for each in parsed(*rows).iter("testcase")}
    assert len(names) == 500


def test_empty_answer_is_left_out() -> None:
    assert element_of(row(candidate_answer="")).find("system-out") is None


def test_dry_run_is_said() -> None:
    properties = {each.get("name"): each.get("value") for each in element_of(row(dry_run=True)).iter("property")}
    assert properties["dry_run"] == "true"


def test_counts_are_those_of_the_rows_at_both_levels() -> None:
    verdicts: list[tuple[str, Verdict]] = [
        ("a", "pass"),
        ("a", "borderline"),
        ("a", "fail"),
        ("b", "error"),
        ("b", "fail"),
        ("b", "pass"),
    ]
    rows = [row(each, of=case(f"{each}", suite=f"{name}.yaml")) for name, each in verdicts]
    xml = JUnitXml.fromstring(rendered(rows))
    assert [(each.name, *counts(each)) for each in xml] == [
        ("a.yaml", 3, 2, 0, 0),
        ("b.yaml", 3, 1, 1, 0),
    ]
    assert counts(xml) == (6, 3, 1, 0)
    assert xml.name == "agentv-ci"


@st.composite
def anything(draw: st.DrawFn) -> list[ResultRow]:
    """Rows that say anything at all, in any place."""
    texts = any_text.map(lambda text: f"{text}x")
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
            target=draw(texts),
            duration_ms=draw(st.integers(0, 10**7)),
            source=RowSource(path="a.yaml", line=draw(st.integers(1, 9))),
        )
        for number, name in enumerate(names)
    ]


@settings(deadline=None, derandomize=True, max_examples=50)
@given(anything())
def test_any_text_gives_a_document_that_others_read(rows: list[ResultRow]) -> None:
    xml = JUnitXml.fromstring(rendered(rows))
    errors = sum(each.verdict == "error" for each in rows)
    failures = sum(each.verdict in ("fail", "borderline") for each in rows)
    assert counts(xml) == (len(rows), failures, errors, 0)
    for suite in xml:
        blamed = [type(result) for each in suite for result in each.result]
        assert counts(suite) == (len(list(suite)), blamed.count(Failure), blamed.count(Error), 0)
    for result in (result for suite in xml for each in suite for result in each.result):
        assert re.fullmatch(r"[^\r\n\t]{1,300}", result.message)
        assert result.text


@pytest.mark.parametrize("text", NASTY, ids=ascii)
def test_special_text_gives_a_document_that_others_read(text: str) -> None:
    found = row("fail", candidate_answer=text, misses=(f"x{text}y",), target=f"{text}t")
    assert counts(JUnitXml.fromstring(rendered([found]))) == (1, 1, 0, 0)
