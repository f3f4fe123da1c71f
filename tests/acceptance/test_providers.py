"""The scenarios of the evaluation specification that are about targets, in its order, run as a user runs them."""

from __future__ import annotations

import asyncio
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from agentv_ci.app.compile import Selection, compile_paths
from agentv_ci.app.report_files import RunFiles
from agentv_ci.app.run import run_plan
from agentv_ci.compile.overrides import Overrides
from agentv_ci.contracts.exchange import Environment
from agentv_ci.execute.run_services import RunOptions, RunServices
from tests.acceptance.builders import KEY, Repository
from tests.servers import model_api as served
from tests.servers.model_api import ModelApi, Step, model_api
from tests.support import FakeClock, write

CORPUS = Path(__file__).parent.parent / "corpus" / "valid"


class TestProviderIntegration:
    def test_azure_openai(self, repository: Repository) -> None:
        repository.target({"provider": "azure-openai"})
        with model_api(requires_key=KEY) as api:
            repository.env = {
                "AZURE_OPENAI_ENDPOINT": api.url,
                "AZURE_OPENAI_API_KEY": KEY,
                "AZURE_DEPLOYMENT_NAME": "gpt",
            }
            assert repository.eval().code == 0
        assert [each.route for each in api.questions] == ["/openai/deployments/gpt/chat/completions"]

    def test_anthropic(self, repository: Repository) -> None:
        with model_api(requires_key=KEY) as api:
            repository.target({"provider": "anthropic", "model": "claude-haiku-5-5", "base_url": api.url})
            repository.env = {"ANTHROPIC_API_KEY": KEY}
            assert repository.eval().code == 0
        assert repository.rows()[0]["candidate_answer"] == served.ANSWER

    def test_gemini(self, repository: Repository) -> None:
        with model_api(requires_key=KEY) as api:
            repository.target({"provider": "gemini", "base_url": api.url})
            repository.env = {"GOOGLE_API_KEY": KEY, "GOOGLE_GEMINI_MODEL": "gemini-of-mine"}
            assert repository.eval().code == 0
        assert api.questions[0].route == "/v1beta/models/gemini-of-mine:generateContent"

    def test_vs_code_copilot(self, tmp_path: Path) -> None:
        shutil.copytree(CORPUS / "copilot-in-vs-code", tmp_path, dirs_exist_ok=True)
        (tmp_path / ".git").mkdir()
        repository = Repository(tmp_path)
        (tmp_path / "single.eval.yaml").rename(tmp_path / "x.eval.yaml")
        assert repository.eval().code == 0
        (row,) = repository.rows()
        assert "[[ ## mandatory_pre_read ## ]]" in row["request"]["prompt"]
        assert "INSTRUCTIONS_READ: `upper.md` i=1 SHA256=<hex>" in row["request"]["prompt"]
        assert row["request"]["preread"][0]["ok"] is True
        assert row["candidate_answer"] == "HELLO"

    def test_codex_cli(self, tmp_path: Path) -> None:
        shutil.copytree(CORPUS / "agents-that-open-files", tmp_path, dirs_exist_ok=True)
        (tmp_path / ".git").mkdir()
        (tmp_path / "review.eval.yaml").rename(tmp_path / "x.eval.yaml")
        repository = Repository(tmp_path)
        repository.eval("--eval-id", "codex-*")
        answered, failed = repository.rows()
        assert answered["candidate_answer"] == "rule: be brief cart: empty", "every referenced file was opened"
        assert failed["error_kind"] == "rate_limit"
        assert "turn.failed" in failed["printed"]["stdout"]
        assert "WARNING" in failed["printed"]["stderr"]

    def test_codex_executable_is_verified(self, repository: Repository) -> None:
        repository.target({"provider": "codex", "executable": "no-such-codex"})
        done = repository.eval()
        assert done.code == 4
        assert "executable 'no-such-codex' is not on PATH" in done.err
        assert not repository.path("r.jsonl").exists()

    def test_malformed_stream_is_attached(self, repository: Repository) -> None:
        agent = repository.folder / "codex"
        agent.write_text("#!/bin/sh\necho not JSON\necho why >&2\n", encoding="utf-8")
        agent.chmod(0o755)
        repository.target({"provider": "codex", "executable": "./codex"})
        assert repository.eval().code == 4
        (row,) = repository.rows()
        assert (row["error_kind"], row["printed"]) == ("malformed", {"stdout": "not JSON\n", "stderr": "why\n"})

    def test_mock_for_dry_run(self, repository: Repository) -> None:
        repository.target({"provider": "anthropic", "model": "m", "base_url": "http://127.0.0.1:1"})
        assert repository.eval("--dry-run").code == 0
        assert repository.rows()[0]["dry_run"] is True


class TestTargetResolution:
    MOCKS = tuple({"name": name, "provider": "mock", "response": f"42 of {name}"} for name in ("default", "a", "b"))

    @pytest.mark.parametrize(
        ("arguments", "execution", "target"),
        [
            (["--target", "b"], {"target": "a"}, "b"),
            ([], {"target": "a"}, "a"),
            (["--target", "default"], {"target": "a"}, "a"),
            ([], {}, "default"),
        ],
        ids=["cli-override", "test-file", "default-is-no-override", "default"],
    )
    def test_precedence(
        self, repository: Repository, arguments: list[str], execution: dict[str, Any], target: str
    ) -> None:
        repository.target(*self.MOCKS)
        repository.cases("one", **execution)
        assert repository.eval(*arguments).code == 0
        assert repository.rows()[0]["candidate_answer"] == f"42 of {target}"


class TestEnvironmentVariables:
    def test_all_that_are_missing_are_listed(self, repository: Repository) -> None:
        repository.target({"provider": "azure-openai"})
        repository.env = {"AZURE_OPENAI_ENDPOINT": "", "AZURE_OPENAI_API_KEY": " "}
        done = repository.eval()
        assert done.code == 2
        for name in ("AZURE_OPENAI_ENDPOINT", "AZURE_OPENAI_API_KEY", "AZURE_DEPLOYMENT_NAME"):
            assert name in done.err

    def test_dotenv_is_read(self, repository: Repository) -> None:
        with model_api(requires_key=KEY) as api:
            repository.target({"provider": "anthropic", "model": "m", "base_url": api.url})
            write(repository.folder, {".env": f"ANTHROPIC_API_KEY={KEY}\n"})
            assert repository.eval().code == 0


@pytest.mark.slow
class TestBatching:
    @pytest.fixture
    def together(self, tmp_path: Path) -> Repository:
        shutil.copytree(CORPUS / "copilot-in-vs-code", tmp_path, dirs_exist_ok=True)
        (tmp_path / ".git").mkdir()
        (tmp_path / "together.eval.yaml").rename(tmp_path / "x.eval.yaml")
        return Repository(tmp_path)

    def test_one_session_for_all(self, together: Repository) -> None:
        done = together.eval("--verbose")
        assert done.code == 0
        assert "in-one-session: asking 2 questions in one batch" in done.err
        assert done.err.count("#runSubagent") == 1
        assert {row["eval_id"]: row["candidate_answer"] for row in together.rows()} == {"one": "ONE", "two": "TWO"}

    def test_failed_batch_is_asked_case_by_case(self, together: Repository) -> None:
        program = together.folder / "code"
        text = program.read_text("utf-8")
        program.write_text(
            text.replace('elif "#runSubagent" in message:', 'elif "#run" in message:\n    sys.exit(3)\nelif 0:')
        )
        done = together.eval("--verbose")
        assert done.code == 0
        assert "provider_batching failed: " in done.err
        assert {row["eval_id"]: row["candidate_answer"] for row in together.rows()} == {"one": "ONE", "two": "TWO"}

    def test_provider_without_support(self, repository: Repository) -> None:
        repository.target({"provider": "mock", "response": "42", "settings": {"provider_batching": True}})
        done = repository.eval("--verbose")
        assert done.code == 0
        assert "default: 'mock' does not support provider_batching; asking case by case" in done.err


class TestCliTemplate:
    def test_render_and_execute(self, repository: Repository) -> None:
        template = 'printf "42 %s|%s|%s" {EVAL_ID} {PROMPT} "$MINE"; echo to-stderr >&2; pwd >> places'
        repository.target(
            {"provider": "cli", "commandTemplate": template, "env": {"MINE": "env's"}, "cwd": "sub", "verbose": True}
        )
        repository.path("sub").mkdir()
        done = repository.eval("--verbose")
        assert repository.rows()[0]["candidate_answer"] == "42 one|question one|env's"
        assert "to-stderr" in done.err
        assert (repository.folder / "sub" / "places").read_text("utf-8").strip().endswith("/sub")

    def test_timeout_and_retries(self, repository: Repository) -> None:
        repository.target(
            {"provider": "cli", "command_template": "echo {ATTEMPT} >> tries; sleep 30", "timeout_seconds": 0.3}
        )
        assert repository.eval("--max-retries", "1").code == 4
        (row,) = repository.rows()
        assert (row["error_kind"], row["attempts"]) == ("timeout", 2)
        assert repository.text("tries") == "0\n1\n"

    def test_failure_keeps_stderr_and_status(self, repository: Repository) -> None:
        repository.target({"provider": "cli", "command_template": "echo broken >&2; exit 7"})
        assert repository.eval("--max-retries", "0").code == 4
        (row,) = repository.rows()
        assert row["error"] == "broken (exit code 7)"
        assert row["printed"]["stderr"] == "broken\n"

    @pytest.mark.parametrize("kind", ["http", "command"])
    def test_health_check_aborts_the_run(self, repository: Repository, kind: str) -> None:
        probes = {
            "http": {"type": "http", "url": "http://127.0.0.1:1/health", "timeoutSeconds": 1},
            "command": {"type": "command", "commandTemplate": "echo not ready; exit 1"},
        }
        repository.target({"provider": "cli", "command_template": "echo 42", "healthcheck": probes[kind]})
        done = repository.eval()
        assert done.code == 4
        assert "target 'default' is not available: health check" in done.err
        assert not repository.path("r.jsonl").exists()

    def test_health_check_runs_once(self, repository: Repository) -> None:
        probe = {"type": "command", "command_template": "echo x >> probes"}
        repository.target({"provider": "cli", "command_template": "echo 42", "healthcheck": probe})
        repository.cases("one", "two", "three")
        assert repository.eval().code == 0
        assert repository.text("probes") == "x\n"


class TestRetryConfiguration:
    """FakeClock are not waited for: the run's world only notes them."""

    @dataclass(slots=True)
    class Outcome:
        waits: list[float]
        row: dict[str, Any]
        api: ModelApi

    def run(self, repository: Repository, *steps: Step, provider: str = "anthropic", **settings: Any) -> Outcome:
        waits = FakeClock({"ANTHROPIC_API_KEY": KEY, "GOOGLE_API_KEY": KEY, "AZURE_OPENAI_API_KEY": KEY})
        with model_api(*steps) as api:
            model = "deployment" if provider == "azure-openai" else "model"
            repository.target({"provider": provider, "base_url": api.url, model: "m", **settings})
            asyncio.run(self._run(repository, waits.environment()))
        return self.Outcome(waits.slept, repository.rows()[0], api)

    async def _run(self, repository: Repository, world: Environment) -> None:
        await run_plan(
            compile_paths(Selection(["x.eval.yaml"]), cwd=repository.folder),
            Overrides(),
            RunOptions(root=repository.folder),
            RunFiles(repository.folder / "r.jsonl", "jsonl"),
            RunServices(
                environment=world, log=lambda _: None, warn=lambda _: None, note=lambda _: None, watch=lambda _: None
            ),
        )

    @pytest.mark.parametrize("provider", ["azure-openai", "anthropic", "gemini"])
    def test_default_is_exponential_backoff(self, repository: Repository, provider: str) -> None:
        done = self.run(repository, served.fails(429), provider=provider)
        assert (len(done.api.questions), done.waits) == (4, [1, 2, 4])
        assert (done.row["error_kind"], done.row["requests"]) == ("rate_limit", 4)

    @pytest.mark.parametrize("camel", [False, True])
    def test_custom_settings_in_both_spellings(self, repository: Repository, camel: bool) -> None:
        snake: dict[str, Any] = {"max_retries": 5, "retry_initial_delay_ms": 2000, "retry_max_delay_ms": 120_000}
        twins: dict[str, Any] = {"maxRetries": 5, "retryInitialDelayMs": 2000, "retryMaxDelayMs": 120_000}
        done = self.run(repository, served.fails(429), **(twins if camel else snake))
        assert (len(done.api.questions), done.waits) == (6, [2, 4, 8, 16, 32])

    def test_custom_status_codes(self, repository: Repository) -> None:
        done = self.run(repository, served.fails(500), retry_status_codes=[429, 503])
        assert (len(done.api.questions), done.waits) == (1, [])

    def test_disabled(self, repository: Repository) -> None:
        done = self.run(repository, served.fails(429), max_retries=0)
        assert (len(done.api.questions), done.waits) == (1, [])

    @pytest.mark.parametrize("status", [401, 403])
    def test_never_for_authentication(self, repository: Repository, status: int) -> None:
        done = self.run(repository, served.fails(status), retry_status_codes=[401, 403, 429])
        assert (len(done.api.questions), done.row["error_kind"]) == (1, "auth")

    def test_recovers(self, repository: Repository) -> None:
        done = self.run(repository, served.fails(429), served.fails(503), served.says("42"))
        assert (done.row["verdict"], done.row["requests"], done.waits) == ("pass", 3, [1, 2])
