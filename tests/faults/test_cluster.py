"""Faults of a cluster: a few of the rounds that `python -m tests.faults.cluster_rounds` runs."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("distributed", reason="pip install 'agentv-ci[dask]'")

from tests.faults.cluster_rounds import FAULTS, run_rounds


@pytest.mark.slow
def test_rounds_of_faults_lose_and_double_no_row(tmp_path: Path) -> None:
    happened = run_rounds(tmp_path, rounds=len(FAULTS), seed=28)
    assert happened["killed"] == happened["cut off"] == happened["scheduler killed"] == 1
