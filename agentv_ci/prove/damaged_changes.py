"""Mistakes in what an agent leaves behind: a golden patch of which a part is missing, or a sign is another one."""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Callable, Collection, Iterator, Sequence
from difflib import SequenceMatcher, unified_diff
from functools import partial
from itertools import islice

from msgspec import Struct
from msgspec.structs import replace

from agentv_ci.contracts.gate import Operator
from agentv_ci.contracts.results import Change
from agentv_ci.prove.answers import Mutant, WrittenAnswer, number_of
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
    r"[!=]==?|[<>]=|&&|\|\||(?<=\s)[-+<>](?=\s)|\b(?:and|or|[Tt]rue|[Ff]alse)\b|(?<![\w.])\d{1,15}(?![\w.])"
)


class _Part(Struct, frozen=True):
    """A part of a change that can be left out."""

    change: Change
    old: Sequence[str]
    new: Sequence[str]
    """The lines of the whole file; of a file that is one part, none."""
    place: tuple[int, int, int, int] | None = None
    """Where both differ: first and last line of the old, and of the new; None for the whole file.
    """

    @property
    def without(self) -> Sequence[str]:
        """The lines of the file without this part."""
        assert self.place is not None, "only a file of several parts is left without one"
        first, last, begin, end = self.place
        return [*self.new[:begin], *self.old[first:last], *self.new[end:]]


class _Damage(Struct, frozen=True):
    operator: Operator
    change: str
    write: Callable[[], Mutant]


def change_mutants(
    reference: WrittenAnswer, before: ReadBefore, seed: str, accepted: Collection[str] = ()
) -> list[Mutant]:
    """Return the mutants of what a reference answer leaves behind: a few of each operator."""
    parts = [part for each in reference.changes or () for part in _parts(each, before)]
    damages: dict[Operator, list[_Damage]] = {}
    for damage in (
        *(_dropped(parts, reference) if len(parts) > 1 else ()),
        *_damaged(parts, reference),
    ):
        damages.setdefault(damage.operator, []).append(damage)
    found: list[Mutant] = []
    for operator, each in damages.items():
        if operator not in accepted:
            places = sorted(
                range(len(each)), key=lambda place: number_of(f"{seed}:{operator}:{place}")
            )
            found += (each[place].write() for place in places[:MOST])
    return found


def _parts(change: Change, before: ReadBefore) -> Iterator[_Part]:
    new = _lines(content_of(change))
    old = _lines(before(change.path)) if change.kind == "modified" else None
    if new is None or old is None:
        yield _Part(change, (), new or ())
        return
    compared = SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
    places = [place for tag, *place in compared if tag != "equal"]
    for first, last, begin, end in places:
        yield _Part(change, old, new, (first, last, begin, end))
    if not places:  # only its mode
        yield _Part(change, (), ())


def _lines(content: bytes | None) -> list[str] | None:
    """Return the lines of a text; None for what is none."""
    if content is None or b"\0" in content or len(content) > MOST_COMPARED:
        return None
    return content.decode("utf-8", "surrogateescape").splitlines(keepends=True)


def _dropped(parts: Sequence[_Part], reference: WrittenAnswer) -> Iterator[_Damage]:
    for part in parts:
        change = part.change
        is_whole = sum(each.change is change for each in parts) == 1
        where = "" if part.place is None else f", line {part.place[2] + 1},"
        said = f"the change of {change.path}{where} is missing"
        write = (
            partial(_without, part) if is_whole else partial(_with, part.new, part.without, change)
        )
        yield _Damage("change-dropped", said, partial(write, reference, "change-dropped", said))


def _damaged(parts: Sequence[_Part], reference: WrittenAnswer) -> Iterator[_Damage]:
    for part in parts:
        path, lines = part.change.path, part.new
        begin, end = part.place[2:] if part.place is not None else (0, len(lines))
        for number in range(begin, end) if not path.endswith(PROSE) else ():
            for before, after, line in _other_signs(lines[number]):
                said = f"{before} became {after} in {path}, line {number + 1}"
                mutated = [*lines[:number], line, *lines[number + 1 :]]
                write = partial(
                    _with, lines, mutated, part.change, reference, "change-damaged", said
                )
                yield _Damage("change-damaged", said, write)


def _other_signs(line: str) -> Iterator[tuple[str, str, str]]:
    """Yield each sign or number of a line of code, another one, and the line with that."""
    if line.lstrip().startswith(COMMENTS):
        return
    for found in _SIGN.finditer(line):
        before = line[: found.start()]
        if before.count('"') % 2 == 0 and before.count("'") % 2 == 0:
            other = OTHERS.get(found[0]) or str(int(found[0]) + 1)
            yield found[0], other, before + other + line[found.end() :]


def _without(part: _Part, reference: WrittenAnswer, operator: Operator, said: str) -> Mutant:
    left = tuple(each for each in reference.changes or () if each is not part.change)
    diff = f"-{part.change.path}" if part.place is None else _diff(part.new, part.old)
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
    changed = change.model_copy(update={"base64": content})
    left = tuple(changed if each is change else each for each in reference.changes or ())
    return Mutant(operator, said, replace(reference, changes=left), _diff(lines, others))


def _diff(lines: Sequence[str], others: Sequence[str]) -> str:
    return "".join(islice(unified_diff(lines, others, n=1), 2, None)).rstrip("\n")
