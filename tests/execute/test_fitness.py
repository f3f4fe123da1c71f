"""Values that nobody can use, and settings that are left out."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import TypeAdapter

from agentv_ci.contracts.targets import Target
from agentv_ci.errors import UsageError
from agentv_ci.execute.resolution import resolve_targets

AZURE: dict[str, Any] = {"provider": "azure-openai", "deployment": "gpt", "api_key": "k"}
NO_ADDRESS = "must begin with http:// or https:// and a host"


def resolved(environ: dict[str, str], **settings: Any) -> tuple[dict[str, Any], list[str]]:
    """Return the fields of a resolved target, and what people are told."""
    warned: list[str] = []
    made = TypeAdapter[Target](Target).validate_python({"name": "it", **settings})
    (found,) = resolve_targets({"it": made}, environ, warned.append).values()
    return found.model_dump(exclude_none=True), warned


def refusal(environ: dict[str, str] | None = None, **settings: Any) -> UsageError:
    with pytest.raises(UsageError) as caught:
        resolved(environ or {}, **settings)
    return caught.value


@pytest.mark.parametrize("endpoint", ["ftp://x", "https://", "my resource", "http://[::1", "http://h:99999"])
def test_endpoint_that_is_no_address_is_told_before_anything_is_asked(endpoint: str) -> None:
    assert refusal(**AZURE, endpoint=endpoint).message == f"target 'it': invalid endpoint: {NO_ADDRESS}"


def test_endpoint_and_base_url_are_not_given_together() -> None:
    said = refusal(**AZURE, endpoint="here", base_url="http://127.0.0.1:1").message
    assert "invalid base_url: it is an alias of endpoint" in said


def test_spaces_around_an_address_do_no_harm() -> None:
    found, _ = resolved({}, provider="openai", model="m", base_url=" http://127.0.0.1:1/v1 ")
    assert found["base_url"] == "http://127.0.0.1:1/v1"


def test_azure_elsewhere_may_do_without_a_key() -> None:
    found, _ = resolved({}, provider="azure-openai", deployment="gpt", endpoint="http://127.0.0.1:1")
    assert "api_key" not in found
    assert "AZURE_OPENAI_API_KEY" in refusal(provider="azure-openai", deployment="gpt", endpoint="here").message


def test_unfit_values_are_not_said_to_be_missing() -> None:
    assert refusal(provider="openai", model="m", base_url="nowhere").hint is None
    assert "environment" in (refusal(provider="openai", model="m").hint or "")


@pytest.mark.parametrize(
    ("provider", "field"),
    [
        ("codex", "model"),
        ("codex", "executable"),
        ("codex", "profile"),
        ("codex", "cwd"),
        ("gemini", "model"),
        ("gemini", "base_url"),
        ("vscode-copilot", "command"),
        ("azure-openai", "version"),
    ],
)
def test_who_answers_is_never_left_to_chance(provider: str, field: str) -> None:
    keys = {"GOOGLE_API_KEY": "k", "AZURE_OPENAI_API_KEY": "k", "AZURE_DEPLOYMENT_NAME": "d"}
    said = refusal({**keys, "AZURE_OPENAI_ENDPOINT": "here"}, provider=provider, **{field: "${{ NOT_SET }}"}).message
    assert said == f"target 'it' needs environment variables that are not set: NOT_SET ({field})"


def test_variable_of_the_provider_itself_may_be_absent_where_there_is_a_default() -> None:
    found, warned = resolved({"GOOGLE_API_KEY": "k"}, provider="gemini", model="${{ GOOGLE_GEMINI_MODEL }}")
    assert (found["model"], warned) == ("gemini-3.5-flash-lite", [])


def test_other_settings_are_left_out_and_people_are_told() -> None:
    environ = {"OPENAI_API_KEY": "k"}
    found, warned = resolved(environ, provider="openai", model="m", temperature="${{ HEAT }}")
    assert "temperature" not in found
    assert warned == ["it: temperature is ignored: HEAT is not set"]


def test_value_that_does_not_fit_is_told_with_its_variable() -> None:
    environ = {"OPENAI_API_KEY": "k", "HEAT": "hot"}
    said = refusal(environ, provider="openai", model="m", temperature="${{ HEAT }}").message
    assert said.startswith("target 'it': invalid temperature (read from HEAT): ")
    assert "hot" not in said


@pytest.mark.parametrize(
    ("settings", "environ", "told"),
    [
        ({"provider": "openrouter"}, {}, ["it: OPENAI_API_KEY is sent to https://openrouter.ai/api/v1; set"]),
        ({"provider": "openrouter"}, {"OPENAI_BASE_URL": "http://127.0.0.1:1"}, []),
        ({"provider": "openrouter", "api_key": "own"}, {}, []),
        ({"provider": "openai", "base_url": "http://127.0.0.1:1"}, {}, []),
        ({"provider": "openai"}, {}, []),
    ],
)
def test_key_that_goes_where_only_a_name_points_is_told(
    settings: dict[str, Any], environ: dict[str, str], told: list[str]
) -> None:
    _, warned = resolved({"OPENAI_API_KEY": "k", **environ}, model="m", **settings)
    assert [line.split(" the target")[0] for line in warned] == told


def test_missing_header_is_all_that_is_missing() -> None:
    said = refusal(provider="anthropic", model="m", headers={"Authorization": "${{ TOKEN }}"}).message
    assert said == "target 'it' needs environment variables that are not set: TOKEN (headers)"


def test_placeholder_inside_quotes_is_found_in_a_template_of_the_environment_too() -> None:
    said = refusal({"AGENT": "agent '{PROMPT}'"}, provider="cli", command_template="${{ AGENT }}").message
    assert "(read from AGENT): {PROMPT} is quoted already" in said
