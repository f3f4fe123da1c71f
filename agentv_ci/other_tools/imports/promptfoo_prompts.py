"""Prompts of promptfoo: texts, conversations in JSON, and files of them."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from agentv_ci.base.json_access import json_or_none, objects_at
from agentv_ci.contracts.base import JsonValue
from agentv_ci.contracts.evals import ROLES
from agentv_ci.other_tools.imports.draft import Draft, Place, items_of, slug
from agentv_ci.other_tools.imports.promptfoo_templates import has_tags, is_simple, partly_rendered
from agentv_ci.other_tools.imports.yaml_text import Node

ONLY_CHOOSES = "it only chooses prompts; cases are numbered"
FUNCTIONS = (".py", ".js", ".ts", ".mjs", ".cjs", ".sh", ".bash", ".rb", ".pl", ".exe")
"""Suffixes of programs."""
_PATH = re.compile(r"[\w./*-]+\.(txt|json|jsonl|ya?ml|md|j2|csv|py|js|cjs|mjs|ts|sh|rb)(:\w+)?")


@dataclass(frozen=True, slots=True)
class Prompt:
    """A prompt: a text or messages, with variables."""

    messages: Node
    names: tuple[str, ...] = ()
    """Its label and id, by which tests and providers choose it."""
    data: JsonValue = None
    """What it is in JSON; None for any other text."""
    raw: str = ""
    """It as it is written, if that is more than its messages."""
    is_program: bool = False
    is_for_programs: bool = False
    """Whether it is asked as JSON, if it is a conversation."""

    @property
    def text(self) -> str:
        """Its templates as one text."""
        if isinstance(self.messages, str):
            return self.messages
        return json.dumps(self.messages, ensure_ascii=False)

    @property
    def is_shared(self) -> bool:
        """Whether it has only variables, and so can be that of several cases."""
        is_json_text = isinstance(self.messages, str) and self.data is not None
        return is_simple(self.text) and not (is_json_text and has_tags(self.text))

    def as_text(self) -> Prompt:
        """Return the prompt as programs get it: JSON, if it is a conversation."""
        messages = self.raw or self.messages
        if self.data is not None:
            messages = json.dumps(self.data, ensure_ascii=False, indent=2)
        return replace(self, messages=messages, is_for_programs=True)

    def is_one_of(self, wanted: JsonValue) -> bool:
        """Whether a list of labels and ids, which may end with an asterisk, names it."""
        if not isinstance(wanted, list):
            return True
        return any(_names(str(reference), name) for reference in wanted for name in self.names)


def _names(reference: str, name: str) -> bool:
    if reference.endswith("*"):
        return name.startswith(reference[:-1])
    return name == reference or name.startswith(f"{reference}:")


def prompts_at(draft: Draft, place: Place | None) -> list[Prompt]:
    """Return the prompts of a config."""
    found: list[Prompt] = []
    if place is not None and isinstance(place.value, dict):
        for key, label in place.value.items():  # an older form: file or text → label
            draft.note("approximated", place / key, f"label {label}", ONLY_CHOOSES)
            found += _prompt(draft, place / key, key, (str(label),))
        return found
    for item in items_of(place):
        value = item.value
        if not isinstance(value, dict):
            found += _prompt(draft, item, str(value), ())
            continue
        for key in sorted(value.keys() - {"id", "label", "raw", "display"}):
            draft.note("dropped", item, f"prompts.{key}", "prompts have no settings of their own")
        text = str(value.get("raw") or value.get("id") or value.get("file") or "")
        names = [str(value[key]) for key in ("label", "id") if key in value]
        if "label" in value:
            draft.note("approximated", item, f"label {value['label']}", ONLY_CHOOSES)
        found += _prompt(draft, item, text, tuple(names))
    return found


def _prompt(draft: Draft, place: Place, text: str, names: tuple[str, ...]) -> list[Prompt]:
    is_file = text.startswith(("file://", "exec:")) or (
        "\n" not in text and _PATH.fullmatch(text) is not None
    )
    if not is_file:
        return [prompt_of(text, names or (text,))]
    path = text.removeprefix("exec:").removeprefix("file://")
    files = draft.reads.matching(draft.beside(path))
    is_program = text.startswith("exec:") or path.partition(":")[0].endswith(FUNCTIONS)
    if not files or is_program or any(file.suffix in FUNCTIONS for file in files):
        why = "the file was not found"
        if is_program or files:
            why = "a program makes the prompt"
        draft.note("dropped", place, f"prompt {text}", f"{why}; its cases are skipped")
        return [Prompt(f"({slug(path, 'prompt')})", names, is_program=True)]
    found = []
    for file in files:
        content = draft.reads.text(file) or ""
        if "_conversation" in content:
            how = "each test is asked on its own, without earlier ones"
            draft.note("approximated", place, "_conversation", how)
        for part, label in _parts(draft, file, content):
            known = (*names, label) if label else names or (text, path)
            found.append(prompt_of(part, known))
    draft.note(
        "kept",
        place,
        "prompts: file://",
        "variables work only in the eval file, so the text is there",
    )
    return found


def _parts(draft: Draft, file: Path, content: str) -> Iterator[tuple[str, str]]:
    """Yield the prompts in a file, each with its label, which may be empty."""
    source = None
    if file.suffix in {".yaml", ".yml"}:
        source = draft.reads.document(file)
    if source is not None:
        yield json.dumps(source.data, ensure_ascii=False), ""
    elif file.suffix == ".csv" and "," in content:
        for row in csv.DictReader(io.StringIO(content), skipinitialspace=True):
            if row.get("prompt"):
                yield str(row["prompt"]).strip(), str(row.get("label") or "")
    else:
        for part in _texts(file.suffix, content):
            if part:
                yield part, ""


def _texts(suffix: str, content: str) -> Sequence[str]:
    match suffix:
        case ".txt":
            parts = re.split(r"^\s*---\s*$", content, flags=re.MULTILINE)
            return [part.strip() for part in parts]
        case ".csv" | ".jsonl":
            lines = [line.strip() for line in content.splitlines()]
            has_header = suffix == ".csv" and lines[:1] == ["prompt"]
            return lines[1:] if has_header else lines
        case ".md":
            return [content]
        case _:
            return [content.strip()]


def prompt_of(text: str, names: tuple[str, ...] = ()) -> Prompt:
    """Return the prompt that a text is: messages, if it is a conversation in JSON."""
    data = json_or_none(text)
    if not isinstance(data, (dict, list)):
        data = None
    messages = messages_in(json_or_none(partly_rendered(text) or "") if data is None else data)
    return Prompt(messages or text, names, data, text)


def messages_in(data: JsonValue) -> list[Node]:
    """Return the messages of a conversation; none of anything else."""
    messages = objects_at(data) if isinstance(data, list) else []
    if not all(
        message.get("role") in {*ROLES, "developer"} and "content" in message
        for message in messages
    ):
        return []
    return [
        {
            "role": "system" if message["role"] == "developer" else message["role"],
            "content": _content(message["content"]),
        }
        for message in messages
    ]


def _content(content: JsonValue) -> Node:
    if isinstance(content, str):
        return content
    texts = [
        str(item.get("text", ""))
        for item in objects_at(content)
        if item.get("type", "text") == "text"
    ]
    return "\n".join(texts) or json.dumps(content, ensure_ascii=False)
