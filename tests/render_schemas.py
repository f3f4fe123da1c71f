"""Render schemas/ from the contracts: `make schemas`; with --check, say which are stale."""

from __future__ import annotations

import sys
from pathlib import Path

from agentv_ci.rendering import render
from agentv_ci.schemas import TITLES

FOLDER = Path(__file__).parent.parent / "schemas"


def stale() -> list[str]:
    """Return the names of schemas whose committed text is not what the contracts say."""
    names: list[str] = []
    for name in TITLES:
        path = FOLDER / f"{name}.schema.json"
        if not path.exists() or path.read_text("utf-8") != render(name):
            names.append(name)
    return names


def main() -> int:
    """Write the schemas, or check them."""
    if "--check" in sys.argv[1:]:
        names = stale()
        for name in names:
            sys.stderr.write(f"schemas/{name}.schema.json is stale; run: make schemas\n")
        return 1 if names else 0
    for name in TITLES:
        (FOLDER / f"{name}.schema.json").write_text(render(name), "utf-8", newline="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
