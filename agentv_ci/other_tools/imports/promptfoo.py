"""Configs of promptfoo → an eval file and its targets."""

from __future__ import annotations

from agentv_ci.contracts.source import EVAL_SCHEMA, Source
from agentv_ci.other_tools.imports.draft import Draft, Place, comments_at_start, slug
from agentv_ci.other_tools.imports.promptfoo_cases import Cases, repeat_of
from agentv_ci.other_tools.imports.promptfoo_prompts import Prompt, prompts_at
from agentv_ci.other_tools.imports.promptfoo_providers import Providers, question_of
from agentv_ci.other_tools.imports.promptfoo_rows import prepared
from agentv_ci.other_tools.imports.promptfoo_templates import Templates
from agentv_ci.other_tools.imports.promptfoo_tests import Tests
from agentv_ci.other_tools.imports.yaml_text import Node, yaml_text

NOT_NEEDED = "not needed, or an option of `agentv-ci eval`"


def convert(draft: Draft, source: Source) -> None:
    """Add the eval file of one config, and its targets."""
    draft.base = source.path.parent
    fields = draft.fields(Place(source), "")
    fields.ignore("$schema")
    made: dict[str, Node] = {"$schema": EVAL_SCHEMA}
    if description := fields.text("description"):
        made["description"] = description
    written_providers = fields.at("providers", "targets")
    providers = Providers(draft, written_providers)
    names = [provider.name for provider in providers.listed]
    if not names:
        names = [draft.target("default", Place(source))]
    if len(names) > 1:
        made["targets"] = names
    else:
        made["target"] = names[0]
    made["system_prompt"] = "none"
    prompts = prompts_at(draft, fields.at("prompts")) or [
        Prompt(f"{{{{ {question_of(written_providers)} }}}}")
    ]
    if providers.listed and all(provider.is_program for provider in providers.listed):
        prompts = [prompt.as_text() for prompt in prompts]
    env = fields.take("env")
    known = env if isinstance(env, dict) else {}
    tests = Tests(draft, fields.at("defaultTest"))
    written, scenarios = fields.at("tests"), fields.at("scenarios")
    found = [*tests.listed(written), *tests.of_scenarios(scenarios)]
    if not found and written is None and scenarios is None:
        found = [tests.of_defaults(Place(source))]
    execution: dict[str, Node] = {"threshold": 1}
    options = fields.at("evaluateOptions")
    if options is not None:
        inner = draft.fields(options, "evaluateOptions")
        execution |= repeat_of(inner.take("repeat"))
        inner.end("write --workers, --cache and other options of `agentv-ci eval`")
    fields.ignore("assertionTemplates")
    fields.drop(
        {
            "outputPath",
            "sharing",
            "commandLineOptions",
            "writeLatestResults",
            "tags",
            "metadata",
        },
        NOT_NEEDED,
    )
    fields.drop(
        {"redteam", "extensions", "nunjucksFilters", "derivedMetrics", "tracing"},
        "agentv-ci has no counterpart",
    )
    fields.end()
    made["execution"] = execution
    templates = Templates(draft.reads, {key: str(value) for key, value in known.items()})
    cases = Cases(draft, prompts, providers, templates)
    made |= cases.written(prepared(prompts, found), tests.shared)
    made["evalcases"] = made["evalcases"] or draft.without_cases(
        Place(source), "no test can be read without a program"
    )
    name = draft.evals.unique(slug(source.path.name.partition(".")[0], "promptfoo"))
    draft.texts[f"{name}.eval.yaml"] = yaml_text(made, comments_at_start(source))
