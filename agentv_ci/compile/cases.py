"""Compile cases: fill in all defaults of settings, messages and evaluators."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import TypeVar

from pydantic import ValidationError

from agentv_ci.base.case_rows import FilledCase, filled_cases, problem_diagnostic
from agentv_ci.compile.digest import UNSEALED
from agentv_ci.compile.evaluators import DEFAULT_JUDGE_NAME, EvaluatorCompiler, rubrics
from agentv_ci.compile.references import Files, Targets, find_target, judge_of
from agentv_ci.compile.selection import facts_of
from agentv_ci.compile.workspaces import WorkspaceCompiler
from agentv_ci.contracts.attachments import is_url, media_type_of, url_media_type
from agentv_ci.contracts.config import DEFAULT_GUIDELINE_PATTERNS
from agentv_ci.contracts.documents import CheckedDocument, DataProblem, DocumentContext
from agentv_ci.contracts.evals import (
    Content,
    ContentBlock,
    EvalCase,
    EvalDocument,
    ExpectedMessage,
    InputMessage,
    Repeat,
)
from agentv_ci.contracts.gate import Gate, ValidatorUse, increases_of
from agentv_ci.contracts.judge_evaluators import RUBRICS_NAME, prompt_path
from agentv_ci.contracts.plan import PlanCase, PlanGate, PlanSource, PlanSuite, PlanValidator
from agentv_ci.contracts.plan_evaluators import (
    PlanEvaluator,
    PlanLlmJudgeEvaluator,
    PlanRubricEvaluator,
)
from agentv_ci.contracts.plan_parts import (
    AttachmentPart,
    FilePart,
    FileReference,
    Part,
    PlanMessage,
    PlanToolCall,
    TextPart,
    json_text,
    part_outline,
)
from agentv_ci.contracts.source import Source, relative
from agentv_ci.contracts.targets import Target, workspace_settings
from agentv_ci.errors import InvalidInput

T = TypeVar("T")

DEFAULT_TARGET = "default"
DEFAULT_THRESHOLD = 0.8
DEFAULT_TIMEOUT_S = 600.0
DEFAULT_MAX_RETRIES = 2


NO_JUDGE = ""
"""The judge of a case that is not selected, if it needs one.

`validate` reports a missing judge of any other.
"""


def compile_suite(
    checked: CheckedDocument, context: DocumentContext, files: Files, targets: Targets
) -> tuple[PlanSuite, Iterator[PlanCase | None]]:
    """Return an eval file's suite, and its selected cases one by one.

    None for one that `only` leaves out.

    The cases have no digests yet.
    """
    document, source = checked.document, checked.source
    assert isinstance(document, EvalDocument)
    suite = _suite(document, source, context)
    compiler = _CaseCompiler(document, source, suite.path, context, files, targets)
    return suite, _selected(document, compiler, context)


def _selected(
    document: EvalDocument, compiler: _CaseCompiler, context: DocumentContext
) -> Iterator[PlanCase | None]:
    """Yield the selected cases, and None for each that is left out."""
    left_out = set(map(id, document.left_out))
    for index, authored in enumerate(document.evalcases):
        for written, place in compiler.written(index, authored):
            # Compile all cases: keys of targets must not depend on the selection.
            for case in compiler.compile(written, place):
                if context.is_selected(facts_of(case)):
                    yield None if id(authored) in left_out else case


def _suite(document: EvalDocument, source: Source, context: DocumentContext) -> PlanSuite:
    execution = document.execution
    return PlanSuite(
        path=relative(source.path, source.root),
        dataset=document.dataset or source.path.name.split(".")[0] or source.path.name,
        description=document.description,
        validators=tuple(map(_validator, (execution and execution.validators) or ())),
        prices=context.config.prices or {},
        gate=_gate(execution.gate if execution else None),
    )


def _gate(gate: Gate | None) -> PlanGate:
    given = gate.model_dump(exclude_none=True) if gate is not None else {}
    settings = {name: value for name, value in given.items() if name in PlanGate.model_fields}
    return PlanGate(**settings, max_increases=increases_of(given) or None)


def _validator(use: str | ValidatorUse) -> PlanValidator:
    if isinstance(use, str):
        return PlanValidator(key=use)
    return PlanValidator(key=use.key, context=use.__pydantic_extra__ or {})


class _CaseCompiler:
    def __init__(
        self,
        document: EvalDocument,
        source: Source,
        suite: str,
        context: DocumentContext,
        files: Files,
        targets: Targets,
    ) -> None:
        self._document = document
        self._source = source
        self._context = context
        self._files = files
        self._targets = targets
        self._guideline_patterns = tuple(
            _given(context.config.guideline_patterns, DEFAULT_GUIDELINE_PATTERNS)
        )
        self._marks = source.items("evalcases")
        self._path = suite
        written = document.system_prompt
        path = prompt_path(written)
        self._system_prompt = files.read(source.resolve(path)) if path is not None else written
        assert context.targets is not None
        self._workspaces = WorkspaceCompiler(source, files, context.targets.source)
        self._evaluators = EvaluatorCompiler(source, files, context.read_yaml, self._workspaces)

    def written(self, index: int, case: EvalCase) -> Iterator[tuple[EvalCase, PlanSource]]:
        """Yield a case, or the cases of its rows.

        Raises InvalidInput if the rows changed since they were checked.
        """
        if not case.is_template:
            start, end, _ = self._marks[index]
            place = PlanSource(
                path=self._path, line=start[0] + 1, column=start[1] + 1, end_line=end[0] + 1
            )
            yield case, place
            return
        pointer, read_rows = ("evalcases", index), self._context.read_rows
        for filled in filled_cases(case, pointer, self._source, read_rows):
            if isinstance(filled, DataProblem):
                raise InvalidInput([problem_diagnostic(filled)])
            yield self._of_row(filled)

    def _of_row(self, filled: FilledCase) -> tuple[EvalCase, PlanSource]:
        row = filled.row
        place = PlanSource(
            path=relative(row.path, self._source.root),
            line=row.line,
            column=row.column,
            end_line=row.end_line,
        )
        try:
            return EvalCase.model_validate(filled.data), place
        except ValidationError as error:
            message = "the row has changed since it was checked"
            changed = DataProblem("AV331", message, row.path, row.line, row.column)
            raise InvalidInput([problem_diagnostic(changed)]) from error

    def compile(self, case: EvalCase, place: PlanSource) -> Iterator[PlanCase]:
        """Yield a case for each of its targets."""
        execution = self._document.execution_of(case)
        own = [name for _, name in self._document.targets_of(0, case)]
        inputs = tuple(map(self._input_message, case.inputs))
        expected = tuple(map(self._expected_message, case.expectations))
        repeat = execution.repeat
        if not isinstance(repeat, Repeat):
            repeat = Repeat(max=repeat or 1)
        seeds = execution.seeds or ()
        for name in self._context.target_names or own or [DEFAULT_TARGET]:
            target = find_target(self._context.target_list, name)
            judge = judge_of(self._context.target_list, target, None)
            yield PlanCase(
                id=case.id,
                suite=self._path,
                digest=UNSEALED,
                source=place,
                conversation_id=case.conversation_id,
                target=self._add(target),
                judge_target=self._add(judge) if judge else None,
                system_prompt=self._system_prompt,
                input_messages=inputs,
                expected_messages=expected,
                expected_outcome=case.expected_outcome,
                reference_answer=_reference_answer(expected, self._files),
                guidelines=_guidelines(inputs),
                evaluators=self._compile_evaluators(case, target),
                trials=max(repeat.max, len(seeds)),
                require=repeat.require,
                stop_when=repeat.stop_when,
                seeds=seeds,
                timeout_seconds=_given(execution.timeout_seconds, DEFAULT_TIMEOUT_S),
                max_retries=_given(execution.max_retries, DEFAULT_MAX_RETRIES),
                max_cost_usd=execution.max_cost_usd,
                max_requests=execution.max_requests,
                threshold=_given(execution.threshold, DEFAULT_THRESHOLD),
                workspace=self._workspaces.compile(execution.workspace, workspace_settings(target)),
                tags=self._document.tags_of(case) or None,
                skip=case.skip,
                accept=case.accept or None,
                metadata=case.metadata,
            )

    def _input_message(self, message: InputMessage) -> PlanMessage:
        return PlanMessage(
            role=message.role,
            name=message.name,
            content=self._parts(message.content, guidelines=True),
        )

    def _expected_message(self, message: ExpectedMessage) -> PlanMessage:
        """Return an expected message.

        Every file in it is content, even if it matches a guideline pattern.
        """
        content, value, parts = message.content, None, tuple[Part, ...]()
        if isinstance(content, dict):
            value = content
        elif content is not None:
            parts = self._parts(content, guidelines=False)
        return PlanMessage(
            role=message.role,
            name=message.name,
            content=parts,
            value=value,
            tool_calls=tuple(
                PlanToolCall(**call.model_dump()) for call in message.tool_calls or ()
            ),
        )

    def _parts(self, content: Content, *, guidelines: bool) -> tuple[Part, ...]:
        if isinstance(content, str):
            return (TextPart(text=content),)
        return tuple(self._part(block, guidelines=guidelines) for block in content)

    def _part(self, block: str | ContentBlock, *, guidelines: bool) -> Part:
        if isinstance(block, str):
            return TextPart(text=block)
        if block.type == "text":
            return TextPart(text=block.value)
        if block.type in ("image", "document") and is_url(block.value):
            return AttachmentPart(
                type=block.type, url=block.value, media_type=url_media_type(block.value)
            )
        file = self._files.add(self._source, block.value)
        if block.type != "file":
            media_type = media_type_of(self._files.content(file.sha256))
            return AttachmentPart(
                type=block.type, path=file.path, sha256=file.sha256, media_type=media_type
            )
        is_guideline = guidelines and _matches(file.path, self._guideline_patterns)
        return FilePart(
            type="guideline" if is_guideline else "file", path=file.path, sha256=file.sha256
        )

    def _compile_evaluators(self, case: EvalCase, target: Target) -> tuple[PlanEvaluator, ...]:
        def judge(name: str | None) -> str:
            target_of_judge = judge_of(self._context.target_list, target, name)
            if target_of_judge is None:
                return NO_JUDGE
            return self._add(target_of_judge)

        authored = self._document.evaluators_of(case)
        compiled = [self._evaluators.compile(evaluator, judge) for evaluator in authored]
        if case.rubrics:
            own = PlanRubricEvaluator(
                name=RUBRICS_NAME, rubrics=rubrics(case.rubrics), target=judge(None)
            )
            return (own, *compiled)
        if compiled:
            return tuple(compiled)
        return (PlanLlmJudgeEvaluator(name=DEFAULT_JUDGE_NAME, target=judge(None)),)

    def _add(self, target: Target) -> str:
        assert self._context.targets is not None
        return self._targets.add(target, self._context.targets.source)


def _given(value: T | None, default: T) -> T:
    return default if value is None else value


def _guidelines(messages: Sequence[PlanMessage]) -> tuple[FileReference, ...]:
    """Return the guideline files of a conversation, each once, in order."""
    by_path: dict[str, FileReference] = {}
    for message in messages:
        for part in message.content:
            if isinstance(part, FilePart) and part.type == "guideline":
                by_path[part.path] = FileReference(path=part.path, sha256=part.sha256)
    return tuple(by_path.values())


def _reference_answer(messages: Sequence[PlanMessage], files: Files) -> str:
    """Return the last expected assistant message with content, as text."""
    for message in reversed(messages):
        if message.role != "assistant":
            continue
        if message.value is not None:
            return json_text(message.value)
        if message.content:
            return "\n\n".join(_text(part, files) for part in message.content)
    return ""


def _text(part: Part, files: Files) -> str:
    if isinstance(part, FilePart):
        return files.text(part.sha256)
    return part_outline(part)


@lru_cache(maxsize=4096)
def _matches(path: str, patterns: tuple[str, ...]) -> bool:
    from wcmatch import glob  # only files need it

    return glob.globmatch(path, patterns, flags=glob.GLOBSTAR | glob.DOTGLOB | glob.FORCEUNIX)
