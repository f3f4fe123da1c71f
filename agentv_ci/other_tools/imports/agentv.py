"""Eval files of AgentV, of 2025 and of versions 4 and 5 → eval files."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from functools import partial
from itertools import chain, filterfalse, product
from pathlib import Path
from typing import cast

from msgspec.structs import replace

from agentv_ci.base.json_access import json_or_none
from agentv_ci.contracts.base import JsonObject, JsonValue
from agentv_ci.contracts.environment_references import variables_in
from agentv_ci.contracts.source import EVAL_SCHEMA, Mark, Source
from agentv_ci.other_tools.imports.agentv_checks import CaseContext
from agentv_ci.other_tools.imports.agentv_evaluators import evaluators
from agentv_ci.other_tools.imports.agentv_judges import PROMPT_VARIABLES
from agentv_ci.other_tools.imports.agentv_messages import Messages
from agentv_ci.other_tools.imports.agentv_targets import (
    add_missing_targets,
    add_target,
    read_targets,
)
from agentv_ci.other_tools.imports.agentv_templates import (
    Prompt,
    Question,
    document,
    has_more_than_variables,
    prompts_at,
    rows_of,
    with_our_variables,
)
from agentv_ci.other_tools.imports.agentv_workspaces import can_work, workspace
from agentv_ci.other_tools.imports.draft import (
    ANY_ANSWER,
    OUTCOME,
    Draft,
    Fields,
    Names,
    Place,
    comments_at_start,
    comments_before,
    items_of,
)
from agentv_ci.other_tools.imports.recognition import listed as listed_items
from agentv_ci.other_tools.imports.yaml_text import Block, Commented, Node, yaml_text

CASES = ("tests", "evalcases", "eval_cases", "cases")
ASSERTIONS = ("assertions", "assert", "evaluators", "graders")
ABOUT = ("version", "author", "license", "requires", "category", "metadata", "governance")
"""Fields that only describe the file; they stay under keys that begin with `x-`."""
HOOKS = "programs are not run; write commands that complete a workspace as `setup`"
NO_CONVERSATION = "each turn asks the agent again, which agentv-ci does not do"
_STRATEGIES = {
    "pass_at_k": "any",
    "pass_any": "any",
    "pass_all": "all",
    "mean": "majority",
    "confidence_interval": "majority",
}


def convert(draft: Draft, source: Source) -> None:
    """Add the eval file of one file of AgentV, and the targets that it uses."""
    if source.path.suffix == ".jsonl":
        source = _settings_of(draft, source)
    source = with_our_variables(draft, source)
    asked = read_targets(draft, source)
    made = _Suite(draft, source, asked).document()
    name = draft.evals.unique(
        re.sub(r"(?i)\.(eval|test)$|^eval$", "", source.path.stem) or source.path.parent.name
    )
    draft.texts[f"{name}.eval.yaml"] = yaml_text(made, comments_at_start(source))
    add_missing_targets(draft)


def _settings_of(draft: Draft, source: Source) -> Source:
    """Return the settings beside a file of cases in lines, or none, with these cases."""
    beside = map(source.path.with_suffix, (".eval.yaml", ".yaml"))
    found = next((each for path in beside if (each := document(draft, path)) is not None), None)
    settings = {}
    if found is not None and isinstance(found.data, dict):
        settings = found.data
    return replace(found or source, data={**settings, "tests": source.path.name})


class _Suite:
    """One file, and what it says of all its cases."""

    def __init__(self, draft: Draft, source: Source, asked: str | None) -> None:
        """`asked` is the target of the repository's files that name none."""
        self._draft = draft
        self._source = source
        self._asked = asked or "default"
        self._messages = Messages(draft, source)
        self._ids = Names()
        self._fields = draft.fields(Place(source), "")
        self._input: list[Node] = []
        self._shared: list[Node] = []
        self._prompts: list[Prompt] = []
        """Templates of the question of every case."""
        self._variables: dict[str, Place] = {}
        """Variables that the file gives to every case."""
        self._lost: list[str] = []
        """What no case can do without."""
        self._workspace: dict[str, Node] = {}
        self._lacks_target = False
        """Whether a case names no target."""
        self._named: set[str] = set()
        """Targets that the file and its cases name."""
        self._each_case: list[Place] = []
        """Assertions of the file that need to know the case."""

    def document(self) -> dict[str, Node]:
        """Return the eval file."""
        fields = self._fields
        made: dict[str, Node] = {"$schema": EVAL_SCHEMA, **self._about(fields)}
        self._input = [
            *self._messages.listed(fields.at("input")),
            *self._messages.files(fields.at("input_files")),
        ]
        self._prompts = prompts_at(self._draft, fields.at("prompts"))
        execution = self._execution(fields)
        fields.drop({"preprocessors"}, "files are read as they are")
        cases = fields.at(*CASES)
        if cases is None and (beside := self._beside()) is not None:
            cases = beside
        scenarios = fields.at("scenarios")
        place = fields.at("workspace", "environment")
        self._workspace = workspace(self._draft, place) if place else {}
        fields.drop({"extensions"}, HOOKS)
        fields.end()
        listed = list(self._cases(cases)) if cases else []
        listed += self._of_scenarios(scenarios)
        if self._lacks_target and not execution.keys() & {"target", "targets"}:
            name = self._draft.target(self._asked, Place(self._source))
            execution = {"target": name, **execution} if name != "default" else execution
        if place and self._workspace and can_work(self._draft, place, self._named or {self._asked}):
            execution["workspace"] = self._workspace
        if execution:
            made["execution"] = execution
        made["evalcases"] = listed or self._draft.without_cases(
            Place(self._source), "the file has no tests"
        )
        return made

    def _about(self, fields: Fields) -> dict[str, Node]:
        """Return what describes the file."""
        made: dict[str, Node] = {}
        fields.ignore("$schema")
        for ours in ("name", "description"):
            if text := fields.text(ours):
                made["dataset" if ours == "name" else ours] = text
        tags = fields.take("tags")
        if isinstance(tags, list):
            made["tags"] = list(map(str, tags))
        elif tags is not None:
            made["x-tags"] = tags
        for key in ABOUT:
            if (value := fields.take(key)) is not None:
                made[f"x-{key}"] = value
        return made

    def _beside(self) -> Place | None:
        """Return the place of the cases of a file that has none.

        It is a file of lines of the same name.
        """
        name = re.sub(r"(?i)(\.eval)?\.ya?ml$", ".jsonl", self._source.path.name)
        lines = self._source.path.with_name(name)
        if lines == self._source.path or not self._draft.reads.matching(lines):
            return None
        return Place(
            Source(self._source.path, self._source.root, None, [name], self._source.find_mark)
        )

    def _execution(self, fields: Fields) -> dict[str, Node]:
        made: dict[str, Node] = {}
        own: list[Place] = []
        for key in ("execution", "experiment", "evaluate_options", "default_test"):
            place = self._referenced(fields.at(key))
            if place is not None and isinstance(place.value, dict):
                inner = self._draft.fields(place, key)
                if key == "default_test":
                    made |= self._test_settings(inner, self._lost)
                    self._variables = self._variables_at(inner)
                self._run_settings(inner, made)
                own += items_of(inner.at(*ASSERTIONS))
                inner.end("set by options of `agentv-ci eval`, or not needed")
        self._run_settings(fields, made)
        own += items_of(fields.at(*ASSERTIONS))
        shared = list(filterfalse(_depends_on_case, own))
        self._each_case = list(filter(_depends_on_case, own))
        context = CaseContext(lost=self._lost)
        if listed := evaluators(self._draft, shared, context):
            made["evaluators"] = self._shared = listed
        return made

    def _run_settings(self, fields: Fields, made: dict[str, Node]) -> None:
        """Add the settings of a run, or of the trials of a test."""
        made |= self._targets(fields)
        trials = fields.at("trials", "runs", "repeat")
        if trials is not None:
            made["repeat"] = self._trials(trials)
        gate: dict[str, Node] = {}
        if (threshold := fields.take("threshold")) is not None:
            gate = {"min_pass_rate": 0, "min_mean_score": threshold}
        if (budget := fields.take("budget_usd", "budgetUsd")) is not None:
            gate["max_cost_usd"] = budget
        if gate:
            made["gate"] = {**cast("dict[str, Node]", made.get("gate", {})), **gate}
        if (seconds := fields.take("timeout_seconds")) is not None:
            made["timeout_seconds"] = seconds
        if isinstance(milliseconds := fields.take("timeout_ms"), (int, float)):
            made["timeout_seconds"] = milliseconds / 1000
        fields.drop({"workers", "max_concurrency"}, "write --workers, or `workers` of a target")

    def _test_settings(self, fields: Fields, lost: list[str]) -> dict[str, Node]:
        """Return the settings of a test, also of `default_test`."""
        made: dict[str, Node] = {}
        for place in filter(None, (fields.at("options"), fields.at("run"))):
            inner = self._draft.fields(place, str(place.pointer[-1]))
            if "transform" in inner:
                lost.append("a transform of the answer")
            inner.drop({"transform"}, "a program changes the answer; its cases are skipped")
            inner.drop({"provider"}, "judges are set for the target: `judge_target`")
            inner.drop({"rubric_prompt"}, "criteria are checked with the prompt of agentv-ci")
            inner.drop({"budget_usd"}, "write --max-cost")
            made |= self._test_settings(inner, lost)
            self._run_settings(inner, made)
            inner.end("set by options of `agentv-ci eval`, or not needed")
        if (threshold := fields.take("threshold")) is not None:
            made["threshold"] = threshold
        if "assert_scoring_function" in fields:
            lost.append("a program scores it")
        fields.drop({"assert_scoring_function"}, "a program scores; its cases are skipped")
        return made

    def _trials(self, place: Place) -> Node:
        if not isinstance(place.value, dict):
            if self._prompts and place.pointer[-1] == "repeat":
                return {"max": place.value, "require": "any"}
            return place.value
        fields = self._draft.fields(place, "trials")
        count, strategy = fields.take("count", "max"), fields.text("strategy") or "mean"
        if strategy not in {"pass_at_k", "pass_any", "pass_all"}:
            self._draft.note(
                "approximated",
                place,
                f"trials.strategy: {strategy}",
                "the majority of trials must pass",
            )
        fields.drop({"cost_limit_usd", "costLimitUsd"}, "write --max-cost")
        early = {}
        if fields.take("early_exit"):
            early = {"stop_when": "decided"}
        fields.end()
        return {"max": count or 1, "require": _STRATEGIES.get(strategy, "majority"), **early}

    def _targets(self, fields: Fields) -> dict[str, Node]:
        several, single = fields.at("targets"), fields.at("target")
        names = list(map(self._target, items_of(several)))
        names += self._providers(fields.at("providers", "provider"))
        if not names and single:
            names = [self._target(single)]
        if len(names) > 1:
            return {"targets": names}
        if names and names[0]:
            return {"target": names[0]}
        return {}

    def _providers(self, place: Place | None) -> Iterator[str]:
        """Yield the names of targets; those that are defined here are added."""
        listed = map(self._referenced, items_of(place))
        for item in chain.from_iterable(map(items_of, listed)):
            if isinstance(item.value, str) and ":" not in item.value:
                yield self._target(item)
            else:
                name = add_target(self._draft, item, self._source.path.parent)
                self._named.add(name)
                yield self._draft.target(name, item)

    def _referenced(self, place: Place | None) -> Place | None:
        """Return the place of a value that may be in a file of its own."""
        if place is None or not str(place.value).startswith("file://"):
            return place
        path = place.source.resolve(str(place.value).removeprefix("file://"))
        found = document(self._draft, path)
        if found is None:
            self._draft.note(
                "dropped", place, str(place.pointer[-1]), f"'{path.name}' was not found"
            )
        return Place(found) if found else None

    def _target(self, place: Place) -> str:
        value = place.value
        if isinstance(value, dict):
            names = list(map(value.get, ("name", "extends", "use_target", "id")))
        else:
            names = [value]
        name = str(next(filter(None, names), "default"))
        for key in value.keys() - {"name"} if isinstance(value, dict) else ():
            self._draft.note(
                "dropped", place, f"target.{key}", "settings of a target belong into its file"
            )
        if variables_in(name):
            name = "default"
        self._named.add(name)
        return self._draft.target(name, place)

    # Cases

    def _cases(self, place: Place) -> Iterator[Node]:
        for item in place.items:
            if isinstance(item.value, str):
                yield from self._file_of_cases(item, item.value.removeprefix("file://"))
            elif isinstance(item.value, dict) and "include" in item.value:
                yield from self._file_of_cases(item, str(item.value["include"]))
            else:
                yield from self._of_prompts(item)

    def _of_scenarios(self, place: Place | None) -> Iterator[Node]:
        """Yield each test of each scenario with each of its sets of settings."""
        for item in items_of(place):
            listed = [item]
            if isinstance(item.value, str):
                path = item.source.resolve(item.value.removeprefix("file://"))
                files = self._draft.reads.matching(path)
                sources = [document(self._draft, file) for file in files]
                listed = [Place(source) for source in sources if source]
            for scenario in chain.from_iterable(found.items for found in listed):
                fields = self._draft.fields(scenario, "scenarios")
                sets, tests = items_of(fields.at("config")), items_of(fields.at("tests"))
                fields.end("scenarios have no settings of their own")
                for config, test in product(sets, tests):
                    yield from self._of_prompts(test.holding(_merged(config.value, test.value)))

    def _of_prompts(self, place: Place) -> Iterator[Node]:
        """Yield the case of a test for each prompt."""
        if not self._prompts:
            yield self._case(place, None)
        for prompt in self._prompts:
            yield self._case(place, prompt)

    def _file_of_cases(self, place: Place, path: str) -> Iterator[Node]:
        file = place.source.resolve(path)
        found = self._draft.reads.matching(file) or self._draft.reads.matching(
            file / "*" / "case.y*ml"
        )
        if not found:
            self._draft.note("dropped", place, "tests", f"'{path}' was not found")
        for file in found:
            for case in _cases_in(self._draft, file):
                yield from self._of_prompts(case)

    def _case(self, place: Place, prompt: Prompt | None) -> Node:
        notes = len(self._draft.notes)
        fields = self._draft.fields(place, "tests")
        context = CaseContext()
        file = place.source.path
        unnamed = file.parent.name if file.stem == "case" else "case"
        name = fields.text("id", "name") or unnamed
        if prompt and len(self._prompts) > 1:
            name = f"{name}-{prompt.name}"
        made: dict[str, Node] = {"id": self._ids.unique(name)}
        variables = self._variables | self._variables_at(fields)
        outcome = fields.text("criteria", "expected_outcome", "outcome")
        made["expected_outcome"] = outcome or OUTCOME
        for key in ("description", "note", "conversation_id"):
            if text := fields.text(key):
                made[key] = text
        execution = self._case_execution(fields, context)
        skips_defaults = execution.pop("skip_defaults", False) is True
        question = Question(prompt, variables)
        messages, skip = self._question(fields, question, with_defaults=not skips_defaults)
        made["input"] = _short(messages) or "(nothing)"
        expected = fields.at("expected_output", "expected_messages", "expected")
        made["expected"] = self._messages.expected(
            expected or variables.get("expected_output"), context
        )
        listed = [
            *cast("list[Node]", execution.pop("evaluators", [])),
            *self._evaluators(fields, context, skips_defaults),
        ]
        if listed:
            made["evaluators"] = listed
        lost = [*self._lost, *context.lost]
        if lost:
            made.setdefault("evaluators", [ANY_ANSWER])
            skip.append(f"its checks could not be imported: {', '.join(lost)}")
        self._draft.has_judges |= not (listed or lost or self._shared)
        if skips_defaults:
            made["inherit_evaluators"] = False
        self._lacks_target |= not execution.keys() & {"target", "targets"}
        execution |= self._own_workspace(fields.at("workspace", "environment"))
        if execution:
            made["execution"] = execution
        made |= _metadata(fields)
        fields.drop({"depends_on", "on_dependency_failure"}, "cases are independent of each other")
        fields.end()
        made |= self._rows(made, question, skip)
        made = self._without_environment(made, place, skip)
        if skip:
            made["skip"] = "Not imported: " + "; ".join(skip)
        self._draft.count(notes, made)
        comments = comments_before(place)
        if comments:
            return Commented(comments, Block(made))
        return Block(made)

    def _own_workspace(self, place: Place | None) -> dict[str, Node]:
        """Return the workspace of a case, which adds to that of the file."""
        found = {}
        if place:
            found = workspace(self._draft, place)
        if not place or not found or not can_work(self._draft, place, self._named or {self._asked}):
            return {}
        return {"workspace": {**self._workspace, **found}}

    def _variables_at(self, fields: Fields) -> dict[str, Place]:
        place = fields.at("vars")
        if place is None or not isinstance(place.value, dict):
            return {}
        return {name: place / name for name in place.value}

    def _rows(
        self, made: Mapping[str, Node], question: Question, skip: list[str]
    ) -> dict[str, Node]:
        """Return the rows of a case, of the variables that its texts name."""
        if not question.variables:
            return {}
        text = json.dumps([made, self._shared], ensure_ascii=False)
        if self._prompts and has_more_than_variables(text):
            skip.append("a template has more than variables")
            return {}
        values = {name: place.value for name, place in question.variables.items()}
        rows = rows_of(values, text, PROMPT_VARIABLES.values())
        for name in values.keys() - rows[0].keys() - {"expected_output", question.whole}:
            self._draft.note(
                "dropped", question.variables[name], f"vars.{name}", "no text names it"
            )
        return {"vars": cast("list[Node]", rows)} if rows != [{}] else {}

    def _question(
        self, fields: Fields, question: Question, *, with_defaults: bool
    ) -> tuple[list[Node], list[str]]:
        """Return the messages of a case, and why it cannot run."""
        skip: list[str] = []
        place = fields.at("input", "input_messages", "prompt")
        if question.prompt is not None:
            if place is not None:
                question.variables["input"] = place
            place = question.place
            if place is None:
                skip.append("its prompt could not be read")
        own = self._messages.listed(place)
        own += self._messages.files(fields.at("input_files"))
        turns = fields.at("turns")
        if turns is not None:
            self._draft.note(
                "dropped", turns, "tests.turns", f"{NO_CONVERSATION}; the case is skipped"
            )
            skip.append("it is a conversation with several questions")
            if turns.items:
                own += self._messages.listed(turns.items[0] / "input")
            fields.drop({"mode", "aggregation", "on_turn_failure", "window_size"}, NO_CONVERSATION)
        messages = [*(self._input if with_defaults else []), *own]
        if not messages:
            skip.append("it has no input")
        return messages, skip

    def _evaluators(self, fields: Fields, context: CaseContext, skips_defaults: bool) -> list[Node]:
        assertions, rubrics = fields.at(*ASSERTIONS), fields.at("rubrics")
        places = [
            *items_of(assertions),
            *([] if skips_defaults else self._each_case),
        ]
        listed = evaluators(self._draft, places, context)
        if rubrics is None:
            return listed
        criteria = rubrics.holding({"criteria": rubrics.value})
        return [*listed, *evaluators(self._draft, [criteria], context)]

    def _without_environment(
        self, made: dict[str, Node], place: Place, skip: list[str]
    ) -> dict[str, Node]:
        """Return a case without environment references in what the agent gets.

        Eval files leave such references as they are.
        """
        parts = ("input", "expected_outcome", "expected", "evaluators", "vars")
        text = json.dumps(list(map(made.get, parts)))
        names = sorted(set(variables_in(text)))
        if not names:
            return made
        self._draft.note(
            "dropped",
            place,
            "${{ NAME }}",
            "eval files have no environment variables; the case is skipped",
        )
        skip.append(f"it needs the environment variables {', '.join(names)}")
        return cast("dict[str, Node]", _without_references(cast("JsonObject", made)))

    def _case_execution(self, fields: Fields, context: CaseContext) -> dict[str, Node]:
        place = fields.at("execution")
        made: dict[str, Node] = {}
        if place is not None:
            inner = self._draft.fields(place, "tests.execution")
            made |= self._targets(inner)
            if inner.take("skip_defaults") is True:
                made["skip_defaults"] = True
            if (trials := inner.at("trials", "runs", "repeat")) is not None:
                made["repeat"] = self._trials(trials)
            if (threshold := inner.take("threshold")) is not None:
                made["threshold"] = threshold
            if (listed := inner.at(*ASSERTIONS)) is not None:
                made["evaluators"] = evaluators(self._draft, listed.items, context)
            inner.end("set by options of `agentv-ci eval`, or not needed")
        return made | self._targets(fields) | self._test_settings(fields, context.lost)


def _merged(config: JsonValue, test: JsonValue) -> JsonObject:
    """Return a test with the settings of its scenario: of variables its own count."""
    first, second = _mapping(config), _mapping(test)
    variables = _mapping(first.get("vars")) | _mapping(second.get("vars"))
    asserted = [*listed_items(first.get("assert")), *listed_items(second.get("assert"))]
    return {**first, **second, "vars": variables, "assert": asserted}


def _metadata(fields: Fields) -> dict[str, Node]:
    names = ("suite", "category", "difficulty", "tags", "severity")
    about = {name: value for name in names if (value := fields.take(name)) is not None}
    metadata = {**_mapping(fields.take("metadata")), **about}
    if metadata:
        return {"metadata": metadata}
    return {}


def _mapping(value: JsonValue) -> JsonObject:
    if isinstance(value, dict):
        return value
    return {}


def _short(messages: list[Node]) -> Node:
    """Return messages, as a text if they are one question."""
    if (
        len(messages) == 1
        and isinstance(only := messages[0], dict)
        and only.keys() == {"role", "content"}
    ):
        content = only["content"]
        if only["role"] == "user" and isinstance(content, str) and content:
            return content
    return messages


def _depends_on_case(place: Place) -> bool:
    """Whether an assertion of the file reads the reference answer while it is imported."""
    value = place.value
    kind = ""
    if isinstance(value, dict):
        kind = str(value.get("type") or "").replace("_", "-")
    needs_calls = (
        kind == "tool-trajectory"
        and isinstance(value, dict)
        and not value.keys() & {"expected", "minimums"}
    )
    return kind == "field-accuracy" or needs_calls


def _without_references(value: JsonValue) -> JsonValue:
    match value:
        case str():
            return re.sub(r"\$\{\{\s*(\w+)\s*\}\}", r"(\1)", value)
        case list():
            return list(map(_without_references, value))
        case dict():
            return {key: _without_references(item) for key, item in value.items()}
        case _:
            return value


def _cases_in(draft: Draft, file: Path) -> Iterator[Place]:
    """Yield the cases of another file: a list, a mapping with `tests`, or a line each."""
    if file.suffix == ".jsonl":
        for number, line in enumerate((draft.reads.text(file) or "").split("\n")):
            if line.strip():
                mark = partial(Mark, (number, 0), (number, len(line)), None)
                yield Place(Source(file, file.parent, None, json_or_none(line), mark))
        return
    source = document(draft, file)
    if source is None:
        return
    place = Place(source)
    if isinstance(place.value, dict):
        key = next((key for key in CASES if key in place.value), None)
        place = place / key if key else place
    yield from place.items
