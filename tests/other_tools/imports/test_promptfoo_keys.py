"""Every key of a promptfoo config changes what an import writes, or MIGRATION.md says what became of it."""

from __future__ import annotations

import copy
import json
import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agentv_ci.app.documents.importing import ImportWish, imported
from agentv_ci.load.parse import parse_yaml
from tests.support import write

CONFIGS: Any = parse_yaml(Path(__file__).with_name("promptfoo_keys.yaml").read_text("utf-8")).data
FILES = {
    "p.txt": "From a file: {{a}}",
    "q.txt": "another {{a}}",
    "lines.jsonl": '"A {{a}}"\n"B {{a}}"\n',
    "page.md": "# {{a}}\n",
    "p.csv": 'prompt,label\n"C {{a}}",one\n"D {{a}}",two\n',
    "bot.js": "module.exports = (q) => q;\n",
    "bot.py": "def ask(q, o, c): return {'output': q}\n",
    "list.yaml": "- {id: 'openai:chat:gpt-4o', label: listed, config: {temperature: 0}}\n",
    "t.csv": "a,__expected,__threshold\nx,contains:x,0.5\ny,is-json,\n",
    "t.yaml": "- {vars: {a: x}, assert: [{type: contains, value: x}]}\n",
    "t.jsonl": '{"vars": {"a": "z"}, "assert": [{"type": "contains", "value": "x"}]}\n',
    "v.yaml": "a: from v\n",
    "check.js": "module.exports = {named: () => true};\n",
    "check.py": "def get_assert(output, context): return True\n",
    "t.js": "module.exports = {named: (output) => output};\n",
    "t.py": "def get_transform(output, context): return output\n",
    "scenario.yaml": "{config: [{vars: {l: z}}], tests: [{vars: {a: y}, assert: [{type: contains, value: y}]}]}\n",
    "d.yaml": "{assert: [{type: contains, value: d}], vars: {c: d}}\n",
}
Pointer = tuple[str | int, ...]


def written(folder: Path, config: dict[str, Any]) -> dict[str, str]:
    """Return what an import writes, without the table of what is kept."""
    shutil.rmtree(folder / "ours", ignore_errors=True)
    whole = {"prompts": ["{{a}}"], **config}
    if "targets" not in whole:
        whole.setdefault("providers", ["echo"])
    # On one line: no place moves when a key goes.
    write(folder, {"promptfooconfig.yaml": json.dumps(whole)})
    wish = ImportWish(["promptfooconfig.yaml"], "promptfoo", Path("ours"))
    imported(wish, cwd=folder, environ=os.environ)
    texts = {file.name: file.read_text("utf-8") for file in (folder / "ours").rglob("*") if file.is_file()}
    dropped, _, rest = texts.pop("MIGRATION.md").partition("\n## Kept")[0].partition("\n## Approximated")
    return {**texts, "dropped": table_in(dropped), "approximated": table_in(rest)}


def table_in(text: str) -> str:
    return "\n".join(line for line in text.splitlines() if line.startswith("| "))


def constructs(table: str) -> set[str]:
    """Return what a table names, without the names of what it is in."""
    return {found.rpartition(".")[2] for found in re.findall(r"^\| `([^`]*)` ", table, re.MULTILINE)}


def keys(value: Any, at: Pointer = ()) -> Iterator[Pointer]:
    """Yield the place of every key of a config, and of every item of its lists."""
    items: Any = ()
    if isinstance(value, dict):
        items = value.items()
    elif isinstance(value, list):
        items = enumerate(value)
    for key, member in items:
        yield (*at, key)
        yield from keys(member, (*at, key))


def without(config: dict[str, Any], at: Pointer) -> dict[str, Any]:
    changed = copy.deepcopy(config)
    holder: Any = changed
    for step in at[:-1]:
        holder = holder[step]
    del holder[at[-1]]
    return changed


def changed(config: dict[str, Any], at: Pointer) -> dict[str, Any] | None:
    """Return a config with another value at a place; None if there is none of the kind."""
    other = copy.deepcopy(config)
    holder: Any = other
    for step in at[:-1]:
        holder = holder[step]
    match holder[at[-1]]:
        case bool(value):
            holder[at[-1]] = not value
        case int(value) | float(value):
            holder[at[-1]] = value + 0.125 if isinstance(value, float) else value + 1
        case str(value):
            holder[at[-1]] = f"{value}z"
        case _:
            return None
    return other


@pytest.mark.slow
@pytest.mark.parametrize("config", [pytest.param(config, id=str(number)) for number, config in enumerate(CONFIGS, 1)])
def test_no_key_is_lost_without_a_word(config: dict[str, Any], repository: Path) -> None:
    write(repository, FILES)
    whole = written(repository, config)
    places = list(keys(config))
    lost = [at for at in places if written(repository, without(config, at)) == whole]
    others = {at: other for at in places if (other := changed(config, at)) is not None}
    lost += [at for at, other in others.items() if written(repository, other) == whole]
    assert [at for at in lost if not is_named(config, at, whole)] == []


def is_named(config: Any, at: Pointer, whole: dict[str, str]) -> bool:
    """Whether the report names a key, or one that it is below, or drops the assertion or provider around it."""
    dropped, changed = constructs(whole["dropped"]), constructs(whole["approximated"])
    holder = config
    for step in at:
        if step in dropped | changed:
            return True
        if isinstance(holder, dict) and not dropped.isdisjoint(
            {holder.get("type"), holder.get("id"), holder.get("label")}
        ):
            return True
        holder = holder[step]
    return f"label {holder}" in changed
