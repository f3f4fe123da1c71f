"""The evaluators `command` and `junit`.

They run a command in a clean tree, with nothing of the agent but its submitted changes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from secrets import token_hex
from xml.etree import ElementTree as ET

from msgspec import Struct
from msgspec.structs import replace

from agentv_ci.base.left_files import read_left
from agentv_ci.base.patterns import InvalidPattern, compiled, occurs
from agentv_ci.base.process import MAX_OUTPUT_BYTES, ProcessFailed, ProgramNotStarted
from agentv_ci.base.text import shortened
from agentv_ci.base.tracebacks import last_words
from agentv_ci.contracts.exchange import ProcessResult, Score
from agentv_ci.contracts.plan_evaluators import PlanCommandEvaluator, PlanJunitEvaluator
from agentv_ci.evaluate.scoring import share_met
from agentv_ci.evaluate.submission import EvaluatorServices, Submission, without_work
from agentv_ci.workspaces.bases import UnusableWorkspace
from agentv_ci.workspaces.places import TrialPlace, Work
from agentv_ci.workspaces.trees import cleared

REPORT = "{REPORT}"
MAX_SHOWN = 300
MAX_XML_BYTES = MAX_OUTPUT_BYTES

Finding = tuple[bool, str]


class _Ended(Struct, frozen=True):
    """A command that has ended, or has not in time."""

    result: ProcessResult | None
    problem: str | None
    """Why it has no result: it took too long, or used too much."""
    report: bytes | None
    """The report, where there is one."""

    @property
    def stderr(self) -> str | None:
        """What it printed to standard error."""
        if self.result is None:
            return None
        return self.result.stderr.strip() or None

    @property
    def exit_code(self) -> str:
        """Its exit code, for people."""
        return str(self.result.status) if self.result is not None else "?"


async def command(
    settings: PlanCommandEvaluator, submission: Submission, services: EvaluatorServices
) -> Score:
    """Return the share of the checks that the command meets; all need the expected exit code."""
    ended = await _run(settings, submission)
    if isinstance(ended, Score):
        return ended
    if ended.result is None:
        return Score(0.0, misses=(f"the command {ended.problem}",))
    if ended.result.status != settings.exit_code:
        said = last_words(ended.result.stderr) or last_words(ended.result.stdout)
        reason = f"exit code {ended.exit_code}{f': {shortened(said, MAX_SHOWN)}' if said else ''}"
        return Score(0.0, misses=(reason,), stderr=ended.stderr)
    try:
        findings = await asyncio.to_thread(_checked, settings, ended.result.stdout)
    except TimeoutError:
        return Score(error=f"the pattern took too long: '{settings.regex}'")
    except InvalidPattern as error:
        return Score(error=f"not a regular expression: {error}")
    findings = _with_output(findings, ended.result.stdout)
    return share_met([(True, f"exit code {settings.exit_code}"), *findings])


def _checked(settings: PlanCommandEvaluator, stdout: str) -> list[Finding]:
    return [*_checks(settings, stdout)]


def _checks(settings: PlanCommandEvaluator, stdout: str) -> Iterator[Finding]:
    for phrase in settings.contains or ():
        yield phrase in stdout, f"{'prints' if phrase in stdout else 'does not print'} '{phrase}'"
    if settings.regex is not None:
        found = occurs(compiled(settings.regex), stdout)
        yield found, f"output {'matches' if found else 'does not match'} '{settings.regex}'"
    if settings.equals is not None:
        expected = settings.equals.strip()
        is_equal = expected == stdout.strip()
        text = "prints the expected text" if is_equal else f"does not print {_quoted(expected)}"
        yield is_equal, text


def _with_output(findings: Sequence[Finding], stdout: str) -> list[Finding]:
    """Return findings, of which the first that failed says what the command printed."""
    said = list(findings)
    failed = next((number for number, (is_met, _) in enumerate(said) if not is_met), None)
    if failed is not None:
        printed = stdout.strip()
        said[failed] = (
            False,
            f"{said[failed][1]}; printed {_quoted(printed) if printed else 'nothing'}",
        )
    return said


def _quoted(text: str) -> str:
    return f"'{shortened(text, MAX_SHOWN)}'"


async def junit(
    settings: PlanJunitEvaluator, submission: Submission, services: EvaluatorServices
) -> Score:
    """Return the share of the listed tests that pass, or of all; without a report none does."""
    ended = await _run(settings, submission)
    if isinstance(ended, Score):
        return ended
    if ended.report is None:
        reason = ended.problem or f"wrote no report (exit code {ended.exit_code})"
        return Score(0.0, misses=(f"the command {reason}",), stderr=ended.stderr)
    try:
        tests = _tests(ended.report)
    except ET.ParseError as error:
        return Score(0.0, misses=(f"the report is not XML: {error}",), stderr=ended.stderr)
    findings = [*_of_tests(tests, settings)]
    if ended.result is None or (ended.result.status != 0 and all(tests.values())):
        # A report of success by a command that failed is not what the tests have said.
        reason = ended.problem or f"ended with exit code {ended.exit_code}"
        findings.append((False, f"every test passes in the report, but the command {reason}"))
    score = share_met(findings or [(False, "the report has no tests")])
    return replace(score, stderr=ended.stderr)


def _of_tests(tests: Mapping[str, bool], settings: PlanJunitEvaluator) -> Iterator[Finding]:
    wanted = (*(settings.fail_to_pass or ()), *(settings.pass_to_pass or ()))
    if wanted:
        yield from _listed(tests, wanted)
        return
    for name, passed in tests.items():
        yield passed, name


def _listed(tests: Mapping[str, bool], wanted: tuple[str, ...]) -> Iterator[Finding]:
    """Yield whether each listed test passes: all tests of its name, and at least one."""
    for each in wanted:
        found = [
            passed for name, passed in tests.items() if each in (name, name.partition("::")[2])
        ]
        yield bool(found) and all(found), each if found else f"{each} did not run"


def _tests(report: bytes) -> dict[str, bool]:
    """Return `classname::name` → whether the test passed; a skipped one has not.

    Raises ParseError.
    """
    tests: dict[str, bool] = {}
    # expat bounds how far entities expand, and reads no other files.
    for case in ET.fromstring(report).iter("testcase"):  # noqa: S314
        name = f"{case.get('classname', '')}::{case.get('name', '')}"
        passed = not any(child.tag in ("failure", "error", "skipped") for child in case)
        tests[name] = passed and tests.get(name, True)
    return tests


async def _run(
    settings: PlanCommandEvaluator | PlanJunitEvaluator, submission: Submission
) -> _Ended | Score:
    """Run the command; returns a score only if it cannot be graded at all."""
    work = submission.work
    if not isinstance(work, Work):
        return without_work(work)
    files = {path: submission.files[file.sha256].content for path, file in settings.files.items()}
    timeout_s = settings.timeout_seconds or submission.case.timeout_seconds
    try:
        async with work.clean_tree(files) as place:
            return await _in(place, settings, timeout_s)
    except ProgramNotStarted as error:
        return Score(error=f"the command {error}")
    except (OSError, UnusableWorkspace) as error:
        return Score(error=f"the clean tree cannot be made: {error}")


async def _in(
    place: TrialPlace, settings: PlanCommandEvaluator | PlanJunitEvaluator, timeout_s: float
) -> _Ended:
    # A name that the submitted code cannot know in advance.
    folder, name = place.scratch, f"{token_hex(8)}.xml"
    argv = [word.replace(REPORT, str(folder / name)) for word in settings.argv]
    if isinstance(settings, PlanJunitEvaluator) and REPORT not in " ".join(settings.argv):
        folder, name = place.folder, settings.report
        cleared(folder, name)
    result, problem, report = None, None, None
    try:
        result = await place.run(argv, env={}, timeout_s=timeout_s)
    except ProgramNotStarted:
        raise
    except ProcessFailed as error:
        problem = str(error)
    with suppress(OSError):
        report = await asyncio.to_thread(read_left, folder, name, MAX_XML_BYTES)
    return _Ended(result, problem, report)
