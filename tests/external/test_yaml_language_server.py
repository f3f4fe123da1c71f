"""The published schemas in yaml-language-server, which completes and checks YAML in VS Code, Neovim and others."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from agentv_ci.jsonschema.schemas import document
from tests.external import documents
from tests.external.tools import node_modules
from tests.support import REPOSITORY

PACKAGE = "yaml-language-server@1.25.0"
HERE = "⌖"
"""The cursor in a test's text."""
ALIAS = re.compile(r"Same as `\w+`\.")
"""How the schemas describe another spelling of a key."""

EVAL = "$schema: agentv-eval-v2\nevalcases:\n  - "
CASE = f"""\
{EVAL}id: greets
    expected_outcome: A greeting
    input_messages: [{{role: user, content: Hello}}]
    expected_messages: []
    """
IN_CASE = f"{EVAL}id: greets\n    {HERE}"
EVALUATORS = f"{CASE}evaluators:\n      - "
TARGET = "$schema: agentv-targets-v2.2\ntargets:\n  - name: agent\n    "

pytestmark = pytest.mark.slow


Problem = tuple[int, int, str]
"""Line and character, which count from 0, and the message."""


class Editor:
    """Opens texts as new documents; none is saved."""

    def __init__(self, process: subprocess.Popen[str], folder: Path) -> None:
        self._process = process
        self._folder = folder
        self._numbers = count()

    def offers(self, text: str, schema: str | None = None) -> dict[str, Any]:
        """Return the completions at the cursor: label → item; `schema` is that of a text without one."""
        return {item["label"]: item for item in self._at("completion", text, schema)["items"]}

    def shows(self, text: str) -> str:
        """Return the hover text at the cursor, without the escapes of Markdown."""
        found = self._at("hover", text)
        return re.sub(r"\\(\W|_)", r"\1", found["contents"]["value"]) if found else ""

    def marks(self, text: str) -> list[Problem]:
        """Return the problems of a text; lines count from its first."""
        (found,) = self.problems([self._with_schema(text)])
        return [(line - 1, character, message) for line, character, message in found]

    def marked(self, files: Iterable[Path]) -> set[str]:
        """Return the documents of the corpus that have problems."""
        found = self.problems([self._with_schema(path.read_text("utf-8")) for path in files])
        return {documents.name(path) for path, problems in zip(files, found, strict=True) if problems}

    def problems(self, texts: Sequence[str]) -> list[list[Problem]]:
        """Return the problems of each text, from top to bottom."""
        opened = {str(self._folder / f"{next(self._numbers)}.yaml"): text for text in texts}
        return [
            sorted((*each["range"]["start"].values(), each["message"]) for each in found)
            for found in self._ask(opened).values()
        ]

    def _at(self, method: str, text: str, schema: str | None = None) -> Any:
        before, _, after = self._with_schema(text, schema).partition(HERE)
        position = {"line": before.count("\n"), "character": len(before) - before.rfind("\n") - 1}
        opened = {str(self._folder / f"{next(self._numbers)}.yaml"): before + after}
        return self._ask(opened, method=method, position=position)

    def _with_schema(self, text: str, schema: str | None = None) -> str:
        (name,) = [schema] if schema else re.findall(r"^\$schema: (\S+)$", text, re.MULTILINE)
        return f"# yaml-language-server: $schema={documents.schema_file(documents.SCHEMAS[name]).as_uri()}\n{text}"

    def _ask(self, opened: Mapping[str, str], **asked: Any) -> Any:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(json.dumps({"documents": opened, **asked}), file=self._process.stdin, flush=True)
        return json.loads(self._process.stdout.readline())


@pytest.fixture(scope="module")
def editor(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Editor]:
    stores = {"schemaStore": {"enable": False}, "kubernetesCRDStore": {"enable": False}}
    settings = json.dumps({"yaml": stores})
    command = ["node", str(REPOSITORY / "tests/external/editor.mjs"), str(node_modules(PACKAGE)), settings]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        yield Editor(process, tmp_path_factory.mktemp("documents"))


def published(contract: str, field: str) -> Any:
    """Return a field of a contract in the published schemas."""
    contracts: Any = {**document("eval-v2")["$defs"], **document("targets-v2")["$defs"]}  # type: ignore[dict-item]
    found = contracts[contract]
    # An evaluator may also be a text.
    return (found if "properties" in found else found["anyOf"][1])["properties"][field]


def kinds(union: str, key: str) -> Any:
    """Return the kinds of a union, without their older names."""
    return published(union, key)["anyOf"][0]["enum"]


@pytest.mark.parametrize(
    ("text", "offered", "not_offered"),
    [
        (EVAL + HERE, "id", "EvalCase ChatMessage"),
        (IN_CASE, "expected_outcome input_messages expected_messages evaluators metadata", "id"),
        (f"{EVAL}input_messages:\n      - role: user\n        {HERE}", "name content", ""),
        (f"{EVALUATORS}type: contains\n        {HERE}", "name value case_sensitive", "script prompt schema_file mode"),
        (f"{EVALUATORS}name: says-hi\n        {HERE}", "type weight required contains", "script"),
        (f"{EVALUATORS}{HERE}", "type is_json llm_judge", "script composite"),
        (f"{EVALUATORS}contains: Ada\n        {HERE}", "weight case_sensitive", "value regex script"),
        (f"{CASE}execution:\n      {HERE}", "threshold", ""),
        (f"{TARGET}provider: cli\n    {HERE}", "command_template", "model base_url responses"),
        (f"{TARGET}provider: openai\n    {HERE}", "model", "command_template"),
        (f"$schema: agentv-config-v2\n{HERE}", "guideline_patterns", ""),
    ],
)
def test_keys_are_offered(editor: Editor, text: str, offered: str, not_offered: str) -> None:
    found = editor.offers(text)
    assert {*offered.split()} <= found.keys()
    assert not {*not_offered.split()} & found.keys()
    assert [label for label, item in found.items() if ALIAS.match(str(item["documentation"]))] == []
    assert not text.startswith(TARGET) or all(":" in item["insertText"] for item in found.values())


@pytest.mark.parametrize(
    ("text", "values"),
    [
        (f"{EVAL}input_messages:\n      - role: {HERE}", published("InputMessage", "role")["enum"]),
        (
            f"{EVALUATORS}name: says-hi\n        type: {HERE}",
            published("AuthoredEvaluator", "type")["anyOf"][0]["enum"],
        ),
        (f"{TARGET}provider: {HERE}", published("Target", "provider")["anyOf"][0]["enum"]),
        (
            f"{EVALUATORS}type: tool_trajectory\n        mode: {HERE}",
            ["any_order", "in_order", "exact", "subset", "superset"],
        ),
    ],
)
def test_values_are_offered_with_descriptions_of_their_own(editor: Editor, text: str, values: list[str]) -> None:
    found = editor.offers(text)
    assert {*found} == {*values}
    assert len({item["documentation"] for item in found.values()}) == len(values)


@pytest.mark.parametrize("name", documents.SCHEMAS)
def test_schema_is_offered(editor: Editor, name: str) -> None:
    assert [*editor.offers(f"$schema: {HERE}", name)] == [name]
    assert editor.offers(HERE, name)["$schema"]["insertText"] == f"\\$schema: ${{1:{name}}}"


def test_older_names_of_kinds_are_accepted_and_not_offered(editor: Editor) -> None:
    for text, older in (
        (f"{EVALUATORS}script: a\n        type: {HERE}", "code_judge"),
        (f"{TARGET}deployment: a\n    provider: {HERE}", "azure"),
        (f"{TARGET}healthcheck: {{type: http, url: x}}\n    command_template: a\n    provider: {HERE}", None),
    ):
        assert older not in editor.offers(text)
        assert older is None or editor.marks(text.replace(HERE, older)) == []


@pytest.mark.parametrize("text", [EVAL + HERE, f"$schema: agentv-eval-v2\n{HERE}"], ids=["case", "eval file"])
def test_snippet_of_a_case_is_a_valid_document(editor: Editor, text: str) -> None:
    found = editor.offers(text)
    snippet = (found["case"] if text.startswith(EVAL) else found["eval file"])["insertText"]
    filled = re.sub(r"\$\{\d+:([^}]*)\}", r"\1", snippet)
    indent = "  " if text.startswith(EVAL) else ""
    assert editor.marks(text.replace(HERE, filled.replace("\n", f"\n{indent}"))) == []
    assert {"id", "expected_outcome", "input_messages", "expected_messages", "evaluators"} <= {
        *re.findall(r"\w+(?=:)", filled)
    }


@pytest.mark.parametrize(
    ("text", "inserted"),
    [
        (
            f"$schema: agentv-eval-v2\nexecution:\n  {HERE}",
            {"threshold": "0.8", "timeout_seconds": "600", "max_retries": "2", "repeat": "1"},
        ),
        (f"$schema: agentv-eval-v2\nexecution:\n  gate:\n    {HERE}", {"min_pass_rate": "1", "max_errors": "0"}),
        (f"{EVALUATORS}type: contains\n        {HERE}", {"weight": "1", "case_sensitive": "true"}),
    ],
)
def test_real_defaults_are_inserted(editor: Editor, text: str, inserted: Mapping[str, str]) -> None:
    found = editor.offers(text)
    assert {name: found[name]["insertText"] for name in inserted} == {
        name: f"{name}: ${{1:{value}}}" for name, value in inserted.items()
    }
    for name in {"max_cost_usd", "min_mean_score", "min_score"} & found.keys():
        assert found[name]["insertText"] == f"{name}: "


@pytest.mark.parametrize(
    ("text", "contract", "field"),
    [
        (IN_CASE, "EvalCase", "expected_outcome"),
        # `contains_all` begins alike.
        (f"{EVALUATORS}type: contains\n        {HERE}", "ContainsEvaluator", "value"),
        (f"{TARGET}provider: cli\n    {HERE}", "CliTarget", "command_template"),
        (f"{CASE}meta{HERE}data: {{team: web}}", "EvalCase", "metadata"),
        (CASE.replace("role", f"ro{HERE}le"), "InputMessage", "role"),
        (f"{CASE}execution: {{thresh{HERE}old: 0.9}}", "CaseExecution", "threshold"),
        (f"{CASE}evaluators: [{{type: contains, val{HERE}ue: Hi}}]", "ContainsEvaluator", "value"),
        (f"{CASE}evaluators: [{{na{HERE}me: says-hi}}]", "ContainsEvaluator", "name"),
        (f"{CASE}evaluators: [{{cont{HERE}ains: Hi}}]", "ContainsEvaluator", "value"),
        (f"{TARGET}provider: cli\n    command_temp{HERE}late: x", "CliTarget", "command_template"),
    ],
)
def test_descriptions_are_shown(editor: Editor, text: str, contract: str, field: str) -> None:
    if text.endswith(HERE):
        assert editor.offers(text)[field]["documentation"] == published(contract, field)["description"]
    else:
        assert published(contract, field)["description"] in editor.shows(text)


EVALUATOR = f"{CASE}evaluators: [{{name: shape, type: regex"


@pytest.mark.parametrize(
    ("text", "problems"),
    [
        (f"{CASE}metadta: {{}}", [(6, 4, "Property metadta is not allowed.")]),
        (
            CASE.replace("expected_outcome", "expectd_outcome"),
            [(2, 4, 'Missing property "expected_outcome".'), (3, 4, "Property expectd_outcome is not allowed.")],
        ),
        (
            CASE.replace("user", "human"),
            [(4, 28, 'Value is not accepted. Valid values: "system", "user", "assistant", "tool".')],
        ),
        (f"{EVALUATOR}, value: Hi, script: x}}]", [(6, 55, "Property script is not allowed.")]),
        (f"{EVALUATOR}}}]", [(6, 17, 'Missing property "value".')]),
        (f"{CASE}evaluators: [{{contains: Hi, value: x}}]", [(6, 32, "Property value is not allowed.")]),
        (f"{TARGET}provider: cli", [(2, 4, 'Missing property "command_template".')]),
        # Other spellings of keys.
        (CASE.replace("expected_outcome", "expectedOutcome"), []),
        (f"{TARGET}provider: cli\n    commandTemplate: agent {{PROMPT}}", []),
    ],
)
def test_problems(editor: Editor, text: str, problems: list[Problem]) -> None:
    assert editor.marks(text) == problems


@pytest.mark.parametrize("evaluator", ["{name: shape, type: regx, value: Hi}", "contains"])
def test_wrong_evaluator_is_marked_once(editor: Editor, evaluator: str) -> None:
    ((line, character, message),) = editor.marks(f"{CASE}evaluators: [{evaluator}]")
    assert evaluator == "contains" or ((line, character) == (6, 37) and '"regex"' in message)


def test_valid_documents_are_not_marked(editor: Editor) -> None:
    checked = documents.valid()
    assert {*checked.values()} == {*documents.SCHEMAS.values()}
    assert editor.marked(checked) == set()


def test_documents_of_the_wrong_shape_are_marked(editor: Editor) -> None:
    checked = documents.refused()
    expected = {documents.name(path) for path in checked} - documents.NOT_SEEN.keys()
    assert editor.marked(checked) == expected, documents.HINT
