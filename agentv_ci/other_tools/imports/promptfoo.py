"""Configs of promptfoo → an eval file and its targets."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import chain
from typing import cast

from msgspec import structs

from agentv_ci.contracts.base import JsonObject, JsonValue
from agentv_ci.contracts.source import EVAL_SCHEMA, Source
from agentv_ci.other_tools.imports.draft import (
    ANY_ANSWER,
    Draft,
    Names,
    Place,
    comments_at_start,
    comments_before,
    items_of,
    slug,
)
from agentv_ci.other_tools.imports.promptfoo_asserts import CheckContext, evaluators, transform
from agentv_ci.other_tools.imports.promptfoo_prompts import Prompt, messages_in, prompts_at
from agentv_ci.other_tools.imports.promptfoo_providers import add_target, question_of
from agentv_ci.other_tools.imports.promptfoo_templates import (
    FileText,
    filled,
    is_simple,
    rendered,
    variables_of,
)
from agentv_ci.other_tools.imports.promptfoo_tests import Test, Tests
from agentv_ci.other_tools.imports.yaml_text import (
    Alias,
    Anchored,
    Block,
    Commented,
    Node,
    yaml_text,
)
from agentv_ci.other_tools.mappings import without

OUTCOME = "The answer passes the evaluators"
NOT_NEEDED = "not needed, or an option of `agentv-ci eval`"


def convert(draft: Draft, source: Source) -> None:
    """Add the eval file of one config, and its targets."""
    fields = draft.fields(Place(source), "")
    fields.ignore("$schema")
    made: dict[str, Node] = {"$schema": EVAL_SCHEMA}
    if description := fields.text("description"):
        made["description"] = description
    providers = fields.at("providers", "targets")
    names = [add_target(draft, item) for item in items_of(providers)]
    if not names:
        names = [draft.target("default", Place(source))]
    if len(set(names)) > 1:
        made["targets"] = list(dict.fromkeys(names))
    else:
        made["target"] = names[0]
    made["system_prompt"] = "none"
    prompts = prompts_at(draft, fields.at("prompts")) or [
        Prompt("prompt", f"{{{{ {question_of(providers)} }}}}")
    ]
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
        {
            "outputPath",
            "sharing",
            "commandLineOptions",
            "writeLatestResults",
            "tags",
            "env",
            "metadata",
        },
        NOT_NEEDED,
    )
    fields.drop(
        {"redteam", "extensions", "nunjucksFilters", "derivedMetrics", "tracing"},
        "agentv-ci has no counterpart",
    )
    fields.end()
    made["execution"] = execution
    grouped = _grouped(found) if all(prompt.is_shared for prompt in prompts) else _single(found)
    made |= _Cases(draft, prompts, tests.shared if len(grouped) > 1 else {}).cases(grouped)
    made["evalcases"] = made["evalcases"] or draft.without_cases(
        Place(source), "no test can be read without a program"
    )
    name = draft.evals.unique(slug(source.path.name.partition(".")[0], "promptfoo"))
    draft.texts[f"{name}.eval.yaml"] = yaml_text(made, comments_at_start(source))


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
    single: list[Test] = []
    for test in tests:
        single += [replace(test, rows=[row], file=None) for row in test.rows]
    return single


def _base(prompt: Prompt) -> dict[str, Node]:
    """Return what all cases of a prompt share."""
    if prompt.is_shared:
        return {"expected_outcome": OUTCOME, "input": prompt.messages, "expected": []}
    return {"expected_outcome": OUTCOME, "expected": []}


class _Cases:
    """Writes the cases of all prompts; what they share stands once, under an anchor."""

    def __init__(self, draft: Draft, prompts: list[Prompt], variables: JsonObject) -> None:
        """`variables` are those that all tests have."""
        self._draft = draft
        self._prompts = prompts
        self._shared = variables
        self._texts: list[JsonValue] = []
        self._names = Names()
        self._ids = Names()

    def cases(self, tests: list[Test]) -> dict[str, Node]:
        """Return `x-prompt` keys and `evalcases`."""
        made: dict[str, Node] = {}
        rows = chain.from_iterable(test.rows for test in tests)
        self._texts = list(chain.from_iterable(row.values() for row in rows))
        shared = len(tests) > 1 or len(self._prompts) > 1
        bases = list(map(_base, self._prompts))
        names = ["prompt"]
        if len(bases) > 1:
            names = [f"prompt-{number}" for number in range(1, len(bases) + 1)]
        if shared:
            made |= {
                f"x-{name}": Anchored(name, Block(base))
                for name, base in zip(names, bases, strict=True)
            }
        if self._shared:
            made["x-vars"] = Anchored("vars", Block(cast("dict[str, Node]", self._shared)))
        listed: list[Node] = []
        for number, test in enumerate(tests, 1):
            listed += self._test(test, number, names if shared else None, bases)
        return {**made, "evalcases": listed}

    def _test(
        self, test: Test, number: int, names: list[str] | None, bases: list[dict[str, Node]]
    ) -> list[Node]:
        identity = f"test-{number}"
        if test.description:
            identity = slug(test.description, identity)
        identity = self._ids.unique(identity)
        made: list[Node] = []
        first: str | None = None
        comments = comments_before(test.place) if test.place.pointer else ()
        for index, prompt in enumerate(self._prompts):
            used = self._variables(test, prompt)
            own = self._own(test, used) | self._input(test, prompt)
            own |= self._skipped(test, prompt, own)
            own_id = identity if index == 0 else self._ids.unique(f"{identity}-{index + 1}")
            if (
                first is not None
                and names is not None
                and not self._is_rendered()
                and "input" not in own
            ):
                case: dict[str, Node] = {"<<": [Alias(names[index]), Alias(first)], "id": own_id}
                made.append(Block(case))
                continue
            case = {"id": own_id, **bases[index], **own}
            if names:
                case = {"<<": Alias(names[index]), "id": own_id, **own}
            body: Node = Block(case)
            if names and len(self._prompts) > 1 and index == 0:
                first = f"case-{number}"
                body = Anchored(first, body)
            made.append(Commented(comments, body) if comments and index == 0 else body)
        return made

    def _variables(self, test: Test, prompt: Prompt) -> set[str]:
        texts = [
            json.dumps(prompt.messages) if prompt.is_shared else "",
            json.dumps([assertion.value for assertion in test.asserts]),
            json.dumps(test.options),
        ]
        return set(chain.from_iterable(map(variables_of, texts)))

    def _is_rendered(self) -> bool:
        """Whether a prompt has more than variables."""
        return not all(prompt.is_shared for prompt in self._prompts)

    def _input(self, test: Test, prompt: Prompt) -> dict[str, Node]:
        """Return the input of a test whose prompt is not that of others."""
        prefix, suffix = (
            str(test.options.get("prefix") or ""),
            str(test.options.get("suffix") or ""),
        )
        messages = prompt.messages
        if not prompt.is_shared:
            how = "filled in here, since eval files have variables but no expressions"
            self._draft.note("approximated", test.place, "template", how)
            messages = cast("Node", rendered(cast("JsonValue", messages), filled(test.rows[0])))
            messages = messages_in(messages) if isinstance(messages, str) else messages
        elif not prefix and not suffix:
            return {}
        if isinstance(messages, str):
            return {"input": f"{prefix}{messages}{suffix}"}
        return {"input": messages}

    def _skipped(self, test: Test, prompt: Prompt, own: dict[str, Node]) -> dict[str, Node]:
        """Return what skips a case without a prompt.

        The prompt may be empty, or a template that cannot be filled in.
        """
        why = None
        if not is_simple(json.dumps(own.get("input"), ensure_ascii=False)):
            why = "its prompt has expressions that only promptfoo reads"
        elif isinstance(prompt.messages, str) and not all(
            str(rendered(prompt.messages, filled(row))).strip() for row in test.rows
        ):
            why = "its prompt is empty"
        if why is None or "skip" in own:
            return {}
        self._draft.note("dropped", test.place, "prompt", f"{why}; the case is skipped")
        return {"input": "(nothing)", "skip": f"Not imported: {why}"}

    def _own(self, test: Test, used: set[str]) -> dict[str, Node]:
        """Return what a case has besides the prompt."""
        made: dict[str, Node] = {"expected_outcome": test.description} if test.description else {}
        made |= self._rows(test, used)
        context = CheckContext(
            variables=test.columns, threshold=test.threshold, judge=self._judge(test)
        )
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
        skip = []
        if context.lost and not listed:
            skip = [f"its checks could not be imported: {', '.join(context.lost)}"]
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
        names = {
            name
            for name in used - OWN_NAMES
            if "." not in name and any(name not in row for row in test.rows)
        }
        missing: JsonObject = dict.fromkeys(sorted(names), "")
        if test.file is not None and test.rows:
            constants = self._constants(test) | missing
            cases_from: dict[str, Node] = {"file": self._draft.reference(test.file)}
            if constants:
                cases_from["vars"] = cast("Node", constants)
            return {"cases_from": cases_from}
        rows = [self._short(filled({**missing, **row})) for row in test.rows if row or missing]
        if rows:
            return {"vars": rows}
        return {}

    def _short(self, row: JsonObject) -> Node:
        """Return a row; what it shares with the others stands under an anchor."""
        is_short = bool(self._shared) and all(
            row.get(key) == value for key, value in self._shared.items()
        )
        made = {
            key: self._text(value) if key not in self._shared else value
            for key, value in row.items()
        }
        if not is_short:
            return cast("Node", made)
        return {
            "<<": Alias("vars"),
            **without(made, self._shared),
        }

    def _text(self, value: JsonValue) -> Node:
        """Return a value.

        The text of a file that several tests share stands once, under an anchor.
        """
        if not isinstance(value, FileText) or "\n" not in value or self._texts.count(value) == 1:
            return cast("Node", value)
        name = f"text-{self._texts.index(value) + 1}"
        is_first = self._names.unique(name) == name
        if is_first:
            return Anchored(name, value)
        return Alias(name)

    def _constants(self, test: Test) -> JsonObject:
        """Return the variables that a table does not have, but the defaults do."""
        header = ""
        if test.file:
            header = (self._draft.reads.text(test.file) or "").split("\n")[0]
        columns = {part.strip().strip('"') for part in header.split(",")}
        if not test.rows:
            return {}
        return without(test.rows[0], columns)

    def _judge(self, test: Test) -> str | None:
        provider = test.options.get("provider")
        if isinstance(provider, dict):
            provider = provider.get("text", provider)
        if provider:
            return self._target(test, provider)
        return None

    def _target(self, test: Test, provider: JsonValue) -> str:
        source = test.place.source
        return add_target(self._draft, Place(structs.replace(source, data=provider)))


OPTIONS = frozenset(
    {
        "prefix",
        "suffix",
        "transform",
        "postprocess",
        "provider",
        "disableVarExpansion",
        "disableDefaultAsserts",
    }
)
"""Options of a test that are imported."""
OWN_NAMES = frozenset({"output", "rubric", "context", "env", "_conversation"})
"""Variables of promptfoo itself."""
