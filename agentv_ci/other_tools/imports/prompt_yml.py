"""Prompt files of GitHub Models, `*.prompt.yml` → eval files."""

from __future__ import annotations

import re
from typing import cast

from agentv_ci.contracts.base import JsonObject
from agentv_ci.contracts.source import EVAL_SCHEMA, Source
from agentv_ci.other_tools.imports.draft import Draft, Place, comments_at_start, items_of, slug
from agentv_ci.other_tools.imports.yaml_text import Block, Node, yaml_text

BASE_URL = "https://models.github.ai/inference"
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
    "contains": "contains",
    "startsWith": "starts_with",
    "endsWith": "ends_with",
    "equals": "equals",
}
_VARIABLE = re.compile(r"\{\{\s*([\w.]+)\s*\}\}")
OURS = {"completion": "candidate_answer", "input": "question", "expected": "reference_answer"}


def convert(draft: Draft, source: Source) -> None:
    """Add the eval file and the target of one prompt file."""
    fields = draft.fields(Place(source), "")
    name = slug(fields.text("name") or source.path.name.partition(".")[0], "prompt")
    made: dict[str, Node] = {"$schema": EVAL_SCHEMA}
    if description := fields.text("description"):
        made["description"] = description
    made["target"] = name
    made["system_prompt"] = "none"
    made["execution"] = {"threshold": 1}
    draft.targets[name] = _target(draft, fields.text("model"), fields.at("modelParameters"))
    _response_format(draft, fields.take("responseFormat"), fields.at("jsonSchema"), name)
    case: dict[str, Node] = {"id": name, "expected_outcome": "The answer passes the evaluators"}
    messages = fields.at("messages")
    case["input"] = [cast("Node", message.value) for message in items_of(messages)]
    rows = fields.at("testData")
    case["expected"] = []
    if rows is not None:
        case["vars"] = [cast("Node", row.value) for row in rows.items]
        if all(
            isinstance(row.value, dict) and isinstance(row.value.get("expected"), str)
            for row in rows.items
        ):
            case["expected"] = "{{ expected }}"
    checks = fields.at("evaluators")
    if listed := [each for place in items_of(checks) if (each := _evaluator(draft, place))]:
        case["evaluators"] = listed
    else:
        draft.has_judges = True
    fields.end()
    made["evalcases"] = [Block(case)]
    draft.texts[f"{draft.evals.unique(name)}.eval.yaml"] = yaml_text(
        made, comments_at_start(source)
    )


def _target(draft: Draft, model: str | None, place: Place | None) -> dict[str, Node]:
    made: dict[str, Node] = {
        "provider": "openai",
        "model": model or "openai/gpt-4.1",
        "base_url": BASE_URL,
    }
    made["api_key"] = "${{ GITHUB_TOKEN }}"
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
            from agentv_ci.base.json_access import json_or_none

            body["json_schema"] = json_or_none(schema.value)
    settings = dict(draft.targets[name])
    extra = settings.get("extra_body")
    settings["extra_body"] = {**(extra if isinstance(extra, dict) else {}), "response_format": body}
    draft.targets[name] = settings


def _evaluator(draft: Draft, place: Place) -> Node:
    fields = draft.fields(place, "evaluators")
    made: dict[str, Node] = {}
    name = fields.text("name")
    text, judge, uses = fields.at("string"), fields.at("llm"), fields.text("uses")
    if text is not None:
        inner = draft.fields(text, "string")
        for theirs, ours in CHECKS.items():
            if (value := inner.text(theirs)) is not None:
                made[ours] = value
        inner.end()
    elif judge is not None:
        made = _judge(draft, judge)
    elif uses is not None:
        draft.note("approximated", place / "uses", uses, "one criterion, which a judge checks")
        subject = uses.rpartition("/")[2].replace("-", " ")
        made = {"rubric": [f"Measured by {subject}, the answer is good"]}
        draft.has_judges = True
    fields.end()
    if not made:
        return None
    if name:
        return {**made, "name": name}
    return made


def _judge(draft: Draft, place: Place) -> dict[str, Node]:
    fields = draft.fields(place, "llm")
    system, prompt = fields.text("systemPrompt"), fields.text("prompt") or ""
    written = _VARIABLE.sub(
        lambda match: f"{{{{ {OURS.get(match[1], match[1])} }}}}",
        "\n\n".join(filter(None, [system, prompt])),
    )
    choices = fields.at("choices")
    for item in items_of(choices):
        if isinstance(item.value, dict):
            written += f"\nThe score of {item.value.get('choice')!r} is {item.value.get('score')}."
    fields.approximate(
        "modelId", "the judge is the target itself; set judge_target for another one"
    )
    fields.end()
    draft.has_judges = True
    return {"llm_judge": written}
