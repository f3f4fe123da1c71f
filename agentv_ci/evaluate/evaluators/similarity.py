"""`type: similarity`: how near the answer comes to a text, from 0 to 1. A door to rapidfuzz and sacrebleu.

levenshtein: 1 − edits / length of the longer text (V. Levenshtein 1966). rouge_l: F1 of the longest common
subsequence of words (C.-Y. Lin, ROUGE, 2004). token_f1: F1 of the words both have, as SQuAD counts them
(P. Rajpurkar et al. 2016). bleu: of one sentence, smoothed exponentially (M. Post, sacreBLEU, 2018).
"""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Sequence

from agentv_ci.contracts.evaluators import SimilarityEvaluator
from agentv_ci.contracts.exchange import Score
from agentv_ci.evaluate.submission import EvaluatorServices, Submission

MAX_CHARACTERS = 50_000
"""Longer texts would hold up all cases that run beside this one."""

_ARTICLES = re.compile(r"\b(?:a|an|the)\b")
_PUNCTUATION = str.maketrans("", "", string.punctuation)


async def similarity(settings: SimilarityEvaluator, submission: Submission, services: EvaluatorServices) -> Score:
    """Measure; an answer that there is nothing to compare with is an error."""
    reference = settings.reference or submission.case.reference_answer
    if not reference.strip():
        return Score(error="there is nothing to compare with: no reference, and no expected answer")
    if len(reference) > MAX_CHARACTERS:
        return Score(error=f"references of more than {MAX_CHARACTERS:,} characters are not compared")
    if len(submission.answer) > MAX_CHARACTERS:
        return Score(0.0, misses=(f"longer than {MAX_CHARACTERS:,} characters, which are not compared",))
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
            from sacrebleu.metrics.bleu import BLEU

            # Texts without four words in a row still have a score: the orders that they have.
            bleu: float = BLEU(effective_order=True).sentence_score(answer, [reference]).score
            return min(1.0, bleu / 100)


def _f1(common: int, ours: Sequence[str], theirs: Sequence[str]) -> float:
    return 2 * common / (len(ours) + len(theirs))


def _tokens(text: str) -> list[str]:
    """Return the words of a text; a text without any, such as 👍 or ?, is compared as it is."""
    return _ARTICLES.sub(" ", text.lower().translate(_PUNCTUATION)).split() or [text.strip()]


def _words(text: str) -> list[str]:
    """Return the words of a text in any script, as `_tokens` does."""
    import regex

    # Marks belong to their letter: without them, words of many scripts are the same.
    return regex.findall(r"[\p{L}\p{M}\p{N}]+", text.casefold()) or [text.strip()]
