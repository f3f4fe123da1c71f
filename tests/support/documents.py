"""Documents of the corpus, and the same with one small mistake."""

from __future__ import annotations

import json
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from functools import partial
from typing import Any

from agentv_ci.jsonschema.schemas import SCHEMAS, SchemaName
from agentv_ci.load.parse import parse_yaml
from agentv_ci.load.recognition import KNOWN_SCHEMAS
from tests.support.files import REPOSITORY

GENERATED: Mapping[str, SchemaName] = {
    "plan.json": "plan-v1",
    "report.json": "report-v1",
    "results.jsonl": "result-v1",
    "proof.json": "proof-v1",
    "health.json": "health-v1",
    "ledger.jsonl": "ledger-v1",
    "experiment.json": "experiment-report-v1",
}
Place = tuple[Hashable, ...]
OTHERS: Sequence[Any] = (None, 0, -1, 1.5, True, "", "x", [], {})
KINDS = ("type", "provider", "mode", "role")
"""Keys whose values select a branch of a schema."""


def corpus_documents() -> Iterator[tuple[SchemaName, Any]]:
    """Yield every document of the valid corpus, authored and generated.

    Of results only the first row, of a ledger the first two lines.
    """
    for path in sorted(
        path
        for folder in (
            "tests/corpus/valid",
            "tests/corpus/checked",
            "tests/corpus/judged",
            "tests/corpus/proven",
            "tests/corpus/nights",
            "tests/corpus/experiments",
            "docs/examples/plugin",
        )
        for path in (REPOSITORY / folder).rglob("*")
    ):
        if path.suffix in (".yaml", ".yml") and "expected" not in path.parts:
            data = parse_yaml(path.read_text("utf-8")).data
            schema = data.get("$schema") if isinstance(data, dict) else None
            if isinstance(schema, str) and schema in KNOWN_SCHEMAS:
                yield SCHEMAS[KNOWN_SCHEMAS[schema]], data
        elif name := GENERATED.get(path.name):
            text = path.read_text("utf-8")
            lines = text.splitlines()[: 2 if name == "ledger-v1" else 1] if path.suffix == ".jsonl" else [text]
            yield from ((name, json.loads(line)) for line in lines)


def mutants(value: Any, known: AbstractSet[str] = frozenset()) -> Iterator[tuple[Place, Callable[[], Any]]]:
    """Yield every document with one small mistake, and what identifies the mutation: the path and the change.

    Keys that are not known, such as names and those of metadata, are not distinguished.
    """

    def walk(node: Any, put: Callable[[Any], Any], place: Place) -> Iterator[tuple[Place, Callable[[], Any]]]:
        for other in OTHERS:
            yield (*place, type(node).__name__, repr(other)), partial(put, other)
        if isinstance(node, dict):
            inside = (*place, *(node[key] for key in KINDS if isinstance(node.get(key), str)))
            yield (*inside, "unknown"), partial(put, {**node, "zzz": 1})
            for key in node:
                rest = {other: item for other, item in node.items() if other != key}
                at = (*inside, key if key in known else "*")
                yield (*at, "missing"), partial(put, rest)
                yield (*at, "misspelt"), partial(put, {**rest, f"{key}_": node[key]})
                yield from walk(node[key], into(node, key, put), at)
        if isinstance(node, list):
            for index, item in enumerate(node):
                yield from walk(item, into(node, index, put), (*place, "[]"))

    def into(node: Any, step: Any, put: Callable[[Any], Any]) -> Callable[[Any], Any]:
        def replaced(item: Any) -> Any:
            # Other items of a list are left out: they only take time.
            return put({**node, step: item} if isinstance(node, dict) else [item])

        return replaced

    yield from walk(value, lambda item: item, ())
