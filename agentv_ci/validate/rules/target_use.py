"""Targets as eval files use them: to answer and to judge."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from agentv_ci.base.json_access import value_at
from agentv_ci.base.prices import price_of
from agentv_ci.base.text import listed
from agentv_ci.contracts.api_targets import HttpTarget
from agentv_ci.contracts.config import Price
from agentv_ci.contracts.diagnostics import Diagnostic
from agentv_ci.contracts.documents import CheckedDocument, facts_of
from agentv_ci.contracts.evals import EvalDocument
from agentv_ci.contracts.evaluators import AuthoredEvaluator, CompositeEvaluator, LlmJudgeAggregator
from agentv_ci.contracts.judge_evaluators import LlmJudgeEvaluator, RubricEvaluator
from agentv_ci.contracts.source import Pointer
from agentv_ci.contracts.targets import (
    MockTarget,
    Target,
    judge_name,
    model_name,
    workspace_settings,
)
from agentv_ci.validate.findings import Finder
from agentv_ci.validate.rules import attachments, workspaces
from agentv_ci.validate.rules.targets import authored_names, unknown_name
from agentv_ci.validate.walk import Evaluators, evaluators_of

JUDGED = (LlmJudgeEvaluator, RubricEvaluator)


def check(
    document: EvalDocument, every: Evaluators, with_attachments: Collection[int], find: Finder
) -> Iterator[Diagnostic]:
    """AV304, AV312, AV316, AV357 and AV363 for the targets that answer and judge an eval document.

    `every` are all its evaluators, `with_attachments` the indexes of the cases with images or
    documents.
    """
    targets = find.context.targets
    if targets is None or targets.document is None:
        return  # reported in the targets file
    use = _TargetUse(document, every, with_attachments, find, targets)
    for index in range(len(document.evalcases)):
        yield from use.check_case(index)


class _TargetUse:
    """Checks one eval document against its targets."""

    def __init__(
        self,
        document: EvalDocument,
        every: Evaluators,
        with_attachments: Collection[int],
        find: Finder,
        targets: CheckedDocument,
    ) -> None:
        self._document = document
        self._with_attachments = with_attachments
        self._find = find
        self._names = authored_names(targets.source)
        self._targets = {target.name: target for target in find.context.target_list}
        self._prices = find.context.config.prices or {}
        self._targets_are_valid = targets.valid
        self._without_judge: set[str] = set()
        self._needs_evaluators = any(
            self._depends_on_target(evaluator) for _, evaluator in every
        ) or any(judge_name(None, each) is None for each in self._targets.values())
        keys = find.source.keys
        self._has_workspaces = (
            keys is None
            or "workspace" in keys
            or any(evaluator.needs_workspace for _, evaluator in every)
        )

    def _depends_on_target(self, evaluator: AuthoredEvaluator) -> bool:
        """Whether an evaluator may be wrong for some target that can judge."""
        judge = evaluator.judge_target if isinstance(evaluator, JUDGED) else None
        is_unknown = judge is not None and judge not in (self._names or ())
        return is_unknown or evaluator.needs_workspace or evaluator.measures is not None

    def check_case(self, index: int) -> Iterator[Diagnostic]:
        overriding = self._find.context.target_names
        own = self._document.targets_of(index, self._document.evalcases[index])
        if not overriding:
            yield from self._check_targets(own)
        # Most documents have none to look at.
        evaluators = evaluators_of(self._document, index) if self._needs_evaluators else ()
        for pointer, evaluator in evaluators:
            if isinstance(evaluator, JUDGED) and evaluator.judge_target is not None:
                place = (*pointer, "judge_target")
                yield from unknown_name(
                    self._find, place, "judge target", evaluator.judge_target, self._names
                )
        for name in overriding or [name for _, name in own] or ["default"]:
            if (target := self._targets.get(name)) is not None:
                yield from self._check_target(index, target, evaluators)

    def _check_target(
        self, index: int, target: Target, evaluators: Evaluators
    ) -> Iterator[Diagnostic]:
        """AV312, AV316, AV357 and AV363 for a target that answers a case."""
        for pointer, evaluator in evaluators:
            if evaluator.measures is not None and (
                missing := never_reported(evaluator, target, self._prices)
            ):
                message = (
                    f"evaluator '{evaluator.name}' can never score: "
                    f"target '{target.name}' does not report {missing}"
                )
                yield self._find.at("AV316", message, (*pointer, "type"))
        if index in self._with_attachments and self._is_selected(index):
            yield from attachments.check_target(self._document, index, target, self._find)
        if self._has_workspaces or workspace_settings(target) is not None:
            case = self._document, index, evaluators
            yield from workspaces.check_target(*case, target, self._find)
        if judge_name(None, target) is None and self._is_selected(index):
            yield from self._check_judges(index, target, evaluators)

    def _is_selected(self, index: int) -> bool:
        case = self._document.evalcases[index]
        return self._find.context.is_selected(facts_of(self._document, case, self._find.source))

    def _check_targets(self, own: Sequence[tuple[Pointer, str]]) -> Iterator[Diagnostic]:
        """AV304 for the targets that a case names, or for the missing default one."""
        for place, name in own:
            yield from unknown_name(self._find, place, "target", name, self._names)
        if (
            not own
            and self._names is not None
            and "default" not in self._names
            and not self._find.lost_part(())
            and not self._find.lost_part(("execution",))
        ):
            available = listed(self._names)
            message = f"no target is set and there is no target 'default'; available: {available}"
            hint = "set execution: {target: NAME}, or name one of the targets 'default'"
            yield self._find.at("AV304", message, ("evalcases",), key=True, hint=hint)

    def _check_judges(
        self, index: int, target: Target, evaluators: Evaluators
    ) -> Iterator[Diagnostic]:
        """AV312 for everything that a target without a judge would have to judge."""
        if self._document.evalcases[index].rubrics:
            if self._targets_are_valid and not self._lost_around(index):
                yield self._no_judge(
                    ("evalcases", index, "rubrics"), "the list of rubrics", target, key=True
                )
        elif (
            not evaluators
            and target.name not in self._without_judge
            and not self._lists_evaluators(index)
        ):
            self._without_judge.add(target.name)
            yield self._no_evaluators(index, target)
        for pointer, evaluator in evaluators:
            yield from self._check_judge(pointer, evaluator, target)

    def _check_judge(
        self, pointer: Pointer, evaluator: AuthoredEvaluator, target: Target
    ) -> Iterator[Diagnostic]:
        match evaluator:
            case LlmJudgeEvaluator(judge_target=None) | RubricEvaluator(judge_target=None):
                if not self._find.lost_part(pointer):
                    who = f"evaluator '{evaluator.name}'"
                    yield self._no_judge((*pointer, "name"), who, target, own=True)
            case CompositeEvaluator(aggregator=LlmJudgeAggregator()):
                who = f"the aggregator of '{evaluator.name}'"
                yield self._no_judge((*pointer, "aggregator", "type"), who, target)
            case _:
                pass

    def _no_evaluators(self, index: int, target: Target) -> Diagnostic:
        """AV312 for the default evaluator."""
        name = f"target '{target.name}'"
        message = f"there are no evaluators, and {name} has no judge for the default one"
        hint = f"add evaluators, or add judge_target to {name}; reported once per target"
        return self._find.at("AV312", message, ("evalcases", index, "id"), hint=hint)

    def _lists_evaluators(self, index: int) -> bool:
        """Whether the author lists evaluators, even if all of them are invalid."""
        case = self._find.authored(("evalcases", index))
        owners: list[Pointer] = [case, (*case, "execution")]
        if self._document.evalcases[index].inherit_evaluators is not False:
            owners.append(("execution",))
        data = self._find.source.data
        return self._lost_around(index) or any(
            value_at(data, *owner, "evaluators") for owner in owners
        )

    def _lost_around(self, index: int) -> bool:
        """Whether a dropped part may have set how the case runs."""
        case: Pointer = ("evalcases", index)
        return any(map(self._find.lost_part, ((), ("execution",), case, (*case, "execution"))))

    def _no_judge(
        self, pointer: Pointer, who: str, target: Target, *, own: bool = False, key: bool = False
    ) -> Diagnostic:
        """AV312; `own`: whether the evaluator itself may set a judge."""
        message = (
            f"{who} needs a judge: "
            f"target '{target.name}' ({target.provider}) cannot judge its own answers"
        )
        hint = f"add judge_target to target '{target.name}'"
        if own:
            hint = f"add judge_target to the evaluator or to target '{target.name}'"
        return self._find.at("AV312", message, pointer, key=key, hint=hint)


def never_reported(
    evaluator: AuthoredEvaluator, target: Target, prices: Mapping[str, Price]
) -> str | None:
    """Return what the evaluator needs and the target never reports; None if it may score."""
    match evaluator.measures, target:
        case "cost", HttpTarget() if (model := model_name(target)) and price_of(
            model, prices
        ) is None:
            return (
                f"a cost: the price of '{model}' is unknown; set it under 'prices' in .agentv.yaml"
            )
        case "cost", _ if "cost" not in target.reports:
            return "a cost: it has no model with a price"
        case "tokens", MockTarget(usage=None):
            return "token counts: it has no 'usage'"
        case "tokens", _ if "tokens" not in target.reports:
            return "token counts"
        case "tool_calls", MockTarget(tool_calls=None):
            return "tool calls: it has no 'tool_calls'"
        case "tool_calls", _ if "tool_calls" not in target.reports:
            return "tool calls"
        case "tool_calls", HttpTarget(extra_body=None):
            return "tool calls: it has no tools; define them in 'extra_body'"
        case _:
            return None
