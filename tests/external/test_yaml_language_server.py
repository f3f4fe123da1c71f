"""The published schemas in yaml-language-server, with which VS Code, Neovim and others complete and check YAML."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator, Mapping
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from agentv_ci.cli import run
from agentv_ci.jsonschema.schemas import SchemaName, document
from tests.external import documents
from tests.external.language_server import LanguageServer, Message, Place, Problem
from tests.support import REPOSITORY

INSTALL = "npm install --no-save yaml-language-server@1.25.0"
HERE = "⌖"
"""Where the cursor stands in a test's text."""

TWIN = re.compile(r"Same as `\w+`\.")
"""How the schemas describe another spelling of a key."""

CASE = """\
$schema: agentv-eval-v2
evalcases:
  - id: greets
    expected_outcome: A greeting
    input_messages: [{role: user, content: Hello}]
    expected_messages: []
    """
TARGET = """\
$schema: agentv-targets-v2.2
targets:
  - name: agent
    """


def installed() -> str | None:
    """Return the server that YAML_LANGUAGE_SERVER names, else one on PATH or of this repository."""
    places = os.pathsep.join([os.environ.get("PATH", os.defpath), str(REPOSITORY / "node_modules" / ".bin")])
    return os.environ.get("YAML_LANGUAGE_SERVER") or shutil.which("yaml-language-server", path=places)


if not installed():
    pytest.skip(f"yaml-language-server is missing; install it: {INSTALL}", allow_module_level=True)


class Editor:
    """Opens every text as a document of its own, the way a person would: with a line that names the schema."""

    def __init__(self, server: LanguageServer) -> None:
        self._server = server
        self._numbers = count()

    def offers(self, schema: SchemaName, text: str) -> dict[str, Message]:
        """Return what is offered at the cursor: label → item."""
        return {**self._server.completions(*self._show(schema, text))}

    def shows(self, schema: SchemaName, text: str) -> str:
        """Return what is shown at the cursor."""
        return self._server.hover(*self._show(schema, text))

    def marks(self, schema: SchemaName, text: str) -> list[Problem]:
        """Return what is marked as wrong; lines count from the text's first."""
        name, _ = self._show(schema, text)
        return self._marks(name)

    def marked(self, files: Mapping[Path, SchemaName]) -> dict[str, list[Problem]]:
        """Return what is marked as wrong in documents of the corpus; those without a mark are left out."""
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
    by_settings = {documents.schema_file("eval-v2").as_uri(): "*.test.yaml"}
    settings = {
        "yaml": {
            "schemaStore": {"enable": False},
            "kubernetesCRDStore": {"enable": False},
            "schemas": by_settings,
        }
    }
    command = [str(installed()), "--stdio"]
    with LanguageServer(command, root=tmp_path_factory.mktemp("documents"), settings=settings) as running:
        yield running


@pytest.fixture(scope="module")
def editor(server: LanguageServer) -> Editor:
    return Editor(server)


def published(schema: SchemaName, *steps: str) -> Any:
    """Return a part of a published schema."""
    part: Any = document(schema)
    for step in steps:
        part = part[step]
    return part


def description(schema: SchemaName, contract: str, field: str) -> str:
    return str(published(schema, "$defs", contract, "properties", field, "description"))


def test_a_case_offers_its_keys_with_their_descriptions(editor: Editor) -> None:
    offered = editor.offers("eval-v2", f"$schema: agentv-eval-v2\nevalcases:\n  - id: greets\n    {HERE}")
    for key in ("expected_outcome", "input_messages", "expected_messages", "evaluators", "execution", "metadata"):
        assert offered[key]["documentation"] == description("eval-v2", "EvalCase", key)
    assert "id" not in offered


def test_a_list_of_messages_is_offered_with_what_a_message_needs(editor: Editor) -> None:
    offered = editor.offers("eval-v2", f"evalcases:\n  - id: greets\n    {HERE}")
    assert offered["input_messages"]["insertText"] == "input_messages:\n  - role: $1\n    content: $2"


def test_a_message_offers_its_keys(editor: Editor) -> None:
    offered = editor.offers("eval-v2", f"evalcases:\n  - input_messages:\n      - role: user\n        {HERE}")
    assert {"name", "content"} <= offered.keys()


def test_a_role_is_offered_as_one_of_four(editor: Editor) -> None:
    offered = editor.offers("eval-v2", f"evalcases:\n  - input_messages:\n      - role: {HERE}")
    assert {*offered} == {"system", "user", "assistant", "tool"}


def test_an_evaluators_type_is_offered_as_one_of_all_kinds(editor: Editor) -> None:
    offered = editor.offers("eval-v2", f"{CASE}evaluators:\n      - name: says-hi\n        type: {HERE}")
    assert {*offered} == {*published("eval-v2", "$defs", "AuthoredEvaluator", "properties", "type", "enum")}


def test_an_evaluator_offers_the_keys_of_its_type_and_no_others(editor: Editor) -> None:
    offered = editor.offers("eval-v2", f"{CASE}evaluators:\n      - type: contains\n        {HERE}")
    assert {"name", "value", "weight", "case_sensitive"} <= offered.keys()
    assert not {"script", "prompt", "schema_file", "mode"} & offered.keys()


def test_a_trajectorys_mode_is_offered(editor: Editor) -> None:
    offered = editor.offers("eval-v2", f"{CASE}evaluators:\n      - type: tool_trajectory\n        mode: {HERE}")
    assert {"any_order", "in_order", "exact", "subset", "superset"} == {*offered}


def test_a_targets_provider_is_offered(editor: Editor) -> None:
    offered = editor.offers("targets-v2", f"{TARGET}provider: {HERE}")
    assert {*offered} == {*published("targets-v2", "$defs", "Target", "properties", "provider", "enum")}


def test_a_target_offers_the_keys_of_its_provider_and_no_others(editor: Editor) -> None:
    offered = editor.offers("targets-v2", f"{TARGET}provider: cli\n    {HERE}")
    assert offered["command_template"]["documentation"] == description("targets-v2", "CliTarget", "command_template")
    assert not {"model", "base_url", "responses"} & offered.keys()


def test_a_config_offers_its_keys(editor: Editor) -> None:
    assert "guideline_patterns" in editor.offers("config-v2", f"$schema: agentv-config-v2\n{HERE}")


@pytest.mark.parametrize(
    ("text", "contract", "field"),
    [
        (f"{CASE}meta{HERE}data: {{team: web}}", "EvalCase", "metadata"),
        (CASE.replace("role", f"ro{HERE}le"), "InputMessage", "role"),
        (f"{CASE}execution: {{thresh{HERE}old: 0.9}}", "CaseExecution", "threshold"),
        (f"{CASE}evaluators: [{{type: contains, val{HERE}ue: Hi}}]", "ContainsEvaluator", "value"),
        (f"{CASE}evaluators: [{{type: code, scr{HERE}ipt: ./score.py}}]", "CodeEvaluator", "script"),
    ],
    ids=["case", "message", "execution", "contains", "code"],
)
def test_a_key_of_an_eval_document_shows_its_description(editor: Editor, text: str, contract: str, field: str) -> None:
    assert description("eval-v2", contract, field) in editor.shows("eval-v2", text)


def test_a_key_of_a_target_shows_its_description(editor: Editor) -> None:
    shown = editor.shows("targets-v2", f"{TARGET}provider: cli\n    command_temp{HERE}late: agent {{PROMPT}}")
    assert description("targets-v2", "CliTarget", "command_template") in shown


def test_a_misspelt_key_is_marked(editor: Editor) -> None:
    assert editor.marks("eval-v2", f"{CASE}metadta: {{}}") == [Problem(Place(6, 4), "Property metadta is not allowed.")]


def test_a_misspelt_required_key_is_marked_and_missed(editor: Editor) -> None:
    assert editor.marks("eval-v2", CASE.replace("expected_outcome", "expectd_outcome")) == [
        Problem(Place(2, 4), 'Missing property "expected_outcome".'),
        Problem(Place(3, 4), "Property expectd_outcome is not allowed."),
    ]


def test_a_wrong_role_is_marked_and_the_roles_are_listed(editor: Editor) -> None:
    assert editor.marks("eval-v2", CASE.replace("user", "human")) == [
        Problem(Place(4, 28), 'Value is not accepted. Valid values: "system", "user", "assistant", "tool".')
    ]


def test_a_wrong_key_of_an_evaluator_is_blamed_on_its_type(editor: Editor) -> None:
    text = f"{CASE}evaluators: [{{name: shape, type: regex, value: Hi, script: ./score.py}}]"
    assert editor.marks("eval-v2", text) == [Problem(Place(6, 55), "Property script is not allowed.")]


def test_a_missing_key_of_an_evaluator_is_blamed_on_its_type(editor: Editor) -> None:
    text = f"{CASE}evaluators: [{{name: shape, type: regex}}]"
    assert editor.marks("eval-v2", text) == [Problem(Place(6, 17), 'Missing property "value".')]


def test_an_unknown_type_of_evaluator_is_marked_once(editor: Editor) -> None:
    (found,) = editor.marks("eval-v2", f"{CASE}evaluators: [{{name: shape, type: regx, value: Hi}}]")
    assert found.place == Place(6, 37)
    assert '"regex"' in found.message


def test_a_missing_key_of_a_target_is_blamed_on_its_provider(editor: Editor) -> None:
    assert editor.marks("targets-v2", f"{TARGET}provider: cli") == [
        Problem(Place(2, 4), 'Missing property "command_template".')
    ]


def test_no_valid_document_is_marked(editor: Editor) -> None:
    checked = documents.valid()
    assert {*checked.values()} == {"eval-v2", "targets-v2", "config-v2"}
    assert editor.marked(checked) == {}


def test_every_document_whose_shape_the_tool_refuses_is_marked(editor: Editor) -> None:
    checked = documents.refused()
    expected = {documents.name(path) for path in checked} - documents.NOT_SEEN.keys()
    assert {*editor.marked(checked)} == expected, documents.HINT


def test_settings_give_documents_without_a_schema_line_theirs(server: LanguageServer) -> None:
    server.open("greeting.test.yaml", CASE.partition("\n")[2] + "metadta: {}")
    assert server.problems("greeting.test.yaml") == [Problem(Place(5, 4), "Property metadta is not allowed.")]


def test_what_init_writes_is_completed_and_checked(server: LanguageServer, tmp_path: Path) -> None:
    assert run(["init", str(tmp_path)]) == 0
    for number, name in enumerate((".agentv/targets.yaml", "evals/example.test.yaml")):
        path = tmp_path / name
        text = path.read_text("utf-8")
        server.open(str(path), text)
        assert server.problems(str(path)) == []
        mistaken = str(path.with_name(f"{number}.yaml"))
        server.open(mistaken, f"{text}    metadta: {{}}\n    ")
        (found,) = server.problems(mistaken)
        assert found == Problem(Place(text.count("\n"), 4), "Property metadta is not allowed.")
        offered = server.completions(mistaken, Place(text.count("\n") + 1, 4))
        assert {"metadata", "workers"} & offered.keys()


@pytest.mark.parametrize(
    ("schema", "text"),
    [
        ("eval-v2", f"{CASE}{HERE}"),
        ("eval-v2", f"{CASE}execution:\n      {HERE}"),
        ("eval-v2", f"{CASE}evaluators:\n      - type: contains\n        {HERE}"),
        ("targets-v2", f"{TARGET}provider: openai\n    {HERE}"),
        ("config-v2", HERE),
    ],
    ids=["case", "execution", "evaluator", "target", "config"],
)
def test_another_spelling_is_not_offered(editor: Editor, schema: SchemaName, text: str) -> None:
    offered = editor.offers(schema, text)
    assert [label for label, item in offered.items() if TWIN.match(str(item["documentation"]))] == []


def test_another_spelling_is_not_marked(editor: Editor) -> None:
    assert editor.marks("eval-v2", CASE.replace("expected_outcome", "expectedOutcome")) == []
    assert editor.marks("targets-v2", f"{TARGET}provider: cli\n    commandTemplate: agent") == []


def test_an_evaluator_offers_nothing_of_a_type_that_begins_like_its_own(editor: Editor) -> None:
    offered = editor.offers("eval-v2", f"{CASE}evaluators:\n      - type: contains\n        {HERE}")
    assert offered["value"]["documentation"] == description("eval-v2", "ContainsEvaluator", "value")


def test_a_started_evaluator_offers_and_explains_what_every_type_has(editor: Editor) -> None:
    offered = editor.offers("eval-v2", f"{CASE}evaluators:\n      - name: says-hi\n        {HERE}")
    assert {"type", "weight", "required"} <= offered.keys()
    shown = editor.shows("eval-v2", f"{CASE}evaluators: [{{na{HERE}me: says-hi}}]")
    assert description("eval-v2", "ContainsEvaluator", "name") in shown


def test_a_text_in_place_of_an_evaluator_is_marked_once(editor: Editor) -> None:
    assert len(editor.marks("eval-v2", f"{CASE}evaluators: [contains]")) == 1


def test_every_offered_key_of_a_target_ends_in_a_colon(editor: Editor) -> None:
    offered = editor.offers("targets-v2", f"{TARGET}provider: openai\n    {HERE}")
    assert [label for label, item in offered.items() if ":" not in item["insertText"]] == []


def test_no_name_of_a_class_is_offered(editor: Editor) -> None:
    offered = editor.offers("eval-v2", f"evalcases:\n  - {HERE}")
    assert [label for label in offered if label in published("eval-v2", "$defs")] == []
