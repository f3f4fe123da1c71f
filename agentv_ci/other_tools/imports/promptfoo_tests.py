"""Tests of promptfoo.

They are inline, in files and tables, and in scenarios, and have the defaults of the config.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, product
from math import prod
from pathlib import Path
from typing import cast

from agentv_ci.base.json_access import json_or_none
from agentv_ci.base.mappings import known, without
from agentv_ci.contracts.base import JsonObject, JsonValue
from agentv_ci.contracts.documents import ANY_LENGTH
from agentv_ci.contracts.source import Mark, Source, normal
from agentv_ci.errors import UsageError
from agentv_ci.other_tools.imports.draft import Draft, Fields, Place, items_of
from agentv_ci.other_tools.imports.promptfoo_asserts import Assertion, assertion_in
from agentv_ci.other_tools.imports.promptfoo_templates import FileText, has_tags

NO_GENERATORS = (
    "a program makes these tests; write its rows to a file and read them with cases_from"
)
MOST_TESTS, MOST_ROWS = 20_000, 100_000
"""Of a config, and rows of variables in all: a few lists of values have billions of combinations.
"""
SPECIAL = "__"
"""First characters of columns that are no variables."""
PROGRAMS = (".py", ".js", ".ts", ".mjs", ".cjs")
OPTIONS = (
    "prefix",
    "suffix",
    "transform",
    "postprocess",
    "provider",
    "rubricPrompt",
    "repeat",
    "disableVarExpansion",
    "disableDefaultAsserts",
)
"""Options of a test that are imported."""
_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?")
_CONFIG = re.compile(r"__config:__expected([1-9]\d*)?:threshold")


@dataclass(slots=True)
class Test:
    """A test: one question for each of its rows."""

    place: Place
    rows: list[JsonObject]
    asserts: list[Assertion]
    description: str = ""
    threshold: float | None = None
    options: JsonObject = field(default_factory=dict)
    provider: JsonValue = None
    metadata: JsonObject = field(default_factory=dict)
    file: Path | None = None
    """The table that the rows are in, if it can be read as it is."""
    answer: JsonValue = None
    """An answer that is not asked for."""
    prompts: JsonValue = None
    """The prompts that ask, and the providers that are asked; None for all."""
    providers: JsonValue = None
    problems: list[str] = field(default_factory=list)
    """What cannot be imported, so that the test is skipped."""
    is_plain: bool = True
    """Whether its templates stay; those of others are filled in with their only row."""
    is_changed: bool = False
    """Whether something of it was lost while reading it."""

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of its variables."""
        return tuple(dict.fromkeys(chain.from_iterable(self.rows)))

    def fits(self, other: Test) -> bool:
        """Whether both can be rows of one template."""
        mine, theirs = (
            replace(test, place=self.place, rows=[], asserts=[]) for test in (self, other)
        )
        values = ([assertion.value for assertion in test.asserts] for test in (self, other))
        is_bare = not (self.description or self.metadata or self.file or self.problems)
        is_new = not any(row in self.rows for row in other.rows)
        return (
            is_bare
            and is_new
            and mine == theirs
            and next(values) == next(values)
            and self.columns == other.columns != ()
        )


class Tests:
    """Reads the tests of a config."""

    def __init__(self, draft: Draft, defaults: Place | None) -> None:
        """`defaults` is the place of `defaultTest`."""
        self._draft = draft
        self._tests = self._rows = 0
        self._open: set[Path] = set()
        """Files that are being read."""
        self.defaults = Test(cast("Place", defaults), [{}], [])
        if defaults is not None:
            self.defaults = self._test(defaults, "defaultTest")

    @property
    def shared(self) -> JsonObject:
        """The variables that the defaults give to every test, if one has several lines."""
        rows = self.defaults.rows
        if len(rows) == 1 and any("\n" in str(value) for value in rows[0].values()):
            return rows[0]
        return {}

    def listed(self, place: Place | None) -> list[Test]:
        """Return the tests under `tests`, each with the defaults."""
        return list(map(self._with_defaults, self._written(place)))

    def of_scenarios(self, place: Place | None) -> list[Test]:
        """Return the tests of scenarios: each for each of its configurations."""
        found = []
        for scenario in self._scenarios(place):
            fields = self._draft.fields(scenario, "scenarios")
            configs, tests = fields.at("config"), fields.at("tests")
            written = self._written(tests) if tests else [Test(scenario, [{}], [])]
            for config in items_of(configs):
                own = self._test(config, "config")
                for test in written:
                    self._require_few(own.rows, test.rows)
                    found.append(self._with_defaults(_over(own, test, adds_asserts=True)))
            fields.drop({"description"}, "cases have descriptions, but groups of them do not")
            fields.end()
        return found

    def _scenarios(self, place: Place | None) -> Iterator[Place]:
        for item in items_of(place):
            if not isinstance(item.value, str):
                yield item
                continue
            source = self._draft.reads.document(self._draft.beside(item.value))
            if source is None:
                self._draft.note("dropped", item, item.value, "the file was not found")
            else:
                yield from Place(source).items

    def of_defaults(self, place: Place) -> Test:
        """Return the test of a config that has none."""
        return self._with_defaults(Test(place, [{}], []))

    def _with_defaults(self, test: Test) -> Test:
        """Return a test with what it lacks; raises UsageError if there are too many."""
        self._tests += 1
        if self._tests > MOST_TESTS:
            raise UsageError(f"it has more than {MOST_TESTS:,} tests", hint="split it")
        self._require_few(self.defaults.rows, [{}] if test.file is not None else test.rows)
        return _over(self.defaults, test)

    def _require_few(self, *columns: Sequence[object]) -> None:
        """Raise UsageError if variables have too many combinations in all."""
        self._rows += prod(map(len, columns))
        if self._rows > MOST_ROWS:
            raise UsageError(
                f"its tests have more than {MOST_ROWS:,} rows of variables",
                hint="write the rows to a file and read them with cases_from",
            )

    def _written(self, place: Place | None) -> list[Test]:
        return list(chain.from_iterable(map(self._expanded, items_of(place))))

    def _expanded(self, place: Place) -> Iterator[Test]:
        value = place.value
        if isinstance(value, str):
            yield from self._in_files(place, value)
        elif (
            isinstance(value, dict)
            and isinstance(value.get("path"), str)
            and not value.keys() - {"path", "config"}
        ):
            yield from self._in_files(place, str(value["path"]))
        elif isinstance(value, dict):
            yield self._test(place, "tests")

    def _in_files(self, place: Place, reference: str) -> Iterator[Test]:
        files = self._draft.reads.matching(self._draft.beside(reference))
        if not files:
            name = reference.removeprefix("file://").partition(":")[0]
            why = f"'{reference}' was not found, or is not a file"
            if name.endswith(PROGRAMS):
                why = NO_GENERATORS
            self._draft.note("dropped", place, "tests", why)
        for file in files:
            if file in self._open:
                self._draft.note("dropped", place, "tests", "the file names itself")
                continue
            self._open.add(file)
            yield from self._in_file(place, file)
            self._open.remove(file)

    def _in_file(self, place: Place, file: Path) -> Iterator[Test]:
        match file.suffix:
            case ".csv":
                yield from self._table(place, file)
            case ".jsonl":
                for number, line in enumerate((self._draft.reads.text(file) or "").split("\n")):
                    if isinstance(data := json_or_none(line), dict):
                        yield self._test(Place(at_line(file, number, data)), "tests")
            case ".json" | ".yaml" | ".yml":
                if (source := self._draft.reads.document(file)) is not None:
                    yield from self._written(Place(source))
            case _:
                self._draft.note("dropped", place, "tests", NO_GENERATORS)

    def _table(self, place: Place, file: Path) -> Iterator[Test]:
        csv.field_size_limit(ANY_LENGTH)
        reader = csv.DictReader(io.StringIO(self._draft.reads.text(file) or ""))
        records = [
            {str(key).strip(): str(value or "") for key, value in row.items() if key}
            for row in reader
        ]
        special = {name for name in reader.fieldnames or () if name.strip().startswith(SPECIAL)}
        self._draft.note("kept", place, f"{file.suffix} of {len(records)} rows")
        texts = [row.get("__expected", "") for row in records]
        is_plain = special <= {"__expected"} and all(
            text and assertion_in(text) == {"type": "equals", "value": text} for text in texts
        )
        cells = list(chain.from_iterable(row.values() for row in records))
        is_data = len({tuple(row.items()) for row in records}) == len(records) and not any(
            has_tags(cell) or cell.startswith("file://") for cell in cells
        )
        if records and is_data and (not special or is_plain):
            asserts = []
            if special:
                asserts = [Assertion(place, {"type": "equals", "value": "{{ __expected }}"})]
            yield Test(place, cast("list[JsonObject]", records), asserts, file=file)
            return
        for number, row in enumerate(records, 1):
            yield self._record(Place(at_line(file, number, cast("JsonObject", row))), row)

    def _record(self, place: Place, row: dict[str, str]) -> Test:
        test = Test(place, [{}], [])
        variables: JsonObject = {}
        for key, value in row.items():
            if not key.startswith(SPECIAL):
                variables[key] = value
            elif key.startswith("__expected") and value.strip():
                test.asserts.append(
                    self._loaded(Assertion(place, assertion_in(value.strip())), test)
                )
            elif value:
                self._setting(test, key, value)
        test.rows = self._product(place, test, variables, expands=False)
        metric = row.get("__metric")
        for number, assertion in enumerate(test.asserts, 1):
            more: JsonObject = {"metric": metric} if metric else {}
            for key, value in row.items():
                match = _CONFIG.fullmatch(key)
                if match and int(match[1] or 1) == number and _NUMBER.fullmatch(value.strip()):
                    more["threshold"] = float(value)
            assertion.value.update(more)
        return test

    def _setting(self, test: Test, key: str, value: str) -> None:
        """Read a column that is neither a variable nor an assertion."""
        match key:
            case "__description":
                test.description = value
            case "__prefix" | "__suffix":
                test.options[key[2:]] = value
            case "__providerOutput":
                test.answer = value
            case "__threshold" if _NUMBER.fullmatch(value.strip()):
                test.threshold = float(value)
            case "__metric":
                pass
            case _ if key.startswith("__metadata:"):
                name = key.partition(":")[2]
                test.metadata[name.removesuffix("[]")] = value
                if name.endswith("[]"):
                    parts = re.split(r"(?<!\\),", value)
                    test.metadata[name[:-2]] = [part.strip().replace("\\,", ",") for part in parts]
            case _ if not _CONFIG.fullmatch(key):
                self._draft.note("dropped", test.place, f"column {key}", "unknown to agentv-ci")
            case _:
                pass

    def _test(self, place: Place, construct: str) -> Test:
        if isinstance(place.value, str):
            source = self._draft.reads.document(self._draft.beside(place.value))
            if source:
                return self._test(Place(source), construct)
            test = Test(place, [{}], [])
            self._problem(test, place, place.value, "the file was not found")
            return test
        fields = self._draft.fields(place, construct)
        test, notes = Test(place, [{}], []), len(self._draft.notes)
        test.options = self._options(fields, test)
        is_fixed = {**self.defaults.options, **test.options}.get("disableVarExpansion") is True
        test.rows = self._variables(fields, test, expands=not is_fixed)
        test.asserts = self._assertions(fields, test)
        test.description = fields.text("description") or ""
        threshold = fields.take("threshold")
        test.threshold = float(threshold) if isinstance(threshold, (int, float)) else None
        test.provider = fields.take("provider")
        test.answer = fields.take("providerOutput")
        test.prompts, test.providers = fields.take("prompts"), fields.take("providers")
        metadata = fields.take("metadata")
        test.metadata = metadata if isinstance(metadata, dict) else {}
        if "assertScoringFunction" in fields:
            fields.ignore("assertScoringFunction")
            self._problem(test, place, "assertScoringFunction", "a program makes the verdict")
        fields.end()
        test.is_changed = any(note.fate != "kept" for note in self._draft.notes[notes:])
        return test

    def _options(self, fields: Fields, test: Test) -> JsonObject:
        place = fields.at("options")
        if place is None:
            return {}
        inner = self._draft.fields(place, fields.name("options"))
        taken = {key: inner.take(key) for key in OPTIONS}
        taken["rubricPrompt"] = self._prompt(place, taken["rubricPrompt"], test)
        if "transformVars" in inner:
            inner.ignore("transformVars")
            self._problem(test, place, "options.transformVars", "code changes the variables")
        inner.drop({"runSerially", "disableConversationVar"}, "each question is asked on its own")
        inner.drop({"storeOutputAs"}, "no test knows the answer of another one")
        inner.end()
        if isinstance(judges := taken["provider"], dict) and "embedding" in judges:
            how = "no embeddings are compared"
            self._draft.note("dropped", place, "options.provider.embedding", how)
        return known(taken)

    def _problem(self, test: Test, place: Place, construct: str, why: str) -> None:
        """Note what skips a test."""
        self._draft.note("dropped", place, construct, f"{why}; its cases are skipped")
        test.problems.append(f"{construct}: {why}")

    def _variables(self, fields: Fields, test: Test, *, expands: bool) -> list[JsonObject]:
        place = fields.at("vars")
        if place is None:
            return [{}]
        value = place.value
        if isinstance(value, (str, list)):
            value = {}
            for item in place.items:
                path = str(item.value).removeprefix("file://")
                files = self._draft.reads.matching(normal(place.source.path.parent / path))
                documents = list(map(self._draft.reads.document, files))
                for document in documents:
                    if document is not None and isinstance(document.data, dict):
                        value |= document.data
                if not any(documents):
                    self._problem(test, item, f"vars: {item.value}", "the file was not found")
        if not isinstance(value, dict):
            return [{}]
        return self._product(place, test, value, expands=expands)

    def _product(
        self, place: Place, test: Test, variables: JsonObject, *, expands: bool
    ) -> list[JsonObject]:
        columns = [
            self._values(place, name, value, test, expands=expands)
            for name, value in variables.items()
        ]
        self._require_few(*columns)
        return [dict(zip(variables, row, strict=True)) for row in product(*columns)]

    def _values(
        self, place: Place, name: str, value: JsonValue, test: Test, *, expands: bool
    ) -> list[JsonValue]:
        """Return the values of a variable; a list of texts stands for each of them."""
        where = place / name
        if isinstance(value, list):
            if not expands or not value or not isinstance(value[0], str):
                return [value]
            return list(
                chain.from_iterable(
                    self._values(place, name, item, test, expands=False) for item in value
                )
            )
        if not isinstance(value, str) or not value.startswith("file://"):
            return [value]
        files = self._draft.reads.matching(self._draft.beside(value))
        texts = list(map(self._text_of, files))
        if any(file.suffix in PROGRAMS for file in files) or not files or None in texts:
            why = "the file was not found"
            if files:
                why = "a program makes it, or it is not a text"
            self._problem(test, where, f"vars: {value}", why)
            return [""]
        self._draft.note("kept", where, "vars: file://", "the text of the file is in the row")
        return [FileText(text) for text in texts if text is not None]

    def _text_of(self, file: Path) -> str | None:
        """Return a value that is in a file: YAML as JSON, any other text without margins."""
        if file.suffix in {".yaml", ".yml"} and (source := self._draft.reads.document(file)):
            return json.dumps(source.data, ensure_ascii=False, separators=(",", ":"))
        text = self._draft.reads.text(file)
        if text is None:
            return None
        return text.strip()

    def _assertions(self, fields: Fields, test: Test) -> list[Assertion]:
        place = fields.at("assert")
        if place is None:
            return []
        found = []
        for item in place.items:
            if isinstance(item.value, dict):
                own = self._referenced(item.value, fields.place.source)
                found.append(self._loaded(Assertion(item, own), test))
            elif isinstance(item.value, str):
                found.append(Assertion(item, assertion_in(item.value)))
        return found

    def _loaded(self, assertion: Assertion, test: Test) -> Assertion:
        """Return an assertion with the files that its values name; not those of programs."""
        place, value = assertion
        members = value.get("assert")
        if isinstance(members, list):
            loaded = [
                self._loaded(Assertion(place / "assert" / index, member), test).value
                for index, member in enumerate(members)
                if isinstance(member, dict)
            ]
            return Assertion(place, {**value, "assert": cast("JsonValue", loaded)})
        made = dict(value)
        if "value" in made:
            made["value"] = self._content(place, made["value"], test)
        if "rubricPrompt" in made:
            made["rubricPrompt"] = self._prompt(place, made["rubricPrompt"], test)
        return Assertion(place, made)

    def _prompt(self, place: Place, prompt: JsonValue, test: Test) -> JsonValue:
        """Return the prompt of a judge, whose variables are filled in although it is in a file."""
        found = self._content(place, prompt, test)
        if isinstance(found, list):
            return [str(item) if isinstance(item, str) else item for item in found]
        return str(found) if isinstance(found, str) else found

    def _content(self, place: Place, value: JsonValue, test: Test) -> JsonValue:
        """Return a value, or the content of its file."""
        if isinstance(value, list):
            return [self._content(place, item, test) for item in value]
        if not isinstance(value, str) or not value.startswith("file://"):
            return value
        path = self._draft.beside(value)
        if "".join(path.suffixes[-1:]).partition(":")[0] in PROGRAMS:
            if not self._draft.reads.matching(path.with_name(path.name.partition(":")[0])):
                self._problem(test, place, value, "the file was not found")
            return value
        if path.suffix in {".json", ".yaml", ".yml"}:
            source = self._draft.reads.document(path)
            if source is not None:
                return source.data
        text = self._draft.reads.text(path)
        if text is None:
            self._problem(test, place, value, "the file was not found")
            return value
        return FileText(text.strip() if path.suffix == ".txt" else text)

    def _referenced(self, value: JsonObject, source: Source) -> JsonObject:
        """Return an assertion; `$ref` names one under `assertionTemplates`."""
        reference = value.get("$ref")
        if isinstance(reference, str) and reference.startswith("#/"):
            found: JsonValue = source.data
            for step in reference[2:].split("/"):
                found = found.get(step) if isinstance(found, dict) else None
            if isinstance(found, dict):
                return {**found, **without(value, {"$ref"})}
        return value


def _over(base: Test, test: Test, *, adds_asserts: bool = False) -> Test:
    """Return a test with what it lacks from a base: the defaults, or a part of a scenario."""
    asserts = test.asserts
    if adds_asserts or test.options.get("disableDefaultAsserts") is not True:
        asserts = [*base.asserts, *test.asserts]
    rows: Sequence[JsonObject] = test.rows
    file = test.file
    if adds_asserts or file is None or base.rows != [{}]:
        rows = [{**row, **own} for row, own in product(base.rows, test.rows)]
    if adds_asserts:
        file = None
    return replace(
        test,
        rows=list(rows),
        file=file,
        asserts=asserts,
        description=test.description or base.description,
        threshold=base.threshold if test.threshold is None else test.threshold,
        options={**base.options, **test.options},
        metadata={**base.metadata, **test.metadata},
        provider=base.provider if test.provider is None else test.provider,
        answer=base.answer if test.answer is None else test.answer,
        prompts=base.prompts if test.prompts is None else test.prompts,
        providers=base.providers if test.providers is None else test.providers,
        problems=[*base.problems, *test.problems],
        is_changed=base.is_changed or test.is_changed,
    )


def at_line(file: Path, number: int, data: JsonValue) -> Source:
    """Return a line of a file as a source; lines count from 0."""
    mark = Mark((number, 0), (number, 0), None)
    return Source(file, file.parent, None, data, lambda: mark)
