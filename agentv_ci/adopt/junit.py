"""JUnit XML of any test runner."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree as ET

from agentv_ci.adopt.values import slug
from agentv_ci.contracts.adopted import AdoptedResult


def results(path: Path) -> Iterator[AdoptedResult]:
    """Yield the test cases of a file; raises OSError and ValueError for a file that is none."""
    try:
        # expat refuses entities that expand without end, and the standard library loads none from outside.
        root = ET.parse(path).getroot()  # noqa: S314
    except ET.ParseError as error:
        raise ValueError(f"not XML: {error}") from error
    for case in root.iter("testcase"):
        yield _result(case)


def _result(case: ET.Element) -> AdoptedResult:
    name, group = case.get("name") or "test", case.get("classname") or ""
    failure, error, skipped = (case.find(kind) for kind in ("failure", "error", "skipped"))
    why = next((_text(each) for each in (error, failure, skipped) if each is not None), "")
    line = case.get("line") or ""
    return AdoptedResult(
        id=slug(f"{group}.{name}" if group else name),
        passed=None if error is not None or skipped is not None else failure is None,
        answer=(case.findtext("system-out") or "").strip(),
        outcome=name,
        suite=case.get("file"),
        line=max(1, int(line)) if line.isdigit() else 1,
        reasoning=why,
        error=why or "error" if error is not None else None,
        skip=(why or "skipped") if skipped is not None and error is None else None,
        duration_ms=_milliseconds(case.get("time")),
        definition={"name": name, "group": group},
    )


def _text(element: ET.Element) -> str:
    return "\n".join(filter(None, [element.get("message"), (element.text or "").strip()]))


def _milliseconds(seconds: str | None) -> int:
    try:
        return max(0, round(float((seconds or "0").replace(",", "")) * 1000))
    except (ValueError, OverflowError):
        return 0
