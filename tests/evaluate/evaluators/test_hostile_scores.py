"""What agents, scripts and authors can do to scores."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentv_ci.contracts.base import JsonObject
from agentv_ci.contracts.evaluators import (
    ContainsAnyEvaluator,
    ContainsEvaluator,
    CostEvaluator,
    EqualsEvaluator,
    FieldAccuracyEvaluator,
    IsJsonEvaluator,
    LatencyEvaluator,
    RegexEvaluator,
    SimilarityEvaluator,
    TokenUsageEvaluator,
    ToolTrajectoryEvaluator,
)
from agentv_ci.contracts.exchange import Grade, Response, Score
from agentv_ci.contracts.plan import PlanCodeEvaluator, PlanEvaluator, PlanSchemaEvaluator
from agentv_ci.contracts.results import EvaluatorResult, ToolCall, Usage
from agentv_ci.evaluate.scoring import assessment_of
from agentv_ci.redaction import MAX_PRINTED, Redactor
from agentv_ci.text import printable
from tests.evaluate.builders import answered, assess, grade, plan_case, tools
from tests.report.builders import any_text, well_formed_text
from tests.support import REPOSITORY, run_process, write

HANGS_S = 120
"""What takes so long holds up every case that runs beside it."""
SECRET = "sk-live-abcdefghijklmnop"
ENVIRON = {"MY_API_KEY": SECRET}


def hostile_grade(*evaluators: PlanEvaluator, answer: str = "x") -> Grade:
    return grade(plan_case(*evaluators), answer)


def code(command: str, **given: Any) -> PlanCodeEvaluator:
    return PlanCodeEvaluator(name="script", command=command, **given)


def script(folder: Path, command: str, answer: str = "Hello", **given: Any) -> EvaluatorResult:
    return assess(code(command, **given), answer, tools(root=folder, environ=ENVIRON, log=lambda _: None))


def similar(metric: str, answer: str, reference: str) -> EvaluatorResult:
    evaluator = {"name": "s", "type": "similarity", "metric": metric, "reference": reference}
    return assess(SimilarityEvaluator.model_validate(evaluator), answer)


def field(answer: str, value: Any, **given: Any) -> EvaluatorResult:
    evaluator = {"name": "f", "type": "field_accuracy", "reference": {"v": value}, "fields": [{"path": "v", **given}]}
    return assess(FieldAccuracyEvaluator.model_validate(evaluator), answer)


def calls(mode: str, expected: list[Any], made: list[ToolCall]) -> EvaluatorResult:
    evaluator = {"name": "t", "type": "tool_trajectory", "mode": mode, "expected": expected}
    return assess(ToolTrajectoryEvaluator.model_validate(evaluator), answered("x", *made, has_trace=True))


def measured(**given: Any) -> Response:
    return Response("x", (), has_trace=False, **given)


def ends(program: str) -> str:
    """Return what a program prints, in a process of its own: what hangs there cannot be interrupted from inside."""
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=REPOSITORY, capture_output=True, text=True, check=False, timeout=HANGS_S
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


# --- Scripts ---


def test_answer_that_a_script_shows_first_does_not_score_itself(tmp_path: Path) -> None:
    show = "import json, sys; print(json.load(sys.stdin)['candidate_answer']); print(json.dumps({'score': 0}))"
    outcome = script(tmp_path, f'"{sys.executable}" -c "{show}"', answer='{"score": 1}')
    assert outcome.score == 0.0


@pytest.mark.parametrize(
    "before",
    [
        "starting …",
        "{'a': 1}",
        "{not json}",
        "[1, 2]",
        '{"level": "info", "message": "starting"}',
        "{}",
    ],
)
def test_what_a_script_prints_before_its_score_is_passed_over(tmp_path: Path, before: str) -> None:
    (tmp_path / "out.txt").write_text(before + '\n{"score": 0.5}\n', encoding="utf-8")
    assert script(tmp_path, f"cat '{tmp_path}/out.txt'").score == 0.5


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("'{' * 1_000_000", id="braces"),
        pytest.param("\"{'a': 1, 'b': 'hello there'}\\n\" * 100_000 + '{\"score\": 1}'", id="reprs"),
        pytest.param("'{\"a\":' * 200_000", id="nested"),
    ],
)
def test_long_output_is_read_without_holding_up_the_run(text: str) -> None:
    program = f"from agentv_ci.evaluate.replies import first_object; first_object({text}); print('read')"
    assert ends(program) == "read"


@pytest.mark.parametrize(
    ("command", "status"),
    [
        ("exec 0<&-; sleep 0.1; echo '{\"score\": 1}'", "ok"),
        ("exec 2>&-; echo '{\"score\": 1}'", "ok"),
        ("exec 1>&-; true", "error"),
        ("printf '\\357\\273\\277{\"score\": 1}'", "ok"),
        ("printf '{\"score\": 1}\\0'", "ok"),
        ("head -c 3000000 /dev/zero >&2; echo '{\"score\": 1}'", "ok"),
        ("head -c 12000000 /dev/zero >&2; echo '{\"score\": 1}'", "error"),
        ("echo '{\"score\": 1}'; kill -TERM $$", "error"),
        ("trap '' TERM; echo '{\"score\": 1}'; exit 255", "error"),
        ('echo \'{"score": 1, "score": "none"}\'', "error"),
        ("echo '{\"score\": [1]}'", "error"),
        ("echo '{\"Score\": 1}'", "error"),
        ('echo \'{"score": ""}\'', "error"),
        ("echo '{\"score\": -Infinity}'", "error"),
        ("exit 0", "error"),
    ],
)
def test_odd_script_has_a_score_or_an_error(tmp_path: Path, command: str, status: str) -> None:
    outcome = script(tmp_path, command, answer="x" * 100_000)
    assert outcome.status == status


@pytest.mark.parametrize("printed", ["-0.0", "-1e-320", '"-0"', "-1e308"])
def test_score_is_never_a_negative_zero(tmp_path: Path, printed: str) -> None:
    (tmp_path / "out.txt").write_text(f'{{"score": {printed}}}')
    assert str(script(tmp_path, f"cat '{tmp_path}/out.txt'").score) == "0.0"


def test_findings_that_are_no_texts_break_nothing(tmp_path: Path) -> None:
    (tmp_path / "out.txt").write_text('{"score": 1, "hits": {"a": 1}, "misses": "all", "reasoning": ["x"]}')
    outcome = script(tmp_path, f"cat '{tmp_path}/out.txt'")
    assert (outcome.score, outcome.hits, outcome.misses, outcome.reasoning) == (1.0, (), (), "")


# --- Secrets ---


def masked(outcome: EvaluatorResult) -> EvaluatorResult:
    clean, _ = Redactor([SECRET]).result(outcome)
    return clean


def test_secret_is_masked_wherever_a_script_prints_it(tmp_path: Path) -> None:
    both = '{"score": 0, "hits": ["%s"], "misses": ["%s"], "reasoning": "%s"}'
    command = f"echo $MY_API_KEY >&2; printf '{both}' $MY_API_KEY $MY_API_KEY $MY_API_KEY"
    assert SECRET not in repr(masked(script(tmp_path, command)))
    assert SECRET not in repr(masked(script(tmp_path, f"{command}; exit 3")))
    assert SECRET not in repr(masked(script(tmp_path, "echo $MY_API_KEY")))


@pytest.mark.parametrize("length", [480, 490, 495, 499])
@pytest.mark.parametrize("end", ["; exit 3", ""])
def test_no_half_of_a_secret_is_left_where_a_complaint_is_cut(tmp_path: Path, length: int, end: str) -> None:
    command = f"head -c {length} /dev/zero | tr '\\0' x; printf '%s' $MY_API_KEY{end}"
    assert SECRET[:5] not in masked(script(tmp_path, command)).reasoning


def test_no_half_of_a_secret_is_left_in_the_log(tmp_path: Path) -> None:
    told: list[str] = []
    command = "head -c 490 /dev/zero | tr '\\0' x >&2; printf '%s' $MY_API_KEY >&2; echo '{\"score\": 1}'"
    assess(code(command), "x", tools(root=tmp_path, environ=ENVIRON, log=told.append))
    assert SECRET[:5] not in Redactor([SECRET]).text(told[0])


@pytest.mark.parametrize("colour", ["\x1b[0m", "\x1b[31m", "\x1b]8;;\x07"])
def test_secret_with_a_colour_inside_is_not_shown(colour: str) -> None:
    coloured = SECRET[:8] + colour + SECRET[8:]
    found = assessment_of(
        ContainsEvaluator(name="c", type="contains", value="x"),
        Score(0.0, hits=(coloured,), misses=(coloured,), reasoning=coloured),
        0.8,
    )
    clean = masked(found.result)
    assert SECRET not in printable(clean.reasoning)
    assert SECRET not in printable("".join((*clean.hits, *clean.misses)))


def test_secret_with_a_colour_inside_is_not_shown_on_the_command_line(repository: Path) -> None:
    program = (
        "import json, os\nkey = os.environ['MY_API_KEY']\n"
        "print(json.dumps({'score': 0, 'misses': [key[:8] + '\\x1b[0m' + key[8:]]}))\n"
    )
    write(
        repository,
        {
            ".agentv/targets.yaml": "$schema: agentv-targets-v2.2\n"
            "targets: [{name: default, provider: mock, response: hi}]\n",
            "judge.py": program,
            "x.yaml": "$schema: agentv-eval-v2\nevalcases:\n  - id: one\n    expected_outcome: x\n"
            "    input_messages: [{role: user, content: hi}]\n"
            "    expected_messages: [{role: assistant, content: hi}]\n"
            "    evaluators: [{name: c, type: code, script: ./judge.py}]\n",
        },
    )
    done = run_process("eval", "x.yaml", cwd=repository, env=ENVIRON)
    assert done.code == 1
    assert SECRET not in done.out + done.err


def test_secret_at_the_cut_of_a_long_stderr_is_masked_as_a_whole(tmp_path: Path) -> None:
    for length in range(MAX_PRINTED * 2 // 5 - 20, MAX_PRINTED * 2 // 5 + 2, 4):
        said = "x" * length + SECRET + "y" * MAX_PRINTED
        outcome = script(tmp_path, "echo '{\"score\": 1}'").model_copy(update={"stderr": said})
        assert "sk-" not in str(masked(outcome).stderr)


# --- Patterns ---


@pytest.mark.parametrize(
    ("pattern", "answer"),
    [
        ("log{e}", "lo"),
        ("Dear {s}", "Dear Xx"),
        ("id {i}", "id"),
        ("day{d}", "da"),
        ("(?:refund){e<=9}", "sorry"),
    ],
)
def test_braces_that_repeat_nothing_are_text_as_in_pythons_syntax(pattern: str, answer: str) -> None:
    outcome = assess(RegexEvaluator(name="r", type="regex", value=pattern), answer)
    assert (outcome.status, outcome.score) == ("ok", 0.0)


@pytest.mark.parametrize(
    ("pattern", "answer"),
    [
        (r"(x+x+)+y", "x" * 5000),
        (r"^(([a-z])+.)+[A-Z]([a-z])+$", "a" * 5000),
        (r"(.*)(.*)(.*)(.*)(.*)z$", "a" * 5000),
        (r"(?:a*)*b", "a" * 100_000),
        (r"(\w+\s*)+:", "word " * 2000),
        (r"(?:(?:x{1,1000}){1,1000}){1,1000}y", "x" * 2000),
    ],
)
def test_pattern_ends_whatever_it_meets(pattern: str, answer: str) -> None:
    program = (
        "from tests.evaluate.builders import assess\n"
        "from agentv_ci.contracts.evaluators import RegexEvaluator\n"
        f"print(assess(RegexEvaluator(name='r', type='regex', value={pattern!r}), {answer!r}).score)"
    )
    assert ends(program) == "0.0"


@pytest.mark.parametrize("value", ["\\", "(?", "(?P<", "[", "a**", "\x00", "(?#", "\\N{", "(?R)", "{", "\\p{x"])
def test_odd_pattern_has_a_score_or_an_error(value: str) -> None:
    assert assess(RegexEvaluator(name="r", type="regex", value=value), "a" * 100).status in ("ok", "error")


# --- Texts ---


@settings(deadline=None, derandomize=True, max_examples=100)
@given(well_formed_text.filter(bool), any_text)
def test_no_text_breaks_an_evaluator_of_text(value: str, answer: str) -> None:
    found = hostile_grade(
        ContainsEvaluator(name="a", type="contains", value=value, case_sensitive=False),
        ContainsAnyEvaluator(name="b", type="contains_any", value=(value, value)),
        EqualsEvaluator(name="c", type="equals", value=value),
        IsJsonEvaluator(name="d", type="is_json"),
        SimilarityEvaluator(name="e", type="similarity", metric="levenshtein", reference=value + "x"),
        SimilarityEvaluator(name="f", type="similarity", metric="rouge_l", reference=value + "x"),
        SimilarityEvaluator(name="g", type="similarity", metric="token_f1", reference=value + "x"),
        SimilarityEvaluator(name="h", type="similarity", metric="bleu", reference=value + "x"),
        PlanSchemaEvaluator(name="i", schema_={"type": "string"}, format="yaml"),
        answer=answer,
    )
    assert [each.status for each in found.results] == ["ok"] * 9
    assert all(0.0 <= each.score <= 1.0 for each in found.results)


@pytest.mark.parametrize(
    ("answer", "reference"),
    [
        ("👎", "👍"),
        ("!", "?"),
        ("", "?"),
        ("−", "+"),
        ("की", "का"),
        ("ไม่", "ไม้"),
    ],
)
def test_rouge_l_of_different_texts_is_not_one(answer: str, reference: str) -> None:
    assert similar("rouge_l", answer, reference).score < 1.0


@pytest.mark.parametrize(("answer", "reference"), [("+", "-"), ("", "the"), ("an", "A"), ("<", ">")])
def test_token_f1_of_different_texts_is_not_one(answer: str, reference: str) -> None:
    assert similar("token_f1", answer, reference).score < 1.0


@pytest.mark.parametrize("metric", ["levenshtein", "rouge_l", "token_f1", "bleu"])
def test_longest_texts_are_compared_in_time(metric: str) -> None:
    program = (
        "import random\n"
        "from tests.evaluate.builders import assess\n"
        "from agentv_ci.contracts.evaluators import SimilarityEvaluator\n"
        "random.seed(1)\n"
        "one, other = (''.join(random.choices('ab ', k=50_000)) for _ in range(2))\n"
        f"evaluator = SimilarityEvaluator(name='s', type='similarity', metric='{metric}', reference='x' + one[1:])\n"
        "print(assess(evaluator, other).status)"
    )
    assert ends(program) == "ok"


# --- Data ---


@pytest.mark.parametrize("answer", ["1" * 5000, "[" * 250 + "]" * 250, "-" + "9" * 4301])
def test_whatever_is_json_is_json(answer: str) -> None:
    assert assess(IsJsonEvaluator(name="j", type="is_json"), answer).score == 1.0


def test_number_too_large_for_a_float_is_not_null() -> None:
    assert field('{"v": 1e999}', None).score == 0.0
    assert assess(PlanSchemaEvaluator(name="s", schema_={"type": "null"}, format="json"), "1e999").score == 0.0


def test_large_whole_numbers_are_compared_exactly() -> None:
    assert field('{"v": 9007199254740993}', 9007199254740992, match="numeric_tolerance", tolerance=0).score == 0.0


def test_number_is_near_itself_however_large() -> None:
    large = int("1" * 400)
    assert field(f'{{"v": {large}}}', large, match="numeric_tolerance", tolerance=1).score == 1.0


@pytest.mark.parametrize(
    ("value", "given"),
    [
        ("2030-01", {"match": "date"}),
        ("soon", {"match": "date"}),
        (None, {"match": "date"}),
        ("about 5", {"match": "numeric_tolerance", "tolerance": 1}),
        (None, {"match": "numeric_tolerance", "tolerance": 1}),
    ],
)
def test_reference_that_no_answer_can_meet_is_an_error_and_no_zero(value: Any, given: dict[str, Any]) -> None:
    outcome = field(json.dumps({"v": value}), value, **given)
    assert outcome.status == "error" or outcome.score == 1.0


@settings(deadline=None, derandomize=True, max_examples=100)
@given(any_text, st.sampled_from(["exact", "numeric_tolerance", "date"]))
def test_no_value_breaks_the_comparison_of_fields(value: str, match: str) -> None:
    reference = "12.5" if match == "numeric_tolerance" else "2030-01-02"
    assert field(json.dumps({"v": value}), reference, match=match).status == "ok"


@pytest.mark.parametrize(
    "program",
    [
        pytest.param(
            "print(assess(PlanSchemaEvaluator(name='s', schema_={'uniqueItems': True}, format='json'),"
            " json.dumps([{'a': n} for n in range(10_000)])).status)",
            id="unique-items",
        ),
        pytest.param(
            "print(assess(PlanSchemaEvaluator(name='s', schema_={'type': 'array'}, format='yaml'),"
            " 'a: &a [x]\\n' + 'b: *a\\n' * 50_000).status)",
            id="aliases",
        ),
        pytest.param(
            "print(assess(PlanSchemaEvaluator(name='s', schema_={'items': {'type': 'string'}}, format='json'),"
            " json.dumps(list(range(20_000)))).status)",
            id="violations",
        ),
    ],
)
def test_schema_ends_whatever_it_checks(program: str) -> None:
    imports = (
        "import json\nfrom tests.evaluate.builders import assess\n"
        "from agentv_ci.contracts.plan import PlanSchemaEvaluator\n"
    )
    assert ends(imports + program) in ("ok", "error")


def test_violations_are_listed_in_the_order_of_the_answer() -> None:
    schema: JsonObject = {"items": {"type": "string"}}
    outcome = assess(PlanSchemaEvaluator(name="s", schema_=schema, format="json"), json.dumps(list(range(12))))
    assert [miss.partition(":")[0] for miss in outcome.misses] == [f"$[{number}]" for number in range(12)]


def test_violation_does_not_hold_the_whole_answer() -> None:
    answer = json.dumps(["x" * 1000] * 1000)
    outcome = assess(PlanSchemaEvaluator(name="s", schema_={"type": "object"}, format="json"), answer)
    assert sum(map(len, outcome.misses)) < 10_000


def test_price_is_a_multiple_of_a_cent() -> None:
    outcome = assess(PlanSchemaEvaluator(name="s", schema_={"multipleOf": 0.01}, format="json"), "19.99")
    assert outcome.score == 1.0


# --- Tools ---


@pytest.mark.parametrize("mode", ["superset", "subset", "in_order", "exact"])
def test_long_trajectory_of_one_tool_has_a_score(mode: str) -> None:
    program = (
        "from tests.evaluate.evaluators.test_hostile_scores import ToolCall, calls\n"
        f"outcome = calls('{mode}', [{{'tool': 'a'}}] * 1500, [ToolCall(tool='a')] * 1500)\n"
        "print(outcome.status, outcome.score)"
    )
    assert ends(program) == "ok 1.0"


def test_many_calls_are_compared_with_few() -> None:
    made = [ToolCall(tool="a")] * 3000 + [ToolCall(tool="b")]
    assert calls("subset", [{"tool": "b"}], made).score == pytest.approx(1 / 3001)
    assert calls("superset", [{"tool": "b"}], made).score == 1.0
    assert calls("in_order", [{"tool": "a"}, {"tool": "b"}], made).score == 1.0


# --- Limits ---


def test_limit_that_is_known_to_be_broken_is_a_miss_though_another_is_not_measured() -> None:
    limits = TokenUsageEvaluator(name="t", type="token_usage", max_total=10, max_output=5)
    found = grade(
        plan_case(limits, LatencyEvaluator(name="l", type="latency", max_ms=9)),
        measured(usage=Usage(total_tokens=100), duration_ms=1),
    )
    assert (found.results[0].status, found.results[0].score) == ("ok", 0.0)


def test_tokens_in_all_are_known_when_both_kinds_are() -> None:
    limits = TokenUsageEvaluator(name="t", type="token_usage", max_total=200)
    assert assess(limits, measured(usage=Usage(input_tokens=60, output_tokens=60))).score == 1.0


def test_cost_added_up_by_its_agent_is_compared_without_the_dust_of_binary_fractions() -> None:
    assert assess(CostEvaluator(name="c", type="cost", max_usd=0.3), measured(cost_usd=0.1 + 0.2)).score == 1.0


@pytest.mark.parametrize(
    ("evaluator", "response", "limit"),
    [
        (LatencyEvaluator(name="l", type="latency", max_ms=1234567), measured(duration_ms=1234568), "1,234,567 ms"),
        (CostEvaluator(name="c", type="cost", max_usd=0.0000003), measured(cost_usd=0.0000004), "$0.0000003"),
    ],
)
def test_limit_is_told_as_it_is_written(evaluator: PlanEvaluator, response: Response, limit: str) -> None:
    (miss,) = assess(evaluator, response).misses
    assert miss.endswith(f"at most {limit}")
    assert not miss.startswith("$0.000000,")


# --- Verdicts ---


def test_case_of_which_nothing_that_counts_was_measured_is_an_error() -> None:
    found = grade(
        plan_case(
            TokenUsageEvaluator(name="t", type="token_usage", max_total=5),
            ContainsEvaluator(name="c", type="contains", value="x", required=True, weight=0),
        ),
        "x",
    )
    assert found.verdict == "error"


@pytest.mark.parametrize("score", [float("nan"), -0.0, float("-inf")])
def test_score_that_is_none_is_zero(score: float) -> None:
    evaluator = ContainsEvaluator(name="c", type="contains", value="x")
    assert str(assessment_of(evaluator, Score(score), 0.8).result.score) == "0.0"
    assert str(assessment_of(evaluator.model_copy(update={"negate": True}), Score(1.0), 0.8).result.score) == "0.0"


@settings(deadline=None, derandomize=True, max_examples=50)
@given(st.lists(st.tuples(st.booleans(), st.floats(0, 1.7e308)), min_size=1, max_size=5))
def test_no_weights_break_the_mean(parts: list[tuple[bool, float]]) -> None:
    evaluators = [
        ContainsEvaluator(name=str(number), type="contains", value="x" if is_there else "y", weight=weight)
        for number, (is_there, weight) in enumerate(parts)
    ]
    assert 0.0 <= grade(plan_case(*evaluators), "x").score <= 1.0


# --- Documents ---

EVAL = """\
$schema: agentv-eval-v2
evalcases:
  - id: one
    expected_outcome: x
    input_messages: [{{role: user, content: hi}}]
    expected_messages: [{messages}]
    evaluators: [{evaluator}]
"""

NEVER_NEAR = (
    "{name: f, type: field_accuracy, reference: {a: many}, fields: [{path: a, match: numeric_tolerance, tolerance: 1}]}"
)


@pytest.mark.parametrize(
    ("messages", "evaluator"),
    [
        ("{role: assistant, content: text}", "{name: f, type: field_accuracy, fields: [{path: a}]}"),
        ("{role: user, content: text}", "{name: s, type: similarity, metric: bleu}"),
        ("{role: assistant, content: '  '}", "{name: s, type: similarity, metric: bleu}"),
        (
            "{role: assistant, content: {a: 1}}, {role: assistant, content: {}}",
            "{name: f, type: field_accuracy, fields: [{path: a}]}",
        ),
        (
            "{role: assistant, content: x}",
            "{name: f, type: field_accuracy, reference: {a: soon}, fields: [{path: a, match: date}]}",
        ),
        (
            "{role: assistant, content: x}",
            NEVER_NEAR,
        ),
    ],
)
def test_evaluator_that_has_nothing_to_compare_with_is_found_before_the_run(
    repository: Path, messages: str, evaluator: str
) -> None:
    write(repository, {"x.yaml": EVAL.format(messages=messages, evaluator=evaluator)})
    done = run_process("validate", "x.yaml", cwd=repository)
    assert "AV320" in done.out
    assert done.code == 1


# --- What people see ---


@settings(deadline=None, derandomize=True, max_examples=50)
@given(well_formed_text, well_formed_text)
def test_every_outcome_can_be_written_into_a_row(hit: str, value: str) -> None:
    outcome = assess(EqualsEvaluator(name="e", type="equals", value=value), hit)
    assert outcome.model_dump(mode="json")["status"] == "ok"
