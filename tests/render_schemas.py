"""Render schemas/ from the contracts: `make schemas`; with --check, say which are stale."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

from agentv_ci.app.documents.documents import read_yaml
from agentv_ci.contracts.base import JsonValue
from agentv_ci.jsonschema.schemas import TITLES, SchemaName
from tests.schema_rendering import render

FOLDER = Path(__file__).parent.parent / "schemas"
CORPUS = Path(__file__).parent / "corpus"
EXAMPLES: Mapping[SchemaName, str] = {
    "eval-v2": "valid/one-question/greeting.test.yaml",
    "targets-v2": "checked/defaults-of-the-file/targets.yaml",
    "config-v2": "checked/defaults-of-the-file/.agentv.yaml",
    "plan-v1": "valid/one-question/expected/plan.json",
    "result-v1": "valid/one-question/expected/results.jsonl",
    "report-v1": "valid/one-question/expected/report.json",
    "diagnostics-v1": "diagnostics.json",
    "baseline-v1": "compared/one-trial-a-side/expected/baseline.json",
    "judge-set-v1": "judged/a-strict-judge/judge-set.yaml",
    "quarantine-v1": "valid/cases-in-quarantine/.agentv/quarantine.yaml",
    "proof-v1": "proven/refunds/expected/proof.json",
    "health-v1": "nights/a-new-model/expected/health.json",
    "ledger-v1": "valid/criteria-one-by-one/expected/ledger.jsonl",
    "experiment-v1": "experiments/three-models/experiment.yaml",
    "experiment-report-v1": "experiments/three-models/expected/experiment.json",
}
"""Documents of the corpus that stand in the schemas as examples."""


def rendered(name: SchemaName) -> str:
    """Return a published schema as it should be."""
    return render(name, [example(name)])


def example(name: SchemaName) -> JsonValue:
    """Return a document that a published schema accepts."""
    text = (CORPUS / EXAMPLES[name]).read_text("utf-8")
    return read_yaml(text.splitlines()[-1] if name == "ledger-v1" else text)


def stale() -> list[str]:
    """Return the names of schemas whose committed text is not what the contracts say."""
    names: list[str] = []
    for name in TITLES:
        path = FOLDER / f"{name}.schema.json"
        if not path.exists() or path.read_text("utf-8") != rendered(name):
            names.append(name)
    return names


def main() -> int:
    """Write the schemas, or check them."""
    if "--check" in sys.argv[1:]:
        names = stale()
        for name in names:
            sys.stderr.write(f"schemas/{name}.schema.json is stale; run: make schemas\n")
        return 1 if names else 0
    for name in TITLES:
        (FOLDER / f"{name}.schema.json").write_text(rendered(name), "utf-8", newline="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
