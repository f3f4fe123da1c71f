"""The entry point of `python -m agentv_ci` and `agentv-ci`."""

from __future__ import annotations

import gc
import sys

from agentv_ci import __version__

ALLOCATIONS_BETWEEN_COLLECTIONS = 100_000


def main() -> None:
    """Handle `--version` without imports; leave everything else to click."""
    if sys.argv[1:] == ["--version"]:
        sys.stdout.write(f"agentv-ci {__version__}\n")
        return
    # Imports and documents create many objects and few cycles: with the default threshold, garbage collection takes a
    # fifth of the time of a long validation.
    gc.set_threshold(ALLOCATIONS_BETWEEN_COLLECTIONS)
    from agentv_ci.cli import run  # imports click

    status = run(sys.argv[1:])
    # Skips the interpreter's last collection, which would scan everything that a run has held.
    gc.freeze()
    sys.exit(status)


if __name__ == "__main__":
    main()
