"""Every key of a file of another tool changes what its import writes, or is reported."""

from __future__ import annotations

import json
import re
from itertools import chain
from pathlib import Path
from typing import Any

import pytest

from agentv_ci.load.parse import parse_yaml
from agentv_ci.other_tools.imports.draft import Fields
from tests.other_tools.imports.silent_keys import silent_keys
from tests.support import write

HERE = Path(__file__).parent
DOCUMENTED = [
    "name",
    "description",
    "category",
    "version",
    "author",
    "license",
    "requires",
    "governance",
    "tags",
    "metadata",
    "input",
    "input_files",
    "execution",
    "target",
    "targets",
    "workers",
    "cache",
    "trials",
    "budget_usd",
    "fail_on_error",
    "threshold",
    "preprocessors",
    "assertions",
    "evaluators",
    "tests",
    "criteria",
    "expected_output",
    "vars",
    "conversation_id",
    "suite",
    "depends_on",
    "on_dependency_failure",
    "mode",
    "turns",
    "aggregation",
    "on_turn_failure",
    "window_size",
    "skip_defaults",
    "rubrics",
    "workspace",
    "template",
    "isolation",
    "repos",
    "hooks",
    "docker",
    "before_all",
    "before_each",
    "after_each",
    "prompts",
    "providers",
    "label",
    "runtime",
    "config",
    "transform",
    "delay",
    "env",
    "inputs",
    "environment",
    "workdir",
    "setup",
    "context",
    "dockerfile",
    "image",
    "resources",
    "mounts",
    "secrets",
    "timeout_ms",
    "default_test",
    "options",
    "provider",
    "assert",
    "assert_scoring_function",
    "run",
    "repeat",
    "timeout_seconds",
    "evaluate_options",
    "max_concurrency",
    "generate_suggestions",
    "max_eval_time_ms",
    "filter_range",
    "scenarios",
    "derived_metrics",
    "nunjucks_filters",
    "output_path",
    "extensions",
    "defaults",
    "grader",
    "include",
    "metric",
    "weight",
    "required",
    "min_score",
    "negate",
    "contains",
    "contains-any",
    "contains-all",
    "icontains",
    "icontains-any",
    "icontains-all",
    "equals",
    "starts-with",
    "ends-with",
    "regex",
    "flags",
    "is-json",
    "latency",
    "cost",
    "budget",
    "token-usage",
    "max_total",
    "max_input",
    "max_output",
    "execution-metrics",
    "max_tool_calls",
    "max_llm_calls",
    "max_tokens",
    "max_cost_usd",
    "max_duration_ms",
    "target_exploration_ratio",
    "exploration_tolerance",
    "code-grader",
    "script",
    "command",
    "cwd",
    "llm-grader",
    "max_steps",
    "temperature",
    "outcome",
    "operator",
    "score_ranges",
    "score_range",
    "tool-trajectory",
    "minimums",
    "expected",
    "args",
    "args_match",
    "skill-trigger",
    "should_trigger",
    "field-accuracy",
    "fields",
    "match",
    "tolerance",
    "relative",
    "formats",
    "composite",
    "aggregator",
    "weights",
    "llm-rubric",
    "agent-rubric",
    "assert-set",
    "similar",
    "javascript",
    "python",
    "webhook",
    "trajectory:tool-used",
    "trajectory:tool-args-match",
    "trajectory:tool-sequence",
    "trajectory:step-count",
    "trajectory:goal-success",
    "skill-used",
    "not-skill-used",
    "grader_target",
    "healthcheck",
    "files_format",
    "keep_temp_files",
    "use_target",
    "model",
    "modelParameters",
    "topP",
    "maxTokens",
    "responseFormat",
    "jsonSchema",
    "messages",
    "testData",
    "string",
    "startsWith",
    "endsWith",
    "llm",
    "modelId",
    "systemPrompt",
    "choices",
    "choice",
    "score",
    "uses",
]
"""Keys and kinds of assertions of AgentV 4.42 and 5.3, and of prompt files."""


def configs(name: str) -> list[Any]:
    """Return the configs of a file, each as a parameter."""
    found: Any = parse_yaml((HERE / name).read_text("utf-8")).data
    return [pytest.param(config, id=key) for key, config in found.items()]


@pytest.mark.slow
@pytest.mark.parametrize("config", configs("agentv_keys.yaml"))
def test_every_key_of_agentv_and_github_models_counts(config: dict[str, Any], repository: Path) -> None:
    file, beside = repository / config["file"], config.get("beside", {})
    texts = {name: json.dumps(data) for name, data in {**beside, config["file"]: config["data"]}.items()}
    write(repository, {**config.get("files", {}), **texts})
    found = list(chain.from_iterable(silent_keys(data, file, repository / name) for name, data in beside.items()))
    assert [*found, *silent_keys(config["data"], file)] == config.get("implied", [])


def test_the_files_have_every_documented_key() -> None:
    written = (HERE / "agentv_keys.yaml").read_text("utf-8")
    assert [key for key in DOCUMENTED if not re.search(rf"(?<![\w-]){key}(?![\w-])", written)] == []


def test_a_silent_key_is_found(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is read counts as kept, and says nothing: without its effect, a key would be lost."""
    monkeypatch.setattr(Fields, "end", lambda *_: None)
    data = {"execution": {"target": "a", "unheard": {"of": 1}}, "tests": [{"id": "b", "input": "c", "criteria": "d"}]}
    assert silent_keys(data, repository / "suite.eval.yaml") == ["execution.unheard", "execution.unheard.of"]
