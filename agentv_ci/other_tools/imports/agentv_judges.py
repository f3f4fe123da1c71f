"""Judges of AgentV: prompts and criteria → evaluators."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from agentv_ci.contracts.base import JsonValue
from agentv_ci.other_tools.imports.draft import Draft, Fields, Names, Place
from agentv_ci.other_tools.imports.yaml_text import Node

Evaluator = dict[str, Node]

PROMPT_VARIABLES = {
    "criteria": "expected_outcome",
    "expected_outcome": "expected_outcome",
    "input": "question",
    "input_text": "question",
    "question": "question",
    "output": "candidate_answer",
    "output_text": "candidate_answer",
    "answer": "candidate_answer",
    "candidate_answer": "candidate_answer",
    "expected_output": "reference_answer",
    "expected_output_text": "reference_answer",
    "reference_answer": "reference_answer",
    "input_messages": "input_messages",
    "expected_messages": "expected_messages",
    "output_messages": "output_messages",
}
"""Variable of AgentV's prompts → of ours."""
_VARIABLE = re.compile(r"\{\{\s*([\w.]+)\s*\}\}")
DETACHED = "agentv-ci asks judges through their target"


def llm(draft: Draft, fields: Fields) -> Evaluator:
    """Return the evaluator that asks a model."""
    rubrics = fields.at("rubrics", "criteria")
    if rubrics is None and not _is_prompt(fields):
        rubrics = fields.at("value")
    if rubrics is not None:
        fields.drop({"prompt", "value"}, "criteria are checked with the prompt of agentv-ci")
        return _rubric(draft, fields, rubrics)
    fields.drop({"value"}, "the prompt is asked as it is")
    made: Evaluator = {"type": "llm_judge"}
    place = fields.place / "prompt"
    prompt = fields.take("prompt")
    if isinstance(prompt, str):
        written = judge_prompt(draft, place, prompt)
        if written is not None:
            made["prompt"] = written
    elif prompt is not None:
        draft.note(
            "approximated",
            place,
            "llm-grader.prompt",
            "a program makes the prompt; the built-in one is used",
        )
    if (temperature := fields.take("temperature")) is not None:
        made["temperature"] = temperature
    return made | _judge(draft, fields)


def _is_prompt(fields: Fields) -> bool:
    """Whether only a prompt says what is good; with `value`, AgentV 5 puts that into it."""
    value = (fields.place / "value").value
    return value in (None, "", [], {}) or ("prompt" in fields and "rubric" not in fields)


def _rubric(draft: Draft, fields: Fields, criteria: Place) -> Evaluator:
    fields.drop({"temperature"}, "criteria are checked at the temperature of the judge's target")
    return {"rubric": _criteria(draft, criteria), **_judge(draft, fields)}


def _judge(draft: Draft, fields: Fields) -> Evaluator:
    made: Evaluator = {}
    target = fields.at("target", "judge_target", "grader_target", "provider")
    if target is not None and isinstance(target.value, str):
        made["judge_target"] = draft.target(target.value, target)
    draft.has_judges |= not made
    fields.drop({"model", "config", "max_steps", "preprocessors"}, DETACHED)
    return made


def judge_prompt(draft: Draft, place: Place, prompt: str) -> str | None:
    """Return the prompt of a judge with our variables; None for one that is a program."""
    path = None
    if "\n" not in prompt and len(prompt) < 300:
        path = place.source.resolve(prompt.removeprefix("file://"))
    is_path = path is not None and (
        prompt.startswith(("./", "../", "file://", "/")) or path.suffix in {".md", ".txt"}
    )
    if path is not None and path.suffix in {".ts", ".js", ".mjs", ".py"}:
        draft.note(
            "approximated",
            place,
            "llm-grader.prompt",
            "a program makes the prompt; the built-in one is used",
        )
        return None
    if path is None or not is_path:
        return _with_our_variables(draft, place, prompt)
    text = draft.reads.text(path)
    if text is None:
        draft.note(
            "approximated",
            place,
            "llm-grader.prompt",
            f"'{prompt}' was not found; the built-in one is used",
        )
        return None
    name = f"prompts/{path.stem}{path.suffix or '.md'}"
    draft.texts[name] = _with_our_variables(draft, place, text)
    return name


def _with_our_variables(draft: Draft, place: Place, text: str) -> str:
    unknown: set[str] = set()

    def ours(match: re.Match[str]) -> str:
        if match[1] in PROMPT_VARIABLES:
            return f"{{{{ {PROMPT_VARIABLES[match[1]]} }}}}"
        unknown.add(match[1])
        return f"({match[1]} is not available)"

    written = _VARIABLE.sub(ours, text)
    for name in sorted(unknown):
        draft.note("dropped", place, f"{{{{{name}}}}}", "judges do not get this")
    if "{{" in written and "{{ candidate_answer }}" not in written:
        written = f"{written.rstrip()}\n\nAnswer:\n{{{{ candidate_answer }}}}\n"
    return written


def rubric(draft: Draft, fields: Fields) -> Evaluator | None:
    """Return the evaluator of a list of criteria; None without any."""
    place = fields.at("criteria", "rubrics", "value")
    if place is None or not place.items:
        return None
    return _rubric(draft, fields, place)


def _criteria(draft: Draft, place: Place) -> list[Node]:
    names = Names()
    nested = place / "criteria" if isinstance(place.value, dict) else place
    listed = nested if isinstance(nested.value, list) else place
    return [_criterion(draft, item, names) for item in listed.items]


def _criterion(draft: Draft, place: Place, names: Names) -> Node:
    if not isinstance(place.value, dict):
        return str(place.value)
    fields = draft.fields(place, "rubrics.criteria")
    text = fields.text("outcome", "description", "criterion", "criteria", "goal", "text") or ""
    ranges = fields.approximate(
        "score_ranges", "one criterion, met or not; its ranges are in its description"
    )
    lines = [text, *_range_lines(ranges)]
    if fields.approximate("operator", "part of the description") == "contradiction":
        lines[0] = f"Nothing contradicts this: {text}"
    made: dict[str, Node] = {}
    if identity := fields.text("id"):
        made["id"] = names.unique(identity)
    made["description"] = "\n".join(filter(None, lines)) or "The answer is good"
    for key in ("weight", "required"):
        if (value := fields.take(key)) is not None:
            made[key] = value
    gates = [key for key in ("min_score", "required_min_score") if key in fields]
    for key in gates:
        fields.approximate(key, "the criterion is required")
    if ranges is not None and not gates:
        made.setdefault("required", False)
    fields.end()
    if len(made) > 1:
        return made
    return made["description"]


def _range_lines(ranges: JsonValue) -> Iterator[str]:
    if isinstance(ranges, dict):
        *_, best = ranges.items() if ranges else (("", ""),)
        yield f"It is met when the answer is at least here: {best[1]}"
        for low, meaning in ranges.items():
            yield f"{low} of 10: {meaning}"
    for each in ranges if isinstance(ranges, list) else ():
        if isinstance(each, dict):
            yield (
                f"{json.dumps(each.get('score_range'))} of 10: "
                f"{each.get('outcome') or each.get('description')}"
            )
