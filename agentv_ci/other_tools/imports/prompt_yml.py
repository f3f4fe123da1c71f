"""Prompt files of GitHub Models, `*.prompt.yml` → eval files."""

from __future__ import annotations

import json
import re
from typing import cast

from agentv_ci.base.json_access import json_or_none
from agentv_ci.contracts.base import JsonObject
from agentv_ci.contracts.source import EVAL_SCHEMA, Source
from agentv_ci.other_tools.imports.draft import (
    ANY_ANSWER,
    OUTCOME,
    Draft,
    Names,
    Place,
    comments_at_start,
    items_of,
    slug,
)
from agentv_ci.other_tools.imports.yaml_text import Block, Node, yaml_text

ENDED = "GitHub Models ended on 30 July 2026; set {} to another service, and its name of the model"
SERVICE: dict[str, Node] = {
    "base_url": "${{ MODELS_BASE_URL }}",
    "api_key": "${{ MODELS_API_KEY }}",
}
"""Where the models are, which the user says."""
PARAMETERS = {
    "temperature": "temperature",
    "maxTokens": "max_output_tokens",
    "maxCompletionTokens": "max_output_tokens",
}
IN_BODY = {
    "topP": "top_p",
    "presencePenalty": "presence_penalty",
    "frequencyPenalty": "frequency_penalty",
}
CHECKS = {
    "equals": "equals",
    "contains": "contains",
    "startsWith": "starts_with",
    "endsWith": "ends_with",
}
"""Checks of a text: the first one counts. All but `equals` ignore case."""
_VARIABLE = re.compile(r"\{\{\s*([\w.]+)\s*\}\}")
ANSWER = "completion"
"""The variable of the answer in prompts of judges."""


def convert(draft: Draft, source: Source) -> None:
    """Add the eval file and the target of one prompt file."""
    notes = len(draft.notes)
    fields = draft.fields(Place(source), "")
    name = slug(fields.text("name") or source.path.name.partition(".")[0], "prompt")
    made: dict[str, Node] = {"$schema": EVAL_SCHEMA}
    if description := fields.text("description"):
        made["description"] = description
    made["target"] = name
    made["system_prompt"] = "none"
    made["execution"] = {"threshold": 1}
    draft.targets[name] = _target(draft, fields.at("model"), fields.at("modelParameters"))
    _response_format(draft, fields.take("responseFormat"), fields.at("jsonSchema"), name)
    case: dict[str, Node] = {"id": name, "expected_outcome": OUTCOME}
    messages = fields.at("messages")
    case["input"] = [cast("Node", message.value) for message in items_of(messages)]
    rows = [row.value for row in items_of(fields.at("testData")) if isinstance(row.value, dict)]
    is_expected = rows and all(isinstance(row.get("expected"), str) for row in rows)
    case["expected"] = "{{ expected }}" if is_expected else []
    checks = items_of(fields.at("evaluators"))
    names = Names()
    listed = [_evaluator(draft, place, names) for place in checks]
    case["evaluators"] = list(filter(None, listed)) or [ANY_ANSWER]
    if not all(listed):
        case["skip"] = "Not imported: an evaluator checks nothing"
    if not rows:
        draft.note("dropped", fields.place, "testData", "it is empty; the case is skipped")
        case["skip"] = "Not imported: testData is empty"
    elif written := _with_all_names(draft, fields.place, rows, json.dumps(case)):
        case["vars"] = written
    fields.end()
    draft.count(notes, case)
    made["evalcases"] = [Block(case)]
    draft.texts[f"{draft.evals.unique(name)}.eval.yaml"] = yaml_text(
        made, comments_at_start(source)
    )


def _with_all_names(draft: Draft, place: Place, rows: list[JsonObject], text: str) -> list[Node]:
    """Return rows in which each name of a text has a value, if only its name."""
    names = sorted({match[1] for match in _VARIABLE.finditer(text)} - {"candidate_answer"})
    for name in names:
        if not all(name in row for row in rows):
            draft.note("approximated", place, f"{{{{{name}}}}}", f"'({name})' in rows without it")
    if not names and not any(rows):
        return []
    return [{**{name: f"({name})" for name in names if name not in row}, **row} for row in rows]


def _target(draft: Draft, model: Place | None, place: Place | None) -> dict[str, Node]:
    made: dict[str, Node] = {"provider": "openai", "model": "openai/gpt-4.1", **SERVICE}
    if model is not None:
        made["model"] = str(model.value)
        names = " and ".join(re.findall(r"\w{4,}", str(list(SERVICE.values()))))
        draft.note("approximated", model, "model", ENDED.format(names))
    if place is not None:
        fields = draft.fields(place, "modelParameters")
        made |= {
            ours: value
            for key, ours in PARAMETERS.items()
            if (value := fields.take(key)) is not None
        }
        if body := {
            ours: value for key, ours in IN_BODY.items() if (value := fields.take(key)) is not None
        }:
            made["extra_body"] = cast("Node", body)
        fields.end("not a setting of targets")
    return made


def _response_format(draft: Draft, form: object, schema: Place | None, name: str) -> None:
    if form not in {"json_object", "json_schema"}:
        return
    body: JsonObject = {"type": str(form)}
    if schema is not None:
        body["json_schema"] = schema.value
        if isinstance(schema.value, str):
            body["json_schema"] = json_or_none(schema.value)
    settings = dict(draft.targets[name])
    extra = settings.get("extra_body")
    settings["extra_body"] = {**(extra if isinstance(extra, dict) else {}), "response_format": body}
    draft.targets[name] = settings


def _evaluator(draft: Draft, place: Place, names: Names) -> Node:
    fields = draft.fields(place, "evaluators")
    made: dict[str, Node] = {}
    name = fields.text("name")
    text, judge, uses = fields.at("string"), fields.at("llm"), fields.text("uses")
    if text is not None:
        inner = draft.fields(text, "string")
        first = next((key for key in CHECKS if inner.place.value and key in inner), None)
        value = inner.text(first) if first else None
        if first and value:
            made = {CHECKS[first]: value}
            if first != "equals":
                made["case_sensitive"] = False
        inner.end(f"only '{first}' counts" if first else "unknown to agentv-ci")
    elif judge is not None:
        made = _judge(draft, judge)
    elif uses is not None:
        draft.note("approximated", place / "uses", uses, "one criterion, which a judge checks")
        subject = uses.rpartition("/")[2].replace("-", " ")
        made = {"rubric": [f"Measured by {subject}, the answer is good"]}
        draft.has_judges = True
    fields.end()
    if not made:
        draft.note("dropped", place, "evaluators", "it checks nothing; the case is skipped")
    elif name:
        made["name"] = names.unique(name)
    return made


def _judge(draft: Draft, place: Place) -> dict[str, Node]:
    fields = draft.fields(place, "llm")
    system, prompt = fields.text("systemPrompt"), fields.text("prompt") or ""
    written = _VARIABLE.sub(
        lambda match: "{{ candidate_answer }}" if match[1] == ANSWER else match[0],
        "\n\n".join(filter(None, [system, prompt])),
    )
    choices = fields.at("choices")
    for item in items_of(choices):
        if isinstance(item.value, dict):
            score = item.value.get("score")
            passes = isinstance(score, (int, float)) and score > 0
            written += f"\nThe score of {item.value.get('choice')!r} is {int(passes)}."
            if score not in (0, 1):
                draft.note("approximated", item, f"choices.score: {score}", "any above 0 passes")
    fields.approximate(
        "modelId", "the judge is the target itself; set judge_target for another one"
    )
    fields.end()
    draft.has_judges = True
    return {"llm_judge": written}
