"""What is a secret, by the name of a variable and the shape of its value."""

from __future__ import annotations

import pytest

from agentv_ci.base.secret_values import is_secret, looks_secret


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("OPENAI_API_KEY", "from-the-environment"),
        ("OPENAI_API_KEY", "sk-abcdefgh"),
        ("GITHUB_TOKEN", "ghs_0123456789"),
        ("ACME_TOKEN", "acme-secret-token"),
        ("LEAST_KEY", "abcdefg1"),
        ("DB_PASSWORD", "correct horse"),
        ("DB_PASSWORD", "Sunshine99"),
        ("DB_PASSWORD", "pa$$word"),
        ("PASSPHRASE", "correct_horse_battery_staple"),
        ("MY_SECRET", "hunter2hunter2"),
        ("SERVICE_CREDENTIALS", '{"user": "a"}'),
        ("AWS_SECRET_ACCESS_KEY", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"),
        ("X_API_KEY", "9f86d081884c7d659a2feaa0c55ad015"),
        ("SORT_KEY", "k9Qz7Lw2xP0v"),
        ("CACHE_KEY", "sk-proj-words-only"),
        ("KEY", "kqzvtrwpbnml"),
        ("SIGNING_KEY", "ab12-cd34-ef56-7890"),
        ("LICENSE_KEY", "1234-5678-9012-3456"),
        ("apiKey", "AKIAIOSFODNN7EXAMPLE"),
        ("api-key", "s3cr3t-value"),
        ("TOKEN_2", "s3cr3t-value"),
        ("ACME_AUTH", "Basic dXNlcjpwYXNz"),
        ("SESSION_TOKEN", "eyJhbGciOi"),
    ],
)
def test_variable_is_a_secret(name: str, value: str) -> None:
    assert is_secret(name, value)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("AWS_REGION", "eu-central-1"),
        ("REGION_KEY", "eu-central-1"),
        ("DEPLOY_TOKEN", "westeurope"),
        ("DB_SECRET", "us-east-1"),
        ("MODEL_KEY", "gpt-4o-mini"),
        ("LLM_TOKEN", "claude-sonnet-4-5-20250929"),
        ("SOME_TOKEN", "meta-llama/Llama-3.3-70B-Instruct"),
        ("PRIMARY_KEY", "customer_id"),
        ("SERVICE_KEY", "order_line_id"),
        ("PARTITION_KEY", "createdAt"),
        ("GROUP_KEY", "candidate_answer"),
        ("SORT_KEY", "timestamp"),
        ("API_TOKEN", "production"),
        ("STOP_TOKEN", "customer-id"),
        ("S3_KEY", "reports/2024/export.csv"),
        ("CACHE_KEY", "answers/v2/2026-11-26"),
        ("API_KEY", "12345678"),
        ("CUTOFF_TOKEN", "2026-11-26"),
        ("API_KEY", "short"),
        ("GREETING", "k9Qz7Lw2xP0v"),
        ("KEYBOARD", "k9Qz7Lw2xP0v"),
        ("", "k9Qz7Lw2xP0v"),
    ],
)
def test_variable_is_a_setting(name: str, value: str) -> None:
    assert not is_secret(name, value)


@pytest.mark.parametrize(
    ("value", "looks"),
    [
        ("postgres://user:pass@host/db", True),
        ("Endpoint=sb://x;SharedAccessKey=abc", True),
        ("Server=db;User=sa;Password=x1", True),
        ("-----BEGIN PRIVATE KEY-----", True),
        ("550e8400-e29b-41d4-a716-446655440000", True),
        ("3f786850e387550fdab836ed7e6dc881de23001b", True),
        ("https://api.example.com/v1", False),
        ("eu-central-1", False),
        ("text-embedding-3-large", False),
        ("us.anthropic.claude-sonnet-4-5-20250929-v1:0", False),
        ("the quick brown fox jumps over the lazy dog", False),
        ("/usr/local/bin:/usr/bin", False),
        ("Größenordnungen und Maße", False),
        ("30天之内可以退货的商品", False),
    ],
)
def test_value_looks_like_a_secret(value: str, looks: bool) -> None:
    assert looks_secret(value) is looks
