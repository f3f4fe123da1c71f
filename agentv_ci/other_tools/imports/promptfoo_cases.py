"""Tests of promptfoo and their prompts → cases."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import cast

from agentv_ci.base.mappings import only, without
from agentv_ci.contracts.base import JsonObject, JsonValue
from agentv_ci.other_tools.imports.draft import (
    ANY_ANSWER,
    OUTCOME,
    Draft,
    Names,
    comments_before,
    slug,
)
from agentv_ci.other_tools.imports.promptfoo_asserts import CheckContext, evaluators, transform
from agentv_ci.other_tools.imports.promptfoo_prompts import Prompt, prompt_of
from agentv_ci.other_tools.imports.promptfoo_providers import Provider, Providers
from agentv_ci.other_tools.imports.promptfoo_templates import (
    FileText,
    Templates,
    Unfilled,
    is_simple,
)
from agentv_ci.other_tools.imports.promptfoo_tests import Test
from agentv_ci.other_tools.imports.yaml_text import Alias, Anchored, Block, Commented, Node

NOTHING = "(nothing)"


def repeat_of(times: JsonValue) -> dict[str, Node]:
    """Return the setting of a test that is repeated."""
    if isinstance(times, int) and times > 1:
        return {"repeat": {"max": times, "require": "all"}}
    return {}


def _base(prompt: Prompt) -> dict[str, Node]:
    """Return what all cases of a prompt share."""
    if prompt.is_shared:
        return {"expected_outcome": OUTCOME, "input": prompt.messages, "expected": []}
    return {"expected_outcome": OUTCOME, "expected": []}


class Cases:
    """Writes the cases of all prompts; what they share stands once, under an anchor."""

    def __init__(
        self,
        draft: Draft,
        prompts: list[Prompt],
        providers: Providers,
        templates: Templates,
    ) -> None:
        """`templates` fills in what eval files do not have."""
        self._draft = draft
        self._prompts = prompts
        self._providers = providers
        self._templates = templates
        self._bases = list(map(_base, prompts))
        self._shared: JsonObject = {}
        self._texts: list[JsonValue] = []
        self._names = Names()
        self._ids = Names()

    def written(self, tests: Sequence[Test], variables: JsonObject) -> dict[str, Node]:
        """Return `x-prompt` keys and `evalcases`; `variables` are those that all tests have."""
        made: dict[str, Node] = {}
        self._shared = variables if len(tests) > 1 else {}
        for test in tests:
            for row in test.rows:
                self._texts += row.values()
        names = ["prompt"]
        if len(self._bases) > 1:
            names = [f"prompt-{number}" for number in range(1, len(self._bases) + 1)]
        is_shared = len(tests) > 1 or len(self._prompts) > 1
        if is_shared:
            made |= {
                f"x-{name}": Anchored(name, Block(base))
                for name, base in zip(names, self._bases, strict=True)
            }
        if self._shared:
            made["x-vars"] = Anchored("vars", Block(cast("dict[str, Node]", self._shared)))
        listed: list[Node] = []
        for number, test in enumerate(tests, 1):
            listed += self._cases(test, number, names if is_shared else None)
        return {**made, "evalcases": listed}

    def _cases(self, test: Test, number: int, names: list[str] | None) -> list[Node]:
        identity = f"test-{number}"
        if test.description:
            identity = slug(test.description, identity)
        identity = self._ids.unique(identity)
        made: list[Node] = []
        first: tuple[str, dict[str, Node]] | None = None
        comments = comments_before(test.place) if test.place.pointer else ()
        for index, prompt in enumerate(self._prompts):
            notes = len(self._draft.notes)
            own = self._own(test, prompt)
            if own is None:
                continue
            rows: Node = list(test.rows) if test.file else own.get("vars")
            self._draft.count(notes, {**own, "vars": rows}, changed=test.is_changed)
            own_id = self._ids.unique(f"{identity}-{index + 1}") if made else identity
            if names and first is not None and first[1] == own and "input" not in own:
                aliases: list[Node] = [Alias(names[index]), Alias(first[0])]
                outcome = only(own, {"expected_outcome"})  # that of the prompt is nearer
                made.append(Block({"<<": aliases, "id": own_id, **outcome}))
                continue
            case: dict[str, Node] = {"id": own_id, **self._bases[index], **own}
            if names:
                case = {"<<": Alias(names[index]), "id": own_id, **own}
            body: Node = Block(case)
            if names and len(self._prompts) > 1 and not made:
                first = f"case-{number}", own
                body = Anchored(first[0], body)
            made.append(Commented(comments, body) if comments and not made else body)
        return made

    def _own(self, test: Test, prompt: Prompt) -> dict[str, Node] | None:
        """Return what a case has besides the prompt; None without a provider to ask."""
        asked = [
            provider
            for provider in self._providers.listed
            if prompt.is_one_of(provider.prompts) and provider.is_one_of(test.providers)
        ]
        if not prompt.is_one_of(test.prompts) or (self._providers.listed and not asked):
            return None
        made: dict[str, Node] = {"expected_outcome": test.description} if test.description else {}
        made |= self._rows(test)
        problems = [*test.problems, *self._problems(test, prompt, asked)]
        settings: dict[str, Node] = {}
        try:
            made |= self._input(test, prompt)
            checks, settings, lost = self._checks(test, asked)
        except Unfilled as error:
            self._draft.note("dropped", test.place, "template", f"{error}; the case is skipped")
            checks, lost = [], []
            problems.append(str(error))
        if lost and not checks:
            problems.append(f"its checks could not be imported: {', '.join(lost)}")
        if self._is_empty(test, prompt, made):
            self._draft.note("dropped", test.place, "prompt", "it is empty; the case is skipped")
            problems.append("its prompt is empty")
            made["input"] = NOTHING
        if "input" not in made and not prompt.is_shared:
            made["input"] = NOTHING
        made["evaluators"] = checks or [ANY_ANSWER]
        settings |= self._targets(test, asked) | repeat_of(test.options.get("repeat"))
        if settings:
            made["execution"] = settings
        if test.metadata:
            made["metadata"] = cast("Node", test.metadata)
        if problems:
            made["skip"] = f"Not imported: {'; '.join(problems)}"
        elif not test.asserts:
            self._draft.note("kept", test.place, "test without assertions", "any answer passes")
        return made

    def _problems(self, test: Test, prompt: Prompt, asked: Sequence[Provider]) -> list[str]:
        """Return why a case cannot be kept, besides what its test says."""
        found = []
        if prompt.is_program:
            found.append("a program makes its prompt")
        if len({json.dumps(provider.transform) for provider in asked}) > 1:
            found.append("only some of its providers have a transform")
            how = "it is that of only some providers; its cases are skipped"
            self._draft.note("dropped", test.place, "providers.transform", how)
        if test.threshold is not None and not 0 <= test.threshold <= 1:
            found.append(f"the threshold {test.threshold:g} is not from 0 to 1")
            self._draft.note("dropped", test.place, "threshold", "it is not from 0 to 1")
        return found

    def _checks(
        self, test: Test, asked: Sequence[Provider]
    ) -> tuple[list[Node], dict[str, Node], list[str]]:
        """Return evaluators, the settings that they need, and the checks that were lost."""
        codes = [asked[0].transform] if asked else []
        codes.append(test.options.get("transform") or test.options.get("postprocess"))
        judge = test.options.get("provider")
        context = CheckContext(
            transforms=[transform(self._draft, code) for code in codes if isinstance(code, str)],
            variables=test.rows[0] if not test.is_plain else _as_templates(test.columns),
            threshold=test.threshold,
            judge=judge.get("text", judge) if isinstance(judge, dict) else judge,
            judge_of=lambda named, place: self._providers.named(named, place).name,
            rubric_prompt=test.options.get("rubricPrompt"),
            templates=None if test.is_plain else self._templates,
            empty=frozenset(
                name for name in test.columns if any(not row.get(name) for row in test.rows)
            ),
            parsed=any(provider.is_parsed for provider in asked),
        )
        if len(asked) == 1:
            known: JsonObject = {
                "id": asked[0].identity,
                "label": asked[0].label,
                "config": asked[0].config,
            }
            context.provider = {key: value for key, value in known.items() if value}
        listed, settings = evaluators(self._draft, test.asserts, context)
        return listed, settings, context.lost

    def _targets(self, test: Test, asked: Sequence[Provider]) -> dict[str, Node]:
        """Return which targets are asked, if not all."""
        if test.answer is not None:
            answer = test.answer
            if not isinstance(answer, str):
                answer = json.dumps(answer, ensure_ascii=False, separators=(",", ":"))
            name = self._draft.targets_named.unique("answer")
            self._draft.targets[name] = {"provider": "mock", "response": answer}
            return {"target": self._draft.target(name, test.place)}
        if test.provider:
            return {"target": self._providers.named(test.provider, test.place).name}
        if len(asked) == len(self._providers.listed):
            return {}
        names = [provider.name for provider in asked]
        return {"target": names[0]} if len(names) == 1 else {"targets": names}

    def _input(self, test: Test, prompt: Prompt) -> dict[str, Node]:
        """Return the input of a test whose prompt is not that of others; raises Unfilled."""
        around = [str(test.options.get(key) or "") for key in ("prefix", "suffix")]
        if any(around):
            whole = prompt_of(f"{around[0]}{prompt.raw or prompt.text}{around[1]}", prompt.names)
            prompt = whole.as_text() if prompt.is_for_programs else whole
        elif test.is_plain:
            return {}
        if test.is_plain or prompt.is_program:
            return {"input": prompt.messages}
        row = test.rows[0]
        how = "filled in here, since eval files have variables but no expressions"
        self._draft.note("kept", test.place, "template", how)
        if not isinstance(prompt.messages, str):
            messages = cast("JsonValue", prompt.messages)
            return {"input": cast("Node", self._templates.value(messages, row))}
        if prompt.data is not None:
            data = self._templates.value(prompt.data, row)
            return {"input": json.dumps(data, ensure_ascii=False, indent=2)}
        text = self._templates.prompt(prompt.messages, row)
        if prompt.is_for_programs:
            return {"input": text}
        return {"input": prompt_of(text).messages}

    def _is_empty(self, test: Test, prompt: Prompt, made: dict[str, Node]) -> bool:
        """Whether a question has no text; of rows, any."""
        asked = made.get("input", prompt.messages)
        if not isinstance(asked, str):
            return False
        if test.is_plain and is_simple(asked):
            return not all(str(self._templates.value(asked, row)).strip() for row in test.rows)
        return not asked.strip()

    def _rows(self, test: Test) -> dict[str, Node]:
        if not test.is_plain:
            return {}
        if test.file is not None and test.rows:
            constants = self._constants(test)
            cases_from: dict[str, Node] = {"file": self._draft.reference(test.file)}
            if constants:
                cases_from["vars"] = cast("Node", constants)
            return {"cases_from": cases_from}
        rows = [self._short(row) for row in test.rows if row]
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


def _as_templates(names: Sequence[str]) -> JsonObject:
    """Return variables that our rows fill in."""
    return {name: f"{{{{ {name} }}}}" for name in names}
