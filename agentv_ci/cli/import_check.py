"""`agentv-ci import --check`: imported checks judge the answers that the old tool has recorded."""

from __future__ import annotations

import json
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from agentv_ci.api import CaseResult, run
from agentv_ci.app.documents.compile import Selection, compile_paths
from agentv_ci.app.results.adopting import AdoptWish, results_of
from agentv_ci.base.text import shortened
from agentv_ci.contracts.base import JsonValue
from agentv_ci.contracts.other_tools import AdoptedResult
from agentv_ci.contracts.plan import Plan, PlanCase
from agentv_ci.contracts.plan_parts import TextPart
from agentv_ci.contracts.source import TARGETS_SCHEMAS
from agentv_ci.errors import UsageError
from agentv_ci.other_tools.imports.draft import OUTCOME, slug

SHOWN = 10
"""Different verdicts that are listed."""
REASON = 120


class Question(NamedTuple):
    """What was asked of whom; the description of a test distinguishes equal questions."""

    text: str
    target: str
    name: str


@dataclass(slots=True)
class Compared:
    """Verdicts of the old tool and those of the imported checks."""

    equal: int = 0
    different: list[str] = field(default_factory=list)
    absent: int = 0
    """Results without a case, with an error, or whose answer was recorded after a transformation."""

    @property
    def sentence(self) -> str:
        """How many verdicts are equal."""
        known = self.equal + len(self.different)
        more = f"; {self.absent} could not be compared" if self.absent else ""
        return f"{self.equal} of {known} verdicts are those of the old tool{more}"


def compared(out: Path, results: Path, cwd: Path) -> Compared:
    """Return how the verdicts of imported files are those that results of promptfoo have.

    Nothing is asked but judges. Raises UsageError for results that cannot be read.
    """
    adopted = results_of(AdoptWish([str(results)], "promptfoo", Path()), results)
    plan = compile_paths(Selection([str(out)]), cwd=cwd).plan
    cases = _by_question(plan)
    answers: dict[str, dict[str, JsonValue]] = defaultdict(dict)
    pairs: list[tuple[AdoptedResult, PlanCase]] = []
    made = Compared()
    asked: Counter[Question] = Counter()
    for result in adopted:
        question = _question_of(result)
        same = cases.get(question, [])
        if not same or result.passed is None:
            made.absent += 1
            continue
        case = same[min(asked[question], len(same) - 1)]
        asked[question] += 1
        if '"transforms"' in case.model_dump_json():
            made.absent += 1
            continue
        answers[plan.targets[case.target].name][case.id] = result.answer
        pairs.append((result, case))
    if not pairs:
        raise UsageError(f"'{results}' has no result of an imported case")
    with tempfile.TemporaryDirectory() as folder:
        targets = Path(folder, "targets.yaml")
        targets.write_text(json.dumps(_mocks(plan, answers)), encoding="utf-8")
        ids = sorted({case.id for _, case in pairs})
        found = run(out, targets=targets, eval_ids=ids, cwd=cwd, repeat=1).cases
    _compare(made, pairs, found, plan)
    return made


def _by_question(plan: Plan) -> dict[Question, list[PlanCase]]:
    cases: dict[Question, list[PlanCase]] = defaultdict(list)
    for case in plan.cases:
        texts = [
            message.text(lambda part: part.text if isinstance(part, TextPart) else "")
            for message in case.input_messages
        ]
        name = "" if case.expected_outcome == OUTCOME else case.expected_outcome
        cases[Question(_joined(texts), plan.targets[case.target].name, name)].append(case)
    return cases


def _question_of(result: AdoptedResult) -> Question:
    target = slug(result.target, "")
    return Question(_joined([text for _, text in result.question]), target, result.outcome or "")


def _joined(texts: Iterable[str]) -> str:
    return "\n".join(text.strip() for text in texts)


def _mocks(plan: Plan, answers: dict[str, dict[str, JsonValue]]) -> dict[str, JsonValue]:
    """Return the targets of a plan, of which those that were asked repeat their answers."""
    listed: list[JsonValue] = []
    for target in plan.targets.values():
        written = target.model_dump(mode="json", exclude_none=True, exclude_unset=True)
        if target.name in answers:
            judge = {key: written[key] for key in ("judge_target",) if key in written}
            written = {"provider": "mock", "responses": answers[target.name], **judge}
        listed.append({"name": target.name, **written})
    return {"$schema": TARGETS_SCHEMAS[0], "targets": listed}


def _compare(
    made: Compared,
    pairs: Sequence[tuple[AdoptedResult, PlanCase]],
    found: Sequence[CaseResult],
    plan: Plan,
) -> None:
    ours = {(case.id, case.target): case for case in found}
    for result, case in pairs:
        own = ours.get((case.id, plan.targets[case.target].name))
        if own is None or own.verdict in {"error", "skipped"}:
            made.absent += 1
        elif (own.verdict == "pass") is result.passed:
            made.equal += 1
        else:
            theirs = "passed" if result.passed else "failed"
            reason = shortened("; ".join(own.reasons), REASON)
            made.different.append(
                f"{own.path}:{own.line} {own.id} {theirs} there; here: {own.verdict}: {reason}"
            )
