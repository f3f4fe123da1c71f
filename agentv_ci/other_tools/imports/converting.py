"""Files of other tools → documents of ours."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import assert_never

from agentv_ci.contracts.other_tools import ImportedFiles, ImportKind, ReadImports
from agentv_ci.contracts.source import Source
from agentv_ci.other_tools.imports import agentv, datasets, prompt_yml, promptfoo
from agentv_ci.other_tools.imports.draft import Draft
from agentv_ci.other_tools.imports.targets_file import add_targets_file


def converted(
    sources: Sequence[tuple[ImportKind, Source]],
    *,
    reads: ReadImports,
    out: Path,
    root: Path,
    columns: Mapping[str, str],
) -> ImportedFiles:
    """Return the documents that files of other tools become.

    `columns` names the columns of data sets.
    """
    draft = Draft(reads, out, root)
    for kind, source in sources:
        match kind:
            case "agentv":
                agentv.convert(draft, source)
            case "promptfoo":
                promptfoo.convert(draft, source)
            case "prompt-yml":
                prompt_yml.convert(draft, source)
            case "inspect" | "deepeval" | "openai-evals":
                datasets.convert(draft, source, kind, columns)
            case _:
                assert_never(kind)
    add_targets_file(draft, sources[0][1])
    return ImportedFiles(draft.texts, tuple(draft.notes), draft.cases, draft.placeholders)
