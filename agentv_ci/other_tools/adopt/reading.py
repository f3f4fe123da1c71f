"""Files with the results of other tools → their results."""

from __future__ import annotations

from pathlib import Path
from typing import assert_never

from agentv_ci.base.left_files import open_regular
from agentv_ci.contracts.attachments import LFS_POINTER, MAX_POINTER_BYTES, is_lfs_pointer
from agentv_ci.contracts.other_tools import AdoptedFile, AdoptKind, HowToRead
from agentv_ci.other_tools.adopt import (
    inspect_logs,
    junit,
    lines,
    openai_evals,
    promptfoo,
    pydantic_evals,
)
from agentv_ci.other_tools.adopt.json_texts import json_in, lines_in, text_in


def results_in(path: Path, kind: AdoptKind, how: HowToRead) -> AdoptedFile:
    """Return the results in a file.

    Raises OSError and ValueError for a file that has none of this kind.
    """
    with open_regular(path) as file:
        if is_lfs_pointer(file.read(MAX_POINTER_BYTES + 1)):
            raise ValueError(f"it is {LFS_POINTER}")
    match kind:
        case "promptfoo":
            return promptfoo.results(promptfoo.data_in(text_in(path)), how)
        case "inspect":
            return inspect_logs.results(inspect_logs.log_in(path), how)
        case "junit":
            return junit.results(path)
        case "openai-evals":
            return openai_evals.results(lines_in(text_in(path)), how)
        case "pydantic-evals":
            return pydantic_evals.results(json_in(text_in(path)), how)
        case "jsonl":
            return lines.results(lines_in(text_in(path)), how)
        case _:
            assert_never(kind)
