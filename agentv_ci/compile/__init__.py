"""Stage 3: checked documents become one plan; the same documents always become the same bytes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from agentv_ci.compile.compilation import Compilation
from agentv_ci.compile.files import ReadText
from agentv_ci.contracts.documents import Checked, Surroundings

__all__ = ["compile"]


def compile(  # noqa: A001  # the stage's name; nothing here uses the builtin
    documents: Iterable[tuple[Checked, Surroundings]], *, read_text: ReadText, eval_ids: Sequence[str] = ()
) -> Compilation:
    """Compile valid eval documents.

    `eval_ids` keeps the cases whose id matches one of these globs; none given keeps all. A plan without cases is
    possible: whether that is a mistake is not decided here.
    """
    return Compilation(documents, read_text, eval_ids)
