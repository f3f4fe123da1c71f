"""Tests of promptfoo.

They are inline, in files and tables, and in scenarios, and have the defaults of the config.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain, product
from pathlib import Path
from typing import cast

from agentv_ci.base.json_access import json_or_none
from agentv_ci.contracts.base import JsonObject, JsonValue
from agentv_ci.contracts.documents import ANY_LENGTH
from agentv_ci.contracts.source import Mark, Source
from agentv_ci.other_tools.imports.draft import Draft, Fields, Place, items_of
from agentv_ci.other_tools.imports.promptfoo_asserts import Assertion, assertion_in, resolved
from agentv_ci.other_tools.imports.promptfoo_templates import FileText
from agentv_ci.other_tools.mappings import without

NO_GENERATORS = (
    "a program makes these tests; write its rows to a file and read them with cases_from"
)
SPECIAL = "__"
"""First characters of columns that are no variables."""


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

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of its variables."""
        return tuple(dict.fromkeys(chain.from_iterable(self.rows)))

    def fits(self, other: Test) -> bool:
        """Whether both can be rows of one template."""
        mine, theirs = ([assertion.value for assertion in test.asserts] for test in (self, other))
        same = (self.threshold, self.options, self.provider) == (
            other.threshold,
            other.options,
            other.provider,
        )
        is_bare = not (
            self.description
            or other.description
            or self.metadata
            or other.metadata
            or self.file
            or other.file
        )
        return same and is_bare and mine == theirs and self.columns == other.columns != ()


class Tests:
    """Reads the tests of a config."""

    def __init__(self, draft: Draft, defaults: Place | None) -> None:
        """`defaults` is the place of `defaultTest`."""
        self._draft = draft
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
        return list(chain.from_iterable(map(self._expanded, items_of(place))))

    def of_scenarios(self, place: Place | None) -> list[Test]:
        """Return the tests of scenarios: each for each of its sets of variables."""
        found = []
        for scenario in items_of(place):
            fields = self._draft.fields(scenario, "scenarios")
            configs, tests = fields.at("config"), fields.at("tests")
            rows = list(
                chain.from_iterable(self._test(item, "config").rows for item in items_of(configs))
            )
            for test in self.listed(tests):
                test.rows = [{**row, **own} for row, own in product(rows or [{}], test.rows)]
                test.file = None
                found.append(test)
            fields.ignore("description")
            fields.end()
        return found

    def plain(self, place: Place) -> Test:
        """Return the test of a config that has none."""
        return self._with_defaults(Test(place, [{}], []))

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
            yield self._with_defaults(self._test(place, "tests"))

    def _in_files(self, place: Place, reference: str) -> Iterator[Test]:
        files = self._draft.reads.matching(
            resolved(place.source, reference.removeprefix("file://"))
        )
        if not files:
            is_program = reference.partition(":")[2].startswith("//") and reference.rpartition(".")[
                2
            ][:2] in {
                "py",
                "js",
                "ts",
            }
            why = NO_GENERATORS if is_program else f"'{reference}' was not found, or is not a file"
            self._draft.note("dropped", place, "tests", why)
        for file in files:
            match file.suffix:
                case ".csv":
                    yield from self._table(place, file)
                case ".jsonl":
                    for number, line in enumerate((self._draft.reads.text(file) or "").split("\n")):
                        if isinstance(data := json_or_none(line), dict):
                            yield self._with_defaults(
                                self._test(Place(at_line(file, number, data)), "tests")
                            )
                case ".json" | ".yaml" | ".yml":
                    if (source := self._draft.reads.document(file)) is not None:
                        yield from self.listed(Place(source))
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
            text and assertion_in(text)["type"] == "equals" for text in texts
        )
        if records and (not special or is_plain):
            asserts = []
            if special:
                asserts = [Assertion(place, {"type": "equals", "value": "{{ __expected }}"})]
            yield self._with_defaults(
                Test(place, cast("list[JsonObject]", records), asserts, file=file)
            )
            return
        for number, row in enumerate(records, 1):
            yield self._with_defaults(
                self._record(Place(at_line(file, number, cast("JsonObject", row))), row)
            )

    def _record(self, place: Place, row: dict[str, str]) -> Test:
        variables: JsonObject = {
            key: value for key, value in row.items() if not key.startswith(SPECIAL)
        }
        test = Test(place, [variables], [])
        for key, value in row.items():
            if key.startswith("__expected") and value.strip():
                test.asserts.append(Assertion(place, assertion_in(value)))
            elif key == "__description":
                test.description = value
            elif key in {"__prefix", "__suffix"} and value:
                test.options[key[2:]] = value
            elif key == "__threshold" and value:
                test.threshold = float(value)
            elif key.startswith("__metadata:"):
                test.metadata[key.partition(":")[2].removesuffix("[]")] = value
            elif key.startswith(SPECIAL) and value:
                self._draft.note("dropped", place, f"column {key}", "unknown to agentv-ci")
        return test

    def _test(self, place: Place, construct: str) -> Test:
        if isinstance(place.value, str):
            source = self._draft.reads.document(
                resolved(place.source, place.value.removeprefix("file://"))
            )
            if source:
                return self._test(Place(source), construct)
            return Test(place, [{}], [])
        fields = self._draft.fields(place, construct)
        found = fields.take("options")
        options = {}
        if isinstance(found, dict):
            options = found
        is_fixed = {**self.defaults.options, **options}.get("disableVarExpansion") is True
        variables = self._variables(fields, expands=not is_fixed)
        test = Test(place, variables, self._assertions(fields))
        test.description = fields.text("description") or ""
        threshold = fields.take("threshold")
        test.threshold = float(threshold) if isinstance(threshold, (int, float)) else None
        test.options = dict(options)
        test.provider = fields.take("provider")
        metadata = fields.take("metadata")
        test.metadata = metadata if isinstance(metadata, dict) else {}
        fields.drop({"assertScoringFunction"}, "the score is the weighted mean")
        fields.drop({"providerOutput"}, "answers come from the target")
        fields.end()
        return test

    def _variables(self, fields: Fields, *, expands: bool) -> list[JsonObject]:
        place = fields.at("vars")
        if place is None:
            return [{}]
        value = place.value
        if isinstance(value, str):
            found = self._draft.reads.document(
                resolved(place.source, value.removeprefix("file://"))
            )
            value = found.data if found else {}
        if not isinstance(value, dict):
            return [{}]
        columns = [
            self._values(place / name, written, expands=expands) for name, written in value.items()
        ]
        return [dict(zip(value, row, strict=True)) for row in product(*columns)]

    def _values(self, place: Place, value: JsonValue, *, expands: bool) -> list[JsonValue]:
        """Return the values of a variable; a list of texts stands for each of them."""
        if isinstance(value, list):
            if not expands or not value or not isinstance(value[0], str):
                return [value]
            return list(
                chain.from_iterable(self._values(place, item, expands=False) for item in value)
            )
        if not isinstance(value, str) or not value.startswith("file://"):
            return [value]
        files = self._draft.reads.matching(resolved(place.source, value.removeprefix("file://")))
        texts = [text for file in files if (text := self._draft.reads.text(file)) is not None]
        if any(file.suffix in {".py", ".js", ".ts", ".mjs"} for file in files) or not texts:
            why = "the file was not found; it is empty"
            if files:
                why = "a program makes it; it is empty"
            self._draft.note("dropped", place, f"vars: {value}", why)
            return [""]
        self._draft.note("kept", place, "vars: file://", "the text of the file is in the row")
        return [FileText(text.strip()) for text in texts]

    def _assertions(self, fields: Fields) -> list[Assertion]:
        place = fields.at("assert")
        if place is None:
            return []
        found = []
        for item in place.items:
            if isinstance(item.value, dict):
                found.append(Assertion(item, self._referenced(item.value, fields.place.source)))
            elif isinstance(item.value, str):
                found.append(Assertion(item, assertion_in(item.value)))
        return found

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

    def _with_defaults(self, test: Test) -> Test:
        default = self.defaults
        if test.options.get("disableDefaultAsserts") is not True:
            test.asserts = [*default.asserts, *test.asserts]
        rows: Sequence[JsonObject] = default.rows
        if test.file is None or rows != [{}]:
            test.rows = [{**row, **own} for row, own in product(rows, test.rows)]
        if test.threshold is None:
            test.threshold = default.threshold
        test.options = {**default.options, **test.options}
        test.metadata = {**default.metadata, **test.metadata}
        if test.provider is None:
            test.provider = default.provider
        return test


def at_line(file: Path, number: int, data: JsonValue) -> Source:
    """Return a line of a file as a source; lines count from 0."""
    mark = Mark((number, 0), (number, 0), None)
    return Source(file, file.parent, None, data, lambda: mark)
