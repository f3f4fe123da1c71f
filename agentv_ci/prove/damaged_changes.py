"""Mistakes in what an agent leaves behind.

Of a golden patch a part is missing, or a sign is another one.
"""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from difflib import SequenceMatcher, unified_diff
from functools import partial
from itertools import chain, islice
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from agentv_ci.base.mappings import grouped
from agentv_ci.contracts.gate import Operator
from agentv_ci.contracts.results import Change
from agentv_ci.prove.answers import Mutant, WrittenAnswer, shuffled
from agentv_ci.workspaces.trees import content_of

ReadBefore = Callable[[str], bytes | None]
"""Return the content of a file in the base; None for a link."""
MOST = 3
"""Mutants of one operator for each case."""
MOST_COMPARED = 500_000
"""Bytes of a file from which on it is one part."""
PROSE = (".md", ".rst", ".txt")
COMMENTS = ("#", "//", "/*", "*", "--", ";", '"""', "'''")
OTHERS = {
    "===": "!==",
    "!==": "===",
    "==": "!=",
    "!=": "==",
    "<=": "<",
    ">=": ">",
    "<": "<=",
    ">": ">=",
    "+": "-",
    "-": "+",
    "&&": "||",
    "||": "&&",
    "and": "or",
    "or": "and",
    "True": "False",
    "False": "True",
    "true": "false",
    "false": "true",
}
"""Sign → another one."""
_SIGN = re.compile(
    r"[!=]==?|[<>]=|&&|\|\||(?<=\s)[-+<>](?=\s)|\b(?:and|or|[Tt]rue|[Ff]alse)\b"
    r"|(?<![\w.])\d{1,15}(?![\w.])"
)


class _Difference(NamedTuple):
    """Where the lines of a file differ; each end is behind the last line."""

    old_begin: int
    old_end: int
    new_begin: int
    new_end: int


class _Part(Struct, frozen=True):
    """A part of a change that can be left out."""

    change: Change
    old: Sequence[str]
    new: Sequence[str]
    """The lines of the whole file; of a file that is one part, none."""
    at: _Difference | None = None
    """None for the whole file."""

    @property
    def new_lines(self) -> range:
        """The indices of its lines in the new file."""
        if self.at is None:
            return range(len(self.new))
        return range(self.at.new_begin, self.at.new_end)

    @property
    def without(self) -> Sequence[str]:
        """The lines of the file without this part."""
        at = self.at
        assert at is not None, "only a file of several parts is left without one"
        instead = self.old[at.old_begin : at.old_end]
        return [*self.new[: at.new_begin], *instead, *self.new[at.new_end :]]


class _Damage(Struct, frozen=True):
    operator: Operator
    change: str
    write: Callable[[], Mutant]


def change_mutants(
    reference: WrittenAnswer, before: ReadBefore, seed: str, accepted: Collection[str] = ()
) -> list[Mutant]:
    """Return the mutants of what a reference answer leaves behind: a few of each operator."""
    parts: list[_Part] = []
    for change in reference.changes or ():
        parts += _parts(change, before)
    mutants: list[Mutant] = []
    for operator, damages in _by_operator(parts, reference).items():
        if operator not in accepted:
            chosen = shuffled(damages, f"{seed}:{operator}")[:MOST]
            mutants += (damage.write() for damage in chosen)
    return mutants


def _by_operator(
    parts: Sequence[_Part], reference: WrittenAnswer
) -> Mapping[Operator, Sequence[_Damage]]:
    dropped = _dropped(parts, reference) if len(parts) > 1 else ()
    return grouped(chain(dropped, _damaged(parts, reference)), lambda damage: damage.operator)


def _parts(change: Change, before: ReadBefore) -> Iterator[_Part]:
    new = _lines(content_of(change))
    old = _lines(before(change.path)) if change.kind == "modified" else None
    if new is None or old is None:
        yield _Part(change, (), new or ())
        return
    if old == new:  # only its mode
        yield _Part(change, (), ())
        return
    for tag, *lines in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if tag != "equal":
            yield _Part(change, old, new, _Difference(*lines))


def _lines(content: bytes | None) -> list[str] | None:
    """Return the lines of a text; None for what is none."""
    if content is None or b"\0" in content or len(content) > MOST_COMPARED:
        return None
    return content.decode("utf-8", "surrogateescape").splitlines(keepends=True)


def _dropped(parts: Sequence[_Part], reference: WrittenAnswer) -> Iterator[_Damage]:
    for part in parts:
        change = part.change
        said = f"the change of {change.path} is missing"
        if part.at is not None:
            said = f"the change of {change.path}, line {part.at.new_begin + 1}, is missing"
        write = partial(_without, part)
        if sum(other.change is change for other in parts) > 1:
            write = partial(_with, part.new, part.without, change)
        yield _Damage("change-dropped", said, partial(write, reference, "change-dropped", said))


def _damaged(parts: Sequence[_Part], reference: WrittenAnswer) -> Iterator[_Damage]:
    for part in parts:
        if not part.change.path.endswith(PROSE):
            for index in part.new_lines:
                yield from _damaged_line(part, index, reference)


def _damaged_line(part: _Part, index: int, reference: WrittenAnswer) -> Iterator[_Damage]:
    lines = part.new
    for before, after, line in _other_signs(lines[index]):
        said = f"{before} became {after} in {part.change.path}, line {index + 1}"
        mutated = [*lines[:index], line, *lines[index + 1 :]]
        write = partial(_with, lines, mutated, part.change, reference, "change-damaged", said)
        yield _Damage("change-damaged", said, write)


def _other_signs(line: str) -> Iterator[tuple[str, str, str]]:
    """Yield each sign or number of a line of code, another one, and the line with that."""
    if line.lstrip().startswith(COMMENTS):
        return
    for sign in _SIGN.finditer(line):
        before = line[: sign.start()]
        if before.count('"') % 2 == 0 and before.count("'") % 2 == 0:
            other = OTHERS.get(sign[0]) or str(int(sign[0]) + 1)
            yield sign[0], other, before + other + line[sign.end() :]


def _without(part: _Part, reference: WrittenAnswer, operator: Operator, said: str) -> Mutant:
    left = tuple(change for change in reference.changes or () if change is not part.change)
    diff = f"-{part.change.path}" if part.at is None else _diff(part.new, part.old)
    return Mutant(operator, said, replace(reference, changes=left), diff)


def _with(
    lines: Sequence[str],
    others: Sequence[str],
    change: Change,
    reference: WrittenAnswer,
    operator: Operator,
    said: str,
) -> Mutant:
    content = b64encode("".join(others).encode("utf-8", "surrogateescape")).decode("ascii")
    left = list(reference.changes or ())
    # By identity: another change may be equal.
    index = next(index for index, known in enumerate(left) if known is change)
    left[index] = change.model_copy(update={"base64": content})
    return Mutant(operator, said, replace(reference, changes=tuple(left)), _diff(lines, others))


def _diff(lines: Sequence[str], others: Sequence[str]) -> str:
    return "".join(islice(unified_diff(lines, others, n=1), 2, None)).rstrip("\n")
