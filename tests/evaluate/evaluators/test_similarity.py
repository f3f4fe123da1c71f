"""`type: similarity`: against the packages that others measure with, and figures worked out by hand."""

from __future__ import annotations

import string

import pytest
import sacrebleu
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from rouge_score.rouge_scorer import RougeScorer  # type: ignore[import-untyped]  # it ships no types

from agentv_ci.contracts.evaluators import SimilarityEvaluator
from agentv_ci.contracts.results import EvaluatorResult
from agentv_ci.evaluate.evaluators.similarity import MAX_CHARACTERS
from tests.evaluate.builders import assess, grade, plan_case

ROUGE = RougeScorer(["rougeL"])

ascii_texts = st.text(st.characters(min_codepoint=1, max_codepoint=127), max_size=60) | st.lists(
    st.sampled_from(["the", "The", "cat", "cat's", "sat", "on", "a_b", "mat.", "42", "-", "don't", "CAT"]), max_size=12
).map(" ".join)
sentences = st.lists(st.sampled_from(["the", "cat", "sat", "on", "mat", ",", "dog"]), max_size=10).map(" ".join)


def measure(metric: str, answer: str, reference: str | None = None) -> EvaluatorResult:
    return assess(
        SimilarityEvaluator.model_validate(
            {"name": "s", "type": "similarity", "metric": metric, **({"reference": reference} if reference else {})}
        ),
        answer,
    )


def score(metric: str, answer: str, reference: str) -> float:
    outcome = measure(metric, answer, reference)
    assert outcome.status == "ok"
    return outcome.score


@pytest.mark.parametrize(
    ("answer", "reference", "expected"),
    [
        ("kitten", "sitting", 1 - 3 / 7),
        ("same", "same", 1.0),
        ("  same\n", "same ", 1.0),
        ("", "abcd", 0.0),
        ("abc", "xyz", 0.0),
        ("Abc", "abc", 2 / 3),
        ("ab", "abcd", 0.5),
        ("é", "e\u0301", 0.0),
        ("a😀", "a", 0.5),
    ],
)
def test_levenshtein_is_one_less_the_edits_per_character(answer: str, reference: str, expected: float) -> None:
    assert score("levenshtein", answer, reference) == pytest.approx(expected)


def _edits(one: str, other: str) -> int:
    row = list(range(len(other) + 1))
    for i, left in enumerate(one, 1):
        before, row[0] = row[0], i
        for j, right in enumerate(other, 1):
            before, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, before + (left != right))
    return row[-1]


@settings(deadline=None, derandomize=True, max_examples=100)
@given(st.text("abc é", max_size=12), st.text("abc é", max_size=12))
def test_levenshtein_counts_as_the_textbook_does(answer: str, reference: str) -> None:
    assume(reference.strip())
    one, other = answer.strip(), reference.strip()
    expected = 1 - _edits(one, other) / max(len(one), len(other))
    assert score("levenshtein", answer, reference) == pytest.approx(expected)


@settings(deadline=None, derandomize=True, max_examples=200)
@given(ascii_texts, ascii_texts)
def test_rouge_l_is_what_googles_package_gives(answer: str, reference: str) -> None:
    assume(any(c.isalnum() for c in reference))
    expected = ROUGE.score(reference, answer)["rougeL"].fmeasure
    assert score("rouge_l", answer, reference) == pytest.approx(expected)


def test_rouge_l_reads_words_of_other_alphabets() -> None:
    assert score("rouge_l", "Größe ÜBER alles", "größe über nichts") == pytest.approx(2 / 3)


@pytest.mark.parametrize(
    ("answer", "reference", "expected"),
    [
        ("the cat sat", "a cat sat", 1.0),
        ("Cat, sat!", "cat sat", 1.0),
        ("the cat sat on the mat", "cat mat", 2 * (2 / 4) * 1 / (2 / 4 + 1)),
        ("cat cat cat", "cat", 0.5),
        ("cat cat", "cat cat dog", 0.8),
        ("dog", "cat", 0.0),
        ("", "cat", 0.0),
        ("don't", "dont", 1.0),
        ("well-known", "well known", 0.0),
        ("theatre an", "theatre", 1.0),
        ("in 1990", "1990", 2 / 3),
    ],
)
def test_token_f1_is_worked_out_as_squad_does(answer: str, reference: str, expected: float) -> None:
    assert score("token_f1", answer, reference) == pytest.approx(expected)


@settings(deadline=None, derandomize=True, max_examples=100)
@given(sentences, sentences)
def test_bleu_is_what_sacrebleu_gives(answer: str, reference: str) -> None:
    assume(reference.strip())
    expected = sacrebleu.sentence_bleu(answer, [reference]).score / 100
    assert score("bleu", answer, reference) == pytest.approx(min(1.0, expected))


@pytest.mark.parametrize("metric", ["levenshtein", "rouge_l", "token_f1", "bleu"])
class TestEveryMetric:
    @pytest.mark.parametrize("text", ["Hello", "The refund takes 30 days.", "日本語 の 文", "x" * 3000])
    def test_a_text_is_as_near_as_can_be_to_itself(self, metric: str, text: str) -> None:
        assert score(metric, text, text) == pytest.approx(1.0)
        assert score(metric, text, text) <= 1.0

    def test_an_answer_with_nothing_in_common_scores_zero(self, metric: str) -> None:
        assert score(metric, "zzz", "hello wide world") == 0.0

    def test_reasoning_names_the_metric_and_the_score(self, metric: str) -> None:
        assert measure(metric, "Hello", "Hello").reasoning == f"{metric} 1.000"

    def test_the_expected_answer_is_the_reference_when_none_is_given(self, metric: str) -> None:
        assert measure(metric, "Hello!").score == pytest.approx(1.0)

    @pytest.mark.parametrize("expected", ["", " \n"])
    def test_nothing_to_compare_with_is_an_error(self, metric: str, expected: str) -> None:
        evaluator = SimilarityEvaluator.model_validate({"name": "s", "type": "similarity", "metric": metric})
        (outcome,) = grade(plan_case(evaluator, reference_answer=expected), "Hello").results
        assert (outcome.status, outcome.reasoning) == (
            "error",
            "nothing to compare with: 'reference' is not set, and the expected answer is empty",
        )

    def test_reference_that_is_too_long_is_an_error(self, metric: str) -> None:
        outcome = measure(metric, "x", "x" * (MAX_CHARACTERS + 1))
        assert (outcome.status, outcome.reasoning) == (
            "error",
            "the reference is longer than 50,000 characters",
        )

    def test_answer_that_is_too_long_is_a_miss(self, metric: str) -> None:
        outcome = measure(metric, "x" * (MAX_CHARACTERS + 1), "x")
        assert (outcome.score, outcome.misses) == (0.0, ("longer than 50,000 characters",))

    @settings(deadline=None, derandomize=True, max_examples=50)
    @given(st.text(max_size=40), st.text(string.printable, min_size=1, max_size=40))
    def test_score_lies_between_zero_and_one(self, metric: str, answer: str, reference: str) -> None:
        assume(reference.strip())
        assert 0.0 <= score(metric, answer, reference) <= 1.0
