"""Tell secrets from settings, by the name of a variable and the shape of its value."""

from __future__ import annotations

import math
import re
from collections import Counter
from itertools import chain

MIN_LENGTH = 8
MAX_WORD = 20
MAX_PARTS = 8
MIN_RANDOM = 20
MIN_ENTROPY_BITS = 3.0
"""Of a character of a random text; that of English words in a row is lower."""

SECRET_WORDS = frozenset({"KEY", "TOKEN", "SECRET", "PASSWORD", "CREDENTIAL", "CREDENTIALS"})
"""Last words of the names of secrets."""
_PASSWORDS = frozenset({"PASSWORD", "PASSWD", "PASSPHRASE", "SECRET", "CREDENTIAL", "CREDENTIALS"})
_ALL_WORDS = SECRET_WORDS | _PASSWORDS | {"APIKEY", "AUTH", "PAT", "AUTHORIZATION", "COOKIE"}
_OF_DATA = frozenset(
    {
        *(
            "S",
            "OBJECT",
            "FILE",
            "SORT",
            "PRIMARY",
            "FOREIGN",
            "PARTITION",
            "GROUP",
            "CACHE",
            "ROUTING",
            "HASH",
        ),
        *("RANGE", "MAP", "LOOKUP", "JOIN", "INDEX", "COLUMN", "FIELD", "MODEL", "REGION"),
        *(
            "EOS",
            "BOS",
            "PAD",
            "STOP",
            "END",
            "START",
            "MASK",
            "UNK",
            "SEP",
            "CLS",
            "SPECIAL",
            "NEXT",
            "PAGE",
        ),
    }
)
"""Words before `KEY` and `TOKEN` in the names of what is usually not a secret."""

_WORDS_OF_NAME = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_SECRET_SHAPE = re.compile(
    r"(?:sk|pk|rk|ghp|gho|ghs|ghu|ghr|hf|npm|glpat|pypi|shpat|xox[abeprs]|github_pat)[-_]\S"
    r"|(?:AKIA|ASIA)[A-Z0-9]{12}|AIza\S|eyJ\S|ya29\.|SG\.|-----BEGIN |(?:Bearer|Basic|Token) \S"
    r"|\S{0,40}://[^\s/@]{1,200}:[^\s/@]{1,200}@"
    r"|(?i:.{0,200}\b(?:password|pwd|accountkey|sharedaccesskey)=)"
)
"""Prefixes of vendors' keys, JSON Web Tokens, private keys, credentials in URLs and connection
strings.
"""
_REGION = re.compile(
    r"[a-z]{2,12}-?(?:[a-z]{2,12}-?){0,2}(?:north|south|east|west|central)[a-z]*-?\d{0,2}[a-z]?"
)
_MODEL = re.compile(
    r"(?:[\w.-]{1,40}[/.])?(?:gpt|o\d|chatgpt|claude|gemini|gemma|llama"
    r"|mistral|mixtral|codestral|qwen|deepseek|grok|command|phi|nova|titan|text-embedding)[\w.:-]{0,60}",
    re.IGNORECASE,
)
_COLUMN = re.compile(r"[a-z]+(?:_[a-z]+){1,5}")
_SEPARATOR = re.compile(r"[\s\-_./:,@+]+")
_HUMP = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
_CONSONANTS = re.compile(r"[bcdfghjklmnpqrstvwxz]{5}")


def worth_hiding(text: str) -> bool:
    """Return whether a value is unlike ordinary text, so that it can be masked."""
    return len(text) >= MIN_LENGTH and not text.isdigit()


def names_secret(name: str) -> bool:
    """Return whether a name ends like that of a secret.

    Such as `API_KEY`, `apiKey` or `TOKEN_2`.
    """
    words = _words(name)
    return bool(words) and words[-1] in _ALL_WORDS


def is_secret(name: str, value: str) -> bool:
    """Return whether a variable is a secret: its name says so, and its value could be one."""
    words = _words(name)
    if not (worth_hiding(value) and words and words[-1] in _ALL_WORDS):
        return False
    if looks_secret(value):
        return True
    if words[-1] in _PASSWORDS:
        return not _is_setting(value)
    is_of_data = len(words) < 2 or words[-2] in _OF_DATA
    is_date = not re.search(r"[^\W\d_]", value)
    return could_be_secret(value) and not ((is_of_data or is_date) and is_plain(value))


def could_be_secret(value: str) -> bool:
    """Return whether a value of a field for secrets could be one.

    One word, a region, a model and a column could not.
    """
    return not _is_setting(value) and _COLUMN.fullmatch(value) is None


def _is_setting(value: str) -> bool:
    return bool(_is_word(value) or _REGION.fullmatch(value) or _MODEL.fullmatch(value))


def looks_secret(value: str) -> bool:
    """Return whether a value is a secret by its shape alone, whatever its name."""
    if not worth_hiding(value):
        return False
    if _SECRET_SHAPE.match(value):
        return True
    return _MODEL.fullmatch(value) is None and any(map(_is_random, re.split(r"[\s:,/.]", value)))


def is_plain(value: str) -> bool:
    """Return whether a value consists of words and short numbers.

    Such as a region, a model, a column, a path and a date.
    """
    parts: list[str] = list(filter(None, _SEPARATOR.split(value)))
    words = list(filter(str.isalpha, parts))
    digits = "".join(filter(str.isdigit, parts))
    mixed = [part for part in parts if not part.isalpha() and not part.isdigit()]
    if _SECRET_SHAPE.match(value) or len(words) > MAX_PARTS or len(mixed) > min(2, len(words)):
        return False
    if len(digits) > (12 if words else 8):
        return False
    if not all(len(part) <= 4 and part.isalnum() for part in mixed):
        return False
    return all(map(_is_word, chain.from_iterable(map(_humps, words))))


def _humps(word: str) -> list[str]:
    """Return the words of a name such as createdAt."""
    humps: list[str] = _HUMP.findall(word)
    if len("".join(humps)) < len(word):
        return [word]
    return humps


def _words(name: str) -> list[str]:
    return list(map(str.upper, _WORDS_OF_NAME.findall(name)))


def _is_word(text: str) -> bool:
    """Whether a text could be a word of a language.

    Random letters have more consonants in a row.
    """
    if not text.isalpha() or len(text) > MAX_WORD:
        return False
    has_one_case = text[1:] == text[1:].lower() or text == text.upper()
    return has_one_case and (len(text) <= 4 or _CONSONANTS.search(text.lower()) is None)


def _is_random(text: str) -> bool:
    """Whether a text mixes letters and digits as random ones do."""
    if len(text) < MIN_RANDOM or text.isalpha() or text.isdigit() or is_plain(text):
        return False
    counts = Counter(text).values()
    entropy = -sum(count / len(text) * math.log2(count / len(text)) for count in counts)
    return entropy >= MIN_ENTROPY_BITS
