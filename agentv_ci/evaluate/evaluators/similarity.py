"""`type: similarity`: how close the answer is to a reference text, from 0 to 1. A door to rapidfuzz and sacrebleu.

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
"""Longer texts would delay all cases that run concurrently."""

_ARTICLES = re.compile(r"\b(?:a|an|the)\b")
_PUNCTUATION = str.maketrans("", "", string.punctuation)


async def similarity(settings: SimilarityEvaluator, submission: Submission, services: EvaluatorServices) -> Score:
    """Measure the similarity; an empty reference is an error."""
    reference = settings.reference or submission.case.reference_answer
    if not reference.strip():
        return Score(error="nothing to compare with: 'reference' is not set, and the expected answer is empty")
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
            from sacrebleu.metrics.bleu import BLEU

            # With effective_order, texts of fewer than four words have a score too.
            bleu: float = BLEU(effective_order=True).sentence_score(answer, [reference]).score
            return min(1.0, bleu / 100)


def _f1(common: int, ours: Sequence[str], theirs: Sequence[str]) -> float:
    return 2 * common / (len(ours) + len(theirs))


def _tokens(text: str) -> list[str]:
    """Return the words of a text; of a text without words, such as 👍 or ?, the text itself."""
    return _ARTICLES.sub(" ", text.lower().translate(_PUNCTUATION)).split() or [text.strip()]


def _words(text: str) -> list[str]:
    """Return the words of a text in any script; of a text without words, the text itself."""
    import regex

    # With combining marks: without them, different words of many scripts would be equal.
    return regex.findall(r"[\p{L}\p{M}\p{N}]+", text.casefold()) or [text.strip()]
