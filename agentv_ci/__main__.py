"""`python -m agentv_ci`, and what the command `agentv-ci` starts."""

from __future__ import annotations

import gc
import sys

from agentv_ci import __version__

ALLOCATIONS_BETWEEN_COLLECTIONS = 100_000


def main() -> None:
    """Answer `--version` at once; everything else is click's."""
    if sys.argv[1:] == ["--version"]:
        sys.stdout.write(f"agentv-ci {__version__}\n")
        return
    # Imports and documents make many objects and hardly a circle: looking for circles as often as by default takes a
    # fifth of the time of a long validation.
    gc.set_threshold(ALLOCATIONS_BETWEEN_COLLECTIONS)
    from agentv_ci.cli import run  # click is not needed to say a version

    status = run(sys.argv[1:])
    # The interpreter looks for circles once more when it ends, among all that a run has held; it all goes anyway.
    gc.freeze()
    sys.exit(status)


if __name__ == "__main__":
    main()
