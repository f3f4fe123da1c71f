"""A repository with one eval file, run as a user runs it."""

from __future__ import annotations

from typing import Any

from tests.support import CommandResult
from tests.support.projects import Project

KEY = "sk-canary-0123456789abcdef"


class Repository(Project):
    """A repository with `x.eval.yaml` and `targets.yaml`, whose cases pass with the answer 42."""

    def cases(self, *ids: str, **execution: Any) -> None:
        """Write cases with questions of their own, and keep the targets."""
        asked = ({"id": each, "input_messages": [{"role": "user", "content": f"question {each}"}]} for each in ids)
        targets = self.json("targets.yaml")["targets"] if self.path("targets.yaml").exists() else []
        finds = {"name": "e", "type": "contains", "value": "42"}
        self.documents(*asked, targets=tuple(targets), name="x.eval.yaml", evaluators=[finds], **execution)

    def target(self, *targets: dict[str, Any]) -> None:
        """Write targets that are called `default` unless they have a name."""
        self.targets(*({"name": "default", **each} for each in targets))

    def eval(self, *flags: str) -> CommandResult:
        """Run the eval file."""
        return self.run("eval", "x.eval.yaml", "--out", "r.jsonl", *flags)
