"""The published schemas in yaml-language-server, which completes and checks YAML in VS Code, Neovim and others."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from agentv_ci.jsonschema.schemas import SchemaName, document
from tests.external import documents
from tests.external.tools import node_modules
from tests.support import REPOSITORY, run_command

PACKAGE = "yaml-language-server@1.25.0"
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


Problem = tuple[int, int, str]
"""Line and character, which count from 0, and the message."""


class Editor:
    """Opens texts as new documents; none is saved."""

    def __init__(self, process: subprocess.Popen[str], folder: Path) -> None:
        self._process = process
        self._folder = folder
        self._numbers = count()

    def offers(self, schema: SchemaName, text: str) -> dict[str, Any]:
        """Return the completions at the cursor: label → item."""
        return self.offered(self._with_schema(schema, text))

    def offered(self, text: str, name: str = "{}.yaml") -> dict[str, Any]:
        """Return the completions at the cursor of a text that names its schema."""
        return {item["label"]: item for item in self._at("completion", text, name)["items"]}

    def shows(self, schema: SchemaName, text: str) -> str:
        """Return the hover text at the cursor, without the escapes of Markdown."""
        found = self._at("hover", self._with_schema(schema, text))
        return re.sub(r"\\(\W|_)", r"\1", found["contents"]["value"]) if found else ""

    def marks(self, schema: SchemaName, text: str) -> list[Problem]:
        """Return the problems of a text; lines count from its first."""
        (found,) = self.problems([self._with_schema(schema, text)])
        return [(line - 1, character, message) for line, character, message in found]

    def marked(self, files: Mapping[Path, SchemaName]) -> set[str]:
        """Return the documents of the corpus that have problems."""
        found = self.problems([self._with_schema(schema, path.read_text("utf-8")) for path, schema in files.items()])
        return {documents.name(path) for path, problems in zip(files, found, strict=True) if problems}

    def problems(self, texts: Sequence[str], name: str = "{}.yaml") -> list[list[Problem]]:
        """Return the problems of each text, from top to bottom."""
        opened = {str(self._folder / name.format(next(self._numbers))): text for text in texts}
        return [
            sorted((*each["range"]["start"].values(), each["message"]) for each in found)
            for found in self._ask(opened).values()
        ]

    def _at(self, method: str, text: str, name: str = "{}.yaml") -> Any:
        before, _, after = text.partition(HERE)
        position = {"line": before.count("\n"), "character": len(before) - before.rfind("\n") - 1}
        opened = {str(self._folder / name.format(next(self._numbers))): before + after}
        return self._ask(opened, method=method, position=position)

    def _with_schema(self, schema: SchemaName, text: str) -> str:
        return f"# yaml-language-server: $schema={documents.schema_file(schema).as_uri()}\n{text}"

    def _ask(self, opened: Mapping[str, str], **asked: Any) -> Any:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(json.dumps({"documents": opened, **asked}), file=self._process.stdin, flush=True)
        return json.loads(self._process.stdout.readline())


@pytest.fixture(scope="module")
def editor(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Editor]:
    schemas = {documents.schema_file("eval-v2").as_uri(): "*.test.yaml"}
    stores = {"schemaStore": {"enable": False}, "kubernetesCRDStore": {"enable": False}}
    settings = json.dumps({"yaml": {**stores, "schemas": schemas}})
    command = ["node", str(REPOSITORY / "tests/external/editor.mjs"), str(node_modules(PACKAGE)), settings]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        yield Editor(process, tmp_path_factory.mktemp("documents"))


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
    ("schema", "text", "values"),
    [
        (
            "eval-v2",
            f"evalcases:\n  - input_messages:\n      - role: {HERE}",
            published("eval-v2", "InputMessage", "role")["enum"],
        ),
        (
            "eval-v2",
            f"{EVALUATORS}name: says-hi\n        type: {HERE}",
            published("eval-v2", "AuthoredEvaluator", "type")["enum"],
        ),
        ("targets-v2", f"{TARGET}provider: {HERE}", published("targets-v2", "Target", "provider")["enum"]),
        (
            "eval-v2",
            f"{EVALUATORS}type: tool_trajectory\n        mode: {HERE}",
            ["any_order", "in_order", "exact", "subset", "superset"],
        ),
    ],
)
def test_values_are_offered(editor: Editor, schema: SchemaName, text: str, values: list[str]) -> None:
    assert {*editor.offers(schema, text)} == {*values}


@pytest.mark.parametrize(
    ("schema", "text", "contract", "field"),
    [
        ("eval-v2", f"evalcases:\n  - id: greets\n    {HERE}", "EvalCase", "expected_outcome"),
        # `contains_all` begins alike.
        ("eval-v2", f"{EVALUATORS}type: contains\n        {HERE}", "ContainsEvaluator", "value"),
        ("targets-v2", f"{TARGET}provider: cli\n    {HERE}", "CliTarget", "command_template"),
        ("eval-v2", f"{CASE}meta{HERE}data: {{team: web}}", "EvalCase", "metadata"),
        ("eval-v2", CASE.replace("role", f"ro{HERE}le"), "InputMessage", "role"),
        ("eval-v2", f"{CASE}execution: {{thresh{HERE}old: 0.9}}", "CaseExecution", "threshold"),
        ("eval-v2", f"{CASE}evaluators: [{{type: contains, val{HERE}ue: Hi}}]", "ContainsEvaluator", "value"),
        ("eval-v2", f"{CASE}evaluators: [{{na{HERE}me: says-hi}}]", "ContainsEvaluator", "name"),
        ("targets-v2", f"{TARGET}provider: cli\n    command_temp{HERE}late: x", "CliTarget", "command_template"),
    ],
)
def test_descriptions_are_shown(editor: Editor, schema: SchemaName, text: str, contract: str, field: str) -> None:
    if text.endswith(HERE):
        assert editor.offers(schema, text)[field]["documentation"] == published(schema, contract, field)["description"]
    else:
        assert published(schema, contract, field)["description"] in editor.shows(schema, text)


def test_offered_list_of_messages_has_required_keys(editor: Editor) -> None:
    offered = editor.offers("eval-v2", f"evalcases:\n  - id: greets\n    {HERE}")
    assert offered["input_messages"]["insertText"] == "input_messages:\n  - role: $1\n    content: $2"


EVALUATOR = f"{CASE}evaluators: [{{name: shape, type: regex"


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
        ("eval-v2", f"{EVALUATOR}, value: Hi, script: x}}]", [(6, 55, "Property script is not allowed.")]),
        ("eval-v2", f"{EVALUATOR}}}]", [(6, 17, 'Missing property "value".')]),
        ("targets-v2", f"{TARGET}provider: cli", [(2, 4, 'Missing property "command_template".')]),
        # Other spellings of keys.
        ("eval-v2", CASE.replace("expected_outcome", "expectedOutcome"), []),
        ("targets-v2", f"{TARGET}provider: cli\n    commandTemplate: agent", []),
    ],
)
def test_problems(editor: Editor, schema: SchemaName, text: str, problems: list[Problem]) -> None:
    assert editor.marks(schema, text) == problems


@pytest.mark.parametrize("evaluator", ["{name: shape, type: regx, value: Hi}", "contains"])
def test_wrong_evaluator_is_marked_once(editor: Editor, evaluator: str) -> None:
    ((line, character, message),) = editor.marks("eval-v2", f"{CASE}evaluators: [{evaluator}]")
    assert evaluator == "contains" or ((line, character) == (6, 37) and '"regex"' in message)


def test_valid_documents_are_not_marked(editor: Editor) -> None:
    checked = documents.valid()
    assert {*checked.values()} == {"eval-v2", "targets-v2", "config-v2"}
    assert editor.marked(checked) == set()


def test_documents_of_the_wrong_shape_are_marked(editor: Editor) -> None:
    checked = documents.refused()
    expected = {documents.name(path) for path in checked} - documents.NOT_SEEN.keys()
    assert editor.marked(checked) == expected, documents.HINT


def test_settings_select_the_schema(editor: Editor) -> None:
    found = editor.problems([CASE.partition("\n")[2] + "metadta: {}"], "{}.test.yaml")
    assert found == [[(5, 4, "Property metadta is not allowed.")]]


@pytest.mark.parametrize(
    ("name", "key"), [(".agentv/targets.yaml", "workers"), ("evals/example.test.yaml", "metadata")]
)
def test_documents_of_init_name_their_schema(editor: Editor, tmp_path: Path, name: str, key: str) -> None:
    assert run_command("init", tmp_path, cwd=tmp_path).code == 0
    text = (tmp_path / name).read_text("utf-8")
    line = text.count("\n")
    beside = str((tmp_path / name).with_name("{}.yaml"))
    wrong = [(line, 4, "Property metadta is not allowed.")]
    assert editor.problems([text, f"{text}    metadta: {{}}\n"], beside) == [[], wrong]
    assert key in editor.offered(f"{text}    {HERE}", beside)
