"""Cases: their ids, their rubrics, and what is said of the whole run."""

from __future__ import annotations

from collections.abc import Iterator

from agentv_ci.contracts.diagnostics import Diagnostic
from agentv_ci.contracts.documents import DocumentContext
from agentv_ci.contracts.evals import VALIDATORS, EvalDocument
from agentv_ci.contracts.evaluators import RUBRICS_NAME
from agentv_ci.contracts.source import Pointer
from agentv_ci.text import did_you_mean, listed
from agentv_ci.validate.findings import Finder
from agentv_ci.validate.rules.evaluators import check_rubrics
from agentv_ci.validate.rules.names import duplicates
from agentv_ci.validator_settings import wrong_settings


def check(document: EvalDocument, find: Finder, context: DocumentContext) -> Iterator[Diagnostic]:
    """AV301 for case ids and rubrics, AV311 and AV323 for validators."""
    ids = ((("evalcases", index, "id"), case.id) for index, case in enumerate(document.evalcases))
    yield from duplicates(find, "case id", ids)
    for index, case in enumerate(document.evalcases):
        if case.rubrics:
            place: Pointer = ("evalcases", index, "rubrics")
            yield from check_rubrics(place, case.rubrics, find)
            if any(each.name == RUBRICS_NAME for each in document.execution_of(case).evaluators or ()):
                message = f"an evaluator is called '{RUBRICS_NAME}', as the one that the case's own rubrics make"
                yield find.at("AV301", message, place, key=True, hint="call the evaluator something else")
    for pointer, name in _validators(document):
        if name not in VALIDATORS and name not in (plugins := context.plugin_validators()):
            known = sorted({*VALIDATORS, *plugins})
            message = f"unknown validator '{name}'{did_you_mean(name, known)}; validators are {listed(known)}"
            yield find.at("AV311", message, pointer)
    uses = (document.execution.validators if document.execution else None) or ()
    for index, use in enumerate(uses):
        key, settings = (use, {}) if isinstance(use, str) else (use.key, use.__pydantic_extra__ or {})
        for place, message in wrong_settings(key, settings):
            where: Pointer = ("execution", "validators", index, *place)
            yield find.at("AV323", message, where, key=place[0] in settings)


def _validators(document: EvalDocument) -> Iterator[tuple[Pointer, str]]:
    uses = (document.execution.validators if document.execution else None) or ()
    for index, use in enumerate(uses):
        pointer: Pointer = ("execution", "validators", index)
        yield (pointer, use) if isinstance(use, str) else ((*pointer, "key"), use.key)
