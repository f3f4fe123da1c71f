"""The documents of the corpus, each with its published schema."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from agentv_ci.jsonschema.schemas import SchemaName
from tests.support import REPOSITORY

CORPUS = REPOSITORY / "tests" / "corpus"

NOT_SEEN: Mapping[str, str] = {
    "AV204-infinite-limit-in-short/eval.yaml": "JSON does not have infinite numbers",
    "AV204-infinite-weight/eval.yaml": "JSON does not have infinite numbers",
}
"""Documents that agentv-ci refuses but a schema cannot, with the reason."""

SCHEMAS: Mapping[str, SchemaName] = {
    "agentv-eval-v2": "eval-v2",
    "agentv-targets-v2.2": "targets-v2",
    "agentv-config-v2": "config-v2",
    "agentv-quarantine-v1": "quarantine-v1",
    "agentv-experiment-v1": "experiment-v1",
}

HINT = "if no schema can refuse it, name it in tests/external/documents.py with the reason"

_NAMED = re.compile(r"^\$schema: (\S+)$", re.MULTILINE)
_REFUSED = re.compile(r"^<repository>/(.+?):\d+:\d+: error: .* \[AV(?:2\d\d|313|315|329)\]", re.MULTILINE)


def schema_file(name: SchemaName) -> Path:
    """Return the path of a published schema."""
    return REPOSITORY / "schemas" / f"{name}.schema.json"


def valid() -> Mapping[Path, SchemaName]:
    """Return the documents that agentv-ci accepts."""
    folders = (CORPUS / "valid", CORPUS / "experiments")
    return _with_schemas(path for each in folders for path in each.rglob("*") if path.suffix in (".yaml", ".yml"))


def refused() -> Mapping[Path, SchemaName]:
    """Return the documents with an error that the schemas state: AV2xx, AV313, AV315 and AV329."""
    return _with_schemas(
        path.parent / name
        for path in (CORPUS / "invalid").rglob("diagnostics.txt")
        for name in _REFUSED.findall(path.read_text("utf-8"))
    )


def name(path: Path) -> str:
    """Return the name of a document: its case and its path there."""
    return str(Path(*path.relative_to(CORPUS).parts[1:]))


def _with_schemas(paths: Iterable[Path]) -> Mapping[Path, SchemaName]:
    named = {path: _NAMED.search(path.read_text("utf-8")) for path in sorted({*paths})}
    return {path: SCHEMAS[found[1]] for path, found in named.items() if found}
