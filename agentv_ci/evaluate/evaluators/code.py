"""`type: code`: a script scores. It reads the case as JSON on stdin and prints one JSON object."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from agentv_ci.contracts.base import JsonObject, JsonValue
from agentv_ci.contracts.exchange import Log, Response, Score
from agentv_ci.contracts.plan import FilePart, FileReference, Part, PlanCodeEvaluator, PlanMessage, TextPart
from agentv_ci.contracts.results import TraceSummary
from agentv_ci.evaluate.evaluators.replies import first_object, read_score
from agentv_ci.evaluate.submission import Submission, output_message
from agentv_ci.process import Finished, ProcessFailed, child_environment, run

INTERPRETERS: Mapping[str, tuple[str, ...]] = {
    ".py": (sys.executable,),
    ".js": ("node",),
    ".mjs": ("node",),
    ".sh": ("/bin/sh",),
}
MAX_QUOTED = 500


class Code:
    """See Evaluator."""

    def __init__(
        self,
        settings: PlanCodeEvaluator,
        *,
        locate: Callable[[FileReference], Path],
        locate_together: Callable[[Sequence[FileReference]], Mapping[str, Path]],
        environ: Mapping[str, str],
        root: Path,
        log: Log,
    ) -> None:
        self._settings = settings
        self._locate = locate
        self._locate_together = locate_together
        self._environ = environ
        self._root = root
        self._log = log

    async def evaluate(self, submission: Submission) -> Score:
        """Run the script; a crash, a time-out or anything but a score on stdout is an error, not a zero."""
        cwd = self._root / self._settings.cwd if self._settings.cwd else submission.folder
        try:
            finished = await run(
                self._command(),
                cwd=cwd,
                env=child_environment(self._environ),
                timeout_s=self._settings.timeout_seconds or submission.case.timeout_seconds,
                stdin=json.dumps(self._input(submission), ensure_ascii=False).encode("utf-8", "replace"),
            )
        except ProcessFailed as error:
            return Score(error=f"the script {error}")
        if finished.stderr.strip():
            self._log(f"{self._settings.name}: stderr: {_quote(finished.stderr)}")
        return _read(finished)

    def _command(self) -> str | list[str]:
        paths = self._locate_together(self._settings.files)
        if self._settings.argv is None:
            assert self._settings.command is not None, "a script has argv or a command"
            return self._settings.command
        words = [str(paths.get(word, word)) for word in self._settings.argv]
        program = paths.get(self._settings.argv[0])
        return [*_interpreter(program), *words] if program is not None else words

    def _input(self, submission: Submission) -> JsonObject:
        case, response = submission.case, submission.response
        attached = [part for message in case.input_messages for part in message.content if isinstance(part, FilePart)]
        guidelines = [part for part in attached if part.type == "guideline"]
        others = [part for part in attached if part.type == "file"]
        inputs: list[JsonValue] = [self._message(message, submission) for message in case.input_messages]
        guideline_files: list[JsonValue] = [str(self._locate_part(part)) for part in guidelines]
        segments: list[JsonValue] = [
            self._part(part, submission) for each in case.input_messages for part in each.content
        ]
        return {
            "eval_id": case.id,
            "question": submission.request.prompt,
            "expected_outcome": case.expected_outcome,
            "reference_answer": case.reference_answer,
            "candidate_answer": response.answer,
            "input_messages": inputs,
            "expected_messages": [self._message(message, submission) for message in case.expected_messages],
            "output_messages": [output_message(message) for message in response.messages],
            "guideline_files": guideline_files,
            "input_files": [str(self._locate_part(part)) for part in others],
            "has_trace": response.has_trace,
            "config": self._settings.config,
            # What scripts written for AgentV know these by.
            "guideline_paths": guideline_files,
            "input_segments": segments,
            "candidate_trace_summary": _trace(response),
        }

    def _message(self, message: PlanMessage, submission: Submission) -> JsonObject:
        content: JsonValue = message.value
        if content is None:
            content = [self._part(part, submission) for part in message.content]
        calls: JsonValue = [call.model_dump(mode="json") for call in message.tool_calls]
        name: JsonObject = {"name": message.name} if message.name is not None else {}
        return {"role": message.role, **name, "content": content, **({"tool_calls": calls} if calls else {})}

    def _part(self, part: Part, submission: Submission) -> JsonObject:
        match part:
            case FilePart():
                path = str(self._locate_part(part))
                return {"type": "file", "value": path, "text": submission.files[part.sha256].text}
            case TextPart():
                return {"type": "text", "value": part.text}

    def _locate_part(self, part: FilePart) -> Path:
        return self._locate(FileReference(path=part.path, sha256=part.sha256))


def _interpreter(program: Path) -> tuple[str, ...]:
    """A script that cannot start by itself is started by what its suffix says."""
    if program.suffix == ".py" or shutil.which(str(program)) is None:
        return INTERPRETERS.get(program.suffix, ())
    return ()


def _trace(response: Response) -> JsonObject | None:
    if not response.has_trace:
        return None
    summary: JsonObject = TraceSummary.of(call.tool for call in response.calls).model_dump(mode="json")
    return summary


def _read(finished: Finished) -> Score:
    if finished.status != 0:
        said = _last_line(finished.stderr) or _last_line(finished.stdout) or "it said nothing"
        # The whole traceback stays in the row.
        raw = finished.stdout + finished.stderr
        return Score(error=f"the script ended with exit code {finished.status}: {said}", raw_response=raw)
    reply = first_object(finished.stdout)
    score = read_score(reply, most=None) if reply is not None else None
    if score is None:
        printed = _quote(finished.stdout) or "nothing"
        return Score(error=f"the script printed no JSON object with a score: {printed}", raw_response=finished.stdout)
    return score


def _last_line(text: str) -> str:
    """The line of a traceback that says what happened."""
    return _quote(next((line for line in reversed(text.splitlines()) if line.strip()), ""))


def _quote(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= MAX_QUOTED else text[:MAX_QUOTED] + "…"
