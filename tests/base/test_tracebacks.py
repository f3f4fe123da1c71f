"""The exception that ended a program, from what it printed."""

from __future__ import annotations

import subprocess
import sys

import pytest

from agentv_ci.base.tracebacks import exception_in, last_words

PYTHON = {
    "raise RuntimeError('no key')": "RuntimeError: no key",
    "raise KeyError('a\\nb')": "KeyError: 'a\\nb'",
    "raise ValueError('two\\nlines')": "ValueError: two",
    "import json; json.loads('{')": "json.decoder.JSONDecodeError: Expecting property name enclosed in double quotes: "
    "line 1 column 2 (char 1)",
    "try:\n  1/0\nexcept Exception as error:\n  raise OSError('later') from error": "OSError: later",
    "raise SystemExit('bye')": None,
    "print('RuntimeError: said')": None,
}


@pytest.mark.parametrize(("program", "exception"), PYTHON.items())
def test_exception_of_python(program: str, exception: str | None) -> None:
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=30)
    assert exception_in(ended.stderr) == exception


NODE = """/app/bot.js:3
  throw new TypeError("no key");
  ^

TypeError: no key
    at ask (/app/bot.js:3:9)
    at Object.<anonymous> (/app/bot.js:5:1)

Node.js v20.20.2
"""


@pytest.mark.parametrize(
    ("text", "exception"),
    [
        (NODE, "TypeError: no key"),
        (NODE.replace("TypeError: no key", "Error [ERR_X]: no key"), "Error [ERR_X]: no key"),
        (NODE.replace("TypeError: no key\n", "TypeError\n"), "TypeError"),
        ("Error: no key", None),
        ("", None),
        ("Traceback (most recent call last):", None),
    ],
    ids=["message", "code", "no message", "no frame", "nothing", "cut off"],
)
def test_exception_of_others(text: str, exception: str | None) -> None:
    assert exception_in(text) == exception


@pytest.mark.parametrize(("text", "words"), [(NODE, "TypeError: no key"), ("one\n two\n\n", "two"), ("", "")])
def test_last_words(text: str, words: str) -> None:
    assert last_words(text) == words
