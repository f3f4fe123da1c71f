"""Where in an eval file an evaluator stands, looked up in the file itself when somebody wants to know."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from agentv_ci.contracts.evaluators import RUBRICS_NAME
from agentv_ci.contracts.source import Pointer, Source, locate
from agentv_ci.load import load
from agentv_ci.outside import dig, objects_at, text_at

if TYPE_CHECKING:
    from agentv_ci.report.annotations import EvaluatorPlace


class EvaluatorLines:
    """Finds the lines of evaluators in the eval files of a repository; each file is read once."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._sources: dict[str, Source] = {}

    def find(self, place: EvaluatorPlace) -> int | None:
        """Return the line of an evaluator that stands in its case; None: it does not, or the file says otherwise."""
        source = self._source(place.suite)
        for index, case in enumerate(objects_at(source.data, "evalcases")):
            if text_at(case, "id") == place.case:
                pointer = _in_case(source, index, place.evaluator)
                return locate(source.mark, pointer).start[0] + 1 if pointer is not None else None
        return None

    def _source(self, suite: str) -> Source:
        if suite not in self._sources:
            self._sources[suite] = load(self._root / suite, self._root, named=True)
        return self._sources[suite]


def _in_case(source: Source, index: int, evaluator: str) -> Pointer | None:
    for rest in (("evaluators",), ("execution", "evaluators")):
        pointer: Pointer = ("evalcases", index, *rest)
        for place, each in enumerate(objects_at(source.data, *pointer)):
            if text_at(each, "name") == evaluator:
                return (*pointer, place)
    rubrics: Pointer = ("evalcases", index, "rubrics")
    return rubrics if evaluator == RUBRICS_NAME and dig(source.data, *rubrics) is not None else None
