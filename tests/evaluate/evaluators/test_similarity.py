"""`similarity`, compared with the packages that define the metrics and with figures worked out by hand."""

from __future__ import annotations

import pytest
import sacrebleu
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from rouge_score.rouge_scorer import RougeScorer  # type: ignore[import-untyped]  # it ships no types

from agentv_ci.contracts.results import EvaluatorResult
from agentv_ci.evaluate.evaluators.similarity import MAX_CHARACTERS
from tests.evaluate.builders import assess, evaluator, grade, plan_case
from tests.support.runs import any_text, well_formed_text

METRICS = ["levenshtein", "rouge_l", "token_f1", "bleu"]
ROUGE = RougeScorer(["rougeL"])
WORDS = st.sampled_from(["the", "The", "cat", "cat's", "sat", "on", "a_b", "mat.", "42", "-", "don't", "CAT"])
ASCII = st.text(st.characters(min_codepoint=1, max_codepoint=127), max_size=60)
SENTENCES = st.lists(st.sampled_from(["the", "cat", "sat", "on", "mat", ",", "dog"]), max_size=10).map(" ".join)


def measure(metric: str, answer: str, reference: str | None = None) -> EvaluatorResult:
    return assess(evaluator("similarity", metric=metric, **({"reference": reference} if reference else {})), answer)


def score(metric: str, answer: str, reference: str) -> float:
    found = measure(metric, answer, reference)
    assert found.status == "ok"
    return found.score


@pytest.mark.parametrize(
    ("metric", "answer", "reference", "expected"),
    [
        ("levenshtein", "kitten", "sitting", 1 - 3 / 7),
        ("levenshtein", "  same\n", "same ", 1),
        ("levenshtein", "", "abcd", 0),
        ("levenshtein", "Abc", "abc", 2 / 3),
        ("levenshtein", "é", "e\u0301", 0),
        ("levenshtein", "a😀", "a", 0.5),
        ("rouge_l", "Größe ÜBER alles", "größe über nichts", 2 / 3),
        ("rouge_l", "👎", "👍", 0),
        ("rouge_l", "", "?", 0),
        ("rouge_l", "की", "का", 0),
        ("rouge_l", "ไม่", "ไม้", 0.5),
        ("token_f1", "the cat sat", "a cat sat", 1),
        ("token_f1", "Cat, sat!", "cat sat", 1),
        ("token_f1", "the cat sat on the mat", "cat mat", 2 / 3),
        ("token_f1", "cat cat cat", "cat", 0.5),
        ("token_f1", "cat cat", "cat cat dog", 0.8),
        ("token_f1", "", "cat", 0),
        ("token_f1", "don't", "dont", 1),
        ("token_f1", "well-known", "well known", 0),
        ("token_f1", "theatre an", "theatre", 1),
        ("token_f1", "+", "-", 0),
        ("token_f1", "an", "A", 0),
    ],
)
def test_metric_is_worked_out_by_hand(metric: str, answer: str, reference: str, expected: float) -> None:
    assert score(metric, answer, reference) == pytest.approx(expected)


@pytest.mark.parametrize(("metric", "least"), [("rouge_l", 0.8), ("token_f1", 0.8), ("bleu", 0.6)])
@pytest.mark.parametrize(
    ("answer", "reference"),
    [
        pytest.param("您可以在三十天内退货。谢谢", "您可以在三十天内退货", id="chinese"),
        pytest.param("三十日以内なら返品できますよ。", "三十日以内なら返品できます", id="japanese"),
        pytest.param("カードで払えます!", "カードで払えます", id="katakana"),
        pytest.param("คุณสามารถคืนสินค้าได้ภายในสามสิบวันค่ะ", "คุณสามารถคืนสินค้าได้ภายในสามสิบวัน", id="thai"),
        pytest.param("ທ່ານສາມາດສົ່ງຄືນໄດ້ພາຍໃນສາມສິບວັນ.", "ທ່ານສາມາດສົ່ງຄືນໄດ້ພາຍໃນສາມສິບວັນ", id="lao"),
        pytest.param("អ្នកអាចប្រគល់ទំនិញវិញ\u200bក្នុងសាមសិបថ្ងៃ។", "អ្នកអាចប្រគល់ទំនិញវិញក្នុងសាមសិបថ្ងៃ", id="khmer"),
        pytest.param("ရက်သုံးဆယ်အတွင်း ပြန်ပေးနိုင်သည်။", "ရက်သုံးဆယ်အတွင်း ပြန်ပေးနိုင်သည်", id="burmese"),
        pytest.param("ཉིན་སུམ་ཅུའི་ནང་ཕྱིར་སློག་ཆོག།", "ཉིན་སུམ་ཅུའི་ནང་ཕྱིར་སློག་ཆོག", id="tibetan"),
        pytest.param("30일 이내에 반품할 수 있습니다.", "30일 이내에 반품할 수 있습니다", id="korean"),
        pytest.param("يمكنك إرجاعه خلال ثلاثين يوما؟", "يمكنك إرجاعه خلال ثلاثين يوما", id="arabic"),
        pytest.param("आप इसे तीस दिनों में लौटा सकते हैं।", "आप इसे तीस दिनों में लौटा सकते हैं", id="hindi"),
        pytest.param("“Don’t return it now” …", '"Don\'t return it now"', id="curly-quotes"),
        pytest.param("«Vous» avez trente jours — merci", '"Vous" avez trente jours, merci', id="french"),
        pytest.param("iPhone は30日以内に返品できます。", "iPhoneは30日以内に返品できます", id="mixed"),
    ],
)
def test_punctuation_and_a_word_more_change_little_in_any_script(
    metric: str, least: float, answer: str, reference: str
) -> None:
    assert least < score(metric, answer, reference) <= 1.0
    assert score(metric, reference, reference) == pytest.approx(1.0)


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize(
    ("answer", "reference"), [("您可以退货", "他们没有时间"), ("ได้", "พบ"), ("返品できます", "無理な話")]
)
def test_other_texts_without_spaces_score_zero(metric: str, answer: str, reference: str) -> None:
    assert score(metric, answer, reference) == 0.0


@given(st.text("您可以在退货三十 。,，“”abAB12", max_size=20), st.text("您可以在退货三十 。,，“”abAB12", max_size=20))
def test_bleu_of_chinese_is_that_of_sacrebleu(answer: str, reference: str) -> None:
    answer, reference = (each.replace("“", "").replace("”", "") for each in (answer, reference))
    assume(reference.strip())
    expected = sacrebleu.sentence_bleu(answer, [reference], tokenize="zh").score / 100
    assert score("bleu", answer, reference) == pytest.approx(min(1.0, expected))


@given(ASCII | st.lists(WORDS, max_size=12).map(" ".join), ASCII | st.lists(WORDS, max_size=12).map(" ".join))
def test_rouge_l_is_that_of_rouge_score(answer: str, reference: str) -> None:
    assume(any(c.isalnum() for c in reference))
    expected = ROUGE.score(reference, answer)["rougeL"].fmeasure
    assert score("rouge_l", answer, reference) == pytest.approx(expected)


@settings(max_examples=50)
@given(SENTENCES, SENTENCES)
def test_bleu_is_that_of_sacrebleu(answer: str, reference: str) -> None:
    assume(reference.strip())
    expected = sacrebleu.sentence_bleu(answer, [reference]).score / 100
    assert score("bleu", answer, reference) == pytest.approx(min(1.0, expected))


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("text", ["The refund takes 30 days.", "日本語 の 文", "x" * 3000])
def test_equal_texts_score_one(metric: str, text: str) -> None:
    assert 1.0 - 1e-9 <= score(metric, text, text) <= 1.0


@settings(max_examples=30)
@given(any_text, well_formed_text, st.sampled_from(METRICS))
def test_every_pair_of_texts_has_a_score(answer: str, reference: str, metric: str) -> None:
    assert 0.0 <= score(metric, answer, reference + "x") <= 1.0


@pytest.mark.parametrize("metric", METRICS)
def test_texts_without_anything_in_common_score_zero(metric: str) -> None:
    found = measure(metric, "zzz", "hello wide world")
    assert (found.score, found.reasoning) == (0.0, f"{metric} 0.000")


def test_reference_is_the_expected_answer_by_default() -> None:
    assert measure("levenshtein", "Hello!").score == 1.0
    (found,) = grade(plan_case(evaluator("similarity", metric="bleu"), reference_answer=" \n"), "Hello").results
    assert found.status == "error"
    assert found.reasoning == "nothing to compare with: 'reference' is not set, and the expected answer is empty"


def test_too_long_texts_are_not_compared() -> None:
    most, longer = "x" * MAX_CHARACTERS, "x" * (MAX_CHARACTERS + 1)
    reference = measure("rouge_l", "x", longer)
    assert (reference.status, reference.reasoning) == ("error", "the reference is longer than 50,000 characters")
    answer = measure("rouge_l", longer, "x")
    assert (answer.status, answer.score, answer.misses) == ("ok", 0.0, ("longer than 50,000 characters",))
    assert measure("rouge_l", most, most).score == 1.0
