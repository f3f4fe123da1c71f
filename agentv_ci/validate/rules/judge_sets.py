"""Answers with verdicts of people, for judges to be measured with."""

from __future__ import annotations

from collections.abc import Iterator

from agentv_ci.contracts.diagnostics import Diagnostic
from agentv_ci.contracts.documents import DocumentContext
from agentv_ci.contracts.judge_set import JudgeSetDocument
from agentv_ci.validate.findings import Finder
from agentv_ci.validate.rules import files, templates
from agentv_ci.validate.rules.names import duplicates
from agentv_ci.validate.rules.targets import authored_names, has_nameless, unknown_name


def check(document: JudgeSetDocument, find: Finder, context: DocumentContext) -> Iterator[Diagnostic]:
    """AV301, AV302, AV304, AV306, AV307 and AV320 for a judge set."""
    names = (((("items", index, "id")), each.id) for index, each in enumerate(document.items))
    yield from duplicates(find, "item id", names)
    for index, item in enumerate(document.items):
        if item.verdict is None and item.score is None and not find.lost_something(("items", index)):
            yield find.at("AV320", "give 'verdict' or 'score'; neither is given", ("items", index, "id"))
    if document.prompt_file is not None:
        yield from files.check_reference(("prompt",), document.prompt_file, find, context)
    if document.prompt is not None:
        yield from templates.check_judge_prompt(
            ("prompt",), "'prompt'", document.prompt_file, document.prompt, find, context
        )
    targets = context.targets
    if targets is not None and targets.document is not None and not has_nameless(targets.source):
        known = sorted(authored_names(targets.source))
        yield from unknown_name(find, ("judge_target",), "judge target", document.judge_target, known)
