"""JUnit XML; the door to junit-xml.

There is no common schema. What is written here is what GitLab, Jenkins, CircleCI, Azure and the usual GitHub actions
read: unique names, file and line on every case, message and content on every failure, counts on both levels.

A test case is a trial. One that did not pass is a `failure` when its case did not pass either: what other trials of a
case make up for is told, not counted. What never ran is `skipped`, once for each case. Every suite has the gate's
verdict among its properties. When the gate is not passed and no case says so, such as for a mean score, a budget or a
missing shard, a suite of its own does: no file is green whose run is not.
"""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby

from junit_xml import TestCase, TestSuite

from agentv_ci.contracts.report import GateResult
from agentv_ci.errors import PASSED
from agentv_ci.report.renderers.junit import xml_text
from agentv_ci.report.renderers.junit.entries import Blame, Entry, Kind, entries_of
from agentv_ci.report.view import RunView

GATE = "agentv-ci gate"
MAX_BYTES = 30_000_000
"""What GitLab reads of a file."""


def render(run: RunView) -> Iterable[bytes]:
    """Return the document; one `<testsuite>` per eval file, in the order of their paths."""
    gate = run.report.gate
    entries = entries_of(run, MAX_BYTES)
    yield b'<?xml version="1.0" encoding="utf-8"?>\n'
    yield from _document(entries, gate)


def _document(entries: Sequence[Entry], gate: GateResult) -> Iterator[bytes]:
    is_red = any(entry.blame is not None and entry.blame.kind != "skipped" for entry in entries)
    of_gate = [_gate(gate)] if gate.exit_code != PASSED and not is_red else []
    yield _opened(ET.Element("testsuites", {"name": "agentv-ci", **_counts([*entries, *of_gate])}), 0)
    names = _Names()
    said = {"gate": gate.verdict, "exit_code": str(gate.exit_code)}
    for path, group in groupby(entries, key=lambda entry: entry.suite):
        yield from _suite(path, list(group), names, said)
    if of_gate:
        yield from _suite(GATE, of_gate, names, said)
    yield b"</testsuites>\n"


def _suite(path: str, entries: Sequence[Entry], names: _Names, properties: Mapping[str, str]) -> Iterator[bytes]:
    start = min((entry.start for entry in entries if entry.start is not None), default=None)
    suite = TestSuite(
        xml_text.line(path),
        file=xml_text.path(path) if entries[0].path else None,
        # Without a time zone, as readers that check it expect.
        timestamp=start.replace(tzinfo=None).isoformat(timespec="seconds") if start is not None else None,
        properties=properties,
    )
    head = suite.build_xml_doc(encoding="utf-8")
    head.attrib.update(_counts(entries))
    # Schemas that know it are few, and nothing here can be disabled.
    del head.attrib["disabled"]
    yield _opened(head, 1)
    for entry in entries:
        yield _indented(_element(entry, names), 2)
    yield b"  </testsuite>\n"


def _element(entry: Entry, names: _Names) -> ET.Element:
    case = TestCase(
        names.of(entry),
        xml_text.line(entry.suite),
        file=xml_text.path(entry.path) or None,
        line=entry.line,
        stdout=str(entry.answer) or None,
        stderr=entry.remark or None,
    )
    if entry.blame is not None:
        _tell(entry.blame, case)
    element: ET.Element
    (element,) = TestSuite("", [case]).build_xml_doc(encoding="utf-8")
    # junit-xml leaves a time of 0 out, and knows no properties of cases.
    element.set("time", _seconds(entry.milliseconds))
    if entry.properties:
        holder = ET.Element("properties")
        for name, value in entry.properties.items():
            ET.SubElement(holder, "property", name=name, value=value)
        element.insert(0, holder)
    return element


def _tell(blame: Blame, case: TestCase) -> None:
    match blame.kind:
        case "failure":
            case.add_failure_info(blame.message, str(blame.text), blame.type)
        case "error":
            case.add_error_info(blame.message, str(blame.text), blame.type)
        case "skipped":
            case.add_skipped_info(blame.message, str(blame.text))


def _gate(gate: GateResult) -> Entry:
    """Return the gate as a test that is not passed: a failure for quality, an error for everything else."""
    kind: Kind = "failure" if gate.verdict == "fail" else "error"
    blame = Blame.of(kind, gate.verdict, gate.reasons, otherwise=gate.verdict)
    return Entry(suite=GATE, id="gate", blame=blame)


def _counts(entries: Sequence[Entry]) -> dict[str, str]:
    kinds = [entry.blame.kind for entry in entries if entry.blame is not None]
    return {
        "tests": str(len(entries)),
        "failures": str(kinds.count("failure")),
        "errors": str(kinds.count("error")),
        "skipped": str(kinds.count("skipped")),
        "time": _seconds(sum(entry.milliseconds for entry in entries)),
    }


def _seconds(milliseconds: int) -> str:
    return f"{milliseconds // 1000}.{milliseconds % 1000:03d}"


def _opened(element: ET.Element, level: int) -> bytes:
    """The element without its end."""
    element.text = element.text or "\n"
    text, _, _ = _indented(element, level).rpartition(b"</")
    return text.rstrip() + b"\n"


def _indented(element: ET.Element, level: int) -> bytes:
    ET.indent(element, level=level)
    text: bytes = ET.tostring(element, encoding="utf-8")
    return b"  " * level + text + b"\n"


class _Names:
    """Names that are unique in their class: GitLab ignores what it has seen before."""

    def __init__(self) -> None:
        self._seen: set[tuple[str, str]] = set()
        self._numbers: dict[tuple[str, str], int] = {}

    def of(self, entry: Entry) -> str:
        """Return the name of an entry."""
        suite = xml_text.line(entry.suite)
        name = xml_text.line(entry.name)
        number = self._numbers.get((suite, name), 0)
        unique = ""
        while not unique or (suite, unique) in self._seen:
            number += 1
            unique = name if number == 1 else f"{name} ({number})"
        self._numbers[suite, name] = number
        self._seen.add((suite, unique))
        return unique
