"""JUnit XML; the door to junit-xml.

JUnit XML is not standardized. This is what GitLab, Jenkins, CircleCI, Azure and the common GitHub
actions read: unique names, file and line on every test case, message and content on every failure,
counts on both levels.

A test case is a trial. One that did not pass is a `failure` or, without a verdict, an `error`. It
is a remark and not counted if its case passed, unless there are more errors than the gate allows,
and in an experiment, which compares trials instead of expecting all of them to pass. Trials that
did not run are `skipped`, once per case; those in quarantine that did not pass are, too. Every
suite has the verdict of the gate as a property. If the gate is not passed and no test shows it,
such as for a mean score, a budget or a missing shard, an extra suite does: a run that did not pass
never has a green file.

If the file gets too large, answers are shortened, those of passed trials first; no test is left
out.
"""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import groupby, product
from typing import Literal

from junit_xml import TestCase, TestSuite
from msgspec import Struct, field
from msgspec.structs import replace

from agentv_ci.analysis.cases.outcomes import CaseOutcome
from agentv_ci.contracts.quarantine import Quarantine
from agentv_ci.contracts.report import Group, RunReport
from agentv_ci.contracts.results import ResultRow
from agentv_ci.errors import PASSED
from agentv_ci.report import xml_text
from agentv_ci.report.quarantine import sentence
from agentv_ci.report.view import STOPS, RunView, started
from agentv_ci.report.xml_text import MAX_TEXT, Excerpt

GATE = "agentv-ci gate"
MAX_BYTES = 30_000_000
"""The most that GitLab reads."""
MARKUP = 1_000
"""Bytes of a test's tags with short names."""
CUTS = (
    *product(("passed", "others"), (3_000, 1_000, 300, 100, 0)),
    *product(("reasons",), (3_000, 1_000, 300)),
)
"""The limits, in turn, for answers that passed, other answers, and the reasons of those."""

_Names = Counter[tuple[str, str]]
"""How often each name was used, by suite."""
Kind = Literal["failure", "error", "skipped"]
"""The element that marks a test that is not green."""


class _Blame(Struct, frozen=True):
    """Why a test is not green."""

    kind: Kind
    type: str
    message: str
    """One line."""
    text: Excerpt

    @classmethod
    def of(
        cls, kind: Kind, name: str, reasons: Iterable[str], default: str = "no verdict"
    ) -> _Blame:
        """Return the blame for some reasons, or for `default` if they have no visible text."""
        lines = list(reasons)
        message = xml_text.line("; ".join(lines))
        return cls(
            kind, name, message or default, Excerpt("\n".join(lines) if message else default)
        )


class _Entry(Struct, frozen=True, kw_only=True):
    """A test, with only what the file needs of its row."""

    suite: str
    id: str
    target: str = ""
    trial: int = 1
    path: str = ""
    line: int | None = None
    milliseconds: int = 0
    start: datetime | None = None
    blame: _Blame | None = None
    answer: Excerpt = field(default_factory=lambda: Excerpt(""))
    remark: str = ""
    properties: Mapping[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The name in its suite, not yet unique."""
        if not self.target:
            return self.id
        trial = f" #{self.trial}" if self.trial > 1 else ""
        return f"{self.id} [{self.target}]{trial}"

    @property
    def order(self) -> tuple[str, int, str, str, int]:
        """The sort key: rows are in the order in which answers arrived."""
        return self.suite, self.line or 0, self.id, self.target, self.trial

    @property
    def size(self) -> int:
        """The approximate number of bytes."""
        attributes = [
            self.suite,
            self.id,
            self.target,
            self.path,
            self.properties.get("tags", ""),
        ]
        texts = self.answer.size
        if self.blame is not None:
            attributes.append(self.blame.message)
            texts += self.blame.text.size
        for attribute in attributes:
            texts += xml_text.size(attribute) + 5 * attribute.count('"')
        return MARKUP + texts

    def cut(self, limits: Mapping[str, int]) -> None:
        """Shorten its texts."""
        self.answer.cut(limits.get("others" if self.blame else "passed", MAX_TEXT))
        if self.blame is not None:
            self.blame.text.cut(limits.get("reasons", MAX_TEXT))


def render(run: RunView) -> Iterable[bytes]:
    """Return the document, with one `<testsuite>` per eval file in the order of their paths."""
    gate = run.report.gate
    entries = sorted(_fitted(_entries(run), MAX_BYTES), key=lambda entry: entry.order)
    kinds = _kinds(entries)
    if gate.exit_code != PASSED and not (kinds["failure"] or kinds["error"]):
        # A failure for quality, an error for everything else.
        kind: Kind = "failure" if gate.verdict == "fail" else "error"
        blame = _Blame.of(kind, gate.verdict, gate.reasons, gate.verdict)
        entries.append(_Entry(suite=GATE, id="gate", blame=blame))
    yield b'<?xml version="1.0" encoding="utf-8"?>\n'
    yield _opened(ET.Element("testsuites", {"name": "agentv-ci", **_counts(entries)}), 0)
    taken: _Names = Counter()
    properties = {"gate": gate.verdict, "exit_code": str(gate.exit_code)}
    costs = {group.name: _cost_properties(group) for group in run.report.suites}
    for path, group in groupby(entries, key=lambda entry: entry.suite):
        yield from _suite(path, list(group), taken, properties | costs.get(path, {}))
    yield b"</testsuites>\n"


def _fitted(entries: Iterable[_Entry], max_bytes: int) -> list[_Entry]:
    """Collect entries, and shorten their texts further each time they get too large together."""
    fitted: list[_Entry] = []
    total, cuts, limits = 0, iter(CUTS), dict[str, int]()
    for entry in entries:
        entry.cut(limits)
        fitted.append(entry)
        total += entry.size
        while total > max_bytes and (cut := next(cuts, None)):
            limits |= [cut]
            for point in fitted:
                point.cut(limits)
            total = sum(entry.size for entry in fitted)
    return fitted


def _entries(run: RunView) -> Iterator[_Entry]:
    """Yield a test for every trial, and one for all missing trials of a case."""
    made_up_for = {
        outcome.key
        for outcome in run.outcomes
        if outcome.verdict == "pass" and outcome.passed < outcome.ran
    }
    with_errors = {cause.suite for cause in run.report.gate.causes if cause.kind == "errors"}
    quarantined = {outcome.key: outcome.quarantine for outcome in run.quarantined}
    for row in run.rows():
        why = None
        if row.verdict != "error" or row.suite not in with_errors:
            why = _excuse(run, is_made_up_for=row.case_key in made_up_for)
        entry = _of_row(row, why)
        quarantine = quarantined.get(row.case_key)
        yield entry if quarantine is None else _excused(entry, quarantine)
    for outcome in run.outcomes:
        if outcome.missing > 0:
            yield _of_missing(outcome, run.report)


def _excuse(run: RunView, *, is_made_up_for: bool) -> str | None:
    """Return why a trial that does not pass is not red; None if it is."""
    if is_made_up_for:
        return "other trials make up for it"
    if run.report.experiment is None:
        return None
    return f"the experiment is {run.report.experiment.verdict}"


def _of_row(row: ResultRow, excuse: str | None) -> _Entry:
    remark = "" if excuse is None else _remark(row, excuse)
    return _Entry(
        suite=row.suite,
        id=row.eval_id,
        target=row.arm or row.target,
        trial=row.trial,
        path=row.source.path,
        line=row.source.line,
        # Consumers take a time of zero for an unknown one.
        milliseconds=max(row.duration_ms, 1) if row.verdict != "skipped" else 0,
        start=started(row),
        blame=None if remark else _blame(row),
        answer=Excerpt(row.candidate_answer),
        remark=remark,
        properties=_row_properties(row),
    )


def _remark(row: ResultRow, excuse: str) -> str:
    """Return what became of a trial that is excused; empty if it passed or was skipped."""
    if row.verdict in ("fail", "borderline"):
        return f"{row.verdict}, score {row.score:.3f}; {excuse}"
    if row.verdict == "error":
        return f"{row.error_kind or 'error'}: {xml_text.line(row.error or '')}; {excuse}"
    return ""


def _row_properties(row: ResultRow) -> dict[str, str]:
    properties: dict[str, str] = {"verdict": row.verdict}
    if row.score is not None:
        properties = {"score": f"{row.score:.3f}", **properties}
    return properties | _properties(
        row.arm or row.target, row.trial, row.digest, row.tags, dry_run=row.dry_run
    )


def _excused(entry: _Entry, quarantine: Quarantine) -> _Entry:
    """Return the test of a case in quarantine, which is not red."""
    properties = {**entry.properties, "quarantine": xml_text.line(quarantine.expires)}
    if entry.blame is None:
        return replace(entry, properties=properties)
    blame = _Blame.of(
        "skipped", "quarantine", [sentence(quarantine), *str(entry.blame.text).splitlines()]
    )
    return replace(entry, blame=blame, properties=properties)


def _of_missing(outcome: CaseOutcome, report: RunReport) -> _Entry:
    """Return one test for all missing trials of a case: one for each could be millions."""
    case = outcome.case
    ran = {trial.number for trial in outcome.trials}
    first = next(number for number in range(1, case.trials + 1) if number not in ran)
    return _Entry(
        suite=case.suite,
        id=case.id,
        target=outcome.target,
        trial=first,
        path=case.source.path,
        line=case.source.line,
        blame=_Blame.of("skipped", "skipped", [_why_missing(outcome, report)]),
        properties=_properties(
            outcome.target, first, case.digest, case.tags or (), dry_run=report.dry_run
        ),
    )


def _why_missing(outcome: CaseOutcome, report: RunReport) -> str:
    why = "not run" if report.leaves_cases else "no result"
    if outcome.case.trials > 1:
        why = f"{outcome.missing} of {outcome.case.trials} trials: {why}"
    if report.stopped is not None and report.leaves_cases:
        why += f": {STOPS[report.stopped]}"
    return why


def _blame(row: ResultRow) -> _Blame | None:
    if row.verdict == "pass":
        return None
    if row.verdict == "skipped":
        return _Blame.of("skipped", "skipped", [row.skip or ""], "no reason is given")
    if row.verdict == "error":
        return _Blame.of("error", row.error_kind or "error", [row.error or ""])
    reasons = row.misses or filter(None, [row.reasoning])
    return _Blame.of("failure", row.verdict, [f"score {row.score:.3f}", *reasons])


def _cost_properties(group: Group) -> dict[str, str]:
    """Return the known cost of a suite, and of each case that passed."""
    costs = {"cost_usd": group.total_usd, "cost_per_pass_usd": group.cost_per_pass_usd}
    return {name: f"{amount:.6f}" for name, amount in costs.items() if amount is not None}


def _properties(
    target: str, trial: int, digest: str, tags: Sequence[str], *, dry_run: bool
) -> dict[str, str]:
    values = {
        "target": target,
        "trial": str(trial),
        "digest": digest,
        "dry_run": str(dry_run).lower(),
    }
    if tags:
        values["tags"] = ", ".join(tags)
    return {name: xml_text.line(value) for name, value in values.items()}


def _suite(
    path: str, entries: Sequence[_Entry], taken: _Names, properties: Mapping[str, str]
) -> Iterator[bytes]:
    suite = TestSuite(
        xml_text.line(path),
        file=xml_text.path(path) if entries[0].path else None,
        timestamp=_timestamp(entries),
        properties=properties,
    )
    head = suite.build_xml_doc(encoding="utf-8")
    head.attrib.update(_counts(entries))
    # Few schemas know it, and nothing here can be disabled.
    del head.attrib["disabled"]
    yield _opened(head, 1)
    for entry in entries:
        yield _indented(_element(entry, _unique_name(entry, taken)), 2)
    yield b"  </testsuite>\n"


def _timestamp(entries: Sequence[_Entry]) -> str | None:
    """Return when the first test began, without a time zone, as strict readers expect."""
    start = min((entry.start for entry in entries if entry.start is not None), default=None)
    if start is None:
        return None
    return start.replace(tzinfo=None).isoformat(timespec="seconds")


def _unique_name(entry: _Entry, taken: _Names) -> str:
    """Return a name that is unique in its class: GitLab ignores duplicates."""
    suite, name = xml_text.line(entry.suite), xml_text.line(entry.name)
    unique = name
    while taken[suite, unique]:
        taken[suite, name] += 1
        unique = f"{name} ({taken[suite, name]})"
    taken[suite, unique] += 1
    return unique


def _element(entry: _Entry, name: str) -> ET.Element:
    case = TestCase(
        name,
        xml_text.line(entry.suite),
        file=xml_text.path(entry.path) or None,
        line=entry.line,
        stdout=str(entry.answer) or None,
        stderr=entry.remark or None,
    )
    element: ET.Element = TestSuite("", [case]).build_xml_doc(encoding="utf-8")[0]
    # junit-xml omits a time of 0 and does not support properties of test cases.
    element.set("time", _seconds(entry.milliseconds))
    if (blame := entry.blame) is not None:
        element.insert(0, ET.Element(blame.kind, {"type": blame.type, "message": blame.message}))
        element[0].text = str(blame.text)
    if entry.properties:
        element.insert(0, ET.Element("properties"))
        for key, value in entry.properties.items():
            ET.SubElement(element[0], "property", name=key, value=value)
    return element


def _kinds(entries: Sequence[_Entry]) -> Counter[Kind]:
    return Counter(entry.blame.kind for entry in entries if entry.blame is not None)


def _counts(entries: Sequence[_Entry]) -> dict[str, str]:
    kinds = _kinds(entries)
    return {
        "tests": str(len(entries)),
        "failures": str(kinds["failure"]),
        "errors": str(kinds["error"]),
        "skipped": str(kinds["skipped"]),
        "time": _seconds(sum(entry.milliseconds for entry in entries)),
    }


def _seconds(milliseconds: int) -> str:
    return f"{milliseconds // 1000}.{milliseconds % 1000:03d}"


def _opened(element: ET.Element, level: int) -> bytes:
    """Return the element without its end tag."""
    element.text = element.text or "\n"
    text, _, _ = _indented(element, level).rpartition(b"</")
    return text.rstrip() + b"\n"


def _indented(element: ET.Element, level: int) -> bytes:
    ET.indent(element, level=level)
    text: bytes = ET.tostring(element, encoding="utf-8")
    return b"  " * level + text + b"\n"
