"""Where in an eval file an evaluator stands, looked up in the file itself when somebody wants to know."""

from __future__ import annotations

from pathlib import Path

from agentv_ci.contracts.evaluators import RUBRICS_NAME
from agentv_ci.contracts.source import Pointer, Source, locate
from agentv_ci.json_access import objects_at, text_at, value_at
from agentv_ci.load.document import load


class EvaluatorLines:
    """Finds the lines of evaluators in the eval files of a repository; each file is read once."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._suites: dict[str, tuple[Source, dict[str, int]]] = {}
        """Each eval file, and where in it the cases stand."""

    def find(self, suite: str, case: str, evaluator: str) -> int | None:
        """Return the line of an evaluator that stands in its case; None: it does not, or the file says otherwise."""
        source, cases = self._suite(suite)
        index = cases.get(case)
        pointer = _in_case(source, index, evaluator) if index is not None else None
        return locate(source.mark, pointer).start[0] + 1 if pointer is not None else None

    def _suite(self, path: str) -> tuple[Source, dict[str, int]]:
        if path not in self._suites:
            source = load(self._root / path, self._root, named=True)
            listed = value_at(source.data, "evalcases")
            cases = enumerate(listed if isinstance(listed, list) else ())
            found = {known: index for index, case in cases if (known := text_at(case, "id")) is not None}
            self._suites[path] = source, found
        return self._suites[path]


def _in_case(source: Source, index: int, evaluator: str) -> Pointer | None:
    for rest in (("evaluators",), ("execution", "evaluators")):
        pointer: Pointer = ("evalcases", index, *rest)
        for place, each in enumerate(objects_at(source.data, *pointer)):
            if text_at(each, "name") == evaluator:
                return (*pointer, place)
    rubrics: Pointer = ("evalcases", index, "rubrics")
    return rubrics if evaluator == RUBRICS_NAME and value_at(source.data, *rubrics) is not None else None
