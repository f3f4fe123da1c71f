"""A run on a batch system with Slurm, from its login node: python slurm.py evals/

Needs agentv-ci[dask] and dask-jobqueue, in an environment that all nodes see. For other batch systems, replace
SLURMCluster: https://jobqueue.dask.org
"""

from __future__ import annotations

import subprocess
import sys

from dask_jobqueue import SLURMCluster

JOBS, THREADS = 50, 4


def cluster() -> SLURMCluster:
    """Return a cluster without jobs yet; each job is a worker that runs four cases at once."""
    return SLURMCluster(
        cores=THREADS,
        processes=1,
        memory="16GB",
        walltime="04:00:00",
        scheduler_options={"dashboard_address": ":0"},
        # Workers stop before their job is killed, so that what they run runs again at once.
        worker_extra_args=["--resources", f"CPU={THREADS}", "--lifetime", "235m", "--lifetime-stagger", "4m"],
        # Keys, in a file that only you can read.
        job_script_prologue=["set -a", ". ~/.eval-keys", "set +a"],
    )


def main() -> int:
    """Run the evals, and return their exit status."""
    with cluster() as running:
        # Jobs that end are replaced.
        running.adapt(minimum_jobs=1, maximum_jobs=JOBS)
        command = ["agentv-ci", "eval", *sys.argv[1:], "--engine", "dask", "--scheduler", running.scheduler_address]
        # As many cases as all jobs run: an adaptive cluster grows with what is submitted.
        return subprocess.run([*command, "--workers", str(JOBS * THREADS)], check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
