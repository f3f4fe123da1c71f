"""References to the environment become values, all of them or none."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter

from agentv_ci.contracts.api_targets import OpenAITarget
from agentv_ci.contracts.targets import CliTarget, MockTarget, Target
from agentv_ci.errors import UsageError
from agentv_ci.execute.resolution import resolve_targets

OPENAI = {"name": "gpt", "provider": "openai", "model": "gpt-mock"}
CLI = {"name": "tool", "provider": "cli", "command_template": "echo {PROMPT}"}
LOCAL = {**OPENAI, "base_url": "http://127.0.0.1:1/v1"}


def made(settings: dict[str, Any]) -> Target:
    return TypeAdapter[Target](Target).validate_python(settings)


def openai(environ: dict[str, str], **settings: Any) -> OpenAITarget:
    """Resolve a target of an OpenAI-compatible server."""
    found = resolve_targets({"gpt": made({**LOCAL, **settings})}, environ)["gpt"]
    assert isinstance(found, OpenAITarget)
    return found


def cli(environ: dict[str, str], **settings: Any) -> CliTarget:
    found = resolve_targets({"tool": made({**CLI, **settings})}, environ)["tool"]
    assert isinstance(found, CliTarget)
    return found


def refusal(environ: dict[str, str], *targets: dict[str, Any]) -> UsageError:
    with pytest.raises(UsageError) as caught:
        resolve_targets({str(number): made(settings) for number, settings in enumerate(targets)}, environ)
    return caught.value


def test_a_target_without_references_stays_as_it_is() -> None:
    target = made({**LOCAL, "temperature": 0.5, "extra_body": {"stop": None, "n": 1}, "headers": {"x": "y"}})
    assert resolve_targets({"gpt": target}, {}) == {"gpt": target}


def test_every_target_keeps_its_key() -> None:
    targets = {"evals/targets.yaml#a": made(CLI), "b": made({"name": "mock", "provider": "mock"})}
    assert list(resolve_targets(targets, {})) == ["evals/targets.yaml#a", "b"]


def test_a_reference_becomes_the_value() -> None:
    assert openai({"MY_KEY": "sk-1"}, api_key="${{ MY_KEY }}").api_key == "sk-1"


@pytest.mark.parametrize("written", ["${{MY_KEY}}", "${{ MY_KEY }}", "  ${{   MY_KEY   }}  "])
def test_spaces_in_a_reference_do_not_matter(written: str) -> None:
    assert openai({"MY_KEY": "sk-1"}, api_key=written).api_key == "sk-1"


def test_spaces_and_line_breaks_around_a_value_are_left_out() -> None:
    assert openai({"MY_KEY": " sk-1\r\n"}, api_key="${{ MY_KEY }}").api_key == "sk-1"


def test_references_are_found_in_maps_and_lists() -> None:
    environ = {"ORG": "org-1", "CODE": "503", "EFFORT": "low", "URL": "http://127.0.0.1:1/health"}
    found = openai(
        environ,
        headers={"x-org": "${{ ORG }}", "x-plain": "y"},
        retry_status_codes=[429, "${{ CODE }}"],
        extra_body={"reasoning": {"effort": "${{ EFFORT }}"}, "list": ["${{ EFFORT }}"]},
    )
    assert found.headers == {"x-org": "org-1", "x-plain": "y"}
    assert found.retry_status_codes == (429, 503)
    assert found.extra_body == {"reasoning": {"effort": "low"}, "list": ["low"]}
    probe = cli(environ, healthcheck={"type": "http", "url": "${{ URL }}"}).healthcheck
    assert probe is not None
    assert probe.type == "http"
    assert probe.url == "http://127.0.0.1:1/health"


def test_a_value_that_looks_like_a_reference_is_not_resolved_again() -> None:
    assert cli({"A": "${{ B }}", "B": "b"}, env={"X": "${{ A }}"}).env == {"X": "${{ B }}"}


@pytest.mark.parametrize("written", ["x ${{ A }}", "${{ A }}${{ B }}", "${{ A B }}", "$A", "${A}"])
def test_what_is_no_whole_reference_is_text(written: str) -> None:
    assert cli({"A": "a", "B": "b"}, env={"X": written}).env == {"X": written}


def test_numbers_and_flags_are_read_from_text() -> None:
    environ = {"N": "4", "T": "0.25", "MS": "1500", "F": "1.5", "YES": "true", "NO": "0"}
    found = openai(
        environ,
        workers="${{ N }}",
        temperature="${{ T }}",
        max_output_tokens="${{ N }}",
        max_retries="${{ NO }}",
        retry_initial_delay_ms="${{ MS }}",
        retry_max_delay_ms="${{ MS }}",
        retry_backoff_factor="${{ F }}",
    )
    assert (found.workers, found.temperature, found.max_output_tokens, found.max_retries) == (4, 0.25, 4, 0)
    assert (found.retry_initial_delay_ms, found.retry_max_delay_ms, found.retry_backoff_factor) == (1500, 1500, 1.5)
    tool = cli(environ, timeout_seconds="${{ F }}", verbose="${{ YES }}", keep_temp_files="${{ NO }}")
    assert (tool.timeout_seconds, tool.verbose, tool.keep_temp_files) == (1.5, True, False)


def test_a_whole_number_may_be_written_with_a_point() -> None:
    assert openai({"N": "2.0"}, workers="${{ N }}").workers == 2


def test_text_that_looks_like_a_number_stays_text_where_text_is_asked_for() -> None:
    assert openai({"KEY": "12345678"}, api_key="${{ KEY }}").api_key == "12345678"


@pytest.mark.parametrize("environ", [{}, {"X": ""}, {"X": " \n"}])
def test_an_optional_setting_is_absent_when_its_variable_is_not_set(environ: dict[str, str]) -> None:
    found = openai(environ, temperature="${{ X }}", workers="${{ X }}", max_retries="${{ X }}")
    assert (found.temperature, found.workers, found.max_retries) == (None, None, None)


@pytest.mark.parametrize("environ", [{}, {"X": ""}, {"X": " \n"}])
@pytest.mark.parametrize("field", ["api_key", "base_url", "model"])
def test_key_address_and_model_are_never_silently_absent(field: str, environ: dict[str, str]) -> None:
    error = refusal({**environ, "OPENAI_API_KEY": "sk-1"}, {**OPENAI, field: "${{ X }}"})
    assert error.message == f"target 'gpt' needs environment variables that are not set: X ({field})"


def test_a_variable_of_a_map_is_never_silently_absent() -> None:
    error = refusal({}, {**CLI, "env": {"TOKEN": "${{ X }}", "PLAIN": "y"}})
    assert error.message == "target 'tool' needs environment variables that are not set: X (env)"


def test_all_missing_variables_of_all_targets_are_named_in_one_error() -> None:
    error = refusal(
        {"SET": "value"},
        {**OPENAI, "base_url": "${{ ADDRESS }}", "api_key": "${{ KEY }}", "headers": {"a": "${{ ORG }}"}},
        {**LOCAL, "name": "fine", "api_key": "${{ SET }}"},
        {**CLI, "command_template": "${{ COMMAND }}", "env": {"A": "${{ KEY }}", "B": "${{ OTHER }}"}},
    )
    for name in ("ADDRESS", "KEY", "ORG", "COMMAND", "OTHER"):
        assert name in error.message
    assert "'gpt'" in error.message
    assert "'tool'" in error.message
    assert "'fine'" not in error.message


def test_a_variable_that_several_settings_need_is_named_once_with_all_of_them() -> None:
    error = refusal({}, {**OPENAI, "model": "${{ X }}", "base_url": "${{ X }}", "api_key": "${{ X }}"})
    (named,) = error.message.split(": ")[1:]
    assert named.count("X") == 1
    assert all(field in named for field in ("model", "base_url", "api_key"))


def test_the_hint_says_where_variables_are_set() -> None:
    assert refusal({}, {**CLI, "command_template": "${{ X }}"}).hint == "set them in the environment or in a .env file"


UNFIT = {
    "workers": ["four", "0", "-1", "1.5", "sk-not-a-number", "${{ OTHER }}"],
    "temperature": ["warm", "-1", "nan", "inf"],
    "max_output_tokens": ["0", "many"],
    "max_retries": ["-1", "x"],
    "retry_backoff_factor": ["0.5"],
    "max_tokens_param": ["max_words"],
    "provider_batching": ["perhaps"],
}


@pytest.mark.parametrize(("field", "value"), [(field, value) for field, values in UNFIT.items() for value in values])
def test_a_value_that_does_not_fit_is_an_error_that_names_the_field_and_not_the_value(field: str, value: str) -> None:
    error = refusal({"X": f"{value}"}, {**LOCAL, field: "${{ X }}"})
    assert (error.exit_code, "'gpt'" in error.message, field in error.message) == (2, True, True)
    assert len(value) < 4 or value not in error.message


@pytest.mark.parametrize("seconds", ["0", "-1", "soon"])
def test_a_time_limit_that_does_not_fit_is_an_error(seconds: str) -> None:
    assert "timeout_seconds" in refusal({"X": seconds}, {**CLI, "timeout_seconds": "${{ X }}"}).message


def test_a_status_that_does_not_fit_is_an_error() -> None:
    assert "retry_status_codes" in refusal({"X": "42"}, {**LOCAL, "retry_status_codes": [429, "${{ X }}"]}).message


def test_a_command_with_an_unknown_placeholder_is_an_error_before_anything_runs() -> None:
    error = refusal({"COMMAND": "tool {PROMTP}"}, {**CLI, "command_template": "${{ COMMAND }}"})
    assert (error.exit_code, "PROMTP" in error.message) == (2, True)


def test_several_values_that_do_not_fit_are_named_together() -> None:
    message = refusal({"X": "x"}, {**LOCAL, "workers": "${{ X }}", "temperature": "${{ X }}"}).message
    assert "workers" in message
    assert "temperature" in message


@given(st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=8))
def test_no_value_is_ever_shown(secret: str) -> None:
    environ = {"SECRET": f"canary-{secret}-canary"}
    settings = {**LOCAL, "workers": "${{ SECRET }}", "temperature": "${{ SECRET }}", "api_key": "${{ MISSING }}"}
    missing = refusal(environ, settings)
    unfit = refusal({**environ, "MISSING": "sk-1"}, settings)
    assert "canary-" not in missing.message + unfit.message + str(missing.hint) + str(unfit.hint)


def test_key_and_address_come_from_openais_variables_when_they_are_absent() -> None:
    environ = {"OPENAI_API_KEY": "sk-1\n", "OPENAI_BASE_URL": "http://127.0.0.1:1/v1"}
    found = resolve_targets({"gpt": made(OPENAI)}, environ)["gpt"]
    assert isinstance(found, OpenAITarget)
    assert (found.api_key, found.base_url) == ("sk-1", "http://127.0.0.1:1/v1")


@pytest.mark.parametrize("environ", [{}, {"OPENAI_BASE_URL": " "}])
def test_the_address_is_openais_own_when_nothing_names_another(environ: dict[str, str]) -> None:
    found = resolve_targets({"gpt": made(OPENAI)}, {**environ, "OPENAI_API_KEY": "sk-1"})["gpt"]
    assert isinstance(found, OpenAITarget)
    assert found.base_url == "https://api.openai.com/v1"


def test_what_the_target_says_wins_over_openais_variables() -> None:
    environ = {"OPENAI_API_KEY": "sk-1", "OPENAI_BASE_URL": "http://elsewhere.example", "MINE": "sk-2"}
    found = openai(environ, api_key="${{ MINE }}")
    assert (found.api_key, found.base_url) == ("sk-2", "http://127.0.0.1:1/v1")


@pytest.mark.parametrize("address", [None, "https://api.openai.com/v1", "https://api.openai.com/v1/"])
@pytest.mark.parametrize("environ", [{}, {"OPENAI_API_KEY": ""}])
def test_openai_itself_needs_a_key(address: str | None, environ: dict[str, str]) -> None:
    settings = OPENAI if address is None else {**OPENAI, "base_url": address}
    error = refusal(environ, settings)
    assert error.message == "target 'gpt' needs environment variables that are not set: OPENAI_API_KEY (api_key)"


def test_any_other_server_may_do_without_a_key() -> None:
    assert openai({}).api_key is None


def test_missing_references_and_a_missing_key_of_a_target_are_named_together() -> None:
    message = refusal({}, {**OPENAI, "model": "${{ MODEL }}"}).message
    assert "MODEL" in message
    assert "OPENAI_API_KEY" in message


def test_a_mock_needs_nothing() -> None:
    mock = made({"name": "mock", "provider": "mock", "response": "${{ X }}", "responses": {"one": "42"}})
    found = resolve_targets({"mock": mock}, {"X": "42"})["mock"]
    assert isinstance(found, MockTarget)
    assert (found.response, found.responses) == ("42", {"one": "42"})


AZURE = {"name": "azure", "provider": "azure-openai"}
CLAUDE = {"name": "claude", "provider": "anthropic", "model": "m"}
GEMINI = {"name": "gemini", "provider": "gemini"}


def test_all_missing_variables_of_a_provider_are_named_together() -> None:
    says = "needs environment variables that are not set:"
    google = "GOOGLE_API_KEY or GEMINI_API_KEY or GOOGLE_GENERATIVE_AI_API_KEY"
    azure = "AZURE_OPENAI_API_KEY (api_key), AZURE_DEPLOYMENT_NAME (deployment), AZURE_OPENAI_ENDPOINT (endpoint)"
    assert refusal({}, AZURE, CLAUDE, GEMINI).message.splitlines() == [
        f"target 'azure' {says} {azure}",
        f"target 'claude' {says} ANTHROPIC_API_KEY (api_key)",
        f"target 'gemini' {says} {google} (api_key)",
    ]


def found(environ: dict[str, str], target: dict[str, Any]) -> dict[str, Any]:
    (only,) = resolve_targets({"t": made(target)}, environ).values()
    return only.model_dump(exclude_none=True)


def test_azure_is_read_from_its_variables() -> None:
    environ = {
        "AZURE_OPENAI_ENDPOINT": "here",
        "AZURE_OPENAI_API_KEY": "k",
        "AZURE_DEPLOYMENT_NAME": "gpt",
        "AZURE_OPENAI_API_VERSION": "v1",
    }
    wanted = {"endpoint": "here", "api_key": "k", "deployment": "gpt", "version": "v1"}
    assert found(environ, AZURE) == {**AZURE, **wanted}


@pytest.mark.parametrize("name", ["GOOGLE_API_KEY", "GEMINI_API_KEY", "GOOGLE_GENERATIVE_AI_API_KEY"])
def test_gemini_takes_three_names_of_its_key_and_has_a_model_by_default(name: str) -> None:
    plain = found({name: "k"}, GEMINI)
    assert (plain["api_key"], plain["model"]) == ("k", "gemini-3.5-flash-lite")
    assert found({name: "k", "GOOGLE_GEMINI_MODEL": "other"}, GEMINI)["model"] == "other"


def test_anthropic_has_its_own_address() -> None:
    assert found({"ANTHROPIC_API_KEY": "k"}, CLAUDE)["base_url"] == "https://api.anthropic.com"
    elsewhere = found({"ANTHROPIC_BASE_URL": "http://127.0.0.1:1"}, CLAUDE)
    assert (elsewhere["base_url"], "api_key" in elsewhere) == ("http://127.0.0.1:1", False)


@pytest.mark.parametrize("header", ["Authorization", "api-key", "X-Api-Key"])
def test_header_that_identifies_stands_in_for_a_key(header: str) -> None:
    headers = {"headers": {header: "${{ TOKEN }}"}}
    assert "api_key" not in found({"TOKEN": "t"}, {**CLAUDE, **headers})
    assert "api_key" not in found({"TOKEN": "t"}, {**AZURE, "endpoint": "here", "deployment": "gpt", **headers})


@pytest.mark.parametrize(
    ("provider", "address"),
    [("ollama", "http://localhost:11434/v1"), ("vllm", "http://localhost:8000/v1")],
)
def test_name_of_a_server_brings_its_address(provider: str, address: str) -> None:
    target = {"name": "t", "provider": provider, "model": "m"}
    assert found({}, target)["base_url"] == address
    assert found({"OPENAI_BASE_URL": "http://127.0.0.1:1/v1"}, target)["base_url"] == "http://127.0.0.1:1/v1"


def test_form_of_codex_logs_may_come_from_the_environment() -> None:
    target = {"name": "t", "provider": "codex"}
    assert found({"AGENTV_CODEX_LOG_FORMAT": "json"}, target)["log_format"] == "json"
    assert "log_format" in refusal({"AGENTV_CODEX_LOG_FORMAT": "xml"}, target).message


@pytest.mark.parametrize("address", ["localhost:11434/v1", "api.example.com", "ftp://x", "http://", "http:///v1"])
def test_address_that_is_none_is_told_before_anything_is_asked(address: str) -> None:
    said = refusal({"PLACE": address}, {**OPENAI, "base_url": "${{ PLACE }}"}).message
    reason = "must begin with http:// or https:// and a host"
    assert said == f"target 'gpt': invalid base_url (read from PLACE): {reason}"


@pytest.mark.parametrize("field", ["api_key", "headers"])
@pytest.mark.parametrize("value", ["schlüssel-canary", "two\nlines-canary", "\x00canary"])
def test_value_that_no_header_can_carry_is_told_and_not_shown(field: str, value: str) -> None:
    given = "${{ SECRET }}" if field == "api_key" else {"x-mine": "${{ SECRET }}"}
    said = refusal({"SECRET": value}, {**LOCAL, field: given}).message
    assert said.startswith(f"target 'gpt': invalid {field}")
    assert "canary" not in said
