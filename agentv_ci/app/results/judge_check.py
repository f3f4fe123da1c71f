"""Judge set → a plan and its answers → rows → agreement of the judge with human labels."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from itertools import chain, count
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from agentv_ci.analysis.agreement import Agreement, measure
from agentv_ci.app.documents.compile import CompiledPlan, Origin
from agentv_ci.app.documents.documents import Documents, no_targets
from agentv_ci.app.run.files import RunFiles
from agentv_ci.app.run.trials import run_trials
from agentv_ci.base.text import did_you_mean, listed
from agentv_ci.compile.compilation import Compilation
from agentv_ci.compile.overrides import Overrides, override
from agentv_ci.contracts.base import JsonObject
from agentv_ci.contracts.diagnostics import Diagnostic
from agentv_ci.contracts.documents import CheckedDocument, DocumentContext
from agentv_ci.contracts.evals import EvalDocument
from agentv_ci.contracts.judge_evaluators import JudgeSetDocument, LabelledAnswer
from agentv_ci.contracts.plan import Plan
from agentv_ci.contracts.results import ResultRow
from agentv_ci.contracts.targets import MockTarget, Target, TargetsDocument
from agentv_ci.errors import Interrupted, InvalidInput, NothingToRun, UsageError
from agentv_ci.execute.run_services import RunOptions, RunServices, StoredAnswers
from agentv_ci.load.discover import discover, find_dotenv
from agentv_ci.results.rows import Trial, unscored_row

ANSWERS = "labelled answers"
"""The name of the target that stands for the answers of the set."""


class JudgeCheck(Struct, frozen=True):
    """A judge set, ready to run."""

    compiled: CompiledPlan
    items: tuple[LabelledAnswer, ...]
    judge: Target


def prepare_judge_check(
    path: str, *, targets: str | None, judge_target: str | None, cwd: Path
) -> JudgeCheck:
    """Read a judge set and compile it; `judge_target` overrides its own judge.

    Raises InvalidInput with all diagnostics, or UsageError.
    """
    files = discover([path], cwd)
    if not files:
        raise NothingToRun(f"no judge set in '{path}'")
    if len(files) > 1:
        raise UsageError(f"expected one judge set; '{path}' contains {len(files)} documents")
    (found,) = files
    documents = Documents(cwd, targets)
    checked = documents.check(found.path, named=True)
    if checked.source.kind not in ("judge-set", None):
        raise UsageError(
            f"'{path}' is not a judge set", hint="a judge set has $schema: agentv-judge-set-v1"
        )
    context = documents.context(found.path)
    document = checked.document
    is_valid = all(read.valid for read in (checked, *context.others))
    if not is_valid or not isinstance(document, JudgeSetDocument):
        raise InvalidInput(_diagnostics(checked, context))
    if context.targets is None:
        raise no_targets(found.path)
    judge = _judge(context, document.judge_target if judge_target is None else judge_target)
    return JudgeCheck(_compiled(checked, document, context, judge, cwd), document.items, judge)


def _diagnostics(checked: CheckedDocument, context: DocumentContext) -> tuple[Diagnostic, ...]:
    """Return the diagnostics of a document after those of the documents around it."""
    documents = (*context.others, checked)
    return tuple(chain.from_iterable(document.diagnostics for document in documents))


def _judge(context: DocumentContext, name: str) -> Target:
    known = {target.name: target for target in context.target_list}
    if name not in known:
        raise UsageError(
            f"unknown judge target '{name}'{did_you_mean(name, known)}; available: {listed(known)}"
        )
    return known[name]


def _compiled(
    checked: CheckedDocument,
    document: JudgeSetDocument,
    context: DocumentContext,
    judge: Target,
    cwd: Path,
) -> CompiledPlan:
    assert context.targets is not None, "checked by the caller"
    names = {target.name for target in context.target_list}
    name, numbers = ANSWERS, count(2)
    while name in names:
        name = f"{ANSWERS} {next(numbers)}"
    answers = MockTarget(name=name, provider="mock")
    source = checked.source
    evals = replace(
        checked,
        source=replace(source, find_items=lambda _: source.items("items")),
        document=_as_evals(document, judge.name),
    )
    targets = replace(
        context.targets, document=TargetsDocument(targets=(*context.target_list, answers))
    )
    compilation = Compilation(
        [(evals, replace(context, targets=targets, target_names=(name,)))],
        read_bytes=Path.read_bytes,
    )
    plan = compilation.plan()
    dotenv = find_dotenv(source.path, source.root, cwd)
    read = (source.path, *(other.source.path for other in context.others), *compilation.sources)
    warnings = _diagnostics(checked, context)
    return CompiledPlan(plan, Origin(source.root, warnings, read, (dotenv,) if dotenv else ()))


def _as_evals(document: JudgeSetDocument, judge: str) -> EvalDocument:
    """Return the set as cases for one judge."""
    evaluator: JsonObject = {"name": "judge", "type": "llm_judge", "judge_target": judge}
    if document.prompt is not None:
        evaluator["prompt"] = document.prompt
    if document.scale is not None:
        evaluator["scale"] = list(document.scale)
    return EvalDocument.model_validate(
        {
            "execution": {"evaluators": [evaluator]},
            "evalcases": list(map(_as_case, document.items)),
        }
    )


def _as_case(item: LabelledAnswer) -> JsonObject:
    reference = item.reference_answer
    return {
        "id": item.id,
        "expected_outcome": item.expected_outcome,
        "input_messages": [{"role": "user", "content": item.question}],
        "expected_messages": [{"role": "assistant", "content": reference}] if reference else [],
    }


async def check_judge(
    check: JudgeCheck,
    overrides: Overrides,
    options: RunOptions,
    files: RunFiles,
    services: RunServices,
) -> Agreement:
    """Run the judge over every answer, keep the rows, and return its agreement.

    Raises what `run_plan` raises.
    """
    files.require_writable(check.compiled.origin.sources)
    plan = override(check.compiled.plan, overrides)
    labels = {item.id: item for item in check.items}
    now = services.environment.now()
    answers = StoredAnswers(
        lambda: _answers(plan, labels, now), sum(case.trials for case in plan.cases)
    )
    ending = await run_trials(plan, options, files, services, stored=answers)
    if ending.stopped is not None:
        raise Interrupted("interrupted; finished rows are kept")
    return measure(labels, plan.cases, files.rows(), write_error=ending.write_error)


def _answers(
    plan: Plan, labels: Mapping[str, LabelledAnswer], now: datetime
) -> Iterator[ResultRow]:
    """Yield the set's answers as if a target had given them."""
    for case in plan.cases:
        for number in range(1, case.trials + 1):
            trial = Trial(
                case, plan.suites[0], plan.targets[case.target], number, seed=None, dry_run=False
            )
            yield unscored_row(trial, labels[case.id].answer, duration_ms=0, now=now)
