"""Reduce GitHub's description of its API to the operations that the action uses: `make github-api`."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

DESCRIPTION = Path(__file__).parent / "github_api.json"

OPERATIONS = {
    "/repos/{owner}/{repo}/issues/{issue_number}/comments": ("get", "post"),
    "/repos/{owner}/{repo}/issues/comments/{comment_id}": ("get", "patch", "delete"),
    "/repos/{owner}/{repo}/pulls": ("get",),
    "/repos/{owner}/{repo}/check-runs": ("post",),
    "/repos/{owner}/{repo}/check-runs/{check_run_id}": ("patch",),
    "/repos/{owner}/{repo}/actions/workflows/{workflow_id}/runs": ("get",),
    "/repos/{owner}/{repo}/actions/runs/{run_id}/artifacts": ("get",),
    "/repos/{owner}/{repo}/actions/artifacts/{artifact_id}/{archive_format}": ("get",),
    "/repos/{owner}/{repo}/contents/{path}": ("get",),
    "/repos/{owner}/{repo}/issues": ("get", "post"),
    "/repos/{owner}/{repo}/issues/{issue_number}": ("patch",),
    "/user": ("get",),
}
"""Path → the methods that are kept."""

PROSE = {"summary", "description", "tags", "externalDocs", "operationId", "x-github", "x-webhooks", "x-tagGroups"}
"""Keys that are dropped."""


def main(source: str) -> None:
    """Write the reduced description."""
    whole = json.loads(Path(source).read_text("utf-8"))
    DESCRIPTION.write_text(json.dumps(cut(whole), indent=1, sort_keys=True) + "\n", "utf-8", newline="\n")


def cut(whole: dict[str, Any]) -> dict[str, Any]:
    """Return the description of the operations and of what they refer to."""
    paths = {path: {method: whole["paths"][path][method] for method in kept} for path, kept in OPERATIONS.items()}
    kept = {"openapi": whole["openapi"], "info": whole["info"], "paths": without_prose(paths), "components": {}}
    waiting = list(references(kept["paths"]))
    while waiting:
        kind, name = waiting.pop()
        group = kept["components"].setdefault(kind, {})
        if name not in group:
            group[name] = without_prose(whole["components"][kind][name])
            waiting.extend(references(group[name]))
    return kept


def references(node: Any) -> Iterator[tuple[str, str]]:
    """Yield kind and name of every component that a part of the description refers to."""
    if isinstance(node, dict):
        if isinstance(ref := node.get("$ref"), str):
            _, _, kind, name = ref.split("/", 3)
            yield kind, name
        node = list(node.values())
    if isinstance(node, list):
        for each in node:
            yield from references(each)


def without_prose(node: Any) -> Any:
    """Return a part of the description without sentences; only the first example of an answer is kept."""
    if isinstance(node, list):
        return [without_prose(each) for each in node]
    if not isinstance(node, dict):
        return node
    return {key: _part(key, value) for key, value in node.items() if key not in PROSE}


def _part(key: str, value: Any) -> Any:
    match key, value:
        case (("example" | "value"), _):
            return value
        case "examples", dict():
            return dict(list(value.items())[:1])
        case "properties", dict():
            return {name: without_prose(schema) for name, schema in value.items()}
        case _:
            return without_prose(value)


if __name__ == "__main__":
    main(sys.argv[1])
