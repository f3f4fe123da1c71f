"""The entry point of `python -m agentv_ci` and `agentv-ci`."""

from __future__ import annotations

import atexit
import gc
import os
import sys

from agentv_ci.version import __version__

ALLOCATIONS_BETWEEN_COLLECTIONS = 150_000
"""More than the imports of a run make, which are kept: a collection in a small run is in vain."""


def main() -> None:
    """Handle `--version` without imports; leave everything else to click."""
    if sys.argv[1:] == ["--version"]:
        sys.stdout.write(f"agentv-ci {__version__}\n")
        return
    # Imports and documents create many objects and few cycles: with the default threshold, garbage
    # collection takes a fifth of the time of a long validation.
    gc.set_threshold(ALLOCATIONS_BETWEEN_COLLECTIONS)
    from agentv_ci.cli import run  # imports click

    _end(run(sys.argv[1:]))


def _end(status: int) -> None:
    """End the process without freeing all that a run holds object by object.

    That would take a twentieth of a small run.
    """
    import threading  # as click does

    try:
        if sys.stderr is not None:
            sys.stderr.flush()
    except (OSError, ValueError):
        # Warnings that cannot be printed must not change the exit code to Python's own, 120.
        sys.stderr = None
    if threading.active_count() > 1:
        sys.exit(status)
    atexit._run_exitfuncs()  # noqa: SLF001  # there is no other way to run them
    try:
        if sys.stdout is not None:
            sys.stdout.flush()
    except (OSError, ValueError):
        sys.exit(status)  # which says what cannot be written
    os._exit(status)


if __name__ == "__main__":
    main()
