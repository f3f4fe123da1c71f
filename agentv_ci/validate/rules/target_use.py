"""How evals use targets: the ones that answer, and the ones that judge."""

from __future__ import annotations

from collections.abc import Iterator

from agentv_ci.contracts.diagnostics import Diagnostic
from agentv_ci.contracts.documents import DocumentContext
from agentv_ci.contracts.evals import EvalDocument
from agentv_ci.contracts.evaluators import (
    AuthoredEvaluator,
    CompositeEvaluator,
    LlmJudgeAggregator,
    LlmJudgeEvaluator,
    RubricEvaluator,
)
from agentv_ci.contracts.source import Pointer
from agentv_ci.contracts.targets import Target, judge_name
from agentv_ci.text import listed
from agentv_ci.validate.findings import Finder, value_at
from agentv_ci.validate.rules.evaluators import evaluators_of
from agentv_ci.validate.rules.measures import never_given
from agentv_ci.validate.rules.targets import authored_names, has_nameless, unknown_name


def check(document: EvalDocument, find: Finder, context: DocumentContext) -> Iterator[Diagnostic]:
    """AV304, AV312 and AV316 for the targets an eval document is answered and judged by."""
    if context.targets is None or context.targets.document is None:
        return  # what is wrong with the targets file is said there
    use = _Use(document, find, context)
    for index in range(len(document.evalcases)):
        yield from use.check_case(index)


class _Use:
    """Checks one eval document against its targets."""

    def __init__(self, document: EvalDocument, find: Finder, context: DocumentContext) -> None:
        assert context.targets is not None
        self._document = document
        self._find = find
        self._override = context.target_override
        self._targets = {target.name: target for target in context.target_list}
        self._authored = authored_names(context.targets.source)
        self._has_nameless = has_nameless(context.targets.source)
        self._prices = context.prices
        self._targets_are_valid = context.targets.valid
        self._without_judge: set[str] = set()

    def check_case(self, index: int) -> Iterator[Diagnostic]:
        place, name = self._target_of(index)
        target = self._targets.get(self._override or name or "default")
        if target is None and self._override is None and (name or "default") not in self._authored:
            yield from self._unknown_target(place, name)
        pointer, evaluators = evaluators_of(self._document, index)
        if self._document.evalcases[index].rubrics:
            yield from self._check_rubrics(index, target)
        elif not evaluators:
            yield from self._check_default_judge(index, target)
        for number, evaluator in enumerate(evaluators):
            yield from self._check_evaluator((*pointer, number), evaluator, target)

    def _target_of(self, index: int) -> tuple[Pointer, str | None]:
        """Return the target that answers a case, and where it is named."""
        document, case = self._document, self._document.evalcases[index]
        if case.execution and case.execution.target:
            return ("evalcases", index, "execution", "target"), case.execution.target
        if document.execution and document.execution.target:
            return ("execution", "target"), document.execution.target
        return ("target",), document.target

    def _unknown_target(self, place: Pointer, name: str | None) -> Iterator[Diagnostic]:
        if name is not None:
            yield from self._unknown(place, "target", name)
        elif (
            not self._has_nameless
            and not self._find.lost_something(())
            and not self._find.lost_something(("execution",))
        ):
            message = f"no target is named and none is called 'default'; targets are {listed(sorted(self._authored))}"
            hint = "write execution: {target: NAME}, or call one of the targets 'default'"
            yield self._find.at("AV304", message, ("evalcases",), key=True, hint=hint)

    def _check_rubrics(self, index: int, target: Target | None) -> Iterator[Diagnostic]:
        if target is None or judge_name(None, target) is not None or self._lost_around(index):
            return
        if self._targets_are_valid:
            yield self._no_judge(("evalcases", index, "rubrics"), "the list of rubrics", target, key=True)

    def _check_default_judge(self, index: int, target: Target | None) -> Iterator[Diagnostic]:
        if target is None or judge_name(None, target) is not None or self._lists_evaluators(index):
            return
        if target.name in self._without_judge:
            return
        self._without_judge.add(target.name)
        message = f"no evaluators are given, and target '{target.name}' has no judge for the default one"
        hint = f"add evaluators, or a judge_target to target '{target.name}'; said once for all its cases"
        yield self._find.at("AV312", message, ("evalcases", index, "id"), hint=hint)

    def _lists_evaluators(self, index: int) -> bool:
        """Whether the author lists evaluators all the same, and what is wrong with them is said already."""
        case = self._find.authored(("evalcases", index))
        places: tuple[Pointer, ...] = (
            (*case, "evaluators"),
            (*case, "execution", "evaluators"),
            ("execution", "evaluators"),
        )
        return self._lost_around(index) or any(value_at(self._find.source.data, place) for place in places)

    def _lost_around(self, index: int) -> bool:
        """Whether a wrong part was left out that might have said how the case runs."""
        case: Pointer = ("evalcases", index)
        return any(map(self._find.lost_something, ((), ("execution",), case, (*case, "execution"))))

    def _check_evaluator(
        self, pointer: Pointer, evaluator: AuthoredEvaluator, target: Target | None
    ) -> Iterator[Diagnostic]:
        if isinstance(evaluator, (LlmJudgeEvaluator, RubricEvaluator)):
            yield from self._check_judge(pointer, evaluator, target)
        elif isinstance(evaluator, CompositeEvaluator):
            for number, member in enumerate(evaluator.evaluators):
                yield from self._check_evaluator((*pointer, "evaluators", number), member, target)
            if isinstance(evaluator.aggregator, LlmJudgeAggregator) and target and judge_name(None, target) is None:
                yield self._no_judge((*pointer, "aggregator", "type"), f"the aggregator of '{evaluator.name}'", target)
        elif target is not None and (missing := never_given(evaluator, target, self._prices)):
            message = f"evaluator '{evaluator.name}' can never score: target '{target.name}' never gives {missing}"
            yield self._find.at("AV316", message, (*pointer, "type"))

    def _check_judge(
        self, pointer: Pointer, evaluator: LlmJudgeEvaluator | RubricEvaluator, target: Target | None
    ) -> Iterator[Diagnostic]:
        if evaluator.judge_target is not None:
            place = (*pointer, "judge_target")
            yield from self._unknown(place, "judge target", evaluator.judge_target)
        elif target is not None and judge_name(None, target) is None and not self._find.lost_something(pointer):
            yield self._no_judge((*pointer, "name"), f"evaluator '{evaluator.name}'", target, own=True)

    def _unknown(self, place: Pointer, what: str, name: str) -> Iterator[Diagnostic]:
        if not self._has_nameless:
            yield from unknown_name(self._find, place, what, name, sorted(self._authored))

    def _no_judge(
        self, pointer: Pointer, who: str, target: Target, *, own: bool = False, key: bool = False
    ) -> Diagnostic:
        """AV312; `own`: whether who needs it may name a judge."""
        message = f"{who} needs a judge: target '{target.name}' ({target.provider}) does not judge itself"
        hint = f"add judge_target to {'the evaluator or to ' if own else ''}target '{target.name}'"
        return self._find.at("AV312", message, pointer, key=key, hint=hint)
