"""`eval --engine dask`: trials run on the workers of a cluster; all else is as on one machine."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from itertools import accumulate, product
from pathlib import Path
from typing import Any

import pytest
from distributed import Security
from distributed.core import rpc

from agentv_ci.execute.cluster import open_cluster
from agentv_ci.execute.run_services import ClusterOptions
from tests.cli.builders import ONE_ANSWER_USD, PRICED
from tests.servers.chat_api import chat_api, fails, says
from tests.support import clean_environment, has_ended
from tests.support.certificates import self_signed
from tests.support.clusters import DaskCluster, dask_cluster, wait_until
from tests.support.evals import KEY, PRAISE, gpt, tool
from tests.support.projects import GREETS, HELLO, JUDGE, JUDGED, Project

Client = pytest.importorskip("distributed", reason="pip install 'agentv-ci[dask]'").Client
pytestmark = pytest.mark.slow

DIFFERENT = {"timestamp", "worker", "duration_ms"}
"""Fields of rows that may differ between two runs."""
SCORES = """
import json, pathlib
print(json.dumps({"score": float(pathlib.Path(__file__).with_name("score.txt").read_text())}))
"""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DaskCluster]:
    with dask_cluster(tmp_path_factory.mktemp("cluster"), "a", "b", "c", env={"MOCK_KEY": KEY}) as running:
        yield running


Certificates = tuple[dict[str, str], dict[str, str]]
"""Dask's configuration for those of a cluster, and for others."""


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    ours, theirs = (tls_variables(tmp_path_factory.mktemp(name)) for name in ("ours", "theirs"))
    return ours, theirs


@pytest.fixture(scope="module")
def encrypted(tmp_path_factory: pytest.TempPathFactory, certificates: Certificates) -> Iterator[DaskCluster]:
    folder = tmp_path_factory.mktemp("encrypted")
    with dask_cluster(folder, "a", "b", env=certificates[0], protocol="tls") as running:
        yield running


@pytest.fixture
def own_cluster(tmp_path: Path) -> Iterator[DaskCluster]:
    with dask_cluster(tmp_path / "cluster", "a", "b") as running:
        yield running


def compared(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    same = [{name: value for name, value in row.items() if name not in DIFFERENT} for row in rows]
    return sorted(same, key=lambda row: (row["eval_id"], row["trial"]))


def assert_same(project: Project, cluster: DaskCluster, *flags: str) -> None:
    local = project.run("eval", "evals", "--out", "local.jsonl", *flags)
    done = project.run("eval", "evals", "--out", "r.jsonl", *cluster.flags, *flags)
    assert done.code == local.code, done
    assert compared(project.rows()) == compared(project.rows("local.jsonl"))
    assert {row["worker"] for row in project.rows() if row["verdict"] != "skipped"} <= {"a", "b", "c"}
    assert all("worker" not in row for row in project.rows("local.jsonl"))
    reports = [project.json(name) for name in ("r.report.json", "local.report.json")]
    assert reports[0]["counts"] == reports[1]["counts"]
    assert reports[0]["gate"] == reports[1]["gate"]


class TestSameResults:
    def test_mock_with_judge_and_trials(self, project: Project, cluster: DaskCluster) -> None:
        project.documents(*"abc", {"id": "judged", "evaluators": [JUDGED]}, {"id": "no", "skip": "Later"})
        assert_same(project, cluster, "--repeat", "3")

    def test_command_and_script_with_files_that_workers_lack(self, project: Project, cluster: DaskCluster) -> None:
        script = {"name": "script", "type": "code", "script": "./score.py", "files": ["score.txt"]}
        asks = [{"role": "user", "content": ["Greet", {"type": "file", "value": "greeting.txt"}]}]
        project.write({"evals/score.py": SCORES, "evals/score.txt": "1", "evals/greeting.txt": "Hello from a file"})
        project.documents(
            {"id": "filed", "input_messages": asks}, {"id": "scored", "evaluators": [script]}, targets=(tool("cat"),)
        )
        project.targets(tool("cat {PROMPT_FILE}; echo Hello", workers=2))
        assert_same(project, cluster)

    def test_api_with_a_key_of_the_workers(self, project: Project, cluster: DaskCluster) -> None:
        with chat_api(says(f"Hello {KEY}")) as api:
            project.env["MOCK_KEY"] = KEY
            project.documents(*"abcd", targets=(gpt(api.base_url, model=PRICED),))
            assert_same(project, cluster)
        assert KEY not in project.text("r.jsonl")
        assert project.json("r.report.json")["cost_usd"] == pytest.approx(4 * ONE_ANSWER_USD)

    def test_api_that_fails(self, project: Project, cluster: DaskCluster) -> None:
        with chat_api(fails(400)) as api:
            project.env["MOCK_KEY"] = KEY
            project.documents(*"ab", targets=(gpt(api.base_url),))
            assert_same(project, cluster)

    def test_shard(self, project: Project, cluster: DaskCluster) -> None:
        project.documents(*"abcdef")
        assert_same(project, cluster, "--shard", "1/2")

    def test_dry_run(self, project: Project, cluster: DaskCluster) -> None:
        project.documents({"id": "a", "expected_messages": [{"role": "assistant", "content": "Hello"}]}, "b")
        assert_same(project, cluster, "--dry-run")


def at_once(log: Path) -> int:
    """Return how many commands ran at once, by the lines `+` and `-` that they wrote as they began and ended."""
    return max(accumulate(1 if line == "+" else -1 for line in log.read_text().split()))


class TestLimits:
    def run(self, project: Project, cluster: DaskCluster, *flags: str) -> int:
        return project.process("eval", "evals", "--out", "r.jsonl", *cluster.flags, *flags).code

    def test_all_workers_take_part_and_workers_of_a_target_hold(self, project: Project, cluster: DaskCluster) -> None:
        log = project.path("log")
        counts = f"echo + >> {log}; sleep 0.3; echo - >> {log}; echo Hello"
        for workers, most in ((None, 3), (2, 2)):
            log.write_text("")
            project.documents(*"abcdefgh", targets=(tool(counts, **({"workers": workers} if workers else {})),))
            assert self.run(project, cluster) == 0
            assert at_once(log) == most

    def test_workers_of_a_judge_hold_for_the_cluster(self, project: Project, cluster: DaskCluster) -> None:
        log = project.path("log")
        praise = '{\\"score\\": 0.9}'
        judges = f'echo + >> {log}; sleep 0.3; echo - >> {log}; echo "{praise}"'
        judge = {**tool(judges, workers=2), "name": "judge"}
        project.documents(*({"id": each, "evaluators": [JUDGED]} for each in "abcdef"), targets=(GREETS, judge))
        assert self.run(project, cluster) == 0
        assert at_once(log) == 2

    def test_budget_is_exact_to_one_case_per_worker(self, project: Project, cluster: DaskCluster) -> None:
        with chat_api(says("Hello")) as api:
            project.documents(*"abcdefghijkl", targets=(gpt(api.base_url, model=PRICED),))
            assert self.run(project, cluster, "--max-cost", f"{4 * ONE_ANSWER_USD:.9f}") == 5
        assert 4 <= len(project.rows()) < 4 + 3

    def test_fail_fast_and_resume(self, project: Project, cluster: DaskCluster) -> None:
        fails_once = f"mkdir {project.path('failed')} 2>/dev/null || echo Hello"
        project.documents(*"abcdefghijkl", targets=(tool(fails_once),))
        assert self.run(project, cluster, "--fail-fast") == 1
        before = project.rows()
        assert len(before) < 12
        assert self.run(project, cluster, "--resume", "r.jsonl") == 1
        assert len(project.rows()) == 12
        assert [row for row in project.rows() if row in before] == before

    def test_short_cases_travel_together(self, project: Project, cluster: DaskCluster) -> None:
        names = [f"case-{number:03}" for number in range(300)]
        project.documents(*names)
        with Client(cluster.address) as client:

            def steps() -> int:
                return client.run_on_scheduler(lambda dask_scheduler: dask_scheduler.transition_counter)  # type: ignore[no-any-return]

            before = steps()
            assert self.run(project, cluster) == 0
            # One by one, each case takes five.
            assert steps() - before < 3 * len(names)
        assert sorted(row["eval_id"] for row in project.rows()) == names

    def test_trials_stop_when_decided(self, project: Project, cluster: DaskCluster) -> None:
        project.documents("a", repeat={"max": 5, "stop_when": "decided"})
        assert self.run(project, cluster) == 0
        assert len(project.rows()) == 3

    def test_rate_limit_of_one_worker_holds_for_all(self, project: Project, cluster: DaskCluster) -> None:
        limited = fails(429, **{"Retry-After": "0"})
        with chat_api(limited, says("Hello")) as api:
            project.documents(*"abcdef", targets=(gpt(api.base_url, max_retries=2),))
            assert self.run(project, cluster) == 0
        (change, *_) = project.json("r.report.json")["concurrency"]
        assert (change["before"], change["after"], change["reason"]) == (3, 1, "HTTP 429")

    def test_rate_limit_of_a_judge_holds_all_workers(self, project: Project, cluster: DaskCluster) -> None:
        limited = fails(429, **{"Retry-After": "2"})
        with chat_api(limited, says(PRAISE)) as api:
            judge = {**gpt(api.base_url, max_retries=2), "name": "judge"}
            cases = [{"id": each, "evaluators": [JUDGED]} for each in "abcdefghi"]
            project.documents(*cases, targets=(tool("sleep 0.5; echo Hello"), judge))
            done = project.process("eval", "evals", "--out", "r.jsonl", *cluster.flags, "--verbose")
        assert done.code == 0, done
        # Three workers, and the machine that submits.
        assert done.err.count("judge: concurrency ") >= 4, done.err


class TestStoredAnswers:
    def test_recordings_replay_on_one_machine(self, project: Project, cluster: DaskCluster) -> None:
        with chat_api(says(f"Hello {KEY}")) as api:
            project.env["MOCK_KEY"] = KEY
            project.documents(*"abc", {"id": "d", "evaluators": [JUDGED]}, targets=(gpt(api.base_url), JUDGE))
            done = project.process(
                "eval", "evals", "--out", "r.jsonl", *cluster.flags, "--record", "kept", "--repeat", "2"
            )
        assert done.code == 0, done
        recorded = {path: text for path, text in project.files().items() if path.startswith("kept/")}
        assert len(recorded) == 8
        assert not [path for path, text in recorded.items() if KEY.encode() in text]
        replayed = project.run("eval", "evals", "--out", "replayed.jsonl", "--replay", "kept", "--repeat", "2")
        assert replayed.code == 0, replayed
        answers = [
            {(row["eval_id"], row["trial"], row["candidate_answer"]) for row in project.rows(name)}
            for name in ("r.jsonl", "replayed.jsonl")
        ]
        assert answers[0] == answers[1]

    def test_recordings_that_cannot_be_written_fail_the_run(self, project: Project, cluster: DaskCluster) -> None:
        spoils = f"rm -r {project.path('kept')}; touch {project.path('kept')}; echo Hello"
        project.documents("a", targets=(tool(spoils),))
        done = project.process("eval", "evals", "--out", "r.jsonl", *cluster.flags, "--record", "kept")
        assert done.code == 4, done
        assert f"cannot write an answer to '{project.path('kept')}'" in done.err

    def test_cache_in_a_shared_folder(self, project: Project, cluster: DaskCluster) -> None:
        cache = ["--cache", "--cache-dir", str(project.path("cache"))]
        project.env["MOCK_KEY"] = KEY
        with chat_api(says("Hello")) as api:
            project.documents(*"abc", targets=(gpt(api.base_url),))
            first, again = (
                (project.process("eval", "evals", "--out", "r.jsonl", *cluster.flags, *cache), len(api.requests))
                for _ in range(2)
            )
        assert (first[0].code, again[0].code) == (0, 0), (first, again)
        assert 1 <= first[1] == again[1] <= 3
        assert all(row["cached"] for row in project.rows())


def test_cases_run_where_their_resources_are(project: Project, cluster: DaskCluster) -> None:
    needs = {**GREETS, "name": "needs", "resources": {"GPU": 1}}
    project.documents(*"abcdef", targets=(GREETS, JUDGE, needs))
    with cluster.joined("gpu", None, "--resources", "GPU=1"):
        done = project.process("eval", "evals", "--out", "r.jsonl", *cluster.flags, "--target", "needs")
    assert (done.code, {row["worker"] for row in project.rows()}) == (0, {"gpu"}), done


class TestLoss:
    SLOW = "echo $$ >> {log}; sleep {seconds}; echo Hello"

    def start(self, project: Project, cluster: DaskCluster, *flags: str, seconds: float) -> subprocess.Popen[str]:
        project.documents(*"abcdef", targets=(tool(self.SLOW.format(log=project.path("pids"), seconds=seconds)),))
        command = [sys.executable, "-m", "agentv_ci", "eval", "evals", "--out", "r.jsonl", *cluster.flags, *flags]
        process = subprocess.Popen(
            command,
            cwd=project.folder,
            env=clean_environment(),
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        wait_until(lambda: len(self.pids(project)) >= 2)
        return process

    def pids(self, project: Project) -> list[int]:
        path = project.path("pids")
        return [int(line) for line in path.read_text().split()] if path.exists() else []

    def test_scheduler_that_dies_ends_the_run_and_rows_are_kept(
        self, project: Project, own_cluster: DaskCluster, tmp_path: Path
    ) -> None:
        process = self.start(project, own_cluster, seconds=1)
        wait_until(lambda: project.path("r.jsonl").exists() and len(project.rows()) >= 2)
        own_cluster.kill("scheduler")
        out, err = process.communicate(timeout=50)
        assert (process.returncode, "Traceback" in err) == (4, False), (out, err)
        assert "the connection to the scheduler is lost; finished rows are kept" in err
        kept = project.rows()
        assert 2 <= len(kept) < 6
        with dask_cluster(tmp_path / "other", "d") as other:
            done = project.process("eval", "evals", "--resume", "r.jsonl", *other.flags)
        assert done.code == 0, done
        assert sorted(row["eval_id"] for row in project.rows()) == list("abcdef")
        assert project.rows()[: len(kept)] == kept

    def test_submitting_machine_that_dies_ends_what_runs(self, project: Project, cluster: DaskCluster) -> None:
        process = self.start(project, cluster, seconds=60)
        process.kill()
        process.communicate()
        wait_until(lambda: all(map(has_ended, self.pids(project))))

    def test_workers_that_join_later_take_part(self, project: Project, cluster: DaskCluster) -> None:
        process = self.start(project, cluster, "--repeat", "10", seconds=0.3)
        with cluster.joined("late"):
            assert (process.communicate(timeout=50), process.returncode)[1] == 0
        assert {row["worker"] for row in project.rows()} == {"a", "b", "c", "late"}
        assert len(project.rows()) == 60

    def test_worker_that_joins_later_and_cannot_begin_ends_the_run(
        self, project: Project, cluster: DaskCluster
    ) -> None:
        process = self.start(project, cluster, "--repeat", "20", seconds=0.3)
        with cluster.joined("broken", None, "--preload", str(without_scratch(cluster.folder))):
            _, err = process.communicate(timeout=50)
        assert (process.returncode, "Traceback" in err) == (4, False), err
        assert "error: worker broken: FileNotFoundError: " in err
        assert project.rows()

    def test_case_that_kills_its_workers_is_an_error(self, project: Project, own_cluster: DaskCluster) -> None:
        for name in "cde":
            own_cluster.start_worker(name)
        project.documents("deadly", *"bcd", targets=(tool("[ {EVAL_ID} != deadly ] || kill -9 $PPID; echo Hello"),))
        done = project.process("eval", "evals", "--out", "r.jsonl", *own_cluster.flags)
        assert (done.code, "Traceback" in done.err) == (4, False), done
        verdicts = {row["eval_id"]: (row["verdict"], row["error"]) for row in project.rows()}
        assert verdicts.pop("deadly") == ("error", "4 workers died while it ran")
        assert verdicts == dict.fromkeys("bcd", ("pass", None))

    def test_interrupt_cancels_what_runs(self, project: Project, cluster: DaskCluster) -> None:
        process = self.start(project, cluster, seconds=60)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=30)
        assert process.returncode == 130
        wait_until(lambda: all(map(has_ended, self.pids(project))))


def without_scratch(folder: Path) -> Path:
    """Write a module that leaves a worker without a folder for temporary files."""
    (folder / "broken.py").write_text("import tempfile\ntempfile.tempdir = '/gone'\n")
    return folder / "broken.py"


class TestRefusals:
    def refuses(self, project: Project, *flags: str, error: str) -> None:
        done = project.process("eval", "evals", "--out", "r.jsonl", "--engine", "dask", *flags)
        assert (done.code, done.out) == (2, "")
        assert error in done.err
        assert "Traceback" not in done.err
        assert not project.path("r.jsonl").exists()

    def test_worker_without_a_variable_is_named(self, project: Project, cluster: DaskCluster) -> None:
        project.documents("a", targets=(gpt("http://127.0.0.1:9"),))
        project.env["MOCK_KEY"] = KEY
        error = "target 'default' needs environment variables that are not set: MOCK_KEY"
        with cluster.joined("without"):
            self.refuses(project, *cluster.flags[2:], error=error)

    def test_no_worker_with_the_resources_of_a_target(self, project: Project, cluster: DaskCluster) -> None:
        project.documents("a", targets=({**GREETS, "resources": {"GPU": 1, "memory_mb": 0.5}}, JUDGE))
        error = "target 'default' needs a worker with the resources GPU: 1, memory_mb: 0.5, and there is none"
        self.refuses(project, *cluster.flags[2:], error=error)

    def test_worker_that_cannot_begin_is_named(self, project: Project, cluster: DaskCluster) -> None:
        project.documents("a")
        with cluster.joined("broken", None, "--preload", str(without_scratch(cluster.folder))):
            done = project.process("eval", "evals", "--out", "r.jsonl", *cluster.flags)
        assert (done.code, "Traceback" in done.err) == (4, False), done
        assert "error: worker broken: FileNotFoundError: " in done.err

    def test_other_version_is_named(self, project: Project, cluster: DaskCluster) -> None:
        older = cluster.folder / "older.py"
        older.write_text("import agentv_ci.version\nagentv_ci.version.__version__ = '0.0.1'\n")
        project.documents("a")
        with cluster.joined("old", None, "--preload", str(older)):
            self.refuses(project, *cluster.flags[2:], error="error: worker old: it has agentv-ci 0.0.1, and")

    def test_scheduler_without_agentv_ci(self, project: Project, tmp_path: Path) -> None:
        (tmp_path / "bare.py").write_text("import sys\nsys.modules['agentv_ci'] = None\n")
        project.documents("a")
        with dask_cluster(tmp_path / "cluster") as bare:
            bare.kill("scheduler")
            bare.start_scheduler(None, "--preload", str(tmp_path / "bare.py"))
            bare.start_worker("a")
            self.refuses(project, *bare.flags[2:], error=f"the scheduler at '{bare.address}' cannot load agentv-ci: ")

    @pytest.mark.parametrize(
        ("scheduler", "error"),
        [
            ("tcp://127.0.0.1:1", "the scheduler at 'tcp://127.0.0.1:1' cannot be reached"),
            ("nonsense", "the scheduler at 'nonsense' cannot be reached: missing port number in address"),
            ("tls://127.0.0.1:1", "the scheduler at 'tls://127.0.0.1:1' cannot be reached: TLS expects"),
        ],
    )
    def test_unreachable_scheduler(
        self, scheduler: str, error: str, project: Project, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("agentv_ci.execute.cluster.CONNECT_S", 1)
        project.documents("a")
        project.refuses("eval", "evals", "--out", "r.jsonl", "--engine", "dask", "--scheduler", scheduler, error=error)

    def test_no_worker(
        self, project: Project, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("agentv_ci.execute.cluster.WORKERS_S", 0.5)
        project.documents("a")
        with dask_cluster(tmp_path_factory.mktemp("empty")) as empty:
            error = f"no worker joined the scheduler at '{empty.address}' within 0.5 s"
            project.refuses("eval", "evals", "--out", "r.jsonl", *empty.flags, error=error)


class TestTls:
    """An address that begins with tls://; certificates are those of Dask's configuration."""

    def test_runs_are_encrypted(self, project: Project, encrypted: DaskCluster, certificates: Certificates) -> None:
        project.documents(*"abc")
        project.env.update(certificates[0])
        done = project.process("eval", "evals", "--out", "r.jsonl", *encrypted.flags)
        assert (done.code, len(project.rows())) == (0, 3), done
        assert f"2 workers, 2 threads at tls://127.0.0.1:{encrypted.port}" in done.err

    @pytest.mark.parametrize(
        ("scheduler", "client", "trusts", "why"),
        [
            ("tls", "tls", "theirs", "TLS certificate does not match"),
            ("tls", "tls", "none", "TLS expects a `ssl_context` argument"),
            ("tls", "tcp", "ours", "if it uses TLS, its address begins with tls://"),
            ("tcp", "tls", "ours", "set the certificates in Dask's configuration: distributed.comm.tls"),
        ],
    )
    def test_wrong_encryption_is_refused(
        self,
        scheduler: str,
        client: str,
        trusts: str,
        why: str,
        project: Project,
        cluster: DaskCluster,
        encrypted: DaskCluster,
        certificates: Certificates,
    ) -> None:
        project.documents("a")
        ours, theirs = certificates
        project.env.update({"ours": ours, "theirs": theirs, "none": {}}[trusts])
        address = f"{client}://127.0.0.1:{(encrypted if scheduler == 'tls' else cluster).port}"
        done = project.process("eval", "evals", "--out", "r.jsonl", "--engine", "dask", "--scheduler", address)
        assert (done.code, done.out, len(done.err.splitlines())) == (2, "", 2), done
        assert f"error: the scheduler at '{address}' cannot be reached: " in done.err
        assert why in " ".join(done.err.split())
        assert not project.path("r.jsonl").exists()


def tls_variables(folder: Path) -> dict[str, str]:
    """Return Dask's configuration for a new certificate, which is its own authority."""
    certificate, key = map(str, self_signed(folder))
    names = [f"{role}__{part}" for role in ("CLIENT", "SCHEDULER", "WORKER") for part in ("CERT", "KEY")]
    files = {name: certificate if name.endswith("CERT") else key for name in names}
    return {f"DASK_DISTRIBUTED__COMM__TLS__{name}": path for name, path in {**files, "CA_FILE": certificate}.items()}


def test_cluster_of_this_machine(project: Project) -> None:
    with chat_api(says("Hello")) as api:
        project.documents(*"abc", targets=(gpt(api.base_url),))
        project.write({".env": f"MOCK_KEY={KEY}\n"})
        done = project.process("eval", "evals", "--out", "r.jsonl", "--engine", "dask", "--local-cluster", "2")
    assert done.code == 0, done
    assert {row["worker"] for row in project.rows()} <= {"0", "1"}
    assert len(project.rows()) == 3


async def test_cluster_of_this_machine_shows_no_pages() -> None:
    async with open_cluster(ClusterOptions(None, 1), os.environ, 1) as cluster:
        known = await cluster._client.scheduler.identity()  # noqa: SLF001
        ports = [server["services"]["dashboard"] for server in (known, *known["workers"].values())]
        assert len(ports) == 2
        for port, page in product(ports, ("health", "metrics", "info/main/workers.html")):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(f"GET /{page} HTTP/1.0\r\n\r\n".encode())
            assert b" 404 " in await reader.readline()
            writer.close()


@pytest.mark.filterwarnings("ignore:.*wait_for:pytest.PytestUnraisableExceptionWarning")
async def test_cluster_of_this_machine_executes_nothing_for_others() -> None:
    """Agents with a network reach its ports, and so does every user of the machine."""
    async with open_cluster(ClusterOptions(None, 1), os.environ, 1) as cluster:
        addresses = [cluster.address, *await cluster.worker_addresses()]
        assert {each.partition("://")[0] for each in addresses} == {"tls"}
        for address in addresses:
            for stranger in (Security(), Security.temporary()):
                protocol = "tls" if stranger.require_encryption else "tcp"
                args = stranger.get_connection_args("client")
                with pytest.raises(OSError, match=r"\w"):
                    async with rpc(
                        f"{protocol}://{address.partition('://')[2]}", connection_args=args, timeout=5
                    ) as one:
                        await one.identity()
    # What Dask leaves of a refused connection is freed here, and not in another test.
    gc.collect()


def test_cluster_of_this_machine_needs_certificates(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cryptography", None)
    project.documents("a", targets=(GREETS, JUDGE), evaluators=[HELLO])
    error = "--local-cluster needs the package 'cryptography' for its certificates python -m pip install cryptography"
    project.refuses("eval", "evals", "--out", "r.jsonl", "--engine", "dask", "--local-cluster", "1", error=error)


def test_missing_extra(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("agentv_ci.app.run.cluster", "agentv_ci.execute.cluster"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.setitem(sys.modules, "distributed", None)
    project.documents("a", targets=(GREETS, JUDGE), evaluators=[HELLO])
    error = "--engine dask needs the package 'distributed' python -m pip install distributed"
    project.refuses("eval", "evals", "--out", "r.jsonl", "--engine", "dask", "--local-cluster", "1", error=error)
