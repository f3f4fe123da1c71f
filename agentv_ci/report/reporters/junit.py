"""JUnit XML; the door to junit-xml.

There is no common schema. What is written here is what GitLab, Jenkins, CircleCI, Azure and the usual GitHub actions
read: unique names, file and line on every case, message and content on every failure, counts on both levels.

A test case is a trial. One that did not pass is a `failure` when its case did not pass either: what other trials of a
case make up for is told, not counted. Every suite has the gate's verdict among its properties. When the gate is not
passed and no case says so, such as for a mean score, a budget or a missing shard, a suite of its own does: no file is
green whose run is not.
"""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections.abc import Iterable, Mapping
from itertools import count, groupby

from junit_xml import TestCase, TestSuite, to_xml_report_string

from agentv_ci.contracts.report import RunReport
from agentv_ci.contracts.results import ResultRow
from agentv_ci.errors import PASSED
from agentv_ci.outside import ANSI
from agentv_ci.report.reported import ReportedRun

MAX_MESSAGE = 300
MAX_ANSWER = 10_000

_NONCHARACTERS = "".join(f"{chr(plane << 16 | 0xFFFE)}-{chr(plane << 16 | 0xFFFF)}" for plane in range(17))
_ILLEGAL = re.compile(f"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x84\x86-\x9f\ud800-\udfff\ufdd0-\ufdef{_NONCHARACTERS}]")


GATE = "agentv-ci gate"


def render(run: ReportedRun) -> Iterable[bytes]:
    """Return the document; one `<testsuite>` per eval file, in the order of their paths."""
    report = run.report
    made_up_for = {
        (each.case.suite, each.case.id, each.target)
        for each in run.outcomes
        if each.verdict == "pass" and each.passed < len(each.graded)
    }
    ordered = sorted(run.rows(), key=lambda row: (row.suite, row.source.line, row.eval_id, row.target, row.trial))
    names = _Names()
    said = {"gate": report.gate.verdict, "exit_code": str(report.gate.exit_code)}
    suites = [
        TestSuite(
            _line(path),
            [_case(row, names, is_made_up_for=_misses(row) and _key(row) in made_up_for) for row in group],
            file=_path(path),
            properties=said,
        )
        for path, group in groupby(ordered, key=lambda row: row.suite)
    ]
    is_red = any(case.is_failure() or case.is_error() for suite in suites for case in suite.test_cases)
    if report.gate.exit_code != PASSED and not is_red:
        suites.append(TestSuite(GATE, [_gate(report)], properties=said))
    # Pretty-printing inside junit-xml fails on some texts; ElementTree indents afterwards.
    root = ET.fromstring(  # noqa: S314  # our own text
        to_xml_report_string(suites, prettyprint=False, encoding="utf-8")
    )
    root.set("name", "agentv-ci")
    for name in ("tests", "failures", "errors", "skipped"):
        # junit-xml leaves out the last one, and all of a document without suites.
        root.set(name, str(sum(int(each.get(name, "0")) for each in root)))
    for element in root.iter():
        if element.get("time"):
            element.set("time", f"{float(element.get('time', '0')):.3f}")
    # The gate, where it stands there, comes after all rows.
    for element, row in zip(root.iter("testcase"), ordered, strict=False):
        element.insert(0, _properties(_values(row)))
    ET.indent(root)
    text: bytes = ET.tostring(root, encoding="utf-8")
    return b'<?xml version="1.0" encoding="utf-8"?>\n', text, b"\n"


def _key(row: ResultRow) -> tuple[str, str, str]:
    return row.suite, row.eval_id, row.target


def _misses(row: ResultRow) -> bool:
    return row.verdict in ("fail", "borderline")


class _Names:
    """Names that are unique in their class: GitLab ignores what it has seen before."""

    def __init__(self) -> None:
        self._seen: set[tuple[str, str]] = set()

    def of(self, row: ResultRow) -> str:
        """Return the name of a row's test case."""
        name = _line(f"{row.eval_id} [{row.target}]" + (f" #{row.trial}" if row.trial > 1 else ""))
        candidates = (name if number == 1 else f"{name} ({number})" for number in count(1))
        suite = _line(row.suite)
        unique = next(each for each in candidates if (suite, each) not in self._seen)
        self._seen.add((suite, unique))
        return unique


def _gate(report: RunReport) -> TestCase:
    """Return the gate as a test that is not passed: a failure for quality, an error for everything else."""
    gate = report.gate
    case = TestCase("gate", GATE)
    message, text = _line("; ".join(gate.reasons)) or gate.verdict, "\n".join(map(_clean, gate.reasons)) or gate.verdict
    if gate.verdict == "fail":
        case.add_failure_info(message, text, gate.verdict)
    else:
        case.add_error_info(message, text, gate.verdict)
    return case


def _case(row: ResultRow, names: _Names, *, is_made_up_for: bool) -> TestCase:
    case = TestCase(
        names.of(row),
        _line(row.suite),
        # junit-xml leaves a time of 0 out.
        max(round(row.duration_ms / 1000, 3), 0.001),
        file=_path(row.source.path),
        line=row.source.line,
        stdout=_clean(_cut(row.candidate_answer)) or None,
        stderr=f"{row.verdict}, score {row.score:.3f}; other trials make up for it" if is_made_up_for else None,
    )
    if row.verdict == "error":
        text = row.error if row.error and _line(row.error) else "no verdict"
        case.add_error_info(_line(text), _clean(text), _line(row.error_kind or "error"))
    elif _misses(row) and not is_made_up_for:
        found = [f"score {row.score:.3f}", *(row.misses or filter(None, [row.reasoning]))]
        case.add_failure_info(_line("; ".join(found)), _clean("\n".join(found)), row.verdict)
    return case


def _values(row: ResultRow) -> Mapping[str, object]:
    return {
        "score": f"{row.score:.3f}",
        "verdict": row.verdict,
        "target": row.target,
        "trial": row.trial,
        "digest": row.digest,
        "dry_run": str(row.dry_run).lower(),
    }


def _properties(values: Mapping[str, object]) -> ET.Element:
    holder = ET.Element("properties")
    for name, value in values.items():
        ET.SubElement(holder, "property", name=name, value=_line(str(value)))
    return holder


def _clean(text: str) -> str:
    """Text that every XML 1.0 parser accepts: no terminal colours, LF, U+FFFD for what XML forbids."""
    return _ILLEGAL.sub("\ufffd", ANSI.sub("", text).replace("\r\n", "\n").replace("\r", "\n"))


def _path(path: str) -> str:
    """A path for an attribute: whole, for whoever looks for the file."""
    return _clean(path).replace("\n", " ")


def _line(text: str) -> str:
    """Text for an attribute: consumers fold or lose line breaks there."""
    line = " ".join(_clean(text).split())
    return line if len(line) <= MAX_MESSAGE else line[: MAX_MESSAGE - 1] + "…"


def _cut(text: str) -> str:
    return text if len(text) <= MAX_ANSWER else text[:MAX_ANSWER] + f"\n… {len(text) - MAX_ANSWER:,} characters more"
