"""Assertions of promptfoo → evaluators.

In promptfoo a test passes when all its assertions do, or, with a threshold, when their weighted
mean reaches it. Here the evaluators score 0 or 1 and the case needs 1; one that scores in between
is required to reach its own threshold.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import cast

from agentv_ci.contracts.base import JsonObject, JsonValue
from agentv_ci.contracts.source import Source, normal
from agentv_ci.other_tools.imports.agentv_evaluators import python_pattern
from agentv_ci.other_tools.imports.draft import Draft, Place, slug
from agentv_ci.other_tools.imports.yaml_text import Node

Evaluator = dict[str, Node]

DIRECT = {
    "contains": "contains",
    "contains-any": "contains_any",
    "contains-all": "contains_all",
    "starts-with": "starts_with",
}
BY_SCRIPT = frozenset(
    [
        "javascript",
        "equals",
        "contains",
        "contains-any",
        "contains-all",
        "starts-with",
        "icontains",
        "icontains-any",
        "icontains-all",
        "regex",
        "is-json",
        "contains-json",
        "is-xml",
        "contains-xml",
        "is-html",
        "contains-html",
        "is-refusal",
        "levenshtein",
        "word-count",
    ]
)
"""Checks that `promptfoo_check.mjs` does."""
NEARLY = frozenset({"is-xml", "contains-xml", "is-html", "contains-html", "is-refusal"})
BY_JUDGE: Mapping[str, str] = {
    "llm-rubric": "{}",
    "g-eval": "{}",
    "agent-rubric": "{}",
    "model-graded-closedqa": "{}",
    "closedqa": "{}",
    "model-graded-factuality": "Agrees with these facts: {}",
    "factuality": "Agrees with these facts: {}",
    "similar": "Means the same as: {}",
    "answer-relevance": "Answers the question",
    "context-faithfulness": "Claims nothing that this context does not say: {{{{ context }}}}",
    "context-recall": "Says what follows from the context, as this does: {}",
    "context-relevance": "Uses this context, which the question needs: {{{{ context }}}}",
    "conversation-relevance": "Fits the conversation",
    "pi": "{}",
}
MEASURES = {"rouge-n": ("rouge_l", 0.75), "rouge-l": ("rouge_l", 0.75), "bleu": ("bleu", 0.5)}
"""Assertion → the metric of `similarity`, and the threshold without one."""
SAME_MEANING = frozenset({"llm-rubric", "g-eval", "model-graded-closedqa", "closedqa"})
_FROM_TEXT = re.compile(r"(not-)?([a-z]+(?:-[a-z]+)*)(?:\(([0-9.]+)\))?:\s*(.*)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Assertion:
    """An assertion, and where it is written."""

    place: Place
    value: JsonObject


@dataclass(slots=True)
class CheckContext:
    """What the assertions of a test share."""

    transforms: list[JsonObject] = field(default_factory=list)
    variables: tuple[str, ...] = ()
    """Names that a script can read."""
    threshold: float | None = None
    judge: str | None = None
    lost: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Made:
    """An evaluator; with the score that it needs if it scores in between."""

    evaluator: Evaluator
    least: float | None = None


def evaluators(
    draft: Draft, listed: Sequence[Assertion], context: CheckContext
) -> tuple[list[Node], Evaluator]:
    """Return the evaluators of a test, and what its `execution` needs."""
    made = list(chain.from_iterable(_made(draft, assertion, context) for assertion in listed))
    if context.threshold is not None:
        return [check.evaluator for check in made], {"threshold": context.threshold}
    graded = [check.least for check in made if check.least is not None]
    if not graded:
        return [check.evaluator for check in made], {}
    least = min(graded)
    settled: list[Node] = []
    for check in made:
        required: Evaluator = {**check.evaluator, "required": True}
        if check.least not in {None, least}:
            required["min_score"] = check.least
        settled.append(required)
    return settled, {"threshold": least}


def assertion_in(text: str) -> JsonObject:
    """Return the assertion that a cell of a table or a short text stands for.

    Without a type it is `equals`.
    """
    text = text.strip()
    for prefix, kind in (
        ("javascript:", "javascript"),
        ("fn:", "javascript"),
        ("eval:", "javascript"),
    ):
        if text.startswith(prefix):
            return {"type": kind, "value": text.removeprefix(prefix).strip()}
    if text.startswith("file://"):
        return {"type": "python" if ".py" in text else "javascript", "value": text}
    if text.startswith("grade:"):
        return {"type": "llm-rubric", "value": text.removeprefix("grade:").strip()}
    if (match := _FROM_TEXT.fullmatch(text)) and (match[2] in BY_SCRIPT | BY_JUDGE.keys() | OTHERS):
        found: JsonObject = {"type": f"{match[1] or ''}{match[2]}", "value": match[4].strip()}
        if match[3]:
            found["threshold"] = float(match[3])
        if "-any" in match[2] or "-all" in match[2]:
            found["value"] = [part.strip() for part in match[4].split(",")]
        return found
    return {"type": "equals", "value": text}


OTHERS = frozenset({"python", "latency", "cost", "rouge-n", "bleu"})


def _made(draft: Draft, assertion: Assertion, context: CheckContext) -> list[Made]:
    value, place = dict(assertion.value), assertion.place
    full = str(value.pop("type", "equals"))
    negated, kind = full.startswith("not-"), full.removeprefix("not-")
    if kind == "assert-set":
        return _set(draft, assertion, context)
    weight, metric = value.pop("weight", None), value.pop("metric", None)
    text = value.get("value")
    if (
        isinstance(text, str)
        and text.startswith("file://")
        and kind not in {"javascript", "python"}
    ):
        value["value"] = _file_text(draft, place, text)
    made = _of_kind(draft, place, kind, value, context, negated=negated)
    if made is None:
        draft.note("dropped", place, full, "agentv-ci has no evaluator for it")
        context.lost.append(full)
        return []
    draft.note("kept", place, full)
    for key in value.keys() - {
        "value",
        "threshold",
        "provider",
        "rubricPrompt",
        "transform",
        "config",
    }:
        draft.note("dropped", place, f"{full}.{key}", "unknown to agentv-ci")
    if isinstance(metric, str):
        made.evaluator["name"] = metric
    if weight is not None:
        made.evaluator["weight"] = weight
    if negated:
        made.evaluator["negate"] = True
        if kind in {"javascript", "python"}:
            cast("dict[str, Node]", made.evaluator["config"])["negated"] = True
    return [made]


def _of_kind(
    draft: Draft,
    place: Place,
    kind: str,
    value: JsonObject,
    context: CheckContext,
    *,
    negated: bool,
) -> Made | None:
    threshold = value.get("threshold")
    least = float(threshold) if isinstance(threshold, (int, float)) else None
    if "context }" in BY_JUDGE.get(kind, "") and "context" not in context.variables:
        return None
    if kind in BY_JUDGE:
        return _judged(draft, place, kind, value, context)
    if kind in {"latency", "cost"} and least is not None:
        return Made({kind: int(least) if kind == "latency" else least})
    if "transform" in value or context.transforms:
        return Made(_script(draft, place, kind, value, context)) if kind in BY_SCRIPT else None
    expected = value.get("value")
    partly = kind.endswith("contains-all") and (negated or context.threshold is not None)
    if not partly and (direct := _direct(kind, expected)) is not None:
        return Made(direct)
    if kind in MEASURES:
        draft.note("approximated", place, kind, "a similar measure")
        measure, otherwise = MEASURES[kind]
        return Made(
            {"similarity": measure, "reference": str(expected)},
            otherwise if least is None else least,
        )
    if kind == "python":
        return Made(_python(draft, place, value, context))
    if kind == "trajectory:tool-used":
        tools = list(map(str, as_list(expected)))
        return Made(
            {
                "type": "tool_trajectory",
                "mode": "superset",
                "expected": [{"tool": tool} for tool in tools],
            }
        )
    if kind in BY_SCRIPT:
        return Made(_script(draft, place, kind, value, context))
    return None


def _direct(kind: str, expected: JsonValue) -> Evaluator | None:
    """Return the evaluator that does the same; None if there is none."""
    insensitive = kind.startswith("icontains")
    plain = DIRECT.get(kind[1:] if insensitive else kind)
    if plain is not None:
        several = plain in {"contains_any", "contains_all"}
        if isinstance(expected, list):
            texts = expected
        else:
            texts = [part.strip() for part in str(expected).split(",")]
        if expected in (None, "") or (not several and isinstance(expected, (list, dict))):
            return None
        made: Evaluator = {plain: list(map(str, texts)) if several else _text(expected)}
        return made | ({"case_sensitive": False} if insensitive else {})
    if kind == "equals" and isinstance(expected, (dict, list)):
        return {"type": "schema", "schema_inline": {"const": expected}}
    if kind == "equals" and expected is not None:
        return {"equals": _text(expected)}
    if kind == "regex" and isinstance(expected, str):
        return python_pattern(expected)
    if kind == "is-json" and expected in (None, ""):
        return {"type": "is_json"}
    if kind == "is-json" and isinstance(expected, dict):
        return {"type": "schema", "schema_inline": expected}
    return None


def as_list(value: JsonValue) -> list[JsonValue]:
    """Return a list as it is, and any other value as the only item of one."""
    if isinstance(value, list):
        return value
    return [value]


def _judged(
    draft: Draft, place: Place, kind: str, value: JsonObject, context: CheckContext
) -> Made:
    judge = value.get("provider")
    judge_id = judge.get("id") if isinstance(judge, dict) else judge
    name = slug(str(judge_id), "judge") if judge else context.judge
    settings: Evaluator = {"judge_target": draft.target(name, place)} if name else {}
    draft.has_judges |= name is None
    expected = value.get("value")
    criteria = [str(item) for item in as_list(expected) if item is not None]
    if kind not in SAME_MEANING:
        draft.note("approximated", place, kind, "one criterion, which a judge checks")
    if "transform" in value or context.transforms:
        draft.note(
            "approximated",
            place,
            f"{kind} after a transformation",
            "the judge reads the answer as it is",
        )
    if isinstance(prompt := value.get("rubricPrompt"), str):
        settings["prompt"] = _judge_prompt(prompt, criteria)
        return Made({"type": "llm_judge", **settings}, _least(value, 0.5))
    if (least := _least(value, None)) is not None and kind in {"llm-rubric", "pi"}:
        settings["prompt"] = (
            f"Score how well the answer does this: {' '.join(criteria)}\n\nAnswer:\n{{{{ "
            f"candidate_answer }}}}"
        )
        return Made({"type": "llm_judge", **settings}, least)
    texts: list[Node] = list(map(BY_JUDGE[kind].format, criteria or [""]))
    return Made({"rubric": texts, **settings})


def _least(value: JsonObject, otherwise: float | None) -> float | None:
    threshold = value.get("threshold")
    if isinstance(threshold, (int, float)):
        return float(threshold)
    return otherwise


def _judge_prompt(prompt: str, criteria: list[str]) -> str:
    written = re.sub(r"\{\{\s*output\s*\}\}", "{{ candidate_answer }}", prompt)
    return re.sub(r"\{\{\s*rubric\s*\}\}", lambda _: " ".join(criteria), written)


def _set(draft: Draft, assertion: Assertion, context: CheckContext) -> list[Made]:
    place, threshold = assertion.place, assertion.value.get("threshold")
    members = [
        Assertion(place / "assert" / index, member)
        for index, member in enumerate(cast("list[JsonValue]", assertion.value.get("assert") or []))
        if isinstance(member, dict)
    ]
    inner = CheckContext(
        context.transforms,
        context.variables,
        _least(assertion.value, None),
        context.judge,
        context.lost,
    )
    made = list(chain.from_iterable(_made(draft, member, inner) for member in members))
    draft.note("kept", place, "assert-set")
    if not isinstance(threshold, (int, float)):
        return made
    composite: Evaluator = {"type": "composite", "evaluators": [check.evaluator for check in made]}
    if (weight := assertion.value.get("weight")) is not None:
        composite["weight"] = weight
    if made:
        return [Made(composite, float(threshold))]
    return []


def _script(
    draft: Draft, place: Place, kind: str, value: JsonObject, context: CheckContext
) -> Evaluator:
    if kind in NEARLY or (kind == "contains-json" and value.get("value") is not None):
        draft.note("approximated", place, kind, "by a simpler check in scripts/promptfoo_check.mjs")
    check: dict[str, Node] = {"type": kind, **_code(draft, place, value)}
    settings: dict[str, Node] = {"check": check}
    transforms = [*context.transforms]
    own = value.get("transform")
    if isinstance(own, str):
        transforms.append(transform(draft, place, own))
    if transforms:
        settings["transforms"] = transforms
    return _with_variables("promptfoo_check.mjs", draft, settings, context)


def _python(draft: Draft, place: Place, value: JsonObject, context: CheckContext) -> Evaluator:
    return _with_variables(
        "promptfoo_python.py", draft, {"check": _code(draft, place, value)}, context
    )


def _with_variables(
    script: str, draft: Draft, settings: dict[str, Node], context: CheckContext
) -> Evaluator:
    written = json.dumps(settings["check"])
    needs = (
        "context" in written or "vars" in written or '"file"' in written or "transforms" in settings
    )
    if needs and context.variables:
        settings["vars"] = {name: f"{{{{ {name} }}}}" for name in context.variables}
    if context.threshold is not None:
        settings["graded"] = True
    return {"code": draft.script(script), "config": settings}


def _code(draft: Draft, place: Place, value: JsonObject) -> dict[str, Node]:
    made: dict[str, Node] = {key: value[key] for key in ("threshold", "config") if key in value}
    text = value.get("value")
    if isinstance(text, str) and text.startswith("file://"):
        return {**transform(draft, place, text), **made}
    return {"value": text, **made}


def transform(draft: Draft, place: Place, text: str) -> JsonObject:
    """Return a transformation as a script reads it.

    It is code, or a file and the name of its function.
    """
    if not text.startswith("file://"):
        return {"code": text}
    path, name = _split_function(text.removeprefix("file://"))
    found: JsonObject = {"file": draft.reference(resolved(place.source, path))}
    if name:
        return {**found, "function": name}
    return found


def _split_function(path: str) -> tuple[str, str]:
    head, colon, name = path.rpartition(":")
    if colon and name.isidentifier():
        return (head, name)
    return (path, "")


def _file_text(draft: Draft, place: Place, reference: str) -> JsonValue:
    path = resolved(place.source, reference.removeprefix("file://"))
    if (
        path.suffix in {".json", ".yaml", ".yml"}
        and (source := draft.reads.document(path)) is not None
    ):
        return source.data
    text = draft.reads.text(path)
    if text is None:
        draft.note("dropped", place, reference, "the file was not found")
    return text or ""


def resolved(source: Source, path: str) -> Path:
    """Return the path that a config names, from its own folder."""
    return normal(source.path.parent / path)


def _text(value: JsonValue) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return value
    return json.dumps(value)
