"""Configs of promptfoo → an eval file and its targets."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, replace
from typing import cast

from msgspec import structs

from agentv_ci.contracts.base import JsonObject, JsonValue
from agentv_ci.contracts.evals import EVAL_SCHEMA, ROLES
from agentv_ci.contracts.source import Source
from agentv_ci.imports.draft import Draft, Names, Place, comments_at_start, comments_before, slug
from agentv_ci.imports.promptfoo_asserts import CheckContext, evaluators, resolved, transform
from agentv_ci.imports.promptfoo_providers import add_target
from agentv_ci.imports.promptfoo_templates import filled, is_simple, rendered, variables_of
from agentv_ci.imports.promptfoo_tests import Test, Tests
from agentv_ci.imports.yaml_text import Alias, Anchored, Block, Commented, Node, yaml_text
from agentv_ci.json_access import json_or_none, objects_at

OUTCOME = "The answer passes the evaluators"
ANY_ANSWER: dict[str, Node] = {"regex": "^", "name": "answers"}
"""What promptfoo asks of a test without assertions."""
FUNCTIONS = (".py", ".js", ".ts", ".mjs", ".cjs")
NOT_NEEDED = "not needed, or an option of `agentv-ci eval`"


@dataclass(frozen=True, slots=True)
class Prompt:
    """A prompt: a text or messages, with variables."""

    name: str
    messages: Node
    is_program: bool = False


def convert(draft: Draft, source: Source) -> None:
    """Add the eval file of one config, and its targets."""
    fields = draft.fields(Place(source), "")
    fields.ignore("$schema")
    made: dict[str, Node] = {"$schema": EVAL_SCHEMA}
    if description := fields.text("description"):
        made["description"] = description
    providers = fields.at("providers", "targets")
    names = [add_target(draft, each) for each in (providers.items if providers else [])]
    if not names:
        names = [draft.target("default", Place(source))]
    made |= {"targets": list(dict.fromkeys(names))} if len(set(names)) > 1 else {"target": names[0]}
    made["system_prompt"] = "none"
    prompts = _prompts(draft, fields.at("prompts"))
    tests = Tests(draft, fields.at("defaultTest"))
    written, scenarios = fields.at("tests"), fields.at("scenarios")
    found = [*tests.listed(written), *tests.of_scenarios(scenarios)]
    if not found and written is None and scenarios is None:
        found = [tests.plain(Place(source))]
    execution: dict[str, Node] = {"threshold": 1}
    options = fields.at("evaluateOptions")
    if options is not None:
        inner = draft.fields(options, "evaluateOptions")
        if (repeat := inner.take("repeat")) not in {None, 1}:
            execution["repeat"] = {"max": repeat, "require": "all"}
        inner.end("write --workers, --cache and other options of `agentv-ci eval`")
    fields.ignore("assertionTemplates")
    fields.drop(
        {"outputPath", "sharing", "commandLineOptions", "writeLatestResults", "tags", "env", "metadata"}, NOT_NEEDED
    )
    fields.drop(
        {"redteam", "extensions", "nunjucksFilters", "derivedMetrics", "tracing"}, "agentv-ci has no counterpart"
    )
    fields.end()
    made["execution"] = execution
    is_plain = all(is_simple(json.dumps(prompt.messages, ensure_ascii=False)) for prompt in prompts)
    made |= _Cases(draft, prompts).cases(_grouped(found) if is_plain else _single(found))
    name = draft.evals.unique(slug(source.path.name.partition(".")[0], "promptfoo"))
    draft.texts[f"{name}.eval.yaml"] = yaml_text(made, comments_at_start(source))


# Prompts


def _prompts(draft: Draft, place: Place | None) -> list[Prompt]:
    found: list[Prompt] = []
    if place is not None and isinstance(place.value, dict):
        for key in place.value:  # an older form: file or text → label
            found += _prompt(draft, place / key, key)
    else:
        for each in place.items if place else []:
            value = each.value
            if isinstance(value, dict):
                for key in value.keys() - {"id", "label", "raw"}:
                    draft.note("dropped", each, f"prompts.{key}", "prompts have no settings of their own")
                found += _prompt(draft, each, str(value.get("raw") or value.get("id") or value.get("file") or ""))
            else:
                found += _prompt(draft, each, str(value))
    return found or [Prompt("prompt", "{{prompt}}")]


def _prompt(draft: Draft, place: Place, text: str) -> list[Prompt]:
    is_file = text.startswith("file://") or (
        "\n" not in text
        and re.fullmatch(r"[\w./*-]+\.(txt|json|ya?ml|md|j2|csv|py|js|mjs|ts)(:\w+)?", text) is not None
    )
    if not is_file:
        return [Prompt("prompt", _messages(text))]
    path = text.removeprefix("file://")
    files = draft.reads.matching(resolved(place.source, path))
    if not files or any(file.suffix in FUNCTIONS for file in files):
        why = "the file was not found" if not files else "a program makes the prompt"
        if re.search(r"\.(py|js|mjs|ts|cjs)(:\w+)?$", path):
            why = "a program makes the prompt"
        draft.note("dropped", place, f"prompt {text}", f"{why}; its cases are skipped")
        return [Prompt(slug(path, "prompt"), f"({text})", is_program=True)]
    found = []
    for file in files:
        content = draft.reads.text(file) or ""
        parts = re.split(r"^---\s*$", content, flags=re.MULTILINE) if file.suffix == ".txt" else [content]
        messages = [_messages(part.strip()) for part in parts if part.strip()]
        if file.suffix in {".yaml", ".yml"} and (source := draft.reads.document(file)) is not None:
            messages = [_messages(json.dumps(source.data, ensure_ascii=False))]
        found += [Prompt(slug(file.stem, "prompt"), each) for each in messages]
    draft.note("kept", place, "prompts: file://", "variables work only in the eval file, so the text is there")
    return found


def _messages(text: str) -> Node:
    """Return the messages of a prompt that is a conversation in JSON; any other text as it is."""
    data = json_or_none(text) if text.lstrip().startswith("[") else None
    messages = objects_at(data)
    if not messages or not all(each.get("role") in {*ROLES, "developer"} and "content" in each for each in messages):
        return text
    return [
        {"role": "system" if each["role"] == "developer" else each["role"], "content": _content(each["content"])}
        for each in messages
    ]


def _content(content: JsonValue) -> Node:
    if isinstance(content, str):
        return content
    texts = [str(each.get("text", "")) for each in objects_at(content) if each.get("type", "text") == "text"]
    return "\n".join(texts) or json.dumps(content, ensure_ascii=False)


# Cases


def _grouped(tests: list[Test]) -> list[Test]:
    """Return the tests, those in a row that differ only in their variables as one."""
    grouped: list[Test] = []
    for test in tests:
        if grouped and grouped[-1].fits(test):
            grouped[-1].rows += test.rows
        else:
            grouped.append(test)
    return grouped


def _single(tests: list[Test]) -> list[Test]:
    """Return a test for each row."""
    return [replace(test, rows=[row], file=None) for test in tests for row in test.rows]


class _Cases:
    """Writes the cases of all prompts; what they share stands once, under an anchor."""

    def __init__(self, draft: Draft, prompts: list[Prompt]) -> None:
        self._draft = draft
        self._prompts = prompts
        self._ids = Names()

    def cases(self, tests: list[Test]) -> dict[str, Node]:
        """Return `x-prompt` keys and `evalcases`."""
        made: dict[str, Node] = {}
        shared = len(tests) > 1 or len(self._prompts) > 1
        bases: list[dict[str, Node]] = [
            {"expected_outcome": OUTCOME, "input": prompt.messages, "expected": []} for prompt in self._prompts
        ]
        names = [f"prompt-{number}" if len(bases) > 1 else "prompt" for number in range(1, len(bases) + 1)]
        if shared:
            made |= {f"x-{name}": Anchored(name, Block(base)) for name, base in zip(names, bases, strict=True)}
        listed: list[Node] = []
        for number, test in enumerate(tests, 1):
            listed += self._test(test, number, names if shared else None, bases)
        return {**made, "evalcases": listed}

    def _test(self, test: Test, number: int, names: list[str] | None, bases: list[dict[str, Node]]) -> list[Node]:
        identity = self._ids.unique(slug(test.description, f"test-{number}") if test.description else f"test-{number}")
        made: list[Node] = []
        first: str | None = None
        comments = comments_before(test.place) if test.place.pointer else ()
        for index, prompt in enumerate(self._prompts):
            used = self._variables(test, prompt)
            own = self._own(test, used) | self._input(test, prompt)
            own_id = identity if index == 0 else self._ids.unique(f"{identity}-{index + 1}")
            if first is not None and names is not None and not self._is_rendered() and "input" not in own:
                case: dict[str, Node] = {"<<": [Alias(names[index]), Alias(first)], "id": own_id}
                made.append(Block(case))
                continue
            base: dict[str, Node] = {"<<": Alias(names[index])} if names else dict(bases[index])
            case = {"<<": base.pop("<<"), "id": own_id} if names else {"id": own_id, **base}
            case |= own
            body: Node = Block(case)
            if names and len(self._prompts) > 1 and index == 0:
                first = f"case-{number}"
                body = Anchored(first, body)
            made.append(Commented(comments, body) if comments and index == 0 else body)
        return made

    def _variables(self, test: Test, prompt: Prompt) -> set[str]:
        texts = [
            json.dumps(prompt.messages),
            json.dumps([each.value for each in test.asserts]),
            json.dumps(test.options),
        ]
        return {name for text in texts for name in variables_of(text)}

    def _is_rendered(self) -> bool:
        """Whether a prompt has more than variables."""
        return any(not is_simple(json.dumps(prompt.messages, ensure_ascii=False)) for prompt in self._prompts)

    def _input(self, test: Test, prompt: Prompt) -> dict[str, Node]:
        """Return the input of a test whose prompt is not that of others."""
        prefix, suffix = str(test.options.get("prefix") or ""), str(test.options.get("suffix") or "")
        messages = prompt.messages
        if not is_simple(json.dumps(messages, ensure_ascii=False)):
            how = "filled in here, since eval files have variables but no expressions"
            self._draft.note("approximated", test.place, "template", how)
            messages = cast("Node", rendered(cast("JsonValue", messages), test.rows[0]))
        elif not prefix and not suffix:
            return {}
        if isinstance(messages, str):
            return {"input": f"{prefix}{messages}{suffix}"}
        return {"input": messages}

    def _own(self, test: Test, used: set[str]) -> dict[str, Node]:
        """Return what a case has besides the prompt."""
        made: dict[str, Node] = {"expected_outcome": test.description} if test.description else {}
        made |= self._rows(test, used)
        context = CheckContext(variables=test.columns, threshold=test.threshold, judge=self._judge(test))
        own = test.options.get("transform") or test.options.get("postprocess")
        if isinstance(own, str):
            context.transforms.append(transform(self._draft, test.place, own))
        listed, settings = evaluators(self._draft, test.asserts, context)
        made["evaluators"] = listed or [ANY_ANSWER]
        if test.provider:
            settings["target"] = self._target(test, test.provider)
        if settings:
            made["execution"] = settings
        if test.metadata:
            made["metadata"] = test.metadata
        skip = [f"its checks could not be imported: {', '.join(context.lost)}"] if context.lost and not listed else []
        if any(prompt.is_program for prompt in self._prompts):
            skip.append("a program makes its prompt")
        if skip:
            made["skip"] = "Not imported: " + "; ".join(skip)
        elif not test.asserts:
            self._draft.note("kept", test.place, "test without assertions", "any answer passes")
        for key in test.options.keys() - OPTIONS:
            self._draft.note("dropped", test.place, f"options.{key}", "unknown to agentv-ci")
        return made

    def _rows(self, test: Test, used: set[str]) -> dict[str, Node]:
        """Return the rows of a test; in promptfoo a variable without a value is empty."""
        used = used | {name for row in test.rows for value in row.values() for name in variables_of(str(value))}
        names = {name for name in used - OWN_NAMES if "." not in name and any(name not in row for row in test.rows)}
        missing: JsonObject = dict.fromkeys(sorted(names), "")
        if test.file is not None and test.rows:
            constants = self._constants(test) | missing
            return {
                "cases_from": {"file": self._draft.reference(test.file)} | ({"vars": constants} if constants else {})
            }
        rows = [filled({**missing, **row}) for row in test.rows if row or missing]
        return {"vars": cast("list[Node]", rows)} if rows else {}

    def _constants(self, test: Test) -> JsonObject:
        """Return the variables that a table does not have, but the defaults do."""
        header = (self._draft.reads.text(test.file) or "").split("\n")[0] if test.file else ""
        columns = {each.strip().strip('"') for each in header.split(",")}
        return {key: value for key, value in (test.rows[0] if test.rows else {}).items() if key not in columns}

    def _judge(self, test: Test) -> str | None:
        provider = test.options.get("provider")
        if isinstance(provider, dict):
            provider = provider.get("text", provider)
        return self._target(test, provider) if provider else None

    def _target(self, test: Test, provider: JsonValue) -> str:
        source = test.place.source
        return add_target(self._draft, Place(structs.replace(source, data=provider)))


OPTIONS = frozenset(
    {"prefix", "suffix", "transform", "postprocess", "provider", "disableVarExpansion", "disableDefaultAsserts"}
)
"""Options of a test that are imported."""
OWN_NAMES = frozenset({"output", "rubric", "context", "env", "_conversation"})
"""Variables of promptfoo itself."""
