"""`type: code`: a script scores. It reads the case as JSON on stdin and prints one JSON object."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from agentv_ci.contracts.base import JsonObject, JsonValue
from agentv_ci.contracts.exchange import Log, OutputMessage, Score
from agentv_ci.contracts.plan import FilePart, FileReference, PlanCodeEvaluator, PlanMessage
from agentv_ci.evaluate.evaluators.replies import first_object, read_score
from agentv_ci.evaluate.submission import Submission
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
        environ: Mapping[str, str],
        root: Path,
        log: Log,
    ) -> None:
        self._settings = settings
        self._locate = locate
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
        paths = {file.path: self._locate(file) for file in self._settings.files}
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
        return {
            "eval_id": case.id,
            "question": submission.request.prompt,
            "expected_outcome": case.expected_outcome,
            "reference_answer": case.reference_answer,
            "candidate_answer": response.answer,
            "input_messages": [self._message(message, submission) for message in case.input_messages],
            "expected_messages": [self._message(message, submission) for message in case.expected_messages],
            "output_messages": [_output(message) for message in response.messages],
            "guideline_files": [str(self._locate_part(part)) for part in guidelines],
            "input_files": [str(self._locate_part(part)) for part in others],
            "has_trace": response.has_trace,
            "config": self._settings.config,
        }

    def _message(self, message: PlanMessage, submission: Submission) -> JsonObject:
        content: JsonValue = message.value
        if content is None:
            content = [
                {"type": "file", "value": str(self._locate_part(part)), "text": submission.files[part.sha256].text}
                if isinstance(part, FilePart)
                else {"type": "text", "value": part.text}
                for part in message.content
            ]
        calls: JsonValue = [call.model_dump(mode="json") for call in message.tool_calls]
        return {"role": message.role, "content": content, **({"tool_calls": calls} if calls else {})}

    def _locate_part(self, part: FilePart) -> Path:
        return self._locate(FileReference(path=part.path, sha256=part.sha256))


def _interpreter(program: Path) -> tuple[str, ...]:
    """A script that cannot start by itself is started by what its suffix says."""
    if program.suffix == ".py" or shutil.which(str(program)) is None:
        return INTERPRETERS.get(program.suffix, ())
    return ()


def _output(message: OutputMessage) -> JsonObject:
    calls: JsonValue = [{"tool": call.tool, "input": call.input, "output": call.output} for call in message.tool_calls]
    return {"role": message.role, "content": message.content, **({"tool_calls": calls} if calls else {})}


def _read(finished: Finished) -> Score:
    if finished.status != 0:
        said = _quote(finished.stderr) or _quote(finished.stdout) or "it said nothing"
        return Score(error=f"the script ended with exit code {finished.status}: {said}", raw_response=finished.stdout)
    reply = first_object(finished.stdout)
    score = read_score(reply, most=None) if reply is not None else None
    if score is None:
        printed = _quote(finished.stdout) or "nothing"
        return Score(error=f"the script printed no JSON object with a score: {printed}", raw_response=finished.stdout)
    return score


def _quote(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= MAX_QUOTED else text[:MAX_QUOTED] + "…"
