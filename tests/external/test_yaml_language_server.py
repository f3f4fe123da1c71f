"""The published schemas in yaml-language-server, which completes and checks YAML in VS Code, Neovim and others."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator, Mapping
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from agentv_ci.jsonschema.schemas import SchemaName, document
from tests.external import documents
from tests.external.language_server import LanguageServer, Message, Place, Problem, language_server
from tests.support import REPOSITORY, run_command

INSTALL = "npm install --no-save yaml-language-server@1.25.0"
HERE = "⌖"
"""The cursor in a test's text."""
ALIAS = re.compile(r"Same as `\w+`\.")
"""How the schemas describe another spelling of a key."""

CASE = """\
$schema: agentv-eval-v2
evalcases:
  - id: greets
    expected_outcome: A greeting
    input_messages: [{role: user, content: Hello}]
    expected_messages: []
    """
EVALUATORS = f"{CASE}evaluators:\n      - "
TARGET = "$schema: agentv-targets-v2.2\ntargets:\n  - name: agent\n    "

pytestmark = pytest.mark.slow


def installed() -> str | None:
    """Return the server that YAML_LANGUAGE_SERVER names, or one on PATH or in this repository."""
    places = os.pathsep.join([os.environ.get("PATH", os.defpath), str(REPOSITORY / "node_modules" / ".bin")])
    return os.environ.get("YAML_LANGUAGE_SERVER") or shutil.which("yaml-language-server", path=places)


if not installed():
    pytest.skip(f"yaml-language-server is missing: {INSTALL}", allow_module_level=True)


class Editor:
    """Opens every text as a new document with a line that names its schema."""

    def __init__(self, server: LanguageServer) -> None:
        self._server = server
        self._numbers = count()

    def offers(self, schema: SchemaName, text: str) -> dict[str, Message]:
        """Return the completions at the cursor: label → item."""
        return {**self._server.completions(*self._show(schema, text))}

    def shows(self, schema: SchemaName, text: str) -> str:
        """Return the hover text at the cursor."""
        return self._server.hover(*self._show(schema, text))

    def marks(self, schema: SchemaName, text: str) -> list[Problem]:
        """Return the problems of a text; lines count from its first."""
        return self._marks(self._show(schema, text)[0])

    def marked(self, files: Mapping[Path, SchemaName]) -> dict[str, list[Problem]]:
        """Return the problems of documents of the corpus that have any."""
        shown = {path: self._show(schema, path.read_text("utf-8"))[0] for path, schema in files.items()}
        marks = {documents.name(path): self._marks(name) for path, name in shown.items()}
        return {name: found for name, found in marks.items() if found}

    def _marks(self, name: str) -> list[Problem]:
        found = self._server.problems(name)
        return [Problem(Place(each.place.line - 1, each.place.character), each.message) for each in found]

    def _show(self, schema: SchemaName, text: str) -> tuple[str, Place]:
        whole = f"# yaml-language-server: $schema={documents.schema_file(schema).as_uri()}\n{text}"
        before, _, after = whole.partition(HERE)
        name = f"{next(self._numbers)}.yaml"
        self._server.open(name, before + after)
        return name, Place(before.count("\n"), len(before) - before.rfind("\n") - 1)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LanguageServer]:
    stores = {"schemaStore": {"enable": False}, "kubernetesCRDStore": {"enable": False}}
    settings = {"yaml": {**stores, "schemas": {documents.schema_file("eval-v2").as_uri(): "*.test.yaml"}}}
    command = [str(installed()), "--stdio"]
    with language_server(command, root=tmp_path_factory.mktemp("documents"), settings=settings) as running:
        yield running


@pytest.fixture(scope="module")
def editor(server: LanguageServer) -> Editor:
    return Editor(server)


def published(schema: SchemaName, contract: str, field: str) -> Any:
    """Return a field of a contract in a published schema."""
    schemas: Any = document(schema)
    return schemas["$defs"][contract]["properties"][field]


@pytest.mark.parametrize(
    ("schema", "text", "offered", "not_offered"),
    [
        (
            "eval-v2",
            f"evalcases:\n  - id: greets\n    {HERE}",
            {"expected_outcome", "input_messages", "expected_messages", "evaluators", "execution", "metadata"},
            {"id"},
        ),
        ("eval-v2", f"evalcases:\n  - input_messages:\n      - role: user\n        {HERE}", {"name", "content"}, set()),
        (
            "eval-v2",
            f"{EVALUATORS}type: contains\n        {HERE}",
            {"name", "value", "weight", "case_sensitive"},
            {"script", "prompt", "schema_file", "mode"},
        ),
        ("eval-v2", f"{EVALUATORS}name: says-hi\n        {HERE}", {"type", "weight", "required"}, set()),
        (
            "targets-v2",
            f"{TARGET}provider: cli\n    {HERE}",
            {"command_template"},
            {"model", "base_url", "responses"},
        ),
        ("targets-v2", f"{TARGET}provider: openai\n    {HERE}", {"model"}, {"command_template"}),
        ("eval-v2", f"{CASE}execution:\n      {HERE}", {"threshold"}, set()),
        ("config-v2", f"$schema: agentv-config-v2\n{HERE}", {"guideline_patterns"}, set()),
        ("eval-v2", f"evalcases:\n  - {HERE}", {"id"}, {"EvalCase", "ChatMessage"}),
    ],
)
def test_keys_are_offered(
    editor: Editor, schema: SchemaName, text: str, offered: set[str], not_offered: set[str]
) -> None:
    found = editor.offers(schema, text)
    assert offered <= found.keys()
    assert not not_offered & found.keys()
    assert [label for label, item in found.items() if ALIAS.match(str(item["documentation"]))] == []
    assert schema != "targets-v2" or all(":" in item["insertText"] for item in found.values())


@pytest.mark.parametrize(
    ("schema", "text", "contract", "field"),
    [
        ("eval-v2", f"evalcases:\n  - input_messages:\n      - role: {HERE}", "InputMessage", "role"),
        ("eval-v2", f"{EVALUATORS}name: says-hi\n        type: {HERE}", "AuthoredEvaluator", "type"),
        ("targets-v2", f"{TARGET}provider: {HERE}", "Target", "provider"),
    ],
)
def test_values_are_offered(editor: Editor, schema: SchemaName, text: str, contract: str, field: str) -> None:
    assert {*editor.offers(schema, text)} == {*published(schema, contract, field)["enum"]}


def test_modes_of_a_trajectory_are_offered(editor: Editor) -> None:
    offered = editor.offers("eval-v2", f"{EVALUATORS}type: tool_trajectory\n        mode: {HERE}")
    assert {*offered} == {"any_order", "in_order", "exact", "subset", "superset"}


@pytest.mark.parametrize(
    ("schema", "text", "key", "contract"),
    [
        ("eval-v2", f"evalcases:\n  - id: greets\n    {HERE}", "expected_outcome", "EvalCase"),
        # `contains_all` begins alike.
        ("eval-v2", f"{EVALUATORS}type: contains\n        {HERE}", "value", "ContainsEvaluator"),
        ("targets-v2", f"{TARGET}provider: cli\n    {HERE}", "command_template", "CliTarget"),
    ],
)
def test_offered_keys_have_descriptions(editor: Editor, schema: SchemaName, text: str, key: str, contract: str) -> None:
    assert editor.offers(schema, text)[key]["documentation"] == published(schema, contract, key)["description"]


def test_offered_list_of_messages_has_required_keys(editor: Editor) -> None:
    offered = editor.offers("eval-v2", f"evalcases:\n  - id: greets\n    {HERE}")
    assert offered["input_messages"]["insertText"] == "input_messages:\n  - role: $1\n    content: $2"


@pytest.mark.parametrize(
    ("schema", "text", "contract", "field"),
    [
        ("eval-v2", f"{CASE}meta{HERE}data: {{team: web}}", "EvalCase", "metadata"),
        ("eval-v2", CASE.replace("role", f"ro{HERE}le"), "InputMessage", "role"),
        ("eval-v2", f"{CASE}execution: {{thresh{HERE}old: 0.9}}", "CaseExecution", "threshold"),
        ("eval-v2", f"{CASE}evaluators: [{{type: contains, val{HERE}ue: Hi}}]", "ContainsEvaluator", "value"),
        ("eval-v2", f"{CASE}evaluators: [{{na{HERE}me: says-hi}}]", "ContainsEvaluator", "name"),
        ("targets-v2", f"{TARGET}provider: cli\n    command_temp{HERE}late: x", "CliTarget", "command_template"),
    ],
)
def test_descriptions_are_shown(editor: Editor, schema: SchemaName, text: str, contract: str, field: str) -> None:
    assert published(schema, contract, field)["description"] in editor.shows(schema, text)


@pytest.mark.parametrize(
    ("schema", "text", "problems"),
    [
        ("eval-v2", f"{CASE}metadta: {{}}", [(6, 4, "Property metadta is not allowed.")]),
        (
            "eval-v2",
            CASE.replace("expected_outcome", "expectd_outcome"),
            [(2, 4, 'Missing property "expected_outcome".'), (3, 4, "Property expectd_outcome is not allowed.")],
        ),
        (
            "eval-v2",
            CASE.replace("user", "human"),
            [(4, 28, 'Value is not accepted. Valid values: "system", "user", "assistant", "tool".')],
        ),
        (
            "eval-v2",
            f"{CASE}evaluators: [{{name: shape, type: regex, value: Hi, script: ./score.py}}]",
            [(6, 55, "Property script is not allowed.")],
        ),
        (
            "eval-v2",
            f"{CASE}evaluators: [{{name: shape, type: regex}}]",
            [(6, 17, 'Missing property "value".')],
        ),
        ("targets-v2", f"{TARGET}provider: cli", [(2, 4, 'Missing property "command_template".')]),
        # Other spellings of keys.
        ("eval-v2", CASE.replace("expected_outcome", "expectedOutcome"), []),
        ("targets-v2", f"{TARGET}provider: cli\n    commandTemplate: agent", []),
    ],
)
def test_problems(editor: Editor, schema: SchemaName, text: str, problems: list[tuple[int, int, str]]) -> None:
    expected = [Problem(Place(line, character), message) for line, character, message in problems]
    assert editor.marks(schema, text) == expected


@pytest.mark.parametrize("evaluator", ["{name: shape, type: regx, value: Hi}", "contains"])
def test_wrong_evaluator_is_marked_once(editor: Editor, evaluator: str) -> None:
    (found,) = editor.marks("eval-v2", f"{CASE}evaluators: [{evaluator}]")
    assert evaluator == "contains" or (found.place == Place(6, 37) and '"regex"' in found.message)


def test_valid_documents_are_not_marked(editor: Editor) -> None:
    checked = documents.valid()
    assert {*checked.values()} == {"eval-v2", "targets-v2", "config-v2"}
    assert editor.marked(checked) == {}


def test_documents_of_the_wrong_shape_are_marked(editor: Editor) -> None:
    checked = documents.refused()
    expected = {documents.name(path) for path in checked} - documents.NOT_SEEN.keys()
    assert {*editor.marked(checked)} == expected, documents.HINT


def test_settings_select_the_schema(server: LanguageServer) -> None:
    server.open("greeting.test.yaml", CASE.partition("\n")[2] + "metadta: {}")
    assert server.problems("greeting.test.yaml") == [Problem(Place(5, 4), "Property metadta is not allowed.")]


def test_documents_of_init_are_completed_and_checked(server: LanguageServer, tmp_path: Path) -> None:
    assert run_command("init", tmp_path, cwd=tmp_path).code == 0
    for number, name in enumerate((".agentv/targets.yaml", "evals/example.test.yaml")):
        path = tmp_path / name
        text = path.read_text("utf-8")
        server.open(str(path), text)
        assert server.problems(str(path)) == []
        wrong = str(path.with_name(f"{number}.yaml"))
        server.open(wrong, f"{text}    metadta: {{}}\n    ")
        line = text.count("\n")
        assert server.problems(wrong) == [Problem(Place(line, 4), "Property metadta is not allowed.")]
        assert {"metadata", "workers"} & server.completions(wrong, Place(line + 1, 4)).keys()
