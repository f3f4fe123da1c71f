"""Compile evaluators with their prompts, scripts and schemas."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, assert_never

from agentv_ci.base.installed_plugins import installed_version
from agentv_ci.compile.references import Files
from agentv_ci.compile.workspaces import WorkspaceCompiler
from agentv_ci.contracts.answer_evaluators import SchemaEvaluator
from agentv_ci.contracts.base import JsonObject, JsonValue
from agentv_ci.contracts.documents import ReadYaml
from agentv_ci.contracts.evaluator_settings import EvaluatorSettings
from agentv_ci.contracts.evaluators import (
    AuthoredEvaluator,
    CodeAggregator,
    CodeEvaluator,
    CompositeEvaluator,
    EmbeddedEvaluator,
    LlmJudgeAggregator,
    PluginEvaluator,
    WeightedAverage,
)
from agentv_ci.contracts.judge_evaluators import (
    LlmJudgeEvaluator,
    RubricEvaluator,
    RubricItem,
    prompt_path,
    rubric_items,
)
from agentv_ci.contracts.outcome_evaluators import CommandEvaluator, DiffEvaluator, JunitEvaluator
from agentv_ci.contracts.plan_evaluators import (
    PlanCodeAggregator,
    PlanCodeEvaluator,
    PlanCommandEvaluator,
    PlanCompositeEvaluator,
    PlanDiffEvaluator,
    PlanEvaluator,
    PlanEvaluatorSettings,
    PlanJunitEvaluator,
    PlanLlmJudgeAggregator,
    PlanLlmJudgeEvaluator,
    PlanRubric,
    PlanRubricEvaluator,
    PlanSchemaEvaluator,
    PlanWeightedAverage,
)
from agentv_ci.contracts.plan_parts import FilePart, TextPart
from agentv_ci.contracts.source import Source, normal, relative
from agentv_ci.jsonschema.files import read_schema

if TYPE_CHECKING:
    from agentv_ci.contracts.evaluators import Aggregator, Script
    from agentv_ci.contracts.outcome_evaluators import OutcomeEvaluator
    from agentv_ci.contracts.plan_evaluators import PlanAggregator

DEFAULT_JUDGE_NAME = "llm_judge"

COMMON = (*PlanEvaluatorSettings.model_fields,)

Judge = Callable[[str | None], str]
"""Return the key of the judging target: the evaluator's, else the case's."""


class EvaluatorCompiler:
    """Compiles the evaluators of one eval file."""

    def __init__(
        self, source: Source, files: Files, read_yaml: ReadYaml, workspaces: WorkspaceCompiler
    ) -> None:
        self._source = source
        self._files = files
        self._read_yaml = read_yaml
        self._workspaces = workspaces
        self._schemas: dict[Path | int, JsonObject | bool] = {}
        """Bundled schemas by file, or, if inline, by the evaluator that cases share."""

    def compile(  # noqa: C901  # a branch per kind
        self, evaluator: AuthoredEvaluator, judge: Judge
    ) -> PlanEvaluator:
        """Return an evaluator of the plan."""
        if isinstance(evaluator, EmbeddedEvaluator):
            return evaluator
        match evaluator:
            case CodeEvaluator():
                return self._code(evaluator)
            case LlmJudgeEvaluator():
                return self._judge(evaluator, judge)
            case RubricEvaluator():
                return PlanRubricEvaluator(
                    **_common(evaluator, "judge_retries"),
                    rubrics=rubrics(evaluator.rubrics),
                    target=judge(evaluator.judge_target),
                )
            case SchemaEvaluator():
                return self._schema(evaluator)
            case CompositeEvaluator():
                return self._composite(evaluator, judge)
            case DiffEvaluator():
                golden = None
                if evaluator.golden:
                    golden = self._files.add(self._source, evaluator.golden)
                return PlanDiffEvaluator(**_settings(evaluator, "golden"), golden=golden)
            case CommandEvaluator():
                return PlanCommandEvaluator(
                    **_settings(evaluator, "files"),
                    files=self._workspaces.contents(evaluator.files or {}),
                )
            case JunitEvaluator():
                return PlanJunitEvaluator(
                    **_settings(evaluator, "files"),
                    files=self._workspaces.contents(evaluator.files or {}),
                )
            case PluginEvaluator():
                return evaluator.model_copy(
                    update={"version": installed_version("evaluator", evaluator.type)}
                )
            case _:
                assert_never(evaluator)

    def _code(self, evaluator: CodeEvaluator) -> PlanCodeEvaluator:
        return PlanCodeEvaluator(
            **_common(evaluator, "timeout_seconds", "config"),
            **self._script(evaluator, evaluator.files),
            cwd=self._folder(evaluator.cwd) if evaluator.cwd else None,
        )

    def _script(self, script: Script, more: tuple[str, ...] = ()) -> dict[str, Any]:
        """Return the fields of a command: arguments or a shell command, and its files."""
        path = script.script_path
        names = more if not path else (path, *more)
        references = [self._files.add(self._source, name) for name in names]
        files = tuple({file.path: file for file in references}.values())
        if path is None and isinstance(script.script, str):
            return {"command": script.script, "files": files}
        argv = tuple(references[0].path if word == path else word for word in script.words)
        return {"argv": argv, "files": files}

    def _judge(self, evaluator: LlmJudgeEvaluator, judge: Judge) -> PlanLlmJudgeEvaluator:
        return PlanLlmJudgeEvaluator(
            **_common(evaluator, "judge_retries", "temperature", "max_output_tokens", "scale"),
            prompt=self._prompt(evaluator.prompt, evaluator.prompt_file),
            rubrics=rubrics(evaluator.rubrics) if evaluator.rubrics else None,
            target=judge(evaluator.judge_target),
        )

    def _prompt(self, text: str | None, path: str | None) -> TextPart | FilePart | None:
        if path is not None:
            file = self._files.add(self._source, path)
            return FilePart(type="file", path=file.path, sha256=file.sha256)
        if text is None:
            return None
        return TextPart(text=text)

    def _schema(self, evaluator: SchemaEvaluator) -> PlanSchemaEvaluator:
        key: Path | int = id(evaluator)
        path = self._source.path
        if evaluator.schema_file is not None:
            key = path = self._source.resolve(evaluator.schema_file)
        if key not in self._schemas:
            from agentv_ci.jsonschema.refs import bundle  # few plans contain a schema

            inline: JsonValue = evaluator.schema_inline
            schema = inline if evaluator.schema_file is None else self._read(path)
            self._schemas[key] = bundle(schema, path, self._read)
        return PlanSchemaEvaluator(**_common(evaluator, "format"), schema_=self._schemas[key])

    def _read(self, path: Path) -> JsonValue:
        return read_schema(path, self._files.read(path), self._read_yaml)

    def _composite(self, evaluator: CompositeEvaluator, judge: Judge) -> PlanCompositeEvaluator:
        return PlanCompositeEvaluator(
            **_common(evaluator),
            evaluators=tuple(self.compile(member, judge) for member in evaluator.evaluators),
            aggregator=self._aggregator(evaluator, evaluator.aggregator, judge),
        )

    def _aggregator(
        self, evaluator: CompositeEvaluator, aggregator: Aggregator | None, judge: Judge
    ) -> PlanAggregator:
        match aggregator:
            case None | WeightedAverage():
                given = (aggregator.weights if aggregator else None) or {}
                weights: dict[str, float] = {}
                for member in evaluator.evaluators:
                    weights[member.name] = float(given.get(member.name, member.weight))
                return PlanWeightedAverage(weights=weights)
            case CodeAggregator():
                return PlanCodeAggregator(**self._script(aggregator))
            case LlmJudgeAggregator():
                prompt = self._prompt(aggregator.prompt, prompt_path(aggregator.prompt))
                return PlanLlmJudgeAggregator(
                    prompt=prompt, target=judge(None), scale=aggregator.scale
                )
            case _:
                assert_never(aggregator)

    def _folder(self, cwd: str) -> str:
        if cwd.startswith("/"):
            return cwd
        return relative(normal(self._source.path.parent / cwd), self._source.root)


def _common(evaluator: EvaluatorSettings, *others: str) -> dict[str, Any]:
    """Return the settings that every evaluator has, and others."""
    return {name: getattr(evaluator, name) for name in (*COMMON, *others)}


def _settings(evaluator: OutcomeEvaluator, *others: str) -> dict[str, Any]:
    """Return the settings of an evaluator, without its type and the others."""
    return evaluator.model_dump(exclude={"type", *others}, by_alias=False)


def rubrics(authored: tuple[str | RubricItem, ...]) -> tuple[PlanRubric, ...]:
    """Return the criteria of the plan."""
    return tuple(PlanRubric(**item.model_dump()) for item in rubric_items(authored))
