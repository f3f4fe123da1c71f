"""`python -m agentv_ci`, and what the command `agentv-ci` starts."""

from __future__ import annotations

import sys

from agentv_ci import __version__


def main() -> None:
    """Answer `--version` at once; everything else is click's."""
    if sys.argv[1:] == ["--version"]:
        sys.stdout.write(f"agentv-ci {__version__}\n")
        return
    from agentv_ci.cli import run  # click is not needed to say a version

    sys.exit(run(sys.argv[1:]))


if __name__ == "__main__":
    main()
