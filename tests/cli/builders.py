"""What tests of several commands share."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable

from tests.support import CommandResult, clean_environment
from tests.support.projects import Project

ENDS_S = 60
"""A command that takes so long would never end."""

HEARING = (
    "import signal, runpy; signal.signal(signal.SIGINT, signal.default_int_handler); "
    "runpy.run_module('agentv_ci', run_name='__main__', alter_sys=True)"
)
"""Runs a command that hears SIGINT: background jobs of a shell, such as these tests, may be deaf to it."""


def stopped(project: Project, *arguments: str, when: Callable[[], bool], by: signal.Signals) -> CommandResult:
    """Run a command in a process, and send it a signal as soon as something holds."""
    process = subprocess.Popen(
        [sys.executable, "-c", HEARING, *arguments],
        cwd=project.folder,
        env=clean_environment(project.env),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        deadline = time.monotonic() + ENDS_S
        while not when():
            assert process.poll() is None, process.communicate()
            assert time.monotonic() < deadline
            time.sleep(0.02)
        os.kill(process.pid, by)
        out, err = process.communicate(timeout=ENDS_S)
    finally:
        process.kill()
    return CommandResult(process.returncode, out, err)
