"""Cases with all defaults filled in."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase
from typing import TypeVar

from agentv_ci.compile.digest import case_digest
from agentv_ci.compile.evaluators import EvaluatorCompiler, default_judge
from agentv_ci.compile.files import Files, relative
from agentv_ci.compile.messages import MessageCompiler, guidelines, reference_answer
from agentv_ci.compile.targets import Targets, find_target, judge_of
from agentv_ci.compile.unsupported import refuse_case, refuse_settings
from agentv_ci.contracts.documents import Checked, Surroundings
from agentv_ci.contracts.evals import CaseExecution, EvalCase, EvalDocument, Gate, Repeat
from agentv_ci.contracts.evaluators import LlmJudgeEvaluator
from agentv_ci.contracts.plan import PlanCase, PlanEvaluator, PlanGate, PlanSource, PlanSuite
from agentv_ci.contracts.source import Source, locate
from agentv_ci.contracts.targets import Target

T = TypeVar("T")

DEFAULT_TARGET = "default"
DEFAULT_THRESHOLD = 0.8
DEFAULT_TIMEOUT_S = 600.0
DEFAULT_MAX_RETRIES = 2


def compile_suite(
    checked: Checked, surroundings: Surroundings, files: Files, targets: Targets, eval_ids: Sequence[str]
) -> tuple[PlanSuite, list[PlanCase]]:
    """Return an eval file's suite and those of its cases that match `eval_ids`."""
    document, source = checked.document, checked.source
    assert isinstance(document, EvalDocument)
    refuse_settings(document, source)
    suite = _suite(document, source)
    compiler = _CaseCompiler(document, source, surroundings, files, targets)
    cases = [
        compiler.compile(index, case) for index, case in enumerate(document.evalcases) if is_selected(case.id, eval_ids)
    ]
    return suite, cases


def is_selected(case_id: str, eval_ids: Sequence[str]) -> bool:
    """Whether a case is meant: by its id itself, by a glob, or because none are given."""
    return not eval_ids or any(case_id == each or fnmatchcase(case_id, each) for each in eval_ids)


def _suite(document: EvalDocument, source: Source) -> PlanSuite:
    gate = document.execution.gate if document.execution and document.execution.gate else Gate()
    given = {name: value for name in PlanGate.model_fields if (value := getattr(gate, name)) is not None}
    return PlanSuite(
        path=relative(source.path, source.root),
        dataset=document.dataset or source.path.name.split(".")[0] or source.path.name,
        description=document.description,
        gate=PlanGate(**given),
    )


class _CaseCompiler:
    def __init__(
        self, document: EvalDocument, source: Source, surroundings: Surroundings, files: Files, targets: Targets
    ) -> None:
        self._document = document
        self._source = source
        self._surroundings = surroundings
        self._files = files
        self._targets = targets
        self._messages = MessageCompiler(source, files, surroundings.guideline_patterns)
        self._evaluators = EvaluatorCompiler(source, files, surroundings.read_yaml)

    def compile(self, index: int, case: EvalCase) -> PlanCase:
        refuse_case(self._document, case, self._source)
        execution = self._document.execution_of(case)
        name = self._surroundings.target_override or execution.target or DEFAULT_TARGET
        target = find_target(self._surroundings.target_list, name)
        judge = judge_of(self._surroundings.target_list, target, None)
        inputs = tuple(map(self._messages.compile_input, case.input_messages))
        expected = tuple(map(self._messages.compile_expected, case.expected_messages))
        repeat = execution.repeat if isinstance(execution.repeat, Repeat) else Repeat(max=execution.repeat or 1)
        seeds = execution.seeds or ()
        compiled = PlanCase(
            id=case.id,
            suite=relative(self._source.path, self._source.root),
            digest="0" * 64,
            source=self._place(index),
            conversation_id=case.conversation_id,
            target=self._add(target),
            judge_target=self._add(judge) if judge else None,
            input_messages=inputs,
            expected_messages=expected,
            expected_outcome=case.expected_outcome,
            reference_answer=reference_answer(expected, self._files),
            guidelines=guidelines(inputs),
            evaluators=self._compile_evaluators(execution, target),
            trials=max(repeat.max, len(seeds)),
            require=repeat.require,
            seeds=seeds,
            timeout_seconds=_given(execution.timeout_seconds, DEFAULT_TIMEOUT_S),
            max_retries=_given(execution.max_retries, DEFAULT_MAX_RETRIES),
            threshold=_given(execution.threshold, DEFAULT_THRESHOLD),
            metadata=case.metadata,
        )
        return compiled.model_copy(update={"digest": case_digest(compiled, self._targets.compiled)})

    def _compile_evaluators(self, execution: CaseExecution, target: Target) -> tuple[PlanEvaluator, ...]:
        if not execution.evaluators:
            judge = judge_of(self._surroundings.target_list, target, None)
            assert judge is not None, "a case without evaluators and without a judge is refused"
            return (default_judge(self._add(judge)),)
        compiled: list[PlanEvaluator] = []
        for evaluator in execution.evaluators:
            key = None
            if isinstance(evaluator, LlmJudgeEvaluator):
                judge = judge_of(self._surroundings.target_list, target, evaluator.judge_target)
                key = self._add(judge) if judge else None
            compiled.append(self._evaluators.compile(evaluator, key))
        return tuple(compiled)

    def _add(self, target: Target) -> str:
        assert self._surroundings.targets is not None
        return self._targets.add(target, self._surroundings.targets.source)

    def _place(self, index: int) -> PlanSource:
        mark = locate(self._source.mark, ("evalcases", index))
        return PlanSource(
            path=relative(self._source.path, self._source.root),
            line=mark.start[0] + 1,
            column=mark.start[1] + 1,
            end_line=mark.end[0] + 1,
        )


def _given(value: T | None, default: T) -> T:
    return default if value is None else value
