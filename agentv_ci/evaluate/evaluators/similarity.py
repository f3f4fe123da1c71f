"""`type: similarity`: how close the answer is to a reference text, from 0 to 1.

A door to rapidfuzz and sacrebleu.

levenshtein: 1 − edits / length of the longer text (V. Levenshtein 1966). rouge_l: F1 of the longest
common subsequence of words (C.-Y. Lin, ROUGE, 2004). token_f1: F1 of the words both have, as SQuAD
counts them (P. Rajpurkar et al. 2016). bleu: of one sentence, smoothed exponentially (M. Post,
sacreBLEU, 2018).

Each letter of a script without spaces between words is a word, as in MLQA (P. Lewis et al. 2020)
and in the tokenizer `zh` of sacreBLEU. Punctuation of all scripts counts as that of ASCII does.
"""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Sequence
from functools import cache
from itertools import filterfalse
from typing import TYPE_CHECKING
from unicodedata import category

from agentv_ci.contracts.answer_evaluators import SimilarityEvaluator
from agentv_ci.contracts.exchange import Score
from agentv_ci.evaluate.submission import EvaluatorServices, Submission

if TYPE_CHECKING:
    from regex import Pattern

MAX_CHARACTERS = 50_000
"""Longer texts would delay all cases that run concurrently."""

_ARTICLES = re.compile(r"\b(?:a|an|the)\b")
_PUNCTUATION = str.maketrans("", "", string.punctuation)
_TYPOGRAPHIC = {
    **dict.fromkeys(map(ord, "‘’‚‛‹›"), "'"),
    **dict.fromkeys(map(ord, "“”„‟«»"), '"'),
    **dict.fromkeys(map(ord, "\u2010\u2011"), "-"),
    0x200B: " ",
}
"""Quotes and hyphens → those of ASCII; the zero-width space, which separates words in Thai and
Khmer → a space.
"""
_LETTER_ALONE = r"[\p{L}&&[\p{scx=Han}\p{scx=Hira}\p{scx=Kana}\p{scx=Bopo}\p{LB=SA}]]"
"""Letters of scripts without spaces between words: Chinese and Japanese, and the line-breaking
class of Thai, Lao, Khmer, Burmese and related scripts (Unicode Standard Annex 14).
"""


async def similarity(
    settings: SimilarityEvaluator, submission: Submission, services: EvaluatorServices
) -> Score:
    """Measure the similarity; an empty reference is an error."""
    reference = settings.reference or submission.case.reference_answer
    if not reference.strip():
        return Score(
            error=(
                "nothing to compare with: 'reference' is not set, and the expected answer is empty"
            )
        )
    if len(reference) > MAX_CHARACTERS:
        return Score(error=f"the reference is longer than {MAX_CHARACTERS:,} characters")
    if len(submission.answer) > MAX_CHARACTERS:
        return Score(0.0, misses=(f"longer than {MAX_CHARACTERS:,} characters",))
    score = _measured(settings, submission.answer, reference)
    return Score(score, reasoning=f"{settings.metric} {score:.3f}")


def _measured(settings: SimilarityEvaluator, answer: str, reference: str) -> float:
    match settings.metric:
        case "levenshtein":
            from rapidfuzz.distance import Levenshtein

            return Levenshtein.normalized_similarity(answer.strip(), reference.strip())
        case "rouge_l":
            from rapidfuzz.distance import LCSseq

            ours, theirs = _words(answer), _words(reference)
            return _f1(LCSseq.similarity(ours, theirs), ours, theirs)
        case "token_f1":
            ours, theirs = _tokens(answer), _tokens(reference)
            return _f1((Counter(ours) & Counter(theirs)).total(), ours, theirs)
        case "bleu":
            return _bleu(_spaced(answer), _spaced(reference))


def _bleu(answer: str, reference: str) -> float:
    from sacrebleu.metrics.bleu import BLEU

    # With effective_order, texts of fewer than four words have a score too.
    bleu: float = BLEU(effective_order=True).sentence_score(answer, [reference]).score
    return min(1.0, bleu / 100)


def _f1(common: int, ours: Sequence[str], theirs: Sequence[str]) -> float:
    return 2 * common / (len(ours) + len(theirs))


def _tokens(text: str) -> list[str]:
    """Return the words of a text; of a text without words, such as 👍 or ?, the text itself."""
    plain = _spaced(text.lower()).translate(_PUNCTUATION)
    words = _ARTICLES.sub(" ", plain).split()
    return list(filterfalse(_is_mark, words)) or [text.strip()]


def _is_mark(word: str) -> bool:
    return len(word) == 1 and category(word).startswith("P")


def _words(text: str) -> list[str]:
    """Return the words of a text in any script; of a text without words, the text itself."""
    # With combining marks: without them, different words of many scripts would be equal.
    spaced = rf"[[\p{{L}}\p{{M}}\p{{N}}]--{_LETTER_ALONE}]+"
    return _pattern(rf"{_LETTER_ALONE}\p{{M}}*|{spaced}").findall(text.casefold()) or [text.strip()]


def _spaced(text: str) -> str:
    """Return a text with spaces between the words of any script.

    Spaces surround punctuation beyond ASCII, too.
    """
    if text.isascii():
        return text
    pattern = _pattern(rf"{_LETTER_ALONE}\p{{M}}*|[\p{{P}}--\p{{ASCII}}]")
    return pattern.sub(r" \g<0> ", text.translate(_TYPOGRAPHIC))


@cache
def _pattern(pattern: str) -> Pattern[str]:
    import regex  # few runs need it

    return regex.compile(pattern, regex.VERSION1)
