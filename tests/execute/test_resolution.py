"""Environment references become values, defaults come from the provider's variables, and invalid values are named."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentv_ci.errors import MissingVariables, UsageError
from agentv_ci.execute.resolution import resolve_targets
from tests.execute.builders import target

OPENAI = {"provider": "openai", "model": "gpt-mock"}
LOCAL = {**OPENAI, "base_url": "http://127.0.0.1:1/v1"}
CLI = {"provider": "cli", "command_template": "echo {PROMPT}"}
AZURE = {"provider": "azure-openai"}
CLAUDE = {"provider": "anthropic", "model": "m"}
GEMINI = {"provider": "gemini"}


def resolved(environ: dict[str, str], **settings: Any) -> tuple[dict[str, Any], list[str]]:
    """Return the fields of a resolved target, and the warnings."""
    warned: list[str] = []
    (found,) = resolve_targets({"it": target(**settings)}, environ, warned.append).values()
    return found.model_dump(exclude_none=True, exclude={"name"}), warned


def fields(environ: dict[str, str], **settings: Any) -> dict[str, Any]:
    return resolved(environ, **settings)[0]


def refusal(environ: dict[str, str], *targets: dict[str, Any]) -> UsageError:
    with pytest.raises(UsageError) as caught:
        resolve_targets({str(number): target(**settings) for number, settings in enumerate(targets)}, environ)
    return caught.value


def test_a_target_without_references_is_unchanged() -> None:
    given = target(**LOCAL, temperature=0.5, extra_body={"stop": None, "n": 1}, headers={"x": "y"})
    mock = target(provider="mock", responses={"one": "42"})
    assert resolve_targets({"evals/targets.yaml#a": given, "b": mock}, {}) == {"evals/targets.yaml#a": given, "b": mock}


@pytest.mark.parametrize("written", ["${{MY_KEY}}", "  ${{   MY_KEY   }}  "])
@pytest.mark.parametrize("value", ["12345678", " 12345678\r\n"])
def test_a_reference_becomes_the_stripped_value_as_text_where_text_is_expected(written: str, value: str) -> None:
    assert fields({"MY_KEY": value}, **LOCAL, api_key=written)["api_key"] == "12345678"


def test_references_are_found_in_maps_and_lists() -> None:
    environ = {"ORG": "org-1", "CODE": "503", "EFFORT": "low", "URL": "http://127.0.0.1:1/health"}
    headers = {"x-org": "${{ ORG }}", "x-plain": "y"}
    body = {"reasoning": {"effort": "${{ EFFORT }}"}, "list": ["${{ EFFORT }}"]}
    found = fields(environ, **LOCAL, headers=headers, retry_status_codes=[429, "${{ CODE }}"], extra_body=body)
    assert found["headers"] == {"x-org": "org-1", "x-plain": "y"}
    assert found["retry_status_codes"] == (429, 503)
    assert found["extra_body"] == {"reasoning": {"effort": "low"}, "list": ["low"]}
    probe = fields(environ, **CLI, healthcheck={"type": "http", "url": "${{ URL }}"})["healthcheck"]
    assert probe["url"] == "http://127.0.0.1:1/health"


@pytest.mark.parametrize("written", ["x ${{ A }}", "${{ A }}${{ B }}", "${{ A B }}", "$A", "${A}"])
def test_only_a_whole_value_is_a_reference_and_values_are_not_resolved_again(written: str) -> None:
    assert fields({"A": "a", "B": "b"}, **CLI, env={"X": written})["env"] == {"X": written}
    assert fields({"A": "${{ B }}", "B": "b"}, **CLI, env={"X": "${{ A }}"})["env"] == {"X": "${{ B }}"}


@pytest.mark.parametrize(
    ("kind", "field", "value", "expected"),
    [
        (LOCAL, "workers", "4", 4),
        (LOCAL, "workers", "2.0", 2),
        (LOCAL, "temperature", "0.25", 0.25),
        (LOCAL, "max_retries", "0", 0),
        (LOCAL, "retry_backoff_factor", "1.5", 1.5),
        (CLI, "timeout_seconds", "1.5", 1.5),
        (CLI, "verbose", "true", True),
        (CLI, "keep_temp_files", "0", False),
        (LOCAL, "workers", "four", None),
        (LOCAL, "workers", "0", None),
        (LOCAL, "workers", "1.5", None),
        (LOCAL, "workers", "${{ OTHER }}", None),
        (LOCAL, "temperature", "nan", None),
        (LOCAL, "max_tokens_param", "max_words", None),
        (LOCAL, "provider_batching", "perhaps", None),
        (CLI, "timeout_seconds", "soon", None),
    ],
)
def test_numbers_and_flags_are_read_from_text_and_invalid_ones_are_named_without_the_value(
    kind: dict[str, Any], field: str, value: str, expected: object
) -> None:
    written = {**kind, field: "${{ X }}"}
    if expected is not None:
        assert fields({"X": value}, **written)[field] == expected
        return
    error = refusal({"X": value}, written)
    assert error.message.startswith(f"target 'it': invalid {field} (read from X): ")
    assert (error.exit_code, error.hint) == (2, None)
    assert len(value) < 4 or value not in error.message
    assert ("constrained" in error.message, "String should match" in error.message) == (False, False)


@pytest.mark.parametrize("environ", [{}, {"X": ""}, {"X": " \n"}])
def test_other_settings_without_their_variable_are_ignored_with_a_warning(environ: dict[str, str]) -> None:
    found, warned = resolved(environ, **LOCAL, temperature="${{ X }}", workers="${{ X }}")
    assert {"temperature", "workers"}.isdisjoint(found)
    state = "empty" if "X" in environ else "not set"
    assert warned == [f"it: workers is ignored: X is {state}", f"it: temperature is ignored: X is {state}"]


@pytest.mark.parametrize("environ", [{}, {"X": " \n"}])
@pytest.mark.parametrize(
    ("provider", "field"),
    [
        *(("openai", field) for field in ("api_key", "base_url", "model")),
        *(("codex", field) for field in ("model", "executable", "profile", "cwd")),
        *(("gemini", field) for field in ("model", "base_url")),
        ("vscode-copilot", "command"),
        ("azure-openai", "version"),
    ],
)
def test_settings_that_decide_who_answers_are_never_ignored(provider: str, field: str, environ: dict[str, str]) -> None:
    keys = {**OF_AZURE, "OPENAI_API_KEY": "k", "GOOGLE_API_KEY": "k"}
    model = {"model": "m"} if provider == "openai" else {}
    error = refusal({**keys, **environ}, {"provider": provider, **model, field: "${{ X }}"})
    state = "set but empty" if "X" in environ else "not set"
    assert error.message == f"target 'it' needs environment variables that are {state}: X ({field})"
    assert (type(error), error.hint) == (MissingVariables, "set them in the environment or in a .env file")


def test_a_provider_may_lack_its_own_variable_of_the_model() -> None:
    found, warned = resolved({"GOOGLE_API_KEY": "k"}, **GEMINI, model="${{ GOOGLE_GEMINI_MODEL }}")
    assert (found["model"], warned) == ("gemini-3.5-flash-lite", [])


def test_empty_variables_are_told_apart_from_those_that_are_not_set() -> None:
    error = refusal({"B": " "}, {**LOCAL, "headers": {"a": "${{ A }}", "b": "${{ B }}"}})
    google = "GOOGLE_API_KEY or GEMINI_API_KEY or GOOGLE_GENERATIVE_AI_API_KEY"
    says = "target 'it' needs environment variables that are"
    assert error.message.splitlines() == [f"{says} not set: A (headers)", f"{says} set but empty: B (headers)"]
    error = refusal({"GEMINI_API_KEY": ""}, GEMINI)
    assert error.message == f"{says} set but empty: {google} (api_key)"


def test_all_missing_variables_and_invalid_values_are_named_together() -> None:
    says = "needs environment variables that are not set:"
    google = "GOOGLE_API_KEY or GEMINI_API_KEY or GOOGLE_GENERATIVE_AI_API_KEY"
    azure = "AZURE_OPENAI_API_KEY (api_key), AZURE_DEPLOYMENT_NAME (deployment), AZURE_OPENAI_ENDPOINT (endpoint)"
    references = {"base_url": "${{ A }}", "api_key": "${{ K }}", "headers": {"a": "${{ ORG }}"}}
    error = refusal(
        {"SET": "value"},
        {**AZURE, "name": "azure"},
        {**CLAUDE, "name": "claude"},
        {**GEMINI, "name": "gemini"},
        {**OPENAI, "name": "gpt", **references},
        {**LOCAL, "name": "fine", "api_key": "${{ SET }}"},
        {**LOCAL, "name": "wrong", "workers": "${{ SET }}", "temperature": "${{ SET }}"},
        {**CLI, "name": "tool", "command_template": "${{ K }}", "env": {"A": "${{ K }}", "B": "${{ OTHER }}"}},
        {**CLAUDE, "name": "header", "headers": {"Authorization": "${{ T }}"}},
    )
    *missing, workers, temperature = error.message.splitlines()
    assert missing == [
        f"target 'azure' {says} {azure}",
        f"target 'claude' {says} ANTHROPIC_API_KEY (api_key)",
        f"target 'gemini' {says} {google} (api_key)",
        f"target 'gpt' {says} K (api_key), A (base_url), ORG (headers)",
        f"target 'tool' {says} K (command_template, env), OTHER (env)",
        f"target 'header' {says} T (headers)",
    ]
    assert workers.startswith("target 'wrong': invalid workers (read from SET): ")
    assert temperature.startswith("target 'wrong': invalid temperature (read from SET): ")


@settings(max_examples=10)
@given(st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=8))
def test_no_value_is_ever_shown(secret: str) -> None:
    environ = {"SECRET": f"canary-{secret}-canary"}
    given = {**LOCAL, "workers": "${{ SECRET }}", "temperature": "${{ SECRET }}", "api_key": "${{ MISSING }}"}
    for error in (refusal(environ, given), refusal({**environ, "MISSING": "sk-1"}, given)):
        assert "canary-" not in f"{error.message} {error.hint}"


OF_AZURE = {"AZURE_OPENAI_ENDPOINT": "here", "AZURE_OPENAI_API_KEY": "k", "AZURE_DEPLOYMENT_NAME": "d"}
OF_AZURE |= {"AZURE_OPENAI_API_VERSION": "2024-10-21"}


@pytest.mark.parametrize(
    ("given", "environ", "expected"),
    [
        (OPENAI, {"OPENAI_API_KEY": "k\n"}, {"api_key": "k", "base_url": "https://api.openai.com/v1"}),
        (OPENAI, {"OPENAI_API_KEY": "k", "OPENAI_BASE_URL": " "}, {"base_url": "https://api.openai.com/v1"}),
        (OPENAI, {"OPENAI_BASE_URL": "http://a/v1"}, {"base_url": "http://a/v1", "api_key": None}),
        (LOCAL, {"OPENAI_BASE_URL": "http://a"}, {"base_url": LOCAL["base_url"]}),
        ({**LOCAL, "api_key": "${{ MINE }}"}, {"OPENAI_API_KEY": "k", "MINE": "m"}, {"api_key": "m"}),
        ({**OPENAI, "base_url": " http://a/v1 "}, {}, {"base_url": "http://a/v1"}),
        ({**OPENAI, "provider": "ollama"}, {}, {"base_url": "http://localhost:11434/v1"}),
        ({**OPENAI, "provider": "vllm"}, {}, {"base_url": "http://localhost:8000/v1"}),
        ({**OPENAI, "provider": "vllm"}, {"OPENAI_BASE_URL": "http://a/v1"}, {"base_url": "http://a/v1"}),
        (AZURE, OF_AZURE, {"endpoint": "here", "api_key": "k", "deployment": "d", "version": "2024-10-21"}),
        ({**AZURE, "endpoint": "https://here.openai.azure.com/openai/v1/"}, OF_AZURE, {"version": None}),
        ({**AZURE, "base_url": "https://mine.example"}, OF_AZURE, {"endpoint": None, "api_key": "k"}),
        ({**AZURE, "deployment": "d", "base_url": "https://mine.example"}, {}, {"api_key": None}),
        ({**AZURE, "deployment": "d", "endpoint": "http://127.0.0.1:1"}, {}, {"api_key": None}),
        (CLAUDE, {"ANTHROPIC_API_KEY": "k"}, {"base_url": "https://api.anthropic.com", "api_key": "k"}),
        (CLAUDE, {"ANTHROPIC_BASE_URL": "http://a"}, {"base_url": "http://a", "api_key": None}),
        *(
            (GEMINI, {name: "k", "GOOGLE_GEMINI_MODEL": "m"}, {"api_key": "k", "model": "m"})
            for name in ("GOOGLE_API_KEY", "GEMINI_API_KEY", "GOOGLE_GENERATIVE_AI_API_KEY")
        ),
        *(
            ({**CLAUDE, "headers": {header: "${{ T }}"}}, {"T": "t", "ANTHROPIC_API_KEY": "k"}, {"api_key": None})
            for header in ("Authorization", "api-key", "X-Api-Key")
        ),
        ({"provider": "codex"}, {"AGENTV_CODEX_LOG_FORMAT": "json"}, {"log_format": "json"}),
    ],
)
def test_defaults_come_from_the_variables_of_the_provider(
    given: dict[str, Any], environ: dict[str, str], expected: dict[str, Any]
) -> None:
    found = fields(environ, **given)
    assert {name: found.get(name) for name in expected} == expected


@pytest.mark.parametrize("address", [None, "https://api.openai.com/v1", "https://api.openai.com/v1/"])
@pytest.mark.parametrize("environ", [{}, {"OPENAI_API_KEY": ""}])
def test_the_vendors_own_address_requires_a_key(address: str | None, environ: dict[str, str]) -> None:
    error = refusal(environ, OPENAI if address is None else {**OPENAI, "base_url": address})
    state = "set but empty" if "OPENAI_API_KEY" in environ else "not set"
    assert error.message == f"target 'it' needs environment variables that are {state}: OPENAI_API_KEY (api_key)"


@pytest.mark.parametrize(
    ("given", "environ", "warnings"),
    [
        ({"provider": "openrouter"}, {}, 1),
        ({"provider": "openrouter"}, {"OPENAI_BASE_URL": "http://127.0.0.1:1"}, 0),
        ({"provider": "openrouter", "api_key": "own"}, {}, 0),
        ({"provider": "openai", "base_url": "http://127.0.0.1:1"}, {}, 0),
        ({"provider": "openai"}, {}, 0),
    ],
)
def test_a_key_that_goes_to_a_default_address_of_another_vendor_is_a_warning(
    given: dict[str, Any], environ: dict[str, str], warnings: int
) -> None:
    _, warned = resolved({"OPENAI_API_KEY": "k", **environ}, model="m", **given)
    said = "it: OPENAI_API_KEY is sent to https://openrouter.ai/api/v1; set the target's api_key to send another key"
    assert warned == [said] * warnings


ADDRESS = "must begin with http:// or https:// and a host"
QUERY = "must not have a query or a fragment; use extra_body or headers"
HEADER = "this header cannot be set"
CHARACTERS = "has characters that are not allowed in a header"
QUOTED = "{PROMPT} is quoted already; remove the quotes or the backslash around it"
COMMAND = {**CLI, "command_template": "${{ X }}"}
NO_PROMPT = "it has neither {PROMPT} nor {PROMPT_FILE}; set stdin: prompt, or prompt: none if it needs no prompt"
REFERENCE = "the value is an environment reference itself"


@pytest.mark.parametrize(
    ("given", "value", "field", "reason"),
    [
        *(
            ({**OPENAI, "base_url": "${{ X }}"}, address, "base_url", ADDRESS)
            for address in ("localhost:1/v1", "ftp://x", "http://", "http:///v1", "http://.", "http://.x", "http://a b")
        ),
        ({**OPENAI, "base_url": "${{ X }}"}, "https://a/v1?key=1", "base_url", QUERY),
        ({**OPENAI, "base_url": "${{ X }}"}, "https://a/v1#b", "base_url", QUERY),
        *(
            ({**AZURE, "deployment": "d", "api_key": "k", "endpoint": "${{ X }}"}, address, "endpoint", ADDRESS)
            for address in ("ftp://x", "https://", "my resource", "http://[::1", "http://h:99999")
        ),
        *(
            ({**LOCAL, "api_key": "${{ X }}"}, value, "api_key", CHARACTERS)
            for value in ("schlüssel-canary", "two\nlines-canary", "\x00canary")
        ),
        ({**LOCAL, "headers": {"x-mine": "${{ X }}"}}, "canary-ü", "headers.x-mine", CHARACTERS),
        *(
            ({**LOCAL, "headers": {name: "${{ X }}"}}, "3", f"headers.{name}", HEADER)
            for name in ("Content-Length", "transfer-encoding", "two words", "a:b", "")
        ),
        ({**LOCAL, "retry_status_codes": ["${{ X }}"]}, "${{ Y }}", "retry_status_codes", REFERENCE),
        ({**LOCAL, "retry_status_codes": [429, "${{ X }}"]}, "42", "retry_status_codes.1", None),
        (COMMAND, "tool {PROMTP} {PROMPT}", "command_template", "unknown placeholder {PROMTP}"),
        (COMMAND, "agent '{PROMPT}'", "command_template", QUOTED),
        (COMMAND, "agent {prompt} {PROMPT}", "command_template", "unknown placeholder {prompt}"),
        (COMMAND, "agent", "command_template", NO_PROMPT),
        ({**COMMAND, "command_template": "agent", "stdin": "${{ X }}"}, "question", "stdin", None),
        ({"provider": "codex", "log_format": "${{ X }}"}, "xml", "log_format", None),
    ],
)
def test_an_invalid_value_is_named_with_its_field_and_variable(
    given: dict[str, Any], value: str, field: str, reason: str | None
) -> None:
    message = refusal({"X": value}, given).message
    source = " (read from X)" if given.get(field) == "${{ X }}" else ""
    expected = f"target 'it': invalid {field}{source}: {reason or ''}"
    assert message == expected if reason else message.startswith(expected)
    assert "canary" not in message


def test_an_endpoint_and_its_alias_cannot_be_set_together() -> None:
    given = {**AZURE, "deployment": "d", "api_key": "k", "endpoint": "here", "base_url": "http://127.0.0.1:1"}
    said = "target 'it': invalid base_url: it is an alias of endpoint, which is set too"
    assert refusal({}, given).message == said
