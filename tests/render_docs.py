"""Render the tables of the documentation from the code: `make docs`; with --check, say which are stale."""

from __future__ import annotations

import inspect
import json
import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

import click
import yaml
from pydantic.fields import FieldInfo

from agentv_ci.cli import cli
from agentv_ci.contracts.agent_targets import AgentTarget
from agentv_ci.contracts.answer_evaluators import ComparedField
from agentv_ci.contracts.api_targets import HttpTarget
from agentv_ci.contracts.attachments import BY_URL, FORMATS, NAMES, AttachmentType
from agentv_ci.contracts.base import Authored, members_of
from agentv_ci.contracts.config import ConfigDocument, Price
from agentv_ci.contracts.diagnostics import FIXED_RULES, RULES
from agentv_ci.contracts.evals import (
    AuthoredToolCall,
    CaseExecution,
    ContentBlock,
    EvalCase,
    EvalDocument,
    ExpectedMessage,
    InputMessage,
    Repeat,
    SuiteExecution,
)
from agentv_ci.contracts.evaluator_settings import EvaluatorSettings
from agentv_ci.contracts.evaluators import AuthoredEvaluator
from agentv_ci.contracts.experiment import Arm, ExperimentDocument, PairwiseJudge, StopRule
from agentv_ci.contracts.gate import Gate, ValidatorUse
from agentv_ci.contracts.judge_evaluators import LabelledAnswer, RubricItem
from agentv_ci.contracts.target_settings import TargetSettings
from agentv_ci.contracts.targets import Target
from agentv_ci.contracts.workspaces import Workspace, WorkspaceLimits

REPOSITORY = Path(__file__).parent.parent
DOCS = REPOSITORY / "docs"
RULES_PAGE, PROVIDERS_PAGE, EVALUATORS_PAGE = DOCS / "rules.md", DOCS / "providers.md", DOCS / "evaluators.md"
GITHUB_PAGE, COMMANDS_PAGE = DOCS / "github.md", DOCS / "commands.md"
BEGIN, END = "<!-- rules: make docs -->\n", "<!-- /rules -->"
SETTINGS = re.compile(r"<!-- settings: (?P<kind>[\w-]+) -->\n.*?<!-- /settings -->", re.DOTALL)

SHORT_FORMS = re.compile(r"<!-- short forms -->\n.*?<!-- /short forms -->", re.DOTALL)
FIELDS = re.compile(r"<!-- evaluator: (?P<kind>\w+) -->\n.*?<!-- /evaluator -->", re.DOTALL)

CONTRACT = re.compile(r"<!-- contract: (?P<name>[\w-]+) -->\n.*?<!-- /contract -->", re.DOTALL)

COMMANDS = re.compile(r"(<!-- commands: make docs -->\n).*?(<!-- /commands -->)", re.DOTALL)

ATTACHMENTS = re.compile(r"(<!-- attachments: make docs -->\n).*?(<!-- /attachments -->)", re.DOTALL)

PORTS = re.compile(r"<!-- (?P<of>action|workflow): (?P<kind>inputs|outputs) -->\n.*?<!-- /(?P=of) -->", re.DOTALL)

PARTS: dict[str, type[Authored]] = {
    "all": EvaluatorSettings,
    "field": ComparedField,
    "criterion": RubricItem,
    "item": LabelledAnswer,
}
"""Name → what evaluators consist of."""

CONTRACTS: dict[str, type[Authored]] = {
    "eval": EvalDocument,
    "case": EvalCase,
    "input-message": InputMessage,
    "block": ContentBlock,
    "expected-message": ExpectedMessage,
    "tool-call": AuthoredToolCall,
    "execution": CaseExecution,
    "suite-execution": SuiteExecution,
    "repeat": Repeat,
    "gate": Gate,
    "validator": ValidatorUse,
    "config": ConfigDocument,
    "price": Price,
    "workspace": Workspace,
    "workspace-limits": WorkspaceLimits,
    "experiment": ExperimentDocument,
    "arm": Arm,
    "stop-rule": StopRule,
    "pairwise-judge": PairwiseJudge,
}
"""Name → a part of the documents that people write."""

FAMILIES: dict[str, tuple[type[TargetSettings], type[TargetSettings] | None]] = {
    "all": (TargetSettings, None),
    "api": (HttpTarget, TargetSettings),
    "agent": (AgentTarget, TargetSettings),
}
"""Name → what has the settings, and whose settings stand in another table."""


def rendered(page: Path) -> str:
    """Return a page as it should be."""
    return PAGES[page](page.read_text("utf-8"))


def _rules(page: str) -> str:
    before, rest = page.split(BEGIN)
    after = rest.split(END)[1]
    rows = [
        f"| [{rule_id}](#{rule_id.lower()}-{rule.name}) | {rule.name} "
        f"| {rule.severity}{'*' if rule_id in FIXED_RULES else ''} | {rule.summary} |"
        for rule_id, rule in RULES.items()
    ]
    table = "\n".join(["| id | name | default | reports |", "|---|---|---|---|", *rows])
    return f"{before}{BEGIN}\n{table}\n\n{END}{after}"


def _settings(page: str) -> str:
    def table(match: re.Match[str]) -> str:
        rows = "\n".join(_rows(*_family(match["kind"])))
        text = (
            f"| field | aliases | description | environment variable |\n|---|---|---|---|\n{rows}"
            if rows
            else "No additional settings."
        )
        return f"<!-- settings: {match['kind']} -->\n\n{text}\n\n<!-- /settings -->"

    return SETTINGS.sub(table, page)


def _evaluators(page: str) -> str:
    # A type may have an older name, which is not listed.
    every = dict.fromkeys(members_of(AuthoredEvaluator, "type").values())
    members = [each for each in every if issubclass(each, EvaluatorSettings)]
    names = {str(get_args(member.model_fields["type"].annotation)[0]): member for member in members}

    def table(match: re.Match[str]) -> str:
        kind = match["kind"]
        part = PARTS.get(kind) or names[kind]
        shared = {"type"} if kind in PARTS else {"type", *EvaluatorSettings.model_fields}
        return f"<!-- evaluator: {kind} -->\n\n{_field_table(part, shared)}\n\n<!-- /evaluator -->"

    return _with_short_forms(FIELDS.sub(table, page), members)


def _with_short_forms(page: str, members: Iterable[type[EvaluatorSettings]]) -> str:
    rows: list[str] = []
    for member in members:
        kind, *_ = get_args(member.model_fields["type"].annotation)
        if member.short_field:
            alone = f", or only `{kind}`" if member.stands_alone else ""
            rows.append(f"| `{kind}: …`{alone} | `{member.short_field}` |")
        elif member.stands_alone:
            rows.append(f"| `{kind}` | |")
    table = "\n".join(["| in short | sets |", "|---|---|", *rows])
    return SHORT_FORMS.sub(f"<!-- short forms -->\n\n{table}\n\n<!-- /short forms -->", page)


def _contracts(page: str) -> str:
    def table(match: re.Match[str]) -> str:
        part = CONTRACTS[match["name"]]
        elsewhere = set(CaseExecution.model_fields) if part is SuiteExecution else set()
        return f"<!-- contract: {match['name']} -->\n\n{_field_table(part, elsewhere)}\n\n<!-- /contract -->"

    return CONTRACT.sub(table, page)


def _field_table(part: type[Authored], without: set[str]) -> str:
    rows = (
        f"| `{field.alias or name}` | {_cell(field.description or '')}{_choices(field)}"
        f"{' Required.' if field.is_required() else ''} | {_default(field)} |"
        for name, field in part.model_fields.items()
        if name not in without
    )
    return "\n".join(["| field | description | default |", "|---|---|---|", *rows])


def _choices(field: FieldInfo) -> str:
    """The values of a choice, unless its description has them."""
    values = _values(field.annotation)
    if len(values) < 2 or all(each in (field.description or "") for each in values):
        return ""
    return f" One of {', '.join(f'`{each}`' for each in values)}."


def _values(annotation: Any) -> tuple[str, ...]:
    """The values of the first choice in a type."""
    parts = get_args(annotation)
    return parts if get_origin(annotation) is Literal else next(filter(None, map(_values, parts)), ())


def _ports(page: str) -> str:
    """Tables of inputs and outputs, from the files that GitHub reads."""
    workflow = yaml.safe_load((REPOSITORY / ".github" / "workflows" / "agentv.yml").read_text("utf-8"))
    # To readers of YAML 1.1 the key `on` is a truth.
    known = {
        "action": yaml.safe_load((REPOSITORY / "action.yml").read_text("utf-8")),
        "workflow": workflow[True]["workflow_call"],
    }

    def table(match: re.Match[str]) -> str:
        of, kind = match["of"], match["kind"]
        rows = "\n".join(_port(name, each, kind) for name, each in known[of][kind].items())
        head = (
            "| input | description | default |\n|---|---|---|"
            if kind == "inputs"
            else "| output | description |\n|---|---|"
        )
        return f"<!-- {of}: {kind} -->\n\n{head}\n{rows}\n\n<!-- /{of} -->"

    return PORTS.sub(table, page)


def _port(name: str, port: dict[str, Any], kind: str) -> str:
    said = port["description"].replace("|", "\\|")
    if kind == "outputs":
        return f"| `{name}` | {said} |"
    default = str(port["default"]).lower() if isinstance(port["default"], bool) else port["default"]
    return f"| `{name}` | {said} | {f'`{default}`' if default != '' else ''} |"


def _attachments(page: str) -> str:
    """The images and documents that the targets of each provider take."""
    rows: dict[str, list[str]] = {}
    for target in kinds().values():
        for name, settings in _variants(target):
            taken = target.model_construct(**settings).takes
            cells = (_taken(taken, kind) for kind in get_args(AttachmentType))
            rows.setdefault(" | ".join(cells), []).append(name)
    lines = "\n".join(f"| {', '.join(names)} | {cells} |" for cells, names in rows.items())
    return ATTACHMENTS.sub(
        lambda match: f"{match[1]}\n| provider | images | documents |\n|---|---|---|\n{lines}\n\n{match[2]}", page
    )


def _variants(target: type[TargetSettings]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Names and settings of targets of one provider that differ in what they take."""
    if "api_format" in target.model_fields:
        yield f"`{target.kind()}`", {}
        yield f"`{target.kind()}` with `api_format: responses`", {"api_format": "responses"}
    elif "command_template" in target.model_fields:
        yield f"`{target.kind()}`, by path", {"command_template": "ask {PROMPT} {FILES}"}
    else:
        yield f"`{target.kind()}`", {}


def _taken(taken: frozenset[str], kind: AttachmentType) -> str:
    formats = [name for media_type, name in NAMES.items() if media_type in FORMATS[kind] & taken]
    return ", ".join([*formats, *(["URL"] if BY_URL[kind] in taken else [])]) or "–"


def _commands(page: str) -> str:
    """Sections of all commands, from what `--help` shows."""
    sections = "\n\n".join(_command_sections(cli, click.Context(cli, info_name="agentv-ci")))
    return COMMANDS.sub(lambda match: f"{match[1]}\n{sections}\n\n{match[2]}", page)


def _command_sections(group: click.Group, ctx: click.Context) -> Iterator[str]:
    for name in group.list_commands(ctx):
        command = group.get_command(ctx, name)
        assert command is not None
        own = click.Context(command, info_name=name, parent=ctx)
        usage = " ".join([own.command_path, *command.collect_usage_pieces(own)])
        about, *examples = inspect.cleandoc(command.help or "").split("\b\nExamples:\n")
        shown = [f"## {own.command_path}", f"```text\n{usage}\n```", re.sub(r"\\?\x08\n", "", about).strip()]
        shown += [f"```sh\n{inspect.cleandoc(each)}\n```" for each in examples]
        rows = [_option_row(each, own) for each in command.params if isinstance(each, click.Option) and not each.hidden]
        if rows and not isinstance(command, click.Group):
            shown.append("\n".join(["| option | description |", "|---|---|", *rows]))
        yield "\n\n".join(shown)
        if isinstance(command, click.Group):
            yield from _command_sections(command, own)


def _option_row(option: click.Option, ctx: click.Context) -> str:
    names, text = option.get_help_record(ctx) or ("", "")
    return f"| {_code(names)} | {_cell(' '.join(text.split()))} |"


def _code(names: str) -> str:
    return f"`{names}`".replace("|", "\\|")


def _default(field: FieldInfo) -> str:
    default = None if field.is_required() or field.default_factory else field.default
    return "" if default in (None, "", ()) else f"`{json.dumps(default)}`"


def kinds() -> dict[str, type[TargetSettings]]:
    """Return provider → contract."""
    members = members_of(Target, "provider").values()
    found = {str(get_args(member.model_fields["provider"].annotation)[0]): member for member in members}
    return {kind: member for kind, member in found.items() if issubclass(member, TargetSettings)}


def _family(name: str) -> tuple[type[TargetSettings], type[TargetSettings] | None]:
    if name in FAMILIES:
        return FAMILIES[name]
    kind = kinds()[name]
    shared = next((base for base in (HttpTarget, AgentTarget) if issubclass(kind, base)), TargetSettings)
    return kind, shared


def _rows(kind: type[TargetSettings], elsewhere: type[TargetSettings] | None) -> Iterator[str]:
    known = elsewhere.model_fields if elsewhere is not None else {}
    for name, field in kind.model_fields.items():
        is_told = name in known and not kind.variables.get(name)
        if name == "provider" or is_told:
            continue
        also = ", ".join(f"`{older}`" for older in kind.older_names.get(name, ()))
        read = " or ".join(f"`{variable}`" for variable in kind.variables.get(name, ()))
        needed = " Required." if field.is_required() else ""
        yield f"| `{name}` | {also} | {_cell(field.description or '')}{needed} | {read} |"


def _cell(text: str) -> str:
    """A description with its placeholders and references as code, on one line."""
    return re.sub(r"(\$?\{+ ?\w+ ?\}+)", r"`\1`", text.replace("`", "")).replace("|", "\\|")


PAGES = {
    RULES_PAGE: _rules,
    PROVIDERS_PAGE: lambda page: _attachments(_settings(page)),
    EVALUATORS_PAGE: _evaluators,
    GITHUB_PAGE: _ports,
    COMMANDS_PAGE: _commands,
    **{page: _contracts for page in sorted(DOCS.glob("*.md")) if CONTRACT.search(page.read_text("utf-8"))},
}


def main() -> int:
    """Write the tables, or check them."""
    stale = [page for page in PAGES if page.read_text("utf-8") != rendered(page)]
    if "--check" in sys.argv[1:]:
        for page in stale:
            sys.stderr.write(f"{page.relative_to(REPOSITORY)} is stale; run: make docs\n")
        return 1 if stale else 0
    for page in stale:
        page.write_text(rendered(page), "utf-8", newline="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
