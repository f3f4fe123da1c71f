"""One trial: asked until there is an answer, which is then graded."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path

from agentv_ci.contracts.base import ErrorKind
from agentv_ci.contracts.exchange import Ask, ChatMessage, Grade, JudgeQuestion, ProviderError, Request, Response
from agentv_ci.contracts.plan import Plan
from agentv_ci.contracts.results import ResultRow
from agentv_ci.execute.materials import Materials
from agentv_ci.execute.prompt import build_request
from agentv_ci.execute.run import GradeAnswer, Progress, RunOptions, RunServices
from agentv_ci.execute.services import unwritable
from agentv_ci.execute.targets import OpenTargets
from agentv_ci.results.rows import Effort, Trial, failed_row, graded_row, regraded_row, stored_response
from agentv_ci.text import shortened

MAX_WARNING = 300
REPEATED: frozenset[ErrorKind] = frozenset({"timeout", "process"})
"""Failures that another attempt may mend; providers have repeated everything else themselves."""


@dataclass(frozen=True, slots=True)
class TrialRunner:
    """Makes rows of trials."""

    plan: Plan
    options: RunOptions
    services: RunServices
    targets: OpenTargets
    grade: GradeAnswer
    materials: Materials
    progress: Progress
    folders: Mapping[str, Path]
    """By suite, the folder of the eval file."""

    async def run(self, trial: Trial) -> ResultRow:
        """Ask until there is an answer, and have it graded."""
        label, now = _label(trial), self.services.environment.now
        try:
            request = self.request(trial)
        except ProviderError as error:
            return failed_row(trial, Effort(attempts=1, requests=0, duration_ms=0), error, now=now())
        response, effort = await self._attempts(trial, request, label)
        if isinstance(response, ProviderError):
            return failed_row(trial, effort, response, now=now())
        if not response.answer.strip():
            self.services.warn(f"{trial.target.name}: an answer is empty")
        grade = await self._grade(trial, request, response, label)
        trace = self.options.include_trace
        return graded_row(trial, effort, response, grade, now=now(), include_trace=trace)

    async def _attempts(self, trial: Trial, request: Request, label: str) -> tuple[Response | ProviderError, Effort]:
        """Return the answer, or the failure of the last attempt, and what it took."""
        monotonic, requests = self.services.environment.monotonic, 0
        for attempt in count():
            self.services.log(f"{label}: asks {trial.target.name}" + (f", attempt {attempt + 1}" if attempt else ""))
            begun = monotonic()
            try:
                response = await self.targets.answer(trial, replace(request, attempt=attempt) if attempt else request)
            except (ProviderError, OSError) as failure:
                error = failure if isinstance(failure, ProviderError) else self._unwritable(failure)
                requests += error.requests
                took_ms = round((monotonic() - begun) * 1000)
                self.services.log(f"{label}: {error.kind}: {error.detail}")
                if error.kind not in REPEATED or attempt == trial.case.max_retries:
                    return error, Effort(attempt + 1, requests, took_ms)
                self.progress.retries += 1
            else:
                return response, Effort(attempt + 1, requests + response.requests, response.duration_ms or 0)
        raise AssertionError("the last attempt ends the loop")

    async def rescore(self, trial: Trial, row: ResultRow) -> ResultRow:
        """Return a row whose stored answer is scored as the plan says; one without an answer stays as it is."""
        row = self.services.redactor.row(row)
        if row.error_kind not in (None, "evaluator"):
            return row
        now = self.services.environment.now()
        try:
            request = self.request(trial)
        except ProviderError as error:
            return failed_row(trial, Effort(row.attempts, row.requests, row.duration_ms), error, now=now)
        grade = await self._grade(trial, request, stored_response(row), _label(trial))
        return regraded_row(row, trial.case, grade, now=now, dry_run=self.options.dry_run)

    async def _grade(self, trial: Trial, request: Request, response: Response, label: str) -> Grade:
        log = self.services.log
        grade = await self.grade(trial.case, request, response, self._judge_of(trial, label))
        log(f"{label}: {grade.verdict}, score {grade.score:.3f}")
        for each in grade.results:
            found = "; ".join(each.hits if each.verdict == "pass" else each.misses) or each.reasoning
            log(f"{label}: {each.name} ({each.type}): {each.verdict}, score {each.score:.3f}: {found}")
            if each.status == "error":
                reasoning = shortened(each.reasoning, MAX_WARNING)
                self.services.warn(f"evaluator '{each.name}' could not score: {reasoning}")
        return grade

    def request(self, trial: Trial) -> Request:
        """Return a trial's question; raises ProviderError where its files cannot be laid out."""
        case, locate = trial.case, self.materials.locate
        try:
            return build_request(case, self.plan.files, locate, cwd=self.folders[case.suite], seed=trial.seed)
        except OSError as error:
            raise self._unwritable(error) from error

    def _unwritable(self, error: OSError) -> ProviderError:
        """Such as a full disk, or no free file number: that of one question ends no run."""
        failure = unwritable(error)
        self.services.redactor.clean(failure)
        return failure

    def _judge_of(self, trial: Trial, label: str) -> Ask:
        """A judge is a target like any other; it gets one text or a chat, whichever it takes."""
        case = trial.case

        async def ask(target: str, question: JudgeQuestion) -> Response:
            request = Request(
                case_id=case.id,
                prompt=f"{question.system}\n\n{question.user}",
                guidelines="",
                chat=(ChatMessage("system", question.system), ChatMessage("user", question.user)),
                timeout_s=case.timeout_seconds,
                cwd=self.folders[case.suite],
                temperature=question.temperature,
                max_output_tokens=question.max_output_tokens,
                sample=question.sample,
            )
            self.services.log(f"{label}: asks {self.plan.targets[target].name} to judge")
            response = await self.targets.ask(target, request, trial)
            return replace(response, cost_usd=0.0) if response.cached else response

        return ask


def _label(trial: Trial) -> str:
    return f"{trial.case.id} (trial {trial.number})" if trial.case.trials > 1 else trial.case.id
