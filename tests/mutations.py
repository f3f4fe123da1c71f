"""The mutants of a Python file: its source with one small change each."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import accumulate, chain, pairwise

SPELLED: dict[type[ast.AST], str] = {
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
    ast.Eq: "==",
    ast.NotEq: "!=",
    ast.Is: "is",
    ast.IsNot: "is not",
    ast.In: "in",
    ast.NotIn: "not in",
    ast.And: "and",
    ast.Or: "or",
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.Div: "/",
}
PAIRS = ["<,<=", ">,>=", "==,!=", "is,is not", "in,not in", "and,or", "+,-", "*,/"]
SWAPPED = {one: other for pair in PAIRS for one, other in (pair.split(","), reversed(pair.split(",")))}

Change = tuple[int, int, str]
"""Where a change begins and ends in the source, and the new text."""


@dataclass(frozen=True, slots=True)
class Mutant:
    """A file with one change."""

    path: str
    source: bytes = field(repr=False)
    start: int
    end: int
    new: str
    lines: tuple[frozenset[int], ...] = field(repr=False)
    """Sets of lines. The tests that cover a line of the first set with any such tests are those of the mutant."""

    @property
    def mutated(self) -> bytes:
        """The source with the change."""
        return self.source[: self.start] + self.new.encode() + self.source[self.end :]

    @property
    def is_valid(self) -> bool:
        """Whether the mutated file compiles."""
        try:
            compile(self.mutated, self.path, "exec")
        except SyntaxError:
            return False
        return True

    @property
    def line(self) -> int:
        """The line of the change."""
        return self.source.count(b"\n", 0, self.start) + 1

    def __str__(self) -> str:
        first, last = self.source.rfind(b"\n", 0, self.start) + 1, self.source.find(b"\n", self.end)
        grown = len(self.mutated) - len(self.source)
        old, new = (
            b" ".join(text.split()).decode() for text in (self.source[first:last], self.mutated[first : last + grown])
        )
        return f"{self.path}:{self.line}:\n  - {old}\n  + {new}"


def mutants(path: str, source: bytes) -> list[Mutant]:
    """Return all mutants of a file."""
    return list(_Finder(path, source))


@dataclass(frozen=True, slots=True)
class _Scope:
    statement: int = 0
    """The first line of the statement."""
    names: frozenset[str] | None = frozenset()
    """What the users of code that runs once call it: constants, defaults, cached functions. None in other functions."""


class _Finder:
    def __init__(self, path: str, source: bytes) -> None:
        self._path, self._source = path, source
        self._starts = [0, *accumulate(len(line) for line in source.splitlines(keepends=True))]
        self._tree = ast.parse(source)
        functions = [each for each in ast.walk(self._tree) if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef)]
        self._in_functions = [inner for each in functions for part in each.body for inner in ast.walk(part)]

    def __iter__(self) -> Iterator[Mutant]:
        return self._below(self._tree, _Scope())

    def _below(self, node: ast.AST, scope: _Scope) -> Iterator[Mutant]:
        if _is_skipped(node):
            return
        if isinstance(node, ast.stmt):
            scope = replace(scope, statement=node.lineno)
        for start, end, new in chain(self._operators(node), self._values(node), self._flow(node)):
            yield Mutant(self._path, self._source, start, end, new, self._lines(node, scope))
        for part, names in _parts(node, scope.names):
            yield from self._below(part, replace(scope, names=names))

    def _lines(self, node: ast.AST, scope: _Scope) -> tuple[frozenset[int], ...]:
        if scope.names is None:
            return frozenset({getattr(node, "lineno", scope.statement)}), frozenset({scope.statement})
        uses = {
            each.lineno
            for each in self._in_functions
            if (isinstance(each, ast.Name) and each.id in scope.names)
            or (isinstance(each, ast.Attribute) and each.attr in scope.names)
        }
        return frozenset(uses), frozenset(each.lineno for each in self._in_functions if isinstance(each, ast.stmt))

    def _operators(self, node: ast.AST) -> Iterator[Change]:
        match node:
            case ast.Compare(left=left, ops=operators, comparators=others):
                for (one, other), operator in zip(pairwise([left, *others]), operators, strict=True):
                    yield from self._swap(one, operator, other)
            case ast.BoolOp(op=operator, values=values):
                for one, other in pairwise(values):
                    yield from self._swap(one, operator, other)
            case ast.BinOp(left=left, op=operator, right=right) if not _has_text(left) and not _has_text(right):
                yield from self._swap(left, operator, right)
            case ast.UnaryOp(op=ast.Not()):
                start, _ = self._span(node)
                yield start, start + len("not"), ""
            case ast.If(test=test) | ast.IfExp(test=test):
                yield from self._negated([test])
            case ast.comprehension(ifs=tests):
                yield from self._negated(tests)
            case _:
                pass

    def _values(self, node: ast.AST) -> Iterator[Change]:
        match node:
            case ast.Constant(value=bool(value)):
                yield *self._span(node), str(not value)
            case ast.Constant(value=int(value) | float(value)):
                yield *self._span(node), str(value + 1)
            case ast.Compare(left=left, comparators=others):
                yield from self._texts([left, *others])
            case ast.arguments(defaults=defaults, kw_defaults=more):
                yield from self._texts(each for each in (*defaults, *more) if each is not None)
            case ast.MatchValue(value=value):
                yield from self._texts([value])
            case ast.Return(value=ast.expr() as value) if not (isinstance(value, ast.Constant) and not value.value):
                yield *self._span(value), "None"
            case _:
                pass

    def _flow(self, node: ast.AST) -> Iterator[Change]:
        match node:
            case ast.Expr(value=ast.Call() | ast.Await(value=ast.Call())):
                yield *self._span(node), "pass"
            case ast.Break():
                yield *self._span(node), "continue"
            case ast.Continue():
                yield *self._span(node), "break"
            case _:
                pass

    def _span(self, node: ast.expr | ast.stmt) -> tuple[int, int]:
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        return self._starts[node.lineno - 1] + node.col_offset, self._starts[node.end_lineno - 1] + node.end_col_offset

    def _swap(self, left: ast.expr, operator: ast.AST, right: ast.expr) -> Iterator[Change]:
        """Find an operator between its operands, where there may also be brackets and comments."""
        if (spelled := SPELLED.get(type(operator))) is not None:
            start, end = self._span(left)[1], self._span(right)[0]
            between = re.sub(rb"#.*", lambda comment: b" " * len(comment[0]), self._source[start:end])
            found = re.search(rb"\s+".join(re.escape(part.encode()) for part in spelled.split()), between)
            assert found is not None
            yield start + found.start(), start + found.end(), SWAPPED[spelled]

    def _texts(self, nodes: Iterable[ast.expr]) -> Iterator[Change]:
        for node in nodes:
            for each in node.elts if isinstance(node, ast.Tuple | ast.List | ast.Set) else [node]:
                if isinstance(each, ast.Constant) and isinstance(each.value, str):
                    yield *self._span(each), repr(f"{each.value}!")

    def _negated(self, tests: Iterable[ast.expr]) -> Iterator[Change]:
        """Negate conditions; comparisons and `not` have mutants of their own."""
        for test in tests:
            if not isinstance(test, ast.Compare | ast.UnaryOp):
                start, end = self._span(test)
                yield start, end, f"not ({self._source[start:end].decode()})"


def _is_skipped(node: ast.AST) -> bool:
    match node:
        case ast.If(test=ast.Name(id="TYPE_CHECKING")) | ast.Assign(targets=[ast.Name(id="__all__")]):
            return True
        case ast.Expr(value=ast.Call(func=ast.Name(id="assert_never"))):
            return True
        case _:
            return isinstance(node, ast.Assert | ast.arg | ast.JoinedStr)


def _parts(node: ast.AST, names: frozenset[str] | None) -> Iterator[tuple[ast.AST, frozenset[str] | None]]:
    """Yield what has mutants, with the names of its scope: no annotations or decorators."""
    parts: Iterable[ast.AST | None] = ast.iter_child_nodes(node)
    match node:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
            called = (names or frozenset()) if name == "__init__" else frozenset({name})
            yield node.args, None if names is None else called
            is_cached = any("cache" in ast.unparse(each) for each in node.decorator_list)
            parts, names = node.body, called if is_cached else None
        case ast.ClassDef():
            parts, names = node.body, frozenset({node.name})
        case ast.Call(func=ast.Name(id="zip")):
            parts = node.args
        case ast.Assign() | ast.AnnAssign():
            parts = [node.value]
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            if names is not None:
                names |= {each.id for target in targets for each in ast.walk(target) if isinstance(each, ast.Name)}
        case _:
            pass
    yield from ((part, names) for part in parts if part is not None)


def _has_text(node: ast.expr) -> bool:
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))
