"""Walk a document: its evaluators, and its data along their contracts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from types import UnionType
from typing import Annotated, Literal, Union, get_args, get_origin

from agentv_ci.base.json_access import value_at
from agentv_ci.contracts.base import (
    Authored,
    JsonObject,
    JsonValue,
    fields_of,
    is_plugin,
    kind_in_short,
    short_fields,
    spellings,
)
from agentv_ci.contracts.evals import EvalCase, EvalDocument
from agentv_ci.contracts.evaluators import AuthoredEvaluator, CompositeEvaluator
from agentv_ci.contracts.source import Pointer


def mappings(
    annotation: object, data: JsonValue, way: Pointer = ()
) -> Iterator[tuple[type[Authored], JsonObject, Pointer]]:
    """Yield every mapping that a contract describes, with its contract and pointer.

    `annotation` is a contract or the type of a field. Of a union by kind, only the branch of the
    given kind counts.
    """
    if not isinstance(data, (dict, list)):
        return
    annotation = _bare(annotation)
    if not (isinstance(annotation, type) and issubclass(annotation, Authored)):
        for part, value, step in _parts(annotation, data):
            yield from mappings(part, value, (*way, *step))
    elif isinstance(data, dict):
        yield annotation, data, way
        names = spellings(annotation)
        for key, value in data.items():
            if key in names:
                yield from mappings(
                    fields_of(annotation)[names[key][0]].annotation, value, (*way, key)
                )
        if annotation.hoists_settings:
            yield from mappings(annotation, data.get("settings"), (*way, "settings"))


def _bare(annotation: object) -> object:
    annotation = getattr(annotation, "__value__", annotation)
    if get_origin(annotation) is Annotated:
        return _bare(get_args(annotation)[0])
    return annotation


def _parts(annotation: object, data: JsonValue) -> Iterator[tuple[object, JsonValue, Pointer]]:
    """Yield the parts of a list, a free mapping or a union: type, value, step."""
    arguments = get_args(annotation)
    if get_origin(annotation) is tuple and isinstance(data, list):
        yield from ((arguments[0], item, (index,)) for index, item in enumerate(data))
    elif get_origin(annotation) is dict and isinstance(data, dict):
        yield from ((arguments[1], value, (key,)) for key, value in data.items())
    elif get_origin(annotation) in (Union, UnionType):
        yield from ((branch, data, ()) for branch in arguments if not _is_other_kind(branch, data))


def _is_other_kind(branch: object, data: JsonValue) -> bool:
    """Whether `data` has the kind of another branch of a union."""
    if not (isinstance(branch, type) and issubclass(branch, Authored) and isinstance(data, dict)):
        return False
    kinds = [
        (key, field.annotation)
        for key, field in fields_of(branch).items()
        if key in ("type", "provider")
    ]
    if branch.gathers_settings:
        return not any(is_plugin(data.get(key)) for key, _ in kinds)
    return any(
        get_origin(kind) is Literal
        and data.get(key) not in get_args(kind)
        and not (branch.short_field and _is_in_short(key, kind, data))
        for key, kind in kinds
    )


def _is_in_short(key: str, kind: object, data: JsonObject) -> bool:
    return key not in data and get_args(kind)[0] in data


def as_written(data: JsonValue, pointer: Pointer) -> Pointer:
    """Return a pointer to where the author wrote the value.

    The main field of an evaluator may be under its kind.
    """
    way: Pointer = ()
    for step in pointer:
        written = step
        if way[-2:-1] == ("evaluators",):
            kind = kind_in_short(value_at(data, *way), AuthoredEvaluator, "type")
            if kind is not None and short_fields(AuthoredEvaluator, "type").get(kind) == step:
                written = kind
        way = (*way, written)
    return way


Evaluators = Sequence[tuple[Pointer, AuthoredEvaluator]]
"""Evaluators with their pointers."""
EvaluatorList = tuple[Pointer, Sequence[AuthoredEvaluator]]
"""A list of evaluators with its pointer."""
NO_EVALUATORS: EvaluatorList = ((), ())


def all_evaluators(document: EvalDocument) -> Evaluators:
    """Return every evaluator of a document, including members of composites."""
    evaluators: list[tuple[Pointer, AuthoredEvaluator]] = []
    for pointer, listed in evaluator_lists(document):
        evaluators += _flat(pointer, enumerate(listed))
    return evaluators


def evaluator_lists(document: EvalDocument) -> Iterator[EvaluatorList]:
    """Yield the lists of evaluators of the file and its cases."""
    if document.execution and document.execution.evaluators:
        yield ("execution", "evaluators"), document.execution.evaluators
    for index, case in enumerate(document.evalcases):
        yield from _own_lists(index, case)


def evaluators_of(document: EvalDocument, index: int) -> Evaluators:
    """Return the evaluators that score a case, including members of composites."""
    case = document.evalcases[index]
    evaluators: list[tuple[Pointer, AuthoredEvaluator]] = []
    if document.execution is not None and document.execution.evaluators:
        shared = enumerate(document.execution.evaluators)
        inherited = (entry for entry in shared if document.is_inherited(entry[1], case))
        evaluators += _flat(("execution", "evaluators"), inherited)
    pointer, own = own_list(document, index)
    evaluators += _flat(pointer, enumerate(own))
    return evaluators


def own_list(document: EvalDocument, index: int) -> EvaluatorList:
    """Return the evaluators that a case lists itself; the pointer and the list may be empty."""
    lists = list(_own_lists(index, document.evalcases[index]))
    return lists[-1] if lists else NO_EVALUATORS


def _own_lists(index: int, case: EvalCase) -> Iterator[EvaluatorList]:
    if case.evaluators:
        yield ("evalcases", index, "evaluators"), case.evaluators
    if case.execution and case.execution.evaluators:
        yield ("evalcases", index, "execution", "evaluators"), case.execution.evaluators


def _flat(
    pointer: Pointer, evaluators: Iterable[tuple[int, AuthoredEvaluator]]
) -> Iterator[tuple[Pointer, AuthoredEvaluator]]:
    """Yield the evaluators of a list, which are numbered, each followed by its members."""
    for index, evaluator in evaluators:
        yield (*pointer, index), evaluator
        if isinstance(evaluator, CompositeEvaluator):
            yield from _flat((*pointer, index, "evaluators"), enumerate(evaluator.evaluators))
