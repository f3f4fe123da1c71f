"""Cases, evaluators, answers and judges for tests of scoring."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from agentv_ci.app.documents.documents import read_yaml
from agentv_ci.contracts.exchange import Ask, Grade, JudgeQuestion, Log, ProviderError, Request, Response
from agentv_ci.contracts.plan import PlanCase
from agentv_ci.contracts.plan_evaluators import PlanEvaluator
from agentv_ci.contracts.plan_parts import FilePart, FileReference, FileText
from agentv_ci.contracts.results import EvaluatorResult, OutputMessage, ToolCall, Usage
from agentv_ci.evaluate import evaluators
from agentv_ci.evaluate.evaluators import evaluate
from agentv_ci.evaluate.submission import EvaluatorServices, Submission
from tests.support import clean_environment
from tests.support.runs import case

_EVALUATORS: TypeAdapter[PlanEvaluator] = TypeAdapter(PlanEvaluator)


def evaluator(kind: str, **given: Any) -> PlanEvaluator:
    """An evaluator of a type, by default with the type as its name; `given` are its settings."""
    return _EVALUATORS.validate_python({"name": kind, "type": kind, **given})


def plan_case(*evaluators: PlanEvaluator, **given: Any) -> PlanCase:
    """A case with these evaluators; `given` are fields of the plan's case."""
    plain: dict[str, Any] = {"expected_outcome": "It greets.", "reference_answer": "Hello!"}
    plain |= {"timeout_seconds": 30, "max_retries": 0, **({"evaluators": evaluators} if evaluators else {})}
    return case(**{**plain, **given})


def answered(text: str, *calls: ToolCall, has_trace: bool = False) -> Response:
    """An answer of one message."""
    return Response(text, (OutputMessage(role="assistant", content=text, tool_calls=calls),), has_trace=has_trace)


def submission(
    answer: str | Response,
    case: PlanCase | None = None,
    *,
    files: Mapping[str, FileText] | None = None,
    folder: Path = Path(),
) -> Submission:
    """An answer with its case."""
    case = case or plan_case()
    response = answered(answer) if isinstance(answer, str) else answer
    request = Request(
        case_id=case.id, prompt="Say hello.", guidelines="", chat=(), timeout_s=case.timeout_seconds, cwd=folder
    )
    return Submission(case, request, response, files or {})


@dataclass(slots=True)
class Judge:
    """Returns its replies in order, and keeps the questions; see Ask."""

    replies: Sequence[str | ProviderError]
    usage: Usage | None = None
    costs: Sequence[float | None] = ()
    targets: list[str] = field(default_factory=list)
    asked: list[JudgeQuestion] = field(default_factory=list)

    async def __call__(self, target: str, question: JudgeQuestion) -> Response:
        self.targets.append(target)
        self.asked.append(question)
        reply = self.replies[len(self.asked) - 1]
        if isinstance(reply, ProviderError):
            raise reply
        cost = self.costs[len(self.asked) - 1] if self.costs else None
        messages = (OutputMessage(role="assistant", content=reply),)
        return Response(reply, messages, has_trace=False, usage=self.usage, cost_usd=cost)


def _unexpected(warning: str) -> None:
    raise AssertionError(warning)


def tools(
    *,
    ask: Ask | None = None,
    root: Path = Path(),
    environ: Mapping[str, str] | None = None,
    log: Log = print,
    warn: Log = _unexpected,
) -> EvaluatorServices:
    """Services of evaluators; without `ask` there is no judge, without `warn` a warning fails the test."""
    return EvaluatorServices(
        ask=ask or Judge([]),
        locate=lambda reference: root / reference.path,
        locate_together=lambda references: {each.path: root / each.path for each in references},
        read_yaml=read_yaml,
        environ=clean_environment(environ),
        root=root,
        log=log,
        warn=warn,
        clean=lambda result: (result, False),
    )


def grade(case: PlanCase, answer: str | Response, means: EvaluatorServices | None = None) -> Grade:
    """Grade an answer with all evaluators of a case."""
    return asyncio.run(evaluate(submission(answer, case), means or tools()))


def assess(evaluator: PlanEvaluator, answer: str | Response, means: EvaluatorServices | None = None) -> EvaluatorResult:
    """Return the result of one evaluator."""
    (result,) = grade(plan_case(evaluator), answer, means).results
    return result


def fails_case(evaluator: PlanEvaluator, answer: str, means: EvaluatorServices | None = None) -> bool:
    """Whether one evaluator alone fails the case."""
    (assessment,) = asyncio.run(evaluators.assess([evaluator], submission(answer), means or tools()))
    return assessment.fails_case


@dataclass(slots=True)
class Texts:
    """Files of a plan."""

    by_digest: dict[str, FileText] = field(default_factory=dict)

    def add(self, path: str, text: str) -> FileReference:
        """Add a file."""
        digest = hashlib.sha256(text.encode("utf-8")).hexdigest()
        self.by_digest[digest] = FileText(path=path, text=text)
        return FileReference(path=path, sha256=digest)

    def part(self, path: str, text: str, *, is_guideline: bool = False) -> FilePart:
        """Add a file of a message or with a prompt."""
        reference = self.add(path, text)
        return FilePart(type="guideline" if is_guideline else "file", path=reference.path, sha256=reference.sha256)
