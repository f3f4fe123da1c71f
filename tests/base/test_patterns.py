"""Regular expressions of authors have Python's syntax."""

from __future__ import annotations

import contextlib
import re
import warnings

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from agentv_ci.base.patterns import InvalidPattern, compiled, occurs

PIECES = st.sampled_from(
    [
        *("{", "}", "{e}", "{e<=1}", "{i}", "{s<2}", "{1e}", "{e:x}"),
        *("{ 2}", "{2}", "{1,}", "{,2}", "{,}", "{}", "{0}", "a", "b", "e", "1", "é", " ", "\n"),
        *("#", "-", ",", "<", "=", "|", "*", "+", "?", "*?", "++", "^", "$", ".", "_"),
        *("[", "]", "[^", "[]", "[^]", "&&", "--", "||", "~~", "\\{", "\\}", "\\[", "\\]", "\\\\", "\\d", "\\w"),
        *("\\W", "\\s", "\\b", "\\A", "\\Z", "\\x61", "\\n", "\\1", "(", ")", "(?:", "(?=", "(?!", "(?<=", "(?<!"),
        *("(?P<n>", "(?P=n)", "(?i)", "(?x)", "(?m)", "(?s)", "(?>"),
    ]
)
PATTERNS = st.lists(PIECES, max_size=7).map("".join)
TEXTS = st.text("ab{}e1é ,<=#-[]^|&~_\n", max_size=6)


def found(pattern: str, text: str, *, ignore_case: bool = False) -> bool:
    return occurs(compiled(pattern, ignore_case=ignore_case), text)


def pythons(pattern: str, *, ignore_case: bool = False) -> re.Pattern[str] | None:
    """Return a pattern of `re`, or None."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return re.compile(pattern, re.IGNORECASE if ignore_case else 0)
        except (re.error, RecursionError, OverflowError):
            return None


@settings(derandomize=True, max_examples=400)
@given(PATTERNS, st.lists(TEXTS, min_size=1, max_size=5), st.booleans())
@example("[{]{e}", ["{{e}", "{"], False)
@example("[]{e}]{e}", ["]{e}"], False)
@example("a{,2}{e}", ["aa{e}"], False)
@example("(?x)a {e} # {i\n", ["a{e}", "a"], False)
@example("${{ x }}", ["${{ x }}"], True)
def test_pattern_finds_what_python_finds(pattern: str, texts: list[str], ignore_case: bool) -> None:
    pythonic = pythons(pattern, ignore_case=ignore_case)
    assume(pythonic is not None)
    assume("#" not in pattern)  # comments have their own test
    assert pythonic is not None
    assert [found(pattern, text, ignore_case=ignore_case) for text in texts] == [
        pythonic.search(text) is not None for text in texts
    ]


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        *(("Dear {s}", text) for text in ("Dear Xx", "Dear {s}")),
        *(("(?:abc){e<=1}", text) for text in ("abd", "abc{e<=1}")),
        *((r"a\\{e}", text) for text in ("a\\{e}", "a\\")),
        *(("[^]{e}]{e}", text) for text in ("x{e}", "e{e}")),
        (r"\N{DIGIT ONE}{e}", "1{e}"),
        ("(?x)a # [\n{e} # ]", "a"),
        ("(?x)a # it's [\nDear\\ {s} # ]", "aDear Xx"),
        ("(?#[)Dear {s}]", "Dear {s}]"),
        ("(?#[){e}]", "{e}]"),
        ("(?x)# \\\n{e}", ""),
        ("[[:alpha:]]", "x"),
        ("[[:alpha:]]", ":]"),
        ("[[:alpha:]", "a"),
        ("[^[:x]", "b"),
        ("[a[:digit:]]+", "1"),
    ],
)
def test_braces_comments_and_classes_are_those_of_python(pattern: str, text: str) -> None:
    pythonic = pythons(pattern)
    assert pythonic is not None
    assert found(pattern, text) == (pythonic.search(text) is not None)


@settings(derandomize=True, max_examples=300)
@given(PATTERNS | st.text(max_size=12))
def test_any_text_is_a_pattern_or_invalid(pattern: str) -> None:
    with contextlib.suppress(InvalidPattern):
        found(pattern, "ab{e}")


@pytest.mark.parametrize("pattern", ["(" * 5_000, "[" * 500, "{" * 5_000, "\\" * 4_999, "a{999999999999}", "(?P<"])
def test_long_pattern_is_a_pattern_or_invalid(pattern: str) -> None:
    with contextlib.suppress(InvalidPattern):
        compiled(pattern)
