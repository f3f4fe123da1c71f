"""Minimal plans, rows and runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from hypothesis import strategies as st

from agentv_ci.analysis.cases.outcomes import CaseOutcome
from agentv_ci.analysis.cases.tally import Tally
from agentv_ci.analysis.run_report import report, run_report_of
from agentv_ci.contracts.answer_evaluators import ContainsEvaluator
from agentv_ci.contracts.base import Verdict
from agentv_ci.contracts.command_output import DiagnosticRecord, DiagnosticsDocument, DiagnosticsSummary, FileRecord
from agentv_ci.contracts.diagnostics import Severity
from agentv_ci.contracts.plan import Plan, PlanCase, PlanGate, PlanSource, PlanSuite
from agentv_ci.contracts.report import Ending, GateSettings, RunReport
from agentv_ci.contracts.results import EvaluatorResult, ResultRow, RowSource
from agentv_ci.contracts.targets import MockTarget
from agentv_ci.jsonschema.schemas import schema_id
from agentv_ci.report.view import RunView

VERDICTS: dict[str, Verdict] = {"p": "pass", "b": "borderline", "f": "fail", "e": "error"}

DIGEST = "0" * 64
SUITE = "evals/a.yaml"
SCORES: dict[Verdict, float] = {"pass": 1.0, "borderline": 0.7, "fail": 0.2, "error": 0.0}

NASTY = (
    "\x00", "\x07", "\x0b", "\x1b[31m", "\x1b]0;title\x07", "\x7f", "\x85", "\x9b", "\xa0", "\u2028", "\u2029",
    "\ufeff", "\ufffe", "\uffff", "\ufdd0", "\U0001fffe", "\ud800", "\udfff", "\r", "\r\n", "\n", "\n\n", "\t", " ",
    "  ", ": ", " #", "- ", "---", "...", "|", ">", "%", "@", "`", "!", "&a", "*a", "{", "}", "[", "]", ",", "?", '"',
    "'", "\\", "<", ">", "&", "]]>", "<!--", "0", "1e3", "0x1f", "yes", "null", "~", "=", "<<", "2030-01-01", "😀", "é",
)  # fmt: skip
"""Pieces that are special in some format."""

any_text = st.text(st.characters(exclude_categories=()), max_size=30) | st.lists(
    st.sampled_from(NASTY) | st.text(max_size=3), max_size=8
).map("".join)
"""Any text, including lone surrogates."""


def well_formed(text: str) -> str:
    """Return a text with U+FFFD for lone surrogates."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


well_formed_text = any_text.map(well_formed)
"""Any text that can be an id."""


def case(id: str = "one", *, suite: str = SUITE, line: int = 3, **given: Any) -> PlanCase:  # noqa: A002  # its name
    """A case of a plan."""
    plain = PlanCase(
        id=id,
        suite=suite,
        digest=DIGEST,
        source=PlanSource(path=suite, line=line, column=5, end_line=line + 5),
        target="default",
        input_messages=(),
        expected_messages=(),
        expected_outcome="",
        reference_answer="",
        guidelines=(),
        evaluators=(ContainsEvaluator(name="c", type="contains", value="x"),),
        trials=1,
        require="majority",
        seeds=(),
        timeout_seconds=600,
        max_retries=2,
        threshold=0.8,
        metadata={},
    )
    return plain.model_copy(update=given)


def suite(path: str = SUITE, **gate: Any) -> PlanSuite:
    """A suite with these settings of the gate."""
    return PlanSuite(path=path, dataset="a", gate=PlanGate(**gate))


def plan(*cases: PlanCase, suites: Iterable[PlanSuite] | None = None) -> Plan:
    """A plan of these cases; by default their suites have the default gate."""
    return Plan(
        schema_=schema_id("plan-v1"),
        digest=DIGEST,
        suites=tuple(suites) if suites is not None else tuple(map(suite, dict.fromkeys(each.suite for each in cases))),
        targets={
            name: MockTarget(name=name, provider="mock")
            for name in dict.fromkeys(["default", *(each.target for each in cases)])
        },
        files={},
        cases=cases,
    )


def row(
    verdict: Verdict = "pass",
    score: float | None = None,
    *,
    of: PlanCase | None = None,
    trial: int = 1,
    **given: Any,
) -> ResultRow:
    """The row of one trial of a case."""
    of = of or case()
    is_error = verdict == "error"
    plain = ResultRow(
        timestamp="2030-01-02T03:04:05.000Z",
        eval_id=of.id,
        dataset="a",
        suite=of.suite,
        target="default",
        provider="mock",
        trial=trial,
        trials=of.trials,
        require=of.require,
        digest=of.digest,
        status="error" if is_error else "skipped" if verdict == "skipped" else "ok",
        verdict=verdict,
        score=SCORES.get(verdict) if score is None else score,
        hits=(),
        misses=(),
        reasoning="",
        candidate_answer="Hello",
        evaluator_results=(),
        error="it broke" if is_error else None,
        error_kind="server" if is_error else None,
        attempts=1,
        requests=1,
        duration_ms=1500,
        source=RowSource(path=of.source.path, line=of.source.line),
    )
    return plain.model_copy(update=given)


def rows_of(of: PlanCase, letters: str) -> list[ResultRow]:
    """The trials of a case by letters: p(ass), b(orderline), f(ail), e(rror), c(rash); `-` has no row."""
    return [trial_of(of, number, letter) for number, letter in enumerate(letters, 1) if letter != "-"]


def trial_of(of: PlanCase, number: int, letter: str) -> ResultRow:
    """A trial of a case: the agent crashed (c), or VERDICTS has its verdict; an error is of the infrastructure."""
    if letter == "c":
        return row("error", of=of, trial=number, error_kind="process", error="boom")
    return row(VERDICTS[letter], of=of, trial=number)


def outcomes_of(of: Plan, rows: Iterable[ResultRow]) -> tuple[CaseOutcome, ...]:
    """The outcomes of the cases of a plan."""
    return report(of, rows, Ending())[1]


def whole(rows: Iterable[ResultRow], ending: Ending | None = None) -> tuple[RunReport, tuple[CaseOutcome, ...]]:
    """The report and the outcomes of rows without a plan."""
    tally = Tally()
    for each in rows:
        tally.add(each)
    outcomes = tally.outcomes()
    suites = Counter(each.case.suite for each in outcomes)
    settings = [GateSettings(suite=name, cases=number) for name, number in suites.items()]
    found = run_report_of(
        tally, outcomes, settings, ending or Ending(), plan_digest=None, scenarios=(), comparison=None
    )
    return found, outcomes


def reported(rows: Sequence[ResultRow], ending: Ending | None = None) -> RunView:
    """The view of rows that renderers get."""
    return RunView(*whole(rows, ending), lambda: rows)


def finding(text: str, **given: Any) -> EvaluatorResult:
    """A failed evaluator's result with `text` in every text."""
    plain: dict[str, Any] = {"name": "c", "type": "contains", "status": "ok", "score": 0.5, "verdict": "fail"}
    plain |= {"weight": 1.0, "required": False, "hits": (text,), "misses": (text,)}
    return EvaluatorResult(**{**plain, "reasoning": text, "raw_response": text, **given})


def diagnostics_of(*messages: str, severity: Severity = "error", **given: Any) -> DiagnosticsDocument:
    """A document with these diagnostics in one file."""
    plain: dict[str, Any] = {"rule": "AV202", "severity": severity, "path": "/home/ada/shop/evals/a.yaml"}
    plain |= {"line": 9, "column": 11, "end_line": 9, "end_column": 20, "pointer": None, "case": None, "target": None}
    plain |= {"hint": "write `evaluators`", **given}
    found = tuple(DiagnosticRecord(**plain, message=message) for message in messages)
    errors = len(messages) if severity == "error" else 0
    summary = DiagnosticsSummary(files=1, passed=0, failed=1, skipped=0, errors=errors, warnings=len(messages) - errors)
    file = FileRecord(path=plain["path"], kind="eval", valid=not errors, diagnostics=found)
    return DiagnosticsDocument(schema_="x", files=(file,), summary=summary)
