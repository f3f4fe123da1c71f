"""Evaluators with everything they need: prompts, scripts and schemas by content."""

from __future__ import annotations

from pathlib import Path

from agentv_ci.compile.files import Files, relative
from agentv_ci.compile.unsupported import not_run
from agentv_ci.contracts.base import JsonObject, JsonValue
from agentv_ci.contracts.documents import ReadYaml
from agentv_ci.contracts.evaluators import (
    AuthoredEvaluator,
    CodeEvaluator,
    CompositeEvaluator,
    ContainsAllEvaluator,
    ContainsAnyEvaluator,
    ContainsEvaluator,
    CostEvaluator,
    EndsWithEvaluator,
    EqualsEvaluator,
    FieldAccuracyEvaluator,
    IsJsonEvaluator,
    LatencyEvaluator,
    LlmJudgeEvaluator,
    RegexEvaluator,
    RubricEvaluator,
    SchemaEvaluator,
    SimilarityEvaluator,
    StartsWithEvaluator,
    TokenUsageEvaluator,
    ToolCallsEvaluator,
    ToolTrajectoryEvaluator,
)
from agentv_ci.contracts.plan import (
    FilePart,
    PlanCodeEvaluator,
    PlanEvaluator,
    PlanEvaluatorSettings,
    PlanLlmJudgeEvaluator,
    PlanSchemaEvaluator,
    TextPart,
)
from agentv_ci.contracts.source import Source, normal
from agentv_ci.schemas import bad_reference

DEFAULT_JUDGE_NAME = "llm_judge"

COMMON = {*PlanEvaluatorSettings.model_fields}


class EvaluatorCompiler:
    """Compiles the evaluators of one eval file."""

    def __init__(self, source: Source, files: Files, read_yaml: ReadYaml) -> None:
        self._source = source
        self._files = files
        self._read_yaml = read_yaml

    def compile(self, evaluator: AuthoredEvaluator, judge: str | None) -> PlanEvaluator:
        """Return an evaluator of the plan; `judge` is the key of its judging target, if it has one."""
        match evaluator:
            case CodeEvaluator():
                return self._code(evaluator)
            case LlmJudgeEvaluator():
                return self._judge(evaluator, judge)
            case SchemaEvaluator():
                return self._schema(evaluator)
            case ContainsEvaluator() | RegexEvaluator() | ToolTrajectoryEvaluator():
                return evaluator
            case (
                RubricEvaluator()
                | CompositeEvaluator()
                | ContainsAnyEvaluator()
                | ContainsAllEvaluator()
                | EqualsEvaluator()
                | StartsWithEvaluator()
                | EndsWithEvaluator()
                | IsJsonEvaluator()
                | FieldAccuracyEvaluator()
                | SimilarityEvaluator()
                | LatencyEvaluator()
                | CostEvaluator()
                | TokenUsageEvaluator()
                | ToolCallsEvaluator()
            ):
                raise not_run(self._source, f"evaluator '{evaluator.name}' of type '{evaluator.type}'")

    def _code(self, evaluator: CodeEvaluator) -> PlanCodeEvaluator:
        script = evaluator.script_path
        references = [self._files.add(self._source, name) for name in (*([script] if script else ()), *evaluator.files)]
        argv: tuple[str, ...] | None = None
        if script is not None or not isinstance(evaluator.script, str):
            argv = tuple(references[0].path if word == script else word for word in evaluator.words)
        return PlanCodeEvaluator(
            **evaluator.model_dump(include=COMMON),
            argv=argv,
            command=evaluator.script if argv is None and isinstance(evaluator.script, str) else None,
            files=tuple({each.path: each for each in references}.values()),
            cwd=self._folder(evaluator.cwd) if evaluator.cwd else None,
            timeout_seconds=evaluator.timeout_seconds,
            config=evaluator.config,
        )

    def _judge(self, evaluator: LlmJudgeEvaluator, judge: str | None) -> PlanLlmJudgeEvaluator:
        assert judge is not None, "a document with an unjudged evaluator is refused"
        if evaluator.rubrics:
            raise not_run(self._source, f"'rubrics' of evaluator '{evaluator.name}'")
        prompt: TextPart | FilePart | None = None
        if evaluator.prompt_file is not None:
            file = self._files.add(self._source, evaluator.prompt_file)
            prompt = FilePart(type="file", path=file.path, sha256=file.sha256)
        elif evaluator.prompt is not None:
            prompt = TextPart(text=evaluator.prompt)
        return PlanLlmJudgeEvaluator(
            **evaluator.model_dump(include=COMMON),
            prompt=prompt,
            target=judge,
            judge_retries=evaluator.judge_retries,
            temperature=evaluator.temperature,
            max_output_tokens=evaluator.max_output_tokens,
        )

    def _schema(self, evaluator: SchemaEvaluator) -> PlanSchemaEvaluator:
        schema: JsonObject | bool
        if evaluator.schema_file is not None:
            loaded = self._read_yaml(self._files.read(self._source, evaluator.schema_file))
            assert isinstance(loaded, (dict, bool)), "a file that is no schema is refused"
            schema = loaded
        else:
            assert evaluator.schema_inline is not None, "an evaluator without a schema is refused"
            schema = evaluator.schema_inline
        if bad_reference(schema, self._source.path, _read_nothing):
            raise not_run(self._source, f"'$ref' to another file in the schema of evaluator '{evaluator.name}'")
        return PlanSchemaEvaluator(
            **evaluator.model_dump(include=COMMON),
            schema_=schema,
            format=evaluator.format,
        )

    def _folder(self, cwd: str) -> str:
        return cwd if cwd.startswith("/") else relative(normal(self._source.path.parent / cwd), self._source.root)


def _read_nothing(path: Path) -> JsonValue:
    raise FileNotFoundError(path)


def default_judge(judge: str) -> PlanEvaluator:
    """Return the evaluator of cases that name none."""
    return PlanLlmJudgeEvaluator(name=DEFAULT_JUDGE_NAME, target=judge)
