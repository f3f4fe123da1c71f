"""Assertions of promptfoo → evaluators.

In promptfoo a test passes when all its assertions do, or, with a threshold, when their weighted
mean reaches it. Here the evaluators score 0 or 1 and the case needs 1; one that scores in between
is required to reach its own threshold.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import NamedTuple, cast

from agentv_ci.base.json_access import json_or_none
from agentv_ci.base.mappings import without
from agentv_ci.contracts.base import JsonObject, JsonValue
from agentv_ci.jsonschema.violations import invalid_schema
from agentv_ci.other_tools.imports.agentv_evaluators import python_pattern
from agentv_ci.other_tools.imports.draft import ANY_ANSWER, Draft, Names, Place
from agentv_ci.other_tools.imports.promptfoo_templates import (
    FileText,
    Templates,
    has_tags,
    is_simple,
    shown,
    variables_of,
)
from agentv_ci.other_tools.imports.yaml_text import Node

Evaluator = dict[str, Node]

DIRECT = {
    "contains": "contains",
    "contains-any": "contains_any",
    "contains-all": "contains_all",
    "starts-with": "starts_with",
}
TRAJECTORIES = (
    *("trajectory:tool-used", "trajectory:tool-sequence", "trajectory:tool-args-match"),
    *("trajectory:step-count", "skill-used"),
)
BY_SCRIPT = frozenset(
    (
        *TRAJECTORIES,
        *("javascript", "equals", "contains", "contains-any", "contains-all", "starts-with"),
        *("icontains", "icontains-any", "icontains-all", "regex", "is-xml", "contains-xml"),
        *("is-html", "contains-html", "is-refusal", "levenshtein", "word-count"),
    )
)
"""Checks that `promptfoo_check.mjs` does."""
IN_PYTHON = frozenset({"python", "is-json", "contains-json"})
"""Checks that `promptfoo_python.py` does."""
NEARLY = frozenset({"is-html", "is-refusal"})
BY_JUDGE: Mapping[str, str] = {
    "llm-rubric": "{}",
    "g-eval": "{}",
    "agent-rubric": "{}",
    "model-graded-closedqa": "{}",
    "closedqa": "{}",
    "model-graded-factuality": "Agrees with these facts: {}",
    "factuality": "Agrees with these facts: {}",
    "similar": "Means the same as: {}",
    "similar:cosine": "Means the same as: {}",
    "similar:dot": "Means the same as: {}",
    "similar:euclidean": "Means the same as: {}",
    "answer-relevance": "Answers the question",
    "context-faithfulness": "Claims nothing that this context does not say: {context}",
    "context-recall": "Says what follows from the context, as this does: {}",
    "context-relevance": "Uses this context, which the question needs: {context}",
    "conversation-relevance": "Fits the conversation",
    "pi": "{}",
}
"""Assertion → the criterion; `{}` is its value, `{context}` the variable of that name."""
MEASURES = {"rouge-n": ("rouge_l", 0.75), "rouge-l": ("rouge_l", 0.75), "bleu": ("bleu", 0.5)}
"""Assertion → the metric of `similarity`, and the threshold without one."""
SAME_MEANING = frozenset({"llm-rubric", "g-eval", "model-graded-closedqa", "closedqa"})
LIMITS = frozenset({"latency", "cost"})
NO_COUNTERPART = frozenset(
    (
        *("classifier", "contains-sql", "finish-reason", "gleu", "guardrails", "is-sql", "meteor"),
        *("is-valid-function-call", "is-valid-openai-function-call", "moderation", "perplexity"),
        *("is-valid-openai-tools-call", "perplexity-score", "ruby", "search-rubric", "webhook"),
        *("tool-call-f1", "trajectory:goal-success", "trace-error-spans", "trace-span-count"),
        "trace-span-duration",
    )
)
KINDS = BY_SCRIPT | IN_PYTHON | BY_JUDGE.keys() | MEASURES.keys() | LIMITS | NO_COUNTERPART
_WITH_THRESHOLD = LIMITS.union(
    ("answer-relevance", "classifier", "context-faithfulness", "context-recall", "rouge-n"),
    ("context-relevance", "levenshtein", "perplexity-score", "perplexity", "similar"),
)
"""Assertions that have a threshold in the cell of a table, even if the cell does not say so."""
_FROM_TEXT = re.compile(
    rf"(not-)?({'|'.join(sorted(map(re.escape, KINDS)))})(?:\((\d+(?:\.\d+)?)\))?(?::(.*))?",
    re.DOTALL,
)
_QUOTED_PART = re.compile(
    r'\s*(?:"((?:[^"\\]|\\.|"")*)"\s*(?=,|$)|([^,"][^,]*))?(?:,|$)', re.DOTALL
)
_OTHER_IN_PYTHON = re.compile(
    r"\\[^dDwWsSbBnrtfv0^$\\.*+?()[\]{}|/\-\"'`,:;!@#%&=<>~ ]"
    r"|\(\?(?!:|=|!|<=|<!|<[A-Za-z_])|\[\^?\]|[*+?}]\+|\[\[|&&|\|\||~~|--"
)
"""Parts of JavaScript's patterns that Python reads differently, or not at all."""
_OF_ASCII = re.compile(r"\\[dDwWbB]")
"""Classes that have only ASCII in JavaScript."""
_SCALE = re.compile(r"\b([01])\s*(?:-|–|to)\s*(\d{1,3})\b")
"""The scale on which the prompt of a judge asks for a score."""
_DRAFT_7 = ("items", "dependencies", "additionalItems")
"""Keywords that mean something else since draft 7."""


class Assertion(NamedTuple):
    """An assertion, and where it is written."""

    place: Place
    value: JsonObject


@dataclass(slots=True)
class CheckContext:
    """What the assertions of a test share."""

    transforms: list[JsonObject] = field(default_factory=list)
    variables: Mapping[str, JsonValue] = field(default_factory=dict)
    """What a script can read: values, or the templates that become them."""
    threshold: float | None = None
    judge: JsonValue = None
    judge_of: Callable[[JsonValue, Place], str] = lambda _judge, _place: ""
    """Return the target of a provider that judges."""
    rubric_prompt: JsonValue = None
    lost: list[str] = field(default_factory=list)
    templates: Templates | None = None
    """What fills in templates with the variables; None if they stay."""
    provider: JsonObject = field(default_factory=dict)
    """The only provider: its id, label and config."""
    empty: frozenset[str] = frozenset()
    """Variables that are empty in some row."""
    parsed: bool = False
    """Whether promptfoo reads the answer as JSON."""

    def filled(self, value: JsonValue, **more: str) -> JsonValue:
        """Return a text, or a list with texts, with variables filled in; raises Unfilled."""
        if isinstance(value, list):
            return [self.filled(item) if isinstance(item, str) else item for item in value]
        if self.templates is None or not isinstance(value, str) or value.startswith("file://"):
            return value
        return self.templates.value(value, {**self.variables, **more})


@dataclass(frozen=True, slots=True)
class Made:
    """An evaluator; with the score that it needs if it scores in between."""

    evaluator: Evaluator
    least: float | None = None


def templates_of(assertion: JsonObject) -> Iterator[str]:
    """Yield the texts of an assertion in which promptfoo fills in variables."""
    for member in _members(assertion):
        yield from templates_of(member)
    values = assertion.get("value")
    for value in (*_as_list(values), assertion.get("metric")):
        if isinstance(value, str) and not isinstance(value, FileText):
            yield value


def has_literal_tags(assertion: JsonObject) -> bool:
    """Whether promptfoo leaves something as it is that looks like a template."""
    members = _members(assertion)
    if any(map(has_literal_tags, members)):
        return True
    rest: JsonObject = without(assertion, {"assert", "metric", "rubricPrompt", "provider"})
    values = _as_list(rest.pop("value", None))
    others = [
        value for value in values if isinstance(value, FileText) or not isinstance(value, str)
    ]
    return has_tags(json.dumps([rest, others]))


def _members(assertion: JsonObject) -> list[JsonObject]:
    members = assertion.get("assert")
    return [member for member in _as_list(members) if isinstance(member, dict)]


def evaluators(
    draft: Draft, listed: Sequence[Assertion], context: CheckContext
) -> tuple[list[Node], Evaluator]:
    """Return the evaluators of a test, and what its `execution` needs; raises Unfilled."""
    made = _all(draft, listed, context)
    if context.threshold is not None:
        return _evaluators(made), {"threshold": context.threshold}
    if made and all(map(_is_figure, made)):
        return [*_evaluators(made), dict(ANY_ANSWER)], {}
    graded = [check.least for check in made if check.least is not None and not _is_figure(check)]
    if not graded:
        return _evaluators(made), {}
    least = min(graded)
    return [_required(check, least) for check in made], {"threshold": least}


def _required(check: Made, least: float) -> Evaluator:
    """Return an evaluator that has to reach its own score; `least` is that of the case."""
    if _is_figure(check):
        return check.evaluator
    own: Evaluator = {**check.evaluator, "required": True}
    rubric = own.get("rubric")
    is_list = isinstance(rubric, list) and len(rubric) > 1
    is_partial = is_list or "contains_all" in own or own.get("type") == "tool_trajectory"
    if check.least is None and (is_partial or least == 0):
        own["min_score"] = 1
    elif check.least not in {None, least}:
        own["min_score"] = check.least
    return own


def _is_figure(check: Made) -> bool:
    """Whether a check only counts: its weight is 0. A set of checks has to pass anyway."""
    return check.evaluator.get("weight") == 0 and check.evaluator.get("type") != "composite"


def _evaluators(made: Sequence[Made]) -> list[Node]:
    return [check.evaluator for check in made]


def _all(draft: Draft, listed: Sequence[Assertion], context: CheckContext) -> list[Made]:
    names = Names()
    return list(chain.from_iterable(_made(draft, item, context, names) for item in listed))


def assertion_in(text: str) -> JsonObject:
    """Return the assertion that a cell of a table or a short text stands for.

    Without a type it is `equals`.
    """
    text = text.strip()
    for prefix, kind in (
        ("javascript:", "javascript"),
        ("fn:", "javascript"),
        ("eval:", "javascript"),
        ("grade:", "llm-rubric"),
        ("llm-rubric:", "llm-rubric"),
        ("python:", "python"),
    ):
        if text.startswith(prefix):
            return {"type": kind, "value": text.removeprefix(prefix).strip()}
    if text.startswith("file://") and ".py" in text:
        return {"type": "python", "value": text}
    if text.startswith("file://") and re.search(r"\.[cm]?[jt]s(:\w+)?$", text):
        return {"type": "javascript", "value": text}
    match = _FROM_TEXT.fullmatch(text)
    if match is None:
        return {"type": "equals", "value": text}
    kind, value = match[2], match[4]
    found: JsonObject = {"type": f"{match[1] or ''}{kind}"}
    if value is not None:
        found["value"] = parts_of(value) if kind.endswith(("-any", "-all")) else value.strip()
    if kind in _WITH_THRESHOLD:
        found["threshold"] = float(match[3] or (0.8 if kind == "similar" else 0.75))
    return found


def parts_of(text: str) -> list[JsonValue]:
    """Return the parts of a text with commas, some of which may be quoted."""
    parts: list[JsonValue] = []
    position = 0
    while position < len(text) and (match := _QUOTED_PART.match(text, position)):
        position = match.end()
        if match[1] is not None:
            parts.append(re.sub(r'\\(["\\])|""', lambda found: found[1] or '"', match[1]))
        elif match[2] and match[2].strip():
            parts.append(match[2].strip())
        if match.end() == match.start():
            break
    return parts


def _made(draft: Draft, assertion: Assertion, context: CheckContext, names: Names) -> list[Made]:
    value, place = dict(assertion.value), assertion.place
    full = str(value.pop("type", "assertion without a type"))
    negated, kind = full.startswith("not-"), full.removeprefix("not-")
    if kind == "assert-set":
        return _set(draft, assertion, context, names)
    weight, metric = value.pop("weight", None), context.filled(value.pop("metric", None))
    value["value"] = context.filled(value.get("value"))
    made = _of_kind(draft, place, kind, value, context, negated=negated)
    if made is None:
        why = "agentv-ci has no evaluator for it"
        if kind in KINDS - NO_COUNTERPART:
            why = "it has no value that can be kept"
        draft.note("dropped", place, full, why)
        context.lost.append(full)
        return []
    draft.note("kept", place, full)
    for key in sorted(value.keys() - _effective(kind)):
        draft.note("dropped", place, f"{full}.{key}", "it has no effect on this assertion")
    if isinstance(metric, str) and metric:
        made.evaluator["name"] = names.unique(metric)
    if isinstance(weight, (int, float)) and weight >= 0:
        made.evaluator["weight"] = weight
    return [_negated(made) if negated else made]


def _negated(made: Made) -> Made:
    """Return an evaluator of what an answer must not be; scripts negate themselves."""
    if "code" in made.evaluator:
        return made
    least = None if made.least is None else round(1 - made.least, 6)
    return Made({**made.evaluator, "negate": True}, least)


def _effective(kind: str) -> set[str]:
    keys = {"value"}
    if kind in BY_JUDGE:
        return keys | {"threshold", "provider", "rubricPrompt", "transform"}
    if kind in LIMITS:
        return keys | {"threshold"}
    if kind in {"javascript", "python"}:
        return keys | {"threshold", "config", "transform"}
    if kind in MEASURES:
        return keys | {"threshold"}
    return keys | {"transform"} | ({"threshold"} if kind == "levenshtein" else set())


def _of_kind(
    draft: Draft,
    place: Place,
    kind: str,
    value: JsonObject,
    context: CheckContext,
    *,
    negated: bool,
) -> Made | None:
    least = _least(value, None)
    if kind in BY_JUDGE:
        return _judged(draft, place, kind, value, context)
    if kind in LIMITS:
        if least is None or least < 0 or (kind == "latency" and least == 0):
            return None
        return Made({kind: int(least) if least.is_integer() else least})
    has_transform = "transform" in value or bool(context.transforms)
    expected = value.get("value")
    if _names_program(expected) and kind not in {"javascript", "python"}:
        return None
    partly = kind.endswith("contains-all") and (negated or context.threshold is not None)
    if not has_transform and not partly and not _needs_rows(kind, expected, context):
        if (direct := _direct(draft, place, kind, expected, negated=negated)) is not None:
            return Made(direct)
        if kind in MEASURES and isinstance(expected, str):
            return _measured(draft, place, kind, expected, least)
    if kind in IN_PYTHON | BY_SCRIPT:
        return Made(_script(draft, place, kind, value, context, negated=negated))
    return None


def _needs_rows(kind: str, expected: JsonValue, context: CheckContext) -> bool:
    """Whether only the value that a row fills in says what is checked.

    It may be a pattern, a list with commas, or nothing, which promptfoo refuses.
    """
    if context.templates is not None:
        return False
    texts = [text for text in _as_list(expected) if isinstance(text, str) and has_tags(text)]
    if kind == "regex" or kind.endswith(("-any", "-all")):
        return bool(texts)
    return kind != "equals" and any(
        not is_simple(text) or variables_of(text) <= context.empty for text in texts
    )


def _names_program(value: JsonValue) -> bool:
    return isinstance(value, str) and value.startswith("file://")


def _measured(draft: Draft, place: Place, kind: str, expected: str, least: float | None) -> Made:
    draft.note("approximated", place, kind, "a similar measure")
    measure, otherwise = MEASURES[kind]
    return Made(
        {"similarity": measure, "reference": expected}, otherwise if least is None else least
    )


def _direct(
    draft: Draft, place: Place, kind: str, expected: JsonValue, *, negated: bool
) -> Evaluator | None:
    """Return the evaluator that does the same; None if there is none."""
    insensitive = kind.startswith("icontains")
    plain = DIRECT.get(kind[1:] if insensitive else kind)
    if plain is not None:
        found = _texts(plain, expected)
        if found is None:
            return None
        return {plain: found, **({"case_sensitive": False} if insensitive else {})}
    if kind == "equals" and isinstance(expected, (dict, list)):
        return {"type": "schema", "schema_inline": {"const": expected}}
    if kind == "equals" and expected is not None:
        return {"equals": shown(expected)}
    if kind == "regex" and isinstance(expected, str) and expected:
        return _pattern(expected)
    if kind == "is-json" and expected in (None, ""):
        return {"type": "is_json"}
    if kind == "is-json" and isinstance(expected, dict) and not negated:
        return _schema(draft, place, expected)
    if kind == "trajectory:tool-used":
        tools = _as_list(expected)
        if tools and all(isinstance(tool, str) and tool.isidentifier() for tool in tools):
            calls: list[Node] = [{"tool": str(tool)} for tool in tools]
            return {"type": "tool_trajectory", "mode": "superset", "expected": calls}
    return None


def _pattern(pattern: str) -> Evaluator | None:
    """Return the evaluator of a pattern that means the same in Python; None if none does."""
    if _OTHER_IN_PYTHON.search(pattern):
        return None
    made = python_pattern(pattern)
    if made is not None and _OF_ASCII.search(pattern):
        return {"regex": f"(?a){made['regex']}"}
    return made


def _schema(draft: Draft, place: Place, schema: JsonObject) -> Evaluator | None:
    written = json.dumps(schema)
    if any(f'"{keyword}"' in written for keyword in _DRAFT_7):
        schema = {"$schema": "http://json-schema.org/draft-07/schema#", **schema}
    if not schema or invalid_schema(schema) is not None or '"$ref"' in written:
        return None
    how = "JSON in a code fence passes, too"
    draft.note("approximated", place, "is-json with a schema", how)
    return {"type": "schema", "schema_inline": schema}


def _texts(plain: str, expected: JsonValue) -> Node:
    """Return the texts of a check; None if promptfoo would not take them."""
    if plain in {"contains", "starts_with"}:
        is_number = isinstance(expected, (int, float)) and not isinstance(expected, bool)
        if (isinstance(expected, str) and expected) or (is_number and plain == "contains"):
            return shown(expected)
        return None
    parts = parts_of(expected) if isinstance(expected, str) else expected
    if not isinstance(parts, list) or not parts or "" in parts:
        return None
    if any(isinstance(part, (list, dict)) or part is None for part in parts):
        return None
    return list(map(shown, parts))


def _as_list(value: JsonValue) -> list[JsonValue]:
    if isinstance(value, list):
        return value
    return [] if value is None else [value]


def _judged(
    draft: Draft, place: Place, kind: str, value: JsonObject, context: CheckContext
) -> Made | None:
    criterion, criteria = BY_JUDGE[kind], _as_list(value.get("value"))
    prompt = value.get("rubricPrompt") or context.rubric_prompt
    if "{context}" in criterion and "context" not in context.variables:
        return None
    if "{}" in criterion and not any(criteria) and not prompt:
        return None
    judge = value.get("provider") or context.judge
    name = context.judge_of(judge, place) if judge else None
    settings: Evaluator = {"judge_target": name} if name else {}
    draft.has_judges |= name is None
    if kind not in SAME_MEANING:
        draft.note("approximated", place, kind, "one criterion, which a judge checks")
    if "transform" in value or context.transforms:
        how = "the judge reads the answer as it is"
        draft.note("approximated", place, f"{kind}.transform", how)
    variable = str(context.variables.get("context", ""))
    texts = [
        criterion.replace("{context}", variable).replace("{}", _criterion(item))
        for item in criteria or [""]
    ]
    least = _least(value, None)
    if least is not None and not 0 <= least <= 1:
        return None
    if prompt:
        own = _prompt_text(draft, place, prompt)
        if own is None:
            draft.note("dropped", place, "rubricPrompt", "it is neither a text nor messages")
            return None
        settings["prompt"] = _judge_prompt(kind, own, " ".join(map(_criterion, criteria)), context)
        if (scale := _SCALE.search(own)) and scale[2] != "1":
            how = f"a score from {scale[1]} to {scale[2]} counts as a share of {scale[2]}"
            draft.note("approximated", place, "scale of rubricPrompt", how)
            settings["scale"] = [int(scale[1]), int(scale[2])]
        return Made({"type": "llm_judge", **settings}, 0.5 if least is None else least)
    if least is not None:
        settings["prompt"] = (
            f"Score how well the answer does this: {' '.join(texts)}\n\nAnswer:\n{{{{ "
            f"candidate_answer }}}}"
        )
        return Made({"type": "llm_judge", **settings}, least)
    return Made({"rubric": cast("list[Node]", texts), **settings})


def _criterion(value: JsonValue) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _prompt_text(draft: Draft, place: Place, prompt: JsonValue) -> str | None:
    """Return the prompt of a judge as one text; None if a program makes it, or it has steps."""
    if isinstance(prompt, str) and isinstance(found := json_or_none(prompt), list):
        prompt = found
    if isinstance(prompt, list):
        draft.note("approximated", place, "rubricPrompt[].role", "its messages are one text")
        texts = [item.get("content") if isinstance(item, dict) else item for item in prompt]
        return "\n\n".join(map(str, texts))
    if isinstance(prompt, str) and not prompt.startswith("file://"):
        return prompt
    return None


def _least(value: JsonObject, otherwise: float | None) -> float | None:
    threshold = value.get("threshold")
    if isinstance(threshold, (int, float)):
        return float(threshold)
    return otherwise


ANSWER, QUESTION = "{{ candidate_answer }}", "{{ question }}"
IN_JUDGES_PROMPTS = frozenset(
    {"output", "rubric", "completion", "criteria", "ideal", "answer", "input"}
)
"""Variables of judges' prompts in promptfoo."""


def _judge_prompt(kind: str, prompt: str, criteria: str, context: CheckContext) -> str:
    given = {"output": ANSWER, "rubric": criteria}
    if "closedqa" in kind or "factuality" in kind:
        given |= {"input": QUESTION, "completion": ANSWER}
        given |= {"criteria": criteria, "ideal": criteria}
    if kind == "answer-relevance":
        given["answer"] = ANSWER
    if context.templates is not None:
        return str(context.filled(str(prompt), **given))
    names = "|".join(given)
    return re.sub(rf"\{{\{{\s*({names})\s*\}}\}}", lambda match: given[match[1]], prompt)


def _set(draft: Draft, assertion: Assertion, context: CheckContext, names: Names) -> list[Made]:
    place, threshold = assertion.place, _least(assertion.value, None)
    members = [
        Assertion(place / "assert" / index, member)
        for index, member in enumerate(_members(assertion.value))
    ]
    outer = context.threshold
    inner = replace(context, threshold=outer if threshold is None else threshold)
    made = _all(draft, members, inner)
    draft.note("kept", place, "assert-set")
    metric, weight = assertion.value.get("metric"), assertion.value.get("weight")
    if "config" in assertion.value:
        draft.note("dropped", place, "assert-set.config", "a set has no settings")
    if not made or (threshold is None and outer is None):
        for key in {"metric", "weight"} & assertion.value.keys():
            how = "its members count by themselves, as all of them have to pass"
            draft.note("dropped", place, f"assert-set.{key}", how)
        return made
    composite: Evaluator = {
        "type": "composite",
        "evaluators": _evaluators(made),
    }
    if isinstance(metric, str):
        composite["name"] = names.unique(str(context.filled(metric)))
    if isinstance(weight, (int, float)) and weight >= 0:
        composite["weight"] = weight
    return [Made(composite, threshold)]


def _script(
    draft: Draft,
    place: Place,
    kind: str,
    value: JsonObject,
    context: CheckContext,
    *,
    negated: bool,
) -> Evaluator:
    if kind in NEARLY:
        draft.note("approximated", place, kind, "by a simpler check in scripts/promptfoo_check.mjs")
    check: dict[str, Node] = {"type": kind, **_code(draft, value)}
    transforms = [*context.transforms]
    own = value.get("transform")
    if isinstance(own, str):
        transforms.append(transform(draft, own))
    settings: dict[str, Node] = {"check": check, **_known(draft, place, check, transforms, context)}
    if transforms:
        settings["transforms"] = transforms
    flags = {
        "parsed": context.parsed,
        "graded": context.threshold is not None,
        "negated": negated,
    }
    settings |= {name: True for name, is_set in flags.items() if is_set}
    script = "promptfoo_python.py" if kind in IN_PYTHON else "promptfoo_check.mjs"
    if transforms or context.parsed:
        draft.script("promptfoo_check.mjs")
    return {"code": draft.script(script), "config": settings}


def _known(
    draft: Draft,
    place: Place,
    check: Mapping[str, Node],
    transforms: Sequence[JsonObject],
    context: CheckContext,
) -> dict[str, Node]:
    """Return what the code of a check may read: variables, and the provider that has answered."""
    made: dict[str, Node] = {}
    written = json.dumps([check, transforms])
    if context.variables and ("context" in written or "vars" in written or '"file"' in written):
        made["vars"] = dict(context.variables)
    if "context.provider" in written:
        if context.provider:
            made["provider"] = context.provider
        else:
            how = "a check does not know which of several providers has answered"
            draft.note("approximated", place, "context.provider", how)
    return made


def _code(draft: Draft, value: JsonObject) -> dict[str, Node]:
    made: dict[str, Node] = {key: value[key] for key in ("threshold", "config") if key in value}
    text = value.get("value")
    if isinstance(text, str) and text.startswith("file://"):
        return {**transform(draft, text), **made}
    return {"value": text, **made}


def transform(draft: Draft, text: str) -> JsonObject:
    """Return a transformation as a script reads it.

    It is code, or a file and the name of its function.
    """
    if not text.startswith("file://"):
        return {"code": text}
    path, name = _split_function(text.removeprefix("file://"))
    found: JsonObject = {"file": draft.reference(draft.beside(path))}
    if name:
        return {**found, "function": name}
    return found


def _split_function(path: str) -> tuple[str, str]:
    head, colon, name = path.rpartition(":")
    if colon and name.isidentifier():
        return (head, name)
    return (path, "")
