"""Which mutants a source has."""

from __future__ import annotations

import pytest

from tests.mutations import mutants


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("a < b", ["a <= b"]),
        ("(a) not in (b)", ["(a) in (b)"]),
        ("a == 'é' != b", ["a != 'é' != b", "a == 'é' == b", "a == 'é!' != b"]),
        ("a in ('x', b)", ["a not in ('x', b)", "a in ('x!', b)"]),
        ("a and (b or a) and b", ["a or (b or a) and b", "a and (b or a) or b", "a and (b and a) and b"]),
        ("a * 2 + 0.5", ["a * 2 - 0.5", "a / 2 + 0.5", "a * 3 + 0.5", "a * 2 + 1.5"]),
        ("a + 'text' + f'{b + 1}'", []),
        ("return not a", ["return None", "return  a"]),
        ("return False", ["return True"]),
        ("return", []),
        ("f(a, b=True)", ["pass", "f(a, b=False)"]),
        ("await a(b)", ["pass"]),
        ("assert_never(a + b)", []),
        ("assert a < b", []),
        ("zip(a, b, strict=True)", ["pass"]),
        ("a: b + 1 = b or {}", ["a: b + 1 = b and {}"]),
        ("'''Not a < b.'''", []),
        ("if a: b", ["if not (a): b"]),
        ("x = b if f(a) else 1", ["x = b if not (f(a)) else 1", "x = b if f(a) else 2"]),
        ("x = [a for a in b if a]", ["x = [a for a in b if not (a)]"]),
        ("for x in a: break", ["for x in a: continue"]),
        ("while a: continue", ["while a: break"]),
        ("match a:\n  case 'b': pass", ["match a:\n  case 'b!': pass"]),
        ("def f(a: 1 = 2, *, b='c'): ...", ["def f(a: 1 = 2, *, b='c!'): ...", "def f(a: 1 = 3, *, b='c'): ..."]),
        ("if TYPE_CHECKING: x = 1", []),
        ("__all__ = [1]", []),
        ("@cache(True)\ndef f(): ...", []),
    ],
)
def test_source_has_these_mutants(source: str, expected: list[str]) -> None:
    assert [each.mutated.decode() for each in mutants("x.py", source.encode())] == expected


def test_a_mutant_knows_its_place_across_lines() -> None:
    (found,) = mutants("x.py", b"x = (\n    \xc3\xa9  # and\n    and y\n)\n")
    assert found.mutated == b"x = (\n    \xc3\xa9  # and\n    or y\n)\n"
    assert str(found) == "x.py:3:\n  - and y\n  + or y"
