"""Packages that some evaluators need and that are installed only when somebody asks for them."""

from __future__ import annotations

from importlib.util import find_spec

from agentv_ci.contracts.evaluators import SimilarityEvaluator
from agentv_ci.contracts.plan import Plan, flat
from agentv_ci.errors import UsageError


def require_packages(plan: Plan) -> None:
    """Raise UsageError, before anything is asked, when an evaluator of the plan needs a package that is missing."""
    for case in plan.cases:
        for each in flat(case.evaluators):
            if isinstance(each, SimilarityEvaluator) and each.metric == "bleu" and find_spec("sacrebleu") is None:
                raise UsageError(
                    f"{case.source.path}:{case.source.line}: evaluator '{each.name}' needs the package 'sacrebleu'",
                    hint="python -m pip install sacrebleu; the extra 'bleu' of agentv-ci brings it",
                )
